//! Answers to queries: a plan that names the lists to go through, a walk through them in order, and
//! a check of each session that comes up.
//!
//! Where every list that leads to what is wanted is long, the walk goes along what these have in
//! common: it reads no more places than they have, and leaps over stretches that only one of them has.
//! A session's row is looked at when all of them have it.
//!
//! Every list is a range of an index. Those of marks and of what sessions wait for are always up to
//! date. The list of states, changes and reasons follows the journal; sessions that the journal has
//! changed since are left out of it and looked at themselves.

mod answer;
mod common;
mod lists;
mod plan;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::event::What;
use adjourn_core::id::{RunId, SessionId};
use adjourn_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};
use uuid::Uuid;

use super::listing::{self, Tail};
use super::reader::{founding, last_entry};
use super::rows::{SqliteRows, row_code, session_row, state_name};
use super::schema;
use crate::cache::Cache;
use crate::error::Error;
use crate::fold::fold;
use crate::query::{Cursor, Filter, Page, Query, Sort, is_in};
use crate::rows::{EntryNo, SessionRow, Sessions as _};
use crate::store::{Listed, Standing};
pub(super) use answer::Answer;
use lists::Place;
use plan::{FEW, Plan};
use walk::{Step, Walk};

/// What one read may do: some tens of milliseconds' worth, so that none keeps the log from being
/// written back. Reading a place of a list counts one.
const WORK: usize = 262_144;
/// What it counts to ask whether a session has a mark, or to look at its row: in the order of changes,
/// each is on another page of the file than the one before.
const ASKING: usize = 16;
const LOOKING: usize = 16;
/// What it counts to read a session.
const READING: usize = 128;

/// What a search goes by that tests make small.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// What one read may do.
    work: usize,
    /// How many sessions are few enough to be looked at all.
    few: usize,
}

impl Bounds {
    const USUAL: Self = Self { work: WORK, few: FEW };
}

/// Returns a page of what a query asks for, as far as one read leads.
fn page_within(
    connection: &Connection,
    cache: &Cache,
    query: &Query,
    bounds: Bounds,
) -> Result<Page, Error> {
    let moment = connection.unchecked_transaction()?;
    let page = page_of(&mut Search::new(connection, query, bounds)?, cache, query.limit)?;
    moment.finish()?;
    Ok(page)
}

/// Returns a page of what a search finds.
fn page_of(search: &mut Search<'_>, cache: &Cache, limit: usize) -> Result<Page, Error> {
    let mut sessions: Vec<Listed> = Vec::new();
    let (mut last, mut next) = (None, None);
    while let Some(found) = search.next()? {
        let Some(listed) = search.wanted(cache, &found)? else { continue };
        // One more than there is room for says that there is a next page.
        if sessions.len() == limit {
            next = last;
            break;
        }
        sessions.push(listed);
        last = search.looked_at;
    }
    let next = next.or(search.cut_short());
    Ok(Page { sessions, next, behind: search.behind })
}

/// Counts what a filter lets through by its state; returns where to go on, if that took long enough,
/// and how far the list is behind.
pub(super) fn count(
    connection: &Connection,
    cache: &Cache,
    query: &Query,
    states: &mut BTreeMap<&'static str, Standing>,
) -> Result<(Option<Cursor>, u64), Error> {
    count_within(connection, cache, query, Bounds::USUAL, states)
}

fn count_within(
    connection: &Connection,
    cache: &Cache,
    query: &Query,
    bounds: Bounds,
    states: &mut BTreeMap<&'static str, Standing>,
) -> Result<(Option<Cursor>, u64), Error> {
    let moment = connection.unchecked_transaction()?;
    let mut search = Search::new(connection, query, bounds)?;
    let by_row = !query.filter.needs_session() && search.marks.is_some();
    while let Some(found) = search.next()? {
        if !by_row && search.wanted(cache, &found)?.is_none() {
            continue;
        }
        let first = Standing { count: 0, oldest: found.at };
        let standing = states.entry(state_name(found.state)).or_insert(first);
        standing.count += 1;
        standing.oldest = standing.oldest.min(found.at);
    }
    let counted = (search.cut_short(), search.behind);
    moment.finish()?;
    Ok(counted)
}

/// Returns the session that a run belongs to.
pub(super) fn session_of(connection: &Connection, run: RunId) -> Result<Option<SessionId>, Error> {
    if schema::version(connection)? < schema::LISTING {
        return Ok(None);
    }
    let mut statement = connection.prepare_cached(OF_RUN)?;
    let id = statement.query_row([run.uuid().as_bytes()], |row| row.get(0)).optional()?;
    Ok(id.map(|id| SessionId::new(Uuid::from_bytes(id))))
}

/// The session of a run.
const OF_RUN: &str =
    "SELECT session.id FROM run JOIN session ON no = session WHERE run.id = ?1 AND pruned = 0";
/// What the row of a session says.
const ROW: &str = "SELECT no, id, tenant, head, revision, link, state, at, pruned FROM session
     WHERE no = ?1";
/// Whether a session has a mark.
const MARKED: &str = "SELECT 1 FROM mark WHERE what = ?1 AND session = ?2";

/// A session whose row says that it may be wanted.
struct Found {
    row: SessionRow,
    state: i64,
    at: Timestamp,
    /// Whether it was erased.
    is_gone: bool,
}

/// The way to what a query asks for.
struct Search<'a> {
    connection: &'a Connection,
    filter: &'a Filter,
    sort: Sort,
    /// The list that pages are of, as cursors name it.
    list: u32,
    /// What the journal has behind this was seen on an earlier page, or is not shown again.
    until: EntryNo,
    /// The states that are wanted, as the rows of sessions have them.
    states: Vec<i64>,
    /// The marks that are wanted; nothing in a file that has none.
    marks: Option<Vec<String>>,
    /// Those among them that a session may lack which the walk comes to along its lists.
    untold: Vec<String>,
    /// Sessions that the list does not know as they are.
    fresh: HashSet<i64>,
    walk: Walk,
    bounds: Bounds,
    /// How much was done so far, beside the walk.
    work: usize,
    /// The last session that was looked at.
    looked_at: Option<Cursor>,
    /// The place behind it that the walk has come to, if that session was not looked at.
    passed: Option<Place>,
    /// Whether there may be more to look at.
    is_cut_short: bool,
    /// How many entries the answer does not take into account.
    behind: u64,
}

impl<'a> Search<'a> {
    fn new(connection: &'a Connection, query: &'a Query, bounds: Bounds) -> Result<Self, Error> {
        let Query { filter, sort, .. } = query;
        let plan = match schema::version(connection)? >= schema::LISTING {
            true => Plan::of(connection, filter, *sort, bounds)?,
            false => Plan::whole(*sort),
        };
        Self::along(connection, query, bounds, plan)
    }

    fn along(
        connection: &'a Connection,
        query: &'a Query,
        bounds: Bounds,
        plan: Plan,
    ) -> Result<Self, Error> {
        let Query { filter, sort, after, .. } = query;
        let list = filter.list(*sort);
        if after.is_some_and(|after| after.list != list) {
            return Err(Error::ForeignCursor("it was given for another filter or order"));
        }
        let until = match after {
            Some(after) => after.until,
            None => last_entry(connection)?,
        };
        let states = filter.states.iter().map(|state| row_code(*state)).collect();
        let has_marks = schema::version(connection)? >= schema::LISTING;
        let marks = has_marks.then(|| filter.marks());
        let untold = marks.iter().flatten().filter(|mark| !plan.tells(mark)).cloned().collect();
        let mut search = Self {
            connection,
            filter,
            sort: *sort,
            list,
            until,
            states,
            marks,
            untold,
            fresh: HashSet::new(),
            walk: Walk::default(),
            bounds,
            work: 0,
            looked_at: None,
            passed: None,
            is_cut_short: false,
            behind: 0,
        };
        let after = after.as_ref().map(|after| search.place_of(after)).transpose()?;
        if plan.follows() {
            let Tail { entries, sessions } = listing::tail(connection)?;
            match sessions {
                Some(sessions) => search.fresh = sessions,
                None => search.behind = entries,
            }
        }
        search.walk = search.walk_along(plan, after)?;
        Ok(search)
    }

    /// Returns where to go on, if there was no time to look at everything.
    fn cut_short(&self) -> Option<Cursor> {
        self.looked_at.filter(|_| self.is_cut_short)
    }

    /// Returns where the page before this one ended.
    fn place_of(&self, after: &Cursor) -> Result<Place, Error> {
        let row = SqliteRows::reading(self.connection).session(after.session)?;
        // To begin anew would show what was seen, again and again.
        let row = row.ok_or(Error::ForeignCursor("this store has no session where it ended"))?;
        Ok(self.place(after.at, row.no.0))
    }

    fn place(&self, at: Timestamp, no: i64) -> Place {
        Place { at: if self.sort.is_by_change() { at.as_millis() } else { 0 }, no }
    }

    /// Makes the walk along the lists of a plan.
    fn walk_along(&self, mut plan: Plan, after: Option<Place>) -> Result<Walk, Error> {
        let mut singled_out: Vec<i64> = self.fresh.iter().copied().collect();
        if plan.is_to_be_sorted {
            // Few enough to be looked at all, in an order that their list does not have.
            singled_out.extend(plan.gather(self.connection, self.filter)?);
        }
        singled_out.sort_unstable();
        singled_out.dedup();
        // Only an order of changes takes their rows to be made; each is looked at again in its turn.
        let places = match self.sort.is_by_change() {
            true => self.places_by_change(singled_out)?,
            false => singled_out.into_iter().map(|no| Place { at: 0, no }).collect(),
        };
        let until = self.filter.unchanged_since.unwrap_or(Timestamp::from_millis(i64::MAX));
        let mut walk = Walk::new(self.sort, after, until);
        if !plan.is_to_be_sorted {
            walk.follow(plan.lists);
            plan.narrowed_by.into_iter().for_each(|lists| walk.narrow(lists));
        }
        walk.pass_through(places);
        Ok(walk)
    }

    /// Returns the places of sessions among the last changes, if their marks and their rows say that
    /// they may be wanted.
    fn places_by_change(&self, numbers: Vec<i64>) -> Result<Vec<Place>, Error> {
        let mut found = Vec::with_capacity(numbers.len());
        for no in numbers {
            // Asking for marks takes less than looking at a row.
            if self.is_marked(no, false)? {
                found.extend(self.row(no)?);
            }
        }
        found.retain(|found| self.may_be_wanted(found));
        Ok(found.iter().map(|found| self.place(found.at, found.row.no.0)).collect())
    }

    /// Returns the next session whose row says that it may be wanted; nothing at the end, and when
    /// enough was done for once.
    fn next(&mut self) -> Result<Option<Found>, Error> {
        loop {
            if self.work + self.walk.work() >= self.bounds.work && self.can_go_on_later()? {
                self.is_cut_short = true;
                return Ok(None);
            }
            let Some(step) = self.walk.next(self.connection)? else { return Ok(None) };
            let (Step::Other(place) | Step::Listed(place) | Step::Passed(place)) = step;
            self.passed = Some(place);
            let is_listed = match step {
                Step::Passed(_) => continue,
                // It is looked at by itself, where its place is now.
                Step::Listed(_) if self.fresh.contains(&place.no) => continue,
                Step::Listed(_) => true,
                Step::Other(_) => false,
            };
            self.work += ASKING * self.asked_for(is_listed).len();
            if !self.is_marked(place.no, is_listed)? {
                continue;
            }
            self.work += LOOKING;
            let Some(found) = self.row(place.no)? else { continue };
            let cursor = self.cursor(place, &found);
            (self.looked_at, self.passed) = (Some(cursor), None);
            // Where it has changed since the list was brought up, its place is another by now.
            if cursor.at == found.at && self.may_be_wanted(&found) {
                return Ok(Some(found));
            }
        }
    }

    /// Returns whether there is a session that the next page can begin behind.
    fn can_go_on_later(&mut self) -> Result<bool, Error> {
        if let Some(place) = self.passed.take()
            && let Some(found) = self.row(place.no)?
        {
            self.looked_at = Some(self.cursor(place, &found));
        }
        Ok(self.looked_at.is_some())
    }

    /// Returns the cursor of a session that the walk has met at a place.
    fn cursor(&self, place: Place, found: &Found) -> Cursor {
        let at = match self.sort.is_by_change() {
            true => Timestamp::from_millis(place.at),
            false => found.at,
        };
        let (sort, list, session, until) = (self.sort, self.list, found.row.id, self.until);
        Cursor { sort, list, session, at, until }
    }

    fn row(&self, no: i64) -> Result<Option<Found>, Error> {
        let mut statement = self.connection.prepare_cached(ROW)?;
        let found = statement.query_row([no], |row| {
            let (state, at) = (row.get(6)?, Timestamp::from_millis(row.get(7)?));
            Ok(Found { row: session_row(row)?, state, at, is_gone: row.get(8)? })
        });
        Ok(found.optional()?)
    }

    fn may_be_wanted(&self, found: &Found) -> bool {
        !found.is_gone
            && (self.states.is_empty() || self.states.contains(&found.state))
            && self.filter.unchanged_since.is_none_or(|since| found.at <= since)
            && (!self.sort.is_by_change() || found.row.head <= self.until)
    }

    /// Returns the marks that a session has yet to be asked for: one that is on the lists of the walk,
    /// those that these do not tell.
    fn asked_for(&self, is_listed: bool) -> &[String] {
        if is_listed { &self.untold } else { self.marks.as_deref().unwrap_or_default() }
    }

    fn is_marked(&self, no: i64, is_listed: bool) -> Result<bool, Error> {
        for mark in self.asked_for(is_listed) {
            let mut statement = self.connection.prepare_cached(MARKED)?;
            if !statement.exists(rusqlite::params![mark, no])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads a session, and returns it if it is wanted.
    fn wanted(&mut self, cache: &Cache, found: &Found) -> Result<Option<Listed>, Error> {
        self.work += READING;
        let mut rows = SqliteRows::reading(self.connection);
        // What is only listed must not take the place of what is at work.
        let session = match fold(&found.row, cache.get(found.row.no), &mut rows) {
            // Its row and its marks are all that is known of it.
            Err(error) if error.is_of_a_session() => {
                let shown = self.filter.shows_unreadable() && self.marks.is_some();
                return Ok(shown.then_some(Err((found.row.id, error))));
            }
            session => session?,
        };
        let wanted = self.filter.includes(&session) && self.is_in_place(&session)?;
        Ok(wanted.then_some(Ok(session)))
    }

    /// Returns whether a session works where it is wanted to. What has marks was asked by them.
    fn is_in_place(&self, session: &Arc<Session>) -> Result<bool, Error> {
        let Some(cwd) = self.filter.cwd.as_ref().filter(|_| self.marks.is_none()) else {
            return Ok(true);
        };
        let created = founding(self.connection, session.id)?.map(|entry| entry.event.what);
        Ok(created.as_ref().and_then(What::founding).is_some_and(|created| is_in(created, cwd)))
    }
}
