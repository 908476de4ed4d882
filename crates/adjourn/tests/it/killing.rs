//! Drivers that do not end by themselves: what they have outside is ended, and that is waited for,
//! before anything is committed that says that nothing runs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adjourn::Config;
use adjourn_core::Command;
use adjourn_core::command::{Cancel, Mode, Suspend};
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::SessionId;
use adjourn_core::ledger::CallId;
use adjourn_core::session::Outcome;
use adjourn_driver::{
    BoxFuture, BoxStream, Call, CallContent, CallPart, Driver, Drivers, Finish, Part,
    RequestedCall, Step, Stop, Words, emitting,
};
use tokio::sync::watch;

use crate::fixture::{Fixture, Working};

/// How long what is in flight may go on, in every case.
const GRACE: Duration = Duration::from_millis(500);

/// An agent that never ends what it does, with something outside of it that takes its time to end.
#[derive(Clone)]
struct Endless {
    /// Whether it hangs in a call of its step, instead of in the step.
    in_call: bool,
    log: Arc<Mutex<Vec<String>>>,
    /// Whether what it has outside may end.
    lets_go: watch::Sender<bool>,
}

/// Takes down that what holds it is dropped.
struct Noted(Endless);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.note("dropped");
    }
}

impl Endless {
    fn new(in_call: bool) -> Self {
        Self { in_call, log: Arc::default(), lets_go: watch::Sender::new(false) }
    }

    fn note(&self, what: impl Into<String>) {
        self.log.lock().unwrap().push(what.into());
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// Waits until something was taken down; time passes meanwhile if `clock` does.
    async fn until(&self, what: &str, mut clock: impl FnMut()) {
        let start = Instant::now();
        while !self.log().iter().any(|line| line == what) {
            assert!(start.elapsed() < Duration::from_secs(20), "never {what}: {:?}", self.log());
            clock();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drivers for Endless {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Driver for Endless {
    fn ends_steps_itself(&self) -> bool {
        true
    }

    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let (agent, mut stop) = (self.clone(), step.stop.clone());
        emitting(|out| async move {
            if agent.in_call {
                let call = CallContent::new(CallId("c1".to_owned()), "deploy");
                out.emit(Part::Calls(vec![RequestedCall::new(call)])).await;
                return out.emit(Part::Finished(Finish::default())).await;
            }
            let _noted = Noted(agent.clone());
            let text = "so far".to_owned();
            out.emit(Part::Delta { message: 0, words: Words::Said, text }).await;
            agent.note("begun");
            loop {
                agent.note(match stop.changed().await {
                    Some(Stop { mode, within }) => format!("told {mode:?} within {within:?}"),
                    None => "told to go on".to_owned(),
                });
            }
        })
    }

    fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
        let agent = self.clone();
        emitting(|_| async move {
            let _noted = Noted(agent.clone());
            agent.note("begun");
            std::future::pending::<()>().await;
        })
    }

    fn kill(&mut self) -> BoxFuture<'static, ()> {
        let (agent, mut lets_go) = (self.clone(), self.lets_go.subscribe());
        Box::pin(async move {
            agent.note("kill");
            lets_go.wait_for(|lets_go| *lets_go).await.unwrap();
            agent.note("killed");
        })
    }
}

/// Returns what an agent takes down when it is told to stop.
fn told(mode: Mode, within: Duration) -> String {
    format!("told {mode:?} within {:?}", Some(within))
}

/// What ends an agent's work before it does.
#[derive(Debug, Clone, Copy)]
enum End {
    Suspend(Mode),
    Cancel,
    Drain,
}

const ENDS: [End; 4] = [
    End::Suspend(Mode::FinishStep),
    End::Suspend(Mode::InterruptImmediate),
    End::Cancel,
    End::Drain,
];

impl End {
    /// Asks for it; returns what stops the host, or does already.
    fn ask(self, fixture: &Fixture, id: SessionId, host: Working) -> BoxFuture<'static, ()> {
        let grace_ms = Some(u64::try_from(GRACE.as_millis()).unwrap());
        let command = match self {
            Self::Suspend(mode) => {
                Command::Suspend(Suspend { mode, grace_ms, ..Suspend::default() })
            }
            Self::Cancel => Command::Cancel(Cancel { grace_ms, ..Cancel::default() }),
            Self::Drain => {
                let stopping = tokio::spawn(host.stop());
                return Box::pin(async { stopping.await.unwrap() });
            }
        };
        fixture.give(id, command, Vec::new()).unwrap();
        Box::pin(host.stop())
    }

    /// Returns what the step is told, the state until the agent is gone, and the one behind it.
    fn expected(self, in_call: bool) -> (Mode, &'static str, &'static str) {
        match self {
            Self::Suspend(mode) => (mode, "quiescing", "suspended"),
            Self::Cancel => (Mode::InterruptImmediate, "quiescing", "idle"),
            // The next host finds a call of which nothing is known.
            Self::Drain if in_call => (Mode::FinishStep, "running", "suspended"),
            Self::Drain => (Mode::FinishStep, "running", "ready"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_end_by_itself_is_gone_before_the_commit_that_says_so() {
    for in_call in [false, true] {
        for end in ENDS {
            println!("{end:?}, {}", if in_call { "in a call" } else { "in a step" });
            let (fixture, agent) = (Fixture::new(), Endless::new(in_call));
            let config = Config { drain: GRACE, ..Config::default() };
            let host = fixture.host_as(Arc::new(agent.clone()), config).await;
            let id = fixture.create("{}");
            fixture.prompt(id, "go");
            agent.until("begun", || {}).await;
            let (mode, before, after) = end.expected(in_call);
            let told = told(mode, GRACE);
            let stopped = end.ask(&fixture, id, host);
            if !in_call {
                agent.until(&told, || {}).await;
            }
            agent.until("kill", || fixture.clock.advance(Duration::from_millis(50))).await;
            // As long as it is not gone, nothing is committed: it has five seconds.
            let pending = fixture.session(id);
            assert_eq!(pending.state.name(), before);
            for _ in 0..10 {
                fixture.clock.advance(Duration::from_millis(400));
                fixture.ring_hosts();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            assert_eq!(fixture.session(id).revision, pending.revision);
            agent.lets_go.send_replace(true);
            let over = fixture.until_state(id, after).await;
            let told = if in_call { None } else { Some(told) };
            let mut order = vec!["begun".to_owned()];
            order.extend(told);
            order.extend(["dropped", "kill", "killed"].map(str::to_owned));
            assert_eq!(agent.log()[..order.len()], order);
            assert_eq!(over.status().in_flight, Vec::<&str>::new());
            if let End::Cancel = end {
                assert_eq!(over.last_run.as_ref().unwrap().outcome, Outcome::Canceled);
            } else if in_call {
                assert_eq!(over.status().unknown_calls, ["deploy"]);
            }
            if !in_call {
                let said = fixture.said(id);
                assert_eq!(said[1].text(), "so far", "the words so far are kept");
                assert!(said[1].aborted || said[1].segment.is_some_and(|segment| !segment.last));
            }
            stopped.await;
        }
    }
}

/// An agent with a loop of its own has ten seconds for its answer to a cancel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_with_a_loop_of_its_own_is_ended_ten_seconds_after_a_cancel() {
    let (fixture, agent) = (Fixture::new(), Endless::new(false));
    agent.lets_go.send_replace(true);
    let host = fixture.host_with(Arc::new(agent.clone())).await;
    let kind = DriverKind::Acp { argv: vec!["endless".to_owned()] };
    let id = fixture.create_with(DriverSpec { kind, ..DriverSpec::script("") });
    fixture.prompt(id, "go");
    agent.until("begun", || {}).await;
    fixture.give(id, Command::Cancel(Cancel::default()), Vec::new()).unwrap();
    agent.until(&told(Mode::InterruptImmediate, Duration::from_secs(10)), || {}).await;
    fixture.clock.advance(Duration::from_millis(9_999));
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(fixture.session(id).state.name(), "quiescing");
    fixture.clock.advance(Duration::from_millis(1));
    agent.until("killed", || {}).await;
    fixture.until_state(id, "idle").await;
    host.stop().await;
}

/// What else happens to a session that comes to rest is no news of its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_is_told_once_how_and_when_it_is_to_end() {
    let (fixture, agent) = (Fixture::new(), Endless::new(false));
    agent.lets_go.send_replace(true);
    let host = fixture.host_with(Arc::new(agent.clone())).await;
    let id = fixture.create("{}");
    fixture.prompt(id, "go");
    agent.until("begun", || {}).await;
    let suspend = |mode, grace: Duration| {
        let grace_ms = Some(u64::try_from(grace.as_millis()).unwrap());
        fixture.suspend(id, Suspend { mode, grace_ms, ..Suspend::default() });
    };
    let (long, second) = (Duration::from_secs(60), Duration::from_secs(1));
    suspend(Mode::FinishStep, long);
    let first = told(Mode::FinishStep, long);
    agent.until(&first, || {}).await;
    for _ in 0..3 {
        let passed = fixture.session(id).revision;
        fixture.clock.advance(second);
        // Another caller joins, and asks for no more.
        suspend(Mode::FinishStep, long);
        fixture.until(id, "joined", |session| session.revision > passed).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    suspend(Mode::InterruptImmediate, long);
    let stronger = told(Mode::InterruptImmediate, long - 3 * second);
    agent.until(&stronger, || {}).await;
    assert_eq!(agent.log(), ["begun".to_owned(), first, stronger]);
    host.kill().await;
}

#[tokio::test]
async fn nothing_of_a_host_is_left_when_it_is_killed() {
    for in_call in [false, true] {
        let (fixture, agent) = (Fixture::new(), Endless::new(in_call));
        let adjourn = fixture.adjourn();
        let host = adjourn.host().others(Arc::new(agent.clone())).start().await.unwrap();
        adjourn.create("endless").prompt("go").await.unwrap();
        agent.until("begun", || {}).await;
        host.kill().await;
        assert_eq!(agent.log(), ["begun", "dropped"], "as if its process had died");
    }
}
