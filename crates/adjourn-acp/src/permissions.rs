//! What the sessions that this process drives ask of clients, and the clients that can answer.
//!
//! The host adds a request and waits for its answer; a connection reads the requests of the
//! sessions that its client sees, and answers them. Every client that sees a session is asked for
//! permissions. When and in which words is decided in `request_permission.rs`, by what the client
//! has been told. Anything else is asked of one client that can do it; `client_requests.rs` has the
//! words.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn::Showing;
use adjourn::core::id::{HostId, SessionId};
use adjourn::driver::{
    BoxFuture, ClientAbilities, ClientError, ClientReply, ClientRequest, PermissionAnswer,
    PermissionRequest, TerminalId,
};
use adjourn::permission::Permissions;
use tokio::sync::{Notify, oneshot};

use crate::client_requests::{self, ClientAnswer};

/// The open requests of a process, which all its connections share with its host.
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
    /// What single clients are asked for, besides permissions.
    asked: BTreeMap<u64, Asked>,
    /// The clients that see each session, those first that came first.
    viewers: HashMap<SessionId, Vec<Registered>>,
}

#[derive(Debug)]
struct Request {
    asks: PermissionRequest,
    answer: oneshot::Sender<PermissionAnswer>,
}

/// A request to one client.
#[derive(Debug)]
struct Asked {
    session: SessionId,
    /// The number of the client that is asked.
    viewer: u64,
    request: ClientRequest,
    answer: oneshot::Sender<ClientAnswer>,
}

/// A client that sees a session.
#[derive(Debug)]
struct Registered {
    number: u64,
    name: ViewerName,
    abilities: ClientAbilities,
    /// Tells it that a request comes or goes.
    changed: Arc<Notify>,
}

/// A client that sees a session, as the transcript names it: no other process has one of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ViewerName(pub(crate) String);

/// A client that sees a session, until this is dropped.
#[derive(Debug)]
pub(crate) struct Viewer {
    permissions: PendingPermissions,
    session: SessionId,
    number: u64,
    name: ViewerName,
    changed: Arc<Notify>,
    /// Tells other hosts, as long as it is held, that the session is shown here.
    _showing: Showing,
}

/// A request for permission that is open until this is dropped.
struct Open {
    permissions: PendingPermissions,
    number: u64,
}

/// A driver that waits for the reply to another request, which is open until this is dropped.
struct Waiting {
    permissions: PendingPermissions,
    session: SessionId,
    number: u64,
    answered: oneshot::Receiver<ClientAnswer>,
}

impl PendingPermissions {
    /// Registers a client that sees a session, and what it can be asked for besides permissions.
    pub(crate) fn attend(
        &self,
        session: SessionId,
        host: HostId,
        showing: Showing,
        abilities: ClientAbilities,
    ) -> Viewer {
        let changed = Arc::<Notify>::default();
        // What is asked already is for this client, too.
        changed.notify_one();
        let mut book = self.book();
        let number = book.number();
        let name = ViewerName(format!("{host}.{number}"));
        let registered =
            Registered { number, name: name.clone(), abilities, changed: Arc::clone(&changed) };
        book.viewers.entry(session).or_default().push(registered);
        drop(book);
        Viewer { permissions: self.clone(), session, number, name, changed, _showing: showing }
    }

    /// Returns what is asked of a session, the oldest first.
    pub(crate) fn open(&self, session: SessionId) -> Vec<(u64, PermissionRequest)> {
        let book = self.book();
        let own = book.open.iter().filter(|(_, request)| request.asks.session == session);
        own.map(|(number, request)| (*number, request.asks.clone())).collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing that is done with it can leave it half done.
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, request: Request) -> Open {
        let mut book = self.book();
        let number = book.number();
        book.tell_viewers(request.asks.session);
        book.open.insert(number, request);
        drop(book);
        Open { permissions: self.clone(), number }
    }

    /// Adds a request to the first client that can do what is asked for, and returns its number.
    fn put_asked(
        &self,
        session: SessionId,
        request: ClientRequest,
        answer: oneshot::Sender<ClientAnswer>,
    ) -> Result<u64, ClientError> {
        let mut book = self.book();
        let viewers = book.viewers.get(&session).map(Vec::as_slice).unwrap_or_default();
        let (viewer, request) = match client_requests::owner(&request)? {
            // A terminal is known to the client that made it, and to no other.
            Some((owner, request)) => {
                let maker = viewers.iter().find(|viewer| viewer.name == owner);
                (maker.ok_or(ClientError::Gone)?.number, request)
            }
            None => {
                let can = |viewer: &&Registered| client_requests::can(&viewer.abilities, &request);
                let first = viewers.iter().find(can).ok_or(ClientError::NotSupported)?;
                (first.number, request)
            }
        };
        let number = book.number();
        book.asked.insert(number, Asked { session, viewer, request, answer });
        book.tell_viewers(session);
        Ok(number)
    }

    /// Asks the client that made a terminal to let go of it. Nothing waits for the reply.
    fn release(&self, session: SessionId, terminal: TerminalId) {
        let (answer, _) = oneshot::channel();
        // It is in the book until the client has replied. One that has gone has no terminal either.
        let _ = self.put_asked(session, ClientRequest::ReleaseTerminal(terminal), answer);
    }

    fn close_asked(&self, number: u64) -> Option<Asked> {
        let mut book = self.book();
        let asked = book.asked.remove(&number)?;
        book.tell_viewers(asked.session);
        Some(asked)
    }

    fn close(&self, number: u64) -> Option<Request> {
        let mut book = self.book();
        let request = book.open.remove(&number)?;
        book.tell_viewers(request.asks.session);
        Some(request)
    }
}

impl Book {
    /// Returns a number that is not used twice.
    const fn number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    fn tell_viewers(&self, session: SessionId) {
        for viewer in self.viewers.get(&session).into_iter().flatten() {
            viewer.changed.notify_one();
        }
    }
}

impl Permissions for PendingPermissions {
    fn ask(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        let permissions = self.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let _open = permissions.put(Request { asks: request, answer });
            // `Viewer::answer` removes the request and sends the answer.
            answered.await.unwrap_or(PermissionAnswer::Gone)
        })
    }

    fn is_attended(&self, session: SessionId) -> bool {
        self.book().viewers.contains_key(&session)
    }

    fn abilities(&self, session: SessionId) -> ClientAbilities {
        let book = self.book();
        let viewers = book.viewers.get(&session).into_iter().flatten();
        viewers.fold(ClientAbilities::default(), |all, viewer| ClientAbilities {
            read_files: all.read_files || viewer.abilities.read_files,
            write_files: all.write_files || viewer.abilities.write_files,
            terminals: all.terminals || viewer.abilities.terminals,
            forms: all.forms || viewer.abilities.forms,
        })
    }

    fn request(
        &self,
        session: SessionId,
        request: ClientRequest,
    ) -> BoxFuture<'static, Result<ClientReply, ClientError>> {
        let permissions = self.clone();
        Box::pin(async move {
            let (answer, answered) = oneshot::channel();
            let number = permissions.put_asked(session, request, answer)?;
            let mut waiting = Waiting { permissions, session, number, answered };
            // The client's going drops the other end.
            (&mut waiting.answered).await.unwrap_or(Err(ClientError::Gone))
        })
    }
}

impl Viewer {
    /// Returns the name of this client.
    pub(crate) const fn name(&self) -> &ViewerName {
        &self.name
    }

    /// Returns what is asked of this session, the oldest first.
    pub(crate) fn open(&self) -> Vec<(u64, PermissionRequest)> {
        self.permissions.open(self.session)
    }

    /// Returns what this client is asked for besides permissions, the oldest first.
    pub(crate) fn asked(&self) -> Vec<(u64, ClientRequest)> {
        let book = self.permissions.book();
        let own = book.asked.iter().filter(|(_, asked)| asked.viewer == self.number);
        own.map(|(number, asked)| (*number, asked.request.clone())).collect()
    }

    /// Replies to a request, with what `read` makes of it.
    pub(crate) fn reply(&self, number: u64, read: impl FnOnce(&ClientRequest) -> ClientAnswer) {
        if let Some(Asked { request, answer, .. }) = self.permissions.close_asked(number) {
            let reply = client_requests::owned(&self.name, read(&request));
            // The driver may have stopped waiting in this moment.
            let _ = answer.send(reply);
        }
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
            viewers.retain(|viewer| viewer.number != self.number);
            if viewers.is_empty() {
                book.viewers.remove(&self.session);
            }
        }
        // What only this client was asked for is not answered any more.
        book.asked.retain(|_, asked| asked.viewer != self.number);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.permissions.close(self.number);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // No reply comes behind this.
        self.permissions.close_asked(self.number);
        // One that came and was not read may name a terminal that no driver will know of.
        if let Ok(Ok(ClientReply::Terminal(terminal))) = self.answered.try_recv() {
            self.permissions.release(self.session, terminal);
        }
    }
}
