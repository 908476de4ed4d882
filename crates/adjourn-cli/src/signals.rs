//! Ctrl-C and its kin, for commands that have something to put in order before they go.

use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The signals that ask a command to end, except those it was started to ignore.
pub struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hangup: Option<Signal>,
    /// Whether the command was asked to end in another way before.
    foretold: bool,
    /// When the first one came.
    first: Option<Instant>,
    /// When the last one came.
    last: Option<Instant>,
}

/// A Ctrl-C that comes this soon after another signal is the same request: a program may pass on
/// to its child what the child has got from the terminal already.
const ECHO: Duration = Duration::from_millis(300);
/// A SIGTERM or SIGHUP that comes this soon after the first signal is the same request: programs
/// that stop others send several of them, and are not in a hurry.
const INSIST: Duration = Duration::from_secs(2);

/// A signal, as the exit code that says so: 128 and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended(pub u8);

impl Ended {
    /// Ctrl-C: a person is there.
    pub const INTERRUPT: Self = Self(130);
    const TERMINATE: Self = Self(143);
    const HANGUP: Self = Self(129);
}

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
            foretold: false,
            first: None,
            last: None,
        })
    }

    /// Waits for a request to end.
    pub async fn next(&mut self) -> Ended {
        let ended = tokio::select! {
            // Of several that are there at once, always the same.
            biased;
            () = heard(&mut self.interrupt) => Ended::INTERRUPT,
            () = heard(&mut self.terminate) => Ended::TERMINATE,
            () = heard(&mut self.hangup) => Ended::HANGUP,
        };
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        ended
    }

    /// Takes note that the command was asked to end in another way, as by the end of its input:
    /// the first signal that follows is part of that request.
    pub const fn were_foretold(&mut self) {
        self.foretold = true;
    }

    /// Waits for a second request to end: its sender does not want to wait.
    pub async fn again(&mut self) -> Ended {
        loop {
            let (first, last) = (self.first, self.last);
            let ended = self.next().await;
            let insists = match (first, last) {
                (Some(_), Some(last)) if ended == Ended::INTERRUPT => last.elapsed() >= ECHO,
                (Some(first), _) => first.elapsed() >= INSIST,
                (None, _) => !self.foretold,
            };
            if insists {
                return ended;
            }
        }
    }
}

/// Lets a write beyond the limit on file sizes fail, as on a full disk, instead of ending the
/// program. Programs that this one starts get the signal as ever.
pub fn outlive_size_limits() {
    // A process that cannot listen for it is ended by it.
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
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
