//! The tool-call ledger: every call a model asked for, until its answer is in the transcript.
//!
//! `asked → dispatched → returned`, or `deferred`, `not_run`, `unknown`. A call that returned
//! leaves the ledger with its result; one that did not stays until the model is told what became
//! of it. So no call dangles, whatever ends a step.

use serde::{Deserialize, Deserializer, Serialize};

use crate::json::beside::{self, beside, required};
use crate::transcript::Digest;

/// The id a model gave to a call.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(pub String);

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&str> for CallId {
    fn from(id: &str) -> Self {
        Self(id.to_owned())
    }
}

/// A tool call that a model asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedCall {
    /// The id the model gave it.
    pub id: CallId,
    /// The tool's name.
    pub tool: String,
    /// The number of the transcript entry that has its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// The digest of that entry. Calls that were asked for before it was kept have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Whether the tool declares that running it twice does no harm.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// Whether a person has to allow it first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permission: bool,
    /// Whether it waits for the calls before it, and does not run if their outcome is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_order: bool,
    /// Whether the agent runs it by itself: no host defers it, starts it or runs it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_agent: bool,
}

impl AskedCall {
    /// Makes a call that a host may run at once, and only once.
    pub fn new(id: CallId, tool: impl Into<String>) -> Self {
        Self {
            id,
            tool: tool.into(),
            entry: None,
            digest: None,
            idempotent: false,
            permission: false,
            in_order: false,
            by_agent: false,
        }
    }
}

/// Where an open call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// The model asked for it; nothing has started.
    Asked,
    /// It was started, or was about to be, when that was last made durable.
    Dispatched,
    /// It is the call by which the agent parked itself; the wake report answers it.
    Waiting,
    /// A suspension came before it started; the resume decides.
    Deferred,
    /// It did not run, and the model is to be told so.
    NotRun,
    /// It was started and how it ended is not known; the model is to be told so.
    Unknown,
}

/// A call without an answer in the transcript.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenCall {
    /// What was asked for.
    #[serde(flatten)]
    pub call: AskedCall,
    /// How far the call has come, as far as that is known.
    pub state: CallState,
    /// Whether it was ever started: if it does not run now, its outcome is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub started: bool,
}

beside! {
    OpenCallFields {
        "state" => state: CallState,
        "started" => started: bool,
    }
}

impl<'de> Deserialize<'de> for OpenCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (call, OpenCallFields { state, started }) = beside::read(deserializer)?;
        Ok(Self { call, state: required(state, "state")?, started: started.unwrap_or_default() })
    }
}

/// The open calls of a session, in the order in which they were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ledger(Vec<OpenCall>);

impl Ledger {
    /// Returns the open calls.
    pub fn iter(&self) -> impl Iterator<Item = &OpenCall> {
        self.0.iter()
    }

    /// Returns how many calls are open.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether every call is answered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the ids of the calls that stand at `state`.
    pub fn at(&self, state: CallState) -> Vec<CallId> {
        self.0.iter().filter(|open| open.state == state).map(|open| open.call.id.clone()).collect()
    }

    /// Returns the ids of the calls that stand at `state`: those never started, and those started
    /// once and asked for again.
    pub fn split(&self, state: CallState) -> (Vec<CallId>, Vec<CallId>) {
        let (started, fresh): (Vec<_>, Vec<_>) =
            self.0.iter().filter(|open| open.state == state).partition(|open| open.started);
        let ids = |calls: Vec<&OpenCall>| calls.iter().map(|open| open.call.id.clone()).collect();
        (ids(fresh), ids(started))
    }

    /// Returns the ids of the calls at `state` that the agent runs by itself.
    pub fn by_agent(&self, state: CallState) -> Vec<CallId> {
        let own = self.0.iter().filter(|open| open.call.by_agent && open.state == state);
        own.map(|open| open.call.id.clone()).collect()
    }

    /// Returns whether any call stands at `state`.
    pub fn any(&self, state: CallState) -> bool {
        self.0.iter().any(|open| open.state == state)
    }

    /// Returns an open call.
    pub fn get(&self, id: &CallId) -> Option<&OpenCall> {
        self.0.iter().find(|open| open.call.id == *id)
    }

    pub(crate) fn ask(&mut self, call: AskedCall) {
        self.0.push(OpenCall { call, state: CallState::Asked, started: false });
    }

    pub(crate) fn set(&mut self, ids: &[CallId], state: CallState) {
        for open in &mut self.0 {
            if ids.contains(&open.call.id) {
                open.state = state;
                open.started |= state == CallState::Dispatched;
            }
        }
    }

    pub(crate) fn close(&mut self, id: &CallId) -> Option<AskedCall> {
        let index = self.0.iter().position(|open| open.call.id == *id)?;
        Some(self.0.remove(index).call)
    }

    /// Drops the calls that the model has been told about by now.
    pub(crate) fn told(&mut self, waiting_too: bool) {
        self.0.retain(|open| match open.state {
            CallState::NotRun | CallState::Unknown => false,
            CallState::Waiting => !waiting_too,
            CallState::Asked | CallState::Dispatched | CallState::Deferred => true,
        });
    }

    /// Settles what is left when a run ends: the next run's model is told.
    pub(crate) fn run_ended(&mut self) {
        for open in &mut self.0 {
            open.state = match open.state {
                CallState::Dispatched | CallState::Unknown => CallState::Unknown,
                _ if open.started => CallState::Unknown,
                CallState::Asked | CallState::Waiting | CallState::Deferred | CallState::NotRun => {
                    CallState::NotRun
                }
            };
        }
    }
}
