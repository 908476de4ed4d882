//! Panics, and their release.

use expect_test::expect;

use crate::script::{Play, check};

#[test]
fn nothing_in_scope_may_start() {
    check(
        "prompt build
         gate
         claim
         suspend
         resume
         prompt go",
        expect![[r#"
            prompt build
              run_started
              = ready
            gate
            claim
              ! GATED: stopped by the policy panic; nothing in the scope of gate-05000000-0000-7000-8000-000000000001 may start
            suspend
              suspended #1
              = suspended client open
            resume
              ! GATED: stopped by the policy panic; nothing in the scope of gate-05000000-0000-7000-8000-000000000001 may start
            prompt go
              ! TASK_PAUSED: paused by ann
        "#]],
    );
    check(
        "prompt build
         claim
         step
         calls build
         gate
         dispatch build
         panic
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
            calls build
              calls_asked
              = running
            gate
            dispatch build
              ! GATED: stopped by the policy panic; nothing in the scope of gate-05000000-0000-7000-8000-000000000001 may start
            panic
              suspend_requested #1 interrupt_immediate
              suspended #1 deferred build
              = suspended client open
            ungate
              resumed #1 external_event to Ready not_run build
              = ready
        "#]],
    );
}

#[test]
fn a_release_resumes_what_only_this_panic_stopped() {
    check(
        "prompt build
         claim
         step
         gate
         panic
         abort
         resume
         ungate
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
            gate
            panic
              suspend_requested #1 interrupt_immediate
              = quiescing requested client open
            abort
              step_aborted
              suspended #1
              = suspended client open
            resume
              ! GATED: stopped by the policy panic; nothing in the scope of gate-05000000-0000-7000-8000-000000000001 may start
            ungate
              resumed #1 external_event to Ready
              = ready
            claim
              claimed epoch 2
              = running
        "#]],
    );
    check(
        "prompt build
         claim
         step
         gate
         panic
         suspend
         abort
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
            suspend
              suspend_joined #1 interrupt_immediate
              = quiescing requested client open
            abort
              step_aborted
              suspended #1
              = suspended client open
            ungate
              requester_left #1
              = suspended client open
        "#]],
    );
    check(
        "prompt build
         claim
         step
         gate n=1
         panic n=1
         gate n=2
         panic n=2
         abort
         ungate n=1
         ungate n=2",
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
            gate n=1
            panic n=1
              suspend_requested #1 interrupt_immediate
              = quiescing requested client open
            gate n=2
            panic n=2
              suspend_joined #1 interrupt_immediate
              = quiescing requested client open
            abort
              step_aborted
              suspended #1
              = suspended client open
            ungate n=1
              requester_left #1
              = suspended client open
            ungate n=2
              resumed #1 external_event to Ready
              = ready
        "#]],
    );
}

#[test]
fn what_fires_under_a_gate_leaves_the_session_ready() {
    check(
        "prompt build
         claim
         step
         await ci on=ci.passed
         gate
         panic
         event ci.passed
         claim
         ungate
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
            await ci on=ci.passed
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            gate
            panic
              = suspended agent open
            event ci.passed
              resumed #1 condition_fired to Ready
              = ready
            claim
              ! GATED: stopped by the policy panic; nothing in the scope of gate-05000000-0000-7000-8000-000000000001 may start
            ungate
              = ready
            claim
              claimed epoch 2
              = running
        "#]],
    );
}

#[test]
fn a_panic_that_is_over_before_it_took_effect_is_withdrawn() {
    check(
        "prompt build
         claim
         step
         calls build
         dispatch build
         gate
         panic
         ungate
         return build",
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
            calls build
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            gate
            panic
              suspend_requested #1 interrupt_immediate
              = quiescing requested client open (build in flight)
            ungate
              suspend_withdrawn #1
              = running (build in flight)
            return build
              calls_returned build
              = running
        "#]],
    );
}

#[test]
fn a_panic_over_an_await_is_a_hold_that_its_release_lifts() {
    check(
        "prompt build
         claim
         step
         calls build wait
         dispatch build
         gate
         panic
         await ci on=ci.passed call=wait
         return build
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
            calls build wait
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            gate
            panic
              suspend_requested #1 interrupt_immediate
              = quiescing requested client open (build in flight)
            await ci on=ci.passed call=wait
              step_finished
              park_requested #2
              = quiescing client open (build in flight)
            return build
              calls_returned build
              suspended #2 under hold #1
              = suspended client open held
            ungate
              hold_lifted #1 external_event
              = suspended agent open
        "#]],
    );
}

#[test]
fn a_hung_call_is_abandoned_after_the_grace_of_a_panic() {
    check(
        "prompt build
         claim
         step
         calls build
         dispatch build
         gate
         panic
         t=30s abandon",
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
            calls build
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            gate
            panic
              suspend_requested #1 interrupt_immediate
              = quiescing requested client open (build in flight)
            t=30s abandon
              calls_abandoned unknown build
              suspended #1 unknown build
              = suspended client open
        "#]],
    );
}

#[test]
fn a_resume_does_not_take_back_what_a_panic_wants() {
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\ncalls a\ndispatch a\ngate\npanic");
    assert!(play.try_line("resume").unwrap_err().starts_with("GATED"));
    play.run("return a");
    assert!(play.world.session.suspended().is_some());
}
