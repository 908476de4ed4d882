//! An agent whose loop is ours: its model answers from a list, and is broken off at every point.
//!
//! The model looks around with one call. Then it asks for three at once, of which the one in the
//! middle asks a person and so parks the session; the others must not run. At last it has done.
//! What breaks it off is a suspend in each mode, a cancel, a host that stops or is killed, or two of
//! these; its driver is made anew for each claim, or kept warm.

use std::sync::Arc;
use std::time::Duration;

use adjourn::Config;
use adjourn_core::command::{Cancel, Mode, Resume, Suspend};
use adjourn_core::id::SessionId;
use adjourn_core::session::Wait;
use adjourn_core::{Command, Session};
use adjourn_driver::{Message, ModelMessage};
use adjourn_store::{Request, Store as _};
use serde_json::json;

use crate::canned::{Canned, expected, in_short, spec};
use crate::fixture::{Fixture, Working, ann};
use crate::points::within;
use crate::provider;
use crate::spoken::spoken;

/// Nothing else, or a suspend that is asked for right before.
pub const SUSPENDS: [Option<Mode>; 4] =
    [None, Some(Mode::FinishStep), Some(Mode::InterruptImmediate), Some(Mode::WaitForCompletion)];

/// What happens to the agent where it is held.
#[derive(Debug, Clone, Copy, Default)]
struct Act {
    suspends: Option<Mode>,
    /// Whether its host has yet to hear of that suspend when it goes on.
    unheard: bool,
    /// Whether the words so far had time to be committed.
    aged: bool,
    /// Whether the host is killed.
    crashes: bool,
    /// Whether the run is canceled.
    cancels: bool,
    /// Whether the host stops, and whether the agent comes to its boundary in time.
    drains: Option<Drain>,
    /// Whether drivers are kept.
    warm: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Drain {
    InTime,
    TooLate,
}

/// Everything that is to be known about one life of the agent.
pub struct Life {
    pub fixture: Fixture,
    pub canned: Canned,
    pub id: SessionId,
    pub host: Working,
    /// What the digest said at each pause.
    pub digests: Vec<String>,
    /// Whether it was ever parked because its host was lost.
    pub interrupted: bool,
}

impl Life {
    async fn begin(hold_at: Option<usize>, warm: bool) -> Self {
        let fixture = Fixture::new();
        let canned = Canned::new(hold_at, warm);
        let host = fixture.host_with(Arc::new(canned.clone())).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "tidy up");
        Self { fixture, canned, id, host, digests: Vec::new(), interrupted: false }
    }

    /// Lifts pauses and answers questions until the driver is held or the run is over; returns the
    /// point.
    async fn until_held(&mut self) -> Option<&'static str> {
        loop {
            let (fixture, id) = (&self.fixture, self.id);
            let rests = async {
                fixture.until(id, "at rest", is_at_rest).await;
            };
            if let Some(point) = self.canned.points.until_held(rests).await {
                return Some(point);
            }
            if fixture.session(id).state.name() == "idle" {
                return None;
            }
            self.wake(true);
        }
    }

    /// Lets something happen to the agent where it is held.
    async fn suffer(&mut self, act: Act, point: &str) {
        if act.aged {
            let before = self.fixture.session(self.id);
            self.fixture.clock.advance(Duration::from_secs(2));
            // Words that wait are committed; where none do, nothing is.
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(self.fixture.session(self.id).revision <= before.revision + 1);
        }
        if let Some(mode) = act.suspends {
            let suspend = Suspend { mode, ..Suspend::default() };
            if act.unheard {
                let suspend = Request::new(self.id, ann(), Command::Suspend(suspend));
                let elsewhere = self.fixture.another();
                elsewhere.transact(move |tx| tx.command(suspend)).wait().unwrap();
                return self.canned.points.release();
            }
            self.fixture.suspend(self.id, suspend);
        }
        if act.cancels {
            let cancel = Command::Cancel(Cancel::default());
            self.fixture.give(self.id, cancel, Vec::new()).unwrap();
        }
        if let Some(drain) = act.drains {
            self.drain(drain, point).await;
        } else if act.crashes {
            let drivers = Arc::new(self.canned.clone());
            let host = self.fixture.host_with(drivers).await;
            std::mem::replace(&mut self.host, host).kill().await;
            self.canned.points.until_heard().await;
            self.fixture.ring_hosts();
        } else if (act.suspends > Some(Mode::WaitForCompletion) || act.cancels)
            && point != "in a call"
        {
            self.canned.points.until_heard().await;
        }
        self.canned.points.release();
        if act.cancels {
            self.fixture.until_state(self.id, "idle").await;
            self.fixture.prompt(self.id, "go on");
        }
    }

    /// Stops the host, and lets another one go on.
    async fn drain(&mut self, drain: Drain, point: &str) {
        let next = self.fixture.host_with(Arc::new(self.canned.clone())).await;
        let stops = std::mem::replace(&mut self.host, next);
        let claimant = stops.claimant.clone();
        let stopping = tokio::spawn(stops.stop());
        within(async {
            while claimant.has_room() {
                tokio::task::yield_now().await;
            }
        })
        .await;
        if drain == Drain::TooLate {
            self.fixture.clock.advance(Config::default().drain);
            self.canned.points.until_heard().await;
        } else if point != "in a call" {
            self.canned.points.until_heard().await;
        }
        self.canned.points.release();
        within(stopping).await.unwrap();
    }

    /// Drives it to its end.
    pub async fn end(&mut self, continue_transcript: bool) -> Arc<Session> {
        loop {
            let session = self.fixture.until(self.id, "at rest", is_at_rest).await;
            if session.state.name() == "idle" {
                return session;
            }
            self.wake(continue_transcript);
        }
    }

    /// Answers the question, or lifts the pause.
    pub fn wake(&mut self, continue_transcript: bool) {
        let session = self.fixture.session(self.id);
        self.digests.push(session.digest());
        let shown = &session.suspended().unwrap().shown().pause;
        self.interrupted |= shown.host_interrupted;
        let input = matches!(shown.wait, Wait::Question(_)).then(|| Message::user("monthly"));
        let resume = Resume {
            handle: Some(shown.handle),
            input: input.as_ref().map(Message::content),
            continue_transcript: continue_transcript || input.is_none(),
            ..Resume::default()
        };
        let said = input.into_iter().collect();
        self.fixture.give(self.id, Command::Resume(resume), said).unwrap();
    }

    /// Returns what a model would be shown next.
    fn view(&self) -> Vec<ModelMessage> {
        adjourn_driver::model_view(&self.fixture.said(self.id))
    }

    /// Checks that the model is shown exactly what ran, and the digest says it; `lost` is whether
    /// the host was lost while a call was under way. Returns the view in short.
    pub fn check(&self, session: &Session, lost: bool, what: &str) -> Vec<String> {
        assert_eq!(session.last_run.as_ref().unwrap().outcome.as_str(), "completed", "{what}");
        assert_eq!(self.fixture.dispatched(self.id), 1, "{what}");
        assert!(session.calls.is_empty(), "{what}: the model was told everything");
        for view in self.canned.views.lock().unwrap().iter() {
            provider::takes(view);
        }
        let shown = in_short(&self.view());
        let given = self.canned.views.lock().unwrap().last().unwrap().clone();
        assert_eq!(in_short(&given), shown[..shown.len() - 1], "{what}: given to the last step");
        // What the digest says at the question is what the ledger knows.
        let asked = self.digests.iter().find(|digest| digest.contains("write, read")).unwrap();
        assert_eq!(asked.contains("what ran: look (1×)"), !lost, "{what}: {asked}");
        let unknown = self.digests.iter().any(|digest| digest.contains("outcome unknown: look"));
        assert_eq!(unknown, lost, "{what}: {:?}", self.digests);
        shown
    }
}

pub fn is_at_rest(session: &Session) -> bool {
    matches!(session.state.name(), "suspended" | "idle")
}

/// Returns the view of a run that was canceled at a point, and of the next one, which goes on where
/// it was: what was said and had not come to its end is left out.
fn canceled_at(hold_at: usize, mut view: Vec<String>) -> Vec<String> {
    let whole = match hold_at {
        // The first answer; the call that it asks for, and the second answer; the third one.
        0..=3 => 1,
        4..=8 => 3,
        _ => 8,
    };
    view.insert(whole, "user: go on".to_owned());
    view
}

/// Lets one thing happen at one point; returns whether there is such a point.
async fn lives_through(hold_at: usize, act: Act) -> bool {
    let mut life = Life::begin(Some(hold_at), act.warm).await;
    let Some(point) = life.until_held().await else {
        life.host.stop().await;
        return false;
    };
    let what = format!("{act:?} at {hold_at}, {point}");
    println!("{what}");
    life.suffer(act, point).await;
    let session = life.end(true).await;

    let ran = life.canned.ran();
    let tools: Vec<_> = ran.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(
        tools,
        ["look"],
        "{what}: the siblings of a question do not run, nothing runs twice"
    );
    assert_eq!(ran[0].arguments, json!({ "path": "look" }), "{what}");

    let lost = (act.crashes || act.drains == Some(Drain::TooLate)) && point == "in a call";
    let shown = life.check(&session, lost, &what);
    assert_eq!(life.interrupted, lost && act.suspends.is_none(), "{what}");
    let all = match act.cancels {
        true => canceled_at(hold_at, expected(lost, life.interrupted)),
        false => expected(lost, life.interrupted),
    };
    assert_eq!(shown, all, "{what}");
    // A crash takes the words that were not committed; nothing else does.
    if !act.crashes {
        let spoken = spoken(&life.fixture.said(life.id));
        assert_eq!(spoken, life.canned.passed(), "{what}: each word once, whole or broken off");
    }
    let drivers = life.canned.drivers();
    match (act.warm, act.crashes || act.drains.is_some()) {
        (true, false) => assert_eq!(drivers, 1, "{what}: the kept one goes on"),
        (true, true) => assert!(drivers <= 2, "{what}: {drivers} drivers of two hosts"),
        (false, _) => assert!(drivers >= 2, "{what}: the answer goes to another one"),
    }
    life.host.stop().await;
    true
}

/// Lets something happen at every point, once each.
async fn lives_through_at_every_point(act: Act) {
    let mut point = 0;
    while lives_through(point, act).await {
        point += 1;
    }
    // Before the first word, behind each of two pieces of words, behind the calls; and in a call.
    assert_eq!(point, 4 + 1 + 4 + 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_at_every_point_runs_nothing_twice_and_the_model_knows_what_ran() {
    for (aged, warm) in [(false, false), (false, true), (true, false), (true, true)] {
        lives_through_at_every_point(Act { crashes: true, aged, warm, ..Act::default() }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspend_at_every_point_leaves_the_model_its_conversation() {
    for suspends in SUSPENDS.into_iter().filter(Option::is_some) {
        for warm in [false, true] {
            lives_through_at_every_point(Act { suspends, warm, ..Act::default() }).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_a_host_that_is_to_suspend_loses_nothing_at_any_point() {
    for suspends in SUSPENDS.into_iter().filter(Option::is_some) {
        for warm in [false, true] {
            let (crashes, aged) = (true, suspends == Some(Mode::FinishStep));
            let act = Act { suspends, crashes, aged, warm, ..Act::default() };
            lives_through_at_every_point(act).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspend_that_the_host_has_not_heard_of_leaves_the_question_and_runs_nothing_beside_it() {
    for suspends in SUSPENDS.into_iter().filter(Option::is_some) {
        lives_through_at_every_point(Act { suspends, unheard: true, ..Act::default() }).await;
    }
}

/// Lets something happen at every point, alone and right behind a suspend in each mode.
async fn lives_through_in_every_mode(act: Act) {
    for suspends in SUSPENDS {
        lives_through_at_every_point(Act { suspends, ..act }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_every_point_runs_nothing_twice_and_the_next_run_goes_on() {
    lives_through_in_every_mode(Act { cancels: true, ..Act::default() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_every_point_leaves_a_warm_driver_that_goes_on() {
    lives_through_in_every_mode(Act { cancels: true, warm: true, ..Act::default() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_at_every_point_leaves_the_rest_to_another_one() {
    let drains = Some(Drain::InTime);
    lives_through_in_every_mode(Act { drains, ..Act::default() }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_at_every_point_takes_its_warm_driver_with_it() {
    for drains in [Some(Drain::InTime), Some(Drain::TooLate)] {
        lives_through_in_every_mode(Act { drains, warm: true, ..Act::default() }).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_too_late_at_every_point_is_like_one_that_is_killed() {
    let drains = Some(Drain::TooLate);
    lives_through_in_every_mode(Act { drains, ..Act::default() }).await;
}

/// A host that dies while the session waits for its answer changes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_behind_the_question_and_behind_the_answer_loses_neither() {
    for answered_first in [false, true] {
        let mut life = Life::begin(None, false).await;
        life.fixture.until_state(life.id, "suspended").await;
        if answered_first {
            // The answer is there, and no host is any more.
            let host = life.fixture.host_for(life.fixture.create("")).await;
            std::mem::replace(&mut life.host, host).kill().await;
            life.wake(true);
        }
        let host = life.fixture.host_with(Arc::new(life.canned.clone())).await;
        std::mem::replace(&mut life.host, host).kill().await;
        life.end(true).await;
        assert_eq!(in_short(&life.view()), expected(false, false));
        assert_eq!(life.canned.ran().len(), 1);
        life.host.stop().await;
    }
}

/// A turn that does not see the transcript is told in short what ran and what did not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_is_given_a_digest_knows_what_ran_and_what_did_not() {
    let mut life = Life::begin(None, false).await;
    life.end(false).await;
    let given = life.canned.views.lock().unwrap().last().unwrap().clone();
    provider::takes(&given);
    let digest = given[0].blocks[0].words().unwrap().to_owned();
    for line in [
        "first prompt: tidy up",
        "last words: I have to ask.",
        "what ran: look (1×)",
        "never run: write, read",
        "asked: which table?",
    ] {
        assert!(digest.contains(line), "{line:?} is not in {digest}");
    }
    let told = in_short(&given).join("\n");
    assert!(told.contains("monthly"), "the answer is not part of the digest: {told}");
    life.host.stop().await;
}
