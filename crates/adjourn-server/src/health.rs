//! How the process is, for those who start and watch it: no token is needed, and nothing about
//! sessions is told, nor where anything is on this machine.

use std::sync::{Arc, Mutex, PoisonError};

use adjourn::store::Store;
use adjourn::{Adjourn, NotReady};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::problem::Problem;

/// The process, as far as it is asked how it is.
pub(crate) struct Health<S: Store> {
    adjourn: Adjourn<S>,
    /// Why the store could not be used when it was last asked, so that what stays is logged once.
    unusable: Arc<Mutex<Option<String>>>,
}

impl<S: Store> Health<S> {
    pub(crate) fn new(adjourn: Adjourn<S>) -> Self {
        Self { adjourn, unusable: Arc::default() }
    }

    /// Logs why the store cannot be used, if that is news. What hinders a host, it logs itself.
    fn take_note(&self, ready: &Result<(), NotReady>) {
        let unusable = match ready {
            Err(reason @ NotReady::Store(_)) => Some(reason.to_string()),
            _ => None,
        };
        let mut before = self.unusable.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = unusable.as_ref().filter(|_| unusable != *before) {
            tracing::warn!("not ready: {reason}");
        }
        *before = unusable;
    }
}

impl<S: Store> Clone for Health<S> {
    fn clone(&self) -> Self {
        let Self { adjourn, unusable } = self;
        Self { adjourn: adjourn.clone(), unusable: Arc::clone(unusable) }
    }
}

/// Answers as long as the process can answer anything.
pub(crate) async fn alive() -> Response {
    fine("alive")
}

/// Answers with 200 if the store can be used and no host of the process stops, and otherwise with
/// 503 and what it is that cannot be used. The log says why.
pub(crate) async fn ready<S: Store>(State(health): State<Health<S>>) -> Result<Response, Problem> {
    let ready = health.adjourn.ready().await;
    health.take_note(&ready);
    let detail = match ready {
        Ok(()) => return Ok(fine("ready")),
        Err(NotReady::Store(_)) => "the store cannot be used",
        Err(NotReady::Hindered(_)) => "the host cannot work now",
        Err(NotReady::Stopping) => "the host is stopping",
    };
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail))
}

fn fine(status: &str) -> Response {
    let body = serde_json::json!({ "status": status }).to_string();
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
