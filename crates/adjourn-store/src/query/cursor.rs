//! Cursors: where a page ended.

use std::fmt;
use std::str::FromStr;

use adjourn_core::id::SessionId;
use adjourn_core::time::Timestamp;
use uuid::Uuid;

use super::Sort;
use crate::rows::EntryNo;

/// Where a page ended, to go on from with the next one: an opaque text for everybody but the store.
///
/// Pages that are turned with it show a session at most once, and every session that did not change
/// meanwhile: its place is that of a session, and not a number of sessions to leave out. It belongs to
/// the store, the filter and the order that the page was asked for with; others refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) sort: Sort,
    /// The list that the page is of; see [`Filter::list`].
    pub(crate) list: u32,
    /// The last session of the page, or the last one that was looked at for it.
    pub(crate) session: SessionId,
    /// When that session had last changed.
    pub(crate) at: Timestamp,
    /// How far the journal went when the first page was made: what changed after it has been seen, or
    /// is not shown again. No clock is as fine: a session may change in the millisecond of a page.
    pub(crate) until: EntryNo,
}

impl Cursor {
    /// Returns the order of the pages that it belongs to.
    pub const fn sort(&self) -> Sort {
        self.sort
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sort, list, session, at, until } = self;
        let (at, until) = (at.as_millis(), until.0);
        write!(f, "{}{at:x}.{until:x}.{list:x}.{}", sort.letter(), session.uuid().as_simple())
    }
}

/// What is told of a text that is no cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a cursor as the page before has it")]
pub struct NotACursor;

impl FromStr for Cursor {
    type Err = NotACursor;

    fn from_str(text: &str) -> Result<Self, NotACursor> {
        let read = || {
            let mut rest = text.chars();
            let sort = match rest.next()? {
                'o' => Sort::Oldest,
                'n' => Sort::Newest,
                's' => Sort::Stalest,
                'f' => Sort::Freshest,
                _ => return None,
            };
            let mut parts = rest.as_str().split('.');
            let mut number = || i64::from_str_radix(parts.next()?, 16).ok();
            let (at, until) = (Timestamp::from_millis(number()?), EntryNo(number()?));
            let list = u32::from_str_radix(parts.next()?, 16).ok()?;
            let session = SessionId::new(Uuid::try_parse(parts.next()?).ok()?);
            Some(Self { sort, list, session, at, until })
        };
        // There is one spelling, so that nothing is read into what was typed by hand.
        read().filter(|cursor| cursor.to_string() == text).ok_or(NotACursor)
    }
}
