//! A server that stops: what waits is answered before its connection is closed.

use tokio::sync::watch;

/// Tells requests that the server stops: streams end behind an event, and a request that waits is
/// answered with how things are, so that each client goes on elsewhere.
#[derive(Debug, Clone)]
pub struct Stopping(watch::Receiver<bool>);

/// Says that the server stops.
#[derive(Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopping {
    /// Makes what a server says it with, and what it gives to its requests.
    pub fn new() -> (Stopper, Self) {
        let (stopper, stopping) = watch::channel(false);
        (Stopper(stopper), Self(stopping))
    }

    /// Waits until the server stops.
    pub async fn begun(&self) {
        // Without a server there is nothing to wait for, either.
        let _ = self.0.clone().wait_for(|stops| *stops).await;
    }

    /// Returns whether the server stops.
    pub fn is_begun(&self) -> bool {
        *self.0.borrow()
    }
}

impl Stopper {
    /// Says that the server stops.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}
