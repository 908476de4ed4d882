//! What a session has no room for, or what may not be: its run fails, and its words are kept.

use std::sync::Arc;

use adjourn_core::ledger::CallId;
use adjourn_core::{Session, limits};
use adjourn_driver::{CallContent, Joining, Message, Park, Part, Reported, RequestedCall};
use adjourn_store::Store as _;

use super::{Player, ask, call, calls, outcome, play, say, shown, spec};
use crate::fixture::Fixture;
use crate::points::Points;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_wants_the_impossible_fails_its_run_and_its_words_are_kept() {
    let many: Vec<_> = (0..=limits::OPEN_CALLS).map(|number| format!("c{number}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let unasked = Part::Calls(vec![RequestedCall::new(call("a")), ask("q", " ")]);
    let given = |texts: Vec<String>| {
        let asked = texts.into_iter().enumerate().map(|(number, text)| {
            let arguments = serde_json::json!({ "text": text });
            let call = CallContent { arguments, ..call(&format!("c{number}")) };
            RequestedCall::new(call)
        });
        Part::Calls(asked.collect())
    };
    let arguments = (0..200).fold(serde_json::Value::Null, |inner, _| serde_json::json!([inner]));
    let nested = RequestedCall::new(CallContent { arguments, ..call("deep") });
    for (why, impossible, not_run) in [
        ("another open call has this id", calls(&["a", "a"]), 1),
        ("more than 64 calls open at once", calls(&many), many.len()),
        ("calls[0].tool: must not be empty", calls(&[""]), 1),
        ("question: must not be empty", unasked, 2),
        ("calls[0].arguments: longer than 1048576 bytes", given(vec!["x".repeat(1 << 20)]), 1),
        ("calls: longer than 12582912 bytes together", given(vec!["x".repeat(999_999); 13]), 13),
        ("calls[0].arguments: nested deeper than 64 levels", Part::Calls(vec![nested]), 1),
        (
            "reason: must not be empty",
            Part::Park(Park::Await { reason: String::new(), conditions: None, summary: None }),
            0,
        ),
        ("asked", Part::Reported(Reported::Started(call(&"i".repeat(999)))), 1),
    ] {
        let player = Player::new(vec![vec![say("I have "), say("a plan."), impossible]]);
        let (fixture, session) = play(&player).await;
        assert_eq!(outcome(&session), "failed", "{why}");
        let error = session.last_run.as_ref().unwrap().error.as_deref().unwrap();
        assert!(error.contains(why) || why == "asked", "{error}");
        let shown = shown(&fixture, session.id);
        assert_eq!(shown[0], "I have a plan.", "{why}");
        assert_eq!(shown.len(), 1 + not_run, "{why}: {shown:?}");
        assert!(shown[1..].iter().all(|result| result.contains("not run")), "{why}: {shown:?}");
        assert_eq!(player.ran(), Vec::<String>::new(), "{why}");
        assert!(session.calls.is_empty(), "{why}");
    }
}

/// Its stream is dropped: the rest of what it was saying never comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_a_refusal_cuts_short_is_told_as_aborted() {
    let long = "x".repeat(limits::DRIVER_STATE_BYTES + 1);
    let player = Player::new(vec![vec![say("half"), Part::State(long)]]);
    let (fixture, session) = play(&player).await;
    assert_eq!(outcome(&session), "failed");
    let error = session.last_run.as_ref().unwrap().error.as_deref().unwrap();
    assert!(error.contains("driverState: longer than 65536 bytes"), "{error}");
    let said = fixture.said(session.id);
    let words: Vec<_> = said.iter().map(Message::text).collect();
    assert_eq!(words, ["go", "half"], "the words are kept");
    let mut joining = Joining::default();
    assert!(joining.take(1, &said[1]).is_none(), "and the message has no end");
    assert!(joining.break_off().iter().all(|(_, message)| message.aborted));
    assert_eq!(shown(&fixture, session.id), Vec::<String>::new(), "no model takes it for whole");
}

/// What calls are given is kept in the transcript, and the state has none of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_and_reported_calls_of_maximal_size_leave_the_state_within_its_bound() {
    let long = |id: String, text: usize| {
        let arguments = serde_json::json!({ "text": "\"".repeat(text / 2) });
        CallContent { arguments, ..CallContent::new(CallId(id), "t".repeat(limits::NAME_BYTES)) }
    };
    let id = |number: usize| format!("{number:0width$}", width = limits::CALL_ID_BYTES);
    // Together they are as long as calls of one step may be.
    let most = usize::try_from(limits::INPUT_BYTES).unwrap() / limits::OPEN_CALLS - 600;
    let asked = (0..limits::OPEN_CALLS).map(|number| RequestedCall::new(long(id(number), most)));
    let own = |number| Part::Reported(Reported::Started(long(id(number), 2 << 20)));
    let parts = (0..4).map(own).chain([Part::State("p".repeat(limits::DRIVER_STATE_BYTES))]);
    let parked = vec![Part::Calls(asked.collect())];
    let player = Player::new(vec![parts.collect(), parked]);
    let (fixture, session) = play(&player).await;
    assert_eq!(outcome(&session), "completed");
    for entry in fixture.store.journal(session.id, 1, 1000).unwrap() {
        if let Some(state) = entry.state().unwrap() {
            let bytes = serde_json::to_vec(&state).unwrap().len();
            assert!(bytes <= limits::STATE_BYTES, "{bytes} bytes at {}", entry.revision);
        }
    }
    assert!(serde_json::to_vec(&*session).unwrap().len() <= limits::STATE_BYTES);
    assert_eq!(player.ran().len(), limits::OPEN_CALLS);
    let said = fixture.said(session.id);
    let reported: Vec<_> = said.iter().filter_map(|said| said.calls.first()).take(4).collect();
    for call in reported {
        assert!(call.arguments.to_string().contains("bytes of arguments are left out"));
    }
}

/// Whatever a session has no room for, its run can fail.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_without_room_for_the_end_of_a_step_fails_its_run() {
    let fixture = Fixture::new();
    let player = Player::new(Vec::new());
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    // Quotes take two bytes each where they are encoded.
    let empty = serde_json::to_vec(&*fixture.session(id)).unwrap().len();
    let room = limits::STATE_BYTES - limits::RESERVED_FOR_MOVES - empty - 500;
    let full = Part::State("\"".repeat(room / 2));
    let words = Part::Message(Message::agent("w".repeat(1000)));
    player.steps.lock().unwrap().push_back(vec![full, words]);
    let host = fixture.host_with(Arc::new(player)).await;
    let session = fixture.until_state(id, "idle").await;
    assert_eq!(outcome(&session), "failed");
    assert_eq!(fixture.said(id).last().unwrap().text().len(), 1000);
    host.stop().await;
}

/// Arguments and results are content: the state has where they are, and no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_as_long_as_they_may_be_do_not_weigh_on_the_state() {
    let text = "x".repeat(limits::CALL_BYTES - 200);
    let long = |id: &str| CallContent { arguments: text.clone().into(), ..call(id) };
    let asked = Part::Reported(Reported::Started(long("own")));
    let parts = vec![asked, Part::Calls(vec![RequestedCall::new(long("a"))])];
    let player = Player { points: Points::new(Some(0)), ..Player::new(vec![parts]) };
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(player.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    player.points.until_held(std::future::pending()).await.unwrap();
    let bytes = |session: &Session| serde_json::to_vec(session).unwrap().len();
    assert!(bytes(&fixture.session(id)) < 4096, "{}", bytes(&fixture.session(id)));
    player.points.release();
    let session = fixture.until_state(id, "idle").await;
    assert!(bytes(&session) < 4096, "{}", bytes(&session));
    assert_eq!(player.log.lock().unwrap().ran, [long("a")]);
    host.stop().await;
}
