//! The answer to a query: a page, made in one read or in several, so that none keeps the log from
//! being written back.
//!
//! A page in the order of changes may be cut short, because few of the sessions that it comes by are
//! wanted. Then the lists that lead to these are gone through from one end to the other before the page
//! goes on: in the order of numbers that takes far less. What they have in common is put in order by
//! hand, and of more than a few, those are kept that come first, unless the lists are too long.

use std::collections::HashSet;
use std::mem;
use std::ops::ControlFlow::{self, Break, Continue};

use adjourn_core::time::Timestamp;
use rusqlite::Connection;

use super::common::{Common, Compared};
use super::lists::{List, Place};
use super::plan::{self, Plan};
use super::walk::Step;
use super::{Bounds, READING, Search, listing, page_of, page_within};
use crate::cache::Cache;
use crate::error::Error;
use crate::query::{Page, Query};

/// How many times a few sessions are looked at to keep those that come first: some tenths of a second.
/// One answer should not take longer than that, although more pages take longer together.
const SIFTED: usize = 8;

/// An answer under way.
pub(in crate::sqlite) struct Answer {
    query: Query,
    bounds: Bounds,
    stage: Stage,
}

enum Stage {
    Asked,
    /// The page was cut short, and lists are compared.
    Comparing(Rest),
    /// What may be left for the page is known.
    Completing(Rest),
}

/// What a page that was cut short lacks.
struct Rest {
    page: Page,
    common: Common,
    /// The sessions that may be on it so far: at first, those that the list does not know as they are.
    numbers: Vec<i64>,
    /// The first place of those that were not kept, if any: what comes behind it is not kept, either.
    first_left: Option<Place>,
    /// Whether more than a few are looked at, to keep those that come first.
    sifts: bool,
}

impl Answer {
    pub(in crate::sqlite) const fn new(query: Query) -> Self {
        Self::within(query, Bounds::USUAL)
    }

    pub(super) const fn within(query: Query, bounds: Bounds) -> Self {
        Self { query, bounds, stage: Stage::Asked }
    }

    /// Does what one read may do; breaks with the page when that is done.
    pub(in crate::sqlite) fn go_on(
        self,
        connection: &Connection,
        cache: &Cache,
    ) -> Result<ControlFlow<Page, Self>, Error> {
        let Self { query, bounds, stage } = self;
        let stage = match stage {
            Stage::Asked => {
                let page = page_within(connection, cache, &query, bounds)?;
                if !query.sort.is_by_change() || !is_starved(&page, &query, bounds) {
                    return Ok(Break(page));
                }
                match Rest::of(connection, page, &query, bounds)? {
                    Break(page) => return Ok(Break(page)),
                    Continue(rest) => Stage::Comparing(rest),
                }
            }
            Stage::Comparing(mut rest) => {
                match rest.common.go_on(connection, bounds.few, bounds.work)? {
                    Compared::InPart => Stage::Comparing(rest),
                    Compared::Few => Stage::Completing(rest),
                    Compared::Many if !rest.sifts => return Ok(Break(rest.page)),
                    Compared::Many => {
                        rest.sift(connection, &query, bounds)?;
                        Stage::Comparing(rest)
                    }
                }
            }
            Stage::Completing(rest) => {
                return Ok(Break(rest.complete(connection, cache, &query, bounds)?));
            }
        };
        Ok(Continue(Self { query, bounds, stage }))
    }
}

/// Returns whether a page was cut short because little of what it came by is wanted, and not because
/// it has so many sessions.
fn is_starved(page: &Page, query: &Query, bounds: Bounds) -> bool {
    let found = page.sessions.len();
    page.next.is_some()
        && page.behind == 0
        && found < query.limit
        && found * READING < bounds.work / 2
}

/// Returns whether one of the sets of lists is short enough to look at each of its sessions.
fn is_one_short(
    connection: &Connection,
    sets: &[Vec<List>],
    bounds: Bounds,
) -> Result<bool, Error> {
    let most = bounds.few.saturating_mul(SIFTED).saturating_add(1);
    for lists in sets {
        let mut count = 0;
        for list in lists {
            count += list.count(connection, Timestamp::from_millis(i64::MAX), most - count)?;
        }
        if count < most {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Rest {
    /// Begins to compare the lists that lead to what a page lacks; breaks with the page as it is if
    /// they are not worth it.
    ///
    /// What changes after a page was begun is not on it. So lists that are read later have every
    /// session that may be, apart from those that the list does not know as they are.
    fn of(
        connection: &Connection,
        page: Page,
        query: &Query,
        bounds: Bounds,
    ) -> Result<ControlFlow<Page, Self>, Error> {
        let moment = connection.unchecked_transaction()?;
        let sets = plan::to_compare(connection, &query.filter)?;
        let fresh = match sets.iter().flatten().any(List::follows) {
            true => listing::tail(connection)?.sessions,
            false => Some(HashSet::new()),
        };
        // What only reading a session tells cannot be looked at in its row.
        let sifts = !query.filter.needs_session()
            && query.limit <= bounds.few / 2
            && is_one_short(connection, &sets, bounds)?;
        moment.finish()?;
        let is_worth_it = sets.len() > 1 || sifts;
        let common = Common::of(sets).filter(|_| is_worth_it);
        Ok(match fresh.zip(common) {
            None => Break(page),
            Some((fresh, common)) => {
                let numbers = fresh.into_iter().collect();
                Continue(Self { page, common, numbers, first_left: None, sifts })
            }
        })
    }

    /// Returns the question for what the page lacks.
    fn query(&self, query: &Query) -> Query {
        let limit = query.limit - self.page.sessions.len();
        Query { after: self.page.next, limit, ..query.clone() }
    }

    /// Keeps as many of the sessions so far as the page has room for, and one more, those that come
    /// first.
    fn sift(
        &mut self,
        connection: &Connection,
        query: &Query,
        bounds: Bounds,
    ) -> Result<(), Error> {
        let query = self.query(query);
        self.numbers.extend(self.common.take());
        let moment = connection.unchecked_transaction()?;
        let plan = Plan::of_numbers(mem::take(&mut self.numbers));
        let mut search = Search::along(connection, &query, bounds, plan)?;
        let descending = query.sort.is_descending();
        while let Some(Step::Other(place)) = search.walk.next(connection)? {
            // Sessions that were kept may have changed meanwhile. What takes their room may come
            // behind one that was not kept.
            if self.first_left.is_some_and(|left| !place.is_before(left, descending)) {
                break;
            }
            if self.numbers.len() > query.limit {
                self.first_left = Some(place);
                break;
            }
            self.numbers.push(place.no);
        }
        Ok(moment.finish()?)
    }

    /// Goes on with the page among the sessions that may be on it.
    fn complete(
        mut self,
        connection: &Connection,
        cache: &Cache,
        query: &Query,
        bounds: Bounds,
    ) -> Result<Page, Error> {
        match self.first_left {
            Some(_) => self.sift(connection, query, bounds)?,
            None => self.numbers.extend(self.common.take()),
        }
        let query = self.query(query);
        let moment = connection.unchecked_transaction()?;
        let plan = Plan::of_numbers(self.numbers);
        let mut search = Search::along(connection, &query, bounds, plan)?;
        let rest = page_of(&mut search, cache, query.limit)?;
        moment.finish()?;
        // There are others, also if those that were kept do not fill the page any more.
        let left = search.looked_at.or(self.page.next).filter(|_| self.first_left.is_some());
        self.page.sessions.extend(rest.sessions);
        Ok(Page { next: rest.next.or(left), ..self.page })
    }
}
