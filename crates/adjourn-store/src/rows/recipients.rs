//! Those outside who are told what happens to a run.

use adjourn_core::id::{HostId, RunId, SessionId};
use adjourn_core::time::Timestamp;

use super::{SessionNo, SessionRow};
use crate::error::Error;

/// One outside who is told what happens to a run, at least once and in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipientRow {
    /// The number of the recipient, which is never given again.
    pub no: i64,
    /// The session that the run belongs to.
    pub session: SessionId,
    /// The run that the recipient is told of.
    pub run: RunId,
    /// The kind of recipient, which says how its body is read.
    pub kind: String,
    /// Its name among those of its run and kind.
    pub id: String,
    /// How it is told.
    pub body: Vec<u8>,
    /// How far it was told.
    pub told: Told,
    /// When it is told more at the earliest.
    pub due: Timestamp,
    /// How often in a row that has failed.
    pub tries: u32,
    /// Whether it is told more.
    pub standing: Telling,
    /// The number of its last claim.
    pub claim: i64,
    /// The process that tells it, and for how long at most.
    pub holder: Option<(HostId, Timestamp)>,
}

/// How far a recipient was told of a journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Told {
    /// The last entry that it was told all of.
    pub revision: u64,
    /// How much it was told of the next one.
    pub part: u32,
}

/// Whether a recipient is told more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Telling {
    /// It is told what happens next.
    Open,
    /// It was told the end of its run.
    Over,
    /// It could not be told for too long.
    GivenUp,
}

/// A recipient that is told more, as a list has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenRecipient {
    /// Its number.
    pub no: i64,
    /// The session that its run belongs to.
    pub session: SessionId,
    /// Whether the journal has more than it was told.
    pub is_behind: bool,
    /// When it is told more at the earliest.
    pub due: Timestamp,
    /// The process that tells it, and for how long at most.
    pub holder: Option<(HostId, Timestamp)>,
}

/// Which of the recipients that are told more are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// Those of every session, behind a number.
    All(i64),
    /// Those of one session.
    Session(SessionId),
}

/// Those outside who are told what happens to a run.
pub trait Recipients {
    /// Returns the recipients of a kind that a run has, in the order in which they were added.
    fn recipients(
        &mut self,
        session: &SessionRow,
        run: RunId,
        kind: &str,
    ) -> Result<Vec<RecipientRow>, Error>;
    /// Returns a recipient by its number, and how far the journal of its session goes.
    fn recipient(&mut self, no: i64) -> Result<Option<(RecipientRow, u64)>, Error>;
    /// Adds a recipient, which gets a number of its own.
    fn add_recipient(&mut self, session: SessionNo, row: &RecipientRow) -> Result<(), Error>;
    /// Keeps all that can change of a recipient; nothing if it is gone.
    fn set_recipient(&mut self, row: &RecipientRow) -> Result<(), Error>;
    /// Removes a recipient.
    fn remove_recipient(&mut self, no: i64) -> Result<(), Error>;
}
