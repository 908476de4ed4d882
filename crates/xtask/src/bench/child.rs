//! The second process of a benchmark: this program again, told what to be.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use adjourn_testkit::process::peak_memory;
use anyhow::{Context as _, Result, bail, ensure};

use super::{a2a, acp, commits, http, sessions};

/// Ticks of the kernel's clock of processor time in one second.
const TICKS: f64 = 100.0;

/// A process that ends when it is dropped.
pub struct Child {
    process: std::process::Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// Starts this program as something else.
    pub fn spawn(what: &str, store: Option<&Path>) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(super::CHILD).arg(what).args(store);
        Self::start(command)
    }

    /// Starts a program, and talks with it.
    pub fn start(mut command: Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = process.stdin.take();
        let output = process.stdout.take().context("the child's output is a pipe")?;
        Ok(Self { process, input, output: BufReader::new(output) })
    }

    /// Reads what the child says next.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the second process has ended");
        Ok(line.trim_end().to_owned())
    }

    /// Says something to the child.
    pub fn say(&mut self, line: &[u8]) -> Result<()> {
        let input = self.input.as_mut().context("the child's input is open")?;
        Ok(input.write_all(line)?)
    }

    /// Lends the child's input, for somebody who writes while another reads.
    pub fn take_input(&mut self) -> Result<ChildStdin> {
        self.input.take().context("the child's input is open")
    }

    /// Gives the child's input back.
    pub fn give_input(&mut self, input: ChildStdin) {
        self.input = Some(input);
    }

    /// Returns the most memory that the child ever had in use, in bytes.
    pub fn peak(&self) -> u64 {
        peak_memory(self.process.id())
    }

    /// Returns the processor time that the child has used.
    pub fn processor_time(&self) -> Result<Duration> {
        processor_time(self.process.id())
    }

    /// Returns the memory that the child has in use, in bytes.
    pub fn resident(&self) -> Result<u64> {
        const PAGE: u64 = 4096;
        let path = format!("/proc/{}/statm", self.process.id());
        let status = std::fs::read_to_string(path)?;
        let pages = status.split_whitespace().nth(1).context("statm has a second column")?;
        Ok(pages.parse::<u64>()? * PAGE)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the processor time that a process has used, by all its threads.
pub fn processor_time(process: u32) -> Result<Duration> {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name of the program may have anything in it, and ends with the last bracket.
    let (_, fields) = status.rsplit_once(')').context("stat has a name")?;
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(11).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(Duration::from_secs_f64(ticks.iter().sum::<f64>() / TICKS))
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
