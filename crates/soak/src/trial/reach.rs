//! How soon a command from one process reaches a session that another one runs: while that one is
//! saturated with other sessions, and when it is dead.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::SessionRef;
use adjourn::core::Session;
use adjourn::core::command::Mode;
use adjourn::core::id::SessionId;
use serde_json::json;

use crate::client::{Client, named};
use crate::process::Program;
use crate::scene::Scene;
use crate::trial::PATIENCE;

/// Sessions that keep the host busy, one commit after the other.
const BUSY: usize = 40;
/// How often each figure is taken.
const TIMES: usize = 15;
/// Sessions that the host may drive at once.
const RUNNING: usize = 128;
/// How often somebody looks who waits for something that takes a millisecond.
const LOOK: Duration = Duration::from_micros(300);
/// How long it may take where somebody is rung. It takes milliseconds; a host that nobody rings
/// looks once a second, and somebody who watches every 250 ms.
const RUNG: Duration = Duration::from_millis(200);
/// How long it may take until the sessions of a dead host are found, by hosts that look once a
/// second.
const FOUND: Duration = Duration::from_secs(3);

/// How long something took, several times.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What.
    pub what: &'static str,
    /// How long half of the times may take: a machine that does other things, too, is slow now
    /// and then, and where nobody rings it is slow every time.
    pub limit: Duration,
    /// Half of the times it took no longer.
    pub median: Duration,
    /// It never took longer.
    pub worst: Duration,
}

impl Figure {
    fn new(what: &'static str, limit: Duration, mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |index: usize| times.get(index).copied().expect("it was measured");
        Self { what, limit, median: at(times.len() / 2), worst: at(times.len() - 1) }
    }

    /// Says that it took too long, if it did.
    pub fn problem(&self) -> Option<String> {
        let Self { limit, median, .. } = self;
        (median > limit).then(|| format!("{self}, where the median should be below {limit:?}"))
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        write!(f, "{}: median {:.1} ms, worst {:.1} ms", self.what, ms(self.median), ms(self.worst))
    }
}

/// Measures.
///
/// # Panics
/// Something never happens.
pub async fn run(directory: &Path, program: PathBuf) -> Vec<Figure> {
    let bench = Bench::new(directory, program.clone());
    let thinks = r#"{"steps": [{"say": {"text": "hm", "ms": 600000}}]}"#;
    let mut host = bench.program.host(RUNNING);
    let mut thinking = bench.start(thinks, 3 * TIMES, is_thinking).await;
    let seen = bench.watched(thinking.split_off(2 * TIMES)).await;
    let mut waiting = Vec::new();
    for number in 0..TIMES {
        let on_event = format!("go.on:{number}");
        let waits = json!({ "await": { "reason": "x", "conditions": { "onEvent": on_event } } });
        let script = json!({ "steps": [waits, { "say": { "text": "hm", "ms": 600_000 } }] });
        let parked = |session: &Session| session.suspended().is_some();
        waiting.extend(bench.start(&script.to_string(), 1, parked).await);
    }
    let busy = format!(r#"{{"steps": [{}]}}"#, vec![r#"{"say": "hm"}"#; 10_000].join(","));
    bench.start(&busy, BUSY, |session| session.revision > 20).await;

    let mut suspended = Vec::new();
    for id in thinking.split_off(TIMES) {
        bench.interrupt(id).await;
        suspended.push(bench.reached(id, |session| session.suspended().is_some()).await);
    }
    let mut canceled = Vec::new();
    for id in thinking {
        bench.way(id).cancel().await.expect("it is accepted");
        // The model call in flight is let go; only then it is over.
        canceled.push(bench.reached(id, |session| session.run().is_none()).await);
    }
    let mut woken = Vec::new();
    // One after the other: each has to be rung for.
    for (number, id) in waiting.into_iter().enumerate() {
        let event = (format!("go-{number}"), number.to_string());
        bench.client.happens(1, event.0, "go.on", event.1).await.expect("stored");
        let start = Instant::now();
        bench.until(id, is_thinking).await;
        woken.push(start.elapsed());
    }
    host.kill().expect("it lives until then");
    drop(bench);
    let mut figures = vec![
        Figure::new("suspend of a session on a host, to somebody who watches", RUNG, seen),
        Figure::new("suspend of a session on a saturated host", RUNG, suspended),
        Figure::new("cancel of a session on a saturated host", RUNG, canceled),
        Figure::new("event to a session of a saturated host", RUNG, woken),
    ];
    // In a store of its own: those who kept the other one busy would go on with it.
    let directory = directory.join("dead");
    std::fs::create_dir(&directory).expect("there is room");
    figures.extend(Bench::new(&directory, program).dead(thinks).await);
    figures
}

struct Bench {
    client: Client,
    program: Program,
}

impl Bench {
    fn new(directory: &Path, program: PathBuf) -> Self {
        let scene = Scene::at(directory);
        let program = Program::new(program, scene.clone());
        Self { client: Client::new(&scene), program }
    }

    /// Sets sessions to work, and waits until they are as described.
    async fn start(
        &self,
        script: &str,
        count: usize,
        is: impl Fn(&Session) -> bool,
    ) -> Vec<SessionId> {
        let mut sessions = Vec::new();
        for _ in 0..count {
            let id = self.client.create(script).await.expect("a session is made").session.id;
            self.way(id).prompt("go").await.expect("it is accepted");
            sessions.push(id);
        }
        for id in &sessions {
            self.until(*id, &is).await;
        }
        sessions
    }

    /// Returns the way to a session through a handle of its own.
    fn way(&self, id: SessionId) -> SessionRef {
        self.client.session(1, id, named("ann"))
    }

    /// Interrupts a session, and returns when that is acknowledged.
    async fn interrupt(&self, id: SessionId) {
        let interrupt = self.way(id).suspend().mode(Mode::InterruptImmediate).accepted();
        interrupt.await.expect("it is accepted");
    }

    /// Returns how long after its acknowledgement a command has taken effect.
    async fn reached(&self, id: SessionId, is: impl Fn(&Session) -> bool) -> Duration {
        let start = Instant::now();
        self.until(id, is).await;
        start.elapsed()
    }

    async fn until(&self, id: SessionId, is: impl Fn(&Session) -> bool) {
        let start = Instant::now();
        loop {
            let session = self.session(id).await;
            if is(&session) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "it never happens: {:?}", session.status());
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Suspends sessions, and returns how soon after the acknowledgement a program has seen it that
    /// watches them.
    async fn watched(&self, sessions: Vec<SessionId>) -> Vec<Duration> {
        let mut times = Vec::new();
        for id in sessions {
            self.interrupt(id).await;
            let start = Instant::now();
            let watch = self.client.adjourn().session(id).watch().from_now();
            let mut moments = watch.await.expect("a session stays");
            while self.session(id).await.suspended().is_none() {
                moments.next().await.expect("the store works");
            }
            times.push(start.elapsed());
        }
        times
    }

    async fn session(&self, id: SessionId) -> Arc<Session> {
        self.client.adjourn().session(id).load().await.expect("a session stays")
    }

    /// Kills the host of a session, and sees how soon another one has it.
    async fn dead(&self, script: &str) -> Vec<Figure> {
        let (mut by_another, mut by_the_next) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let mut host = self.program.host(RUNNING);
            let id = self.start(script, 1, is_thinking).await.pop().expect("one");
            let epoch = self.session(id).await.epoch;
            let taken = |session: &Session| session.epoch > epoch && is_thinking(session);
            // The first to claim was the only one there, so this one has nothing to do yet.
            let mut other = self.program.host(RUNNING);
            let hosts = async || self.client.adjourn().known_hosts().await.map(|all| all.len());
            while hosts().await.expect("the store works") < 2 {
                tokio::time::sleep(LOOK).await;
            }
            host.kill().expect("it lives until then");
            let start = Instant::now();
            self.until(id, taken).await;
            by_another.push(start.elapsed());
            other.kill().expect("it lives until then");
            let start = Instant::now();
            let mut next = self.program.host(RUNNING);
            let again = |session: &Session| session.epoch.0 > epoch.0 + 1 && is_thinking(session);
            self.until(id, again).await;
            by_the_next.push(start.elapsed());
            self.way(id).cancel().await.expect("it is accepted");
            self.until(id, |session| session.run().is_none()).await;
            next.kill().expect("it lives until then");
        }
        vec![
            Figure::new("a dead host's session, to another host", FOUND, by_another),
            Figure::new("a dead host's session, to the next that starts", FOUND, by_the_next),
        ]
    }
}

fn is_thinking(session: &Session) -> bool {
    let step = session.run().and_then(|run| run.step);
    session.owner().is_some() && step.is_some_and(|step| step.model_in_flight)
}
