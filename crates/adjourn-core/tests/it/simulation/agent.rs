//! The scripted agent: what its model says and asks for, as the script's JSON.
//!
//! `conformance/README.md` documents it. A key that is not documented is an error, so that a
//! scenario cannot ask for something that no runner does.

use adjourn_core::conditions::{Conditions, Invalid, Spelling};
use serde::Deserialize;
use serde_json::Value;

/// What the agent does in each run.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Script {
    /// The first list for the first prompt, the second for the second.
    Runs(Vec<Vec<Item>>),
    /// The same list for every prompt.
    Steps(Vec<Item>),
}

/// One step: a model call, and what comes of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Item {
    /// The model says something.
    Say(Say),
    /// The model asks for one call.
    Tool(Tool),
    /// The model asks for calls that run side by side.
    Tools(Vec<Tool>),
    /// The model asks for calls that run one after another.
    Sequence(Vec<Tool>),
    /// The agent parks itself.
    Await(Await),
    /// The agent asks a person.
    Ask(Ask),
    /// The run fails.
    Fail(String),
    /// The run completes, and the session ends with it.
    End(bool),
}

/// What the model says, and how long it takes to say it.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Say {
    /// It takes no time.
    Text(String),
    /// It takes a while, so that something can come in between.
    Slowly(Slowly),
}

/// Words that take a while.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slowly {
    pub text: String,
    pub ms: u64,
}

/// A tool, and how long it takes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    #[serde(default)]
    pub ms: u64,
    #[serde(default)]
    pub idempotent: bool,
}

/// The agent parks itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Await {
    pub reason: String,
    pub summary: Option<String>,
    #[serde(default)]
    pub conditions: Value,
}

/// The agent asks a person.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    pub question: String,
    pub context: Option<String>,
    #[serde(default)]
    pub choices: Vec<String>,
}

impl Script {
    /// Returns what the agent does in the run that is the `number`-th, from 0.
    pub fn run(&self, number: usize) -> &[Item] {
        match self {
            Self::Steps(items) => items,
            Self::Runs(runs) => runs.get(number).expect("the script has a run for every prompt"),
        }
    }

    /// Reads a scenario's script.
    pub fn read(script: &Value) -> Result<Self, String> {
        let read = serde_json::from_value(script.clone()).map_err(|error| error.to_string());
        let checked = read.and_then(|script: Self| script.check().map(|()| script));
        checked.map_err(|error| format!("script: {error}"))
    }

    /// Refuses what only shows when the agent gets there.
    fn check(&self) -> Result<(), String> {
        let runs = match self {
            Self::Steps(items) => std::slice::from_ref(items),
            Self::Runs(runs) => runs,
        };
        for item in runs.iter().flatten() {
            match item {
                Item::Await(wait) => {
                    wait.conditions().map_err(|invalid| invalid.to_string())?;
                }
                Item::Tools(tools) | Item::Sequence(tools) if tools.is_empty() => {
                    return Err("a step that asks for calls asks for at least one".to_owned());
                }
                Item::End(false) => return Err("`end` is always true".to_owned()),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Item {
    /// Returns the calls that the model asks for.
    pub fn tools(&self) -> &[Tool] {
        match self {
            Self::Tool(tool) => std::slice::from_ref(tool),
            Self::Tools(tools) | Self::Sequence(tools) => tools,
            Self::Say(_) | Self::Await(_) | Self::Ask(_) | Self::Fail(_) | Self::End(_) => &[],
        }
    }

    /// Returns how long the model speaks.
    pub fn model_ms(&self) -> u64 {
        match self {
            Self::Say(Say::Slowly(slowly)) => slowly.ms,
            _ => 0,
        }
    }
}

impl Say {
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Slowly(slowly) => &slowly.text,
        }
    }
}

impl Await {
    pub fn conditions(&self) -> Result<Option<Conditions>, Invalid> {
        Conditions::parse(&self.conditions, Spelling::Camel)
    }
}
