//! Drivers that do what they should not: no words are lost, nothing runs twice, and the host and
//! its other sessions are none the worse for it.

mod calls;
mod kept;
mod kept_elsewhere;
mod notes;
mod refused;
mod words;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::command::{CallResult, Question, RunEnd};
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::SessionId;
use adjourn_core::ledger::CallId;
use adjourn_core::session::Outcome;
use adjourn_driver::{
    Block, BoxFuture, BoxStream, Call, CallContent, CallPart, Driver, Drivers, Finish, ModelRole,
    Park, Part, Reported, RequestedCall, Step, Words, emitting, model_view,
};

use tokio::sync::watch;

use crate::fixture::Fixture;
use crate::points::{Points, within};
use crate::provider;

/// Plays parts, one list for each step, and then ends the run.
#[derive(Clone)]
struct Player {
    steps: Arc<Mutex<VecDeque<Vec<Part>>>>,
    /// Passed behind the last part of each step.
    points: Points,
    dies: Dies,
    /// Whether drivers want to be kept.
    keeps: bool,
    /// Whether a driver that ends when it may does.
    may_end: watch::Sender<bool>,
    /// How often it says at once whether it is to be kept; then it does when it may.
    answers: usize,
    may_answer: watch::Sender<bool>,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    /// The calls that were started, with what they were given.
    ran: Vec<CallContent>,
    /// Drivers that ran a step, and drivers that were told to end, by their number.
    stepped: Vec<usize>,
    ended: Vec<usize>,
    /// Drivers that ran their first step, and drivers that have ended, in order.
    lives: Vec<(usize, &'static str)>,
    drivers: usize,
    /// How often drivers were asked whether they are to be kept.
    asked: usize,
}

/// What a driver does when it is told to end, or before.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Dies {
    InTime,
    /// It ends when the test lets it.
    WhenItMay,
    /// It never comes to its end.
    Hangs,
    Panics,
    /// It panics as soon as it is to run a step, or in the middle of one.
    AtOnce,
    InItsStream,
}

impl Player {
    fn new(steps: Vec<Vec<Part>>) -> Self {
        let (steps, points) = (Arc::new(Mutex::new(steps.into())), Points::new(None));
        let (may_end, may_answer) = (watch::Sender::new(false), watch::Sender::new(false));
        let (dies, keeps, answers) = (Dies::InTime, true, usize::MAX);
        Self { steps, points, dies, keeps, may_end, answers, may_answer, log: Arc::default() }
    }

    fn ran(&self) -> Vec<String> {
        self.log.lock().unwrap().ran.iter().map(|call| call.id.to_string()).collect()
    }

    /// Waits until drivers were asked so often whether they are to be kept.
    async fn until_asked(&self, times: usize) {
        within(async {
            while self.log.lock().unwrap().asked < times {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }

    async fn until_ended(&self, drivers: &[usize]) {
        within(async {
            while self.log.lock().unwrap().ended != drivers {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
    }
}

/// A driver; it has a number from its first step on.
struct Playing(Player, Option<usize>);

impl Drivers for Player {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        let DriverKind::Acp { .. } = spec.kind else { return Err("no player".to_owned()) };
        Ok(Box::new(Playing(self.clone(), None)))
    }
}

impl Driver for Playing {
    fn ends_steps_itself(&self) -> bool {
        true
    }

    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let mut log = self.0.log.lock().unwrap();
        let number = *self.1.get_or_insert_with(|| {
            log.drivers += 1;
            let number = log.drivers;
            log.lives.push((number, "began"));
            number
        });
        log.stepped.push(number);
        drop(log);
        assert!(self.0.dies != Dies::AtOnce, "as it was told to");
        let player = self.0.clone();
        let parts = player.steps.lock().unwrap().pop_front();
        emitting(move |out| async move {
            let is_last = parts.is_none();
            for part in parts.into_iter().flatten() {
                out.emit(part).await;
            }
            assert!(player.dies != Dies::InItsStream, "as it was told to");
            player.points.pass("behind the last part", Some(&step.stop)).await;
            let completed =
                RunEnd { outcome: Outcome::Completed, error: None, ends_session: false };
            let ends = is_last.then_some(completed);
            out.emit(Part::Finished(Finish { ends, ..Finish::default() })).await;
        })
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        self.0.log.lock().unwrap().ran.push(call.content.clone());
        // Too late, whatever it says.
        let (result, structured) = (CallResult::Declined, None);
        let content = vec![Block::text(format!("{} ran", call.content.id))];
        emitting(move |out| async move {
            out.emit(CallPart::Ended { result, content, structured }).await;
        })
    }

    fn keep(&mut self) -> bool {
        let asked = {
            let mut log = self.0.log.lock().unwrap();
            log.asked += 1;
            log.asked
        };
        // It is asked on a thread of the runtime, which has another one for the rest of the test.
        while asked > self.0.answers && !*self.0.may_answer.borrow() {
            std::thread::yield_now();
        }
        self.0.keeps
    }

    fn kill(&mut self) -> BoxFuture<'static, ()> {
        self.0.log.lock().unwrap().ended.extend(self.1);
        assert!(self.0.dies != Dies::Panics, "as it was told to");
        let (log, number, dies) = (Arc::clone(&self.0.log), self.1, self.0.dies);
        let mut may_end = self.0.may_end.subscribe();
        Box::pin(async move {
            match dies {
                Dies::Hangs => std::future::pending().await,
                Dies::WhenItMay => drop(may_end.wait_for(|may_end| *may_end).await),
                _ => {}
            }
            log.lock().unwrap().lives.extend(number.map(|number| (number, "ended")));
        })
    }
}

fn spec() -> DriverSpec {
    let kind = DriverKind::Acp { argv: vec!["player".to_owned()] };
    DriverSpec { kind, ..DriverSpec::script("") }
}

fn say(text: &str) -> Part {
    Part::Delta { message: 0, words: Words::Said, text: text.to_owned() }
}

fn call(id: &str) -> CallContent {
    let arguments = serde_json::json!({ "of": id });
    CallContent { arguments, ..CallContent::new(CallId::from(id), id) }
}

fn calls(ids: &[&str]) -> Part {
    Part::Calls(ids.iter().map(|id| RequestedCall::new(call(id))).collect())
}

fn ended(id: &str, result: CallResult) -> Part {
    let content = vec![Block::text(format!("{id} has ended"))];
    let structured = None;
    Part::Reported(Reported::Ended { id: CallId::from(id), result, content, structured })
}

fn ask(id: &str, question: &str) -> RequestedCall {
    let question = Question {
        question: question.to_owned(),
        context: None,
        choices: Vec::new(),
        originating_failure_kind: None,
    };
    RequestedCall { parks: Some(Park::Ask(question)), ..RequestedCall::new(call(id)) }
}

/// Lets a player play until its session is idle; returns the fixture and the session.
async fn play(player: &Player) -> (Fixture, Arc<Session>) {
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(player.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    let session = fixture.until_state(id, "idle").await;
    provider::takes(&model_view(&fixture.said(id)));
    host.stop().await;
    (fixture, session)
}

fn outcome(session: &Session) -> &str {
    session.last_run.as_ref().unwrap().outcome.as_str()
}

/// Returns what the agent said, in whole messages, and the results, as a model is shown them.
fn shown(fixture: &Fixture, id: SessionId) -> Vec<String> {
    let view = model_view(&fixture.said(id));
    let words = |blocks: &[Block]| blocks.iter().filter_map(Block::words).collect::<String>();
    let shown = view.iter().filter(|message| message.role != ModelRole::User);
    shown.map(|message| words(&message.blocks)).collect()
}
