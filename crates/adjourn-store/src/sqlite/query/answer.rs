//! The answer to a query: a page, made in one read or in several, so that none keeps the log from
//! being written back.
//!
//! A page in the order of changes may be cut short, because few of the sessions that it comes by are
//! wanted. Where several long lists lead to these, they are compared from one end to the other before
//! the page goes on: in the order of numbers that takes far less, and what they have in common may be
//! few enough to be put in order by hand.

use std::collections::HashSet;
use std::ops::ControlFlow::{self, Break, Continue};

use rusqlite::Connection;

use super::common::{Common, Compared};
use super::lists::List;
use super::plan::{self, Plan};
use super::{Bounds, Search, listing, page_of, page_within};
use crate::cache::Cache;
use crate::error::Error;
use crate::query::{Filter, Page, Query};

/// An answer under way.
pub(in crate::sqlite) struct Answer {
    query: Query,
    bounds: Bounds,
    stage: Stage,
}

enum Stage {
    Asked,
    /// The page was cut short, and lists are compared. The sessions that the list does not know as
    /// they are belong to what may be left for it.
    Comparing {
        page: Page,
        fresh: Vec<i64>,
        common: Common,
    },
    /// What may be left for the page is known.
    Completing {
        page: Page,
        numbers: Vec<i64>,
    },
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
                let is_cut_short = page.next.is_some() && page.sessions.len() < query.limit;
                if !is_cut_short || !query.sort.is_by_change() || page.behind > 0 {
                    return Ok(Break(page));
                }
                let Some((fresh, common)) = compare(connection, &query.filter)? else {
                    return Ok(Break(page));
                };
                Stage::Comparing { page, fresh, common }
            }
            Stage::Comparing { page, fresh, mut common } => {
                match common.go_on(connection, bounds.few, bounds.work)? {
                    Compared::InPart => Stage::Comparing { page, fresh, common },
                    Compared::Many => return Ok(Break(page)),
                    Compared::Few => {
                        let numbers = fresh.into_iter().chain(common.into_numbers()).collect();
                        Stage::Completing { page, numbers }
                    }
                }
            }
            Stage::Completing { page, numbers } => {
                let page = complete(connection, cache, &query, bounds, page, numbers)?;
                return Ok(Break(page));
            }
        };
        Ok(Continue(Self { query, bounds, stage }))
    }
}

/// Begins to compare the lists that lead to what is wanted, if they can be; returns the sessions, too,
/// that the list does not know as they are.
///
/// What changes after a page was begun is not on it. So lists that are read later have every session
/// that may be, apart from these.
fn compare(connection: &Connection, filter: &Filter) -> Result<Option<(Vec<i64>, Common)>, Error> {
    let moment = connection.unchecked_transaction()?;
    let sets = plan::to_compare(connection, filter)?;
    let fresh = match sets.iter().flatten().any(List::follows) {
        true => listing::tail(connection)?.sessions,
        false => Some(HashSet::new()),
    };
    moment.finish()?;
    let fresh = fresh.map(|fresh| fresh.into_iter().collect());
    Ok(fresh.zip(Common::of(sets)))
}

/// Goes on with a page that was cut short, among all that may be left for it.
fn complete(
    connection: &Connection,
    cache: &Cache,
    query: &Query,
    bounds: Bounds,
    mut page: Page,
    numbers: Vec<i64>,
) -> Result<Page, Error> {
    let limit = query.limit - page.sessions.len();
    let rest = Query { after: page.next, limit, ..query.clone() };
    let moment = connection.unchecked_transaction()?;
    let plan = Plan::of_numbers(numbers);
    let rest = page_of(Search::along(connection, &rest, bounds, plan)?, cache, limit)?;
    moment.finish()?;
    page.sessions.extend(rest.sessions);
    Ok(Page { next: rest.next, ..page })
}
