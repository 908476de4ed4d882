//! `initialize`: what the client is and understands, and what this agent is and can do.

use adjourn::core::command::Mode;
use serde_json::{Map, Value, json};

use crate::peer::{EXTENSION, Peer, Profile, Version};
use crate::requests::Initialize;
use crate::rpc::{Error, UNSUPPORTED_VERSION};
use crate::suspension::SuspendCapabilities;

/// Returns the client that introduces itself, and how it is answered.
pub(crate) fn initialize(
    request: &Initialize,
    profile: Profile,
    mcp: bool,
) -> Result<(Peer, Value), Error> {
    let version = match request.protocol_version {
        0 => {
            let data = json!({ "requested": 0, "supported": [1, 2] });
            let problem = "this agent speaks versions 1 and 2";
            return Err(Error::new(UNSUPPORTED_VERSION, problem).with(data));
        }
        1 => Version::V1,
        _ => Version::V2,
    };
    let (info, capabilities) = match version {
        Version::V1 => (&request.client_info, &request.client_capabilities),
        Version::V2 => (&request.info, &request.capabilities),
    };
    Ok((Peer::new(version, profile, info, capabilities), introduction(version, mcp)))
}

/// Returns what this agent is and can do; `mcp` says whether it connects MCP servers.
fn introduction(version: Version, mcp: bool) -> Value {
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
                "mcpCapabilities": { "http": mcp, "sse": false },
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
            let mut session = object(json!({
                "prompt": { "image": {}, "audio": {}, "embeddedContext": {} },
                "delete": {}, "status": {},
                "_meta": { EXTENSION: extension },
            }));
            if mcp {
                session.insert("mcp".to_owned(), json!({ "stdio": {}, "http": {} }));
            }
            let capabilities = json!({ "session": session });
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
