//! Points that a driver passes, at one of which it is held while something happens to it.

use std::sync::Arc;
use std::time::Duration;

use adjourn_core::command::Mode;
use adjourn_driver::StopWatch;
use tokio::sync::watch;

/// The points of all drivers of a test, numbered as they are passed.
#[derive(Clone)]
pub struct Points(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    /// Where a driver is held; nothing once it was let go.
    hold_at: Option<usize>,
    passed: Vec<&'static str>,
    held: bool,
    /// How the driver that is held was told to stop; one that was dropped was, too.
    heard: Option<Mode>,
}

/// Takes note that a driver was dropped where it was held.
struct Held<'a>(&'a watch::Sender<State>);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|state| state.heard = Some(Mode::InterruptImmediate));
    }
}

impl Points {
    /// Holds a driver at the point with a number; at none without one.
    pub fn new(hold_at: Option<usize>) -> Self {
        Self(Arc::new(watch::Sender::new(State { hold_at, ..State::default() })))
    }

    /// Passes a point; this takes as long as the test wants.
    pub async fn pass(&self, name: &'static str, stop: Option<&StopWatch>) {
        let mut holds = false;
        self.0.send_modify(|state| {
            holds = state.hold_at == Some(state.passed.len());
            state.held |= holds;
            state.passed.push(name);
        });
        if !holds {
            return;
        }
        let _held = Held(&self.0);
        let mut stop = stop.cloned();
        let mut state = self.0.subscribe();
        let told = async {
            if let Some(stop) = &mut stop {
                for mode in [Mode::FinishStep, Mode::InterruptImmediate] {
                    stop.at_least(mode).await;
                    self.0.send_modify(|state| state.heard = Some(mode));
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = state.wait_for(|state| state.hold_at.is_none()) => {}
            () = told => {}
        }
    }

    /// Waits until a driver is held; returns the name of the point, or nothing if there is no such
    /// point before `over` resolves.
    pub async fn until_held(&self, over: impl Future<Output = ()>) -> Option<&'static str> {
        let mut state = self.0.subscribe();
        let held = async {
            let state = state.wait_for(|state| state.held).await.unwrap();
            state.passed.last().copied()
        };
        tokio::select! {
            biased;
            name = within(held) => name,
            () = over => None,
        }
    }

    /// Waits until the driver that is held was told to stop, or was dropped.
    pub async fn until_heard(&self) {
        self.until_heard_as(Mode::FinishStep).await;
    }

    /// Waits until the driver that is held was told to stop in a mode or a more urgent one, or was
    /// dropped.
    pub async fn until_heard_as(&self, mode: Mode) {
        let mut state = self.0.subscribe();
        within(async { drop(state.wait_for(|state| state.heard >= Some(mode)).await.unwrap()) })
            .await;
    }

    /// Lets the driver go on, and holds no other.
    pub fn release(&self) {
        self.0.send_modify(|state| state.hold_at = None);
    }

    /// Returns the points that were passed.
    pub fn passed(&self) -> Vec<&'static str> {
        self.0.borrow().passed.clone()
    }
}

/// Waits for something that is about to happen, by the real clock.
pub async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.unwrap()
}
