//! What a step and its calls leave in the state.

use crate::carry::Notes;
use crate::command::{CallResult, ReturnedCall};
use crate::event::{CallsReturned, Progressed, StepFinished};
use crate::ledger::CallState;
use crate::limits;
use crate::session::{Session, State};

impl Session {
    pub(super) fn something_returned(&mut self) {
        if let State::Quiescing(quiescing) = &mut self.state {
            quiescing.draining = true;
        }
    }

    pub(super) fn progressed(&mut self, progressed: &Progressed) {
        self.transcript = progressed.transcript;
        for call in &progressed.asked {
            self.calls.ask(call.clone());
        }
        self.calls.set(&progressed.started, CallState::Dispatched);
        self.close_calls(&progressed.returned);
        self.totals.add(&progressed.usage);
        if progressed.driver_state.is_some() {
            self.driver_state.clone_from(&progressed.driver_state);
        }
        self.noted(&progressed.notes, progressed.last_words.as_deref());
        self.with_run(|run| run.progress.spent(&progressed.usage));
        if !progressed.returned.is_empty() {
            self.something_returned();
        }
    }

    pub(super) fn calls_returned(&mut self, returned: &CallsReturned) {
        self.transcript = returned.transcript;
        self.close_calls(&returned.calls);
        self.totals.add(&returned.usage);
        self.with_run(|run| run.progress.spent(&returned.usage));
        self.something_returned();
    }

    /// Takes calls that came back out of the ledger, and counts them.
    pub(super) fn close_calls(&mut self, returned: &[ReturnedCall]) {
        for call in returned {
            let Some(asked) = self.calls.close(&call.id) else { continue };
            match call.result {
                CallResult::Declined => {}
                CallResult::Done => self.memory.ran.add(&asked.tool, 1, limits::COUNTED_TOOLS),
                CallResult::Failed => {
                    self.memory.ran.add(&asked.tool, 1, limits::COUNTED_TOOLS);
                    self.memory.failed.add(&asked.tool, 1, limits::COUNTED_TOOLS);
                }
            }
        }
    }

    /// Takes what an agent notes about its progress, and what it said last.
    pub(super) fn noted(&mut self, notes: &Notes, last_words: Option<&str>) {
        if let Some(words) = last_words {
            words.clone_into(&mut self.memory.last_words);
        }
        for lesson in &notes.lessons {
            if self.memory.lessons.len() == limits::LESSONS {
                self.memory.lessons.remove(0);
            }
            self.memory.lessons.push(lesson.clone());
        }
        if let Some(title) = &notes.title {
            self.memory.title.clone_from(title);
        }
        for (option, value) in &notes.options {
            self.choose(option, value);
        }
        self.shown_at = self.shown_at.then(notes.shown_at);
        self.with_run(|run| run.progress.note(notes));
    }

    /// Gives an option another value, if there is such an option with such a value.
    pub(super) fn choose(&mut self, option: &str, value: &str) {
        let found = self.options.iter_mut().find(|known| known.id == option);
        if let Some(found) = found.filter(|found| found.allows(value)) {
            value.clone_into(&mut found.value);
        }
    }

    pub(super) fn step_finished(&mut self, finished: &StepFinished) {
        self.transcript = finished.transcript;
        self.totals.add(&finished.usage);
        self.calls.told(false);
        self.noted(&finished.notes, finished.last_words.as_deref());
        if finished.driver_state.is_some() {
            self.driver_state.clone_from(&finished.driver_state);
        }
        self.with_run(|run| {
            // A step whose model asked for calls was counted then, so that none goes uncounted
            // that is broken off before its end.
            if run.step.is_some_and(|step| step.model_in_flight) {
                run.progress.model_done(&finished.usage, &finished.notes);
            } else {
                run.progress.spent(&finished.usage);
            }
            run.step = None;
        });
        self.something_returned();
    }
}
