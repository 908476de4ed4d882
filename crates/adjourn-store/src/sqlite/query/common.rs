//! What long lists have in common: looked for in the order of numbers, a part at a time.

use std::mem;

use rusqlite::Connection;

use super::lists::List;
use super::walk::{Step, Walk};
use crate::error::Error;

/// A comparison of lists.
#[derive(Debug)]
pub(super) struct Common {
    walk: Walk,
    numbers: Vec<i64>,
}

/// How far a comparison has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compared {
    /// There is more to compare.
    InPart,
    /// The lists have few sessions in common.
    Few,
    /// They have more than a few, and it is not known how many.
    Many,
}

impl Common {
    /// Begins to compare sets of lists; of one alone, all sessions are found.
    pub(super) fn of(sets: Vec<Vec<List>>) -> Option<Self> {
        let mut sets = sets.into_iter();
        let mut walk = Walk::default();
        walk.follow(sets.next()?);
        sets.for_each(|lists| walk.narrow(lists));
        Some(Self { walk, numbers: Vec::new() })
    }

    /// Compares on until so much was done, or more than a few sessions were found.
    pub(super) fn go_on(
        &mut self,
        connection: &Connection,
        few: usize,
        work: usize,
    ) -> Result<Compared, Error> {
        let enough = self.walk.work().saturating_add(work);
        while self.walk.work() < enough {
            match self.walk.next(connection)? {
                None => return Ok(Compared::Few),
                Some(Step::Listed(place)) => {
                    self.numbers.push(place.no);
                    if self.numbers.len() > few {
                        return Ok(Compared::Many);
                    }
                }
                Some(Step::Passed(_) | Step::Other(_)) => {}
            }
        }
        Ok(Compared::InPart)
    }

    /// Takes the numbers of the sessions that were found since they were taken last.
    pub(super) fn take(&mut self) -> Vec<i64> {
        mem::take(&mut self.numbers)
    }
}
