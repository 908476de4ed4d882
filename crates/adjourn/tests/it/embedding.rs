//! The library as a program sees it that embeds it: a store, an agent of its own, a clock of its own.

use std::future::{IntoFuture as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use adjourn::core::command::{Mode, Reach, Resume, Suspend};
use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::event::What;
use adjourn::core::facts::Answer;
use adjourn::core::session::{Cause, Outcome, Phase};
use adjourn::core::{Command, Rejected, Session};
use adjourn::driver::{
    BoxFuture, BoxStream, Driver, Finish, Message, Opening, Park, Part, Step, emitting,
};
use adjourn::{Adjourn, Error, Event, Filter, Meant, NotSuspended, Query, TakenOver};
use adjourn_store::{CommandError, Request};
use adjourn_testkit::VirtualClock;
use futures_core::Stream as _;
use serde_json::json;

use crate::fixture::Fixture;

/// Waits half an hour, and says why it was woken.
struct Patient;

impl Driver for Patient {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let parts = match step.opening {
            Opening::Wake(report) => {
                let words = format!("woken by {}", report.resumption.cause);
                vec![Part::Message(Message::agent(words)), Part::Finished(Finish::completed())]
            }
            Opening::Prompt | Opening::Next => {
                let until = json!({ "timeout": { "durationMinutes": 30 } });
                let conditions = Conditions::parse(&until, Spelling::Camel).unwrap();
                let reason = "tea".to_owned();
                vec![
                    Part::Park(Park::Await { reason, conditions, summary: None }),
                    Part::Finished(Finish::default()),
                ]
            }
        };
        emitting(|out| async move {
            for part in parts {
                out.emit(part).await;
            }
        })
    }
}

const LONG_CALL: &str = r#"{"steps": [{"tools": [{"name": "build", "ms": 60000}]}]}"#;

/// Waits for a moment, and returns the session as it was when that was found.
async fn until(session: &adjourn::SessionRef, what: &str) -> Arc<Session> {
    let mut moments = session.watch().await.unwrap();
    while moments.next().await.unwrap().unwrap().event.what.name() != what {}
    session.load().await.unwrap()
}

#[test]
fn the_whole_life_of_a_program_that_embeds_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agents.db");
    let clock = VirtualClock::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let adjourn = Adjourn::builder(&path).clock(Arc::new(clock.clone())).open().await.unwrap();
        let host = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
        let session = adjourn.create("patient").label("team", "web").prompt("wait").await.unwrap();
        let mut moments = session.watch().await.unwrap();
        let mut happened = Vec::new();
        loop {
            let moment = moments.next().await.unwrap().unwrap();
            happened.push(moment.event.what.name());
            match moment.event.what {
                // The deadline is in the commit that parks it: from here on, time may pass.
                What::Suspended(_) => clock.advance(Duration::from_secs(30 * 60)),
                What::RunEnded(_) => break,
                _ => {}
            }
        }
        let run = session.finished().await.unwrap();
        assert_eq!(run.end.outcome, Outcome::Completed);
        let state = session.load().await.unwrap();
        assert_eq!(state.memory.last_words, "woken by timeout");
        assert_eq!(state.phase(), Phase::Idle);
        let lived = [
            "session_created",
            "run_started",
            "claimed",
            "step_started",
            "step_finished",
            "park_requested",
            "suspended",
            "resumed",
            "claimed",
            "step_started",
            "step_finished",
            "run_ended",
        ];
        assert_eq!(happened, lived);
        host.stop().await.unwrap();
    });
    // The handles are gone with the block.
    assert_eq!(runtime.metrics().num_alive_tasks(), 0);
    let left = std::fs::read_dir(path.with_file_name("agents.db.hosts")).unwrap();
    assert_eq!(left.count(), 0, "nothing is announced any more");
    let log = path.with_file_name("agents.db-wal");
    assert!(!log.exists(), "the last connection to the store is closed");
}

#[tokio::test]
async fn sessions_are_found_by_what_they_are_and_by_their_runs() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
    let web = adjourn.create("patient").label("team", "web").title("Wait for it").await.unwrap();
    let other = adjourn.create("other").parent(web.id()).await.unwrap();
    let run = web.prompt("wait").await.unwrap().run;
    let find = async |filter| {
        let page = adjourn.query(Query::new(filter, 10)).await.unwrap();
        assert_eq!((page.next, page.behind), (None, 0));
        page.sessions.iter().map(|listed| listed.as_ref().unwrap().id).collect::<Vec<_>>()
    };
    let labels = [("team".to_owned(), "web".to_owned())].into();
    assert_eq!(find(Filter { labels, ..Filter::default() }).await, [web.id()]);
    let agent = |name: &str| Filter { agent: Some(name.to_owned()), ..Filter::default() };
    assert_eq!(find(agent("patient")).await, [web.id()]);
    assert_eq!(find(agent("named")).await, [], "a named driver is found by its name");
    assert_eq!(find(Filter { parent: Some(web.id()), ..agent("other") }).await, [other.id()]);
    let counted = adjourn.count(agent("other")).await.unwrap();
    assert_eq!(counted.states["idle"].count, 1);
    assert_eq!(adjourn.session_of(run).await.unwrap().unwrap().id(), web.id());
    let meant = async |text: &str| match adjourn.find(text).await.unwrap() {
        Meant::One(session) => session.id().to_string(),
        other => format!("{other:?}"),
    };
    assert_eq!(meant(&web.id().to_string()).await, web.id().to_string());
    assert_eq!(meant(&run.to_string()).await, web.id().to_string());
    assert_eq!(meant("nightly").await, "Unknown");
    let name = adjourn::core::Founding::NAME;
    let first = adjourn.create("other").label(name, "nightly").await.unwrap();
    assert_eq!(meant("nightly").await, first.id().to_string());
    first.close().await.unwrap();
    assert_eq!(meant("nightly").await, first.id().to_string(), "the last that has ended");
    let second = adjourn.create("other").label(name, "nightly").await.unwrap();
    assert_eq!(meant("nightly").await, second.id().to_string(), "the open one");
    let elsewhere = adjourn.clone().in_tenant("elsewhere").find("nightly").await.unwrap();
    assert!(matches!(elsewhere, Meant::Unknown), "a name is one tenant's");
    let unheard = adjourn::core::id::RunId::new(adjourn.clock().uuid());
    assert_eq!(meant(&unheard.to_string()).await, format!("NoRun({unheard:?})"));
    assert_eq!(web.load().await.unwrap().title().as_deref(), Some("Wait for it"));
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_prompt_is_claimed_with_the_commit_that_takes_it() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
    let session = adjourn.create("patient").await.unwrap();
    let prompted = session.prompt("wait").await.unwrap();
    assert_eq!(prompted.commit.session.run().unwrap().id, prompted.run);
    let journal = fixture.happened(session.id());
    assert_eq!(journal[..3], ["session_created", "run_started", "claimed"]);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_session_is_driven_by_whichever_host_knows_its_driver() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.adjourn(), fixture.another_adjourn());
    let stranger = one.host().driver("stranger", |_| Patient).start().await.unwrap();
    let created = one.create("patient").config(json!({ "sugar": 2 })).prompt("wait");
    let session = created.await.unwrap();
    assert_eq!(session.load().await.unwrap().driver.name.as_deref(), Some("patient"));
    let seen = Arc::new(std::sync::Mutex::new(None));
    let made = Arc::clone(&seen);
    let make = move |config: &serde_json::Value| {
        *made.lock().unwrap() = Some(config.clone());
        Patient
    };
    let host = two.host().driver("patient", make).start().await.unwrap();
    let parked = until(&session, "suspended").await;
    assert_eq!(parked.phase(), Phase::Suspended);
    assert_eq!(*seen.lock().unwrap(), Some(json!({ "sugar": 2 })));
    host.stop().await.unwrap();
    stranger.stop().await.unwrap();
}

#[tokio::test]
async fn two_hosts_of_one_program_each_take_what_they_know() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let patient = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
    let scripted = adjourn.host().scripts().start().await.unwrap();
    let one = adjourn.create("patient").prompt("wait").await.unwrap();
    let spec = adjourn::core::driver::DriverSpec::script(r#"{"steps": [{"say": "hi"}]}"#);
    let two = adjourn.create_with(spec).prompt("talk").await.unwrap();
    until(&one, "suspended").await;
    two.finished().await.unwrap();
    let claims = |id| {
        let entries = adjourn_store::Store::journal(&fixture.store, id, 1, 100).unwrap();
        entries.into_iter().find_map(|entry| match entry.event.what {
            What::Claimed(claimed) => Some(claimed.host),
            _ => None,
        })
    };
    assert_eq!(claims(one.id()), Some(patient.id()));
    assert_eq!(claims(two.id()), Some(scripted.id()));
    patient.stop().await.unwrap();
    scripted.stop().await.unwrap();
}

#[tokio::test]
async fn a_suspend_resolves_when_it_is_in_force_and_says_what_is() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let host = adjourn.host().scripts().start().await.unwrap();
    session.prompt("build").await.unwrap();
    until(&session, "calls_dispatched").await;
    let suspend = session.suspend().mode(Mode::FinishStep).reason("lunch");
    let suspend = tokio::spawn(suspend.on_event("lunch.over").into_future());
    let pending = until(&session, "suspend_requested").await;
    assert_eq!(pending.phase(), Phase::Requested);
    fixture.clock.until_waited_for(1).await;
    fixture.clock.advance(Duration::from_secs(60));
    let suspension = suspend.await.unwrap().unwrap();
    let parked = session.load().await.unwrap();
    assert_eq!(parked.suspended().unwrap().shown(), &suspension.parked);
    assert_eq!(parked.revision, suspension.revision);
    assert_eq!(suspension.parked.pause.reason.as_deref(), Some("lunch"));
    // A second program asks for the same, and finds it in force.
    let other = fixture.another_adjourn();
    let joined = other.session(session.id()).suspend().await.unwrap();
    assert_eq!(joined.handle, suspension.handle);
    // An event ends it, whichever program says that it happened.
    other.publish(Event::new("lunch.over")).await.unwrap();
    assert_eq!(session.finished().await.unwrap().end.outcome, Outcome::Completed);
    host.stop().await.unwrap();
}

#[tokio::test]
async fn a_pending_suspend_that_something_else_comes_before_says_what() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    for how in ["resume", "cancel", "close"] {
        let session = adjourn.session(fixture.create(LONG_CALL));
        session.prompt("build").await.unwrap();
        until(&session, "calls_dispatched").await;
        let suspend = tokio::spawn(session.suspend().into_future());
        until(&session, "suspend_requested").await;
        match how {
            "resume" => {
                let woken = session.resume().await.unwrap();
                assert!(matches!(woken.answer, Answer::Withdrawn { .. }) && !woken.repeated);
            }
            "cancel" => assert!(session.cancel().await.unwrap().ended.is_none()),
            _ => drop(session.close().await.unwrap()),
        }
        let Err(Error::NotSuspended { why, .. }) = suspend.await.unwrap() else { panic!("{how}") };
        let fits = match how {
            "resume" => matches!(why, NotSuspended::Withdrawn(_)),
            "cancel" => matches!(why, NotSuspended::Canceled(_)),
            _ => matches!(why, NotSuspended::Ended(_)),
        };
        assert!(fits, "{how}: {why}");
        session.remove().even_at_work().await.unwrap();
    }
    drop(host);
}

#[tokio::test]
async fn a_resume_says_what_it_did_also_the_second_time() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    session.prompt("build").await.unwrap();
    let pause = session.suspend().await.unwrap();
    let first = session.resume().handle(pause.handle).key("k").await.unwrap();
    let second = session.resume().handle(pause.handle).key("k").await.unwrap();
    assert!(!first.repeated && second.repeated);
    assert_eq!(first.answer, second.answer);
    assert_eq!(first.resumption().unwrap().cause, Cause::ExplicitResume);
    assert_eq!(second.commit.events, []);
    let Err(Error::Refused(refused)) = session.resume().handle(pause.handle).await else {
        panic!("it was resumed before")
    };
    assert!(matches!(refused, Rejected::AlreadyResumed { .. }));
    let busy = session.prompt("more").reach(Reach::OwnFace).await;
    assert!(matches!(busy, Err(Error::Refused(Rejected::Busy { .. }))));
}

#[tokio::test]
async fn watching_begins_where_it_is_told_and_ends_with_the_session() {
    let fixture = Fixture::new();
    let (adjourn, other) = (fixture.adjourn(), fixture.another_adjourn());
    let session = adjourn.session(fixture.create(LONG_CALL));
    let created = session.load().await.unwrap();
    session.prompt("build").await.unwrap();
    let mut all = session.watch().await.unwrap();
    let mut later = session.watch().after(&created).await.unwrap();
    let mut live = session.watch().from_now().await.unwrap();
    // Another process ends it, without a host anywhere.
    other.session(session.id()).close().await.unwrap();
    for (moments, expected) in [
        (&mut all, &["session_created", "run_started", "run_ended", "session_ended"][..]),
        (&mut later, &["run_started", "run_ended", "session_ended"][..]),
        (&mut live, &["run_ended", "session_ended"][..]),
    ] {
        let mut happened = Vec::new();
        while let Some(moment) = moments.next().await.unwrap() {
            happened.push(moment.event.what.name());
        }
        assert_eq!(happened, expected);
        assert_eq!(moments.next().await.unwrap(), None, "it stays over");
    }
}

#[tokio::test]
async fn watching_a_session_that_has_ended_ends_at_once() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let mut paged = session.watch().await.unwrap();
    let mut whole = session.watch().await.unwrap();
    session.close().await.unwrap();
    let ended = session.load().await.unwrap();
    for mut moments in [
        session.watch().from_now().await.unwrap(),
        session.watch().after(&ended).await.unwrap(),
        // Another process has ended it, as far as this one knows.
        fixture.another_adjourn().session(session.id()).watch().from_now().await.unwrap(),
    ] {
        assert_eq!(at_once(moments.next()).await.unwrap(), None);
    }
    assert_eq!(paged.page().await.unwrap().last().unwrap().event.what.name(), "session_ended");
    assert_eq!(at_once(paged.next()).await.unwrap(), None, "a page has told the end");
    assert_eq!(whole.rest().await.unwrap().last().unwrap().event.what.name(), "session_ended");
    assert_eq!(at_once(whole.next()).await.unwrap(), None, "the rest has told the end");
}

/// Returns what a future comes to that must not wait for anything.
async fn at_once<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let output = std::future::poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    });
    output.await.unwrap()
}

#[tokio::test]
async fn what_a_dead_host_has_left_is_taken_over_by_those_who_wait() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let host = adjourn.host().scripts().start().await.unwrap();
    session.prompt("build").await.unwrap();
    until(&session, "calls_dispatched").await;
    host.kill().await;
    let other = fixture.another_adjourn();
    let suspension = other.session(session.id()).suspend().await.unwrap();
    assert_eq!(fixture.session(session.id()).suspended().unwrap().shown(), &suspension.parked);
    assert!(fixture.happened(session.id()).contains(&"host_lost"));
}

#[tokio::test]
async fn what_a_verb_returns_is_what_its_own_commit_did_also_with_a_dead_host() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    for verb in ["suspend", "cancel"] {
        let session = adjourn.session(fixture.create(LONG_CALL));
        let host = adjourn.host().scripts().start().await.unwrap();
        session.prompt("build").await.unwrap();
        until(&session, "calls_dispatched").await;
        host.kill().await;
        let other = fixture.another_adjourn().session(session.id());
        let commit = match verb {
            "suspend" => other.suspend().accepted().await.unwrap().commit,
            _ => other.cancel().await.unwrap().commit,
        };
        let last = commit.session.revision;
        let first = last + 1 - commit.events.len() as u64;
        let journal = adjourn_store::Store::journal(&fixture.store, session.id(), first, 100);
        let journal: Vec<_> = journal.unwrap().into_iter().map(|entry| entry.event).collect();
        assert_eq!(journal, commit.events, "{verb}");
        let phase = if verb == "suspend" { Phase::Suspended } else { Phase::Idle };
        assert_eq!(commit.session.phase(), phase, "{verb}");
        assert!(fixture.happened(session.id()).contains(&"host_lost"));
    }
}

/// What hosts have done with drivers.
#[derive(Clone, Default)]
struct Counts {
    made: Arc<AtomicUsize>,
    killed: Arc<AtomicUsize>,
}

/// A patient driver that is counted, and kept while its session is parked.
struct Counted {
    counts: Counts,
    warm: bool,
}

impl Driver for Counted {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        Patient.step(step)
    }

    fn keep(&mut self) -> bool {
        self.warm
    }

    fn kill(&mut self) -> BoxFuture<'static, ()> {
        self.counts.killed.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {})
    }
}

impl Counts {
    fn host(&self, adjourn: &Adjourn, warm: bool) -> adjourn::HostBuilder {
        let counts = self.clone();
        adjourn.host().driver("patient", move |_| {
            counts.made.fetch_add(1, Ordering::Relaxed);
            Counted { counts: counts.clone(), warm }
        })
    }

    fn of(&self) -> (usize, usize) {
        (self.made.load(Ordering::Relaxed), self.killed.load(Ordering::Relaxed))
    }
}

/// A driver is made when a session is claimed, once, however many hosts could have it.
#[tokio::test]
async fn no_driver_is_made_that_is_not_used() {
    let fixture = Fixture::new();
    let (adjourn, counts) = (fixture.adjourn(), Counts::default());
    let hosts = [
        counts.host(&adjourn, false).start().await.unwrap(),
        counts.host(&adjourn, false).start().await.unwrap(),
    ];
    let session = adjourn.create("patient").prompt("wait").await.unwrap();
    until(&session, "suspended").await;
    assert_eq!(counts.made.load(Ordering::Relaxed), 1);
    session.resume().await.unwrap();
    session.finished().await.unwrap();
    session.close().await.unwrap();
    for host in hosts {
        host.stop().await.unwrap();
    }
    assert_eq!(counts.of(), (2, 2), "each that was made is ended");
}

/// Where a driver is kept warm, the one that was made in case it is of no use is ended as any other.
#[tokio::test]
async fn a_driver_that_a_kept_one_replaces_is_ended() {
    let fixture = Fixture::new();
    let (adjourn, counts) = (fixture.adjourn(), Counts::default());
    let host = counts.host(&adjourn, true).start().await.unwrap();
    let session = adjourn.create("patient").prompt("wait").await.unwrap();
    until(&session, "suspended").await;
    session.resume().await.unwrap();
    session.finished().await.unwrap();
    host.stop().await.unwrap();
    let (made, killed) = counts.of();
    assert_eq!((made, killed), (2, 2));
}

/// Returns the name of what comes next out of a stream.
async fn next(stream: &mut adjourn::Moments) -> Option<&'static str> {
    let next = poll_fn(|context| Pin::new(&mut *stream).poll_next(context)).await;
    next.map(|moment| moment.unwrap().event.what.name())
}

/// Moments come out of a stream as they do one by one, past and live, to the end of the session.
#[tokio::test]
async fn moments_are_a_stream() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let mut stream = session.watch().await.unwrap();
    assert_eq!(next(&mut stream).await, Some("session_created"));
    // It waits, and is left alone while something else of the process waits for the same.
    let is_pending = |context: &mut Context<'_>| {
        Poll::Ready(Pin::new(&mut stream).poll_next(context).is_pending())
    };
    assert!(poll_fn(is_pending).await);
    let other = fixture.another_adjourn();
    let (seen, suspended) =
        tokio::join!(until(&session, "suspended"), other.session(session.id()).suspend());
    assert_eq!(seen.revision, suspended.unwrap().revision);
    assert_eq!(next(&mut stream).await, Some("suspended"));
    session.close().await.unwrap();
    assert_eq!(next(&mut stream).await, Some("suspension_ended"));
    assert_eq!(next(&mut stream).await, Some("session_ended"));
    assert_eq!(next(&mut stream).await, None);
}

/// What a program prints of a verb names the session, and has nothing of what is said to it.
#[tokio::test]
async fn verbs_show_their_session_and_no_words() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let id = session.id().to_string();
    let request = adjourn::core::id::RequestId::new(adjourn.clock().uuid());
    for shown in [
        format!("{:?}", session.prompt("sk-secret")),
        format!("{:?}", session.resume().input("sk-secret").key("sk-secret")),
        format!("{:?}", session.suspend().reason("sk-secret")),
        format!("{:?}", session.withdraw(request)),
        format!("{:?}", session.cancel().reason("sk-secret".to_owned())),
        format!("{:?}", session.close().reason("sk-secret".to_owned())),
        format!("{:?}", session.remove()),
        format!("{:?}", session.take_over()),
        format!("{:?}", session.watch()),
    ] {
        assert!(shown.contains(&id) && !shown.contains("sk-"), "{shown}");
    }
    let created = format!("{:?}", adjourn.create("x").config("sk-secret").prompt("sk-secret"));
    assert!(created.contains("sess-") && !created.contains("sk-"), "{created}");
}

#[tokio::test]
async fn a_session_is_removed_although_not_all_of_it_could_be_erased() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let (id, by) = (session.id(), adjourn.by());
    let long = adjourn.transact(move |tx| -> Result<(), CommandError> {
        for _ in 0..300 {
            let suspend = Command::Suspend(Suspend::default());
            tx.command(Request::new(id, by.clone(), suspend))?;
            tx.command(Request::new(id, by.clone(), Command::Resume(Resume::default())))?;
        }
        Ok(())
    });
    long.await.unwrap();
    // The first portion can be erased, and not the last.
    let connection = rusqlite::Connection::open(fixture.store.path()).unwrap();
    let full = "CREATE TRIGGER full BEFORE DELETE ON erasing
                BEGIN SELECT RAISE(ABORT, 'full'); END;";
    connection.execute_batch(full).unwrap();
    let erased = session.remove().even_at_work().await.unwrap();
    assert!(erased.more);
    let gone = session.load().await.unwrap_err();
    assert!(matches!(gone, adjourn::Error::NotFound(_)), "{gone}");
}

#[tokio::test]
async fn a_session_is_taken_from_its_host_and_from_nobody() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(LONG_CALL));
    let TakenOver::Nobody(idle) = session.take_over().await.unwrap() else { panic!("it is idle") };
    assert_eq!(idle.phase(), Phase::Idle);
    let host = adjourn.host().scripts().start().await.unwrap();
    session.prompt("build").await.unwrap();
    until(&session, "calls_dispatched").await;
    let TakenOver::From { host: from, .. } = session.take_over().await.unwrap() else {
        panic!("a host has it")
    };
    assert_eq!(from, host.id());
    host.kill().await;
}

#[tokio::test]
async fn events_are_stored_all_or_none_and_once() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let event = || Event::new("ci.passed").subject("pr/12").id("1").source("ci");
    let first = adjourn.publish(event()).await.unwrap();
    let again = adjourn.publish(event()).await.unwrap();
    assert!(first.fresh && !again.fresh);
    assert_eq!(first.seq, again.seq);
    let refused = adjourn.publish_all([Event::new("fine"), Event::new("")]).await.unwrap_err();
    assert_eq!(refused.index, Some(1));
    assert!(matches!(refused.error, Error::Refused(Rejected::Invalid { .. })));
    let next = adjourn.publish_all([Event::new("a"), Event::new("b")]).await.unwrap();
    assert_eq!(next[0].seq.0, first.seq.0 + 1, "nothing of what was refused is there");
}

#[tokio::test]
async fn sessions_are_found_by_their_labels() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let wanted = adjourn.create("patient").label("team", "web").await.unwrap();
    adjourn.create("patient").label("team", "ops").await.unwrap();
    let labels = [("team".to_owned(), "web".to_owned())].into();
    let filter = Filter { labels, ..Filter::default() };
    let page = adjourn.query(Query::new(filter, 10)).await.unwrap();
    let found: Vec<_> = page.sessions.iter().map(|found| found.as_ref().unwrap().id).collect();
    assert_eq!(found, [wanted.id()]);
}

#[tokio::test]
async fn a_store_that_is_looked_at_is_not_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agents.db");
    assert!(Adjourn::builder(&path).read_only().open().await.is_err(), "it must be there");
    let adjourn = Adjourn::open(&path).await.unwrap();
    let session = adjourn.create("patient").prompt("wait").await.unwrap();
    let look = Adjourn::builder(&path).read_only().open().await.unwrap();
    assert_eq!(look.session(session.id()).load().await.unwrap().phase(), Phase::Ready);
    let looked_at = look.session(session.id());
    let waits = tokio::spawn(async move { looked_at.finished().await });
    assert!(session.cancel().await.unwrap().ended.is_some());
    assert_eq!(waits.await.unwrap().unwrap().end.outcome, Outcome::Canceled);
    let look = Adjourn::builder(&path).read_only().open().await.unwrap();
    assert!(matches!(look.create("patient").await, Err(Error::Store(_))));
}

#[tokio::test]
async fn a_key_that_is_missing_is_not_replaced_in_silence() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agents.db");
    drop(Adjourn::open(&path).await.unwrap().create("patient").await.unwrap());
    drop(Adjourn::open(&path).await.unwrap());
    std::fs::remove_dir_all(path.with_file_name("agents.db.keys")).unwrap();
    let Err(Error::Store(error)) = Adjourn::open(&path).await else { panic!("its key is gone") };
    assert!(error.to_string().contains("signed with key"), "{error}");
}

#[tokio::test]
async fn a_host_takes_up_a_key_that_is_made_while_it_works() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agents.db");
    let adjourn = Adjourn::open(&path).await.unwrap();
    let host = adjourn.host().driver("patient", |_| Patient).start().await.unwrap();
    let first = adjourn.signer().await.unwrap();
    let rotated = adjourn::key_directory(&path).rotate(adjourn.clock().now()).unwrap();
    let second = rotated.current().id();
    // The store has to know the key before it goes on with it: whoever opens it tells it.
    drop(Adjourn::open(&path).await.unwrap());
    while adjourn.signer().await.unwrap() != Some(second) {
        adjourn.create("patient").await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_ne!(first, Some(second));
    host.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_removed_is_gone_and_what_works_is_not_removed() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.create("patient").prompt("wait").await.unwrap();
    let busy = session.remove().await;
    assert!(matches!(busy, Err(Error::Refused(Rejected::Busy { phase: Phase::Ready }))));
    let erased = session.remove().even_at_work().await.unwrap();
    assert!(erased.entries > 0 && !erased.more);
}
