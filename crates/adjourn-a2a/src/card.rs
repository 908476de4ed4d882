//! The agent card: one object that clients of both versions read.

use adjourn::core::command::Mode;
use adjourn::core::session::Cause;
use adjourn::store::Store;
use serde_json::{Value, json};

use crate::caller::{Caller, Scope};
use crate::face::Face;
use crate::part::without_nulls;
use crate::version::{PAUSED_STATES, extensions};

/// What the agent takes and gives.
const MODES: [&str; 3] = ["text/plain", "application/json", "application/octet-stream"];

/// The bindings of each version, in the order in which clients are to prefer them.
const INTERFACES: [(&str, &str); 4] =
    [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "0.3")];

impl<S: Store> Face<S> {
    /// Describes the agent to a client that reaches it under a URL, where it has to show a token or
    /// not.
    pub fn card(&self, url: &str, secured: bool) -> Value {
        self.described(url, secured, None)
    }

    /// Describes the agent to a peer that is known: as everybody is told, and what this peer may do
    /// with it.
    pub(crate) fn extended_card(&self, url: &str, caller: &Caller) -> Value {
        self.described(url, true, Some(caller))
    }

    fn described(&self, url: &str, secured: bool, caller: Option<&Caller>) -> Value {
        let agent = &self.agent;
        let causes = Cause::ALL.map(Cause::as_str);
        let modes = [Mode::FinishStep, Mode::InterruptImmediate, Mode::WaitForCompletion];
        let modes = modes.map(Mode::as_str);
        let mut pausing = json!({
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
        if let (Some(caller), Some(pausing)) = (caller, pausing.as_object_mut()) {
            let scopes = Scope::ALL.into_iter().filter(|scope| caller.may(*scope));
            let scopes: Vec<_> = scopes.map(Scope::as_str).collect();
            let caller =
                json!({ "name": &*caller.name, "tenant": &*caller.tenant, "scopes": scopes });
            pausing.insert("caller".to_owned(), caller);
        }
        let mut capabilities = json!({
            "streaming": true,
            "pushNotifications": self.pushes(),
            "stateTransitionHistory": false,
            "extendedAgentCard": secured,
            "supportsPause": agent.pausable,
            "supportsAwaitResumption": agent.pausable,
        });
        if let (true, Some(capabilities)) = (agent.pausable, capabilities.as_object_mut()) {
            capabilities.insert("resumeCauses".to_owned(), json!(causes));
            capabilities.insert("extensions".to_owned(), extensions(&pausing));
            let tunnel = json!({
                "supports_pause": true,
                "supports_await_resumption": true,
                "resume_causes": causes,
            });
            capabilities.insert("_meta".to_owned(), json!({ "harn": { "pause": tunnel } }));
        }
        let older = ["JSONRPC", "HTTP+JSON"].map(|name| json!({ "url": url, "transport": name }));
        // The first one of a binding is the one that clients take.
        let interfaces = INTERFACES.map(|(binding, version)| {
            let tenant = caller.filter(|_| version == "1.0").map(|caller| &*caller.tenant);
            without_nulls(json!({ "url": url, "protocolBinding": binding,
                                  "protocolVersion": version, "tenant": tenant }))
        });
        let mut card = json!({
            "name": agent.name,
            "description": agent.description,
            "version": env!("CARGO_PKG_VERSION"),
            "protocolVersion": "0.3.0",
            "url": url,
            "preferredTransport": "JSONRPC",
            "additionalInterfaces": older,
            "supportedInterfaces": interfaces,
            "capabilities": capabilities,
            "defaultInputModes": MODES,
            "defaultOutputModes": MODES,
            "skills": [{
                "id": agent.name,
                "name": agent.name,
                "description": agent.description,
                "tags": ["adjourn"],
            }],
            "supportsAuthenticatedExtendedCard": secured,
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
