//! What a decision may know besides the session and the command.
//!
//! A transaction fills [`Facts`] from what it commits to, so that the decision holds when it is
//! durable. [`Needs`] tells it, before it decides, what there is to look up.

use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::arrival::Arrival;
use crate::conditions::Conditions;
use crate::id::{GateId, Handle, RunId, Seq, SessionId};
use crate::session::{Resumption, Session, Suspended};
use crate::time::Timestamp;
use crate::transcript::Digest;

/// Everything a decision takes from outside.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// The wall clock, as it was read; an entry's own time never goes backwards.
    pub now: Timestamp,
    /// Who gave the command.
    pub by: Actor,
    /// Ids made for this decision, should it need them.
    pub fresh: Fresh,
    /// The gates that the session is in the scope of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// For each look-back in [`Needs`], the first event that it finds, as far as a transaction
    /// looks. What lies behind that is delivered after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<Arrival>,
    /// The sequence of the last acknowledged event.
    #[serde(default)]
    pub high: Seq,
    /// What was answered to the command's idempotency key before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<Answered>,
    /// How many waits of the tenant can be found under no name; counted if [`Needs`] asks for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub keyless_waits: u64,
    /// Whether the command's message id was taken before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub message_seen: bool,
    /// The traces the command belongs to.
    #[serde(flatten)]
    pub spans: SpanLinks,
}

impl Facts {
    /// The least that every decision needs.
    pub const fn new(now: Timestamp, by: Actor, fresh: Fresh) -> Self {
        Self {
            now,
            by,
            fresh,
            gates: Vec::new(),
            arrivals: Vec::new(),
            high: Seq(0),
            answered: None,
            keyless_waits: 0,
            message_seen: false,
            spans: SpanLinks { prior: None, pipeline: None },
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Ids that a decision may give away; a decision that needs none wastes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fresh {
    /// Names a suspension, should one begin.
    pub handle: Handle,
    /// Names a run, should one begin.
    pub run: RunId,
}

/// A panic over a scope that includes the session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// Its id.
    pub id: GateId,
    /// Why it was laid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Who laid it.
    pub by: Actor,
}

/// The first answer to an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The digest of what was asked.
    pub body: Digest,
    /// The run that was under way when it was, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// What was answered.
    pub answer: Answer,
}

/// What a resume did.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It ended a suspension, or lifted a hold.
    Resumed(Resumption),
    /// It took back a suspend that was not yet in force.
    Withdrawn {
        /// The suspension that was taken back.
        handle: Handle,
        /// The time at which it was.
        at: Timestamp,
    },
}

/// The spans that a suspension remembers, so that its resume can link to them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SpanLinks {
    /// The span of the suspend itself.
    #[serde(rename = "priorSpanLink", default, skip_serializing_if = "Option::is_none")]
    pub prior: Option<SpanLink>,
    /// The span that was current when the suspend was asked for.
    #[serde(rename = "pipelineSpanLink", default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<SpanLink>,
}

impl SpanLinks {
    /// Reads the span that was current when something was asked for, as `traceparent` has it; there
    /// is none if it is malformed.
    pub fn of_traceparent(traceparent: Option<&str>) -> Self {
        let current = traceparent.and_then(|parent| {
            let mut parts = parent.trim().split('-');
            let (_, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
            let hex = |text: &str, length| {
                text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
            };
            let valid = hex(trace, 32) && hex(span, 16);
            valid.then(|| SpanLink { trace_id: trace.to_owned(), span_id: span.to_owned() })
        });
        Self { prior: None, pipeline: current }
    }
}

/// A span to link to, in W3C trace context terms.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpanLink {
    /// The trace, 32 hex digits.
    pub trace_id: String,
    /// The span, 16 hex digits.
    pub span_id: String,
}

/// What a transaction must look up before a command can be decided.
///
/// Besides these, it always fills in the clock, fresh ids, the gates in scope and the number of
/// the last event.
#[derive(Debug, Default)]
pub struct Needs<'a> {
    /// An idempotency key to find the first answer to.
    pub key: Option<&'a str>,
    /// A message id to look for.
    pub message_id: Option<&'a str>,
    /// Whether the tenant's waits that no name leads to are to be counted.
    pub keyless_waits: bool,
    /// Waits that may begin with this decision: each wants the first event it would have missed.
    pub look_backs: Vec<LookBack<'a>>,
}

/// A search for the first event that a wait must not miss.
#[derive(Debug, Clone, Copy)]
pub struct LookBack<'a> {
    /// Only events younger than this count.
    pub window: Seq,
    /// Which of them.
    pub sought: Sought<'a>,
}

/// Which events a look-back is for.
#[derive(Debug, Clone, Copy)]
pub enum Sought<'a> {
    /// Those that meet a wait's conditions.
    Matching(&'a Conditions),
    /// Those addressed to the session.
    Addressed(SessionId),
}

impl LookBack<'_> {
    /// Returns whether this is an event that is looked for.
    pub fn finds(&self, arrival: &Arrival) -> bool {
        arrival.seq > self.window
            && match self.sought {
                Sought::Matching(conditions) => conditions.matches(arrival.view()),
                Sought::Addressed(session) => arrival.session == Some(session),
            }
    }
}

impl Session {
    /// Returns the searches for what the waits of a suspension have missed, if the last event that
    /// they were shown is `heard`.
    pub fn missed(&self, heard: Seq) -> Vec<LookBack<'_>> {
        let mut needs = Needs::default();
        for parked in self.suspended().into_iter().flat_map(Suspended::waits) {
            let window = parked.pause.window.max(heard);
            needs.wait(window, parked.pause.conditions.as_ref(), self.id);
        }
        needs.look_backs
    }
}

impl<'a> Needs<'a> {
    /// Adds the searches of a wait of the agent in `session`, which an event can call by its name.
    pub(crate) fn wait(
        &mut self,
        window: Seq,
        conditions: Option<&'a Conditions>,
        session: SessionId,
    ) {
        self.pause(window, conditions);
        self.look_backs.push(LookBack { window, sought: Sought::Addressed(session) });
    }

    /// Adds the search of a client's pause.
    pub(crate) fn pause(&mut self, window: Seq, conditions: Option<&'a Conditions>) {
        let matching = conditions.map(Sought::Matching);
        self.look_backs.extend(matching.map(|sought| LookBack { window, sought }));
    }
}
