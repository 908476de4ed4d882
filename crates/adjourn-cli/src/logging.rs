//! The log: what the program does, line by line on stderr, for those who operate it.
//!
//! Lines are written by a thread of their own. A reader that is slow or gone must not hold up the
//! commits that are logged: when too many lines wait, further ones are dropped, and the log says
//! how many.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use adjourn::clock::Environment as _;
use adjourn::clock::Machine;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::arguments::{LogFormat, LogLevel, Verb};
use crate::failure::Failure;
use crate::settings::{Settings, Source};
use crate::terminal::one_line;

/// How many lines may wait to be written: some seconds of a busy host.
const WAITING: usize = 8192;
/// How long the thread that writes sleeps behind what it has written: a thread that logs meanwhile need
/// not wake it.
const REST: Duration = Duration::from_millis(5);
/// How much is written at once: no more than a pipe takes as a whole, so that the lines of processes
/// that share one stay apart.
const AT_ONCE: usize = 4096;
/// How long the end of the program waits for the last lines to be written.
const AT_THE_END: Duration = Duration::from_millis(500);

/// The way to the thread that writes, once there is a log.
static LINES: OnceLock<SyncSender<Line>> = OnceLock::new();
/// Lines that were dropped, and that the log has not mentioned yet.
static DROPPED: AtomicU64 = AtomicU64::new(0);

enum Line {
    Text(Vec<u8>),
    /// Asks the thread to answer once every line before this one is written.
    End(SyncSender<()>),
}

/// Starts the log as the settings say, and returns whether there is one and its lines are JSON.
///
/// # Errors
/// The thread that writes cannot be started.
pub fn start(settings: &Settings, verb: &Verb) -> Result<bool, Failure> {
    let json = matches!(settings.log_format.value, LogFormat::Json);
    let filter = level(settings, verb);
    if filter == LevelFilter::OFF {
        return Ok(false);
    }
    let (sender, lines) = sync_channel(WAITING);
    let thread = std::thread::Builder::new().name("log".to_owned());
    thread
        .spawn(move || write_all(&lines, json))
        .map_err(|error| Failure::other(format!("cannot start the log: {error}")))?;
    if LINES.set(sender).is_err() {
        return Ok(json);
    }
    let log = tracing_subscriber::fmt()
        .with_max_level(filter)
        .with_writer(Lines { json })
        .with_timer(WallClock)
        .with_ansi(false)
        .with_target(false)
        .log_internal_errors(false);
    let lines = logged_lines(filter);
    // It fails only if there is a log already.
    let _ = match json {
        true => {
            let log = log.json().flatten_event(true).finish();
            tracing::subscriber::set_global_default(log.with(lines))
        }
        false => tracing::subscriber::set_global_default(log.finish().with(lines)),
    };
    Ok(json)
}

/// Returns which lines are logged. Those of libraries may hold what models and servers have said,
/// which is logged only where everything is. Those about MCP servers hold it as it came, with the values
/// that a server was given in it, and are never logged.
fn logged_lines(filter: LevelFilter) -> Targets {
    let of_libraries = if filter >= LevelFilter::DEBUG { filter } else { LevelFilter::OFF };
    let lines = Targets::new().with_default(of_libraries).with_target("adjourn", filter);
    lines.with_target("rmcp", LevelFilter::OFF)
}

/// Returns what is logged. Commands that stay in the foreground tell people what happens already,
/// and log only what they are asked to; a file is for those that serve.
fn level(settings: &Settings, verb: &Verb) -> LevelFilter {
    let log = &settings.log;
    let serves = matches!(verb, Verb::Serve(_) | Verb::Acp(_));
    let holds = serves || !matches!(log.source, Source::File { .. });
    let asked = log.value.filter(|_| holds).unwrap_or(match verb {
        Verb::Serve(_) => LogLevel::Info,
        // Editors show their users what an agent says on stderr.
        Verb::Acp(_) => LogLevel::Warn,
        _ => LogLevel::Off,
    });
    match asked {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Writes what is said to a person among the lines of a log in JSON, as an object without a level:
/// it is no line of the log, and no level leaves it out.
pub fn say(message: &str) {
    let Some(lines) = LINES.get() else { return };
    let now = Machine.now().to_string();
    let line = serde_json::json!({ "timestamp": now, "message": message });
    // A program does not wait for the reader of its stderr here, either.
    if lines.try_send(Line::Text(format!("{line}\n").into_bytes())).is_err() {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits a moment until what was logged is written.
pub fn end() {
    let Some(lines) = LINES.get() else { return };
    let (sender, written) = sync_channel(1);
    if lines.try_send(Line::End(sender)).is_ok() {
        let _ = written.recv_timeout(AT_THE_END);
    }
}

/// Writes lines as they come. A program does not end because its log is not read.
fn write_all(lines: &Receiver<Line>, json: bool) {
    while let Ok(first) = lines.recv() {
        let mut batch = Batch::default();
        let mut end = None;
        for line in std::iter::once(first).chain(lines.try_iter()) {
            match line {
                Line::Text(line) => batch.add(&line),
                Line::End(written) => {
                    end = Some(written);
                    break;
                }
            }
        }
        batch.write();
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let _ = io::stderr().write_all(dropped_line(dropped, json).as_bytes());
        }
        match end {
            Some(written) => drop(written.send(())),
            None => std::thread::sleep(REST),
        }
    }
}

/// Lines that are written at once.
#[derive(Default)]
struct Batch {
    text: Vec<u8>,
    lines: u64,
}

impl Batch {
    /// Adds a line; those before it are written if both would be too much.
    fn add(&mut self, line: &[u8]) {
        if self.text.len() + line.len() > AT_ONCE {
            self.write();
        }
        self.text.extend_from_slice(line);
        self.lines += 1;
    }

    /// Writes what there is; lines that cannot be written are dropped ones.
    fn write(&mut self) {
        if io::stderr().write_all(&self.text).is_err() {
            DROPPED.fetch_add(self.lines, Ordering::Relaxed);
        }
        *self = Self::default();
    }
}

fn dropped_line(dropped: u64, json: bool) -> String {
    let now = Machine.now();
    let message = "lines of the log were dropped: stderr is read too slowly, or --log asks for \
                   too much";
    match json {
        true => {
            let line = serde_json::json!({
                "timestamp": now.to_string(), "level": "WARN", "message": message,
                "dropped": dropped,
            });
            format!("{line}\n")
        }
        false => format!("{now}  WARN {message} dropped={dropped}\n"),
    }
}

/// Hands lines to the thread that writes them.
struct Lines {
    json: bool,
}

/// One line, which is handed on when it is whole.
struct OneLine {
    bytes: Vec<u8>,
    json: bool,
}

impl MakeWriter<'_> for Lines {
    type Writer = OneLine;

    fn make_writer(&self) -> OneLine {
        OneLine { bytes: Vec::with_capacity(256), json: self.json }
    }
}

impl Write for OneLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for OneLine {
    fn drop(&mut self) {
        let mut line = std::mem::take(&mut self.bytes);
        if !self.json {
            // What others wrote may be in it, and must neither begin a line nor move a cursor.
            let text = String::from_utf8_lossy(&line);
            line = format!("{}\n", one_line(text.trim_end_matches('\n'))).into_bytes();
        }
        let sent = LINES.get().map(|lines| lines.try_send(Line::Text(line)));
        if let Some(Err(_)) = sent {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The time of a line, as the journal has it.
struct WallClock;

impl FormatTime for WallClock {
    fn format_time(&self, writer: &mut Writer<'_>) -> std::fmt::Result {
        write!(writer, "{}", Machine.now())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn what_libraries_log_is_left_out_unless_everything_is_logged() {
        for (filter, line, ours, theirs) in [
            (LevelFilter::WARN, Level::WARN, true, false),
            (LevelFilter::INFO, Level::INFO, true, false),
            (LevelFilter::INFO, Level::DEBUG, false, false),
            (LevelFilter::DEBUG, Level::DEBUG, true, true),
        ] {
            let lines = logged_lines(filter);
            for target in ["adjourn", "adjourn::host", "adjourn_agent::tool"] {
                assert_eq!(lines.would_enable(target, &line), ours, "{target} {filter} {line}");
            }
            for target in ["hyper_util", "genai"] {
                assert_eq!(lines.would_enable(target, &line), theirs, "{target} {filter} {line}");
            }
            assert!(!lines.would_enable("rmcp::service", &line), "{filter} {line}");
        }
    }
}
