//! How things stand, told to clients that come without a replay, and what an agent spends.

use serde_json::{Value, json};

use crate::process::{Client, Process};

/// Shows something of each kind, more than once, and parks; says a word when it goes on.
const SHOWS: &str = r#"{"runs": [[
  {"commands": [{"name": "old", "description": "is gone"}]},
  {"plan": ["look", "build"]}, {"plan": ["build"]},
  {"context": {"used": 10, "size": 200}},
  {"commands": [{"name": "test", "description": "runs tests"}]},
  {"mode": "architect"},
  {"spend": {"usd": 0.02, "tokens": 120}},
  {"await": {"reason": "ci"}},
  {"say": "on it"}
]]}"#;

/// Updates that say how things stand.
const KINDS: [&str; 5] =
    ["plan", "plan_update", "usage_update", "available_commands_update", "current_mode_update"];

async fn connect(process: &Process, version: u64) -> Client {
    if version == 1 { process.connect_of_today().await } else { process.connect().await }
}

/// Returns what a client was told of how things stand, in its order.
fn told(client: &Client) -> Vec<Value> {
    let updates = client.heard().iter().map(|message| &message["params"]["update"]);
    updates
        .filter(|update| KINDS.iter().any(|kind| update["sessionUpdate"] == *kind))
        .cloned()
        .collect()
}

/// Returns where something was first heard.
fn place(client: &Client, is_it: impl Fn(&Value) -> bool) -> usize {
    client.heard().iter().position(is_it).unwrap()
}

/// Returns how things stand at the end of it all, as a version has it.
fn standing(version: u64) -> Vec<Value> {
    let entries = json!([{ "content": "build", "priority": "medium", "status": "pending" }]);
    let mut command = json!({ "name": "test", "description": "runs tests" });
    let cost = json!({ "amount": 0.02, "currency": "USD" });
    let usage = json!({ "sessionUpdate": "usage_update", "used": 10, "size": 200, "cost": cost });
    if version == 2 {
        command["type"] = "command".into();
    }
    let kind = "available_commands_update";
    let commands = json!({ "sessionUpdate": kind, "availableCommands": [command] });
    match version {
        1 => vec![
            json!({ "sessionUpdate": "current_mode_update", "currentModeId": "architect" }),
            commands,
            json!({ "sessionUpdate": "plan", "entries": entries }),
            usage,
        ],
        // The mode is none that clients of version 2 can choose.
        _ => {
            let plan = json!({ "type": "items", "planId": "plan", "entries": entries });
            vec![commands, json!({ "sessionUpdate": "plan_update", "plan": plan }), usage]
        }
    }
}

/// Runs a session until it is parked, and returns its name.
async fn parked(process: &Process) -> String {
    let mut first = process.connect().await;
    let session = first.new_session().await;
    let prompt = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] });
    first.call("session/prompt", prompt).await;
    first.until("the park", |message| message.to_string().contains("_suspended")).await;
    first.leave().await;
    session
}

fn attaching(session: &str) -> Value {
    json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_comes_without_a_replay_is_told_how_things_stand_and_once() {
    for version in [1, 2] {
        let process = Process::start(SHOWS).await;
        let session = parked(&process).await;
        let mut client = connect(&process, version).await;
        client.call("session/resume", attaching(&session)).await;
        let answered = client.heard().len();
        assert_eq!(told(&client), [Value::Null; 0], "nothing comes before the answer");
        let is_usage = |message: &Value| message.to_string().contains("usage_update");
        client.until("usage", is_usage).await;
        assert_eq!(told(&client), standing(version), "version {version}");
        assert!(place(&client, is_usage) >= answered);
        // Nothing of it comes again when the session goes on, nor with another resume.
        let mut wakes = attaching(&session);
        wakes["_meta"] = json!({ "adjourn/suspend": { "input": "go on" } });
        client.call("session/resume", wakes).await;
        client.until("its words", |message| message.to_string().contains("on it")).await;
        client.call("session/resume", attaching(&session)).await;
        assert_eq!(told(&client), standing(version), "version {version}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_comes_by_waking_a_session_is_told_so_behind_the_answer() {
    for version in [1, 2] {
        let process = Process::start(SHOWS).await;
        let session = parked(&process).await;
        let mut client = connect(&process, version).await;
        let mut wakes = attaching(&session);
        wakes["_meta"] = json!({ "adjourn/suspend": { "input": "go on" } });
        client.call("session/resume", wakes).await;
        let answered = client.heard().len();
        assert_eq!(told(&client), [Value::Null; 0], "nothing comes before the answer");
        let speaks = |message: &Value| message.to_string().contains("on it");
        client.until("its words", speaks).await;
        assert_eq!(told(&client), standing(version), "version {version}");
        let is_usage = |message: &Value| message.to_string().contains("usage_update");
        let usage = place(&client, is_usage);
        assert!(answered <= usage && usage < place(&client, speaks), "version {version}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_tells_all_of_it_where_it_was_said_and_nothing_twice() {
    for version in [1, 2] {
        let process = Process::start(SHOWS).await;
        let session = parked(&process).await;
        let mut client = connect(&process, version).await;
        match version {
            1 => client.call("session/load", attaching(&session)).await,
            _ => {
                let start = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
                client.call("session/resume", start).await
            }
        };
        let mut wakes = attaching(&session);
        wakes["_meta"] = json!({ "adjourn/suspend": { "input": "go on" } });
        client.call("session/resume", wakes).await;
        client.until("its words", |message| message.to_string().contains("on it")).await;
        let kinds: Vec<_> = told(&client).iter().map(|one| one["sessionUpdate"].clone()).collect();
        let (plan, commands, usage) = match version {
            1 => ("plan", "available_commands_update", "usage_update"),
            _ => ("plan_update", "available_commands_update", "usage_update"),
        };
        let mut expected = vec![commands, plan, plan, usage, commands];
        expected.extend(Some("current_mode_update").filter(|_| version == 1));
        expected.push(usage);
        assert_eq!(kinds, expected, "version {version}");
        assert_eq!(told(&client).last(), standing(version).last());
    }
}

/// A mode that clients can choose stands in the answer, as it was chosen last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_that_clients_choose_is_in_the_answer_and_not_told_beside_it() {
    let modes = r#"[{"id": "code", "name": "Code"}, {"id": "ask", "name": "Ask"}]"#;
    let script = format!(
        r#"{{"modes": {modes}, "steps": [{{"mode": "ask"}}, {{"plan": []}}, {{"say": "done"}}]}}"#
    );
    for version in [1, 2] {
        for (chosen, mode) in [(None, "ask"), (Some("code"), "code")] {
            let process = Process::start(&script).await;
            let mut first = process.connect_of_today().await;
            let session = first.new_session().await;
            first.prompt(&session).await;
            if let Some(mode) = chosen {
                let set = json!({ "sessionId": session, "modeId": mode });
                first.call("session/set_mode", set).await;
            }
            let mut client = connect(&process, version).await;
            let answer = client.call("session/resume", attaching(&session)).await;
            let current = match version {
                1 => &answer["modes"]["currentModeId"],
                _ => &answer["configOptions"][0]["currentValue"],
            };
            assert_eq!(current, mode, "version {version}");
            client.until("the plan", |message| message.to_string().contains("\"plan")).await;
            assert_eq!(told(&client).len(), 1, "version {version}: {:?}", told(&client));
        }
    }
}

const SPENDS: &str = r#"{"steps": [
  {"spend": {"usd": 0.02, "tokens": 120}},
  {"say": {"text": "hi", "spend": {"usd": 0.01}}},
  {"spend": {"tokens": 30}},
  {"context": {"used": 50, "size": 100}},
  {"spend": {"tokens": 5}},
  {"spend": {"usd": 0.001}}
]}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_spends_is_told_whether_or_not_it_says_how_full_its_context_is() {
    let usage = |used: u64, size: u64, usd: f64| {
        let cost = json!({ "amount": usd, "currency": "USD" });
        json!({ "sessionUpdate": "usage_update", "used": used, "size": size, "cost": cost })
    };
    let expected = [
        usage(120, 0, 0.02),
        usage(120, 0, 0.03),
        usage(150, 0, 0.03),
        usage(50, 100, 0.03),
        // More tokens alone say nothing new of a context that is known.
        usage(50, 100, 0.031),
    ];
    for version in [1, 2] {
        let process = Process::start(SPENDS).await;
        let mut client = connect(&process, version).await;
        let session = client.new_session().await;
        client.prompt(&session).await;
        if version == 2 {
            client.until_state("idle").await;
        }
        assert_eq!(told(&client), expected, "version {version}, live");
        let mut again = connect(&process, version).await;
        match version {
            1 => again.call("session/load", attaching(&session)).await,
            _ => {
                let start = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
                again.call("session/resume", start).await
            }
        };
        assert_eq!(told(&again), expected, "version {version}, again");
        let mut late = connect(&process, version).await;
        late.call("session/resume", attaching(&session)).await;
        late.until("usage", |message| message.to_string().contains("usage_update")).await;
        assert_eq!(told(&late), expected[4..], "version {version}, without a replay");
    }
}
