//! CloudEvents 1.0 in JSON: structured, batched, and binary.

use adjourn::Event;
use adjourn::core::id::SessionId;
use adjourn::core::json::{self, Unreadable};
use adjourn::core::time::Timestamp;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Map, Value};

use crate::intake::BODY_BYTES;
use crate::problem::Problem;

const ONE: &str = "application/cloudevents+json";
const MANY: &str = "application/cloudevents-batch+json";
/// The extension that addresses an event to a session.
const SESSION: &str = "adjournsession";

/// Whether a request has an event, or a list of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    One,
    Many,
}

/// Reads the events of a request.
pub(crate) fn read(headers: &HeaderMap, body: &[u8]) -> Result<(Vec<Event>, Form), Problem> {
    let kind = only(headers, header::CONTENT_TYPE.as_str())?;
    let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        ONE => Ok((vec![structured("", value(body)?)?], Form::One)),
        MANY => match value(body)? {
            Value::Array(events) => {
                let read = |(index, event)| structured(&format!("[{index}]."), event);
                let events: Result<_, _> = events.into_iter().enumerate().map(read).collect();
                Ok((events?, Form::Many))
            }
            _ => Err(Problem::at("", "expected a list of events")),
        },
        _ if headers.contains_key("ce-type") => {
            Ok((vec![binary(headers, &kind, body)?], Form::One))
        }
        _ => Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("expected {ONE}, {MANY}, or ce- headers"),
        )),
    }
}

fn structured(path: &str, event: Value) -> Result<Event, Problem> {
    let Value::Object(mut event) = event else {
        return Err(Problem::at(path.trim_end_matches('.'), "expected an event"));
    };
    if event.contains_key("data_base64") {
        let problem = "binary data is not taken; send JSON as `data`";
        return Err(Problem::at(format!("{path}data_base64"), problem));
    }
    let data = event.remove("data").filter(|data| !data.is_null());
    read_event(path, |name| attribute(path, &mut event, name), data.map(|data| data.to_string()))
}

fn binary(headers: &HeaderMap, kind: &str, body: &[u8]) -> Result<Event, Problem> {
    let data = match (body.is_empty(), kind) {
        (true, _) => None,
        (false, "" | "application/json") => Some(value(body)?.to_string()),
        (false, other) => {
            let problem = format!("data of the type {other} is not taken; send application/json");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem));
        }
    };
    read_event("ce-", |name| decoded(headers, &format!("ce-{name}")), data)
}

fn read_event(
    path: &str,
    mut attribute: impl FnMut(&str) -> Result<Option<String>, Problem>,
    data: Option<String>,
) -> Result<Event, Problem> {
    let mut required = |name: &str| {
        let value = attribute(name)?;
        value.ok_or_else(|| Problem::at(format!("{path}{name}"), "is required"))
    };
    let version = required("specversion")?;
    if version != "1.0" {
        let problem = format!("expected 1.0, got {version:?}");
        return Err(Problem::at(format!("{path}specversion"), problem));
    }
    let (id, source, name) = (required("id")?, required("source")?, required("type")?);
    let time = attribute("time")?.map(|time| {
        Timestamp::parse(&time).map_err(|problem| Problem::at(format!("{path}time"), problem))
    });
    let time = time.transpose()?;
    let session = match attribute(SESSION)? {
        None => None,
        Some(session) => Some(
            session
                .parse::<SessionId>()
                .map_err(|error| Problem::at(format!("{path}{SESSION}"), error.to_string()))?,
        ),
    };
    let mut event = Event::new(name).id(id).source(source).to(session).data_json(data);
    if let Some(time) = time {
        event = event.time(time);
    }
    if let Some(subject) = attribute("subject")? {
        event = event.subject(subject);
    }
    Ok(event)
}

/// Returns an attribute of a structured event, which must be text.
fn attribute(
    path: &str,
    event: &mut Map<String, Value>,
    name: &str,
) -> Result<Option<String>, Problem> {
    match event.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Problem::at(format!("{path}{name}"), "expected a string")),
    }
}

/// Returns an attribute of an event in binary mode: perhaps quoted, then percent-encoded UTF-8.
fn decoded(headers: &HeaderMap, name: &str) -> Result<Option<String>, Problem> {
    let Some(value) = only(headers, name)? else { return Ok(None) };
    let unquoted = unquoted(value.as_bytes());
    let mut bytes = unquoted.iter().copied();
    let mut decoded = Vec::with_capacity(unquoted.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || bytes.next().and_then(|byte| char::from(byte).to_digit(16));
        let code = digit().zip(digit()).and_then(|(high, low)| u8::try_from(high * 16 + low).ok());
        decoded.push(code.ok_or_else(|| Problem::at(name, "expected two hex digits after `%`"))?);
    }
    let text = String::from_utf8(decoded);
    text.map(Some).map_err(|_| Problem::at(name, "expected UTF-8, percent-encoded"))
}

/// Returns the value of a header. Of two, neither is taken: which of them is meant is not known, and
/// a proxy may have read the other.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a HeaderValue>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        _ => Err(Problem::at(name, "there are two headers of this name")),
    }
}

/// Takes the quotes off a value, and the backslashes out of it, if it has them.
fn unquoted(value: &[u8]) -> Vec<u8> {
    let inner = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    let Some(inner) = inner else { return value.to_vec() };
    let mut bytes = inner.iter().copied();
    let mut unquoted = Vec::with_capacity(inner.len());
    while let Some(byte) = bytes.next() {
        unquoted.push(if byte == b'\\' { bytes.next().unwrap_or(byte) } else { byte });
    }
    unquoted
}

fn value(body: &[u8]) -> Result<Value, Problem> {
    json::read(body, BODY_BYTES).map_err(|error| match error {
        Unreadable::Malformed(_) => Problem::at("", format!("the body is {error}")),
        refused => Problem::at(refused.path(), refused.problem()),
    })
}
