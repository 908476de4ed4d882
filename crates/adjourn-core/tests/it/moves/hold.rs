//! Holds: a client's pause over the agent's own wait.

use expect_test::expect;

use crate::script::{Play, check};

const PARKED: &str = "prompt build
     claim
     step
     await ci on=ci.* timeout=30m";

fn check_parked(script: &str, expected: expect_test::Expect) {
    let mut play = Play::new();
    play.run(PARKED);
    expected.assert_eq(&play.run(script));
}

#[test]
fn a_hold_has_its_own_handle_and_is_lifted_without_one() {
    check_parked(
        "suspend reason=review
         resume handle=1
         prompt go
         wake
         resume input=x
         resume
         resume handle=2
         resume handle=1",
        expect![[r#"
            suspend reason=review
              hold_laid #2
              = suspended client open held
            resume handle=1
              ! HELD: held by ann: review
            prompt go
              ! HELD: held by ann: review
            wake
              ! HELD: held by ann: review
            resume input=x
              ! INVALID: input: a hold is lifted without input
            resume
              hold_lifted #2 explicit_resume
              = suspended agent open
            resume handle=2
              ! ALREADY_RESUMED: suspension #2 was resumed at 2026-11-16T09:00:00.000Z (explicit_resume) by cli:ann
            resume handle=1
              resumed #1 explicit_resume to Ready
              = ready
        "#]],
    );
}

#[test]
fn what_fires_under_a_hold_acts_at_the_lift() {
    check_parked(
        "suspend
         event ci.passed
         event ci.failed
         resume handle=2",
        expect![[r#"
            suspend
              hold_laid #2
              = suspended client open held
            event ci.passed
              fired_under_hold #1 event ci.passed
              = suspended client open held
            event ci.failed
              = suspended client open held
            resume handle=2
              hold_lifted #2 explicit_resume
              resumed #1 condition_fired to Ready
              = ready
        "#]],
    );
    check_parked(
        "suspend
         t=31m expire
         resume",
        expect![[r#"
            suspend
              hold_laid #2
              = suspended client open held
            t=31m expire
              fired_under_hold #1 timeout
              = suspended client open held
            resume
              hold_lifted #2 explicit_resume
              resumed #1 timeout to Ready
              = ready
        "#]],
    );
}

#[test]
fn a_deadline_that_fails_under_a_hold_fails_at_the_lift() {
    check(
        "prompt build
         claim
         step
         await ci timeout=30m/fail
         suspend
         t=31m expire
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
            await ci timeout=30m/fail
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            suspend
              hold_laid #2
              = suspended client open held
            t=31m expire
              fired_under_hold #1 timeout
              = suspended client open held
            resume
              hold_lifted #2 explicit_resume
              suspension_ended #1 failed
              run_ended failed
              = idle failed
        "#]],
    );
}

#[test]
fn its_own_conditions_lift_it() {
    check_parked(
        "suspend on=review.done
         event review.done
         event ci.passed",
        expect![[r#"
            suspend on=review.done
              hold_laid #2
              = suspended client open held
            event review.done
              hold_lifted #2 condition_fired
              = suspended agent open
            event ci.passed
              resumed #1 condition_fired to Ready
              = ready
        "#]],
    );
    check_parked(
        "suspend timeout=5m
         t=4m expire
         t=6m expire
         t=31m expire",
        expect![[r#"
            suspend timeout=5m
              hold_laid #2
              = suspended client open held
            t=4m expire
              = suspended client open held
            t=6m expire
              hold_lifted #2 timeout
              = suspended agent open
            t=31m expire
              resumed #1 timeout to Ready
              = ready
        "#]],
    );
}

#[test]
fn one_event_may_end_both() {
    check_parked(
        "suspend on=ci.passed
         event ci.passed",
        expect![[r#"
            suspend on=ci.passed
              hold_laid #2
              = suspended client open held
            event ci.passed
              fired_under_hold #1 event ci.passed
              hold_lifted #2 condition_fired
              resumed #1 condition_fired to Ready
              = ready
        "#]],
    );
}

#[test]
fn an_event_addressed_to_the_session_does_not_lift_a_hold() {
    check_parked(
        "suspend
         event ping addressed
         resume",
        expect![[r#"
            suspend
              hold_laid #2
              = suspended client open held
            event ping addressed
              fired_under_hold #1 event ping
              = suspended client open held
            resume
              hold_lifted #2 explicit_resume
              resumed #1 external_event to Ready
              = ready
        "#]],
    );
}

#[test]
fn a_further_suspend_joins_the_hold() {
    check_parked(
        "suspend on=review.done
         suspend
         suspend on=other
         cancel",
        expect![[r#"
            suspend on=review.done
              hold_laid #2
              = suspended client open held
            suspend
              suspend_joined #2 finish_step
              = suspended client open held
            suspend on=other
              ! CONDITIONS_DIFFER: suspension #2 has other conditions
            cancel
              suspension_ended #1 canceled
              run_ended canceled
              = idle canceled
        "#]],
    );
}

#[test]
fn a_pending_suspend_and_an_await_commit_together() {
    check(
        "prompt build
         claim
         step
         calls build wait
         dispatch build
         suspend
         await ci on=ci.passed call=wait
         return build
         event ci.passed
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
            return build
              calls_returned build
              suspended #2 under hold #1
              = suspended client open held
            event ci.passed
              fired_under_hold #2 event ci.passed
              = suspended client open held
            resume handle=1
              hold_lifted #1 explicit_resume
              resumed #2 condition_fired to Ready
              = ready
        "#]],
    );
}

#[test]
fn a_hold_over_a_question_comes_only_with_it() {
    check(
        "prompt build
         claim
         step
         suspend
         ask which
         prompt raw message=m1
         resume handle=1
         suspend
         resume input=raw handle=2",
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
            suspend
              suspend_requested #1 finish_step
              = quiescing requested client open
            ask which
              step_finished
              park_requested #2
              suspended #2 under hold #1
              = suspended client open held
            prompt raw message=m1
              ! HELD: held by ann
            resume handle=1
              hold_lifted #1 explicit_resume
              = suspended agent question
            suspend
              ! TASK_NOT_PAUSABLE: a session that is waiting for an answer cannot be suspended
            resume input=raw handle=2
              resumed #2 explicit_resume to Ready with input
              = ready
        "#]],
    );
}

/// A host commits both in one commit, and may not have heard of the suspend by then.
#[test]
fn a_question_that_a_call_asks_comes_under_the_pause_that_was_asked_for_meanwhile() {
    check(
        "prompt build
         claim
         step
         suspend mode=interrupt_immediate
         calls look which write parks
         ask which call=which
         resume
         resume input=raw handle=2",
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
            suspend mode=interrupt_immediate
              suspend_requested #1 interrupt_immediate
              = quiescing requested client open
            calls look which write parks
              calls_asked
              = quiescing client open
            ask which call=which
              step_finished
              park_requested #2
              suspended #2 under hold #1 not_run look,write
              = suspended client open held
            resume
              hold_lifted #1 explicit_resume
              = suspended agent question
            resume input=raw handle=2
              resumed #2 explicit_resume to Ready with input
              = ready
        "#]],
    );
}

#[test]
fn a_hold_that_a_used_up_budget_made_is_lifted_with_more_of_it() {
    check(
        "prompt build
         claim
         step
         suspend limit=budget_exceeded
         ask which
         resume
         resume steps=5
         resume tokens=5
         resume input=raw handle=2",
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
            suspend limit=budget_exceeded
              suspend_requested #1 finish_step
              = quiescing requested client open
            ask which
              step_finished
              park_requested #2
              suspended #2 under hold #1
              = suspended client open held
            resume
              ! BUDGET_NOT_RAISED: the budget is used up; resume with more of it
            resume steps=5
              ! BUDGET_NOT_RAISED: the budget is used up; resume with more of it
            resume tokens=5
              hold_lifted #1 explicit_resume
              = suspended agent question
            resume input=raw handle=2
              resumed #2 explicit_resume to Ready with input
              = ready
        "#]],
    );
}
