//! What the system knows of a process.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

use std::fs;
use std::time::Duration;

use rustix::process::Signal;

/// Ticks of the kernel's clock of processor time in one second.
const TICKS: f64 = 100.0;
/// Bytes of a page of memory.
const PAGE: u64 = 4096;

/// Returns the state of each thread of a process, as one letter; a thread that ends meanwhile is
/// left out.
pub(super) fn threads(id: u32) -> impl Iterator<Item = char> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).unwrap();
    threads.flatten().filter_map(|thread| {
        let about = fs::read_to_string(thread.path().join("stat")).ok()?;
        // The state follows the name, which stands in brackets.
        about.rsplit(") ").next()?.chars().next()
    })
}

/// Returns whether a process has something of its own that it does when SIGTERM comes.
pub(super) fn listens(id: u32) -> bool {
    let caught = status(id, "SigCgt:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    caught.is_some_and(|caught| caught & (1 << (Signal::TERM.as_raw() - 1)) != 0)
}

/// Returns the most memory that a process ever had in use, in bytes.
///
/// # Panics
/// There is no such process.
pub fn peak_memory(id: u32) -> u64 {
    let kilobytes = status(id, "VmHWM:").unwrap();
    kilobytes.trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// Returns the memory that a process has in use, in bytes.
///
/// # Panics
/// There is no such process.
pub fn resident(id: u32) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{id}/statm")).unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * PAGE
}

/// Returns the processor time that a process has used, by all its threads.
///
/// # Panics
/// There is no such process.
pub fn processor_time(id: u32) -> Duration {
    let about = fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    // The name of the program may have anything in it, and ends with the last bracket.
    let fields = about.rsplit(')').next().unwrap().split_whitespace();
    let ticks = fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap());
    Duration::from_secs_f64(ticks.sum::<f64>() / TICKS)
}

/// Returns whether a process runs, and is no mere entry that its parent has not read yet.
pub fn is_running(id: u32) -> bool {
    status(id, "State:").is_some_and(|state| !state.starts_with('Z'))
}

/// Returns what the system says of a process under a name, if the process is there.
fn status(id: u32, name: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(name)).map(|line| line.trim().to_owned())
}
