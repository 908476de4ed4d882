//! Hosts that stop, die or hang.

use expect_test::expect;

use crate::script::{Play, check};

#[test]
fn a_drain_gives_the_session_back() {
    check(
        "prompt build
         claim
         step
         finish
         drain
         claim host=2
         step",
        expect![[r#"
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            finish
              step_finished
              = running
            drain
              drained
              = ready
            claim host=2
              claimed epoch 2
              = running
            step
              step_started
              = running
        "#]],
    );
}

#[test]
fn after_the_grace_of_a_drain_a_session_is_left_as_by_a_dead_host() {
    check(
        "prompt build
         claim
         step
         calls build lint! deploy
         dispatch build lint
         drain
         resume handle=1
         claim host=2
         dispatch lint deploy",
        expect![[r#"
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            calls build lint! deploy
              calls_asked
              = running
            dispatch build lint
              calls_dispatched build,lint
              = running (build,lint in flight)
            drain
              host_lost again lint unknown build
              suspended #1 deferred lint,deploy unknown build
              = suspended client open
            resume handle=1
              resumed #1 explicit_resume to Ready dispatch lint,deploy
              = ready
            claim host=2
              claimed epoch 2
              = running
            dispatch lint deploy
              calls_dispatched lint,deploy
              = running (lint,deploy in flight)
        "#]],
    );
    // Calls that may run twice are run again, and nobody is asked.
    check(
        "prompt build
         claim
         step
         calls lint!
         dispatch lint
         drain
         claim host=2
         dispatch lint",
        expect![[r#"
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            calls lint!
              calls_asked
              = running
            dispatch lint
              calls_dispatched lint
              = running (lint in flight)
            drain
              host_lost again lint
              = ready
            claim host=2
              claimed epoch 2
              = running
            dispatch lint
              calls_dispatched lint
              = running (lint in flight)
        "#]],
    );
    for script in [
        "calls build lint! deploy\ndispatch build lint",
        "calls lint!\ndispatch lint",
        "calls build\ndispatch build\ncancel",
        "calls build lint!\ndispatch build lint\nsuspend",
        "calls build! wait\ndispatch build\nawait ci call=wait",
        "suspend mode=wait_for_completion",
    ] {
        let mut drained = Play::new();
        drained.run(&format!("prompt go\nclaim\nstep\n{script}"));
        let mut died = drained.clone();
        let after = |trace: String| trace.split_once('\n').unwrap().1.to_owned();
        assert_eq!(after(drained.run("drain")), after(died.run("died")), "{script}");
    }
}

#[test]
fn a_drain_commits_a_pending_suspension() {
    check(
        "prompt build
         claim
         step
         suspend mode=wait_for_completion
         drain",
        expect![[r#"
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            suspend mode=wait_for_completion
              suspend_requested #1 wait_for_completion
              = quiescing requested client open
            drain
              host_lost
              suspended #1
              = suspended client open
        "#]],
    );
}

#[test]
fn a_dead_host_leaves_the_session_ready_if_nothing_is_unknown() {
    check(
        "prompt build
         claim
         step
         died
         claim host=2
         step epoch=1
         step
         calls build!
         dispatch build
         died host=2
         claim host=1
         dispatch build",
        expect![[r#"
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            died
              host_lost
              = ready
            claim host=2
              claimed epoch 2
              = running
            step epoch=1
              ! NOT_OWNER: the claim of epoch 1 is over: the session is running in epoch 2
            step
              step_started
              = running
            calls build!
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            died host=2
              host_lost again build
              = ready
            claim host=1
              claimed epoch 3
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
        "#]],
    );
}

#[test]
fn a_dead_host_with_an_unknown_call_parks_the_session() {
    check(
        "prompt build
         claim
         step
         calls build lint! deploy
         dispatch build lint
         died
         resume handle=1
         claim
         dispatch lint deploy
         return lint deploy
         finish end=completed",
        expect![[r#"
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            calls build lint! deploy
              calls_asked
              = running
            dispatch build lint
              calls_dispatched build,lint
              = running (build,lint in flight)
            died
              host_lost again lint unknown build
              suspended #1 deferred lint,deploy unknown build
              = suspended client open
            resume handle=1
              resumed #1 explicit_resume to Ready dispatch lint,deploy
              = ready
            claim
              claimed epoch 2
              = running
            dispatch lint deploy
              calls_dispatched lint,deploy
              = running (lint,deploy in flight)
            return lint deploy
              calls_returned lint,deploy
              = running
            finish end=completed
              step_finished
              run_ended completed
              = idle completed
        "#]],
    );
}

#[test]
fn a_dead_host_commits_what_was_pending() {
    check(
        "prompt build
         claim
         step
         calls build wait
         dispatch build
         suspend
         await ci on=ci.passed call=wait
         died",
        expect![[r#"
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            calls build wait
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            suspend
              suspend_requested #1 finish_step
              = quiescing requested client open (build in flight)
            await ci on=ci.passed call=wait
              step_finished
              park_requested #2
              = quiescing client open (build in flight)
            died
              host_lost unknown build
              suspended #2 under hold #1 unknown build
              = suspended client open held
        "#]],
    );
    check(
        "prompt build
         claim
         step
         cancel
         died",
        expect![[r#"
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            cancel
              cancel_requested
              = quiescing canceling
            died
              host_lost
              run_ended canceled
              = idle canceled
        "#]],
    );
}

#[test]
fn a_takeover_raises_the_epoch_over_a_hung_owner() {
    check(
        "prompt build
         claim
         step
         takeover host=2
         takeover
         claim host=2
         finish epoch=1",
        expect![[r#"
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            takeover host=2
              ! NOT_OWNER: the claim of epoch 1 is over: the session is running in epoch 1
            takeover
              host_lost
              = ready
            claim host=2
              claimed epoch 2
              = running
            finish epoch=1
              ! NOT_OWNER: the claim of epoch 1 is over: the session is running in epoch 2
        "#]],
    );
}

#[test]
fn a_call_that_was_started_is_never_said_not_to_have_run() {
    // Beside an await nothing is dispatched again.
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\ncalls a! w\ndispatch a\nawait ci call=w");
    assert!(play.run("died").contains("unknown a"));

    // A client's pause defers it; a wake that does not dispatch it leaves its outcome unknown.
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\ncalls a! b\ndispatch a");
    play.run("suspend mode=interrupt_immediate on=e");
    assert!(play.run("died").contains("deferred a,b"));
    play.run("event e");
    let fates: Vec<_> = play.world.session.calls.iter().map(|open| open.state).collect();
    use adjourn_core::ledger::CallState;
    assert_eq!(fates, [CallState::Unknown, CallState::NotRun]);
}

#[test]
fn a_session_parked_by_a_dead_host_has_missed_nothing_before() {
    let mut play = Play::new();
    play.run("arrive ping addressed\nprompt go\nclaim\nstep\ncalls a\ndispatch a\ndied");
    assert!(play.world.session.suspended().is_some());
    let window = play.world.session.suspended().unwrap().park.pause.window;
    assert_eq!(window.0, 1);
}

#[test]
fn a_message_over_any_face_wakes_what_its_host_left_behind() {
    use adjourn_core::session::Opening;

    for face in ["", "by=acp", "by=a2a"] {
        let mut play = Play::new();
        play.run("prompt go\nclaim\nstep\ncalls deploy\ndispatch deploy\ndied");
        let pause = &play.world.session.suspended().unwrap().park.pause;
        assert!(pause.host_interrupted);
        assert_eq!(pause.reason.as_deref(), Some("host_interrupted"));
        let trace = play.run(&format!("prompt \"look first\" {face}"));
        assert!(trace.contains("resumed #1 explicit_resume to Ready with input"), "{trace}");
        let Opening::Wake(report) = &play.world.session.run().unwrap().opening else { panic!() };
        let told = report.text(&play.world.session.status().unknown_calls);
        assert!(told.contains("unknown what became of: deploy"), "{told}");
    }
}

#[test]
fn what_a_host_left_behind_is_the_clients_who_joined() {
    check(
        "prompt go
         claim
         step
         calls deploy
         dispatch deploy
         died
         suspend reason=lunch by=bob
         suspend reason=tea by=acp
         prompt go
         prompt go by=acp
         event ping addressed
         resume",
        expect![[r#"
            prompt go
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            calls deploy
              calls_asked
              = running
            dispatch deploy
              calls_dispatched deploy
              = running (deploy in flight)
            died
              host_lost unknown deploy
              suspended #1 unknown deploy
              = suspended client open
            suspend reason=lunch by=bob
              suspend_joined #1 finish_step
              = suspended client open
            suspend reason=tea by=acp
              suspend_joined #1 finish_step
              = suspended client open
            prompt go
              ! TASK_PAUSED: paused by bob: lunch
            prompt go by=acp
              ! TASK_PAUSED: paused by bob: lunch
            event ping addressed
              = suspended client open
            resume
              resumed #1 explicit_resume to Ready
              = ready
        "#]],
    );
}

/// Programs before this field told such a pause by its reason alone; it means the same.
#[test]
fn an_older_entry_is_known_by_its_reason() {
    use adjourn_core::Session;
    use adjourn_core::journal::{Entry, STATE_EVERY};

    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\nfinish end=completed");
    for _ in 0..25 {
        play.run("prompt go\ncancel");
    }
    play.run("prompt go\nclaim\nstep\ncalls deploy\ndispatch deploy\ndied");
    assert!(play.world.session.suspended().unwrap().park.pause.host_interrupted);
    // The next entry carries the state of a session that is parked.
    assert_eq!(play.world.session.revision + 1, STATE_EVERY);
    play.run("prompt go");
    let older = |bytes: &Vec<u8>| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        Entry::decode(text.replace(r#""hostInterrupted":true,"#, "").as_bytes()).unwrap()
    };
    let entries: Vec<_> = play.world.journal.iter().map(older).collect();
    let folded = Session::fold(entries.iter().map(|entry| &entry.event)).unwrap();
    assert_eq!(folded, play.world.session);
    assert_eq!(entries.last().unwrap().state().unwrap().unwrap(), play.world.session);
}

#[test]
fn a_client_may_give_that_word_as_its_reason() {
    let mut play = Play::new();
    play.run("suspend reason=host_interrupted");
    assert!(!play.world.session.suspended().unwrap().park.pause.host_interrupted);
    assert!(play.try_line("prompt go").unwrap_err().starts_with("TASK_PAUSED"));
}
