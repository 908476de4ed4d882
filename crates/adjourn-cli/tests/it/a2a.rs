//! A2A over real HTTP, with the program.

mod awaiting;
mod bridge;
mod chosen;
mod client;
mod closed;
mod conformance;
mod conformance_agent;
mod fake_peer;
mod killing;
mod pushing;
mod sdk;
mod typed;
mod unanswered;

use adjourn_testkit::http::{self, Answer, Connection, Events};
use serde_json::{Value, json};

use crate::home::{Home, Serving};

const JSON: (&str, &str) = ("content-type", "application/json");
const STATES: (&str, &str) = ("a2a-extensions", "urn:adjourn:a2a:paused-states:v1");

/// A server, and an agent that parks.
struct Server {
    home: Home,
    serving: Option<Serving>,
    address: String,
}

const PARKS: &str = r#"{"steps": [
    {"await": {"reason": "ci", "conditions": {"onEvent": "ci.passed"}}}, {"say": "merged"}]}"#;

impl Server {
    fn new(script: &str, arguments: &[&str]) -> Self {
        let home = Home::new();
        home.file("agent.json", script);
        let mut server = Self { home, serving: None, address: String::new() };
        server.start(arguments);
        server
    }

    /// Serves the agent that the arguments choose.
    fn of(home: Home, arguments: &[&str]) -> Self {
        let mut server = Self { home, serving: None, address: String::new() };
        server.listen(arguments);
        server
    }

    fn start(&mut self, arguments: &[&str]) {
        let script = self.home.path("agent.json").display().to_string();
        self.listen(&[&["--script", &script], arguments].concat());
    }

    fn listen(&mut self, arguments: &[&str]) {
        let listen = ["--listen", "127.0.0.1:0"];
        let (serving, said) = self.home.serve_with(&[&listen, arguments].concat());
        let (_, address) = said.split_once("an A2A agent on http://").unwrap();
        self.address = address.split_once("/a2a").unwrap().0.to_owned();
        self.serving = Some(serving);
    }

    fn kill(&mut self) {
        self.serving.take().unwrap().kill();
    }

    fn post(&self, headers: &[(&str, &str)], body: &Value) -> Answer {
        http::send(&*self.address, "POST /a2a", headers, &body.to_string())
    }

    /// Asks for something, and does not wait for the answer.
    fn begin(&self, headers: &[(&str, &str)], body: &Value) -> Connection {
        let mut connection = Connection::open(&*self.address);
        connection.begin("POST /a2a", &[&[JSON], headers].concat(), &body.to_string());
        connection
    }

    /// Asks for something that is refused, and returns the code and the reason.
    fn refused(&self, method: &str, params: Value) -> (i64, String) {
        let answer = self.post(&[JSON], &request(method, params)).json();
        let reason = answer.pointer("/error/data/0/reason").and_then(Value::as_str);
        let reason = reason.unwrap_or_else(|| panic!("{method}: {answer}"));
        (answer["error"]["code"].as_i64().unwrap(), reason.to_owned())
    }

    /// Asks for something that is granted.
    fn result(&self, headers: &[(&str, &str)], method: &str, params: Value) -> Value {
        let answer = self.post(&[&[JSON], headers].concat(), &request(method, params)).json();
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Watches a task as a peer that knows paused states: each event with its id.
    fn watch(&self, task: &Value, last: Option<&str>) -> Watch {
        let last = last.map(|last| ("last-event-id", last));
        self.watch_with(&[&[STATES], last.as_slice()].concat(), task)
    }

    /// Watches a task with some headers.
    fn watch_with(&self, headers: &[(&str, &str)], task: &Value) -> Watch {
        let body = request("SubscribeToTask", json!({ "id": task })).to_string();
        let headers = [&[JSON, ("a2a-version", "1.0")], headers].concat();
        Watch(Events::open(&*self.address, "POST /a2a/", &headers, &body))
    }
}

struct Watch(Events);

impl Watch {
    /// Returns the next event; nothing at the end of the stream.
    fn next(&mut self) -> Option<(String, Value)> {
        self.0.next()
    }

    /// Returns the states of the events that tell of one, up to the end or one that is named.
    fn states(&mut self, until: &str) -> Vec<String> {
        let mut states = Vec::new();
        while let Some((_, event)) = self.next() {
            let result = &event["result"];
            let status = result.get("task").or_else(|| result.get("statusUpdate"));
            let state = status.and_then(|status| status.pointer("/status/state")?.as_str());
            states.extend(state.map(str::to_owned));
            if state == Some(until) {
                break;
            }
        }
        states
    }
}

fn request(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn message(id: &str) -> Value {
    json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": "merge it" }] } })
}

#[test]
fn a_task_is_paused_and_resumed_over_http_and_survives_a_kill_of_the_server() {
    let mut server = Server::new(PARKS, &["--insecure-open"]);
    let sent = server.result(&[STATES], "SendMessage", message("m1"));
    assert_eq!(sent.pointer("/task/status/state"), Some(&"TASK_STATE_PAUSED_BY_AGENT".into()));
    let task = &sent["task"]["id"];
    let mut watch = server.watch(task, None);
    let (first, _) = watch.next().unwrap();
    let paused = server.result(&[], "tasks/pause", json!({ "taskId": task, "reason": "review" }));
    assert_eq!(paused["state"], "paused-by-client");
    assert_eq!(watch.states("TASK_STATE_PAUSED_BY_CLIENT"), ["TASK_STATE_PAUSED_BY_CLIENT"]);
    server.kill();

    server.start(&["--insecure-open"]);
    // What was acknowledged is there, and a watcher catches up.
    let shown = server.result(&[STATES], "GetTask", json!({ "id": task }));
    assert_eq!(shown.pointer("/status/state"), Some(&"TASK_STATE_PAUSED_BY_CLIENT".into()));
    let mut watch = server.watch(task, Some(&first));
    assert_eq!(watch.states("TASK_STATE_PAUSED_BY_CLIENT"), ["TASK_STATE_PAUSED_BY_CLIENT"]);
    // The other binding: the same method as a path.
    let path = format!("POST /a2a/tasks/{}:resume", task.as_str().unwrap());
    let lift = json!({ "handle": paused["handle"] }).to_string();
    let lifted = http::send(&*server.address, &path, &[JSON], &lift);
    assert_eq!((lifted.status, &lifted.json()["state"]), (200, &json!("paused-by-agent")));
    let again = http::send(&*server.address, &path, &[JSON], &lift);
    let reason = &again.json()["error"]["details"][0]["reason"];
    assert_eq!((again.status, reason), (409, &json!("ALREADY_RESUMED")));
    // The session is the same one at the command line.
    let id = sent.pointer("/task/contextId").unwrap().as_str().unwrap();
    let status = server.home.json(&["show", id]);
    let shown = server.result(&[STATES], "GetTask", json!({ "id": task }));
    let pause = shown.pointer("/metadata/urn:adjourn:a2a:pause:v1").unwrap();
    for (ours, theirs) in [
        ("handle", "handle"),
        ("reason", "reason"),
        ("conditions", "resumeWhen"),
        ("pausedAt", "suspendedAt"),
    ] {
        assert_eq!(pause[ours], status[theirs], "{ours}");
    }
    server.home.json(&["event", "ci.passed"]);
    let told = watch.states("");
    let expected = [
        "TASK_STATE_WORKING",
        "TASK_STATE_PAUSED_BY_AGENT",
        "TASK_STATE_WORKING",
        "TASK_STATE_COMPLETED",
    ];
    assert_eq!(told, expected);
    let done = server.result(&[], "GetTask", json!({ "id": task }));
    assert_eq!(done.pointer("/artifacts/0/parts/0/text"), Some(&"merged".into()));
    assert_eq!(server.serving.take().unwrap().terminate(), 0);
}

#[test]
fn versions_extensions_and_content_types_are_taken_as_clients_send_them() {
    let server = Server::new(PARKS, &["--insecure-open"]);
    let list = request("ListTasks", json!({}));
    let answer =
        server.post(&[("content-type", "application/a2a+json; charset=utf-8"), STATES], &list);
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: application/a2a+json"), "{}", answer.head);
    for name in ["a2a-extensions", "x-a2a-extensions"] {
        assert!(answer.head.contains(&format!("\r\n{name}: {}", STATES.1)), "{}", answer.head);
    }
    let slash = http::send(&*server.address, "POST /a2a/", &[JSON], &list.to_string());
    assert_eq!(slash.json()["result"]["tasks"], json!([]));
    for (headers, code) in [
        ([JSON, ("a2a-version", "2.0")], -32009),
        ([("content-type", "text/plain"), ("a2a-version", "1.0")], -32005),
    ] {
        let answer = server.post(&headers, &list);
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (200, &json!(code)));
    }
    let query =
        http::send(&*server.address, "POST /a2a?A2A-Version=9.9", &[JSON], &list.to_string());
    assert_eq!(query.json()["error"]["code"], -32009);
    assert_eq!(http::send(&*server.address, "GET /a2a", &[], "").status, 405);
    for (what, status) in [
        ("GET /a2a/tasks", 200),
        ("GET /a2a/local/tasks?pageSize=5", 200),
        ("GET /a2a/tasks?pageSize=x", 400),
        ("GET /a2a/other/tasks", 400),
        ("GET /a2a/tasks/run-x", 404),
        ("POST /a2a/tasks/run-x:pause", 404),
        ("GET /a2a/nothing", 404),
        ("GET /a2a/extendedAgentCard", 400),
    ] {
        let answer = http::send(&*server.address, what, &[("a2a-version", "1.0")], "");
        assert_eq!(answer.status, status, "{what}: {}", answer.body);
    }
    let foreign = [JSON, ("origin", "https://evil.example")];
    assert_eq!(server.post(&foreign, &list).status, 403);
    let elsewhere = [JSON, ("host", "evil.example")];
    assert_eq!(server.post(&elsewhere, &list).status, 421);

    let card = http::send(&*server.address, "GET /.well-known/agent-card.json", &[], "");
    assert_eq!((card.status, &card.json()["name"]), (200, &json!("agent")));
    assert_eq!(card.json()["url"], "http://localhost/a2a");
    let tag = card.head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    assert!(card.head.lines().any(|line| line.starts_with("last-modified: ")), "{}", card.head);
    let again = [("if-none-match", tag)];
    assert_eq!(
        http::send(&*server.address, "GET /.well-known/agent-card.json", &again, "").status,
        304
    );
}

#[test]
fn a_token_says_who_asks_and_what_is_allowed() {
    let home = Home::new();
    home.file("agent.json", PARKS);
    let script = home.path("agent.json").display().to_string();
    let file = home.path("tokens").display().to_string();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--script", &script];
    let told = home.told(&serve);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.talk.contains("there are no tokens"), "{}", told.talk);
    let told = home.told(&["serve", "--script", &script]);
    assert!(told.talk.contains("say where to listen"), "{}", told.talk);
    let told = home.told(&[
        "serve",
        "--listen",
        "0.0.0.0:0",
        "--token",
        "x",
        "--script",
        &script,
        "--insecure-open",
    ]);
    assert!(told.talk.contains("can be reached by others"), "{}", told.talk);
    home.file("tokens", "boss x read");
    let told = home.told(&[&serve[..], &["--tokens-file", &file]].concat());
    assert!(told.talk.contains("tokens:1: expected a SHA-256 digest"), "{}", told.talk);

    let digest = |token: &str| adjourn_core::transcript::Digest::of(token.as_bytes()).to_string();
    let tokens = format!(
        "# name  digest  scopes  tenant\n\nboss {} read,send,pause,resume\nlook {} read\nguest {} admin other\n",
        digest("all"),
        digest("look"),
        digest("guest")
    );
    home.file("tokens", &tokens);
    let mut server = Server { home, serving: None, address: String::new() };
    server.start(&["--tokens-file", &file]);
    let list = request("ListTasks", json!({}));
    for (token, status) in [
        (None, 401),
        (Some("Bearer nobody"), 401),
        (Some("Bearer all"), 200),
        (Some("Bearer look"), 200),
        (Some("Bearer guest"), 200),
    ] {
        let shown = token.map(|token| ("authorization", token));
        let headers: Vec<_> = [Some(JSON), shown].into_iter().flatten().collect();
        assert_eq!(server.post(&headers, &list).status, status, "{token:?}");
    }
    let boss = ("authorization", "Bearer all");
    let sent = server.result(&[boss], "SendMessage", message("m1"));
    let task = &sent["task"]["id"];
    let context = sent.pointer("/task/contextId").unwrap().as_str().unwrap();
    let log = server.home.told(&["log", context]).data;
    assert!(log.contains("boss"), "{log}");
    let look = ("authorization", "Bearer look");
    let pause = request("tasks/pause", json!({ "taskId": task }));
    assert_eq!(server.post(&[JSON, look], &pause).status, 403);
    let shown = server.result(&[look], "GetTask", json!({ "id": task }));
    assert!(!shown.to_string().contains("suspend-"), "{shown}");
    let guest = server.post(&[JSON, ("authorization", "Bearer guest")], &pause);
    assert_eq!(guest.json()["error"]["code"], -32004, "another tenant's task is not there");
    // The card, and how the process is, are for everybody.
    for path in ["/.well-known/agent-card.json", "/healthz", "/readyz"] {
        assert_eq!(
            http::send(&*server.address, &format!("GET {path}"), &[], "").status,
            200,
            "{path}"
        );
    }
    let card = http::send(&*server.address, "GET /.well-known/agent-card.json", &[], "").json();
    assert_eq!(card.pointer("/securitySchemes/bearer/type"), Some(&json!("http")));
}

#[test]
fn a_send_that_waits_is_answered_when_the_server_is_told_to_stop() {
    // It says something for longer than a test takes.
    let talks = r#"{"steps": [{"say": {"text": "one two three four", "ms": 600000}}]}"#;
    let mut server = Server::new(talks, &["--insecure-open", "--drain", "1s"]);
    let (address, body) = (server.address.clone(), request("SendMessage", message("m1")));
    let waiting =
        std::thread::spawn(move || http::send(&*address, "POST /a2a", &[JSON], &body.to_string()));
    server.home.until_first(|session| session["state"] == "running");
    assert_eq!(server.serving.take().unwrap().terminate(), 0);
    let answer = waiting.join().unwrap();
    let state = answer.json().pointer("/result/task/status/state").cloned();
    assert_eq!((answer.status, state), (200, Some(json!("TASK_STATE_WORKING"))), "{}", answer.body);
}
