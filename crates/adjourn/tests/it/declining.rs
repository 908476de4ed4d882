//! Sessions that a host cannot run: it says why, and looks again when that may have changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use adjourn::about::About;
use adjourn::clock::Clock;
use adjourn::script::Scripted;
use adjourn_core::Command;
use adjourn_core::command::{Cancel, Resume, Suspend};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_driver::{Driver, Drivers};
use adjourn_store::{Environment as _, Store as _};
use adjourn_testkit::until;
use tracing::Level;

use crate::fixture::Fixture;

/// Lacks something for sessions in `/missing`, until it is there.
struct Lacking {
    scripted: Scripted,
    found: AtomicBool,
    asked: AtomicUsize,
}

impl Drivers for Lacking {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        if spec.cwd.as_deref() == Some("/missing") {
            self.asked.fetch_add(1, Ordering::SeqCst);
            if !self.found.load(Ordering::SeqCst) {
                return Err("/missing is not there".to_owned());
            }
        }
        self.scripted.make(spec)
    }
}

fn lacking(fixture: &Fixture) -> Arc<Lacking> {
    let clock: Arc<dyn Clock> = Arc::new(fixture.clock.clone());
    let (found, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    Arc::new(Lacking { scripted: Scripted::new(clock), found, asked })
}

fn missing() -> DriverSpec {
    let mut spec = DriverSpec::script(r#"{"steps": [{"say": "hi"}]}"#);
    spec.cwd = Some("/missing".to_owned());
    spec
}

/// Returns what the only host says about a session.
fn said(fixture: &Fixture, id: SessionId) -> Option<String> {
    let hosts = fixture.store.hosts().unwrap();
    About::parse(&hosts[0].about).declines(id).map(str::to_owned)
}

/// Lets the host look at everything once more.
async fn a_look(fixture: &Fixture) {
    let other = fixture.create(r#"{"runs": [[{"say": "hi"}]]}"#);
    fixture.prompt(other, "go");
    fixture.until_state(other, "idle").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_says_what_it_cannot_run_and_tries_again_after_a_while() {
    let fixture = Fixture::new();
    let drivers = lacking(&fixture);
    let asked = || drivers.asked.load(Ordering::SeqCst);
    let host = fixture.host_with(Arc::clone(&drivers) as _).await;
    let id = fixture.create_with(missing());
    fixture.prompt(id, "go");
    until("told", || said(&fixture, id).as_deref() == Some("/missing is not there")).await;
    a_look(&fixture).await;
    assert_eq!(asked(), 1, "it is not asked for at every look");
    fixture.clock.advance(Duration::from_secs(31));
    until("asked again", || asked() == 2).await;
    assert!(said(&fixture, id).is_some());
    drivers.found.store(true, Ordering::SeqCst);
    fixture.clock.advance(Duration::from_secs(31));
    fixture.until_state(id, "idle").await;
    until("forgotten", || said(&fixture, id).is_none()).await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_moves_on_is_looked_at_again() {
    let fixture = Fixture::new();
    let drivers = lacking(&fixture);
    let host = fixture.host_with(Arc::clone(&drivers) as _).await;
    let id = fixture.create_with(missing());
    fixture.prompt(id, "go");
    until("told", || said(&fixture, id).is_some()).await;
    fixture.give(id, Command::Cancel(Cancel::default()), Vec::new()).unwrap();
    a_look(&fixture).await;
    until("forgotten", || said(&fixture, id).is_none()).await;
    drivers.found.store(true, Ordering::SeqCst);
    fixture.prompt(id, "again");
    fixture.until_state(id, "idle").await;
    assert_eq!(drivers.asked.load(Ordering::SeqCst), 2);
    host.stop().await;
}

/// A driver's own words may hold a secret: the log has their kind, and the words where it is asked.
#[tokio::test]
async fn a_log_has_the_words_of_a_driver_only_where_it_is_asked_for_them() {
    for level in [Level::INFO, Level::DEBUG] {
        let log = crate::log::Log::of(level);
        let fixture = Fixture::new();
        let host = fixture.host_with(lacking(&fixture) as _).await;
        let id = fixture.create_with(missing());
        fixture.prompt(id, "go");
        until("told", || said(&fixture, id).is_some()).await;
        host.stop().await;
        let lines = log.lines();
        let left = lines.iter().find(|line| line.contains("left to other hosts")).unwrap();
        assert!(left.contains("its agent cannot be run here"), "{left}");
        let words = lines.iter().any(|line| line.contains("/missing is not there"));
        assert_eq!(words, level == Level::DEBUG, "{lines:?}");
    }
}

#[tokio::test]
async fn a_log_names_the_session_the_run_the_wake_and_the_host_that_leaves_it() {
    let log = crate::log::Log::of(Level::INFO);
    let fixture = Fixture::new();
    let id = fixture.create_with(missing());
    fixture.prompt(id, "go");
    let suspended = fixture.give(id, Command::Suspend(Suspend::default()), Vec::new()).unwrap();
    let handle = suspended.session.suspended().unwrap().shown().pause.handle;
    fixture.give(id, Command::Resume(Resume::default()), Vec::new()).unwrap();
    let run = fixture.session(id).run().unwrap().id;
    let host = fixture.host_with(lacking(&fixture) as _).await;
    until("told", || said(&fixture, id).is_some()).await;
    host.stop().await;
    let lines = log.lines();
    let left = lines.iter().find(|line| line.contains("left to other hosts")).unwrap();
    assert!(left.contains(&format!("session={id} run={run} handle={handle} host=host-")), "{left}");
}

#[test]
fn what_a_host_says_of_itself_is_bounded() {
    let fixture = Fixture::new();
    let why = "é".repeat(1000);
    let ids: Vec<_> = (0..100).map(|_| SessionId::new(fixture.clock.uuid())).collect();
    let about = About::parse(r#"{"pid":7,"other":[1]}"#);
    let about = about.declining(ids.iter().map(|id| (*id, why.as_str())));
    let text = about.to_text();
    assert!(text.len() < 64 * 512, "{}", text.len());
    let read = About::parse(&text);
    assert_eq!(read, about);
    assert_eq!(read.pid(), Some(7));
    assert_eq!(ids.iter().filter(|id| read.declines(**id).is_some()).count(), 64);
    assert_eq!(About::parse("nonsense"), About::default());
}

#[tokio::test]
async fn a_host_for_one_session_leaves_the_others_to_others() {
    let fixture = Fixture::new();
    let script = r#"{"steps": [{"await": {"reason": "x", "conditions": {"onEvent": "go"}}},
                               {"say": "done"}]}"#;
    let (own, other) = (fixture.create(script), fixture.create(script));
    fixture.prompt(other, "go");
    let host = fixture.host_for(own).await;
    fixture.prompt(own, "go");
    fixture.until_state(own, "suspended").await;
    assert_eq!(fixture.session(other).state.name(), "ready");

    // It says so, and does for others what is no driving.
    let about = About::parse(&fixture.store.hosts().unwrap()[0].about);
    assert!(about.drives(own) && !about.drives(other));
    let every = fixture.host().await;
    fixture.until_state(other, "suspended").await;
    every.stop().await;
    fixture.event("go");
    fixture.until_state(own, "idle").await;
    fixture.until_state(other, "ready").await;
    host.stop().await;
    let claims = fixture.happened(other).iter().filter(|name| **name == "claimed").count();
    assert_eq!(claims, 1, "only by the one that takes every session");
}
