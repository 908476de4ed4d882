//! A session in the words that every face and the command line use, spelled once.

use serde::Serialize;

use crate::carry::Totals;
use crate::conditions::Conditions;
use crate::id::{Handle, RunId, Seq, SessionId};
use crate::ledger::CallState;
use crate::session::{
    Cause, Fired, Initiator, Outcome, Parked, Pause, Phase, Session, State, Suspended, Wait,
};
use crate::time::Timestamp;

/// What there is to say about a session: one JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status<'a> {
    /// Which session.
    pub session_id: SessionId,
    /// The run under way, or the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// `idle`, `ready`, `running`, `quiescing`, `suspended` or `ended`.
    pub state: &'static str,
    /// `requested`, `quiescing` or `canceling` while it comes to rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// How the last run ended, while none is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What went wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    /// The pause that is pending or in force.
    #[serde(flatten)]
    pub pause: Option<PauseStatus<'a>>,
    /// The last wake, unless a prompt has begun another run since.
    #[serde(flatten)]
    pub woke: Option<WokeStatus>,
    /// Calls in flight: what a pause waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<&'a str>,
    /// Calls whose outcome is unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown_calls: Vec<&'a str>,
    /// What it has used.
    pub totals: Totals,
}

/// A pause, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PauseStatus<'a> {
    /// Its handle.
    pub handle: Handle,
    /// Whose wish it is.
    pub initiator: Initiator,
    /// `open` or `question`.
    pub wait: &'static str,
    /// The reason for the pause, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// When it took effect; absent while it is pending.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rfc3339_option")]
    pub suspended_at: Option<Timestamp>,
    /// What wakes it, besides a resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_when: Option<&'a Conditions>,
    /// When a deadline acts.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rfc3339_option")]
    pub due_at: Option<Timestamp>,
    /// One sentence to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<&'a str>,
    /// What one should know to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<&'a str>,
    /// Answers to choose from.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub choices: &'a [String],
    /// The failure that made a recovery ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub originating_failure_kind: Option<&'a str>,
    /// The agent's own suspension, while a hold lies over it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Handle>,
}

/// The agent's own wait, while a hold lies over it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldStatus<'a> {
    /// What it waits for.
    #[serde(flatten)]
    pub pause: PauseStatus<'a>,
    /// What it waited for and has come: it acts when the hold is lifted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fired: Option<FiredStatus<'a>>,
}

/// What has ended a wait, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FiredStatus<'a> {
    /// `event` or `deadline`.
    pub by: &'static str,
    /// When the event happened, as its source says, or when the deadline was.
    #[serde(serialize_with = "rfc3339")]
    pub at: Timestamp,
    /// The event's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// What happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// To what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<&'a str>,
    /// The id that its source gave it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    /// Where it comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<&'a str>,
}

/// The last wake, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WokeStatus {
    /// What woke the session.
    pub cause: Cause,
    /// Whether a value was fed.
    pub had_resume_input: bool,
    /// Whether the turn sees the whole transcript.
    pub continue_transcript: bool,
    /// The time of the resume.
    #[serde(serialize_with = "rfc3339")]
    pub resumed_at: Timestamp,
}

fn rfc3339<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(time)
}

fn rfc3339_option<S: serde::Serializer>(
    time: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(time),
        None => serializer.serialize_none(),
    }
}

impl Session {
    /// Returns what there is to say about the session.
    pub fn status(&self) -> Status<'_> {
        let idle = self.run().is_none();
        let phase = self.phase();
        let tools = |state: CallState| {
            let open = self.calls.iter().filter(move |open| open.state == state);
            open.map(|open| open.call.tool.as_str()).collect()
        };
        Status {
            session_id: self.id,
            run_id: self.run().map(|run| run.id).or(self.last_run.as_ref().map(|last| last.id)),
            state: self.state.name(),
            phase: matches!(self.state, State::Quiescing(_)).then_some(phase),
            outcome: self.last_run.as_ref().filter(|_| idle).map(|last| last.outcome),
            error: self.last_run.as_ref().filter(|_| idle).and_then(|last| last.error.as_deref()),
            pause: self.pause_status(),
            woke: self.woke.as_ref().map(|woke| WokeStatus {
                cause: woke.cause,
                had_resume_input: woke.had_resume_input,
                continue_transcript: woke.continue_transcript,
                resumed_at: woke.resumed_at,
            }),
            in_flight: tools(CallState::Dispatched),
            unknown_calls: tools(CallState::Unknown),
            totals: self.totals,
        }
    }

    /// Returns the agent's own wait, while a hold lies over it.
    pub fn held_status(&self) -> Option<HeldStatus<'_>> {
        let Suspended { park, hold: Some(_), fired, .. } = self.suspended()? else { return None };
        let fired = fired.as_ref().map(FiredStatus::of);
        Some(HeldStatus { pause: one(&park.pause, Some(park)), fired })
    }

    fn pause_status(&self) -> Option<PauseStatus<'_>> {
        let suspended = self.suspended();
        let shown = suspended.map(Suspended::shown);
        let pause = match shown {
            Some(shown) => &shown.pause,
            None => self.pending_pause()?,
        };
        let status = one(pause, shown);
        Some(PauseStatus {
            summary: self.summary().filter(|_| status.question.is_none()),
            held: suspended
                .filter(|suspended| suspended.hold.is_some())
                .map(|suspended| suspended.park.pause.handle),
            ..status
        })
    }
}

impl<'a> FiredStatus<'a> {
    fn of(fired: &'a Fired) -> Self {
        let (by, at, arrival) = match fired {
            Fired::Event(arrival) => ("event", arrival.time, Some(arrival)),
            Fired::Deadline(due) => ("deadline", due.at, None),
        };
        Self {
            by,
            at,
            seq: arrival.map(|arrival| arrival.seq),
            name: arrival.map(|arrival| arrival.name.as_str()),
            subject: arrival.and_then(|arrival| arrival.subject.as_deref()),
            id: arrival.map(|arrival| arrival.id.as_str()),
            source: arrival.map(|arrival| arrival.source.as_str()),
        }
    }
}

/// Returns what there is to say about one pause, whatever lies over it or under it.
fn one<'a>(pause: &'a Pause, parked: Option<&Parked>) -> PauseStatus<'a> {
    let question = match &pause.wait {
        Wait::Open => None,
        Wait::Question(question) => Some(question),
    };
    PauseStatus {
        handle: pause.handle,
        initiator: pause.initiator,
        wait: if question.is_some() { "question" } else { "open" },
        reason: pause.reason.as_deref(),
        suspended_at: parked.map(|parked| parked.suspended_at),
        resume_when: pause.conditions.as_ref(),
        due_at: parked.and_then(|parked| parked.due).map(|due| due.at),
        summary: pause.summary.clone(),
        question: question.map(|question| question.question.as_str()),
        context: question.and_then(|question| question.context.as_deref()),
        choices: question.map(|question| question.choices.as_slice()).unwrap_or_default(),
        originating_failure_kind: question
            .and_then(|question| question.originating_failure_kind.as_deref()),
        held: None,
    }
}

impl State {
    /// Returns the state's name on every wire.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Ready(_) => "ready",
            Self::Running(_) => "running",
            Self::Quiescing(_) => "quiescing",
            Self::Suspended(_) => "suspended",
            Self::Ended(_) => "ended",
        }
    }
}
