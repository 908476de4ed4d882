//! The agent that is served, as the settings and the flags choose it.

use adjourn_testkit::http;
use serde_json::{Value, json};

use super::{PARKS, STATES, Server, message};
use crate::home::Home;

/// A model that waits for an event, and is done.
const WAITS: &str = r#"
{"text": "I wait.", "calls": [{"tool": "await_resumption", "arguments": {"reason": "ci", "conditions": {"onEvent": "ci.passed"}}}]}
{"text": "merged"}
"#;

impl Server {
    fn card(&self) -> Value {
        http::send(&*self.address, "GET /.well-known/agent-card.json", &[], "").json()
    }
}

#[test]
fn an_agent_of_the_settings_that_cannot_be_paused_says_so_and_the_settings_profile_holds() {
    let home = Home::new();
    home.file("answers.jsonl", WAITS);
    let agent = "model = \"scripted:../../answers.jsonl\"\n";
    home.config(&format!(
        "[a2a]\nprofile = \"rfc\"\n\n[agent.worker]\n{agent}pause = false\n\n[agent.other]\n{agent}"
    ));
    let server = Server::of(home, &["--agent", "worker", "--insecure-open"]);
    let card = server.card();
    assert_eq!(
        (&card["name"], &card["description"]),
        (&json!("worker"), &json!("The agent worker"))
    );
    let capabilities = &card["capabilities"];
    assert_eq!(capabilities["supportsPause"], false);
    assert_eq!(capabilities["supportsAwaitResumption"], false);
    assert_eq!((capabilities.get("_meta"), capabilities.get("extensions")), (None, None));
    // It waits all the same. Its card declares nothing of pauses, so that metadata alone tells it.
    let sent = server.result(&[STATES], "SendMessage", message("m1"));
    assert_eq!(sent.pointer("/task/status/state"), Some(&"TASK_STATE_WORKING".into()));
    let pause = sent.pointer("/task/metadata/harn/pause/state");
    assert_eq!(pause, Some(&"paused-by-agent".into()), "{sent}");
    let task = &sent["task"]["id"];
    for method in [
        "tasks/pause",
        "tasks/resume",
        "tasks/await_resumption",
        "PauseTask",
        "ResumeTask",
        "AwaitTaskResumption",
    ] {
        let params = json!({ "taskId": task, "reason": "review" });
        assert_eq!(server.refused(method, params), (-32601, "METHOD_NOT_FOUND".into()), "{method}");
    }
    let typed = server.home.told(&["a2a", "pause", &server.url(), task.as_str().unwrap()]);
    assert_eq!(typed.code, 3, "{typed:?}");
    assert!(typed.talk.contains("does not support pausing"), "{typed:?}");
    server.home.json(&["event", "ci.passed"]);
    server.until(task.as_str().unwrap(), "completed");

    // Another agent of the same settings can be paused, and everybody is told so in the proposal's
    // words.
    let Server { home, serving, .. } = server;
    assert_eq!(serving.unwrap().terminate(), 0);
    let server = Server::of(home, &["--agent", "other", "--insecure-open"]);
    assert_eq!(server.card()["capabilities"]["supportsPause"], true);
    let sent = server.result(&[], "SendMessage", message("m2"));
    assert_eq!(sent.pointer("/task/status/state"), Some(&"TASK_STATE_PAUSED_BY_AGENT".into()));
}

#[test]
fn the_profile_of_a_flag_tells_every_peer_the_proposals_states_and_frames() {
    let told = |arguments: &[&str]| {
        let server = Server::new(PARKS, &[&["--insecure-open"], arguments].concat());
        // As a peer that has activated nothing.
        let sent = server.result(&[], "SendMessage", message("m1"));
        let task = sent["task"]["id"].as_str().unwrap();
        let mut watch = server.watch_with(&[], &json!(task));
        let (_, first) = watch.next().unwrap();
        server.home.json(&["event", "ci.passed"]);
        let frames = std::iter::from_fn(|| watch.next())
            .filter(|(_, event)| event["method"] == "tasks/statusUpdate")
            .count();
        let state = first.pointer("/result/task/status/state").cloned();
        (sent.pointer("/task/status/state").cloned(), state, frames)
    };
    let (paused, working) = (json!("TASK_STATE_PAUSED_BY_AGENT"), json!("TASK_STATE_WORKING"));
    assert_eq!(told(&["--profile", "rfc"]), (Some(paused.clone()), Some(paused), 1));
    assert_eq!(told(&["--profile", "adjourn"]), (Some(working.clone()), Some(working), 0));
    let home = Home::new();
    let mut command = home.command(&["config", "--json"]);
    command.env("ADJOURN_A2A_PROFILE", "rfc");
    let line = r#"{"key":"a2a.profile","value":"rfc","source":"ADJOURN_A2A_PROFILE"}"#;
    let settings = home.ended(command).data;
    assert!(settings.lines().any(|setting| setting == line), "{settings}");
}

#[test]
fn a_task_that_asks_for_more_of_its_budget_goes_on_with_it() {
    let home = Home::new();
    let answers = r#"
{"text": "One.", "calls": [{"tool": "none"}], "usage": {"prompt_tokens": 90, "completion_tokens": 30}}
{"text": "Two.", "usage": {"prompt_tokens": 20, "completion_tokens": 10}}
"#;
    home.file("answers.jsonl", answers);
    let agent = "model = \"scripted:../../answers.jsonl\"\n";
    home.config(&format!("[agent.reader]\n{agent}[agent.reader.guardrails]\nmax_tokens = 100\n"));
    let server = Server::of(home, &["--agent", "reader", "--insecure-open"]);
    let sent = server.result(&[STATES], "SendMessage", message("m1"));
    let status = sent.pointer("/task/status/state");
    assert_eq!(status, Some(&"TASK_STATE_INPUT_REQUIRED".into()), "{sent}");
    let task = sent["task"]["id"].as_str().unwrap();
    // A question is answered by a message, and this one by more of the budget alone.
    let (code, reason) = server.refused("tasks/resume", json!({ "taskId": task }));
    assert_eq!((code, reason.as_str()), (-32011, "TASK_NOT_PAUSED"));
    // Sent again, this could answer a later question.
    let unbound = json!({ "taskId": task, "addBudget": { "tokens": 1000 } });
    assert_eq!(server.refused("tasks/resume", unbound), (-32012, "HANDLE_REQUIRED".to_owned()));
    let typed = server.typed("resume", &[task, "--add-budget", "tokens=1000"]);
    assert!(typed.code == 3 && typed.talk.contains("hint: --idempotency-key"), "{typed:?}");
    let raises = json!({ "taskId": task, "addBudget": { "tokens": 1000 }, "idempotencyKey": "k" });
    let raised = server.result(&[], "tasks/resume", raises.clone());
    let states = (&raised["previousState"], &raised["state"]);
    assert_eq!(states, (&json!("input-required"), &json!("working")), "{raised}");
    assert_eq!(server.result(&[], "tasks/resume", raises), raised, "a retry is answered alike");
    let done = server.until(task, "completed");
    assert!(done["task"].to_string().contains("Two."), "{done}");
    let over = server.typed("resume", &[task]);
    assert!(over.talk.contains("the task is completed"), "{over:?}");
}

#[test]
fn a_task_past_its_budget_is_paused_by_client_and_goes_on_with_more() {
    let home = Home::new();
    // A call of a tool that there is none of is told to the model, and the run goes on.
    let answers = r#"
{"text": "One.", "calls": [{"tool": "none"}], "usage": {"prompt_tokens": 90, "completion_tokens": 30}}
{"text": "Two.", "usage": {"prompt_tokens": 20, "completion_tokens": 10}}
"#;
    home.file("answers.jsonl", answers);
    let agent = "model = \"scripted:../../answers.jsonl\"\nbudget = \"tokens=100\"\n";
    home.config(&format!("[agent.reader]\n{agent}"));
    let server = Server::of(home, &["--agent", "reader", "--insecure-open"]);
    let sent = server.result(&[STATES], "SendMessage", message("m1"));
    let status = sent.pointer("/task/status/state");
    assert_eq!(status, Some(&"TASK_STATE_PAUSED_BY_CLIENT".into()), "{sent}");
    let pause = sent.pointer("/task/metadata/urn:adjourn:a2a:pause:v1").unwrap();
    assert_eq!(
        (&pause["state"], &pause["reason"]),
        (&json!("paused-by-client"), &json!("budget_exceeded"))
    );
    let task = sent["task"]["id"].as_str().unwrap();
    let plain =
        server.refused("tasks/resume", json!({ "taskId": task, "handle": pause["handle"] }));
    assert_eq!(plain, (-32011, "BUDGET_NOT_RAISED".to_owned()));
    let typed = server.typed("resume", &[task]);
    assert_eq!(typed.code, 3, "{typed:?}");
    assert!(typed.talk.contains("--add-budget raises what it may use"), "{typed:?}");
    let raised = server.typed_json("resume", &[task, "--add-budget", "tokens=1000"]);
    assert_eq!(
        (&raised["state"], &raised["previousState"]),
        (&json!("working"), &json!("paused-by-client"))
    );
    let done = server.until(task, "completed");
    assert!(done["task"].to_string().contains("Two."), "{done}");
}

#[test]
fn a_model_without_a_name_is_served_too() {
    let home = Home::new();
    let model = format!("scripted:{}", home.file("answers.jsonl", r#"{"text": "merged"}"#));
    let server = Server::of(home, &["--model", &model, "--insecure-open"]);
    let card = server.card();
    assert!(card["name"].as_str().is_some_and(|name| !name.is_empty()), "{card}");
    let sent = server.result(&[], "SendMessage", message("m1"));
    assert_eq!(sent.pointer("/task/status/state"), Some(&"TASK_STATE_COMPLETED".into()), "{sent}");
    assert!(sent.to_string().contains("merged"), "{sent}");
}

#[test]
fn tokens_and_the_name_for_others_hold_wherever_they_are_set() {
    let digest = adjourn_core::transcript::Digest::of(b"all").to_string();
    for place in ["file", "variable"] {
        let home = Home::new();
        let tokens = home.file("tokens", &format!("boss {digest} read,send\n"));
        let script = home.file("agent.json", PARKS);
        let home = match place {
            "file" => {
                home.config(&format!(
                    "[serve]\ntokens_file = \"{tokens}\"\npublic_name = \"https://agents.example\"\n"
                ));
                home
            }
            _ => home
                .with_variable("ADJOURN_TOKENS_FILE", tokens)
                .with_variable("ADJOURN_PUBLIC_NAME", "https://agents.example"),
        };
        let server = Server::of(home, &["--script", &script]);
        let list = super::request("ListTasks", json!({}));
        assert_eq!(server.post(&[super::JSON], &list).status, 401, "{place}");
        let boss = ("authorization", "Bearer all");
        assert_eq!(server.post(&[super::JSON, boss], &list).status, 200, "{place}");
        let card = |host: &str| {
            let path = "GET /.well-known/agent-card.json";
            http::send(&*server.address, path, &[("host", host)], "")
        };
        assert_eq!(card("agents.example").json()["url"], "https://agents.example/a2a", "{place}");
        assert_eq!(card("evil.example").status, 421, "{place}");
    }
}

#[test]
fn a_token_for_events_alone_lets_nobody_talk_to_an_agent() {
    let home = Home::new().with_variable("ADJOURN_TOKEN", "events");
    let script = home.file("agent.json", PARKS);
    let told = home.told(&["serve", "--listen", "127.0.0.1:0", "--script", &script]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.talk.contains("no agent could talk to this one"), "{told:?}");
    assert!(told.talk.contains("--tokens-file"), "{told:?}");
}
