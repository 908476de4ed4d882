//! `await_resumption` and `ask`: the agent parks itself.

use expect_test::expect;

use crate::script::{Play, check};

#[test]
fn an_await_waits_for_the_calls_in_flight_and_starts_no_more() {
    check(
        "prompt build
         claim
         step
         calls build lint wait
         dispatch build
         await ci call=wait
         dispatch lint
         resume
         return build
         resume
         claim
         step
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
            calls build lint wait
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            await ci call=wait
              step_finished
              park_requested #1
              = quiescing requested agent open (build in flight)
            dispatch lint
              ! STOPPING: nothing new may start: the session is about to stop
            resume
              ! TASK_BUSY: the session is busy (about to stop)
            return build
              calls_returned build
              suspended #1 not_run lint
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
            finish end=completed
              step_finished
              run_ended completed
              = idle completed
        "#]],
    );
}

#[test]
fn a_question_is_answered_once_by_somebody_who_means_it() {
    check(
        "prompt build
         claim
         step
         ask which choices=raw,monthly
         suspend
         resume
         resume input=raw
         resume handle=1
         resume handle=1 input=\" \"
         wake
         resume handle=1 input=raw
         resume handle=1 input=monthly",
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
            ask which choices=raw,monthly
              step_finished
              park_requested #1
              suspended #1
              = suspended agent question
            suspend
              ! TASK_NOT_PAUSABLE: a session that is waiting for an answer cannot be suspended
            resume
              ! EMPTY_REPLY: a question is answered with a text that is not blank
            resume input=raw
              ! HANDLE_REQUIRED: a question is answered with its handle, an idempotency key, or a message id not seen before
            resume handle=1
              ! EMPTY_REPLY: a question is answered with a text that is not blank
            resume handle=1 input=" "
              ! EMPTY_REPLY: a question is answered with a text that is not blank
            wake
              ! EMPTY_REPLY: a question is answered with a text that is not blank
            resume handle=1 input=raw
              resumed #1 explicit_resume to Ready with input
              = ready
            resume handle=1 input=monthly
              ! ALREADY_RESUMED: suspension #1 was resumed at 2026-11-16T09:00:00.000Z (explicit_resume) by cli:ann
        "#]],
    );
}

#[test]
fn a_question_for_more_of_a_budget_is_answered_with_it_and_no_other_question_is() {
    check(
        "prompt build
         claim
         step
         ask more kind=budget_exceeded
         resume
         resume input=yes handle=1
         resume key=k steps=5
         resume tokens=5 input=\" \"
         resume tokens=5
         resume tokens=5 input=yes
         resume key=k tokens=5
         claim
         step
         ask which
         resume key=k tokens=5
         resume key=l tokens=5
         resume tokens=5
         resume tokens=5 input=yes
         resume handle=2 input=raw
         claim
         step
         ask more kind=budget_exceeded
         suspend
         resume handle=3 tokens=5 input=yes",
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
            ask more kind=budget_exceeded
              step_finished
              park_requested #1
              suspended #1
              = suspended agent question
            resume
              ! EMPTY_REPLY: a question is answered with a text that is not blank
            resume input=yes handle=1
              ! BUDGET_NOT_RAISED: the budget is used up; resume with more of it
            resume key=k steps=5
              ! BUDGET_NOT_RAISED: the budget is used up; resume with more of it
            resume tokens=5 input=" "
              ! EMPTY_REPLY: a question is answered with a text that is not blank
            resume tokens=5
              ! HANDLE_REQUIRED: a question is answered with its handle, an idempotency key, or a message id not seen before
            resume tokens=5 input=yes
              ! HANDLE_REQUIRED: a question is answered with its handle, an idempotency key, or a message id not seen before
            resume key=k tokens=5
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
            resume key=k tokens=5
              = suspended agent question
            resume key=l tokens=5
              ! EMPTY_REPLY: a question is answered with a text that is not blank
            resume tokens=5
              ! EMPTY_REPLY: a question is answered with a text that is not blank
            resume tokens=5 input=yes
              ! HANDLE_REQUIRED: a question is answered with its handle, an idempotency key, or a message id not seen before
            resume handle=2 input=raw
              resumed #2 explicit_resume to Ready with input
              = ready
            claim
              claimed epoch 3
              = running
            step
              step_started
              = running
            ask more kind=budget_exceeded
              step_finished
              park_requested #3
              suspended #3
              = suspended agent question
            suspend
              ! TASK_NOT_PAUSABLE: a session that is waiting for an answer cannot be suspended
            resume handle=3 tokens=5 input=yes
              resumed #3 explicit_resume to Ready with input
              = ready
        "#]],
    );
}

#[test]
fn a_retry_cannot_answer_the_next_question() {
    check(
        "prompt build
         claim
         step
         ask first
         resume input=yes key=k1
         claim
         step
         ask second
         resume input=yes key=k1
         resume input=no key=k1
         resume input=no handle=1",
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
            ask first
              step_finished
              park_requested #1
              suspended #1
              = suspended agent question
            resume input=yes key=k1
              resumed #1 explicit_resume to Ready with input
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            ask second
              step_finished
              park_requested #2
              suspended #2
              = suspended agent question
            resume input=yes key=k1
              = suspended agent question
            resume input=no key=k1
              ! IDEMPOTENCY_KEY_REUSED: idempotency key "k1" was used for something else
            resume input=no handle=1
              ! ALREADY_RESUMED: suspension #1 was resumed at 2026-11-16T09:00:00.000Z (explicit_resume) by cli:ann
        "#]],
    );
    check(
        "prompt build
         claim
         step
         ask first
         prompt yes message=m1
         claim
         step
         ask second
         prompt yes message=m1
         prompt yes
         prompt yes handle=1
         prompt yes handle=2",
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
            ask first
              step_finished
              park_requested #1
              suspended #1
              = suspended agent question
            prompt yes message=m1
              resumed #1 explicit_resume to Ready with input
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            ask second
              step_finished
              park_requested #2
              suspended #2
              = suspended agent question
            prompt yes message=m1
              ! DUPLICATE_MESSAGE: message "m1" was taken before, by session sess-01000000-0000-7000-8000-000000000001
            prompt yes
              ! HANDLE_REQUIRED: a question is answered with its handle, an idempotency key, or a message id not seen before
            prompt yes handle=1
              ! ALREADY_RESUMED: suspension #1 was resumed at 2026-11-16T09:00:00.000Z (explicit_resume) by cli:ann
            prompt yes handle=2
              resumed #2 explicit_resume to Ready with input
              = ready
        "#]],
    );
}

#[test]
fn an_await_gives_a_reason() {
    check(
        "prompt build
         claim
         step
         await \" \"
         await ci
         await ci",
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
            await " "
              ! INVALID: reason: must not be empty
            await ci
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            await ci
              ! NOT_OWNER: the claim of epoch 1 is over: the session is suspended in epoch 1
        "#]],
    );
}

#[test]
fn two_parks_of_one_step_are_one_too_many() {
    check(
        "prompt build
         claim
         step
         calls build
         dispatch build
         await ci
         ask which
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
            await ci
              step_finished
              park_requested #1
              = quiescing requested agent open (build in flight)
            ask which
              ! STOPPING: nothing new may start: the session is about to stop
            return build
              calls_returned build
              suspended #1
              = suspended agent open
        "#]],
    );
}

#[test]
fn an_agent_that_a_limit_stops_parks_between_two_steps() {
    let budget = adjourn_core::carry::Budget { tokens: Some(5), ..Default::default() };
    let world =
        crate::world::World::founded(adjourn_core::Founding { budget, ..crate::world::founding() });
    let mut play = Play::on(world);
    play.run("prompt go\nclaim\nstep\nfinish used=9");
    assert!(play.try_line("step").unwrap_err().starts_with("LIMIT_REACHED"));
    play.try_line("await quota limit=budget_exceeded bare").unwrap();
    assert!(play.try_line("resume").unwrap_err().starts_with("BUDGET_NOT_RAISED"));
    assert!(play.try_line("resume tokens=2").unwrap_err().starts_with("BUDGET_NOT_RAISED"));
    play.run("resume tokens=10\nclaim");
    play.try_line("step").unwrap();
}
