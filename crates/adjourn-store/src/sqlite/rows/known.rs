//! What the writer's connection has read or written and need not read again.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use adjourn_core::id::{HostId, Seq, SessionId};
use rusqlite::Connection;

use super::sessions::Thin;
use crate::error::Error;
use crate::rows::{EntryNo, GateRow, HostRow, SessionNo, SessionRow};

/// Rows of a kind that are known at most; with more of them, all are forgotten.
const ROWS: usize = 4096;

/// What commands need again and again: it holds as long as no other connection has changed the
/// file, and none of the writer's own jobs was undone.
#[derive(Default)]
pub(in crate::sqlite) struct Known {
    /// The version of the file that it holds for, as SQLite counts what other connections commit.
    version: Cell<Option<i64>>,
    /// The number of the last event.
    pub(super) high: Cell<Option<Seq>>,
    /// The number of the last entry of all journals.
    pub(super) last_entry: Cell<Option<EntryNo>>,
    pub(super) gates: RefCell<Option<Vec<GateRow>>>,
    /// What hosts say about themselves.
    hosts: RefCell<HashMap<HostId, String>>,
    sessions: RefCell<HashMap<SessionId, Row>>,
    /// How many entries of a session lie in `recent`, and their bytes.
    recent: RefCell<HashMap<SessionNo, (usize, usize)>>,
}

/// The row of a session.
struct Row {
    row: SessionRow,
    /// The rest of it, if the writer has written it.
    thin: Option<Thin>,
}

impl Known {
    /// Forgets what other connections have changed; called when a write transaction begins.
    pub(in crate::sqlite) fn begin(&self, connection: &Connection) -> Result<(), Error> {
        let mut statement = connection.prepare_cached("PRAGMA data_version")?;
        let version = Some(statement.query_row([], |row| row.get(0))?);
        if self.version.get() != version {
            self.forget();
            self.version.set(version);
        }
        Ok(())
    }

    /// Forgets all of it: something that was written may be undone, or was not kept here.
    pub(in crate::sqlite) fn forget(&self) {
        self.version.set(None);
        self.high.set(None);
        self.last_entry.set(None);
        self.gates.replace(None);
        self.hosts.borrow_mut().clear();
        self.sessions.borrow_mut().clear();
        self.recent.borrow_mut().clear();
    }

    /// Returns whether the row of a host is as it would be written.
    pub(super) fn has_host(&self, host: &HostRow) -> bool {
        self.hosts.borrow().get(&host.id).is_some_and(|about| *about == host.about)
    }

    pub(super) fn keep_host(&self, host: &HostRow) {
        keep(&mut self.hosts.borrow_mut(), host.id, host.about.clone());
    }

    pub(super) fn forget_host(&self, id: HostId) {
        self.hosts.borrow_mut().remove(&id);
    }

    pub(super) fn session(&self, id: SessionId) -> Option<SessionRow> {
        self.sessions.borrow().get(&id).map(|known| known.row.clone())
    }

    /// Returns the rest of a session's row.
    pub(super) fn thin(&self, id: SessionId) -> Option<Thin> {
        self.sessions.borrow().get(&id)?.thin.clone()
    }

    pub(super) fn keep_session(&self, row: &SessionRow, thin: Option<Thin>) {
        keep(&mut self.sessions.borrow_mut(), row.id, Row { row: row.clone(), thin });
    }

    pub(super) fn recent(&self, session: SessionNo) -> Option<(usize, usize)> {
        self.recent.borrow().get(&session).copied()
    }

    pub(super) fn keep_recent(&self, session: SessionNo, entries: usize, bytes: usize) {
        keep(&mut self.recent.borrow_mut(), session, (entries, bytes));
    }

    /// Forgets what lies in `recent`: some of it was dropped.
    pub(super) fn forget_recent(&self) {
        self.recent.borrow_mut().clear();
    }
}

fn keep<K: std::hash::Hash + Eq, V>(known: &mut HashMap<K, V>, key: K, value: V) {
    // Which of them are in use cannot be told cheaply; those that are come back at once.
    if known.len() >= ROWS && !known.contains_key(&key) {
        known.clear();
    }
    known.insert(key, value);
}
