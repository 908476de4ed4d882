//! Values of variables and headers: where they come from, and what is missing.

use std::collections::BTreeMap;
use std::fmt;

use adjourn_driver::Environment;

/// What may stand before a variable in a header without being a secret.
const SCHEMES: &[&str] = &["", "Bearer", "Basic", "token"];

/// The value of a variable or a header of an MCP server. It is not shown.
#[derive(Clone, PartialEq, Eq)]
pub enum McpValue {
    /// It is not written down: the session is given it, or the host has it in its environment.
    Named,
    /// It is this text.
    Text(String),
    /// It is this text with the values of variables for `${NAME}` and `${NAME:-default}`.
    Template(String),
}

impl fmt::Debug for McpValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// A part of a template.
enum Piece<'a> {
    Text(&'a str),
    Variable { name: &'a str, default: Option<&'a str> },
}

/// Takes a template apart. What is no variable is text.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((inside, after)) = behind.split_once('}') else { break };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        pieces.push(Piece::Text(before));
        pieces.push(Piece::Variable { name, default });
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    pieces
}

/// Puts values into a template, or says which variables have none.
pub(super) fn expand(template: &str, environment: &Environment) -> Result<String, Vec<String>> {
    let (mut text, mut missing) = (String::new(), Vec::new());
    for piece in pieces(template) {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Variable { name, default } => {
                match variable(name, environment).or(default.map(str::to_owned)) {
                    Some(value) => text.push_str(&value),
                    None => missing.push(name.to_owned()),
                }
            }
        }
    }
    if missing.is_empty() { Ok(text) } else { Err(missing) }
}

/// Returns whether a template names variables and nothing that may be a secret, so that it may be
/// stored.
pub(super) fn is_no_secret(template: &str) -> bool {
    let mut names = false;
    let mut text = String::new();
    for piece in pieces(template) {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Variable { default: None, .. } => names = true,
            Piece::Variable { default: Some(_), .. } => return false,
        }
    }
    names && SCHEMES.contains(&text.trim())
}

/// Returns the value of a variable: the session's, or that of this process.
fn variable(name: &str, environment: &Environment) -> Option<String> {
    environment.variables.get(name).cloned().or_else(|| std::env::var(name).ok())
}

/// Returns the variable that a host gives a header's value in which is written down nowhere.
pub(super) fn header_variable(server: &str, header: &str) -> String {
    let word = |text: &str| -> String {
        let upper = text.chars().map(|c| c.to_ascii_uppercase());
        upper.map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
    };
    format!("ADJOURN_MCP_{}_{}", word(server), word(header))
}

/// Finds the values of names: those that the session was `given`, else those that are written down,
/// else those of the environment, by the variable that `named` says.
pub(super) fn resolve(
    written: &BTreeMap<String, McpValue>,
    given: Option<&BTreeMap<String, String>>,
    environment: &Environment,
    named: impl Fn(&str) -> String,
    missing: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let mut values = given.cloned().unwrap_or_default();
    for (name, value) in written {
        if values.contains_key(name) {
            continue;
        }
        let found = match value {
            McpValue::Text(text) => Ok(text.clone()),
            McpValue::Template(template) => expand(template, environment),
            McpValue::Named => {
                let name = named(name);
                variable(&name, environment).ok_or_else(|| vec![name])
            }
        };
        match found {
            Ok(value) => {
                values.insert(name.clone(), value);
            }
            Err(names) => missing.extend(names),
        }
    }
    values
}

/// Takes values out of a text that may be logged or stored.
pub(super) fn redact<'a>(text: &str, values: impl Iterator<Item = &'a String>) -> String {
    // What is shorter hides nothing, and would take letters out of every word.
    const SHORTEST: usize = 4;
    let mut text = text.to_owned();
    for value in values {
        // A header's secret is often only the word behind its scheme.
        for secret in [value.as_str(), value.rsplit(' ').next().unwrap_or_default()] {
            if secret.len() >= SHORTEST {
                text = text.replace(secret, "…");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        let variables = [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())];
        Environment { variables: variables.into(), ..Environment::default() }
    }

    #[test]
    fn variables_are_put_into_templates() {
        let environment = environment();
        let none = "ADJOURN_TEST_NONE";
        for (template, expanded) in [
            ("plain", Ok("plain".to_owned())),
            ("${A}-${B}", Ok("1-2".to_owned())),
            ("${ADJOURN_TEST_NONE:-3}", Ok("3".to_owned())),
            ("${A:-3}", Ok("1".to_owned())),
            ("${A", Ok("${A".to_owned())),
            ("$A {A}", Ok("$A {A}".to_owned())),
            ("${ADJOURN_TEST_NONE}", Err(vec![none.to_owned()])),
        ] {
            assert_eq!(expand(template, &environment), expanded, "{template}");
        }
    }

    #[test]
    fn only_the_names_of_variables_are_no_secrets() {
        for (template, is_none) in [
            ("${TOKEN}", true),
            ("Bearer ${TOKEN}", true),
            ("${USER}${HOST}", true),
            ("hush", false),
            ("", false),
            ("${USER}:hush", false),
            ("${TOKEN:-hush}", false),
        ] {
            assert_eq!(is_no_secret(template), is_none, "{template}");
        }
    }

    #[test]
    fn values_are_taken_out_of_texts() {
        let values = ["Bearer hush-hush".to_owned(), "1".to_owned()];
        let said = redact("401 for hush-hush (Bearer hush-hush), 1 try", values.iter());
        assert_eq!(said, "401 for … (…), 1 try");
    }
}
