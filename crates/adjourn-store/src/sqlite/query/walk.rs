//! A walk through several lists at once, in one order.

use std::collections::VecDeque;

use adjourn_core::time::Timestamp;
use rusqlite::Connection;

use super::lists::{List, Part, Place};
use crate::error::Error;
use crate::query::Sort;

/// Places read at a time: few for a short page, more for those that come behind it.
const FIRST_READ: usize = 64;
const READ: usize = 1024;

/// A walk through lists that are in the same order. A session that is on several is met once.
#[derive(Debug)]
pub(super) struct Walk {
    descending: bool,
    after: Option<Place>,
    until: Timestamp,
    lists: Vec<Followed>,
    /// Places that are not from a list, in order.
    others: VecDeque<Place>,
}

/// A list, and what was read of it.
#[derive(Debug)]
struct Followed {
    list: List,
    read: VecDeque<Place>,
    /// Where to go on reading.
    after: Option<Place>,
    reads: usize,
    is_at_end: bool,
}

impl Default for Walk {
    fn default() -> Self {
        Self::new(Sort::Oldest, None, Timestamp::from_millis(i64::MAX))
    }
}

impl Walk {
    pub(super) const fn new(sort: Sort, after: Option<Place>, until: Timestamp) -> Self {
        let descending = sort.is_descending();
        Self { descending, after, until, lists: Vec::new(), others: VecDeque::new() }
    }

    /// Goes along a list.
    pub(super) fn follow(&mut self, list: List) {
        let after = self.after;
        self.lists.push(Followed {
            list,
            read: VecDeque::new(),
            after,
            reads: 0,
            is_at_end: false,
        });
    }

    /// Passes through these places, too.
    pub(super) fn pass_through(&mut self, mut places: Vec<Place>) {
        places.retain(|place| self.after.is_none_or(|after| self.is_before(after, *place)));
        places.sort_unstable();
        if self.descending {
            places.reverse();
        }
        self.others = places.into();
    }

    /// Returns the next place, and whether it comes from a list.
    pub(super) fn next(&mut self, connection: &Connection) -> Result<Option<(Place, bool)>, Error> {
        let (descending, until) = (self.descending, self.until);
        let mut next = self.others.front().map(|place| (*place, false));
        for followed in &mut self.lists {
            let Some(place) = followed.first(connection, descending, until)? else { continue };
            let comes_first = |best: Place| if descending { place > best } else { place < best };
            if next.is_none_or(|(best, _)| comes_first(best)) {
                next = Some((place, true));
            }
        }
        let Some((place, _)) = next else { return Ok(None) };
        if self.others.front() == Some(&place) {
            self.others.pop_front();
        }
        for followed in &mut self.lists {
            if followed.read.front() == Some(&place) {
                followed.read.pop_front();
            }
        }
        Ok(next)
    }

    fn is_before(&self, one: Place, other: Place) -> bool {
        if self.descending { one > other } else { one < other }
    }
}

impl Followed {
    fn first(
        &mut self,
        connection: &Connection,
        descending: bool,
        until: Timestamp,
    ) -> Result<Option<Place>, Error> {
        if self.read.is_empty() && !self.is_at_end {
            let limit = if self.reads == 0 { FIRST_READ } else { READ };
            let part = Part { descending, after: self.after, until, limit };
            self.read = self.list.read(connection, part)?.into();
            self.reads += 1;
            self.is_at_end = self.read.len() < limit;
            self.after = self.read.back().copied().or(self.after);
        }
        Ok(self.read.front().copied())
    }
}
