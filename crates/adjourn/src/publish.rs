//! Events of the world: what sessions wait for.

use adjourn_core::id::{Seq, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_store::rows::NewEvent;
use adjourn_store::{CommandError, Store, Transaction};
use serde_json::Value;

use crate::adjourn::Adjourn;
use crate::committing::Committing;
use crate::error::Error;

/// Something that happened, and that sessions may wait for.
///
/// It is known by its source and its id: the same one again is taken once.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "it is nothing before it is published"]
pub struct Event {
    name: String,
    subject: Option<String>,
    id: Option<String>,
    source: String,
    time: Option<Timestamp>,
    tenant: Option<String>,
    session: Option<SessionId>,
    data: Option<String>,
}

/// Where events come from, unless it is said.
const SOURCE: &str = "adjourn";

impl Event {
    /// Makes an event by what happened, as a dotted name: `ci.passed`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            subject: None,
            id: None,
            source: SOURCE.to_owned(),
            time: None,
            tenant: None,
            session: None,
            data: None,
        }
    }

    /// Says to what it happened: `pr/12`.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = Some(subject.into());
        self
    }

    /// Gives it the id that its source knows it by, so that it can be published again without harm;
    /// without one, each is a new event.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Says where it comes from.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// Says when it happened; without it, when it is published.
    pub const fn time(mut self, time: Timestamp) -> Self {
        self.time = Some(time);
        self
    }

    /// Says whose sessions may hear of it; without it, those of the tenant that publishes it.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Addresses it to one session, which it wakes whatever that waits for, unless a client paused
    /// it.
    pub fn to(mut self, session: impl Into<Option<SessionId>>) -> Self {
        self.session = session.into();
        self
    }

    /// Adds what there is to say about it: the agent that it wakes is shown it.
    pub fn data(self, data: &Value) -> Self {
        self.data_json(data.to_string())
    }

    /// Adds what there is to say about it, as JSON text.
    pub fn data_json(mut self, data: impl Into<Option<String>>) -> Self {
        self.data = data.into();
        self
    }

    pub(crate) fn complete<S: Store>(self, adjourn: &Adjourn<S>) -> NewEvent {
        let Self { name, subject, id, source, time, tenant, session, data } = self;
        NewEvent {
            id: id.unwrap_or_else(|| adjourn.clock().uuid().to_string()),
            source,
            name,
            subject,
            time: time.unwrap_or_else(|| adjourn.clock().now()),
            tenant: tenant.unwrap_or_else(|| adjourn.tenant().to_owned()),
            session,
            data,
        }
    }
}

impl From<NewEvent> for Event {
    fn from(event: NewEvent) -> Self {
        let NewEvent { id, source, name, subject, time, tenant, session, data } = event;
        let (id, time, tenant) = (Some(id), Some(time), Some(tenant));
        Self { name, subject, id, source, time, tenant, session, data }
    }
}

/// An event that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Its number among all events of the store.
    pub seq: Seq,
    /// Whether it was published for the first time.
    pub fresh: bool,
}

/// Why none of several events was stored.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{error}{}", at(*index))]
pub struct NotPublished {
    /// Which of them was refused, from zero; nothing if the store failed.
    pub index: Option<usize>,
    /// Why.
    #[source]
    pub error: Error,
}

impl<S: Store> Adjourn<S> {
    /// Says that something happened.
    ///
    /// Resolves at the commit that stores the event. Hosts deliver it to the sessions that wait for
    /// it, in this process or in others.
    ///
    /// # Errors
    /// The event is out of its limits, it is for a session that its tenant does not have, or the
    /// store fails.
    ///
    /// # Cancel safety
    /// That of [`Committing`]: dropped after it was polled, the event is stored all the same.
    pub fn publish(&self, event: impl Into<Event>) -> Committing<Result<Published, Error>> {
        let event = event.into().complete(self);
        let publish = self.transact(move |tx| tx.acknowledge(&event));
        Committing::new(async move {
            let (seq, fresh) = publish.await?;
            Ok(Published { seq, fresh })
        })
    }

    /// Says that several things happened, in this order and in one commit: all are stored, or none.
    ///
    /// # Errors
    /// Which event is refused and why, or the store fails.
    ///
    /// # Cancel safety
    /// That of [`Committing`]: dropped after it was polled, all are stored or none.
    pub fn publish_all(
        &self,
        events: impl IntoIterator<Item = Event>,
    ) -> Committing<Result<Vec<Published>, NotPublished>> {
        let events: Vec<_> = events.into_iter().map(|event| event.complete(self)).collect();
        self.transact(move |tx: &mut Transaction<'_>| {
            let acknowledge = |(index, event)| match tx.acknowledge(event) {
                Ok((seq, fresh)) => Ok(Published { seq, fresh }),
                // None is kept if one is refused: the transaction is given up.
                Err(CommandError::Store(error)) => Err(error.into()),
                Err(refused) => Err(NotPublished { index: Some(index), error: refused.into() }),
            };
            events.iter().enumerate().map(acknowledge).collect()
        })
    }
}

impl From<adjourn_store::Error> for NotPublished {
    fn from(error: adjourn_store::Error) -> Self {
        Self { index: None, error: error.into() }
    }
}

/// Says which of several events is meant.
fn at(index: Option<usize>) -> String {
    index.map(|index| format!(" (event {index})")).unwrap_or_default()
}
