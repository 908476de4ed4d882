//! `suspend`: accepted at once, in force at the boundary its mode names.

use adjourn_core::limits;
use expect_test::expect;

use crate::script::{Play, check};

#[test]
fn idle_commits_at_once_and_resumes_to_idle() {
    check(
        "suspend reason=review
         resume
         suspend
         resume input=build",
        expect![[r#"
            suspend reason=review
              suspended #1
              = suspended client open
            resume
              resumed #1 explicit_resume to Idle
              = idle
            suspend
              suspended #2
              = suspended client open
            resume input=build
              resumed #2 explicit_resume to Idle with input
              run_started
              = ready
        "#]],
    );
}

#[test]
fn ready_commits_at_once_and_resumes_to_ready() {
    check(
        "prompt build
         suspend
         claim
         resume handle=1",
        expect![[r#"
            prompt build
              run_started
              = ready
            suspend
              suspended #1
              = suspended client open
            claim
              ! NOT_READY: the session is suspended, not ready
            resume handle=1
              resumed #1 explicit_resume to Ready
              = ready
        "#]],
    );
}

#[test]
fn finish_step_lets_the_step_finish() {
    check(
        "prompt build
         claim
         step
         suspend
         calls build lint
         dispatch build
         return build
         dispatch lint
         step
         return lint
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
            suspend
              suspend_requested #1 finish_step
              = quiescing requested client open
            calls build lint
              calls_asked
              = quiescing client open
            dispatch build
              calls_dispatched build
              = quiescing client open (build in flight)
            return build
              calls_returned build
              = quiescing client open
            dispatch lint
              calls_dispatched lint
              = quiescing client open (lint in flight)
            step
              ! STOPPING: nothing new may start: the session is quiescing
            return lint
              calls_returned lint
              = quiescing client open
            finish
              step_finished
              suspended #1
              = suspended client open
            resume
              resumed #1 explicit_resume to Ready
              = ready
        "#]],
    );
}

#[test]
fn interrupt_immediate_defers_what_is_not_dispatched() {
    check(
        "prompt build
         claim
         step
         calls build lint
         dispatch build
         suspend mode=interrupt_immediate
         dispatch lint
         return build
         resume
         claim host=2
         dispatch lint
         return lint
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
            calls build lint
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            suspend mode=interrupt_immediate
              suspend_requested #1 interrupt_immediate
              = quiescing requested client open (build in flight)
            dispatch lint
              ! STOPPING: nothing new may start: the session is about to stop
            return build
              calls_returned build
              suspended #1 deferred lint
              = suspended client open
            resume
              resumed #1 explicit_resume to Ready dispatch lint
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
            finish end=completed
              step_finished
              run_ended completed
              = idle completed
        "#]],
    );
}

#[test]
fn interrupt_immediate_aborts_the_model_call() {
    check(
        "prompt build
         claim
         step
         suspend mode=interrupt_immediate
         abort
         resume
         claim
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
            suspend mode=interrupt_immediate
              suspend_requested #1 interrupt_immediate
              = quiescing requested client open
            abort
              step_aborted
              suspended #1
              = suspended client open
            resume
              resumed #1 explicit_resume to Ready
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
        "#]],
    );
}

#[test]
fn a_model_that_answers_before_it_is_aborted_has_its_calls_deferred() {
    check(
        "prompt build
         claim
         step
         suspend mode=interrupt_immediate
         calls build",
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
            calls build
              calls_asked
              suspended #1 deferred build
              = suspended client open
        "#]],
    );
}

#[test]
fn wait_for_completion_keeps_the_outcome_until_the_resume() {
    check(
        "prompt build
         claim
         step
         suspend mode=wait_for_completion
         finish
         step
         finish end=completed
         resume
         prompt next",
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
            finish
              step_finished
              = quiescing client open
            step
              step_started
              = quiescing client open
            finish end=completed
              step_finished
              suspended #1 keeping completed
              = suspended client open
            resume
              resumed #1 explicit_resume to Outcome
              run_ended completed
              = idle completed
            prompt next
              run_started
              = ready
        "#]],
    );
}

#[test]
fn a_kept_outcome_with_input_ends_the_run_and_starts_the_next() {
    check(
        "prompt build
         claim
         step
         suspend
         finish end=failed
         resume input=next",
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
            finish end=failed
              step_finished
              suspended #1 keeping failed
              = suspended client open
            resume input=next
              resumed #1 explicit_resume to Outcome with input
              run_ended failed
              run_started
              = ready
        "#]],
    );
}

#[test]
fn between_two_steps_it_commits_at_once() {
    check(
        "prompt build
         claim
         step
         finish
         suspend
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
            suspend
              suspend_requested #1 finish_step
              suspended #1
              = suspended client open
            step
              ! NOT_OWNER: the claim of epoch 1 is over: the session is suspended in epoch 1
        "#]],
    );
}

#[test]
fn a_second_suspend_joins_and_the_stronger_mode_wins() {
    check(
        "prompt build
         claim
         step
         suspend reason=first mode=wait_for_completion
         suspend reason=second
         suspend mode=wait_for_completion
         finish
         suspend
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
            suspend reason=first mode=wait_for_completion
              suspend_requested #1 wait_for_completion
              = quiescing requested client open
            suspend reason=second
              suspend_joined #1 finish_step
              = quiescing requested client open
            suspend mode=wait_for_completion
              suspend_joined #1 finish_step
              = quiescing requested client open
            finish
              step_finished
              suspended #1
              = suspended client open
            suspend
              suspend_joined #1 finish_step
              = suspended client open
            resume handle=1
              resumed #1 explicit_resume to Ready
              = ready
        "#]],
    );
}

#[test]
fn other_conditions_are_refused() {
    check(
        "suspend on=ci.passed
         suspend on=ci.passed
         suspend
         suspend on=ci.failed
         suspend timeout=5m",
        expect![[r#"
            suspend on=ci.passed
              suspended #1
              = suspended client open
            suspend on=ci.passed
              suspend_joined #1 finish_step
              = suspended client open
            suspend
              suspend_joined #1 finish_step
              = suspended client open
            suspend on=ci.failed
              ! CONDITIONS_DIFFER: suspension #1 has other conditions
            suspend timeout=5m
              ! CONDITIONS_DIFFER: suspension #1 has other conditions
        "#]],
    );
    check(
        "suspend
         suspend on=ci.passed",
        expect![[r#"
            suspend
              suspended #1
              = suspended client open
            suspend on=ci.passed
              ! CONDITIONS_DIFFER: suspension #1 has other conditions
        "#]],
    );
}

#[test]
fn it_is_withdrawn_when_every_requester_withdrew() {
    check(
        "prompt build
         claim
         step
         suspend request=1
         suspend request=2
         withdraw request=3
         withdraw request=1
         withdraw request=1
         withdraw request=2
         calls build
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
            suspend request=1
              suspend_requested #1 finish_step
              = quiescing requested client open
            suspend request=2
              suspend_joined #1 finish_step
              = quiescing requested client open
            withdraw request=3
              ! NOTHING_TO_WITHDRAW: there is no pending suspend of that caller to withdraw
            withdraw request=1
              requester_left #1
              = quiescing requested client open
            withdraw request=1
              ! NOTHING_TO_WITHDRAW: there is no pending suspend of that caller to withdraw
            withdraw request=2
              suspend_withdrawn #1
              = running
            calls build
              calls_asked
              = running
            resume handle=1
              ! WITHDRAWN: suspension #1 was withdrawn at 2026-11-16T09:00:00.000Z by cli:ann
        "#]],
    );
}

#[test]
fn it_is_withdrawn_by_a_resume_without_input() {
    check(
        "prompt build
         claim
         step
         suspend
         resume input=x
         resume handle=7
         resume by=self
         resume
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
            suspend
              suspend_requested #1 finish_step
              = quiescing requested client open
            resume input=x
              ! TASK_BUSY: the session is busy (about to stop)
            resume handle=7
              ! SUSPENSION_HANDLE_MISMATCH: handle suspend-03000000-0000-7000-8000-0000000f3e5f does not name the suspension of this session
            resume by=self
              ! NOT_PERMITTED: a paused agent cannot lift its own pause
            resume
              suspend_withdrawn #1
              = running
            finish
              step_finished
              = running
        "#]],
    );
}

#[test]
fn a_caller_without_a_name_cannot_withdraw() {
    check(
        "prompt build
         claim
         step
         suspend request=1
         suspend
         withdraw request=1
         finish
         withdraw request=1",
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
            suspend request=1
              suspend_requested #1 finish_step
              = quiescing requested client open
            suspend
              suspend_joined #1 finish_step
              = quiescing requested client open
            withdraw request=1
              requester_left #1
              = quiescing requested client open
            finish
              step_finished
              suspended #1
              = suspended client open
            withdraw request=1
              ! NOTHING_TO_WITHDRAW: there is no pending suspend of that caller to withdraw
        "#]],
    );
}

#[test]
fn a_hung_call_is_named_and_a_grace_ends_it() {
    check(
        "prompt build
         claim
         step
         calls build lint
         dispatch build lint
         return lint
         suspend grace=10s
         t=10s abandon
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
            calls build lint
              calls_asked
              = running
            dispatch build lint
              calls_dispatched build,lint
              = running (build,lint in flight)
            return lint
              calls_returned lint
              = running (build in flight)
            suspend grace=10s
              suspend_requested #1 finish_step
              = quiescing requested client open (build in flight)
            t=10s abandon
              calls_abandoned unknown build
              suspended #1 unknown build
              = suspended client open
            resume
              resumed #1 explicit_resume to Ready
              = ready
        "#]],
    );
}

#[test]
fn without_a_grace_a_call_may_take_for_ever() {
    check(
        "prompt build
         claim
         step
         calls build
         dispatch build
         suspend
         t=365d abandon",
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
            suspend
              suspend_requested #1 finish_step
              = quiescing requested client open (build in flight)
            t=365d abandon
              ! OUT_OF_STEP: out of step: nothing limits the calls in flight
        "#]],
    );
}

#[test]
fn an_open_permission_request_is_deferred() {
    check(
        "prompt build
         claim
         step
         calls build deploy
         dispatch build
         suspend
         return build
         finish
         resume
         claim
         dispatch deploy
         return deploy declined
         return deploy
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
            calls build deploy
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            suspend
              suspend_requested #1 finish_step
              = quiescing requested client open (build in flight)
            return build
              calls_returned build
              = quiescing client open
            finish
              step_finished
              suspended #1 deferred deploy
              = suspended client open
            resume
              resumed #1 explicit_resume to Ready dispatch deploy
              = ready
            claim
              claimed epoch 2
              = running
            dispatch deploy
              calls_dispatched deploy
              = running (deploy in flight)
            return deploy declined
              ! OUT_OF_STEP: out of step: call deploy cannot return so
            return deploy
              calls_returned deploy
              = running
            finish end=completed
              step_finished
              run_ended completed
              = idle completed
        "#]],
    );
}

#[test]
fn a_budget_pause_must_be_answered_with_a_budget() {
    check(
        "prompt build
         claim
         step
         suspend limit=budget_exceeded reason=budget
         finish used=100
         resume
         resume tokens=0
         resume tokens=10",
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
            suspend limit=budget_exceeded reason=budget
              suspend_requested #1 finish_step
              = quiescing requested client open
            finish used=100
              step_finished
              suspended #1
              = suspended client open
            resume
              ! BUDGET_NOT_RAISED: the budget is used up; resume with more of it
            resume tokens=0
              ! BUDGET_NOT_RAISED: the budget is used up; resume with more of it
            resume tokens=10
              resumed #1 explicit_resume to Ready
              = ready
        "#]],
    );
}

#[test]
fn waiting_for_completion_waits_for_a_permission_too() {
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\ncalls b\nsuspend mode=wait_for_completion");
    assert!(play.try_line("finish").unwrap_err().starts_with("OUT_OF_STEP"));
    play.try_line("return b declined").unwrap();
    play.try_line("finish").unwrap();
}

#[test]
fn a_pause_before_the_first_step_keeps_what_the_turn_was_to_begin_with() {
    use adjourn_core::session::{Cause, Opening};

    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\nawait ci on=ci.passed\nevent ci.passed\nsuspend\nresume");
    let Opening::Wake(report) = &play.world.session.run().unwrap().opening else { panic!() };
    assert_eq!(report.resumption.cause, Cause::ConditionFired);
    assert_eq!(report.arrival.as_ref().unwrap().name, "ci.passed");

    // One that brings something of its own is told together with the one before.
    play.run("suspend\nresume input=hurry");
    let Opening::Wake(report) = &play.world.session.run().unwrap().opening else { panic!() };
    assert!(report.input.is_some());
    assert_eq!(report.earlier.as_ref().unwrap().arrival.as_ref().unwrap().name, "ci.passed");
    assert!(report.text(&[]).contains("ci.passed"), "{}", report.text(&[]));

    // However many of these come, none of the last ones is lost; nor is what any of them added.
    for nth in 1..=9 {
        play.run(&format!("suspend\nresume input=more-{nth} tokens=1"));
        let Opening::Wake(report) = &play.world.session.run().unwrap().opening else { panic!() };
        let all: Vec<_> = report.newest_first().collect();
        assert_eq!(all.len(), (nth + 2).min(limits::UNTOLD_WAKES));
        let words = all.iter().map(|report| report.input.as_ref().map(|input| &*input.excerpt));
        let said = (1..=nth).rev().map(|nth| Some(format!("more-{nth}")));
        let said = said.chain([Some("hurry".to_owned()), None]);
        assert!(words.eq(said.take(all.len()).collect::<Vec<_>>().iter().map(Option::as_deref)));
        assert_eq!(play.world.session.added.tokens, nth as u64);
        assert_eq!(report.text(&[]).contains("ci.passed"), nth + 2 <= limits::UNTOLD_WAKES);
    }

    // What a resume asked for before is not forgotten: the turn still begins with a digest.
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\nask which\nresume handle=1 input=yes fresh\nsuspend\nresume");
    let woke = play.world.session.woke.as_ref().unwrap();
    assert!(!woke.continue_transcript);
    assert!(play.world.session.digest().contains("asked: which"));
}

#[test]
fn whoever_wants_it_soonest_sets_the_grace() {
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\ncalls a\ndispatch a\nsuspend grace=60s\nsuspend grace=10s");
    play.run("suspend grace=90s\nsuspend");
    let at = play.world.session.abandon_at().unwrap();
    assert_eq!(at.since(play.world.now), std::time::Duration::from_secs(10));
}

#[test]
fn a_budget_that_was_raised_with_a_lift_or_a_withdrawal_counts() {
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\nawait quota limit=budget_exceeded\nsuspend");
    play.run("resume tokens=5");
    play.try_line("resume").unwrap();

    let mut play = Play::on(crate::world::World::founded(adjourn_core::Founding {
        budget: adjourn_core::carry::Budget { tokens: Some(5), ..Default::default() },
        ..crate::world::founding()
    }));
    play.run("prompt go\nclaim\nstep\nsuspend\nresume tokens=7");
    assert_eq!(play.world.session.budget.tokens, Some(12));
    assert!(play.try_line("suspend").is_ok());
    assert!(play.try_line("resume fresh").unwrap_err().starts_with("TASK_BUSY"));
}
