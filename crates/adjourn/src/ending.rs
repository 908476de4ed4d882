//! The end of a driver: it is waited for, but not for ever, and a panic in it harms nothing else.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use adjourn_driver::Driver;

use crate::clock::Clock;

/// How long a driver may take to end what it has outside of this process, and its calls to be gone.
/// Then they are dropped.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Returns whether a driver has something worth keeping warm, and so something to be ended, too.
pub(crate) fn keeps(driver: &mut dyn Driver) -> bool {
    catch_unwind(AssertUnwindSafe(|| driver.keep())).unwrap_or(false)
}

/// Ends what a driver has outside of this process.
pub(crate) async fn end(driver: &mut dyn Driver, clock: &dyn Clock) {
    let Ok(ended) = catch_unwind(AssertUnwindSafe(|| driver.kill())) else { return };
    // One that panics has nothing more to say.
    in_time(caught(ended), clock).await;
}

/// Waits for the end of something, but not for ever.
pub(crate) async fn in_time<T>(ended: impl Future<Output = T>, clock: &dyn Clock) {
    tokio::select! {
        _ = ended => {}
        () = clock.sleep(END_WITHIN) => {}
    }
}

/// Runs a future to its end, or to its panic.
pub(crate) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut future = std::pin::pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}
