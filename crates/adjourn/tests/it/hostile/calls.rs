//! Calls and reports that come twice, too late or at the wrong moment.

use std::sync::Arc;

use adjourn_core::command::{CallResult, Cancel};
use adjourn_core::{Command, Session};
use adjourn_driver::{Part, Reported, RequestedCall, Role};

use super::{Player, ask, call, calls, ended, outcome, play, say, shown, spec};
use crate::fixture::Fixture;
use crate::points::Points;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_behind_the_calls_are_taken_and_each_call_finds_its_arguments() {
    let parts = vec![say("one"), calls(&["a"]), say(" two"), calls(&["b", "c"]), say(" three")];
    let player = Player::new(vec![parts]);
    let (fixture, session) = play(&player).await;
    assert_eq!(outcome(&session), "completed");
    assert_eq!(shown(&fixture, session.id), ["one two three", "a ran", "b ran", "c ran"]);
    let ran = player.log.lock().unwrap().ran.clone();
    assert_eq!(ran, ["a", "b", "c"].map(call));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_that_come_twice_or_not_at_all_or_too_late_are_taken_for_what_they_say() {
    let asked = |id| Part::Reported(Reported::Asked(call(id)));
    let started = |id| Part::Reported(Reported::Started(call(id)));
    let parts = vec![
        asked("twice"),
        asked("twice"),
        started("twice"),
        started("twice"),
        asked("twice"),
        ended("twice", CallResult::Done),
        ended("twice", CallResult::Done),
        // It ran without a word.
        asked("silent"),
        ended("silent", CallResult::Failed),
        // It cannot be declined any more.
        started("late"),
        ended("late", CallResult::Declined),
        ended("unheard of", CallResult::Done),
        // An id may be used again.
        started("twice"),
        ended("twice", CallResult::Done),
    ];
    let player = Player::new(vec![parts]);
    let (fixture, session) = play(&player).await;
    assert_eq!(outcome(&session), "completed");
    assert!(session.calls.is_empty());
    let digest = session.digest();
    assert!(digest.contains("late (1×, 1 failed), silent (1×, 1 failed), twice (2×)"), "{digest}");
    let said = fixture.said(session.id);
    let asking = said.iter().filter(|said| !said.calls.is_empty()).count();
    assert_eq!(asking, 4, "each call is in the transcript once");
    assert_eq!(said.iter().filter(|said| said.role == Role::Tool).count(), 6);
}

/// A batch that parks, of a session that is being canceled, does not run and is not forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_comes_behind_a_cancel_is_not_asked_and_its_words_are_kept() {
    let batch = Part::Calls(vec![RequestedCall::new(call("a")), ask("q", "which?")]);
    let player =
        Player { points: Points::new(Some(0)), ..Player::new(vec![vec![say("Well."), batch]]) };
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(player.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    player.points.until_held(std::future::pending()).await.unwrap();
    fixture.give(id, Command::Cancel(Cancel::default()), Vec::new()).unwrap();
    player.points.until_heard().await;
    player.points.release();
    let session = fixture.until_state(id, "idle").await;
    assert_eq!(outcome(&session), "canceled");
    fixture.prompt(id, "again");
    let done =
        |session: &Session| session.state.name() == "idle" && outcome(session) == "completed";
    fixture.until(id, "completed", done).await;
    let not_run = "not run: it was stopped before it started";
    let results = ["a", "q"].map(|tool| format!("[adjourn] {tool}: {not_run}"));
    assert_eq!(shown(&fixture, id), ["Well.".to_owned(), results[0].clone(), results[1].clone()]);
    assert_eq!(player.ran(), Vec::<String>::new());
    host.stop().await;
}
