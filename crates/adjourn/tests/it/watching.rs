//! Watching a session where something cannot be read: in its transcript for ever, or of its journal
//! for a while.

use adjourn::clock::Machine;
use adjourn::watch::Watcher;
use adjourn::{Error, Moment, SessionRef};
use adjourn_core::Command;
use adjourn_core::actor::{Actor, Face};
use adjourn_core::command::StartStep;
use adjourn_core::id::{Epoch, HostId, SessionId};
use adjourn_core::transcript::Digest;
use adjourn_driver::Message;
use adjourn_store::{CommandError, Environment as _, Request, Store as _, Transaction};

use crate::dropping::touch;
use crate::fixture::{Fixture, ann};

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

/// Pauses and resumes a session so often that its journal takes several pages.
fn make_long(fixture: &Fixture, id: SessionId, pauses: usize) {
    let again = move |tx: &mut Transaction<'_>| {
        for _ in 0..pauses {
            for command in
                [Command::Suspend(Default::default()), Command::Resume(Default::default())]
            {
                tx.command(Request::new(id, ann(), command))?;
            }
        }
        Ok::<_, CommandError>(())
    };
    fixture.store.transact(again).wait().unwrap();
}

/// A journal with an entry that cannot be read for a while, as on a disk that fails.
struct Unreadable {
    connection: rusqlite::Connection,
    no: i64,
    body: Vec<u8>,
}

impl Unreadable {
    /// Makes the entry that lies behind so many others unreadable.
    fn behind(fixture: &Fixture, others: usize) -> Self {
        let connection = rusqlite::Connection::open(fixture.store.path()).unwrap();
        let find = "SELECT no, body FROM journal ORDER BY no LIMIT 1 OFFSET ?1";
        let (no, body) = connection
            .query_row(find, [i64::try_from(others).unwrap()], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        let unreadable = Self { connection, no, body };
        unreadable.write(b"\x11");
        unreadable
    }

    fn mend(self) {
        self.write(&self.body);
    }

    fn write(&self, body: &[u8]) {
        let write = "UPDATE journal SET body = ?1 WHERE no = ?2";
        assert_eq!(self.connection.execute(write, (body, self.no)).unwrap(), 1);
    }
}

/// Returns a session with a journal of several pages, and the revision it is at.
fn long(fixture: &Fixture) -> (SessionRef, u64) {
    let session = fixture.adjourn().session(fixture.create(r#"{"steps": [{"say": "x"}]}"#));
    make_long(fixture, session.id(), 300);
    let last = fixture.session(session.id()).revision;
    assert!(last > 600, "{last}");
    (session, last)
}

fn revisions(moments: &[Moment]) -> Vec<u64> {
    moments.iter().map(|moment| moment.revision).collect()
}

#[tokio::test]
async fn a_read_that_fails_skips_no_moment() {
    let fixture = Fixture::new();
    let (session, last) = long(&fixture);
    let mut moments = session.watch().await.unwrap();
    let broken = Unreadable::behind(&fixture, 400);
    let mut told = Vec::new();
    let error = loop {
        match moments.next().await {
            Ok(moment) => told.extend(moment),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Store(_)), "{error:?}");
    assert!(told.len() < 400, "the page that cannot be read is not told");
    assert!(moments.next().await.is_err(), "it cannot be read yet");
    broken.mend();
    while told.len() < usize::try_from(last).unwrap() {
        told.extend(moments.next().await.unwrap());
    }
    assert_eq!(revisions(&told), (1..=last).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_rest_that_fails_leaves_all_of_it_to_the_next() {
    let fixture = Fixture::new();
    let (session, last) = long(&fixture);
    let mut moments = session.watch().await.unwrap();
    let first = moments.next().await.unwrap().unwrap();
    assert_eq!(first.revision, 1);
    let broken = Unreadable::behind(&fixture, 550);
    moments.rest().await.unwrap_err();
    assert_eq!(moments.next_revision(), 2, "pages before the one that failed are told, too");
    broken.mend();
    let rest = moments.rest().await.unwrap();
    assert_eq!(revisions(&rest), (2..=last).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_rest_that_is_dropped_leaves_all_of_it_to_the_next() {
    let fixture = Fixture::new();
    let (session, _) = long(&fixture);
    // Where so long a journal lies is found by another thread, and waited for.
    make_long(&fixture, session.id(), 300);
    let last = fixture.session(session.id()).revision;
    let mut moments = session.watch().await.unwrap();
    touch(moments.rest());
    touch(moments.page());
    let rest = moments.rest().await.unwrap();
    assert_eq!(revisions(&rest), (1..=last).collect::<Vec<_>>());
}

/// Where a long journal lies is found by another thread. What that finds is of no use once all was
/// told by another way.
#[tokio::test]
async fn what_is_looked_for_when_all_of_it_is_told_is_not_told_again() {
    let fixture = Fixture::new();
    let (session, before) = long(&fixture);
    make_long(&fixture, session.id(), 300);
    let mut moments = session.watch().await.unwrap();
    touch(moments.next());
    let rest = moments.rest().await.unwrap();
    let last = rest.last().unwrap().revision;
    assert!(last > before);
    session.suspend().await.unwrap();
    assert_eq!(moments.next().await.unwrap().unwrap().revision, last + 1);
}
