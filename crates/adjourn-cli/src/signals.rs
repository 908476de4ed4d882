//! Ctrl-C and its kin, for commands that have something to put in order before they go.

use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::failure::Failure;

/// The signals that ask a command to end, except those it was started to ignore.
pub struct Signals {
    /// Each signal, and when it came. A command hears it when it next listens, which may be after a
    /// commit: how soon one follows another is known only where they come in.
    arrivals: mpsc::UnboundedReceiver<(Ended, Instant)>,
    listener: JoinHandle<()>,
    requests: Requests,
}

/// Which signals are a request of their own, and which belong to the one before.
#[derive(Debug, Default)]
struct Requests {
    /// Whether the command was asked to end in another way before.
    foretold: bool,
    /// When the first signal came.
    first: Option<Instant>,
    /// When the last one came that was a request of its own.
    last: Option<Instant>,
}

/// A Ctrl-C that comes this soon after one that counts is the same one. A terminal sends it to every
/// process of the job, and a wrapper like npm passes its own copy on to its child at once; a person
/// cannot press the keys twice in that time.
const ECHO: Duration = Duration::from_millis(50);
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
        let interrupt = listen(SignalKind::interrupt(), false)?;
        let terminate = listen(SignalKind::terminate(), false)?;
        let hangup = listen(SignalKind::hangup(), true)?;
        let (tell, arrivals) = mpsc::unbounded_channel();
        let listener = tokio::spawn(tell_arrivals(interrupt, terminate, hangup, tell));
        Ok(Self { arrivals, listener, requests: Requests::default() })
    }

    /// Waits for a request to end.
    pub async fn next(&mut self) -> Ended {
        let (ended, at) = self.arrival().await;
        self.requests.count(at);
        ended
    }

    /// Takes note that the command was asked to end in another way, as by the end of its input:
    /// the first signal that follows is part of that request.
    pub const fn were_foretold(&mut self) {
        self.requests.foretold = true;
    }

    /// Waits for a second request to end: its sender does not want to wait.
    pub async fn again(&mut self) -> Ended {
        loop {
            let (ended, at) = self.arrival().await;
            if self.requests.insists(ended, at) {
                return ended;
            }
        }
    }

    async fn arrival(&mut self) -> (Ended, Instant) {
        match self.arrivals.recv().await {
            Some(arrival) => arrival,
            // The listener ends with the runtime alone.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

impl Requests {
    /// Counts a signal as a request of its own.
    fn count(&mut self, at: Instant) {
        self.first.get_or_insert(at);
        self.last = Some(at);
    }

    /// Returns whether a signal is another request than the one that the command is busy with.
    fn insists(&mut self, ended: Ended, at: Instant) -> bool {
        let insists = match (self.first, self.last) {
            (Some(_), Some(last)) if ended == Ended::INTERRUPT => at.duration_since(last) >= ECHO,
            (Some(first), _) => at.duration_since(first) >= INSIST,
            (None, _) => !self.foretold,
        };
        if insists || self.first.is_none() {
            self.count(at);
        }
        insists
    }
}

/// Tells of each signal as it comes.
async fn tell_arrivals(
    mut interrupt: Option<Signal>,
    mut terminate: Option<Signal>,
    mut hangup: Option<Signal>,
    tell: mpsc::UnboundedSender<(Ended, Instant)>,
) {
    loop {
        let ended = tokio::select! {
            // Of several that are there at once, always the same.
            biased;
            () = heard(&mut interrupt) => Ended::INTERRUPT,
            () = heard(&mut terminate) => Ended::TERMINATE,
            () = heard(&mut hangup) => Ended::HANGUP,
        };
        if tell.send((ended, Instant::now())).is_err() {
            return;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which of some signals are requests of their own; the first one is what the command is
    /// busy with.
    fn counted(signals: &[(Ended, u64)]) -> Vec<u64> {
        let start = Instant::now();
        let mut requests = Requests::default();
        requests.count(start);
        let insists = |(ended, after): &&(Ended, u64)| {
            requests.insists(*ended, start + Duration::from_millis(*after))
        };
        signals.iter().filter(insists).map(|(_, after)| *after).collect()
    }

    #[test]
    fn each_press_counts_and_a_copy_of_one_does_not() {
        let press = |after| (Ended::INTERRUPT, after);
        assert_eq!(counted(&[press(120)]), [120]);
        // Copies do not put off when the next press counts.
        assert_eq!(counted(&[press(2), press(30), press(60), press(62), press(130)]), [60, 130]);
    }

    #[test]
    fn programs_that_stop_others_are_not_in_a_hurry() {
        let (terminate, press) = (|after| (Ended::TERMINATE, after), (Ended::INTERRUPT, 1990));
        assert_eq!(
            counted(&[terminate(500), press, terminate(1995), terminate(2100)]),
            [1990, 2100]
        );
    }

    #[test]
    fn a_signal_that_was_foretold_is_part_of_the_request() {
        let (start, later) = (Instant::now(), Instant::now() + Duration::from_millis(100));
        let mut requests = Requests { foretold: true, ..Requests::default() };
        assert!(!requests.insists(Ended::INTERRUPT, start));
        assert!(requests.insists(Ended::INTERRUPT, later));
        assert!(Requests::default().insists(Ended::TERMINATE, start));
    }
}
