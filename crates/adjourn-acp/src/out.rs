//! What goes out to a client: in order, and in bounded memory, however slowly it reads.

use std::sync::Arc;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Batches that wait to be written; whoever has more waits for the reader.
const QUEUE: usize = 16;
/// Bytes that wait to be written, unless one batch has more.
const ROOM: u32 = 1024 * 1024;
/// How much is put together before it is sent.
pub(crate) const BATCH_BYTES: usize = 64 * 1024;

/// Where a connection's messages go.
#[derive(Debug, Clone)]
pub(crate) struct Out {
    queue: mpsc::Sender<Batch>,
    room: Arc<Semaphore>,
}

/// Lines that go out together, and the room that they take until they are written.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    _room: OwnedSemaphorePermit,
}

/// The client is gone.
#[derive(Debug)]
pub(crate) struct Gone;

impl Out {
    /// Returns where messages go, and where [`write`] takes them from.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Batch>) {
        let (queue, written) = mpsc::channel(QUEUE);
        (Self { queue, room: Arc::new(Semaphore::new(ROOM as usize)) }, written)
    }

    /// Sends lines, when there is room for them.
    ///
    /// # Cancel safety
    /// Dropped before it is done, nothing was sent.
    pub(crate) async fn send(&self, bytes: Vec<u8>) -> Result<(), Gone> {
        // Whatever is larger than all the room there is goes alone.
        let wanted = u32::try_from(bytes.len()).unwrap_or(ROOM).min(ROOM);
        // It comes free with what is written, and with what never will be.
        let room = Arc::clone(&self.room).acquire_many_owned(wanted);
        let room = room.await.map_err(|_| Gone)?;
        self.queue.send(Batch { bytes, _room: room }).await.map_err(|_| Gone)
    }

    /// Returns whether lines of that length could be sent at once.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let room = self.room.available_permits();
        self.queue.capacity() > 0 && room >= bytes.min(ROOM as usize)
    }

    /// Waits until the client is gone.
    pub(crate) async fn gone(&self) {
        self.queue.closed().await;
    }
}

/// Writes what is sent, until nobody sends any more.
///
/// # Errors
/// The stream fails.
pub(crate) async fn write<W: AsyncWrite + Unpin>(
    mut written: mpsc::Receiver<Batch>,
    mut output: W,
) -> std::io::Result<()> {
    while let Some(batch) = written.recv().await {
        output.write_all(&batch.bytes).await?;
        if written.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends batches until there is no room, and returns how many there was room for.
    fn fill(out: &Out, bytes: usize) -> usize {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut sent = 0;
        while std::pin::pin!(out.send(vec![0; bytes])).poll(&mut context).is_ready() {
            sent += 1;
        }
        sent
    }

    #[tokio::test]
    async fn what_nobody_reads_is_bounded_by_its_size() {
        let room = ROOM as usize;
        for (bytes, fit) in [(10, QUEUE), (room / 4, 4), (room - 1, 1), (3 * room, 1)] {
            let (out, mut written) = Out::new();
            assert_eq!(fill(&out, bytes), fit, "{bytes}");
            // What is written makes room for the next.
            drop(written.recv().await.unwrap());
            assert_eq!(fill(&out, bytes), 1, "{bytes}");
        }
    }

    #[tokio::test]
    async fn whoever_waits_for_room_is_told_that_the_client_is_gone() {
        let (out, written) = Out::new();
        out.send(vec![0; ROOM as usize]).await.unwrap();
        let waiting = tokio::spawn(async move { out.send(vec![0; 10]).await });
        drop(written);
        assert!(waiting.await.unwrap().is_err());
    }
}
