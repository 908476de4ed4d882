//! A process with a host and any number of clients.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use adjourn::clock::Machine;
use adjourn::doorbell::Hosts;
use adjourn::script::{Script, Scripted};
use adjourn::{Adjourn, Notes, RunningHost};
use adjourn_acp::{Face, OnDisconnect, Options, PendingPermissions, Profile, StatusWords, Wire};
use adjourn_core::Founding;
use adjourn_core::actor::{self, Actor};
use adjourn_core::carry::Budget;
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::SessionId;
use adjourn_core::session::Phase;
use adjourn_core::time::Timestamp;
use adjourn_driver::{Drivers, Message};
use adjourn_record::keys::{Key, Keys};
use adjourn_store::{CommandError, Sqlite, Store as _, Transaction, sqlite};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio::task::JoinHandle;

/// How long something may take that should take no time.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct Process {
    /// Held, so that it is there as long as the store.
    directory: Arc<TempDir>,
    face: Arc<Face<Sqlite>>,
    /// Its host, until it is killed.
    host: std::sync::Mutex<Option<RunningHost<Sqlite>>>,
}

impl Process {
    pub async fn start(script: &str) -> Self {
        Self::start_in(Arc::new(TempDir::new().unwrap()), script).await
    }

    /// Starts one whose agents are run by other drivers.
    pub async fn start_with(drivers: Arc<dyn Drivers>) -> Self {
        let directory = Arc::new(TempDir::new().unwrap());
        Self::start_by(directory, r#"{"steps": []}"#, |_| drivers).await
    }

    /// Starts one whose agents are run by drivers that ask clients.
    pub async fn start_asking(
        drivers: impl FnOnce(PendingPermissions) -> Arc<dyn Drivers>,
    ) -> Self {
        let directory = Arc::new(TempDir::new().unwrap());
        Self::start_by(directory, r#"{"steps": []}"#, drivers).await
    }

    /// Starts another one on the same store.
    pub async fn beside(&self, script: &str) -> Self {
        Self::start_in(Arc::clone(&self.directory), script).await
    }

    async fn start_in(directory: Arc<TempDir>, script: &str) -> Self {
        let scripted = |permissions: PendingPermissions| -> Arc<dyn Drivers> {
            Arc::new(Scripted::new(Arc::new(Machine)).asking(Arc::new(permissions)))
        };
        Self::start_by(directory, script, scripted).await
    }

    async fn start_by(
        directory: Arc<TempDir>,
        script: &str,
        drivers: impl FnOnce(PendingPermissions) -> Arc<dyn Drivers>,
    ) -> Self {
        let key = Key::from_secrets(Timestamp::from_millis(0), &[7; 32], &[8; 32]);
        let path = directory.path().join("store.db");
        let options = sqlite::Options::new(path, Arc::new(Machine), Keys::only(key));
        let store = Sqlite::open(options).unwrap();
        let (hosts, permissions) = (Hosts::beside(store.path()), PendingPermissions::default());
        let adjourn = Adjourn::on(store, hosts, Arc::new(Machine)).unwrap().in_tenant("acme");
        let drivers = drivers(permissions.clone());
        let host = adjourn.host().others(drivers).start().await.unwrap();
        let claimant = host.claimant().clone();
        let options = Options {
            driver: DriverKind::Script { source: script.to_owned() },
            needs: Script::parse(script).unwrap().needs(),
            choices: Script::parse(script).unwrap().options(),
            profile: Profile::Adjourn,
            status: StatusWords::ByVersion,
            on_disconnect: OnDisconnect::Continue,
            cancel_grace: None,
        };
        let notes = Notes::default();
        let face = Arc::new(Face { adjourn, claimant, permissions, notes, options });
        Self { directory, face, host: std::sync::Mutex::new(Some(host)) }
    }

    /// Makes many sessions, in one commit, and returns their names.
    pub async fn create_many(&self, count: usize) -> Vec<String> {
        let founding = |_| Founding {
            id: SessionId::new(self.face.adjourn.clock().uuid()),
            tenant: self.face.adjourn.tenant().to_owned(),
            labels: BTreeMap::new(),
            parent: None,
            driver: DriverSpec { kind: self.face.options.driver.clone(), ..DriverSpec::script("") },
            budget: Budget::default(),
            title: None,
        };
        let all: Vec<_> = (0..count).map(founding).collect();
        let create = move |tx: &mut Transaction<'_>| -> Result<Vec<_>, CommandError> {
            let by = || Actor::new(actor::Face::Library, "test");
            all.into_iter().map(|founding| Ok(tx.create(by(), founding)?.session.id)).collect()
        };
        let ids: Vec<SessionId> = self.face.adjourn.store().transact(create).await.unwrap();
        ids.iter().map(ToString::to_string).collect()
    }

    /// Returns how often the store was read so far.
    pub fn reads(&self) -> u64 {
        self.face.adjourn.store().metrics().reads
    }

    /// Ends its host as a kill does: nothing is given back.
    pub async fn kill(&self) {
        let host = self.host.lock().unwrap().take();
        host.unwrap().kill().await;
    }

    /// Returns how far the journal of a session goes.
    pub fn revision(&self, session: &str) -> u64 {
        self.face.adjourn.store().session(session.parse().unwrap()).unwrap().unwrap().revision
    }

    /// Returns what a session does, as the store has it.
    pub fn phase(&self, session: &str) -> String {
        let session = self.face.adjourn.store().session(session.parse().unwrap()).unwrap().unwrap();
        serde_json::to_value(session.phase()).unwrap().as_str().unwrap().to_owned()
    }

    /// Waits until a session asks its question, as the store has it.
    pub async fn until_asking(&self, session: &str) {
        let asks = async {
            while self
                .face
                .adjourn
                .store()
                .session(session.parse().unwrap())
                .unwrap()
                .unwrap()
                .phase()
                != Phase::Asking
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, asks).await.unwrap();
    }

    /// Returns what was said in a session.
    pub fn transcript(&self, session: &str) -> Vec<Message> {
        let said = self.face.adjourn.store().transcript(session.parse().unwrap(), 0, 1024).unwrap();
        said.iter().map(|bytes| Message::decode(bytes).unwrap()).collect()
    }

    /// Connects a client that speaks version 2.
    pub async fn connect(&self) -> Client {
        self.connect_by(1 << 20, json!({})).await
    }

    /// Connects a client that speaks version 1.
    pub async fn connect_of_today(&self) -> Client {
        let mut client = self.connect_unheard(1 << 20);
        let greeting = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        client.call("initialize", greeting).await;
        client.of_today = true;
        client
    }

    /// Connects a client that speaks a version and can do what it says.
    pub async fn connect_able(&self, version: u64, capabilities: Value) -> Client {
        let mut client = self.connect_unheard(1 << 20);
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
        let mut client = self.connect_unheard(width);
        let greeting = json!({ "protocolVersion": 2, "capabilities": capabilities });
        client.call("initialize", greeting).await;
        client
    }

    /// Connects a client that has not said which version it speaks.
    fn connect_unheard(&self, width: usize) -> Client {
        let (ours, theirs) = tokio::io::duplex(width);
        let (input, output) = tokio::io::split(theirs);
        let (stop, drain) = (std::future::pending(), std::future::ready(()));
        let face = Arc::clone(&self.face);
        let wire = Wire::new(input, output);
        let serving = tokio::spawn(adjourn_acp::serve(face, wire, stop, drain));
        let (input, output) = tokio::io::split(ours);
        let lines = BufReader::new(input).lines();
        Client { lines, output, serving, next: 1, heard: Vec::new(), of_today: false }
    }
}

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

    /// Waits for a message.
    pub async fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
            let Ok(Ok(Some(line))) = line else { panic!("never {what}: {:#?}", self.heard) };
            let message: Value = serde_json::from_str(&line).unwrap();
            self.heard.push(message.clone());
            if wanted(&message) {
                return message;
            }
        }
    }

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

    pub async fn reply(&mut self, id: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }

    pub async fn new_session(&mut self) -> String {
        let made = self.call("session/new", json!({ "cwd": "/tmp", "mcpServers": [] })).await;
        made["sessionId"].as_str().unwrap().to_owned()
    }

    pub async fn prompt(&mut self, session: &str) {
        let prompt = json!([{ "type": "text", "text": "go" }]);
        self.call("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
    }

    /// Returns whether it speaks version 1.
    pub const fn is_of_today(&self) -> bool {
        self.of_today
    }

    pub fn heard(&self) -> &[Value] {
        &self.heard
    }

    /// Goes away, and waits until the other end has noticed.
    pub async fn leave(self) {
        drop((self.lines, self.output));
        let _ = self.serving.await.unwrap();
    }
}
