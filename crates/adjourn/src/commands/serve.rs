//! `serve`: a host that runs what is ready and wakes what is due, until it is told to stop.

use std::path::PathBuf;

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::place::Place;
use crate::show::Output;
use crate::stay::host;

pub async fn run(store: Option<PathBuf>, output: &Output) -> Result<(), Failure> {
    let place = Place::open(store)?;
    let no_signals = |error| Failure::other(format!("cannot wait for signals: {error}"));
    let mut terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let working = host(&place).await?;
    output.talk(&format!("serving {}; stop with Ctrl-C", place.store.path().display()));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    output.talk("stopping: giving sessions back");
    working.now().await
}
