//! Arguments: checked against a tool's schema before the tool sees them.

use jsonschema::Validator;
use serde_json::Value;

/// How many problems of a call's arguments the model is told.
const PROBLEMS: usize = 5;

/// Arguments that a tool's schema refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the arguments of {tool} are not right: {problems}")]
pub struct InvalidArguments {
    /// The tool.
    pub tool: String,
    /// What is wrong with them, and where.
    pub problems: String,
}

/// Checks arguments.
pub(super) fn check(
    tool: &str,
    validator: &Validator,
    arguments: &Value,
) -> Result<(), InvalidArguments> {
    let invalid = |problems| Err(InvalidArguments { tool: tool.to_owned(), problems });
    if let Value::String(text) = arguments
        && !text.is_empty()
    {
        return invalid("they are no JSON object".to_owned());
    }
    let problems: Vec<_> = validator
        .iter_errors(arguments)
        .take(PROBLEMS)
        .map(|error| match error.instance_path().as_str() {
            "" => error.to_string(),
            path => format!("{path}: {error}"),
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { invalid(problems.join("; ")) }
}
