//! `gen-protocol-artifacts`: the shapes in `spec/protocol-artifacts/`, made from the types.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../spec/protocol-artifacts")
}

/// Returns the files of both protocols, by name.
fn files() -> impl Iterator<Item = (&'static str, String)> {
    adjourn_acp::artifacts::files().into_iter().chain(adjourn_a2a::artifacts::files())
}

/// Writes the files anew.
pub fn write() -> Result<()> {
    std::fs::create_dir_all(directory()).context("cannot make the directory")?;
    for (name, text) in files() {
        let path = directory().join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "what it reads is of its own making")]

    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::directory;

    #[test]
    fn the_files_are_those_that_the_types_make() {
        for (name, text) in super::files() {
            let found = std::fs::read_to_string(directory().join(name)).unwrap_or_default();
            assert_eq!(found, text, "{name} is stale: run `make gen-protocol-artifacts`");
        }
    }

    /// Returns what of a message is told in `_meta`, however deep it lies.
    fn told(part: &Value) -> Vec<(&'static str, &Value)> {
        let inside = match part {
            Value::Object(fields) => fields.values().flat_map(told).collect(),
            Value::Array(items) => items.iter().flat_map(told).collect(),
            _ => Vec::new(),
        };
        let own = &part["_meta"]["adjourn/suspend"];
        let own = match () {
            () if own.get("sessionId").is_some() => Some(("SuspendStatus", own)),
            () if own.get("version").is_some() => Some(("SuspendExtension", own)),
            () => None,
        };
        let tunnel = &part["_meta"]["harn"]["suspend"];
        let tunnel = tunnel.is_object().then_some(("HarnSuspend", tunnel));
        inside.into_iter().chain(own).chain(tunnel).collect()
    }

    /// Returns which types a message, or a part of it, must be of.
    fn shapes<'a>(
        message: &'a Value,
        requests: &BTreeMap<String, String>,
    ) -> Vec<(&'static str, &'a Value)> {
        let method = message["method"].as_str().unwrap_or_default();
        let asked = requests.get(&message["id"].to_string()).map_or("", String::as_str);
        let (params, result) = (&message["params"], &message["result"]);
        let update = &params["update"];
        match (method, asked) {
            ("session/suspend" | "_session/suspend", _) => vec![("SessionSuspendRequest", params)],
            ("session/await_resumption" | "_session/await_resumption", _) => {
                vec![("SessionAwaitResumptionRequest", params)]
            }
            ("session/resume", _) => vec![("SessionResumeFields", params)],
            ("session/update", _) => match update["sessionUpdate"].as_str() {
                Some("suspended") => vec![("SuspendedUpdate", update)],
                Some("resumed") => vec![("ResumedUpdate", update)],
                _ => Vec::new(),
            },
            ("", _) if result.is_null() => Vec::new(),
            ("", "session/suspend" | "_session/suspend") => {
                vec![("SessionSuspendResponse", result)]
            }
            ("", "session/await_resumption" | "_session/await_resumption") => {
                vec![("SessionAwaitResumptionResponse", result)]
            }
            ("", "session/status") => vec![("SessionStatusResponse", result)],
            ("", "initialize") => {
                let one = [&result["agentCapabilities"], &result["capabilities"]];
                let one = one.into_iter().find(|capabilities| capabilities.is_object());
                one.map(|capabilities| ("SuspendCapabilities", capabilities)).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_status_may_name_the_host_that_keeps_the_agent_warm() {
        let mut schema = adjourn_acp::artifacts::schema();
        schema["$ref"] = json!("#/$defs/SuspendStatus");
        let status = jsonschema::validator_for(&schema).unwrap();
        let mut told = json!({
            "sessionId": "sess-1", "state": "suspended", "phase": "suspended", "totals": {}, "seq": 7,
            "keptWarmBy": "host-1",
        });
        assert!(status.is_valid(&told), "{:?}", status.validate(&told));
        told["keptWarmBy"] = json!(7);
        assert!(!status.is_valid(&told), "it is the id of a host");
        assert!(adjourn_acp::artifacts::typescript().contains("keptWarmBy?: string"));
    }

    #[test]
    fn the_golden_messages_are_of_these_shapes() {
        let mut schema = adjourn_acp::artifacts::schema();
        let mut validators = BTreeMap::new();
        let names: Vec<_> = schema["$defs"].as_object().unwrap().keys().cloned().collect();
        for name in names {
            schema["$ref"] = json!(format!("#/$defs/{name}"));
            validators.insert(name, jsonschema::validator_for(&schema).unwrap());
        }
        let dialogs = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../adjourn-cli/tests/it/acp/golden");
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for file in std::fs::read_dir(dialogs).unwrap() {
            let path = file.unwrap().path();
            // Each side numbers its own requests.
            let mut requests = BTreeMap::from([('>', BTreeMap::new()), ('<', BTreeMap::new())]);
            for line in std::fs::read_to_string(&path).unwrap().lines() {
                let (from, message) = line.split_once(' ').unwrap();
                let from = from.chars().next().unwrap();
                let message: Value = serde_json::from_str(message).unwrap();
                let other = if from == '>' { '<' } else { '>' };
                // What clients put there are the fields of their requests.
                let told = if from == '<' { told(&message) } else { Vec::new() };
                for (name, part) in shapes(&message, &requests[&other]).into_iter().chain(told) {
                    if let Err(error) = validators[name].validate(part) {
                        // What is sent on purpose to be refused need not be well formed.
                        let refused = from == '>' && path.to_string_lossy().contains("surface");
                        assert!(refused, "{}: {name}: {error}\n{line}", path.display());
                    }
                    *seen.entry(name).or_default() += 1;
                }
                if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
                    requests.get_mut(&from).unwrap().insert(id.to_string(), method.to_owned());
                }
            }
        }
        let all = [
            "HarnSuspend",
            "ResumedUpdate",
            "SessionAwaitResumptionRequest",
            "SessionAwaitResumptionResponse",
            "SessionResumeFields",
            "SessionStatusResponse",
            "SessionSuspendRequest",
            "SessionSuspendResponse",
            "SuspendCapabilities",
            "SuspendExtension",
            "SuspendStatus",
            "SuspendedUpdate",
        ];
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), all, "each is in some dialog");
    }

    /// Returns a validator for each shape of A2A, which shares some with ACP.
    fn pauses() -> BTreeMap<String, jsonschema::Validator> {
        let text = adjourn_a2a::artifacts::schema().to_string();
        let text = text.replace("suspend.schema.json#/", "#/");
        let mut schema: Value = serde_json::from_str(&text).unwrap();
        let own = schema["$defs"].as_object().unwrap().clone();
        let mut all = adjourn_acp::artifacts::schema()["$defs"].as_object().unwrap().clone();
        all.extend(own.clone());
        schema["$defs"] = all.into();
        let validator = |name: String| {
            schema["$ref"] = json!(format!("#/$defs/{name}"));
            let validator = jsonschema::validator_for(&schema).unwrap();
            (name, validator)
        };
        own.into_iter().map(|(name, _)| name).map(validator).collect()
    }

    /// Returns the JSON that tests of a crate have written down.
    fn goldens(file: &str) -> Vec<Value> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        let written = text.split("expect![[r#\"").skip(1);
        let written = written.map(|rest| rest.split("\"#]]").next().unwrap());
        written.map(|golden| serde_json::from_str(golden).unwrap()).collect()
    }

    /// Returns which types something that is told over A2A must be of, or a part of it.
    fn pause_shapes(part: &Value) -> Vec<(&'static str, &Value)> {
        let mut shapes: Vec<_> = match part {
            Value::Object(fields) => fields.values().flat_map(pause_shapes).collect(),
            Value::Array(items) => items.iter().flat_map(pause_shapes).collect(),
            _ => Vec::new(),
        };
        let has = |name: &str| part.get(name).is_some();
        shapes.extend(match () {
            () if part["method"] == "tasks/statusUpdate" => {
                Some(("TaskStatusUpdateNotification", part))
            }
            () if has("phase") => Some(("PauseTaskPending", part)),
            () if has("taskId") && has("previousState") => Some(("ResumeTaskResponse", part)),
            () if has("taskId") && has("initiator") => Some(("PausedStatusUpdate", part)),
            () if has("taskId") && has("handle") => Some(("PauseTaskResponse", part)),
            () if has("modes") => Some(("PauseCapabilities", part)),
            () if has("supportsPause") => Some(("PauseFlags", part)),
            () => None,
        });
        let metadata = &part["urn:adjourn:a2a:pause:v1"];
        shapes.extend(metadata.is_object().then_some(("PauseMetadata", metadata)));
        let tunnel = &part["pause"];
        shapes.extend(match () {
            () if tunnel.get("initiator").is_some() => Some(("HarnPause", tunnel)),
            () if tunnel.get("supports_pause").is_some() => Some(("HarnPauseCapabilities", tunnel)),
            () => None,
        });
        shapes
    }

    #[test]
    fn what_is_told_of_pauses_over_a2a_is_of_these_shapes() {
        let validators = pauses();
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for file in [
            "adjourn-server/tests/it/seed.rs",
            "adjourn-a2a/tests/it/seed.rs",
            "adjourn-a2a/tests/it/awaiting.rs",
            "adjourn-a2a/tests/it/patience.rs",
        ] {
            for golden in goldens(file) {
                let shapes = pause_shapes(&golden);
                assert!(!shapes.is_empty(), "{file}: {golden}");
                for (name, part) in shapes {
                    let valid = validators[name].validate(part);
                    assert!(valid.is_ok(), "{file}: {name}: {valid:?}\n{part}");
                    *seen.entry(name).or_default() += 1;
                }
            }
        }
        let all = [
            "HarnPause",
            "HarnPauseCapabilities",
            "PauseCapabilities",
            "PauseFlags",
            "PauseMetadata",
            "PauseTaskPending",
            "PauseTaskResponse",
            "PausedStatusUpdate",
            "ResumeTaskResponse",
            "TaskStatusUpdateNotification",
        ];
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), all, "each is in some golden");
    }

    #[test]
    fn what_is_asked_and_refused_over_a2a_is_of_these_shapes() {
        use adjourn_a2a::error::{Error, HANDLE_MISMATCH, NOT_PAUSABLE};
        use adjourn_a2a::{Family, Scope};
        let validators = pauses();
        let valid = |name: &str, value: &Value| validators[name].is_valid(value);
        let conditions = json!({
            "onEvent": "ci.build.completed:1234",
            "timeout": { "durationMinutes": 30, "onTimeout": "fail" },
        });
        for (name, request, field, wrong) in [
            (
                "PauseTaskRequest",
                json!({ "taskId": "t", "reason": "operator review", "mode": "finish_step",
                        "conditions": conditions, "graceMs": 7, "metadata": {} }),
                "mode",
                json!("soon"),
            ),
            (
                "ResumeTaskRequest",
                json!({ "taskId": "t", "handle": "h", "input": null, "continueTranscript": true,
                        "idempotencyKey": "k", "addBudget": { "usd": 1.5 }, "metadata": {} }),
                "addBudget",
                json!({ "steps": -1 }),
            ),
            (
                "AwaitTaskResumptionRequest",
                json!({ "taskId": "t", "reason": "waiting on ci/build:1234",
                        "conditions": conditions, "summary": "ETA 3m.", "metadata": {} }),
                "reason",
                json!(null),
            ),
            (
                "HarnPauseRequest",
                json!({ "reason": "from afar", "mode": "finish_step", "grace_ms": 7,
                        "conditions": { "on_event": "lunch.over" } }),
                "grace_ms",
                json!(-1),
            ),
        ] {
            assert!(valid(name, &request), "{name}: {request}");
            let mut request = request;
            request[field] = wrong;
            assert!(!valid(name, &request), "{name}: {request}");
        }
        assert!(valid("TaskState", &json!("submitted")));
        let no_handle = "SUSPENSION_HANDLE_MISMATCH";
        for error in [
            Error::invalid("mode", "expected one of those"),
            Error::no_task("t", Family::Proposal),
            Error::no_task("t", Family::Alias),
            Error::no_method("tasks/pause"),
            Error::new(NOT_PAUSABLE, "TASK_NOT_PAUSABLE", "the task is over").with("taskId", "t"),
            Error::new(HANDLE_MISMATCH, no_handle, "the handle is another's"),
            Error::forbidden(Scope::Pause),
        ] {
            let mut told = error.to_rpc();
            assert!(valid("PauseError", &told), "{told}");
            told["data"][0]["reason"] = json!("ANOTHER");
            assert!(!valid("PauseError", &told), "a reason belongs to its code: {told}");
        }
    }
}
