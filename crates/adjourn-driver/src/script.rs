//! Scripts: agents whose every step is written down, for demos, tests and benchmarks.
//!
//! This is the language alone, read once for all who play it.

mod display;
mod item;
mod modes;
mod reading;
mod say;
mod spend;
mod tool;

pub use item::Item;
pub use say::Say;
pub use tool::Tool;

use std::collections::BTreeSet;

use adjourn_core::driver::Need;
use adjourn_core::json;
use adjourn_core::limits;
use adjourn_core::option::{OptionValue, SessionOption};
use serde_json::Value;

use reading::{Fields, Wrong, list};

/// The most items a run may have, and the most runs a script.
const MOST: usize = 10_000;

/// Why a script is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ScriptError {
    /// The place of the mistake.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

/// A script: what the agent does in each run.
#[derive(Debug, Clone)]
pub struct Script {
    runs: Vec<Vec<Item>>,
    /// Whether the one run is repeated for every prompt.
    repeats: bool,
    /// The modes that the agent can work in.
    modes: Vec<OptionValue>,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Where it is wrong, and how.
    pub fn parse(source: &str) -> Result<Self, ScriptError> {
        let wrong = |path: String, problem: String| ScriptError { path, problem };
        let parsed: Value = json::read_written(source.as_bytes(), limits::DRIVER_SPEC_BYTES)
            .map_err(|error| wrong("script".to_owned(), error.to_string()))?;
        let (runs, repeats, name, modes) =
            runs(parsed).map_err(|(path, problem)| wrong(path, problem))?;
        if runs.len() > MOST || runs.iter().any(|run| run.len() > MOST) {
            return Err(wrong(name.to_owned(), format!("more than {MOST}")));
        }
        let mut script = Self { runs: Vec::new(), repeats, modes };
        for (number, run) in runs.into_iter().enumerate() {
            let mut items = Vec::new();
            for (index, value) in run.into_iter().enumerate() {
                let path = if repeats {
                    format!("steps[{index}]")
                } else {
                    format!("runs[{number}][{index}]")
                };
                items.push(
                    Item::parse(value)
                        .map_err(|(inner, problem)| wrong(format!("{path}{inner}"), problem))?,
                );
            }
            script.runs.push(items);
        }
        Ok(script)
    }

    /// Returns how many runs there are; none if the one run is repeated.
    pub fn runs(&self) -> Option<usize> {
        (!self.repeats).then_some(self.runs.len())
    }

    /// Returns what a session with this script needs from a connected client.
    pub fn needs(&self) -> BTreeSet<Need> {
        let asks = self.runs.iter().flatten().any(|item| match item {
            Item::Tools { tools, .. } => tools.iter().any(|tool| tool.permission),
            _ => false,
        });
        asks.then_some(Need::Permissions).into_iter().collect()
    }

    /// Returns what clients can choose of a session with this script.
    pub fn options(&self) -> Vec<SessionOption> {
        SessionOption::mode(self.modes.clone()).into_iter().collect()
    }

    /// Returns what the agent does in a run, counted from 0; nothing if there is no such run.
    pub fn run(&self, number: usize) -> Option<&[Item]> {
        let number = if self.repeats { 0 } else { number };
        self.runs.get(number).map(Vec::as_slice)
    }
}

/// The runs of a script, whether one of them is repeated, how they are called, and its modes.
type Parts = (Vec<Vec<Value>>, bool, &'static str, Vec<OptionValue>);

fn runs(script: Value) -> Result<Parts, Wrong> {
    let mut fields = Fields::of("script", script)?;
    let (runs, steps) = (fields.take("runs"), fields.take("steps"));
    let modes = match fields.take("modes") {
        Value::Null => Vec::new(),
        modes => modes::parse(modes)?,
    };
    fields.end(&["runs or steps", "modes"])?;
    match (runs, steps) {
        (runs, Value::Null) if !runs.is_null() => {
            let runs = list("runs", runs)?.enumerate();
            let run = |(number, run)| Ok(list(&format!("runs[{number}]"), run)?.collect());
            Ok((runs.map(run).collect::<Result<_, Wrong>>()?, false, "runs", modes))
        }
        (Value::Null, steps) if !steps.is_null() => {
            Ok((vec![list("steps", steps)?.collect()], true, "steps", modes))
        }
        _ => Err(("script".to_owned(), "expected either `runs` or `steps`".to_owned())),
    }
}
