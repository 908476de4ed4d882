//! Refusals over HTTP: a status, and an object that says what and where.

use adjourn::Error;
use adjourn::core::Rejected;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request was refused.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    path: Option<String>,
    detail: String,
}

/// Where the store finds the data of an event too large.
const DATA: &str = "data";

impl Problem {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, path: None, detail: detail.into() }
    }

    /// A field is wrong, or the whole of the body if `path` is empty.
    pub(crate) fn at(path: impl Into<String>, detail: impl Into<String>) -> Self {
        let path = Some(path.into()).filter(|path| !path.is_empty());
        Self { status: StatusCode::BAD_REQUEST, path, detail: detail.into() }
    }

    /// The same, but for an event that is one of many.
    #[must_use]
    pub(crate) fn within(mut self, index: usize) -> Self {
        self.path = Some(match self.path {
            Some(path) => format!("[{index}].{path}"),
            None => format!("[{index}]"),
        });
        self
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            // All that can be wrong with data that was read is its length.
            Error::Refused(Rejected::Invalid { path, problem }) if path == DATA => {
                Self { status: StatusCode::PAYLOAD_TOO_LARGE, ..Self::at(path, problem) }
            }
            Error::Refused(Rejected::Invalid { path, problem }) => Self::at(path, problem),
            Error::Refused(refused) => Self::new(StatusCode::CONFLICT, refused.to_string()),
            Error::NotFound(_) => Self::new(StatusCode::NOT_FOUND, error.to_string()),
            error => {
                // It may say where things are on this machine.
                tracing::warn!("a request failed: {error}");
                let detail = "this cannot be done now; the log of the server says why";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
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
        let mut response = (self.status, kind, problem.to_string()).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
