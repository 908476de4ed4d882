//! `serve`: a host that runs what is ready and wakes what is due, until it is told to stop.

mod a2a;
mod access;

use std::time::Duration;

use adjourn::Claims;
use adjourn_server::{Names, Site};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::arguments::Serve;
use crate::chosen::Chosen;
use crate::descriptors;
use crate::failure::Failure;
use crate::foreground::{did_not_wait, host};
use crate::place::Place;
use crate::settings::Settings;
use crate::signals::{Ended, Signals};
use crate::terminal::Output;

/// How long the store may take before the log says that it is waited for.
const SOON: Duration = Duration::from_secs(1);
/// How long a store that was locked or full is left alone.
const TRY_AGAIN: Duration = Duration::from_millis(500);
/// How long requests that are under way may take when the host stops.
const HANG_UP: Duration = Duration::from_secs(1);

pub async fn run(settings: &Settings, serve: Serve, output: &Output) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let open = async || Place::open_or_make(settings).await;
    let Some(place) = patiently(open, &mut signals).await? else { return Ok(()) };
    let chosen = a2a::chosen(settings, &serve)?;
    let place = place.naming(chosen.as_ref().and_then(|(_, chosen)| chosen.named_servers.clone()));
    let mut listening = listen(&place, &serve, chosen).await?;
    let join = async || host(&place, Claims::All, output).await;
    let Some(mut working) = patiently(join, &mut signals).await? else {
        // Closing the store would wait as long as its writer does for the lock, up to half a
        // minute; all that is in its queue is the announcement of a host that never was.
        std::mem::forget(place);
        return Ok(());
    };
    let (store, pid) = (place.adjourn.path().display().to_string(), std::process::id());
    let host = working.claimant().host();
    tracing::info!(%host, pid, "serving {store}; stop with Ctrl-C");
    if output.json {
        let url = listening.as_ref().map(|listening| &listening.url);
        let a2a = listening.as_ref().and_then(|listening| listening.a2a_url.as_ref());
        let mut serving = json!({ "store": store, "pid": pid, "listening": url });
        if let (Some(url), Some(serving)) = (a2a, serving.as_object_mut()) {
            serving.insert("a2a".to_owned(), url.as_str().into());
        }
        output.data(&json!({ "serving": serving }).to_string());
    }
    let stopped = tokio::select! {
        Ended(code) = signals.next() => Ok(code),
        // No host is left to give anything back: others find what it had.
        failure = working.ended() => return Err(failure),
        failure = unheard(&mut listening) => Err(failure),
    };
    // Meanwhile events are still taken, for other hosts, and /readyz says that this one stops.
    let given_back = working.or(&place, &mut signals, output).await?;
    match (stopped, given_back) {
        (Err(failure), _) => Err(failure),
        (Ok(_), None) => {
            close(listening).await;
            if output.json {
                output.data(&json!({ "stopped": { "store": store, "pid": pid } }).to_string());
            }
            Ok(())
        }
        (Ok(code), Some(_)) => Err(did_not_wait(code)),
    }
}

/// Tries something with the store until the store is neither locked nor full, and says that it
/// waits; returns nothing if it is told to stop first.
async fn patiently<T>(
    attempt: impl AsyncFn() -> Result<T, Failure>,
    signals: &mut Signals,
) -> Result<Option<T>, Failure> {
    let mut said = None;
    loop {
        let mut trying = std::pin::pin!(attempt());
        let tried = loop {
            tokio::select! {
                tried = &mut trying => break tried,
                _ = signals.next() => return Ok(None),
                () = tokio::time::sleep(SOON), if said.is_none() => {
                    tracing::warn!("waiting for the store: another process keeps it locked");
                    said = Some(String::new());
                }
            }
        };
        let why = match tried {
            Ok(done) => return Ok(Some(done)),
            Err(failure) => failure.passing().map(str::to_owned).ok_or(failure)?,
        };
        if said.as_ref() != Some(&why) {
            tracing::warn!("waiting for the store: {why}");
            said = Some(why);
        }
        tokio::select! {
            () = tokio::time::sleep(TRY_AGAIN) => {}
            _ = signals.next() => return Ok(None),
        }
    }
}

/// The intake of events, the agent that others talk to, and how to stop them.
struct Listening {
    /// The address that events are posted to.
    url: String,
    /// The address of the agent, if there is one.
    a2a_url: Option<String>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

/// Waits until the intake of events fails by itself, and returns why.
async fn unheard(listening: &mut Option<Listening>) -> Failure {
    let ended = match listening {
        Some(listening) => (&mut listening.task).await,
        None => std::future::pending().await,
    };
    *listening = None;
    match ended {
        Ok(Err(error)) => Failure::other(format!("cannot listen any longer: {error}")),
        _ => Failure::other("the listener ended"),
    }
}

/// Takes no more requests; those that are under way have a moment to end, and streams do at once.
async fn close(listening: Option<Listening>) {
    let Some(Listening { stop, mut task, .. }) = listening else { return };
    let _ = stop.send(());
    if tokio::time::timeout(HANG_UP, &mut task).await.is_err() {
        task.abort();
    }
}

/// Takes events over HTTP, and lets other agents talk to an agent, if it is asked to.
async fn listen(
    place: &Place,
    serve: &Serve,
    chosen: Option<(String, Chosen)>,
) -> Result<Option<Listening>, Failure> {
    let Some(address) = place.settings.listen.value else { return Ok(None) };
    let agent = chosen.map(|chosen| a2a::agent(place, serve, chosen)).transpose()?;
    let (agent, pusher) = agent.unzip();
    let access = access::access(place, serve, &address, agent.is_some())?;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let failure = Failure::other(format!("cannot listen on {address}: {error}"));
        match error.kind() {
            std::io::ErrorKind::AddrInUse => failure.hint("another process does; port 0 takes any"),
            _ => failure,
        }
    })?;
    // Port 0 asks for any; say which it is.
    let address = listener.local_addr().unwrap_or(address);
    let url = format!("http://{address}/v1/events");
    tracing::info!("listening on {url}");
    let a2a_url = agent.as_ref().map(|_| format!("http://{address}/a2a"));
    if let Some(url) = &a2a_url {
        tracing::info!("an A2A agent on {url}");
    }
    let site = Site {
        adjourn: place.adjourn.clone(),
        agent,
        pusher: pusher.flatten(),
        access,
        names: Names::of(place.settings.public_name.value.clone()),
        connections: descriptors::connections(),
        answer_bytes: adjourn_server::ANSWER_BYTES,
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(adjourn_server::serve(listener, site, async move {
        let _ = stopped.await;
    }));
    Ok(Some(Listening { url, a2a_url, stop, task }))
}
