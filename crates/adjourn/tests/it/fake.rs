//! A fake agent with a loop of its own, and the log of what it really did.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};

use adjourn_core::Session;
use adjourn_core::command::{CallResult, Mode, RunEnd};
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::SessionId;
use adjourn_core::ledger::{CallId, CallState};
use adjourn_core::session::Outcome;
use adjourn_driver::{
    Block, BoxFuture, BoxStream, Call, CallContent, CallPart, Client, Continuation, Driver,
    Drivers, Emitter, Fate, Finish, ModelMessage, Opening, Part, PermissionAnswer,
    PermissionRequest, Reported, Role, Step, StopWatch, Words, emitting,
};
use adjourn_store::{Sqlite, Store as _};
use serde_json::json;

use crate::fixture::Fixture;
use crate::points::Points;

/// The drivers of all hosts of a test, and what they did.
#[derive(Clone)]
pub struct Agents {
    pub points: Points,
    store: Sqlite,
    log: Arc<Mutex<Log>>,
    /// Whether drivers want to be kept.
    keeps: bool,
}

/// What the agents did.
#[derive(Default)]
pub struct Log {
    /// Which driver ran each step.
    pub stepped: Vec<u32>,
    /// Which drivers were ended, and behind how many steps.
    pub killed: Vec<(u32, usize)>,
    pub sent: Vec<Sent>,
    pub calls: Vec<Known>,
    pub views: Vec<Vec<ModelMessage>>,
    pub permissions: Vec<(String, &'static str)>,
    /// The words of each message that the host has taken, and whether the message came to its end.
    pub said: Vec<(String, bool)>,
    /// How many turns came to their end.
    pub finished: usize,
    /// What was not durable when it had to be.
    pub wrong: Vec<String>,
    drivers: u32,
}

/// What the agent was sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Sent {
    Prompt { text: String },
    GoOn(Continuation),
}

impl Sent {
    pub fn text(&self) -> &str {
        match self {
            Self::Prompt { text } => text,
            Self::GoOn(_) => "",
        }
    }

    pub const fn continuation(&self) -> Option<&Continuation> {
        match self {
            Self::Prompt { .. } => None,
            Self::GoOn(continuation) => Some(continuation),
        }
    }
}

/// A call: what was reported of it, and what became of it outside.
#[derive(Debug, Clone)]
pub struct Known {
    pub id: CallId,
    pub tool: String,
    /// Whether its start was reported, and the host went on.
    pub started: bool,
    /// Whether its end was.
    pub ended: bool,
    pub started_outside: u32,
    pub ended_outside: bool,
}

impl Known {
    /// Returns what is to be told of it, if its end was never reported.
    pub const fn fate(&self) -> Fate {
        if self.started { Fate::Unknown } else { Fate::NotRun }
    }
}

pub fn spec() -> DriverSpec {
    let kind = DriverKind::Acp { argv: vec!["fake".to_owned()] };
    DriverSpec { kind, ..DriverSpec::script("") }
}

impl Agents {
    pub fn new(fixture: &Fixture, hold_at: Option<usize>, keeps: bool) -> Self {
        let (points, store) = (Points::new(hold_at), fixture.store.clone());
        Self { points, store, log: Arc::default(), keeps }
    }

    pub fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }
}

impl Drivers for Agents {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(Fake { agents: self.clone(), number: None }))
    }

    fn client(&self, _: SessionId) -> Arc<dyn Client> {
        Arc::new(Desk(Arc::clone(&self.log)))
    }
}

/// A driver; it has a number from its first step on.
struct Fake {
    agents: Agents,
    number: Option<u32>,
}

impl Driver for Fake {
    fn ends_steps_itself(&self) -> bool {
        true
    }

    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let mut log = self.agents.log();
        log.said.push((String::new(), false));
        let number = *self.number.get_or_insert_with(|| {
            log.drivers += 1;
            log.drivers
        });
        log.stepped.push(number);
        log.views.push(step.transcript.messages().unwrap());
        drop(log);
        let agents = self.agents.clone();
        emitting(move |out| async move {
            let (stop, session) = (step.stop.clone(), step.session.id);
            let (running, at_request) = (Vec::new(), None);
            let mut turn = Turn { agents, out, stop, session, running, at_request };
            if turn.run(step, number).await.is_break() {
                turn.out.emit(Part::Broken).await;
            }
        })
    }

    fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
        self.agents.log().wrong.push("the host runs a call of the agent's".to_owned());
        emitting(|_| async {})
    }

    fn keep(&mut self) -> bool {
        self.agents.keeps
    }

    fn kill(&mut self) -> BoxFuture<'static, ()> {
        let mut log = self.agents.log();
        let steps = log.stepped.len();
        log.killed.extend(self.number.map(|number| (number, steps)));
        drop(log);
        Box::pin(std::future::ready(()))
    }
}

/// One prompt turn.
struct Turn {
    agents: Agents,
    out: Emitter<Part>,
    stop: StopWatch,
    session: SessionId,
    /// Calls that the agent runs.
    running: Vec<CallId>,
    /// Those of them that it ran when it was told to stop.
    at_request: Option<Vec<CallId>>,
}

type Permission = Pin<Box<dyn Future<Output = PermissionAnswer> + Send>>;

impl Turn {
    async fn run(&mut self, step: Step, number: u32) -> ControlFlow<()> {
        self.pass("before anything").await?;
        let place = step.session.driver_state.clone();
        let is_new = place.is_none();
        if is_new {
            let place = format!("child-{number}");
            self.out.emit(Part::State(place.clone())).await;
            self.expect("the place", |session| session.driver_state.as_ref() == Some(&place));
            self.pass("its place is durable").await?;
        }
        let is_prompt = is_new || (step.opening == Opening::Prompt && step.continues.is_none());
        if is_prompt {
            let said = step.transcript.before(step.transcript.len(), 99).unwrap();
            let prompt = said.iter().rfind(|said| said.role == Role::User).unwrap();
            self.log().sent.push(Sent::Prompt { text: prompt.text() });
            self.prompted(&step).await?;
        } else {
            let Some(continuation) = step.continues else {
                self.log().wrong.push(format!("nothing to go on with: {:?}", step.opening));
                return ControlFlow::Continue(());
            };
            self.log().sent.push(Sent::GoOn(continuation));
            self.say("I went on.").await;
        }
        self.close();
        self.log().finished += 1;
        let ends = RunEnd { outcome: Outcome::Completed, error: None, ends_session: false };
        self.out.emit(Part::Finished(Finish { ends: Some(ends), ..Finish::default() })).await;
        ControlFlow::Continue(())
    }

    async fn prompted(&mut self, step: &Step) -> ControlFlow<()> {
        self.pass("the prompt is sent").await?;
        self.say("I will ").await;
        self.say("build it.").await;
        self.pass("words were said").await?;
        let (build, mut may_build) = self.ask("build", step).await;
        let (deploy, mut may_deploy) = self.ask("deploy", step).await;
        open(&mut may_build).await;
        open(&mut may_deploy).await;
        self.pass("two permissions are open").await?;
        let lint = self.new_call("lint");
        self.start(lint.clone(), ["lint may start", "lint runs"]).await?;
        let probe = self.new_call("probe");
        self.start(probe.clone(), ["probe may start", "probe runs"]).await?;
        self.end(lint, ["lint has ended, untold", "lint has ended"]).await?;
        self.end(probe, ["probe has ended, untold", "probe has ended"]).await?;
        if may_build.await == (PermissionAnswer::Granted { always: false }) {
            self.start(build.clone(), ["build may start", "build runs"]).await?;
            self.end(build, ["build has ended, untold", "build has ended"]).await?;
        }
        if let PermissionAnswer::Refused(why) = may_deploy.await {
            let content = vec![Block::text(format!("deploy: {why}"))];
            let (id, result) = (deploy.id, CallResult::Declined);
            let declined = Reported::Ended { id: id.clone(), result, content, structured: None };
            self.report(declined).await;
            self.known(&id, |known| known.ended = true);
        }
        self.say("All is built.").await;
        self.pass("before the end").await
    }

    async fn say(&self, text: &str) {
        let (words, text) = (Words::Said, text.to_owned());
        self.out.emit(Part::Delta { message: 0, words, text: text.clone() }).await;
        self.log().said.last_mut().unwrap().0 += &text;
    }

    /// Takes note that the message which is being said is whole.
    fn close(&self) {
        let mut log = self.log();
        log.said.last_mut().unwrap().1 = true;
        log.said.push((String::new(), false));
    }

    /// Reports something of a call, which ends the message before it.
    async fn report(&self, reported: Reported) {
        self.out.emit(Part::Reported(reported)).await;
        self.close();
    }

    fn new_call(&self, tool: &str) -> CallContent {
        let number = self.log().calls.len();
        CallContent::new(CallId(format!("{tool}-{number}")), tool)
    }

    fn add(&self, call: &CallContent) {
        let (id, tool) = (call.id.clone(), call.tool.clone());
        let (started, ended, started_outside, ended_outside) = (false, false, 0, false);
        let known = Known { id, tool, started, ended, started_outside, ended_outside };
        self.log().calls.push(known);
    }

    /// Asks whether a call may run.
    async fn ask(&self, tool: &str, step: &Step) -> (CallContent, Permission) {
        let call = self.new_call(tool);
        self.report(Reported::Asked(call.clone())).await;
        self.add(&call);
        self.expect(&format!("{tool} as asked"), |session| is(session, &call, CallState::Asked));
        let (session, options) = (self.session, Vec::new());
        let request = PermissionRequest { session, call: call.clone(), options };
        (call, step.client.permission(request))
    }

    /// Starts a call, once that is durable.
    async fn start(&mut self, call: CallContent, points: [&'static str; 2]) -> ControlFlow<()> {
        let CallContent { id, tool, .. } = call.clone();
        self.report(Reported::Started(call.clone())).await;
        if !self.log().calls.iter().any(|known| known.id == id) {
            self.add(&call);
        }
        self.known(&id, |known| known.started = true);
        self.expect(&format!("the start of {tool}"), |session| {
            is(session, &call, CallState::Dispatched)
        });
        self.running.push(id.clone());
        self.pass(points[0]).await?;
        self.known(&id, |known| known.started_outside += 1);
        self.pass(points[1]).await
    }

    async fn end(&mut self, call: CallContent, points: [&'static str; 2]) -> ControlFlow<()> {
        let id = call.id;
        self.known(&id, |known| known.ended_outside = true);
        self.agents.points.pass(points[0], Some(&self.stop)).await;
        let content = vec![Block::text(format!("{} is done", call.tool))];
        let (result, structured) = (CallResult::Done, Some(json!({ "done": call.tool })));
        let ended = Reported::Ended { id: id.clone(), result, content, structured };
        self.report(ended).await;
        self.known(&id, |known| known.ended = true);
        self.expect("an end", |session| session.calls.get(&id).is_none());
        self.running.retain(|running| *running != id);
        self.pass(points[1]).await
    }

    /// Passes a point, and breaks the turn off if it is to stop.
    async fn pass(&mut self, name: &'static str) -> ControlFlow<()> {
        self.agents.points.pass(name, Some(&self.stop)).await;
        let Some(stop) = self.stop.asked() else { return ControlFlow::Continue(()) };
        if stop.mode == Mode::InterruptImmediate {
            return ControlFlow::Break(());
        }
        // Whatever it has started since is not waited for.
        let at_request = self.at_request.get_or_insert_with(|| self.running.clone());
        match at_request.iter().any(|call| self.running.contains(call)) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    /// Notes if something is not durable that has to be by now.
    fn expect(&self, what: &str, holds: impl FnOnce(&Session) -> bool) {
        let session = self.agents.store.session(self.session).unwrap().unwrap();
        if !holds(&session) {
            self.log().wrong.push(format!("{what} is not durable: {:?}", session.calls));
        }
    }

    fn known(&self, id: &CallId, change: impl FnOnce(&mut Known)) {
        change(self.log().calls.iter_mut().find(|known| known.id == *id).unwrap());
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.agents.log()
    }
}

fn is(session: &Session, call: &CallContent, state: CallState) -> bool {
    let open = session.calls.get(&call.id);
    open.is_some_and(|open| open.call.by_agent && open.state == state)
}

/// Lets the client be asked, without waiting for its answer.
async fn open(permission: &mut Permission) {
    std::future::poll_fn(|context| {
        assert!(permission.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
}

/// A person who allows everything but to deploy, when they have thought about it.
struct Desk(Arc<Mutex<Log>>);

impl Client for Desk {
    fn permission(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        let (log, tool) = (Arc::clone(&self.0), request.call.tool);
        Box::pin(async move {
            log.lock().unwrap().permissions.push((tool.clone(), "asked"));
            let mut question = Question { log, tool: tool.clone(), how: "withdrawn" };
            tokio::task::yield_now().await;
            question.how = "answered";
            match tool.as_str() {
                "deploy" => PermissionAnswer::Refused("not today".to_owned()),
                _ => PermissionAnswer::Granted { always: false },
            }
        })
    }
}

/// A request for permission, until it is over.
struct Question {
    log: Arc<Mutex<Log>>,
    tool: String,
    how: &'static str,
}

impl Drop for Question {
    fn drop(&mut self) {
        self.log.lock().unwrap().permissions.push((self.tool.clone(), self.how));
    }
}
