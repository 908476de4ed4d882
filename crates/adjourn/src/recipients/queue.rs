//! Who is behind, found and handed out.
//!
//! A commit wakes this where one of the sessions that have recipients has changed. What rings do not
//! tell (recipients that another process has added, claims of processes that are gone) is found by
//! looking at all of them now and then; those who were told the end of their run are not among them.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn_core::id::{HostId, RunId, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_record::keys::DecryptError;
use adjourn_store::rows::{Of, OpenRecipient, RecipientRow, Told};
use adjourn_store::{CommandError, Next, Sqlite, Store, Taken};

use super::{decrypt, lacks_keys};
use crate::adjourn::Adjourn;
use crate::doorbell::Sign;
use crate::error::{Error, StoreError};
use crate::feed::{Place, Rung};
use crate::off_thread::off_thread;
use crate::session_ref::SessionRef;

/// How often all recipients are looked at.
const LOOK: Duration = Duration::from_secs(5);
/// How many recipients are read at once.
const PAGE: usize = 512;
/// How long a claim holds unless something is told under it. A process that dies gives up its claims at
/// once; this is for one that hangs.
const HELD: Duration = Duration::from_secs(60);
/// How long a recipient is left alone while there are no keys to read it with.
const NO_KEYS: Duration = Duration::from_secs(5);

/// The recipients of one kind that are behind the journal, in all sessions of a store; see
/// [`Adjourn::tell_recipients`].
pub struct Recipients<S: Store = Sqlite> {
    adjourn: Adjourn<S>,
    kind: &'static str,
    /// By which other processes see that this one is alive.
    sign: Sign,
    rung: Arc<Rung>,
    /// The sessions that have recipients, as the feed knows them.
    followed: HashMap<SessionId, Place>,
    /// Those that may be taken, in the order in which they were found.
    ready: VecDeque<i64>,
    /// The same, so that none of them is there twice.
    is_ready: HashSet<i64>,
    /// When a session is to be looked at, because a recipient of it is put off or claimed till then.
    planned: BTreeSet<(Timestamp, SessionId)>,
    /// When all were looked at.
    looked: Option<Instant>,
}

/// A recipient under a claim of this process.
pub struct TakenRecipient<S: Store = Sqlite> {
    adjourn: Adjourn<S>,
    rung: Arc<Rung>,
    row: RecipientRow,
    body: Result<Vec<u8>, DecryptError>,
}

/// What is to become of a recipient that was told something, or could not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It is told more at once.
    More,
    /// It was told everything so far.
    Rest,
    /// It is told more after a while.
    Later {
        /// How long it is left alone.
        after: Duration,
        /// Whether telling it has failed, which is counted.
        failed: bool,
    },
    /// It was told the end of its run.
    Over,
    /// It is told nothing more, because that failed too often.
    GiveUp,
}

impl<S: Store> Adjourn<S> {
    /// Finds the recipients of a kind that are behind, for as long as this is there, so that they can
    /// be told.
    ///
    /// # Errors
    /// Other processes cannot be shown that this one is alive.
    pub fn tell_recipients(&self, kind: &'static str) -> Result<Recipients<S>, Error> {
        let id = HostId::new(self.clock().uuid());
        let what = || "cannot take a lock beside the store".to_owned();
        let cannot = |error| StoreError::Io { what: what(), source: Arc::new(error) };
        let sign = self.hosts().sign(id).map_err(cannot)?;
        Ok(Recipients {
            adjourn: self.clone(),
            kind,
            sign,
            rung: self.feed().ring_for_recipients(),
            followed: HashMap::new(),
            ready: VecDeque::new(),
            is_ready: HashSet::new(),
            planned: BTreeSet::new(),
            looked: None,
        })
    }
}

impl<S: Store> Recipients<S> {
    /// Waits for a recipient that is behind, and claims it.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropped, it may leave a recipient claimed, which is told a minute later, or at once by another
    /// process if this one is gone.
    pub async fn next(&mut self) -> Result<TakenRecipient<S>, Error> {
        loop {
            while let Some(no) = self.ready.pop_front() {
                self.is_ready.remove(&no);
                if let Some(taken) = self.take(no).await? {
                    return Ok(taken);
                }
            }
            let now = self.adjourn.clock().now();
            let mut changed = self.rung.take();
            while let Some((time, session)) = self.planned.pop_first() {
                if time > now {
                    self.planned.insert((time, session));
                    break;
                }
                changed.insert(session);
            }
            for session in &changed {
                self.look_at(*session, now)?;
            }
            if !changed.is_empty() {
                continue;
            }
            let left = self.looked.map_or(Duration::ZERO, |at| LOOK.saturating_sub(at.elapsed()));
            if left.is_zero() {
                self.look_at_all(now).await?;
                continue;
            }
            let planned = async {
                match self.planned.first() {
                    Some((time, _)) => self.adjourn.clock().sleep_until(*time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.rung.rings() => {}
                () = planned => {}
                () = tokio::time::sleep(left) => {}
                never = self.adjourn.other_processes().listen(self.adjourn.process()) => match never {},
            }
        }
    }

    /// Looks at the recipients of one session.
    fn look_at(&mut self, session: SessionId, now: Timestamp) -> Result<(), Error> {
        let store = &self.adjourn.process().store;
        let found = store.open_recipients(self.kind, Of::Session(session), PAGE)?;
        match found.is_empty() {
            true => drop(self.followed.remove(&session)),
            false => self.follow(session),
        }
        found.into_iter().for_each(|found| self.plan(found, now));
        Ok(())
    }

    /// Looks at all of them.
    async fn look_at_all(&mut self, now: Timestamp) -> Result<(), Error> {
        let mut found = self.all().await?;
        let known: HashSet<_> = found.iter().map(|row| row.session).collect();
        self.followed.retain(|id, _| known.contains(id));
        if known.len() > self.followed.len() {
            // Followed before it is looked at: what is committed between the two is not missed.
            known.into_iter().for_each(|id| self.follow(id));
            found = self.all().await?;
        }
        self.planned.clear();
        found.into_iter().for_each(|found| self.plan(found, now));
        self.looked = Some(Instant::now());
        Ok(())
    }

    /// Reads all of them that are told more, away from this thread.
    async fn all(&self) -> Result<Vec<OpenRecipient>, Error> {
        let (store, kind) = (self.adjourn.process().store.clone(), self.kind);
        let read = off_thread(move || {
            let mut all: Vec<OpenRecipient> = Vec::new();
            loop {
                let after = all.last().map_or(0, |last| last.no);
                let page = store.open_recipients(kind, Of::All(after), PAGE)?;
                let is_last = page.len() < PAGE;
                all.extend(page);
                if is_last {
                    return Ok(all);
                }
            }
        });
        read.await
    }

    /// Has this woken by changes of a session.
    fn follow(&mut self, session: SessionId) {
        let (feed, rung) = (self.adjourn.feed(), &self.rung);
        let place = || feed.tell_recipients_of(session, rung);
        self.followed.entry(session).or_insert_with(place);
    }

    /// Takes note when a recipient is to be told, if there is something to tell it.
    fn plan(&mut self, found: OpenRecipient, now: Timestamp) {
        if !found.is_behind {
            return;
        }
        let held = found.holder.filter(|(by, until)| now < *until && !self.is_dead(*by));
        let time = held.map_or(found.due, |(_, until)| found.due.max(until));
        if time > now {
            self.planned.insert((time, found.session));
        } else if self.is_ready.insert(found.no) {
            self.ready.push_back(found.no);
        }
    }

    /// Returns whether a process is known to be gone.
    fn is_dead(&self, holder: HostId) -> bool {
        holder != self.sign.id() && matches!(self.adjourn.hosts().is_alive(holder), Ok(false))
    }

    /// Claims a recipient, unless there is nothing to tell it or another process has it.
    async fn take(&self, no: i64) -> Result<Option<TakenRecipient<S>>, Error> {
        let (holder, hosts) = (self.sign.id(), self.adjourn.hosts().clone());
        let until = self.adjourn.clock().now().after(HELD);
        let claimed = self.adjourn.transact(move |tx| {
            let is_dead = |by: HostId| by != holder && matches!(hosts.is_alive(by), Ok(false));
            Ok::<_, CommandError>(tx.claim_recipient(no, holder, until, is_dead)?)
        });
        let Some(row) = claimed.await? else { return Ok(None) };
        let (adjourn, rung) = (self.adjourn.clone(), Arc::clone(&self.rung));
        match decrypt(&adjourn, &row).await {
            Ok(body) => Ok(Some(TakenRecipient { adjourn, rung, row, body })),
            // They may be made this moment.
            Err(error) if lacks_keys(&error) => {
                let body = Err(DecryptError::Changed);
                let mut taken = TakenRecipient { adjourn, rung, row, body };
                let told = taken.place();
                // It is not the recipient that fails.
                taken.told(told, Then::Later { after: NO_KEYS, failed: false }).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl<S: Store> TakenRecipient<S> {
    /// Returns the session that its run belongs to.
    pub fn session(&self) -> SessionRef<S> {
        self.adjourn.session(self.row.session)
    }

    /// Returns the run that it is told of.
    pub const fn run(&self) -> RunId {
        self.row.run
    }

    /// Returns its number, which no other recipient of the store ever has.
    pub const fn number(&self) -> i64 {
        self.row.no
    }

    /// Returns its name among those of its run and kind.
    pub fn id(&self) -> &str {
        &self.row.id
    }

    /// Returns how it is told.
    ///
    /// # Errors
    /// Why that cannot be read.
    pub fn body(&self) -> Result<&[u8], &DecryptError> {
        self.body.as_deref()
    }

    /// Returns how far it was told.
    pub const fn place(&self) -> Told {
        self.row.told
    }

    /// Returns how often in a row telling it has failed.
    pub const fn tries(&self) -> u32 {
        self.row.tries
    }

    /// Takes note how far it was told, and what is to become of it; returns whether it is still this
    /// process that tells it.
    ///
    /// # Errors
    /// The store fails.
    ///
    /// # Cancel safety
    /// Dropped after it was polled, it is committed all the same; [`TakenRecipient::place`] and
    /// [`TakenRecipient::tries`] stay as they were.
    pub async fn told(&mut self, told: Told, then: Then) -> Result<bool, Error> {
        let now = self.adjourn.clock().now();
        let next = match then {
            Then::More => Next::More(now.after(HELD)),
            Then::Rest => Next::Rest(now.after(HELD)),
            Then::Later { after, failed } => Next::Later(now.after(after), failed),
            Then::Over => Next::Over,
            Then::GiveUp => Next::GiveUp,
        };
        let (no, claim) = (self.row.no, self.row.claim);
        let done = self
            .adjourn
            .transact(move |tx| Ok::<_, CommandError>(tx.told_recipient(no, claim, told, next)?));
        let taken = done.await?;
        if taken != Taken::Lost && told > self.row.told {
            (self.row.told, self.row.tries) = (told, 0);
        }
        if taken == Taken::Released {
            // It may be due again at once, or at a time that is to be planned.
            self.rung.ring(self.row.session);
        }
        Ok(taken == Taken::Held)
    }
}
