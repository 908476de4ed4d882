//! What is done about a failure: the one way that every failure goes.

use std::time::Duration;

use adjourn_core::carry::Notes;
use adjourn_core::command::{Mode, RunEnd};
use adjourn_core::limits;
use adjourn_core::session::Outcome;
use adjourn_driver::{Finish, Park, Part};

use super::place::Pending;
use super::questions;
use super::step::Stepping;
use crate::events::{AgentError, AgentEvent};
use crate::failure::{Action, Failure};

/// Whether a step goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    GoOn,
    Over,
}

impl Stepping {
    /// Meets a failure: decides what is done about it, counts it, keeps the lesson and tells it.
    ///
    /// `wait` is how long a retry has to wait at least.
    pub(super) async fn meet(&mut self, failure: Failure, wait: Option<Duration>) -> Pending {
        let attempts = self.place.attempt(&failure);
        self.met(failure, attempts, wait).await
    }

    /// Meets the failure of a source of tools, as [`Stepping::meet`] does. It is always the first of
    /// its kind: a run goes on without those tools, however many sources fail and however often, and
    /// calls of other tools may fail as often as without it.
    pub(super) async fn meet_of_source(&mut self, failure: Failure) -> Pending {
        self.place.learn(&failure);
        self.met(failure, 0, None).await
    }

    async fn met(&self, failure: Failure, attempts: u32, wait: Option<Duration>) -> Pending {
        let inner = &self.driver.inner;
        let backoff = jittered(inner.policy.backoff(failure.kind, attempts));
        let wait = backoff.max(wait.unwrap_or_default());
        let action = match inner.policy.decide(&failure, attempts) {
            // A retry that is further away than a run may work is none.
            Action::Retry if wait > inner.limits.max_execution_time => Action::Handoff,
            action => action,
        };
        tracing::debug!(kind = %failure.kind, ?action, attempts, "a failure was met");
        let notes = Notes {
            failures: vec![failure.kind.as_str().to_owned()],
            lessons: vec![limits::excerpt(&failure.to_string(), limits::LESSON_BYTES)],
            ..Notes::default()
        };
        self.out.emit(Part::Noted(notes)).await;
        if matches!(action, Action::Retry | Action::NarrowScope) {
            self.driver.tell(|| {
                AgentEvent::Error(AgentError {
                    message: failure.to_string(),
                    failure: Some(failure.clone()),
                    recoverable: true,
                    error_type: None,
                })
            });
        }
        let retries_later = action == Action::Retry && !wait.is_zero();
        let not_before = retries_later.then(|| self.driver.clock.now().after(wait));
        Pending { failure, action, not_before }
    }

    /// Does what was decided about a failure.
    pub(super) async fn carry_out(&mut self, pending: Pending) -> Flow {
        let Pending { failure, action, not_before } = pending;
        let ends = match action {
            Action::Retry => {
                let Some(at) = not_before else { return Flow::GoOn };
                let clock = &self.driver.clock;
                let mut stop = self.step.stop.clone();
                tokio::select! {
                    () = clock.sleep(at.since(clock.now())) => return Flow::GoOn,
                    _ = stop.at_least(Mode::FinishStep) => {}
                }
                // The session is to rest, and nothing of this step is worth waiting for.
                self.break_off(Pending { failure, action, not_before }).await;
                return Flow::Over;
            }
            Action::NarrowScope => {
                self.place.instruction = Some(questions::instruction(&failure));
                return Flow::GoOn;
            }
            Action::AskUser => {
                self.place.asked = Some(failure.kind);
                let park = Park::Ask(questions::question(&failure));
                self.out.emit(Part::Park(park)).await;
                None
            }
            Action::Handoff => {
                let handoff = questions::handoff(&failure);
                let why = format!("handed off: {}", handoff.rationale);
                self.driver.tell(|| AgentEvent::Handoff(handoff));
                Some(failed(&why))
            }
            Action::Stop => {
                let summary = questions::summary(&failure, &self.place.lessons);
                self.driver.tell(|| AgentEvent::PartialRunSummary(summary));
                Some(failed(&format!("stopped: {failure}")))
            }
        };
        self.finish(ends).await;
        Flow::Over
    }

    /// Breaks the step off; the next one does what was decided.
    pub(super) async fn break_off(&mut self, pending: Pending) {
        self.place.pending = Some(pending);
        self.out.emit(Part::State(self.place.write())).await;
        self.out.emit(Part::Broken).await;
    }

    /// Ends the step.
    pub(super) async fn finish(&mut self, ends: Option<RunEnd>) {
        let (state, model_silent) = (Some(self.place.write()), !self.spoken);
        self.out.emit(Part::Finished(Finish { state, ends, model_silent })).await;
    }
}

fn failed(why: &str) -> RunEnd {
    let error = Some(limits::excerpt(why, limits::EXCERPT_BYTES));
    RunEnd { outcome: Outcome::Failed, error, ends_session: false }
}

/// Takes off up to half of a wait by chance, so that many agents do not try again as one.
fn jittered(wait: Duration) -> Duration {
    let chance = getrandom::u32().unwrap_or(0);
    let off = wait.as_secs_f64() / 2.0 * (f64::from(chance) / f64::from(u32::MAX));
    wait.saturating_sub(Duration::from_secs_f64(off))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_cut_by_half_at_most() {
        let wait = Duration::from_secs(8);
        let waits: Vec<_> = (0..50).map(|_| jittered(wait)).collect();
        assert!(waits.iter().all(|jittered| (wait / 2..=wait).contains(jittered)));
        assert!(waits.iter().any(|jittered| *jittered != waits[0]), "all alike: {waits:?}");
        assert_eq!(jittered(Duration::ZERO), Duration::ZERO);
    }
}
