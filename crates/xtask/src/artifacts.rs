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
}
