//! Which lists lead to what a query asks for: those that are shortest, as far as they are counted.

use adjourn_core::conditions::{KeyRange, keys_about};
use adjourn_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

use super::lists::{FIRST_KEY, List, NEXT_KEY, NEXT_REASON, Part, Range, TENANT};
use crate::error::Error;
use crate::query::{Filter, INDEXED, Sort, StateKind, indexed};
use crate::sqlite::listing;
use crate::sqlite::rows::listed_code;

/// How far lists are counted to find the shortest, and how many sessions are put in order by hand.
const FEW: usize = 10_000;
/// How many lists are followed at once; a pattern that leads to more is answered from ranges.
const MERGED: usize = 64;
/// How many tenants are asked one after the other for what they wait for.
const TENANTS: usize = 512;
/// The states as the list has them, all of them.
const STATES: [i64; 7] = [0, 1, 2, 3, 4, 5, 6];

/// The lists whose sessions are looked at. Together they have every session that is wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) lists: Vec<List>,
    /// Whether the lists are in another order than the one that is wanted; they are few then.
    pub(super) is_to_be_sorted: bool,
}

impl Plan {
    /// Looks at every session: where there are no other lists.
    pub(super) fn whole(sort: Sort) -> Self {
        let list = List::All;
        Self { is_to_be_sorted: !list.is_in_order(sort), lists: vec![list] }
    }

    /// Chooses the lists for what is wanted.
    ///
    /// A list that is further behind the journal than a query looks at by itself lacks sessions. It
    /// is chosen only where no other leads to what is wanted, however short it is: a session is found
    /// by its name as soon as it has one.
    pub(super) fn of(connection: &Connection, filter: &Filter, sort: Sort) -> Result<Self, Error> {
        let until = until(filter);
        let lags = listing::behind(connection)? > listing::TAIL;
        let mut best: Option<(usize, Vec<List>)> = None;
        for lists in choices(connection, filter, sort)? {
            if lags && best.is_some() && lists.iter().any(List::follows) {
                continue;
            }
            let most = best.as_ref().map_or(FEW + 1, |(count, _)| *count);
            let mut count = 0;
            for list in &lists {
                count += list.count(connection, until, most - count)?;
                if count == most {
                    break;
                }
            }
            let usable = count <= FEW || lists.iter().all(|list| list.is_in_order(sort));
            // Where two are longer than was counted, the first is the better guess.
            if usable && best.as_ref().is_none_or(|(shortest, _)| count < *shortest) {
                best = Some((count, lists));
            }
        }
        Ok(best.map_or_else(
            || Self::whole(sort),
            |(_, lists)| {
                let is_to_be_sorted = !lists.iter().all(|list| list.is_in_order(sort));
                Self { lists, is_to_be_sorted }
            },
        ))
    }

    /// Returns whether a list is among them that may be behind the journal.
    pub(super) fn follows(&self) -> bool {
        self.lists.iter().any(List::follows)
    }

    /// Returns the numbers of all sessions on the lists, which are few, unless there are no others.
    pub(super) fn gather(
        &self,
        connection: &Connection,
        filter: &Filter,
    ) -> Result<Vec<i64>, Error> {
        let (until, limit) = (until(filter), usize::MAX);
        let part = Part { descending: false, after: None, until, limit };
        let mut numbers = Vec::new();
        for list in &self.lists {
            numbers.extend(list.read(connection, part)?.iter().map(|place| place.no));
        }
        Ok(numbers)
    }
}

/// Returns when sessions may have changed last.
fn until(filter: &Filter) -> Timestamp {
    filter.unchanged_since.unwrap_or(Timestamp::from_millis(i64::MAX))
}

/// Returns the sets of lists that lead to what is wanted, each by itself, those first that are the
/// better guess.
fn choices(connection: &Connection, filter: &Filter, sort: Sort) -> Result<Vec<Vec<List>>, Error> {
    let mut choices: Vec<_> =
        filter.marks().into_iter().map(|mark| vec![List::Marked(mark)]).collect();
    let tenant = choices.pop_if(|_| filter.tenant.is_some());
    choices.extend(waiting(connection, filter)?);
    choices.extend(paused(connection, filter)?);
    let mut states = match filter.states.as_slice() {
        [] => STATES.to_vec(),
        states => codes(states),
    };
    // Only what is parked waits for an event, and only what is or is to be has a reason.
    let parked = codes(&[StateKind::Suspended]);
    let paused = codes(&[StateKind::Suspended, StateKind::Quiescing]);
    states.retain(|state| {
        (filter.waiting_for.is_none() || parked.contains(state))
            && (filter.reason.is_none() || paused.contains(state))
    });
    if sort.is_by_change() || filter.unchanged_since.is_some() {
        choices.push(states.iter().copied().map(List::StateByChange).collect());
    }
    if !sort.is_by_change() && states.len() < STATES.len() {
        choices.push(states.into_iter().map(List::State).collect());
    }
    // Most stores have one tenant.
    choices.extend(tenant);
    Ok(choices)
}

/// Returns the states as the list has them.
fn codes(states: &[StateKind]) -> Vec<i64> {
    let mut codes: Vec<_> = states.iter().map(|state| listed_code(*state)).collect();
    if states.contains(&StateKind::Suspended) {
        codes.push(listed_code(StateKind::Asking));
    }
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Returns the lists of sessions that wait for what a pattern is about: one for each key while the
/// keys are few, so that they are in order, and the ranges of the keys otherwise.
fn waiting(connection: &Connection, filter: &Filter) -> Result<Option<Vec<List>>, Error> {
    let Some(pattern) = &filter.waiting_for else { return Ok(None) };
    let of_one = match &filter.tenant {
        Some(name) => {
            let mut statement = connection.prepare_cached(TENANT)?;
            match statement.query_row([name], |row| row.get(0)).optional()? {
                Some(tenant) => Some(tenant),
                None => return Ok(Some(Vec::new())),
            }
        }
        None => None,
    };
    let ranges: Vec<_> = keys_about(pattern)
        .into_iter()
        .map(|range| match range {
            KeyRange::Only(key) => Range::only(key.as_str()),
            KeyRange::Beginning(beginning) => Range::beginning(&beginning),
        })
        .collect();
    if let Some(lists) = waiting_by_key(connection, of_one, &ranges)? {
        return Ok(Some(lists));
    }
    Ok(Some(ranges.into_iter().map(|keys| List::WaitingIn { tenant: of_one, keys }).collect()))
}

/// Returns the lists of the keys in these ranges that there are, of one tenant or of all, unless they
/// are too many.
fn waiting_by_key(
    connection: &Connection,
    of_one: Option<i64>,
    ranges: &[Range],
) -> Result<Option<Vec<List>>, Error> {
    let tenants: Vec<i64> = match of_one {
        Some(tenant) => vec![tenant],
        None => {
            let mut statement = connection.prepare_cached("SELECT no FROM tenant")?;
            let numbers = statement.query_map([], |row| row.get(0))?;
            numbers.take(TENANTS + 1).collect::<Result<_, _>>()?
        }
    };
    if tenants.len() > TENANTS {
        return Ok(None);
    }
    let mut lists = Vec::new();
    let mut first = connection.prepare_cached(FIRST_KEY)?;
    let mut behind = connection.prepare_cached(NEXT_KEY)?;
    for tenant in tenants {
        for Range { from, to } in ranges {
            let mut next: Option<String> =
                first.query_row((tenant, from, to), |row| row.get(0)).optional()?;
            while let Some(key) = next {
                if lists.len() == MERGED {
                    return Ok(None);
                }
                next = behind.query_row((tenant, &key, to), |row| row.get(0)).optional()?;
                lists.push(List::Waiting { tenant, key });
            }
        }
    }
    Ok(Some(lists))
}

/// Returns the lists of sessions whose pause has such a reason: one for each reason while these are
/// few, and their range otherwise.
fn paused(connection: &Connection, filter: &Filter) -> Result<Option<Vec<List>>, Error> {
    let Some(pattern) = &filter.reason else { return Ok(None) };
    let beginning = indexed(pattern.text());
    // What is longer than the index knows is told apart when it is read.
    if pattern.beginning().is_none() || pattern.text().len() >= INDEXED {
        return Ok(Some(vec![List::Reason(beginning.to_owned())]));
    }
    let range = Range::beginning(beginning);
    let mut lists = Vec::new();
    let mut next = Some(range.from.clone());
    let mut statement = connection.prepare_cached(NEXT_REASON)?;
    while let Some(reason) = next {
        lists.push(List::Reason(reason.clone()));
        if lists.len() > MERGED {
            return Ok(Some(vec![List::ReasonIn(range)]));
        }
        next = statement.query_row((&reason, &range.to), |row| row.get(0)).optional()?;
    }
    Ok(Some(lists))
}
