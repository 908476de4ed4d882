//! Names and ids that providers take.
//!
//! Hosts and MCP servers name tools as they like, and the ids of calls may be those of another
//! provider. A provider refuses the whole conversation for one name that it does not take.

use std::collections::{HashMap, HashSet};

use genai::adapter::AdapterKind;

/// The longest name of a tool that providers take.
const NAME_BYTES: usize = 64;
/// The longest id of a call that providers take.
const ID_BYTES: usize = 40;
/// How long an id of a call is with Mistral, which takes no other.
const MISTRAL_ID_BYTES: usize = 9;

/// The names of tools, as a provider is told them.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    told: HashMap<String, String>,
    given: HashMap<String, String>,
}

impl ToolNames {
    /// Returns the name that a provider is told for a tool.
    pub(super) fn told(&mut self, kind: AdapterKind, name: &str) -> String {
        if let Some(told) = self.told.get(name) {
            return told.clone();
        }
        let taken = |candidate: &str| self.given.contains_key(candidate);
        let told = if is_name(kind, name) && !taken(name) {
            name.to_owned()
        } else {
            let fits = |character: char| if is_plain(character) { character } else { '_' };
            let plain: String = name.chars().map(fits).take(NAME_BYTES - 4).collect();
            let numbered = |number: u32| format!("{plain}_{number}");
            // There are more numbers than tools.
            let free = (1..).map(numbered).find(|name| is_name(kind, name) && !taken(name));
            free.unwrap_or(plain)
        };
        self.told.insert(name.to_owned(), told.clone());
        self.given.insert(told.clone(), name.to_owned());
        told
    }

    /// Returns the name of a tool that a model calls.
    pub(super) fn given(&self, told: String) -> String {
        self.given.get(&told).cloned().unwrap_or(told)
    }
}

const fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

fn is_name(kind: AdapterKind, name: &str) -> bool {
    // genai takes a tool of this name for the provider's own.
    let theirs = name == "web_search"
        && matches!(kind, AdapterKind::Anthropic | AdapterKind::OpenAIResp | AdapterKind::MiniMax);
    !theirs && !name.is_empty() && name.len() <= NAME_BYTES && name.chars().all(is_plain)
}

/// The ids of calls, as a provider is told them.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    told: HashMap<String, String>,
    taken: HashSet<String>,
}

impl CallIds {
    /// Returns the id that a provider is told for a call.
    pub(super) fn told(&mut self, kind: AdapterKind, id: &str) -> String {
        if let Some(told) = self.told.get(id) {
            return told.clone();
        }
        let told = if is_id(kind, id) && !self.taken.contains(id) {
            id.to_owned()
        } else {
            let numbered = |number: usize| format!("call{number:05}");
            // There are more numbers than calls.
            let free = (self.told.len()..).map(numbered).find(|id| !self.taken.contains(id));
            free.unwrap_or_default()
        };
        self.taken.insert(told.clone());
        self.told.insert(id.to_owned(), told.clone());
        told
    }
}

fn is_id(kind: AdapterKind, id: &str) -> bool {
    match kind {
        AdapterKind::Mistral => {
            id.len() == MISTRAL_ID_BYTES && id.chars().all(|c| c.is_ascii_alphanumeric())
        }
        _ => !id.is_empty() && id.len() <= ID_BYTES && id.chars().all(is_plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_go_by_names_that_providers_take_and_come_back_by_their_own() {
        let mut names = ToolNames::default();
        let kind = AdapterKind::Anthropic;
        assert_eq!(names.told(kind, "read-file_2"), "read-file_2");
        let dotted = names.told(kind, "files.read");
        assert_eq!(dotted, "files_read_1");
        assert_eq!(names.told(kind, "files read"), "files_read_2");
        assert_eq!(names.told(kind, "files.read"), dotted);
        assert_ne!(names.told(kind, "web_search"), "web_search");
        let long = names.told(kind, &"ü".repeat(200));
        assert!(is_name(kind, &long), "{long}");
        assert_eq!(names.given(dotted), "files.read");
        assert_eq!(names.given("unheard_of".to_owned()), "unheard_of");
    }

    #[test]
    fn a_name_that_another_tool_goes_by_is_not_told_twice() {
        let mut names = ToolNames::default();
        assert_eq!(names.told(AdapterKind::OpenAI, "a b"), "a_b_1");
        assert_ne!(names.told(AdapterKind::OpenAI, "a_b_1"), "a_b_1");
    }

    #[test]
    fn calls_go_by_ids_that_providers_take() {
        let mut ids = CallIds::default();
        assert_eq!(ids.told(AdapterKind::OpenAI, "call_abc"), "call_abc");
        let kimi = ids.told(AdapterKind::OpenAI, "functions.read:0");
        assert!(is_id(AdapterKind::OpenAI, &kimi), "{kimi}");
        assert_eq!(ids.told(AdapterKind::OpenAI, "functions.read:0"), kimi);
        let mut ids = CallIds::default();
        let told = ids.told(AdapterKind::Mistral, "call-7-0x");
        assert!(is_id(AdapterKind::Mistral, &told), "{told}");
    }
}
