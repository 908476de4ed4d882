//! Scripts of scenarios as answers of a model, for agents that have one.
//!
//! Each item of a script is one answer: what is said, and the calls that are asked for. Two things
//! differ between a script and a model. A model that only says something is done, so that what is
//! said before something else comes with a call of [`GO_ON`], which does nothing; and a model has the
//! last word behind its calls, which is [`LAST_WORD`]. A runner leaves both out of what it looks back
//! on with [`without_traces`]. A run that fails does so because its model is refused, which the agent
//! says in its own words around the model's; [`in_its_words`] has the latter. What a model cannot do
//! at all is [said](Untold).

use adjourn_driver::script::{self, Item, Say, Script};
use serde_json::{Map, Value, json};

use crate::face::Ending;

/// The tool of a model that has said something and goes on: it does nothing, in no time, and may run
/// twice.
pub const GO_ON: &str = "go_on";
/// What a model says behind its last calls.
pub const LAST_WORD: &str = "(done)";

/// What a script has its agent do and no model can.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Untold {
    /// It is no script.
    NotAScript(String),
    /// A model does not end its session.
    EndsTheSession,
    /// A script has items that are no answers: plans, titles, spending.
    NoAnswer,
    /// Calls that change something run one after the other, whatever a model asks for.
    RunsBesideOthers,
}

/// A tool that an agent must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// Whether it may run twice.
    pub idempotent: bool,
}

/// An agent's part in a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The answers of the model in each run; the last run is repeated.
    pub runs: Vec<Vec<Value>>,
    /// The tools that it calls. Each takes as long as its argument `ms` says.
    pub tools: Vec<Tool>,
}

/// Returns what a model answers that behaves as a script says.
///
/// # Errors
/// What no model can do.
pub fn part(script: &Value) -> Result<Part, Untold> {
    let script = Script::parse(&script.to_string())
        .map_err(|error| Untold::NotAScript(error.to_string()))?;
    let mut tools = vec![Tool { name: GO_ON.to_owned(), idempotent: true }];
    let numbers = 0..script.runs().unwrap_or(1);
    let runs = numbers.filter_map(|number| script.run(number));
    let runs = runs.map(|items| run(items, &mut tools)).collect::<Result<_, _>>()?;
    Ok(Part { runs, tools })
}

fn run(items: &[Item], tools: &mut Vec<Tool>) -> Result<Vec<Value>, Untold> {
    let mut answers = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let last = index + 1 == items.len();
        let is_said = matches!(item, Item::Say(_));
        answers.push(match item {
            Item::Say(said) => words(said, last),
            Item::Tools { tools: asked, at_once } => {
                if *at_once && asked.len() > 1 && asked.iter().any(|tool| !tool.idempotent) {
                    return Err(Untold::RunsBesideOthers);
                }
                calls(asked, tools)
            }
            Item::Await { reason, summary, conditions } => {
                let arguments =
                    json!({ "reason": reason, "summary": summary, "conditions": conditions });
                call("await_resumption", arguments)
            }
            Item::Ask(question) => call("ask_user", json!(question)),
            Item::End => return Err(Untold::EndsTheSession),
            Item::Fail(why) => json!({ "error": { "kind": "capability_gap", "message": why } }),
            Item::Spend(_) | Item::Show(_) | Item::Title(_) | Item::FailStep { .. } => {
                return Err(Untold::NoAnswer);
            }
        });
        if last && !is_said {
            answers.push(json!({ "text": LAST_WORD }));
        }
    }
    if answers.is_empty() {
        answers.push(json!({ "text": LAST_WORD }));
    }
    Ok(answers)
}

fn words(said: &Say, last: bool) -> Value {
    let mut answer = Map::from_iter([("text".to_owned(), json!(said.text))]);
    if said.ms > 0 {
        answer.insert("ms".to_owned(), said.ms.into());
    }
    if !last {
        answer.insert("calls".to_owned(), json!([{ "tool": GO_ON }]));
    }
    Value::Object(answer)
}

/// Returns an answer that asks for one of the tools that every agent has; it is given no field that is
/// null.
fn call(tool: &str, mut arguments: Value) -> Value {
    if let Some(fields) = arguments.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    json!({ "calls": [{ "tool": tool, "arguments": arguments }] })
}

fn calls(asked: &[script::Tool], tools: &mut Vec<Tool>) -> Value {
    let call = |tool: &script::Tool| {
        let script::Tool { name, idempotent, ms, .. } = tool;
        if !tools.iter().any(|known| known.name == *name) {
            tools.push(Tool { name: name.clone(), idempotent: *idempotent });
        }
        json!({ "tool": name, "arguments": { "ms": ms } })
    };
    json!({ "calls": asked.iter().map(call).collect::<Vec<_>>() })
}

/// Leaves out of the error in a status what the agent says around the words of its model.
pub fn in_its_words(status: &mut Value) {
    if let Some(Value::String(error)) = status.get_mut("error")
        && let Some((_, words)) = error.rsplit_once(": ")
    {
        *error = words.to_owned();
    }
}

/// Leaves out of an ending what only a model does.
#[must_use]
pub fn without_traces(mut ending: Ending) -> Ending {
    ending.tools.remove(GO_ON);
    ending.said.retain(|said| said != LAST_WORD);
    ending
}
