//! Deadlines act once, in order, whatever the clock does.

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::conditions::DueWhy;
use adjourn_core::id::SessionId;
use adjourn_core::session::{Cause, Opening, Outcome, Phase};
use adjourn_core::time::Timestamp;
use adjourn_store::{Environment as _, Store};
use serde_json::{Value, json};

use super::moves::{cancel, close, policy, resume, suspend, suspend_until};
use super::world::World;

const MINUTE: Duration = Duration::from_secs(60);

fn minutes(minutes: u32) -> Value {
    json!({"timeout": {"durationMinutes": minutes}})
}

fn ids(sessions: &[Arc<Session>]) -> Vec<SessionId> {
    sessions.iter().map(|session| session.id).collect()
}

/// Suspends a new session for each of these minutes, all in one transaction.
fn waiting<S: Store>(world: &World<S>, waits: &[u32]) -> Vec<SessionId> {
    let sessions = world.create_many(waits.len());
    let each = sessions.iter().zip(waits);
    world.all(each.map(|(id, wait)| suspend_until(*id, &minutes(*wait))).collect());
    sessions
}

/// The store knows the earliest deadline of all, and none when there is none.
pub(super) fn the_earliest_deadline_is_known<S: Store>(world: World<S>) {
    assert_eq!(world.store.next_due().unwrap(), None);
    let start = world.environment.now();
    let sessions = waiting(&world, &[30, 10, 20]);
    let after = |minutes: u32| Some(start.after(MINUTE * minutes));
    assert_eq!(world.store.next_due().unwrap(), after(10));
    world.done(resume(sessions[1]));
    assert_eq!(world.store.next_due().unwrap(), after(20));
    world.done(close(sessions[2]));
    assert_eq!(world.store.next_due().unwrap(), after(30));
    world.done(resume(sessions[0]));
    assert_eq!(world.store.next_due().unwrap(), None);
    world.done(suspend(sessions[0]));
    assert_eq!(world.store.next_due().unwrap(), None);
}

/// What fell due first acts first, a few at a time, and not a moment before it is due.
pub(super) fn deadlines_act_in_order_and_in_batches<S: Store>(world: World<S>) {
    let sessions = waiting(&world, &[5, 3, 1, 4, 2, 60]);
    world.environment.advance(MINUTE - Duration::from_millis(1));
    assert_eq!(world.expire(10), []);
    world.environment.advance(Duration::from_millis(1));
    assert_eq!(ids(&world.expire(10)), [sessions[2]]);
    world.environment.advance(MINUTE * 10);
    assert_eq!(ids(&world.expire(3)), [sessions[4], sessions[1], sessions[3]]);
    let rest = world.expire(3);
    assert_eq!(ids(&rest), [sessions[0]]);
    assert_eq!(rest[0], world.session(sessions[0]));
    assert_eq!(world.expire(3), []);
    for id in &sessions[..5] {
        let session = world.agree(*id);
        assert_eq!(
            (session.phase(), session.woke.as_ref().unwrap().cause),
            (Phase::Idle, Cause::Timeout)
        );
        assert_eq!(world.wakes(*id), 1);
    }
    assert_eq!(world.agree(sessions[5]).phase(), Phase::Suspended);
}

/// Where nothing is due, nothing changes.
pub(super) fn nothing_due_changes_nothing<S: Store>(world: World<S>) {
    assert_eq!(world.expire(10), []);
    let id = world.create();
    let session = world.done(suspend_until(id, &minutes(1))).session;
    let entries = world.store.size().unwrap().entries;
    assert_eq!(world.expire(10), []);
    assert_eq!((world.agree(id), world.store.size().unwrap().entries), (session, entries));
    world.environment.advance(MINUTE);
    assert_eq!(world.expire(0), []);
    assert_eq!(world.expire(10).len(), 1);
}

/// After a laptop slept for a month, every deadline acts, once.
pub(super) fn a_clock_that_jumps_forward_fires_each_once<S: Store>(world: World<S>) {
    let sessions = waiting(&world, &[1, 2, 3, 4, 5, 6, 7]);
    world.environment.advance(MINUTE * 60 * 24 * 30);
    for batch in sessions.chunks(2) {
        assert_eq!(ids(&world.expire(2)), batch);
    }
    assert_eq!(world.expire(2), []);
    for id in sessions {
        assert_eq!(world.wakes(id), 1);
        let session = world.agree(id);
        assert_eq!(session.woke.as_ref().unwrap().resumed_at, world.environment.now());
    }
}

/// A clock that is set back makes deadlines wait, fires none twice, and no entry is older than the
/// one before it.
pub(super) fn a_clock_that_jumps_back_undoes_nothing<S: Store>(world: World<S>) {
    let start = world.environment.now();
    let sessions = waiting(&world, &[1, 60]);
    world.environment.advance(MINUTE);
    assert_eq!(ids(&world.expire(10)), [sessions[0]]);
    let late = world.environment.now();
    let early = Timestamp::from_millis(start.as_millis() - 3_600_000);
    world.environment.set(early);
    assert_eq!(world.expire(10), []);
    // What happens meanwhile is dated like the last entry, and its deadline goes by the clock.
    let session = world.done(suspend_until(sessions[0], &minutes(1))).session;
    assert_eq!(session.at, late);
    assert_eq!(world.store.next_due().unwrap(), Some(early.after(MINUTE)));
    world.environment.advance(MINUTE);
    assert_eq!(ids(&world.expire(10)), [sessions[0]]);
    world.environment.set(late.after(MINUTE * 60));
    assert_eq!(ids(&world.expire(10)), [sessions[1]]);
    assert_eq!(world.expire(10), []);
    for (id, wakes) in sessions.into_iter().zip([2, 1]) {
        assert_eq!(world.wakes(id), wakes);
        world.agree(id);
        let times: Vec<_> = world.events(id).iter().map(|event| event.at).collect();
        assert!(times.is_sorted(), "{times:?}");
    }
}

/// A deadline wakes the session with what was set for it, or fails its run.
pub(super) fn a_deadline_does_what_was_asked<S: Store>(world: World<S>) {
    let turns = world.turns(3);
    let timeout = |more: Value| {
        let mut timeout = json!({"durationMinutes": 1});
        timeout.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "timeout": timeout })
    };
    let input = json!({"onTimeout": "resume_with_input", "input": {"go": "on"}});
    world.done(turns[0].awaits(&timeout(json!({}))));
    world.done(turns[1].awaits(&timeout(input)));
    world.done(turns[2].awaits(&timeout(json!({"onTimeout": "fail"}))));
    world.environment.advance(MINUTE);
    assert_eq!(world.expire(10).len(), 3);
    let value = |id| match &world.session(id).run().unwrap().opening {
        Opening::Wake(report) => (report.resumption.cause, report.value.clone()),
        Opening::Prompt(_) => panic!("{id} did not wake"),
    };
    assert_eq!(value(turns[0].id), (Cause::Timeout, None));
    assert_eq!(value(turns[1].id), (Cause::Timeout, Some(json!({"go": "on"}))));
    let failed = world.session(turns[2].id);
    assert_eq!(failed.last_run.as_ref().unwrap().outcome, Outcome::Failed);
    assert_eq!(failed.phase(), Phase::Idle);
    for turn in turns {
        world.agree(turn.id);
    }
}

/// A trigger that names a point in time is a deadline like any other.
pub(super) fn a_point_in_time_is_a_deadline<S: Store>(world: World<S>) {
    let id = world.create();
    let at = world.environment.now().after(MINUTE * 5);
    let until = json!({"trigger": {"at": at.to_string()}, "timeout": {"durationMinutes": 10}});
    let session = world.done(suspend_until(id, &until)).session;
    assert_eq!(session.suspended().unwrap().park.due.unwrap().why, DueWhy::At);
    assert_eq!(world.store.next_due().unwrap(), Some(at));
    world.environment.advance(MINUTE * 20);
    assert_eq!(ids(&world.expire(10)), [id]);
    assert_eq!(world.agree(id).woke.as_ref().unwrap().cause, Cause::ConditionFired);
    assert_eq!((world.expire(10), world.wakes(id)), (Vec::new(), 1));
    // A point in time that has passed already is due at once.
    world.done(suspend_until(id, &until));
    assert_eq!(ids(&world.expire(10)), [id]);
}

/// A session that was woken in another way, canceled or closed has no deadline any more.
pub(super) fn a_woken_session_has_no_deadline<S: Store>(world: World<S>) {
    let turns = world.turns(4);
    let until = json!({"onEvent": "ci.passed:main", "timeout": {"durationMinutes": 1}});
    world.all(turns.iter().map(|turn| turn.awaits(&until)).collect());
    world.done(resume(turns[0].id));
    world.done(cancel(turns[1].id));
    world.done(close(turns[2].id));
    world.acknowledge(world.event("ci.passed", Some("main")));
    let delivered = world.keep(|tx| tx.deliver(&policy(), 10));
    assert_eq!(ids(&delivered.changed), [turns[3].id]);
    assert_eq!(world.store.next_due().unwrap(), None);
    world.environment.advance(MINUTE * 2);
    assert_eq!(world.expire(10), []);
    for turn in turns {
        world.agree(turn.id);
    }
}
