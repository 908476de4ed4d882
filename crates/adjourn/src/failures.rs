//! What a host does about steps that fail, for drivers without a policy of their own.

use std::collections::BTreeSet;
use std::time::Duration;

use adjourn_core::time::Timestamp;
use adjourn_driver::Failure;

/// What a host does about a step that fails.
///
/// A failure that names a time at which trying again makes sense parks the session until then.
/// Otherwise its kind decides: the host tries the step again after a while, asks a person, or fails
/// the run. Whichever way a step is tried again, the tries in a row are counted, and have an end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failures {
    /// How often a step is tried again, in a row, before its run fails.
    pub retries: u32,
    /// How long the host waits before the first of these tries. Each wait is twice as long as the
    /// one before, and up to half of it is left out by chance, so that sessions which failed
    /// together do not try again together.
    pub delay: Duration,
    /// How long it waits at most between two tries.
    pub longest_delay: Duration,
    /// How far away the time may be that a failure names; a run that would have to wait longer
    /// fails.
    pub longest_park: Duration,
    /// Kinds of failures that pass by themselves: the step is tried again.
    pub retry_on: BTreeSet<String>,
    /// Kinds of failures that a person can do something about: the session asks, and the answer is
    /// what the next step begins with.
    pub ask_on: BTreeSet<String>,
}

impl Default for Failures {
    fn default() -> Self {
        let kinds = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect();
        Self {
            retries: 4,
            delay: Duration::from_secs(1),
            longest_delay: Duration::from_secs(30),
            longest_park: Duration::from_secs(7 * 24 * 60 * 60),
            retry_on: kinds(&[
                "connection",
                "overloaded",
                "rate_limit",
                "timeout",
                "transient_provider",
                "unavailable",
            ]),
            ask_on: kinds(&["auth_required"]),
        }
    }
}

/// What is done about one failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// The step is tried again after so long.
    Retry(Duration),
    /// The session is parked until then.
    Park(Timestamp),
    /// A person is asked.
    Ask,
    /// The run fails.
    Fail,
}

impl Failures {
    /// Decides what is done about a failure that comes after `failed` failed tries in a row.
    /// `chance` is any number, and decides how much of the wait is left out.
    pub(crate) fn action(
        &self,
        failure: &Failure,
        failed: u64,
        now: Timestamp,
        chance: u16,
    ) -> Action {
        match failure.retry_at {
            Some(at) if at.since(now) > self.longest_park => return Action::Fail,
            Some(_) if !self.has_tries(failed) => return Action::Fail,
            Some(at) if at > now => return Action::Park(at),
            // The time is past: trying again makes sense, but not without end.
            Some(_) => return self.retry(failed, chance),
            None => {}
        }
        if self.retry_on.contains(&failure.kind) {
            self.retry(failed, chance)
        } else if self.ask_on.contains(&failure.kind) {
            Action::Ask
        } else {
            Action::Fail
        }
    }

    /// Returns whether a step may be tried again after so many failed tries in a row.
    fn has_tries(&self, failed: u64) -> bool {
        failed < u64::from(self.retries)
    }

    fn retry(&self, failed: u64, chance: u16) -> Action {
        if !self.has_tries(failed) {
            return Action::Fail;
        }
        let doublings = u32::try_from(failed).unwrap_or(u32::MAX);
        let delay = self.delay.saturating_mul(2_u32.saturating_pow(doublings));
        let delay = delay.min(self.longest_delay);
        Action::Retry(delay - (delay / 2).mul_f64(f64::from(chance) / 65_536.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn failure(kind: &str, retry_at: Option<Timestamp>) -> Failure {
        Failure { kind: kind.to_owned(), message: "no".to_owned(), retry_at }
    }

    #[test]
    fn the_kind_and_the_time_decide() {
        let failures = Failures::default();
        let action = |kind, at| failures.action(&failure(kind, at), 0, NOW, 0);
        let later = NOW.after(Duration::from_secs(60));
        let second = Action::Retry(Duration::from_secs(1));
        assert_eq!(action("rate_limit", None), second);
        assert_eq!(action("rate_limit", Some(later)), Action::Park(later));
        assert_eq!(action("no_such_kind", Some(later)), Action::Park(later));
        assert_eq!(action("no_such_kind", Some(NOW)), second);
        assert_eq!(action("auth_required", None), Action::Ask);
        assert_eq!(action("no_such_kind", None), Action::Fail);
        let tried = |failed| failures.action(&failure("rate_limit", Some(later)), failed, NOW, 0);
        assert_eq!((tried(3), tried(4)), (Action::Park(later), Action::Fail));
        let never = NOW.after(failures.longest_park + Duration::from_millis(1));
        assert_eq!(action("rate_limit", Some(never)), Action::Fail);
    }

    #[test]
    fn waits_double_up_to_a_bound_and_the_tries_end() {
        let failures = Failures { retries: 70, ..Failures::default() };
        let wait = |failed, chance| match failures.action(
            &failure("timeout", None),
            failed,
            NOW,
            chance,
        ) {
            Action::Retry(wait) => Some(wait.as_millis()),
            _ => None,
        };
        let waits: Vec<_> = (0..7).map(|failed| wait(failed, 0).unwrap()).collect();
        assert_eq!(waits, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        assert_eq!((wait(69, 0), wait(70, 0)), (Some(30_000), None));
        // Up to half of it is left out.
        assert_eq!(wait(1, u16::MAX / 2 + 1), Some(1_500));
        assert!(matches!(wait(1, u16::MAX), Some(1_000..=1_001)));
    }
}
