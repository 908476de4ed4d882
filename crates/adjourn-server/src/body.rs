//! The bodies of requests, read as they arrive, as far as there is room for them and they come in time.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use adjourn_a2a::Arrived;
use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::connections::ConnectionSlot;
use crate::problem::Problem;

/// How long a request's body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
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
        body: Body,
        most: usize,
        slot: &ConnectionSlot,
    ) -> Result<Arrived, Problem> {
        let arrived = tokio::time::timeout(BODY_TIME, self.arriving(body, most, slot)).await;
        arrived.map_err(|_| {
            let problem = format!("the body did not arrive within {BODY_TIME:?}");
            Problem::new(StatusCode::REQUEST_TIMEOUT, problem)
        })?
    }

    async fn arriving(
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
        let (mut bytes, mut room) = (Vec::new(), None::<OwnedSemaphorePermit>);
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
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
        }
        Ok(Arrived { bytes, room: room.map(|room| Box::new(room) as _) })
    }
}
