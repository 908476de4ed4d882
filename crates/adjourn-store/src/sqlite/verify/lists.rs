//! The tables that queries find sessions by for their whole life, compared with the journal.

use std::collections::BTreeSet;

use adjourn_core::event::{SessionImported, What};
use adjourn_core::id::{RunId, SessionId};
use rusqlite::types::FromSql;
use rusqlite::{OptionalExtension as _, params};

use super::{Fault, Stop, Verification};
use crate::fold::{decode, founding_marks};
use crate::rows::{Journal as _, SessionNo, Sessions as _};
use crate::sqlite::rows::{SqliteRows, unsigned};

/// How many marks and runs the journals of sessions lead to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    marks: u64,
    runs: u64,
}

impl Found {
    pub(super) const fn add(&mut self, other: Self) {
        self.marks += other.marks;
        self.runs += other.runs;
    }
}

impl Verification<'_> {
    /// Checks that a session is found by what an entry of its journal says; returns by how much.
    pub(super) fn is_found_by(
        &self,
        (id, no): (SessionId, SessionNo),
        revision: u64,
        body: &[u8],
    ) -> Result<Found, Stop> {
        let mut found = Found::default();
        if !self.has_lists {
            return Ok(found);
        }
        if revision == 1 {
            let sql = "SELECT 1 FROM mark WHERE what = ?1 AND session = ?2";
            let mut statement = self.connection.prepare_cached(sql)?;
            for mark in founding_marks(id, body).into_iter().collect::<BTreeSet<_>>() {
                if !statement.exists(params![mark, no.0])? {
                    return Err(Fault::Marks(id).into());
                }
                found.marks += 1;
            }
        }
        if let Some(run) = run_of(id, body).or_else(|| imported_run(id, body)) {
            let sql = "SELECT session FROM run WHERE id = ?1";
            let mut statement = self.connection.prepare_cached(sql)?;
            let of: Option<i64> =
                statement.query_row([run.uuid().as_bytes()], |row| row.get(0)).optional()?;
            let Some(of) = of else { return Err(Fault::Runs(id).into()) };
            if of == no.0 {
                found.runs += 1;
            } else if !self.has_ended(no)? && !self.came_from(id, body, of)? {
                // A session that was exported has its run go on in another one. Before the row of a
                // run moved with it, it stayed with the session that it was exported from.
                return Err(Fault::Runs(id).into());
            }
        }
        Ok(found)
    }

    /// Returns whether an entry takes in a session that went on from another one of this store.
    fn came_from(&self, id: SessionId, body: &[u8], other: i64) -> Result<bool, Stop> {
        let Some(imported) = imported(id, body) else { return Ok(false) };
        let sql = "SELECT 1 FROM session WHERE no = ?1 AND id = ?2";
        let origin = imported.from.session.uuid().into_bytes();
        Ok(self.connection.prepare_cached(sql)?.exists(params![other, origin])?)
    }

    /// Returns whether a session has ended, as its row says, which is compared with its journal.
    fn has_ended(&self, no: SessionNo) -> Result<bool, Stop> {
        let sql = "SELECT 1 FROM session WHERE no = ?1 AND state = 5";
        Ok(self.connection.prepare_cached(sql)?.exists([no.0])?)
    }

    /// Checks that there are no other marks and runs than those that were found. What is left of
    /// sessions that were erased leads nowhere, and cannot be compared.
    pub(super) fn no_others(&self, found: Found) -> Result<(), Stop> {
        if !self.has_lists {
            return Ok(());
        }
        let count = |table| -> Result<u64, Stop> {
            let sql = format!(
                "SELECT count(*) FROM {table} LEFT JOIN session ON no = session
                 WHERE pruned IS NOT 1"
            );
            Ok(unsigned(self.connection.query_row(&sql, [], |row| row.get(0))?))
        };
        if count("mark")? != found.marks {
            let other = self.other("mark", "what", |id, body, mark: &String| {
                founding_marks(id, body).contains(mark)
            })?;
            other.map_or(Ok(()), |id| Err(Fault::Marks(id)))?;
        }
        if count("run")? != found.runs {
            let other = self.other("run", "run.id", |id, body, run: &[u8; 16]| {
                let known = run_of(id, body).or_else(|| imported_run(id, body));
                known.is_some_and(|known| known.uuid().as_bytes() == run)
            })?;
            other.map_or(Ok(()), |id| Err(Fault::Runs(id)))?;
        }
        Ok(())
    }

    /// Returns a session with a row in a table that no entry of its journal leads to.
    fn other<T: FromSql>(
        &self,
        table: &'static str,
        key: &str,
        leads_to: impl Fn(SessionId, &[u8], &T) -> bool,
    ) -> Result<Option<SessionId>, Stop> {
        let sql = format!(
            "SELECT session, {key} FROM {table} LEFT JOIN session ON no = session
             WHERE pruned IS NOT 1"
        );
        let mut statement = self.connection.prepare(&sql)?;
        let mut found = statement.query([])?;
        let mut rows = SqliteRows::reading(self.connection);
        while let Some(row) = found.next()? {
            let (number, key): (i64, T) = (row.get(0)?, row.get(1)?);
            let Some(session) = rows.session_by_no(SessionNo(number))? else {
                return Err(Fault::Stray { what: table, number }.into());
            };
            let (mut next, mut is_known) = (Some(session.head), false);
            while let Some(no) = next.filter(|_| !is_known) {
                let Some(entry) = rows.entry(no)? else { break };
                next = entry.prev;
                is_known = entry.body.is_some_and(|body| leads_to(session.id, &body, &key));
            }
            if !is_known {
                return Ok(Some(session.id));
            }
        }
        Ok(None)
    }
}

/// Returns the run that an entry starts. Most start none, and reading one takes longer than looking
/// for the word.
fn run_of(session: SessionId, body: &[u8]) -> Option<RunId> {
    match what(session, body, b"run_started/")? {
        What::RunStarted(started) => Some(started.run),
        _ => None,
    }
}

/// Returns the run that an entry takes in from elsewhere.
fn imported_run(session: SessionId, body: &[u8]) -> Option<RunId> {
    imported(session, body)?.state.run().map(|run| run.id)
}

/// Returns what an entry takes in from elsewhere.
fn imported(session: SessionId, body: &[u8]) -> Option<Box<SessionImported>> {
    match what(session, body, b"session_imported/")? {
        What::SessionImported(imported) => Some(imported),
        _ => None,
    }
}

/// Returns what an entry says, if it has a word.
fn what(session: SessionId, body: &[u8], word: &[u8]) -> Option<What> {
    if !body.windows(word.len()).any(|part| part == word) {
        return None;
    }
    decode(session, body).map(|entry| entry.event.what).ok()
}
