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
              ! IDEMPOTENCY_KEY_REUSED: idempotency key "k1" was used for something else
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
    for how in ["resume input=x", "resume fresh", "event ci.passed", "t=1h expire"] {
        let mut play = Play::new();
        play.run(
            "prompt build
             claim
             step
             calls build
             suspend mode=interrupt_immediate on=ci.passed timeout=1h",
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

#[test]
fn what_is_fed_to_a_session_without_a_run_starts_one_that_knows_it_was_woken() {
    use adjourn_core::session::Opening;

    for script in [
        "suspend timeout=1m/resume_with_input\nt=1m expire",
        "suspend\nresume input=next fresh",
        "prompt build\nclaim\nstep\nsuspend\nfinish end=completed\nresume input=next fresh",
    ] {
        let mut play = Play::new();
        play.run(script);
        let run = play.world.session.run().expect("a run has started");
        let Opening::Wake(report) = &run.opening else { panic!("{:?}", run.opening) };
        assert!(report.resumption.had_resume_input, "{script}");
        assert_eq!(report.resumption.continue_transcript, script.contains("timeout"), "{script}");
        assert!(report.input.is_some() || report.value.is_some(), "{script}");
    }
}

#[test]
fn a_lift_passes_on_what_it_says_about_the_transcript() {
    let mut play = Play::new();
    play.run("prompt build\nclaim\nstep\nawait ci on=ci.passed\nsuspend\nevent ci.passed");
    let trace = play.run("resume fresh");
    assert!(trace.contains("resumed #1 condition_fired to Ready fresh"), "{trace}");

    // Without anything fired no turn follows that could see a digest.
    let mut play = Play::new();
    play.run("prompt build\nclaim\nstep\nawait ci on=ci.passed\nsuspend\nresume fresh");
    play.run("event ci.passed");
    let woke = play.world.session.woke.as_ref().unwrap();
    assert!(woke.continue_transcript);
}

#[test]
fn what_woke_a_run_is_not_shown_of_the_next() {
    let cause = |play: &Play| play.world.session.status().woke.map(|woke| woke.cause.as_str());
    let mut play = Play::new();
    play.run("prompt build\nclaim\nstep\nawait ci on=ci.passed\nevent ci.passed");
    assert_eq!(cause(&play), Some("condition_fired"));
    play.run("claim\nstep\nfinish end=completed");
    assert_eq!(cause(&play), Some("condition_fired"), "it is the last run still");
    play.run("prompt next");
    assert_eq!(cause(&play), None);
    // A wake that began a run belongs to it.
    play.run("claim\nstep\nfinish end=completed\nsuspend\nresume input=more");
    assert_eq!(cause(&play), Some("explicit_resume"));
}
