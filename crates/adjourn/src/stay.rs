//! Staying with a session in the foreground, as its host if nobody else is one.

use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::id::SessionId;
use adjourn_core::session::{Outcome, State};
use adjourn_host::clock::Clock;
use adjourn_host::said::Said;
use adjourn_host::script::Scripted;
use adjourn_host::{Config, Host};
use adjourn_store::Sqlite;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::show::{Output, standing, status};
use crate::watch::Watch;

/// When to leave a session alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When it is parked, idle or over.
    Parked,
    /// When it is idle or over.
    Idle,
}

/// Runs a host in this process, and returns how to stop it.
pub async fn host(place: &Place) -> Result<Stop, Failure> {
    let clock: Arc<dyn Clock> = Arc::clone(&place.clock);
    let drivers = Arc::new(Scripted(Arc::clone(&clock)));
    let about = format!(r#"{{"pid":{}}}"#, std::process::id());
    let Settings { max_running, drain, .. } = &place.settings;
    let config = Config { max_running: max_running.value, drain: drain.value, about };
    let host: Host<Sqlite> =
        Host::join(place.store.clone(), place.hosts.clone(), clock, drivers, config).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(host.run(async move {
        // Whoever drops the other end wants it stopped, too.
        let _ = stopped.await;
    }));
    Ok(Stop { stop, task })
}

/// A host that works until it is told to stop.
pub struct Stop {
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Result<(), adjourn_store::Error>>,
}

impl Stop {
    pub async fn now(self) -> Result<(), Failure> {
        let _ = self.stop.send(());
        match self.task.await {
            Ok(result) => Ok(result?),
            Err(_) => Err(Failure::other("the host panicked")),
        }
    }
}

/// Shows what a session says and does, until it is time to leave it alone.
pub async fn stay(
    place: &Place,
    id: SessionId,
    until: Until,
    output: &Output,
) -> Result<Arc<Session>, Failure> {
    let from = place.store.session_now(id)?;
    let mut watcher = Watch::after(place, &from);
    let mut last = None;
    loop {
        let Some(seen) = watcher.look()? else {
            return Err(Failure::not_found(format!("there is no session {id}")));
        };
        let session = &seen.session;
        if output.json {
            if !seen.moments.is_empty() {
                output.data(&status(session).to_string());
            }
        } else {
            for said in seen.said() {
                match said {
                    Said::Agent { text, aborted: false } => output.data(text),
                    Said::Tool { result, .. } => output.talk(&format!("· {result}")),
                    Said::Agent { .. } | Said::User { .. } | Said::Host { .. } => {}
                }
            }
            let now = standing(session, place.clock.now());
            if last.as_ref() != Some(&session.phase()) {
                output.talk(&format!("[{now}]"));
            }
        }
        last = Some(session.phase());
        let leave = match &session.state {
            State::Idle | State::Ended(_) => true,
            State::Suspended(_) => until == Until::Parked,
            State::Ready(_) | State::Running(_) | State::Quiescing(_) => false,
        };
        if leave {
            return Ok(seen.session);
        }
        watcher.wait().await;
    }
}

/// Turns a run that failed into a failure.
pub fn outcome(session: &Session) -> Result<(), Failure> {
    match &session.last_run {
        Some(last) if last.outcome == Outcome::Failed && session.run().is_none() => {
            let error = last.error.as_deref().unwrap_or("it did not say why");
            Err(Failure::other(format!("the run failed: {error}")))
        }
        _ => Ok(()),
    }
}

/// Reading a session that must be there.
trait SessionNow {
    fn session_now(&self, id: SessionId) -> Result<Arc<Session>, Failure>;
}

impl SessionNow for Sqlite {
    fn session_now(&self, id: SessionId) -> Result<Arc<Session>, Failure> {
        use adjourn_store::Store as _;
        let session = self.session(id)?;
        session.ok_or_else(|| Failure::not_found(format!("there is no session {id}")))
    }
}
