//! However many callers race for one thing, one of them gets it.

use std::time::Duration;

use adjourn_core::id::HostId;
use adjourn_core::session::{Cause, Phase};
use adjourn_core::{Founding, Rejected};
use adjourn_store::{Environment as _, Store};
use serde_json::json;

use super::moves::{
    Turn, ann, claim, close, handle, policy, prompt, resume_by, suspend, suspend_until,
};
use super::world::{TENANT, World, at_once, refusal};

/// Of 32 resumes of one suspension one succeeds, and all others are told of that one.
pub(super) fn one_of_many_resumes_wins<S: Store>(world: World<S>) {
    let id = world.create();
    world.done(prompt(id, "build"));
    let handle = handle(&world.done(suspend(id)).session);
    let answers = at_once(32, |_| world.send(resume_by(id, handle)));
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 31));
    let session = world.agree(id);
    let woke = session.woke.as_ref().expect("it woke");
    for answer in lost {
        match refusal(answer) {
            Rejected::AlreadyResumed { handle: given, at, cause, .. } => {
                assert_eq!((given, at, cause), (handle, woke.resumed_at, Cause::ExplicitResume));
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!((world.wakes(id), session.phase()), (1, Phase::Ready));
}

/// A resume, an event and a deadline at the same moment: the session wakes once.
pub(super) fn one_of_resume_event_and_deadline_wins<S: Store>(world: World<S>) {
    let until = json!({"onEvent": "ci.passed", "timeout": {"durationMinutes": 1}});
    for _ in 0..8 {
        let id = world.create();
        world.done(prompt(id, "build"));
        let handle = handle(&world.done(suspend_until(id, &until)).session);
        world.happens("ci.passed");
        world.environment.advance(Duration::from_secs(60));
        let woken: usize = at_once(12, |thread| match thread % 3 {
            0 => usize::from(world.send(resume_by(id, handle)).is_ok()),
            1 => world.deliver(8).len(),
            _ => world.expire(8).len(),
        })
        .into_iter()
        .sum();
        assert_eq!((woken, world.wakes(id)), (1, 1));
        assert_eq!(world.agree(id).phase(), Phase::Ready);
        assert_eq!(world.store.next_due().unwrap(), None);
    }
}

/// Of many sessions that are created with one name one gets it; it is free again when that one has
/// ended, and another tenant's sessions have names of their own.
pub(super) fn one_of_many_sessions_gets_a_name<S: Store>(world: World<S>) {
    let named = |tenant: &str, name: &str| {
        let labels = [(Founding::NAME.to_owned(), name.to_owned())].into();
        Founding { labels, ..world.founding(tenant) }
    };
    let create = |founding: Founding| world.transact(move |tx| tx.create(ann(), founding));
    let answers = at_once(16, |_| create(named(TENANT, "nightly")));
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 15));
    let id = won.into_iter().next().unwrap().unwrap().session.id;
    for answer in lost {
        let taken = Rejected::NameTaken { name: "nightly".to_owned(), session: id };
        assert_eq!(refusal(answer), taken);
    }
    create(named("another", "nightly")).unwrap();
    create(named(TENANT, "weekly")).unwrap();
    world.done(close(id));
    create(named(TENANT, "nightly")).unwrap();
    // What could be taken for an id is no name, wherever it comes from.
    let digits = id.uuid().to_string();
    for name in ["", " ", "a\nb", "sess-1", "run-7", &digits, &id.short()] {
        assert_eq!(refusal(create(named(TENANT, name))).reason(), "INVALID", "{name:?}");
    }
}

/// Of many hosts that claim a session one gets it.
pub(super) fn one_of_many_claims_wins<S: Store>(world: World<S>) {
    let id = world.create();
    world.done(prompt(id, "build"));
    let hosts: Vec<_> = (0..16).map(|_| HostId::new(world.environment.uuid())).collect();
    let answers = at_once(hosts.len(), |thread| world.send(claim(id, hosts[thread])));
    let winners: Vec<_> = answers.iter().zip(&hosts).filter(|(done, _)| done.is_ok()).collect();
    assert_eq!(winners.len(), 1);
    let owner = world.agree(id).owner().expect("somebody has it");
    assert_eq!((owner.host, owner.epoch.0), (*winners[0].1, 1));
    for answer in answers.into_iter().filter(Result::is_err) {
        assert_eq!(refusal(answer).reason(), "NOT_READY");
    }
}

/// Events come in while the sessions that wait for them park, and others deliver: every session
/// wakes, once.
pub(super) fn events_that_race_parks_wake_each_session_once<S: Store>(world: World<S>) {
    const SESSIONS: usize = 60;
    let turns = world.turns(SESSIONS);
    let events: Vec<_> =
        turns.iter().map(|turn| world.event("ci.passed", Some(&turn.id.to_string()))).collect();
    let park = |turn: &Turn, number: usize| {
        let until = match number % 4 {
            0 => json!({"onEvent": format!("ci.passed:{}", turn.id)}),
            1 => json!({"onEvent": format!("ci.*:{}", turn.id)}),
            2 => json!({"trigger": {"exact": {"subject": turn.id.to_string()}}}),
            _ => {
                json!({"trigger": {"exact": {"name": "ci.passed", "subject": turn.id.to_string()}}})
            }
        };
        world.send(turn.awaits(&until)).unwrap();
    };
    at_once(7, |thread| match thread {
        0..3 => {
            for event in events.iter().skip(thread).step_by(3) {
                world.acknowledge(event.clone());
            }
        }
        3..6 => {
            for (number, turn) in turns.iter().enumerate().skip(thread - 3).step_by(3) {
                park(turn, number);
            }
        }
        _ => {
            for _ in 0..SESSIONS {
                world.transact(|tx| tx.deliver(&policy(), 2)).unwrap();
            }
        }
    });
    world.deliver(5);
    for turn in turns {
        let session = world.agree(turn.id);
        assert_eq!((session.phase(), world.wakes(turn.id)), (Phase::Ready, 1));
        assert_eq!(session.woke.as_ref().unwrap().cause, Cause::ConditionFired);
    }
    assert_eq!(world.store.size().unwrap().suspended, 0);
}

/// One event from many callers is stored once, and all are told the same number.
pub(super) fn an_event_raced_for_is_acknowledged_once<S: Store>(world: World<S>) {
    let event = world.event("ci.passed", None);
    let answers = at_once(16, |_| {
        let event = event.clone();
        world.transact(move |tx| tx.acknowledge(&event)).unwrap()
    });
    assert_eq!(answers.iter().filter(|(_, first)| *first).count(), 1);
    assert!(answers.iter().all(|(seq, _)| seq.0 == 1), "{answers:?}");
    assert_eq!(world.store.size().unwrap().events, 1);
}
