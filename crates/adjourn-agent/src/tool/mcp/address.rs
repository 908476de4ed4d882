//! Addresses of servers: what of one is a secret, and where that is kept.
//!
//! The values of a query whose names say that they are secrets are kept as those of headers are, by
//! their names behind [`QUERY`]. Where one belongs, the address has [`LEFT_OUT`], which no address can
//! have there. Other values choose what a server offers, and tools may have to say them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use adjourn_driver::is_secret_name;
use reqwest::Url;

use super::values::{McpValue, is_no_secret};

/// What stands before the name of a value that belongs into the query of an address: no header's name
/// begins with it.
pub(super) const QUERY: char = '?';
/// What stands in an address for a value of its query.
const LEFT_OUT: &str = "…";

/// Returns whether an address has a user or a password in it.
pub(super) fn has_credentials(address: &str) -> bool {
    if let Ok(url) = Url::parse(address) {
        return !url.username().is_empty() || url.password().is_some();
    }
    // One with templates may not be an address yet.
    let (_, behind) = address.split_once("://").unwrap_or_default();
    behind.split(['/', '?', '#']).next().is_some_and(|authority| authority.contains('@'))
}

/// Takes the secrets of its query out of an address, but for those that only name variables.
pub(super) fn without_values(
    address: &str,
    expands: bool,
    values: &mut BTreeMap<String, McpValue>,
) -> String {
    let (mut kept, mut names) = (String::new(), BTreeSet::new());
    for piece in pieces(address, expands) {
        let (name, value) = match piece {
            Piece::Value { name, value }
                if value != LEFT_OUT
                    && (!is_secret_name(name) || (expands && is_no_secret(value))) =>
            {
                kept.push_str(value);
                continue;
            }
            Piece::Value { name, value } => (name, value),
            Piece::Text(text) => {
                kept.push_str(text);
                continue;
            }
        };
        let value = match value {
            LEFT_OUT => McpValue::Named,
            value if expands => McpValue::Template(value.to_owned()),
            value => McpValue::Text(value.to_owned()),
        };
        values.insert(kept_as(name, &mut names), value);
        kept.push_str(LEFT_OUT);
    }
    kept
}

/// Puts the secrets of its query back into an address: they are taken out of `values`. All else in it is
/// what `put` makes of it.
pub(super) fn with_values(
    address: &str,
    expands: bool,
    values: &mut BTreeMap<String, String>,
    mut put: impl FnMut(&str) -> String,
) -> String {
    let (mut whole, mut names) = (String::new(), BTreeSet::new());
    for piece in pieces(address, expands) {
        match piece {
            Piece::Value { name, value: LEFT_OUT } => {
                let value = values.get(&kept_as(name, &mut names));
                whole.push_str(value.map_or("", String::as_str));
            }
            Piece::Value { value: text, .. } | Piece::Text(text) => whole.push_str(&put(text)),
        }
    }
    values.retain(|name, _| !name.starts_with(QUERY));
    whole
}

/// Returns the secrets in the query of an address, as they stand in it and as a server reads them.
pub(super) fn query_secrets(address: &str) -> Vec<String> {
    let written = pieces(address, false).into_iter().filter_map(|piece| match piece {
        Piece::Value { name, value } => is_secret_name(name).then(|| value.to_owned()),
        Piece::Text(_) => None,
    });
    let url = Url::parse(address).ok();
    let read = url.iter().flat_map(Url::query_pairs).filter(|(name, _)| is_secret_name(name));
    written.chain(read.map(|(_, value)| Cow::into_owned(value))).collect()
}

/// Returns the name that a value is kept by. Of several with one name, each gets its own.
fn kept_as(name: &str, names: &mut BTreeSet<String>) -> String {
    let mut kept = format!("{QUERY}{name}");
    while !names.insert(kept.clone()) {
        kept.push('+');
    }
    kept
}

/// A part of an address.
enum Piece<'a> {
    Text(&'a str),
    /// A value of its query, and the value's name, which is in the text before it.
    Value {
        name: &'a str,
        value: &'a str,
    },
}

/// Takes an address apart.
fn pieces(address: &str, expands: bool) -> Vec<Piece<'_>> {
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
    fn the_values_of_a_query_are_taken_out_and_put_back() {
        for (address, expands, without, names) in [
            ("https://web/mcp", true, "https://web/mcp", &[][..]),
            ("https://web/mcp?a", false, "https://web/mcp?a", &[]),
            (
                "https://web/?a=&key=h%20u&apiKey=2#f",
                false,
                "https://web/?a=&key=…&apiKey=…#f",
                &["?apiKey", "?key"],
            ),
            (
                "https://web/?key=1&a&key=2=3",
                false,
                "https://web/?key=…&a&key=…",
                &["?key", "?key+"],
            ),
            ("https://web/?key=${K}&sig=a${K}", true, "https://web/?key=${K}&sig=…", &["?sig"]),
            ("https://web/?key=${K}", false, "https://web/?key=…", &["?key"]),
            ("${WEB:-a?b=c}/?key=${K:-a&b}&", true, "${WEB:-a?b=c}/?key=…&", &["?key"]),
            ("https://web/${K?key=v", true, "https://web/${K?key=…", &["?key"]),
            ("https://web/#f?key=v", true, "https://web/#f?key=v", &[]),
            ("https://web/?monkey=v&project=web", false, "https://web/?monkey=v&project=web", &[]),
        ] {
            let mut values = BTreeMap::new();
            assert_eq!(without_values(address, expands, &mut values), without, "{address}");
            assert!(values.keys().eq(names), "{address}: {values:?}");
            let value = |(name, value)| match value {
                McpValue::Text(text) | McpValue::Template(text) => (name, text),
                McpValue::Named => panic!("{address}: {name}"),
            };
            let mut values: BTreeMap<_, _> = values.into_iter().map(value).collect();
            let whole = with_values(without, expands, &mut values, str::to_owned);
            assert_eq!((whole.as_str(), values.len()), (address, 0));
        }
    }

    #[test]
    fn credentials_in_an_address_are_found() {
        for (address, has) in [
            ("https://user:hush@web/mcp", true),
            ("https://:hush@web/mcp", true),
            ("https:///hush@web/mcp", true),
            ("https://${USER}:${HUSH}@web/mcp", true),
            ("https://user:hush@${WEB}/mcp", true),
            ("${WEB:-https://user:hush@web/mcp}", true),
            ("https://web/@scope?mail=a@b", false),
            ("${WEB}/@scope", false),
        ] {
            assert_eq!(has_credentials(address), has, "{address}");
        }
    }
}
