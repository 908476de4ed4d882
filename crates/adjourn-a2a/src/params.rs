//! What peers ask for, read leniently: a field that is not known is left alone, a field that is
//! known and wrong is named.

use adjourn::core::carry::AddBudget;
use adjourn::core::command::{AwaitResumption, Mode, Suspend};
use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::id::Handle;
use adjourn::core::time::Timestamp;
use serde_json::{Map, Value};

use crate::error::{Error, Source};
use crate::message::Sent;
use crate::projection::Wanted;
use crate::push::PushConfig;
use crate::task::State;
use crate::version::Version;

/// How many tasks a page has at most.
const MOST: u64 = 100;
/// How many it has unless a number is asked for.
const USUAL: u64 = 50;

/// The parameters of a request.
#[derive(Debug, Clone, Copy)]
pub struct Params<'a>(&'a Map<String, Value>);

impl<'a> Params<'a> {
    /// Reads the parameters: an object.
    ///
    /// # Errors
    /// There is none.
    pub fn read(params: &'a Value) -> Result<Self, Error> {
        params.as_object().map(Self).ok_or_else(|| Error::invalid("params", "expected an object"))
    }

    /// Takes an object inside of the parameters.
    pub(crate) const fn of(fields: &'a Map<String, Value>) -> Self {
        Self(fields)
    }

    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>, Error> {
        let value = self.get(name);
        let text = value
            .map(|value| value.as_str().ok_or_else(|| Error::invalid(name, "expected a text")));
        // ProtoJSON writes what is absent as an empty text.
        Ok(text.transpose()?.filter(|text| !text.is_empty()))
    }

    fn flag(self, name: &str) -> Result<Option<bool>, Error> {
        let flag = |value: &Value| match value {
            Value::Bool(flag) => Ok(*flag),
            // Queries have words only.
            Value::String(word) if word == "true" => Ok(true),
            Value::String(word) if word == "false" => Ok(false),
            _ => Err(Error::invalid(name, "expected true or false")),
        };
        self.get(name).map(flag).transpose()
    }

    fn number(self, name: &str) -> Result<Option<u64>, Error> {
        let number = |value: &Value| match value {
            Value::String(digits) => digits.parse().ok(),
            value => value.as_u64(),
        };
        let wrong = || Error::invalid(name, "expected a whole number from 0 on");
        self.get(name).map(|value| number(value).ok_or_else(wrong)).transpose()
    }

    pub(crate) fn object(self, name: &str) -> Result<Option<&'a Map<String, Value>>, Error> {
        let wrong = || Error::invalid(name, "expected an object");
        self.get(name).map(|value| value.as_object().ok_or_else(wrong)).transpose()
    }

    /// Returns the tenant that the request is for, if it names one.
    ///
    /// # Errors
    /// It is no text.
    pub fn tenant(self) -> Result<Option<&'a str>, Error> {
        self.text("tenant")
    }

    /// Returns the id of the task that a standard method is about.
    ///
    /// # Errors
    /// There is none.
    pub fn id(self) -> Result<&'a str, Error> {
        self.text("id")?.ok_or_else(|| Error::invalid("id", "is required"))
    }

    /// Returns the id of the task that a method of the proposal is about.
    ///
    /// # Errors
    /// There is none.
    pub fn task_id(self) -> Result<&'a str, Error> {
        match self.text("taskId")? {
            Some(id) => Ok(id),
            None => self.text("id")?.ok_or_else(|| Error::invalid("taskId", "is required")),
        }
    }

    /// Returns what is wanted of a task.
    ///
    /// # Errors
    /// The number is none.
    pub fn wanted(self) -> Result<Wanted, Error> {
        Ok(Wanted { history: self.history_length()?, artifacts: true })
    }

    fn history_length(self) -> Result<Option<usize>, Error> {
        let length = self.number("historyLength")?;
        Ok(length.map(|length| usize::try_from(length).unwrap_or(usize::MAX)))
    }
}

/// `message/send`, `message/stream`.
#[derive(Clone)]
pub struct Send {
    /// What is said.
    pub message: Sent,
    /// Whether the answer waits until the task rests.
    pub blocking: bool,
    /// What is wanted of the task.
    pub wanted: Wanted,
    /// The pause that the message asks for in the tunnel of an earlier implementation.
    pub pause: Option<Suspend>,
    /// The receiver that is to be told of the task.
    pub(crate) push: Option<PushConfig>,
}

impl Send {
    /// Reads the parameters.
    ///
    /// # Errors
    /// One is missing or malformed.
    pub fn read(params: Params<'_>, version: Version) -> Result<Self, Error> {
        let message = params.get("message").or_else(|| params.get("request"));
        let message = message.ok_or_else(|| Error::invalid("message", "is required"))?;
        let message = Sent::read(message, version)?;
        let (mut blocking, mut wanted, mut push) = (true, Wanted::ALL, None);
        if let Some(configuration) = params.object("configuration")? {
            let configuration = Params(configuration);
            wanted = configuration.wanted()?;
            blocking = match version {
                Version::V03 => configuration.flag("blocking")?.unwrap_or(true),
                // A flag that is not set is not written.
                Version::V03Proto => configuration.flag("blocking")?.unwrap_or(false),
                Version::V10 => !configuration.flag("returnImmediately")?.unwrap_or(false),
            };
            // In 0.3, in its proto file, and in 1.0.
            for name in ["pushNotificationConfig", "pushNotification", "taskPushNotificationConfig"]
            {
                if let Some(config) = configuration.object(name)? {
                    push =
                        Some(PushConfig::read(Params(config), &format!("configuration.{name}"))?);
                }
            }
        }
        let outer = params.object("metadata")?;
        let tunnels = [outer, Some(&message.metadata)].into_iter().flatten();
        let given = |pause: &&Value| !pause.is_null();
        let tunnel =
            tunnels.filter_map(|metadata| metadata.get("harn")?.get("pause").filter(given)).next();
        let pause = tunnel.map(tunnelled).transpose()?;
        Ok(Self { message, blocking, wanted, pause, push })
    }
}

/// Reads a pause from the tunnel of an earlier implementation, whose names are spelled in its way.
fn tunnelled(pause: &Value) -> Result<Suspend, Error> {
    let fields = match pause {
        Value::Bool(true) => return Ok(Suspend::default()),
        Value::Object(fields) => Params(fields),
        _ => return Err(Error::invalid(Source::TUNNEL, "expected an object")),
    };
    let read = || {
        let conditions = fields.get("conditions").or_else(|| fields.get("resume_when"));
        Ok(Suspend {
            reason: fields.text("reason")?.map(str::to_owned),
            mode: mode(fields)?,
            resume_when: read_conditions(conditions, Spelling::Snake, "conditions")?,
            grace_ms: fields.number("grace_ms")?,
            ..Suspend::default()
        })
    };
    read().map_err(|error: Error| error.within(Source::TUNNEL))
}

/// Reads `tasks/pause`.
///
/// # Errors
/// A parameter is malformed.
pub fn pause(params: Params<'_>) -> Result<Suspend, Error> {
    let meta = params.object("metadata")?.filter(|metadata| !metadata.is_empty());
    Ok(Suspend {
        reason: params.text("reason")?.map(str::to_owned),
        mode: mode(params)?,
        resume_when: read_conditions(params.get("conditions"), Spelling::Camel, "conditions")?,
        grace_ms: params.number("graceMs")?,
        meta: meta.map(|metadata| metadata.clone().into()),
        ..Suspend::default()
    })
}

/// Reads `tasks/await_resumption`.
///
/// # Errors
/// A parameter is missing or malformed.
pub fn await_resumption(params: Params<'_>) -> Result<AwaitResumption, Error> {
    let reason = params.text("reason")?.ok_or_else(|| Error::invalid("reason", "is required"))?;
    let meta = params.object("metadata")?.filter(|metadata| !metadata.is_empty());
    Ok(AwaitResumption {
        reason: reason.to_owned(),
        conditions: read_conditions(params.get("conditions"), Spelling::Camel, "conditions")?,
        summary: params.text("summary")?.map(str::to_owned),
        meta: meta.map(|metadata| metadata.clone().into()),
    })
}

fn mode(params: Params<'_>) -> Result<Mode, Error> {
    let modes = [Mode::FinishStep, Mode::InterruptImmediate, Mode::WaitForCompletion];
    match params.text("mode")? {
        None => Ok(Mode::default()),
        Some(word) => modes.into_iter().find(|mode| mode.as_str() == word).ok_or_else(|| {
            let known = modes.map(Mode::as_str).join(", ");
            Error::invalid("mode", &format!("expected one of {known}, found {word:?}"))
        }),
    }
}

fn read_conditions(
    value: Option<&Value>,
    spelling: Spelling,
    path: &str,
) -> Result<Option<Conditions>, Error> {
    let parsed = value.map(|value| Conditions::parse(value, spelling)).transpose();
    parsed.map(Option::flatten).map_err(|invalid| {
        let invalid = invalid.within(path);
        Error::invalid(invalid.path, &invalid.problem)
    })
}

/// `tasks/resume`.
#[derive(Debug, Clone)]
pub struct Resume {
    /// The suspension that is meant.
    pub handle: Option<Handle>,
    /// What is fed to the agent.
    pub input: Option<Value>,
    /// Whether the next turn sees the whole transcript.
    pub continue_transcript: bool,
    /// Makes a retry harmless.
    pub key: Option<String>,
    /// What is added to the budget.
    pub budget: Option<AddBudget>,
    /// What the peer adds.
    pub metadata: Option<Value>,
}

impl Resume {
    /// Reads the parameters.
    ///
    /// # Errors
    /// One is malformed. A handle that is none is told as one of another suspension.
    pub fn read(params: Params<'_>) -> Result<Self, Error> {
        let handle = params.text("handle")?.map(|text| {
            text.parse::<Handle>().map_err(|_| {
                let given: String = text.chars().take(80).collect();
                let problem = format!("{given:?} does not name the suspension of this task");
                Error::new(crate::error::HANDLE_MISMATCH, "SUSPENSION_HANDLE_MISMATCH", problem)
            })
        });
        let metadata = params.object("metadata")?.map(|metadata| metadata.clone().into());
        Ok(Self {
            metadata,
            handle: handle.transpose()?,
            input: params.get("input").cloned(),
            continue_transcript: params.flag("continueTranscript")?.unwrap_or(true),
            key: params.text("idempotencyKey")?.map(str::to_owned),
            budget: params.object("addBudget")?.map(|add| budget(Params(add))).transpose()?,
        })
    }
}

fn budget(add: Params<'_>) -> Result<AddBudget, Error> {
    let wrong = |field: &str, problem: &str| Error::invalid(format!("addBudget{field}"), problem);
    let tokens = add.number("tokens").map_err(|_| wrong(".tokens", "expected a whole number"))?;
    let steps = add.number("steps").map_err(|_| wrong(".steps", "expected a whole number"))?;
    let (tokens, iterations) = (tokens.unwrap_or_default(), steps.unwrap_or_default());
    let usd =
        add.get("usd").map(|usd| usd.as_f64().ok_or_else(|| wrong(".usd", "expected a number")));
    let usd = usd.transpose()?;
    if tokens == 0 && iterations == 0 && usd.is_none() {
        return Err(wrong("", "expected usd, tokens or steps"));
    }
    let micros = usd.unwrap_or_default() * 1e6;
    let least = if usd.is_some() { 0.5 } else { 0.0 };
    if !(least..=1e15).contains(&micros) {
        return Err(wrong(".usd", "expected a positive amount"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was just found to be a positive number of moderate size"
    )]
    let cost_micro_usd = micros.round() as u64;
    Ok(AddBudget { cost_micro_usd, tokens, iterations })
}

/// In which state tasks are that are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedStatus {
    /// In any.
    Any,
    /// In this one.
    One(State),
    /// In one that no task is ever in: a task is working from its first commit on.
    Submitted,
}

impl WantedStatus {
    /// Reads the word of either version; nothing if there is no such state.
    fn read(word: &str) -> Option<Self> {
        match word {
            "TASK_STATE_UNSPECIFIED" | "unknown" => Some(Self::Any),
            "TASK_STATE_SUBMITTED" | "submitted" => Some(Self::Submitted),
            word => State::read(word).map(Self::One),
        }
    }

    /// Returns whether it is the state of a task.
    pub fn includes(self, shown: State) -> bool {
        match self {
            Self::Any => true,
            Self::One(state) => state == shown,
            Self::Submitted => false,
        }
    }
}

/// `tasks/list`.
#[derive(Debug, Clone)]
pub struct List {
    /// Only tasks of this context.
    pub context: Option<String>,
    /// In which state they are.
    pub status: WantedStatus,
    /// Only tasks that have come to where they stand at this time or later.
    pub since: Option<Timestamp>,
    /// How many a page has.
    pub page_size: usize,
    /// Where the page before ended.
    pub page_token: Option<String>,
    /// What is wanted of each task.
    pub wanted: Wanted,
}

impl List {
    /// Reads the parameters.
    ///
    /// # Errors
    /// One is malformed.
    pub fn read(params: Params<'_>) -> Result<Self, Error> {
        let status = params.text("status")?.map_or(Some(WantedStatus::Any), WantedStatus::read);
        let status = status.ok_or_else(|| Error::invalid("status", "expected a state"))?;
        let since = params.text("statusTimestampAfter")?;
        let since = since.map(|text| {
            Timestamp::parse(text)
                .map_err(|problem| Error::invalid("statusTimestampAfter", &problem))
        });
        let page_size = params.number("pageSize")?.unwrap_or(USUAL);
        if !(1..=MOST).contains(&page_size) {
            return Err(Error::invalid("pageSize", "expected a number from 1 to 100"));
        }
        let artifacts = params.flag("includeArtifacts")?.unwrap_or(false);
        Ok(Self {
            context: params.text("contextId")?.map(str::to_owned),
            status,
            since: since.transpose()?,
            page_size: usize::try_from(page_size).unwrap_or(usize::MAX),
            page_token: params.text("pageToken")?.map(str::to_owned),
            wanted: Wanted { history: Some(params.history_length()?.unwrap_or(0)), artifacts },
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused<T: std::fmt::Debug>(
        params: &Value,
        read: impl Fn(Params<'_>) -> Result<T, Error>,
    ) -> (i64, String) {
        let error = read(Params::read(params).unwrap()).unwrap_err();
        (
            error.code,
            error.details.get("path").and_then(Value::as_str).unwrap_or_default().to_owned(),
        )
    }

    #[test]
    fn a_pause_is_read_and_what_is_wrong_in_it_is_named() {
        let params = json!({ "taskId": "t", "reason": "operator review", "mode": "finish_step", "metadata": {} });
        let suspend = pause(Params::read(&params).unwrap()).unwrap();
        assert_eq!(
            (suspend.reason.as_deref(), suspend.mode),
            (Some("operator review"), Mode::FinishStep)
        );
        assert_eq!(suspend.meta, None, "nothing is echoed of nothing");
        for (params, path) in [
            (json!({ "mode": "soon" }), "mode"),
            (json!({ "reason": 7 }), "reason"),
            (json!({ "metadata": [] }), "metadata"),
            (json!({ "graceMs": -1 }), "graceMs"),
            (json!({ "conditions": { "onEvent": 1 } }), "conditions.onEvent"),
            (
                json!({ "conditions": { "timeout": { "durationMinutes": 1, "onTimeout": "x" } } }),
                "conditions.timeout.onTimeout",
            ),
        ] {
            assert_eq!(refused(&params, pause), (-32602, path.to_owned()), "{params}");
        }
        let error = Params::read(&params).unwrap().id().unwrap_err();
        assert_eq!(error.code, -32602);
    }

    #[test]
    fn an_await_is_read_and_what_is_wrong_in_it_is_named() {
        let params = json!({
            "taskId": "t", "reason": "waiting on ci/build:1234", "metadata": {},
            "conditions": { "onEvent": "ci.build.completed:1234",
                            "timeout": { "durationMinutes": 30, "onTimeout": "fail" } },
            "summary": "Paused on CI build 1234; ETA 3m.",
        });
        let wait = await_resumption(Params::read(&params).unwrap()).unwrap();
        assert_eq!(wait.reason, "waiting on ci/build:1234");
        assert_eq!(wait.summary.as_deref(), Some("Paused on CI build 1234; ETA 3m."));
        assert!(wait.conditions.is_some() && wait.meta.is_none());
        let on_timeout = json!({ "timeout": { "durationMinutes": 1, "onTimeout": "x" } });
        for (params, path) in [
            (json!({}), "reason"),
            (json!({ "reason": "" }), "reason"),
            (json!({ "reason": 7 }), "reason"),
            (json!({ "reason": "ci", "summary": 7 }), "summary"),
            (json!({ "reason": "ci", "metadata": [] }), "metadata"),
            (json!({ "reason": "ci", "conditions": on_timeout }), "conditions.timeout.onTimeout"),
        ] {
            assert_eq!(refused(&params, await_resumption), (-32602, path.to_owned()), "{params}");
        }
    }

    #[test]
    fn a_resume_is_read_and_null_is_absent() {
        let params = json!({ "taskId": "t", "handle": "suspend-019abf6b-7d51-7c1d-bb02-0123456789ab",
                             "input": null, "continueTranscript": true, "metadata": {} });
        let resume = Resume::read(Params::read(&params).unwrap()).unwrap();
        assert!(resume.input.is_none() && resume.continue_transcript && resume.handle.is_some());
        assert_eq!(refused(&json!({ "handle": "x" }), Resume::read).0, -32012);
        assert_eq!(
            refused(&json!({ "addBudget": {} }), Resume::read),
            (-32602, "addBudget".to_owned())
        );
        let raised = |add: Value| {
            let params = json!({ "addBudget": add });
            Resume::read(Params::read(&params).unwrap()).unwrap().budget.unwrap()
        };
        let both = AddBudget { cost_micro_usd: 1_500_000, tokens: 10, iterations: 0 };
        assert_eq!(raised(json!({ "usd": 1.5, "tokens": 10 })), both);
        let steps = AddBudget { iterations: 3, ..AddBudget::default() };
        assert_eq!(raised(json!({ "steps": 3 })), steps);
        assert_eq!(
            refused(&json!({ "addBudget": { "steps": "three" } }), Resume::read),
            (-32602, "addBudget.steps".to_owned())
        );
    }

    #[test]
    fn a_send_waits_unless_it_is_told_not_to_in_the_words_of_its_version() {
        let message = json!({ "messageId": "m", "parts": [{ "text": "x" }] });
        let blocking = |configuration: Value, version| {
            let params = json!({ "message": message, "configuration": configuration });
            Send::read(Params::read(&params).unwrap(), version).unwrap().blocking
        };
        assert!(blocking(json!({}), Version::V03) && blocking(json!({}), Version::V10));
        assert!(!blocking(json!({ "blocking": false }), Version::V03));
        assert!(!blocking(json!({ "returnImmediately": true }), Version::V10));
        let push = json!({ "message": message, "configuration": { "pushNotificationConfig": { "url": "" } } });
        let Err(error) = Send::read(Params::read(&push).unwrap(), Version::V03) else { panic!() };
        assert_eq!(error.details["path"], "configuration.pushNotificationConfig.url");
    }

    #[test]
    fn a_pause_in_the_tunnel_is_read_in_its_spelling() {
        let params = json!({ "message": {
            "messageId": "m", "parts": [{ "text": "x" }],
            "metadata": { "harn": { "pause": { "reason": "r", "conditions": { "on_event": "go" } } } },
        } });
        let pause =
            Send::read(Params::read(&params).unwrap(), Version::V03).unwrap().pause.unwrap();
        assert_eq!(pause.reason.as_deref(), Some("r"));
        assert_eq!(pause.resume_when.unwrap().on_event.unwrap().to_string(), "go");
        for (pause, path) in [
            (json!({ "reason": 7 }), "metadata.harn.pause.reason"),
            (json!({ "mode": "soon" }), "metadata.harn.pause.mode"),
            (json!({ "grace_ms": "x" }), "metadata.harn.pause.grace_ms"),
            (json!({ "conditions": { "on_event": 1 } }), "metadata.harn.pause.conditions.on_event"),
            (json!(7), "metadata.harn.pause"),
        ] {
            let mut params = params.clone();
            params["message"]["metadata"]["harn"]["pause"] = pause;
            let Err(error) = Send::read(Params::read(&params).unwrap(), Version::V03) else {
                panic!("{params} is taken")
            };
            assert_eq!((error.code, &error.details["path"]), (-32602, &json!(path)));
            assert!(error.problem.starts_with(path), "{}", error.problem);
        }
    }
}
