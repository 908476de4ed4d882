//! A step: the driver's stream is polled, told as events, and taken into the session at its end.

use std::future::poll_fn;
use std::sync::{Arc, PoisonError};
use std::task::Poll;

use adjourn_core::command::{AbortStep, Ask, AskCalls, Await, FinishStep, Mode, Progress, StepEnd};
use adjourn_core::ledger::CallId;
use adjourn_core::session;
use adjourn_core::{Command, Rejected};
use adjourn_driver::{
    BoxStream, Driver as _, Environment, Opening, Park, Part, Step, Stop, StopWatch, Transcript,
    Words, breakable,
};

use super::MemoryHost;
use super::speech::{Speech, Taken};
use crate::driver::Outbox;
use crate::events::{AgentEvent, ReasoningDelta, TextDelta};

/// What ends a wait for the next part.
enum Woken {
    Part(Option<Part>),
    /// The driver has something to tell beside the parts.
    News,
    Cancel,
}

impl MemoryHost {
    /// Runs a step that has begun.
    pub(super) async fn run_step(&mut self, step: session::Step) -> Result<(), Rejected> {
        let (stop, watch) = StopWatch::new();
        let mut speech = Speech::new(step.number, &self.session);
        if self.is_canceling() {
            stop.send_replace(Some(NOW));
        }
        let mut stream = breakable(watch.clone(), self.driver.step(self.given(step, watch)));
        loop {
            let woken = tokio::select! {
                biased;
                () = self.cancel_asked() => Woken::Cancel,
                woken = next(&mut stream, &self.outbox) => woken,
            };
            self.pass_on().await;
            let part = match woken {
                Woken::Part(Some(part)) => part,
                Woken::Part(None) => break,
                Woken::News => continue,
                Woken::Cancel => {
                    self.heed_cancel()?;
                    stop.send_replace(Some(NOW));
                    continue;
                }
            };
            if let Part::Delta { words, text, .. } = &part {
                let text = text.clone();
                let event = match words {
                    Words::Said => AgentEvent::TextDelta(TextDelta { text }),
                    Words::Thought => AgentEvent::ReasoningDelta(ReasoningDelta { text }),
                };
                self.out.emit(event).await;
            }
            match speech.take(part) {
                Taken::GoOn => {}
                Taken::Keep => {
                    let (usage, notes, driver_state) = speech.kept();
                    let epoch = self.session.epoch;
                    let progress =
                        Progress { epoch, usage, notes, driver_state, ..Progress::default() };
                    self.commit(Command::Progress(progress), Vec::new())?;
                }
                Taken::Over => break,
            }
        }
        drop(stream);
        self.pass_on().await;
        // One that came while the last event was read is heeded before the step has an end.
        self.heed_cancel()?;
        self.end_step(speech)
    }

    /// Takes the end of a step into the session.
    fn end_step(&mut self, mut speech: Speech) -> Result<(), Rejected> {
        let epoch = self.session.epoch;
        let said = speech.said();
        if speech.is_broken || self.is_canceling() {
            speech.is_broken = true;
            let (StepEnd { entries, last_words, usage, notes, .. }, said) = speech.end();
            let abort = AbortStep { epoch, entries, usage, notes, last_words };
            return self.commit(Command::AbortStep(abort), said);
        }
        if !said.trim().is_empty() {
            self.result.lock().unwrap_or_else(PoisonError::into_inner).text = said;
        }
        if !speech.calls.is_empty() {
            let mut parks = speech.calls.iter_mut();
            let park = parks.find_map(|call| Some((call.content.id.clone(), call.parks.take()?)));
            let calls = speech.ask();
            let (step, said) = speech.end();
            let StepEnd { entries, last_words, usage, notes, driver_state } = step;
            let parks = park.is_some();
            let ask =
                AskCalls { epoch, calls, parks, entries, usage, notes, last_words, driver_state };
            self.commit(Command::AskCalls(ask), said)?;
            return match park {
                Some((call, park)) => self.park(park, Some(call), StepEnd::default(), Vec::new()),
                None => Ok(()),
            };
        }
        let (park, ends) = (speech.park.take(), speech.ends.take());
        let (step, said) = speech.end();
        match park {
            Some(park) => self.park(park, None, step, said),
            None => {
                let finish = FinishStep { epoch, step, ends, next: false };
                self.commit(Command::FinishStep(finish), said)
            }
        }
    }

    fn park(
        &mut self,
        park: Park,
        call: Option<CallId>,
        step: StepEnd,
        said: Vec<adjourn_driver::Message>,
    ) -> Result<(), Rejected> {
        let epoch = self.session.epoch;
        let command = match park {
            Park::Await { reason, conditions, summary } => {
                let (limit, meta) = (None, None);
                let wait = Await { epoch, step, reason, conditions, summary, call, limit, meta };
                Command::Await(wait)
            }
            Park::Ask(question) => Command::Ask(Ask { epoch, step, question, call, meta: None }),
        };
        self.commit(command, said)
    }

    /// Returns what the driver is given for a step.
    fn given(&self, step: session::Step, stop: StopWatch) -> Step {
        let opening = match self.session.run().map(|run| &run.opening) {
            Some(session::Opening::Wake(report)) if step.opens => Opening::Wake(report.clone()),
            _ if step.opens => Opening::Prompt,
            _ => Opening::Next,
        };
        let source = Arc::clone(&self.entries);
        Step {
            session: Arc::clone(&self.session),
            opening,
            // The agent finds its place by its own state, also after a step that was broken off.
            continues: None,
            transcript: Transcript::new(source, self.session.transcript.length),
            stop,
            client: Arc::clone(&self.inner.client),
            environment: Arc::new(Environment::default()),
        }
    }
}

/// What a step is told when its run is cancelled.
const NOW: Stop = Stop { mode: Mode::InterruptImmediate, within: None };

/// Waits for the next part, or for something that the driver tells beside the parts. What it told
/// before a part is found in the outbox when the part is there.
async fn next(stream: &mut BoxStream<'static, Part>, outbox: &Outbox) -> Woken {
    poll_fn(|context| match stream.as_mut().poll_next(context) {
        Poll::Ready(part) => Poll::Ready(Woken::Part(part)),
        Poll::Pending if outbox.has_news() => Poll::Ready(Woken::News),
        Poll::Pending => Poll::Pending,
    })
    .await
}
