//! How many sessions there are in which state, and what waits for a host: read off counts, and not
//! off the sessions.

use std::collections::{BTreeMap, HashSet};

use adjourn_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};

use super::listing::{self, Tail};
use super::rows::{SqliteRows, listed_code, row_code, state_name, unsigned};
use super::schema;
use crate::error::Error;
use crate::query::StateKind;
use crate::rows::{Events as _, SessionNo};
use crate::store::{Standing, Tally};

/// The states as the list has them: 6 is a session that is parked and asks.
const STATES: [i64; 7] = [0, 1, 2, 3, 4, 5, 6];

/// How many sessions the list has in a state.
pub(super) const COUNT: &str = "SELECT count FROM standing WHERE state = ?1";
/// The sessions of the list in a state, those first that have not changed for the longest time.
pub(super) const STALEST: &str = "SELECT session, at FROM listing INDEXED BY listing_at
     WHERE state = ?1 ORDER BY at";
/// How the list knows a session.
pub(super) const LISTED: &str = "SELECT state FROM listing WHERE session = ?1";
/// The deadlines that have passed.
pub(super) const OVERDUE: &str =
    "SELECT count(*), min(due) FROM session WHERE due IS NOT NULL AND due <= ?1";
/// How a session stands, unless it was erased.
const STANDS: &str = "SELECT state, at FROM session WHERE no = ?1 AND pruned = 0";

/// Counts all sessions by their state, and what waits for a host. In a file that has no counts, it
/// returns where to begin to look at the sessions themselves.
pub(super) fn tally(
    connection: &Connection,
    now: Timestamp,
) -> Result<(Tally, Option<SessionNo>), Error> {
    let moment = connection.unchecked_transaction()?;
    let mut tally = waiting(connection, now)?;
    let has_counts = schema::version(connection)? >= schema::STANDING;
    if has_counts {
        count_states(connection, &mut tally)?;
    }
    moment.finish()?;
    Ok((tally, (!has_counts).then_some(SessionNo(0))))
}

/// Counts what waits for a host: deadlines that have passed, and events.
fn waiting(connection: &Connection, now: Timestamp) -> Result<Tally, Error> {
    let mut statement = connection.prepare_cached(OVERDUE)?;
    let (overdue, since): (i64, Option<i64>) =
        statement.query_row([now.as_millis()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let unreadable = match schema::version(connection)? {
        // A file that could not be migrated has no such list.
        ..schema::LAG => 0,
        _ => {
            let sql = "SELECT count(*) FROM lag WHERE unreadable IS NOT NULL";
            connection.prepare_cached(sql)?.query_row([], |row| row.get(0).map(unsigned))?
        }
    };
    let mut rows = SqliteRows::reading(connection);
    let done = rows.cursor()?.done();
    Ok(Tally {
        states: BTreeMap::new(),
        overdue: unsigned(overdue),
        overdue_since: since.map(Timestamp::from_millis),
        undelivered: rows.high()?.0.saturating_sub(done.0),
        unreadable,
        behind: 0,
    })
}

/// Adds what the list counts, and what the journal has had since.
fn count_states(connection: &Connection, tally: &mut Tally) -> Result<(), Error> {
    let Tail { entries, sessions } = listing::tail(connection)?;
    let fresh = match sessions {
        Some(sessions) => sessions,
        None => {
            tally.behind = entries;
            HashSet::new()
        }
    };
    let mut counts = BTreeMap::new();
    for state in STATES {
        let count = connection.prepare_cached(COUNT)?.query_row([state], |row| row.get(0));
        counts.insert(state, count.optional()?.unwrap_or(0_i64));
    }
    // What the list does not know as it is stands where its row says.
    for no in &fresh {
        let listed = connection.prepare_cached(LISTED)?.query_row([no], |row| row.get(0));
        if let Some(count) = listed.optional()?.and_then(|state: i64| counts.get_mut(&state)) {
            *count -= 1;
        }
        let mut stands = connection.prepare_cached(STANDS)?;
        let stands = stands.query_row([no], |row| Ok((row.get(0)?, row.get(1)?)));
        if let Some((state, at)) = stands.optional()? {
            let standing = Standing { count: 1, oldest: Timestamp::from_millis(at) };
            merge(&mut tally.states, state, standing);
        }
    }
    for (state, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        let Some(oldest) = stalest(connection, state, &fresh)? else { continue };
        let kind = StateKind::ALL.into_iter().find(|kind| listed_code(*kind) == state);
        let standing = Standing { count: unsigned(count), oldest };
        merge(&mut tally.states, kind.map_or(state, row_code), standing);
    }
    Ok(())
}

/// Returns when the session of the list changed that is in a state for the longest time, those left
/// out that the list does not know as they are.
fn stalest(
    connection: &Connection,
    state: i64,
    fresh: &HashSet<i64>,
) -> Result<Option<Timestamp>, Error> {
    let mut statement = connection.prepare_cached(STALEST)?;
    let mut sessions = statement.query([state])?;
    while let Some(session) = sessions.next()? {
        if !fresh.contains(&session.get(0)?) {
            return Ok(Some(Timestamp::from_millis(session.get(1)?)));
        }
    }
    Ok(None)
}

/// Adds sessions in a state to those that were counted.
fn merge(states: &mut BTreeMap<&'static str, Standing>, state: i64, more: Standing) {
    let first = Standing { count: 0, oldest: more.oldest };
    let known = states.entry(state_name(state)).or_insert(first);
    known.count += more.count;
    known.oldest = known.oldest.min(more.oldest);
}

/// Sessions counted at a time: some ten milliseconds' worth.
const TALLIED: i64 = 65_536;

/// Adds a page of sessions, after `after`, to the counts of states, in a file that has no counts;
/// returns the last of the page, or nothing if there are no more.
pub(super) fn standing(
    connection: &Connection,
    after: SessionNo,
    states: &mut BTreeMap<&'static str, Standing>,
) -> Result<Option<SessionNo>, Error> {
    // Numbers are given in order and hardly ever taken back: a stretch of them is a page.
    let sql = "SELECT state, count(*), min(at) FROM session
               WHERE no > ?1 AND no <= ?1 + ?2 GROUP BY state";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![after.0, TALLIED], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
    })?;
    for row in rows {
        let (state, count, at) = row?;
        let (count, oldest) = (unsigned(count), Timestamp::from_millis(at));
        merge(states, state, Standing { count, oldest });
    }
    let last = "SELECT coalesce(max(no), 0) FROM session";
    let last: i64 = connection.prepare_cached(last)?.query_row([], |row| row.get(0))?;
    let end = after.0.saturating_add(TALLIED);
    Ok((end < last).then_some(SessionNo(end)))
}
