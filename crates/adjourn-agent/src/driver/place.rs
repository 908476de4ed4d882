//! What an agent remembers between steps, beside what was said: it is the driver's state, and part
//! of every record.

mod repeats;
mod room;

use std::collections::{BTreeMap, BTreeSet};

use adjourn_core::id::RunId;
use adjourn_core::ledger::CallId;
use adjourn_core::session::Opening;
use adjourn_core::time::Timestamp;
use adjourn_core::{Session, json};
use serde::{Deserialize, Serialize};

use super::permission::{AskedPermission, StillToAsk};
use crate::failure::{Action, Failure, FailureKind};
use repeats::Repeats;

/// How many lessons are kept.
const LESSONS: usize = 5;

/// What an agent remembers between steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Place {
    /// The run that it belongs to.
    pub(crate) run: Option<RunId>,
    /// The turn of that run that it has entered.
    pub(crate) turn: u64,
    /// How many entries of the transcript it has looked at for failures of tools.
    pub(crate) seen: u64,
    /// How many answers of the model it has had, since the last time that limit was reset.
    pub(crate) iterations: u64,
    /// How many answers of the model the session has had, if that was ever counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answers: Option<u64>,
    /// How often each call was asked for, by its signature.
    pub(crate) repeats: Repeats,
    /// How often in a row each failure was met.
    pub(crate) attempts: BTreeMap<FailureKind, u32>,
    /// The last failure of each kind, the newest last.
    pub(crate) lessons: Vec<Failure>,
    /// What the model is told with the next call, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instruction: Option<String>,
    /// What is still to be done about a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pending: Option<Pending>,
    /// The failure that a person was asked about last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<FailureKind>,
    /// Calls that wait until a person has allowed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) permission: Option<AskedPermission>,
    /// Calls that a person is still to be asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) still_to_ask: Option<StillToAsk>,
    /// Tools that a person has allowed for good when the agent had parked to ask, the last one last.
    /// Those without room are asked about again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<String>,
    /// Calls of the last message whose tools ask for permission: no other call of such a tool runs.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) guarded: BTreeSet<CallId>,
    /// Failures of tools that are still to be met: a person was asked about another one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unmet: Vec<Failure>,
    /// Sources of tools that a person was asked about in this run and that have failed ever since.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) asked_sources: BTreeSet<SourceId>,
    /// How many model calls had no known price.
    pub(crate) unpriced_calls: u64,
}

/// What is told of it while the run goes on: the rest is not read for that.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Counts {
    /// See [`Place::iterations`].
    pub(crate) iterations: u64,
    /// See [`Place::unpriced_calls`].
    pub(crate) unpriced_calls: u64,
}

impl Counts {
    /// Reads where a session has got to.
    pub(crate) fn read(session: &Session) -> Self {
        read(session)
    }
}

fn read<'s, T: Default + Deserialize<'s>>(session: &'s Session) -> T {
    let state = session.driver_state.as_deref().unwrap_or("{}");
    json::stored_text(state).unwrap_or_default()
}

/// Which source of tools it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum SourceId {
    /// One without a name, by its place among the sources of the agent. Earlier states have all
    /// sources so: one that has a name by now is asked about once more.
    Place(usize),
    /// One that has a name.
    Name(String),
}

/// What is to be done about a failure, decided when it was met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) failure: Failure,
    pub(crate) action: Action,
    /// When a retry may begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) not_before: Option<Timestamp>,
}

impl Place {
    /// Reads where a session has got to.
    pub(crate) fn read(session: &Session) -> Self {
        read(session)
    }

    /// Enters the turn that the session is in; `hard` is the number of equal calls that is a loop.
    ///
    /// Returns whether it has taken what is told only once: the answer to what a person was asked
    /// about.
    pub(crate) fn enter(&mut self, session: &Session, hard: u64) -> bool {
        let Some(run) = session.run() else { return false };
        if self.run != Some(run.id) {
            // Counters end with their run; money and permissions are a session's. What tools said
            // before is no failure of this run: no step of it has asked for a call yet.
            let (unpriced_calls, answers) = (self.unpriced_calls, self.answers);
            let (allowed, seen) = (std::mem::take(&mut self.allowed), session.transcript.length);
            let kept = Self { unpriced_calls, answers, allowed, seen, ..Self::default() };
            *self = Self { run: Some(run.id), ..kept };
        }
        if self.turn == run.turn {
            return false;
        }
        self.turn = run.turn;
        let asked = self.asked.take();
        if let Opening::Wake(report) = &run.opening {
            // What earlier wakes brought is told with this one, if no step had begun with them.
            let answered = report.newest_first().any(|report| report.input.is_some());
            if asked == Some(FailureKind::LoopDetected) && answered {
                self.repeats.decay(hard);
            }
        }
        // A person has dealt with what was asked about: it is not met for the second time now.
        if let Some(asked) = asked {
            if asked == FailureKind::IterationLimit {
                self.iterations = 0;
            }
            self.attempts.remove(&asked);
        }
        asked.is_some()
    }

    /// Takes note of tools that a person has allowed for good.
    pub(crate) fn allow(&mut self, tools: impl IntoIterator<Item = String>) {
        for tool in tools {
            if !self.allowed.contains(&tool) {
                self.allowed.push(tool);
            }
        }
    }

    /// Returns how often a failure was met, and counts it.
    pub(crate) fn attempt(&mut self, failure: &Failure) -> u32 {
        let attempts = self.attempts.entry(failure.kind).or_insert(0);
        let before = *attempts;
        *attempts = attempts.saturating_add(1);
        self.learn(failure);
        before
    }

    /// Keeps what a failure teaches: the last one of its kind.
    pub(crate) fn learn(&mut self, failure: &Failure) {
        self.lessons.retain(|lesson| lesson.kind != failure.kind);
        self.lessons.push(failure.clone());
        if self.lessons.len() > LESSONS {
            self.forget_lesson();
        }
    }

    /// Forgets the oldest lesson, and returns whether there was one.
    fn forget_lesson(&mut self) -> bool {
        let oldest = (!self.lessons.is_empty()).then(|| self.lessons.remove(0));
        oldest.is_some()
    }

    /// Takes note that the model answered as it should: what had kept it from that is over, but for
    /// what tools have `raised` since.
    pub(crate) fn answered(&mut self, raised: &[FailureKind]) {
        self.iterations = self.iterations.saturating_add(1);
        self.answers = self.answers.map(|answers| answers.saturating_add(1));
        for kind in [
            FailureKind::TransientProvider,
            FailureKind::OutputTruncated,
            FailureKind::OutputRefused,
            FailureKind::NoProgress,
            FailureKind::AuthRequired,
            FailureKind::ScopeTooLarge,
            FailureKind::KernelInvalidated,
        ] {
            if !raised.contains(&kind) {
                self.attempts.remove(&kind);
            }
        }
        self.instruction = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_by_their_places_and_by_their_names() {
        let state = r#"{"asked_sources":[0,"wiki"]}"#;
        let mut place: Place = json::stored_text(state).unwrap();
        let known = [SourceId::Place(0), SourceId::Name("wiki".to_owned())];
        assert_eq!(place.asked_sources, known.into());
        let written = place.write();
        assert!(written.contains(r#""asked_sources":[0,"wiki"]"#), "{written}");
    }
}
