//! Six defects that were found in a predecessor, each shown to be impossible here.

use adjourn_core::session::{Prior, State};

use crate::script::Play;

fn play(script: &str) -> Play {
    let mut play = Play::new();
    play.run(script);
    play
}

/// There, a run that finished right after a suspend was acknowledged lost the suspend.
#[test]
fn an_accepted_suspend_is_not_lost_when_the_run_finishes_first() {
    for mode in ["finish_step", "interrupt_immediate", "wait_for_completion"] {
        let mut play =
            play(&format!("prompt go\nclaim\nstep\nsuspend mode={mode}\nfinish end=completed"));
        let suspended = play.world.session.suspended().expect("the suspension took effect");
        assert!(matches!(suspended.prior, Prior::Kept(_)), "and the outcome is kept");
        play.try_line("resume").unwrap();
        assert_eq!(play.world.session.last_run.as_ref().unwrap().outcome.as_str(), "completed");
    }
}

/// There, a resume with bad input left the worker neither suspended nor running.
#[test]
fn a_refused_resume_leaves_the_suspension_as_it_was() {
    let mut play = play("prompt go\nclaim\nstep\nask which");
    let before = play.world.session.clone();
    for refused in [
        "resume",
        "resume handle=1 input=\" \"",
        "resume input=yes",
        "resume handle=9 input=yes",
        "resume handle=1 input=yes by=self",
        "prompt yes",
    ] {
        play.try_line(refused).unwrap_err();
        assert_eq!(play.world.session, before, "{refused} changed something");
    }
    play.try_line("resume handle=1 input=yes").unwrap();
}

/// There, conditions that could not be registered left the worker half suspended.
#[test]
fn conditions_are_refused_before_anything_is_suspended() {
    use adjourn_core::conditions::{Conditions, Spelling};

    let wrong = serde_json::json!({ "trigger": { "provider": "ci" } });
    let error = Conditions::parse(&wrong, Spelling::Camel).unwrap_err();
    assert_eq!(error.path, "trigger.kind");
    // A command can only be made from conditions that were parsed: there is no later step that
    // could fail, because what wakes a session is read off its state.
    let mut play = play("prompt go\nclaim\nstep");
    play.try_line("suspend on=ci.passed timeout=5m").unwrap();
    play.try_line("finish").unwrap();
    assert_eq!(play.world.session.subscriptions().len(), 1);
    assert!(play.world.session.due().is_some());
}

/// There, a stage that was suspended reported that it had completed.
#[test]
fn a_suspended_run_is_never_reported_as_completed() {
    let play = play("prompt go\nclaim\nstep\nawait ci");
    let status = serde_json::to_value(play.world.session.status()).unwrap();
    assert_eq!(status["state"], "suspended");
    assert_eq!(status.get("outcome"), None);
    assert!(play.world.session.last_run.is_none());
}

/// There, resuming a closed or failed worker from its snapshot succeeded in silence.
#[test]
fn what_is_over_cannot_be_resumed_from_any_copy_of_its_state() {
    let mut closed = play("prompt go\nclaim\nstep\nawait ci\nclose");
    let (whole, short) = closed.world.refold();
    assert_eq!(whole, closed.world.session);
    assert_eq!(short, closed.world.session, "the carried state and what followed it agree");
    assert!(matches!(short.state, State::Ended(_)));
    assert!(closed.try_line("resume handle=1").unwrap_err().starts_with("ENDED"));

    let mut failed = play("prompt go\nclaim\nstep\nawait ci timeout=1m/fail\nt=1m expire");
    assert!(failed.try_line("resume handle=1").unwrap_err().starts_with("TASK_NOT_PAUSED"));
}

/// There, every resume started the iteration count again.
#[test]
fn parking_does_not_dodge_a_budget() {
    let mut play = play("prompt go\nclaim\nstep\nfinish used=7\nstep\nawait ci used=7");
    play.run("resume\nclaim");
    let progress = &play.world.session.run().unwrap().progress;
    assert_eq!((progress.iterations, progress.active_ms), (2, 14));
    assert_eq!(play.world.session.totals.prompt_tokens, 14);

    // The limit that caused the suspension starts again, and no other.
    play.run("step\nask more kind=time_limit\nresume handle=2 input=yes");
    let progress = &play.world.session.run().unwrap().progress;
    assert_eq!((progress.iterations, progress.active_ms), (3, 0));

    // That also holds where a pause lies over the question, which is lifted with more of a budget.
    play.run("claim\nstep\nfinish used=7\nstep\nsuspend mode=wait_for_completion");
    play.run("ask more kind=time_limit\nresume tokens=5");
    assert_eq!(play.world.session.run().unwrap().progress.active_ms, 7);
    play.run("resume handle=4 input=yes");
    assert_eq!(play.world.session.run().unwrap().progress.active_ms, 0);
}
