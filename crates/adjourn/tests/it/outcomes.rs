//! How runs end, as those who wait for them are told.

use std::time::Duration;

use adjourn::core::session::Outcome;
use adjourn::{Adjourn, Error, Event};

use crate::fixture::Fixture;

/// Returns what the agent said last in the last run of a session, and whether the run ended it.
async fn said_last(session: &adjourn::SessionRef) -> (Option<String>, bool) {
    let run = session.finished().await.unwrap();
    (run.last_words.map(|said| said.text()), run.end.ends_session)
}

/// Each run has its own: neither what was thought, nor a tool's result, nor words of another run.
#[tokio::test]
async fn a_run_that_is_over_has_what_its_agent_said_last() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let session = adjourn.session(fixture.create(
        r#"{"runs": [
            [{"say": "one"}, {"say": "two"}, {"think": "three"}, {"tool": {"name": "build"}}],
            [{"tool": {"name": "build"}}],
            [{"say": "Which?"}, {"ask": {"question": "Which one?"}}, {"tool": {"name": "build"}}],
            [{"say": "bye"}, {"end": true}]
        ]}"#,
    ));
    let mut runs = Vec::new();
    for (prompt, said) in [("a", Some("two")), ("b", None)] {
        runs.push(session.prompt(prompt).await.unwrap().run);
        let said = said.map(str::to_owned);
        assert_eq!(said_last(&session).await, (said.clone(), false), "awaited");
        assert_eq!(said_last(&session).await, (said, false), "looked at afterwards");
    }
    runs.push(session.prompt("c").await.unwrap().run);
    let mut moments = session.watch().await.unwrap();
    while moments.next().await.unwrap().unwrap().event.what.name() != "suspended" {}
    session.prompt("that one").answering(fixture.handle(session.id())).await.unwrap();
    // A person spoke last, and the agent said something before that in the same run.
    let (said, _) = said_last(&session).await;
    assert!(said.as_deref().is_some_and(|said| said.starts_with("Which")), "{said:?}");
    runs.push(session.prompt("d").await.unwrap().run);
    assert_eq!(said_last(&session).await, (Some("bye".to_owned()), true), "awaited");
    assert_eq!(said_last(&session).await, (Some("bye".to_owned()), true), "looked at afterwards");

    // Each of them is there when the session is over.
    let mut all = Vec::new();
    for run in &runs {
        let over = session.finished_run(*run).await.unwrap();
        assert_eq!((over.id, over.end.outcome), (*run, Outcome::Completed));
        all.push((over.last_words.map(|said| said.text()), over.end.ends_session));
    }
    let [one, two, three, four] = &all[..] else { panic!("{all:?}") };
    assert_eq!((one, two), (&(Some("two".to_owned()), false), &(None, false)));
    assert_eq!((three.0.as_ref(), three.1), (said.as_ref(), false));
    assert_eq!(four, &(Some("bye".to_owned()), true));
    host.stop().await.unwrap();
}

#[tokio::test]
async fn one_run_is_waited_for_whatever_comes_after_it() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(r#"{"steps": [{"say": "done"}]}"#));
    let run = session.prompt("go").await.unwrap().run;
    let (waiting, other) = (session.clone(), adjourn.session(fixture.create(r#"{"steps": []}"#)));
    let waits = tokio::spawn(async move { waiting.finished_run(run).await });
    let foreign = other.finished_run(run).await.unwrap_err();
    assert!(matches!(foreign, Error::NoRun(of) if of == run), "{foreign}");
    let canceled = session.cancel().await.unwrap().ended.unwrap();
    assert_eq!((canceled.id, canceled.last_words), (run, None));
    session.prompt("again").await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap().end.outcome, Outcome::Canceled);
    assert_eq!(session.finished_run(run).await.unwrap().end.outcome, Outcome::Canceled);
}

/// A process that may only look cannot take the session from a dead host: it waits for one that can.
#[tokio::test]
async fn the_end_of_a_run_is_waited_for_in_a_store_that_is_only_looked_at() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let host = adjourn.host().scripts().start().await.unwrap();
    let script = r#"{"steps": [{"tools": [{"name": "build", "ms": 60000}]}]}"#;
    let session = adjourn.session(fixture.create(script));
    session.prompt("build").await.unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    let look = Adjourn::builder(adjourn.path()).read_only().open().await.unwrap();
    let looked_at = look.session(session.id());
    let mut waits = tokio::spawn(async move { looked_at.finished().await });
    host.kill().await;
    tokio::time::pause();
    // It looks each second whether the host lives.
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!waits.is_finished(), "{:?}", (&mut waits).await);
    }
    tokio::time::resume();
    session.cancel().await.unwrap();
    assert_eq!(waits.await.unwrap().unwrap().end.outcome, Outcome::Canceled);
}

/// What is said of an event that was published before is true: it may not have been delivered yet.
#[tokio::test]
async fn an_event_that_comes_again_is_told_as_it_is() {
    let fixture = Fixture::new();
    let adjourn = fixture.adjourn();
    let session = adjourn.session(fixture.create(r#"{"steps": []}"#));
    session.suspend().on_event("ci.passed").await.unwrap();
    let event = || Event::new("ci.passed").id("1");
    adjourn.publish(event()).await.unwrap();
    let (again, reception) = adjourn.publish_and_deliver(event()).await.unwrap();
    assert!(!again.fresh && !reception.delivered, "{reception:?}");
    assert_eq!((reception.left, reception.woken.len()), (1, 0), "no host lives");
    let host = fixture.another_adjourn().host().start().await.unwrap();
    let mut moments = session.watch().await.unwrap();
    while moments.next().await.unwrap().unwrap().event.what.name() != "resumed" {}
    let (again, reception) = adjourn.publish_and_deliver(event()).await.unwrap();
    assert!(!again.fresh && reception.delivered && reception.is_nothing(), "{reception:?}");
    host.stop().await.unwrap();
}
