//! The calls of a step: allowed where they have to be, started, and waited for.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use adjourn_core::Command;
use adjourn_core::command::{CallResult, Dispatch, ReturnCalls, ReturnedCall};
use adjourn_core::ledger::{CallId, CallState};
use adjourn_driver::{Block, Message};
use adjourn_store::{Error, Store};
use tokio::task::{self, JoinError, JoinSet};

use super::{Drive, Late, Step, digests};
use crate::clock::BoxFuture;
use crate::driver::{Driver, Returned};
use crate::permission::Permission;

/// What goes on in this process for the calls of a session.
#[derive(Default)]
pub(super) struct Calls {
    /// Calls in flight.
    running: JoinSet<Returned>,
    /// Which call each task of these runs.
    ids: HashMap<task::Id, CallId>,
    asking: Asking,
}

/// Calls that somebody has to allow first. They are polled in place, so that what is taken back
/// is taken back at once.
type Asking = Vec<(CallId, BoxFuture<'static, Permission>)>;

/// What ends a wait for calls.
enum Woken {
    Returned(CallId, Returned),
    Answered(CallId, Permission),
    Signal,
    Late(Late),
}

impl Calls {
    /// Returns whether somebody is asked.
    pub(super) const fn is_asking(&self) -> bool {
        !self.asking.is_empty()
    }

    /// Asks nobody any more.
    pub(super) fn withdraw(&mut self) {
        self.asking.clear();
    }
}

/// Says which call came back.
fn returned(
    joined: Option<Result<(task::Id, Returned), JoinError>>,
    ids: &mut HashMap<task::Id, CallId>,
) -> Woken {
    let (id, returned) = match joined {
        Some(Ok((id, returned))) => (id, returned),
        Some(Err(error)) if error.is_panic() => {
            let text = "it failed: the tool panicked".to_owned();
            (error.id(), Returned { result: CallResult::Failed, text })
        }
        Some(Err(_)) | None => return Woken::Late(Late::Lost),
    };
    match ids.remove(&id) {
        Some(id) => Woken::Returned(id, returned),
        None => Woken::Late(Late::Lost),
    }
}

/// Waits for the next answer; for ever if nobody is asked.
async fn answered(asking: &mut Asking) -> (CallId, Permission) {
    poll_fn(|context| {
        let mut answers = asking.iter_mut().enumerate();
        let answer = answers.find_map(|(index, (_, answer))| match answer.as_mut().poll(context) {
            Poll::Ready(permission) => Some((index, permission)),
            Poll::Pending => None,
        });
        match answer {
            Some((index, permission)) => Poll::Ready((asking.remove(index).0, permission)),
            None => Poll::Pending,
        }
    })
    .await
}

impl<S: Store> Drive<S> {
    /// Starts calls, and asks for those that somebody has to allow first.
    pub(super) async fn dispatch(
        &mut self,
        driver: &mut dyn Driver,
        asked: Vec<CallId>,
        calls: &mut Calls,
    ) -> Result<Step, Error> {
        let session = Arc::clone(&self.session);
        let batch = driver.batch(&session, &asked).max(1);
        let mut free = Vec::new();
        for id in asked.into_iter().take(batch) {
            let Some(open) = session.calls.get(&id) else { continue };
            match driver.permission(&session, &open.call) {
                Some(answer) => calls.asking.push((id, answer)),
                None => free.push(id),
            }
        }
        if self.withdraws() {
            calls.withdraw();
        }
        match (free.is_empty(), calls.is_asking()) {
            (false, _) => self.start(driver, free, calls).await,
            (true, true) => Ok(Step::GoOn),
            // All that is left waits for somebody who is not asked any more.
            (true, false) => self.finish_where_it_is().await,
        }
    }

    /// Makes calls durable, then starts them.
    async fn start(
        &mut self,
        driver: &mut dyn Driver,
        ids: Vec<CallId>,
        calls: &mut Calls,
    ) -> Result<Step, Error> {
        let dispatch = Dispatch { epoch: self.epoch, calls: ids.clone(), always: Vec::new() };
        if let Err(refused) = self.commit(Command::Dispatch(dispatch), &[]).await? {
            return self.refused(refused).await;
        }
        // A process that was stopped in the middle of its commit may have lost the session since,
        // and what it was about to start may have been started elsewhere.
        if let Step::Over = self.reload()? {
            return Ok(Step::Over);
        }
        let session = Arc::clone(&self.session);
        for id in ids {
            let Some(open) = session.calls.get(&id) else { continue };
            let running = calls.running.spawn(driver.call(&session, &open.call));
            calls.ids.insert(running.id(), id);
        }
        Ok(Step::GoOn)
    }

    /// Waits until a call comes back or may start, or something else is to be done.
    pub(super) async fn wait_for_calls(
        &mut self,
        driver: &mut dyn Driver,
        calls: &mut Calls,
    ) -> Result<Step, Error> {
        let in_flight = self.session.calls.any(CallState::Dispatched);
        let late = self.late();
        let mut signal = self.signal.clone();
        let Calls { running, ids, asking } = calls;
        let woken = tokio::select! {
            joined = running.join_next_with_id(), if in_flight => returned(joined, ids),
            (id, permission) = answered(asking) => Woken::Answered(id, permission),
            _ = signal.changed() => Woken::Signal,
            // There is no giving up of what has not started.
            late = late, if in_flight => Woken::Late(late),
        };
        self.signal = signal;
        match woken {
            Woken::Returned(id, returned) => self.take_back(id, returned).await,
            Woken::Answered(id, Permission::Granted) => self.start(driver, vec![id], calls).await,
            Woken::Answered(id, Permission::Refused(text)) => {
                self.take_back(id, Returned { result: CallResult::Declined, text }).await
            }
            Woken::Signal => self.reload(),
            Woken::Late(late) => {
                calls.running.abort_all();
                self.give_up(late).await
            }
        }
    }

    /// Commits what came of a call.
    async fn take_back(&mut self, id: CallId, returned: Returned) -> Result<Step, Error> {
        let is_error = returned.result != CallResult::Done;
        let result = Message::result(id.clone(), vec![Block::text(returned.text)]);
        let said = [Message { is_error, ..result }];
        let calls = vec![ReturnedCall { id, result: returned.result }];
        let entries = digests(&said);
        let returned = ReturnCalls { epoch: self.epoch, calls, entries };
        self.try_commit(Command::ReturnCalls(returned), &said).await
    }
}
