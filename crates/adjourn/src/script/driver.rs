//! The scripted driver: does what comes next in its script.

use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::carry::Notes;
use adjourn_core::command::RunEnd;
use adjourn_core::driver::{DriverKind, DriverSpec, Need};
use adjourn_core::id::SessionId;
use adjourn_core::ledger::CallId;
use adjourn_core::session::Outcome;
use adjourn_driver::script::{Item, Tool};
use adjourn_driver::{
    BoxStream, Call, CallPart, Client, Driver, Drivers, Failure, Finish, NoClient, Park, Part,
    Step, emitting,
};

use super::{Script, play};
use crate::clock::Clock;
use crate::permission::{Permissions, SessionClient};

/// A place in a script: the next item of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    run: usize,
    item: usize,
}

impl Place {
    /// Returns where the session has got to.
    fn of(session: &Session) -> Self {
        let place = session.driver_state.as_deref().and_then(Self::parse).unwrap_or_default();
        // A run that was canceled never came to its end; the next prompt does not go on with it.
        let fresh = session.run().is_some_and(|run| {
            // A step that failed is none in which the model has spoken.
            let has_failed = run.progress.failures.iter().next().is_some();
            run.turn == 1 && run.progress.iterations == 0 && !has_failed
        });
        if fresh && place.item > 0 { place.next_run() } else { place }
    }

    /// Returns the place of the item that a call belongs to.
    fn of_call(call: &CallId) -> Option<Self> {
        call.0.split('-').next().and_then(Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let (run, item) = text.split_once('.')?;
        Some(Self { run: run.parse().ok()?, item: item.parse().ok()? })
    }

    const fn next(self) -> Self {
        Self { run: self.run, item: self.item + 1 }
    }

    const fn next_run(self) -> Self {
        Self { run: self.run + 1, item: 0 }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.run, self.item)
    }
}

/// Drives a session by its script.
pub struct ScriptDriver {
    script: Script,
    clock: Arc<dyn Clock>,
}

impl ScriptDriver {
    /// Makes a driver.
    pub const fn new(script: Script, clock: Arc<dyn Clock>) -> Self {
        Self { script, clock }
    }

    /// Returns what the script says of a call.
    fn tool(&self, call: &CallId) -> Option<&Tool> {
        // By its number: two tools may have the same name.
        let index: usize = call.0.split('-').nth(1)?.parse().ok()?;
        match self.item(Place::of_call(call)?)? {
            Item::Tools { tools, .. } => tools.get(index),
            _ => None,
        }
    }

    fn item(&self, place: Place) -> Option<&Item> {
        self.script.run(place.run)?.get(place.item)
    }

    /// How the run ends if nothing comes at `place`.
    fn end_at(&self, place: Place) -> Option<RunEnd> {
        self.item(place).is_none().then_some(RunEnd {
            outcome: Outcome::Completed,
            error: None,
            ends_session: false,
        })
    }
}

impl Driver for ScriptDriver {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let place = Place::of(&step.session);
        let item = self.item(place).cloned();
        let ends = match &item {
            Some(Item::Fail(why)) => {
                let (outcome, error) = (Outcome::Failed, Some(why.clone()));
                Some(RunEnd { outcome, error, ends_session: false })
            }
            Some(Item::End) => {
                Some(RunEnd { outcome: Outcome::Completed, error: None, ends_session: true })
            }
            // The step is over only when the calls have returned, or the wait is; or it is not, as
            // one that fails.
            Some(
                Item::Tools { .. } | Item::Await { .. } | Item::Ask(_) | Item::FailStep { .. },
            ) => None,
            Some(Item::Say(_) | Item::Spend(_) | Item::Show(_) | Item::Title(_)) | None => {
                self.end_at(place.next())
            }
        };
        let next = if ends.is_some() { place.next_run() } else { place.next() };
        let finish = Finish { ends, ..Finish::default() }.at(next.to_string());
        let (clock, revision) = (Arc::clone(&self.clock), step.session.revision);
        emitting(move |out| async move {
            match item {
                Some(Item::Say(say)) => play::say(say, &out, clock.as_ref()).await,
                Some(Item::Tools { tools, at_once }) => {
                    let call = |(index, tool): (usize, Tool)| {
                        let id = CallId(format!("{place}-{index}-{revision}"));
                        play::request(tool, id, !at_once)
                    };
                    let calls = tools.into_iter().enumerate().map(call).collect();
                    out.emit(Part::Calls(calls)).await;
                }
                Some(Item::Await { reason, summary, conditions }) => {
                    out.emit(Part::Park(Park::Await { reason, conditions, summary })).await;
                }
                Some(Item::Ask(question)) => out.emit(Part::Park(Park::Ask(question))).await,
                Some(Item::Spend(usage)) => play::spend(usage, &out).await,
                Some(Item::Show(shown)) => out.emit(Part::Shown(shown)).await,
                Some(Item::Title(title)) => {
                    let notes = Notes { title: Some(title), ..Notes::default() };
                    out.emit(Part::Noted(notes)).await;
                }
                Some(Item::FailStep { kind, why, retry_after }) => {
                    // Tried again, the step is the next item's.
                    out.emit(Part::State(next.to_string())).await;
                    let retry_at = retry_after.map(|after| clock.now().after(after));
                    let failure = Failure { kind, message: why, retry_at };
                    return out.emit(Part::Failed(failure)).await;
                }
                Some(Item::Fail(_) | Item::End) | None => {}
            }
            out.emit(Part::Finished(finish)).await;
        })
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        let Some(tool) = self.tool(&call.content.id).cloned() else {
            // The host says that the call ended without a result.
            return emitting(|_| std::future::ready(()));
        };
        let clock = Arc::clone(&self.clock);
        emitting(move |out| async move { play::run(tool, &out, clock.as_ref()).await })
    }

    fn finish(&mut self, session: &Session) -> Option<RunEnd> {
        self.end_at(Place::of(session))
    }
}

/// Makes scripted drivers, and no others.
pub struct Scripted {
    clock: Arc<dyn Clock>,
    permissions: Option<Arc<dyn Permissions>>,
}

impl Scripted {
    /// Makes drivers where no client can be asked for permissions.
    pub const fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, permissions: None }
    }

    /// Says which clients can be asked for permissions.
    #[must_use]
    pub fn asking(mut self, permissions: Arc<dyn Permissions>) -> Self {
        self.permissions = Some(permissions);
        self
    }
}

impl Drivers for Scripted {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        match &spec.kind {
            DriverKind::Script { source } => {
                let script = Script::parse(source).map_err(|error| error.to_string())?;
                Ok(Box::new(ScriptDriver::new(script, Arc::clone(&self.clock))))
            }
            DriverKind::Named { name, .. } => Err(format!("it knows no driver {name:?}")),
            other => Err(format!("it has no driver for {} agents", other.name())),
        }
    }

    fn lacks(&self, session: SessionId, spec: &DriverSpec) -> Option<String> {
        if !spec.needs.contains(&Need::Permissions) {
            return None;
        }
        let lack = match &self.permissions {
            Some(permissions) if permissions.is_attended(session) => return None,
            Some(_) => "no editor of this host shows it",
            None => "no editor is connected to this host",
        };
        Some(format!("it asks for permissions, and {lack}"))
    }

    fn client(&self, session: SessionId) -> Arc<dyn Client> {
        match &self.permissions {
            Some(permissions) => {
                Arc::new(SessionClient { clients: Arc::clone(permissions), session })
            }
            None => Arc::new(NoClient),
        }
    }
}
