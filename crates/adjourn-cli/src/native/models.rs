//! Models by their names: the one place that knows which there are.

use std::path::Path;
use std::sync::Arc;

use adjourn::core::limits::DRIVER_SPEC_BYTES;
use adjourn_agent::{Model, ModelOptions, NamedModelError, Prices, ScriptedModel, named_model};

use super::config::{ModelSettings, NativeConfig};
use crate::input_file;

/// What a model that answers from a file is called, with the file behind it.
const SCRIPTED: &str = "scripted:";
/// What it is called in the journal, which has the answers themselves.
const ANSWERS: &str = "scripted";

/// What is said of models over the network alone.
const NETWORK_ONLY: &str = "base_url, api_key_variable, reasoning_effort and max_output_tokens";

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

/// What is wrong with a model, and which setting says so.
#[derive(Debug)]
pub struct Wrong {
    /// `model`, or the setting of it.
    pub setting: &'static str,
    pub problem: String,
}

impl Wrong {
    const fn new(setting: &'static str, problem: String) -> Self {
        Self { setting, problem }
    }
}

/// Checks the name of a model and how it is reached, and opens nothing.
///
/// # Errors
/// What is expected.
pub fn check(text: &str, settings: &ModelSettings) -> Result<(), Wrong> {
    if text.strip_prefix(SCRIPTED).is_some_and(|path| !path.is_empty()) {
        return match settings.is_empty() {
            true => Ok(()),
            false => Err(Wrong::new("model", format!("{NETWORK_ONLY} go with no scripted model"))),
        };
    }
    match named_model(text, &options(settings)) {
        // A key is a host's, and this may be none.
        Ok(_) | Err(NamedModelError::NoKey { .. }) => Ok(()),
        Err(wrong) => {
            let setting = match &wrong {
                NamedModelError::BaseUrl { .. } if settings.base_url.is_some() => "base_url",
                NamedModelError::Effort { .. } => "reasoning_effort",
                _ => "model",
            };
            Err(Wrong::new(setting, wrong.to_string()))
        }
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
        None => check(&config.model, &config.model_settings).map_err(|wrong| wrong.problem),
    }
}

/// Reads the name of a model as it is typed, and returns how the journal has it.
///
/// # Errors
/// What is wrong with it, and what is expected.
pub fn named(text: &str, settings: &ModelSettings) -> Result<NativeConfig, Wrong> {
    check(text, settings)?;
    if let Some(path) = text.strip_prefix(SCRIPTED) {
        let wrong = |problem| Wrong::new("model", problem);
        let answers = input_file::read_regular(Path::new(path), DRIVER_SPEC_BYTES)
            .map_err(|error| wrong(format!("cannot read {path}: {error}")))?;
        ScriptedModel::parse(&answers).map_err(|error| wrong(format!("{path}: {error}")))?;
        return Ok(NativeConfig::new(ANSWERS.to_owned(), Some(answers)));
    }
    let mut config = NativeConfig::new(text.to_owned(), None);
    config.model_settings = settings.clone();
    Ok(config)
}

/// Returns what a model is made with; its key is found in the environment.
fn options(settings: &ModelSettings) -> ModelOptions {
    let ModelSettings { base_url, api_key_variable, reasoning_effort, max_output_tokens } =
        settings.clone();
    ModelOptions {
        base_url,
        api_key_variable,
        reasoning_effort,
        max_output_tokens,
        ..ModelOptions::default()
    }
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
            let options = options(&config.model_settings);
            named_model(&config.model, &options).map_err(|error| error.to_string())
        }
    }
}
