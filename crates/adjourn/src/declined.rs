//! Sessions that a host cannot run, and when it tries again.

use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::id::RunId;
use adjourn_core::time::Timestamp;
use adjourn_store::Error;

/// How long a session that cannot be run is left alone: what was missing may be there by then.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// A session that this host cannot run.
pub(crate) struct Declined {
    pub(crate) why: String,
    /// The turn it was declined in: a session that moves on is looked at again.
    turn: Option<(RunId, u64)>,
    again: Again,
    /// Whether it is a driver that says why: a log up to `info` has no words of others.
    by_driver: bool,
}

/// When a session that stays in its turn is tried again.
pub(crate) enum Again {
    /// When ready sessions are looked for the next time.
    Soon,
    /// A while after it was declined.
    After(Timestamp),
    /// Not before its turn is over.
    Never,
}

impl Declined {
    /// Takes note of a session that cannot be run.
    pub(crate) fn new(why: String, session: &Session, again: Again) -> Self {
        Self { why, turn: turn(session), again, by_driver: false }
    }

    /// Takes note of a session that its driver says cannot be run.
    pub(crate) fn by_driver(why: String, session: &Session, again: Again) -> Self {
        Self { by_driver: true, ..Self::new(why, session, again) }
    }

    /// Returns what a log may say of it at any level.
    pub(crate) fn kind(&self) -> &str {
        match self.again {
            Again::Soon if self.by_driver => "its agent needs something that is not here now",
            _ if self.by_driver => "its agent cannot be run here",
            _ => &self.why,
        }
    }

    /// Returns why in the words of its driver, if these are its.
    pub(crate) fn words(&self) -> Option<&str> {
        self.by_driver.then_some(&self.why)
    }

    /// Takes note of a session that cannot be read.
    pub(crate) fn unreadable(error: &Error) -> Self {
        Self { why: error.to_string(), turn: None, again: Again::Soon, by_driver: false }
    }

    /// Returns whether something is wrong with it, rather than missing on this host.
    pub(crate) const fn is_fault(&self) -> bool {
        self.turn.is_none() || self.is_final()
    }

    /// Returns whether it is not tried again in its turn.
    pub(crate) const fn is_final(&self) -> bool {
        matches!(self.again, Again::Never)
    }

    /// Returns whether a session is still to be left alone.
    pub(crate) fn holds(&self, session: &Session, now: Timestamp) -> bool {
        let early = match self.again {
            Again::Soon => false,
            Again::After(at) => now >= at && now.since(at) < TRY_AGAIN,
            Again::Never => true,
        };
        self.turn == turn(session) && early
    }
}

fn turn(session: &Session) -> Option<(RunId, u64)> {
    session.run().map(|run| (run.id, run.turn))
}
