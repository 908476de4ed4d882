//! Those outside who are told what happens to a run: at least once, and in order.
//!
//! Nothing is put into a list for them: a recipient has a place in the journal of its session, and
//! what lies behind it is what it is told next. One process at a time tells it, under a claim: the
//! place moves on only under the last claim, so that one who comes late moves nothing.

use adjourn_core::id::{HostId, RunId, SessionId};
use adjourn_core::time::Timestamp;

use super::Transaction;
use crate::error::{CommandError, Error};
use crate::rows::{RecipientRow, Telling, Told};

/// A recipient that is not there yet, or another body for one that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecipient {
    /// The session that the run belongs to.
    pub session: SessionId,
    /// The run that it is told of.
    pub run: RunId,
    /// The kind of recipient.
    pub kind: String,
    /// Its name among those of its run and kind.
    pub id: String,
    /// How it is told.
    pub body: Vec<u8>,
    /// The last entry of the journal that it is not told of.
    pub after: u64,
    /// Whether the run is over, so that there is nothing to tell.
    pub is_over: bool,
}

/// What came of adding a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is there.
    New,
    /// One of that name was there. It has the new body, and goes on where it was, also if it was given
    /// up.
    Replaced,
    /// There are too many of its run and kind.
    TooMany,
}

/// What is to become of a recipient that was told something, or could not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It is told more under the same claim, until a time at most.
    More(Timestamp),
    /// It was told everything so far: it is released, unless more has happened meanwhile.
    Rest(Timestamp),
    /// It is released, and told more at this time at the earliest; a failure counts.
    Later(Timestamp, bool),
    /// It was told the end of its run.
    Over,
    /// It is told nothing more, because that failed too often.
    GiveUp,
}

/// Whether a claim holds behind a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It does.
    Held,
    /// It was given back.
    Released,
    /// Another has the recipient, or it is gone: nothing was changed.
    Lost,
}

impl Transaction<'_> {
    /// Adds a recipient, if its run has fewer than `most` of its kind, or gives one of the same name
    /// another body.
    ///
    /// # Errors
    /// There is no such session, or the store fails.
    pub fn add_recipient(&mut self, new: NewRecipient, most: usize) -> Result<Added, CommandError> {
        let session = self.rows.session(new.session)?;
        let session = session.ok_or(CommandError::NotFound(new.session))?;
        let all = self.rows.recipients(&session, new.run, &new.kind)?;
        let now = self.now();
        if let Some(known) = all.iter().find(|known| known.id == new.id) {
            let standing = match known.standing {
                // What it was not told of a run that is over is told all the same.
                Telling::GivenUp if new.is_over && known.told.revision >= new.after => {
                    Telling::Over
                }
                Telling::GivenUp => Telling::Open,
                standing => standing,
            };
            // One who tells it by the body that it had comes too late.
            let (claim, holder) = (known.claim + 1, None);
            let known = RecipientRow { standing, tries: 0, due: now, ..known.clone() };
            self.rows.set_recipient(&RecipientRow { body: new.body, claim, holder, ..known })?;
            return Ok(Added::Replaced);
        }
        if all.len() >= most {
            return Ok(Added::TooMany);
        }
        let row = RecipientRow {
            no: 0,
            session: new.session,
            run: new.run,
            kind: new.kind,
            id: new.id,
            body: new.body,
            told: Told { revision: new.after.min(session.tip.revision), part: 0 },
            due: now,
            tries: 0,
            standing: if new.is_over { Telling::Over } else { Telling::Open },
            claim: 0,
            holder: None,
        };
        self.rows.add_recipient(session.no, &row)?;
        Ok(Added::New)
    }

    /// Removes a recipient, and with it what it was not told yet; returns whether it was there.
    ///
    /// # Errors
    /// The store fails.
    pub fn remove_recipient(
        &mut self,
        session: SessionId,
        run: RunId,
        kind: &str,
        id: &str,
    ) -> Result<bool, Error> {
        let Some(session) = self.rows.session(session)? else { return Ok(false) };
        let all = self.rows.recipients(&session, run, kind)?;
        let Some(found) = all.into_iter().find(|row| row.id == id) else { return Ok(false) };
        self.rows.remove_recipient(found.no)?;
        Ok(true)
    }

    /// Claims a recipient for a process, until a time at most, if there is something to tell it by
    /// now and no other process has it. One that is dead has nothing.
    ///
    /// # Errors
    /// The store fails.
    pub fn claim_recipient(
        &mut self,
        no: i64,
        holder: HostId,
        until: Timestamp,
        is_dead: impl Fn(HostId) -> bool,
    ) -> Result<Option<RecipientRow>, Error> {
        let now = self.now();
        let Some((row, revision)) = self.rows.recipient(no)? else { return Ok(None) };
        let is_held = |(by, until): (HostId, Timestamp)| now < until && !is_dead(by);
        let is_due = row.standing == Telling::Open
            && row.due <= now
            && row.told.revision < revision
            && !row.holder.is_some_and(is_held);
        if !is_due {
            return Ok(None);
        }
        let row = RecipientRow { claim: row.claim + 1, holder: Some((holder, until)), ..row };
        self.rows.set_recipient(&row)?;
        Ok(Some(row))
    }

    /// Takes note how far a recipient was told under a claim, and what is to become of it.
    ///
    /// # Errors
    /// The store fails.
    pub fn told_recipient(
        &mut self,
        no: i64,
        claim: i64,
        told: Told,
        next: Next,
    ) -> Result<Taken, Error> {
        let Some((row, revision)) = self.rows.recipient(no)? else { return Ok(Taken::Lost) };
        if row.claim != claim || row.holder.is_none() {
            return Ok(Taken::Lost);
        }
        // Something that was told is the end of failing.
        let tries = if told > row.told { 0 } else { row.tries };
        let mut row = RecipientRow { told: told.max(row.told), tries, ..row };
        match next {
            Next::More(until) => row.holder = row.holder.map(|(by, _)| (by, until)),
            Next::Rest(until) if row.told.revision < revision => {
                row.holder = row.holder.map(|(by, _)| (by, until));
            }
            Next::Rest(_) => row.holder = None,
            Next::Later(due, failed) => {
                row.tries += u32::from(failed);
                (row.due, row.holder) = (due, None);
            }
            Next::Over => (row.standing, row.holder) = (Telling::Over, None),
            Next::GiveUp => {
                row.tries += 1;
                (row.standing, row.holder) = (Telling::GivenUp, None);
            }
        }
        self.rows.set_recipient(&row)?;
        Ok(if row.holder.is_some() { Taken::Held } else { Taken::Released })
    }
}
