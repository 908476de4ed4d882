//! Calls that an agent with a loop of its own runs by itself, and steps that begin with another move.

use expect_test::expect;

use crate::script::{Play, check};

#[test]
fn a_host_takes_a_session_and_begins_its_step_at_once() {
    check(
        "prompt build
         take
         finish next
         finish next end=completed",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            finish next
              step_finished
              step_started
              = running
            finish next end=completed
              step_finished
              run_ended completed
              = idle completed
        "#]],
    );
}

#[test]
fn the_next_step_does_not_begin_where_the_run_stops() {
    check(
        "prompt build
         take
         suspend
         finish next
         resume
         take
         suspend mode=wait_for_completion
         finish next
         cancel
         finish next",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            suspend
              suspend_requested #1 finish_step
              = quiescing requested client open
            finish next
              step_finished
              suspended #1
              = suspended client open
            resume
              resumed #1 explicit_resume to Ready
              = ready
            take
              claimed epoch 2
              step_started
              = running
            suspend mode=wait_for_completion
              suspend_requested #2 wait_for_completion
              = quiescing requested client open
            finish next
              step_finished
              step_started
              = quiescing client open
            cancel
              cancel_requested
              = quiescing canceling
            finish next
              step_finished
              run_ended canceled
              = idle canceled
        "#]],
    );
}

#[test]
fn a_gate_keeps_the_next_step_and_a_take_from_beginning() {
    check(
        "prompt build
         take
         gate
         finish next
         step
         drain
         take",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            gate
            finish next
              step_finished
              = running
            step
              ! GATED: stopped by the policy panic; nothing in the scope of gate-05000000-0000-7000-8000-000000000001 may start
            drain
              drained
              = ready
            take
              ! GATED: stopped by the policy panic; nothing in the scope of gate-05000000-0000-7000-8000-000000000001 may start
        "#]],
    );
}

#[test]
fn the_agents_calls_are_reported_while_it_speaks() {
    check(
        "prompt build
         take
         progress asks=read,write starts=read used=5
         progress ends=read starts=write
         progress ends=write
         finish end=completed",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            progress asks=read,write starts=read used=5
              progressed asks read,write starts read
              = running (read in flight)
            progress ends=read starts=write
              progressed starts write ends read
              = running (write in flight)
            progress ends=write
              progressed ends write
              = running
            finish end=completed
              step_finished
              run_ended completed
              = idle completed
        "#]],
    );
}

#[test]
fn the_agents_calls_are_neither_dispatched_nor_returned_by_a_host() {
    check(
        "prompt build
         take
         progress asks=read
         dispatch read
         progress starts=read
         return read
         progress starts=read
         progress ends=other
         progress ends=read declined
         progress ends=read
         finish
         progress asks=read",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            progress asks=read
              progressed asks read
              = running
            dispatch read
              ! OUT_OF_STEP: out of step: call read does not wait to be dispatched
            progress starts=read
              progressed starts read
              = running (read in flight)
            return read
              ! OUT_OF_STEP: out of step: call read cannot return so
            progress starts=read
              ! OUT_OF_STEP: out of step: call read is not one that the agent starts
            progress ends=other
              ! OUT_OF_STEP: out of step: call other cannot return so
            progress ends=read declined
              ! OUT_OF_STEP: out of step: call read cannot return so
            progress ends=read
              progressed ends read
              = running
            finish
              step_finished
              = running
            progress asks=read
              ! OUT_OF_STEP: out of step: no step is under way
        "#]],
    );
}

#[test]
fn a_step_that_ends_leaves_its_open_calls_unknown_or_not_run() {
    check(
        "prompt build
         take
         progress asks=read,write starts=read
         finish
         step",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            progress asks=read,write starts=read
              progressed asks read,write starts read
              = running (read in flight)
            finish
              calls_left unknown read not_run write
              step_finished
              = running
            step
              step_started
              = running
        "#]],
    );
}

#[test]
fn a_broken_step_leaves_its_open_calls_unknown_or_not_run_and_the_next_goes_on() {
    let mut play = Play::new();
    let trace = play.run(
        "prompt build
         take
         progress asks=read,write starts=read
         suspend mode=interrupt_immediate
         abort
         resume
         take",
    );
    expect![[r#"
        prompt build
          run_started
          = ready
        take
          claimed epoch 1
          step_started
          = running
        progress asks=read,write starts=read
          progressed asks read,write starts read
          = running (read in flight)
        suspend mode=interrupt_immediate
          suspend_requested #1 interrupt_immediate
          = quiescing requested client open (read in flight)
        abort
          calls_left unknown read not_run write
          step_aborted
          suspended #1 unknown read
          = suspended client open
        resume
          resumed #1 explicit_resume to Ready
          = ready
        take
          claimed epoch 2
          step_started
          = running
    "#]]
    .assert_eq(&trace);
    let step = play.world.session.run().and_then(|run| run.step).expect("a step is under way");
    assert!(step.continues && step.opens, "{step:?}");
}

#[test]
fn a_dead_host_leaves_the_agents_calls_unknown_however_harmless() {
    check(
        "prompt build
         take
         progress asks=read,write starts=read
         died
         resume
         take host=2",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            progress asks=read,write starts=read
              progressed asks read,write starts read
              = running (read in flight)
            died
              calls_left unknown read not_run write
              host_lost
              suspended #1 unknown read
              = suspended client open
            resume
              resumed #1 explicit_resume to Ready
              = ready
            take host=2
              claimed epoch 2
              step_started
              = running
        "#]],
    );
}

#[test]
fn a_dead_host_leaves_calls_that_were_only_asked_for_not_run() {
    let mut play = Play::new();
    let trace = play.run(
        "prompt build
         take
         progress asks=write
         died
         take host=2",
    );
    expect![[r#"
        prompt build
          run_started
          = ready
        take
          claimed epoch 1
          step_started
          = running
        progress asks=write
          progressed asks write
          = running
        died
          calls_left not_run write
          host_lost
          = ready
        take host=2
          claimed epoch 2
          step_started
          = running
    "#]]
    .assert_eq(&trace);
    let step = play.world.session.run().and_then(|run| run.step).expect("a step is under way");
    assert!(step.continues && !step.opens, "{step:?}");
}

#[test]
fn a_grace_that_is_over_leaves_the_agents_calls() {
    check(
        "prompt build
         take
         progress asks=read,write starts=read
         suspend grace=1s
         t=2s abandon",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            progress asks=read,write starts=read
              progressed asks read,write starts read
              = running (read in flight)
            suspend grace=1s
              suspend_requested #1 finish_step
              = quiescing requested client open (read in flight)
            t=2s abandon
              calls_left unknown read not_run write
              calls_abandoned
              suspended #1 unknown read
              = suspended client open
        "#]],
    );
}

#[test]
fn an_agent_that_parks_leaves_its_open_calls() {
    check(
        "prompt build
         take
         progress asks=read,write starts=read
         await ci on=ci.passed
         event ci.passed
         take",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            progress asks=read,write starts=read
              progressed asks read,write starts read
              = running (read in flight)
            await ci on=ci.passed
              calls_left unknown read not_run write
              step_finished
              park_requested #1
              suspended #1
              = suspended agent open
            event ci.passed
              resumed #1 condition_fired to Ready
              = ready
            take
              claimed epoch 2
              step_started
              = running
        "#]],
    );
}

#[test]
fn progress_counts_against_the_budget_at_once() {
    check(
        "prompt build
         take
         progress used=5
         progress used=7
         finish end=completed used=1",
        expect![[r#"
            prompt build
              run_started
              = ready
            take
              claimed epoch 1
              step_started
              = running
            progress used=5
              progressed
              = running
            progress used=7
              progressed
              = running
            finish end=completed used=1
              step_finished
              run_ended completed
              = idle completed
        "#]],
    );
}
