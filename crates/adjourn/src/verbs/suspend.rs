//! Suspends: pauses that are accepted, come into force, or are taken back.

use std::future::IntoFuture;
use std::time::Duration;

use adjourn_core::actor::Actor;
use adjourn_core::carry::Limit;
use adjourn_core::command::{Mode, Requester, Suspend, Withdraw};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::event::{Event, SuspendedEvent, What};
use adjourn_core::facts::SpanLinks;
use adjourn_core::id::{Handle, RequestId, RunId};
use adjourn_core::session::{Fate, Parked};
use adjourn_core::{Command, Rejected};
use adjourn_driver::BoxFuture;
use adjourn_store::{CommandError, Done, Request, Spares, Sqlite, Store, Transaction};
use serde_json::{Value, json};
use tokio::runtime;
use tokio::sync::oneshot;

use super::unheard_of;
use crate::committing::Committing;
use crate::error::{Error, NotSuspended};
use crate::moments::Moments;
use crate::process::Process;
use crate::session_ref::SessionRef;

/// A pause that is about to be asked for; see [`SessionRef::suspend`].
///
/// Awaited, it resolves at the commit with which the pause is in force: at once for a session that
/// rests, at the boundary that the mode names for one that runs. [`SuspendBuilder::accepted`]
/// resolves earlier.
///
/// # Cancel safety
/// Dropped before it was polled, nothing has happened. Dropped while the pause is pending, the
/// request is withdrawn, and the session goes on unless others want it paused, too. Dropped when the
/// pause is in force, it stays.
///
/// Withdrawing is a commit of its own, which is made in the background. A pause that comes into
/// force before it stays, and so does a pending one if that commit fails, or if the process or its
/// runtime ends before it. A suspend that failed because the store did may have been accepted, and is
/// withdrawn in the same way.
#[must_use = "nothing happens before it is awaited"]
pub struct SuspendBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
    suspend: Suspend,
    on_event: Option<String>,
    timeout: Option<Duration>,
    spans: SpanLinks,
    run: Option<RunId>,
    spares: Spares,
    once: Option<String>,
}

/// A pause that is in force, or was when its commit was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// Its name, by which it is resumed.
    pub handle: Handle,
    /// What was asked for, and since when it holds.
    pub parked: Parked,
    /// The revision of the session at which it came into force.
    pub revision: u64,
}

/// A pause that was accepted: in force already, or pending.
#[derive(Debug, Clone)]
pub struct Accepted<R = RequestId> {
    /// The request, by which it can be [withdrawn](SessionRef::withdraw) while it is pending; an
    /// [await](SessionRef::await_resumption) has none.
    pub request: R,
    /// The pause: an earlier one if others had asked for it before.
    pub handle: Handle,
    /// The pause as it is in force, if it is.
    pub suspension: Option<Suspension>,
    /// The commit that accepted it.
    pub commit: Done,
}

impl<S: Store> SuspendBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>, suspend: Suspend) -> Self {
        let (by, spans) = (session.by(), SpanLinks { prior: None, pipeline: None });
        let (on_event, timeout, run, spares, once) = (None, None, None, Spares::Nothing, None);
        Self { session, by, suspend, on_event, timeout, spans, run, spares, once }
    }

    /// Says how soon it takes effect: at the next boundary, unless another mode is named.
    pub const fn mode(mut self, mode: Mode) -> Self {
        self.suspend.mode = mode;
        self
    }

    /// Says why.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.suspend.reason = Some(reason.into());
        self
    }

    /// Lets an event end it: `ci.passed`, `ci.*`, or `ci.passed:pr/12` with the subject.
    pub fn on_event(mut self, pattern: impl Into<String>) -> Self {
        self.on_event = Some(pattern.into());
        self
    }

    /// Ends it after so much time, counted from when it is in force.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Says what ends it, besides a resume; [`SuspendBuilder::on_event`] and
    /// [`SuspendBuilder::timeout`] add to it.
    pub fn conditions(mut self, conditions: impl Into<Option<Conditions>>) -> Self {
        self.suspend.resume_when = conditions.into();
        self
    }

    /// Limits how long calls in flight may go on; then they are abandoned, and their outcome is
    /// unknown.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.suspend.grace_ms = Some(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Names the limit that is the cause.
    pub const fn limit(mut self, limit: Limit) -> Self {
        self.suspend.limit = Some(limit);
        self
    }

    /// Adds what is kept with it, and told with it.
    pub fn meta(mut self, meta: impl Into<Option<Value>>) -> Self {
        self.suspend.meta = meta.into();
        self
    }

    /// Names the traces it belongs to.
    pub fn spans(mut self, spans: SpanLinks) -> Self {
        self.spans = spans;
        self
    }

    /// Names the run that is meant: if another is under way by then, or none, it is refused.
    pub const fn of_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Leaves a session alone that lost its host and waits for a person to look at it: the suspend is
    /// refused there. Without it, that pause is the caller's from then on.
    pub const fn unless_interrupted(mut self) -> Self {
        self.spares = Spares::Interruptions;
        self
    }

    /// Gives it a key: the tenant takes one command under it. Another one is refused as a message that
    /// was taken before ([`Rejected::DuplicateMessage`]), also if the pause is over by then.
    pub fn once(mut self, key: impl Into<String>) -> Self {
        self.once = Some(key.into());
        self
    }

    /// Names who asks for it, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    /// Asks for the pause, and does not wait until it is in force.
    ///
    /// Resolves at the commit that accepts it. It is not withdrawn by dropping anything, but with
    /// [`SessionRef::withdraw`].
    ///
    /// # Cancel safety
    /// That of [`Committing`]: dropped after it was polled, the pause is asked for all the same.
    pub fn accepted(self) -> Committing<Result<Accepted, Error>> {
        let request = RequestId::new(self.session.adjourn().clock().uuid());
        Committing::new(self.ask(request))
    }

    /// Asks for the pause under the name of a request.
    async fn ask(self, request: RequestId) -> Result<Accepted, Error> {
        let Self { session, by, mut suspend, on_event, timeout, spans, run, spares, once } = self;
        suspend.resume_when = conditions(suspend.resume_when, on_event, timeout)?;
        suspend.requester = Some(Requester::Call(request));
        let command = Command::Suspend(suspend);
        let mut command = Request::new(session.id(), by, command).of_run(run).sparing(spares);
        command = command.once(once);
        command.spans = spans;
        let commit = session.adjourn().give(command).await?;
        let handle = asked(&commit);
        let handle = handle.ok_or_else(|| unheard_of(&commit, "a suspend asked for no pause"))?;
        let suspension = begun(&commit, handle);
        Ok(Accepted { request, handle, suspension, commit })
    }

    /// Asks for the pause, and waits until it is in force.
    async fn wait(self) -> Result<Suspension, Error> {
        let session = self.session.clone();
        let request = RequestId::new(session.adjourn().clock().uuid());
        let (done, asked) = oneshot::channel();
        let mut pending = Withdraws {
            session: session.clone(),
            by: self.by.clone(),
            request,
            is_pending: true,
            asked: Some(asked),
            runtime: runtime::Handle::try_current().ok(),
        };
        // Dropped, it takes its course: what is withdrawn is surely asked for.
        let asking = Committing::new(async move {
            let accepted = self.ask(request).await;
            // The other end may be gone, or comes too late to withdraw anything.
            let _ = done.send(());
            accepted
        });
        let accepted = asking.await;
        // A commit that failed may have been made all the same.
        pending.is_pending = matches!(accepted, Ok(_) | Err(Error::Store(_)));
        let accepted = accepted?;
        let waited = session.in_force(&accepted).await;
        if !matches!(waited, Err(Error::Store(_))) {
            pending.is_pending = false;
        }
        waited
    }
}

impl<S: Store> SessionRef<S> {
    /// Waits until a pause that was [accepted](SuspendBuilder::accepted) is in force, or an await
    /// that [was](crate::AwaitBuilder::accepted).
    ///
    /// Resolves when the commit is known with which it is, in whichever process.
    ///
    /// # Errors
    /// Something else came before it, the session was removed, or the store fails.
    ///
    /// # Cancel safety
    /// Dropping it changes nothing: it only waits.
    pub async fn in_force<R>(&self, accepted: &Accepted<R>) -> Result<Suspension, Error> {
        if let Some(suspension) = &accepted.suspension {
            return Ok(suspension.clone());
        }
        let mut moments = Moments::after(self, &accepted.commit.session);
        moments.recovers();
        while let Some(moment) = moments.next().await? {
            if let Some(fate) = fate(accepted.handle, moment.revision, &moment.event) {
                return fate;
            }
        }
        Err(Error::NotFound(self.id()))
    }
}

impl<S: Store> IntoFuture for SuspendBuilder<S> {
    type Output = Result<Suspension, Error>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}

/// Puts conditions together from what was said of them.
pub(super) fn conditions(
    given: Option<Conditions>,
    on_event: Option<String>,
    timeout: Option<Duration>,
) -> Result<Option<Conditions>, Rejected> {
    if on_event.is_none() && timeout.is_none() {
        return Ok(given);
    }
    let timeout = timeout.map(|time| json!({ "durationMinutes": time.as_secs_f64() / 60.0 }));
    let value = json!({ "onEvent": on_event, "timeout": timeout });
    let said = Conditions::parse(&value, Spelling::Camel)?.unwrap_or_default();
    let mut all = given.unwrap_or_default();
    all.on_event = said.on_event.or(all.on_event);
    all.timeout = said.timeout.or(all.timeout);
    Ok(Some(all))
}

/// Returns the pause that a commit was asked for.
pub(super) fn asked(commit: &Done) -> Option<Handle> {
    commit.events.iter().find_map(|event| match &event.what {
        What::SuspendRequested(requested) => Some(requested.pause.handle),
        What::AwaitRequested(requested) => Some(requested.pause.handle),
        What::SuspendJoined(joined) => Some(joined.handle),
        What::Suspended(suspended) => Some(suspended.park.pause.handle),
        What::HoldLaid(laid) => Some(laid.hold.pause.handle),
        _ => None,
    })
}

/// Returns a pause as the commit that asked for it has brought it into force, or has found it.
pub(super) fn begun(commit: &Done, handle: Handle) -> Option<Suspension> {
    let first = commit.session.revision + 1 - commit.events.len() as u64;
    let begins = (first..).zip(commit.events.iter()).find_map(|(revision, event)| {
        Some(Suspension { handle, parked: parked(handle, event)?, revision })
    });
    // Whoever joins a pause that is in force finds it as it was.
    begins.or_else(|| {
        let suspended = commit.session.suspended()?;
        let mut there = suspended.hold.iter().chain([&suspended.park]);
        let parked = there.find(|parked| parked.pause.handle == handle)?.clone();
        Some(Suspension { handle, parked, revision: commit.session.revision })
    })
}

/// Returns a pause as an event brings it into force.
fn parked(handle: Handle, event: &Event) -> Option<Parked> {
    let made = match &event.what {
        What::Suspended(SuspendedEvent { park, hold, .. }) => [Some(park), hold.as_ref()],
        What::HoldLaid(laid) => [Some(&laid.hold), None],
        _ => [None, None],
    };
    made.into_iter().flatten().find(|parked| parked.pause.handle == handle).cloned()
}

/// Returns what an event has made of a pause that was pending.
fn fate(handle: Handle, revision: u64, event: &Event) -> Option<Result<Suspension, Error>> {
    if let Some(parked) = parked(handle, event) {
        return Some(Ok(Suspension { handle, parked, revision }));
    }
    let by = || event.by.clone();
    let why = match &event.what {
        What::SuspendWithdrawn(withdrawn) if withdrawn.handle == handle => {
            NotSuspended::Withdrawn(by())
        }
        What::AwaitEnded(ended) if ended.handle == handle => match ended.fate {
            Fate::Canceled => NotSuspended::Canceled(by()),
            _ => NotSuspended::Overtaken,
        },
        What::CancelRequested(_) => NotSuspended::Canceled(by()),
        What::SessionEnded(_) => NotSuspended::Ended(by()),
        _ => return None,
    };
    Some(Err(Error::NotSuspended { handle, why }))
}

/// Takes a pending suspend back when it is dropped.
struct Withdraws<S: Store> {
    session: SessionRef<S>,
    by: Actor,
    request: RequestId,
    is_pending: bool,
    /// Resolves when the suspend is committed, or refused.
    asked: Option<oneshot::Receiver<()>>,
    /// Where it was asked for.
    runtime: Option<runtime::Handle>,
}

impl<S: Store> Drop for Withdraws<S> {
    fn drop(&mut self) {
        if !self.is_pending {
            return;
        }
        let withdraw = Command::Withdraw(Withdraw { request: self.request });
        let request = Request::new(self.session.id(), self.by.clone(), withdraw);
        let Process { store, feed, .. } = self.session.adjourn().process().clone();
        let withdraw = move |tx: &mut Transaction<'_>| -> Result<Done, CommandError> {
            // It is refused if the suspend has taken effect, or was refused itself.
            tx.command(request)
        };
        match (self.runtime.take(), self.asked.take()) {
            (Some(runtime), Some(asked)) => {
                runtime.spawn(async move {
                    // Behind the suspend, which may wait for room in the queue.
                    let _ = asked.await;
                    let _ = store.transact(withdraw).await;
                    feed.ring();
                });
            }
            // What is queued runs to its end; other processes find it when they look.
            _ => drop(store.transact(withdraw)),
        }
    }
}
