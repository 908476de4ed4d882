//! `prompt`: starts a run, or answers what the session waits for.

use expect_test::expect;

use crate::script::check;

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
              ! DUPLICATE_MESSAGE: message "m1" was taken before
        "#]],
    );
}

#[test]
fn a_message_wakes_the_agents_waits_and_pauses_of_its_own_face() {
    check(
        "prompt build
         claim
         step
         await ci
         prompt go by=acp
         claim
         suspend by=acp
         prompt go
         prompt go by=a2a
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
            suspend by=acp
              suspend_requested #2 finish_step
              suspended #2
              = suspended client open
            prompt go
              ! TASK_PAUSED: the session was paused by acp:zed; resume it with its handle
            prompt go by=a2a
              ! TASK_PAUSED: the session was paused by acp:zed; resume it with its handle
            prompt go by=acp
              resumed #2 explicit_resume to Ready with input
              = ready
        "#]],
    );
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
              ! TASK_PAUSED: the session was paused by agent; resume it with its handle
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
