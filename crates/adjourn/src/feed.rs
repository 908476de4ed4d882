//! The feed: what is committed, brought to the tasks of this process that wait for it.
//!
//! Commits of this process come from the thread that writes them, or from the one that tells of
//! them, with everything that they changed, so that a task that follows a session need not read
//! anything. Commits of other processes are found in the journal, from the last place on that was
//! seen: when a ring says that they are there, and at least once a second, because rings can be lost.
//! A host of the process does that; where there is none, those who wait do (`other_processes`). Either
//! way only the tasks are woken that follow the session, so that the price of a commit does not depend
//! on how many sessions are attached or run.

mod inbox;
mod rung;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use adjourn_core::Session;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::session::State;
use adjourn_core::time::Timestamp;
use adjourn_store::rows::EntryNo;
use adjourn_store::{Committed, Error, Listener, Store};
use tokio::sync::{Notify, watch};

use crate::doorbell::Hosts;
use crate::drive::Signal;
use crate::ring::Ring;
use crate::trace;
use crate::values::Values;
pub(crate) use inbox::Found;
use inbox::{Inbox, News};
pub(crate) use rung::Rung;

/// How often a process that has no host looks for commits of other processes without being rung.
pub(crate) const LOOK: Duration = Duration::from_millis(250);
/// Entries of the journal that are looked at in one read.
const PAGE: usize = 1024;

/// What is committed, for the tasks of a process that wait for it. It is cheap to clone.
pub struct Feed<S> {
    store: S,
    hosts: Hosts,
    followed: Arc<Followed>,
}

impl<S: Clone> Clone for Feed<S> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            hosts: self.hosts.clone(),
            followed: Arc::clone(&self.followed),
        }
    }
}

/// Which tasks follow which session, and how far the journal was seen.
struct Followed {
    state: Mutex<Seen>,
    /// Told when the last host of this process is gone.
    host_gone: Notify,
    /// What sessions are given in this process, until they are over.
    values: Values,
}

struct Seen {
    /// Everything up to this entry was told.
    last: EntryNo,
    /// When the journal was looked at.
    looked: Instant,
    followers: HashMap<SessionId, Vec<Follower>>,
    /// The number of the next follower.
    next: u64,
    /// What other processes have to be told.
    ring: Ring,
    /// The hosts and watchers of this process, which this feed tells, and which need not be rung.
    own: Vec<HostId>,
    /// The hosts of this process.
    hosts: Vec<Hosted>,
    /// Those of this process who tell recipients of what happens.
    tellers: Vec<Weak<Rung>>,
}

/// A host of this process, as the feed knows it.
struct Hosted {
    id: HostId,
    /// Wakes it when there may be something to do for it.
    work: Arc<Notify>,
    /// When it looks by itself for a deadline.
    planned: Option<Timestamp>,
}

struct Follower {
    number: u64,
    how: How,
}

/// How a task is told that a session has changed.
enum How {
    /// A task that shows what happens.
    Watches(Weak<Inbox>),
    /// The task that drives the session.
    Drives(watch::Sender<Signal>),
    /// The host, which is to know what others do with the session.
    Hosts,
    /// Those who tell recipients of what happens.
    Tells(Weak<Rung>),
}

impl<S: Store> Feed<S> {
    /// Makes the feed of a process, from where the journal is now.
    ///
    /// # Errors
    /// The store fails.
    pub(crate) fn new(store: S, hosts: Hosts, values: Values) -> Result<Self, Error> {
        let seen = Seen {
            last: EntryNo(0),
            looked: Instant::now(),
            followers: HashMap::new(),
            next: 0,
            ring: Ring::default(),
            own: Vec::new(),
            hosts: Vec::new(),
            tellers: Vec::new(),
        };
        let followed =
            Arc::new(Followed { state: Mutex::new(seen), host_gone: Notify::new(), values });
        let listener: Arc<dyn Listener> = Arc::<Followed>::clone(&followed);
        store.listen(Arc::downgrade(&listener));
        // Behind the listener: no commit falls between the two.
        let last = store.last_entry()?;
        followed.state().reached(last);
        Ok(Self { store, hosts, followed })
    }

    /// Wakes a host of this process from now on when there may be something to do for it, as long
    /// as what it returns is there.
    pub(crate) fn wake(&self, id: HostId) -> Work {
        let work = Arc::<Notify>::default();
        let mut seen = self.followed.state();
        seen.hosts.push(Hosted { id, work: Arc::clone(&work), planned: None });
        seen.own.push(id);
        Work { followed: Arc::clone(&self.followed), id, work }
    }

    /// Takes note of a place at which this process hears others for this feed: it need not be rung
    /// from here.
    pub(crate) fn spare(&self, id: HostId) {
        self.followed.state().own.push(id);
    }

    /// Wakes the hosts of this process.
    pub(crate) fn wake_hosts(&self) {
        self.followed.state().wake_hosts();
    }

    /// Returns whether this process has a host, which hears what other processes ring.
    pub(crate) fn has_host(&self) -> bool {
        !self.followed.state().hosts.is_empty()
    }

    /// Waits until this process has no host; at once where it has none.
    pub(crate) async fn host_gone(&self) {
        loop {
            // Before the look: a host that goes in between is told, too.
            let gone = self.followed.host_gone.notified();
            if !self.has_host() {
                return;
            }
            gone.await;
        }
    }

    /// Follows a session from now on, as long as what it returns is there.
    ///
    /// What happened before is not told: the first look is at the store.
    pub fn follow(&self, id: SessionId) -> Following {
        let inbox = Arc::<Inbox>::default();
        let followed = self.follow_as(id, How::Watches(Arc::downgrade(&inbox)));
        Following { inbox, _followed: followed }
    }

    /// Returns a session as this process has committed it, if it is followed and nothing is known to
    /// have happened to it since. Nothing is read for it.
    pub fn session(&self, id: SessionId) -> Option<Arc<Session>> {
        let seen = self.followed.state();
        let mut followers = seen.followers.get(&id)?.iter();
        followers.find_map(|follower| match &follower.how {
            How::Watches(inbox) => inbox.upgrade()?.session(),
            How::Drives(_) | How::Hosts | How::Tells(_) => None,
        })
    }

    /// Tells the task that drives a session of its changes.
    pub(crate) fn tell_drive(&self, id: SessionId, signal: watch::Sender<Signal>) -> Place {
        self.follow_as(id, How::Drives(signal))
    }

    /// Wakes the hosts of this process when something has happened to a session.
    pub(crate) fn wake_host(&self, id: SessionId) -> Place {
        self.follow_as(id, How::Hosts)
    }

    /// Rings one who tells recipients from now on when one is added, as long as it is there.
    pub(crate) fn ring_for_recipients(&self) -> Arc<Rung> {
        let rung = Arc::<Rung>::default();
        let mut seen = self.followed.state();
        seen.tellers.retain(|teller| teller.strong_count() > 0);
        seen.tellers.push(Arc::downgrade(&rung));
        rung
    }

    /// Rings one who tells recipients when something has happened to a session that has some.
    pub(crate) fn tell_recipients_of(&self, id: SessionId, rung: &Arc<Rung>) -> Place {
        self.follow_as(id, How::Tells(Arc::downgrade(rung)))
    }

    /// Rings all who tell recipients, because a session has got one.
    pub(crate) fn recipient_changed(&self, id: SessionId) {
        let tellers = self.followed.state().tellers.clone();
        tellers.iter().filter_map(Weak::upgrade).for_each(|rung| rung.ring(id));
    }

    fn follow_as(&self, id: SessionId, how: How) -> Place {
        let mut seen = self.followed.state();
        let number = seen.next;
        seen.next += 1;
        seen.followers.entry(id).or_default().push(Follower { number, how });
        Place { followed: Arc::clone(&self.followed), id, number }
    }

    /// Takes note of a ring of another process.
    ///
    /// # Errors
    /// The store fails.
    pub(crate) fn heard(&self, ring: &Ring) -> Result<(), Error> {
        let concerned = {
            let seen = self.followed.state();
            ring.concerns_any(|id| seen.followers.contains_key(&id))
        };
        if concerned {
            self.catch_up()?;
        }
        if ring.leaves_work() {
            self.followed.state().wake_hosts();
        }
        Ok(())
    }

    /// Finds what other processes have committed, and tells the tasks that follow these sessions.
    ///
    /// # Errors
    /// The store fails.
    pub(crate) fn catch_up(&self) -> Result<(), Error> {
        loop {
            let after = self.followed.state().last;
            let page = self.store.appended(after, PAGE)?;
            let mut seen = self.followed.state();
            seen.looked = Instant::now();
            let mut work = false;
            let mut removed = false;
            let mut given = Vec::new();
            for appended in &page {
                seen.reached(appended.no);
                removed |= appended.session.is_none();
                if let Some(id) = appended.session {
                    given.extend(Some(id).filter(|id| self.followed.values.is_created(*id)));
                    seen.tell(id, &News::Revision(appended.revision));
                    work |= appended.is_ready
                        || seen.is_earlier(appended.due)
                        || seen.concerns_host(id);
                }
            }
            if work {
                seen.wake_hosts();
            }
            drop(seen);
            // An entry does not say whose it was that was removed.
            let values = &self.followed.values;
            let looked_at = if removed { values.created() } else { given };
            values.forget_those_over(looked_at, |id| self.store.session(id));
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Finds what other processes have committed, unless another task of this process has looked a
    /// moment ago: that one looked for all.
    pub(crate) fn catch_up_unless_recent(&self) -> Result<(), Error> {
        let is_recent = self.followed.state().looked.elapsed() < LOOK;
        if is_recent { Ok(()) } else { self.catch_up() }
    }

    /// Rings other processes, if there is anything that they have not been told.
    pub(crate) fn ring(&self) {
        let mut seen = self.followed.state();
        if seen.ring.is_empty() {
            return;
        }
        let (ring, own) = (std::mem::take(&mut seen.ring), seen.own.clone());
        drop(seen);
        self.hosts.ring_others(&own, &ring);
    }
}

#[cfg(feature = "testing")]
impl<S: Store> Feed<S> {
    /// Looks for what other processes have committed, as a host of this process does by itself.
    ///
    /// # Errors
    /// The store fails.
    pub fn look(&self) -> Result<(), Error> {
        self.catch_up()
    }

    /// Takes a ring of another process, as a host of this process does by itself.
    ///
    /// # Errors
    /// The store fails.
    pub fn take_ring(&self, ring: &Ring) -> Result<(), Error> {
        self.heard(ring)
    }
}

/// A host of this process that is woken by its feed, as long as this is there.
pub(crate) struct Work {
    followed: Arc<Followed>,
    id: HostId,
    work: Arc<Notify>,
}

impl Work {
    /// Waits until there may be something to do for the host.
    pub(crate) async fn left(&self) {
        self.work.notified().await;
    }

    /// Takes note when the host looks for the next deadline; it is woken for an earlier one. While
    /// it finds out, any deadline is earlier.
    pub(crate) fn plan(&self, due: Option<Timestamp>) {
        let mut seen = self.followed.state();
        if let Some(host) = seen.hosts.iter_mut().find(|host| host.id == self.id) {
            host.planned = due;
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let mut seen = self.followed.state();
        seen.hosts.retain(|host| host.id != self.id);
        seen.own.retain(|id| *id != self.id);
        let was_last = seen.hosts.is_empty();
        drop(seen);
        if was_last {
            self.followed.host_gone.notify_waiters();
        }
    }
}

impl Followed {
    fn state(&self) -> MutexGuard<'_, Seen> {
        // Nothing that is done with it can leave it half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn reached(&mut self, entry: EntryNo) {
        self.last = self.last.max(entry);
    }

    /// Returns whether a deadline comes before those that a host of this process looks for.
    fn is_earlier(&self, due: Option<Timestamp>) -> bool {
        let misses = |due| {
            let mut plans = self.hosts.iter().map(|host| host.planned);
            self.hosts.is_empty() || plans.any(|plan| plan.is_none_or(|planned| due < planned))
        };
        due.is_some_and(misses)
    }

    fn wake_hosts(&self) {
        for host in &self.hosts {
            host.work.notify_one();
        }
    }

    fn concerns_host(&self, id: SessionId) -> bool {
        let mut followers = self.followers.get(&id).into_iter().flatten();
        followers.any(|follower| matches!(follower.how, How::Hosts))
    }

    fn tell(&self, id: SessionId, news: &News<'_>) {
        for follower in self.followers.get(&id).into_iter().flatten() {
            match &follower.how {
                How::Watches(inbox) => {
                    if let Some(inbox) = inbox.upgrade() {
                        inbox.put(news);
                    }
                }
                How::Drives(signal) => {
                    let revision = news.revision();
                    signal.send_if_modified(|signal| {
                        let is_news = revision > signal.revision;
                        signal.revision = signal.revision.max(revision);
                        is_news
                    });
                }
                How::Hosts => {}
                How::Tells(rung) => {
                    if let Some(rung) = rung.upgrade() {
                        rung.ring(id);
                    }
                }
            }
        }
    }
}

impl Listener for Followed {
    fn committed(&self, committed: &Committed) {
        trace::committed(&committed.changes);
        let mut seen = self.state();
        // What lies between is of other processes, and is found when the journal is looked at.
        if let Some((first, last)) = committed.entries
            && first.0 <= seen.last.0 + 1
        {
            seen.reached(last);
        }
        let mut work = committed.leaves_work;
        for (index, change) in committed.changes.iter().enumerate() {
            let id = change.session.id;
            match change.session.state {
                State::Ended(_) => self.values.forget(id),
                _ => drop(self.values.is_created(id)),
            }
            let later = committed.changes.iter().skip(index + 1);
            let is_last = || !later.clone().any(|later| later.session.id == id);
            // A session that the same commit claims is not to be claimed by other hosts.
            let leaves_work = (matches!(change.session.state, State::Ready(_)) && is_last())
                || seen.is_earlier(change.session.due());
            // A driver that is kept for it may be of no use any more.
            work |= leaves_work || seen.concerns_host(id);
            seen.ring.name(id, leaves_work);
            seen.tell(id, &News::Change(change));
        }
        if committed.leaves_work {
            seen.ring.add_work();
        }
        if work {
            seen.wake_hosts();
        }
    }
}

/// The place of one task among those that follow a session; it is free when this is dropped.
pub(crate) struct Place {
    followed: Arc<Followed>,
    id: SessionId,
    number: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut seen = self.followed.state();
        if let Some(followers) = seen.followers.get_mut(&self.id) {
            followers.retain(|follower| follower.number != self.number);
            if followers.is_empty() {
                seen.followers.remove(&self.id);
            }
        }
    }
}

/// A session that is followed, as long as this is there.
pub struct Following {
    inbox: Arc<Inbox>,
    _followed: Place,
}

impl Following {
    pub(crate) fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// Returns the session as this process has committed it, if nothing is known to have happened to
    /// it since, and something has since it is followed.
    pub fn session(&self) -> Option<Arc<Session>> {
        self.inbox.session()
    }

    /// Returns what resolves when the session has changed since the last time it did.
    pub fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        let inbox = Arc::clone(&self.inbox);
        async move { inbox.changed().await }
    }
}
