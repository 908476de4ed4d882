//! Which lists lead to what a query asks for: those that are shortest, as far as they are counted;
//! and where all are long, what these have in common.

use adjourn_core::conditions::{KeyRange, keys_about};
use adjourn_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _};

use super::Bounds;
use super::common::{Common, Compared};
use super::lists::{FIRST_KEY, List, NEXT_KEY, NEXT_REASON, Part, Range, TENANT};
use crate::error::Error;
use crate::query::{Filter, INDEXED, Sort, StateKind, indexed};
use crate::sqlite::listing;
use crate::sqlite::rows::listed_code;
use crate::sqlite::schema;

/// How far lists are counted to find the shortest, and how many sessions are put in order by hand.
pub(super) const FEW: usize = 10_000;
/// The part of what one read may do that goes into finding out that lists have few sessions in common.
const COMPARING: usize = 4;
/// How many lists another is narrowed by as one: as many as there are states. For each that it is
/// narrowed by, a leap may look for a place.
const NARROWING: usize = STATES.len();
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
    /// More lists in the same order, of which each set has every session that is wanted, too.
    pub(super) narrowed_by: Vec<Vec<List>>,
    /// Whether the lists are in another order than the one that is wanted; they are few then, or have
    /// few sessions in common.
    pub(super) is_to_be_sorted: bool,
    /// The numbers of these sessions, where they are known.
    gathered: Option<Vec<i64>>,
}

impl Plan {
    /// Looks at every session: where there are no other lists.
    pub(super) fn whole(sort: Sort) -> Self {
        Self::along(vec![List::All], sort)
    }

    fn along(lists: Vec<List>, sort: Sort) -> Self {
        let is_to_be_sorted = !are_in_order(&lists, sort);
        Self { lists, narrowed_by: Vec::new(), is_to_be_sorted, gathered: None }
    }

    /// Chooses the lists for what is wanted.
    ///
    /// A list that is further behind the journal than a query looks at by itself lacks sessions. It
    /// is chosen only where no other leads to what is wanted, however short it is: a session is found
    /// by its name as soon as it has one. And no other list is narrowed by it.
    pub(super) fn of(
        connection: &Connection,
        filter: &Filter,
        sort: Sort,
        bounds: Bounds,
    ) -> Result<Self, Error> {
        let (until, few) = (until(filter), bounds.few);
        let lags = listing::behind(connection)? > listing::TAIL;
        let choices = choices(connection, filter, sort)?;
        let mut best: Option<(usize, &Vec<List>)> = None;
        for lists in &choices {
            if lags && best.is_some() && lists.iter().any(List::follows) {
                continue;
            }
            let most = best.map_or(few + 1, |(count, _)| count);
            let mut count = 0;
            for list in lists {
                count += list.count(connection, until, most - count)?;
                if count == most {
                    break;
                }
            }
            let usable = count <= few || are_in_order(lists, sort);
            // Where two are longer than was counted, the first is the better guess.
            if usable && best.is_none_or(|(shortest, _)| count < shortest) {
                best = Some((count, lists));
            }
        }
        let is_long = best.is_none_or(|(count, _)| count > few);
        let mut plan =
            best.map_or_else(|| Self::whole(sort), |(_, lists)| Self::along(lists.clone(), sort));
        if !is_long || (lags && sort.is_by_change()) {
            return Ok(plan);
        }
        let mut others = narrowing(choices, filter, lags);
        others.retain(|lists| *lists != plan.lists);
        match sort.is_by_change() {
            true => Ok(Self::of_few_in_common(connection, others, bounds)?.unwrap_or(plan)),
            false => {
                plan.narrowed_by = others;
                Ok(plan)
            }
        }
    }

    /// Looks for what lists that are in the order of numbers have in common; returns nothing if that
    /// is more than a few, or takes longer than to go along another list in the order that is wanted.
    fn of_few_in_common(
        connection: &Connection,
        mut sets: Vec<Vec<List>>,
        bounds: Bounds,
    ) -> Result<Option<Self>, Error> {
        // One by itself has more than a few.
        let common = Common::of(sets.clone()).filter(|_| sets.len() > 1);
        let Some(mut common) = common else { return Ok(None) };
        if common.go_on(connection, bounds.few, bounds.work / COMPARING)? != Compared::Few {
            return Ok(None);
        }
        let (lists, gathered) = (sets.remove(0), Some(common.take()));
        Ok(Some(Self { lists, narrowed_by: sets, is_to_be_sorted: true, gathered }))
    }

    /// Looks at these sessions.
    pub(super) fn of_numbers(numbers: Vec<i64>) -> Self {
        let (lists, narrowed_by, gathered) = (Vec::new(), Vec::new(), Some(numbers));
        Self { lists, narrowed_by, is_to_be_sorted: true, gathered }
    }

    /// Returns whether a list is among them that may be behind the journal.
    pub(super) fn follows(&self) -> bool {
        self.lists.iter().chain(self.narrowed_by.iter().flatten()).any(List::follows)
    }

    /// Returns whether every session that the plan leads to along its lists has a mark.
    pub(super) fn tells(&self, mark: &str) -> bool {
        let tells = |lists: &[List]| matches!(lists, [List::Marked(what)] if what == mark);
        tells(&self.lists) || self.narrowed_by.iter().any(|lists| tells(lists))
    }

    /// Returns the numbers of all sessions on the lists, which are few, unless there are no others.
    pub(super) fn gather(
        &mut self,
        connection: &Connection,
        filter: &Filter,
    ) -> Result<Vec<i64>, Error> {
        if let Some(numbers) = self.gathered.take() {
            return Ok(numbers);
        }
        let (until, limit) = (until(filter), usize::MAX);
        let part = Part { descending: false, after: None, until, limit };
        let mut numbers = Vec::new();
        for list in &self.lists {
            numbers.extend(list.read(connection, part)?.iter().map(|place| place.no));
        }
        Ok(numbers)
    }
}

/// Returns the sets of lists to compare for what is wanted, each of which has all of it: all that are
/// in the order of numbers, unless what follows the journal is too far behind it, or the file has none.
pub(super) fn to_compare(
    connection: &Connection,
    filter: &Filter,
) -> Result<Vec<Vec<List>>, Error> {
    let has_lists = schema::version(connection)? >= schema::LISTING;
    if !has_lists || listing::behind(connection)? > listing::TAIL {
        return Ok(Vec::new());
    }
    Ok(narrowing(choices(connection, filter, Sort::Oldest)?, filter, false))
}

/// Returns those of the sets of lists that others can be narrowed by.
fn narrowing(mut choices: Vec<Vec<List>>, filter: &Filter, lags: bool) -> Vec<Vec<List>> {
    choices.retain(|lists| !matches!(lists.as_slice(), [List::State(_), ..]));
    choices.extend(narrowing_states(filter));
    choices.retain(|lists| {
        lists.len() <= NARROWING
            && are_in_order(lists, Sort::Oldest)
            && !(lags && lists.iter().any(List::follows))
    });
    choices
}

/// Returns whether lists are in the order that is wanted.
fn are_in_order(lists: &[List], sort: Sort) -> bool {
    lists.iter().all(|list| list.is_in_order(sort))
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
    let states = states(filter);
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

/// Returns the states that a wanted session may be in, as the list has them.
fn states(filter: &Filter) -> Vec<i64> {
    let mut states = possible_states(filter);
    if !filter.states.is_empty() {
        let wanted = codes(&filter.states);
        states.retain(|state| wanted.contains(state));
    }
    states
}

/// Returns the states that a session may be in for what else is asked of it: only what is parked waits
/// for an event, and only what is or is to be has a reason.
fn possible_states(filter: &Filter) -> Vec<i64> {
    let parked = codes(&[StateKind::Suspended]);
    let paused = codes(&[StateKind::Suspended, StateKind::Quiescing]);
    let mut states = STATES.to_vec();
    states.retain(|state| {
        (filter.waiting_for.is_none() || parked.contains(state))
            && (filter.reason.is_none() || paused.contains(state))
    });
    states
}

/// Returns the lists of the states that are wanted, if the other lists may have sessions in others.
fn narrowing_states(filter: &Filter) -> Option<Vec<List>> {
    let states = states(filter);
    let narrows = states.len() < possible_states(filter).len();
    narrows.then(|| states.into_iter().map(List::State).collect())
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
