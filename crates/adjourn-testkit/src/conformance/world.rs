//! A store to be tried with its clock, and the ways in which a case acts on it and looks at it.

use std::sync::{Arc, Barrier, mpsc};

use adjourn_core::carry::Budget;
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::What;
use adjourn_core::id::{Seq, SessionId};
use adjourn_core::journal::Entry;
use adjourn_core::transcript::{Digest, Head};
use adjourn_core::{Event, Founding, Rejected, Session};
use adjourn_store::rows::NewEvent;
use adjourn_store::{CommandError, Done, Environment as _, Pending, Request, Store, Transaction};

use super::moves::{ann, policy};
use crate::VirtualClock;

/// Whose sessions are, where a case says nothing else.
pub(super) const TENANT: &str = "acme";

/// Entries read at a time: few, so that reading a journal turns pages.
const PAGE: usize = 7;

/// More rounds than any case needs for what is done a little at a time.
const ROUNDS: usize = 1000;

/// An empty store and its clock.
pub(super) struct World<S> {
    pub(super) store: S,
    pub(super) environment: Arc<VirtualClock>,
}

impl<S: Store> World<S> {
    /// Runs a transaction and waits for its answer.
    pub(super) fn transact<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, CommandError> + Send + 'static,
    ) -> Result<T, CommandError> {
        self.store.transact(work).wait()
    }

    /// Runs a transaction that nothing speaks against.
    pub(super) fn keep<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, CommandError> + Send + 'static,
    ) -> T {
        self.transact(work).expect("the transaction is kept")
    }

    /// Queues a command without waiting for its answer.
    pub(super) fn submit(&self, request: Request) -> Pending<Done, CommandError> {
        self.store.transact(move |tx| tx.command(request))
    }

    /// Gives a command.
    pub(super) fn send(&self, request: Request) -> Result<Done, CommandError> {
        self.submit(request).wait()
    }

    /// Gives a command that nothing speaks against, and checks that the answer is what is stored.
    pub(super) fn done(&self, request: Request) -> Done {
        let name = request.command.name();
        let done = self.send(request).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(self.session(done.session.id), done.session, "the answer to {name}");
        done
    }

    /// Gives commands that nothing speaks against, all in one transaction.
    pub(super) fn all(&self, requests: Vec<Request>) {
        self.keep(move |tx| {
            requests.into_iter().try_for_each(|request| tx.command(request).map(drop))
        });
    }

    /// Gives a command that is refused, and checks that it changed nothing.
    pub(super) fn refused(&self, request: Request) -> Rejected {
        let before = self.store.session(request.session).unwrap();
        let id = request.session;
        let refusal = refusal(self.send(request));
        assert_eq!(self.store.session(id).unwrap(), before, "after {refusal}");
        refusal
    }

    /// Describes a session that is not there yet.
    pub(super) fn founding(&self, tenant: &str) -> Founding {
        Founding {
            id: SessionId::new(self.environment.uuid()),
            tenant: tenant.to_owned(),
            labels: std::collections::BTreeMap::new(),
            parent: None,
            driver: DriverSpec::script("{}"),
            budget: Budget::default(),
            title: None,
        }
    }

    /// Creates a session.
    pub(super) fn create(&self) -> SessionId {
        let founding = self.founding(TENANT);
        self.keep(move |tx| tx.create(ann(), founding)).session.id
    }

    /// Creates sessions, all in one transaction.
    pub(super) fn create_many(&self, count: usize) -> Vec<SessionId> {
        let foundings: Vec<_> = (0..count).map(|_| self.founding(TENANT)).collect();
        self.keep(move |tx| {
            let create = |founding| Ok(tx.create(ann(), founding)?.session.id);
            foundings.into_iter().map(create).collect()
        })
    }

    /// Reads a session that is there.
    pub(super) fn session(&self, id: SessionId) -> Arc<Session> {
        self.store.session(id).unwrap().expect("the session is there")
    }

    /// Reads a whole journal, page by page.
    pub(super) fn journal(&self, id: SessionId) -> Vec<Entry> {
        let mut journal: Vec<Entry> = Vec::new();
        for _ in 0..ROUNDS {
            let next = journal.last().map_or(1, |last| last.revision + 1);
            let page = self.store.journal(id, next, PAGE).unwrap();
            assert!(page.len() <= PAGE);
            if page.is_empty() {
                return journal;
            }
            journal.extend(page);
        }
        panic!("the journal of {id} never ends");
    }

    /// Returns what happened to a session.
    pub(super) fn events(&self, id: SessionId) -> Vec<Event> {
        self.journal(id).into_iter().map(|entry| entry.event).collect()
    }

    /// Counts how often a session went on after a suspension.
    pub(super) fn wakes(&self, id: SessionId) -> usize {
        self.events(id).iter().filter(|event| matches!(event.what, What::Resumed(_))).count()
    }

    /// Reads a whole transcript, page by page.
    pub(super) fn transcript(&self, id: SessionId) -> Vec<Vec<u8>> {
        let mut said: Vec<Vec<u8>> = Vec::new();
        for _ in 0..ROUNDS {
            let page = self.store.transcript(id, said.len() as u64, PAGE).unwrap();
            assert!(page.len() <= PAGE);
            if page.is_empty() {
                return said;
            }
            said.extend(page);
        }
        panic!("the transcript of {id} never ends");
    }

    /// Checks that all there is about a session agrees: its journal is dense, folds to its state
    /// and can be decided again, the states on the way are what they lead to, and its transcript
    /// is the one they bind.
    pub(super) fn agree(&self, id: SessionId) -> Arc<Session> {
        let session = self.session(id);
        let journal = self.journal(id);
        let revisions: Vec<_> = journal.iter().map(|entry| entry.revision).collect();
        assert_eq!(revisions, (1..=session.revision).collect::<Vec<_>>());
        let events: Vec<_> = journal.iter().map(|entry| &entry.event).collect();
        assert_eq!(Session::fold(events).as_ref(), Some(&*session));

        let mut folded: Option<Session> = None;
        let mut decided: std::vec::IntoIter<Event> = Vec::new().into_iter();
        for entry in &journal {
            if let Some(again) = entry.again(folded.as_ref()).unwrap() {
                assert_eq!(decided.next(), None, "a decision of {} is cut short", session.id);
                decided = again.unwrap().into_iter();
            }
            assert_eq!(decided.next().as_ref(), Some(&entry.event), "decided again");
            match &mut folded {
                Some(folded) => folded.evolve(&entry.event),
                None => folded = Session::born(&entry.event),
            }
            if let Some(state) = entry.state().unwrap() {
                assert_eq!(Some(&state), folded.as_ref(), "the state at {}", entry.revision);
            }
        }
        assert_eq!(decided.next(), None, "the last decision of {} is cut short", session.id);

        let said: Vec<_> = self.transcript(id).iter().map(|entry| Digest::of(entry)).collect();
        assert_eq!(Head::EMPTY.with_all(&said), session.transcript);
        session
    }

    /// Describes an event that nobody has acknowledged yet.
    pub(super) fn event(&self, name: &str, subject: Option<&str>) -> NewEvent {
        NewEvent {
            id: self.environment.uuid().to_string(),
            source: "github".to_owned(),
            name: name.to_owned(),
            subject: subject.map(str::to_owned),
            time: self.environment.now(),
            tenant: TENANT.to_owned(),
            session: None,
            data: None,
        }
    }

    /// Acknowledges an event that is not there yet.
    pub(super) fn acknowledge(&self, event: NewEvent) -> Seq {
        let (seq, first) = self.keep(move |tx| tx.acknowledge(&event));
        assert!(first, "it is there already, as {seq}");
        seq
    }

    /// Acknowledges an event by its name alone.
    pub(super) fn happens(&self, name: &str) -> Seq {
        self.acknowledge(self.event(name, None))
    }

    /// Delivers all there is to deliver, at most `limit` at a time; returns what changed.
    pub(super) fn deliver(&self, limit: usize) -> Vec<Arc<Session>> {
        let mut changed = Vec::new();
        for _ in 0..ROUNDS {
            let delivered = self.keep(move |tx| tx.deliver(&policy(), limit));
            assert!(delivered.changed.len() <= limit);
            changed.extend(delivered.changed);
            if !delivered.more {
                return changed;
            }
        }
        panic!("there is always more to deliver");
    }

    /// Lets deadlines act, at most `limit`; returns what they changed.
    pub(super) fn expire(&self, limit: usize) -> Vec<Arc<Session>> {
        self.keep(move |tx| tx.expire(&policy(), limit))
    }

    /// Keeps the store busy until the result is dropped, so that what is submitted meanwhile
    /// waits, and is done together.
    pub(super) fn busy(&self) -> mpsc::Sender<()> {
        let (started, start) = mpsc::channel();
        let (release, released) = mpsc::channel();
        drop(self.store.transact(move |_| {
            started.send(()).expect("somebody waits for the start");
            // Nothing is ever sent: the other end goes away.
            let _ = released.recv();
            Ok::<_, CommandError>(())
        }));
        start.recv().expect("the transaction starts");
        release
    }
}

/// Returns why a command was refused by the lifecycle.
pub(super) fn refusal<T: std::fmt::Debug>(answer: Result<T, CommandError>) -> Rejected {
    match answer {
        Err(CommandError::Rejected(rejected)) => rejected,
        other => panic!("not refused: {other:?}"),
    }
}

/// Does something on many threads that start at the same moment.
pub(super) fn at_once<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (barrier, work) = (Barrier::new(threads), &work);
    std::thread::scope(|scope| {
        let start = |thread| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                work(thread)
            })
        };
        let running: Vec<_> = (0..threads).map(start).collect();
        running.into_iter().map(|thread| thread.join().expect("no thread fails")).collect()
    })
}
