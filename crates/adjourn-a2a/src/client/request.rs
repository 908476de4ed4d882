//! What a caller asks for, as the HTTP request of a version and a binding.

use serde_json::{Map, Value, json};

use super::peer::{Binding, Peer};
use crate::version::Version;

/// A message to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Its id, under which the agent takes it once.
    pub id: String,
    /// What is said.
    pub text: String,
    /// The task that it answers.
    pub task: Option<String>,
    /// The context that it belongs to.
    pub context: Option<String>,
}

/// What a caller wants of an agent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ask<'a> {
    /// To say something, and to be answered at once.
    Send {
        /// What is said.
        message: &'a Outgoing,
    },
    /// To say something, and to be told what comes of it.
    Stream {
        /// What is said.
        message: &'a Outgoing,
    },
    /// To see a task.
    Get {
        /// Which.
        task: &'a str,
    },
    /// To end a task.
    Cancel {
        /// Which.
        task: &'a str,
    },
    /// To be told what happens to a task.
    Subscribe {
        /// Which.
        task: &'a str,
        /// The last event that was told, to go on behind it.
        last_event: Option<&'a str>,
    },
    /// To pause a task.
    Pause {
        /// Which.
        task: &'a str,
        /// What is said besides: a reason, a mode.
        fields: &'a Map<String, Value>,
    },
    /// To wake a task.
    Resume {
        /// Which.
        task: &'a str,
        /// What is said besides: a handle, an input.
        fields: &'a Map<String, Value>,
    },
}

impl Ask<'_> {
    /// Returns whether it is one of the proposal's, whose error codes differ.
    pub const fn is_about_pauses(&self) -> bool {
        matches!(self, Self::Pause { .. } | Self::Resume { .. })
    }

    /// Returns whether it is answered with a stream.
    pub const fn streams(&self) -> bool {
        matches!(self, Self::Stream { .. } | Self::Subscribe { .. })
    }

    const fn method(&self, version: Version) -> &'static str {
        match (self, version) {
            (Self::Send { .. }, Version::V03 | Version::V03Proto) => "message/send",
            (Self::Send { .. }, Version::V10) => "SendMessage",
            (Self::Stream { .. }, Version::V03 | Version::V03Proto) => "message/stream",
            (Self::Stream { .. }, Version::V10) => "SendStreamingMessage",
            (Self::Get { .. }, Version::V03 | Version::V03Proto) => "tasks/get",
            (Self::Get { .. }, Version::V10) => "GetTask",
            (Self::Cancel { .. }, Version::V03 | Version::V03Proto) => "tasks/cancel",
            (Self::Cancel { .. }, Version::V10) => "CancelTask",
            (Self::Subscribe { .. }, Version::V03 | Version::V03Proto) => "tasks/resubscribe",
            (Self::Subscribe { .. }, Version::V10) => "SubscribeToTask",
            // The proposal's names: whoever implements it has these.
            (Self::Pause { .. }, _) => "tasks/pause",
            (Self::Resume { .. }, _) => "tasks/resume",
        }
    }

    /// Returns what a path has behind the agent's URL, and whether it is fetched with `GET`.
    fn path(&self) -> (bool, String) {
        let of = |task: &str, action: &str| format!("tasks/{}{action}", escaped(task));
        match self {
            Self::Send { .. } => (false, "message:send".to_owned()),
            Self::Stream { .. } => (false, "message:stream".to_owned()),
            Self::Get { task } => (true, of(task, "")),
            Self::Cancel { task } => (false, of(task, ":cancel")),
            Self::Subscribe { task, .. } => (true, of(task, ":subscribe")),
            Self::Pause { task, .. } => (false, of(task, ":pause")),
            Self::Resume { task, .. } => (false, of(task, ":resume")),
        }
    }

    /// Returns the parameters, or the body.
    fn params(&self, binding: Binding, version: Version) -> Map<String, Value> {
        let is_rpc = binding == Binding::JsonRpc;
        let mut params = Map::new();
        match self {
            Self::Send { message } | Self::Stream { message } => {
                let name = match (version, is_rpc) {
                    (Version::V03 | Version::V03Proto, false) => "request",
                    _ => "message",
                };
                params.insert(name.to_owned(), message.written(version, is_rpc));
                if let Self::Send { .. } = self {
                    let configuration = match version {
                        Version::V03 | Version::V03Proto => json!({ "blocking": false }),
                        Version::V10 => json!({ "returnImmediately": true }),
                    };
                    params.insert("configuration".to_owned(), configuration);
                }
            }
            Self::Get { task } | Self::Cancel { task } | Self::Subscribe { task, .. } if is_rpc => {
                params.insert("id".to_owned(), (*task).into());
            }
            Self::Pause { task, fields } | Self::Resume { task, fields } => {
                params.insert("taskId".to_owned(), (*task).into());
                params.extend((*fields).clone());
            }
            // The path says it all.
            Self::Get { .. } | Self::Cancel { .. } | Self::Subscribe { .. } => {}
        }
        params
    }
}

impl Outgoing {
    fn written(&self, version: Version, is_rpc: bool) -> Value {
        let (mut message, parts) = match (version, is_rpc) {
            (Version::V10, _) => (json!({ "role": "ROLE_USER" }), "parts"),
            (Version::V03 | Version::V03Proto, true) => {
                (json!({ "kind": "message", "role": "user" }), "parts")
            }
            // The other binding of 0.3 has the shapes of its proto file.
            (Version::V03 | Version::V03Proto, false) => {
                (json!({ "role": "ROLE_USER" }), "content")
            }
        };
        let part = match (version, is_rpc) {
            (Version::V03 | Version::V03Proto, true) => {
                json!({ "kind": "text", "text": self.text })
            }
            _ => json!({ "text": self.text }),
        };
        if let Some(message) = message.as_object_mut() {
            message.insert("messageId".to_owned(), self.id.as_str().into());
            message.insert(parts.to_owned(), json!([part]));
            for (name, value) in [("taskId", &self.task), ("contextId", &self.context)] {
                message.extend(value.clone().map(|value| (name.to_owned(), value.into())));
            }
        }
        message
    }
}

/// A request, without what proves who sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Whether it is a `GET`; else it is a `POST`.
    pub is_get: bool,
    /// Where it goes.
    pub url: String,
    /// Its headers.
    pub headers: Vec<(&'static str, String)>,
    /// Its body, if it has one.
    pub body: Option<Value>,
}

impl Peer {
    /// Returns the request that asks the agent for something.
    pub fn request(&self, ask: &Ask<'_>) -> Request {
        let way = &self.interface;
        let mut params = ask.params(way.binding, way.version);
        let url = way.url.trim_end_matches('/');
        let (is_get, url, body) = match way.binding {
            Binding::JsonRpc => {
                if let Some(tenant) = &way.tenant {
                    params.insert("tenant".to_owned(), tenant.as_str().into());
                }
                let method = ask.method(way.version);
                let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
                (false, way.url.clone(), Some(body))
            }
            Binding::HttpJson => {
                let (is_get, path) = ask.path();
                let prefix = match (way.version, &way.tenant) {
                    (Version::V03 | Version::V03Proto, _) if url.ends_with("/v1") => String::new(),
                    (Version::V03 | Version::V03Proto, _) => "/v1".to_owned(),
                    (Version::V10, Some(tenant)) => format!("/{}", escaped(tenant)),
                    (Version::V10, None) => String::new(),
                };
                let body = (!is_get).then(|| Value::Object(params));
                (is_get, format!("{url}{prefix}/{path}"), body)
            }
        };
        let (version, extensions) = match way.version {
            Version::V03 | Version::V03Proto => ("0.3", "x-a2a-extensions"),
            Version::V10 => ("1.0", "a2a-extensions"),
        };
        let accept = if ask.streams() { "text/event-stream" } else { "application/json" };
        let mut headers = vec![("a2a-version", version.to_owned()), ("accept", accept.to_owned())];
        if body.is_some() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        if !self.extensions.is_empty() {
            headers.push((extensions, self.extensions.join(", ")));
        }
        if let Ask::Subscribe { last_event: Some(last), .. } = ask {
            headers.push(("last-event-id", (*last).to_owned()));
        }
        Request { is_get, url, headers, body }
    }
}

/// Returns a text as one step of a path.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            other => escaped += &format!("%{other:02X}"),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Interface;
    use crate::version::{PAUSE, PAUSED_STATES};

    fn peer(binding: Binding, version: Version, tenant: Option<&str>) -> Peer {
        let tenant = tenant.map(str::to_owned);
        Peer {
            name: "worker".to_owned(),
            interface: Interface { url: "http://h/a2a/".to_owned(), binding, version, tenant },
            streams: true,
            pauses: true,
            wakes: true,
            extensions: vec![PAUSE, PAUSED_STATES],
        }
    }

    fn says() -> Outgoing {
        let (id, text) = ("m1".to_owned(), "merge it".to_owned());
        Outgoing { id, text, task: Some("t".to_owned()), context: None }
    }

    #[test]
    fn each_version_and_binding_has_its_own_shape_of_a_message() {
        let message = says();
        let ask = Ask::Send { message: &message };
        let sent = |binding, version| peer(binding, version, Some("team a")).request(&ask);
        let request = sent(Binding::JsonRpc, Version::V10);
        assert_eq!(request.url, "http://h/a2a/");
        assert_eq!(
            request.body.unwrap(),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
                "message": { "role": "ROLE_USER", "messageId": "m1", "parts": [{ "text": "merge it" }], "taskId": "t" },
                "configuration": { "returnImmediately": true },
                "tenant": "team a",
            } })
        );
        let request = sent(Binding::JsonRpc, Version::V03);
        assert_eq!(
            request.body.unwrap()["params"],
            json!({
                "message": { "kind": "message", "role": "user", "messageId": "m1",
                             "parts": [{ "kind": "text", "text": "merge it" }], "taskId": "t" },
                "configuration": { "blocking": false },
                "tenant": "team a",
            })
        );
        let request = sent(Binding::HttpJson, Version::V10);
        assert_eq!(request.url, "http://h/a2a/team%20a/message:send");
        assert!(request.body.unwrap().get("message").is_some());
        let request = sent(Binding::HttpJson, Version::V03);
        assert_eq!(request.url, "http://h/a2a/v1/message:send");
        assert_eq!(request.body.unwrap()["request"]["content"], json!([{ "text": "merge it" }]));
    }

    #[test]
    fn headers_name_the_version_and_what_is_activated() {
        let ask = Ask::Subscribe { task: "a/b", last_event: Some("12") };
        let request = peer(Binding::HttpJson, Version::V10, None).request(&ask);
        assert_eq!((request.is_get, request.body), (true, None));
        assert_eq!(request.url, "http://h/a2a/tasks/a%2Fb:subscribe");
        let headers = [
            ("a2a-version", "1.0".to_owned()),
            ("accept", "text/event-stream".to_owned()),
            ("a2a-extensions", format!("{PAUSE}, {PAUSED_STATES}")),
            ("last-event-id", "12".to_owned()),
        ];
        assert_eq!(request.headers, headers);
        let request = peer(Binding::JsonRpc, Version::V03, None).request(&Ask::Get { task: "t" });
        assert!(request.headers.iter().any(|(name, _)| *name == "x-a2a-extensions"));
        assert_eq!(request.body.unwrap()["params"], json!({ "id": "t" }));
    }

    #[test]
    fn a_pause_has_the_name_of_the_proposal_or_its_path() {
        let fields = Map::from_iter([("reason".to_owned(), json!("review"))]);
        let ask = Ask::Pause { task: "t", fields: &fields };
        for version in [Version::V03, Version::V10] {
            let body = peer(Binding::JsonRpc, version, None).request(&ask).body.unwrap();
            assert_eq!(body["method"], "tasks/pause");
            assert_eq!(body["params"], json!({ "taskId": "t", "reason": "review" }));
        }
        let request = peer(Binding::HttpJson, Version::V10, None).request(&ask);
        assert_eq!(request.url, "http://h/a2a/tasks/t:pause");
    }
}
