//! Importing: a session that goes on from a portable record.

use std::future::IntoFuture;
use std::time::Duration;

use adjourn_core::actor::Actor;
use adjourn_core::driver::DriverSpec;
use adjourn_core::event::{Origin, SealedRecord, SessionCreated, SessionImported};
use adjourn_core::id::SessionId;
use adjourn_core::{Founding, limits};
use adjourn_driver::payload::{MalformedPayload, Payload, RawEntry};
use adjourn_record::keys::Keys;
use adjourn_record::portable::{CLOCK_SKEW, DEFAULT_MAX_AGE, Header, Record};
use adjourn_store::{Done, Sqlite, Store};

use crate::adjourn::Adjourn;
use crate::committing::Committing;
use crate::create::is_parent;
use crate::error::{Error, RecordError};
use crate::session_ref::SessionRef;

/// A record that is about to be taken in; see [`Adjourn::import`].
///
/// Awaited, it resolves at the commit that makes the session, parked as the record has it, with all
/// that it knew: what was said, budget and spending, its question or its conditions, the state of its
/// driver. A deadline that has passed meanwhile acts at once; a parent that is not in this store is left
/// out. The same commit takes note that the record is used up: the store is the ledger, and a record is taken in by one store once.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the record is taken in all the same.
#[must_use = "nothing happens before it is awaited"]
pub struct ImportBuilder<S: Store = Sqlite> {
    adjourn: Adjourn<S>,
    by: Actor,
    record: Record,
    max_age: Option<Duration>,
    id: SessionId,
    labels: Vec<(String, String)>,
    cwd: Option<String>,
}

impl<S: Store> ImportBuilder<S> {
    pub(crate) fn new(adjourn: Adjourn<S>, record: Record) -> Self {
        Self {
            by: adjourn.by(),
            record,
            max_age: Some(DEFAULT_MAX_AGE),
            id: SessionId::new(adjourn.clock().uuid()),
            labels: Vec::new(),
            cwd: None,
            adjourn,
        }
    }

    /// Says how old the record may be, counted from the suspension; `None` lets it be of any age. It
    /// is 24 hours otherwise.
    pub const fn max_age(mut self, age: Option<Duration>) -> Self {
        self.max_age = age;
        self
    }

    /// Gives the session a name, in the place of the one that it had.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.label(Founding::NAME, name)
    }

    /// Adds a label to those that it had, or gives one another value.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((key.into(), value.into()));
        self
    }

    /// Names the directory it works in here.
    pub fn cwd(mut self, directory: impl Into<String>) -> Self {
        self.cwd = Some(directory.into());
        self
    }

    /// Gives it an id that is known before it is taken in.
    pub const fn id(mut self, id: SessionId) -> Self {
        self.id = id;
        self
    }

    /// Names who takes it in, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    /// Returns what it takes to run the session, once the record was checked. Nothing is taken in.
    ///
    /// # Errors
    /// The record is not good here ([`RecordError`]).
    pub async fn driver(&self) -> Result<DriverSpec, Error> {
        let keys = self.adjourn.sealing_keys().await?;
        let opened = self.record.open(&keys, self.adjourn.clock().now(), self.max_age);
        let opened = opened.map_err(RecordError::from)?;
        let payload = Payload::<RawEntry>::decode(opened.payload).map_err(RecordError::from)?;
        let cwd = self.cwd.clone().or(payload.driver.cwd);
        Ok(DriverSpec { cwd, ..payload.driver })
    }

    /// Takes the record in, and returns the commit that did so, too.
    ///
    /// # Errors
    /// The record is not good here ([`RecordError`]), was taken in before
    /// ([`Rejected::AlreadyConsumed`](adjourn_core::Rejected::AlreadyConsumed)), or the store fails.
    ///
    /// # Cancel safety
    /// That of [`Committing`]: dropped after it was polled, the record is taken in all the same.
    pub fn with_commit(self) -> Committing<Result<(SessionRef<S>, Done), Error>> {
        Committing::new(self.commit())
    }

    async fn commit(self) -> Result<(SessionRef<S>, Done), Error> {
        let (adjourn, by) = (self.adjourn.clone(), self.by.clone());
        let session = adjourn.session(self.id);
        let keys = adjourn.sealing_keys().await?;
        let (mut imported, said) = self.checked(&keys)?;
        if let Some(parent) = imported.founding.parent
            && !is_parent(&adjourn, parent).await?
        {
            imported.founding.parent = None;
        }
        let done = adjourn.transact(move |tx| tx.import(by, imported, &said)).await?;
        Ok((session, done))
    }

    /// Checks the record, and returns the session that is made from it and what was said in it.
    fn checked(self, keys: &Keys) -> Result<(SessionImported, Vec<Vec<u8>>), RecordError> {
        let Self { adjourn, record, max_age, id, labels, cwd, .. } = self;
        let now = adjourn.clock().now();
        let opened = record.open(keys, now, max_age)?;
        let header = opened.header;
        if header.suspended_at.since(now) > CLOCK_SKEW {
            return Err(RecordError::FromTheFuture { suspended_at: header.suspended_at, now });
        }
        if header.tenant != adjourn.tenant() {
            let here = adjourn.tenant().to_owned();
            return Err(RecordError::OtherTenant { record: header.tenant, here });
        }
        let payload = Payload::<RawEntry>::decode(opened.payload)?;
        let (mut driver, state, said) = payload.into_parts()?;
        let (session, handle) = (header.session, header.handle);
        if Header::of(&state) != Some(Header { expires_at: None, ..header }) {
            return Err(MalformedPayload("it is not that of its header".to_owned()).into());
        }
        driver.cwd = cwd.or(driver.cwd);
        let mut founding = SessionCreated {
            id,
            tenant: adjourn.tenant().to_owned(),
            labels: state.labels.clone(),
            parent: state.parent,
            driver,
            budget: state.budget,
            title: None,
        };
        founding.labels.extend(labels);
        if founding.labels.len() < limits::LABELS {
            let context = || session.to_string();
            founding.labels.entry(Founding::CONTEXT.to_owned()).or_insert_with(context);
        }
        let sealed = SealedRecord { key: opened.key.to_string(), token: record.token().to_owned() };
        let from = Origin { session, handle, record: sealed };
        Ok((SessionImported { founding, from, state }, said))
    }
}

impl<S: Store> IntoFuture for ImportBuilder<S> {
    type Output = Result<SessionRef<S>, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(async { Ok(self.commit().await?.0) })
    }
}
