//! An agent, as its card describes it.

use adjourn::core::session::Cause;
use serde_json::Value;

use crate::version::{PAUSE, PAUSED_STATES, Version};

/// Where an agent's card lies below its URL, in the order in which it is looked for.
const CARDS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// How requests are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// As JSON-RPC, all to one URL.
    JsonRpc,
    /// As methods and paths of HTTP.
    HttpJson,
}

impl Binding {
    /// Returns the name that cards have for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::HttpJson => "HTTP+JSON",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::JsonRpc, Self::HttpJson]
            .into_iter()
            .find(|binding| binding.as_str().eq_ignore_ascii_case(name))
    }
}

/// One way to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The URL of the agent.
    pub url: String,
    /// How requests are put there.
    pub binding: Binding,
    /// The version of A2A that is spoken there.
    pub version: Version,
    /// The tenant that requests there have to name.
    pub tenant: Option<String>,
}

/// What a caller insists on; the rest is as the agent prefers it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wish {
    /// How requests are to be put.
    pub binding: Option<Binding>,
    /// The version that is to be spoken.
    pub version: Option<Version>,
}

/// An agent, and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The name on its card.
    pub name: String,
    /// The way to it.
    pub interface: Interface,
    /// Whether it tells of tasks as they go on.
    pub streams: bool,
    /// Whether its tasks can be paused. A card that says nothing about it says no.
    pub pauses: bool,
    /// Whether a paused task wakes by itself when what it waits for comes. A card that names no causes
    /// of a wake names an explicit resume alone.
    pub wakes: bool,
    /// The extensions of ours that it knows; requests activate them.
    pub(super) extensions: Vec<&'static str>,
}

/// Why a card leads to no agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPeer {
    /// It is not the card of an agent.
    NoCard,
    /// None of the ways that it names is one that is spoken here, or that is wished for.
    NoInterface {
        /// The ways that it names.
        offered: Vec<String>,
    },
}

impl std::fmt::Display for NoPeer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoCard => f.write_str("it is not the card of an agent"),
            Self::NoInterface { offered } if offered.is_empty() => {
                f.write_str("its card names no URL to speak to")
            }
            Self::NoInterface { offered } => {
                write!(f, "its card offers only {}", offered.join(", "))
            }
        }
    }
}

impl Peer {
    /// Reads a card, and chooses the first way that it names, or the first one that is as wished.
    ///
    /// # Errors
    /// It is no card, or names no such way.
    pub fn read(card: &Value, wish: Wish) -> Result<Self, NoPeer> {
        let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
        let Some(name) = text(card, "name") else { return Err(NoPeer::NoCard) };
        let mut offered = Vec::new();
        let mut found = None;
        for (url, binding, version, tenant) in interfaces(card) {
            offered.push(format!("{binding} {version}"));
            let (Some(binding), Some(version)) = (Binding::named(&binding), spoken(&version))
            else {
                continue;
            };
            let is_wished = wish.binding.is_none_or(|wish| wish == binding)
                && wish.version.is_none_or(|wish| wish == version);
            if is_wished && found.is_none() {
                found = Some(Interface { url, binding, version, tenant });
            }
        }
        offered.dedup();
        let interface = found.ok_or(NoPeer::NoInterface { offered })?;
        let capabilities = card.get("capabilities").unwrap_or(&Value::Null);
        let flag = |of: &Value, name: &str| of.get(name).and_then(Value::as_bool);
        let extensions = capabilities.get("extensions").and_then(Value::as_array);
        let extensions = || extensions.into_iter().flatten();
        let knows = |uri: &str| {
            extensions().any(|extension| extension.get("uri").and_then(Value::as_str) == Some(uri))
        };
        // What the extension says is signed, where a card is; the flag beside it is not.
        let params = || extensions().filter_map(|extension| extension.get("params"));
        let declared = params().filter_map(|params| flag(params, "supportsPause")).next();
        let pauses = declared.or_else(|| flag(capabilities, "supportsPause"));
        let causes = |of: &Value| of.get("resumeCauses").and_then(Value::as_array).cloned();
        let causes = params().find_map(causes).or_else(|| causes(capabilities));
        let by_itself = [Cause::ConditionFired, Cause::Timeout].map(Cause::as_str);
        let wakes = |cause: &Value| by_itself.iter().any(|by| cause == by);
        Ok(Self {
            name,
            interface,
            streams: flag(capabilities, "streaming").unwrap_or(false),
            pauses: pauses.unwrap_or(false),
            wakes: causes.is_some_and(|causes| causes.iter().any(wakes)),
            extensions: [PAUSE, PAUSED_STATES].into_iter().filter(|uri| knows(uri)).collect(),
        })
    }
}

/// Returns the ways that a card names, in its order: those of 1.0 first, then those of 0.3. Each is a
/// URL, a binding, a version and perhaps a tenant.
fn interfaces(card: &Value) -> Vec<(String, String, String, Option<String>)> {
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| card.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut found = Vec::new();
    for interface in list("supportedInterfaces") {
        let (Some(url), Some(binding)) =
            (text(&interface, "url"), text(&interface, "protocolBinding"))
        else {
            continue;
        };
        let version = text(&interface, "protocolVersion").unwrap_or_else(|| "1.0".to_owned());
        let tenant = text(&interface, "tenant").filter(|tenant| !tenant.is_empty());
        found.push((url, binding, version, tenant));
    }
    let version = text(card, "protocolVersion").unwrap_or_else(|| "0.3".to_owned());
    if let Some(url) = text(card, "url") {
        let binding = text(card, "preferredTransport");
        let binding = binding.unwrap_or_else(|| Binding::JsonRpc.as_str().to_owned());
        found.push((url, binding, version.clone(), None));
    }
    for interface in list("additionalInterfaces") {
        if let (Some(url), Some(binding)) = (text(&interface, "url"), text(&interface, "transport"))
        {
            found.push((url, binding, version.clone(), None));
        }
    }
    found
}

/// Returns the version that a card means; nothing if it is not spoken here.
fn spoken(version: &str) -> Option<Version> {
    match version.split('.').next() {
        Some("1") => Some(Version::V10),
        // Clients of 0.3 speak to servers of 0.2, too.
        Some("0") => Some(Version::V03),
        _ => None,
    }
}

/// Returns where the card of an agent may be that is known by a URL, the likeliest place first: the
/// URL itself if it names a file, below it, or at the root of its server.
pub fn card_urls(url: &str) -> Vec<String> {
    let url = url.split(['?', '#']).next().unwrap_or(url);
    if url.ends_with(".json") {
        return vec![url.to_owned()];
    }
    let below = url.trim_end_matches('/');
    let path = below.find("://").map_or(0, |scheme| scheme + 3);
    let root = below.get(path..).and_then(|rest| rest.find('/')).map(|slash| path + slash);
    let root = root.and_then(|end| below.get(..end));
    let bases = root.into_iter().chain([below]);
    let of = |base: &str| CARDS.map(|card| format!("{base}{card}"));
    bases.flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hybrid() -> Value {
        json!({
            "name": "worker", "url": "http://h/a2a", "protocolVersion": "0.3.0",
            "preferredTransport": "JSONRPC",
            "supportedInterfaces": [
                { "url": "http://h/grpc", "protocolBinding": "GRPC", "protocolVersion": "1.0" },
                { "url": "http://h/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
                { "url": "http://h/a2a", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0", "tenant": "t" },
            ],
            "capabilities": { "streaming": true, "supportsPause": true },
        })
    }

    #[test]
    fn the_first_way_that_is_spoken_and_wished_for_is_taken() {
        let chosen = |wish| {
            let interface = Peer::read(&hybrid(), wish).map(|peer| peer.interface);
            interface.map(|way| (way.binding, way.version, way.tenant))
        };
        let none = Wish::default();
        assert_eq!(chosen(none), Ok((Binding::JsonRpc, Version::V10, None)));
        let v03 = Wish { version: Some(Version::V03), ..none };
        assert_eq!(chosen(v03), Ok((Binding::JsonRpc, Version::V03, None)));
        let rest = Wish { binding: Some(Binding::HttpJson), ..none };
        assert_eq!(chosen(rest), Ok((Binding::HttpJson, Version::V10, Some("t".to_owned()))));
        let both = Wish { binding: Some(Binding::HttpJson), version: Some(Version::V03) };
        let told = chosen(both).unwrap_err().to_string();
        assert!(told.contains("GRPC 1.0, JSONRPC 1.0, HTTP+JSON 1.0, JSONRPC 0.3.0"), "{told}");
    }

    #[test]
    fn what_is_no_card_or_leads_nowhere_is_told_as_such() {
        assert_eq!(Peer::read(&json!([]), Wish::default()), Err(NoPeer::NoCard));
        assert_eq!(Peer::read(&json!({ "url": "x" }), Wish::default()), Err(NoPeer::NoCard));
        let nowhere = Peer::read(&json!({ "name": "x" }), Wish::default()).unwrap_err();
        assert_eq!(nowhere.to_string(), "its card names no URL to speak to");
        let newer = json!({ "name": "x", "supportedInterfaces": [
            { "url": "http://h", "protocolBinding": "JSONRPC", "protocolVersion": "2.0" }] });
        let newer = Peer::read(&newer, Wish::default()).unwrap_err();
        assert_eq!(newer.to_string(), "its card offers only JSONRPC 2.0");
    }

    #[test]
    fn only_a_card_that_says_so_is_one_of_an_agent_that_pauses() {
        let pauses = |capabilities: Value| {
            let mut card = hybrid();
            card["capabilities"] = capabilities;
            Peer::read(&card, Wish::default()).unwrap().pauses
        };
        assert!(!pauses(json!({})) && !pauses(Value::Null));
        assert!(!pauses(json!({ "supportsPause": "yes" })));
        assert!(pauses(json!({ "supportsPause": true })));
        let extension = |is: bool| json!([{ "uri": "urn:x", "params": { "supportsPause": is } }]);
        assert!(pauses(json!({ "extensions": extension(true) })));
        assert!(!pauses(json!({ "supportsPause": true, "extensions": extension(false) })));
    }

    #[test]
    fn only_a_card_with_a_cause_for_it_is_one_of_an_agent_whose_tasks_wake() {
        let wakes = |capabilities: Value| {
            let mut card = hybrid();
            card["capabilities"] = capabilities;
            Peer::read(&card, Wish::default()).unwrap().wakes
        };
        assert!(!wakes(json!({ "supportsPause": true })));
        assert!(!wakes(json!({ "resumeCauses": ["explicit_resume"] })));
        assert!(wakes(json!({ "resumeCauses": ["explicit_resume", "timeout"] })));
        let params = json!({ "supportsPause": true, "resumeCauses": ["condition_fired"] });
        assert!(wakes(json!({ "extensions": [{ "uri": "urn:x", "params": params }] })));
    }

    #[test]
    fn a_card_is_looked_for_where_agents_have_it() {
        let card = "/.well-known/agent-card.json";
        assert_eq!(card_urls("http://h:1/x/card.json?y"), ["http://h:1/x/card.json"]);
        for url in ["http://h:1", "http://h:1/"] {
            assert_eq!(card_urls(url).first(), Some(&format!("http://h:1{card}")), "{url}");
            assert_eq!(card_urls(url).len(), 2);
        }
        let below = card_urls("https://h/a2a/");
        assert_eq!(below.first(), Some(&format!("https://h{card}")));
        assert!(below.contains(&format!("https://h/a2a{card}")));
    }
}
