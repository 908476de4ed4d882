//! What a back end must be able to store and find: rows, without rules.
//!
//! Everything that decides lives in `transaction.rs`, once for all back ends. A back end
//! only keeps what it is told, inside the transaction it was opened for.

mod recipients;

use std::collections::BTreeSet;

use adjourn_core::Session;
use adjourn_core::arrival::Arrival;
use adjourn_core::conditions::{Key, Names};
use adjourn_core::facts::{Answered, Gate};
use adjourn_core::id::{GateId, HostId, RunId, Seq, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_record::Hash;
use adjourn_record::chain::Tip;

use crate::error::Error;
use crate::query::StateKind;
use crate::transaction::Erased;

pub use recipients::{Of, OpenRecipient, RecipientRow, Recipients, Telling, Told};

/// The number of a session within one store: short, for keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionNo(pub i64);

/// The number of a tenant within one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantNo(pub i64);

/// The number of a journal entry within one store, dense from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryNo(pub i64);

/// What is known of a session without reading its journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The number of the session in this store.
    pub no: SessionNo,
    /// The id of the session.
    pub id: SessionId,
    /// Its tenant's number.
    pub tenant: TenantNo,
    /// Its last journal entry.
    pub head: EntryNo,
    /// How far its hash chain goes.
    pub tip: Tip,
}

/// One journal entry as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow {
    /// The session that the entry belongs to.
    pub session: SessionNo,
    /// Its place in the session's journal.
    pub revision: u64,
    /// The session's entry before it.
    pub prev: Option<EntryNo>,
    /// Its link in the session's hash chain.
    pub link: Hash,
    /// Its bytes; none if it was pruned.
    pub body: Option<Vec<u8>>,
}

impl EntryRow {
    /// Returns where it stands in its chain.
    pub(crate) const fn tip(&self) -> Tip {
        Tip { revision: self.revision, link: self.link }
    }
}

/// An event as it comes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// The id its source gave it.
    pub id: String,
    /// Where it comes from.
    pub source: String,
    /// What happened, as a dotted name.
    pub name: String,
    /// What it happened to.
    pub subject: Option<String>,
    /// When it happened, as its source says.
    pub time: Timestamp,
    /// The tenant whose sessions may hear of it.
    pub tenant: String,
    /// The session it is addressed to.
    pub session: Option<SessionId>,
    /// What there is to say about it, as JSON text.
    pub data: Option<String>,
}

/// Where the delivery of events has got to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The event being delivered, or delivered last.
    pub seq: Seq,
    /// The last session it was delivered to; `None` if it is done with.
    pub session: Option<SessionNo>,
}

impl Cursor {
    /// Returns the last event that is done with.
    pub const fn done(self) -> Seq {
        match self.session {
            Some(_) => Seq(self.seq.0.saturating_sub(1)),
            None => self.seq,
        }
    }
}

/// Which sessions a gate is laid over.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Scope {
    /// Only this tenant's sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Only sessions with all of these labels.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub labels: std::collections::BTreeMap<String, String>,
    /// Only this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

impl Scope {
    /// Returns whether a session is in this scope.
    pub fn includes(&self, session: &Session) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| *tenant == session.tenant)
            && self.session.is_none_or(|id| id == session.id)
            && self.labels.iter().all(|(key, value)| session.labels.get(key) == Some(value))
    }
}

/// A gate, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRow {
    /// The gate, as the sessions under it are told of it.
    pub gate: Gate,
    /// The sessions that the gate is laid over.
    pub scope: Scope,
    /// The time at which the gate was laid.
    pub at: Timestamp,
}

/// How much is dropped at once: what it takes to drop it depends on rows and on bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// The number of rows that may be dropped.
    pub rows: usize,
    /// The number of bytes that these rows may have together.
    pub bytes: usize,
}

impl Portion {
    /// Returns whether nothing is left of it.
    pub const fn is_used_up(self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    /// Takes a row of so many bytes from it.
    pub const fn take(&mut self, bytes: usize) {
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A host that was there when it last said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRow {
    /// The id of the host.
    pub id: HostId,
    /// When it started.
    pub since: Timestamp,
    /// What it says about itself, as JSON text.
    pub about: String,
}

/// The rows of a store, inside one write transaction.
pub trait Rows:
    Sessions + Journal + Waits + Events + Answers + Gates + Hosts + Removal + Recipients + Listing
{
}

impl<T> Rows for T where
    T: Sessions
        + Journal
        + Waits
        + Events
        + Answers
        + Gates
        + Hosts
        + Removal
        + Recipients
        + Listing
{
}

/// The thin rows of sessions, and their tenants.
pub trait Sessions {
    /// Finds a session.
    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error>;
    /// Finds a session by its number.
    fn session_by_no(&mut self, no: SessionNo) -> Result<Option<SessionRow>, Error>;
    /// Returns a tenant's name.
    fn tenant_name(&mut self, tenant: TenantNo) -> Result<String, Error>;
    /// Returns the number of a tenant, making one if it is new.
    fn tenant(&mut self, name: &str) -> Result<TenantNo, Error>;
    /// Adds a session that has no journal yet, and what it is found by for its whole life.
    fn add_session(
        &mut self,
        session: &Session,
        tenant: TenantNo,
        marks: &[String],
    ) -> Result<SessionNo, Error>;
    /// Returns an open session of a tenant with a mark, if there is one.
    fn open_with(&mut self, tenant: TenantNo, mark: &str) -> Result<Option<SessionId>, Error>;
    /// Returns the session with a mark, whatever has become of it, if there is one.
    fn ever_with(&mut self, mark: &str) -> Result<Option<SessionId>, Error>;
    /// Brings the thin row up to the state.
    fn set_session(&mut self, row: &SessionRow, session: &Session) -> Result<(), Error>;
    /// Returns sessions whose deadline is not later than `now`, the earliest first.
    fn due(&mut self, now: Timestamp, limit: usize) -> Result<Vec<SessionNo>, Error>;
    /// Returns the earliest deadline.
    fn next_due(&mut self) -> Result<Option<Timestamp>, Error>;
    /// Returns sessions that a host drives, after `after`, at most `limit`.
    fn owned(&mut self, after: SessionNo, limit: usize) -> Result<Vec<SessionNo>, Error>;
    /// Returns sessions that a gate wants stopped, after `after`, at most `limit`.
    fn gated(&mut self, after: SessionNo, limit: usize) -> Result<Vec<SessionNo>, Error>;
    /// Returns sessions that a host owns and that are not marked as unreadable, at most `limit`.
    fn owned_by(&mut self, host: HostId, limit: usize) -> Result<Vec<SessionNo>, Error>;
    /// Takes note that the host of a session that cannot be read drives it no more.
    fn set_let_go(&mut self, session: SessionNo) -> Result<(), Error>;
    /// Returns whether no host is known to drive a session, by its row alone.
    fn is_let_go(&mut self, session: SessionNo) -> Result<bool, Error>;
}

/// The journals, and what was said.
pub trait Journal {
    /// Reads a journal entry.
    fn entry(&mut self, no: EntryNo) -> Result<Option<EntryRow>, Error>;
    /// Reads where a journal entry stands in its chain, without its bytes.
    fn tip(&mut self, no: EntryNo) -> Result<Option<Tip>, Error>;
    /// Appends a journal entry.
    fn add_entry(&mut self, entry: EntryRow) -> Result<EntryNo, Error>;
    /// Appends to a session's transcript, from the place `at` on.
    fn add_said(&mut self, session: SessionNo, at: u64, said: &[Vec<u8>]) -> Result<(), Error>;
}

/// What sessions wait for, and which of them lag.
pub trait Waits {
    /// Replaces the keys under which a session can be found.
    fn subscribe(
        &mut self,
        row: &SessionRow,
        old: &BTreeSet<Key>,
        new: &BTreeSet<Key>,
    ) -> Result<(), Error>;
    /// Takes a session from every key under which it can be found, whatever they are.
    fn unsubscribe(&mut self, row: &SessionRow) -> Result<(), Error>;
    /// Counts the waits of a tenant that no name leads to.
    fn keyless_waits(&mut self, tenant: TenantNo) -> Result<u64, Error>;
    /// Returns sessions that may wait for an event, after `after`, in order, at most `limit`.
    fn waiting(
        &mut self,
        tenant: TenantNo,
        keys: &[Key],
        after: SessionNo,
        limit: usize,
    ) -> Result<Vec<SessionNo>, Error>;
    /// Returns whether there are sessions that have not heard all that was delivered.
    fn some_lag(&mut self) -> Result<bool, Error>;
    /// Returns whether a session has not heard all that was delivered.
    fn lags(&mut self, session: SessionNo) -> Result<bool, Error>;
    /// Returns sessions that lag and can be read, each with the last event it was shown, at most
    /// `limit`.
    fn lagging(&mut self, limit: usize) -> Result<Vec<(SessionNo, Seq)>, Error>;
    /// Lets a session lag from `heard` on, or from where it does already if that is earlier.
    fn set_lagging(&mut self, session: SessionNo, heard: Seq) -> Result<(), Error>;
    /// Keeps how far a session that lags has got.
    fn set_heard(&mut self, session: SessionNo, heard: Seq) -> Result<(), Error>;
    /// A session lags no more.
    fn set_caught_up(&mut self, session: SessionNo) -> Result<(), Error>;
    /// Marks a session that cannot be read: it lags from `heard` on and is not due; what it waits
    /// for stays.
    fn set_unreadable(
        &mut self,
        session: SessionNo,
        heard: Seq,
        at: Timestamp,
    ) -> Result<(), Error>;
    /// Takes the mark off a session: it only lags.
    fn set_readable(&mut self, session: SessionNo) -> Result<(), Error>;
}

/// Events, and how far they are delivered.
pub trait Events {
    /// Stores an event, or returns the number under which the same event is stored already.
    fn add_event(
        &mut self,
        tenant: TenantNo,
        event: &NewEvent,
        at: Timestamp,
    ) -> Result<(Seq, bool), Error>;
    /// Returns the number of the last event.
    fn high(&mut self) -> Result<Seq, Error>;
    /// Returns what an event carries.
    fn event_data(&mut self, seq: Seq) -> Result<Option<String>, Error>;
    /// Returns the event after `seq`, and whose it is.
    fn event_after(&mut self, seq: Seq) -> Result<Option<(TenantNo, Arrival)>, Error>;
    /// Returns a tenant's events after one and up to another with such names, in order, at most
    /// `limit`.
    fn events_named(
        &mut self,
        tenant: TenantNo,
        after: Seq,
        until: Seq,
        names: Names<'_>,
        limit: usize,
    ) -> Result<Vec<Arrival>, Error>;
    /// Returns a tenant's first event after `seq` that is addressed to a session.
    fn event_addressed(
        &mut self,
        tenant: TenantNo,
        session: SessionId,
        after: Seq,
    ) -> Result<Option<Arrival>, Error>;
    /// Returns where delivery has got to.
    fn cursor(&mut self) -> Result<Cursor, Error>;
    /// Keeps where delivery has got to.
    fn set_cursor(&mut self, cursor: Cursor) -> Result<(), Error>;
}

/// First answers to idempotency keys, and ids of messages.
///
/// A session takes a message of an id once. A tenant takes what has a key once, whichever of its
/// sessions it goes to.
pub trait Answers {
    /// Returns the first answer to an idempotency key.
    fn answered(&mut self, session: SessionNo, key: &str) -> Result<Option<Answered>, Error>;
    /// Keeps the first answer to an idempotency key.
    fn keep_answer(
        &mut self,
        session: SessionNo,
        key: &str,
        answered: &Answered,
        at: Timestamp,
    ) -> Result<(), Error>;
    /// Gives a session the answers and the messages of another one, which it goes on with.
    fn go_on_answering(&mut self, from: SessionNo, to: SessionNo) -> Result<(), Error>;
    /// Returns whether a message was taken before.
    fn message_seen(&mut self, session: SessionNo, id: &str) -> Result<bool, Error>;
    /// Remembers a message.
    fn keep_message(&mut self, session: SessionNo, id: &str, at: Timestamp) -> Result<(), Error>;
    /// Returns the session that took what a tenant takes once under a key.
    fn taken(&mut self, tenant: TenantNo, key: &str) -> Result<Option<SessionId>, Error>;
    /// Remembers which session took it.
    fn keep_taken(
        &mut self,
        tenant: TenantNo,
        key: &str,
        session: SessionId,
        at: Timestamp,
    ) -> Result<(), Error>;
}

/// Gates.
pub trait Gates {
    /// Returns the gates in force.
    fn gates(&mut self) -> Result<Vec<GateRow>, Error>;
    /// Lays a gate.
    fn add_gate(&mut self, gate: &GateRow) -> Result<(), Error>;
    /// Removes a gate, and returns whether it was there.
    fn remove_gate(&mut self, id: GateId) -> Result<bool, Error>;
}

/// Hosts.
pub trait Hosts {
    /// Announces a host, or what it says about itself now.
    fn add_host(&mut self, host: &HostRow) -> Result<(), Error>;
    /// Returns the hosts that were announced.
    fn hosts(&mut self) -> Result<Vec<HostRow>, Error>;
    /// Forgets a host.
    fn remove_host(&mut self, id: HostId) -> Result<(), Error>;
}

/// What is dropped, and what is to be.
pub trait Removal {
    /// Returns ended sessions with a journal to prune that have not changed since `before`.
    fn prunable(&mut self, before: Timestamp, limit: usize) -> Result<Vec<SessionNo>, Error>;
    /// Returns idle sessions that were never prompted and have not changed since `before`.
    fn unprompted(&mut self, before: Timestamp, limit: usize) -> Result<Vec<SessionNo>, Error>;
    /// Takes note that a session was prompted, or has ended without it.
    fn set_prompted(&mut self, session: SessionNo) -> Result<(), Error>;
    /// Returns sessions that are being erased, at most `limit`.
    fn erasing(&mut self, limit: usize) -> Result<Vec<SessionNo>, Error>;
    /// Begins to erase an ended session, unless that has begun: its first entry loses its body, so
    /// that it counts as gone. Returns how many bodies went.
    fn begin_erasing(&mut self, row: &SessionRow) -> Result<u64, Error>;
    /// Drops a portion of the transcript of a session that is being erased, and of the bodies of
    /// all entries but its last, whose links stay. Takes what it drops from the portion.
    fn erase(&mut self, session: SessionNo, portion: &mut Portion) -> Result<Erased, Error>;
    /// Gives room that is free back to the file system, at most `pages` of it.
    fn give_back(&mut self, pages: u32) -> Result<(), Error>;
    /// Drops events acknowledged before `before` that are delivered and that no open turn's window
    /// and no session that lags reaches back to, at most a portion. Sessions that cannot be read
    /// since before `unreadable` do not count.
    fn prune_events(
        &mut self,
        before: Timestamp,
        unreadable: Timestamp,
        portion: &mut Portion,
    ) -> Result<u64, Error>;
    /// Drops answers and message ids kept since before `before`, at most `limit`.
    fn prune_answers(&mut self, before: Timestamp, limit: usize) -> Result<u64, Error>;
}

/// What queries find sessions by, beside what they are created with.
pub trait Listing {
    /// Takes note that a run belongs to a session from now on: one that is taken in again goes on in
    /// the session that is made for it.
    fn add_run(&mut self, run: RunId, session: SessionNo) -> Result<(), Error>;
    /// Returns the session that a run belongs to; nothing if none is known to.
    fn session_with_run(&mut self, run: RunId) -> Result<Option<SessionNo>, Error>;
    /// Enters a batch into the list of how sessions stand, unless the list has got further.
    fn enter(&mut self, batch: &Batch) -> Result<(), Error>;
}

/// How the sessions stand that the journal has changed since their list was last brought up.
///
/// It is read without the write lock: what changes meanwhile is behind it in the journal, and comes
/// with the next batch.
#[derive(Debug)]
pub struct Batch {
    /// The last entry that the list knows.
    pub from: EntryNo,
    /// The last entry that it knows with this batch.
    pub to: EntryNo,
    /// How the sessions of the entries between them stand.
    pub sessions: Vec<(SessionNo, Stands)>,
}

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stands {
    /// The state of the session.
    pub state: StateKind,
    /// When it last changed.
    pub at: Timestamp,
    /// The reason of its pause; nothing of a session that cannot be read.
    pub reason: Option<String>,
}
