//! Models by name: how people and settings say which model an agent has.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use super::{Model, ScriptError, ScriptedModel};

/// What the name of a scripted model begins with; the file follows.
const SCRIPTED: &str = "scripted:";

/// Makes a model from its name: `openai/NAME`, `anthropic/NAME`, `PROVIDER/NAME` with any other
/// provider that genai knows by that name (`gemini`, `groq`, `ollama`, …), or `scripted:FILE`.
///
/// The key and the base URL come from the options, or else from the customary variables:
/// `OPENAI_API_KEY` and `OPENAI_BASE_URL`, `ANTHROPIC_API_KEY` and `ANTHROPIC_BASE_URL`, and so on.
/// No connection is made before the model is first asked.
///
/// # Errors
/// [`NamedModelError`]: what is wrong with the name or missing, in words that say what to do about
/// it. A key that is missing is among them.
pub fn named_model(name: &str, options: &ModelOptions) -> Result<Arc<dyn Model>, NamedModelError> {
    if let Some(file) = name.strip_prefix(SCRIPTED) {
        return Ok(Arc::new(ScriptedModel::open(file)?));
    }
    let (provider, model) = name
        .split_once('/')
        .filter(|(provider, model)| !provider.is_empty() && !model.trim().is_empty())
        .ok_or_else(|| NamedModelError::Name { name: name.to_owned() })?;
    network(provider, model, options)
}

#[cfg(feature = "models")]
fn network(
    provider: &str,
    model: &str,
    options: &ModelOptions,
) -> Result<Arc<dyn Model>, NamedModelError> {
    Ok(Arc::new(super::NetworkModel::new(provider, model, options)?))
}

#[cfg(not(feature = "models"))]
fn network(
    provider: &str,
    model: &str,
    _: &ModelOptions,
) -> Result<Arc<dyn Model>, NamedModelError> {
    Err(NamedModelError::NotBuilt { name: format!("{provider}/{model}") })
}

/// What a model is made with, beside its name. All of it may be left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelOptions {
    /// Where the provider is, if not where it usually is: a proxy, or a server that speaks the same
    /// protocol (`http://127.0.0.1:8080/v1`). It goes before the customary variable.
    pub base_url: Option<String>,
    /// The key. It goes before the variables.
    pub api_key: Option<ApiKey>,
    /// The name of the variable that has the key, if it is not the customary one.
    pub api_key_variable: Option<String>,
    /// How much the model is to think before it answers: `none`, `minimal`, `low`, `medium`,
    /// `high`, `xhigh`, `max`, or a number of tokens, as far as the provider knows it.
    pub reasoning_effort: Option<String>,
    /// How many tokens an answer may have at most; without it, what the provider takes for that.
    pub max_output_tokens: Option<u32>,
    /// Variables that go before those of this process.
    #[serde(skip)]
    pub variables: Variables,
}

/// Values of variables. They live in memory alone, and are shown to nobody.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Returns the value of a variable: the one here, or else this process's.
    #[cfg_attr(not(feature = "models"), expect(dead_code, reason = "models read them"))]
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let value = self.0.get(name).cloned().or_else(|| std::env::var(name).ok());
        value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
    }
}

impl From<BTreeMap<String, String>> for Variables {
    fn from(values: BTreeMap<String, String>) -> Self {
        Self(values)
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values are secrets.
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A key of a provider. It is never shown, and never stored.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key.
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    #[cfg_attr(not(feature = "models"), expect(dead_code, reason = "models send it"))]
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(…)")
    }
}

/// Why a model cannot be made from its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NamedModelError {
    /// It is no name of a model.
    #[error(
        "{name:?} names no model: expected PROVIDER/NAME, such as openai/gpt-5 or \
         anthropic/claude-sonnet-4-6, or scripted:FILE"
    )]
    Name {
        /// The name that was given.
        name: String,
    },
    /// There is no such provider.
    #[error("model {name}: {provider:?} is no provider that is known; there are {known}")]
    Provider {
        /// The model's name.
        name: String,
        /// The provider that it names.
        provider: String,
        /// Those there are.
        known: String,
    },
    /// The key is missing.
    #[error("model {name} needs a key: set {variable} in the environment")]
    NoKey {
        /// The model's name.
        name: String,
        /// The variable that the key is looked for in.
        variable: String,
    },
    /// The key cannot be sent: it is not shown here.
    #[error("the key of model {name} cannot be one: it holds spaces or control characters")]
    Key {
        /// The model's name.
        name: String,
    },
    /// The base URL cannot be used.
    #[error("the base URL of model {name}: {problem}")]
    BaseUrl {
        /// The model's name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The effort is none.
    #[error(
        "model {name}: reasoning effort {effort:?}: expected none, minimal, low, medium, high, \
         xhigh, max, or a number of tokens"
    )]
    Effort {
        /// The model's name.
        name: String,
        /// The effort that was given.
        effort: String,
    },
    /// The script cannot be read.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The program was built without models over the network.
    #[error("model {name}: this program was built without the feature `models`")]
    NotBuilt {
        /// The model's name.
        name: String,
    },
    /// There is no HTTP client, because this machine's certificates cannot be read, for instance.
    #[error("model {name}: {problem}")]
    Client {
        /// The model's name.
        name: String,
        /// What is wrong.
        problem: String,
    },
}
