//! The second process of a benchmark: this program again, told what to be.

use std::io::{BufRead as _, Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use adjourn_testkit::process::Pipe;
use anyhow::{Result, bail};

use super::{a2a, acp, commits, http, sessions};

/// Starts this program as something else.
pub fn spawn(what: &str, store: Option<&Path>) -> Result<Pipe> {
    Ok(Pipe::start(&mut command(what, store)?)?)
}

/// Returns what starts this program as something else.
pub fn command(what: &str, store: Option<&Path>) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(super::CHILD).arg(what).args(store);
    Ok(command)
}

/// Does what the first process asks for.
pub fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.iter().map(String::as_str);
    let what = arguments.next();
    let store = arguments.next().map(Path::new);
    match (what, store) {
        (Some("writer"), Some(store)) => commits::foreign_child(store),
        (Some("host"), Some(store)) => host(store),
        (Some("intake"), Some(store)) => http::intake(store),
        (Some("axum"), None) => http::bare(),
        (Some("a2a"), Some(store)) => a2a::serve(store, false),
        (Some("a2a-host"), Some(store)) => a2a::serve(store, true),
        (Some("a2a-echo"), None) => a2a::echo(),
        (Some("a2a-broadcast"), None) => a2a::broadcast_all(),
        (Some("echo"), None) => echo(),
        (Some("acp"), Some(store)) => acp::agent(store),
        other => bail!("no second process {other:?}"),
    }
}

/// A host as `adjourn serve` runs one.
fn host(path: &Path) -> Result<()> {
    runtime()?.block_on(async {
        let host = sessions::open(path)?.host().scripts().start().await?;
        println!("joined");
        first_gone().await;
        Ok(host.stop().await?)
    })
}

/// Says every line again.
fn echo() -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(output, "{}", line?)?;
        output.flush()?;
    }
    Ok(())
}

/// The runtime that `adjourn serve` has.
pub fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Waits until the first process is gone, or has closed our input.
pub async fn first_gone() {
    let (gone, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = gone.send(());
    });
    let _ = told.await;
}
