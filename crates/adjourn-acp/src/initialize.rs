//! Who we are and what we can do, as `initialize` answers.

use adjourn_core::command::Mode;
use serde_json::{Map, Value, json};

use crate::peer::{EXTENSION, Version};
use crate::suspension::SuspendCapabilities;

/// Who we are and what we can do.
pub(crate) fn introduction(version: Version) -> Value {
    let extension = json!({
        "version": 1,
        "modes": [Mode::FinishStep, Mode::InterruptImmediate, Mode::WaitForCompletion],
        "resumeCauses": SuspendCapabilities::ours().resume_causes,
    });
    let info =
        json!({ "name": "adjourn", "title": "adjourn", "version": env!("CARGO_PKG_VERSION") });
    let with_ours = |mut capabilities: Map<String, Value>| {
        if let Ok(Value::Object(ours)) = serde_json::to_value(SuspendCapabilities::ours()) {
            capabilities.extend(ours);
        }
        Value::Object(capabilities)
    };
    match version {
        Version::V1 => {
            let capabilities = json!({
                "loadSession": true,
                "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
                "mcpCapabilities": { "http": false, "sse": false },
                "sessionCapabilities": {
                    "list": {}, "delete": {}, "resume": {}, "close": {}, "status": {},
                    "_meta": { EXTENSION: extension },
                },
            });
            json!({
                "protocolVersion": 1,
                "agentCapabilities": with_ours(object(capabilities)),
                "agentInfo": info,
                "authMethods": [],
            })
        }
        Version::V2 => {
            let capabilities = json!({
                "session": {
                    "prompt": { "image": {}, "audio": {}, "embeddedContext": {} },
                    "mcp": { "stdio": {} },
                    "delete": {}, "status": {},
                    "_meta": { EXTENSION: extension },
                },
            });
            json!({
                "protocolVersion": 2,
                "info": info,
                "capabilities": with_ours(object(capabilities)),
            })
        }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
