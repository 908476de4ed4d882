//! Creating sessions.

use std::collections::BTreeMap;
use std::future::IntoFuture;

use adjourn_core::actor::Actor;
use adjourn_core::carry::Budget;
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::SessionId;
use adjourn_core::{Founding, Rejected};
use adjourn_driver::Message;
use adjourn_store::{CommandError, Done, Sqlite, Store, Transaction};
use serde_json::Value;

use crate::adjourn::Adjourn;
use crate::committing::Committing;
use crate::error::Error;
use crate::session_ref::SessionRef;
use crate::verbs::prompt_request;

/// A session that is about to be created; see [`Adjourn::create`].
///
/// Awaited, it resolves at the commit that creates the session, and returns the way to it. With a
/// prompt, the same commit takes that too, and a host of this process that can run the session
/// claims it there.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the session is created all the same.
#[must_use = "nothing happens before it is awaited"]
pub struct CreateBuilder<S: Store = Sqlite> {
    adjourn: Adjourn<S>,
    by: Actor,
    pub(crate) founding: Founding,
    /// Whether a configuration was given that its driver does not have.
    misplaced_config: bool,
    prompt: Option<Message>,
    message_id: Option<String>,
    once: Option<String>,
    /// The label that is to be its alone.
    own_label: Option<String>,
}

impl<S: Store> CreateBuilder<S> {
    pub(crate) fn new(adjourn: Adjourn<S>, driver: DriverSpec) -> Self {
        let founding = Founding {
            id: SessionId::new(adjourn.clock().uuid()),
            tenant: adjourn.tenant().to_owned(),
            labels: BTreeMap::new(),
            parent: None,
            driver,
            budget: Budget::default(),
            title: None,
        };
        Self::from(adjourn, founding)
    }

    pub(crate) fn from(adjourn: Adjourn<S>, founding: Founding) -> Self {
        let by = adjourn.by();
        Self {
            adjourn,
            by,
            founding,
            misplaced_config: false,
            prompt: None,
            message_id: None,
            once: None,
            own_label: None,
        }
    }

    /// Gives a named driver what it is made with, wherever it runs. It is journaled: secrets do not
    /// belong here. A session whose driver has no name is refused with it.
    pub fn config(mut self, config: impl Into<Value>) -> Self {
        match &mut self.founding.driver.kind {
            DriverKind::Named { config: current, .. } => *current = config.into(),
            _ => self.misplaced_config = true,
        }
        self
    }

    /// Gives it a name, by which [`Adjourn::find`] and the command line find it: the label `name`.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.label(Founding::NAME, name)
    }

    /// Adds a label, which sessions are found by.
    ///
    /// The label `name` ([`Founding::NAME`]) is the session's [name](CreateBuilder::name): among the
    /// open sessions of a tenant, no two have the same one. A creation whose name is taken is refused;
    /// the name is free again when its session has ended.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.founding.labels.insert(key.into(), value.into());
        self
    }

    /// Adds a label that is to be its alone among the open sessions of the tenant, as far as the commit
    /// that creates it can tell: with [`label`](Self::label), others may get the same one later. If
    /// one has it, no session is created, and the refusal
    /// ([`Rejected::NameTaken`](adjourn_core::Rejected::NameTaken)) names that one.
    pub fn own_label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let key = key.into();
        self.own_label = Some(key.clone());
        self.label(key, value)
    }

    /// Names the session on whose behalf this one is made: one of the same tenant, which must be
    /// there when this one is created.
    pub const fn parent(mut self, parent: SessionId) -> Self {
        self.founding.parent = Some(parent);
        self
    }

    /// Limits what it may use; with more than that it is parked.
    pub const fn budget(mut self, budget: Budget) -> Self {
        self.founding.budget = budget;
        self
    }

    /// Gives the conversation a name for lists, until the agent gives it another.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.founding.title = Some(title.into());
        self
    }

    /// Names the directory it works in.
    pub fn cwd(mut self, directory: impl Into<String>) -> Self {
        self.founding.driver.cwd = Some(directory.into());
        self
    }

    /// Gives it an id that is known before it is created.
    pub const fn id(mut self, id: SessionId) -> Self {
        self.founding.id = id;
        self
    }

    /// Names who creates it, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    /// Starts its first run with the same commit.
    pub fn prompt(mut self, message: impl Into<Message>) -> Self {
        self.prompt = Some(message.into());
        self
    }

    /// Gives the message that starts its first run an id: the session takes the same one once.
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        self.message_id = Some(id.into());
        self
    }

    /// Gives the message that starts its first run a key: the tenant takes one message under it,
    /// whichever session takes that. If one did before, no session is created, and the refusal
    /// ([`Rejected::DuplicateMessage`](adjourn_core::Rejected::DuplicateMessage)) names the other.
    pub fn once(mut self, key: impl Into<String>) -> Self {
        self.once = Some(key.into());
        self
    }

    /// Creates the session, and returns the commit that did so, too.
    ///
    /// # Errors
    /// It is out of its limits, its name is taken, its parent is not there, or the store fails.
    ///
    /// # Cancel safety
    /// That of [`Committing`]: dropped after it was polled, the session is created all the same.
    pub fn with_commit(self) -> Committing<Result<(SessionRef<S>, Done), Error>> {
        Committing::new(self.commit())
    }

    async fn commit(self) -> Result<(SessionRef<S>, Done), Error> {
        let Self { adjourn, by, founding, misplaced_config, prompt, message_id, once, own_label } =
            self;
        if misplaced_config {
            let problem = format!("{} agents have none", founding.driver.kind.name());
            return Err(Rejected::Invalid { path: "config".to_owned(), problem }.into());
        }
        if let Some(parent) = founding.parent
            && !is_parent(&adjourn, parent).await?
        {
            return Err(Error::UnknownParent(parent));
        }
        let session = adjourn.session(founding.id);
        let (id, spec) = (founding.id, founding.driver.clone());
        let prompt =
            prompt.map(|message| prompt_request(id, by.clone(), &message, message_id).once(once));
        let prompted = prompt.is_some();
        let work = move |tx: &mut Transaction<'_>| -> Result<Done, CommandError> {
            if let Some(label) = own_label {
                tx.check_own_label(&founding, &label)?;
            }
            let mut done = tx.create(by, founding)?;
            if let Some(prompt) = prompt {
                let Done { session, events, answered } = tx.command(prompt)?;
                let events = [&*done.events, &*events].concat().into();
                done = Done { session, events, answered };
            }
            Ok(done)
        };
        let hosts = adjourn.claimants().clone();
        for host in hosts.iter().rev().filter(|_| prompted) {
            if let Some(prepared) = host.prepare_new(id, &spec).await {
                return Ok((session, host.create(id, prepared, work).await?));
            }
        }
        Ok((session, adjourn.transact(work).await?))
    }
}

/// Returns whether a session can be the parent of one that is made: it is there, and of the same
/// tenant. One that is removed a moment later was there.
pub(crate) async fn is_parent<S: Store>(
    adjourn: &Adjourn<S>,
    parent: SessionId,
) -> Result<bool, Error> {
    match adjourn.session(parent).load().await {
        Ok(session) => Ok(session.tenant == adjourn.tenant()),
        Err(Error::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

impl<S: Store> IntoFuture for CreateBuilder<S> {
    type Output = Result<SessionRef<S>, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(async { Ok(self.commit().await?.0) })
    }
}
