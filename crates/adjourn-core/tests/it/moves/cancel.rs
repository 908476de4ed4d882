//! `cancel` and `close`.

use std::time::Duration;

use adjourn_core::Founding;
use adjourn_core::driver::{DriverKind, DriverSpec};
use expect_test::expect;

use crate::script::{Play, check};
use crate::world::{World, founding};

#[test]
fn from_every_state() {
    check(
        "cancel
         prompt build
         cancel
         prompt build
         claim
         cancel
         prompt build
         claim
         step
         cancel
         cancel
         suspend
         resume
         finish
         suspend
         cancel
         prompt build
         claim
         step
         await ci
         suspend
         cancel
         resume handle=2",
        expect![[r#"
            cancel
              ! NOTHING_TO_CANCEL: the session is idle; there is nothing to cancel
            prompt build
              run_started
              = ready
            cancel
              run_ended canceled
              = idle canceled
            prompt build
              run_started
              = ready
            claim
              claimed epoch 1
              = running
            cancel
              cancel_requested
              run_ended canceled
              = idle canceled
            prompt build
              run_started
              = ready
            claim
              claimed epoch 2
              = running
            step
              step_started
              = running
            cancel
              cancel_requested
              = quiescing canceling
            cancel
              = quiescing canceling
            suspend
              ! TASK_NOT_PAUSABLE: a session that is canceling cannot be suspended
            resume
              ! TASK_BUSY: the session is busy (canceling)
            finish
              step_finished
              run_ended canceled
              = idle canceled
            suspend
              suspended #1
              = suspended client open canceled
            cancel
              suspension_ended #1 canceled
              = idle canceled
            prompt build
              run_started
              = ready
            claim
              claimed epoch 3
              = running
            step
              step_started
              = running
            await ci
              step_finished
              park_requested #2
              suspended #2
              = suspended agent open
            suspend
              hold_laid #3
              = suspended client open held
            cancel
              suspension_ended #2 canceled
              run_ended canceled
              = idle canceled
            resume handle=2
              ! TASK_NOT_PAUSED: the session is idle, not suspended
        "#]],
    );
}

#[test]
fn it_overrides_a_pending_pause() {
    check(
        "prompt build
         claim
         step
         calls build
         dispatch build
         suspend
         cancel reason=\"not wanted\"
         return build
         finish end=completed
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
            calls build
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            suspend
              suspend_requested #1 finish_step
              = quiescing requested client open (build in flight)
            cancel reason="not wanted"
              cancel_requested
              = quiescing canceling (build in flight)
            return build
              calls_returned build
              run_ended canceled
              = idle canceled
            finish end=completed
              ! NOT_OWNER: the claim of epoch 1 is over: the session is idle in epoch 1
            resume handle=1
              ! TASK_NOT_PAUSED: the session is idle, not suspended
        "#]],
    );
}

#[test]
fn calls_that_hang_are_abandoned_after_the_grace() {
    check(
        "prompt build
         claim
         step
         calls build
         dispatch build
         cancel
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
            calls build
              calls_asked
              = running
            dispatch build
              calls_dispatched build
              = running (build in flight)
            cancel
              cancel_requested
              = quiescing canceling (build in flight)
            t=2s abandon
              calls_abandoned unknown build
              run_ended canceled
              = idle canceled
        "#]],
    );
}

#[test]
fn close_ends_the_session_whatever_it_does() {
    for before in [
        "expire",
        "suspend",
        "prompt build",
        "prompt build\nclaim\nstep\ncalls build\ndispatch build",
        "prompt build\nclaim\nstep\nawait ci\nsuspend",
    ] {
        let mut play = Play::new();
        play.run(before);
        let trace = play.run("close");
        assert!(trace.ends_with("= ended canceled\n") || trace.ends_with("= ended\n"), "{trace}");
        assert!(play.run("close").ends_with("= ended canceled\n") || before.len() < 9);
        assert!(play.run("resume handle=1").contains("! ENDED"));
    }
}

#[test]
fn a_kept_end_is_not_made_worse() {
    // A deadline that fails cannot fail what had completed.
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\nsuspend timeout=1m/fail\nfinish end=completed\nt=1m expire");
    assert_eq!(play.world.session.last_run.as_ref().unwrap().outcome.as_str(), "completed");

    // A driver that ended its session has ended it.
    let mut play = Play::new();
    play.run("prompt go\nclaim\nstep\nsuspend\nfinish end=completed ends_session");
    assert!(play.try_line("resume input=more").unwrap_err().starts_with("INVALID"));
    let ended = play.clone().run("resume");
    assert!(ended.contains("= ended completed"), "{ended}");
    assert!(play.run("cancel").contains("= ended canceled"));
}

/// Returns how long a session of some driver may go on after a cancel.
fn grace(kind: DriverKind, cancel: &str) -> Option<Duration> {
    let driver = DriverSpec { kind, ..DriverSpec::script("") };
    let mut play = Play::on(World::founded(Founding { driver, ..founding() }));
    play.run("prompt build\ntake");
    play.run(cancel);
    play.world.session.grace()
}

#[test]
fn an_agent_with_a_loop_of_its_own_has_longer_to_end_its_turn_unless_it_was_configured() {
    let acp = || DriverKind::Acp { argv: vec!["agent".to_owned()] };
    let script = || DriverKind::Script { source: String::new() };
    assert_eq!(grace(script(), "cancel"), Some(Duration::from_secs(2)));
    assert_eq!(grace(acp(), "cancel"), Some(Duration::from_secs(10)));
    for kind in [script(), acp()] {
        assert_eq!(grace(kind, "cancel grace=5s"), Some(Duration::from_secs(5)));
    }
}
