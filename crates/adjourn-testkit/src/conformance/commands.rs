//! Every command is stored as it was answered, and can be read and decided again.

use std::collections::BTreeSet;
use std::time::Duration;

use adjourn_core::Command;
use adjourn_core::command::{
    AbortStep, FinishRun, Loss, Recover, Requester, RunEnd, Suspend, Wake, Withdraw,
};
use adjourn_core::event::What;
use adjourn_core::facts::{Gate, SpanLink, SpanLinks};
use adjourn_core::id::{Epoch, GateId, RequestId, SessionId};
use adjourn_core::journal::Given;
use adjourn_core::session::{Outcome, Phase};
use adjourn_core::transcript::Digest;
use adjourn_store::rows::{GateRow, Scope, SessionNo};
use adjourn_store::{CommandError, Environment as _, Error, Request, Store};
use serde_json::{Value, json};

use super::moves::{
    HOST, Turn, ann, another_host, cancel, claim, close, driver, handle, policy, prompt,
    prompt_with, resume, suspend, words,
};
use super::world::World;

/// The names of all commands that a session can be given.
const ALL: [&str; 23] = [
    "abandon",
    "abort_step",
    "ask",
    "ask_calls",
    "await",
    "cancel",
    "claim",
    "close",
    "deliver",
    "dispatch",
    "drain",
    "expire",
    "finish_run",
    "finish_step",
    "prompt",
    "recover",
    "release_gate",
    "resume",
    "return_calls",
    "start_step",
    "suspend",
    "wake",
    "withdraw",
];

/// Whatever a session is told, it is read back as it was answered, and its journal agrees.
pub(super) fn every_command_is_stored_as_it_is_answered<S: Store>(world: World<S>) {
    let mut given = BTreeSet::new();
    for session in [steps_and_calls(&world), parks_and_wakes(&world), stops(&world)] {
        world.agree(session);
        for entry in world.journal(session) {
            match entry.decision().unwrap().map(|decision| decision.given) {
                Some(Given::Command(command)) => given.insert(command.name()),
                Some(Given::Creation) | None => false,
            };
        }
    }
    assert_eq!(Vec::from_iter(given), ALL);
}

/// A run of three steps with calls, and another that ends at once.
fn steps_and_calls<S: Store>(world: &World<S>) -> SessionId {
    let id = world.create();
    world.done(prompt(id, "build"));
    let turn = claimed(world, id);
    world.done(turn.step(&["a note", "and another"]));
    world.done(turn.asks_calls(&["a", "b"], &["two calls"]));
    world.done(turn.dispatches(&["a", "b"]));
    world.done(turn.returns(&["b"], &["b is done"]));
    world.done(turn.returns(&["a"], &["a is done"]));
    world.done(turn.finishes(&[]));
    world.done(turn.step(&[]));
    let entries = vec![Digest::of(b"half a sen")];
    let abort = AbortStep { epoch: turn.epoch, entries, ..AbortStep::default() };
    world.done(turn.gives(Command::AbortStep(abort), &["half a sen"]));
    world.done(turn.step(&[]));
    let done = world.done(turn.completes(&["built"]));
    assert_eq!(done.session.phase(), Phase::Idle);
    assert_eq!(world.agree(id).memory.ran.get("test"), 2);

    world.done(prompt(id, "and again"));
    let turn = claimed(world, id);
    let end = RunEnd { outcome: Outcome::Rejected, error: None, ends_session: true };
    let finish = FinishRun { epoch: turn.epoch, end };
    let done = world.done(turn.gives(Command::FinishRun(finish), &[]));
    assert_eq!(done.session.phase(), Phase::Ended);
    let said = [
        "build",
        "a note",
        "and another",
        "two calls",
        "b is done",
        "a is done",
        "half a sen",
        "built",
        "and again",
    ];
    assert_eq!(world.transcript(id), words(&said));
    id
}

/// Parked by its agent and by a client, and woken in every way.
fn parks_and_wakes<S: Store>(world: &World<S>) -> SessionId {
    let turn = world.turn();
    let id = turn.id;
    world.done(turn.awaits(&json!({"timeout": {"durationMinutes": 1}})));
    world.environment.advance(Duration::from_secs(60));
    world.done(Request::new(id, policy(), Command::Expire));

    let turn = stepping(world, id);
    let asked = world.done(turn.asks("which table?")).session;
    assert_eq!(asked.phase(), Phase::Asking);
    world.done(prompt_with(id, "the raw one", None, Some(handle(&asked))));

    let turn = stepping(world, id);
    world.done(turn.awaits(&json!({"onEvent": "ci.passed"})));
    world.happens("ci.passed");
    assert_eq!(world.deliver(1), [world.session(id)]);

    let turn = stepping(world, id);
    world.done(turn.awaits(&Value::Null));
    world.done(Request::new(id, policy(), Command::Wake(Wake::default())));
    world.done(suspend(id));
    let done = world.done(resume(id));
    assert_eq!((done.session.phase(), world.wakes(id)), (Phase::Ready, 5));
    id
}

/// Stopped in every way.
fn stops<S: Store>(world: &World<S>) -> SessionId {
    let turn = world.turn();
    let id = turn.id;
    let request = RequestId::new(world.environment.uuid());
    let wanted = Suspend { requester: Some(Requester::Call(request)), ..Suspend::default() };
    let pending = world.done(Request::new(id, ann(), Command::Suspend(wanted)));
    assert_eq!(pending.session.phase(), Phase::Requested);
    world.done(Request::new(id, ann(), Command::Withdraw(Withdraw { request })));
    world.done(suspend(id));
    assert_eq!(world.done(resume(id)).session.phase(), Phase::Running);

    world.done(turn.asks_calls(&["slow"], &[]));
    world.done(turn.dispatches(&["slow"]));
    world.done(cancel(id));
    world.environment.advance(Duration::from_secs(30));
    let done = world.done(turn.abandons());
    assert_eq!(done.session.last_run.as_ref().unwrap().outcome, Outcome::Canceled);

    world.done(prompt(id, "once more"));
    world.done(claimed(world, id).drains());
    let lost = claimed(world, id);
    let recover = Recover { host: HOST, epoch: lost.epoch, how: Loss::Died };
    world.done(Request::new(id, policy(), Command::Recover(recover)));

    claimed(world, id);
    let gate = GateRow {
        gate: Gate { id: GateId::new(world.environment.uuid()), reason: None, by: policy() },
        scope: Scope { session: Some(id), ..Scope::default() },
        at: world.environment.now(),
    };
    let gate_id = gate.gate.id;
    world.keep(move |tx| {
        tx.lay_gate(&gate)?;
        tx.stop(&gate, SessionNo(0), 100)?;
        tx.release_gate(gate_id)?;
        tx.let_go(gate_id, policy(), SessionNo(0), 100)
    });
    assert_eq!(world.session(id).phase(), Phase::Ready);
    world.done(close(id));
    id
}

fn claimed<S: Store>(world: &World<S>, id: SessionId) -> Turn {
    Turn { id, epoch: world.done(claim(id, HOST)).session.epoch }
}

fn stepping<S: Store>(world: &World<S>, id: SessionId) -> Turn {
    let turn = claimed(world, id);
    world.done(turn.step(&[]));
    turn
}

/// What is said must be what the command names, all of it and in order; else nothing is kept.
pub(super) fn words_that_do_not_fit_are_refused<S: Store>(world: World<S>) {
    let turn = world.turn();
    let idle = world.create();
    let said = ["one", "two"];
    for (request, given) in [
        (prompt(idle, "build"), vec!["destroy"]),
        (prompt(idle, "build"), vec![]),
        (prompt(idle, "build"), vec!["build", "build"]),
        (suspend(idle), vec!["nothing that a suspend could say"]),
        (turn.finishes(&said), vec!["one"]),
        (turn.finishes(&said), vec!["two", "one"]),
        (turn.finishes(&said), vec!["one", "two", ""]),
        (turn.finishes(&said), vec!["onetwo"]),
    ] {
        let id = request.session;
        let before = world.agree(id);
        let answer = world.send(request.saying(words(&given)));
        let unsaid = matches!(answer, Err(CommandError::Store(Error::Unsaid(_))));
        assert!(unsaid, "{given:?} {answer:?}");
        assert_eq!(world.agree(id), before, "{given:?}");
    }
    world.done(turn.finishes(&said));
    world.done(prompt(idle, "build"));
    assert_eq!(world.transcript(turn.id), words(&["build", "one", "two"]));
    // Entries are bytes: empty ones and such as are no text are kept as they are.
    let binary = vec![Vec::new(), vec![0, 159, 146, 150], vec![0]];
    let mut request = turn.step(&[]);
    let Command::StartStep(start) = &mut *request.command else { panic!("a step starts") };
    start.entries = binary.iter().map(|entry| Digest::of(entry)).collect();
    world.done(request.saying(binary.clone()));
    assert_eq!(world.store.transcript(turn.id, 3, 10).unwrap(), binary);
    world.agree(turn.id);
    world.agree(idle);
}

/// A host whose claim is over cannot write, nor can one that never had it.
pub(super) fn a_stale_claim_is_refused<S: Store>(world: World<S>) {
    let stale = world.turn();
    let id = stale.id;
    world.done(stale.drains());
    assert_eq!(world.refused(stale.step(&["a word"])).reason(), "NOT_OWNER");
    let host = another_host(&world.environment);
    let epoch = world.done(claim(id, host)).session.epoch;
    assert_eq!(epoch, Epoch(2));
    for request in [stale.step(&[]), stale.finishes(&["words"]), stale.drains()] {
        assert_eq!(world.refused(request).reason(), "NOT_OWNER");
    }
    assert_eq!(world.refused(claim(id, HOST)).reason(), "NOT_READY");
    world.done(Request { by: driver(host), ..Turn { id, epoch }.step(&[]) });
    world.agree(id);
}

/// A journal of many suspensions folds to the state, from its beginning and from any state in it.
pub(super) fn a_long_journal_folds_to_its_state<S: Store>(world: World<S>) {
    let id = world.create();
    for _ in 0..7 {
        world.keep(move |tx| {
            for _ in 0..10 {
                tx.command(suspend(id))?;
                tx.command(resume(id))?;
            }
            Ok(())
        });
        world.agree(id);
    }
    assert_eq!(world.session(id).revision, 141);
}

/// A journal without a suspension folds to the state just as well.
pub(super) fn a_long_run_folds_to_its_state<S: Store>(world: World<S>) {
    let turn = world.turn();
    for number in 0..7 {
        let said = format!("word {number}");
        world.keep(move |tx| {
            for _ in 0..10 {
                tx.command(turn.finishes(&[&said]))?;
                tx.command(turn.step(&[]))?;
            }
            Ok(())
        });
        world.agree(turn.id);
    }
    let session = world.session(turn.id);
    assert_eq!((session.revision, session.transcript.length), (144, 71));
    let suspended = world.events(turn.id).into_iter();
    assert_eq!(suspended.filter(|event| matches!(event.what, What::Suspended(_))).count(), 0);
}

/// A command for a session that is not there says so, and so does every read.
pub(super) fn a_command_for_nobody_is_not_found<S: Store>(world: World<S>) {
    world.create();
    let nobody = SessionId::new(world.environment.uuid());
    let answer = world.send(suspend(nobody));
    assert!(matches!(answer, Err(CommandError::NotFound(id)) if id == nobody), "{answer:?}");
    assert_eq!(world.store.session(nobody).unwrap(), None);
    assert!(world.store.journal(nobody, 0, 10).unwrap().is_empty());
    assert!(world.store.transcript(nobody, 0, 10).unwrap().is_empty());
    let seen = world.keep(move |tx| tx.session(nobody).map_err(CommandError::from));
    assert_eq!(seen, None);
}

/// Who gave a command, when, and in which trace, is found in the journal.
pub(super) fn who_gave_a_command_and_in_which_trace_is_kept<S: Store>(world: World<S>) {
    let id = world.create();
    world.environment.advance(Duration::from_millis(1234));
    let span = SpanLink { trace_id: "ab".repeat(16), span_id: "cd".repeat(8) };
    let mut request = suspend(id);
    let spans = SpanLinks { prior: Some(span.clone()), pipeline: Some(span) };
    request.spans = spans.clone();
    let done = world.done(request);
    assert_eq!(done.events[0].by, ann());
    let entries = world.store.journal(id, 2, 10).unwrap();
    let facts = entries[0].decision().unwrap().unwrap().facts;
    assert_eq!((facts.by, facts.spans), (ann(), spans));
    assert_eq!(
        (facts.now, entries[0].event.at),
        (world.environment.now(), world.environment.now())
    );
}
