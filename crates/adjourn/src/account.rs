//! The account of one session that one watcher is given: what is committed and what is being said,
//! in one order.
//!
//! [`LiveMoments`](crate::LiveMoments) is an account as a stream. A face that has more to say of a
//! moment than its words (which calls it ends, who is answered by it) needs the session as the moment
//! finds it, too: it takes pages of moments and tells each by itself, and the account sees to it that
//! no word is told twice or before what it follows.

use std::sync::Arc;

use adjourn_core::Session;
use adjourn_store::{Sqlite, Store};

use crate::error::Error;
use crate::live::{Delta, LiveWords, Missed, more_words, next_words};
use crate::moments::Moments;
use crate::session_ref::SessionRef;
use crate::telling::{Piece, Telling, Told};
use crate::watch::Moment;

/// The account of one session that one watcher is given: the session as far as it was told, what has
/// happened since, and the words of its agent as they come.
#[must_use = "it tells nothing unless it is asked"]
pub struct Account<S: Store = Sqlite> {
    /// The session as far as it was told.
    session: Session,
    moments: Moments<S>,
    telling: Telling,
    words: LiveWords,
}

impl<S: Store> Account<S> {
    /// Begins behind a state of the session. Words come with their commits until
    /// [`Account::listen`] brings them as they are said.
    pub fn after(session: &SessionRef<S>, state: Session) -> Self {
        let moments = Moments::after(session, &state);
        Self::new(moments, state)
    }

    /// Begins at a revision; nothing where that cannot be, near the beginning or beyond the end.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing: it only reads.
    pub async fn at(session: &SessionRef<S>, revision: u64) -> Result<Option<Self>, Error> {
        let at = Moments::at(session, revision).await?;
        Ok(at.map(|(state, moments)| Self::new(moments, state)))
    }

    /// Begins with the first moment that there is of the session, and returns that, to be told: its
    /// creation, unless that was erased. It returns nothing if nothing is left of the session.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing: it only reads.
    pub async fn from_start(session: &SessionRef<S>) -> Result<Option<(Self, Moment)>, Error> {
        let mut moments = Moments::from_start(session);
        let Some(first) = moments.next().await? else { return Ok(None) };
        let state = match Session::born(&first.event) {
            Some(born) => Some(born),
            None => moments.now()?.map(|now| before(&first, &now)),
        };
        Ok(state.map(|state| (Self::new(moments, state), first)))
    }

    fn new(moments: Moments<S>, session: Session) -> Self {
        let telling = Telling::new(&session);
        Self { session, moments, telling, words: None }
    }

    /// Hears the words of the agent as they come. Those that come between the state that the account
    /// began with and the beginning of these are told when they are committed.
    pub fn listen(&mut self, words: LiveWords) {
        self.words = words;
    }

    /// Hears the agent's words no more, and returns where they come from.
    pub const fn stop_listening(&mut self) -> LiveWords {
        self.words.take()
    }

    /// Returns whether the words of the agent are heard as they come.
    pub const fn listens(&self) -> bool {
        self.words.is_some()
    }

    /// Returns the session as far as it was told.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Returns what has happened since: each moment that comes out of it is to be
    /// [told](Account::tell) or [passed over](Account::pass_over), in order.
    pub const fn moments(&mut self) -> &mut Moments<S> {
        &mut self.moments
    }

    /// Waits until the agent says something, or something may have been committed; returns whether
    /// the latter is so. The words that have come are [due](Account::due) then.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn stirs(&mut self) -> bool {
        let Self { moments, words, telling, .. } = self;
        tokio::select! {
            // A store that fails says so when it is read.
            _ = moments.changed() => true,
            heard = next_words(words) => {
                telling.hear(heard);
                while let Some(heard) = more_words(words) {
                    telling.hear(heard);
                }
                false
            }
        }
    }

    /// Takes words that have come by another way than [`Account::listen`].
    pub(crate) fn hear(&mut self, heard: Result<Arc<Delta>, Missed>) {
        self.telling.hear(heard);
    }

    /// Returns the words that have come and can be told: all that lies before them was.
    pub fn due(&mut self) -> Vec<Piece> {
        self.telling.due(&self.session)
    }

    /// Returns whether words have come that something lies before which was not told: the journal
    /// has to be read for them.
    pub fn waits(&self) -> bool {
        self.telling.waits()
    }

    /// Forgets words that have come and were not told; they are told when they are committed.
    pub fn forget_heard(&mut self) {
        self.telling.forget_heard();
    }

    /// Returns whether something of a message was told, and it is not over.
    pub fn knows(&self, message: &str) -> bool {
        self.telling.knows(message)
    }

    /// Counts words anew from where the session stands, for a watcher that comes now. Returns what is
    /// committed of the message that is being said, entry by entry: it counts as told from here on.
    ///
    /// # Errors
    /// The store fails; a message that cannot be read is told as it goes on.
    pub async fn introduce(&mut self) -> Result<Vec<Vec<Piece>>, Error> {
        self.telling = Telling::new(&self.session);
        let said = self.moments.watched().unfinished_message(&self.session).await?;
        Ok(said.iter().map(|(number, entry)| self.telling.entry(*number, entry)).collect())
    }

    /// Brings the session to where a moment finds it, if what lies between was erased, as it is only
    /// when a session is over. Returns the messages that this breaks off; nothing where nothing is
    /// missing.
    ///
    /// # Errors
    /// The store fails.
    pub fn bridge(&mut self, moment: &Moment) -> Result<Option<Vec<Piece>>, Error> {
        if moment.revision <= self.session.revision + 1 {
            return Ok(None);
        }
        let Some(now) = self.moments.now()? else { return Ok(None) };
        self.session = before(moment, &now);
        Ok(Some(self.telling.after(&self.session)))
    }

    /// Takes the next moment, and returns what was said with it, as far as it was not told before.
    pub fn tell<'a>(&mut self, moment: &'a Moment) -> Vec<Told<'a>> {
        self.evolve(moment);
        self.telling.moment(moment, &self.session)
    }

    /// Takes the next moment, of which the watcher is not told.
    pub fn pass_over(&mut self, moment: &Moment) {
        self.evolve(moment);
        // Nothing was told of the messages that this breaks off.
        self.telling.after(&self.session);
    }

    fn evolve(&mut self, moment: &Moment) {
        // The first moment has made the session what it is.
        if moment.revision > self.session.revision {
            self.session.evolve(&moment.event);
        }
    }
}

/// Returns a session as a moment finds it whose past was erased: as it is now, for want of another.
fn before(moment: &Moment, now: &Session) -> Session {
    Session { revision: moment.revision.saturating_sub(1), ..now.clone() }
}
