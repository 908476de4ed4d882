//! Watching a session: its journal and transcript as they grow, page by page.

use std::collections::VecDeque;
use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::event::Event;
use adjourn_core::id::SessionId;
use adjourn_core::journal::{Entry, STATE_EVERY};
use adjourn_core::session::State;
use adjourn_core::transcript::Head;
use adjourn_driver::Message;
use adjourn_store::rows::EntryNo;
use adjourn_store::{Change, Error, Store};

use crate::feed::{Feed, Following, Found};

/// Entries read at a time.
const PAGE: usize = 256;
/// How much of what was said is read at a time, unless one moment has more.
const PAGE_BYTES: usize = 256 * 1024;

/// Something that happened, and the words that came with it.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    /// Its place in the journal.
    pub revision: u64,
    /// What happened.
    pub event: Event,
    /// Whether it is the last event of its commit.
    pub ends: bool,
    /// What was said with it, each under its number in the transcript. One that cannot be read, as
    /// another program may have written it, is left out; the others keep their numbers.
    pub said: Vec<(u64, Message)>,
}

/// A reader of one session's journal, in order and without gaps.
///
/// It holds the places of what it has not read yet, and one page of it: a journal of any length
/// is read in little memory, whatever was said in it.
pub struct Watcher<S> {
    store: S,
    id: SessionId,
    /// The next revision to hand out.
    revision: u64,
    /// The next transcript entry.
    said: u64,
    /// Entries that were read, and not handed out; the last one says whether a commit goes on.
    read: VecDeque<Entry>,
    /// The revision that `ahead` begins with.
    next: u64,
    ahead: VecDeque<EntryNo>,
    /// What comes without being read.
    following: Option<Following>,
    /// Whether all that was handed out came that way last, and left the session open.
    is_open: bool,
}

impl<S: Store> Watcher<S> {
    /// Watches a session from its beginning.
    pub fn from_start(store: S, id: SessionId) -> Self {
        Self::from(store, id, 1, 0)
    }

    /// Watches what happens to a session after the state it is seen in.
    pub fn after(store: S, session: &Session) -> Self {
        let Head { length, .. } = session.transcript;
        Self::from(store, session.id, session.revision + 1, length)
    }

    fn from(store: S, id: SessionId, revision: u64, said: u64) -> Self {
        Self {
            store,
            id,
            revision,
            said,
            read: VecDeque::new(),
            next: revision,
            ahead: VecDeque::new(),
            following: None,
            is_open: false,
        }
    }

    /// Takes what this process commits from its feed from now on, and reads only what others do.
    #[must_use]
    pub fn following(mut self, feed: &Feed<S>) -> Self {
        self.following = Some(feed.follow(self.id));
        self
    }

    /// Returns what resolves when there may be more; never without a feed.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + use<S> {
        let changed = self.following.as_ref().map(Following::changed);
        async {
            match changed {
                Some(changed) => changed.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Watches a session from a revision on, and returns the session before it.
    ///
    /// It reads a short stretch before the revision, and nothing of what lies before that. It
    /// returns nothing where that cannot be: near the beginning, beyond the end, or if the stretch
    /// was pruned.
    ///
    /// # Errors
    /// The store fails.
    pub fn at(store: S, id: SessionId, revision: u64) -> Result<Option<(Session, Self)>, Error> {
        let before = revision.saturating_sub(1);
        // The state is with the last entry of these that is not behind the revision.
        let base = before - before % STATE_EVERY;
        if base == 0 {
            return Ok(None);
        }
        let mut places = store.places(id, base)?;
        let stretch = usize::try_from(revision - base).unwrap_or(usize::MAX);
        if places.len() < stretch {
            return Ok(None);
        }
        let ahead = places.split_off(stretch);
        let mut entries = store.entries(id, &places)?.into_iter();
        let state = entries.next().map(|first| first.state());
        // One that another program wrote, or that was pruned, is found by reading everything.
        let Some(Ok(Some(mut session))) = state else { return Ok(None) };
        for entry in entries {
            session.evolve(&entry.event);
        }
        if session.revision != before {
            return Ok(None);
        }
        let watcher = Self { ahead: ahead.into(), ..Self::after(store, &session) };
        Ok(Some((session, watcher)))
    }

    /// Returns the session as it is now.
    ///
    /// # Errors
    /// The store fails.
    pub fn session(&self) -> Result<Option<Arc<Session>>, Error> {
        self.store.session(self.id)
    }

    /// Returns the session that is watched.
    #[cfg(feature = "testing")]
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// Returns whether more was found than was handed out.
    pub fn is_behind(&self) -> bool {
        !self.read.is_empty() || !self.ahead.is_empty()
    }

    /// Returns the next page of what has happened, at once; it is empty if nothing has, or if it
    /// was pruned.
    ///
    /// # Errors
    /// The store fails.
    pub fn page(&mut self) -> Result<Vec<Moment>, Error> {
        if !self.is_behind()
            && let Some(following) = &self.following
        {
            match following.inbox().from(self.revision) {
                Found::Nothing => return Ok(Vec::new()),
                Found::Here(changes) => {
                    let moments = changes.iter().flat_map(|change| self.take(change));
                    return Ok(moments.collect());
                }
                Found::InStore => {}
            }
        }
        self.page_before(u64::MAX).inspect_err(|_| {
            if let Some(following) = &self.following {
                following.inbox().look_again();
            }
        })
    }

    /// Returns whether the next page is what the feed has brought, and the store is not looked at
    /// where that is nothing.
    pub(crate) fn trusts_feed(&self) -> bool {
        let looked =
            self.following.as_ref().is_some_and(|following| following.inbox().has_looked());
        looked && !self.is_behind()
    }

    /// Takes what the feed has brought: the change behind what was handed out.
    fn take(&mut self, change: &Change) -> Vec<Moment> {
        let last = change.session.revision;
        let said = change.said.iter().map(Vec::as_slice);
        let mut words = (self.said..).zip(said).peekable();
        let mut moments = Vec::with_capacity(change.events.len());
        for (revision, event) in (self.revision..).zip(change.events.iter()) {
            let to = event.transcript().map_or(self.said, |head| head.length);
            let own = std::iter::from_fn(|| words.next_if(|(index, _)| *index < to));
            let read = |(index, bytes): (u64, &[u8])| Some((index, Message::decode(bytes).ok()?));
            let said = own.filter_map(read).collect();
            moments.push(Moment { revision, event: event.clone(), ends: revision == last, said });
        }
        self.said = change.session.transcript.length;
        self.revision = last + 1;
        self.next = self.revision;
        self.is_open = !matches!(change.session.state, State::Ended(_));
        moments
    }

    /// Returns whether the session is known to be open, without a look at the store: no session is
    /// removed before it has ended, and that would have come, too.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// Takes note of where the journal lies from the next revision on.
    pub(crate) fn lies_ahead(&mut self, places: Vec<EntryNo>) {
        self.ahead = places.into();
        self.next = self.revision;
    }

    /// Returns the next revision that it would hand out.
    pub const fn next_revision(&self) -> u64 {
        self.revision
    }

    /// Returns the next page of what has happened before a revision.
    ///
    /// # Errors
    /// The store fails.
    pub fn page_before(&mut self, until: u64) -> Result<Vec<Moment>, Error> {
        self.is_open = false;
        if !self.is_behind() {
            // Most looks find nothing, and cost one indexed read.
            match self.store.session(self.id)? {
                Some(session) if session.revision >= self.revision => {}
                _ => return Ok(Vec::new()),
            }
            self.ahead = self.store.places(self.id, self.revision)?.into();
            self.next = self.revision;
        }
        // One more than is handed out, to see where a commit ends.
        if self.read.len() < 2 {
            let page: Vec<_> = self.ahead.iter().take(PAGE).copied().collect();
            // Their places are forgotten once they are here: a read that fails is made again.
            self.read.extend(self.store.entries(self.id, &page)?);
            self.ahead.drain(..page.len());
            self.next += page.len() as u64;
        }
        let wanted = self.read.iter().filter(|entry| entry.revision < until);
        let end = wanted.filter_map(|entry| entry.event.transcript()).next_back();
        let missing = end.map_or(0, |end| end.length.saturating_sub(self.said));
        let mut words: VecDeque<_> = match usize::try_from(missing).unwrap_or(usize::MAX) {
            0 => VecDeque::new(),
            missing => {
                let page = self.store.transcript_within(self.id, self.said, missing, PAGE_BYTES);
                page?.into()
            }
        };
        let mut moments = Vec::new();
        while let Some(entry) = self.read.front() {
            if entry.revision >= until || (self.read.len() < 2 && !self.ahead.is_empty()) {
                break;
            }
            let from = self.said;
            let to = entry.event.transcript().map_or(from, |head| head.length.max(from));
            let count = usize::try_from(to - from).unwrap_or(usize::MAX);
            if words.len() < count {
                // The rest is for the next page; what came with one moment is read whole.
                if !moments.is_empty() {
                    break;
                }
                words = self.store.transcript(self.id, from, count)?.into();
            }
            let own = words.drain(..count.min(words.len()));
            let read =
                |(index, bytes): (u64, Vec<u8>)| Some((index, Message::decode(&bytes).ok()?));
            let said = (from..).zip(own).filter_map(read).collect();
            let Some(entry) = self.read.pop_front() else { break };
            let ends = self.read.front().is_none_or(Entry::begins_decision);
            let Entry { revision, event, .. } = entry;
            self.said = to;
            moments.push(Moment { revision, event, ends, said });
        }
        // Also over what was pruned: revisions are dense.
        self.revision = self.read.front().map_or(self.next, |entry| entry.revision);
        Ok(moments)
    }

    /// Returns everything that has happened and was not read yet.
    ///
    /// # Errors
    /// The store fails.
    #[cfg(feature = "testing")]
    pub fn rest(&mut self) -> Result<Vec<Moment>, Error> {
        let mut all = self.page()?;
        while self.is_behind() {
            all.extend(self.page()?);
        }
        Ok(all)
    }
}
