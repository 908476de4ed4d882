//! Addresses of MCP servers: where their secrets stand, and what stands there instead where an address
//! is stored.
//!
//! The values of a query whose names say that they are secrets are kept as those of headers are, by
//! their names behind [`QUERY`]. Where one belongs, the address has [`LEFT_OUT`], which no address can
//! have there. Other values choose what a server offers, and tools may have to say them.

use std::collections::{BTreeMap, BTreeSet};

use crate::secret_names::is_secret_name;

/// What stands before the name of a secret that belongs into the query of an address: no header's name
/// begins with it.
pub const QUERY: char = '?';
/// What stands in an address for a secret of its query.
pub const LEFT_OUT: &str = "…";

/// A part of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// All but values of its query.
    Text(&'a str),
    /// A value of its query, and the value's name, which is in the text before it.
    Value {
        /// The name.
        name: &'a str,
        /// The value.
        value: &'a str,
    },
}

/// The names that the secrets of one address are kept by.
#[derive(Debug, Default)]
pub struct KeptNames(BTreeSet<String>);

impl KeptNames {
    /// Returns the name that the next secret is kept by. Of several with one name, each gets its own.
    pub fn next(&mut self, name: &str) -> String {
        let mut kept = format!("{QUERY}{name}");
        while !self.0.insert(kept.clone()) {
            kept.push('+');
        }
        kept
    }
}

/// Takes the secrets out of an address, and returns them by the names that they are kept by.
pub fn without_secrets(address: &str) -> (String, BTreeMap<String, String>) {
    let (mut kept, mut secrets) = (String::new(), BTreeMap::new());
    let mut names = KeptNames::default();
    for piece in pieces(address, false) {
        match piece {
            Piece::Value { name, value } if value == LEFT_OUT || is_secret_name(name) => {
                let name = names.next(name);
                if value != LEFT_OUT {
                    secrets.insert(name, value.to_owned());
                }
                kept.push_str(LEFT_OUT);
            }
            Piece::Value { value: text, .. } | Piece::Text(text) => kept.push_str(text),
        }
    }
    (kept, secrets)
}

/// Takes an address apart. One that expands may have templates, `${…}`, with any sign in them.
pub fn pieces(address: &str, expands: bool) -> Vec<Piece<'_>> {
    let (place, mut rest) = until(address, &['?', '#'], expands);
    let mut pieces = vec![Piece::Text(place)];
    while rest.starts_with(['?', '&']) {
        let (mark, behind) = rest.split_at(1);
        let (part, after) = until(behind, &['&', '#'], expands);
        let (name, value) = until(part, &['='], expands);
        pieces.extend([Piece::Text(mark), Piece::Text(name)]);
        if let Some(value) = value.strip_prefix('=') {
            pieces.push(Piece::Text("="));
            pieces.extend(Some(Piece::Value { name, value }).filter(|_| !value.is_empty()));
        }
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// Splits a text before the first of these characters that is in no template.
fn until<'a>(text: &'a str, marks: &[char], expands: bool) -> (&'a str, &'a str) {
    let mut from = 0;
    loop {
        let rest = text.get(from..).unwrap_or_default();
        let Some(mark) = rest.find(marks) else { return (text, "") };
        let template = rest.find("${").filter(|at| expands && *at < mark);
        match template.and_then(|at| Some(at + rest.get(at..)?.find('}')?)) {
            Some(end) => from += end,
            None => return text.split_at(from + mark),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secrets_of_an_address_are_left_out_of_it() {
        for (address, stored, secrets) in [
            ("https://web/mcp?a#b?key=d", "https://web/mcp?a#b?key=d", &[][..]),
            (
                "https://web/?a=&key=h%20u&key=2=3&project=web#f",
                "https://web/?a=&key=…&key=…&project=web#f",
                &[("?key", "h%20u"), ("?key+", "2=3")],
            ),
            ("https://web/?key=…&key=v", "https://web/?key=…&key=…", &[("?key+", "v")]),
            ("https://web/?page=…&x=y", "https://web/?page=…&x=y", &[]),
        ] {
            let (kept, found) = without_secrets(address);
            assert_eq!(kept, stored);
            let found: Vec<_> =
                found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(found, secrets, "{address}");
        }
    }
}
