//! What queries find sessions by, beside their rows.

use adjourn_core::id::RunId;
use rusqlite::{OptionalExtension as _, params};

use super::SqliteRows;
use crate::error::Error;
use crate::query::{StateKind, indexed};
use crate::rows::{Batch, Listing, SessionNo, Stands};

impl Listing for SqliteRows<'_> {
    fn add_run(&mut self, run: RunId, session: SessionNo) -> Result<(), Error> {
        let sql = "INSERT OR REPLACE INTO run (id, session) VALUES (?1, ?2)";
        self.write(sql, [run.uuid().into_bytes().into(), session.0.into()])
    }

    fn session_with_run(&mut self, run: RunId) -> Result<Option<SessionNo>, Error> {
        let mut statement = self.prepare("SELECT session FROM run WHERE id = ?1")?;
        let no = statement.query_row([run.uuid().as_bytes()], |row| row.get(0)).optional()?;
        Ok(no.map(SessionNo))
    }

    fn enter(&mut self, batch: &Batch) -> Result<(), Error> {
        let sql = "UPDATE progress SET seq = ?2 WHERE what = 'listed' AND seq = ?1";
        // Another process was faster.
        if self.run(sql, [batch.from.0, batch.to.0])? == 0 {
            return Ok(());
        }
        let sql = "INSERT INTO listing (session, state, at, reason)
                   SELECT ?1, ?2, ?3, ?4 FROM session WHERE no = ?1 AND pruned = 0
                   ON CONFLICT (session) DO UPDATE
                       SET state = excluded.state, at = excluded.at, reason = excluded.reason";
        for (no, Stands { state, at, reason }) in &batch.sessions {
            let reason = reason.as_deref().map(indexed);
            self.run(sql, params![no.0, listed_code(*state), at.as_millis(), reason])?;
        }
        Ok(())
    }
}

/// The states as the list has them.
pub(in crate::sqlite) const fn listed_code(state: StateKind) -> i64 {
    match state {
        StateKind::Asking => 6,
        other => row_code(other),
    }
}

/// The states as the thin row has them, which does not know what a session is parked with.
pub(in crate::sqlite) const fn row_code(state: StateKind) -> i64 {
    match state {
        StateKind::Idle => 0,
        StateKind::Ready => 1,
        StateKind::Running => 2,
        StateKind::Quiescing => 3,
        StateKind::Suspended | StateKind::Asking => 4,
        StateKind::Ended => 5,
    }
}

/// The state that the thin row of a session names.
pub(in crate::sqlite) fn kind_of_row(code: i64) -> Option<StateKind> {
    StateKind::ALL.into_iter().find(|state| row_code(*state) == code)
}
