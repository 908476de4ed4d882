//! The calls of a step: allowed where they have to be, started, and waited for.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use adjourn_core::carry::Usage;
use adjourn_core::command::{CallResult, Dispatch, Owned, ReturnCalls, ReturnedCall};
use adjourn_core::ledger::{CallId, CallState, OpenCall};
use adjourn_core::{Command, Rejected};
use adjourn_driver::told::digests;
use adjourn_driver::{
    Call, CallPart, Driver as _, Environment, Message, PermissionAnswer, PermissionRequest,
    Returned,
};
use serde_json::{Map, Value};

use super::{MemoryHost, RunningCall, StartingCall};
use crate::clock::Clock as _;
use crate::events::{AgentEvent, ToolEvent, ToolResultObserved, ToolStatus};

/// What ends a wait for calls.
enum Woken {
    /// A call says something, or is over without a word.
    Part(usize, Option<CallPart>),
    /// The driver has something to tell beside that.
    News,
    Cancel,
    /// The calls had their time after a cancel.
    Late,
}

impl MemoryHost {
    /// Starts calls that may start.
    pub(super) async fn dispatch(&mut self) -> Result<(), Rejected> {
        let session = Arc::clone(&self.session);
        let mut free = Vec::new();
        for id in session.calls.at(CallState::Asked) {
            let Some(open) = session.calls.get(&id) else { continue };
            // A call that waits its turn starts alone, and lets none behind it start.
            let alone = open.call.in_order || self.needs_permission(open);
            if alone && !free.is_empty() {
                break;
            }
            if self.needs_permission(open) {
                return self.ask_permission(open).await;
            }
            free.push(id);
            if alone {
                break;
            }
        }
        self.start(free, Vec::new()).await
    }

    fn needs_permission(&self, open: &OpenCall) -> bool {
        open.call.permission && !self.session.allowed.contains(&open.call.tool)
    }

    /// Asks a person whether a call may run.
    async fn ask_permission(&mut self, open: &OpenCall) -> Result<(), Rejected> {
        let call = self.entries.call(&open.call);
        let (id, tool) = (call.id.clone(), call.tool.clone());
        let request = PermissionRequest { session: self.session.id, call, options: Vec::new() };
        let answer = tokio::select! {
            biased;
            () = self.cancel_asked() => return self.heed_cancel(),
            answer = self.inner.client.permission(request) => answer,
        };
        let refused = match answer {
            PermissionAnswer::Granted { always } => {
                let always = if always { vec![tool] } else { Vec::new() };
                return self.start(vec![id], always).await;
            }
            PermissionAnswer::Refused(why) => Returned::failed(CallResult::Declined, why),
            PermissionAnswer::Gone | PermissionAnswer::Chosen(_) => {
                return self.take_back_unasked().await;
            }
        };
        self.take_back(id, tool, refused).await
    }

    /// Takes back every call that has not started, where no person can be asked about one of them: the
    /// agent suspends with that question, and nothing of its message runs before the answer.
    async fn take_back_unasked(&mut self) -> Result<(), Rejected> {
        let session = Arc::clone(&self.session);
        for id in session.calls.at(CallState::Asked) {
            let Some(open) = session.calls.get(&id) else { continue };
            self.take_back(id, open.call.tool.clone(), Returned::unasked()).await?;
        }
        Ok(())
    }

    /// Tells that calls start, up to a cancel. None of them begins before that was told of all.
    async fn start(&mut self, ids: Vec<CallId>, mut always: Vec<String>) -> Result<(), Rejected> {
        let session = Arc::clone(&self.session);
        for id in ids {
            if self.is_canceled() {
                break;
            }
            let Some(open) = session.calls.get(&id) else { continue };
            let content = self.entries.call(&open.call);
            self.tell_tool(&id, &content.tool, ToolStatus::Started, Some(content.arguments()))
                .await;
            let always = std::mem::take(&mut always);
            self.starting.push_back(StartingCall { content, always });
        }
        Ok(())
    }

    /// Tells that the calls do not run whose start was told, and that have not begun.
    pub(super) async fn leave_starting(&mut self) {
        while let Some(StartingCall { content, .. }) = self.starting.pop_front() {
            self.tell_tool(&content.id, &content.tool, ToolStatus::NotRun, None).await;
        }
    }

    /// Lets a call begin whose start was told.
    ///
    /// The session is told so right before the tool's code runs: until then it is a call that was not
    /// run, whatever stops it.
    pub(super) async fn begin(&mut self, call: StartingCall) -> Result<(), Rejected> {
        let StartingCall { content, always } = call;
        let (id, tool) = (content.id.clone(), content.tool.clone());
        let dispatch = Dispatch { epoch: self.session.epoch, calls: vec![id.clone()], always };
        self.commit(Command::Dispatch(dispatch), Vec::new())?;
        let mut parts = self.driver.call(Call {
            session: Arc::clone(&self.session),
            content,
            client: Arc::clone(&self.inner.client),
            environment: Arc::new(Environment::default()),
        });
        let first = poll_fn(|context| Poll::Ready(parts.as_mut().poll_next(context))).await;
        let index = self.running.len();
        self.running.push(RunningCall { id, tool, parts, usage: Usage::default() });
        self.pass_on().await;
        match first {
            Poll::Ready(part) => self.take_part(index, part).await,
            Poll::Pending => Ok(()),
        }
    }

    /// Waits until a call says something or comes back.
    pub(super) async fn wait_for_calls(&mut self) -> Result<(), Rejected> {
        let cancel = self.cancel_asked();
        let grace = self.session.grace().map(|grace| self.clock.sleep(grace));
        let late = async move {
            match grace {
                Some(grace) => grace.await,
                None => std::future::pending().await,
            }
        };
        let (running, outbox) = (&mut self.running, &self.outbox);
        let part = poll_fn(|context| {
            for (index, call) in running.iter_mut().enumerate() {
                if let Poll::Ready(part) = call.parts.as_mut().poll_next(context) {
                    return Poll::Ready(Woken::Part(index, part));
                }
            }
            if outbox.has_news() { Poll::Ready(Woken::News) } else { Poll::Pending }
        });
        let woken = tokio::select! {
            biased;
            () = cancel => Woken::Cancel,
            woken = part => woken,
            () = late => Woken::Late,
        };
        self.pass_on().await;
        match woken {
            Woken::Part(index, part) => self.take_part(index, part).await,
            Woken::News => Ok(()),
            Woken::Cancel => self.heed_cancel(),
            Woken::Late => {
                self.running.clear();
                let owned = Owned { epoch: self.session.epoch };
                self.commit(Command::Abandon(owned), Vec::new())
            }
        }
    }

    /// Takes what a call says; nothing if it is over without a word.
    async fn take_part(&mut self, index: usize, part: Option<CallPart>) -> Result<(), Rejected> {
        match part {
            Some(CallPart::Updated(update)) => {
                if let Some(RunningCall { id, tool, .. }) = self.running.get(index) {
                    let (call_id, tool) = (id.clone(), tool.clone());
                    let (status, arguments) = (ToolStatus::Updated, None);
                    let event = ToolEvent { call_id, tool, status, arguments, update };
                    self.out.emit(AgentEvent::ToolEvent(event)).await;
                }
                Ok(())
            }
            Some(CallPart::Spent(usage)) => {
                if let Some(call) = self.running.get_mut(index) {
                    call.usage = call.usage.and(usage);
                }
                Ok(())
            }
            Some(CallPart::Ended { result, content, structured }) => {
                let RunningCall { id, tool, usage, .. } = self.running.remove(index);
                let returned = Returned { result, content, structured, usage };
                self.take_back(id, tool, returned).await
            }
            None => {
                let RunningCall { id, tool, usage, .. } = self.running.remove(index);
                let text = "it failed: the tool ended without a result";
                let returned = Returned { usage, ..Returned::failed(CallResult::Failed, text) };
                self.take_back(id, tool, returned).await
            }
        }
    }

    /// Takes what came of a call into the session.
    async fn take_back(
        &mut self,
        id: CallId,
        tool: String,
        returned: Returned,
    ) -> Result<(), Rejected> {
        let Returned { result, content, structured, usage } = returned;
        let is_error = result != CallResult::Done;
        let step = self.session.run().and_then(|run| run.step).map(|step| step.number);
        let entry = Message { structured, is_error, ..Message::result(id.clone(), content) };
        let entry = entry.cut().in_step(step);
        let content = entry.text();
        let (calls, said) = (vec![ReturnedCall { id: id.clone(), result }], vec![entry]);
        let (epoch, entries) = (self.session.epoch, digests(&said));
        let returned = ReturnCalls { epoch, calls, entries, usage };
        self.commit(Command::ReturnCalls(returned), said)?;
        let status = match result {
            CallResult::Done => ToolStatus::Completed,
            CallResult::Failed => ToolStatus::Failed,
            CallResult::Declined => ToolStatus::NotRun,
        };
        self.tell_tool(&id, &tool, status, None).await;
        let observed = ToolResultObserved { call_id: id, tool, content, is_error };
        self.out.emit(AgentEvent::ToolResultObserved(observed)).await;
        Ok(())
    }

    async fn tell_tool(
        &mut self,
        id: &CallId,
        tool: &str,
        status: ToolStatus,
        arguments: Option<Value>,
    ) {
        let (call_id, tool) = (id.clone(), tool.to_owned());
        let event = ToolEvent { call_id, tool, status, arguments, update: Map::new() };
        self.out.emit(AgentEvent::ToolEvent(event)).await;
    }
}
