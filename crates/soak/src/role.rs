//! What a child process does: it hosts, or it watches.

use std::path::PathBuf;
use std::sync::Arc;

use adjourn::Moments;
use adjourn::core::id::SessionId;
use tokio::signal::unix::{SignalKind, signal};

use crate::agent::Marking;
use crate::scene::Scene;

/// The first argument of a child process.
pub const ROLE: &str = "role";

/// Plays the role that the arguments behind [`ROLE`] name.
///
/// # Panics
/// The arguments name no role, or the store fails.
pub fn play(arguments: &[String]) {
    // The parent is gone when its end of the pipe is.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let scene = |directory: &String| Scene::at(PathBuf::from(directory));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    match arguments {
        [directory, role, max_running] if role == "host" => {
            let max_running = max_running.parse().expect("a number of sessions");
            runtime.block_on(host(&scene(directory), max_running));
        }
        [directory, role] if role == "watch" => runtime.block_on(watch(&scene(directory))),
        other => panic!("there is no role {other:?}"),
    }
}

async fn host(scene: &Scene, max_running: usize) {
    let mut terminate = signal(SignalKind::terminate()).expect("signals");
    let adjourn = scene.embed();
    let drivers = Marking::new(Arc::clone(adjourn.clock()), &scene.marks());
    let about = format!(r#"{{"pid":{}}}"#, std::process::id());
    let host = adjourn.host().others(Arc::new(drivers)).max_running(max_running).about(about);
    let mut host = host.start().await.expect("the host joins");
    tokio::select! {
        _ = terminate.recv() => host.stop().await.expect("the store works"),
        error = host.ended() => panic!("{error}"),
    }
}

/// Hears all that other processes ring for, as those do who wait for a session.
async fn watch(scene: &Scene) {
    let adjourn = scene.embed();
    let nothing = adjourn.session(SessionId::new(adjourn.clock().uuid()));
    let moments = Moments::from_start(&nothing);
    loop {
        moments.changed().await.expect("the store works");
    }
}
