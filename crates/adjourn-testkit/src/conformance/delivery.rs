//! Delivery reaches every session that waits for an event, once, a few at a time.

use adjourn_core::id::SessionId;
use adjourn_core::session::{Cause, Phase};
use adjourn_store::rows::NewEvent;
use adjourn_store::{Delivered, Environment as _, Store};
use serde_json::json;

use super::moves::{
    Turn, cancel, close, handle, policy, resume, resume_by, suspend, suspend_until,
};
use super::wakes::woken_by;
use super::world::World;

/// The turn that an event opens can still wait for those that came right behind that event.
pub(super) fn an_event_right_behind_the_one_that_woke_is_not_lost<S: Store>(world: World<S>) {
    let mut turn = world.turn();
    world.done(turn.awaits(&json!({"onEvent": "step.one"})));
    let seqs = ["step.one", "step.two", "step.three"].map(|name| world.happens(name));
    world.deliver(10);
    for (name, seq) in ["step.two", "step.three"].into_iter().zip(&seqs[1..]) {
        let id = turn.id;
        turn = world.keep(move |tx| Turn::again(tx, id));
        world.done(turn.step(&[]));
        let woken = world.done(turn.awaits(&json!({"onEvent": name}))).session;
        assert_eq!(woken_by(&woken), Some((*seq, Cause::ConditionFired)));
    }
    assert_eq!(world.deliver(10), []);
    world.agree(turn.id);
}

/// Ten sessions wait for an event that is delivered to three at a time: each is reached once, also
/// if those that were reached first wait for the next such event meanwhile.
pub(super) fn delivery_goes_on_where_it_stopped<S: Store>(world: World<S>) {
    let until = json!({"onEvent": "ci.passed"});
    let turns = world.turns(10);
    world.all(turns.iter().map(|turn| turn.awaits(&until)).collect());
    for round in 1..=2 {
        assert!(!world.store.undelivered().unwrap());
        let seq = world.happens("ci.passed");
        assert!(world.store.undelivered().unwrap());
        let mut reached: Vec<SessionId> = Vec::new();
        for left in [10, 7, 4, 1] {
            let delivered = world.keep(|tx| tx.deliver(&policy(), 3));
            let batch: Vec<_> = delivered.changed.iter().map(|session| session.id).collect();
            assert_eq!((batch.len(), delivered.more), (left.min(3), left >= 3));
            assert_eq!(world.store.undelivered().unwrap(), delivered.more);
            reached.extend(&batch);
            for session in &delivered.changed {
                assert_eq!(woken_by(session), Some((seq, Cause::ConditionFired)));
            }
            let until = until.clone();
            world.keep(move |tx| {
                for id in batch {
                    let turn = Turn::again(tx, id)?;
                    tx.command(turn.step(&[]))?;
                    tx.command(turn.awaits(&until))?;
                }
                Ok(())
            });
        }
        assert_eq!(reached.len(), turns.len());
        for turn in &turns {
            assert!(reached.contains(&turn.id));
            assert_eq!(world.wakes(turn.id), round);
            assert_eq!(world.agree(turn.id).phase(), Phase::Suspended);
        }
        assert_eq!(world.deliver(3), []);
    }
}

/// An event addressed to one session reaches it, wherever it stands among those that wait for the
/// event anyway.
pub(super) fn an_addressed_session_is_found_among_those_that_wait<S: Store>(world: World<S>) {
    for (place, waits_too, limit) in
        [(0, false, 2), (1, false, 1), (3, false, 2), (6, false, 2), (0, true, 3), (5, true, 2)]
    {
        let name = format!("ci.passed.{place}.{waits_too}");
        let turns = world.turns(7);
        let addressed = turns[place].id;
        let until = |turn: &Turn| {
            let never = turn.id == addressed && !waits_too;
            json!({"onEvent": if never { "never.happens" } else { name.as_str() }})
        };
        world.all(turns.iter().map(|turn| turn.awaits(&until(turn))).collect());
        world.acknowledge(NewEvent { session: Some(addressed), ..world.event(&name, None) });
        let reached: Vec<_> = world.deliver(limit).iter().map(|session| session.id).collect();
        assert_eq!(reached, turns.iter().map(|turn| turn.id).collect::<Vec<_>>());
        let cause = if waits_too { Cause::ConditionFired } else { Cause::ExternalEvent };
        assert_eq!(world.agree(addressed).woke.as_ref().unwrap().cause, cause);
    }
}

/// Events that nobody waits for are done with, and so that no transaction has to go through all of
/// them at once, they count like those that reach somebody.
pub(super) fn an_event_that_nobody_waits_for_is_done_with<S: Store>(world: World<S>) {
    for _ in 0..5 {
        world.happens("ci.passed");
    }
    for more in [true, true, false, false] {
        let delivered = world.keep(|tx| tx.deliver(&policy(), 2));
        assert_eq!((delivered.changed.as_slice(), delivered.more), (&[][..], more));
    }
    let id = world.create();
    world.done(suspend_until(id, &json!({"onEvent": "ci.passed"})));
    world.happens("ci.passed");
    assert_eq!(world.deliver(1), [world.session(id)]);
}

/// A wait that ended in another way is not found by its event any more.
pub(super) fn a_wait_that_is_over_is_not_found_again<S: Store>(world: World<S>) {
    let turns = world.turns(4);
    let until = json!({"onEvent": "ci.passed"});
    world.all(turns.iter().map(|turn| turn.awaits(&until)).collect());
    let ids = [turns[0].id, turns[1].id, turns[2].id, turns[3].id];
    world.done(resume(ids[0]));
    world.done(resume(ids[1]));
    world.done(suspend_until(ids[1], &json!({"onEvent": "ci.failed"})));
    world.done(cancel(ids[2]));
    world.done(close(ids[3]));
    let before = ids.map(|id| world.session(id));
    world.happens("ci.passed");
    assert_eq!(world.deliver(10), []);
    assert_eq!(ids.map(|id| world.agree(id)), before);
    world.happens("ci.failed");
    assert_eq!(world.deliver(10), [world.session(ids[1])]);
}

/// What fires under a client's hold is remembered, once, and acts when the hold is lifted.
pub(super) fn what_fires_under_a_hold_acts_when_it_is_lifted<S: Store>(world: World<S>) {
    let turn = world.turn();
    let wait = handle(&world.done(turn.awaits(&json!({"onEvent": "ci.passed"}))).session);
    let hold = handle(&world.done(suspend(turn.id)).session);
    let seq = world.happens("ci.passed");
    assert_eq!(world.deliver(10), [world.session(turn.id)]);
    world.happens("ci.passed");
    assert_eq!(world.deliver(10), []);
    assert_eq!(world.refused(resume_by(turn.id, wait)).reason(), "HELD");
    assert_eq!(world.agree(turn.id).phase(), Phase::Suspended);
    let lifted = world.done(resume_by(turn.id, hold)).session;
    assert_eq!(woken_by(&lifted), Some((seq, Cause::ConditionFired)));
    assert_eq!(world.wakes(turn.id), 1);
    world.agree(turn.id);
}

/// Whoever delivers is told what each event did to whom, and how many may wait for one that is not
/// delivered yet.
pub(super) fn it_is_told_whom_an_event_woke<S: Store>(world: World<S>) {
    let until = json!({"onEvent": "ci.passed"});
    let turns = world.turns(3);
    world.all(turns.iter().map(|turn| turn.awaits(&until)).collect());
    world.done(suspend(turns[1].id));
    let other = world.happens("ci.failed");
    let seq = world.happens("ci.passed");
    assert_eq!(world.store.tally(world.environment.now()).wait().unwrap().undelivered, 2);
    assert_eq!(world.keep(move |tx| Ok(tx.awaiting(seq, 2)?)), 2);
    assert_eq!(world.keep(move |tx| Ok(tx.awaiting(other, 10)?)), 0);
    let told = |delivered: &Delivered| {
        let told = delivered.reached.iter().map(|to| (to.seq, to.session, to.woke));
        (told.collect::<Vec<_>>(), delivered.done)
    };
    let first = world.keep(|tx| tx.deliver(&policy(), 3));
    assert_eq!(told(&first), (vec![(seq, turns[0].id, true), (seq, turns[1].id, false)], other));
    assert_eq!(world.keep(move |tx| Ok(tx.awaiting(seq, 10)?)), 1);
    let second = world.keep(|tx| tx.deliver(&policy(), 3));
    assert_eq!(told(&second), (vec![(seq, turns[2].id, true)], seq));
    assert_eq!(world.keep(move |tx| Ok(tx.awaiting(seq, 10)?)), 0);
    assert_eq!(world.store.tally(world.environment.now()).wait().unwrap().undelivered, 0);
}
