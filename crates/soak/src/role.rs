//! What a child process does: it hosts, or it watches.

use std::path::PathBuf;
use std::sync::Arc;

use adjourn::clock::{Clock, Machine};
use adjourn::watch::Bell;
use adjourn::{Config, Host};
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
    let clock: Arc<dyn Clock> = Arc::new(Machine);
    let drivers = Arc::new(Marking::new(Arc::clone(&clock), &scene.marks()));
    let about = format!(r#"{{"pid":{}}}"#, std::process::id());
    let config = Config { max_running, about, ..Config::default() };
    let host = Host::join(scene.open(), scene.hosts(), clock, drivers, config).await;
    let stop = async move {
        terminate.recv().await;
    };
    host.expect("the host joins").run(stop).await.expect("the store works");
}

async fn watch(scene: &Scene) {
    let bell = Bell::new(&scene.hosts(), &Machine);
    loop {
        bell.rung().await;
    }
}
