//! A scenario, as `conformance/README.md` documents it.
//!
//! Whatever is not documented there is refused when a file is read: a key that no runner knows
//! would be an expectation that nobody checks.

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn_core::command::Mode;
use adjourn_core::time::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Number, Value};

/// What a client does and sees, and how the agent behaves.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What holds, in one sentence.
    pub name: String,
    /// The requirements it serves.
    pub serves: Vec<String>,
    /// How the agent behaves; each runner hands it to an agent of its own.
    pub script: Value,
    /// What the client does and sees, in order.
    pub steps: Vec<Step>,
    /// Every lifecycle notice.
    #[serde(default)]
    pub timeline: Vec<Notice>,
    /// How often each tool was started.
    #[serde(default)]
    pub tools: BTreeMap<String, u32>,
    /// What each turn was given, if that is looked at.
    pub turns: Option<Vec<Fields>>,
    /// What the agent said, if that is looked at.
    pub said: Option<Vec<String>>,
    /// What the driver was given for each step, if that is looked at.
    pub given: Option<Vec<Fields>>,
}

/// Expected values by field; each step, notice or turn may name any part of them.
pub type Fields = Map<String, Value>;

/// One thing a client does, and what it sees then.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Fields")]
pub struct Step {
    /// When.
    pub at: Moment,
    /// What the client does.
    pub does: Does,
    /// What the status shows then.
    pub expect: Option<Fields>,
    /// What a suspend or a resume is answered.
    pub answer: Option<Fields>,
    /// How the verb is refused.
    pub refused: Option<Refused>,
}

/// What a client does in a step.
#[derive(Debug)]
pub enum Does {
    /// It only looks.
    Nothing,
    /// One verb.
    One(Verb),
    /// All at once: one is taken, and the others are refused.
    Race(Vec<Verb>),
}

/// The verbs of a client, and of whoever looks after the host.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verb {
    /// A message.
    Prompt(String),
    /// A pause.
    Suspend(Suspend),
    /// A wake.
    Resume(Resume),
    /// An event from outside.
    Event(Event),
    /// The end of the run.
    Cancel(Why),
    /// The end of the session.
    Close(Why),
    /// The host's process is replaced.
    Restart(Restart),
}

/// A caller's pause.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suspend {
    /// Why.
    pub reason: Option<String>,
    /// How soon it takes effect.
    #[serde(default)]
    pub mode: Mode,
    /// What wakes the session; it may be malformed on purpose.
    #[serde(default)]
    pub resume_when: Value,
    /// How long calls in flight may go on.
    pub grace_ms: Option<u64>,
    /// Whether another person gives it, at the command line.
    #[serde(default)]
    pub elsewhere: bool,
}

/// A wake.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resume {
    /// The suspension that is meant: a name of the scenario's in a file, the handle itself where a
    /// face is given it.
    pub handle: Option<String>,
    /// A value for the agent.
    pub input: Option<Value>,
    /// Whether the turn sees the whole transcript.
    pub continue_transcript: Option<bool>,
    /// What makes a retry harmless.
    pub idempotency_key: Option<String>,
}

/// An event from outside.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// What happened.
    pub name: String,
    /// To what.
    pub subject: Option<String>,
    /// Where it comes from.
    pub source: Option<String>,
    /// Its id, which is the same if it is sent twice.
    pub id: Option<String>,
    /// What there is to say about it.
    pub data: Option<Value>,
    /// Whether it is addressed to the session.
    #[serde(default)]
    pub session: bool,
}

/// Why something is to end.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// In words.
    pub reason: Option<String>,
}

/// The host's process is replaced.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Restart {
    /// How the old one goes.
    pub how: How,
    /// How long it waits for calls in flight; see [`Scenario::graces`].
    pub grace_ms: Option<u64>,
    /// How long nobody is there after it.
    pub away: Option<Moment>,
}

/// How a host is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It is killed without warning.
    Kill,
    /// It is asked to stop, and waited for.
    Drain,
}

/// Why something was refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    /// The word.
    pub reason: String,
    /// Where something is malformed.
    pub path: Option<String>,
}

/// What observers are told of a suspension.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notice {
    /// A suspension took effect.
    Suspended(Fields),
    /// A suspension was resumed.
    Resumed(Fields),
}

impl Notice {
    /// Returns the notice as the object that it is written as.
    pub fn fields(&self) -> Fields {
        let (name, fields) = match self {
            Self::Suspended(fields) => ("suspended", fields),
            Self::Resumed(fields) => ("resumed", fields),
        };
        Fields::from_iter([(name.to_owned(), Value::Object(fields.clone()))])
    }
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
        let text = format!("{}.{:03}", self.0.as_secs(), self.0.subsec_millis());
        write!(f, "{}s", text.trim_end_matches('0').trim_end_matches('.'))
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
/// What a suspend is answered.
const SUSPENSION: &[&str] = &["handle", "reason", "suspendedAt", "resumeWhen"];
const RESUMED: &[&str] = &["handle", "cause", "hadResumeInput", "continueTranscript", "resumedAt"];
const GIVEN: &[&str] = &["opening", "continues", "messages"];
const TURN: &[&str] = &["sees", "prompt", "cause", "input", "event", "told"];

/// How many lines REQUIREMENTS.md has of each kind.
const REQUIREMENTS: &[(&str, u32)] =
    &[("SUS", 117), ("STA", 12), ("REP", 15), ("PAU", 92), ("AGT", 57), ("G", 48)];

impl Scenario {
    /// Reads a scenario that begins at `start` and takes `pace` times as long as it says, and
    /// refuses what no runner could make sense of.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str, start: Timestamp, pace: u32) -> Result<Self, String> {
        let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        fill_in("", &mut value, start, pace)?;
        let scenario: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Returns how long each host in turn waits for calls in flight when it is drained, where the
    /// scenario says so.
    pub fn graces(&self) -> Vec<Option<Duration>> {
        let restarts = self.steps.iter().filter_map(|step| match &step.does {
            Does::One(Verb::Restart(restart)) => Some(restart.grace_ms.map(Duration::from_millis)),
            _ => None,
        });
        restarts.collect()
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
        self.given.iter().flatten().try_for_each(|step| check_names("given", step, GIVEN))?;
        self.turns.iter().flatten().try_for_each(|turn| check_names("turns", turn, TURN))
    }
}

impl Step {
    fn check(&self) -> Result<(), String> {
        self.expect.iter().try_for_each(|fields| check_names("expect", fields, STATUS))?;
        match (&self.does, &self.refused, &self.answer) {
            (Does::Nothing, Some(_), _) => Err("nothing is done that could be refused".to_owned()),
            (_, _, None) => Ok(()),
            (Does::One(Verb::Suspend(_)), None, Some(answer)) => {
                check_names("answer", answer, SUSPENSION)
            }
            (Does::One(Verb::Resume(_)), None, Some(answer)) => {
                check_names("answer", answer, RESUMED)
            }
            (_, _, Some(_)) => Err("only what is taken is answered, and not everything".to_owned()),
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

/// Puts points in time where the text says `{start+2s}`, and makes every length of time `pace`
/// times as long; `key` is the field that `value` stands in.
fn fill_in(key: &str, value: &mut Value, start: Timestamp, pace: u32) -> Result<(), String> {
    match value {
        Value::String(text) => {
            let later = text.strip_prefix("{start+").and_then(|rest| rest.strip_suffix('}'));
            let is_time =
                matches!(key, "at" | "away" | "suspendedAt" | "resumedAt" | "dueAt" | "told");
            if let Some(later) = later {
                *text = start.after(Moment::try_from(later.to_owned())?.0 * pace).to_string();
            } else if let (true, Ok(length)) = (is_time, Moment::try_from(text.clone())) {
                *text = Moment(length.0 * pace).to_string();
            }
            Ok(())
        }
        Value::Number(number) if pace > 1 => {
            let longer = match (key, number.as_u64(), number.as_f64()) {
                ("ms" | "graceMs", Some(ms), _) => Some(ms.saturating_mul(pace.into()).into()),
                ("durationMinutes", _, Some(minutes)) => {
                    Number::from_f64(minutes * f64::from(pace))
                }
                _ => None,
            };
            *number = longer.unwrap_or_else(|| number.clone());
            Ok(())
        }
        Value::Array(elements) => {
            elements.iter_mut().try_for_each(|element| fill_in(key, element, start, pace))
        }
        Value::Object(fields) => {
            fields.iter_mut().try_for_each(|(key, field)| fill_in(key, field, start, pace))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}
