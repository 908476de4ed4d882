//! Retries do no harm: an idempotency key has one effect and one answer, a message is taken once.

use adjourn_core::command::Resume;
use adjourn_core::facts::Answer;
use adjourn_core::id::RunId;
use adjourn_core::session::Phase;
use adjourn_core::transcript::Content;
use adjourn_core::{Command, Session};
use adjourn_store::{Done, Request, Store};

use super::moves::{
    ann, cancel, handle, prompt, prompt_with, resume, resume_by, resume_once, suspend, words,
};
use super::world::{World, at_once, refusal};

/// Returns what a resume was answered, the first time or again.
fn answer(done: &Done) -> Answer {
    let first = || done.events.iter().find_map(|event| event.answer()).map(|(_, answer)| answer);
    done.answered.clone().or_else(first).expect("a resume under a key has an answer")
}

/// The same resume under the same key is answered as the first time, and does nothing.
pub(super) fn a_key_has_one_effect_and_one_answer<S: Store>(world: World<S>) {
    let turn = world.turn();
    let id = turn.id;
    let asked = world.done(turn.asks("which table?")).session;
    let command = Command::Resume(Resume {
        handle: Some(handle(&asked)),
        input: Some(Content::text("the raw one")),
        idempotency_key: Some("k".to_owned()),
        ..Resume::default()
    });
    let request = Request::new(id, ann(), command).saying(words(&["the raw one"]));
    let first = world.done(request.clone());
    assert!(first.answered.is_none());
    let again = world.done(request.clone());
    assert!(again.events.is_empty());
    assert_eq!(answer(&again), answer(&first));
    // Also much later, when the session has gone on to something else.
    world.done(suspend(id));
    let later = world.done(request);
    assert_eq!((answer(&later), later.session.phase()), (answer(&first), Phase::Suspended));
    assert_eq!(world.transcript(id), words(&["build", "the raw one"]));
    assert_eq!(world.wakes(id), 1);
    world.agree(id);
}

/// A key that was used for one thing is refused for another.
pub(super) fn a_key_with_another_body_is_refused<S: Store>(world: World<S>) {
    let id = world.create();
    let first = handle(&world.done(suspend(id)).session);
    world.done(resume_once(id, first, "k"));
    let second = handle(&world.done(suspend(id)).session);
    let refused = world.refused(resume_once(id, second, "k"));
    assert_eq!(refused.reason(), "IDEMPOTENCY_KEY_REUSED");
    world.done(resume_once(id, second, "K"));
    world.agree(id);
}

/// A key that was used for one run is refused for another, and answered again for its own, which may
/// be over by then.
pub(super) fn a_key_belongs_to_its_run<S: Store>(world: World<S>) {
    let id = world.create();
    let resume = |run: Option<RunId>| {
        let resume = Resume { idempotency_key: Some("k".to_owned()), ..Resume::default() };
        Request::new(id, ann(), Command::Resume(resume)).of_run(run)
    };
    let run = |session: &Session| session.run().map(|run| run.id);
    world.done(prompt(id, "build"));
    let first = run(&world.done(suspend(id)).session);
    let woken = answer(&world.done(resume(first)));
    world.done(cancel(id));
    world.done(prompt(id, "build"));
    let second = run(&world.done(suspend(id)).session);
    assert_eq!(world.refused(resume(second)).reason(), "IDEMPOTENCY_KEY_REUSED");
    let again = world.done(resume(first));
    assert_eq!((answer(&again), again.session.phase()), (woken.clone(), Phase::Suspended));
    // One that was used while there was no run is none of a run's, either.
    let idle = world.create();
    let of = |run| Request { session: idle, ..resume(run) };
    world.done(suspend(idle));
    world.done(of(None));
    world.done(prompt(idle, "build"));
    let run_of_idle = run(&world.done(suspend(idle)).session);
    assert_eq!(world.refused(of(run_of_idle)).reason(), "IDEMPOTENCY_KEY_REUSED");
    // A resume that names no run is answered by the key alone.
    assert_eq!(answer(&world.done(resume(None))), woken);
    world.agree(id);
}

/// A resume that was refused leaves no answer under its key.
pub(super) fn a_refused_resume_leaves_its_key_free<S: Store>(world: World<S>) {
    let (id, other) = (world.create(), world.create());
    let elsewhere = handle(&world.done(suspend(other)).session);
    let here = handle(&world.done(suspend(id)).session);
    let refused = world.refused(resume_once(id, elsewhere, "k"));
    assert_eq!(refused.reason(), "SUSPENSION_HANDLE_MISMATCH");
    // Neither does one that was undone with the rest of its transaction.
    let undone = world.transact(move |tx| {
        tx.command(resume_once(id, here, "k"))?;
        tx.command(resume(id))
    });
    assert_eq!(refusal(undone).reason(), "TASK_NOT_PAUSED");
    assert!(world.done(resume_once(id, here, "k")).answered.is_none());
    world.agree(id);
}

/// The same key of another session is another key, and a message id is no key at all.
pub(super) fn a_key_belongs_to_its_session<S: Store>(world: World<S>) {
    for id in world.create_many(2) {
        world.done(prompt_with(id, "build", Some("k"), None));
        let handle = handle(&world.done(suspend(id)).session);
        assert!(world.done(resume_once(id, handle, "k")).answered.is_none());
        assert!(world.done(resume_once(id, handle, "k")).answered.is_some());
        assert_eq!(world.agree(id).phase(), Phase::Ready);
    }
}

/// A resume that took back a pending suspend is answered so again.
pub(super) fn a_withdrawal_is_answered_again<S: Store>(world: World<S>) {
    let turn = world.turn();
    let pending = world.done(suspend(turn.id)).session;
    let handle = pending.pending_pause().expect("it waits for the step").handle;
    let first = answer(&world.done(resume_once(turn.id, handle, "k")));
    assert!(matches!(first, Answer::Withdrawn { handle: given, .. } if given == handle));
    assert_eq!(answer(&world.done(resume_once(turn.id, handle, "k"))), first);
    assert_eq!(world.refused(resume_by(turn.id, handle)).reason(), "WITHDRAWN");
    world.agree(turn.id);
}

/// A message is taken once, whether it started a run or answered a question.
pub(super) fn a_message_is_taken_once<S: Store>(world: World<S>) {
    let turn = world.turn();
    let (id, other) = (turn.id, world.create());
    let question = handle(&world.done(turn.asks("which table?")).session);
    world.done(prompt_with(id, "raw", Some("m"), None));
    let again = world.refused(prompt_with(id, "raw", Some("m"), None));
    assert_eq!(again.reason(), "DUPLICATE_MESSAGE");
    let again = world.refused(prompt_with(id, "raw", Some("m"), Some(question)));
    assert_eq!(again.reason(), "DUPLICATE_MESSAGE");
    // Another session may be sent a message of the same id, and then not a second time.
    world.done(prompt_with(other, "build", Some("m"), None));
    let again = world.refused(prompt_with(other, "build", Some("m"), None));
    assert_eq!(again.reason(), "DUPLICATE_MESSAGE");
    assert_eq!(world.refused(prompt(other, "build")).reason(), "TASK_BUSY");
    world.agree(id);
    world.agree(other);
}

/// Sixteen callers with one key: one effect, and the same answer for all.
pub(super) fn a_key_raced_for_has_one_effect<S: Store>(world: World<S>) {
    let id = world.create();
    let handle = handle(&world.done(suspend(id)).session);
    let answers = at_once(16, |_| world.send(resume_once(id, handle, "k")).unwrap());
    let firsts = answers.iter().filter(|done| done.answered.is_none()).count();
    assert_eq!(firsts, 1);
    for done in &answers {
        assert_eq!(answer(done), answer(&answers[0]));
    }
    assert_eq!(world.wakes(id), 1);
    assert_eq!(world.agree(id).revision, 3);
}

/// Sixteen callers with one message: one run.
pub(super) fn a_message_raced_for_is_taken_once<S: Store>(world: World<S>) {
    let id = world.create();
    let answers = at_once(16, |_| world.send(prompt_with(id, "build", Some("m"), None)));
    let (taken, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
    assert_eq!(taken.len(), 1);
    for answer in refused {
        assert_eq!(refusal(answer).reason(), "DUPLICATE_MESSAGE");
    }
    assert_eq!(world.agree(id).revision, 2);
    assert_eq!(world.transcript(id), words(&["build"]));
}
