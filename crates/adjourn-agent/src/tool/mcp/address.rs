//! Addresses of servers that are read from a file or from a client: what of one is a secret, and where
//! that is kept; see [`mcp_address`](adjourn_driver::mcp_address).

use std::borrow::Cow;
use std::collections::BTreeMap;

use adjourn_driver::is_secret_name;
use adjourn_driver::mcp_address::{KeptNames, LEFT_OUT, Piece, QUERY, pieces};
use reqwest::Url;

use super::values::{McpValue, is_no_secret};

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
    let (mut kept, mut names) = (String::new(), KeptNames::default());
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
        values.insert(names.next(name), value);
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
    let (mut whole, mut names) = (String::new(), KeptNames::default());
    for piece in pieces(address, expands) {
        match piece {
            Piece::Value { name, value: LEFT_OUT } => {
                let value = values.get(&names.next(name));
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
