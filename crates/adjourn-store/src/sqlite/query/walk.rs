//! A walk through several lists at once, in one order.
//!
//! Some lists together have every session that is wanted: these are merged, and the walk goes along
//! them. Others may narrow it: a session that is not among them is not wanted. Where the lists have
//! little in common the walk leaps from one to the next place that another has, so that of a stretch
//! that only one of them has a few places are read.

use std::collections::VecDeque;

use adjourn_core::time::Timestamp;
use rusqlite::Connection;

use super::lists::{List, Part, Place};
use crate::error::Error;
use crate::query::Sort;

/// Places read at a time: few for a short page and behind a leap, twice as many each time that the
/// walk goes on from there, and not more than this.
const FIRST_READ: usize = 64;
const LEAPT_READ: usize = 16;
const READ: usize = 1024;
/// To read so many places takes longer than to look for one behind them.
const FAR: usize = 32;

/// What it counts to begin to read a list somewhere: about as long as so many places take.
const SEEKING: usize = 16;

/// A walk through lists that are in the same order. A session that is on several is met once.
#[derive(Debug)]
pub(super) struct Walk {
    descending: bool,
    after: Option<Place>,
    until: Timestamp,
    along: Merged,
    narrowed_by: Vec<Merged>,
    /// Places that are not from a list, in order.
    others: VecDeque<Place>,
    work: usize,
}

/// Where a walk comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A place that is not from a list.
    Other(Place),
    /// A place that the lists have in common.
    Listed(Place),
    /// A place that the walk has gone past: not all lists have it, and no place before it is left.
    Passed(Place),
}

/// Lists that are read as one: a place is on it if it is on any of them.
#[derive(Debug, Default)]
struct Merged(Vec<Followed>);

/// A list, and what was read of it.
#[derive(Debug)]
struct Followed {
    list: List,
    read: VecDeque<Place>,
    /// Where to go on reading.
    after: Option<Place>,
    /// How much was read last, and how much is read next.
    last_read: usize,
    next_read: usize,
    is_at_end: bool,
}

/// How lists are read, and how much that was.
struct Reading<'a> {
    connection: &'a Connection,
    descending: bool,
    until: Timestamp,
    work: usize,
}

impl Default for Walk {
    fn default() -> Self {
        Self::new(Sort::Oldest, None, Timestamp::from_millis(i64::MAX))
    }
}

impl Walk {
    pub(super) const fn new(sort: Sort, after: Option<Place>, until: Timestamp) -> Self {
        Self {
            descending: sort.is_descending(),
            after,
            until,
            along: Merged(Vec::new()),
            narrowed_by: Vec::new(),
            others: VecDeque::new(),
            work: 0,
        }
    }

    /// Goes along these lists.
    pub(super) fn follow(&mut self, lists: Vec<List>) {
        self.along = Merged::new(lists, self.after);
    }

    /// Leaves out what is on none of these lists, which are in the order of numbers, as the walk has
    /// to be then.
    pub(super) fn narrow(&mut self, lists: Vec<List>) {
        self.narrowed_by.push(Merged::new(lists, self.after));
    }

    /// Passes through these places, too.
    pub(super) fn pass_through(&mut self, mut places: Vec<Place>) {
        let descending = self.descending;
        places.retain(|place| self.after.is_none_or(|after| after.is_before(*place, descending)));
        places.sort_unstable();
        if descending {
            places.reverse();
        }
        self.others = places.into();
    }

    /// Returns how much was read so far: each place counts one.
    pub(super) const fn work(&self) -> usize {
        self.work
    }

    /// Goes on to the next place; returns nothing at the end.
    pub(super) fn next(&mut self, connection: &Connection) -> Result<Option<Step>, Error> {
        let (descending, until) = (self.descending, self.until);
        let mut reading = Reading { connection, descending, until, work: 0 };
        let step = self.step(&mut reading);
        self.work += reading.work;
        step
    }

    fn step(&mut self, reading: &mut Reading<'_>) -> Result<Option<Step>, Error> {
        let first = self.along.first(reading)?;
        let other = self.others.front().copied();
        let is_next = |other: &Place| {
            first.is_none_or(|first| first == *other || other.is_before(first, reading.descending))
        };
        if let Some(other) = other.filter(is_next) {
            self.others.pop_front();
            self.along.leave(other);
            return Ok(Some(Step::Other(other)));
        }
        let Some(place) = first else { return Ok(None) };
        for lists in &mut self.narrowed_by {
            lists.leap(place, reading.descending);
            match lists.first(reading)? {
                Some(found) if found == place => {}
                Some(found) => {
                    self.along.leap(found, reading.descending);
                    return Ok(Some(Step::Passed(place)));
                }
                None => {
                    self.along = Merged::default();
                    return Ok(Some(Step::Passed(place)));
                }
            }
        }
        self.along.leave(place);
        Ok(Some(Step::Listed(place)))
    }
}

impl Merged {
    fn new(lists: Vec<List>, after: Option<Place>) -> Self {
        let followed = |list| Followed {
            list,
            read: VecDeque::new(),
            after,
            last_read: 0,
            next_read: FIRST_READ,
            is_at_end: false,
        };
        Self(lists.into_iter().map(followed).collect())
    }

    /// Returns the next place that any of the lists has.
    fn first(&mut self, reading: &mut Reading<'_>) -> Result<Option<Place>, Error> {
        let mut first: Option<Place> = None;
        for followed in &mut self.0 {
            let Some(place) = followed.first(reading)? else { continue };
            if first.is_none_or(|first| place.is_before(first, reading.descending)) {
                first = Some(place);
            }
        }
        Ok(first)
    }

    /// Goes on behind a place that is the next one.
    fn leave(&mut self, place: Place) {
        for followed in &mut self.0 {
            if followed.read.front() == Some(&place) {
                followed.read.pop_front();
            }
        }
    }

    /// Goes on to a place, or where it would be, in the order of numbers.
    fn leap(&mut self, to: Place, descending: bool) {
        self.0.iter_mut().for_each(|followed| followed.leap(to, descending));
    }
}

impl Followed {
    fn first(&mut self, reading: &mut Reading<'_>) -> Result<Option<Place>, Error> {
        if self.read.is_empty() && !self.is_at_end {
            let &mut Reading { connection, descending, until, .. } = reading;
            let limit = self.next_read;
            let part = Part { descending, after: self.after, until, limit };
            self.read = self.list.read(connection, part)?.into();
            reading.work += SEEKING + self.read.len();
            self.is_at_end = self.read.len() < limit;
            self.after = self.read.back().copied().or(self.after);
            self.last_read = self.read.len();
            self.next_read = READ.min(limit * 2);
        }
        Ok(self.read.front().copied())
    }

    fn leap(&mut self, to: Place, descending: bool) {
        let skipped = self.read.len();
        while self.read.pop_front_if(|place| place.is_before(to, descending)).is_some() {}
        if !self.read.is_empty() || self.is_at_end {
            return;
        }
        // Much of what was read last was not needed, and the next leap may be as far.
        if skipped > FAR.min(self.last_read / 2) {
            self.next_read = LEAPT_READ;
        }
        let just_before = to.neighbour(descending);
        if self.after.is_none_or(|after| after.is_before(just_before, descending)) {
            self.after = Some(just_before);
        }
    }
}
