//! Watching a session whose transcript has something in it that this program cannot read.

use adjourn::clock::Machine;
use adjourn::watch::Watcher;
use adjourn_core::Command;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::StartStep;
use adjourn_core::id::{Epoch, HostId};
use adjourn_core::transcript::Digest;
use adjourn_driver::Message;
use adjourn_store::{Environment as _, Request, Store as _};

use crate::fixture::Fixture;

#[test]
fn words_that_cannot_be_read_leave_the_others_their_numbers() {
    let fixture = Fixture::new();
    let id = fixture.create(r#"{"steps": [{"say": "x"}]}"#);
    fixture.prompt(id, "go");
    // A host of another make tells the model three things, one of them in words of its own.
    let by = Actor::new(Face::Agent, "").on(HostId::new(Machine.uuid())).for_session(id);
    let said = vec![
        Message::host("a").encode(),
        b"in words of its own".to_vec(),
        Message::host("b").encode(),
    ];
    let entries = said.iter().map(|said| Digest::of(said)).collect();
    let start = Command::StartStep(StartStep { epoch: Epoch(1), entries });
    let claim = Request::new(id, by.clone(), Command::Claim);
    let start = Request::new(id, by, start).saying(said);
    let both = fixture.store.transact(move |tx| tx.command(claim).and_then(|_| tx.command(start)));
    both.wait().unwrap();

    let moments = Watcher::from_start(fixture.store.clone(), id).rest().unwrap();
    let said: Vec<_> = moments.into_iter().flat_map(|moment| moment.said).collect();
    assert_eq!(said, [(0, Message::user("go")), (1, Message::host("a")), (3, Message::host("b"))]);
}
