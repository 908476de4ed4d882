//! An agent that is served on loopback, and peers that talk to it over real HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use adjourn::Adjourn;
use adjourn::core::carry::Budget;
use adjourn::core::driver::DriverSpec;
use adjourn_a2a::{Agent, Face, Profile, Receivers};
use adjourn_core::transcript::Digest;
use adjourn_server::{ANSWER_BYTES, Access, CONNECTIONS, Names, Pusher, Site, Token, serve};
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::{self, Answer, Events};
use adjourn_testkit::store::TENANT;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub const JSON: (&str, &str) = ("content-type", "application/json");
/// What a peer shows that may do everything in the tenant.
pub const BOSS: (&str, &str) = ("authorization", "Bearer boss");
/// What activates paused states.
pub const STATES: (&str, &str) = ("a2a-extensions", "urn:adjourn:a2a:paused-states:v1");
/// An agent that is done with its first step.
pub const DONE: &str = r#"{"steps": [{"say": "done"}]}"#;

/// Returns a token by its name, which callers show, its scopes and its tenant.
pub fn token(name: &str, scopes: &str, tenant: &str) -> Token {
    let digest = Digest::of(name.as_bytes());
    Token::read(&format!("{name} {digest} {scopes}"), tenant).unwrap()
}

/// A server.
pub struct Served {
    pub address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

/// How an agent is served.
pub struct Setting<'a> {
    pub script: &'a str,
    pub access: Access,
    pub profile: Profile,
    pub pausable: bool,
    pub names: Names,
    pub pusher: Option<Pusher>,
    pub connections: usize,
    pub answer_bytes: usize,
}

impl Setting<'_> {
    /// Callers show tokens.
    pub fn new(script: &str) -> Setting<'_> {
        let tokens = [token("boss", "admin", TENANT), token("guest", "admin", "another")];
        Setting {
            script,
            access: Access::with(tokens),
            profile: Profile::Adjourn,
            pausable: true,
            names: Names::default(),
            pusher: None,
            connections: CONNECTIONS,
            answer_bytes: ANSWER_BYTES,
        }
    }

    /// Serves it on a store.
    pub async fn on(self, fixture: &Fixture) -> Served {
        self.on_store(fixture.adjourn()).await
    }

    /// Serves it on a store that is open already.
    pub async fn on_store(self, adjourn: Adjourn) -> Served {
        let agent = Agent {
            name: "rebase-worker".to_owned(),
            description: "Rebases branches".to_owned(),
            driver: DriverSpec::script(self.script),
            budget: Budget::default(),
            pausable: self.pausable,
        };
        let mut face = Face::new(adjourn.clone(), agent, self.profile);
        let pusher = self.pusher.map(Arc::new);
        if let Some(pusher) = &pusher {
            let receivers: Arc<dyn Receivers> = Arc::<Pusher>::clone(pusher);
            face = face.pushing_to(receivers);
        }
        let site = Site {
            agent: Some(Arc::new(face)),
            pusher,
            access: self.access,
            names: self.names,
            connections: self.connections,
            answer_bytes: self.answer_bytes,
            ..Site::open(adjourn)
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(serve(listener, site, async {
            let _ = stopped.await;
        }));
        Served { address, stop: Some(stop), task }
    }
}

impl Served {
    /// Sends a request.
    pub fn send(&self, what: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        http::send(self.address, what, headers, body)
    }

    /// Asks for something over JSON-RPC as the boss, and returns the whole answer.
    pub fn ask(&self, headers: &[(&str, &str)], method: &str, params: &Value) -> Value {
        let headers = [&[JSON, BOSS], headers].concat();
        self.send("POST /a2a", &headers, &request(method, params)).json()
    }

    /// Asks for something that is granted.
    pub fn result(&self, method: &str, params: &Value) -> Value {
        let answer = self.ask(&[], method, params);
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Begins a task, does not wait for it, and returns its id.
    pub fn begin(&self, message: &str) -> String {
        let params = json!({ "message": words(message), "configuration": { "blocking": false } });
        self.result("message/send", &params)["id"].as_str().unwrap().to_owned()
    }

    /// Watches a task, behind an event if one is named.
    pub fn watch(&self, task: &str, headers: &[(&str, &str)], last: Option<&str>) -> Events {
        let last = last.map(|last| ("last-event-id", last));
        let headers = [&[JSON, BOSS], headers, last.as_slice()].concat();
        let body = request("tasks/resubscribe", &json!({ "id": task }));
        Events::open(self.address, "POST /a2a", &headers, &body)
    }

    /// Sends a request over a connection that the server has taken already, in a thread of its own.
    pub fn send_aside(&self, body: String) -> std::thread::JoinHandle<Answer> {
        let mut connection = http::Connection::open(self.address);
        assert_eq!(connection.send("GET /healthz", &[], "").status, 200);
        std::thread::spawn(move || connection.send("POST /a2a", &[JSON, BOSS], &body))
    }

    /// Stops it, and waits until all is answered.
    pub async fn stop(mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.task.await.unwrap().unwrap();
    }
}

pub fn request(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": "req-1", "method": method, "params": params }).to_string()
}

pub fn words(id: &str) -> Value {
    json!({ "kind": "message", "messageId": id, "role": "user",
            "parts": [{ "kind": "text", "text": "go" }] })
}
