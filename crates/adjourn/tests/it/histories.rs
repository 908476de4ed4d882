//! Random histories: whatever an agent does, and whatever breaks it off, its model is shown a
//! conversation that every provider takes, each call came to one end, and nothing ran twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use adjourn::Config;
use adjourn_core::command::{CallResult, Cancel, Mode, Question, Resume, Suspend};
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::SessionId;
use adjourn_core::ledger::CallId;
use adjourn_core::session::Wait;
use adjourn_core::{Command, Session};
use adjourn_driver::{
    Block, BoxStream, Call, CallContent, CallPart, Driver, Drivers, Emitter, Finish, Message, Park,
    Part, Reported, RequestedCall, Shown, Step, Words, emitting, model_view,
};
use adjourn_testkit::dice::Dice;
use serde_json::json;

use crate::fixture::{Fixture, Working};
use crate::points::{Points, within};
use crate::provider;

/// How many histories are tried.
const HISTORIES: u64 = 60;
/// How many steps an agent takes before it is done.
const STEPS: u64 = 4;

/// An agent that draws what it does in each step, and how often each of its calls ran.
#[derive(Clone)]
struct Drawing {
    dice: Arc<Mutex<Dice>>,
    points: Points,
    ran: Arc<Mutex<HashMap<CallId, u32>>>,
    keeps: bool,
}

impl Drawing {
    fn below(&self, end: u64) -> u64 {
        self.dice.lock().unwrap().below(end)
    }

    /// Draws a call with arguments; its id is that of no other.
    fn call(&self, step: &Step, number: u64) -> CallContent {
        let id = CallId(format!("c{}.{number}", step.session.revision));
        let arguments = match self.below(3) {
            0 => serde_json::Value::Null,
            n => json!({ "path": format!("{n}.rs"), "deep": [{ "n": n }] }),
        };
        CallContent { arguments, ..CallContent::new(id, "edit") }
    }

    /// Does something that the step goes on behind.
    async fn act(&self, step: &Step, number: u64, out: &Emitter<Part>) {
        let text = format!("words {}.{number} ", step.session.revision);
        let message = u32::try_from(self.below(2)).unwrap();
        match self.below(8) {
            0 | 1 => out.emit(Part::Delta { message, words: Words::Said, text }).await,
            2 => out.emit(Part::Delta { message, words: Words::Thought, text }).await,
            3 => out.emit(Part::Message(Message::agent(text))).await,
            4 => out.emit(Part::Shown(Shown::Plan(vec![json!({ "content": text })]))).await,
            how => {
                let call = self.call(step, number);
                let id = call.id.clone();
                if how == 5 {
                    out.emit(Part::Reported(Reported::Asked(call.clone()))).await;
                    self.points.pass("a call was asked for", Some(&step.stop)).await;
                }
                // Some are never started, and some never end.
                if self.below(4) == 0 {
                    return;
                }
                out.emit(Part::Reported(Reported::Started(call))).await;
                self.points.pass("a call was started", Some(&step.stop)).await;
                if self.below(4) == 0 {
                    return;
                }
                let (result, content) = (CallResult::Done, vec![Block::text("done")]);
                let structured = (how == 6).then(|| json!({ "n": number }));
                let ended = Reported::Ended { id, result, content, structured };
                out.emit(Part::Reported(ended)).await;
            }
        }
    }

    /// Ends the step in one way or another.
    async fn end(&self, step: &Step, number: u64, out: &Emitter<Part>) {
        let question = Question {
            question: "which one?".to_owned(),
            context: None,
            choices: Vec::new(),
            originating_failure_kind: None,
        };
        let wait = |reason: &str| Park::Await {
            reason: reason.to_owned(),
            conditions: None,
            summary: None,
        };
        match self.below(5) {
            0 => {}
            1 => out.emit(Part::Park(wait("ci"))).await,
            how => {
                let call = |place| RequestedCall::new(self.call(step, number + place));
                let mut calls: Vec<_> = (0..=self.below(3)).map(call).collect();
                if how == 2 {
                    let last = calls.last_mut().unwrap();
                    let asks = self.below(2) == 0;
                    last.parks = Some(if asks { Park::Ask(question) } else { wait("review") });
                }
                out.emit(Part::Calls(calls)).await;
            }
        }
    }
}

impl Drivers for Drawing {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Driver for Drawing {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        provider::takes(&step.transcript.messages().unwrap());
        let done: u64 = step.session.driver_state.as_deref().unwrap_or("0").parse().unwrap();
        let drawing = self.clone();
        emitting(move |out| async move {
            let acts = drawing.below(4);
            for number in 0..acts {
                drawing.points.pass("before an act", Some(&step.stop)).await;
                drawing.act(&step, number * 10, &out).await;
            }
            drawing.points.pass("behind the acts", Some(&step.stop)).await;
            if done == STEPS {
                return out.emit(Part::Finished(Finish::completed())).await;
            }
            out.emit(Part::Message(Message::agent("next"))).await;
            drawing.end(&step, acts * 10, &out).await;
            let state = Some((done + 1).to_string());
            out.emit(Part::Finished(Finish { state, ..Finish::default() })).await;
        })
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        let drawing = self.clone();
        emitting(move |out| async move {
            let id = call.content.id.clone();
            *drawing.ran.lock().unwrap().entry(id).or_default() += 1;
            drawing.points.pass("in a call", None).await;
            let result = if drawing.below(3) == 0 { CallResult::Failed } else { CallResult::Done };
            let content = vec![Block::text("ran")];
            let structured = (drawing.below(2) == 0).then(|| json!({ "exitCode": 0 }));
            out.emit(CallPart::Ended { result, content, structured }).await;
        })
    }

    fn keep(&mut self) -> bool {
        self.keeps
    }
}

/// What happens to a session while its agent is held at a point.
#[derive(Debug, Clone, Copy)]
enum Harm {
    Suspend(Mode),
    Cancel,
    Drain,
    Kill,
}

struct History {
    fixture: Fixture,
    drawing: Drawing,
    host: Option<Working>,
    id: SessionId,
}

impl History {
    async fn begin(seed: u64) -> (Self, Harm) {
        let mut dice = Dice::new(seed);
        let harms = [
            Harm::Suspend(Mode::WaitForCompletion),
            Harm::Suspend(Mode::FinishStep),
            Harm::Suspend(Mode::InterruptImmediate),
            Harm::Cancel,
            Harm::Drain,
            Harm::Kill,
        ];
        let harm = harms[dice.index(harms.len())];
        let (points, keeps) = (Points::new(Some(dice.index(16))), dice.once_in(2));
        let (dice, ran) = (Arc::new(Mutex::new(dice)), Arc::default());
        let drawing = Drawing { dice, points, ran, keeps };
        let fixture = Fixture::new();
        let host = Some(fixture.host_with(Arc::new(drawing.clone())).await);
        let kind = DriverKind::Acp { argv: vec!["drawing".to_owned()] };
        let id = fixture.create_with(DriverSpec { kind, ..DriverSpec::script("") });
        fixture.prompt(id, "go");
        (Self { fixture, drawing, host, id }, harm)
    }

    /// Waits until the agent is held, or the run is over; parks of its own are lifted.
    async fn is_held(&self) -> bool {
        let over = async {
            while self.rest().await.state.name() != "idle" {
                self.wake();
            }
        };
        self.drawing.points.until_held(over).await.is_some()
    }

    async fn rest(&self) -> Arc<Session> {
        let rests = |session: &Session| matches!(session.state.name(), "suspended" | "idle");
        self.fixture.until(self.id, "at rest", rests).await
    }

    fn wake(&self) {
        let session = self.fixture.session(self.id);
        let Some(suspended) = session.suspended() else { return };
        let shown = &suspended.shown().pause;
        let input = matches!(shown.wait, Wait::Question(_)).then(|| Message::user("this one"));
        let content = input.as_ref().map(Message::content);
        let resume = Resume { handle: Some(shown.handle), input: content, ..Resume::default() };
        let said = input.into_iter().collect();
        self.fixture.give(self.id, Command::Resume(resume), said).unwrap();
    }

    async fn harm(&mut self, harm: Harm) {
        let points = self.drawing.points.clone();
        match harm {
            Harm::Suspend(mode) => {
                self.fixture.suspend(self.id, Suspend { mode, ..Suspend::default() });
                points.release();
            }
            Harm::Cancel => {
                let cancel = Command::Cancel(Cancel::default());
                self.fixture.give(self.id, cancel, Vec::new()).unwrap();
                points.release();
                self.fixture.until_state(self.id, "idle").await;
                self.fixture.prompt(self.id, "go on");
            }
            Harm::Drain => {
                let host = self.host.take().unwrap();
                let stopping = tokio::spawn(host.stop());
                points.release();
                within(stopping).await.unwrap();
            }
            Harm::Kill => {
                self.host.take().unwrap().kill().await;
                points.release();
            }
        }
        if self.host.is_none() {
            let drawing = Arc::new(self.drawing.clone());
            self.host = Some(self.fixture.host_as(drawing, Config::default()).await);
        }
    }

    /// Lifts every pause until the run is over.
    async fn end(&self) -> Arc<Session> {
        within(async {
            loop {
                let session = self.rest().await;
                if session.state.name() == "idle" {
                    return session;
                }
                self.wake();
            }
        })
        .await
    }

    fn check(&self, session: &Session, what: &str) {
        let said = self.fixture.said(self.id);
        // A crash may leave any beginning of it.
        for end in 0..=said.len() {
            provider::takes(&model_view(&said[..end]));
        }
        assert!(session.calls.is_empty(), "{what}: {:?}", session.calls);
        let ran = self.drawing.ran.lock().unwrap();
        assert!(ran.values().all(|times| *times == 1), "{what}: {ran:?}");
        // What was told of each call: its result, or what became of it, and never both twice.
        for call in said.iter().flat_map(|said| &said.calls) {
            let answers = said.iter().filter(|said| said.answers.as_ref() == Some(&call.id));
            assert_eq!(answers.count(), 1, "{what}: {call:?} in {said:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_history_has_views_that_providers_take_and_one_end_for_each_call() {
    for seed in 0..HISTORIES {
        let (mut history, harm) = History::begin(seed).await;
        let what = format!("seed {seed}, {harm:?}");
        println!("{what}");
        if history.is_held().await {
            history.harm(harm).await;
        }
        let session = history.end().await;
        history.check(&session, &what);
        history.host.take().unwrap().stop().await;
    }
}
