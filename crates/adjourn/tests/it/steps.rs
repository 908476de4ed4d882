//! What a host does for every driver, whatever that listens to.

use std::sync::Arc;

use adjourn_core::command::{Mode, Suspend};
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::ledger::CallId;
use adjourn_driver::{
    BoxStream, Call, CallContent, CallPart, Driver, Drivers, Finish, Message, Part, RequestedCall,
    Step, Words, emitting,
};
use rusqlite::Connection;

use crate::fixture::Fixture;
use crate::points::within;
use crate::spoken::spoken;

/// A driver whose only step is a function of what it is given.
#[derive(Clone, Copy)]
struct Stepping(fn(Step) -> BoxStream<'static, Part>);

impl Drivers for Stepping {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(*self))
    }
}

impl Driver for Stepping {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        (self.0)(step)
    }
}

fn spec() -> DriverSpec {
    let kind = DriverKind::Named { name: "stepping".to_owned(), config: serde_json::Value::Null };
    DriverSpec { kind, ..DriverSpec::script("") }
}

/// Says something, and then nothing for ever.
fn hangs(_: Step) -> BoxStream<'static, Part> {
    emitting(|out| async move {
        let text = "so far".to_owned();
        out.emit(Part::Delta { message: 0, words: Words::Said, text }).await;
        std::future::pending::<()>().await;
    })
}

#[tokio::test]
async fn a_model_call_is_dropped_at_once_and_its_words_are_kept() {
    let fixture = Fixture::new();
    let host = fixture.host_with(Arc::new(Stepping(hangs))).await;
    let id = fixture.create_with(spec());
    let mut live = host.claimant.live().watch(id);
    fixture.prompt(id, "go");
    assert_eq!(within(live.recv()).await.unwrap().text, "so far");
    let mode = Mode::InterruptImmediate;
    fixture.suspend(id, Suspend { mode, ..Suspend::default() });
    // No time passes: the clock is ours.
    fixture.until_state(id, "suspended").await;
    assert_eq!(spoken(&fixture.said(id)), [("so far".to_owned(), false)]);
    host.stop().await;
}

#[tokio::test]
async fn a_run_whose_steps_leave_nothing_behind_fails() {
    let silent = |_: Step| {
        emitting(|out| async move {
            let model_silent = true;
            out.emit(Part::Finished(Finish { model_silent, ..Finish::default() })).await;
        })
    };
    for steps in [Stepping(|_| emitting(|_| async {})), Stepping(silent)] {
        let fixture = Fixture::new();
        let host = fixture.host_with(Arc::new(steps)).await;
        let id = fixture.create_with(spec());
        fixture.prompt(id, "go");
        let session = fixture.until_state(id, "idle").await;
        let last = session.last_run.as_ref().unwrap();
        assert_eq!(last.outcome.as_str(), "failed");
        let why = last.error.as_deref().unwrap();
        assert!(why.contains("neither said nor did anything in 3 steps"), "{why}");
        host.stop().await;
    }
}

/// Asks for a call that hangs, if that was said when its session was created.
struct Calling(bool);

struct Callers;

impl Drivers for Callers {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(Calling(spec.cwd.is_some())))
    }
}

impl Driver for Calling {
    fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
        let calls = self.0;
        emitting(move |out| async move {
            if calls {
                let content = CallContent::new(CallId::from("c1"), "build");
                let call = RequestedCall { idempotent: true, ..RequestedCall::new(content) };
                out.emit(Part::Calls(vec![call])).await;
                return out.emit(Part::Finished(Finish::default())).await;
            }
            out.emit(Part::Message(Message::agent("done"))).await;
            out.emit(Part::Finished(Finish::completed())).await;
        })
    }

    fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
        emitting(|_| std::future::pending())
    }
}

#[tokio::test]
async fn a_transcript_that_cannot_be_read_stops_its_session_and_no_other() {
    let fixture = Fixture::new();
    let first = fixture.host_with(Arc::new(Callers)).await;
    let id = fixture.create_with(DriverSpec { cwd: Some("/".to_owned()), ..spec() });
    fixture.prompt(id, "go");
    fixture.until_in_flight(id, "build").await;
    first.kill().await;
    // As one that a newer program has written.
    let file = Connection::open(fixture.store.path()).unwrap();
    file.execute("UPDATE recent SET body = ?1", [br#"{"v":99}"#.as_slice()]).unwrap();

    let host = fixture.host_with(Arc::new(Callers)).await;
    fixture.until(id, "claimed", |session| session.epoch.0 == 2).await;
    let stays = fixture.until_state(id, "ready").await;
    for _ in 0..3 {
        let other = fixture.create_with(spec());
        fixture.prompt(other, "go");
        fixture.until_state(other, "idle").await;
    }
    assert_eq!(fixture.session(id).epoch, stays.epoch, "it is not claimed again and again");
    host.stop().await;
}
