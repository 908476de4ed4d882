//! Reads see what was committed, all of it, and nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::id::SessionId;
use adjourn_core::session::Phase;
use adjourn_store::rows::SessionNo;
use adjourn_store::{CommandError, Environment as _, Standing, Store, Tally};
use serde_json::json;

use super::moves::{
    ann, close, handle, prompt, resume, resume_by, suspend, suspend_because, suspend_until, words,
};
use super::world::World;

/// While a transaction is under way, every read shows what was there before it.
pub(super) fn a_read_sees_nothing_that_is_under_way<S: Store>(world: World<S>) {
    let (id, founding) = (world.create(), world.founding("another"));
    let before = (world.session(id), world.store.size().unwrap());
    let unborn = founding.id;
    let event = world.event("ci.passed", None);
    let (paused, pause) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    let pending = world.store.transact(move |tx| {
        tx.create(ann(), founding)?;
        let done = tx.command(prompt(id, "build"))?;
        tx.acknowledge(&event)?;
        paused.send(()).expect("the case waits");
        let _ = goes.recv();
        Ok::<_, CommandError>(done)
    });
    pause.recv().expect("the transaction runs");
    for _ in 0..3 {
        assert_eq!(world.agree(id), before.0);
        assert_eq!(world.store.session(unborn).unwrap(), None);
        assert_eq!(world.store.sessions(SessionNo(0), 10).unwrap().len(), 1);
        let size = world.store.size().unwrap();
        assert_eq!((size.sessions, size.entries, size.events), (1, before.1.entries, 0));
        assert_eq!(world.transcript(id), words(&[]));
    }
    drop(go);
    let done = pending.wait().unwrap();
    assert_eq!(world.agree(id), done.session);
    assert_eq!(world.agree(unborn).tenant, "another");
}

/// What a transaction did is not shown before it is durable, also while it waits for others that
/// share its commit.
pub(super) fn a_read_sees_nothing_that_shares_an_unfinished_commit<S: Store>(world: World<S>) {
    /// How often a reader looks again for an answer that was decided already.
    const LOOKS: usize = 1_000_000;
    let id = world.create();
    let before = world.session(id);
    let busy = world.busy();
    let mut first = world.submit(suspend(id));
    let (paused, pause) = mpsc::channel();
    let (go, goes) = mpsc::channel::<()>();
    let second = world.store.transact(move |tx| {
        let session = tx.session(id)?.expect("it is there");
        paused.send(session).expect("the case waits");
        let _ = goes.recv();
        Ok::<_, CommandError>(())
    });
    drop(busy);
    let within = pause.recv().expect("the transaction runs");
    assert_eq!(within.phase(), Phase::Suspended);
    let seen = world.session(id);
    if seen != before {
        // Then the commit was another, and its answer does not wait for this one.
        assert_eq!(seen, within);
        let mut context = Context::from_waker(Waker::noop());
        let told = (0..LOOKS).find_map(|_| {
            std::thread::yield_now();
            match std::pin::Pin::new(&mut first).poll(&mut context) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            }
        });
        assert_eq!(told.expect("what is shown is durable").unwrap().session, within);
        drop(go);
    } else {
        drop(go);
        assert_eq!(first.wait().unwrap().session, within);
    }
    second.wait().unwrap();
    assert_eq!(world.agree(id), within);
}

/// Readers that poll while groups are committed, some of them undone, see states that the journal
/// has, never one that it has not, and never an older one after a younger.
pub(super) fn readers_see_only_what_was_committed<S: Store>(world: World<S>) {
    let ids = world.create_many(4);
    let done = AtomicBool::new(false);
    let seen: Vec<Vec<Arc<Session>>> = std::thread::scope(|scope| {
        let poll = |reader: usize| {
            let (world, ids, done) = (&world, &ids, &done);
            scope.spawn(move || poll(world, &ids[reader..], done))
        };
        let readers: Vec<_> = (0..2).map(poll).collect();
        {
            let _stop = Stop(&done);
            for _ in 0..60 {
                group(&world, &ids);
            }
        }
        readers.into_iter().map(|reader| reader.join().expect("no reader fails")).collect()
    });
    let mut states = BTreeMap::new();
    for id in ids {
        let final_state = world.agree(id);
        let mut folded: Option<Session> = None;
        for event in world.events(id) {
            match &mut folded {
                Some(folded) => folded.evolve(&event),
                None => folded = Session::born(&event),
            }
            let state = folded.clone().expect("a session is born");
            states.insert((id, state.revision), state);
        }
        assert_eq!(states.get(&(id, final_state.revision)), Some(&*final_state));
    }
    for session in seen.into_iter().flatten() {
        assert_eq!(states.get(&(session.id, session.revision)), Some(&*session));
    }
}

/// Stops the readers, also when something else fails that they would outlive.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Submits transactions that share commits, of which some are undone, and checks the answers.
fn group<S: Store>(world: &World<S>, ids: &[SessionId]) {
    let mut answers = Vec::new();
    for id in ids.iter().copied() {
        let kept = world.store.transact(move |tx| {
            tx.command(suspend_because(id, "kept"))?;
            tx.command(resume(id))?;
            tx.command(suspend_because(id, "kept"))
        });
        let undone = world.store.transact(move |tx| {
            let handle = handle(&tx.session(id)?.expect("it is there"));
            tx.command(resume_by(id, handle))?;
            tx.command(suspend_because(id, "undone"))?;
            Err::<(), _>(CommandError::NotFound(id))
        });
        let resumed = world.submit(resume(id));
        answers.push((id, kept, undone, resumed));
    }
    for (id, kept, undone, resumed) in answers {
        let kept = kept.wait().unwrap().session;
        assert!(undone.wait().is_err());
        let resumed = resumed.wait().unwrap().session;
        assert_eq!(resumed.revision, kept.revision + 1);
        // Whoever was answered finds what was answered.
        assert_eq!(world.session(id), resumed);
    }
}

/// Reads sessions over and over; returns each state that was seen, once.
fn poll<S: Store>(world: &World<S>, ids: &[SessionId], done: &AtomicBool) -> Vec<Arc<Session>> {
    let mut seen: Vec<Arc<Session>> = Vec::new();
    let mut last = BTreeMap::new();
    while !done.load(Ordering::SeqCst) {
        for id in ids.iter().copied() {
            let session = world.session(id);
            let entries = world.store.journal(id, session.revision, 1).unwrap();
            assert_eq!(entries[0].revision, session.revision, "a state and no entry for it");
            let before = last.insert(id, session.revision).unwrap_or(0);
            assert!(before <= session.revision, "{id} went back");
            if before < session.revision {
                seen.push(session);
            }
        }
    }
    seen
}

/// Sessions are counted by their states, with the time of the one that was in each the longest, and
/// deadlines that have passed.
pub(super) fn a_tally_counts_what_is_there<S: Store>(world: World<S>) {
    let tally = || world.store.tally(world.environment.now()).wait().unwrap();
    assert_eq!(tally(), Tally::default());
    let [first, second, third] = [0, 1, 2].map(|_| world.create());
    let created = world.session(first).at;
    world.environment.advance(Duration::from_secs(60));
    world.done(suspend_until(second, &json!({"timeout": {"durationMinutes": 1}})));
    let suspended = world.session(second).at;
    world.environment.advance(Duration::from_secs(30));
    world.done(suspend(third));
    let counted = tally();
    let states: Vec<_> = counted.states.iter().map(|(name, all)| (*name, *all)).collect();
    let idle = Standing { count: 1, oldest: created };
    let parked = Standing { count: 2, oldest: suspended };
    assert_eq!(states, [("idle", idle), ("suspended", parked)]);
    assert_eq!((counted.overdue, counted.overdue_since), (0, None));
    world.environment.advance(Duration::from_secs(31));
    let due = world.session(second).due();
    assert_eq!((tally().overdue, tally().overdue_since), (1, due));
    world.expire(10);
    world.done(close(first));
    let counted = tally();
    assert_eq!(counted.overdue, 0);
    let counts: Vec<_> = counted.states.iter().map(|(name, all)| (*name, all.count)).collect();
    assert_eq!(counts, [("ended", 1), ("idle", 1), ("suspended", 1)]);
}
