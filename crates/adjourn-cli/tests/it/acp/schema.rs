//! The golden conversations against the official schema of the protocol.
//!
//! Everything the agent says must be what the schema's own types can read, and reading it must lose
//! nothing but what is ours. The types skip what they do not know without a word, so what they
//! have read is written again and compared.

use std::collections::HashMap;

use adjourn_acp::suspension::{
    ResumedUpdate, SessionAwaitResumptionRequest, SessionSuspendResponse, SuspendedUpdate,
};
use agent_client_protocol_schema::{v1, v2};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What the proposal adds to messages of the protocol, by the end of its path.
const OURS: [&str; 3] = ["/supportsSuspend", "/supportsAwaitResumption", "/resumeCauses"];

/// What the schema's types leave out when they write, because it goes without saying.
const UNSAID: [(&str, &str); 2] = [("/update/kind", "other"), ("/update/status", "pending")];

/// A conversation: who spoke, and what was said.
struct Dialog {
    name: String,
    lines: Vec<(char, Value)>,
}

fn dialogs() -> Vec<Dialog> {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/acp/golden");
    let files = std::fs::read_dir(golden).unwrap().map(|file| file.unwrap().path());
    let dialogs = files.map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| {
            let (from, message) = line.split_at(1);
            (from.chars().next().unwrap(), serde_json::from_str(message).unwrap())
        });
        Dialog {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            lines: lines.collect(),
        }
    });
    dialogs.collect()
}

/// Reads a value as a type of the schema, and returns what it lost or changed by that.
fn lost<T: DeserializeOwned + Serialize>(value: &Value) -> Vec<String> {
    match serde_json::from_value::<T>(value.clone()) {
        Ok(read) => {
            let mut lost = Vec::new();
            compare("", value, &serde_json::to_value(read).unwrap(), &mut lost);
            lost
        }
        Err(error) => vec![format!("not a {}: {error}", std::any::type_name::<T>())],
    }
}

/// Finds what of a value is missing or different in another, which may have more.
fn compare(path: &str, value: &Value, other: &Value, lost: &mut Vec<String>) {
    match (value, other) {
        (Value::Object(fields), Value::Object(others)) => {
            for (name, value) in fields {
                let path = format!("{path}/{name}");
                match others.get(name) {
                    Some(other) => compare(&path, value, other, lost),
                    None if OURS.iter().any(|ours| path.ends_with(ours)) => {}
                    None if UNSAID.iter().any(|(at, word)| path == *at && value == word) => {}
                    None => lost.push(format!("{path}: {value} is lost")),
                }
            }
        }
        (Value::Array(values), Value::Array(others)) if values.len() == others.len() => {
            for (index, (value, other)) in values.iter().zip(others).enumerate() {
                compare(&format!("{path}/{index}"), value, other, lost);
            }
        }
        _ if value == other => {}
        _ => lost.push(format!("{path}: {value} became {other}")),
    }
}

/// Checks a result; `None` if the schema has no such method.
fn result(version: u64, method: &str, result: &Value) -> Option<Vec<String>> {
    Some(match (version, method) {
        (1, "initialize") => lost::<v1::InitializeResponse>(result),
        (1, "authenticate") => lost::<v1::AuthenticateResponse>(result),
        (1, "session/new") => lost::<v1::NewSessionResponse>(result),
        (1, "session/load") => lost::<v1::LoadSessionResponse>(result),
        (1, "session/resume") => lost::<v1::ResumeSessionResponse>(result),
        (1, "session/list") => lost::<v1::ListSessionsResponse>(result),
        (1, "session/close") => lost::<v1::CloseSessionResponse>(result),
        (1, "session/delete") => lost::<v1::DeleteSessionResponse>(result),
        (1, "session/status") => lost::<v1::SessionStatusResponse>(result),
        (1, "session/prompt") => lost::<v1::PromptResponse>(result),
        (1, "session/set_mode") => lost::<v1::SetSessionModeResponse>(result),
        (1, "session/set_config_option") => lost::<v1::SetSessionConfigOptionResponse>(result),
        (2, "initialize") => lost::<v2::InitializeResponse>(result),
        (2, "session/new") => lost::<v2::NewSessionResponse>(result),
        (2, "session/resume") => lost::<v2::ResumeSessionResponse>(result),
        (2, "session/list") => lost::<v2::ListSessionsResponse>(result),
        (2, "session/close") => lost::<v2::CloseSessionResponse>(result),
        (2, "session/delete") => lost::<v2::DeleteSessionResponse>(result),
        (2, "session/status") => lost::<v2::SessionStatusResponse>(result),
        (2, "session/prompt") => lost::<v2::PromptResponse>(result),
        (2, "session/set_config_option") => lost::<v2::SetSessionConfigOptionResponse>(result),
        _ => return None,
    })
}

/// Checks what the agent says of its own accord; `None` if the schema has no such method.
fn said(version: u64, method: &str, params: &Value) -> Option<Vec<String>> {
    Some(match (version, method) {
        (1, "session/update") => lost::<v1::SessionNotification>(params),
        (1, "elicitation/create") => lost::<v1::CreateElicitationRequest>(params),
        (1, "session/request_permission") => lost::<v1::RequestPermissionRequest>(params),
        (1, "$/cancel_request") => lost::<v1::CancelRequestNotification>(params),
        (2, "session/update") => lost::<v2::UpdateSessionNotification>(params),
        (2, "elicitation/create") => lost::<v2::CreateElicitationRequest>(params),
        (2, "session/request_permission") => lost::<v2::RequestPermissionRequest>(params),
        (2, "$/cancel_request") => lost::<v2::CancelRequestNotification>(params),
        _ => return None,
    })
}

/// Checks what only the proposal has, against our own types.
fn proposed(method: &str, message: &Value) -> Option<Vec<String>> {
    Some(match method {
        "session/suspend" | "_session/suspend" => {
            lost::<SessionSuspendResponse>(&message["result"])
        }
        "session/await_resumption" | "_session/await_resumption" => {
            lost::<SessionAwaitResumptionRequest>(&message["params"])
        }
        _ => return None,
    })
}

/// Checks an update that only the proposal has, against our own types.
fn proposed_update(update: &Value) -> Option<Vec<String>> {
    Some(match update["sessionUpdate"].as_str()? {
        "suspended" => lost::<SuspendedUpdate>(update),
        "resumed" => lost::<ResumedUpdate>(update),
        _ => return None,
    })
}

/// Returns whether a client shows by a message that it knows the proposal.
fn shows_the_proposal(message: &Value) -> bool {
    let added = ["handle", "input", "continueTranscript", "idempotencyKey", "addBudget"];
    let capabilities = ["/params/clientCapabilities", "/params/capabilities"];
    message["method"] == "session/suspend"
        || capabilities
            .iter()
            .any(|at| message.pointer(at).is_some_and(|known| known["supportsSuspend"] == true))
        || (message["method"] == "session/resume"
            && added.iter().any(|field| message["params"].get(field).is_some()))
}

#[test]
fn what_the_agent_says_is_what_the_schema_reads() {
    let mut checked = 0;
    for Dialog { name, lines } in dialogs() {
        let version = if name.starts_with("v1") { 1 } else { 2 };
        // This one is led with `--profile rfc`.
        let mut knows_proposal = name == "v1-parks-as-proposed";
        let mut asked = HashMap::new();
        for (from, message) in lines {
            let id = message["id"].to_string();
            let method = message["method"].as_str();
            if from == '>' {
                knows_proposal |= shows_the_proposal(&message);
                // Answers to the agent's own requests have no method.
                asked.extend(method.map(|method| (id, method.to_owned())));
                continue;
            }
            let lost = match method {
                Some(method) => match proposed_update(&message["params"]["update"]) {
                    Some(lost) => {
                        assert!(knows_proposal, "{name}: not for this client: {message}");
                        Some(lost)
                    }
                    None => said(version, method, &message["params"])
                        .or_else(|| proposed(method, &message)),
                },
                None if message.get("error").is_some() => Some(match version {
                    1 => lost::<v1::Error>(&message["error"]),
                    _ => lost::<v2::Error>(&message["error"]),
                }),
                None => result(version, &asked[&id], &message["result"])
                    .or_else(|| proposed(&asked[&id], &message)),
            };
            assert_eq!(lost, Some(Vec::new()), "{name}: {message}");
            checked += 1;
        }
    }
    assert!(checked > 200, "only {checked} messages");
}
