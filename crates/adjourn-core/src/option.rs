//! Options of a session: what a client can choose of how its agent works, and what holds.
//!
//! They are said when the session is created, as what it needs is, so that every process knows them
//! whether or not it has the driver.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::rejected::Rejected;

/// Something of a session that a client can choose, and what is chosen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOption {
    /// Its id; [`SessionOption::MODE`] is the mode that the agent works in.
    pub id: String,
    /// What people read.
    pub name: String,
    /// What can be chosen.
    pub values: Vec<OptionValue>,
    /// The id of the value that holds.
    pub value: String,
}

/// One of the values that an option can have.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OptionValue {
    /// Its id.
    pub id: String,
    /// What people read.
    pub name: String,
    /// What it means, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

impl SessionOption {
    /// The id of the option that is the mode of the agent.
    pub const MODE: &'static str = "mode";

    /// Returns the mode of an agent that has these modes; it begins with the first one.
    ///
    /// Returns nothing if there are none.
    pub fn mode(modes: Vec<OptionValue>) -> Option<Self> {
        let value = modes.first()?.id.clone();
        Some(Self { id: Self::MODE.to_owned(), name: "Mode".to_owned(), values: modes, value })
    }

    /// Returns whether this is the mode of the agent.
    pub fn is_mode(&self) -> bool {
        self.id == Self::MODE
    }

    /// Returns whether a value can be chosen.
    pub fn allows(&self, value: &str) -> bool {
        self.values.iter().any(|allowed| allowed.id == value)
    }
}

/// Refuses options that are malformed, or too many to be kept in the state.
pub(crate) fn check(options: &[SessionOption]) -> Result<(), Rejected> {
    let at = |option: usize, rest: &str| format!("driver.options[{option}]{rest}");
    let mut known = BTreeSet::new();
    for (number, option) in options.iter().enumerate() {
        limits::name(at(number, ".id"), &option.id)?;
        limits::name(at(number, ".name"), &option.name)?;
        if !known.insert(&option.id) {
            return Err(Rejected::invalid(at(number, ".id"), "there is an option of this id"));
        }
        let mut values = BTreeSet::new();
        for (index, value) in option.values.iter().enumerate() {
            let at = |field: &str| at(number, &format!(".values[{index}].{field}"));
            limits::name(at("id"), &value.id)?;
            limits::name(at("name"), &value.name)?;
            limits::optional(&at("description"), value.description.as_deref(), limits::NAME_BYTES)?;
            if !values.insert(&value.id) {
                return Err(Rejected::invalid(at("id"), "there is a value of this id"));
            }
        }
        if !option.allows(&option.value) {
            return Err(Rejected::invalid(at(number, ".value"), "expected one of its values"));
        }
    }
    limits::json("driver.options", &options, limits::OPTIONS_BYTES)
}
