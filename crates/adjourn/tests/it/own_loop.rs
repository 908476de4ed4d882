//! An agent with a loop of its own: one step is one prompt turn, and it reports the calls that it
//! runs. It is stopped in every way at every point of its turn.
//!
//! It asks for two permissions, runs two calls that need none at the same time, then what it was
//! allowed to. What it really did stands in a log of its own, beside the store.

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::command::{Cancel, Mode, Suspend};
use adjourn_core::ledger::CallState;
use adjourn_core::{Command, Session};
use adjourn_driver::{Message, Role, model_view};

use crate::canned_model::SUSPENDS;
use crate::fake::{Agents, Sent, spec};
use crate::fixture::{Fixture, Working};
use crate::provider;
use crate::spoken::spoken;

/// The points that a turn passes in which nothing happens.
const POINTS: [&str; 18] = [
    "before anything",
    "its place is durable",
    "the prompt is sent",
    "words were said",
    "two permissions are open",
    "lint may start",
    "lint runs",
    "probe may start",
    "probe runs",
    "lint has ended, untold",
    "lint has ended",
    "probe has ended, untold",
    "probe has ended",
    "build may start",
    "build runs",
    "build has ended, untold",
    "build has ended",
    "before the end",
];

/// What happens to the agent where it is held: a suspend, something else, or both.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Act {
    suspends: Option<Mode>,
    then: Then,
}

impl Act {
    const fn suspends(mode: Mode) -> Self {
        Self { suspends: Some(mode), then: Then::Nothing }
    }

    /// Returns whether the turn goes on to its end as if nothing had happened.
    fn waits(self) -> bool {
        self == Self::suspends(Mode::WaitForCompletion)
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    Nothing,
    Cancel,
    /// Its host stops, and it comes to its end in time or not.
    Drain {
        in_time: bool,
    },
    /// Its host is killed.
    Kill,
}

/// A host with such agents, and one session.
struct Life {
    fixture: Fixture,
    agents: Agents,
    host: Working,
    id: adjourn_core::id::SessionId,
}

impl Life {
    async fn begin(hold_at: Option<usize>, keeps: bool) -> Self {
        let fixture = Fixture::new();
        let agents = Agents::new(&fixture, hold_at, keeps);
        let host = fixture.host_with(Arc::new(agents.clone())).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "build it");
        Self { fixture, agents, host, id }
    }

    fn session(&self) -> Arc<Session> {
        self.fixture.session(self.id)
    }

    async fn at_rest(&self) -> Arc<Session> {
        let rests = |session: &Session| matches!(session.state.name(), "suspended" | "idle");
        self.fixture.until(self.id, "at rest", rests).await
    }

    /// Starts another host, and stops or kills the one there is.
    async fn next_host(&mut self) -> Working {
        let host = self.fixture.host_with(Arc::new(self.agents.clone())).await;
        std::mem::replace(&mut self.host, host)
    }

    /// Lets something happen to the agent, which is held.
    async fn suffer(&mut self, act: Act) {
        let points = self.agents.points.clone();
        if let Some(mode) = act.suspends {
            self.fixture.suspend(self.id, Suspend { mode, ..Suspend::default() });
            if mode > Mode::WaitForCompletion {
                points.until_heard_as(mode).await;
            }
        }
        match act.then {
            Then::Nothing => {}
            Then::Cancel => {
                let cancel = Command::Cancel(Cancel::default());
                self.fixture.give(self.id, cancel, Vec::new()).unwrap();
                points.until_heard_as(Mode::InterruptImmediate).await;
            }
            Then::Drain { in_time } => {
                let stopping = tokio::spawn(self.next_host().await.stop());
                points.until_heard().await;
                if in_time {
                    points.release();
                }
                while !stopping.is_finished() {
                    if !in_time {
                        self.fixture.clock.advance(Duration::from_secs(10));
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                stopping.await.unwrap();
            }
            Then::Kill => {
                self.next_host().await.kill().await;
                points.until_heard_as(Mode::InterruptImmediate).await;
                self.fixture.ring_hosts();
            }
        }
        points.release();
    }

    /// Checks that ledger, digest, transcript and view say what the agent reported, and that this is
    /// what it did.
    fn check(&self, what: &str) {
        let log = self.agents.log();
        assert_eq!(log.wrong, Vec::<String>::new(), "{what}");
        let said = self.fixture.said(self.id);
        let view = model_view(&said);
        provider::takes(&view);
        log.views.iter().for_each(|view| provider::takes(view));
        let session = self.session();
        let digest = session.digest();
        for call in &log.calls {
            let what = format!("{what}, {}: {call:?}", call.id);
            assert!(call.started_outside <= 1, "{what} ran twice");
            let asking = said.iter().filter(|said| said.calls.iter().any(|c| c.id == call.id));
            assert_eq!(asking.count(), 1, "{what} is in the transcript once");
            let open = session.calls.get(&call.id).map(|open| open.state);
            let answers: Vec<_> =
                said.iter().filter(|said| said.answers.as_ref() == Some(&call.id)).collect();
            let fate = call.fate();
            if call.ended {
                assert_eq!(open, None, "{what}");
                assert_eq!(answers.len(), 1, "{what}");
                assert_eq!(answers[0].role, Role::Tool, "{what}");
                assert!(call.ended_outside || !call.started, "{what}");
                if call.started {
                    let ran = log.calls.iter().filter(|other| other.tool == call.tool);
                    let ran = ran.filter(|other| other.started && other.ended).count();
                    let line = format!("{} ({ran}×)", call.tool);
                    assert!(digest.contains(&line), "{what}: {digest}");
                }
            } else if let Some(open) = open {
                // The model is told before it speaks again.
                assert_eq!(answers, Vec::<&Message>::new(), "{what}");
                let (state, label) = match fate {
                    adjourn_driver::Fate::Unknown => (CallState::Unknown, "outcome unknown: "),
                    adjourn_driver::Fate::NotRun => (CallState::NotRun, "never run: "),
                };
                assert_eq!(open, state, "{what}");
                let line = digest.lines().find(|line| line.contains(label)).unwrap_or_default();
                assert!(line.contains(&call.tool), "{what}: {digest}");
            } else {
                assert_eq!(answers.len(), 1, "{what}");
                assert_eq!(answers[0].fate, Some(fate), "{what}");
            }
            if fate == adjourn_driver::Fate::NotRun {
                assert_eq!(call.started_outside, 0, "{what} ran");
            }
        }
    }
}

/// Lets one thing happen at one point.
async fn lives_through(hold_at: usize, act: Act, keeps: bool) {
    let mut life = Life::begin(Some(hold_at), keeps).await;
    let point = life.agents.points.until_held(std::future::pending()).await.unwrap();
    assert_eq!(point, POINTS[hold_at]);
    let what = format!("{act:?} at {point}, kept: {keeps}");
    println!("{what}");
    let open = life.session().status().in_flight.len();
    life.suffer(act).await;

    let session = life.at_rest().await;
    life.check(&what);
    let unknown = session.calls.at(CallState::Unknown).len();
    // An agent that is told to stop still reports what has ended.
    let cut_off = open - usize::from(point.ends_with("untold"));
    match (act.then, act.suspends) {
        (Then::Nothing, None) => unreachable!("something happens"),
        (Then::Nothing, Some(mode)) => {
            let suspended = session.suspended().unwrap();
            assert!(!suspended.park.pause.host_interrupted, "{what}");
            match mode {
                Mode::WaitForCompletion => assert_eq!(session.calls.len(), 0, "{what}"),
                // What was open has ended; what was started since is cut off.
                Mode::FinishStep => {
                    let since = POINTS[5..=8].contains(&point);
                    assert_eq!(
                        unknown,
                        usize::from(since && !point.starts_with("probe")),
                        "{what}"
                    );
                }
                Mode::InterruptImmediate => assert_eq!(unknown, cut_off, "{what}"),
            }
        }
        (Then::Cancel, _) => {
            assert_eq!(session.last_run.as_ref().unwrap().outcome.as_str(), "canceled", "{what}");
            assert_eq!(unknown, cut_off, "{what}");
        }
        (Then::Kill | Then::Drain { in_time: false }, None) if open > 0 => {
            let pause = session.status().pause.unwrap();
            assert_eq!(pause.reason, Some("host_interrupted"), "{what}");
            assert_eq!(unknown, open, "{what}");
        }
        (Then::Kill | Then::Drain { in_time: false }, None) => {
            assert_eq!(session.state.name(), "idle", "{what}");
        }
        // The suspend is not lost with the host, and is what the session waits for.
        (Then::Kill | Then::Drain { .. }, Some(_)) => {
            let suspended = session.suspended().unwrap();
            assert!(!suspended.park.pause.host_interrupted, "{what}");
            if act.then != (Then::Drain { in_time: true }) {
                assert_eq!(unknown, open, "{what}");
            }
        }
        (Then::Drain { in_time: true }, None) => {}
    }
    if !act.waits() {
        let asked = life.agents.log().permissions.iter().filter(|(_, how)| *how == "asked").count();
        let settled = life.agents.log().permissions.len() - asked;
        assert_eq!(asked, settled, "{what}: no permission is left open");
    }

    if session.suspended().is_some() {
        // With an input, too: the broken turn is told as one all the same.
        let goes_on = life.agents.log().finished == 0 && hold_at % 2 == 1;
        life.fixture.resume(life.id, goes_on.then_some("please")).unwrap();
    } else if act.then == Then::Cancel {
        life.fixture.prompt(life.id, "again");
    }
    let done = |session: &Session| {
        let outcome = session.last_run.as_ref().map(|run| run.outcome.as_str());
        session.state.name() == "idle" && outcome == Some("completed")
    };
    let session = life.fixture.until(life.id, "completed", done).await;
    life.check(&what);
    assert!(session.calls.is_empty(), "{what}: the agent was told everything");
    // A kill takes the words that were not committed; nothing else does.
    if act.then != Then::Kill {
        let said = life.agents.log().said.clone();
        let said: Vec<_> = said.into_iter().filter(|(words, _)| !words.is_empty()).collect();
        let spoken = spoken(&life.fixture.said(life.id));
        assert_eq!(spoken, said, "{what}: each word once, whole or broken off");
    }
    let Life { agents, host, .. } = life;
    host.stop().await;
    check_sent(&agents, act, point, keeps, &what);
}

/// Checks what the agent was sent, and by which driver.
fn check_sent(agents: &Agents, act: Act, point: &str, keeps: bool, what: &str) {
    let log = agents.log();
    let prompts = log.sent.iter().filter(|sent| matches!(sent, Sent::Prompt { .. }));
    let prompts: Vec<_> = prompts.map(Sent::text).collect();
    let place_known = point != POINTS[0];
    let was_sent = !POINTS[..2].contains(&point);
    let expected: &[&str] = match act.then {
        Then::Cancel if was_sent => &["build it", "again"],
        Then::Cancel => &["again"],
        // Whether it was sent cannot be known once the child has a session.
        _ if act.waits() => &["build it"],
        _ if place_known && !was_sent => &[],
        _ => &["build it"],
    };
    assert_eq!(prompts, expected, "{what}: the same prompt is never sent again");
    let went_on: Vec<_> = log.sent.iter().filter_map(Sent::continuation).collect();
    let broken = place_known && act.then != Then::Cancel && !act.waits();
    assert_eq!(went_on.len(), usize::from(broken), "{what}");
    if let Some(continuation) = went_on.first() {
        let fate = |wanted: Option<adjourn_driver::Fate>| {
            let calls = log.calls.iter().filter(|call| {
                let fate = (!call.ended).then(|| call.fate());
                fate == wanted
            });
            let mut calls: Vec<_> =
                calls.map(|call| (call.id.clone(), call.tool.clone())).collect();
            calls.sort();
            calls
        };
        let sorted = |calls: &[(adjourn_core::ledger::CallId, String)]| {
            let mut calls = calls.to_vec();
            calls.sort();
            calls
        };
        assert_eq!(sorted(&continuation.ended), fate(None), "{what}");
        let unknown = fate(Some(adjourn_driver::Fate::Unknown));
        assert_eq!(sorted(&continuation.unknown), unknown, "{what}");
        let not_run = fate(Some(adjourn_driver::Fate::NotRun));
        assert_eq!(sorted(&continuation.not_run), not_run, "{what}");
    }
    // A driver lives through what leaves its session at rest on the same host.
    let rests = matches!(act.then, Then::Nothing | Then::Cancel);
    if let ([first, next, ..], true) = (&log.stepped[..], rests) {
        assert_eq!(next == first, keeps, "{what}");
        // What is not kept is ended before another driver begins.
        let ended_behind = log.killed.first().map(|(_, steps)| *steps);
        assert_eq!(ended_behind, Some(if keeps { 2 } else { 1 }), "{what}");
    } else if let [first, next, ..] = &log.stepped[..] {
        assert_ne!(next, first, "{what}");
    }
}

async fn lives_through_at_every_point(act: Act, keeps: bool) {
    for point in 0..POINTS.len() {
        lives_through(point, act, keeps).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_comes_to_its_end() {
    let life = Life::begin(None, false).await;
    let session = life.at_rest().await;
    assert_eq!(session.last_run.as_ref().unwrap().outcome.as_str(), "completed");
    life.check("undisturbed");
    assert_eq!(life.agents.points.passed(), POINTS);
    let words: Vec<_> = life.fixture.said(life.id).iter().map(Message::text).collect();
    let (build, deploy) = ("build", "deploy");
    assert_eq!(
        words,
        [
            "build it",
            "I will build it.",
            // Messages without words ask for calls.
            "",
            "",
            "",
            "",
            "lint is done",
            "probe is done",
            &format!("{build} is done"),
            &format!("{deploy}: not today"),
            "All is built."
        ]
    );
    life.host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_mode_at_every_point_and_a_cold_resume() {
    for mode in [Mode::FinishStep, Mode::InterruptImmediate, Mode::WaitForCompletion] {
        lives_through_at_every_point(Act::suspends(mode), false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_mode_at_every_point_and_a_warm_resume() {
    for mode in [Mode::FinishStep, Mode::InterruptImmediate, Mode::WaitForCompletion] {
        lives_through_at_every_point(Act::suspends(mode), true).await;
    }
}

/// Lets something happen at every point, alone and right behind a suspend in each mode.
async fn lives_through_in_every_mode(then: Then, keeps: bool) {
    for suspends in SUSPENDS {
        lives_through_at_every_point(Act { suspends, then }, keeps).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_every_point_and_a_cold_prompt() {
    lives_through_in_every_mode(Then::Cancel, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_every_point_and_a_warm_prompt() {
    lives_through_in_every_mode(Then::Cancel, true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_at_every_point() {
    for keeps in [false, true] {
        lives_through_in_every_mode(Then::Drain { in_time: true }, keeps).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_that_is_too_late_at_every_point() {
    for keeps in [false, true] {
        lives_through_in_every_mode(Then::Drain { in_time: false }, keeps).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_every_point() {
    for keeps in [false, true] {
        lives_through_in_every_mode(Then::Kill, keeps).await;
    }
}
