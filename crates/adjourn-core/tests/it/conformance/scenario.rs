//! A scenario, as `conformance/README.md` documents it.
//!
//! Whatever is not documented there is refused when a file is read: a key that no runner knows
//! would be an expectation that nobody checks.

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn_core::command::Mode;
use adjourn_core::time::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::simulation::Script;

/// What a client does and sees, and how the agent behaves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    pub serves: Vec<String>,
    pub script: Script,
    pub steps: Vec<Step>,
    #[serde(default)]
    pub timeline: Vec<Notice>,
    #[serde(default)]
    pub tools: BTreeMap<String, u32>,
    pub turns: Option<Vec<Fields>>,
    pub said: Option<Vec<String>>,
}

/// Expected values by field; each step, notice or turn may name any part of them.
pub type Fields = Map<String, Value>;

/// One thing a client does, and what it sees then.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Fields")]
pub struct Step {
    pub at: Moment,
    pub does: Does,
    pub expect: Option<Fields>,
    pub answer: Option<Fields>,
    pub refused: Option<Refused>,
}

/// What a client does in a step.
#[derive(Debug)]
pub enum Does {
    Nothing,
    One(Verb),
    /// All at once: one is taken, and the others are refused.
    Race(Vec<Verb>),
}

/// The verbs of a client, and of whoever looks after the host.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verb {
    Prompt(String),
    Suspend(Suspend),
    Resume(Resume),
    Event(Event),
    Cancel(Why),
    Close(Why),
    Restart(Restart),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suspend {
    pub reason: Option<String>,
    #[serde(default)]
    pub mode: Mode,
    #[serde(default)]
    pub resume_when: Value,
    pub grace_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resume {
    pub handle: Option<String>,
    pub input: Option<Value>,
    pub continue_transcript: Option<bool>,
    pub idempotency_key: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    pub name: String,
    pub subject: Option<String>,
    pub source: Option<String>,
    pub id: Option<String>,
    pub data: Option<Value>,
    #[serde(default)]
    pub session: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    pub reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Restart {
    pub how: How,
    pub grace_ms: Option<u64>,
    pub away: Option<Moment>,
}

/// How a host is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Kill,
    Drain,
}

/// Why something was refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    pub reason: String,
    pub path: Option<String>,
}

/// What observers are told of a suspension.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    Suspended(Fields),
    Resumed(Fields),
}

/// A time since the start, or a length of time: `0.3s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Moment(pub Duration);

impl TryFrom<String> for Moment {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let seconds = text.strip_suffix('s').and_then(|number| number.parse::<f64>().ok());
        let length = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        length.map(Self).ok_or_else(|| format!("expected a time like `0.3s`, got {text:?}"))
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}s", self.0.as_secs_f64())
    }
}

/// The fields of a status that a step may expect something of.
const STATUS: &[&str] = &[
    "sessionId",
    "runId",
    "state",
    "phase",
    "outcome",
    "error",
    "wait",
    "handle",
    "held",
    "initiator",
    "reason",
    "suspendedAt",
    "resumeWhen",
    "dueAt",
    "summary",
    "question",
    "context",
    "choices",
    "inFlight",
    "unknownCalls",
    "cause",
    "hadResumeInput",
    "continueTranscript",
    "resumedAt",
];
const SUSPENDED: &[&str] = &["handle", "initiator", "reason", "suspendedAt", "resumeWhen"];
const RESUMED: &[&str] = &["handle", "cause", "hadResumeInput", "continueTranscript", "resumedAt"];
const TURN: &[&str] = &["sees", "prompt", "cause", "input", "event", "told"];

/// How many lines REQUIREMENTS.md has of each kind.
const REQUIREMENTS: &[(&str, u32)] =
    &[("SUS", 117), ("STA", 12), ("REP", 15), ("PAU", 92), ("AGT", 57), ("G", 48)];

impl Scenario {
    /// Reads a scenario that begins at `start`, and refuses what no runner could make sense of.
    pub fn read(text: &str, start: Timestamp) -> Result<Self, String> {
        let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        fill_in(&mut value, start)?;
        let scenario: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        scenario.check()?;
        Ok(scenario)
    }

    fn check(&self) -> Result<(), String> {
        if self.name.trim().is_empty() || self.serves.is_empty() || self.steps.is_empty() {
            return Err("a scenario has a name, a purpose and steps".to_owned());
        }
        for id in &self.serves {
            let known = id.split_once('-').is_some_and(|(kind, number)| {
                let lines = REQUIREMENTS.iter().find(|(known, _)| *known == kind);
                let number = number.parse::<u32>().ok();
                number.zip(lines).is_some_and(|(number, (_, lines))| (1..=*lines).contains(&number))
            });
            if !known {
                return Err(format!("serves: {id} is no requirement"));
            }
        }
        self.script.check().map_err(|error| format!("script: {error}"))?;
        if !self.steps.is_sorted_by_key(|step| step.at) {
            return Err("steps: times never go backwards".to_owned());
        }
        for (index, step) in self.steps.iter().enumerate() {
            step.check().map_err(|error| format!("step {}: {error}", index + 1))?;
        }
        for notice in &self.timeline {
            let (fields, known) = match notice {
                Notice::Suspended(fields) => (fields, SUSPENDED),
                Notice::Resumed(fields) => (fields, RESUMED),
            };
            check_names("timeline", fields, known)?;
        }
        self.turns.iter().flatten().try_for_each(|turn| check_names("turns", turn, TURN))
    }
}

impl Step {
    fn check(&self) -> Result<(), String> {
        self.expect.iter().try_for_each(|fields| check_names("expect", fields, STATUS))?;
        self.answer.iter().try_for_each(|fields| check_names("answer", fields, RESUMED))?;
        match (&self.does, &self.refused, &self.answer) {
            (Does::Nothing, Some(_), _) => Err("nothing is done that could be refused".to_owned()),
            (Does::One(Verb::Resume(_)), None, Some(_)) | (_, _, None) => Ok(()),
            (_, _, Some(_)) => Err("only a resume that is taken is answered".to_owned()),
        }?;
        match &self.does {
            Does::Nothing if self.expect.is_none() => Err("nothing is done or expected".to_owned()),
            Does::Race(verbs) if verbs.len() < 2 => Err("one alone cannot race".to_owned()),
            _ => Ok(()),
        }
    }
}

impl TryFrom<Fields> for Step {
    type Error = String;

    /// Takes the fields that every step may have; what is left is the verb.
    fn try_from(mut fields: Fields) -> Result<Self, String> {
        let at = field(&mut fields, "at")?.ok_or("expected a time `at`")?;
        let (expect, answer) = (field(&mut fields, "expect")?, field(&mut fields, "answer")?);
        let refused = field(&mut fields, "refused")?;
        let race = field(&mut fields, "race")?;
        let does = match (race, fields.len()) {
            (None, 0) => Does::Nothing,
            (Some(verbs), 0) => Does::Race(verbs),
            (None, 1) => Does::One(verb(fields)?),
            _ => return Err("expected one verb".to_owned()),
        };
        Ok(Self { at, does, expect, answer, refused })
    }
}

fn field<T: serde::de::DeserializeOwned>(
    fields: &mut Fields,
    name: &str,
) -> Result<Option<T>, String> {
    let value = fields.remove(name);
    value.map(serde_json::from_value).transpose().map_err(|error| format!("{name}: {error}"))
}

fn verb(fields: Fields) -> Result<Verb, String> {
    serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
}

fn check_names(place: &str, fields: &Fields, known: &[&str]) -> Result<(), String> {
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{place}: nobody knows a field {name:?}")),
        None => Ok(()),
    }
}

/// Puts points in time where the text says `{start+2s}`.
fn fill_in(value: &mut Value, start: Timestamp) -> Result<(), String> {
    match value {
        Value::String(text) => {
            let later = text.strip_prefix("{start+").and_then(|rest| rest.strip_suffix('}'));
            if let Some(later) = later {
                *text = start.after(Moment::try_from(later.to_owned())?.0).to_string();
            }
            Ok(())
        }
        Value::Array(elements) => {
            elements.iter_mut().try_for_each(|element| fill_in(element, start))
        }
        Value::Object(fields) => fields.values_mut().try_for_each(|field| fill_in(field, start)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}
