//! What the settings say of an agent reaches its model, its tools and its host.

use adjourn_testkit::provider::Reply;
use serde_json::json;

use super::network::{OPENAI, Provider, home};
use super::texts;

/// Returns the answer to a request that is too much now, and can be made again after a while.
fn limited(seconds: u32) -> Reply {
    let error = json!({ "error": { "message": "slow down", "code": "rate_limit_exceeded" } });
    Reply::error(429, &error).header("retry-after", &seconds.to_string())
}

#[test]
fn instructions_tools_permissions_and_policy_hold_for_the_agent_that_they_are_of() {
    let provider = Provider::start(vec![
        (OPENAI.calls)("", "c1", "write_file", &json!({ "path": "a.txt", "content": "hello" })),
        (OPENAI.calls)("", "c2", "read_file", &json!({ "path": "nowhere.txt" })),
        (OPENAI.says)("Told."),
    ]);
    let home = home(&OPENAI, &provider);
    home.config(&format!(
        r#"
[agent.writer]
model = "{}"
instructions = "You write, and nothing else."
tools = ["read", "write"]
allow_all = true

[agent.writer.policy]
tool_error = "ask_user"
"#,
        OPENAI.model
    ));
    let cwd = home.path("").display().to_string();
    let run = ["run", "write it", "--agent", "writer", "--name", "w", "--detach", "--cwd", &cwd];
    let told = home.told(&run);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(std::fs::read_to_string(home.path("a.txt")).unwrap(), "hello", "nobody was asked");
    let asking = home.json(&["show", "w"]);
    assert_eq!(
        (&asking["wait"], &asking["originatingFailureKind"]),
        (&json!("question"), &json!("tool_error")),
        "{asking}"
    );
    let asked = provider.asked();
    let first = &asked[0].body;
    assert!(first["messages"][0].to_string().contains("You write, and nothing else."), "{first}");
    let tools: Vec<_> = first["tools"].as_array().unwrap().iter().collect();
    let has = |name: &str| tools.iter().any(|tool| tool["function"]["name"] == name);
    assert!(has("write_file") && has("read_file") && has("ask_user"), "{first}");
    assert!(!has("run_command") && !has("edit_file"), "{first}");
    // Another host goes on with the agent as it was, whatever the settings say by now.
    home.config("");
    assert_eq!(home.told(&["prompt", "w", "leave it"]).code, 0);
    let again = provider.asked().pop().unwrap().body;
    assert!(again["messages"][0].to_string().contains("You write, and nothing else."), "{again}");
}

#[test]
fn an_agent_that_may_parks_until_its_quota_refills_and_a_host_wakes_it() {
    let provider = Provider::start(vec![limited(3), (OPENAI.says)("Done.")]);
    let home = home(&OPENAI, &provider);
    let agent = format!("[agent.patient]\nmodel = \"{}\"\n", OPENAI.model);
    home.config(&format!("{agent}[agent.patient.guardrails]\npark_on_quota = true\n"));
    let run = ["run", "go", "--agent", "patient", "--name", "p", "--detach"];
    assert_eq!(home.told(&run).code, 0);
    let parked = home.json(&["show", "p"]);
    assert_eq!((&parked["state"], &parked["initiator"]), (&json!("suspended"), &json!("agent")));
    assert!(parked["reason"].as_str().unwrap().starts_with("quota: "), "{parked}");
    assert_eq!(provider.asked().len(), 1, "it is not asked before the quota refills");
    let serving = home.serve();
    assert_eq!(home.until("p", "state", "idle")["outcome"], "completed");
    assert_eq!(texts(&home, "p"), ["go", "Done."]);
    assert_eq!(provider.asked().len(), 2);
    assert_eq!(serving.terminate(), 0);
}

/// Why a run failed may pass: what it has done so far is there to go on from.
#[test]
fn a_run_that_failed_leaves_its_session_open_and_is_gone_on_with() {
    let provider = Provider::start(vec![limited(7200), (OPENAI.says)("Here I am.")]);
    let home = home(&OPENAI, &provider);
    let told = home.told(&["run", "go", "--model", OPENAI.model, "--name", "r"]);
    assert_eq!(told.code, 1, "{told:?}");
    let (_, hint) = told.talk.split_once("[it stays open; `adjourn prompt ").unwrap();
    let id = hint.split_once(' ').unwrap().0;
    assert_eq!(home.json(&["show", "r"])["state"], "idle");
    let told = home.told(&["prompt", id, "go on"]);
    assert_eq!(
        (told.code, texts(&home, "r")),
        (0, vec!["go".into(), "go on".into(), "Here I am.".into()])
    );
}
