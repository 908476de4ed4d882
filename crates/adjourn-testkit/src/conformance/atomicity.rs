//! A transaction happens as a whole or not at all, whatever its neighbours in the commit do.

use std::panic::resume_unwind;
use std::sync::mpsc;
use std::time::Duration;

use adjourn_core::facts::Gate;
use adjourn_core::id::{GateId, RunId, Seq};
use adjourn_core::session::Phase;
use adjourn_store::rows::{GateRow, HostRow, Scope};
use adjourn_store::{
    CommandError, Done, Environment as _, Error, NewRecipient, Pending, Retention, Store,
};
use serde_json::json;

use super::moves::{
    HOST, Turn, ann, claim, handle, policy, prompt, resume, suspend, suspend_because,
    suspend_until, words,
};
use super::world::{TENANT, World, refusal};

/// Of two commands in one transaction the second is refused: neither is there.
pub(super) fn a_transaction_is_kept_or_undone_as_a_whole<S: Store>(world: World<S>) {
    let (one, two) = (world.create(), world.create());
    let answer = world.transact(move |tx| {
        tx.command(prompt(one, "build"))?;
        // The next command, of the same caller, sees the one before it.
        assert_eq!(tx.session(one)?.expect("it is there").phase(), Phase::Ready);
        tx.command(resume(two))
    });
    assert_eq!(refusal(answer).reason(), "TASK_NOT_PAUSED");
    assert_eq!(world.agree(one).phase(), Phase::Idle);
    assert_eq!(world.agree(two).revision, 1);

    world.keep(move |tx| {
        tx.command(prompt(one, "build"))?;
        tx.command(suspend(two))
    });
    assert_eq!(world.agree(one).phase(), Phase::Ready);
    assert_eq!(world.agree(two).phase(), Phase::Suspended);
}

/// Nothing that a transaction did before it was refused can be found anywhere afterwards.
pub(super) fn a_refused_transaction_leaves_no_trace<S: Store>(world: World<S>) {
    let id = world.create();
    let waiting = world.create();
    world.done(suspend_until(waiting, &json!({"onEvent": "ci.passed"})));
    world.happens("ci.passed");
    let run = RunId::new(world.environment.uuid());
    let recipient = move |name: &str| NewRecipient {
        session: id,
        run,
        kind: "push".to_owned(),
        id: name.to_owned(),
        body: Vec::new(),
        after: 0,
        is_over: false,
    };
    world.keep(move |tx| tx.add_recipient(recipient("kept"), 10));
    let size = world.store.size().unwrap();
    let before = (world.session(id), world.session(waiting));

    let founding = world.founding("another");
    let unborn = founding.id;
    let event = world.event("ci.failed", None);
    let unheard = event.clone();
    let gate = GateRow {
        gate: Gate { id: GateId::new(world.environment.uuid()), reason: None, by: policy() },
        scope: Scope::default(),
        at: world.environment.now(),
    };
    let host = HostRow { id: HOST, since: world.environment.now(), about: "{}".to_owned() };
    let answer = world.transact(move |tx| {
        tx.create(ann(), founding)?;
        tx.command(suspend_until(id, &json!({"onEvent": "ci.failed"})))?;
        tx.acknowledge(&event)?;
        assert_eq!(tx.deliver(&policy(), 10)?.changed.len(), 2);
        tx.lay_gate(&gate)?;
        tx.announce(&host)?;
        tx.remove_recipient(id, run, "push", "kept")?;
        tx.add_recipient(recipient("lost"), 10)?;
        tx.command(prompt(id, "build"))?;
        tx.command(prompt(id, "and build"))
    });
    assert_eq!(refusal(answer).reason(), "TASK_BUSY");

    assert_eq!((world.agree(id), world.agree(waiting)), before);
    assert_eq!(world.store.session(unborn).unwrap(), None);
    assert_eq!(world.store.hosts().unwrap(), []);
    let after = world.store.size().unwrap();
    assert_eq!(
        (after.sessions, after.suspended, after.entries, after.events),
        (size.sessions, size.suspended, size.entries, size.events)
    );
    let recipients = world.store.recipients(id, run, "push").unwrap();
    assert_eq!(recipients.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["kept"]);
    // The number was not used up, the subscription is not there, and delivery is where it was.
    assert_eq!(world.acknowledge(unheard), Seq(2));
    let woken: Vec<_> = world.deliver(10).iter().map(|session| session.id).collect();
    assert_eq!(woken, [waiting]);
    // The gate is not there either.
    world.done(prompt(id, "build"));
    world.done(claim(id, HOST));
}

/// A caller may take a refusal as an answer and go on: what was refused is not there, the rest is.
pub(super) fn a_refused_command_leaves_its_transaction_whole<S: Store>(world: World<S>) {
    let (id, other) = (world.create(), world.create());
    world.keep(move |tx| {
        let unsaid = tx.command(prompt(id, "build").saying(words(&["destroy"])));
        assert!(matches!(unsaid, Err(CommandError::Store(Error::Unsaid(_)))), "{unsaid:?}");
        assert_eq!(refusal(tx.command(resume(id))).reason(), "TASK_NOT_PAUSED");
        tx.command(prompt(id, "build well"))?;
        let unsaid = tx.command(prompt(other, "build").saying(Vec::new()));
        assert!(matches!(unsaid, Err(CommandError::Store(Error::Unsaid(_)))), "{unsaid:?}");
        Ok(())
    });
    assert_eq!(world.agree(id).revision, 2);
    assert_eq!(world.transcript(id), words(&["build well"]));
    assert_eq!(world.agree(other).revision, 1);
    assert_eq!(world.store.size().unwrap().entries, 3);
    world.done(prompt(other, "build"));
    world.agree(other);
}

/// Many transactions share commits. Some are refused, some panic, and each of the others is kept.
pub(super) fn a_refused_or_panicking_transaction_does_not_disturb_its_neighbours<S: Store>(
    world: World<S>,
) {
    type Answer = Pending<Done, CommandError>;
    let store = &world.store;
    let ids = world.create_many(60);
    let before = store.metrics();
    let busy = world.busy();
    let mut answers: Vec<[Answer; 4]> = Vec::new();
    for id in ids.iter().copied() {
        answers.push([
            store.transact(move |tx| {
                tx.command(suspend_because(id, "refused"))?;
                tx.command(resume(id))?;
                tx.command(resume(id))
            }),
            // Unwinds as a panic does, without the noise of one.
            store.transact(move |tx| {
                tx.command(suspend_because(id, "panicked"))?;
                resume_unwind(Box::new("a caller's mistake"))
            }),
            store.transact(move |tx| tx.command(suspend_because(id, "kept"))),
            store.transact(move |tx| {
                tx.command(suspend_because(id, "unsaid"))?;
                tx.command(prompt(id, "one thing").saying(words(&["another"])))
            }),
        ]);
    }
    drop(busy);
    for (id, [refused, panicked, kept, unsaid]) in ids.into_iter().zip(answers) {
        assert_eq!(refusal(refused.wait()).reason(), "TASK_NOT_PAUSED");
        let panicked = panicked.wait();
        assert!(matches!(panicked, Err(CommandError::Store(Error::Panicked))), "{panicked:?}");
        let unsaid = unsaid.wait();
        assert!(matches!(unsaid, Err(CommandError::Store(Error::Unsaid(_)))), "{unsaid:?}");
        let kept = kept.wait().unwrap().session;
        assert_eq!(kept.suspended().unwrap().park.pause.reason.as_deref(), Some("kept"));
        assert_eq!((kept.revision, &kept), (2, &world.agree(id)));
    }
    let after = store.metrics();
    let (commands, commits) = (after.commands - before.commands, after.commits - before.commits);
    assert_eq!(commands, 241);
    assert!(commits < commands, "{commands} commands took {commits} commits");
}

/// A transaction sees all that was done before it, in its own commit and in those before.
pub(super) fn a_transaction_sees_what_was_done_before_it<S: Store>(world: World<S>) {
    let id = world.create();
    let busy = world.busy();
    let suspended = world.submit(suspend(id));
    let seen = world.store.transact(move |tx| {
        let session = tx.session(id)?.expect("it is there");
        let done = tx.command(resume(id))?;
        Ok::<_, CommandError>((session, done.session))
    });
    drop(busy);
    let suspended = suspended.wait().unwrap().session;
    let (seen, resumed) = seen.wait().unwrap();
    assert_eq!(seen, suspended);
    assert_eq!(resumed.past[0].handle, handle(&suspended));
    assert_eq!(world.agree(id), resumed);
}

/// A second session with the id of one that is there is refused, and the first is left alone.
pub(super) fn an_id_names_one_session<S: Store>(world: World<S>) {
    let id = world.create();
    world.done(prompt(id, "build"));
    let mut founding = world.founding("another");
    founding.id = id;
    let answer = world.transact(move |tx| tx.create(ann(), founding));
    assert!(answer.is_err());
    let session = world.agree(id);
    assert_eq!((session.revision, session.tenant.as_str()), (2, TENANT));
    assert_eq!(world.store.size().unwrap().sessions, 1);
}

/// Not waiting for an answer does not undo the transaction.
pub(super) fn an_answer_that_nobody_waits_for_is_kept<S: Store>(world: World<S>) {
    let id = world.create();
    let (ran, runs) = mpsc::channel();
    drop(world.store.transact(move |tx| {
        tx.command(suspend(id))?;
        ran.send(()).expect("the case waits");
        Ok::<_, CommandError>(())
    }));
    runs.recv().expect("it runs although nobody waits");
    // A second command for the same session comes after it.
    world.done(resume(id));
    assert_eq!(world.agree(id).past.len(), 1);
}

/// Whoever closes a store still gets the answers to what was queued in it.
pub(super) fn an_answer_outlives_its_store<S: Store>(world: World<S>) {
    /// Only a store that never answers takes this long.
    const FOREVER: Duration = Duration::from_secs(30);
    let (one, two) = (world.create(), world.create());
    let World { store, environment } = world;
    let (told, answer) = mpsc::channel();
    std::thread::spawn(move || {
        let suspended = store.transact(move |tx| tx.command(suspend(one)));
        let pruned = store.transact(|tx| tx.prune(&Retention::default(), 1));
        let turn = store.transact(move |tx| Turn::begin(tx, two));
        drop(store);
        let answers = (suspended.wait(), pruned.wait(), turn.wait());
        // If nobody listens any more, it took for ever.
        let _ = told.send(answers);
    });
    let (suspended, pruned, turn) = answer.recv_timeout(FOREVER).expect("an answer");
    assert!(suspended.unwrap().session.suspended().is_some());
    assert_eq!(pruned.unwrap().sessions, 0);
    assert_eq!(turn.unwrap().id, two);
    drop(environment);
}
