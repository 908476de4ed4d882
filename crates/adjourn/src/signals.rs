//! Ctrl-C and its kin, for commands that have something to put in order before they go.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The signals that ask a command to end, except those it was started to ignore.
pub struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
}

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
        })
    }

    /// Waits for one.
    pub async fn next(&mut self) -> Ended {
        tokio::select! {
            () = heard(&mut self.interrupt) => Ended(130),
            () = heard(&mut self.terminate) => Ended(143),
            () = heard(&mut self.hangup) => Ended(129),
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
