//! Events and deadlines.

use expect_test::expect;

use crate::script::{Play, check};

#[test]
fn an_event_wakes_what_waits_for_it_once() {
    check(
        "prompt build
         claim
         step
         await ci on=ci.passed:main
         event ci.passed:other
         event ci.failed:main
         event ci.passed:main
         event ci.passed:main
         resume handle=1",
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
            await ci on=ci.passed:main
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            event ci.passed:other
              = suspended agent open
            event ci.failed:main
              = suspended agent open
            event ci.passed:main
              resumed #1 condition_fired to Ready
              = ready
            event ci.passed:main
              = ready
            resume handle=1
              ! ALREADY_RESUMED: suspension #1 was resumed at 2026-11-16T09:00:00.000Z (condition_fired) by host
        "#]],
    );
}

#[test]
fn an_event_that_came_during_the_turn_is_not_lost() {
    check(
        "arrive ci.passed
         prompt build
         arrive other
         claim
         step
         await ci on=ci.passed
         arrive ci.passed
         deliver seq=1
         deliver seq=3
         claim
         step
         arrive ci.passed
         await again on=ci.passed",
        expect![[r#"
            arrive ci.passed
            prompt build
              run_started
              = ready
            arrive other
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            await ci on=ci.passed
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            arrive ci.passed
            deliver seq=1
              = suspended agent open
            deliver seq=3
              resumed #1 condition_fired to Ready
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            arrive ci.passed
            await again on=ci.passed
              step_finished
              park_requested #2
              suspended #2
              resumed #2 condition_fired to Ready
              = ready
        "#]],
    );
}

#[test]
fn the_event_behind_the_one_that_woke_it_is_not_lost() {
    check(
        "prompt build
         claim
         step
         await a on=build.a
         arrive build.a
         arrive build.b
         deliver seq=1
         deliver seq=2
         claim
         step
         await b on=build.b",
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
            await a on=build.a
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            arrive build.a
            arrive build.b
            deliver seq=1
              resumed #1 condition_fired to Ready
              = ready
            deliver seq=2
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            await b on=build.b
              step_finished
              park_requested #2
              suspended #2
              resumed #2 condition_fired to Ready
              = ready
        "#]],
    );
}

#[test]
fn an_event_between_acceptance_and_commit_of_a_suspend_wakes_it() {
    check(
        "prompt build
         claim
         step
         arrive ci.passed
         suspend on=ci.passed
         arrive ci.passed
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
            arrive ci.passed
            suspend on=ci.passed
              suspend_requested #1 finish_step
              = quiescing requested client open
            arrive ci.passed
            finish
              step_finished
              suspended #1
              resumed #1 condition_fired to Ready
              = ready
        "#]],
    );
}

#[test]
fn since_looks_further_back() {
    check(
        "arrive ci.passed
         arrive ci.passed
         suspend on=ci.passed since=1
         suspend on=ci.passed since=2
         event ci.passed",
        expect![[r#"
            arrive ci.passed
            arrive ci.passed
            suspend on=ci.passed since=1
              suspended #1
              resumed #1 condition_fired to Idle
              = idle
            suspend on=ci.passed since=2
              suspended #2
              = suspended client open
            event ci.passed
              resumed #2 condition_fired to Idle
              = idle
        "#]],
    );
}

#[test]
fn an_event_addressed_to_the_session_wakes_the_agents_open_wait() {
    check(
        "prompt build
         claim
         step
         arrive ping addressed
         await ci
         claim
         step
         ask which
         event ping addressed",
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
            arrive ping addressed
            await ci
              step_finished
              park_requested #1
              suspended #1
              resumed #1 external_event to Ready
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            ask which
              step_finished
              park_requested #2
              suspended #2
              = suspended agent question
            event ping addressed
              = suspended agent question
        "#]],
    );
}

#[test]
fn an_event_addressed_to_the_session_ends_no_clients_pause() {
    check(
        "suspend
         event ping addressed
         resume
         prompt build
         claim
         step
         suspend on=ci.passed since=0
         arrive ping addressed
         finish
         event ping addressed
         event ci.passed
         claim
         step
         calls build
         dispatch build
         died
         event ping addressed",
        expect![[r#"
            suspend
              suspended #1
              = suspended client open
            event ping addressed
              = suspended client open
            resume
              resumed #1 explicit_resume to Idle
              = idle
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            suspend on=ci.passed since=0
              suspend_requested #2 finish_step
              = quiescing requested client open
            arrive ping addressed
            finish
              step_finished
              suspended #2
              = suspended client open
            event ping addressed
              = suspended client open
            event ci.passed
              resumed #2 condition_fired to Ready
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            calls build
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            died
              host_lost unknown build
              suspended #3 unknown build
              = suspended client open
            event ping addressed
              = suspended client open
        "#]],
    );
}

#[test]
fn an_event_addressed_to_the_session_lifts_no_gate() {
    check(
        "prompt build
         claim
         step
         gate
         panic
         abort
         event ping addressed
         prompt go by=acp
         ungate",
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
            gate
            panic
              suspend_requested #1 interrupt_immediate
              = quiescing requested client open
            abort
              step_aborted
              suspended #1
              = suspended client open
            event ping addressed
              = suspended client open
            prompt go by=acp
              ! TASK_PAUSED: paused by the policy panic: panic
            ungate
              resumed #1 external_event to Ready
              = ready
        "#]],
    );
}

#[test]
fn an_event_under_a_gate_makes_the_agents_wait_ready_and_nothing_starts() {
    check(
        "prompt build
         claim
         step
         await ci
         gate
         event ping addressed
         claim",
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
            await ci
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            gate
            event ping addressed
              resumed #1 external_event to Ready
              = ready
            claim
              ! GATED: stopped by the policy panic; nothing in the scope of gate-05000000-0000-7000-8000-000000000001 may start
        "#]],
    );
}

#[test]
fn a_deadline_acts_once_when_it_is_due() {
    check(
        "prompt build
         claim
         step
         t=1m await ci timeout=30m
         t=30m expire
         t=31m expire
         expire
         resume handle=1",
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
            t=1m await ci timeout=30m
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            t=30m expire
              = suspended agent open
            t=31m expire
              resumed #1 timeout to Ready
              = ready
            expire
              = ready
            resume handle=1
              ! ALREADY_RESUMED: suspension #1 was resumed at 2026-11-16T09:31:00.000Z (timeout) by host
        "#]],
    );
}

#[test]
fn each_timeout_action() {
    check(
        "prompt build
         claim
         step
         await ci timeout=30m/resume_with_input
         t=30m expire
         claim
         step
         await ci timeout=30m/fail
         t=60m expire
         resume handle=2",
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
            await ci timeout=30m/resume_with_input
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            t=30m expire
              resumed #1 timeout to Ready with input
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            await ci timeout=30m/fail
              step_finished
              park_requested #2
              suspended #2
              = suspended agent open
            t=60m expire
              suspension_ended #2 failed
              run_ended failed
              = idle failed
            resume handle=2
              ! TASK_NOT_PAUSED: the session is idle, not suspended
        "#]],
    );
    check(
        "suspend timeout=1m/fail
         t=1m expire",
        expect![[r#"
            suspend timeout=1m/fail
              suspended #1
              = suspended client open
            t=1m expire
              suspension_ended #1 failed
              = idle
        "#]],
    );
}

#[test]
fn a_point_in_time_is_a_condition() {
    check(
        "prompt build
         claim
         step
         await nine at=2026-11-17T09:00:00Z
         t=23h expire
         t=24h expire",
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
            await nine at=2026-11-17T09:00:00Z
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            t=23h expire
              = suspended agent open
            t=24h expire
              resumed #1 condition_fired to Ready
              = ready
        "#]],
    );
}

#[test]
fn the_clock_may_go_back_but_entries_do_not() {
    check(
        "t=1h suspend timeout=30m
         t=0 expire
         t=89m expire
         t=90m expire",
        expect![[r#"
            t=1h suspend timeout=30m
              suspended #1
              = suspended client open
            t=0 expire
              = suspended client open
            t=89m expire
              = suspended client open
            t=90m expire
              resumed #1 timeout to Idle
              = idle
        "#]],
    );
}

#[test]
fn the_host_wakes_the_agents_waits_and_ends_no_clients_pause() {
    check(
        "wake
         suspend
         wake
         resume
         prompt build
         claim
         step
         await ci
         wake
         claim
         step
         calls build
         dispatch build
         died
         wake",
        expect![[r#"
            wake
              ! TASK_NOT_PAUSED: the session is idle, not suspended
            suspend
              suspended #1
              = suspended client open
            wake
              ! TASK_PAUSED: paused by ann
            resume
              resumed #1 explicit_resume to Idle
              = idle
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            await ci
              step_finished
              park_requested #2
              suspended #2
              = suspended agent open
            wake
              resumed #2 external_event to Ready
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            calls build
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            died
              host_lost unknown build
              suspended #3 unknown build
              = suspended client open
            wake
              resumed #3 external_event to Ready
              = ready
        "#]],
    );
}

#[test]
fn a_refilled_budget_ends_the_pause_that_it_made_unless_a_client_joined() {
    check(
        "suspend limit=budget_exceeded
         wake
         wake tokens=5
         suspend limit=budget_exceeded
         suspend
         wake tokens=5",
        expect![[r#"
            suspend limit=budget_exceeded
              suspended #1
              = suspended client open
            wake
              ! BUDGET_NOT_RAISED: the budget is used up; resume with more of it
            wake tokens=5
              resumed #1 external_event to Idle
              = idle
            suspend limit=budget_exceeded
              suspended #2
              = suspended client open
            suspend
              suspend_joined #2 finish_step
              = suspended client open
            wake tokens=5
              ! TASK_PAUSED: paused by ann
        "#]],
    );
}

#[test]
fn deadlines_and_graces_follow_the_clock_after_it_was_set_back() {
    let mut play = Play::new();
    play.run("t=365d suspend\nt=10s resume\nprompt go\nclaim\nstep");
    play.run("await ci timeout=1m");
    assert!(play.run("t=71s expire").contains("resumed #2 timeout"));

    let mut play = Play::new();
    play.run("t=365d suspend\nt=10s resume\nprompt go\nclaim\nstep\ncalls a\ndispatch a\ncancel");
    assert!(play.run("t=41s abandon").contains("calls_abandoned"));
}

#[test]
fn an_event_remembered_under_a_hold_does_not_open_the_next_window_long_ago() {
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\nawait ci on=ci.passed\nsuspend");
    play.run("event ci.passed\nt=30d event ci.passed\nresume\nclaim\nstep\nawait ci on=ci.passed");
    assert!(play.world.session.suspended().is_some(), "the second event is older than the turn");
}

#[test]
fn a_turn_that_a_client_interrupts_can_still_wait_for_what_came_meanwhile() {
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\nsuspend\nfinish\nevent ci.passed\nresume\nclaim\nstep");
    assert_eq!(play.world.session.open_window().unwrap().0, 0);
    assert!(play.run("await ci on=ci.passed").contains("condition_fired"));
}

#[test]
fn looking_back_from_the_future_is_refused() {
    let mut play = Play::new();
    play.run("arrive ci.passed");
    assert!(play.try_line("suspend on=ci.passed since=2").unwrap_err().starts_with("INVALID"));
    play.try_line("suspend on=ci.passed since=1").unwrap();
}
