//! Entries: events as the journal holds them, with the decision they come from.
//!
//! The first entry of a decision carries its command and its facts, so that it can be decided
//! again. The entry of a suspension carries the whole state, and so do a session's last entry, the
//! entry of an export, and every 64th, so that loading a session is one read and a short fold.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::command::Command;
use crate::event::{Event, SessionImported, What};
use crate::facts::Facts;
use crate::json;
use crate::lifecycle::Founding;
use crate::rejected::Rejected;
use crate::session::{Session, State};

/// The version of the rules. Decisions taken under other rules may turn out differently today.
pub const RULES: u32 = 1;

/// The version of the state that suspensions carry. Version 1 had longer past suspensions.
const STATE_VERSION: u32 = 2;

/// A session that is not suspended for long has its state carried by every entry with this
/// multiple as its revision, so that loading it never folds more entries than these.
pub const STATE_EVERY: u64 = 64;

/// One entry of a session's journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Its place in the journal, from 1.
    pub revision: u64,
    /// What happened.
    pub event: Event,
    /// The decision it is the first event of; see [`Entry::decision`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    decision: Option<Box<RawValue>>,
    /// The state it comes after, on some entries; see [`Entry::state`].
    ///
    /// The one before and not the one after, because the event repeats what it adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Box<RawValue>>,
}

/// What was decided, and on what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The version of the rules.
    pub rules: u32,
    /// What was asked for.
    #[serde(flatten)]
    pub given: Given,
    /// What was known.
    pub facts: Facts,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Given {
    /// A session; what it is made from is what its first event says.
    Creation,
    /// Something of a session.
    Command(Command),
}

/// The state of a session, as a suspension carries it.
#[derive(Serialize, Deserialize)]
struct Stored<S> {
    v: u32,
    session: S,
}

/// A decision that is to be recorded: its events, and where they lead.
#[derive(Debug)]
pub struct Decided {
    /// The session after the events.
    pub session: Session,
    /// What happens; nothing if the command changes nothing.
    pub events: Vec<Event>,
    /// The state that each of the events carries.
    pub(crate) states: Vec<CarriedState>,
}

/// The state before an event, if the event's entry carries it.
#[derive(Debug)]
pub(crate) struct CarriedState(Result<Option<Box<RawValue>>, serde_json::Error>);

impl CarriedState {
    /// Returns what the entry of an event carries of the session that it happens to.
    pub(crate) fn of(event: &Event, before: &Session) -> Self {
        let carries_state = match &event.what {
            What::Suspended(_) | What::SessionEnded(_) => true,
            // What a record was made from, so that it can be made again.
            What::SuspensionEnded(ended) if ended.record.is_some() => true,
            _ => (before.revision + 1).is_multiple_of(STATE_EVERY),
        };
        let stored = Stored { v: STATE_VERSION, session: before };
        Self(carries_state.then(|| raw(&stored)).transpose())
    }
}

/// Why an entry cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The entry is not what this program or an older one wrote.
    #[error("journal entry cannot be read")]
    Malformed(#[from] serde_json::Error),
    /// A program that knows more wrote the state.
    #[error("state version {0} is newer than this program")]
    NewerState(u32),
    /// A program that knows more wrote the entry.
    #[error("it has an entry of the kind {0:?}, which is newer than this program")]
    NewerKind(String),
}

impl Entry {
    /// Turns the creation of a session into entries, and returns the session.
    ///
    /// Returns nothing if the events do not begin a session.
    ///
    /// # Errors
    /// Only if a value cannot be encoded, which no value of this crate does.
    pub fn record_creation(
        decision: &Decision,
        events: Vec<Event>,
    ) -> Result<Option<(Vec<Self>, Session)>, serde_json::Error> {
        let mut rest = events.iter();
        let Some(mut session) = rest.next().and_then(Session::born) else { return Ok(None) };
        let mut states = vec![CarriedState(Ok(None))];
        for event in rest {
            states.push(CarriedState::of(event, &session));
            session.evolve(event);
        }
        Self::record(decision, Decided { session, events, states }).map(Some)
    }

    /// Turns what was decided into entries, and returns the session they lead to.
    ///
    /// # Errors
    /// Only if a value cannot be encoded, which no value of this crate does.
    pub fn record(
        decision: &Decision,
        decided: Decided,
    ) -> Result<(Vec<Self>, Session), serde_json::Error> {
        let Decided { session, events, states } = decided;
        let before = session.revision.saturating_sub(events.len() as u64);
        let mut entries = Vec::with_capacity(events.len());
        for ((event, CarriedState(state)), revision) in
            events.into_iter().zip(states).zip(before + 1..)
        {
            let decision = if entries.is_empty() { Some(raw(decision)?) } else { None };
            entries.push(Self { revision, event, decision, state: state? });
        }
        Ok((entries, session))
    }

    /// Returns the entry's bytes.
    ///
    /// # Errors
    /// Only if a value cannot be encoded, which no value of this crate does.
    pub fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// The bytes are not an entry of this program or an older one.
    pub fn decode(bytes: &[u8]) -> Result<Self, ReadError> {
        json::stored(bytes).map_err(|error| match newer_kind(bytes) {
            Some(kind) => ReadError::NewerKind(kind),
            None => error.into(),
        })
    }

    /// Returns whether this entry is the first event of a decision.
    pub const fn begins_decision(&self) -> bool {
        self.decision.is_some()
    }

    /// Returns whether this entry carries a state, so that a fold can begin with it.
    pub const fn carries_state(&self) -> bool {
        self.state.is_some()
    }

    /// Returns the decision that this entry is the first event of.
    ///
    /// It is read only when asked for: an event stays readable for ever, a command as long as
    /// its rules are known.
    ///
    /// # Errors
    /// The decision was written by a program with other commands.
    pub fn decision(&self) -> Result<Option<Decision>, ReadError> {
        Ok(self.decision.as_deref().map(|raw| json::stored(raw.get().as_bytes())).transpose()?)
    }

    /// Takes the decision that this entry is the first event of again, on the session that was
    /// there before it. Returns nothing if this is not the first event of a decision.
    ///
    /// # Errors
    /// The decision cannot be read. That it is refused now is not an error but the result.
    pub fn again(
        &self,
        before: Option<&Session>,
    ) -> Result<Option<Result<Vec<Event>, Rejected>>, ReadError> {
        let Some(Decision { given, facts, .. }) = self.decision()? else { return Ok(None) };
        Ok(match (given, before, &self.event.what) {
            (Given::Creation, _, What::SessionCreated(created)) => {
                Some(Session::create(&facts, Founding::from(created.clone())))
            }
            (Given::Creation, _, What::SessionImported(imported)) => {
                Some(Session::import(&facts, SessionImported::clone(imported)))
            }
            (Given::Command(command), Some(session), _) => Some(session.decide(&facts, &command)),
            (Given::Creation, ..) | (Given::Command(_), None, _) => None,
        })
    }

    /// Returns the state that this entry leads to, if it carries the one before it.
    ///
    /// # Errors
    /// The state was written by a newer program, or is malformed.
    pub fn state(&self) -> Result<Option<Session>, ReadError> {
        let Some(mut session) = self.before()? else { return Ok(None) };
        session.evolve(&self.event);
        Ok(Some(session))
    }

    /// Returns the state that this entry comes after, if it carries that.
    ///
    /// # Errors
    /// The state was written by a newer program, or is malformed.
    pub fn before(&self) -> Result<Option<Session>, ReadError> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let Some(raw) = self.state.as_deref() else { return Ok(None) };
        let Version { v } = json::stored(raw.get().as_bytes())?;
        if v > STATE_VERSION {
            return Err(ReadError::NewerState(v));
        }
        let Stored { mut session, .. } = json::stored::<Stored<Session>>(raw.get().as_bytes())?;
        if let State::Suspended(suspended) = &mut session.state {
            suspended.park.pause.complete();
        }
        Ok(Some(session))
    }
}

impl Decision {
    /// A decision under the rules of today.
    pub const fn new(given: Given, facts: Facts) -> Self {
        Self { rules: RULES, given, facts }
    }
}

/// Returns the kind of an entry that this program does not know, if that is what is wrong with it.
fn newer_kind(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        event: BTreeMap<String, IgnoredAny>,
    }
    let Named { event } = json::stored(bytes).ok()?;
    event.into_keys().find(|key| key.contains('/') && !What::knows(key))
}

fn raw<T: Serialize>(value: &T) -> Result<Box<RawValue>, serde_json::Error> {
    serde_json::value::to_raw_value(value)
}
