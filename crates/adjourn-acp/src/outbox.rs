//! What goes out to a client: in order, and in bounded memory, however slowly it reads.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Batches that wait to be written; a sender that has more waits for the reader.
const QUEUE: usize = 16;
/// Bytes that wait to be written, unless one batch has more.
const ROOM: u32 = 1024 * 1024;
/// How much is put together before it is sent.
pub(crate) const BATCH_BYTES: usize = 64 * 1024;

/// Where a connection's messages go.
#[derive(Debug, Clone)]
pub(crate) struct Outbox {
    queue: mpsc::Sender<Batch>,
    room: Arc<Semaphore>,
    written: Arc<Count>,
}

/// What is to be written, and how many bytes have been.
#[derive(Debug)]
pub(crate) struct Written {
    queue: mpsc::Receiver<Batch>,
    count: Arc<Count>,
}

/// How many bytes were written.
///
/// A client may answer as soon as it has read something, on another thread than the one that wrote
/// it: bytes are written and counted under one lock, so that no answer is read in between.
#[derive(Debug, Default)]
struct Count(Mutex<u64>);

impl Count {
    fn get(&self) -> u64 {
        // Nothing that is done with it can leave it half done.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write<W: AsyncWrite + Unpin>(
        &self,
        output: &mut W,
        bytes: &[u8],
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<usize>> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = ready!(Pin::new(output).poll_write(context, bytes))?;
        *written += count as u64;
        Poll::Ready(Ok(count))
    }
}

/// Where something ends among all the bytes that were written, once its batch is being written.
#[derive(Debug, Default)]
pub(crate) struct Mark(AtomicU64);

impl Mark {
    /// Returns whether what it marks is among the first bytes that were written.
    pub(crate) fn is_within(&self, written: u64) -> bool {
        (1..=written).contains(&self.0.load(Ordering::Acquire))
    }
}

/// A place in a batch that is marked.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    pub(crate) mark: Arc<Mark>,
    /// How many bytes of the batch come before it.
    pub(crate) end: usize,
}

/// Lines that go out together, and the room that they take until they are written.
#[derive(Debug)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    mark: Option<Marked>,
    _room: OwnedSemaphorePermit,
}

/// The client is gone.
#[derive(Debug)]
pub(crate) struct Gone;

impl Outbox {
    /// Returns where messages go, and where [`write`] takes them from.
    pub(crate) fn new() -> (Self, Written) {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let (room, written) = (Arc::new(Semaphore::new(ROOM as usize)), Arc::default());
        let to_write = Written { queue: receiver, count: Arc::clone(&written) };
        (Self { queue, room, written }, to_write)
    }

    /// Returns how many bytes the client could have read by now.
    pub(crate) fn written(&self) -> u64 {
        self.written.get()
    }

    /// Sends lines, when there is room for them; `mark` is told when they are written.
    ///
    /// # Cancel safety
    /// Dropped before it is done, nothing was sent.
    pub(crate) async fn send(&self, bytes: Vec<u8>, mark: Option<Marked>) -> Result<(), Gone> {
        // Whatever is larger than all the room there is goes alone.
        let wanted = u32::try_from(bytes.len()).unwrap_or(ROOM).min(ROOM);
        // It comes free with what is written, and with what never will be.
        let room = Arc::clone(&self.room).acquire_many_owned(wanted);
        let room = room.await.map_err(|_| Gone)?;
        self.queue.send(Batch { bytes, mark, _room: room }).await.map_err(|_| Gone)
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

/// Writes what is sent, until every sender is gone.
///
/// # Errors
/// The stream fails.
pub(crate) async fn write<W: AsyncWrite + Unpin>(
    mut written: Written,
    mut output: W,
) -> std::io::Result<()> {
    while let Some(mut batch) = written.queue.recv().await {
        let place = written.count.get();
        let set_mark = |batch: &Batch, before: usize| {
            if let Some(Marked { mark, end }) = &batch.mark {
                mark.0.store(place + (before + end) as u64, Ordering::Release);
            }
        };
        set_mark(&batch, 0);
        // Many sessions are told of one commit, and a write costs more than what it writes. The room
        // of each batch is held until all are written.
        let mut with = Vec::new();
        while batch.bytes.len() < BATCH_BYTES
            && let Ok(mut next) = written.queue.try_recv()
        {
            set_mark(&next, batch.bytes.len());
            batch.bytes.append(&mut next.bytes);
            with.push(next);
        }
        let mut rest = batch.bytes.as_slice();
        while !rest.is_empty() {
            let count = poll_fn(|context| written.count.write(&mut output, rest, context)).await?;
            if count == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            rest = rest.get(count..).unwrap_or_default();
        }
        drop(with);
        if written.queue.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends batches until there is no room, and returns how many there was room for.
    fn fill(out: &Outbox, bytes: usize) -> usize {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let mut sent = 0;
        while std::pin::pin!(out.send(vec![0; bytes], None)).poll(&mut context).is_ready() {
            sent += 1;
        }
        sent
    }

    #[tokio::test]
    async fn what_a_client_does_not_read_is_bounded_by_its_size() {
        let room = ROOM as usize;
        for (bytes, fit) in [(10, QUEUE), (room / 4, 4), (room - 1, 1), (3 * room, 1)] {
            let (out, mut written) = Outbox::new();
            assert_eq!(fill(&out, bytes), fit, "{bytes}");
            // What is written makes room for the next.
            drop(written.queue.recv().await.unwrap());
            assert_eq!(fill(&out, bytes), 1, "{bytes}");
        }
    }

    #[tokio::test]
    async fn a_mark_is_within_what_was_written_after_it() {
        let (out, written) = Outbox::new();
        let mark = Arc::<Mark>::default();
        out.send(b"one".to_vec(), None).await.unwrap();
        let marked = Marked { mark: Arc::clone(&mark), end: 2 };
        out.send(b"two".to_vec(), Some(marked)).await.unwrap();
        assert!(!mark.is_within(out.written()));
        let counted = out.written.clone();
        drop(out);
        write(written, tokio::io::sink()).await.unwrap();
        assert_eq!(counted.get(), 6);
        assert!(!mark.is_within(4) && mark.is_within(5) && mark.is_within(6));
    }

    #[tokio::test]
    async fn a_sender_that_waits_for_room_is_told_that_the_client_is_gone() {
        let (out, written) = Outbox::new();
        out.send(vec![0; ROOM as usize], None).await.unwrap();
        let waiting = tokio::spawn(async move { out.send(vec![0; 10], None).await });
        drop(written);
        assert!(waiting.await.unwrap().is_err());
    }
}
