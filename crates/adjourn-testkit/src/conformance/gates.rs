//! A gate stops what runs in its scope, lets nothing start, and releases what it alone had stopped.

use std::collections::BTreeMap;

use adjourn_core::Command;
use adjourn_core::Rejected;
use adjourn_core::facts::Gate;
use adjourn_core::id::{GateId, SessionId};
use adjourn_core::session::{Cause, Phase};
use adjourn_store::rows::{GateRow, Scope, SessionNo};
use adjourn_store::{Environment as _, Request, Store};
use serde_json::{Value, json};

use super::moves::{HOST, Turn, ann, claim, policy, prompt, resume, suspend};
use super::world::{TENANT, World};

fn gate<S: Store>(world: &World<S>, scope: Scope) -> GateRow {
    let gate = Gate {
        id: GateId::new(world.environment.uuid()),
        reason: Some("smoke".to_owned()),
        by: policy(),
    };
    GateRow { gate, scope, at: world.environment.now() }
}

fn of_tenant(tenant: &str) -> Scope {
    Scope { tenant: Some(tenant.to_owned()), ..Scope::default() }
}

/// Lays a gate, and stops what is under way, two sessions at a time; returns how many pages it took.
fn lay<S: Store>(world: &World<S>, gate: &GateRow) -> usize {
    let laid = gate.clone();
    world.keep(move |tx| Ok(tx.lay_gate(&laid)?));
    let mut pages = 0;
    let mut after = Some(SessionNo(0));
    while let Some(last) = after {
        let gate = gate.clone();
        after = world.keep(move |tx| tx.stop(&gate, last, 2));
        assert!(after.is_none_or(|next| next > last));
        pages += 1;
    }
    pages
}

/// Takes a gate away, and lets go what it stopped, two sessions at a time.
fn release<S: Store>(world: &World<S>, gate: GateId) {
    assert!(world.keep(move |tx| Ok(tx.release_gate(gate)?)));
    let mut after = Some(SessionNo(0));
    while let Some(last) = after {
        after = world.keep(move |tx| tx.let_go(gate, policy(), last, 2));
        assert!(after.is_none_or(|next| next > last));
    }
    assert!(!world.keep(move |tx| Ok(tx.release_gate(gate)?)));
}

/// Creates sessions that a host runs and that are between two steps.
fn running<S: Store>(world: &World<S>, count: usize) -> Vec<SessionId> {
    let ids = world.create_many(count);
    let each = ids.clone();
    world.keep(move |tx| each.into_iter().try_for_each(|id| Turn::claimed(tx, id).map(drop)));
    ids
}

fn phase<S: Store>(world: &World<S>, id: SessionId) -> Phase {
    world.agree(id).phase()
}

/// What runs in the scope is suspended, page by page; what does not run is left as it is.
pub(super) fn a_gate_stops_what_runs_in_its_scope<S: Store>(world: World<S>) {
    let ids = running(&world, 5);
    let (idle, ready) = (world.create(), world.create());
    world.done(prompt(ready, "build"));
    let busy = world.turn();
    let stranger = world.turns_of(&["another"])[0];
    let parked = world.turn();
    world.done(parked.awaits(&Value::Null));
    let left = [idle, ready, stranger.id, parked.id].map(|id| world.session(id));

    // Of the six that run in the scope it looks at two at a time.
    let gate = gate(&world, of_tenant(TENANT));
    assert!(lay(&world, &gate) >= 3);
    for id in ids {
        let session = world.agree(id);
        let pause = &session.suspended().expect("it was stopped").park.pause;
        assert_eq!((pause.reason.as_deref(), &pause.by), (Some("smoke"), &policy()));
    }
    // A model call in flight has to come back before the session rests.
    assert_eq!(phase(&world, busy.id), Phase::Requested);
    world.done(busy.finishes(&[]));
    assert_eq!(phase(&world, busy.id), Phase::Suspended);
    assert_eq!([idle, ready, stranger.id, parked.id].map(|id| world.agree(id)), left);
    // Going through them again changes nothing.
    let entries = world.store.size().unwrap().entries;
    world.keep(move |tx| tx.stop(&gate, SessionNo(0), 100));
    assert_eq!(world.store.size().unwrap().entries, entries);
}

/// Claiming, starting a step, dispatching a call and resuming are refused and say by what; what
/// fires becomes ready and stays so.
pub(super) fn nothing_starts_under_a_gate<S: Store>(world: World<S>) {
    let ready = world.create();
    world.done(prompt(ready, "build"));
    let parked = world.create();
    world.done(suspend(parked));
    let between = world.turn();
    world.done(between.finishes(&[]));
    let calling = world.turn();
    world.done(calling.asks_calls(&["a"], &[]));
    let waiting = world.turn();
    world.done(waiting.awaits(&json!({"onEvent": "ci.passed"})));

    let gate = gate(&world, Scope::default());
    let id = gate.gate.id;
    world.keep({
        let gate = gate.clone();
        move |tx| Ok(tx.lay_gate(&gate)?)
    });
    let gated = |request: Request| match world.refused(request) {
        Rejected::Gated { gate, by, reason } => {
            assert_eq!((gate, by, reason.as_deref()), (id, policy(), Some("smoke")));
        }
        other => panic!("{other}"),
    };
    gated(claim(ready, HOST));
    gated(resume(parked));
    gated(between.step(&[]));
    gated(calling.dispatches(&["a"]));
    world.happens("ci.passed");
    assert_eq!(world.deliver(10), [world.session(waiting.id)]);
    assert_eq!(phase(&world, waiting.id), Phase::Ready);
    gated(claim(waiting.id, HOST));

    release(&world, id);
    world.done(claim(ready, HOST));
    world.done(resume(parked));
    world.done(between.step(&[]));
    world.done(calling.dispatches(&["a"]));
    world.done(claim(waiting.id, HOST));
}

/// A release resumes exactly the suspensions that only this gate asked for.
pub(super) fn only_what_the_gate_alone_stopped_goes_on<S: Store>(world: World<S>) {
    let ids = running(&world, 4);
    let (before, joined) = (ids[0], ids[1]);
    world.done(suspend(before));
    let gate = gate(&world, of_tenant(TENANT));
    lay(&world, &gate);
    // A client who wants the same pause keeps it when the gate goes.
    world.done(suspend(joined));
    // Under the gate nobody can resume, also not whoever joined.
    assert_eq!(world.refused(resume(joined)).reason(), "GATED");
    release(&world, gate.gate.id);
    for id in [before, joined] {
        assert_eq!((phase(&world, id), world.wakes(id)), (Phase::Suspended, 0));
    }
    for id in [ids[2], ids[3]] {
        let session = world.agree(id);
        assert_eq!((session.phase(), world.wakes(id)), (Phase::Ready, 1));
        assert_eq!(session.woke.as_ref().unwrap().cause, Cause::ExternalEvent);
    }
    world.done(resume(joined));
    world.done(resume(before));
}

/// A gate is laid over a tenant, over what bears all of its labels, or over one session.
pub(super) fn a_scope_is_a_tenant_labels_or_a_session<S: Store>(world: World<S>) {
    let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let create = |tenant: &str, pairs: &[(&str, &str)]| {
        let mut founding = world.founding(tenant);
        founding.labels = labels(pairs);
        world.keep(move |tx| {
            let id = tx.create(ann(), founding)?.session.id;
            tx.command(prompt(id, "build"))?;
            Ok(id)
        })
    };
    let plain = create(TENANT, &[]);
    let foreign = create("another", &[("team", "red")]);
    let red = create(TENANT, &[("team", "red")]);
    let both = create(TENANT, &[("team", "red"), ("stage", "test")]);
    let blue = create(TENANT, &[("team", "blue"), ("stage", "test")]);
    let all = [plain, foreign, red, both, blue];
    let red_labels = labels(&[("team", "red")]);
    let both_labels = labels(&[("team", "red"), ("stage", "test")]);
    for (scope, expected) in [
        (Scope::default(), vec![plain, foreign, red, both, blue]),
        (of_tenant("another"), vec![foreign]),
        (of_tenant("nobody"), vec![]),
        (Scope { labels: red_labels.clone(), ..Scope::default() }, vec![foreign, red, both]),
        (Scope { labels: both_labels, ..Scope::default() }, vec![both]),
        (Scope { labels: red_labels, ..of_tenant(TENANT) }, vec![red, both]),
        (Scope { session: Some(blue), ..Scope::default() }, vec![blue]),
        (Scope { session: Some(blue), ..of_tenant("another") }, vec![]),
    ] {
        let gate = gate(&world, scope);
        lay(&world, &gate);
        let gated = |id: &SessionId| {
            let id = *id;
            // Whether it can be claimed is asked in a transaction that is undone.
            let answer = world.transact(move |tx| {
                tx.command(claim(id, HOST))?;
                tx.command(Request::new(id, ann(), Command::Claim)).map(drop)
            });
            match answer {
                Err(adjourn_store::CommandError::Rejected(refused)) => refused.reason() == "GATED",
                other => panic!("{other:?}"),
            }
        };
        let found: Vec<_> = all.into_iter().filter(gated).collect();
        assert_eq!(found, expected, "{:?}", gate.scope);
        release(&world, gate.gate.id);
    }
}

/// Where two gates overlap, what both stopped goes on when both are gone.
pub(super) fn gates_are_laid_one_over_another<S: Store>(world: World<S>) {
    let turn = world.turn();
    let wide = gate(&world, Scope::default());
    let narrow = gate(&world, of_tenant(TENANT));
    lay(&world, &wide);
    // It is stopped, and not yet at rest, so that the second gate joins.
    lay(&world, &narrow);
    world.done(turn.finishes(&[]));
    assert_eq!(phase(&world, turn.id), Phase::Suspended);
    release(&world, wide.gate.id);
    assert_eq!(phase(&world, turn.id), Phase::Suspended);
    assert_eq!(world.refused(resume(turn.id)).reason(), "GATED");
    release(&world, narrow.gate.id);
    assert_eq!(phase(&world, turn.id), Phase::Ready);
    assert_eq!(world.wakes(turn.id), 1);
}
