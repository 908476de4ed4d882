//! JSON-RPC 2.0, one message per line, without losing anything: what is not read is kept as the
//! bytes it came in.

use adjourn::core::{json, syntax};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use self::id::NO_ID;
use crate::field_errors;
use crate::lines::LINE_BYTES;

mod error;
mod id;
mod outgoing;

pub use error::{
    CANCELLED, Error, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, NOT_FOUND,
    PARSE_ERROR, UNSUPPORTED_VERSION,
};
pub use id::Id;
pub use outgoing::Outgoing;

/// A message of which only the start is there.
#[derive(Debug, Default)]
pub struct Start {
    /// Its id, if that comes before the start ends.
    pub id: Option<Id>,
    /// Whether it answers a request of ours.
    pub answers: bool,
}

impl Start {
    /// Reads what there is.
    pub fn read(line: &[u8]) -> Self {
        /// Keeps what comes up before the fields end, or the line does.
        struct Found<'a>(&'a mut Start);
        impl<'de> Visitor<'de> for Found<'_> {
            type Value = ();
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
                while let Some(name) = fields.next_key::<String>()? {
                    if name == "id" {
                        self.0.id = Some(fields.next_value()?);
                        continue;
                    }
                    self.0.answers |= matches!(name.as_str(), "result" | "error");
                    let IgnoredAny = fields.next_value()?;
                }
                Ok(())
            }
        }
        let mut start = Self::default();
        // It is sure to end too early.
        let _ = serde_json::Deserializer::from_slice(line).deserialize_map(Found(&mut start));
        start
    }
}

/// A message that came in.
#[derive(Debug, Clone)]
pub enum Incoming<'a> {
    /// A request: the client waits for the answer.
    Request {
        /// The id that the answer has to carry.
        id: Id,
        /// What is asked for.
        method: String,
        /// The parameters, unread.
        params: Params<'a>,
    },
    /// A notification: the client waits for no answer.
    Notification {
        /// What it is about.
        method: String,
        /// The parameters, unread.
        params: Params<'a>,
    },
    /// The answer to a request of ours.
    Response {
        /// The request's id.
        id: Id,
        /// The result or the error, unread: there may be no open request with this id. A response
        /// that has neither counts as an error without words.
        result: Result<&'a RawValue, &'a RawValue>,
    },
}

/// Parameters, unread.
#[derive(Debug, Clone, Copy)]
pub struct Params<'a>(Option<&'a RawValue>);

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default, borrow, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default, borrow, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// Splits a line into its parts. None of them is looked into, so none can do harm.
    fn read(line: &'a [u8]) -> Result<Self, (Id, Error)> {
        let unreadable = |problem: String| (Id::null(), Error::new(PARSE_ERROR, problem));
        let no_message = |problem: &str| (Id::null(), Error::new(INVALID_REQUEST, problem));
        let text = std::str::from_utf8(line).map_err(|error| {
            let column = error.valid_up_to() + 1;
            unreadable(format!("the line is not UTF-8: it goes astray in column {column}"))
        })?;
        let first = text.trim_ascii_start().as_bytes().first();
        let error = match first {
            Some(b'{') => match unread(text) {
                Ok(envelope) => return Ok(envelope),
                Err(error) => no_message(&field_errors::problem(&error.to_string())),
            },
            Some(b'[') => no_message("batches are not supported"),
            _ => no_message("a message is an object"),
        };
        match unread::<&RawValue>(text) {
            Ok(_) => Err(error),
            Err(error) => Err(unreadable(not_json(&error))),
        }
    }
}

/// Splits a text into parts that stay unread.
#[expect(clippy::disallowed_methods, reason = "no value is made of what is in the parts")]
fn unread<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text)
}

/// Reads a part of a line that was found harmless.
#[expect(clippy::disallowed_methods, reason = "the line that it is part of was checked")]
fn harmless<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, serde_json::Error> {
    serde_json::from_str(raw.get())
}

impl Params<'_> {
    /// Returns how long they are, as text.
    pub fn bytes(self) -> usize {
        self.0.map_or(0, |params| params.get().len())
    }
}

/// Reads the answer to a request of ours; what cannot be read says nothing.
pub fn answer(result: Result<&RawValue, &RawValue>) -> Result<Value, Value> {
    let value = |raw: &RawValue| harmless(raw).unwrap_or_default();
    result.map(value).map_err(value)
}

/// Tells `null` from absent: an id may be null.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Incoming<'a> {
    /// Reads a line.
    ///
    /// An answer is not answered, and a notification is not, whatever is wrong with them: their
    /// sender waits for nothing, and the id of an answer is one of ours, which the client may have
    /// given to a request of its own.
    ///
    /// # Errors
    /// The line is no message; the id to answer to, if it could be made out, and why.
    pub fn read(line: &'a [u8]) -> Result<Self, (Id, Error)> {
        let envelope = Envelope::read(line)?;
        let invalid = |id: Id, problem: &str| (id, Error::new(INVALID_REQUEST, problem));
        let answers = envelope.result.is_some() || envelope.error.is_some();
        let id = match envelope.id.map(|raw| Id::read(raw).ok_or(NO_ID)).transpose() {
            Ok(id) => id,
            // An answer to nothing that was asked is not answered either.
            Err(_) if envelope.method.is_none() && answers => Some(Id::null()),
            Err(problem) => return Err(invalid(Id::null(), problem)),
        };
        // Nothing in it is read before it is known to be harmless; a client that waits for an
        // answer is told so all the same.
        let harm = json::check(line, LINE_BYTES).err();
        let is_2_0 = envelope.jsonrpc.is_some_and(|version| version.get() == r#""2.0""#);
        let params = Params(envelope.params.filter(|params| params.get() != "null"));
        if harm.is_some() || !is_2_0 {
            match (envelope.method, &id) {
                (None, Some(id)) => {
                    return Ok(Self::Response { id: id.clone(), result: Err(RawValue::NULL) });
                }
                (Some(method), None) if method.get().starts_with('"') => {
                    let method = method.get().trim_matches('"').to_owned();
                    return Ok(Self::Notification { method, params: Params(None) });
                }
                _ => {}
            }
        }
        if let Some(refused) = harm {
            let path = refused.path().trim_start_matches("params.");
            let error = Error::invalid(path, &refused.problem());
            return Err((id.unwrap_or_else(Id::null), error));
        }
        if !is_2_0 {
            return Err(invalid(id.unwrap_or_else(Id::null), "jsonrpc must be \"2.0\""));
        }
        match (envelope.method, id) {
            (Some(method), id) => {
                let Ok(method) = harmless::<String>(method) else {
                    let problem = "a method is a text";
                    return Err(invalid(id.unwrap_or_else(Id::null), problem));
                };
                Ok(match id {
                    Some(id) => Self::Request { id, method, params },
                    None => Self::Notification { method, params },
                })
            }
            (None, Some(id)) => match (envelope.result, envelope.error) {
                (_, Some(error)) => Ok(Self::Response { id, result: Err(error) }),
                (Some(result), None) => Ok(Self::Response { id, result: Ok(result) }),
                (None, None) => Ok(Self::Response { id, result: Err(RawValue::NULL) }),
            },
            (None, None) => Err(invalid(Id::null(), "neither a method nor an id")),
        }
    }
}

impl<'a> Params<'a> {
    /// Reads the parameters.
    ///
    /// # Errors
    /// The first field that is wrong, and where.
    pub fn read<T: Deserialize<'a>>(self) -> Result<T, Error> {
        let text = self.0.map_or("{}", RawValue::get);
        if !text.starts_with('{') {
            return Err(Error::invalid("", "parameters are an object"));
        }
        let mut deserializer = serde_json::Deserializer::from_str(text);
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { String::new() } else { path };
            let refusal = error.into_inner().to_string();
            // What is missing has no place of its own.
            match (field_errors::missing(&refusal), path.as_str()) {
                (Some(field), "") => Error::invalid(field, "it is missing"),
                (Some(field), path) => Error::invalid(format!("{path}.{field}"), "it is missing"),
                (None, _) => Error::invalid(path, &field_errors::problem(&refusal)),
            }
        })
    }
}

/// Says where a line stops being JSON.
fn not_json(error: &serde_json::Error) -> String {
    // There is one line.
    let problem = syntax::problem(error).replace(" in line 1, column", " in column");
    format!("the line is {}", problem.replace(", in line 1", ""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refusal(line: &str) -> (String, i64) {
        let (id, error) = Incoming::read(line.as_bytes()).expect_err("it is refused");
        (id.as_json().to_owned(), error.code)
    }

    #[test]
    fn an_id_of_any_legal_kind_is_answered_as_it_was_written() {
        for id in ["1", "-7", "1.50", "\"a\\u0020b\"", "null", "123456789012345678901234567890"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
            let Ok(Incoming::Request { id: read, .. }) = Incoming::read(line.as_bytes()) else {
                panic!("{line} is a request");
            };
            let mut out = Outgoing::default();
            out.respond(&read, &Ok(json!({})));
            let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n");
            assert_eq!(String::from_utf8(out.take()).unwrap(), answer);
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_right_code() {
        let null = || "null".to_owned();
        assert_eq!(refusal("{"), (null(), PARSE_ERROR));
        assert_eq!(refusal(""), (null(), PARSE_ERROR));
        assert_eq!(refusal("[]"), (null(), INVALID_REQUEST));
        assert_eq!(refusal("7"), (null(), INVALID_REQUEST));
        assert_eq!(refusal("{}"), (null(), INVALID_REQUEST));
        assert_eq!(refusal(r#"{"id":1,"method":"x"}"#), ("1".to_owned(), INVALID_REQUEST));
        assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#), (null(), INVALID_REQUEST));
        assert_eq!(
            refusal(r#"{"jsonrpc":"2.0","id":3,"method":7}"#),
            ("3".into(), INVALID_REQUEST)
        );
        for (line, words) in [
            (&b"\xff"[..], "the line is not UTF-8: it goes astray in column 1"),
            (b"{broken", "the line is not JSON: it goes astray in column 2"),
            (b"{\"id\":", "the line is not JSON: it ends too early"),
        ] {
            let (_, error) = Incoming::read(line).unwrap_err();
            assert_eq!((error.code, error.message.as_str()), (PARSE_ERROR, words));
        }
    }

    #[test]
    fn the_id_of_a_request_is_found_at_its_start() {
        for (start, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"prompt":[{"#, "7"),
            (r#" {"method":"x", "id" : "a\"b", "params":{"data":"AAAA"#, r#""a\"b""#),
        ] {
            let start = Start::read(start.as_bytes());
            assert_eq!((start.id.unwrap().as_json(), start.answers), (id, false));
        }
        for start in [r#"{"params":{"id":3,"data":"AAAA"#, r#"{"id":"#, "[1", "AAAA", ""] {
            assert_eq!(Start::read(start.as_bytes()).id, None, "{start}");
        }
        let start = Start::read(br#"{"jsonrpc":"2.0","id":7,"result":{"outcome":"AAAA"#);
        assert_eq!((start.id.unwrap().as_json(), start.answers), ("7", true));
    }

    #[test]
    fn neither_an_answer_nor_a_notification_is_refused() {
        let private = r#"{"$serde_json::private::RawValue":"1"}"#;
        for line in [
            r#"{"id":1,"result":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1}"#.to_owned(),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{private}}}"#),
        ] {
            let Ok(Incoming::Response { id, result }) = Incoming::read(line.as_bytes()) else {
                panic!("{line} is an answer");
            };
            assert_eq!((id.as_json(), answer(result)), ("1", Err(Value::Null)));
        }
        let line = br#"{"jsonrpc":"2.0","id":{},"result":{}}"#;
        let Ok(Incoming::Response { id, .. }) = Incoming::read(line) else {
            panic!("it is an answer, to nothing that was asked");
        };
        assert_eq!(id, Id::null());
        let line = format!(r#"{{"jsonrpc":"2.0","method":"session/cancel","params":{private}}}"#);
        let Ok(Incoming::Notification { method, params }) = Incoming::read(line.as_bytes()) else {
            panic!("{line} is a notification");
        };
        assert_eq!((method.as_str(), params.bytes()), ("session/cancel", 0));
    }

    #[test]
    fn a_field_that_is_wrong_is_named() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only its reading is looked at")]
        struct Deep {
            outer: Vec<u32>,
        }
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"outer":[1,"two"]}}"#;
        let Ok(Incoming::Request { params, .. }) = Incoming::read(line) else { panic!() };
        let error = params.read::<Deep>().unwrap_err();
        assert_eq!(error.data.unwrap()["path"], "outer[1]");
        assert_eq!(error.message, "outer[1]: expected a whole number from 0 on, found a text");
    }
}
