//! Ctrl-C and its kin, for commands that have something to put in order before they go.

use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The signals that ask a command to end, except those it was started to ignore.
pub struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
    /// When the last one came.
    last: Option<Instant>,
}

/// A signal that comes this soon after another is the same one.
const ECHO: Duration = Duration::from_millis(300);

/// A signal, as the exit code that says so: 128 and its number.
#[derive(Debug, Clone, Copy)]
pub struct Ended(pub u8);

impl Signals {
    /// From now on these signals end nothing by themselves.
    pub fn new() -> Result<Self, Failure> {
        // `nohup` and shells that start something in the background have it ignore signals.
        let status = std::fs::read_to_string("/proc/self/status").ok();
        let ignored = status.as_deref().and_then(ignored);
        let listen = |kind: SignalKind, if_unknown: bool| {
            let ignores = ignored.map_or(if_unknown, |mask| {
                mask.checked_shr(u32::try_from(kind.as_raw_value() - 1).unwrap_or(0))
                    .is_some_and(|bit| bit & 1 == 1)
            });
            if ignores {
                return Ok(None);
            }
            signal(kind)
                .map(Some)
                .map_err(|error| Failure::other(format!("cannot wait for signals: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt(), false)?,
            terminate: listen(SignalKind::terminate(), false)?,
            hangup: listen(SignalKind::hangup(), true)?,
            last: None,
        })
    }

    /// Waits for one.
    pub async fn next(&mut self) -> Ended {
        let ended = tokio::select! {
            // Of several that are there at once, always the same.
            biased;
            () = heard(&mut self.interrupt) => Ended(130),
            () = heard(&mut self.terminate) => Ended(143),
            () = heard(&mut self.hangup) => Ended(129),
        };
        self.last = Some(Instant::now());
        ended
    }

    /// Waits for one that is meant as another one. A program that passes a signal on to its child,
    /// which has got it from the terminal already, is not in a hurry.
    pub async fn again(&mut self) -> Ended {
        loop {
            let last = self.last;
            let ended = self.next().await;
            if last.is_none_or(|last| last.elapsed() >= ECHO) {
                return ended;
            }
        }
    }
}

async fn heard(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Reads which signals a process ignores: one bit for each, from the first signal on.
fn ignored(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}
