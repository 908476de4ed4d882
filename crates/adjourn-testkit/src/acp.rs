//! A process with a host and any number of clients, over streams in memory.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

use std::sync::Arc;

use adjourn::clock::Machine;
use adjourn::script::{Script, Scripted};
use adjourn::{Adjourn, RunningHost};
use adjourn_acp::{Face, OnDisconnect, Options, PendingPermissions, Profile, StatusWords, Wire};
use adjourn_core::carry::Budget;
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::session::Phase;
use adjourn_driver::{Drivers, Message};
use adjourn_store::{CommandError, Sqlite, Store as _, Transaction};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;

use crate::PATIENCE;
use crate::host::embed;
use crate::store::{self, ann, founding_by};

/// Makes the face of a process whose new sessions follow a script.
pub fn face(
    adjourn: Adjourn,
    host: &RunningHost,
    permissions: PendingPermissions,
    script: &str,
) -> Arc<Face<Sqlite>> {
    let parsed = Script::parse(script).unwrap();
    let (needs, choices) = (parsed.needs(), parsed.options());
    let options = Options {
        driver: DriverSpec { needs, options: choices, ..DriverSpec::script(script) },
        budget: Budget::default(),
        mcp: false,
        profile: Profile::Adjourn,
        status: StatusWords::ByVersion,
        on_disconnect: OnDisconnect::Continue,
        cancel_grace: None,
    };
    let claimant = host.claimant().clone();
    Arc::new(Face { adjourn, claimant, permissions, options })
}

/// Connects a client that has not said which version it speaks, by a pipe that holds so many bytes.
pub fn connect(face: Arc<Face<Sqlite>>, width: usize) -> Client {
    let (ours, theirs) = tokio::io::duplex(width);
    let (input, output) = tokio::io::split(theirs);
    let (stop, drain) = (std::future::pending(), std::future::ready(()));
    let wire = Wire::new(input, output);
    let serving = tokio::spawn(adjourn_acp::serve(face, wire, stop, drain));
    let (input, output) = tokio::io::split(ours);
    let lines = BufReader::new(input).lines();
    Client { lines, output, serving, next: 1, heard: Vec::new(), of_today: false }
}

/// A process with a host, which clients connect to.
pub struct Process {
    directory: store::Fixture<Machine>,
    face: Arc<Face<Sqlite>>,
    /// What its face is not to look at.
    store: Sqlite,
    /// Its host, until it is killed.
    host: std::sync::Mutex<Option<RunningHost<Sqlite>>>,
}

impl Process {
    /// Starts one whose new sessions follow a script.
    pub async fn start(script: &str) -> Self {
        Self::start_in(store::Fixture::with(Machine), script).await
    }

    /// Starts one whose agents are run by other drivers.
    pub async fn start_with(drivers: Arc<dyn Drivers>) -> Self {
        Self::start_by(store::Fixture::with(Machine), r#"{"steps": []}"#, |_| drivers).await
    }

    /// Starts one whose agents are run by drivers that ask clients.
    pub async fn start_asking(
        drivers: impl FnOnce(PendingPermissions) -> Arc<dyn Drivers>,
    ) -> Self {
        Self::start_by(store::Fixture::with(Machine), r#"{"steps": []}"#, drivers).await
    }

    /// Starts another one on the same store, whose agents are run by other drivers.
    pub async fn beside_with(&self, drivers: Arc<dyn Drivers>) -> Self {
        Self::start_by(self.directory.clone(), r#"{"steps": []}"#, |_| drivers).await
    }

    /// Returns all that is stored, in whichever file.
    pub fn stored(&self) -> Vec<u8> {
        let store = self.face.adjourn.path();
        let files = std::fs::read_dir(store.parent().unwrap()).unwrap();
        let paths = files.map(|file| file.unwrap().path()).filter(|path| path.is_file());
        paths.flat_map(|path| std::fs::read(path).unwrap()).collect()
    }

    /// Starts another one on the same store.
    pub async fn beside(&self, script: &str) -> Self {
        Self::start_in(self.directory.clone(), script).await
    }

    async fn start_in(directory: store::Fixture<Machine>, script: &str) -> Self {
        let scripted = |permissions: PendingPermissions| -> Arc<dyn Drivers> {
            Arc::new(Scripted::new(Arc::new(Machine)).asking(Arc::new(permissions)))
        };
        Self::start_by(directory, script, scripted).await
    }

    async fn start_by(
        directory: store::Fixture<Machine>,
        script: &str,
        drivers: impl FnOnce(PendingPermissions) -> Arc<dyn Drivers>,
    ) -> Self {
        let permissions = PendingPermissions::default();
        let store = directory.open();
        let adjourn = embed(store.clone(), Arc::new(Machine)).unwrap();
        let drivers = drivers(permissions.clone());
        let host = adjourn.host().others(drivers).start().await.unwrap();
        let face = face(adjourn, &host, permissions, script);
        Self { directory, face, store, host: std::sync::Mutex::new(Some(host)) }
    }

    /// Makes many sessions, in one commit, and returns their names.
    pub async fn create_many(&self, count: usize) -> Vec<String> {
        let driver = self.face.options.driver.clone();
        let founding = |_| founding_by(&Machine, driver.clone());
        let all: Vec<_> = (0..count).map(founding).collect();
        let create = move |tx: &mut Transaction<'_>| -> Result<Vec<_>, CommandError> {
            all.into_iter().map(|founding| Ok(tx.create(ann(), founding)?.session.id)).collect()
        };
        let ids: Vec<SessionId> = self.face.adjourn.transact(create).await.unwrap();
        ids.iter().map(ToString::to_string).collect()
    }

    /// Returns what its clients are asked.
    pub fn permissions(&self) -> PendingPermissions {
        self.face.permissions.clone()
    }

    /// Returns the living host that keeps the agent of a session warm, of whichever process.
    pub async fn keeper_of(&self, session: &str) -> Option<HostId> {
        self.face.adjourn.keeper_of(session.parse().unwrap()).await
    }

    /// Returns how often the store was read so far.
    pub fn reads(&self) -> u64 {
        self.store.metrics().reads
    }

    /// Ends its host as a kill does: nothing is given back.
    pub async fn kill(&self) {
        let host = self.host.lock().unwrap().take();
        host.unwrap().kill().await;
    }

    /// Returns how far the journal of a session goes.
    pub fn revision(&self, session: &str) -> u64 {
        self.store.session(session.parse().unwrap()).unwrap().unwrap().revision
    }

    /// Returns what a session does, as the store has it.
    pub fn phase(&self, session: &str) -> String {
        let session = self.store.session(session.parse().unwrap()).unwrap().unwrap();
        serde_json::to_value(session.phase()).unwrap().as_str().unwrap().to_owned()
    }

    /// Waits until a session asks its question, as the store has it.
    pub async fn until_asking(&self, session: &str) {
        let asks = async {
            let id: SessionId = session.parse().unwrap();
            while self.store.session(id).unwrap().unwrap().phase() != Phase::Asking {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, asks).await.unwrap();
    }

    /// Returns what was said in a session.
    pub fn transcript(&self, session: &str) -> Vec<Message> {
        let said = self.store.transcript(session.parse().unwrap(), 0, 1024).unwrap();
        said.iter().map(|bytes| Message::decode(bytes).unwrap()).collect()
    }

    /// Connects a client that speaks version 2.
    pub async fn connect(&self) -> Client {
        self.connect_by(1 << 20, json!({})).await
    }

    /// Connects a client that speaks version 1.
    pub async fn connect_of_today(&self) -> Client {
        let mut client = connect(Arc::clone(&self.face), 1 << 20);
        let greeting = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        client.call("initialize", greeting).await;
        client.of_today = true;
        client
    }

    /// Connects a client that speaks a version and can do what it says.
    pub async fn connect_able(&self, version: u64, capabilities: Value) -> Client {
        let mut client = connect(Arc::clone(&self.face), 1 << 20);
        let field = if version == 1 { "clientCapabilities" } else { "capabilities" };
        let greeting = json!({ "protocolVersion": version, field: capabilities });
        client.call("initialize", greeting).await;
        client.of_today = version == 1;
        client
    }

    /// Connects a client that can show forms.
    pub async fn connect_with_forms(&self) -> Client {
        self.connect_by(1 << 20, json!({ "elicitation": { "form": {} } })).await
    }

    /// Connects a client that has to read if it is to be told much.
    pub async fn connect_narrowly(&self) -> Client {
        self.connect_by(1 << 10, json!({})).await
    }

    async fn connect_by(&self, width: usize, capabilities: Value) -> Client {
        let mut client = connect(Arc::clone(&self.face), width);
        let greeting = json!({ "protocolVersion": 2, "capabilities": capabilities });
        client.call("initialize", greeting).await;
        client
    }
}

/// A client, and everything that it heard.
pub struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
    serving: JoinHandle<std::io::Result<()>>,
    next: u64,
    heard: Vec<Value>,
    of_today: bool,
}

impl Client {
    async fn send(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Waits for a line, and returns it as it is.
    pub async fn next_line(&mut self) -> Option<String> {
        tokio::time::timeout(PATIENCE, self.lines.next_line()).await.ok()?.ok()?
    }

    /// Waits for a message.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.next_line().await;
            let Some(line) = line else { panic!("never {what}: {:#?}", self.heard) };
            let message: Value = serde_json::from_str(&line).unwrap();
            self.heard.push(message.clone());
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Sends a request, and waits for its result.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer(id).await["result"].clone()
    }

    /// Sends a request, and returns its id.
    pub async fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Waits for the answer to a request.
    pub async fn answer(&mut self, id: u64) -> Value {
        let answer = |message: &Value| message["id"] == id && message.get("method").is_none();
        self.until("an answer", answer).await
    }

    /// Waits for an answer to whichever request.
    pub async fn any_answer(&mut self) -> Value {
        self.until("an answer", |message| message.get("method").is_none()).await
    }

    /// Waits for a request or a notification.
    pub async fn told(&mut self, method: &str) -> Value {
        self.until(method, |message| message["method"] == method).await
    }

    /// Waits for a state of the foreground.
    pub async fn until_state(&mut self, state: &str) {
        self.until(state, |message| message["params"]["update"]["state"] == state).await;
    }

    /// Sends a line as it is.
    pub async fn line(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Answers a request with an error.
    pub async fn refuse(&mut self, id: &Value, message: &str) {
        let error = json!({ "code": -32603, "message": message });
        self.send(json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
    }

    /// Answers a request of the agent.
    pub async fn reply(&mut self, id: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }

    /// Makes a session.
    pub async fn new_session(&mut self) -> String {
        let made = self.call("session/new", json!({ "cwd": "/tmp", "mcpServers": [] })).await;
        made["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt, and waits for its answer.
    pub async fn prompt(&mut self, session: &str) {
        let prompt = json!([{ "type": "text", "text": "go" }]);
        self.call("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
    }

    /// Returns whether it speaks version 1.
    pub const fn is_of_today(&self) -> bool {
        self.of_today
    }

    /// Returns what it heard so far.
    pub fn heard(&self) -> &[Value] {
        &self.heard
    }

    /// Goes away, and waits until the other end has noticed.
    pub async fn leave(self) {
        drop((self.lines, self.output));
        let _ = self.serving.await.unwrap();
    }
}
