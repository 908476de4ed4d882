//! Refusals over HTTP: a status, and an object that says what and where.

use adjourn_core::Rejected;
use adjourn_store::CommandError;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request was refused.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    path: Option<String>,
    detail: String,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, path: None, detail: detail.into() }
    }

    pub(crate) fn at(path: impl Into<String>, detail: impl Into<String>) -> Self {
        let status = StatusCode::BAD_REQUEST;
        Self { status, path: Some(path.into()), detail: detail.into() }
    }
}

impl From<CommandError> for Problem {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Rejected(Rejected::Invalid { path, problem }) => Self::at(path, problem),
            CommandError::Rejected(refused) => Self::new(StatusCode::CONFLICT, refused.to_string()),
            CommandError::NotFound(id) => {
                Self::new(StatusCode::NOT_FOUND, format!("there is no session {id}"))
            }
            CommandError::Store(error) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or_default();
        let mut problem = json!({
            "title": title, "status": self.status.as_u16(), "detail": self.detail,
        });
        if let (Some(path), Some(object)) = (self.path, problem.as_object_mut()) {
            object.insert("path".to_owned(), path.into());
        }
        let kind = [(header::CONTENT_TYPE, "application/problem+json")];
        (self.status, kind, problem.to_string()).into_response()
    }
}
