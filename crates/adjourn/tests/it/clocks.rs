//! The clock jumps, and deadlines and events still act once, and not before their time; a grace
//! goes by a clock that does not jump.

use std::time::Duration;

use adjourn_core::Command;
use adjourn_core::command::{Cancel, Suspend};
use adjourn_testkit::VirtualClock;

use crate::fixture::Fixture;

const MINUTE: Duration = Duration::from_secs(60);
const SCRIPT: &str = r#"{"runs": [[
    {"await": {"reason": "x", "conditions": {"onEvent": "ci.passed", "timeout": {"durationMinutes": 5}}}},
    {"say": "woken"}]]}"#;

fn resumed(fixture: &Fixture, id: adjourn_core::id::SessionId) -> usize {
    fixture.happened(id).iter().filter(|name| **name == "resumed").count()
}

/// Lets the host look at everything once more, without time passing.
async fn a_look(fixture: &Fixture) {
    let other = fixture.create(r#"{"runs": [[{"say": "hi"}]]}"#);
    fixture.prompt(other, "go");
    fixture.until_state(other, "idle").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumps_ahead_fires_a_deadline_once() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(SCRIPT);
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    fixture.clock.advance(MINUTE * 60 * 24 * 400);
    fixture.until_state(id, "idle").await;
    assert_eq!(resumed(&fixture, id), 1);
    assert_eq!(fixture.session(id).woke.as_ref().unwrap().cause.to_string(), "timeout");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_set_back_fires_nothing_early_and_loses_nothing() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(SCRIPT);
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    fixture.clock.set_back(MINUTE * 60);
    fixture.clock.advance(MINUTE * 6);
    a_look(&fixture).await;
    assert_eq!(fixture.session(id).state.name(), "suspended", "its time has not come");
    fixture.clock.advance(MINUTE * 60);
    fixture.until_state(id, "idle").await;
    assert_eq!(resumed(&fixture, id), 1);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_wakes_whatever_the_clock_shows() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(SCRIPT);
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    fixture.clock.set_back(MINUTE * 60 * 24);
    fixture.event("ci.passed");
    fixture.until_state(id, "idle").await;
    // The deadline that was not needed comes, too, and finds nobody.
    fixture.clock.advance(MINUTE * 60 * 25);
    a_look(&fixture).await;
    assert_eq!(resumed(&fixture, id), 1);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_ring_is_made_up_for_also_when_the_clock_was_set_back() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(SCRIPT);
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    fixture.clock.set_back(MINUTE * 60);
    // The host comes to rest; if it has not by then, this shows less, but nothing wrong.
    tokio::time::sleep(Duration::from_millis(200)).await;
    fixture.event_unheard("ci.passed");
    fixture.until_state(id, "idle").await;
    host.stop().await;
}

const HANGS: &str = r#"{"runs": [[{"tool": {"name": "hang", "ms": 999999999}}]]}"#;

/// What may be done to a wall clock while somebody waits.
fn jumps() -> [fn(&VirtualClock); 2] {
    [|clock| clock.set_back(MINUTE * 60), |clock| clock.set_ahead(MINUTE * 60)]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grace_is_neither_longer_nor_shorter_when_the_clock_is_set() {
    let cancel = || Command::Cancel(Cancel { grace_ms: Some(10_000), ..Cancel::default() });
    let suspend = || Command::Suspend(Suspend { grace_ms: Some(10_000), ..Suspend::default() });
    for (stop, state) in [(cancel as fn() -> Command, "idle"), (suspend, "suspended")] {
        for jump in jumps() {
            let fixture = Fixture::new();
            let host = fixture.host().await;
            let id = fixture.create(HANGS);
            fixture.prompt(id, "go");
            fixture.until_in_flight(id, "hang").await;
            // Once before, so that the journal's times are ahead of the clock or far behind it.
            jump(&fixture.clock);
            fixture.give(id, stop(), Vec::new()).unwrap();
            // The call, and the host that gives it a while.
            fixture.clock.until_waited_for(2).await;
            jump(&fixture.clock);
            fixture.clock.advance(Duration::from_millis(9_900));
            a_look(&fixture).await;
            assert_eq!(fixture.session(id).status().in_flight, ["hang"], "it has a moment left");
            fixture.clock.advance(Duration::from_millis(100));
            fixture.until_state(id, state).await;
            host.stop().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_is_neither_longer_nor_shorter_when_the_clock_is_set() {
    for jump in jumps() {
        let fixture = Fixture::new();
        let host = fixture.host().await;
        let id = fixture.create(HANGS);
        fixture.prompt(id, "go");
        fixture.until_in_flight(id, "hang").await;
        let stopping = tokio::spawn(host.stop());
        fixture.clock.until_waited_for(2).await;
        jump(&fixture.clock);
        fixture.clock.advance(Duration::from_millis(29_900));
        // Time for whoever would give it up.
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(fixture.session(id).status().in_flight, ["hang"], "it has a moment left");
        fixture.clock.advance(Duration::from_millis(100));
        stopping.await.unwrap();
        fixture.until_state(id, "suspended").await;
    }
}
