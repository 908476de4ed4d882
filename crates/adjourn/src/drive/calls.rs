//! The calls of a step: allowed where they have to be, started, and waited for.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use adjourn_core::carry::Usage;
use adjourn_core::command::{CallResult, Dispatch, Progress, ReturnCalls, ReturnedCall, StepEnd};
use adjourn_core::driver::Need;
use adjourn_core::ledger::{AskedCall, CallId, CallState, OpenCall};
use adjourn_core::{Command, Session};
use adjourn_driver::told::digests;
use adjourn_driver::{
    BoxFuture, BoxStream, Call, CallPart, Driver, Message, PermissionAnswer, PermissionRequest,
    Returned,
};
use adjourn_store::{Error, Store};
use tokio::sync::mpsc;
use tokio::task::{self, JoinError, JoinSet};
use tracing::Instrument as _;
use tracing::field::display;

use super::news::{News, Update};
use super::{Drive, Late, Next};
use crate::clock::Clock;
use crate::ending::{end, in_time};
use crate::transcript::call_content;

/// What goes on in this process for the calls of a session.
#[derive(Default)]
pub(super) struct Calls {
    /// Calls in flight.
    running: JoinSet<Returned>,
    /// Which call each task of these runs.
    ids: HashMap<task::Id, CallId>,
    asking: Asking,
    /// What these tell of themselves.
    news: News,
}

/// Calls that a person has to allow first. They are polled in place, so that what is taken back
/// is taken back at once.
type Asking = Vec<(CallId, BoxFuture<'static, PermissionAnswer>)>;

/// What ends a wait for calls.
enum Woken {
    Returned(CallId, Returned),
    Answered(CallId, PermissionAnswer),
    Told(Update),
    Commit,
    Signal,
    Late(Late),
}

/// Whether a call may start.
enum MayStart {
    Now,
    Asking(BoxFuture<'static, PermissionAnswer>),
    /// A person has to allow it, and there is none.
    Unasked,
    Never(String),
}

impl Calls {
    /// Returns whether a person is asked.
    pub(super) const fn is_asking(&self) -> bool {
        !self.asking.is_empty()
    }

    /// Drops all that runs, and returns when it is gone.
    async fn abandon(&mut self, clock: &dyn Clock) {
        let mut running = std::mem::take(&mut self.running);
        self.ids.clear();
        in_time(running.shutdown(), clock).await;
    }

    /// Takes back what is asked.
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
            (error.id(), Returned::failed(CallResult::Failed, "it failed: the tool panicked"))
        }
        Some(Err(_)) | None => return Woken::Late(Late::Lost),
    };
    match ids.remove(&id) {
        Some(id) => Woken::Returned(id, returned),
        None => Woken::Late(Late::Lost),
    }
}

/// Waits for the next answer; for ever if no person is asked.
async fn answered(asking: &mut Asking) -> (CallId, PermissionAnswer) {
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

/// Runs a call to its end, and passes on what it tells meanwhile.
async fn run(
    id: CallId,
    mut parts: BoxStream<'static, CallPart>,
    news: mpsc::Sender<Update>,
) -> Returned {
    let mut usage = Usage::default();
    loop {
        match poll_fn(|context| parts.as_mut().poll_next(context)).await {
            Some(CallPart::Updated(update)) => {
                // It fails only if the session is not driven here any more.
                let _ = news.send((id.clone(), update)).await;
            }
            Some(CallPart::Spent(spent)) => usage = usage.and(spent),
            Some(CallPart::Ended { result, content, structured }) => {
                return Returned { result, content, structured, usage };
            }
            None => {
                let text = "it failed: the tool ended without a result";
                return Returned { usage, ..Returned::failed(CallResult::Failed, text) };
            }
        }
    }
}

/// Returns a call whose outcome is unknown.
fn lost(session: &Session) -> Option<&OpenCall> {
    session.calls.iter().find(|open| open.state == CallState::Unknown)
}

impl<S: Store> Drive<S> {
    /// Starts calls, and asks for those that a person has to allow first.
    pub(super) async fn dispatch(
        &mut self,
        driver: &mut dyn Driver,
        asked: Vec<CallId>,
        calls: &mut Calls,
    ) -> Result<Next, Error> {
        let session = Arc::clone(&self.session);
        let mut free = Vec::new();
        for id in asked {
            let Some(open) = session.calls.get(&id) else { continue };
            // A call that waits its turn starts alone, and lets none behind it start.
            if open.call.in_order && (calls.is_asking() || !free.is_empty()) {
                break;
            }
            match self.may_start(&session, &open.call)? {
                MayStart::Now => free.push(id),
                MayStart::Asking(answer) => calls.asking.push((id, answer)),
                MayStart::Unasked => return self.take_back_unasked(driver, calls).await,
                MayStart::Never(why) => {
                    let declined = Returned::failed(CallResult::Declined, why);
                    return self.take_back(vec![(id, declined)], calls).await;
                }
            }
            if open.call.in_order {
                break;
            }
        }
        if self.withdraws() {
            calls.withdraw();
        }
        match (free.is_empty(), calls.is_asking()) {
            (false, _) => self.start(driver, free, Vec::new(), calls).await,
            (true, true) => Ok(Next::GoOn),
            // All that is left waits for a permission that is not asked for any more.
            (true, false) => self.finish_where_it_is(StepEnd::default(), Vec::new()).await,
        }
    }

    /// Returns whether a call may start, or what has to come before.
    fn may_start(&self, session: &Session, call: &AskedCall) -> Result<MayStart, Error> {
        // What comes next in a sequence needs what came before it.
        if call.in_order
            && let Some(lost) = lost(session)
        {
            let why = format!("not run: the outcome of {} before it is unknown", lost.call.tool);
            return Ok(MayStart::Never(why));
        }
        if !call.permission || session.allowed.contains(&call.tool) {
            return Ok(MayStart::Now);
        }
        // An agent that needs a client is left to the hosts that have one.
        let waits = session.driver.needs.contains(&Need::Permissions);
        if !waits && !self.withdraws() && !self.client.is_attended() {
            return Ok(MayStart::Unasked);
        }
        let content = call_content(&self.store, session.id, call)?;
        let request = PermissionRequest { session: session.id, call: content, options: Vec::new() };
        Ok(MayStart::Asking(self.client.permission(request)))
    }

    /// Makes calls durable, then starts them.
    async fn start(
        &mut self,
        driver: &mut dyn Driver,
        ids: Vec<CallId>,
        always: Vec<String>,
        calls: &mut Calls,
    ) -> Result<Next, Error> {
        // A call whose words are not what was asked for is not even about to start.
        let mut contents = HashMap::new();
        for id in &ids {
            if let Some(open) = self.session.calls.get(id) {
                let content = call_content(&self.store, self.session.id, &open.call)?;
                contents.insert(id.clone(), content);
            }
        }
        let dispatch = Dispatch { epoch: self.epoch, calls: ids.clone(), always };
        if let Err(refused) = self.commit(Command::Dispatch(dispatch), &[]).await? {
            return self.refused(refused, StepEnd::default(), Vec::new()).await;
        }
        // A process that was stopped in the middle of its commit may have lost the session since,
        // and what it was about to start may have been started elsewhere.
        if let Next::Over = self.reload()? {
            return Ok(Next::Over);
        }
        let session = Arc::clone(&self.session);
        for id in ids {
            let Some(content) = contents.remove(&id) else { continue };
            // The claim is around it; the step that asked for it is over.
            let run_id = session.run().map(|run| display(run.id));
            let span = tracing::debug_span!("call", run = run_id, call = %id, tool = content.tool);
            let parts = driver.call(Call {
                session: Arc::clone(&session),
                content,
                client: Arc::clone(&self.client),
                environment: Arc::clone(&self.environment),
            });
            let (call, driven) = (run(id.clone(), parts, calls.news.sender()), self.driven.clone());
            let (clock, started) = (Arc::clone(&self.clock), self.clock.elapsed());
            let running = async move {
                // Declared first, it is dropped behind the call.
                let _driven = driven;
                let returned = call.await;
                let took_ms = clock.elapsed().saturating_sub(started).as_millis();
                tracing::debug!(took_ms, "call over");
                returned
            };
            let running = calls.running.spawn(running.instrument(span));
            calls.ids.insert(running.id(), id);
        }
        Ok(Next::GoOn)
    }

    /// Waits until a call comes back or may start, or something else is to be done.
    pub(super) async fn wait_for_calls(
        &mut self,
        driver: &mut dyn Driver,
        calls: &mut Calls,
    ) -> Result<Next, Error> {
        let in_flight = self.session.calls.any(CallState::Dispatched);
        let late = self.late();
        let commit = self.until(calls.news.commit_at());
        let mut signal = self.signal.clone();
        let Calls { running, ids, asking, news } = calls;
        let woken = tokio::select! {
            joined = running.join_next_with_id(), if in_flight => returned(joined, ids),
            (id, permission) = answered(asking) => Woken::Answered(id, permission),
            _ = signal.changed() => Woken::Signal,
            // There is no giving up of what has not started.
            late = late, if in_flight => Woken::Late(late),
            update = news.next() => Woken::Told(update),
            () = commit => Woken::Commit,
        };
        self.signal = signal;
        match woken {
            Woken::Returned(id, returned) => self.take_back(vec![(id, returned)], calls).await,
            Woken::Answered(id, PermissionAnswer::Granted { always }) => {
                let open = self.session.calls.get(&id).filter(|_| always);
                let always = open.map(|open| open.call.tool.clone()).into_iter().collect();
                self.start(driver, vec![id], always, calls).await
            }
            Woken::Answered(id, PermissionAnswer::Refused(why)) => {
                let refused = Returned::failed(CallResult::Declined, why);
                self.take_back(vec![(id, refused)], calls).await
            }
            // No options were given, so none can be chosen: it is as if no client had answered.
            Woken::Answered(_, PermissionAnswer::Gone | PermissionAnswer::Chosen(_)) => {
                self.take_back_unasked(driver, calls).await
            }
            Woken::Told(update) => {
                calls.news.take(update, self.clock.elapsed());
                Ok(Next::GoOn)
            }
            Woken::Commit => self.commit_news(calls).await,
            Woken::Signal => self.look(),
            Woken::Late(late) => {
                calls.abandon(self.clock.as_ref()).await;
                end(driver, self.clock.as_ref()).await;
                match self.commit_news(calls).await? {
                    Next::GoOn => self.give_up(late).await,
                    Next::Over => Ok(Next::Over),
                }
            }
        }
    }

    /// Commits what calls have told of themselves.
    async fn commit_news(&mut self, calls: &mut Calls) -> Result<Next, Error> {
        let said = calls.news.unsaved(self.step_number());
        if said.is_empty() {
            return Ok(Next::GoOn);
        }
        let (epoch, entries) = (self.epoch, digests(&said));
        let progress = Progress { epoch, entries, ..Progress::default() };
        match self.commit(Command::Progress(progress), &said).await? {
            Ok(()) => Ok(Next::GoOn),
            Err(_) => self.reload(),
        }
    }

    /// Takes back the calls that have not started and wait for a person, where none can be asked. If
    /// the agent parks with the question, nothing else of its message starts before the answer.
    async fn take_back_unasked(
        &mut self,
        driver: &mut dyn Driver,
        calls: &mut Calls,
    ) -> Result<Next, Error> {
        calls.withdraw();
        let session = Arc::clone(&self.session);
        let parks = driver.parks_unasked();
        let waits =
            |open: &OpenCall| open.call.permission && !session.allowed.contains(&open.call.tool);
        // What may not run at all is answered so.
        let never = |open: &OpenCall| open.call.in_order && lost(&session).is_some();
        let waiting = session.calls.iter();
        let waiting = waiting.filter(|open| {
            open.state == CallState::Asked && !never(open) && (parks || waits(open))
        });
        let unasked = waiting.map(|open| (open.call.id.clone(), Returned::unasked())).collect();
        self.take_back(unasked, calls).await
    }

    /// Commits what came of calls, and what calls have told before.
    async fn take_back(
        &mut self,
        over: Vec<(CallId, Returned)>,
        calls: &mut Calls,
    ) -> Result<Next, Error> {
        let step = self.step_number();
        let mut said = calls.news.unsaved(step);
        let (mut returned, mut used) = (Vec::new(), Usage::default());
        for (id, Returned { mut result, content, structured, usage }) in over {
            // What has started is not declined any more, whatever its tool says.
            let open = self.session.calls.get(&id);
            if result == CallResult::Declined
                && open.is_some_and(|open| open.state == CallState::Dispatched)
            {
                result = CallResult::Failed;
            }
            let is_error = result != CallResult::Done;
            let entry = Message { structured, is_error, ..Message::result(id.clone(), content) };
            said.push(entry.cut().in_step(step));
            returned.push(ReturnedCall { id, result });
            used = used.and(usage);
        }
        let (epoch, entries) = (self.epoch, digests(&said));
        let returned = ReturnCalls { epoch, calls: returned, entries, usage: used };
        self.try_commit(Command::ReturnCalls(returned), StepEnd::default(), said).await
    }

    fn step_number(&self) -> Option<u64> {
        self.session.run().and_then(|run| run.step).map(|step| step.number)
    }
}
