//! What models call the tools of servers: `server__tool`, in letters that every provider takes.

use sha2::{Digest as _, Sha256};

/// What stands between a server and its tool.
const BETWEEN: &str = "__";
/// How long a name may be for every provider.
const LONGEST: usize = 64;
/// How long what stands for a server may be.
const LONGEST_SERVER: usize = 24;
/// How many digits of a hash tell names apart that had to be changed.
const DIGITS: usize = 6;

/// Returns the name of a server's tool. Two tools of one name are of one server and one tool there.
pub(super) fn tool_name(server: &str, tool: &str) -> String {
    let of_server = prefix(server);
    let tool = fitted(tool, LONGEST - of_server.len(), |_| true);
    format!("{of_server}{tool}")
}

/// Returns what the names of a server's tools begin with, and those of no other.
pub(super) fn prefix(server: &str) -> String {
    let server = fitted(server, LONGEST_SERVER, |name| {
        // So that the first two underscores are those behind the server.
        !name.contains(BETWEEN) && !name.ends_with('_')
    });
    format!("{server}{BETWEEN}")
}

/// Returns a name as providers take it; one that had to be changed has digits that tell it apart.
fn fitted(name: &str, longest: usize, fits: impl Fn(&str) -> bool) -> String {
    let takes = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= longest && name.chars().all(takes) && fits(name) {
        return name.to_owned();
    }
    let kept = name.chars().map(|c| if takes(c) && c != '_' { c } else { '-' });
    let kept: String = kept.take(longest - DIGITS - 1).collect();
    let hash = Sha256::digest(name.as_bytes());
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).take(DIGITS / 2).collect();
    format!("{kept}-{digits}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_those_that_providers_take_and_no_two_are_alike() {
        let long = "x".repeat(100);
        let longer = format!("{long}y");
        let parts = [
            "a", "b", "a_", "_a", "a__b", "b__a", "a b", "a-b", "a/b", "ä", "", "__", &long,
            &longer,
        ];
        let mut names = BTreeSet::new();
        for server in parts {
            for tool in parts {
                let name = tool_name(server, tool);
                let takes = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                assert!(!name.is_empty() && name.len() <= 64 && name.chars().all(takes), "{name}");
                assert!(names.insert(name.clone()), "{name} is {server}'s {tool} and another's");
            }
        }
        assert_eq!(tool_name("github", "get_issue"), "github__get_issue");
    }
}
