//! Watching a session with its words as they come: what is committed, and what is being said, in one
//! order.

use std::collections::VecDeque;
use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use adjourn_core::id::SessionId;
use adjourn_driver::BoxFuture;
use adjourn_store::{Sqlite, Store};
use futures_core::Stream;

use crate::account::Account;
use crate::error::Error;
use crate::live::{Delta, LiveWords, Missed, more_words, next_words};
use crate::moments::WatchBuilder;
use crate::telling::{Piece, Told};
use crate::watch::Moment;

/// A session that is about to be watched with its words; see [`WatchBuilder::live`].
///
/// # Cancel safety
/// Dropping it changes nothing: it only reads.
#[must_use = "nothing happens before it is awaited"]
pub struct LiveWatchBuilder<S: Store = Sqlite> {
    pub(crate) watch: WatchBuilder<S>,
}

impl<S: Store> LiveWatchBuilder<S> {
    async fn begin(self) -> Result<LiveMoments<S>, Error> {
        let session = self.watch.session.clone();
        // From before the state is read on: what is said meanwhile is not missed.
        let words = hearing(Some(session.adjourn().live().watch(session.id())));
        let mut ready = VecDeque::new();
        let account = match self.watch.state().await? {
            Some(state) => {
                let mut account = Account::after(&session, state);
                // The beginning of a message that is being said was told to others.
                account.introduce().await?;
                account
            }
            None => {
                let begun = Account::from_start(&session).await?;
                let (mut account, first) = begun.ok_or(Error::NotFound(session.id()))?;
                take(&mut account, first, &mut ready);
                account
            }
        };
        Ok(LiveMoments { account, ready, words: Mutex::new(words) })
    }
}

impl<S: Store> IntoFuture for LiveWatchBuilder<S> {
    type Output = Result<LiveMoments<S>, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.begin())
    }
}

/// Something that a watcher of [`LiveMoments`] is told.
#[derive(Debug, Clone, PartialEq)]
pub enum LiveMoment {
    /// Something was committed. What an agent says in it comes as [`LiveMoment::Words`], as far as
    /// it has not come before.
    Committed(Moment),
    /// Words of the agent, or the news that a message was broken off.
    Words(Piece),
}

/// What happens in a session and what its agent says, in the order of the transcript: each moment
/// once, and each word once.
///
/// Words that a host of this process says come at once, and are a preview: they are durable with the
/// moment that has them, and a message that never gets there ends as broken off. Words of other
/// processes come with the moments that commit them, within about a second. It is a [`Stream`], too.
#[must_use = "it tells nothing unless it is asked"]
pub struct LiveMoments<S: Store = Sqlite> {
    account: Account<S>,
    /// What is to be told next.
    ready: VecDeque<LiveMoment>,
    /// What resolves with the next words. It is reached through `&mut self` alone, and in a mutex so
    /// that a reference to this can be sent.
    words: Mutex<Hearing>,
}

/// What resolves with the next words, and gives back where they came from.
type Hearing = BoxFuture<'static, (LiveWords, Result<Arc<Delta>, Missed>)>;

fn hearing(mut live: LiveWords) -> Hearing {
    Box::pin(async move {
        let heard = next_words(&mut live).await;
        (live, heard)
    })
}

impl<S: Store> LiveMoments<S> {
    /// Returns the session that it tells of.
    pub const fn id(&self) -> SessionId {
        self.account.session().id
    }

    /// Returns what happens or is said next; nothing once the session has ended, or was removed.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: the next call returns what this one would have.
    pub async fn next(&mut self) -> Result<Option<LiveMoment>, Error> {
        // What is waited for ends with this future: another one of the process may listen then.
        let next = StopsWaiting(self);
        std::future::poll_fn(|context| next.0.poll_told(context)).await
    }

    fn poll_told(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<LiveMoment>, Error>> {
        loop {
            if let Some(told) = self.ready.pop_front() {
                return Poll::Ready(Ok(Some(told)));
            }
            // First what is committed: words wait for what lies before them.
            if let Poll::Ready(moment) = self.account.moments().poll_moment(context) {
                match moment? {
                    Some(moment) => self.take(moment)?,
                    None => return Poll::Ready(Ok(None)),
                }
                continue;
            }
            self.ready.extend(self.account.due().into_iter().map(LiveMoment::Words));
            if self.ready.is_empty() {
                ready!(self.poll_words(context));
            }
        }
    }

    /// Takes the words that have come.
    fn poll_words(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let words = self.words.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (mut live, heard) = ready!(words.as_mut().poll(context));
        self.account.hear(heard);
        while let Some(heard) = more_words(&mut live) {
            self.account.hear(heard);
        }
        *words = hearing(live);
        Poll::Ready(())
    }

    /// Takes a moment, and what of its words was not told.
    fn take(&mut self, moment: Moment) -> Result<(), Error> {
        match self.account.bridge(&moment) {
            Ok(ended) => {
                self.ready.extend(ended.into_iter().flatten().map(LiveMoment::Words));
                take(&mut self.account, moment, &mut self.ready);
                Ok(())
            }
            Err(error) => {
                self.account.moments().put_back(moment);
                Err(error)
            }
        }
    }
}

/// Tells a moment: that it happened, and then what of its words was not told.
fn take<S: Store>(account: &mut Account<S>, moment: Moment, ready: &mut VecDeque<LiveMoment>) {
    let told = account.tell(&moment).into_iter().filter_map(|told| match told {
        Told::Words(pieces) => Some(pieces),
        Told::Entry(..) => None,
    });
    let words: Vec<_> = told.flatten().map(LiveMoment::Words).collect();
    ready.push_back(LiveMoment::Committed(moment));
    ready.extend(words);
}

/// What happens or is said next, until the session has ended or was removed. An error is not the
/// end: the next item is what would have come.
impl<S: Store> Stream for LiveMoments<S> {
    type Item = Result<LiveMoment, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_told(context).map(Result::transpose)
    }
}

/// Forgets what is waited for when it is dropped; words that have come are kept.
struct StopsWaiting<'a, S: Store>(&'a mut LiveMoments<S>);

impl<S: Store> Drop for StopsWaiting<'_, S> {
    fn drop(&mut self) {
        self.0.account.moments().stop_waiting();
    }
}
