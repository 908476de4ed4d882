//! What is kept for how long, and that nothing goes which somebody may still need.

use std::time::Duration;

use adjourn_core::id::Seq;
use adjourn_core::session::{Cause, Phase};
use adjourn_store::rows::SessionNo;
use adjourn_store::{CommandError, Erased, Pruned, Retention, Store};
use serde_json::json;

use super::moves::{
    Turn, close, handle, policy, prompt, prompt_with, resume, resume_once, suspend, suspend_until,
    words,
};
use super::wakes::woken_by;
use super::world::World;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MOMENT: Duration = Duration::from_millis(1);

fn prune<S: Store>(world: &World<S>, retention: Retention, limit: usize) -> Pruned {
    world.keep(move |tx| tx.prune(&retention, limit).map_err(CommandError::from))
}

/// Drops what may go by default, and tells how many events went.
fn prune_events<S: Store>(world: &World<S>) -> u64 {
    prune(world, Retention::default(), 100).events
}

/// One session is erased at once when it has ended, even in the commit that ends it, and no other.
pub(super) fn one_session_is_erased_when_it_has_ended<S: Store>(world: World<S>) {
    let (id, other) = (world.create(), world.create());
    for session in [id, other] {
        world.done(prompt(session, "build"));
    }
    let erased = world.keep(move |tx| tx.erase(id).map_err(CommandError::from));
    assert_eq!(erased, Erased::default(), "it goes on");
    world.agree(id);
    world.done(close(other));
    let erased = world.keep(move |tx| {
        tx.command(close(id))?;
        tx.erase(id).map_err(CommandError::from)
    });
    assert_eq!((erased.said, erased.more), (1, false));
    assert!(erased.entries > 1, "{erased:?}");
    assert_eq!(world.session(id).phase(), Phase::Ended);
    assert!(world.store.founding(id).unwrap().is_none());
    assert_eq!(world.transcript(id), words(&[]));
    assert_eq!(world.transcript(other), words(&["build"]));
    world.agree(other);
}

/// Events of the last day, answers of the last week and all sessions stay, up to the last moment.
pub(super) fn what_is_young_stays<S: Store>(world: World<S>) {
    let id = world.create();
    world.done(prompt_with(id, "build", Some("m"), None));
    let handle = handle(&world.done(suspend(id)).session);
    world.done(resume_once(id, handle, "k"));
    let ended = world.create();
    world.done(close(ended));
    let seq = world.happens("ci.passed");
    world.deliver(10);
    assert_eq!(prune(&world, Retention::default(), 100), Pruned::default());
    world.environment.advance(DAY);
    assert_eq!(prune(&world, Retention::default(), 100), Pruned::default());
    assert_eq!(world.store.size().unwrap().events, 1);
    world.environment.advance(MOMENT);
    let events = Pruned { events: 1, ..Pruned::default() };
    // The open run began before the event, which is what keeps it.
    assert_eq!(prune(&world, Retention::default(), 100), Pruned::default());
    world.done(close(id));
    assert_eq!(prune(&world, Retention::default(), 100), events);
    assert_eq!(world.store.event_data(seq).unwrap(), None);
    world.environment.advance(DAY * 6 - MOMENT);
    assert_eq!(prune(&world, Retention::default(), 100), Pruned::default());
    assert!(world.done(resume_once(id, handle, "k")).answered.is_some());
    world.environment.advance(DAY * 3650);
    let answers = Pruned { answers: 2, ..Pruned::default() };
    assert_eq!(prune(&world, Retention::default(), 100), answers);
    world.agree(id);
    world.agree(ended);
}

/// An old event goes when it has been delivered, and not before.
pub(super) fn events_go_when_they_are_old_and_delivered<S: Store>(world: World<S>) {
    for _ in 0..3 {
        world.happens("ci.passed");
    }
    world.environment.advance(DAY * 2);
    assert_eq!(prune_events(&world), 0);
    world.deliver(10);
    let young = world.happens("ci.passed");
    world.deliver(10);
    assert_eq!(prune_events(&world), 3);
    assert_eq!(prune_events(&world), 0);
    assert_eq!(young, Seq(4));
    world.environment.advance(DAY);
    assert_eq!(prune_events(&world), 0);
    world.environment.advance(MOMENT);
    assert_eq!(prune_events(&world), 1);
    assert_eq!(world.store.size().unwrap().events, 0);
}

/// An event that reached some of those that wait for it, and not yet all, stays.
pub(super) fn an_event_half_delivered_stays<S: Store>(world: World<S>) {
    let ids = world.create_many(3);
    let until = json!({"onEvent": "ci.passed"});
    world.all(ids.iter().map(|id| suspend_until(*id, &until)).collect());
    world.happens("ci.passed");
    assert_eq!(world.keep(|tx| tx.deliver(&policy(), 2)).changed.len(), 2);
    world.environment.advance(DAY * 2);
    assert_eq!(prune_events(&world), 0);
    assert_eq!(world.deliver(2), [world.session(ids[2])]);
    assert_eq!(prune_events(&world), 1);
}

/// An event that a turn which is still open may wait for stays, however old it is.
pub(super) fn events_an_open_turn_may_need_stay<S: Store>(world: World<S>) {
    world.happens("before");
    let turn = world.turn();
    let seqs = ["one", "two", "three"].map(|name| world.happens(name));
    world.deliver(10);
    world.environment.advance(DAY * 30);
    assert_eq!(prune_events(&world), 1);
    let woken = world.done(turn.awaits(&json!({"onEvent": "two"}))).session;
    assert_eq!(woken_by(&woken), Some((seqs[1], Cause::ConditionFired)));
    // The turn that it opened has to be told of it, and may wait for what came after it.
    assert_eq!(prune_events(&world), 1);
    let turn = world.keep(move |tx| Turn::again(tx, turn.id));
    assert_eq!(prune_events(&world), 0);
    world.done(turn.step(&[]));
    assert_eq!(prune_events(&world), 1);
    let woken = world.done(turn.awaits(&json!({"onEvent": "three"}))).session;
    assert_eq!(woken_by(&woken), Some((seqs[2], Cause::ConditionFired)));
    // A session that is parked has looked back already, and needs none.
    let turn = world.keep(move |tx| Turn::again(tx, turn.id));
    world.happens("four");
    world.deliver(10);
    world.environment.advance(DAY * 30);
    world.done(turn.step(&[]));
    assert_eq!(prune_events(&world), 1);
    world.done(turn.awaits(&json!({"onEvent": "five"})));
    assert_eq!(prune_events(&world), 1);
    world.agree(turn.id);
}

/// An event that came while a client had paused a turn stays: the turn goes on as it was, and may
/// wait for it.
pub(super) fn events_an_interrupted_turn_may_need_stay<S: Store>(world: World<S>) {
    let turn = world.turn();
    let id = turn.id;
    world.done(turn.finishes(&[]));
    assert_eq!(world.done(suspend(id)).session.phase(), Phase::Suspended);
    let seq = world.happens("ci.passed");
    assert_eq!(world.deliver(10), []);
    world.environment.advance(DAY * 30);
    assert_eq!(prune_events(&world), 0);
    world.done(resume(id));
    assert_eq!(prune_events(&world), 0);
    let turn = world.keep(move |tx| Turn::again(tx, id));
    world.done(turn.step(&[]));
    let woken = world.done(turn.awaits(&json!({"onEvent": "ci.passed"}))).session;
    assert_eq!(woken_by(&woken), Some((seq, Cause::ConditionFired)));
    assert_eq!(prune_events(&world), 0, "it is to be told of it");
    let turn = world.keep(move |tx| Turn::again(tx, turn.id));
    world.done(turn.step(&[]));
    assert_eq!(prune_events(&world), 1);
    world.agree(id);
}

/// An event that ended a wait under a hold stays until the hold is lifted and the agent is told.
pub(super) fn an_event_that_fired_under_a_hold_stays<S: Store>(world: World<S>) {
    let turn = world.turn();
    let id = turn.id;
    world.done(turn.awaits(&json!({"onEvent": "ci.passed"})));
    world.done(suspend(id));
    let seq = world.happens("ci.passed");
    world.deliver(10);
    world.environment.advance(DAY * 30);
    assert_eq!(prune_events(&world), 0);
    assert_eq!(woken_by(&world.done(resume(id)).session), Some((seq, Cause::ConditionFired)));
    assert_eq!(prune_events(&world), 0);
    let turn = world.keep(move |tx| Turn::again(tx, id));
    assert_eq!(prune_events(&world), 0);
    world.done(turn.step(&[]));
    assert_eq!(prune_events(&world), 1);
    world.agree(id);
}

/// An event that a pause which was accepted, and is not yet in force, looks back to stays.
pub(super) fn events_a_pending_suspend_looks_back_to_stay<S: Store>(world: World<S>) {
    let seq = world.happens("ci.passed");
    world.deliver(10);
    let turn = world.turn();
    let until = json!({"onEvent": "ci.passed", "since": 0});
    let pending = world.done(suspend_until(turn.id, &until)).session;
    assert_eq!(pending.phase(), Phase::Requested);
    world.environment.advance(DAY * 2);
    assert_eq!(prune_events(&world), 0);
    let woken = world.done(turn.finishes(&[])).session;
    assert_eq!(woken_by(&woken), Some((seq, Cause::ConditionFired)));
    assert_eq!(prune_events(&world), 0, "it is to be told of it");
    let turn = world.keep(move |tx| Turn::again(tx, turn.id));
    world.done(turn.step(&[]));
    assert_eq!(prune_events(&world), 1);
}

/// The next event after all were dropped has the next number.
pub(super) fn numbers_of_dropped_events_do_not_come_again<S: Store>(world: World<S>) {
    let event = world.event("ci.passed", None);
    assert_eq!(world.acknowledge(event.clone()), Seq(1));
    world.deliver(10);
    world.environment.advance(DAY * 2);
    assert_eq!(prune_events(&world), 1);
    // A turn that begins between knows how far the numbers went.
    let turn = world.turn();
    assert_eq!(world.acknowledge(event), Seq(2));
    let woken = world.done(turn.awaits(&json!({"onEvent": "ci.passed"}))).session;
    assert_eq!(woken_by(&woken), Some((Seq(2), Cause::ConditionFired)));
}

/// Answers and message ids are forgotten after a week, and then mean nothing any more.
pub(super) fn answers_go_after_a_week<S: Store>(world: World<S>) {
    let id = world.create();
    world.done(prompt_with(id, "build", Some("m"), None));
    let handle = handle(&world.done(suspend(id)).session);
    world.done(resume_once(id, handle, "k"));
    world.environment.advance(DAY * 7);
    assert_eq!(prune(&world, Retention::default(), 100).answers, 0);
    assert!(world.done(resume_once(id, handle, "k")).answered.is_some());
    world.environment.advance(MOMENT);
    assert_eq!(prune(&world, Retention::default(), 100).answers, 2);
    assert_eq!(world.refused(resume_once(id, handle, "k")).reason(), "ALREADY_RESUMED");
    assert_eq!(world.refused(prompt_with(id, "build", Some("m"), None)).reason(), "TASK_BUSY");
    world.agree(id);
}

/// When asked to, the store drops what ended sessions said and did; that they were, and how they
/// ended, stays.
pub(super) fn the_body_of_an_ended_session_goes_when_asked<S: Store>(world: World<S>) {
    let hour = Retention { ended: Some(Duration::from_secs(3600)), ..Retention::default() };
    let turn = world.turn();
    world.done(turn.finishes(&["some words"]));
    let (open, young) = (world.create(), world.create());
    world.done(prompt(open, "build"));
    let ended = world.done(close(turn.id)).session;
    world.environment.advance(Duration::from_secs(3600));
    assert_eq!(prune(&world, hour, 100), Pruned::default());
    world.environment.advance(MOMENT);
    world.done(close(young));
    assert_eq!(prune(&world, Retention::default(), 100), Pruned::default());
    let pruned = Pruned { sessions: 1, entries: ended.revision - 1, ..Pruned::default() };
    let entries = world.store.size().unwrap().entries;
    assert_eq!(prune(&world, hour, 100), pruned);
    assert_eq!(prune(&world, hour, 100), Pruned::default());

    assert_eq!(world.session(turn.id), ended);
    assert_eq!(ended.phase(), Phase::Ended);
    let listed = world.store.sessions(SessionNo(0), 10).unwrap();
    assert_eq!((listed.len(), listed[0].1.as_ref().unwrap()), (3, &ended));
    let left: Vec<_> = world.journal(turn.id).iter().map(|entry| entry.revision).collect();
    assert_eq!(left, [ended.revision]);
    assert_eq!(world.transcript(turn.id), words(&[]));
    assert_eq!(world.refused(prompt(turn.id, "more")).reason(), "ENDED");
    assert_eq!(world.store.size().unwrap().entries, entries);
    // The others are as they were.
    world.agree(open);
    world.agree(young);
    assert_eq!(world.transcript(open), words(&["build"]));
}

/// Pruning does a little at a time, and says whether there is more.
pub(super) fn pruning_goes_on_while_there_is_more<S: Store>(world: World<S>) {
    let ids = world.create_many(5);
    world.all(ids.iter().map(|id| prompt_with(*id, "build", Some("m"), None)).collect());
    world.all(ids[..3].iter().map(|id| close(*id)).collect());
    for _ in 0..5 {
        world.happens("ci.passed");
    }
    world.deliver(10);
    world.all(ids[3..].iter().map(|id| close(*id)).collect());
    world.environment.advance(DAY * 8);
    let all = Retention { ended: Some(DAY), ..Retention::default() };
    for (left, more) in [(2, true), (2, true), (1, false)] {
        let pruned = prune(&world, all, 2);
        assert_eq!((pruned.sessions, pruned.events, pruned.more), (left, left, more));
        assert!(pruned.answers <= 2, "{pruned:?}");
    }
    assert_eq!(prune(&world, all, 2), Pruned::default());
}
