//! `acp`: an agent that editors start, on stdin and stdout.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use adjourn::Claims;
use adjourn::store::Sqlite;
use adjourn_acp::{Face, Options, PendingPermissions, Wire};

use crate::arguments::{Acp, OnDisconnect, Profile, StatusWords};
use crate::chosen::Chosen;
use crate::failure::Failure;
use crate::foreground::{Stop, did_not_wait, host_with};
use crate::native::ProgramDrivers;
use crate::place::Place;
use crate::settings::Settings;
use crate::signals::{Ended, Signals};
use crate::stdio;
use crate::terminal::Output;

/// How long the store may take before the editor is greeted without it.
const SOON: Duration = Duration::from_secs(1);

/// An editor, on stdin and stdout.
type Editor = Wire<stdio::Input, stdio::Output>;

pub async fn run(settings: &Settings, acp: Acp, output: &Output) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let mut editor = Editor::new(stdio::Input::stdin(), stdio::Output::stdout());
    let chosen = Chosen::by(&acp.agent, settings)
        .and_then(Chosen::run_here)
        .and_then(|chosen| chosen.within(None));
    let chosen = match chosen {
        Ok(chosen) => chosen,
        Err(failure) => return Err(told(failure, editor, signals).await),
    };
    let mcp = chosen.mcp;
    let mut starting = Box::pin(Agent::start(settings, chosen));
    let started = match tokio::time::timeout(SOON, &mut starting).await {
        Ok(started) => started,
        Err(_) => {
            output.talk("waiting for the store: another process keeps it locked");
            let started = tokio::select! {
                started = &mut starting => Some(started),
                () = gone(&mut editor, profile(settings), mcp) => None,
                _ = signals.next() => None,
            };
            let Some(started) = started else {
                // Closing the store would wait as long as its writer does for the lock; all that is
                // in its queue is the announcement of a host that never was.
                std::mem::forget(starting);
                return Ok(());
            };
            started
        }
    };
    match started {
        Ok(agent) => agent.serve(editor, signals, output).await,
        Err(failure) => Err(told(failure, editor, signals).await),
    }
}

/// Greets an editor, and waits until it has gone.
async fn gone(editor: &mut Editor, profile: adjourn_acp::Profile, mcp: bool) {
    // What it says behind its greeting is for the agent, which may start yet.
    if let Ok(true) = editor.greet(profile, mcp).await {
        std::future::pending::<()>().await;
    }
}

/// Tells an editor that the settings are wrong, and returns the failure when the editor has gone.
pub async fn refuse(failure: Failure) -> Failure {
    match Signals::new() {
        Ok(signals) => {
            let editor = Editor::new(stdio::Input::stdin(), stdio::Output::stdout());
            told(failure, editor, signals).await
        }
        Err(_) => failure,
    }
}

/// Tells an editor why there is no agent, and returns the failure when the editor has gone.
async fn told(failure: Failure, editor: Editor, mut signals: Signals) -> Failure {
    // A person who types this at a terminal is no editor.
    if !std::io::stdin().is_terminal() {
        let stop = async {
            signals.next().await;
        };
        // If the editor cannot be reached, the failure is told at the end all the same.
        let _ = adjourn_acp::refuse(&failure.told(), editor, stop).await;
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
    async fn start(settings: &Settings, chosen: Chosen) -> Result<Self, Failure> {
        let named_servers = chosen.named_servers.clone();
        let place = Place::open_or_make(settings).await?.naming(named_servers);
        let permissions = PendingPermissions::default();
        let drivers = ProgramDrivers::new(&place).asking(Arc::new(permissions.clone()));
        let working = host_with(&place, Claims::All, drivers).await?;
        let face = Face {
            adjourn: place.adjourn.clone(),
            claimant: working.claimant().clone(),
            permissions,
            options: options(settings, chosen),
        };
        Ok(Self { place, working, face })
    }

    async fn serve(self, editor: Editor, signals: Signals, output: &Output) -> Result<(), Failure> {
        let Self { place, working, face } = self;
        output.talk(&format!(
            "an ACP agent on stdin and stdout; its sessions are in {}",
            place.adjourn.path().display()
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
        let served = adjourn_acp::serve(Arc::new(face), editor, stop, drain).await;
        // A host that failed is why the rest did.
        if let Some(failure) = failed {
            return Err(failure);
        }
        served.map_err(|error| Failure::other(format!("the editor cannot be reached: {error}")))?;
        match hurried? {
            None => Ok(()),
            Some(Ended(second)) => Err(did_not_wait(ended.map_or(second, |Ended(first)| first))),
        }
    }
}

const fn profile(settings: &Settings) -> adjourn_acp::Profile {
    match settings.profile.value {
        Profile::Adjourn => adjourn_acp::Profile::Adjourn,
        Profile::Rfc => adjourn_acp::Profile::Rfc,
    }
}

fn options(settings: &Settings, chosen: Chosen) -> Options {
    Options {
        driver: chosen.driver,
        budget: chosen.budget.unwrap_or_default(),
        mcp: chosen.mcp,
        profile: profile(settings),
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
