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
fn after_the_grace_of_a_drain_the_next_turn_is_told() {
    check(
        "prompt build
         claim
         step
         calls build lint
         dispatch build
         drain
         claim host=2
         dispatch lint
         return lint
         finish",
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
            calls build lint
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            drain
              drained unknown build
              = ready
            claim host=2
              claimed epoch 2
              = running
            dispatch lint
              calls_dispatched lint
              = running (lint in flight)
            return lint
              calls_returned lint
              = running
            finish
              step_finished
              = running
        "#]],
    );
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
              drained
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
         prompt go
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
            prompt go
              ! TASK_PAUSED: the session was paused by host; resume it with its handle
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
