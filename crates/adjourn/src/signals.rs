//! Ctrl-C and its kin, for commands that have something to put in order before they go.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// The signals that ask a command to end.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

/// A signal, as the exit code that says so: 128 and its number.
#[derive(Debug, Clone, Copy)]
pub struct Ended(pub u8);

impl Signals {
    /// From now on signals end nothing by themselves.
    pub fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind)
                .map_err(|error| Failure::other(format!("cannot wait for signals: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for one.
    pub async fn next(&mut self) -> Ended {
        tokio::select! {
            _ = self.interrupt.recv() => Ended(130),
            _ = self.terminate.recv() => Ended(143),
            _ = self.hangup.recv() => Ended(129),
        }
    }
}
