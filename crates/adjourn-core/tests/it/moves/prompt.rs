//! `prompt`: starts a run, or answers what the session waits for.

use expect_test::expect;

use crate::script::{Args, Play, check};

#[test]
fn a_prompt_starts_a_run_and_the_run_ends_idle() {
    check(
        "prompt build
         claim
         step
         calls build lint
         dispatch build lint
         return build lint
         finish used=3
         step
         finish end=completed
         prompt again",
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
            return build lint
              calls_returned build,lint
              = running
            finish used=3
              step_finished
              = running
            step
              step_started
              = running
            finish end=completed
              step_finished
              run_ended completed
              = idle completed
            prompt again
              run_started
              = ready
        "#]],
    );
}

#[test]
fn nothing_queues() {
    check(
        "prompt build
         prompt more
         claim
         prompt more
         step
         suspend
         prompt more",
        expect![[r#"
            prompt build
              run_started
              = ready
            prompt more
              ! TASK_BUSY: the session is busy (ready)
            claim
              claimed epoch 1
              = running
            prompt more
              ! TASK_BUSY: the session is busy (running)
            step
              step_started
              = running
            suspend
              suspend_requested #1 finish_step
              = quiescing requested client open
            prompt more
              ! TASK_BUSY: the session is busy (about to stop)
        "#]],
    );
}

#[test]
fn a_message_is_taken_once() {
    check(
        "prompt build message=m1
         claim
         step
         finish end=completed
         prompt build message=m1",
        expect![[r#"
            prompt build message=m1
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            step
              step_started
              = running
            finish end=completed
              step_finished
              run_ended completed
              = idle completed
            prompt build message=m1
              ! DUPLICATE_MESSAGE: message "m1" was taken before, by session sess-01000000-0000-7000-8000-000000000001
        "#]],
    );
}

#[test]
fn over_acp_a_message_also_wakes_pauses_made_over_acp() {
    check(
        "prompt build
         claim
         step
         await ci
         prompt go by=acp
         claim
         suspend by=acp reason=lunch
         prompt go
         prompt go by=a2a
         prompt go by=acp
         suspend reason=lunch
         prompt go by=acp",
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
            prompt go by=acp
              resumed #1 explicit_resume to Ready with input
              = ready
            claim
              claimed epoch 2
              = running
            suspend by=acp reason=lunch
              suspend_requested #2 finish_step
              suspended #2
              = suspended client open
            prompt go
              ! TASK_PAUSED: paused by zed: lunch
            prompt go by=a2a
              ! TASK_PAUSED: paused by zed: lunch
            prompt go by=acp
              resumed #2 explicit_resume to Ready with input
              = ready
            suspend reason=lunch
              suspended #3
              = suspended client open
            prompt go by=acp
              ! TASK_PAUSED: paused by ann: lunch
        "#]],
    );
}

/// A message over ACP speaks for ACP's clients, and for no one else who wants the pause.
#[test]
fn a_pause_made_over_acp_that_someone_else_joined_is_not_woken_by_a_message() {
    check(
        "suspend by=acp reason=review
         suspend by=acp
         suspend reason=lunch
         prompt go by=acp
         prompt go
         resume
         prompt build
         claim
         step
         suspend by=acp request=1 reason=review
         suspend request=2 reason=lunch
         withdraw request=2
         finish
         prompt go by=acp",
        expect![[r#"
            suspend by=acp reason=review
              suspended #1
              = suspended client open
            suspend by=acp
              suspend_joined #1 finish_step
              = suspended client open
            suspend reason=lunch
              suspend_joined #1 finish_step
              = suspended client open
            prompt go by=acp
              ! TASK_PAUSED: paused by ann: lunch
            prompt go
              ! TASK_PAUSED: paused by zed: review
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
            suspend by=acp request=1 reason=review
              suspend_requested #2 finish_step
              = quiescing requested client open
            suspend request=2 reason=lunch
              suspend_joined #2 finish_step
              = quiescing requested client open
            withdraw request=2
              requester_left #2
              = quiescing requested client open
            finish
              step_finished
              suspended #2
              = suspended client open
            prompt go by=acp
              resumed #2 explicit_resume to Ready with input
              = ready
        "#]],
    );
}

#[test]
fn at_the_command_line_a_message_wakes_the_agents_waits_and_no_pause() {
    check(
        "prompt build
         claim
         step
         await ci
         prompt go
         claim
         suspend reason=lunch
         prompt go
         resume
         claim
         step
         await ci
         suspend
         prompt go",
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
            prompt go
              resumed #1 explicit_resume to Ready with input
              = ready
            claim
              claimed epoch 2
              = running
            suspend reason=lunch
              suspend_requested #2 finish_step
              suspended #2
              = suspended client open
            prompt go
              ! TASK_PAUSED: paused by ann: lunch
            resume
              resumed #2 explicit_resume to Ready
              = ready
            claim
              claimed epoch 3
              = running
            step
              step_started
              = running
            await ci
              step_finished
              park_requested #3
              suspended #3
              = suspended agent open
            suspend
              hold_laid #4
              = suspended client open held
            prompt go
              ! HELD: held by ann
        "#]],
    );
}

/// The same words on every face: who, why, and what to type.
#[test]
fn a_refusal_says_what_to_type() {
    let told = |script: &str| {
        let mut play = Play::new();
        play.run(script);
        let (by, command) = play.command("prompt", &mut Args::parse("go"));
        play.world.give(by, command).unwrap_err()
    };
    let paused = told("suspend reason=lunch");
    assert_eq!(paused.to_string(), "paused by ann: lunch");
    assert_eq!(paused.remedy().unwrap(), "resume it with: adjourn resume 000000000001");
    let whole = "paused by ann: lunch. Resume it with: adjourn resume 000000000001";
    assert_eq!(paused.told(), whole);

    let held = told("prompt go\nclaim\nstep\nawait ci\nsuspend by=acp");
    assert_eq!(held.told(), "held by zed. Lift the hold with: adjourn resume 000000000001");

    let busy = told("prompt go");
    assert_eq!((busy.remedy(), busy.told()), (None, busy.to_string()));
}

#[test]
fn over_a2a_a_message_answers_questions_and_wakes_no_pause() {
    check(
        "prompt build
         claim
         step
         await ci
         prompt go by=a2a
         resume
         claim
         step
         ask which
         prompt that by=a2a message=m1",
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
            prompt go by=a2a
              ! TASK_PAUSED: paused by the agent: ci
            resume
              resumed #1 explicit_resume to Ready
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
            prompt that by=a2a message=m1
              resumed #2 explicit_resume to Ready with input
              = ready
        "#]],
    );
}

#[test]
fn a_driver_can_end_the_session() {
    check(
        "prompt build
         claim
         step
         finish end=completed ends_session
         prompt more
         suspend
         resume
         cancel
         close",
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
            finish end=completed ends_session
              step_finished
              run_ended completed
              session_ended
              = ended completed
            prompt more
              ! ENDED: the session ended at 2026-11-16T09:00:00.000Z
            suspend
              ! ENDED: the session ended at 2026-11-16T09:00:00.000Z
            resume
              ! ENDED: the session ended at 2026-11-16T09:00:00.000Z
            cancel
              ! ENDED: the session ended at 2026-11-16T09:00:00.000Z
            close
              = ended completed
        "#]],
    );
}

/// Each caller of another face is remembered until that caller leaves.
#[test]
fn a_pause_that_two_joined_from_elsewhere_is_still_the_others_when_one_withdraws() {
    check(
        "prompt build
         claim
         step
         suspend by=acp request=1 reason=review
         suspend request=2 reason=lunch
         suspend request=3 reason=audit
         withdraw request=2
         finish
         prompt go by=acp
         withdraw request=3
         prompt go by=acp",
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
            suspend by=acp request=1 reason=review
              suspend_requested #1 finish_step
              = quiescing requested client open
            suspend request=2 reason=lunch
              suspend_joined #1 finish_step
              = quiescing requested client open
            suspend request=3 reason=audit
              suspend_joined #1 finish_step
              = quiescing requested client open
            withdraw request=2
              requester_left #1
              = quiescing requested client open
            finish
              step_finished
              suspended #1
              = suspended client open
            prompt go by=acp
              ! TASK_PAUSED: paused by ann
            withdraw request=3
              ! NOTHING_TO_WITHDRAW: there is no pending suspend of that caller to withdraw
            prompt go by=acp
              ! TASK_PAUSED: paused by ann
        "#]],
    );
}
