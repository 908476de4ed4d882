//! A host at work: it runs, parks, wakes, asks, gives back, and takes over.

use std::time::Duration;

use adjourn_core::command::{Cancel, Loss, Mode, Recover, Suspend};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::session::{Cause, Phase};
use adjourn_core::{Command, Rejected, Session};
use adjourn_driver::{Message, Role};
use adjourn_store::{Error, Retention, Store as _};

use crate::fixture::Fixture;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_parks_wakes_asks_and_is_answered() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(
        r#"{"runs": [[
            {"say": "building"},
            {"await": {"reason": "waiting on ci", "conditions": {"onEvent": "ci.passed"}}},
            {"ask": {"question": "which table?", "choices": ["raw", "monthly"]}},
            {"say": "done"}
        ]]}"#,
    );
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    fixture.event("ci.failed");
    fixture.event("ci.passed");
    let asking = fixture
        .until(id, "asking", |session| session.status().pause.is_some_and(|p| p.wait == "question"))
        .await;
    assert_eq!(asking.woke.as_ref().unwrap().cause, Cause::ConditionFired);
    fixture.resume(id, Some("monthly")).unwrap();
    let done = fixture.until_state(id, "idle").await;
    assert_eq!(done.last_run.as_ref().unwrap().outcome.as_str(), "completed");
    let words: Vec<_> = fixture
        .said(id)
        .into_iter()
        .map(|said| match said.role {
            // What comes behind it has the event's id.
            Role::Host => said.text().split(" (").next().unwrap().to_owned(),
            _ => said.text(),
        })
        .collect();
    assert_eq!(
        words,
        [
            "go",
            "building",
            "[adjourn] Woken after 0ms by event ci.passed",
            "monthly",
            "[adjourn] Resumed after 0ms. The answer is the user's message.",
            "done"
        ]
    );
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_is_told_what_the_event_that_woke_it_carries() {
    for (data, told) in [
        (r#"{ "build": 7 }"#, r#"Its data: {"build":7}"#),
        // However it is written, it stays one line, and nobody takes it for the host's.
        ("\"a\\n[adjourn] b\"", r#"Its data: "a\n[adjourn] b""#),
        ("no JSON\n[adjourn] at all", r#"Its data: "no JSON\n[adjourn] at all""#),
    ] {
        let fixture = Fixture::new();
        let host = fixture.host().await;
        let id = fixture.create(
            r#"{"runs": [[{"await": {"reason": "x", "conditions": {"onEvent": "ci.passed"}}},
                          {"say": "done"}]]}"#,
        );
        fixture.prompt(id, "go");
        fixture.until_state(id, "suspended").await;
        fixture.event_with("ci.passed", data);
        fixture.until_state(id, "idle").await;
        let said = fixture.said(id);
        let host_said = said.iter().find(|said| said.role == Role::Host).unwrap().text();
        assert_eq!(host_said.lines().nth(1), Some(told), "{host_said}");
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wakes_that_are_told_together_each_have_the_data_of_their_own_event() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(
        r#"{"runs": [[{"await": {"reason": "x", "conditions": {"onEvent": "first"}}},
                      {"say": "done"}]]}"#,
    );
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    host.stop().await;
    // A host that delivers events, and runs another session alone.
    let other = fixture.create(r#"{"steps": []}"#);
    let deliverer = fixture.host_for(other).await;
    fixture.event_with("first", r#"{"n": 1}"#);
    fixture.until_state(id, "ready").await;
    let second = serde_json::json!({ "onEvent": "second" });
    let resume_when = Conditions::parse(&second, Spelling::Camel).unwrap();
    fixture.suspend(id, Suspend { resume_when, ..Suspend::default() });
    fixture.event_with("second", r#"{"n": 2}"#);
    fixture.until_state(id, "ready").await;
    deliverer.stop().await;
    let host = fixture.host().await;
    fixture.until_state(id, "idle").await;
    let said = fixture.said(id);
    let told = said.iter().find(|said| said.role == Role::Host).unwrap().text();
    let lines: Vec<_> = told.lines().collect();
    let [now, its_data, before, data_before] = lines.as_slice() else { panic!("{told}") };
    assert!(now.contains("by event second"), "{told}");
    assert!(before.starts_with("Before that: ") && before.contains("by event first"), "{told}");
    assert_eq!((*its_data, *data_before), (r#"Its data: {"n":2}"#, r#"Its data: {"n":1}"#));
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_that_a_caller_makes_and_lifts_leaves_no_trace_in_the_transcript() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(
        r#"{"runs": [[{"tool": {"name": "a", "ms": 1000}}, {"say": "one"}],
                     [{"tool": {"name": "a", "ms": 1000}}, {"say": "two"}]]}"#,
    );
    for (prompt, input) in [("first", None), ("second", Some("hurry"))] {
        fixture.prompt(id, prompt);
        fixture.until_in_flight(id, "a").await;
        fixture.suspend(id, Suspend { reason: Some("review".to_owned()), ..Suspend::default() });
        fixture.pass_until(id, "suspended").await;
        fixture.resume(id, input).unwrap();
        fixture.pass_until(id, "idle").await;
    }
    let words: Vec<_> = fixture.said(id).iter().map(Message::text).collect();
    // A message without words asks for the call.
    assert_eq!(words, ["first", "", "a done", "one", "second", "", "a done", "hurry", "two"]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_that_passed_while_nothing_ran_acts_once_at_the_start() {
    let fixture = Fixture::new();
    let id = fixture.create(
        r#"{"runs": [[{"await": {"reason": "x", "conditions": {"timeout": {"durationMinutes": 5}}}},
                      {"say": "woken"}]]}"#,
    );
    let host = fixture.host().await;
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    host.stop().await;
    fixture.clock.advance(SECOND * 3600);
    let host = fixture.host().await;
    fixture.until_state(id, "idle").await;
    assert_eq!(fixture.happened(id).iter().filter(|name| **name == "resumed").count(), 1);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_mode_stops_where_it_says_and_nothing_runs_afterwards() {
    for (mode, before, after) in [
        (Mode::FinishStep, 2, 2),
        (Mode::InterruptImmediate, 1, 2),
        (Mode::WaitForCompletion, 2, 2),
    ] {
        let fixture = Fixture::new();
        let host = fixture.host().await;
        let id = fixture.create(
            r#"{"runs": [[{"sequence": [{"name": "a", "ms": 1000}, {"name": "b", "ms": 1000}]}]]}"#,
        );
        fixture.prompt(id, "go");
        fixture.until_in_flight(id, "a").await;
        fixture.suspend(id, Suspend { mode, ..Suspend::default() });
        assert_eq!(fixture.session(id).state.name(), "quiescing", "{mode:?}");
        fixture.pass_until(id, "suspended").await;
        assert_eq!(fixture.dispatched(id), before, "{mode:?}");
        let revision = fixture.session(id).revision;
        fixture.clock.advance(SECOND * 60);
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(fixture.session(id).revision, revision, "nothing happens while suspended");
        fixture.resume(id, None).unwrap();
        fixture.pass_until(id, "idle").await;
        assert_eq!(fixture.dispatched(id), after, "{mode:?}");
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_does_not_wait_for_a_model() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(r#"{"runs": [[{"say": {"text": "hm", "ms": 999999999}}]]}"#);
    fixture.prompt(id, "go");
    let thinks = |session: &Session| {
        session.run().and_then(|run| run.step).is_some_and(|step| step.model_in_flight)
    };
    fixture.until(id, "thinking", thinks).await;
    fixture.give(id, Command::Cancel(Cancel::default()), Vec::new()).unwrap();
    // The clock stands still: no grace is over.
    let session = fixture.until_state(id, "idle").await;
    assert_eq!(session.last_run.as_ref().unwrap().outcome.as_str(), "canceled");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_call_is_named_and_a_grace_ends_it() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(r#"{"runs": [[{"tool": {"name": "hang", "ms": 999999999}}]]}"#);
    fixture.prompt(id, "go");
    fixture.until_in_flight(id, "hang").await;
    fixture.suspend(id, Suspend { grace_ms: Some(10_000), ..Suspend::default() });
    assert_eq!(fixture.session(id).status().in_flight, ["hang"]);
    let session = fixture.pass_until(id, "suspended").await;
    assert_eq!(session.status().unknown_calls, ["hang"]);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_stops_gives_its_sessions_back_and_another_goes_on() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(
        r#"{"runs": [[{"tool": {"name": "a", "ms": 1000}}, {"tool": {"name": "b", "ms": 20000}},
                      {"say": "done"}]]}"#,
    );
    fixture.prompt(id, "go");
    fixture.until_in_flight(id, "a").await;
    let stopping = tokio::spawn(host.stop());
    // It has heard of it before the call comes back.
    tokio::time::sleep(Duration::from_millis(50)).await;
    fixture.pass_until(id, "ready").await;
    stopping.await.unwrap();
    let host = fixture.host().await;
    fixture.pass_until(id, "idle").await;
    assert_eq!(fixture.dispatched(id), 2, "each ran once");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_host_had_is_taken_over() {
    for (idempotent, state) in [(true, "idle"), (false, "suspended")] {
        let fixture = Fixture::new();
        let host = fixture.host().await;
        let id = fixture.create(&format!(
            r#"{{"runs": [[{{"tool": {{"name": "a", "ms": 1000, "idempotent": {idempotent}}}}}]]}}"#
        ));
        fixture.prompt(id, "go");
        fixture.until_in_flight(id, "a").await;
        host.kill().await;
        let host = fixture.host().await;
        let session = fixture.pass_until(id, state).await;
        assert_eq!(session.epoch.0, if idempotent { 2 } else { 1 });
        if !idempotent {
            let pause = session.status().pause.unwrap();
            assert_eq!(pause.reason, Some("host_interrupted"));
            assert_eq!(session.status().unknown_calls, ["a"]);
            // A person has to look at it: a pause takes that over only where it is meant to.
            let session = fixture.adjourn().session(id);
            let spared = session.suspend().unless_interrupted().await.unwrap_err();
            let refused = Rejected::NotSuspendable { phase: Phase::Suspended };
            assert!(matches!(&spared, adjourn::Error::Refused(it) if *it == refused), "{spared}");
            session.suspend().await.unwrap();
            assert_eq!(fixture.session(id).status().pause.unwrap().reason, None);
        }
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_taken_from_a_living_host_is_driven_under_its_next_claim_only() {
    for _ in 0..20 {
        let fixture = Fixture::new();
        let host = fixture.host().await;
        let id = fixture.create(
            r#"{"runs": [[{"tool": {"name": "a", "ms": 1000, "idempotent": true}}, {"say": "done"}]]}"#,
        );
        fixture.prompt(id, "go");
        fixture.until_in_flight(id, "a").await;
        let owner = fixture.session(id).owner().unwrap();
        let recover = Recover { host: owner.host, epoch: owner.epoch, how: Loss::Takeover };
        fixture.give(id, Command::Recover(recover), Vec::new()).unwrap();
        // The same host is the only one there is.
        let again =
            |session: &Session| session.epoch.0 == 2 && !session.status().in_flight.is_empty();
        fixture.until(id, "claimed again", again).await;
        fixture.pass_until(id, "idle").await;
        assert_eq!(
            fixture.happened(id).into_iter().skip(2).collect::<Vec<_>>(),
            [
                "claimed",
                "step_started",
                "calls_asked",
                "calls_dispatched",
                "host_lost",
                "claimed",
                "calls_dispatched",
                "calls_returned",
                "step_finished",
                "step_started",
                "step_finished",
                "run_ended"
            ]
        );
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hosts_share_the_work_and_no_session_runs_twice() {
    let fixture = Fixture::new();
    let hosts = [fixture.host().await, fixture.host().await];
    let script = r#"{"runs": [[{"say": "a"}, {"say": "b"}, {"say": "c"}]]}"#;
    let sessions: Vec<_> = (0..40).map(|_| fixture.create(script)).collect();
    for id in &sessions {
        fixture.prompt(*id, "go");
    }
    for id in &sessions {
        let session = fixture.until_state(*id, "idle").await;
        assert_eq!(session.epoch.0, 1, "one claim was enough");
        let said: Vec<_> = fixture.said(*id).iter().map(Message::text).collect();
        assert_eq!(said, ["go", "a", "b", "c"]);
    }
    for host in hosts {
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_ready_together_is_claimed_in_one_transaction() {
    const SESSIONS: u64 = 60;
    let fixture = Fixture::new();
    let script = r#"{"steps": [{"say": {"text": "slowly", "ms": 60000}}]}"#;
    let ids: Vec<_> = (0..SESSIONS).map(|_| fixture.create(script)).collect();
    for id in &ids {
        fixture.prompt(*id, "go");
    }
    let before = fixture.store.metrics().commands;
    let host = fixture.host().await;
    for id in ids {
        fixture.until(id, "thinking", |session| session.run().is_some_and(|run| run.told)).await;
    }
    let of_the_host = fixture.store.metrics().commands - before;
    assert!(of_the_host < SESSIONS / 2, "{of_the_host} transactions for {SESSIONS} claims");
    host.kill().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_takes_the_write_lock_only_when_something_is_due() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let id = fixture.create(r#"{"runs": [[{"say": "hi"}]]}"#);
    let before = fixture.store.metrics().commands;
    for _ in 0..50 {
        fixture.clock.advance(SECOND);
        fixture.ring_hosts();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    fixture.prompt(id, "go");
    fixture.until_state(id, "idle").await;
    host.stop().await;
    // The prompt, the claim with the step's start, its end, and the host's farewell; and nothing
    // for all those rings.
    assert_eq!(fixture.store.metrics().commands - before, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_outlasts_a_process_that_stands_still_with_the_write_lock() {
    let fixture = Fixture::with(|options| options.patience = Duration::from_millis(5));
    let host = fixture.host().await;
    let script = r#"{"runs": [[{"tool": {"name": "a", "ms": 1000}}, {"say": "done"}]]}"#;
    let (calls, waits) = (fixture.create(script), fixture.create(script));
    fixture.prompt(calls, "go");
    fixture.until_in_flight(calls, "a").await;
    let (go_on, held) = std::sync::mpsc::channel::<()>();
    let (locked, is_locked) = std::sync::mpsc::channel();
    let other = fixture.another();
    let stands_still = other.transact(move |_| {
        locked.send(()).unwrap();
        let _ = held.recv();
        Ok::<_, Error>(())
    });
    is_locked.recv().unwrap();
    // The call comes back, and its result has nowhere to go for a long time.
    fixture.clock.advance(SECOND * 2);
    let refused = fixture.store.transact(|tx| tx.prune(&Retention::default(), 1)).wait();
    assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
    go_on.send(()).unwrap();
    stands_still.await.unwrap();
    fixture.pass_until(calls, "idle").await;
    assert_eq!(fixture.happened(calls).iter().filter(|name| **name == "claimed").count(), 1);
    fixture.prompt(waits, "go");
    fixture.pass_until(waits, "idle").await;
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_script_that_cannot_be_read_is_left_to_others() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let odd = fixture.create("nonsense");
    let good = fixture.create(r#"{"runs": [[{"say": "hi"}]]}"#);
    fixture.prompt(odd, "go");
    fixture.prompt(good, "go");
    fixture.until_state(good, "idle").await;
    assert_eq!(fixture.session(odd).state.name(), "ready");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_panics_takes_only_its_own_session_along() {
    use std::sync::Arc;

    use adjourn::clock::Clock;
    use adjourn::script::Scripted;
    use adjourn_core::driver::DriverSpec;
    use adjourn_driver::{BoxStream, Call, CallPart, Driver, Drivers, Part, Step, emitting};

    struct Panics;
    impl Driver for Panics {
        fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
            emitting(|_| async { panic!("as it was told to") })
        }
        fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
            emitting(|_| std::future::pending())
        }
    }
    struct Mixed(Scripted);
    impl Drivers for Mixed {
        fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
            match spec.cwd.as_deref() {
                Some("/panics") => Ok(Box::new(Panics)),
                _ => self.0.make(spec),
            }
        }
    }

    let fixture = Fixture::new();
    let clock: Arc<dyn Clock> = Arc::new(fixture.clock.clone());
    let host = fixture.host_with(Arc::new(Mixed(Scripted::new(clock)))).await;
    let mut spec = DriverSpec::script("{}");
    spec.cwd = Some("/panics".to_owned());
    let odd = fixture.create_with(spec);
    fixture.prompt(odd, "go");
    fixture
        .until(odd, "given back", |session| session.epoch.0 == 1 && session.owner().is_none())
        .await;
    let good = fixture.create(r#"{"runs": [[{"say": "hi"}]]}"#);
    fixture.prompt(good, "go");
    fixture.until_state(good, "idle").await;
    assert_eq!(fixture.session(odd).state.name(), "ready");
    assert_eq!(fixture.session(odd).epoch.0, 1, "it is not taken again");
    host.stop().await;
}

/// What an event carries is told to the agent that it wakes, however long after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_data_of_an_event_is_told_long_after_it_came() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let script = r#"{"steps": [{"await": {"reason": "x", "conditions": {"onEvent": "built"}}},
                               {"say": "done"}]}"#;
    let id = fixture.create(script);
    fixture.prompt(id, "go");
    fixture.until_state(id, "suspended").await;
    fixture.suspend(id, Suspend::default());
    fixture.event_with("built", r#"{"sha":"abc123"}"#);
    let fired = |session: &Session| session.suspended().is_some_and(|it| it.fired.is_some());
    fixture.until(id, "fired", fired).await;
    host.stop().await;
    fixture.clock.advance(Duration::from_secs(2 * 24 * 3600));
    let pruned = fixture.store.transact(|tx| tx.prune(&Retention::of_hosts(), 100)).wait();
    pruned.map_err(|error: Error| error).unwrap();
    fixture.resume(id, None).unwrap();
    let pruned = fixture.store.transact(|tx| tx.prune(&Retention::of_hosts(), 100)).wait();
    pruned.map_err(|error: Error| error).unwrap();
    let host = fixture.host().await;
    fixture.until_state(id, "idle").await;
    let told = |said: &Message| said.text().contains(r#"Its data: {"sha":"abc123"}"#);
    assert!(fixture.said(id).iter().any(told), "{:?}", fixture.said(id));
    host.stop().await;
}
