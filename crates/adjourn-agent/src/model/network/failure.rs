//! Failures: what a provider's error means, and what is told of it.

use adjourn_core::{json, limits};
use genai::Error;
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;

use super::concealed::Concealed;
use super::provider::Provider;
use super::resets::{Moment, moment};
use crate::failure::FailureKind;
use crate::model::ModelError;

/// How much is told of what a provider says about an error.
const MESSAGE_BYTES: usize = 500;
/// How much of an answer with an error is read as JSON; it is a few lines.
const BODY_BYTES: usize = 256 * 1024;
/// The status of a provider that is overloaded, which no standard knows.
const OVERLOADED: u16 = 529;

/// Makes errors of one request.
pub(super) struct Failures {
    model: String,
    /// What must not be told.
    key: Concealed,
    /// The variable that has the key.
    variable: Option<String>,
}

impl Failures {
    pub(super) fn new(model: &str, provider: &Provider, key: Concealed) -> Self {
        Self { model: model.to_owned(), key, variable: provider.variable.clone() }
    }

    /// Says what an error of genai means.
    pub(super) fn of(&self, error: Error) -> ModelError {
        match error {
            Error::HttpError { status, body, headers, .. } => self.status(status, &headers, &body),
            Error::WebStream { error, cause, .. } => match error.downcast::<Error>() {
                Ok(error) => self.of(*error),
                Err(error) => match error.downcast::<reqwest::Error>() {
                    Ok(error) => self.transport(*error),
                    Err(_) => self.transient(&format!("the answer was cut off: {cause}")),
                },
            },
            Error::WebModelCall { webc_error, .. } | Error::WebAdapterCall { webc_error, .. } => {
                match webc_error {
                    genai::webc::Error::ResponseFailedStatus { status, body, headers } => {
                        self.status(status, &headers, &body)
                    }
                    genai::webc::Error::Reqwest(error) => self.transport(error),
                    other => self.transient(&other.to_string()),
                }
            }
            Error::ChatResponse { body, .. } => self.told(&body),
            Error::StreamParse { serde_error, .. } => {
                self.transient(&format!("the answer cannot be read: {serde_error}"))
            }
            Error::RequiresApiKey { .. }
            | Error::NoAuthResolver { .. }
            | Error::NoAuthData { .. } => {
                let kind = FailureKind::AuthRequired;
                ModelError::new(kind, self.refused_key("there is no key for it"))
            }
            // What is left is about the request: genai could not make it.
            other => ModelError::new(FailureKind::CapabilityGap, self.words(&other.to_string())),
        }
    }

    /// Says what an answer with the status of an error means.
    fn status(&self, status: StatusCode, headers: &HeaderMap, body: &str) -> ModelError {
        let json: Option<Value> = json::read(body.as_bytes(), BODY_BYTES).ok();
        let told = json.as_ref().map_or(Told::default(), Told::of);
        let page = json.is_none().then(|| page(body)).flatten();
        let words = told.message.or(page.as_deref()).unwrap_or(body);
        let mut error = self.of_status(status.as_u16(), words, &told);
        match moment(headers).filter(|_| error.kind == FailureKind::TransientProvider) {
            Some(Moment::In(wait)) => error.retry_after = Some(wait),
            Some(Moment::At(time)) => error.resets_at = Some(time),
            None => {}
        }
        error
    }

    /// Says what an error means that a provider tells in the midst of an answer.
    fn told(&self, body: &Value) -> ModelError {
        let told = Told::of(body);
        let words = told.message.map_or_else(|| body.to_string(), str::to_owned);
        match told.status() {
            Some(status) => self.of_status(status, &words, &told),
            None => self.transient(&words),
        }
    }

    fn of_status(&self, status: u16, words: &str, told: &Told<'_>) -> ModelError {
        let reason = match StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason()) {
            Some(reason) => format!("{status} {reason}"),
            None if status == OVERLOADED => format!("{status} overloaded"),
            None => status.to_string(),
        };
        if status == StatusCode::UNAUTHORIZED.as_u16() {
            // Providers repeat pieces of the key here.
            let words = self.refused_key(&format!("the provider does not take its key ({reason})"));
            return ModelError::of_status(status, words);
        }
        let words = self.words(&format!("{reason}: {words}"));
        let mut error = ModelError::of_status(status, words);
        if told.is_too_long() {
            error.kind = FailureKind::ScopeTooLarge;
        }
        error
    }

    /// Says that an answer with a good status has nothing in it that a provider says.
    pub(super) fn no_answer(&self) -> ModelError {
        self.transient("nothing came that is an answer; is the base URL that of a provider?")
    }

    /// Says what a request means that never came through, or an answer that broke off.
    fn transport(&self, error: reqwest::Error) -> ModelError {
        let place = error.url().map(|url| url.origin().ascii_serialization());
        let place = place.unwrap_or_else(|| "the provider".to_owned());
        let what = if error.is_connect() {
            format!("{place} cannot be reached")
        } else if error.is_timeout() {
            format!("{place} took too long")
        } else if error.is_body() || error.is_decode() {
            "the answer was cut off".to_owned()
        } else {
            format!("the request to {place} failed")
        };
        let error = error.without_url();
        // The innermost cause says what happened; those around it only that something did.
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        self.transient(&format!("{what}: {cause}"))
    }

    fn transient(&self, words: &str) -> ModelError {
        ModelError::new(FailureKind::TransientProvider, self.words(words))
    }

    fn refused_key(&self, what: &str) -> String {
        let todo = match &self.variable {
            Some(variable) => format!("; set {variable} to one that is good"),
            None => String::new(),
        };
        self.words(&format!("{what}{todo}"))
    }

    /// Returns words for people, without the key.
    fn words(&self, words: &str) -> String {
        let told = self.key.without(words);
        format!("{}: {}", self.model, limits::excerpt(told.trim(), MESSAGE_BYTES))
    }
}

/// Says that an answer is a page for people, and what it is called: what else is on it explains nothing.
fn page(body: &str) -> Option<String> {
    let body = body.trim_start();
    let is_page = ["<!doctype html", "<html"].iter().any(|begins| {
        body.get(..begins.len()).is_some_and(|start| start.eq_ignore_ascii_case(begins))
    });
    if !is_page {
        return None;
    }
    let (_, title) = body.split_once("<title>").unwrap_or_default();
    let title = title.split('<').next().unwrap_or_default().trim();
    let title = if title.is_empty() { String::new() } else { format!(" {title:?}") };
    Some(format!("the answer is a web page{title}; is the base URL that of a provider?"))
}

/// What a provider says about an error: `{"error": {"message", "type", "code"}}`, or what is in it.
#[derive(Default)]
struct Told<'a> {
    message: Option<&'a str>,
    kind: Option<&'a str>,
    code: Option<&'a str>,
}

impl<'a> Told<'a> {
    fn of(body: &'a Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let field = |name| error.get(name).and_then(Value::as_str);
        let message = field("message").or_else(|| error.as_str());
        Self { message, kind: field("type"), code: field("code") }
    }

    /// Returns the status that an answer with this error would have had.
    fn status(&self) -> Option<u16> {
        [self.code, self.kind].into_iter().flatten().find_map(|word| {
            Some(match word {
                "invalid_request_error" | "context_length_exceeded" => 400,
                "authentication_error" | "invalid_api_key" => 401,
                "billing_error" => 402,
                "permission_error" => 403,
                "not_found_error" | "model_not_found" => 404,
                "request_too_large" => 413,
                "rate_limit_error"
                | "rate_limit_exceeded"
                | "insufficient_quota"
                | "requests"
                | "tokens" => 429,
                "api_error" | "server_error" => 500,
                "timeout_error" => 504,
                "overloaded_error" => OVERLOADED,
                _ => return None,
            })
        })
    }

    /// Returns whether the conversation is longer than the model takes. Most providers say so in words
    /// alone.
    fn is_too_long(&self) -> bool {
        const WORDS: [&str; 5] = [
            "prompt is too long",
            "maximum context length",
            "exceed context limit",
            "exceeds the available context size",
            "exceeds the maximum number of tokens",
        ];
        let codes = ["context_length_exceeded", "exceed_context_size_error"];
        let coded = [self.code, self.kind].into_iter().flatten().any(|word| codes.contains(&word));
        let said = self.message.unwrap_or_default();
        coded || WORDS.iter().any(|words| said.contains(words))
    }
}
