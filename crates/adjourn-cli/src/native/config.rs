//! What a session keeps of its agent.

use std::collections::BTreeMap;

use adjourn::core::driver::{DriverKind, DriverSpec};
use adjourn_agent::directory::DirectoryTool;
use adjourn_agent::{Action, AgentGuardrails, FailureKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the configuration that this program writes.
const VERSION: u64 = 1;
/// The field that says that any host of this program can run a session, and by which version.
const MARK: &str = "native";

/// How a model is reached and asked, where that is not the customary way. It holds no secret: the key
/// is in a variable of the host that runs the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Where its provider is, or a server that speaks like it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The variable that has the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_variable: Option<String>,
    /// How much it is to think before it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// How many tokens an answer may have at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
}

impl ModelSettings {
    /// Returns whether they say nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// An agent, as the journal has it. It holds no secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeConfig {
    /// The version of this configuration.
    native: u64,
    /// The model's name.
    pub model: String,
    /// How the model is reached and asked.
    #[serde(default, skip_serializing_if = "ModelSettings::is_empty")]
    pub model_settings: ModelSettings,
    /// The answers of a scripted model: the file may be gone, or on another machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<String>,
    /// What the model is told that it is, and how it is to work.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// The tools that it has for files and commands below the session's directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<DirectoryTool>,
    /// Whether its tools run without a permission.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_all: bool,
    /// Its own MCP servers, without values; those of a client are beside its configuration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<Value>,
    /// How far it may go before it asks.
    #[serde(default)]
    pub guardrails: AgentGuardrails,
    /// What is done about failures of some kinds, where that is not the default.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub policy: BTreeMap<FailureKind, Action>,
}

impl NativeConfig {
    /// Describes an agent with a model and nothing else.
    pub fn new(model: String, answers: Option<String>) -> Self {
        Self {
            native: VERSION,
            model,
            model_settings: ModelSettings::default(),
            answers,
            instructions: String::new(),
            tools: Vec::new(),
            allow_all: false,
            servers: Vec::new(),
            guardrails: AgentGuardrails::default(),
            policy: BTreeMap::new(),
        }
    }

    /// Returns it as the journal has it.
    pub fn to_value(&self) -> Value {
        // Its keys are texts, and its numbers were read from texts: it always encodes.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads what a session keeps, if its agent is one of this program.
    ///
    /// # Errors
    /// Why this program cannot run it, in words for a person who looks at the session.
    pub fn of(spec: &DriverSpec) -> Option<Result<Self, String>> {
        let config = match &spec.kind {
            DriverKind::Named { config, .. } => config,
            // An agent of the library without a name: a model that any host of this program can have.
            DriverKind::Native { model } => return Some(Ok(Self::new(model.clone(), None))),
            DriverKind::Script { .. } | DriverKind::Acp { .. } => return None,
        };
        let version = config.get(MARK)?.as_u64()?;
        if version > VERSION {
            return Some(Err("its agent was made by a newer adjourn".to_owned()));
        }
        let read = serde_json::from_value(config.clone());
        Some(read.map_err(|error| format!("its agent cannot be read: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(config: Value) -> Option<Result<NativeConfig, String>> {
        NativeConfig::of(&DriverSpec::named("reviewer", config))
    }

    #[test]
    fn what_is_written_is_read() {
        let mut config = NativeConfig::new("openai/gpt-5".to_owned(), None);
        config.policy.insert(FailureKind::ToolError, Action::AskUser);
        assert_eq!(config.to_value().get("model_settings"), None);
        assert_eq!(of(config.to_value()), Some(Ok(config.clone())));
        config.model_settings.base_url = Some("http://127.0.0.1:8080/v1".to_owned());
        config.model_settings.max_output_tokens = Some(500);
        assert_eq!(of(config.to_value()), Some(Ok(config)));
    }

    #[test]
    fn an_agent_without_a_name_is_its_model() {
        let native = DriverSpec::new(DriverKind::Native { model: "openai/gpt-5".to_owned() });
        let config = NativeConfig::new("openai/gpt-5".to_owned(), None);
        assert_eq!(NativeConfig::of(&native), Some(Ok(config)));
    }

    #[test]
    fn agents_of_other_programs_are_left_to_them() {
        assert_eq!(of(Value::Null), None);
        assert_eq!(of(json!({ "model": "openai/gpt-5" })), None);
        assert_eq!(NativeConfig::of(&DriverSpec::script("{}")), None);
    }

    #[test]
    fn what_a_newer_program_has_written_is_declined() {
        let newer = of(json!({ "native": 2, "model": "m" })).unwrap();
        assert_eq!(newer, Err("its agent was made by a newer adjourn".to_owned()));
        let other = of(json!({ "native": 1, "model": "m", "colour": "red" })).unwrap();
        assert!(other.unwrap_err().contains("colour"));
    }
}
