//! How a session comes into a store: created, or taken in from a portable record.

use adjourn_core::actor::Actor;
use adjourn_core::event::{SessionImported, What};
use adjourn_core::id::Handle;
use adjourn_core::journal::{Decision, Entry, Given};
use adjourn_core::session::{Fate, State};
use adjourn_core::{Event, Facts, Founding, Rejected, Session, limits};
use adjourn_record::chain::Tip;

use super::{Done, Transaction, unencodable};
use crate::error::{CommandError, Error};
use crate::fold::{damaged, decode};
use crate::query::{label_mark, marks, name_mark, record_mark};
use crate::rows::{EntryNo, SessionNo, SessionRow, TenantNo};

impl Transaction<'_> {
    /// Creates a session.
    ///
    /// # Errors
    /// The founding is refused, or the store fails.
    pub fn create(&mut self, by: Actor, founding: Founding) -> Result<Done, CommandError> {
        let facts = Facts::new(self.environment.now(), by, self.fresh());
        let (marks, name) = (marks(&founding), founding.name().map(str::to_owned));
        let events = Session::create(&facts, founding)?;
        self.found(facts, events, (&marks, name), Vec::new(), None)
    }

    /// Refuses a session whose label is to be its alone, if an open one of its tenant has it.
    ///
    /// # Errors
    /// Another session has it, or the store fails.
    pub fn check_own_label(
        &mut self,
        founding: &Founding,
        label: &str,
    ) -> Result<(), CommandError> {
        let Some(value) = founding.labels.get(label) else { return Ok(()) };
        let tenant = self.rows.tenant(&founding.tenant)?;
        match self.rows.open_with(tenant, &label_mark(label, value))? {
            Some(session) => Err(Rejected::NameTaken { name: value.clone(), session }.into()),
            None => Ok(()),
        }
    }

    /// Makes a session that goes on from where a portable record says that it was parked, with what
    /// was said in it. A record is taken in once: the store is the ledger. If the session comes from
    /// this store, what is sent to it again is answered as it would be where it was.
    ///
    /// # Errors
    /// The record was taken in before, the session that it goes on with is open in this store, has gone
    /// on from there or cannot be read, the session is refused, or the store fails.
    pub fn import(
        &mut self,
        by: Actor,
        imported: SessionImported,
        said: &[Vec<u8>],
    ) -> Result<Done, CommandError> {
        let record = record_mark(&imported.from);
        if let Some(session) = self.rows.ever_with(&record)? {
            let handle = imported.from.handle;
            return Err(Rejected::AlreadyConsumed { handle, session }.into());
        }
        let founding = Founding::from(imported.founding.clone());
        let (mut marks, name) = (marks(&founding), founding.name().map(str::to_owned));
        marks.push(record);
        let tenant = self.rows.tenant(&founding.tenant)?;
        let mut facts = Facts::new(self.environment.now(), by, self.fresh());
        facts.high = self.rows.high()?;
        facts.keyless_waits = self.rows.keyless_waits(tenant)?;
        let origin = self.rows.session(imported.from.session)?;
        let origin = origin.filter(|origin| origin.tenant == tenant);
        // It may have been in other stores in between, and have another id there; its runs keep theirs.
        let state = &imported.state;
        let run = state.run().map(|run| run.id);
        let mut here: Vec<_> = origin.iter().cloned().collect();
        for run in run.into_iter().chain(state.last_run.as_ref().map(|run| run.id)) {
            let Some(no) = self.rows.session_with_run(run)? else { continue };
            let with_run = self.rows.session_by_no(no)?;
            here.extend(with_run.filter(|with_run| with_run.tenant == tenant));
        }
        for here in &here {
            self.check_over(here, &imported)?;
        }
        let events = Session::import(&facts, imported)?;
        self.found(facts, events, (&marks, name), said.to_vec(), origin.map(|origin| origin.no))
    }

    /// Refuses a record of a session that is open here, or has gone on from there: the store is a copy
    /// from before the export, and one of the two would repeat what the other does.
    fn check_over(
        &mut self,
        here: &SessionRow,
        imported: &SessionImported,
    ) -> Result<(), CommandError> {
        let (handle, session) = (imported.from.handle, here.id);
        match self.load(here) {
            Ok(state) if self.went_on(here, &state, handle)? => {
                Err(Rejected::AlreadyConsumed { handle, session }.into())
            }
            Ok(state) if !matches!(state.state, State::Ended(_)) => {
                Err(Rejected::OpenHere { handle, session }.into())
            }
            Ok(_) => Ok(()),
            // One that was erased had ended; nothing is known of one that is damaged.
            Err(error) if error.is_of_a_session() => {
                let head = self.rows.entry(here.head)?;
                let is_erased = head.is_some_and(|head| head.body.is_none());
                if is_erased { Ok(()) } else { Err(error.into()) }
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a suspension of a session was resumed. A session remembers the last ones; its
    /// journal has all.
    fn went_on(
        &mut self,
        row: &SessionRow,
        session: &Session,
        handle: Handle,
    ) -> Result<bool, Error> {
        if let Some(past) = session.past.iter().find(|past| past.handle == handle) {
            return Ok(matches!(past.fate, Fate::Resumed(_)));
        }
        let mut next = Some(row.head).filter(|_| session.past.len() >= limits::CONSUMED);
        while let Some(no) = next {
            let entry = self.rows.entry(no)?;
            let Some((prev, body)) = entry.and_then(|entry| Some((entry.prev, entry.body?))) else {
                break;
            };
            match decode(row.id, &body)?.event.what {
                What::Resumed(resumed) if resumed.resumption.handle == handle => return Ok(true),
                _ => next = prev,
            }
        }
        Ok(false)
    }

    /// Writes the first entry of a session, what it is found by, and what it has answered as another
    /// session that it goes on with.
    fn found(
        &mut self,
        facts: Facts,
        events: Vec<Event>,
        (marks, name): (&[String], Option<String>),
        said: Vec<Vec<u8>>,
        origin: Option<SessionNo>,
    ) -> Result<Done, CommandError> {
        let decision = Decision::new(Given::Creation, facts);
        let recorded = Entry::record_creation(&decision, events).map_err(unencodable)?;
        let Some((entries, session)) = recorded else {
            return Err(damaged("a session is not created by its creation").into());
        };
        let tenant = self.rows.tenant(&session.tenant)?;
        if let Some(name) = name {
            self.check_name(tenant, name)?;
        }
        let no = self.rows.add_session(&session, tenant, marks)?;
        if let Some(origin) = origin {
            self.rows.go_on_answering(origin, no)?;
        }
        let row = SessionRow { no, id: session.id, tenant, head: EntryNo(0), tip: Tip::START };
        self.append(row, None, entries, session, said)
    }

    /// Refuses a name that could be taken for an id, or that an open session of the tenant has.
    ///
    /// Only here, and not where creations are decided: sessions that were created before there was
    /// such a rule are decided again when a store is verified.
    fn check_name(&mut self, tenant: TenantNo, name: String) -> Result<(), CommandError> {
        limits::session_name(&format!("labels.{}", Founding::NAME), &name)?;
        match self.rows.open_with(tenant, &name_mark(&name))? {
            Some(session) => Err(Rejected::NameTaken { name, session }.into()),
            None => Ok(()),
        }
    }
}
