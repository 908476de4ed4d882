//! Commands, and what is said with them.

use std::sync::{PoisonError, RwLock};

use adjourn_core::actor::{Actor, Face};
use adjourn_core::carry::Limit;
use adjourn_core::command::{Cancel, Suspend};
use adjourn_core::facts::{Facts, Fresh};
use adjourn_core::id::{Handle, RunId};
use adjourn_core::ledger::AskedCall;
use adjourn_core::session::{Quiescing, State, Stopping};
use adjourn_core::{Command, Rejected, Session, limits};
use adjourn_driver::payload::KeptEntry;
use adjourn_driver::told::told_first;
use adjourn_driver::{CallContent, Message, ReadTranscript, TranscriptError};
use std::convert::Infallible;
use std::sync::Arc;
use uuid::Uuid;

use super::MemoryHost;
use crate::cancellation::CancellationRequest;
use crate::clock::Clock;

/// What was said in a session, in memory.
#[derive(Debug, Default)]
pub(super) struct Entries(RwLock<Vec<KeptEntry>>);

impl Entries {
    pub(super) fn new(entries: Vec<KeptEntry>) -> Self {
        Self(RwLock::new(entries))
    }

    /// Takes everything out.
    pub(super) fn take(&self) -> Vec<KeptEntry> {
        std::mem::take(&mut self.0.write().unwrap_or_else(PoisonError::into_inner))
    }

    fn extend(&self, said: Vec<Message>) {
        let said = said.into_iter().map(KeptEntry::from);
        self.0.write().unwrap_or_else(PoisonError::into_inner).extend(said);
    }

    /// Returns what a call was asked for with.
    pub(super) fn call(&self, call: &AskedCall) -> CallContent {
        let entries = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let entry = call.entry.and_then(|entry| entries.get(usize::try_from(entry).ok()?));
        let mut calls = entry.into_iter().flat_map(|entry| &entry.message().calls);
        let content = calls.find(|content| content.id == call.id).cloned();
        content.unwrap_or_else(|| CallContent::new(call.id.clone(), call.tool.clone()))
    }
}

impl ReadTranscript for Entries {
    fn read(&self, from: u64, limit: usize) -> Result<Vec<Message>, TranscriptError> {
        let entries = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        Ok(entries.iter().skip(from).take(limit).map(|entry| entry.message().clone()).collect())
    }
}

/// Decides a command, and returns the session as it is then.
pub(super) fn decided(
    session: &Session,
    clock: &dyn Clock,
    by: Actor,
    command: &Command,
) -> Result<Session, Rejected> {
    let fresh = Fresh { handle: Handle::new(Uuid::now_v7()), run: RunId::new(Uuid::now_v7()) };
    session.decide_state(&Facts::new(clock.now(), by, fresh), command)
}

/// Returns how long was worked for what a command ends a run with.
fn last_ms(command: &Command) -> u64 {
    match command {
        Command::FinishStep(finish) => finish.step.usage.active_ms,
        Command::AbortStep(abort) => abort.usage.active_ms,
        Command::ReturnCalls(returned) => returned.usage.active_ms,
        _ => 0,
    }
}

/// Returns the program that embeds the agent, as the one who asks for something.
pub(super) fn program() -> Actor {
    Actor::new(Face::Library, "")
}

impl MemoryHost {
    /// Decides a command of the agent's, with what is said.
    pub(super) fn commit(&mut self, command: Command, said: Vec<Message>) -> Result<(), Rejected> {
        let by = Actor::new(Face::Agent, "").on(self.host).for_session(self.session.id);
        self.commit_by(by, &command, said)
    }

    fn commit_by(
        &mut self,
        by: Actor,
        command: &Command,
        said: Vec<Message>,
    ) -> Result<(), Rejected> {
        self.session = Arc::new(decided(&self.session, &self.clock, by, command)?);
        self.worked_ms = match self.session.run() {
            Some(run) => run.progress.active_ms,
            // The session does not tell of a run that is over.
            None => self.worked_ms.saturating_add(last_ms(command)),
        };
        self.entries.extend(said);
        Ok(())
    }

    /// Returns what the model is told before it speaks.
    pub(super) fn told_first(&self) -> Vec<Message> {
        match told_first(&self.session, |_| Ok::<_, Infallible>(None)) {
            Ok(said) => said,
            Err(never) => match never {},
        }
    }

    /// Suspends the session because it has reached a limit of its own.
    pub(super) fn stop_by_limit(&mut self, limit: Limit) -> Result<(), Rejected> {
        let reason = Some(limit.as_str().to_owned());
        let suspend = Suspend { reason, limit: Some(limit), ..Suspend::default() };
        let by = Actor::new(Face::Policy, "budget").on(self.host);
        self.commit_by(by, &Command::Suspend(suspend), Vec::new())
    }

    /// Returns whether the run is asked to stop.
    pub(super) fn is_canceled(&self) -> bool {
        self.cancellation.as_ref().is_some_and(CancellationRequest::is_set)
    }

    /// Returns whether the session takes note of that already.
    pub(super) fn is_canceling(&self) -> bool {
        matches!(
            &self.session.state,
            State::Quiescing(Quiescing { stopping: Stopping::Canceling(_), .. })
        )
    }

    /// Cancels the run if that is asked for and there is something to cancel.
    pub(super) fn heed_cancel(&mut self) -> Result<(), Rejected> {
        let over = matches!(self.session.state, State::Idle | State::Ended(_));
        let Some(request) = self.cancellation.as_ref().filter(|request| request.is_set()) else {
            return Ok(());
        };
        if over || self.is_canceling() {
            return Ok(());
        }
        let reason = Some(request.reason().as_str().to_owned());
        // A call in flight may end by itself, up to its own time-out.
        let grace = self.inner.limits.tool_timeout.min(limits::MAX_GRACE);
        let grace_ms = u64::try_from(grace.as_millis()).ok();
        let cancel = Command::Cancel(Cancel { reason, grace_ms });
        self.commit_by(program(), &cancel, Vec::new())
    }

    /// Waits until the run is asked to stop, if it was not before.
    pub(super) fn cancel_asked(&self) -> impl Future<Output = ()> + use<> {
        let request = self.cancellation.clone().filter(|_| !self.is_canceling());
        async move {
            match request {
                Some(request) => request.wait().await,
                None => std::future::pending().await,
            }
        }
    }
}
