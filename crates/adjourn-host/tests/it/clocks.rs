//! The clock jumps, and deadlines and events still act once, and not before their time.

use std::time::Duration;

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
