//! How events and deadlines come to the sessions that wait for them.
//!
//! Events are shown to all who wait for them in one order, behind one cursor. A session that has
//! not heard everything up to there lags: it began to wait for more past events than one commit may
//! read, or it could not be read when its turn was. It is shown the rest by itself, in the same
//! order, and nothing beyond before that.

use std::sync::Arc;

use adjourn_core::actor::Actor;
use adjourn_core::arrival::Arrival;
use adjourn_core::command::{Loss, Recover, ReleaseGate};
use adjourn_core::conditions::{Conditions, Names, event_keys};
use adjourn_core::facts::{LookBack, Sought};
use adjourn_core::id::{HostId, Seq, SessionId};
use adjourn_core::{Command, Session};

use super::{Done, Request, Transaction};
use crate::error::{CommandError, Error};
use crate::rows::{Cursor, SessionNo, TenantNo};

/// How many past events a commit reads for the waits that begin in it, and one delivery for those
/// that lag: with the write lock held, a millisecond or two.
const LOOK_BACK: usize = 1024;
/// How many past events each of a wait's many keys may read all the same.
const LEAST: usize = 16;

/// How the delivery of events went.
#[derive(Debug, Default)]
pub struct Delivered {
    /// Sessions that an event changed.
    pub changed: Vec<Arc<Session>>,
    /// What each event did to each session that it changed.
    pub reached: Vec<Reached>,
    /// Each event once for every session that may wait for it and was not shown it, because it lags
    /// or cannot be read.
    pub kept: Vec<Seq>,
    /// The last event that is done with.
    pub done: Seq,
    /// Whether there is more to deliver.
    pub more: bool,
}

/// What an event did to a session that waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    /// The sequence number of the event.
    pub seq: Seq,
    /// The session that it was delivered to.
    pub session: SessionId,
    /// Whether the session woke; under a hold the event only counts when the hold is lifted.
    pub woke: bool,
}

impl Delivered {
    /// Adds a session that an event changed.
    fn add(&mut self, seq: Seq, session: Arc<Session>) {
        let woke = session.suspended().is_none();
        self.reached.push(Reached { seq, session: session.id, woke });
        self.changed.push(session);
    }
}

/// What a look back over past events has come to.
pub(super) struct Seen {
    /// For each search, the first event that it finds.
    pub(super) found: Vec<Arrival>,
    /// Nothing that is searched for has come up to this event, but for what was found.
    pub(super) heard: Seq,
    /// How many events were read, at most.
    read: usize,
}

impl Transaction<'_> {
    /// Delivers acknowledged events to the sessions that wait for them, at most `limit` of these.
    ///
    /// Where it got to is part of the commit, so every event reaches every waiting session once,
    /// whoever delivers.
    ///
    /// # Errors
    /// The store fails.
    pub fn deliver(&mut self, by: &Actor, limit: usize) -> Result<Delivered, CommandError> {
        let mut delivered = Delivered::default();
        let mut cursor = self.rows.cursor()?;
        let mut left = limit;
        let mut some_lag = self.rows.some_lag()?;
        if some_lag {
            left = self.catch_up(by, cursor.seq, left, &mut delivered)?;
        }
        loop {
            let Some((tenant, arrival)) = self.rows.event_after(cursor.done())? else { break };
            if left == 0 {
                delivered.more = true;
                break;
            }
            let after = cursor.session.unwrap_or(SessionNo(0));
            let waiting = self.addressees(tenant, &arrival, after, left)?;
            cursor = Cursor { seq: arrival.seq, session: None };
            if waiting.len() == left {
                cursor.session = waiting.last().copied();
            }
            // An event that no session waits for takes its time, too.
            left -= waiting.len().max(1);
            let heard = Seq(arrival.seq.0.saturating_sub(1));
            for no in waiting {
                // What it has not heard yet comes first; this event comes behind that.
                if some_lag && self.rows.lags(no)? {
                    delivered.kept.push(arrival.seq);
                    continue;
                }
                match self.nudge(no, by, Command::Deliver(arrival.clone()), heard)? {
                    Nudged::Changed(session) => delivered.add(arrival.seq, session),
                    Nudged::Unchanged => {}
                    Nudged::Unreadable => {
                        some_lag = true;
                        delivered.kept.push(arrival.seq);
                    }
                }
            }
        }
        self.rows.set_cursor(cursor)?;
        delivered.done = cursor.done();
        Ok(delivered)
    }

    /// Counts the sessions, at most `limit`, that may wait for an event that is not delivered yet.
    ///
    /// # Errors
    /// The store fails.
    pub fn awaiting(&mut self, seq: Seq, limit: usize) -> Result<usize, Error> {
        let cursor = self.rows.cursor()?;
        if cursor.done() >= seq {
            return Ok(0);
        }
        let before = Seq(seq.0.saturating_sub(1));
        let Some((tenant, arrival)) = self.rows.event_after(before)? else { return Ok(0) };
        let after = cursor.session.filter(|_| cursor.seq == seq).unwrap_or(SessionNo(0));
        Ok(self.addressees(tenant, &arrival, after, limit)?.len())
    }

    /// Shows sessions that lag what they have not heard, up to the event `high`; returns how many
    /// of `limit` may still be dealt with.
    fn catch_up(
        &mut self,
        by: &Actor,
        high: Seq,
        limit: usize,
        delivered: &mut Delivered,
    ) -> Result<usize, CommandError> {
        let mut left = limit;
        let mut read = 0;
        for (no, mut heard) in self.rows.lagging(limit)? {
            let Some(row) = self.rows.session_by_no(no)? else { continue };
            loop {
                if left == 0 || read >= LOOK_BACK {
                    delivered.more = true;
                    self.rows.set_heard(no, heard)?;
                    return Ok(left);
                }
                let session = match self.load(&row) {
                    Err(error) if error.is_of_a_session() => {
                        self.rows.set_unreadable(no, heard, self.now())?;
                        break;
                    }
                    session => session?,
                };
                let seen = self.look_back(row.tenant, &session.missed(heard), high)?;
                read += seen.read.max(1);
                let first = seen.found.into_iter().min_by_key(|arrival| arrival.seq);
                let Some(arrival) = first else {
                    heard = seen.heard;
                    if heard < high {
                        continue;
                    }
                    self.rows.set_caught_up(no)?;
                    // Its deadline, too, acts again as it should.
                    let row = self.rows.session_by_no(no)?.unwrap_or(row);
                    self.rows.set_session(&row, &session)?;
                    break;
                };
                left -= 1;
                heard = arrival.seq;
                let command = Command::Deliver(arrival);
                if let Nudged::Changed(session) = self.nudge(no, by, command, heard)? {
                    delivered.add(heard, session);
                }
            }
        }
        Ok(left)
    }

    /// Gives a session what the world has for it. One that cannot be read is marked and left alone,
    /// so that it does not keep others from what is theirs; `heard` is the last event it was shown.
    fn nudge(
        &mut self,
        no: SessionNo,
        by: &Actor,
        command: Command,
        heard: Seq,
    ) -> Result<Nudged, CommandError> {
        let Some(row) = self.rows.session_by_no(no)? else { return Ok(Nudged::Unchanged) };
        match self.load(&row) {
            Err(error) if error.is_of_a_session() => {
                self.rows.set_unreadable(no, heard, self.now())?;
                return Ok(Nudged::Unreadable);
            }
            loaded => loaded?,
        };
        let request = Request::new(row.id, by.clone(), command);
        let Done { session, events, .. } = self.decide(row, request)?;
        Ok(if events.is_empty() { Nudged::Unchanged } else { Nudged::Changed(session) })
    }

    /// Lets deadlines act that have passed, at most `limit`; returns the sessions they changed.
    ///
    /// # Errors
    /// The store fails.
    pub fn expire(&mut self, by: &Actor, limit: usize) -> Result<Vec<Arc<Session>>, CommandError> {
        let due = self.rows.due(self.now(), limit)?;
        if due.is_empty() {
            return Ok(Vec::new());
        }
        let heard = self.rows.cursor()?.done();
        let mut changed = Vec::with_capacity(due.len());
        for no in due {
            if let Nudged::Changed(session) = self.nudge(no, by, Command::Expire, heard)? {
                changed.push(session);
            }
        }
        Ok(changed)
    }

    /// Marks a session that its host cannot read, and therefore drives no more: whoever can read it
    /// takes it from that host with [`Transaction::mend`], also while the host lives. Returns
    /// whether it is so.
    ///
    /// # Errors
    /// The store fails.
    pub fn let_unreadable_go(&mut self, id: SessionId) -> Result<bool, Error> {
        let Some(row) = self.rows.session(id)? else { return Ok(false) };
        match self.load(&row) {
            Err(error) if error.is_of_a_session() => {}
            session => return session.map(|_| false),
        }
        let heard = self.rows.cursor()?.done();
        self.rows.set_unreadable(row.no, heard, self.now())?;
        self.rows.set_let_go(row.no)?;
        Ok(true)
    }

    /// Takes a session back among those that can be read, if it can; it is shown what it has not
    /// heard with the next [`Transaction::deliver`]. It is taken from its host if that one is
    /// `gone`, or has let it go because it could not read it.
    ///
    /// # Errors
    /// The store fails.
    pub fn mend(
        &mut self,
        by: &Actor,
        id: SessionId,
        gone: Option<HostId>,
    ) -> Result<Option<Arc<Session>>, CommandError> {
        let Some(row) = self.rows.session(id)? else { return Ok(None) };
        let mut session = match self.load(&row) {
            Err(error) if error.is_of_a_session() => return Ok(None),
            session => session?,
        };
        let let_go = self.rows.is_let_go(row.no)?;
        self.rows.set_readable(row.no)?;
        // No host that looks for what the gone one had finds it once it is not marked any more.
        if let Some(owner) = session.owner()
            && (let_go || gone == Some(owner.host))
        {
            let recover = Recover { host: owner.host, epoch: owner.epoch, how: Loss::Died };
            let recover = Request::new(id, by.clone(), Command::Recover(recover));
            session = self.command(recover)?.session;
        }
        // A gate may have been released meanwhile that had stopped it.
        let gates = self.rows.gates()?;
        for gate in session.gates() {
            if gates.iter().all(|row| row.gate.id != gate) {
                let release = Command::ReleaseGate(ReleaseGate { gate });
                self.command(Request::new(id, by.clone(), release))?;
            }
        }
        self.session(id).map_err(CommandError::from)
    }

    /// Returns the sessions an arrival may concern, in the order of their numbers.
    fn addressees(
        &mut self,
        tenant: TenantNo,
        arrival: &Arrival,
        after: SessionNo,
        limit: usize,
    ) -> Result<Vec<SessionNo>, Error> {
        let mut waiting = self.rows.waiting(tenant, &event_keys(arrival.view()), after, limit)?;
        if let Some(id) = arrival.session
            && let Some(row) = self.rows.session(id)?
            && row.tenant == tenant
            && row.no > after
            && !waiting.contains(&row.no)
        {
            waiting.push(row.no);
            waiting.sort_unstable();
            waiting.truncate(limit);
        }
        Ok(waiting)
    }

    /// Finds the first events that waits must not miss, among those up to `high`, as far as one
    /// transaction may look.
    pub(super) fn look_back(
        &mut self,
        tenant: TenantNo,
        searches: &[LookBack<'_>],
        high: Seq,
    ) -> Result<Seen, Error> {
        let mut seen = Seen { found: Vec::new(), heard: high, read: 0 };
        for search in searches {
            // Nothing is younger than the window: the common case, and free.
            if search.window < high {
                self.search(tenant, search, high, &mut seen)?;
            }
        }
        // What lies behind the place up to which all have looked has its turn when they get there.
        let heard = seen.heard;
        seen.found.retain(|arrival| arrival.seq <= heard);
        Ok(seen)
    }

    /// Does one search, as far as its share goes.
    fn search(
        &mut self,
        tenant: TenantNo,
        search: &LookBack<'_>,
        high: Seq,
        seen: &mut Seen,
    ) -> Result<(), Error> {
        let conditions = match search.sought {
            Sought::Addressed(session) => {
                let found = self.rows.event_addressed(tenant, session, search.window)?;
                seen.found.extend(found.filter(|arrival| arrival.seq <= high));
                return Ok(());
            }
            Sought::Matching(conditions) => conditions,
        };
        let keys = Conditions::keys(conditions);
        let share = (LOOK_BACK / keys.len().max(1)).max(LEAST);
        let (mut first, mut heard): (Option<Arrival>, Seq) = (None, high);
        for key in &keys {
            let names = key.names();
            let until = match names {
                Names::Only(_) => high,
                // No index leads to them: all that came are read.
                Names::Under(_) | Names::All => {
                    Seq(search.window.0.saturating_add(share as u64)).min(high)
                }
            };
            let page = self.rows.events_named(tenant, search.window, until, names, share)?;
            seen.read += match names {
                Names::Only(_) => page.len(),
                Names::Under(_) | Names::All => share,
            };
            let reached =
                page.last().filter(|_| page.len() == share).map_or(until, |last| last.seq);
            match page.into_iter().find(|arrival| search.finds(arrival)) {
                Some(found) if first.as_ref().is_none_or(|first| found.seq < first.seq) => {
                    first = Some(found);
                }
                Some(_) => {}
                None => heard = heard.min(reached),
            }
        }
        match first {
            // No key has an earlier one: the search is over.
            Some(first) if first.seq <= heard => seen.found.push(first),
            // The first of them may lie where some keys have not looked yet.
            _ => seen.heard = seen.heard.min(heard),
        }
        Ok(())
    }
}

/// What became of a session that the world had something for.
enum Nudged {
    Changed(Arc<Session>),
    Unchanged,
    Unreadable,
}
