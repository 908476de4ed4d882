//! Scripts of scenarios as answers of a model, for agents that have one.
//!
//! Each item of a script is one answer: what is said, and the calls that are asked for. Two things
//! differ between a script and a model. A model that only says something is done, so that what is
//! said before something else comes with a call of [`GO_ON`], which does nothing; and a model has the
//! last word behind its calls, which is [`LAST_WORD`]. A runner leaves both out of what it looks back
//! on with [`without_traces`]. A run that fails does so because its model is refused, which the agent
//! says in its own words around the model's; [`in_its_words`] has the latter. What a model cannot do
//! at all is [said](Untold).

use serde_json::{Map, Value, json};

use crate::face::Ending;

/// The tool of a model that has said something and goes on: it does nothing, in no time, and may run
/// twice.
pub const GO_ON: &str = "go_on";
/// What a model says behind its last calls.
pub const LAST_WORD: &str = "(done)";

/// What a script has its agent do and no model can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Untold {
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
    let runs = match (&script["runs"], &script["steps"]) {
        (Value::Array(runs), _) => runs.clone(),
        (_, steps) => vec![steps.clone()],
    };
    let mut tools = vec![Tool { name: GO_ON.to_owned(), idempotent: true }];
    let runs = runs.iter().map(|items| run(items, &mut tools)).collect::<Result<_, _>>()?;
    Ok(Part { runs, tools })
}

fn run(items: &Value, tools: &mut Vec<Tool>) -> Result<Vec<Value>, Untold> {
    let items: Vec<&Value> = items.as_array().into_iter().flatten().collect();
    let mut answers = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let last = index + 1 == items.len();
        let (kind, value) = match item.as_object().and_then(|fields| fields.iter().next()) {
            Some((kind, value)) => (kind.as_str(), value),
            None => continue,
        };
        answers.push(match kind {
            "say" => said(value, last),
            "tool" => calls(std::slice::from_ref(value), tools),
            "sequence" => calls(value.as_array().map_or(&[], Vec::as_slice), tools),
            "tools" => {
                let all = value.as_array().map_or(&[][..], Vec::as_slice);
                if all.len() > 1 && all.iter().any(|tool| tool["idempotent"] != true) {
                    return Err(Untold::RunsBesideOthers);
                }
                calls(all, tools)
            }
            "await" => json!({ "calls": [{ "tool": "await_resumption", "arguments": value }] }),
            "ask" => json!({ "calls": [{ "tool": "ask_user", "arguments": value }] }),
            "end" => return Err(Untold::EndsTheSession),
            "fail" => json!({ "error": { "kind": "capability_gap", "message": value } }),
            _ => return Err(Untold::NoAnswer),
        });
        if last && kind != "say" {
            answers.push(json!({ "text": LAST_WORD }));
        }
    }
    if answers.is_empty() {
        answers.push(json!({ "text": LAST_WORD }));
    }
    Ok(answers)
}

fn said(value: &Value, last: bool) -> Value {
    let text = value.as_str().map_or_else(|| value["text"].clone(), Value::from);
    let mut answer = Map::from_iter([("text".to_owned(), text)]);
    if let Some(ms) = value["ms"].as_u64() {
        answer.insert("ms".to_owned(), ms.into());
    }
    if !last {
        answer.insert("calls".to_owned(), json!([{ "tool": GO_ON }]));
    }
    Value::Object(answer)
}

fn calls(asked: &[Value], tools: &mut Vec<Tool>) -> Value {
    let call = |tool: &Value| {
        let name = tool["name"].as_str().unwrap_or_default().to_owned();
        let known = tools.iter().any(|known| known.name == name);
        if !known {
            tools.push(Tool { name: name.clone(), idempotent: tool["idempotent"] == true });
        }
        json!({ "tool": name, "arguments": { "ms": tool["ms"].as_u64().unwrap_or(0) } })
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
