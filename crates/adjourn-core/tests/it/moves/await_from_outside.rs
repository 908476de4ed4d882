//! `await_resumption` by a worker outside the host, which holds no claim.

use expect_test::expect;

use crate::script::check;

#[test]
fn it_lets_the_step_come_to_its_end_and_starts_no_other() {
    check(
        "prompt build
         claim
         step
         calls build lint
         dispatch build
         worker ci on=ci.passed
         dispatch lint
         resume
         resume handle=1
         return build
         return lint
         step
         finish next
         step
         event ci.passed",
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
            worker ci on=ci.passed
              await_requested #1
              = quiescing requested agent open (build in flight)
            dispatch lint
              calls_dispatched lint
              = quiescing requested agent open (build,lint in flight)
            resume
              ! TASK_BUSY: the session is busy (about to stop)
            resume handle=1
              ! TASK_BUSY: the session is busy (about to stop)
            return build
              calls_returned build
              = quiescing agent open (lint in flight)
            return lint
              calls_returned lint
              = quiescing agent open
            step
              ! STOPPING: nothing new may start: the session is quiescing
            finish next
              step_finished
              suspended #1
              = suspended agent open
            step
              ! NOT_OWNER: the claim of epoch 1 is over: the session is suspended in epoch 1
            event ci.passed
              resumed #1 condition_fired to Ready
              = ready
        "#]],
    );
}

#[test]
fn between_two_steps_it_is_in_force_at_once_without_the_host() {
    check(
        "prompt build
         claim
         worker ci
         step
         resume handle=1 input=go
         worker ci timeout=1m/fail
         t=1m expire",
        expect![[r#"
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            worker ci
              await_requested #1
              suspended #1
              = suspended agent open
            step
              ! NOT_OWNER: the claim of epoch 1 is over: the session is suspended in epoch 1
            resume handle=1 input=go
              resumed #1 explicit_resume to Ready with input
              = ready
            worker ci timeout=1m/fail
              suspended #2
              = suspended agent open
            t=1m expire
              suspension_ended #2 failed
              run_ended failed
              = idle failed
        "#]],
    );
}

#[test]
fn an_event_that_came_since_the_turn_began_wakes_it() {
    check(
        "prompt build
         claim
         step
         arrive ci.passed:main
         worker ci on=ci.passed
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
            arrive ci.passed:main
            worker ci on=ci.passed
              await_requested #1
              = quiescing requested agent open
            finish
              step_finished
              suspended #1
              resumed #1 condition_fired to Ready
              = ready
        "#]],
    );
}

#[test]
fn a_run_that_ends_first_ends_it() {
    check(
        "prompt build
         claim
         step
         worker ci
         finish end=completed
         resume handle=1
         resume",
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
            worker ci
              await_requested #1
              = quiescing requested agent open
            finish end=completed
              step_finished
              await_ended #1 withdrawn
              run_ended completed
              = idle completed
            resume handle=1
              ! WITHDRAWN: suspension #1 was withdrawn at 2026-11-16T09:00:00.000Z by agent
            resume
              ! TASK_NOT_PAUSED: the session is idle, not suspended
        "#]],
    );
}

#[test]
fn a_run_that_ends_first_leaves_the_pause_of_a_client() {
    check(
        "prompt build
         claim
         step
         worker ci
         suspend
         finish end=completed
         resume",
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
            worker ci
              await_requested #1
              = quiescing requested agent open
            suspend
              suspend_requested #2 finish_step
              = quiescing requested client open
            finish end=completed
              step_finished
              await_ended #1 withdrawn
              suspended #2 keeping completed
              = suspended client open
            resume
              resumed #2 explicit_resume to Outcome
              run_ended completed
              = idle completed
        "#]],
    );
}

#[test]
fn a_park_or_a_question_of_the_agent_s_own_comes_before_it() {
    check(
        "prompt build
         claim
         step
         worker ci
         ask which
         resume handle=2 input=raw
         claim
         step
         worker ci
         await deploy on=deployed
         event deployed",
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
            worker ci
              await_requested #1
              = quiescing requested agent open
            ask which
              step_finished
              await_ended #1 withdrawn
              park_requested #2
              suspended #2
              = suspended agent question
            resume handle=2 input=raw
              resumed #2 explicit_resume to Ready with input
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            worker ci
              await_requested #3
              = quiescing requested agent open
            await deploy on=deployed
              step_finished
              await_ended #3 withdrawn
              park_requested #4
              suspended #4
              = suspended agent open
            event deployed
              resumed #4 condition_fired to Ready
              = ready
        "#]],
    );
}

#[test]
fn beside_a_client_s_pause_both_commit_together_and_the_client_s_is_a_hold() {
    check(
        "prompt build
         claim
         step
         suspend mode=wait_for_completion
         worker ci on=ci.passed
         finish
         event ci.passed
         resume
         claim
         step
         calls a b
         dispatch a
         worker ci
         suspend mode=interrupt_immediate
         return a
         resume",
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
            worker ci on=ci.passed
              await_requested #2
              = quiescing requested client open
            finish
              step_finished
              suspended #2 under hold #1
              = suspended client open held
            event ci.passed
              fired_under_hold #2 event ci.passed
              = suspended client open held
            resume
              hold_lifted #1 explicit_resume
              resumed #2 condition_fired to Ready
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            calls a b
              calls_asked
              = running
            dispatch a
              calls_dispatched a
              = running (a in flight)
            worker ci
              await_requested #3
              = quiescing requested agent open (a in flight)
            suspend mode=interrupt_immediate
              suspend_requested #4 interrupt_immediate
              = quiescing requested client open (a in flight)
            return a
              calls_returned a
              suspended #3 under hold #4 not_run b
              = suspended client open held
            resume
              hold_lifted #4 explicit_resume
              = suspended agent open
        "#]],
    );
}

#[test]
fn a_cancel_overrides_it() {
    check(
        "prompt build
         claim
         step
         worker ci
         suspend
         cancel
         finish
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
            worker ci
              await_requested #1
              = quiescing requested agent open
            suspend
              suspend_requested #2 finish_step
              = quiescing requested client open
            cancel
              await_ended #1 canceled
              cancel_requested
              = quiescing canceling
            finish
              step_finished
              run_ended canceled
              = idle canceled
            resume handle=1
              ! TASK_NOT_PAUSED: the session is idle, not suspended
        "#]],
    );
}

#[test]
fn it_takes_effect_when_its_host_dies_drains_or_gives_up() {
    check(
        "prompt build
         claim
         step
         calls build! lint
         dispatch build
         worker ci
         died
         resume
         claim
         step
         worker ci
         drain
         resume
         claim
         step
         calls c d
         dispatch c
         worker ci
         suspend grace=1s
         t=2s abandon",
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
            calls build! lint
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            worker ci
              await_requested #1
              = quiescing requested agent open (build in flight)
            died
              host_lost unknown build
              suspended #1 not_run lint unknown build
              = suspended agent open
            resume
              resumed #1 explicit_resume to Ready
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            worker ci
              await_requested #2
              = quiescing requested agent open
            drain
              host_lost
              suspended #2
              = suspended agent open
            resume
              resumed #2 explicit_resume to Ready
              = ready
            claim
              claimed epoch 3
              = running
            step
              step_started
              = running
            calls c d
              calls_asked
              = running
            dispatch c
              calls_dispatched c
              = running (c in flight)
            worker ci
              await_requested #3
              = quiescing requested agent open (c in flight)
            suspend grace=1s
              suspend_requested #4 finish_step
              = quiescing requested client open (c in flight)
            t=2s abandon
              calls_abandoned unknown c
              suspended #3 under hold #4 not_run d unknown c
              = suspended client open held
        "#]],
    );
}

#[test]
fn a_worker_that_tries_again_gets_the_same_one() {
    check(
        "prompt build
         claim
         step
         worker ci on=ci.passed
         worker again on=ci.passed
         worker again
         worker other on=other
         finish
         worker again on=ci.passed
         worker other on=other
         suspend
         worker again on=ci.passed",
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
            worker ci on=ci.passed
              await_requested #1
              = quiescing requested agent open
            worker again on=ci.passed
              = quiescing requested agent open
            worker again
              = quiescing requested agent open
            worker other on=other
              ! CONDITIONS_DIFFER: suspension #1 has other conditions
            finish
              step_finished
              suspended #1
              = suspended agent open
            worker again on=ci.passed
              = suspended agent open
            worker other on=other
              ! CONDITIONS_DIFFER: suspension #1 has other conditions
            suspend
              hold_laid #2
              = suspended client open held
            worker again on=ci.passed
              = suspended client open held
        "#]],
    );
}

#[test]
fn it_is_refused_where_the_agent_does_not_work() {
    check(
        "worker ci
         prompt build
         worker \"  \"
         claim
         step
         ask which
         worker ci
         resume handle=1 input=raw
         suspend
         worker ci
         resume
         claim
         step
         calls a
         dispatch a
         cancel
         worker ci
         close
         worker ci",
        expect![[r#"
            worker ci
              ! TASK_NOT_PAUSABLE: a session that is idle cannot be suspended
            prompt build
              run_started
              = ready
            worker "  "
              ! INVALID: reason: must not be empty
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            ask which
              step_finished
              park_requested #1
              suspended #1
              = suspended agent question
            worker ci
              ! TASK_NOT_PAUSABLE: a session that is waiting for an answer cannot be suspended
            resume handle=1 input=raw
              resumed #1 explicit_resume to Ready with input
              = ready
            suspend
              suspended #2
              = suspended client open
            worker ci
              ! TASK_NOT_PAUSABLE: a session that is suspended cannot be suspended
            resume
              resumed #2 explicit_resume to Ready
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            calls a
              calls_asked
              = running
            dispatch a
              calls_dispatched a
              = running (a in flight)
            cancel
              cancel_requested
              = quiescing canceling (a in flight)
            worker ci
              ! TASK_NOT_PAUSABLE: a session that is canceling cannot be suspended
            close
              run_ended canceled
              session_ended
              = ended canceled
            worker ci
              ! ENDED: the session ended at 2026-11-16T09:00:00.000Z
        "#]],
    );
}

#[test]
fn what_waits_for_a_permission_is_not_waited_for() {
    check(
        "prompt build
         claim
         step
         calls a b
         dispatch a
         worker ci
         return a
         finish
         resume",
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
            calls a b
              calls_asked
              = running
            dispatch a
              calls_dispatched a
              = running (a in flight)
            worker ci
              await_requested #1
              = quiescing requested agent open (a in flight)
            return a
              calls_returned a
              = quiescing agent open
            finish
              step_finished
              suspended #1 not_run b
              = suspended agent open
            resume
              resumed #1 explicit_resume to Ready
              = ready
        "#]],
    );
}
