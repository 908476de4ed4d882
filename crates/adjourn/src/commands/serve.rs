//! `serve`: a host that runs what is ready and wakes what is due, until it is told to stop.

use std::sync::Arc;

use adjourn_server::{Intake, needs_token};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::place::Place;
use crate::settings::Settings;
use crate::signals::{Ended, Signals};
use crate::stay::host;
use crate::terminal::Output;

pub async fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let mut signals = Signals::new()?;
    let place = Place::open(settings)?;
    let listening = listen(&place, output).await?;
    let working = host(&place).await?;
    output.talk(&format!("serving {}; stop with Ctrl-C", place.store.path().display()));
    let Ended(code) = signals.next().await;
    output.talk("stopping: giving sessions back");
    // First no more events are taken, then what they woke is given back.
    if let Some((stop, task)) = listening {
        let _ = stop.send(());
        let _ = task.await;
    }
    match working.or(&place, &mut signals, output).await? {
        true => Ok(()),
        false => {
            let message = "did not wait: calls in flight are cut off, their outcome is unknown";
            Err(Failure::interrupted(code, message))
        }
    }
}

type Listening = (oneshot::Sender<()>, JoinHandle<std::io::Result<()>>);

/// Takes events over HTTP, if it is asked to.
async fn listen(place: &Place, output: &Output) -> Result<Option<Listening>, Failure> {
    let Some(address) = place.settings.listen.value else { return Ok(None) };
    let (token, open) = place.settings.token()?;
    if needs_token(&address) && token.is_none() {
        return Err(Failure::usage(format!("{address} can be reached by others"))
            .hint("set ADJOURN_TOKEN or --token-file, or listen on 127.0.0.1"));
    }
    if let Some(path) = open {
        output.talk(&format!("{0} can be read by others: chmod 600 {0}", path.display()));
    }
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let failure = Failure::other(format!("cannot listen on {address}: {error}"));
        match error.kind() {
            std::io::ErrorKind::AddrInUse => failure.hint("another process does; port 0 takes any"),
            _ => failure,
        }
    })?;
    // Port 0 asks for any; say which it is.
    let address = listener.local_addr().unwrap_or(address);
    output.talk(&format!("listening on http://{address}/v1/events"));
    let intake = Intake {
        store: place.store.clone(),
        hosts: place.hosts.clone(),
        tenant: place.settings.tenant.value.clone(),
        token: token.map(Arc::from),
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(adjourn_server::serve(listener, intake, async move {
        let _ = stopped.await;
    }));
    Ok(Some((stop, task)))
}
