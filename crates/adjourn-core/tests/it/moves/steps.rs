//! What the owner commits while it drives.

use expect_test::expect;

use crate::script::{Play, check};
use crate::world::World;

#[test]
fn commands_out_of_step_are_refused() {
    check(
        "prompt build
         step
         claim
         claim
         finish
         calls build
         await ci
         step
         step
         abandon
         dispatch build
         calls build build
         calls build
         calls lint
         abort
         dispatch build build
         return build
         dispatch build
         dispatch build
         finish
         done
         return build declined
         return build
         return build
         finish end=canceled
         finish
         done
         done",
        expect![[r#"
            prompt build
              run_started
              = ready
            step
              ! NOT_OWNER: the claim of epoch 0 is over: the session is ready in epoch 0
            claim
              claimed epoch 1
              = running
            claim
              ! NOT_READY: the session is running, not ready
            finish
              ! OUT_OF_STEP: out of step: no step is under way
            calls build
              ! OUT_OF_STEP: out of step: no step is under way
            await ci
              ! OUT_OF_STEP: out of step: no step is under way that could leave something behind
            step
              step_started
              = running
            step
              ! OUT_OF_STEP: out of step: a step is under way
            abandon
              ! OUT_OF_STEP: out of step: nothing limits the calls in flight
            dispatch build
              ! OUT_OF_STEP: out of step: call build does not wait to be dispatched
            calls build build
              ! INVALID: calls[1].id: another open call has this id
            calls build
              calls_asked
              = running
            calls lint
              ! OUT_OF_STEP: out of step: the model has spoken already
            abort
              ! OUT_OF_STEP: out of step: the model has spoken already
            dispatch build build
              ! OUT_OF_STEP: out of step: call build does not wait to be dispatched
            return build
              ! OUT_OF_STEP: out of step: call build cannot return so
            dispatch build
              calls_dispatched build
              = running (build in flight)
            dispatch build
              ! OUT_OF_STEP: out of step: call build does not wait to be dispatched
            finish
              ! OUT_OF_STEP: out of step: calls are in flight
            done
              ! OUT_OF_STEP: out of step: a step is under way
            return build declined
              ! OUT_OF_STEP: out of step: call build cannot return so
            return build
              calls_returned build
              = running
            return build
              ! OUT_OF_STEP: out of step: call build cannot return so
            finish end=canceled
              ! INVALID: outcome: a run is canceled by a cancel
            finish
              step_finished
              = running
            done
              run_ended completed
              = idle completed
            done
              ! NOT_OWNER: the claim of epoch 1 is over: the session is idle in epoch 1
        "#]],
    );
}

#[test]
fn limits_stop_the_next_step_and_only_their_own_counter_starts_again() {
    use crate::world::{World, founding};
    use adjourn_core::carry::Budget;

    let budget = Budget { iterations: Some(2), active_ms: Some(50), ..Budget::default() };
    let world = World::founded(adjourn_core::Founding { budget, ..founding() });
    let trace = Play::on(world).run(
        "prompt build
         claim
         step
         finish used=5 repeat=4 failure=loop_detected lesson=\"look twice\"
         step
         ask \"go on?\" kind=iteration_limit used=5
         resume handle=1 input=yes
         claim
         step
         finish used=45
         step",
    );
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
        finish used=5 repeat=4 failure=loop_detected lesson="look twice"
          step_finished
          = running
        step
          step_started
          = running
        ask "go on?" kind=iteration_limit used=5
          step_finished
          park_requested #1
          suspended #1
          = suspended agent question
        resume handle=1 input=yes
          resumed #1 explicit_resume to Ready with input
          = ready
        claim
          claimed epoch 2
          = running
        step
          step_started
          = running
        finish used=45
          step_finished
          = running
        step
          ! LIMIT_REACHED: the next step is stopped by time_limit
    "#]]
    .assert_eq(&trace);
}

#[test]
fn a_resume_adds_steps_to_those_that_a_run_may_have() {
    use crate::world::{World, founding};
    use adjourn_core::carry::Budget;

    let limited = |iterations| {
        let budget = Budget { iterations, tokens: Some(1_000_000), ..Budget::default() };
        Play::on(World::founded(adjourn_core::Founding { budget, ..founding() }))
    };
    let stopped = "! LIMIT_REACHED: the next step is stopped by iteration_limit";
    let one = "claim\nstep\nfinish\nstep";
    // Before the limit is met, what is added comes on top of what is left.
    let mut play = limited(Some(1));
    play.run("prompt build");
    assert!(play.run(one).contains(stopped));
    play.run("suspend mode=interrupt_immediate\nresume steps=1");
    assert_eq!(play.world.session.budget.iterations, Some(2));
    assert!(play.run(one).contains(stopped));
    // After it, the steps are counted anew, within the larger limit.
    play.run("suspend mode=interrupt_immediate limit=iteration_limit\nresume steps=1");
    assert_eq!(play.world.session.budget.iterations, Some(3));
    let steps = play.run("claim\nstep\nfinish\nstep\nfinish\nstep\nfinish\nstep");
    assert_eq!(steps.matches("LIMIT_REACHED").count(), 1, "{steps}");
    assert!(steps.ends_with(&format!("{stopped}\n")), "{steps}");
    // What has no limit gets none.
    let mut play = limited(None);
    play.run("suspend\nresume steps=1");
    assert_eq!(play.world.session.budget.iterations, None);
    // Steps are no money.
    let mut play = limited(Some(1));
    play.run("prompt build\nclaim\nstep\nsuspend limit=budget_exceeded\nfinish");
    assert!(play.run("resume steps=5").contains("! BUDGET_NOT_RAISED"));
    assert!(!play.run("resume steps=5 tokens=1").contains("  ! "));
}

#[test]
fn a_step_that_is_broken_off_after_the_model_spoke_is_counted() {
    let mut play = Play::new();
    play.run(
        "prompt build
         claim
         step
         calls a used=5 place=1
         dispatch a
         suspend mode=interrupt_immediate
         return a
         resume
         claim
         step
         calls b used=5 place=2
         dispatch b
         died",
    );
    let session = &play.world.session;
    let progress = &session.run().unwrap().progress;
    assert_eq!((progress.iterations, progress.active_ms), (2, 10));
    assert_eq!(session.totals.prompt_tokens, 10);
    assert_eq!(session.driver_state.as_deref(), Some("2"));
}

#[test]
fn what_calls_tell_while_they_run_is_durable_until_the_last_of_them_returned() {
    check(
        "prompt build
         take
         calls build lint
         progress
         dispatch build
         progress
         progress asks=own
         suspend
         progress
         return build
         progress",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            calls build lint
              calls_asked
              = running
            progress
              ! OUT_OF_STEP: out of step: the model has spoken already
            dispatch build
              calls_dispatched build
              = running (build in flight)
            progress
              progressed
              = running (build in flight)
            progress asks=own
              ! OUT_OF_STEP: out of step: the model has spoken already
            suspend
              suspend_requested #1 finish_step
              = quiescing requested client open (build in flight)
            progress
              progressed
              = quiescing requested client open (build in flight)
            return build
              calls_returned build
              = quiescing client open
            progress
              ! OUT_OF_STEP: out of step: the model has spoken already
        "#]],
    );
}

/// Where something was shown is known as long as it holds, and never names what was not said.
#[test]
fn the_state_knows_where_the_transcript_has_what_was_shown_last() {
    for (shows, then) in [
        ("calls read plan=1", ""),
        ("abort plan=1", ""),
        ("finish plan=1", ""),
        ("await ci plan=1", ""),
        ("progress plan=1", "finish"),
        ("progress plan=1", "died"),
        ("progress plan=1", "finish end=completed\nprompt more"),
    ] {
        let mut play = Play::new();
        play.run(&format!("prompt go\ntake\n{shows}\n{then}"));
        assert_eq!(play.world.session.shown_at.plan, Some(1), "{shows}, {then}");
    }
    let mut play = Play::on(World::with_modes());
    play.run("prompt go\ntake\nprogress plan=1 mode_shown=1\nprogress plan=2");
    assert_eq!(play.world.session.shown_at.plan, Some(2));
    assert_eq!(play.world.session.shown_at.mode, Some(1));
    play.run("set mode ask");
    assert_eq!(play.world.session.shown_at.mode, None, "a client has chosen another one");
    assert_eq!(play.world.session.shown_at.plan, Some(2));
    let before = play.world.session.clone();
    for elsewhere in ["progress plan=2", "progress plan=4", "finish plan=0", "abort plan=9"] {
        let refused = play.try_line(elsewhere).unwrap_err();
        assert!(refused.contains("notes.shownAt"), "{elsewhere}: {refused}");
        assert_eq!(play.world.session, before);
    }
}

/// What an agent notes stays, however its step ends, and counts once.
#[test]
fn notes_are_kept_of_a_step_that_goes_on_asks_for_calls_or_is_broken_off() {
    for (move_with_notes, then) in [
        ("calls read", ""),
        ("abort", ""),
        ("finish", ""),
        ("progress", "finish"),
        ("progress", "died"),
        ("progress", "drain"),
    ] {
        let noted = r#"title=Build lesson="look twice" failure=loop words="well then""#;
        let mut play = Play::new();
        play.run(&format!("prompt go\ntake\n{move_with_notes} {noted}\n{then}"));
        let (session, what) = (&play.world.session, format!("{move_with_notes}, {then}"));
        assert_eq!(session.title().as_deref(), Some("Build"), "{what}");
        assert_eq!(session.memory.lessons, ["look twice"], "{what}");
        assert_eq!(session.memory.last_words, "well then", "{what}");
        assert_eq!(session.run().unwrap().progress.failures.get("loop"), 1, "{what}");
    }
}
