//! The bodies of requests, read as they arrive, as far as there is room for them and they come in time.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use adjourn_a2a::Arrived;
use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::connections::ConnectionSlot;
use crate::problem::Problem;

/// How far a request's body may fall behind the pace: how long a peer may take to begin, or stop sending.
const BODY_TIME: Duration = Duration::from_secs(30);
/// The pace at which a body has to arrive, in bytes a second: a megabit, so that a slow line can send
/// the longest body, and a peer that sends a byte now and then holds nothing for longer than one that
/// sends none. A server that stops waits for bodies that come in.
const BODY_PACE: u64 = 128 * 1024;
/// How much of bodies there is at once, over all connections. Each takes as much as has arrived of
/// it, so that slow ones keep little from others.
const BODIES_BYTES: usize = 64 * 1024 * 1024;

/// The room for bodies that all connections share.
#[derive(Debug, Clone)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BODIES_BYTES)))
    }
}

impl Room {
    /// Reads a body of at most `most` bytes.
    pub(crate) async fn read(
        &self,
        mut body: Body,
        most: usize,
        slot: &ConnectionSlot,
    ) -> Result<Arrived, Problem> {
        let too_large = || {
            let problem = format!("a request may have {most} bytes");
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, problem)
        };
        // One that says that it will be too large need not come.
        if usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX) > most {
            return Err(too_large());
        }
        let too_slow = |_| {
            let problem = format!("nothing of the body has come for {BODY_TIME:?}, or too little");
            Problem::new(StatusCode::REQUEST_TIMEOUT, problem)
        };
        let (mut bytes, mut room) = (Vec::new(), None::<OwnedSemaphorePermit>);
        let mut until = Instant::now() + BODY_TIME;
        loop {
            let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
            let Some(frame) = timeout_at(until, frame).await.map_err(too_slow)? else { break };
            slot.heard();
            let cut = |_| Problem::new(StatusCode::BAD_REQUEST, "the body did not arrive whole");
            let Ok(piece) = frame.map_err(cut)?.into_data() else { continue };
            if bytes.len() + piece.len() > most {
                return Err(too_large());
            }
            let more = u32::try_from(piece.len()).unwrap_or(u32::MAX);
            let more = Arc::clone(&self.0).try_acquire_many_owned(more).map_err(|_| {
                let problem = "too much is being sent by others; try again";
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, problem)
            })?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            bytes.extend_from_slice(&piece);
            until = (until + worth(piece.len())).min(Instant::now() + BODY_TIME);
        }
        Ok(Arrived { bytes, room: room.map(|room| Box::new(room) as _) })
    }
}

/// Returns how long so many bytes take at the pace at which a body has to arrive.
fn worth(bytes: usize) -> Duration {
    let micros = u64::try_from(bytes).unwrap_or(u64::MAX).saturating_mul(1_000_000);
    Duration::from_micros(micros / BODY_PACE)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::{Context, Poll, ready};

    use axum::body::Bytes;
    use axum::response::IntoResponse as _;
    use futures_core::Stream;
    use tokio::sync::mpsc;

    use super::*;
    use crate::connections::Connections;

    const MIB: usize = 1024 * 1024;
    const MOST: usize = 16 * MIB;

    /// A body whose pieces come one by one.
    struct Pieces(mpsc::Receiver<usize>);

    impl Stream for Pieces {
        type Item = Result<Bytes, Infallible>;

        fn poll_next(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Self::Item>> {
            let piece = ready!(self.0.poll_recv(context));
            Poll::Ready(piece.map(|bytes| Ok(Bytes::from(vec![b'x'; bytes]))))
        }
    }

    /// Reads a body that comes in pieces, each after a while, and perhaps has no end. Returns its length
    /// or the status of its refusal, and after how many seconds that was.
    async fn read(pieces: Vec<(Duration, usize)>, ends: bool) -> (Result<usize, StatusCode>, u64) {
        let (sender, receiver) = mpsc::channel(1);
        let (slot, start) = (Connections::new(2).admit(), Instant::now());
        let sending = async {
            for (wait, bytes) in pieces {
                tokio::time::sleep(wait).await;
                sender.send(bytes).await.unwrap();
            }
            if !ends {
                std::future::pending::<()>().await;
            }
            drop(sender);
            std::future::pending::<()>().await;
        };
        let (room, body) = (Room::default(), Body::from_stream(Pieces(receiver)));
        let read = tokio::select! {
            read = room.read(body, MOST, &slot) => read,
            () = sending => unreachable!(),
        };
        let read = read.map(|arrived| arrived.bytes.len());
        let read = read.map_err(|problem| problem.into_response().status());
        (read, start.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_keeps_pace_arrives_however_long_it_takes() {
        // A line of 1.3 megabits, which takes well over a minute for the longest body.
        let pieces = vec![(Duration::from_millis(400), 64 * 1024); 256];
        assert_eq!(read(pieces, true).await, (Ok(MOST), 102));
        // One that pauses goes on where it was.
        let pieces = vec![(Duration::from_secs(29), 4 * MIB); 4];
        assert_eq!(read(pieces, true).await, (Ok(MOST), 116));
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_or_comes_in_drops_is_given_up() {
        let refused = Err(StatusCode::REQUEST_TIMEOUT);
        assert_eq!(read(Vec::new(), false).await, (refused, 30));
        let drops = vec![(Duration::from_secs(1), 1); 600];
        assert_eq!(read(drops, false).await, (refused, 30), "drops are worth nothing");
        let slow = vec![(Duration::from_secs(1), 64 * 1024); 600];
        assert_eq!(read(slow, false).await, (refused, 59), "at half the pace");
        // What has come fast is no credit: the room that it takes is given back as soon.
        let stops = vec![(Duration::ZERO, MIB); 15];
        assert_eq!(read(stops, false).await, (refused, 30));
    }
}
