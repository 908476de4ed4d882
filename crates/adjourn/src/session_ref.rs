//! One session, as a program sees it: its verbs, its past and what becomes of it.

use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::actor::Actor;
use adjourn_core::command::{AwaitResumption, Cancel, Close, Resume, SetOption, Suspend};
use adjourn_core::id::{RequestId, SessionId};
use adjourn_core::session::State;
use adjourn_driver::{Environment, Message};
use adjourn_store::{Sqlite, Store};

use crate::adjourn::Adjourn;
use crate::error::Error;
use crate::moments::WatchBuilder;
use crate::process::Process;
use crate::verbs::{
    AwaitBuilder, CancelBuilder, CloseBuilder, ExportBuilder, PromptBuilder, RemoveBuilder,
    ResumeBuilder, SetOptionBuilder, SuspendBuilder, TakeoverBuilder, WithdrawBuilder,
};

/// The way to one session: what can be asked of it. Cheap to clone.
///
/// Each verb is a builder that is awaited: nothing happens before that. Each resolves at the commit
/// that it names, and returns what that commit did; no second read is in between.
pub struct SessionRef<S: Store = Sqlite> {
    adjourn: Adjourn<S>,
    id: SessionId,
}

impl<S: Store> Clone for SessionRef<S> {
    fn clone(&self) -> Self {
        Self { adjourn: self.adjourn.clone(), id: self.id }
    }
}

impl<S: Store> SessionRef<S> {
    pub(crate) const fn new(adjourn: Adjourn<S>, id: SessionId) -> Self {
        Self { adjourn, id }
    }

    /// Returns its id.
    pub const fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the store that it lives in.
    pub const fn adjourn(&self) -> &Adjourn<S> {
        &self.adjourn
    }

    /// Says something to the agent: starts a run, or answers what the session waits for.
    ///
    /// Resolves at the commit that takes the message.
    pub fn prompt(&self, message: impl Into<Message>) -> PromptBuilder<S> {
        PromptBuilder::new(self.clone(), message.into())
    }

    /// Pauses the session.
    ///
    /// Resolves at the commit with which the pause is in force: nothing runs from then on, and the
    /// transcript stands still. A pending pause whose future is dropped is withdrawn.
    pub fn suspend(&self) -> SuspendBuilder<S> {
        SuspendBuilder::new(self.clone(), Suspend::default())
    }

    /// Pauses the session as a request says that came from elsewhere; its requester is this call.
    ///
    /// Resolves as [`SessionRef::suspend`] does.
    pub fn suspend_as(&self, suspend: Suspend) -> SuspendBuilder<S> {
        SuspendBuilder::new(self.clone(), suspend)
    }

    /// Parks the session for its agent, as a worker outside of its host does that has nothing to do
    /// until something happens.
    ///
    /// Resolves at the commit with which the agent is parked. Such a worker holds no claim: what is in
    /// flight comes back first, and no further step begins.
    pub fn await_resumption(&self, reason: impl Into<String>) -> AwaitBuilder<S> {
        let wait = AwaitResumption { reason: reason.into(), ..AwaitResumption::default() };
        AwaitBuilder::new(self.clone(), wait)
    }

    /// Parks the session as a worker's request says; resolves as [`SessionRef::await_resumption`]
    /// does.
    pub fn await_as(&self, wait: AwaitResumption) -> AwaitBuilder<S> {
        AwaitBuilder::new(self.clone(), wait)
    }

    /// Takes back a pending suspend that was [accepted](SuspendBuilder::accepted).
    ///
    /// Resolves at the commit that takes it back.
    pub fn withdraw(&self, request: RequestId) -> WithdrawBuilder<S> {
        WithdrawBuilder::new(self.clone(), request)
    }

    /// Wakes the session, lifts a hold, or takes back a pending suspend.
    ///
    /// Resolves at the commit that does so.
    pub fn resume(&self) -> ResumeBuilder<S> {
        ResumeBuilder::new(self.clone(), Resume::default())
    }

    /// Ends the run.
    ///
    /// Resolves at the commit that accepts it. What is in flight may go on for its grace;
    /// [`SessionRef::finished`] waits for the end.
    pub fn cancel(&self) -> CancelBuilder<S> {
        CancelBuilder::new(self.clone(), Cancel::default())
    }

    /// Chooses how the agent works, for instance its mode, whatever the session is doing.
    ///
    /// Resolves at the commit that does so. A session that is parked stays parked; an agent whose
    /// step runs is told at once, any other with its next step.
    pub fn set_option(
        &self,
        option: impl Into<String>,
        value: impl Into<String>,
    ) -> SetOptionBuilder<S> {
        let set = SetOption { option: option.into(), value: value.into() };
        SetOptionBuilder::new(self.clone(), set)
    }

    /// Gives the session values of environment variables and of headers of its MCP servers, in this
    /// process and in memory alone: they are never stored, so another process must be given them,
    /// too. They hold from the next claim on, and add to those that were given before.
    ///
    /// A session that is created with a prompt is claimed at once: give it an
    /// [id](crate::CreateBuilder::id), and its values before it is created.
    ///
    /// They are forgotten when the session is over, whichever process ends or removes it.
    ///
    /// # Cancel safety
    /// Dropped before it is polled, nothing is given; polled once, all of it is.
    pub async fn provide(&self, values: Environment) {
        let Process { store, feed, values: all, .. } = self.adjourn().process();
        let hosts = self.adjourn().claimants().clone();
        // A host that keeps a driver of the session has read what the session was created with.
        let spec = hosts.iter().find_map(|host| host.spec(self.id()).ok().flatten());
        let stored = spec.as_ref().map_or(&[][..], |spec| &spec.mcp_servers);
        if all.provide(self.id(), values, stored) {
            // A driver that is kept was made with the servers of before.
            hosts.iter().for_each(|host| host.end_outdated(self.id()));
        }
        // From here on the feed tells when it is over.
        match store.session(self.id()) {
            Ok(Some(session)) if matches!(session.state, State::Ended(_)) => all.forget(self.id()),
            Ok(Some(_)) => drop(all.is_created(self.id())),
            // It is given them before it is created, or shows what is wrong when it is read.
            Ok(None) | Err(_) => {}
        }
        // A host that lacked them may take the session with them.
        feed.wake_hosts();
    }

    /// Ends the session.
    ///
    /// Resolves at the commit that ends it.
    pub fn close(&self) -> CloseBuilder<S> {
        CloseBuilder::new(self.clone(), Close::default())
    }

    /// Ends the session here, because it goes on elsewhere: returns a signed record of it, which
    /// [`Adjourn::import`] takes in, and which `adjourn-agent` resumes if it is a native agent's.
    ///
    /// Resolves at the commit that ends it. Only a parked session is exported; one that is held, or
    /// that lost its host, is not.
    pub fn export(&self) -> ExportBuilder<S> {
        ExportBuilder::new(self.clone())
    }

    /// Ends the session, and erases what happened in it.
    ///
    /// Resolves when all is erased, which takes more than one commit for a long session.
    pub fn remove(&self) -> RemoveBuilder<S> {
        RemoveBuilder::new(self.clone())
    }

    /// Takes the session from a host that hangs, for another to go on with.
    ///
    /// Resolves at the commit that takes it; what the host still commits is refused from then on.
    pub fn take_over(&self) -> TakeoverBuilder<S> {
        TakeoverBuilder::new(self.clone())
    }

    /// Returns the session as it is now.
    ///
    /// # Errors
    /// There is no such session, or it was removed; another program wrote what this one cannot
    /// read; or the store fails.
    pub async fn load(&self) -> Result<Arc<Session>, Error> {
        let store = &self.adjourn.process().store;
        let session = store.session(self.id)?.ok_or(Error::NotFound(self.id))?;
        // Of one that was removed, the end stays, so that the chain of its entries does.
        let is_over = matches!(session.state, State::Ended(_));
        match is_over && store.founding(self.id)?.is_none() {
            true => Err(Error::NotFound(self.id)),
            false => Ok(session),
        }
    }

    /// Tells what happens in the session, past and live, in order and without a gap; with
    /// [`live`](WatchBuilder::live) also what its agent says, word by word.
    pub fn watch(&self) -> WatchBuilder<S> {
        WatchBuilder::new(self.clone())
    }

    pub(crate) fn by(&self) -> Actor {
        self.adjourn.by()
    }
}
