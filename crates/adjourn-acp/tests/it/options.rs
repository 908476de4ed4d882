//! Modes and config options: how clients choose, and how all of them are told.

use serde_json::{Value, json};

use crate::process::{Client, Process};

const MODES: &str = r#"{
  "modes": [{"id": "code", "name": "Code"}, {"id": "ask", "name": "Ask", "description": "Asks first"}],
  "steps": [{"await": {"reason": "ci"}}, {"mode": "code"}, {"say": "done"}]
}"#;

async fn connect(process: &Process, version: u64) -> Client {
    match version {
        1 => process.connect_of_today().await,
        _ => process.connect().await,
    }
}

/// Lets a client see all of a session; returns it, and what it was answered.
async fn load(process: &Process, version: u64, session: &str) -> (Client, Value) {
    let mut client = connect(process, version).await;
    let answer = match version {
        1 => {
            let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
            client.call("session/load", load).await
        }
        _ => {
            let resume = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
            client.call("session/resume", resume).await
        }
    };
    (client, answer)
}

/// Asks for a mode, as a version does, and returns the whole answer.
async fn set(client: &mut Client, version: u64, session: &str, mode: &str) -> Value {
    let id = match version {
        1 => {
            let set = json!({ "sessionId": session, "modeId": mode });
            client.request("session/set_mode", set).await
        }
        _ => {
            let set =
                json!({ "sessionId": session, "configId": "mode", "type": "id", "value": mode });
            client.request("session/set_config_option", set).await
        }
    };
    client.answer(id).await
}

/// Returns the mode that a message tells of, if it does.
fn mode(message: &Value) -> Option<&str> {
    let update = &message["params"]["update"];
    match update["sessionUpdate"].as_str()? {
        "current_mode_update" => update["currentModeId"].as_str(),
        "config_option_update" => update["configOptions"][0]["currentValue"].as_str(),
        _ => None,
    }
}

fn modes(client: &Client) -> Vec<&str> {
    client.heard().iter().filter_map(mode).collect()
}

/// Returns the mode that an answer says a session is in.
fn opened_in(answer: &Value, version: u64) -> &Value {
    match version {
        1 => &answer["modes"]["currentModeId"],
        _ => &answer["configOptions"][0]["currentValue"],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_is_told_to_all_clients_everywhere_and_again() {
    for version in [1, 2] {
        let process = Process::start(MODES).await;
        let elsewhere = process.beside(MODES).await;
        let mut client = connect(&process, version).await;
        let new = json!({ "cwd": "/tmp", "mcpServers": [] });
        let made = client.call("session/new", new).await;
        let session = made["sessionId"].as_str().unwrap().to_owned();
        match version {
            1 => {
                let ask = json!({ "id": "ask", "name": "Ask", "description": "Asks first" });
                let available = json!([{ "id": "code", "name": "Code" }, ask]);
                let modes = json!({ "currentModeId": "code", "availableModes": available });
                assert_eq!(made["modes"], modes);
                assert_eq!(made.get("configOptions"), None, "every client knows modes");
            }
            _ => {
                let ask = json!({ "value": "ask", "name": "Ask", "description": "Asks first" });
                let option = json!({
                    "configId": "mode", "name": "Mode", "type": "select", "category": "mode",
                    "currentValue": "code",
                    "options": [{ "value": "code", "name": "Code" }, ask],
                });
                assert_eq!(made["configOptions"], json!([option]));
                assert_eq!(made.get("modes"), None, "version 2 has no modes");
            }
        }
        let (mut second, _) = load(&process, version, &session).await;
        let (mut third, _) = load(&elsewhere, version, &session).await;
        let answer = set(&mut client, version, &session, "ask").await;
        match version {
            1 => assert_eq!(answer["result"], json!({})),
            _ => assert_eq!(opened_in(&answer["result"], version), "ask"),
        }
        for watching in [&mut client, &mut second, &mut third] {
            watching.until("the mode", |message| mode(message) == Some("ask")).await;
        }
        // After a restart it is the same.
        client.leave().await;
        process.kill().await;
        let restarted = elsewhere.beside(MODES).await;
        let (again, answer) = load(&restarted, version, &session).await;
        assert_eq!(opened_in(&answer, version), "ask", "version {version}");
        assert_eq!(modes(&again), ["ask"], "version {version}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parked_session_takes_a_mode_and_stays_parked_and_its_agent_may_change_it() {
    for version in [1, 2] {
        let process = Process::start(MODES).await;
        let mut client = connect(&process, version).await;
        let session = client.new_session().await;
        client.prompt(&session).await;
        while process.phase(&session) != "suspended" {
            tokio::task::yield_now().await;
        }
        let before = process.revision(&session);
        set(&mut client, version, &session, "ask").await;
        client.until("the mode", |message| mode(message) == Some("ask")).await;
        assert_eq!(process.phase(&session), "suspended");
        assert_eq!(process.revision(&session), before + 1);
        // What holds already is no news.
        set(&mut client, version, &session, "ask").await;
        assert_eq!(process.revision(&session), before + 1);
        client.call("session/resume", json!({ "sessionId": session })).await;
        client.until("the agent's mode", |message| mode(message) == Some("code")).await;
        client.until("its end", |message| message.to_string().contains("done")).await;
        let (again, answer) = load(&process, version, &session).await;
        assert_eq!(opened_in(&answer, version), "code", "version {version}");
        assert_eq!(modes(&again), ["ask", "code"], "version {version}");
        assert_eq!(modes(&client), ["ask", "code"], "version {version}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_that_there_is_not_is_refused_with_those_that_there_are() {
    let process = Process::start(MODES).await;
    for version in [1, 2] {
        let mut client = connect(&process, version).await;
        let session = client.new_session().await;
        let before = process.revision(&session);
        for hostile in ["fly", "", "ask\u{1b}[2J\n", &"x".repeat(100_000)] {
            let answer = set(&mut client, version, &session, hostile).await;
            let path = if version == 1 { "modeId" } else { "value" };
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            assert_eq!(answer["error"]["data"]["path"], path, "{answer}");
            assert!(answer.to_string().contains("expected one of code, ask"), "{answer}");
            assert!(answer.to_string().len() < 1000, "it is not repeated");
        }
        let option = json!({ "sessionId": session, "configId": "colour", "value": "red" });
        let id = client.request("session/set_config_option", option).await;
        assert_eq!(client.answer(id).await["error"]["data"]["path"], "configId");
        assert_eq!(process.revision(&session), before);
        assert!(modes(&client).is_empty());
    }
    let plain = Process::start(r#"{"steps": []}"#).await;
    let mut client = plain.connect_of_today().await;
    let session = client.new_session().await;
    let answer = set(&mut client, 1, &session, "ask").await;
    assert_eq!(answer["error"]["data"]["path"], "modeId");
}
