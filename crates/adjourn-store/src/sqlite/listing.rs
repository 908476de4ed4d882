//! The tables that queries find sessions by: how far they follow the journal, and how a store that
//! was made without them gets them.

use std::collections::{BTreeSet, HashSet};

use adjourn_core::event::What;
use adjourn_core::id::SessionId;
use adjourn_core::time::Timestamp;
use rusqlite::{Connection, params};
use uuid::Uuid;

use super::rows::{SqliteRows, kind_of_row, unsigned};
use super::schema;
use crate::cache::Cache;
use crate::error::Error;
use crate::fold::{decode, fold, founding_marks};
use crate::query::{StateKind, indexed};
use crate::rows::{Batch, EntryNo, SessionNo, Sessions as _, Stands};

/// What the journal has behind the list.
pub(super) struct Tail {
    /// How many entries there are.
    pub(super) entries: u64,
    /// The sessions that these are of; nothing if they are too many to look at.
    pub(super) sessions: Option<HashSet<i64>>,
}

/// How many entries behind the list a query looks at by itself: some ten milliseconds' worth.
pub(super) const TAIL: u64 = 8192;

/// Returns how many entries of the journal the list does not know yet; none in a file that has no
/// list.
pub(super) fn behind(connection: &Connection) -> Result<u64, Error> {
    if schema::version(connection)? < schema::LISTING {
        return Ok(0);
    }
    let sql = "SELECT (SELECT coalesce(max(no), 0) FROM journal)
                   - (SELECT seq FROM progress WHERE what = 'listed')";
    Ok(unsigned(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?))
}

/// Returns what the journal has behind the list.
pub(super) fn tail(connection: &Connection) -> Result<Tail, Error> {
    let entries = behind(connection)?;
    if entries > TAIL {
        return Ok(Tail { entries, sessions: None });
    }
    let mut statement = connection.prepare_cached(IN_TAIL)?;
    let sessions = statement.query_map([], |row| row.get(0))?;
    Ok(Tail { entries, sessions: Some(sessions.collect::<Result<_, _>>()?) })
}

/// The sessions of the entries behind the list.
pub(super) const IN_TAIL: &str = "SELECT session FROM journal
     WHERE no > (SELECT seq FROM progress WHERE what = 'listed')";

/// How much goes into a batch: as many entries as are read in a few milliseconds, and as many
/// sessions as are written in two or three.
const ENTRIES: i64 = 4096;
const SESSIONS: usize = 256;

/// Reads the next batch for the list; nothing if it is up to the journal.
pub(super) fn next(connection: &Connection, cache: &Cache) -> Result<Option<Batch>, Error> {
    let sql = "SELECT seq FROM progress WHERE what = 'listed'";
    let from: i64 = connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
    let sql = "SELECT no, session FROM journal WHERE no > ?1 ORDER BY no LIMIT ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut entries = statement.query([from, ENTRIES])?;
    let (mut to, mut numbers) = (from, BTreeSet::new());
    while let Some(entry) = entries.next()? {
        to = entry.get(0)?;
        numbers.insert(SessionNo(entry.get(1)?));
        if numbers.len() == SESSIONS {
            break;
        }
    }
    drop(entries);
    let mut sessions = Vec::with_capacity(numbers.len());
    for no in numbers {
        sessions.extend(stands(connection, cache, no)?.map(|stands| (no, stands)));
    }
    let (from, to) = (EntryNo(from), EntryNo(to));
    Ok((to > from).then_some(Batch { from, to, sessions }))
}

/// Reads how a session stands; of one that cannot be read, what its row says.
fn stands(connection: &Connection, cache: &Cache, no: SessionNo) -> Result<Option<Stands>, Error> {
    let mut rows = SqliteRows::reading(connection);
    let Some(row) = rows.session_by_no(no)? else { return Ok(None) };
    // What is only listed must not take the place of what is at work.
    match fold(&row, cache.get(no), &mut rows) {
        Ok(session) => {
            let reason = session.pause_reason().map(|reason| indexed(reason).to_owned());
            Ok(Some(Stands { state: StateKind::of(&session), at: session.at, reason }))
        }
        Err(error) if error.is_of_a_session() => {
            let sql = "SELECT state, at FROM session WHERE no = ?1";
            let (state, at): (i64, i64) = connection
                .prepare_cached(sql)?
                .query_row([no.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let at = Timestamp::from_millis(at);
            Ok(kind_of_row(state).map(|state| Stands { state, at, reason: None }))
        }
        Err(error) => Err(error),
    }
}

/// Enters what sessions are found by for their whole life, and their runs, in a store whose sessions
/// were made before there was a place for it. How they stand is listed as the journal is followed.
pub(super) fn fill(connection: &Connection) -> Result<(), Error> {
    let mut sessions = connection.prepare("SELECT id FROM session WHERE no = ?1")?;
    let mut mark =
        connection.prepare("INSERT OR IGNORE INTO mark (what, session) VALUES (?1, ?2)")?;
    let mut run = connection.prepare("INSERT OR IGNORE INTO run (id, session) VALUES (?1, ?2)")?;
    let sql = "SELECT session, revision, body FROM journal
               WHERE body IS NOT NULL AND (revision = 1 OR instr(body, ?1) > 0) ORDER BY no";
    let mut entries = connection.prepare(sql)?;
    // Most entries start no run, and reading one takes longer than looking for the word.
    let mut entries = entries.query([b"run_started/".as_slice()])?;
    while let Some(entry) = entries.next()? {
        let (no, revision): (i64, i64) = (entry.get(0)?, entry.get(1)?);
        let body = entry.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
        let Ok(id) = sessions.query_row([no], |row| row.get(0)) else { continue };
        let id = SessionId::new(Uuid::from_bytes(id));
        if revision == 1 {
            for what in founding_marks(id, body) {
                mark.execute(params![what, no])?;
            }
        }
        // One that cannot be read is named when it is looked at; it must not keep a store shut.
        if let Ok(What::RunStarted(started)) = decode(id, body).map(|entry| entry.event.what) {
            run.execute(params![started.run.uuid().as_bytes(), no])?;
        }
    }
    Ok(())
}
