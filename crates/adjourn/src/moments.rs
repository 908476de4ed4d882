//! Watching a session: what has happened and what happens, in order.

use std::collections::VecDeque;
use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_driver::BoxFuture;
use adjourn_store::{Sqlite, Store};

use crate::error::Error;
use crate::session_ref::SessionRef;
use crate::watch::{Moment, Watcher};

/// How often it is looked whether the host of a session that is waited for still lives.
const ALIVE: Duration = Duration::from_secs(1);

/// A session that is about to be watched; see [`SessionRef::watch`]. Awaited, it is, from its
/// beginning unless another place is named.
#[must_use = "nothing happens before it is awaited"]
pub struct WatchBuilder<S: Store = Sqlite> {
    session: SessionRef<S>,
    from: From,
}

enum From {
    Start,
    Now,
    After(Box<Session>),
}

impl<S: Store> WatchBuilder<S> {
    pub(crate) const fn new(session: SessionRef<S>) -> Self {
        Self { session, from: From::Start }
    }

    /// Leaves out what has happened so far.
    pub fn from_now(mut self) -> Self {
        self.from = From::Now;
        self
    }

    /// Leaves out what led to a state of the session, as a verb or [`SessionRef::load`] returns it.
    pub fn after(mut self, session: &Session) -> Self {
        self.from = From::After(Box::new(session.clone()));
        self
    }

    async fn begin(self) -> Result<Moments<S>, Error> {
        let Self { session, from } = self;
        Ok(match from {
            From::Start => {
                session.load().await?;
                Moments::from_start(&session)
            }
            From::Now => Moments::after(&session, &*session.load().await?),
            From::After(state) => Moments::after(&session, &state),
        })
    }
}

impl<S: Store> IntoFuture for WatchBuilder<S> {
    type Output = Result<Moments<S>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.begin())
    }
}

/// What happens in a session, past and live, in order and without a gap, whichever process does it.
///
/// It reads a page at a time: a long past takes little memory.
#[must_use = "it tells nothing unless it is asked"]
pub struct Moments<S: Store = Sqlite> {
    session: SessionRef<S>,
    watcher: Watcher<S>,
    /// What was read and not handed out.
    ready: VecDeque<Moment>,
    /// Whether the session is taken from its host if that dies.
    recovers: bool,
}

impl<S: Store> Moments<S> {
    fn new(session: &SessionRef<S>, watcher: Watcher<S>) -> Self {
        let watcher = watcher.following(session.adjourn().feed());
        let (session, ready) = (session.clone(), VecDeque::new());
        Self { session, watcher, ready, recovers: false }
    }

    /// Tells everything, from the beginning; whether there is such a session shows later.
    pub fn from_start(session: &SessionRef<S>) -> Self {
        Self::new(session, Watcher::from_start(session.adjourn().store().clone(), session.id()))
    }

    /// Tells what comes after a state of the session.
    pub fn after(session: &SessionRef<S>, state: &Session) -> Self {
        Self::new(session, Watcher::after(session.adjourn().store().clone(), state))
    }

    /// Tells what comes from a revision on, and returns the session before it; nothing where that
    /// cannot be, near the beginning or beyond the end.
    ///
    /// # Errors
    /// The store fails.
    pub fn at(session: &SessionRef<S>, revision: u64) -> Result<Option<(Session, Self)>, Error> {
        let at = Watcher::at(session.adjourn().store().clone(), session.id(), revision)?;
        Ok(at.map(|(state, watcher)| (state, Self::new(session, watcher))))
    }

    /// Takes the session from its host if that dies and no host of this process would do it.
    pub(crate) const fn recovers(&mut self) {
        self.recovers = true;
    }

    /// Returns the session that it tells of.
    pub const fn id(&self) -> SessionId {
        self.session.id()
    }

    /// Returns what happens next; nothing once the session has ended, or was removed.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: the next call returns what this one would have.
    pub async fn next(&mut self) -> Result<Option<Moment>, Error> {
        loop {
            if let Some(moment) = self.ready.pop_front() {
                return Ok(Some(moment));
            }
            self.ready.extend(self.watcher.page()?);
            if self.ready.is_empty() {
                if self.is_over()? {
                    return Ok(None);
                }
                self.changed().await?;
            }
        }
    }

    /// Returns whether nothing more can come: the session was removed, or all is told of it up to
    /// its end, by whichever method, or before it was watched.
    fn is_over(&self) -> Result<bool, Error> {
        let told = |session: &Session| session.revision < self.watcher.next_revision();
        Ok(self
            .watcher
            .session()?
            .is_none_or(|session| matches!(session.state, State::Ended(_)) && told(&session)))
    }

    /// Returns all that has happened and was not returned yet, at once.
    ///
    /// # Errors
    /// The store fails.
    pub fn rest(&mut self) -> Result<Vec<Moment>, Error> {
        let mut all: Vec<_> = self.ready.drain(..).collect();
        all.extend(self.watcher.rest()?);
        Ok(all)
    }

    /// Returns the next page of what has happened, at once; it is empty if nothing has.
    ///
    /// # Errors
    /// The store fails.
    pub fn page(&mut self) -> Result<Vec<Moment>, Error> {
        match self.ready.is_empty() {
            true => Ok(self.watcher.page()?),
            false => Ok(self.ready.drain(..).collect()),
        }
    }

    /// Returns whether there are more pages at once.
    pub fn is_behind(&self) -> bool {
        !self.ready.is_empty() || self.watcher.is_behind()
    }

    /// Returns the session as it is now, which may be further than what was returned of it.
    ///
    /// # Errors
    /// The store fails.
    pub fn session(&self) -> Result<Option<Arc<Session>>, Error> {
        Ok(self.watcher.session()?)
    }

    /// Waits until there may be more.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn changed(&self) -> Result<(), Error> {
        let adjourn = self.session.adjourn();
        loop {
            let alive = async {
                match self.recovers && !adjourn.feed().has_host() {
                    true => tokio::time::sleep(ALIVE).await,
                    false => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.watcher.changed() => return Ok(()),
                never = adjourn.hearing().listen(adjourn.process()) => match never {},
                () = alive => {
                    if let Some(session) = self.watcher.session()?
                        && adjourn.recover(&session).await?.is_some()
                    {
                        return Ok(());
                    }
                }
            }
        }
    }
}
