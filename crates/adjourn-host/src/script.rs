//! The scripted driver: an agent whose every step is written down, for demos, tests and benchmarks.

mod driver;
mod reading;

pub use driver::{ScriptDriver, Scripted};

use std::collections::BTreeSet;

use adjourn_core::command::Question;
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::driver::Need;
use adjourn_core::json;
use adjourn_core::limits;
use adjourn_core::rejected::Rejected;
use serde_json::Value;

use reading::{Fields, Wrong, expected, list, unknown};

/// The most items a run may have, and the most runs a script.
const MOST: usize = 10_000;

/// Why a script is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ScriptError {
    /// Where.
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
}

/// One step of a script.
#[derive(Debug, Clone)]
enum Item {
    Say(Say),
    Tools { tools: Vec<Tool>, at_once: bool },
    Await { reason: String, summary: Option<String>, conditions: Option<Conditions> },
    Ask(Question),
    Title(String),
    Fail(String),
    End,
}

/// The items that a script can have.
const ITEMS: &[&str] =
    &["say", "tool", "tools", "sequence", "await", "ask", "title", "fail", "end"];

/// What the agent says, and how long its model takes for it.
#[derive(Debug, Clone)]
struct Say {
    text: String,
    ms: u64,
}

#[derive(Debug, Clone)]
struct Tool {
    name: String,
    ms: u64,
    idempotent: bool,
    /// Whether somebody has to allow it first.
    permission: bool,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Where it is wrong, and how.
    pub fn parse(source: &str) -> Result<Self, ScriptError> {
        let wrong = |path: String, problem: String| ScriptError { path, problem };
        let parsed: Value = json::read(source.as_bytes(), limits::DRIVER_SPEC_BYTES)
            .map_err(|error| wrong("script".to_owned(), error.to_string()))?;
        let (runs, repeats, name) = runs(parsed).map_err(|(path, problem)| wrong(path, problem))?;
        if runs.len() > MOST || runs.iter().any(|run| run.len() > MOST) {
            return Err(wrong(name.to_owned(), format!("more than {MOST}")));
        }
        let mut script = Self { runs: Vec::new(), repeats };
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

    fn run(&self, number: usize) -> Option<&[Item]> {
        let number = if self.repeats { 0 } else { number };
        self.runs.get(number).map(Vec::as_slice)
    }
}

impl Item {
    fn parse(value: Value) -> Result<Self, Wrong> {
        let mut fields = match value {
            Value::Object(fields) => fields.into_iter(),
            other => return Err(expected("", r#"an item, like {"say": "hello"}"#, &other)),
        };
        let (Some((name, value)), None) = (fields.next(), fields.next()) else {
            let problem = format!("expected one of {}, and nothing beside it", ITEMS.join(", "));
            return Err((String::new(), problem));
        };
        let place = format!(".{name}");
        Ok(match name.as_str() {
            "say" => Self::Say(Say::parse(&place, value)?),
            "tool" => {
                let tool = Tool::parse(&place, value)?;
                within(&place, limits::name("name", &tool.name))?;
                Self::Tools { tools: vec![tool], at_once: true }
            }
            "tools" => Self::Tools { tools: tools(&place, value)?, at_once: true },
            "sequence" => Self::Tools { tools: tools(&place, value)?, at_once: false },
            "await" => Self::wait(&place, value)?,
            "ask" => Self::Ask(question(&place, value)?),
            "title" => match value {
                Value::String(title) => {
                    within("", limits::name("title", &title))?;
                    Self::Title(title)
                }
                other => return Err(expected(&place, "a text", &other)),
            },
            "fail" => match value {
                Value::String(why) => {
                    within("", limits::text("fail", &why, limits::REASON_BYTES))?;
                    Self::Fail(why)
                }
                other => return Err(expected(&place, "a text", &other)),
            },
            "end" => match value {
                Value::Bool(true) => Self::End,
                other => return Err(expected(&place, "true", &other)),
            },
            other => return Err((String::new(), unknown(other, ITEMS))),
        })
    }

    fn wait(place: &str, value: Value) -> Result<Self, Wrong> {
        let mut fields = Fields::of(place, value)?;
        let (reason, summary) = (fields.text("reason")?, fields.optional_text("summary")?);
        let conditions = fields.take("conditions");
        fields.end(&["reason", "summary", "conditions"])?;
        within(place, check_wait(&reason, summary.as_deref()))?;
        let conditions = Conditions::parse(&conditions, Spelling::Camel).map_err(|invalid| {
            let invalid = invalid.within("conditions");
            (format!("{place}.{}", invalid.path), invalid.problem)
        })?;
        Ok(Self::Await { reason, summary, conditions })
    }
}

impl Say {
    fn parse(place: &str, value: Value) -> Result<Self, Wrong> {
        if let Value::String(text) = value {
            return Ok(Self { text, ms: 0 });
        }
        if !value.is_object() {
            return Err(expected(place, r#"a text, or {"text": "hello", "ms": 100}"#, &value));
        }
        let mut fields = Fields::of(place, value)?;
        let say = Self { text: fields.text("text")?, ms: fields.count("ms")? };
        fields.end(&["text", "ms"]).map(|()| say)
    }
}

impl Tool {
    fn parse(place: &str, value: Value) -> Result<Self, Wrong> {
        let mut fields = Fields::of(place, value)?;
        let tool = Self {
            name: fields.text("name")?,
            ms: fields.count("ms")?,
            idempotent: fields.truth("idempotent")?,
            permission: fields.truth("permission")?,
        };
        fields.end(&["name", "ms", "idempotent", "permission"]).map(|()| tool)
    }
}

/// Reads the runs of a script, whether one of them is repeated, and how they are called.
fn runs(script: Value) -> Result<(Vec<Vec<Value>>, bool, &'static str), Wrong> {
    let mut fields = Fields::of("script", script)?;
    let (runs, steps) = (fields.take("runs"), fields.take("steps"));
    fields.end(&["runs or steps"])?;
    match (runs, steps) {
        (runs, Value::Null) if !runs.is_null() => {
            let runs = list("runs", runs)?.enumerate();
            let run = |(number, run)| Ok(list(&format!("runs[{number}]"), run)?.collect());
            Ok((runs.map(run).collect::<Result<_, Wrong>>()?, false, "runs"))
        }
        (Value::Null, steps) if !steps.is_null() => {
            Ok((vec![list("steps", steps)?.collect()], true, "steps"))
        }
        _ => Err(("script".to_owned(), "expected either `runs` or `steps`".to_owned())),
    }
}

fn tools(place: &str, value: Value) -> Result<Vec<Tool>, Wrong> {
    let tools = list(place, value)?.enumerate();
    let tool = |(index, value)| Tool::parse(&format!("{place}[{index}]"), value);
    let tools = tools.map(tool).collect::<Result<Vec<_>, _>>()?;
    check_tools(place, &tools).map(|()| tools)
}

fn question(place: &str, value: Value) -> Result<Question, Wrong> {
    let mut fields = Fields::of(place, value)?;
    let question = Question {
        question: fields.text("question")?,
        context: fields.optional_text("context")?,
        choices: fields.texts("choices")?,
        originating_failure_kind: None,
    };
    fields.end(&["question", "context", "choices"])?;
    within(place, check_question(&question)).map(|()| question)
}

/// Says where in an item something is that the lifecycle would refuse when the item is run.
fn within(place: &str, checked: Result<(), Rejected>) -> Result<(), Wrong> {
    checked.map_err(|refused| match refused {
        Rejected::Invalid { path, problem } => (format!("{place}.{path}"), problem),
        other => (place.to_owned(), other.to_string()),
    })
}

fn check_tools(place: &str, tools: &[Tool]) -> Result<(), Wrong> {
    let wrong = |problem: String| Err((place.to_owned(), problem));
    if tools.is_empty() {
        return wrong("must not be empty".to_owned());
    }
    if tools.len() > limits::OPEN_CALLS {
        return wrong(format!("more than {} tools in one item", limits::OPEN_CALLS));
    }
    for (index, tool) in tools.iter().enumerate() {
        within(&format!("{place}[{index}]"), limits::name("name", &tool.name))?;
    }
    Ok(())
}

fn check_wait(reason: &str, summary: Option<&str>) -> Result<(), Rejected> {
    if reason.trim().is_empty() {
        return Err(blank("reason"));
    }
    limits::text("reason", reason, limits::REASON_BYTES)?;
    limits::optional("summary", summary, limits::SUMMARY_BYTES)
}

fn check_question(question: &Question) -> Result<(), Rejected> {
    if question.question.trim().is_empty() {
        return Err(blank("question"));
    }
    limits::json("question", question, limits::QUESTION_BYTES)
}

fn blank(path: &str) -> Rejected {
    Rejected::Invalid { path: path.to_owned(), problem: "must not be empty".to_owned() }
}
