//! The agent card: one object that clients of both versions read.

use adjourn::core::command::Mode;
use adjourn::core::session::Cause;
use adjourn::store::Store;
use serde_json::{Value, json};

use crate::face::Face;
use crate::version::{PAUSED_STATES, extensions};

/// What the agent takes and gives.
const MODES: [&str; 3] = ["text/plain", "application/json", "application/octet-stream"];

impl<S: Store> Face<S> {
    /// Describes the agent to a client that reaches it under a URL, where it has to show a token or
    /// not.
    pub fn card(&self, url: &str, secured: bool) -> Value {
        let agent = &self.agent;
        let causes = Cause::ALL.map(Cause::as_str);
        let modes = [Mode::FinishStep, Mode::InterruptImmediate, Mode::WaitForCompletion];
        let modes = modes.map(Mode::as_str);
        let pausing = json!({
            "supportsPause": agent.pausable,
            "supportsAwaitResumption": agent.pausable,
            "resumeCauses": causes,
            "modes": modes,
            "methods": {
                "pause": ["tasks/pause", "PauseTask"],
                "resume": ["tasks/resume", "ResumeTask"],
                "awaitResumption": ["tasks/await_resumption", "AwaitTaskResumption"],
            },
            "pausedStates": PAUSED_STATES,
        });
        let mut capabilities = json!({
            "streaming": true,
            "pushNotifications": false,
            "stateTransitionHistory": false,
            "extendedAgentCard": false,
            "supportsPause": agent.pausable,
            "supportsAwaitResumption": agent.pausable,
            "resumeCauses": causes,
        });
        if let (true, Some(capabilities)) = (agent.pausable, capabilities.as_object_mut()) {
            capabilities.insert("extensions".to_owned(), extensions(&pausing));
            let tunnel = json!({
                "supports_pause": true,
                "supports_await_resumption": true,
                "resume_causes": causes,
            });
            capabilities.insert("_meta".to_owned(), json!({ "harn": { "pause": tunnel } }));
        }
        let mut card = json!({
            "name": agent.name,
            "description": agent.description,
            "version": env!("CARGO_PKG_VERSION"),
            "protocolVersion": "0.3.0",
            "url": url,
            "preferredTransport": "JSONRPC",
            "additionalInterfaces": [{ "url": url, "transport": "JSONRPC" }],
            "supportedInterfaces": [
                { "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
                { "url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" },
                { "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3" },
            ],
            "capabilities": capabilities,
            "defaultInputModes": MODES,
            "defaultOutputModes": MODES,
            "skills": [{
                "id": agent.name,
                "name": agent.name,
                "description": agent.description,
                "tags": ["adjourn"],
            }],
            "supportsAuthenticatedExtendedCard": false,
        });
        if let (true, Some(card)) = (secured, card.as_object_mut()) {
            // Each version reads its own members of it.
            let scheme = json!({
                "httpAuthSecurityScheme": { "scheme": "Bearer" },
                "type": "http",
                "scheme": "bearer",
            });
            card.insert("securitySchemes".to_owned(), json!({ "bearer": scheme }));
            card.insert("security".to_owned(), json!([{ "bearer": [] }]));
            let required = json!([{ "schemes": { "bearer": { "list": [] } } }]);
            card.insert("securityRequirements".to_owned(), required);
        }
        card
    }
}
