//! Steps and calls: what a host commits while the scripted agent works.

use std::time::Duration;

use adjourn_core::carry::Usage;
use adjourn_core::command::*;
use adjourn_core::ledger::{AskedCall, CallId, CallState};
use adjourn_core::session::{Opening, Outcome, Quiescing, State, Step, Stopping};
use adjourn_core::transcript::Digest;
use adjourn_core::{Command, MARK, Rejected};
use adjourn_driver::script::Item;

use super::Simulation;
use super::agent::{model_ms, tools};
use super::transcript::Line;

impl Simulation {
    /// Takes what has come back: the model's words, or the results of calls.
    pub(super) fn take_returns(&mut self) -> bool {
        let now = self.world.now;
        if self.host().model.is_some_and(|until| until <= now) {
            self.host_mut().model = None;
            self.speak();
            return true;
        }
        let returned: Vec<_> = self
            .host()
            .calls
            .iter()
            .filter(|(_, until)| **until <= now)
            .map(|(id, _)| id.clone())
            .collect();
        if returned.is_empty() {
            return false;
        }
        self.host_mut().calls.retain(|id, _| !returned.contains(id));
        let lines: Vec<_> =
            returned.iter().map(|id| Line::answer(id.clone(), format!("{id}: done"))).collect();
        let calls = returned.into_iter().map(|id| ReturnedCall { id, result: CallResult::Done });
        let (epoch, calls, entries) = (self.epoch(), calls.collect(), digests(&lines));
        let calls = ReturnCalls { epoch, calls, entries, usage: Usage::default() };
        self.drive_by(Command::ReturnCalls(calls), lines).expect("what was dispatched may return");
        true
    }

    /// Kills the calls in flight when the grace for them is over.
    pub(super) fn give_up(&mut self) -> bool {
        if self.session().abandon_at().is_none_or(|until| until > self.world.now) {
            return false;
        }
        let host = self.host_mut();
        host.model = None;
        host.calls.clear();
        let owned = Owned { epoch: self.epoch() };
        self.drive_by(Command::Abandon(owned), Vec::new()).expect("the grace is over");
        true
    }

    /// Breaks off the model if somebody wants the session suspended at once.
    pub(super) fn interrupt(&mut self) -> bool {
        let State::Quiescing(Quiescing { stopping: Stopping::Parking(parking), .. }) =
            &self.session().state
        else {
            return false;
        };
        let at_once =
            parking.client.as_ref().is_some_and(|client| client.mode == Mode::InterruptImmediate);
        if !at_once || self.host_mut().model.take().is_none() {
            return false;
        }
        let lines = vec![Line::words("(aborted)")];
        let abort =
            AbortStep { epoch: self.epoch(), entries: digests(&lines), ..AbortStep::default() };
        self.drive_by(Command::AbortStep(abort), lines).expect("a model in flight can be aborted");
        true
    }

    /// Takes the next step, or the next part of the one under way, where that is allowed.
    pub(super) fn go_on(&mut self) -> bool {
        if self.host().model.is_some() || !self.host().calls.is_empty() {
            return false;
        }
        let taken = match self.run().step {
            None => self.start_step(),
            Some(Step { .. }) if self.session().calls.any(CallState::Asked) => self.dispatch(),
            Some(Step { .. }) => {
                let item = self.transcript.last_item().expect("a step that asked for calls spoke");
                self.finish_step(item, Vec::new(), None)
            }
        };
        match taken {
            Ok(()) => true,
            // Nothing new may start; what is in flight, or a client, moves it on.
            Err(Rejected::Stopping { .. }) => false,
            Err(rejected) => panic!("a host is in step: {rejected}"),
        }
    }

    fn start_step(&mut self) -> Result<(), Rejected> {
        let Some(item) = self.items().get(self.next_item()) else {
            let finish = FinishRun { epoch: self.epoch(), end: completed() };
            return self.drive_by(Command::FinishRun(finish), Vec::new());
        };
        let until = self.world.now.after(Duration::from_millis(model_ms(item)));
        let mut lines = self.answers(true);
        lines.extend(self.host_mut().note.take().map(Line::words));
        let start = StartStep { epoch: self.epoch(), entries: digests(&lines) };
        self.drive_by(Command::StartStep(start), lines)?;
        assert!(
            self.transcript.dangling().is_empty(),
            "every call is answered before a model call"
        );
        self.host_mut().model = Some(until);
        Ok(())
    }

    /// The model has finished the next item of the script.
    fn speak(&mut self) {
        let number = self.next_item();
        let item = self.items()[number].clone();
        let spoken = match &item {
            Item::Say(say) => {
                let text = say.text.as_deref().unwrap_or_default();
                let line = Line::spoken(number, text, Vec::new());
                let finished = self.finish_step(number, vec![line], Some(text));
                finished.map(|()| self.trace.said.push(text.to_owned()))
            }
            Item::Tools { tools, .. } => {
                let tools = tools.iter().map(|tool| (tool.name.as_str(), tool.idempotent));
                self.ask_calls(number, tools).map(drop)
            }
            Item::Await { reason, summary, conditions } => {
                self.ask_calls(number, [("await_resumption", false)]).and_then(|calls| {
                    let wait = Await {
                        epoch: self.epoch(),
                        step: StepEnd::default(),
                        reason: reason.clone(),
                        conditions: conditions.clone(),
                        summary: summary.clone(),
                        call: calls.first().cloned(),
                        limit: None,
                        meta: None,
                    };
                    self.drive_by(Command::Await(wait), Vec::new())
                })
            }
            Item::Ask(question) => {
                self.ask_calls(number, [("ask_user", false)]).and_then(|calls| {
                    let question = question.clone();
                    let (epoch, step) = (self.epoch(), StepEnd::default());
                    let call = calls.first().cloned();
                    self.drive_by(
                        Command::Ask(Ask { epoch, step, question, call, meta: None }),
                        vec![],
                    )
                })
            }
            Item::Fail(_)
            | Item::FailStep { .. }
            | Item::End
            | Item::Spend(_)
            | Item::Show(_)
            | Item::Title(_) => {
                let line = Line::spoken(number, "", Vec::new());
                self.finish_step(number, vec![line], None)
            }
        };
        match spoken {
            // A cancel may have ended the run with what the model said last.
            Ok(()) | Err(Rejected::NotOwner { .. } | Rejected::Stopping { .. }) => {}
            Err(rejected) => panic!("a model may speak when it was asked to: {rejected}"),
        }
    }

    fn ask_calls<'a>(
        &mut self,
        item: usize,
        tools: impl IntoIterator<Item = (&'a str, bool)>,
    ) -> Result<Vec<CallId>, Rejected> {
        let run = self.runs;
        let calls: Vec<_> = tools
            .into_iter()
            .enumerate()
            .map(|(index, (tool, idempotent))| {
                let id = CallId(format!("{run}.{item}.{index}"));
                AskedCall { idempotent, ..AskedCall::new(id, tool) }
            })
            .collect();
        let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
        let lines = vec![Line::spoken(item, format!("calls {ids:?}"), ids.clone())];
        let (usage, driver_state) = (Usage::default(), None);
        let entries = digests(&lines);
        let ask = AskCalls {
            epoch: self.epoch(),
            calls,
            entries,
            usage,
            driver_state,
            ..AskCalls::default()
        };
        self.drive_by(Command::AskCalls(ask), lines)?;
        Ok(ids)
    }

    /// Starts the calls that may start: all of the step, or the next one of a sequence.
    fn dispatch(&mut self) -> Result<(), Rejected> {
        let mut calls = self.session().calls.at(CallState::Asked);
        let last = self.transcript.last_item().expect("a step that asked for calls spoke");
        let item = self.items()[last].clone();
        if matches!(item, Item::Tools { at_once: false, .. }) {
            // What comes next in a sequence needs what came before it.
            if self.session().calls.any(CallState::Unknown) {
                return self.decline(calls);
            }
            calls.truncate(1);
        }
        let dispatch = Dispatch { epoch: self.epoch(), calls: calls.clone(), always: Vec::new() };
        self.drive_by(Command::Dispatch(dispatch), Vec::new())?;
        for id in calls {
            let index = id.0.rsplit('.').next().and_then(|index| index.parse::<usize>().ok());
            let tool = &tools(&item)[index.expect("ids end with their place in the step")];
            self.trace.ran(&tool.name);
            let until = self.world.now.after(Duration::from_millis(tool.ms));
            self.host_mut().calls.insert(id, until);
        }
        Ok(())
    }

    fn decline(&mut self, calls: Vec<CallId>) -> Result<(), Rejected> {
        let line = |id: &CallId| Line::answer(id.clone(), format!("{MARK} not run"));
        let lines: Vec<_> = calls.iter().map(line).collect();
        let declined = |id| ReturnedCall { id, result: CallResult::Declined };
        let calls = calls.into_iter().map(declined).collect();
        let (epoch, entries, usage) = (self.epoch(), digests(&lines), Usage::default());
        let calls = ReturnCalls { epoch, calls, entries, usage };
        self.drive_by(Command::ReturnCalls(calls), lines)
    }

    fn finish_step(
        &mut self,
        item: usize,
        mut lines: Vec<Line>,
        words: Option<&str>,
    ) -> Result<(), Rejected> {
        let items = self.items();
        let ends = match &items[item] {
            Item::Fail(error) => {
                Some(RunEnd { outcome: Outcome::Failed, error: Some(error.clone()), ..completed() })
            }
            Item::End => Some(RunEnd { ends_session: true, ..completed() }),
            _ => (item + 1 == items.len()).then(completed),
        };
        lines.extend(self.answers(false));
        let step = StepEnd {
            entries: digests(&lines),
            last_words: words.map(str::to_owned),
            ..StepEnd::default()
        };
        let finish = FinishStep { epoch: self.epoch(), step, ends, next: false };
        self.drive_by(Command::FinishStep(finish), lines)
    }

    /// Returns the answers to calls that did not come back, which the model must not miss.
    fn answers(&self, to_waits: bool) -> Vec<Line> {
        let report = match &self.run().opening {
            Opening::Wake(report) => report.text(&[]),
            Opening::Prompt(_) => String::new(),
        };
        let open = self.session().calls.iter().filter_map(|open| {
            let text = match open.state {
                CallState::NotRun => format!("{MARK} not run: the session was suspended first"),
                CallState::Unknown => format!("{MARK} nobody knows whether it did its work"),
                CallState::Waiting if to_waits => report.clone(),
                CallState::Waiting
                | CallState::Asked
                | CallState::Dispatched
                | CallState::Deferred => return None,
            };
            Some(Line::answer(open.call.id.clone(), text))
        });
        open.collect()
    }

    /// Returns what the agent does in the run under way.
    fn items(&self) -> &[Item] {
        let items = self.script.run(self.runs - 1);
        items.expect("the script has a run for every prompt")
    }

    fn next_item(&self) -> usize {
        self.transcript.last_item().map_or(0, |item| item + 1)
    }
}

fn completed() -> RunEnd {
    RunEnd { outcome: Outcome::Completed, error: None, ends_session: false }
}

fn digests(lines: &[Line]) -> Vec<Digest> {
    lines.iter().map(Line::digest).collect()
}
