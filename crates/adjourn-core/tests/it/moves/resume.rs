//! `resume`: exactly one succeeds.

use expect_test::expect;

use crate::script::{Play, check};

#[test]
fn exactly_one_resume_succeeds() {
    check(
        "prompt build
         suspend
         resume handle=1
         resume handle=1
         resume
         resume handle=9",
        expect![[r#"
            prompt build
              run_started
              = ready
            suspend
              suspended #1
              = suspended client open
            resume handle=1
              resumed #1 explicit_resume to Ready
              = ready
            resume handle=1
              ! ALREADY_RESUMED: suspension #1 was resumed at 2026-11-16T09:00:00.000Z (explicit_resume) by cli:ann
            resume
              ! TASK_NOT_PAUSED: the session is ready, not suspended
            resume handle=9
              ! SUSPENSION_HANDLE_MISMATCH: handle suspend-03000000-0000-7000-8000-0000000f3e61 does not name the suspension of this session
        "#]],
    );
}

#[test]
fn the_same_key_gets_the_first_answer() {
    check(
        "prompt build
         suspend
         resume key=k1
         resume key=k1
         resume key=k1 fresh
         suspend
         resume key=k1
         resume key=k2",
        expect![[r#"
            prompt build
              run_started
              = ready
            suspend
              suspended #1
              = suspended client open
            resume key=k1
              resumed #1 explicit_resume to Ready
              = ready
            resume key=k1
              = ready
            resume key=k1 fresh
              ! IDEMPOTENCY_KEY_REUSED: idempotency key "k1" was used with another body
            suspend
              suspended #2
              = suspended client open
            resume key=k1
              = suspended client open
            resume key=k2
              resumed #2 explicit_resume to Ready
              = ready
        "#]],
    );
}

#[test]
fn deferred_calls_run_only_after_a_plain_resume() {
    for how in ["resume input=x", "resume fresh", "wake", "event ping addressed"] {
        let mut play = Play::new();
        play.run(
            "prompt build
             claim
             step
             calls build
             suspend mode=interrupt_immediate",
        );
        let trace = play.run(how);
        assert!(trace.contains("not_run build"), "{trace}");
    }
}

#[test]
fn an_agent_cannot_lift_its_own_pause() {
    check(
        "prompt build
         suspend
         resume by=self",
        expect![[r#"
            prompt build
              run_started
              = ready
            suspend
              suspended #1
              = suspended client open
            resume by=self
              ! NOT_PERMITTED: a paused agent cannot lift its own pause
        "#]],
    );
}
