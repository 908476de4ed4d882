//! The items of a script: each is one step of the agent.

use std::time::Duration;

use crate::Shown;
use adjourn_core::carry::Usage;
use adjourn_core::command::Question;
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::limits;
use adjourn_core::rejected::Rejected;
use serde_json::Value;

use super::reading::{Fields, Wrong, expected, unknown, within};
use super::say::Say;
use super::tool::{self, Tool};
use super::{display, spend};

/// One step of a script.
#[derive(Debug, Clone)]
pub enum Item {
    /// The model thinks or says something.
    Say(Say),
    /// The model asks for calls.
    Tools {
        /// The calls.
        tools: Vec<Tool>,
        /// Whether they run side by side, and not one after another.
        at_once: bool,
    },
    /// The agent parks itself.
    Await {
        /// Why.
        reason: String,
        /// What it has done so far, in its own words.
        summary: Option<String>,
        /// What it waits for.
        conditions: Option<Conditions>,
    },
    /// The agent asks a person.
    Ask(Question),
    /// The agent spends something.
    Spend(Usage),
    /// The agent shows something beside its words.
    Show(Shown),
    /// The agent gives the session a title.
    Title(String),
    /// The run fails, and why.
    Fail(String),
    /// The step fails, and what is done about that is left to the host. If it has the step tried
    /// again, the script goes on behind this item.
    FailStep {
        /// What kind of failure it is.
        kind: String,
        /// What is wrong, for people.
        why: String,
        /// After how long trying again makes sense, if that is known.
        retry_after: Option<Duration>,
    },
    /// The run completes, and the session ends with it.
    End,
}

/// The items that a script can have.
const ITEMS: &[&str] = &[
    "say", "think", "tool", "tools", "sequence", "await", "ask", "plan", "spend", "context",
    "mode", "commands", "title", "fail", "end",
];

impl Item {
    pub(super) fn parse(value: Value) -> Result<Self, Wrong> {
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
            "think" => Self::Say(Say::parse_thought(&place, value)?),
            "tool" => Self::Tools { tools: vec![Tool::parse(&place, value)?], at_once: true },
            "tools" => Self::Tools { tools: tool::list(&place, value)?, at_once: true },
            "sequence" => Self::Tools { tools: tool::list(&place, value)?, at_once: false },
            "await" => Self::wait(&place, value)?,
            "ask" => Self::Ask(question(&place, value)?),
            "plan" => Self::Show(display::plan(&place, value)?),
            "spend" => Self::Spend(spend::usage(&place, value)?),
            "context" => Self::Show(display::context(&place, value)?),
            "mode" => Self::Show(Shown::Mode(named(&place, value)?)),
            "commands" => Self::Show(display::commands(&place, value)?),
            "title" => Self::Title(named(&place, value)?),
            "fail" => match value {
                Value::String(why) => {
                    within("", limits::text("fail", &why, limits::REASON_BYTES))?;
                    Self::Fail(why)
                }
                value @ Value::Object(_) => Self::fail_step(&place, value)?,
                other => {
                    return Err(expected(&place, r#"a text, or {"kind": "overloaded"}"#, &other));
                }
            },
            "end" => match value {
                Value::Bool(true) => Self::End,
                other => return Err(expected(&place, "true", &other)),
            },
            other => return Err((String::new(), unknown(other, ITEMS))),
        })
    }

    fn fail_step(place: &str, value: Value) -> Result<Self, Wrong> {
        let mut fields = Fields::of(place, value)?;
        let (kind, why) = (fields.text("kind")?, fields.optional_text("why")?);
        let retry_after = match fields.take("retry_after_ms") {
            Value::Null => None,
            value => match value.as_u64() {
                Some(ms) => Some(Duration::from_millis(ms)),
                None => {
                    let at = fields.at("retry_after_ms");
                    return Err(expected(&at, "a whole number from 0 on", &value));
                }
            },
        };
        fields.end(&["kind", "why", "retry_after_ms"])?;
        within(place, limits::name("kind", &kind))?;
        let why = why.unwrap_or_else(|| "as the script says".to_owned());
        within(place, limits::text("why", &why, limits::REASON_BYTES))?;
        Ok(Self::FailStep { kind, why, retry_after })
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

/// Reads an item that is one name.
fn named(place: &str, value: Value) -> Result<String, Wrong> {
    match value {
        Value::String(name) => {
            within("", limits::name(place.trim_start_matches('.'), &name))?;
            Ok(name)
        }
        other => Err(expected(place, "a text", &other)),
    }
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
