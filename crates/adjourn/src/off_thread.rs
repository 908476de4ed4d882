//! Reads that may take long, away from the threads of the runtime.

use crate::error::{Error, StoreError};

/// Runs a read on a thread that may block, and returns what it returns.
///
/// # Cancel safety
/// Dropped, the read takes its course, and its result is lost.
pub(crate) async fn off_thread<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(read).await;
    Ok(done.unwrap_or(Err(StoreError::Panicked))?)
}
