//! How the process is, for those who start and watch it: no token is needed, and nothing about
//! sessions is told.

use adjourn::Adjourn;
use adjourn::store::Store;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::problem::Problem;

/// Answers as long as the process can answer anything.
pub(crate) async fn alive() -> Response {
    fine("alive")
}

/// Answers with 200 if the store can be used and no host of the process stops, and otherwise with
/// 503 and the reason.
pub(crate) async fn ready<S: Store>(
    State(adjourn): State<Adjourn<S>>,
) -> Result<Response, Problem> {
    match adjourn.ready().await {
        Ok(()) => Ok(fine("ready")),
        Err(reason) => Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason.to_string())),
    }
}

fn fine(status: &str) -> Response {
    let body = serde_json::json!({ "status": status }).to_string();
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
