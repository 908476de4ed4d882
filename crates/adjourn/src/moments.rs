//! Watching a session: what has happened and what happens, in order.

use std::collections::VecDeque;
use std::future::{Future, IntoFuture};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::id::SessionId;
use adjourn_core::journal::STATE_EVERY;
use adjourn_core::session::State;
use adjourn_driver::BoxFuture;
use adjourn_store::rows::EntryNo;
use adjourn_store::{Sqlite, Store};
use futures_core::Stream;

use crate::adjourn::Adjourn;
use crate::error::{Error, StoreError};
use crate::live_moments::LiveWatchBuilder;
use crate::off_thread::off_thread;
use crate::session_ref::SessionRef;
use crate::watch::{Moment, Watcher};

/// How often it is looked whether the host of a session that is waited for still lives.
const ALIVE: Duration = Duration::from_secs(1);
/// How many entries of a journal are found on the thread that asks for them: it takes microseconds
/// for each.
const FAR: u64 = 1024;

/// A session that is about to be watched; see [`SessionRef::watch`]. Awaited, it is, from its
/// beginning unless another place is named.
///
/// # Cancel safety
/// Dropping it changes nothing: it only reads.
#[must_use = "nothing happens before it is awaited"]
pub struct WatchBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
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

    /// Tells also what the agent says, word by word as it comes, each word once.
    ///
    /// ```
    /// # async fn print(session: adjourn::SessionRef) -> Result<(), adjourn::Error> {
    /// use adjourn::LiveMoment;
    ///
    /// let mut live = session.watch().from_now().live().await?;
    /// while let Some(told) = live.next().await? {
    ///     match told {
    ///         LiveMoment::Committed(moment) => println!("[{}]", moment.event.what.name()),
    ///         LiveMoment::Words(piece) => {
    ///             let words = piece.content.as_ref().and_then(|block| block.words());
    ///             print!("{}", words.unwrap_or_default());
    ///         }
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn live(self) -> LiveWatchBuilder<S> {
        LiveWatchBuilder { watch: self }
    }

    /// Returns the state whose past is not told; nothing if all of it is.
    pub(crate) async fn state(self) -> Result<Option<Session>, Error> {
        let Self { session, from } = self;
        Ok(match from {
            From::Start => {
                session.load().await?;
                None
            }
            From::Now => Some(Session::clone(&*session.load().await?)),
            From::After(state) => Some(*state),
        })
    }
}

impl<S: Store> IntoFuture for WatchBuilder<S> {
    type Output = Result<Moments<S>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async {
            let session = self.session.clone();
            Ok(match self.state().await? {
                Some(state) => Moments::after(&session, &state),
                None => Moments::from_start(&session),
            })
        })
    }
}

/// What happens in a session, past and live, in order and without a gap, whichever process does it.
///
/// It reads a page at a time: a long past takes little memory. It is a [`Stream`], too.
#[must_use = "it tells nothing unless it is asked"]
pub struct Moments<S: Store = Sqlite> {
    session: SessionRef<S>,
    watcher: Watcher<S>,
    /// What was read and not handed out.
    ready: VecDeque<Moment>,
    /// Whether the session is taken from its host if that dies.
    recovers: bool,
    /// Whether it is known where the journal lies that is told.
    begun: bool,
    /// What [`Stream::poll_next`] waits for. It is reached through `&mut self` alone, and in a mutex
    /// so that a reference to this can be sent.
    waiting: Mutex<Option<Waiting>>,
}

/// What resolves when there may be more.
struct Waiting {
    found: BoxFuture<'static, Result<Found, Error>>,
    /// Whether it is work that another thread does: begun anew, it would never end for a caller who
    /// gives it less time than it takes.
    is_work: bool,
}

/// What was waited for.
enum Found {
    /// There may be more in the journal.
    More,
    /// Where the journal lies that is told.
    Places(Vec<EntryNo>),
}

impl<S: Store> Moments<S> {
    fn new(session: &SessionRef<S>, watcher: Watcher<S>) -> Self {
        let watcher = watcher.following(session.adjourn().feed());
        let (session, ready) = (session.clone(), VecDeque::new());
        Self { session, watcher, ready, recovers: false, begun: false, waiting: Mutex::default() }
    }

    /// Tells everything, from the beginning; whether there is such a session shows later.
    pub fn from_start(session: &SessionRef<S>) -> Self {
        Self::new(
            session,
            Watcher::from_start(session.adjourn().process().store.clone(), session.id()),
        )
    }

    /// Tells what comes after a state of the session.
    pub fn after(session: &SessionRef<S>, state: &Session) -> Self {
        Self::new(session, Watcher::after(session.adjourn().process().store.clone(), state))
    }

    /// Tells what comes from a revision on, and returns the session before it; nothing where that
    /// cannot be, near the beginning or beyond the end.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing: it only reads.
    pub async fn at(
        session: &SessionRef<S>,
        revision: u64,
    ) -> Result<Option<(Session, Self)>, Error> {
        let (store, id) = (session.adjourn().process().store.clone(), session.id());
        let end = store.session(id)?.map_or(0, |session| session.revision);
        let is_far = end.saturating_sub(revision) >= FAR && revision > STATE_EVERY;
        let at = match is_far {
            true => off_thread(move || Watcher::at(store, id, revision)).await?,
            false => Watcher::at(store, id, revision)?,
        };
        Ok(at.map(|(state, watcher)| {
            let begun = true;
            (state, Self { begun, ..Self::new(session, watcher) })
        }))
    }

    /// Takes the session from its host if that dies and no host of this process would do it.
    pub(crate) const fn recovers(&mut self) {
        self.recovers = true;
    }

    /// Returns the session that it tells of.
    pub const fn id(&self) -> SessionId {
        self.session.id()
    }

    /// Returns the way to the session that it tells of.
    pub(crate) const fn watched(&self) -> &SessionRef<S> {
        &self.session
    }

    /// Returns what happens next; nothing once the session has ended, or was removed.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: the next call returns what this one would have.
    pub async fn next(&mut self) -> Result<Option<Moment>, Error> {
        // Listening ends with this future: another one of the process may listen then.
        let next = StopsWaiting(self);
        std::future::poll_fn(|context| next.0.poll_moment(context)).await
    }

    /// Returns what happens next, or takes note of what is to be woken when something does.
    pub(crate) fn poll_moment(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Moment>, Error>> {
        loop {
            if let Some(moment) = self.ready.pop_front() {
                return Poll::Ready(Ok(Some(moment)));
            }
            let waiting = self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner);
            if let Some(Waiting { found, .. }) = waiting {
                let found = ready!(found.as_mut().poll(context));
                *waiting = None;
                // Pages that were asked for meanwhile have found it by themselves.
                if let Found::Places(places) = found?
                    && !self.begun
                {
                    self.watcher.lies_ahead(places);
                    self.begun = true;
                }
            }
            if let Some(walk) = self.walk()? {
                self.wait_for(true, async { Ok(Found::Places(walk.await?)) });
                continue;
            }
            self.ready.extend(self.watcher.page()?);
            if self.ready.is_empty() {
                if self.is_over()? {
                    return Poll::Ready(Ok(None));
                }
                let changed = self.changed();
                self.wait_for(false, async { changed.await.map(|()| Found::More) });
            }
        }
    }

    /// Forgets what [`Moments::poll_moment`] waits for, unless it is work that would be done anew.
    pub(crate) fn stop_waiting(&mut self) {
        let waiting = self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner);
        waiting.take_if(|waiting| !waiting.is_work);
    }

    /// Takes back the moment that was returned last.
    pub(crate) fn put_back(&mut self, moment: Moment) {
        self.ready.push_front(moment);
    }

    /// Returns the session as it is now.
    pub(crate) fn now(&self) -> Result<Option<Arc<Session>>, Error> {
        Ok(self.watcher.session()?)
    }

    fn wait_for(
        &mut self,
        is_work: bool,
        found: impl Future<Output = Result<Found, Error>> + Send + 'static,
    ) {
        let waiting = self.waiting.get_mut().unwrap_or_else(PoisonError::into_inner);
        *waiting = Some(Waiting { found: Box::pin(found), is_work });
    }

    /// Returns whether nothing more can come: the session was removed, or all is told of it up to
    /// its end, by whichever method, or before it was watched.
    fn is_over(&self) -> Result<bool, Error> {
        if self.watcher.is_open() {
            return Ok(false);
        }
        let told = |session: &Session| session.revision < self.watcher.next_revision();
        Ok(self
            .watcher
            .session()?
            .is_none_or(|session| matches!(session.state, State::Ended(_)) && told(&session)))
    }

    /// Returns all that has happened and was not returned yet.
    ///
    /// # Errors
    /// The store fails; the next call returns what this one would have.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: the next call returns what this one would have.
    pub async fn rest(&mut self) -> Result<Vec<Moment>, Error> {
        // Pages stay here until the last one is read: a read that fails takes none of them along.
        loop {
            let page = self.read(u64::MAX).await?;
            self.ready.extend(page);
            if !self.watcher.is_behind() {
                return Ok(self.ready.drain(..).collect());
            }
        }
    }

    /// Returns the next page of what has happened; it is empty if nothing has.
    ///
    /// # Errors
    /// The store fails; the next call returns what this one would have.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: the next call returns what this one would have.
    pub async fn page(&mut self) -> Result<Vec<Moment>, Error> {
        self.page_before(u64::MAX).await
    }

    /// Returns the next page of what has happened before a revision; it is empty if nothing has.
    ///
    /// # Errors
    /// The store fails; the next call returns what this one would have.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: the next call returns what this one would have.
    pub async fn page_before(&mut self, revision: u64) -> Result<Vec<Moment>, Error> {
        if self.ready.is_empty() {
            return self.read(revision).await;
        }
        let ahead = self.ready.iter().take_while(|moment| moment.revision < revision).count();
        Ok(self.ready.drain(..ahead).collect())
    }

    /// Reads the next page of what happened before a revision.
    async fn read(&mut self, until: u64) -> Result<Vec<Moment>, Error> {
        if let Some(walk) = self.walk()? {
            let places = walk.await?;
            self.watcher.lies_ahead(places);
            self.begun = true;
        }
        if until < u64::MAX {
            return Ok(self.watcher.page_before(until)?);
        }
        // A host brings what other processes commit; where there is none, it is found now.
        let feed = self.session.adjourn().feed();
        if self.watcher.trusts_feed() && !feed.has_host() {
            feed.catch_up()?;
        }
        Ok(self.watcher.page()?)
    }

    /// Returns what finds where the journal lies, if it is not known yet and takes long: a page is
    /// small, and is read on this thread, but all of a long journal is found on another.
    fn walk(
        &mut self,
    ) -> Result<Option<impl Future<Output = Result<Vec<EntryNo>, Error>> + Send + use<S>>, Error>
    {
        if self.begun {
            return Ok(None);
        }
        let next = self.watcher.next_revision();
        let end = self.watcher.session()?.map_or(0, |session| session.revision);
        if end.saturating_sub(next) < FAR {
            self.begun = true;
            return Ok(None);
        }
        let (store, id) = (self.session.adjourn().process().store.clone(), self.id());
        Ok(Some(off_thread(move || store.places(id, next))))
    }

    /// Returns the next revision that it would tell of.
    pub fn next_revision(&self) -> u64 {
        self.ready.front().map_or(self.watcher.next_revision(), |moment| moment.revision)
    }

    /// Returns whether there are more pages at once.
    pub fn is_behind(&self) -> bool {
        !self.ready.is_empty() || self.watcher.is_behind()
    }

    /// Returns the session as it is now, which may be further than what was returned of it.
    ///
    /// # Errors
    /// The store fails.
    pub async fn session(&self) -> Result<Option<Arc<Session>>, Error> {
        self.now()
    }

    /// Waits until there may be more, whichever process commits it.
    ///
    /// A host of this process hears the other processes for all that wait; where there is none, or
    /// when the last one stops, they are listened to by what waits itself.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub fn changed(&self) -> impl Future<Output = Result<(), Error>> + Send + use<S> {
        let (session, recovers) = (self.session.clone(), self.recovers);
        let changed = self.watcher.changed();
        async move {
            let adjourn = session.adjourn();
            let mut changed = pin!(changed);
            let mut listening = pin!(adjourn.other_processes().listen(adjourn.process()));
            loop {
                let alive = async {
                    match recovers {
                        true => {
                            // A host takes over by itself what dead ones have left.
                            adjourn.feed().host_gone().await;
                            tokio::time::sleep(ALIVE).await;
                        }
                        false => std::future::pending().await,
                    }
                };
                tokio::select! {
                    () = &mut changed => return Ok(()),
                    never = &mut listening => match never {},
                    () = alive => {
                        if let Some(state) = adjourn.process().store.session(session.id())?
                            && takes_over(adjourn, &state).await?
                        {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
}

/// Takes a session from its host if that died, and returns whether it did.
///
/// Nothing is taken where nothing can be committed, in a store that is only looked at or that is
/// locked or full now: the session is waited for all the same, since another process may take it.
async fn takes_over<S: Store>(adjourn: &Adjourn<S>, state: &Session) -> Result<bool, Error> {
    match adjourn.recover(state).await {
        Err(Error::Store(StoreError::Closed)) => Ok(false),
        Err(error) if error.passes() => Ok(false),
        recovered => Ok(recovered?.is_some()),
    }
}

// Nothing in it is pinned: what it waits for is in a box.
impl<S: Store> Unpin for Moments<S> {}

/// What happens next, until the session has ended or was removed. An error is not the end: the next
/// item is what would have come.
impl<S: Store> Stream for Moments<S> {
    type Item = Result<Moment, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_moment(context).map(Result::transpose)
    }
}

/// Stops listening when it is dropped; work that was begun is waited for the next time.
struct StopsWaiting<'a, S: Store>(&'a mut Moments<S>);

impl<S: Store> Drop for StopsWaiting<'_, S> {
    fn drop(&mut self) {
        self.0.stop_waiting();
    }
}
