//! The suite of promises, against SQLite.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use adjourn_core::command::{Resume, Suspend};
use adjourn_core::id::{HostId, RunId, Seq, SessionId};
use adjourn_core::journal::Entry;
use adjourn_core::time::Timestamp;
use adjourn_core::{Command, Session};
use adjourn_store::rows::{EntryNo, HostRow, Of, OpenRecipient, RecipientRow, SessionNo};
use adjourn_store::sqlite::Options;
use adjourn_store::{
    Appended, CommandError, Counted, Environment, Error, Filter, Listed, Listener, Metrics, Page,
    Pending, Query, Request, Retention, Size, Sqlite, Store, Tally, Transaction,
};
use adjourn_testkit::VirtualClock;
use adjourn_testkit::conformance::{FAMILIES, exercise_family};
use tempfile::TempDir;

use crate::fixture::{Fixture, ann, give, keys, prompt};

/// Makes a directory in memory, where the machine has such a place: the suite commits thousands of
/// times, and whether commits outlive the machine is for other tests.
fn memory() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

/// Opens one store after another in a directory, which goes away with the closure.
fn stores() -> impl FnMut(Arc<VirtualClock>) -> Sqlite {
    let directory = memory();
    let mut numbers = 0u32..;
    move |environment| {
        let number = numbers.next().unwrap();
        let path = directory.path().join(format!("store-{number}.db"));
        Sqlite::open(Options::new(path, environment, keys())).unwrap()
    }
}

macro_rules! families {
    ($($family:ident)+) => {
        $(
            #[test]
            fn $family() {
                exercise_family(stringify!($family), stores());
            }
        )+

        #[test]
        fn every_family_is_exercised() {
            assert_eq!(FAMILIES, [$(stringify!($family)),+]);
        }
    };
}

families! {
    atomicity commands answers races events wakes delivery waits deadlines gates recipients pages
    retention reads queries
}

/// One file opened twice, as two processes would: every call goes to the one that did not have the
/// last, so that each has to find what the other did.
#[derive(Clone)]
struct Twice {
    both: [Sqlite; 2],
    calls: Arc<AtomicUsize>,
}

impl Twice {
    fn next(&self) -> &Sqlite {
        &self.both[self.calls.fetch_add(1, Ordering::SeqCst) % 2]
    }
}

impl Store for Twice {
    fn transact<T, E, F>(&self, work: F) -> Pending<T, E>
    where
        F: FnOnce(&mut Transaction<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        self.next().transact(work)
    }

    fn session(&self, id: SessionId) -> Result<Option<Arc<Session>>, Error> {
        self.next().session(id)
    }

    fn sessions(&self, after: SessionNo, limit: usize) -> Result<Vec<(SessionNo, Listed)>, Error> {
        self.next().sessions(after, limit)
    }

    fn unreadable(
        &self,
        after: SessionNo,
        limit: usize,
    ) -> Result<Vec<(SessionNo, SessionId)>, Error> {
        self.next().unreadable(after, limit)
    }

    fn prunable(&self, retention: &Retention) -> Result<bool, Error> {
        self.next().prunable(retention)
    }

    fn ids_like(&self, digits: &str, limit: usize) -> Result<Vec<SessionId>, Error> {
        self.next().ids_like(digits, limit)
    }

    fn places(&self, id: SessionId, revision: u64) -> Result<Vec<EntryNo>, Error> {
        self.next().places(id, revision)
    }

    fn entries(&self, id: SessionId, places: &[EntryNo]) -> Result<Vec<Entry>, Error> {
        self.next().entries(id, places)
    }

    fn appended(&self, after: EntryNo, limit: usize) -> Result<Vec<Appended>, Error> {
        self.next().appended(after, limit)
    }

    fn last_entry(&self) -> Result<EntryNo, Error> {
        self.next().last_entry()
    }

    fn listen(&self, listener: Weak<dyn Listener>) {
        self.both.iter().for_each(|one| one.listen(listener.clone()));
    }

    fn driven_by(&self, host: HostId) -> Result<Vec<SessionId>, Error> {
        self.next().driven_by(host)
    }

    fn founding(&self, id: SessionId) -> Result<Option<Entry>, Error> {
        self.next().founding(id)
    }

    fn transcript_within(
        &self,
        id: SessionId,
        index: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<Vec<u8>>, Error> {
        self.next().transcript_within(id, index, limit, bytes)
    }

    fn event_data(&self, seq: Seq) -> Result<Option<String>, Error> {
        self.next().event_data(seq)
    }

    fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        self.next().next_due()
    }

    fn undelivered(&self) -> Result<bool, Error> {
        self.next().undelivered()
    }

    fn ready(&self, after: SessionNo, limit: usize) -> Result<Vec<(SessionNo, SessionId)>, Error> {
        self.next().ready(after, limit)
    }

    fn hosts(&self) -> Result<Vec<HostRow>, Error> {
        self.next().hosts()
    }

    fn strays(&self) -> Result<Vec<HostId>, Error> {
        self.next().strays()
    }

    fn recipients(
        &self,
        session: SessionId,
        run: RunId,
        kind: &str,
    ) -> Result<Vec<RecipientRow>, Error> {
        self.next().recipients(session, run, kind)
    }

    fn open_recipients(
        &self,
        kind: &str,
        of: Of,
        limit: usize,
    ) -> Result<Vec<OpenRecipient>, Error> {
        self.next().open_recipients(kind, of, limit)
    }

    fn tally(&self, now: Timestamp) -> Pending<Tally, Error> {
        self.next().tally(now)
    }

    fn query(&self, query: Query) -> Pending<Page, Error> {
        self.next().query(query)
    }

    fn count(&self, filter: Filter) -> Pending<Counted, Error> {
        self.next().count(filter)
    }

    fn unlisted(&self) -> Result<u64, Error> {
        self.next().unlisted()
    }

    fn follow(&self) -> Pending<bool, Error> {
        self.next().follow()
    }

    fn session_of(&self, run: RunId) -> Result<Option<SessionId>, Error> {
        self.next().session_of(run)
    }

    fn size(&self) -> Result<Size, Error> {
        self.next().size()
    }

    fn backup(&self, to: &Path) -> Result<(), Error> {
        self.next().backup(to)
    }

    fn environment(&self) -> &dyn Environment {
        self.both[0].environment()
    }

    fn metrics(&self) -> Metrics {
        let [one, two] = self.both.each_ref().map(Sqlite::metrics);
        Metrics {
            commits: one.commits + two.commits,
            commands: one.commands + two.commands,
            retries: one.retries + two.retries,
            reads: one.reads + two.reads,
        }
    }
}

#[test]
fn two_processes_are_one_store() {
    let directory = memory();
    let mut numbers = 0u32..;
    for family in FAMILIES {
        // These hold one process up and look at what comes behind it there.
        if ["atomicity", "reads"].contains(family) {
            continue;
        }
        exercise_family(family, |environment: Arc<VirtualClock>| {
            let number = numbers.next().unwrap();
            let path = directory.path().join(format!("store-{number}.db"));
            let open = || Sqlite::open(Options::new(&path, environment.clone(), keys())).unwrap();
            Twice { both: [open(), open()], calls: Arc::default() }
        });
    }
}

/// Gives a session a history: some words, more than 64 entries, and a pause at the end.
fn history(fixture: &Fixture, store: &Sqlite) -> SessionId {
    let id = fixture.create(store);
    prompt(store, id, "build").unwrap();
    store
        .transact(move |tx| {
            for _ in 0..40 {
                let suspend = Command::Suspend(Suspend::default());
                tx.command(Request::new(id, ann(), suspend))?;
                tx.command(Request::new(id, ann(), Command::Resume(Resume::default())))?;
            }
            Ok::<_, CommandError>(())
        })
        .wait()
        .unwrap();
    give(store, id, Command::Suspend(Suspend::default())).unwrap();
    id
}

/// Checks that two stores hold the same sessions.
fn same(one: &Sqlite, two: &Sqlite) {
    let all = |store: &Sqlite| -> Vec<Arc<Session>> {
        let listed = store.sessions(SessionNo(0), 100).unwrap();
        listed.into_iter().map(|(_, session)| session.unwrap()).collect()
    };
    let (ours, theirs) = (all(one), all(two));
    assert_eq!(ours, theirs);
    for session in ours {
        let id = session.id;
        assert_eq!(one.transcript(id, 0, 100).unwrap(), two.transcript(id, 0, 100).unwrap());
        let (ours, theirs) = (one.journal(id, 0, 1000).unwrap(), two.journal(id, 0, 1000).unwrap());
        assert_eq!(ours.len(), theirs.len());
        for (our, their) in ours.iter().zip(&theirs) {
            assert_eq!(our.encode().unwrap(), their.encode().unwrap());
        }
        let folded = Session::fold(theirs.iter().map(|entry| &entry.event));
        assert_eq!(folded.as_ref(), Some(&*session));
    }
}

#[test]
fn a_store_that_is_opened_again_has_what_it_had() {
    let fixture = Fixture::new();
    let store = fixture.open();
    history(&fixture, &store);
    fixture.create(&store);
    // Opened a second time, nothing is known of what was folded before.
    same(&store, &fixture.open());
    drop(store);
    fixture.open().verify(&keys().ring(), None).unwrap().unwrap();
}

#[test]
fn a_copy_is_a_store_with_the_same_sessions() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = history(&fixture, &store);
    fixture.create(&store);
    let head = store.head().unwrap();
    let path = fixture.directory.path().join("copy.db");
    store.backup(&path).unwrap();
    assert!(matches!(store.backup(&path), Err(Error::Io { .. })));

    let copy = Sqlite::open(Options::new(&path, fixture.environment.clone(), keys())).unwrap();
    same(&store, &copy);
    assert_eq!(copy.head().unwrap(), head);
    copy.verify(&keys().ring(), Some(head)).unwrap().unwrap();
    // From here on they go their own ways.
    give(&copy, id, Command::Resume(Resume::default())).unwrap();
    assert!(store.session(id).unwrap().unwrap().suspended().is_some());
    copy.verify(&keys().ring(), Some(head)).unwrap().unwrap();
}

#[test]
fn a_refused_transaction_is_in_no_commit() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let id = fixture.create(&store);
    let head = store.head().unwrap();
    give(&store, id, Command::Resume(Resume::default())).unwrap_err();
    let undone = store.transact(move |tx| {
        tx.command(Request::new(id, ann(), Command::Suspend(Suspend::default())))?;
        Err::<(), _>(CommandError::NotFound(id))
    });
    undone.wait().unwrap_err();
    assert_eq!(store.head().unwrap(), head);
    store.verify(&keys().ring(), Some(head)).unwrap().unwrap();
}

#[test]
fn what_one_process_undid_is_not_taken_for_what_another_did() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.open(), fixture.open());
    let id = fixture.create(&one);
    let undone = one.transact(move |tx| {
        tx.command(Request::new(id, ann(), Command::Suspend(Suspend::default())))?;
        Err::<(), _>(CommandError::NotFound(id))
    });
    undone.wait().unwrap_err();
    let done = prompt(&two, id, "build").unwrap();
    assert_eq!(one.session(id).unwrap().as_ref(), Some(&done.session));
    let next = give(&one, id, Command::Suspend(Suspend::default())).unwrap();
    assert_eq!(next.session.revision, done.session.revision + 1);
    assert_eq!(two.session(id).unwrap(), Some(next.session));
    two.verify(&keys().ring(), None).unwrap().unwrap();
}
