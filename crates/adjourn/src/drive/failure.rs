//! Steps that fail: they are tried again, or the session waits, asks, or ends its run.

use std::collections::BTreeMap;

use adjourn_core::Command;
use adjourn_core::carry::Notes;
use adjourn_core::command::{AbortStep, Question, StepEnd};
use adjourn_core::conditions::Conditions;
use adjourn_core::limits;
use adjourn_driver::{Failure, Park};
use adjourn_store::{Error, Store};
use tracing::field::display;

use super::speech::{Speech, excerpt};
use super::{Drive, Next};
use crate::failures::Action;

/// The counter of a run that says how many steps have failed in a row. It is part of the state, so
/// that a host that takes over goes on counting.
const FAILED_STEPS: &str = "failed steps";

impl<S: Store> Drive<S> {
    /// Does about a failed step what the host is configured to.
    pub(super) async fn failed(
        &mut self,
        failure: Failure,
        mut speech: Box<Speech>,
    ) -> Result<Next, Error> {
        let failed = self.failed_steps();
        let [.., high, low] = self.clock.uuid().into_bytes();
        let chance = u16::from_be_bytes([high, low]);
        let action = self.failures.action(&failure, failed, self.clock.now(), chance);
        let Failure { kind, message, .. } = failure;
        // The claim is around it, and has the other ids.
        let run = self.session.run().map(|run| display(run.id));
        tracing::info!(run, kind, failed_before = failed, ?action, "a step failed");
        speech.abort();
        speech.note(noted(&kind, action, failed));
        let reason = excerpt(&format!("{kind}: {message}"));
        match action {
            Action::Retry(delay) => {
                let (step, said) = speech.end();
                let StepEnd { entries, usage, notes, last_words, .. } = step.clone();
                let abort = AbortStep { epoch: self.epoch, entries, usage, notes, last_words };
                self.retry_at = Some(self.clock.elapsed().saturating_add(delay));
                self.try_commit(Command::AbortStep(abort), step, said).await
            }
            Action::Park(at) => {
                let (step, said) = self.step_end(&mut speech);
                let conditions = Some(Conditions::at(at));
                self.park(Park::Await { reason, conditions, summary: None }, step, said).await
            }
            Action::Ask => {
                let (step, said) = self.step_end(&mut speech);
                let context = "The agent could not go on. It tries again with your answer.";
                let question = Question {
                    question: reason,
                    context: Some(context.to_owned()),
                    choices: Vec::new(),
                    originating_failure_kind: Some(kind),
                };
                self.park(Park::Ask(question), step, said).await
            }
            Action::Fail => {
                let (step, said) = self.step_end(&mut speech);
                let why = match failed {
                    0 => reason,
                    failed => excerpt(&format!("after {} tries: {reason}", failed + 1)),
                };
                self.fail(why, step, said).await
            }
        }
    }

    /// Takes note that a step has not failed.
    pub(super) fn not_failed(&self, speech: &mut Speech) {
        if self.failed_steps() > 0 {
            let repeats = BTreeMap::from([(FAILED_STEPS.to_owned(), 0)]);
            speech.note(Notes { repeats, ..Notes::default() });
        }
    }

    /// Returns how many steps have failed in a row.
    fn failed_steps(&self) -> u64 {
        self.session.run().map_or(0, |run| run.progress.repeats.get(FAILED_STEPS))
    }

    /// Waits until a step that failed is to be tried again, or something else is to be done.
    pub(super) async fn wait_to_retry(&mut self) -> Result<Next, Error> {
        let retry = self.until(self.retry_at);
        tokio::select! {
            biased;
            _ = self.signal.changed() => self.look(),
            () = retry => {
                self.retry_at = None;
                Ok(Next::GoOn)
            }
        }
    }
}

/// Returns what a run notes of a failure.
fn noted(kind: &str, action: Action, failed: u64) -> Notes {
    let failed = match action {
        Action::Retry(_) | Action::Park(_) => failed + 1,
        // After an answer the tries begin anew.
        Action::Ask | Action::Fail => 0,
    };
    let is_name = limits::name("kind", kind).is_ok();
    Notes {
        repeats: BTreeMap::from([(FAILED_STEPS.to_owned(), failed)]),
        failures: is_name.then(|| kind.to_owned()).into_iter().collect(),
        ..Notes::default()
    }
}
