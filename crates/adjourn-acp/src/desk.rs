//! Where permissions are asked for: the agents of this process on one side, its clients on the
//! other.
//!
//! It knows what is asked and who sees which session. When and in which words a client is asked is
//! decided in `permission.rs`, by what the client has been told.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::id::SessionId;
use adjourn_core::ledger::AskedCall;
use adjourn_host::Showing;
use adjourn_host::clock::BoxFuture;
use adjourn_host::permission::{Permission, Permissions};
use tokio::sync::{oneshot, watch};

/// A desk that all connections of a process share with its host.
#[derive(Debug, Clone, Default)]
pub struct Desk(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    book: Mutex<Book>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Book {
    /// The number of the next request; none is used twice.
    next: u64,
    open: BTreeMap<u64, Request>,
    /// How many clients see a session.
    seats: HashMap<SessionId, usize>,
}

#[derive(Debug)]
struct Request {
    session: SessionId,
    call: AskedCall,
    answer: oneshot::Sender<Permission>,
}

/// A client that sees a session; it does until this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    desk: Desk,
    session: SessionId,
    /// Held, so that other hosts know.
    _showing: Showing,
}

/// A request that is open until this is dropped.
struct Open {
    desk: Desk,
    number: u64,
}

impl Desk {
    /// Takes a seat before a session.
    pub(crate) fn sit(&self, session: SessionId, showing: Showing) -> Seat {
        *self.book().seats.entry(session).or_default() += 1;
        Seat { desk: self.clone(), session, _showing: showing }
    }

    /// Returns what is asked of a session, the oldest first.
    pub(crate) fn open(&self, session: SessionId) -> Vec<(u64, AskedCall)> {
        let book = self.book();
        let own = book.open.iter().filter(|(_, request)| request.session == session);
        own.map(|(number, request)| (*number, request.call.clone())).collect()
    }

    /// Returns what changes when a request comes or goes.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing that is done with it can leave it half done.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, request: Request) -> Open {
        let mut book = self.book();
        let number = book.next;
        book.next += 1;
        book.open.insert(number, request);
        drop(book);
        self.0.changed.send_replace(());
        Open { desk: self.clone(), number }
    }

    fn close(&self, number: u64) -> Option<Request> {
        let request = self.book().open.remove(&number)?;
        self.0.changed.send_replace(());
        Some(request)
    }
}

impl Permissions for Desk {
    fn ask(&self, session: SessionId, call: &AskedCall) -> BoxFuture<'static, Permission> {
        let (desk, call) = (self.clone(), call.clone());
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let _open = desk.put(Request { session, call, answer });
            // Whoever takes the request off the desk answers it.
            let unanswered = |_| Permission::Refused("not run: nobody answered".to_owned());
            answered.await.unwrap_or_else(unanswered)
        })
    }

    fn is_attended(&self, session: SessionId) -> bool {
        self.book().seats.contains_key(&session)
    }
}

impl Seat {
    /// Returns what is asked of this session, the oldest first.
    pub(crate) fn open(&self) -> Vec<(u64, AskedCall)> {
        self.desk.open(self.session)
    }

    /// Answers a request; the first answer counts.
    pub(crate) fn answer(&self, number: u64, permission: Permission) {
        if let Some(request) = self.desk.close(number) {
            // Whoever asked may have gone in this moment.
            let _ = request.answer.send(permission);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut book = self.desk.book();
        if let Some(seats) = book.seats.get_mut(&self.session) {
            *seats -= 1;
            if *seats == 0 {
                book.seats.remove(&self.session);
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.desk.close(self.number);
    }
}
