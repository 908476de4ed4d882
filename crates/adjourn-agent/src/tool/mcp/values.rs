//! Values of variables and headers: where they come from, and what is missing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use adjourn_driver::Environment;
use adjourn_driver::mcp_address::QUERY;
use serde_json::Value;

use crate::tool::process::OF_HEADERS;

/// What may stand before a variable in a header without being a secret.
const SCHEMES: &[&str] = &["", "Bearer", "Basic", "token"];

/// The words that schemas are made of. One that is also the value of a variable, such as `default`,
/// says nothing of that variable, and a schema without it means something else.
const SCHEMA_WORDS: &[&str] = &[
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$schema",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "array",
    "boolean",
    "const",
    "contains",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "integer",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "null",
    "number",
    "object",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "string",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

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

/// Returns the values that variables have in a template.
pub(super) fn put_in<'a>(
    template: &'a str,
    environment: &'a Environment,
) -> impl Iterator<Item = String> + 'a {
    pieces(template).into_iter().filter_map(|piece| match piece {
        Piece::Text(_) => None,
        Piece::Variable { name, default } => {
            variable(name, environment).or(default.map(str::to_owned))
        }
    })
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

/// Returns the variable that a host gives a value in which is written down nowhere: that of a header, or
/// one of an address's query.
pub(super) fn header_variable(server: &str, header: &str) -> String {
    let word = |text: &str| -> String {
        let upper = text.chars().map(|c| c.to_ascii_uppercase());
        upper.map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
    };
    format!("{OF_HEADERS}{}_{}", word(server), word(header.trim_start_matches(QUERY)))
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

/// The values of one server, to be taken out of what may be shown, logged or stored. They are not
/// shown. The longest is the first, so that none leaves the rest of a longer one behind.
#[derive(Clone)]
pub(super) struct Secrets(Arc<[String]>);

impl Secrets {
    /// What is shorter hides nothing.
    const SHORTEST: usize = 4;
    /// What is shorter is taken out only where it stands alone: it may be a part of other words.
    const SHORTEST_IN_WORDS: usize = 8;

    /// Takes the values of a server.
    pub(super) fn of<'a>(values: impl Iterator<Item = &'a String>) -> Self {
        let mut secrets = Vec::new();
        for value in values {
            let path = Path::new(value);
            // Where something lies on this machine is no secret, and tools need their paths whole.
            if path.is_absolute() && path.exists() {
                continue;
            }
            // A value of many lines may be told line by line, and as a text in JSON.
            secrets.extend(value.lines().map(str::to_owned));
            let quoted = Value::from(value.as_str()).to_string();
            secrets.extend(quoted.get(1..quoted.len() - 1).map(str::to_owned));
            // A header's secret is often only the word behind its scheme.
            if let Some((_, word)) = value.split_once(' ').filter(|(_, word)| !word.contains(' ')) {
                secrets.push(word.to_owned());
            }
            secrets.push(value.clone());
        }
        secrets.retain(|secret| secret.len() >= Self::SHORTEST);
        secrets.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self(secrets.into())
    }

    /// Takes them out of a text.
    pub(super) fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| match text.contains(secret) {
            true => without(&text, secret),
            false => text,
        })
    }

    /// Takes them out of all texts of a value.
    pub(super) fn redact_all(&self, value: Value) -> Value {
        each_text(value, &|text| self.redact(&text))
    }

    /// Takes them out of all texts of a schema but the words that every schema is made of.
    pub(super) fn redact_schema(&self, schema: Value) -> Value {
        each_text(schema, &|text| match SCHEMA_WORDS.contains(&text.as_str()) {
            true => text,
            false => self.redact(&text),
        })
    }
}

/// Puts other texts in the place of all texts of a value, the names of fields among them.
fn each_text(value: Value, other: &impl Fn(String) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(other(text)),
        Value::Array(list) => list.into_iter().map(|value| each_text(value, other)).collect(),
        Value::Object(fields) => {
            let field = |(name, value)| (other(name), each_text(value, other));
            Value::Object(fields.into_iter().map(field).collect())
        }
        value => value,
    }
}

/// Takes a secret out of a text.
fn without(text: &str, secret: &str) -> String {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(secret) {
        kept.push_str(before);
        let in_word = is_letter(kept.chars().next_back()) || is_letter(behind.chars().next());
        let stays = in_word && secret.len() < Secrets::SHORTEST_IN_WORDS;
        kept.push_str(if stays { secret } else { "…" });
        rest = behind;
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    fn secrets(values: &[&str]) -> Secrets {
        let values: Vec<_> = values.iter().map(|value| (*value).to_owned()).collect();
        Secrets::of(values.iter())
    }

    #[test]
    fn values_are_taken_out_of_texts() {
        let secrets = secrets(&["Bearer hush-hush", "1", "hush", "info", "a\nlong\"one"]);
        for (text, said) in [
            ("401 for hush-hush (Bearer hush-hush), 1 try", "401 for … (…), 1 try"),
            ("Bearerhush-hushes", "Bearer…es"),
            // A short one that is a part of a word is none.
            ("information about infos; level=info", "information about infos; level=…"),
            ("info", "…"),
            (r#"{"key":"a\nlong\"one"}"#, r#"{"key":"…"}"#),
            ("a\nlong\"one", "…"),
            ("first long\"one", "first …"),
        ] {
            assert_eq!(secrets.redact(text), said, "{text}");
        }
    }

    #[test]
    fn values_are_taken_out_of_every_text_of_a_value() {
        let said = json!({ "hush-hush": [{ "a": "my hush-hush" }, 7, null, true], "b": "c" });
        let kept = json!({ "…": [{ "a": "my …" }, 7, null, true], "b": "c" });
        assert_eq!(secrets(&["hush-hush"]).redact_all(said), kept);
    }

    #[test]
    fn values_are_taken_out_of_a_schema_that_stays_one() {
        let schema = |token: &str, profile: &str| {
            json!({
                "type": "object", "required": [token],
                "properties": { token: { "type": "string", "default": "default", "enum": ["a", token] } },
                "description": format!("the profile {profile} by {token}"),
            })
        };
        let secrets = secrets(&["hush-hush", "default", "object", "string"]);
        assert_eq!(secrets.redact_schema(schema("hush-hush", "default")), schema("…", "…"));
    }

    #[test]
    fn the_path_of_something_here_is_no_secret() {
        let here = std::env::temp_dir();
        let here = here.to_str().unwrap();
        let secrets = secrets(&[here, "/no/such/file-hush"]);
        assert_eq!(secrets.redact(&format!("{here}/a")), format!("{here}/a"));
        assert_eq!(secrets.redact("in /no/such/file-hush"), "in …");
    }
}
