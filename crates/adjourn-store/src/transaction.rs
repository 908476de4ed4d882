//! The one path of every command: load, decide, append. The same for all back ends.
//!
//! Sessions begin in `founding`; what was decided is written in `append`; events and deadlines come
//! to sessions in `delivery`; those outside who are told what happens are in `recipients`; what is
//! dropped, and when, is in `removal`.

mod append;
mod delivery;
mod founding;
mod recipients;
mod removal;

pub use delivery::{Delivered, Reached};
pub use recipients::{Added, NewRecipient, Next, Taken};
pub use removal::Erased;

use delivery::Seen;

use std::collections::BTreeMap;
use std::sync::Arc;

use adjourn_core::actor::Actor;
use adjourn_core::command::{ReleaseGate, Requester, Resume, Suspend};
use adjourn_core::facts::{Answer, Answered, Fresh, SpanLinks};
use adjourn_core::id::{GateId, Handle, HostId, RunId, Seq, SessionId};
use adjourn_core::journal::{Decision, Entry, Given};
use adjourn_core::session::Phase;
use adjourn_core::time::Timestamp;
use adjourn_core::{Command, Event, Facts, Rejected, Session, limits};
use adjourn_record::merkle::Tree;

use crate::cache::{Cache, Folded};
use crate::committed::Committed;
use crate::environment::Environment;
use crate::error::{CommandError, Error};
use crate::fold::{damaged, fold};
use crate::rows::{
    Batch, GateRow, HostRow, NewEvent, Rows, Scope, SessionNo, SessionRow, TenantNo,
};

/// One caller's part of a write transaction: what it does is kept or undone as a whole.
pub struct Transaction<'a> {
    rows: &'a mut dyn Rows,
    environment: &'a dyn Environment,
    cache: &'a Cache,
    /// Sessions changed here; they enter the cache when all of this is kept.
    changed: BTreeMap<SessionNo, Folded>,
    /// Links of the entries appended here.
    links: Vec<adjourn_record::Hash>,
    /// What the store failed with while something was appended: half of it may be there.
    failed: Option<Error>,
    /// What is told of this when it is committed.
    committed: Committed,
    /// Whether anybody is told.
    is_listened_to: bool,
}

/// A command, and the actor that gives it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The session that the command is for.
    pub session: SessionId,
    /// The actor that gives the command, as the journal names it.
    pub by: Actor,
    /// The command to decide. Commands are large, and a request is moved from its caller through
    /// the queue to the thread that writes.
    pub command: Box<Command>,
    /// The transcript entries whose digests the command names, in order.
    pub said: Vec<Vec<u8>>,
    /// The traces it belongs to.
    pub spans: SpanLinks,
    /// The run that has to be under way; without it, the command is for whatever the session does.
    pub run: Option<RunId>,
    /// What it is not meant for.
    pub spares: Spares,
    /// A key under which the tenant takes one command, whichever session it goes to.
    pub once: Option<String>,
}

impl Request {
    /// A command that says nothing.
    pub fn new(session: SessionId, by: Actor, command: Command) -> Self {
        let spans = SpanLinks { prior: None, pipeline: None };
        let command = Box::new(command);
        let (said, spares) = (Vec::new(), Spares::Nothing);
        Self { session, by, command, said, spans, run: None, spares, once: None }
    }

    /// Names the run that has to be under way: a command that comes behind its end is refused, and
    /// does nothing to what the session does next. A resume whose key was answered for that run is
    /// answered again.
    #[must_use]
    pub const fn of_run(mut self, run: Option<RunId>) -> Self {
        self.run = run;
        self
    }

    /// Says what it is not meant for.
    #[must_use]
    pub const fn sparing(mut self, spares: Spares) -> Self {
        self.spares = spares;
        self
    }

    /// Names a key under which the tenant takes one command, whichever session it goes to: another
    /// one is refused as a message that was taken before ([`Rejected::DuplicateMessage`]).
    #[must_use]
    pub fn once(mut self, key: Option<String>) -> Self {
        self.once = key;
        self
    }

    /// Adds what is said with it.
    #[must_use]
    pub fn saying(mut self, said: Vec<Vec<u8>>) -> Self {
        self.said = said;
        self
    }
}

/// What a command is not meant for, though the lifecycle would let it act on it: such a command is
/// refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spares {
    /// It is meant for whatever there is.
    Nothing,
    /// A resume ends pauses, and answers no question, but that for more of a budget which it brings.
    Questions,
    /// A suspend takes over no pause of a session that lost its host: a person has to look at it.
    Interruptions,
}

/// What a command did.
#[derive(Debug, Clone)]
pub struct Done {
    /// The session as it is after the command.
    pub session: Arc<Session>,
    /// The events that the command led to, in the order in which they were committed.
    pub events: Arc<[Event]>,
    /// The first answer to the command's idempotency key, if this was not the first.
    pub answered: Option<Answer>,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(
        rows: &'a mut dyn Rows,
        environment: &'a dyn Environment,
        cache: &'a Cache,
    ) -> Self {
        Self {
            rows,
            environment,
            cache,
            changed: BTreeMap::new(),
            links: Vec::new(),
            failed: None,
            committed: Committed::default(),
            is_listened_to: false,
        }
    }

    /// Keeps what was done to sessions for those who are told of commits.
    pub(crate) const fn listened_to(mut self, is_listened_to: bool) -> Self {
        self.is_listened_to = is_listened_to;
        self
    }

    /// Returns what the store failed with, whatever the caller made of it.
    pub(crate) const fn failed(&self) -> Option<&Error> {
        self.failed.as_ref()
    }

    /// Keeps all of this: changed sessions enter the cache, links of new entries the commit's tree.
    /// Returns what is told of it once it is committed.
    pub(crate) fn keep(self, tree: &mut Tree) -> Committed {
        for (no, folded) in self.changed {
            self.cache.put(no, folded);
        }
        tree.extend(self.links);
        self.committed
    }

    /// Returns the time of this transaction.
    pub fn now(&self) -> Timestamp {
        self.environment.now()
    }

    /// Gives a command to a session.
    ///
    /// # Errors
    /// There is no such session, the command is refused, or the store fails.
    pub fn command(&mut self, request: Request) -> Result<Done, CommandError> {
        let row = self.rows.session(request.session)?;
        let row = row.ok_or(CommandError::NotFound(request.session))?;
        self.decide(row, request)
    }

    fn decide(&mut self, row: SessionRow, request: Request) -> Result<Done, CommandError> {
        let session = self.load(&row)?;
        let Request { by, command, said, spans, run, spares, once, .. } = request;
        if let Some(key) = &once {
            self.check_once(row.tenant, key, &command)?;
        }
        let (mut facts, heard) = self.facts(&row, &session, by, &command)?;
        check_meant(&session, &command, facts.answered.as_ref(), (run, spares))?;
        facts.spans = spans;
        let decided = session.decide_recorded(&facts, &command)?;
        if decided.events.is_empty() {
            self.keep_once(row.tenant, once.as_deref(), session.id)?;
            let answered = facts.answered.map(|answered| answered.answer);
            return Ok(Done { session, events: Arc::default(), answered });
        }
        let decision = Decision::new(Given::Command(*command), facts);
        let (entries, after) = Entry::record(&decision, decided).map_err(unencodable)?;
        let (no, tenant, high) = (row.no, row.tenant, decision.facts.high);
        let done = self.append(row, Some(&session), entries, after, said)?;
        self.keep_once(tenant, once.as_deref(), done.session.id)?;
        if heard < high && done.session.suspended().is_some() {
            // There is more to look back to than one commit may read: it is shown the rest.
            let lagging = self.rows.set_lagging(no, heard);
            if let Err(error) = &lagging {
                self.failed = Some(error.clone());
            }
            lagging?;
            self.committed.leaves_work = true;
        }
        Ok(done)
    }

    /// Keeps the key under which the tenant takes one command, if it has one.
    fn keep_once(
        &mut self,
        tenant: TenantNo,
        key: Option<&str>,
        session: SessionId,
    ) -> Result<(), CommandError> {
        let Some(key) = key else { return Ok(()) };
        let kept = self.rows.keep_taken(tenant, key, session, self.environment.now());
        if let Err(error) = &kept {
            self.failed = Some(error.clone());
        }
        Ok(kept?)
    }

    /// Refuses what the tenant took before under a key.
    fn check_once(
        &mut self,
        tenant: TenantNo,
        key: &str,
        command: &Command,
    ) -> Result<(), CommandError> {
        let Some(session) = self.rows.taken(tenant, key)? else { return Ok(()) };
        let message_id = match command {
            Command::Prompt(prompt) => prompt.message_id.clone(),
            Command::Resume(resume) => resume.message_id.clone(),
            _ => None,
        };
        let message_id = message_id.unwrap_or_else(|| key.to_owned());
        Err(Rejected::DuplicateMessage { message_id, session }.into())
    }

    /// Returns a session as it is within this transaction.
    ///
    /// # Errors
    /// The store fails.
    pub fn session(&mut self, id: SessionId) -> Result<Option<Arc<Session>>, Error> {
        let Some(row) = self.rows.session(id)? else { return Ok(None) };
        self.load(&row).map(Some)
    }

    /// Returns what an event carries.
    ///
    /// # Errors
    /// The store fails.
    pub fn event_data(&mut self, seq: Seq) -> Result<Option<String>, Error> {
        self.rows.event_data(seq)
    }

    /// Acknowledges an event, once: the same one again gets the number it has. Returns the number,
    /// and whether it is the first time.
    ///
    /// # Errors
    /// The event is out of its limits or for a session that its tenant does not have, or the store
    /// fails. The caller passes the error on: only then the event is not kept.
    pub fn acknowledge(&mut self, event: &NewEvent) -> Result<(Seq, bool), CommandError> {
        check_event(event)?;
        let tenant = self.rows.tenant(&event.tenant)?;
        let (seq, first) = self.rows.add_event(tenant, event, self.environment.now())?;
        // One that is known was for a session that was there; it may be gone since.
        if let (Some(id), true) = (event.session, first)
            && self.rows.session(id)?.is_none_or(|row| row.tenant != tenant)
        {
            return Err(CommandError::NotFound(id));
        }
        self.committed.leaves_work = true;
        Ok((seq, first))
    }

    /// Lays a gate over a scope; what runs there is to be stopped with [`Transaction::stop`].
    ///
    /// # Errors
    /// The store fails.
    pub fn lay_gate(&mut self, gate: &GateRow) -> Result<(), Error> {
        self.rows.add_gate(gate)
    }

    /// Suspends what is under way in a gate's scope, after `after`, looking at most at `limit`
    /// sessions; returns the last one looked at while there are more.
    ///
    /// # Errors
    /// The store fails.
    pub fn stop(
        &mut self,
        gate: &GateRow,
        after: SessionNo,
        limit: usize,
    ) -> Result<Option<SessionNo>, CommandError> {
        let suspend = Suspend {
            reason: gate.gate.reason.clone(),
            mode: adjourn_core::command::Mode::InterruptImmediate,
            requester: Some(Requester::Gate(gate.gate.id)),
            ..Suspend::default()
        };
        let by = gate.gate.by.clone();
        let numbers = self.rows.owned(after, limit)?;
        self.each_in_scope(&gate.scope, numbers, limit, &by, &Command::Suspend(suspend))
    }

    /// Removes a gate; what it stopped is to be let go with [`Transaction::let_go`].
    ///
    /// # Errors
    /// The store fails.
    pub fn release_gate(&mut self, id: GateId) -> Result<bool, Error> {
        self.committed.leaves_work = true;
        self.rows.remove_gate(id)
    }

    /// Resumes what only this gate had stopped, as [`Transaction::stop`] goes through them.
    ///
    /// # Errors
    /// The store fails.
    pub fn let_go(
        &mut self,
        gate: GateId,
        by: Actor,
        after: SessionNo,
        limit: usize,
    ) -> Result<Option<SessionNo>, CommandError> {
        let release = Command::ReleaseGate(ReleaseGate { gate });
        let numbers = self.rows.gated(after, limit)?;
        self.each_in_scope(&Scope::default(), numbers, limit, &by, &release)
    }

    /// Returns sessions that a host owns, at most `limit`. Those that cannot be read are marked,
    /// and left out.
    ///
    /// # Errors
    /// The store fails.
    pub fn owned_by(
        &mut self,
        host: HostId,
        limit: usize,
    ) -> Result<Vec<(SessionNo, Arc<Session>)>, Error> {
        loop {
            let numbers = self.rows.owned_by(host, limit)?;
            let none = numbers.is_empty();
            let owned = self.load_all(numbers)?;
            // What was marked is not among the next.
            if none || !owned.is_empty() {
                return Ok(owned);
            }
        }
    }

    /// Announces a host.
    ///
    /// # Errors
    /// The store fails.
    pub fn announce(&mut self, host: &HostRow) -> Result<(), Error> {
        self.rows.add_host(host)
    }

    /// Forgets a host.
    ///
    /// # Errors
    /// The store fails.
    pub fn forget(&mut self, host: HostId) -> Result<(), Error> {
        self.rows.remove_host(host)
    }

    /// Enters a batch into the list that queries answer from.
    pub(crate) fn enter(&mut self, batch: &Batch) -> Result<(), Error> {
        self.rows.enter(batch)
    }

    fn each_in_scope(
        &mut self,
        scope: &Scope,
        numbers: Vec<SessionNo>,
        limit: usize,
        by: &Actor,
        command: &Command,
    ) -> Result<Option<SessionNo>, CommandError> {
        let last = numbers.last().copied().filter(|_| numbers.len() == limit);
        for (_, session) in self.load_all(numbers)? {
            if scope.includes(&session) {
                let request = Request::new(session.id, by.clone(), command.clone());
                match self.command(request) {
                    Ok(_) | Err(CommandError::Rejected(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(last)
    }

    fn load_all(
        &mut self,
        numbers: Vec<SessionNo>,
    ) -> Result<Vec<(SessionNo, Arc<Session>)>, Error> {
        let mut sessions = Vec::with_capacity(numbers.len());
        for no in numbers {
            let Some(row) = self.rows.session_by_no(no)? else { continue };
            match self.load(&row) {
                Ok(session) => sessions.push((no, session)),
                // A session that cannot be read must not hold up the others.
                Err(error) if error.is_of_a_session() => {
                    let heard = self.rows.cursor()?.done();
                    self.rows.set_unreadable(no, heard, self.environment.now())?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(sessions)
    }

    /// Fills in what a decision must know, and returns up to which event its waits have looked back.
    fn facts(
        &mut self,
        row: &SessionRow,
        session: &Session,
        by: Actor,
        command: &Command,
    ) -> Result<(Facts, Seq), Error> {
        let mut facts = Facts::new(self.environment.now(), by, self.fresh());
        facts.high = self.rows.high()?;
        let needs = session.needs(command);
        if let Some(key) = needs.key {
            let answered = self.rows.answered(row.no, key);
            facts.answered = answered.map_err(|error| error.of(row.id))?;
        }
        if let Some(id) = needs.message_id {
            facts.message_seen = self.rows.message_seen(row.no, id)?;
        }
        if needs.keyless_waits {
            facts.keyless_waits = self.rows.keyless_waits(row.tenant)?;
        }
        let Seen { found, heard, .. } =
            self.look_back(row.tenant, &needs.look_backs, facts.high)?;
        facts.arrivals = found;
        for gate in self.rows.gates()? {
            if gate.scope.includes(session) {
                facts.gates.push(gate.gate);
            }
        }
        Ok((facts, heard))
    }

    /// Folds a session: from what is known of it already, or from the last entry with its state.
    fn load(&mut self, row: &SessionRow) -> Result<Arc<Session>, Error> {
        if let Some(folded) = self.changed.get(&row.no) {
            return Ok(Arc::clone(&folded.session));
        }
        let session = fold(row, self.cache.get(row.no), self.rows)?;
        let folded = Folded { link: row.tip.link, session: Arc::clone(&session) };
        self.cache.put(row.no, folded);
        Ok(session)
    }

    fn fresh(&self) -> Fresh {
        Fresh {
            handle: Handle::new(self.environment.uuid()),
            run: RunId::new(self.environment.uuid()),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what an error is turned into another by")]
fn unencodable(error: serde_json::Error) -> Error {
    damaged(&error.to_string())
}

/// Refuses events that are out of their limits.
fn check_event(event: &NewEvent) -> Result<(), Rejected> {
    const DATA_BYTES: usize = 256 * 1024;
    limits::name("id", &event.id)?;
    limits::name("source", &event.source)?;
    limits::name("type", &event.name)?;
    limits::name("tenant", &event.tenant)?;
    if let Some(subject) = &event.subject {
        limits::name("subject", subject)?;
    }
    if event.data.as_ref().is_some_and(|data| data.len() > DATA_BYTES) {
        let problem = format!("longer than {DATA_BYTES} bytes");
        return Err(Rejected::Invalid { path: "data".to_owned(), problem });
    }
    Ok(())
}

/// Refuses a command that finds something else than it is meant for: another run, or what it spares.
/// A key that was answered before is answered again, whatever there is by then, but for no other run
/// than the first time.
fn check_meant(
    session: &Session,
    command: &Command,
    answered: Option<&Answered>,
    (run, spares): (Option<RunId>, Spares),
) -> Result<(), Rejected> {
    if let Some(answered) = answered {
        let is_anothers = run.is_some() && run != answered.run;
        return match command {
            Command::Resume(Resume { idempotency_key: Some(key), .. }) if is_anothers => {
                Err(Rejected::IdempotencyKeyReused { key: key.clone() })
            }
            _ => Ok(()),
        };
    }
    let phase = session.phase();
    if run.is_some() && run != session.run().map(|run| run.id) {
        return Err(match command {
            // Where the session is says nothing of the run that is meant: that is over.
            Command::Suspend(_) | Command::AwaitResumption(_) => {
                Rejected::NotSuspendable { phase: Phase::Idle }
            }
            Command::Cancel(_) => Rejected::NothingToCancel { phase },
            // The suspension that is in force is another run's.
            Command::Resume(Resume { handle: Some(handle), .. }) => {
                session.past_suspension(*handle)
            }
            _ => Rejected::NotSuspended { phase },
        });
    }
    let pause = session.suspended().map(|suspended| &suspended.park.pause);
    let lost_its_host = pause.is_some_and(|pause| pause.host_interrupted);
    let is_given_what_it_asks_for = pause.is_some_and(|pause| pause.asks_for_budget())
        && matches!(command, Command::Resume(Resume { add_budget: Some(_), .. }));
    match spares {
        Spares::Questions if phase == Phase::Asking && !is_given_what_it_asks_for => {
            Err(Rejected::NotSuspended { phase })
        }
        Spares::Interruptions if lost_its_host => Err(Rejected::NotSuspendable { phase }),
        Spares::Nothing | Spares::Questions | Spares::Interruptions => Ok(()),
    }
}
