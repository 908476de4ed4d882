//! Models by their names: the one place that knows which there are.

use std::path::Path;
use std::sync::Arc;

use adjourn_agent::{Model, ScriptedModel};
use adjourn_core::limits::DRIVER_SPEC_BYTES;

use super::config::NativeConfig;
use crate::input_file;

/// What a model that answers from a file is called, with the file behind it.
const SCRIPTED: &str = "scripted:";
/// What it is called in the journal, which has the answers themselves.
const ANSWERS: &str = "scripted";

/// A model, for those who are told what to write.
pub const EXAMPLE: &str = "anthropic/claude-sonnet-4-5";
/// What the name of a model may be.
const EXPECTED: &str = "expected openai/MODEL, anthropic/MODEL or scripted:FILE";

/// Returns the name of a model of the settings: a path in it is meant from where their file is.
pub fn from_file(text: &str, settings: Option<&Path>) -> String {
    let directory = settings.and_then(Path::parent);
    match (text.strip_prefix(SCRIPTED), directory) {
        (Some(path), Some(directory)) => {
            format!("{SCRIPTED}{}", directory.join(path).display())
        }
        _ => text.to_owned(),
    }
}

/// Checks the name of a model, and opens nothing.
///
/// # Errors
/// What is expected.
pub fn check(text: &str) -> Result<(), String> {
    match text.strip_prefix(SCRIPTED) {
        Some(path) if !path.is_empty() => Ok(()),
        _ => Err(format!("{EXPECTED}, not {text:?}")),
    }
}

/// Reads the name of a model as it is typed, and returns how the journal has it.
///
/// # Errors
/// What is wrong with it, and what is expected.
pub fn named(text: &str) -> Result<NativeConfig, String> {
    if let Some(path) = text.strip_prefix(SCRIPTED) {
        let answers = input_file::read_regular(Path::new(path), DRIVER_SPEC_BYTES)
            .map_err(|error| format!("cannot read {path}: {error}"))?;
        ScriptedModel::parse(&answers).map_err(|error| format!("{path}: {error}"))?;
        return Ok(NativeConfig::new(ANSWERS.to_owned(), Some(answers)));
    }
    Err(format!("{EXPECTED}, not {text:?}"))
}

/// Makes the model of an agent.
///
/// # Errors
/// Why it cannot be had here, and how it could.
pub fn make(config: &NativeConfig) -> Result<Arc<dyn Model>, String> {
    match &config.answers {
        Some(answers) => {
            let model = ScriptedModel::parse(answers).map_err(|error| error.to_string())?;
            Ok(Arc::new(model.with_id(config.model.clone())))
        }
        None => Err(format!("it has no model {:?}", config.model)),
    }
}
