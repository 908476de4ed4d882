//! `acp`: an agent that editors start, on stdin and stdout.

use std::io::IsTerminal as _;
use std::sync::Arc;

use adjourn_acp::{Face, Options, PendingPermissions};
use adjourn_core::driver::DriverSpec;
use adjourn_host::Claims;
use adjourn_host::script::Scripted;
use adjourn_store::Sqlite;

use crate::arguments::{Acp, OnDisconnect, Profile, StatusWords};
use crate::commands::run::read;
use crate::failure::Failure;
use crate::foreground::{Stop, did_not_wait, host_with};
use crate::place::Place;
use crate::settings::Settings;
use crate::signals::{Ended, Signals};
use crate::terminal::Output;

pub async fn run(settings: &Settings, acp: Acp, output: &Output) -> Result<(), Failure> {
    let signals = Signals::new()?;
    match Agent::start(settings, &acp).await {
        Ok(agent) => agent.serve(signals, output).await,
        Err(failure) => Err(told(failure, signals).await),
    }
}

/// Tells an editor that the settings are wrong, and returns the failure when the editor has gone.
pub async fn refuse(failure: Failure) -> Failure {
    match Signals::new() {
        Ok(signals) => told(failure, signals).await,
        Err(_) => failure,
    }
}

/// Tells an editor why there is no agent, and returns the failure when the editor has gone.
async fn told(failure: Failure, mut signals: Signals) -> Failure {
    // A person who types this at a terminal is no editor.
    if !std::io::stdin().is_terminal() {
        let stop = async {
            signals.next().await;
        };
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        // If the editor cannot be reached, the failure is told at the end all the same.
        let _ = adjourn_acp::refuse(&failure.told(), input, output, stop).await;
    }
    failure
}

/// What an editor talks to, with all that it needs.
struct Agent {
    place: Place,
    working: Stop,
    face: Face<Sqlite>,
}

impl Agent {
    /// Opens what the agent needs.
    async fn start(settings: &Settings, acp: &Acp) -> Result<Self, Failure> {
        let (driver, _) = read(&acp.script)?;
        let place = Place::open_or_make(settings)?;
        let permissions = PendingPermissions::default();
        let drivers = Scripted::new(Arc::clone(&place.clock)).asking(Arc::new(permissions.clone()));
        let working = host_with(&place, Claims::All, drivers).await?;
        let face = Face {
            store: place.store.clone(),
            hosts: place.hosts.clone(),
            clock: Arc::clone(&place.clock),
            claimant: working.claimant.clone(),
            permissions,
            options: options(settings, driver),
        };
        Ok(Self { place, working, face })
    }

    async fn serve(self, signals: Signals, output: &Output) -> Result<(), Failure> {
        let Self { place, working, face } = self;
        output.talk(&format!(
            "an ACP agent on stdin and stdout; its sessions are in {}",
            place.store.path().display()
        ));
        let signals = tokio::sync::Mutex::new(signals);
        let working = tokio::sync::Mutex::new(Some(working));
        let mut ended = None;
        let mut failed = None;
        let mut hurried = Ok(None);
        // A signal is an editor that goes away, as the end of its input is; both are one request to
        // stop. A second one does not wait. A host that fails takes the agent with it: an editor that
        // went on would never be answered.
        let stop = async {
            let (mut signals, mut working) = (signals.lock().await, working.lock().await);
            let Some(host) = working.as_mut() else { return };
            tokio::select! {
                signal = signals.next() => ended = Some(signal),
                failure = host.ended() => failed = Some(failure),
            }
            if failed.is_some() {
                *working = None;
            }
        };
        let drain = async {
            let mut signals = signals.lock().await;
            signals.were_foretold();
            if let Some(working) = working.lock().await.take() {
                hurried = working.or(&place, &mut signals, output).await;
            }
        };
        let served = adjourn_acp::serve(
            Arc::new(face),
            tokio::io::stdin(),
            tokio::io::stdout(),
            stop,
            drain,
        )
        .await;
        served.map_err(|error| Failure::other(format!("the editor cannot be reached: {error}")))?;
        if let Some(failure) = failed {
            return Err(failure);
        }
        match hurried? {
            None => Ok(()),
            Some(Ended(second)) => Err(did_not_wait(ended.map_or(second, |Ended(first)| first))),
        }
    }
}

fn options(settings: &Settings, driver: DriverSpec) -> Options {
    Options {
        driver: driver.kind,
        needs: driver.needs,
        tenant: settings.tenant.value.clone(),
        profile: match settings.profile.value {
            Profile::Adjourn => adjourn_acp::Profile::Adjourn,
            Profile::Rfc => adjourn_acp::Profile::Rfc,
        },
        status: match settings.status_words.value {
            StatusWords::Auto => adjourn_acp::StatusWords::ByVersion,
            StatusWords::Live => adjourn_acp::StatusWords::Live,
            StatusWords::Open => adjourn_acp::StatusWords::Open,
        },
        on_disconnect: match settings.on_disconnect.value {
            OnDisconnect::Continue => adjourn_acp::OnDisconnect::Continue,
            OnDisconnect::Suspend => adjourn_acp::OnDisconnect::Suspend,
            OnDisconnect::Cancel => adjourn_acp::OnDisconnect::Cancel,
        },
        cancel_grace: settings.cancel_grace.configured(),
    }
}
