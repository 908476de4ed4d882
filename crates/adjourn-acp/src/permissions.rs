//! Permission requests of the sessions that this process drives, and the clients that can answer
//! them.
//!
//! The host adds a request and waits for its answer; a connection reads the requests of the
//! sessions that its client sees, and answers them. When and in which words a client is asked is
//! decided in `request_permission.rs`, by what the client has been told.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn::Showing;
use adjourn::permission::Permissions;
use adjourn_core::id::SessionId;
use adjourn_driver::{BoxFuture, CallContent, PermissionAnswer, PermissionRequest};
use tokio::sync::{Notify, oneshot};

/// The open permission requests of a process, which all its connections share with its host.
#[derive(Debug, Clone, Default)]
pub struct PendingPermissions(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// The number of the next request; none is used twice.
    next: u64,
    open: BTreeMap<u64, Request>,
    /// The clients that see each session: how each is told that a request comes or goes.
    viewers: HashMap<SessionId, Vec<Arc<Notify>>>,
}

#[derive(Debug)]
struct Request {
    session: SessionId,
    call: CallContent,
    answer: oneshot::Sender<PermissionAnswer>,
}

/// A client that sees a session, until this is dropped.
#[derive(Debug)]
pub(crate) struct Viewer {
    permissions: PendingPermissions,
    session: SessionId,
    changed: Arc<Notify>,
    /// Tells other hosts, as long as it is held, that the session is shown here.
    _showing: Showing,
}

/// A request that is open until this is dropped.
struct Open {
    permissions: PendingPermissions,
    number: u64,
}

impl PendingPermissions {
    /// Registers a client that sees a session.
    pub(crate) fn attend(&self, session: SessionId, showing: Showing) -> Viewer {
        let changed = Arc::<Notify>::default();
        // What is asked already is for this client, too.
        changed.notify_one();
        self.book().viewers.entry(session).or_default().push(Arc::clone(&changed));
        Viewer { permissions: self.clone(), session, changed, _showing: showing }
    }

    /// Returns what is asked of a session, the oldest first.
    pub(crate) fn open(&self, session: SessionId) -> Vec<(u64, CallContent)> {
        let book = self.book();
        let own = book.open.iter().filter(|(_, request)| request.session == session);
        own.map(|(number, request)| (*number, request.call.clone())).collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing that is done with it can leave it half done.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, request: Request) -> Open {
        let mut book = self.book();
        let number = book.next;
        book.next += 1;
        book.tell_viewers(request.session);
        book.open.insert(number, request);
        drop(book);
        Open { permissions: self.clone(), number }
    }

    fn close(&self, number: u64) -> Option<Request> {
        let mut book = self.book();
        let request = book.open.remove(&number)?;
        book.tell_viewers(request.session);
        Some(request)
    }
}

impl Book {
    fn tell_viewers(&self, session: SessionId) {
        for viewer in self.viewers.get(&session).into_iter().flatten() {
            viewer.notify_one();
        }
    }
}

impl Permissions for PendingPermissions {
    fn ask(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        let PermissionRequest { session, call, .. } = request;
        let permissions = self.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let _open = permissions.put(Request { session, call, answer });
            // `Viewer::answer` removes the request and sends the answer.
            answered.await.unwrap_or(PermissionAnswer::Gone)
        })
    }

    fn is_attended(&self, session: SessionId) -> bool {
        self.book().viewers.contains_key(&session)
    }
}

impl Viewer {
    /// Returns what is asked of this session, the oldest first.
    pub(crate) fn open(&self) -> Vec<(u64, CallContent)> {
        self.permissions.open(self.session)
    }

    /// Returns what resolves when a request for this session has come or gone.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        let changed = Arc::clone(&self.changed);
        async move { changed.notified().await }
    }

    /// Answers a request; the first answer counts.
    pub(crate) fn answer(&self, number: u64, permission: PermissionAnswer) {
        if let Some(request) = self.permissions.close(number) {
            // The host may have stopped waiting in this moment.
            let _ = request.answer.send(permission);
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let mut book = self.permissions.book();
        if let Some(viewers) = book.viewers.get_mut(&self.session) {
            viewers.retain(|viewer| !Arc::ptr_eq(viewer, &self.changed));
            if viewers.is_empty() {
                book.viewers.remove(&self.session);
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.permissions.close(self.number);
    }
}
