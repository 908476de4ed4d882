//! Pauses: what is asked for, what is in force, and how it ended.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::actor::{Actor, Face};
use crate::arrival::Arrival;
use crate::carry::Limit;
use crate::command::{Mode, Question, Requester};
use crate::conditions::{Conditions, Due};
use crate::event::SuspendJoined;
use crate::facts::SpanLinks;
use crate::id::{Handle, Seq};
use crate::json::beside::{self, beside, required};
use crate::ledger::CallId;
use crate::session::Phase;
use crate::time::Timestamp;

/// A client's pause that is accepted and not yet in force.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingPause {
    /// What was asked for.
    #[serde(flatten)]
    pub pause: Box<Pause>,
    /// How soon.
    pub mode: Mode,
    /// When calls in flight are abandoned; without it they may go on for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abandon_at: Option<Timestamp>,
}

beside! {
    PendingPauseFields {
        "mode" => mode: Mode,
        "abandonAt" => abandon_at: Option<Timestamp>,
    }
}

impl<'de> Deserialize<'de> for PendingPause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (pause, fields) = beside::read(deserializer)?;
        let PendingPauseFields { mode, abandon_at } = fields;
        Ok(Self { pause, mode: required(mode, "mode")?, abandon_at: abandon_at.flatten() })
    }
}

/// One pause: what is asked for, from the request on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    /// Its name.
    pub handle: Handle,
    /// Whose wish it is.
    pub initiator: Initiator,
    /// What it waits for.
    pub wait: Wait,
    /// The reason for it, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether no client made it: the session lost its host, with calls of unknown outcome.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_interrupted: bool,
    /// What wakes it, besides an explicit resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    /// Events younger than this count.
    pub window: Seq,
    /// What the agent wants shown meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The call that the wake report answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The limit that caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// The actor who asked for it.
    pub by: Actor,
    /// The callers who want it.
    #[serde(default)]
    pub requesters: Requesters,
    /// The first who joined it over another face.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<Box<Joined>>,
    /// Those who joined it over another face after the first, without their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined_later: Vec<Joined>,
    /// What the caller wants echoed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
    /// The spans that a resume links to.
    #[serde(flatten)]
    pub spans: SpanLinks,
}

beside! {
    PauseFields {
        "handle" => handle: Handle,
        "initiator" => initiator: Initiator,
        "wait" => wait: Wait,
        "reason" => reason: Option<String>,
        "hostInterrupted" => host_interrupted: bool,
        "conditions" => conditions: Option<Conditions>,
        "window" => window: Seq,
        "summary" => summary: Option<String>,
        "call" => call: Option<CallId>,
        "limit" => limit: Option<Limit>,
        "requestedAt" => requested_at: Timestamp,
        "by" => by: Actor,
        "requesters" => requesters: Requesters,
        "joined" => joined: Option<Box<Joined>>,
        "joinedLater" => joined_later: Vec<Joined>,
        "meta" => meta: Option<Value>,
    }
}

impl<'de> Deserialize<'de> for Pause {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (spans, fields): (_, PauseFields) = beside::read(deserializer)?;
        Ok(Self {
            handle: required(fields.handle, "handle")?,
            initiator: required(fields.initiator, "initiator")?,
            wait: required(fields.wait, "wait")?,
            reason: fields.reason.flatten(),
            host_interrupted: fields.host_interrupted.unwrap_or_default(),
            conditions: fields.conditions.flatten(),
            window: required(fields.window, "window")?,
            summary: fields.summary.flatten(),
            call: fields.call.flatten(),
            limit: fields.limit.flatten(),
            requested_at: required(fields.requested_at, "requestedAt")?,
            by: required(fields.by, "by")?,
            requesters: fields.requesters.unwrap_or_default(),
            joined: fields.joined.flatten(),
            joined_later: fields.joined_later.unwrap_or_default(),
            meta: fields.meta.flatten(),
            spans,
        })
    }
}

impl Pause {
    /// The word that is shown as the reason of a pause that no client made.
    pub const HOST_INTERRUPTED: &str = "host_interrupted";

    /// Returns whether a client wants this pause: then only that client's ways end it.
    pub fn is_clients(&self) -> bool {
        self.initiator == Initiator::Client && !self.host_interrupted
    }

    /// Returns whether it asks a person for more of the budget: a question that a resume answers with
    /// more of that, in words or without any.
    pub fn asks_for_budget(&self) -> bool {
        matches!(self.wait, Wait::Question(_)) && self.limit == Some(Limit::BudgetExceeded)
    }

    /// Fills in what older programs left to the reason: that no client made this pause.
    ///
    /// A client may give the same word as its reason, but is then among the requesters.
    pub(crate) fn complete(&mut self) {
        self.host_interrupted |= self.initiator == Initiator::Client
            && self.requesters == Requesters::default()
            && self.reason.as_deref() == Some(Self::HOST_INTERRUPTED);
    }

    /// Lets a caller join it; what no client made is that caller's from then on.
    pub(crate) fn join(&mut self, by: &Actor, joined: &SuspendJoined) {
        self.requesters.join(joined.requester);
        if std::mem::take(&mut self.host_interrupted) {
            self.by = by.clone();
            self.reason.clone_from(&joined.reason);
        } else if self.is_from_elsewhere(by.face, joined.requester) {
            self.join_from_elsewhere(by, joined);
        }
    }

    /// Remembers a caller of another face, because a message over this pause's face does not speak
    /// for that caller.
    fn join_from_elsewhere(&mut self, by: &Actor, joined: &SuspendJoined) {
        // A caller whose name is not kept cannot leave.
        let leaves = |requester: &Requester| self.requesters.named.contains(requester);
        let requester = joined.requester.filter(leaves);
        let mut others = self.joined.as_deref().into_iter().chain(&self.joined_later);
        // One who cannot leave stands for all who join later, so that the list has an end.
        if others.any(|other| other.requester.is_none() || other.requester == requester) {
            return;
        }
        let by = by.clone();
        match self.joined {
            None => {
                let reason = joined.reason.clone();
                self.joined = Some(Box::new(Joined { by, reason, requester }));
            }
            Some(_) => self.joined_later.push(Joined { by, reason: None, requester }),
        }
    }

    /// Returns whether a caller who joins is the first of another face: then its reason is kept.
    pub(crate) fn is_new_to(&self, face: Face, requester: Option<Requester>) -> bool {
        self.joined.is_none() && self.is_from_elsewhere(face, requester)
    }

    /// Returns whether a caller is of another face; a panic is not, because its gate speaks for it.
    fn is_from_elsewhere(&self, face: Face, requester: Option<Requester>) -> bool {
        self.by.face != face && !matches!(requester, Some(Requester::Gate(_)))
    }

    /// Lets a caller leave it.
    pub(crate) fn leave(&mut self, requester: Requester) {
        self.requesters.leave(requester);
        let others = self.joined.take().map(|first| *first).into_iter();
        let mut others = others
            .chain(std::mem::take(&mut self.joined_later))
            .filter(|other| other.requester != Some(requester));
        self.joined = others.next().map(Box::new);
        self.joined_later = others.collect();
    }
}

/// A caller who wants a pause that was made over another face: a message over that face does not
/// speak for this one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Joined {
    /// The actor who joined.
    pub by: Actor,
    /// The reason that they gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The call with which they joined, by which they may leave; without it they cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requester: Option<Requester>,
}

/// Everybody who wants a pause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Requesters {
    /// Those who can be told apart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<Requester>,
    /// How many cannot withdraw: they gave no name, or came after the names ran out.
    #[serde(skip_serializing_if = "is_zero")]
    pub unnamed: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Requesters {
    pub(crate) fn of(requester: Option<Requester>) -> Self {
        let mut requesters = Self::default();
        requesters.join(requester);
        requesters
    }

    pub(crate) fn join(&mut self, requester: Option<Requester>) {
        match requester {
            Some(requester) if self.named.contains(&requester) => {}
            Some(requester) if self.named.len() < crate::limits::REQUESTERS => {
                self.named.push(requester);
            }
            Some(_) | None => self.unnamed = self.unnamed.saturating_add(1),
        }
    }

    pub(crate) fn leave(&mut self, requester: Requester) {
        self.named.retain(|named| *named != requester);
    }

    /// Returns whether one caller alone wants the pause.
    pub(crate) const fn is_single(&self) -> bool {
        matches!((self.named.len(), self.unnamed), (0, 1) | (1, 0))
    }

    /// Returns whether `requester` is the only one.
    pub(crate) fn is_only(&self, requester: Requester) -> bool {
        self.unnamed == 0 && self.named == [requester]
    }
}

/// Whose wish a suspension is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initiator {
    /// An outside authority: caller, operator, policy, panic, recovery of a dead host.
    Client,
    /// The agent or its own recovery.
    Agent,
}

/// What a suspension waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// A resume or a condition.
    Open,
    /// A person's answer.
    Question(Question),
}

/// A pause in force.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parked {
    /// What was asked for.
    #[serde(flatten)]
    pub pause: Box<Pause>,
    /// When it took effect.
    pub suspended_at: Timestamp,
    /// When a deadline acts, and which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Due>,
}

beside! {
    ParkedFields {
        "suspendedAt" => suspended_at: Timestamp,
        "due" => due: Option<Due>,
    }
}

impl<'de> Deserialize<'de> for Parked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (pause, ParkedFields { suspended_at, due }) = beside::read(deserializer)?;
        let suspended_at = required(suspended_at, "suspendedAt")?;
        Ok(Self { pause, suspended_at, due: due.flatten() })
    }
}

/// What ended a wait: an event or a deadline.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fired {
    /// An event.
    Event(Arrival),
    /// A deadline.
    Deadline(Due),
}

/// Why a session woke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// A caller asked for it.
    ExplicitResume,
    /// A condition held.
    ConditionFired,
    /// A deadline passed.
    Timeout,
    /// The host or a policy decided it, or an event was addressed to the session.
    ExternalEvent,
}

impl Cause {
    /// All causes, in the order of the documents that name them.
    pub const ALL: [Self; 4] =
        [Self::ExplicitResume, Self::ConditionFired, Self::Timeout, Self::ExternalEvent];

    /// Returns the word for this cause on every wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ExplicitResume => "explicit_resume",
            Self::ConditionFired => "condition_fired",
            Self::Timeout => "timeout",
            Self::ExternalEvent => "external_event",
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One resume, as callers are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resumption {
    /// The suspension, or the hold, that it ended.
    pub handle: Handle,
    /// What woke the session.
    pub cause: Cause,
    /// Whether a value was fed.
    pub had_resume_input: bool,
    /// Whether the next turn sees the whole transcript.
    pub continue_transcript: bool,
    /// The time of the resume.
    pub resumed_at: Timestamp,
    /// Whose pause it was.
    pub initiator: Initiator,
    /// Where the session stands behind it.
    pub then: Phase,
}

/// What became of a suspension.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastSuspension {
    /// The suspension.
    pub handle: Handle,
    /// What became of it.
    pub fate: Fate,
    /// The time at which that was known.
    pub at: Timestamp,
    /// The actor who did that.
    pub by: Actor,
}

/// How a suspension ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// It was resumed.
    Resumed(Cause),
    /// It was withdrawn before it took effect.
    Withdrawn,
    /// Its run was canceled.
    Canceled,
    /// Its deadline failed the run.
    Failed,
    /// Its session was closed.
    Closed,
    /// It goes on elsewhere, with a portable record.
    Exported,
}
