//! Models by their names: the one place that knows which there are.

use std::path::Path;
use std::sync::Arc;

use adjourn_agent::{Model, ModelOptions, NamedModelError, Prices, ScriptedModel, named_model};
use adjourn_core::limits::DRIVER_SPEC_BYTES;

use super::config::NativeConfig;
use crate::input_file;

/// What a model that answers from a file is called, with the file behind it.
const SCRIPTED: &str = "scripted:";
/// What it is called in the journal, which has the answers themselves.
const ANSWERS: &str = "scripted";

/// A model, for those who are told what to write.
pub const EXAMPLE: &str = "anthropic/claude-sonnet-4-5";

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

/// Returns the file that a model answers from, if it does.
pub fn file(model: &str) -> Option<&Path> {
    model.strip_prefix(SCRIPTED).map(Path::new)
}

/// Checks the name of a model, and opens nothing.
///
/// # Errors
/// What is expected.
pub fn check(text: &str) -> Result<(), String> {
    if text.strip_prefix(SCRIPTED).is_some_and(|path| !path.is_empty()) {
        return Ok(());
    }
    match named_model(text, &ModelOptions::default()) {
        // A key is a host's, and this may be none.
        Ok(_) | Err(NamedModelError::NoKey { .. }) => Ok(()),
        Err(wrong) => Err(wrong.to_string()),
    }
}

/// Checks the model that a session has, and opens nothing.
///
/// # Errors
/// Why no host of this program can have it.
pub fn check_stored(config: &NativeConfig) -> Result<(), String> {
    match &config.answers {
        Some(answers) => {
            ScriptedModel::parse(answers).map(|_| ()).map_err(|error| error.to_string())
        }
        None => check(&config.model),
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
    check(text)?;
    Ok(NativeConfig::new(text.to_owned(), None))
}

/// Returns whether it is known what a model costs: it has a price, or says so itself.
pub fn is_priced(config: &NativeConfig, prices: &Prices) -> bool {
    let answers = config.answers.as_deref().map(ScriptedModel::parse);
    prices.knows(&config.model) || answers.is_some_and(|model| model.is_ok_and(|m| m.states_cost()))
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
        None => {
            named_model(&config.model, &ModelOptions::default()).map_err(|error| error.to_string())
        }
    }
}
