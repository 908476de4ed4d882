//! The tools of an agent, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjourn_core::limits;
use jsonschema::Validator;
use serde_json::Value;

use super::arguments::{self, InvalidArguments};
use super::{Tool, ToolSpec};

/// Why a tool cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolboxError {
    /// Two tools have the same name.
    #[error("two tools are called {name:?}")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The name cannot be used.
    #[error("tool name {name:?}: {problem}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The schema of the arguments is none.
    #[error("schema of tool {name:?}: {problem}")]
    Schema {
        /// The tool's name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Tools, and what checks their arguments.
#[derive(Default)]
pub struct Toolbox {
    tools: BTreeMap<String, Entry>,
}

struct Entry {
    tool: Arc<dyn Tool>,
    validator: Validator,
}

impl Toolbox {
    /// Has no tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// Its name is taken or cannot be used, or its schema is none.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolboxError> {
        let spec = tool.spec();
        let name = spec.name.clone();
        limits::name("name", &name).map_err(|refused| ToolboxError::Name {
            name: name.clone(),
            problem: refused.to_string(),
        })?;
        if self.tools.contains_key(&name) {
            return Err(ToolboxError::Duplicate { name });
        }
        let validator = jsonschema::validator_for(&spec.parameters).map_err(|error| {
            ToolboxError::Schema { name: name.clone(), problem: error.to_string() }
        })?;
        self.tools.insert(name, Entry { tool, validator });
        Ok(())
    }

    /// Returns what the tools tell of themselves, by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.values().map(|entry| entry.tool.spec())
    }

    /// Returns a tool.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name).map(|entry| &entry.tool)
    }

    /// Checks arguments for a tool; for one that is not here, nothing is wrong with them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn check(&self, name: &str, arguments: &Value) -> Result<(), InvalidArguments> {
        match self.tools.get(name) {
            Some(entry) => arguments::check(name, &entry.validator, arguments),
            None => Ok(()),
        }
    }
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}
