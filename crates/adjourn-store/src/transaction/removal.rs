//! What is dropped: events and answers in time, and what happened in sessions that have ended.
//!
//! A session that is erased leaves the links of its journal and its last entry, which says that it
//! has ended: the chain and the commits can still be verified. One transaction erases a little of
//! it; what it leaves is found again in a list.

use std::time::Duration;

use adjourn_core::actor::Actor;
use adjourn_core::command::Close;
use adjourn_core::id::SessionId;
use adjourn_core::journal::{Decision, Entry, Given};
use adjourn_core::session::State;
use adjourn_core::{Command, Facts, Session};
use adjourn_record::chain::Tip;

use super::{Request, Transaction, damaged, unencodable};
use crate::error::{CommandError, Error};
use crate::retention::{Pruned, Retention, before};
use crate::rows::{EntryNo, Portion, SessionNo};

/// How much of ended sessions, and of events, one transaction drops: a few milliseconds' worth.
const PORTION: Portion = Portion { rows: 512, bytes: 1 << 20 };
/// How many free pages one transaction gives back to the file system: a few milliseconds' worth.
const GIVEN_BACK: u32 = 256;
/// The reason that ends a session which was never prompted.
const UNPROMPTED: &str = "it was never prompted";
/// The reason that ends a session which cannot be read.
const UNREADABLE: &str = "it could not be read, and was removed";

/// What went of a session that is erased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Erased {
    /// Journal entries that lost their body.
    pub entries: u64,
    /// Transcript entries that were removed.
    pub said: u64,
    /// Whether there is more to erase, with the next transaction.
    pub more: bool,
}

impl Erased {
    /// Adds what went with another transaction, the last one so far.
    pub const fn and(self, next: Self) -> Self {
        Self { entries: self.entries + next.entries, said: self.said + next.said, more: next.more }
    }
}

impl Transaction<'_> {
    /// Drops what may go by now, at most `limit` of each kind.
    ///
    /// # Errors
    /// The store fails.
    pub fn prune(&mut self, retention: &Retention, limit: usize) -> Result<Pruned, Error> {
        let now = self.now();
        let mut pruned = Pruned::default();
        let mut left = PORTION;
        for no in self.rows.erasing(limit)? {
            self.erase_some(no, &mut left, &mut pruned)?;
        }
        if let Some(ended) = retention.ended {
            for no in self.rows.prunable(before(now, ended), limit)? {
                if left.is_used_up() {
                    pruned.more = true;
                    break;
                }
                let Some(row) = self.rows.session_by_no(no)? else { continue };
                pruned.entries += self.rows.begin_erasing(&row)?;
                pruned.sessions += 1;
                self.erase_some(no, &mut left, &mut pruned)?;
            }
        }
        let mut events = Portion { rows: limit.min(PORTION.rows), ..PORTION };
        let unreadable = before(now, Retention::UNREADABLE);
        pruned.events =
            self.rows.prune_events(before(now, retention.events), unreadable, &mut events)?;
        pruned.answers = self.rows.prune_answers(before(now, retention.answers), limit)?;
        let full = [pruned.sessions, pruned.answers].contains(&(limit as u64));
        pruned.more |= full || events.is_used_up();
        self.rows.give_back(GIVEN_BACK)?;
        Ok(pruned)
    }

    fn erase_some(
        &mut self,
        no: SessionNo,
        left: &mut Portion,
        pruned: &mut Pruned,
    ) -> Result<(), Error> {
        let erased = self.rows.erase(no, left)?;
        pruned.entries += erased.entries;
        pruned.more |= erased.more;
        Ok(())
    }

    /// Ends and erases sessions that were never prompted, at most `limit`, if they are older than
    /// `kept`; returns how many.
    ///
    /// # Errors
    /// The store fails.
    pub fn drop_unprompted(
        &mut self,
        by: &Actor,
        kept: Duration,
        spared: &[SessionId],
        limit: usize,
    ) -> Result<u64, CommandError> {
        let mut dropped = 0;
        for no in self.rows.unprompted(before(self.now(), kept), limit + spared.len())? {
            let Some(row) = self.rows.session_by_no(no)? else { continue };
            if spared.contains(&row.id) || dropped == limit as u64 {
                continue;
            }
            let close = Close { reason: Some(UNPROMPTED.to_owned()) };
            let close = Request::new(row.id, by.clone(), Command::Close(close));
            match self.decide(row, close) {
                // A session that cannot be read must not hold up the others.
                Err(CommandError::Store(error)) if error.is_of_a_session() => continue,
                closed => closed?,
            };
            self.begin_erasing(no)?;
            dropped += 1;
        }
        Ok(dropped)
    }

    /// Drops what happened in a session that has ended, at once and not in time; its links and its
    /// last entry stay. It drops as much as one transaction may, and says whether there is more.
    ///
    /// # Errors
    /// The store fails.
    pub fn erase(&mut self, id: SessionId) -> Result<Erased, Error> {
        let Some(row) = self.rows.session(id)? else { return Ok(Erased::default()) };
        match self.load(&row)?.state {
            State::Ended(_) => {
                let begun = self.begin_erasing(row.no)?;
                let erased = self.rows.erase(row.no, &mut PORTION.clone())?;
                Ok(begun.and(erased))
            }
            _ => Ok(Erased::default()),
        }
    }

    /// Ends a session that cannot be read, and erases it like any other. What is known of it is its
    /// name; the entry that ends it says so, and who removed it.
    ///
    /// # Errors
    /// There is no such session, it can be read, or the store fails.
    pub fn remove_unreadable(&mut self, by: Actor, id: SessionId) -> Result<Erased, CommandError> {
        let mut row = self.rows.session(id)?.ok_or(CommandError::NotFound(id))?;
        match self.load(&row) {
            Err(error) if error.is_of_a_session() => {}
            loaded => {
                loaded?;
                return Err(damaged("a session that can be read is closed, and then erased").into());
            }
        }
        // Its last entry goes on from what is there, whatever the row says of it.
        match self.rows.tip(row.head)? {
            Some(tip) => row.tip = tip,
            None => (row.head, row.tip) = (EntryNo(0), Tip::START),
        }
        let tenant = self.rows.tenant_name(row.tenant)?;
        let before = Session::unreadable(id, &tenant, row.tip.revision);
        let facts = Facts::new(self.now(), by, self.fresh());
        let close = Command::Close(Close { reason: Some(UNREADABLE.to_owned()) });
        let decided = before.decide_recorded(&facts, &close)?;
        let decision = Decision::new(Given::Command(close), facts);
        let (entries, after) = Entry::record(&decision, decided).map_err(unencodable)?;
        let no = row.no;
        self.rows.unsubscribe(&row)?;
        self.append(row, Some(&before), entries, after, Vec::new())?;
        self.rows.set_caught_up(no)?;
        let begun = self.begin_erasing(no)?;
        let erased = self.rows.erase(no, &mut PORTION.clone())?;
        Ok(begun.and(erased))
    }

    /// Enters a session into the list of those to be erased, unless it is there or was.
    fn begin_erasing(&mut self, no: SessionNo) -> Result<Erased, Error> {
        let Some(row) = self.rows.session_by_no(no)? else { return Ok(Erased::default()) };
        Ok(Erased { entries: self.rows.begin_erasing(&row)?, ..Erased::default() })
    }
}
