//! How long things are kept.

use std::time::Duration;

use adjourn_core::time::Timestamp;

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Journals and transcripts of sessions that have ended; for ever if absent.
    pub ended: Option<Duration>,
    /// Sessions that were never prompted; for ever if absent.
    pub unprompted: Option<Duration>,
    /// Events that no open turn may still need.
    pub events: Duration,
    /// Answers to idempotency keys, and message ids.
    pub answers: Duration,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Retention {
    /// How long hosts keep sessions that have ended, unless configured.
    pub const ENDED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

    /// How long events are kept that only a session has missed which cannot be read: one that is
    /// never read again must not keep the events of all others for ever.
    pub const UNREADABLE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

    /// What hosts keep by themselves.
    pub fn of_hosts() -> Self {
        Self { ended: Some(Self::ENDED), unprompted: Some(DAY), ..Self::default() }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Self { ended: None, unprompted: None, events: DAY, answers: DAY * 7 }
    }
}

/// What was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Sessions whose journal and transcript went; their links and last entry stay.
    pub sessions: u64,
    /// Journal entries that lost their body.
    pub entries: u64,
    /// Events that were removed.
    pub events: u64,
    /// Stored answers and message ids that were removed.
    pub answers: u64,
    /// Whether there may be more to drop.
    pub more: bool,
}

pub(crate) fn before(now: Timestamp, kept: Duration) -> Timestamp {
    let kept = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(now.as_millis().saturating_sub(kept))
}
