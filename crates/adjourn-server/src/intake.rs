//! The intake of events: `POST /v1/events`.

use std::sync::Arc;

use adjourn::store::Store;
use adjourn::{Adjourn, NotPublished, Published};
use adjourn_a2a::{Caller, Scope};
use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use crate::access;
use crate::body::Room;
use crate::cloud_event::{self, Form};
use crate::connections::ConnectionSlot;
use crate::problem::Problem;

/// A request may have this much: a batch of events with their data.
pub(crate) const BODY_BYTES: usize = 4 * 1024 * 1024;
/// A batch may have this many events; they are acknowledged in one commit.
const BATCH: usize = 256;

/// Takes events, and answers when they are stored.
pub(crate) async fn events<S: Store>(
    State(adjourn): State<Adjourn<S>>,
    Extension(caller): Extension<Caller>,
    Extension(slot): Extension<Arc<ConnectionSlot>>,
    Extension(room): Extension<Room>,
    request: Request,
) -> Response {
    let answer = match take(&adjourn, &caller, &slot, &room, request).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    };
    slot.heard();
    answer
}

async fn take<S: Store>(
    adjourn: &Adjourn<S>,
    caller: &Caller,
    slot: &ConnectionSlot,
    room: &Room,
    request: Request,
) -> Result<Response, Problem> {
    access::allowed(caller, Scope::Event)?;
    let (head, body) = request.into_parts();
    // The room that it takes is held until its events are stored.
    let body = room.read(body, BODY_BYTES, slot).await?;
    slot.stores();
    let (events, form) = cloud_event::read(&head.headers, &body.bytes)?;
    if events.len() > BATCH {
        let problem = format!("a batch may have {BATCH} events, this one has {}", events.len());
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, problem));
    }
    let adjourn = adjourn.clone().in_tenant(Arc::clone(&caller.tenant));
    let published = adjourn.publish_all(events).await;
    let published = published.map_err(|NotPublished { index, error }| match (index, form) {
        (Some(index), Form::Many) => Problem::from(error).within(index),
        (Some(_), Form::One) | (None, _) => error.into(),
    })?;
    tracing::debug!(events = published.len(), "events taken over HTTP");
    let acknowledged: Vec<_> = published
        .iter()
        .map(|Published { seq, fresh }| json!({ "seq": seq, "fresh": fresh }))
        .collect();
    let body = json!({ "acknowledged": acknowledged }).to_string();
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}
