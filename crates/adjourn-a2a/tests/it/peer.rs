//! A peer: asks a face, and reads what it is told.

use adjourn::Adjourn;
use adjourn::core::carry::Budget;
use adjourn::core::driver::DriverSpec;
use adjourn::store::Sqlite;
use adjourn_a2a::rpc::{self, Headers, Reply};
use adjourn_a2a::{Activated, Agent, Caller, Face, Profile, Scope, TaskStream, Told};
use adjourn_testkit::host::Fixture;
use adjourn_testkit::store::TENANT;
use serde_json::{Value, json};

/// A peer of an agent.
pub struct Peer {
    pub face: Face<Sqlite>,
    pub caller: Caller,
    pub activated: Activated,
    /// Where it reaches the agent, if it has shown a token.
    pub url: Option<&'static str>,
}

/// What a peer has activated that knows paused states.
pub const STATES: Activated = Activated { pause: true, states: true };

impl Peer {
    /// A peer that may do everything, and knows nothing of pauses.
    pub fn new(fixture: &Fixture, script: &str) -> Self {
        Self::on(fixture.adjourn(), script)
    }

    /// The same, of a server that has a store open.
    pub fn on(adjourn: Adjourn, script: &str) -> Self {
        let agent = Agent {
            name: "rebase-worker".to_owned(),
            description: "Rebases branches".to_owned(),
            driver: DriverSpec::script(script),
            budget: Budget::default(),
            pausable: true,
        };
        Self {
            face: Face::new(adjourn, agent, Profile::Adjourn),
            caller: caller(TENANT, &Scope::ALL),
            activated: Activated::default(),
            url: None,
        }
    }

    /// A peer that knows paused states.
    pub fn knowing(fixture: &Fixture, script: &str) -> Self {
        Self { activated: STATES, ..Self::new(fixture, script) }
    }

    async fn reply(&self, method: &str, params: Value, last_event: Option<&str>) -> Reply<Sqlite> {
        let request =
            json!({ "jsonrpc": "2.0", "id": "req-1", "method": method, "params": params });
        let headers =
            Headers { activated: self.activated, last_event, url: self.url, ..Headers::default() };
        self.face.rpc(&self.caller, headers, request.to_string().as_bytes()).await
    }

    /// Asks for something, and returns the whole answer.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        match self.reply(method, params, None).await {
            Reply::Object { json, .. } => adjourn::core::json::stored_text(&json).unwrap(),
            Reply::Stream(..) => panic!("{method} is answered by a stream"),
        }
    }

    /// Asks for something that is granted, and returns the result.
    pub async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params).await;
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Asks for something that is refused, and returns the code and the reason.
    pub async fn refused(&self, method: &str, params: Value) -> (i64, String) {
        let answer = self.ask(method, params).await;
        let error = &answer["error"];
        let reason = error["data"][0]["reason"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("{reason}: ")), "{message}");
        (error["code"].as_i64().unwrap(), reason.to_owned())
    }

    /// Watches something.
    pub async fn watch(&self, method: &str, params: Value, last_event: Option<&str>) -> Watch {
        match self.reply(method, params, last_event).await {
            Reply::Stream(id, stream) => Watch { id, stream },
            Reply::Object { json, .. } => panic!("{method} is answered by {json}"),
        }
    }

    /// Begins a task, does not wait for it, and returns its id.
    pub async fn begin(&self) -> String {
        let params =
            json!({ "message": message("m1", "go"), "configuration": { "blocking": false } });
        let task = self.result("message/send", params).await;
        task["id"].as_str().unwrap().to_owned()
    }

    /// Reads a task in the words of 0.3.
    pub async fn get(&self, task: &str) -> Value {
        self.result("tasks/get", json!({ "id": task })).await
    }

    /// Pauses a task, and returns the handle.
    pub async fn pause(&self, task: &str) -> String {
        let params = json!({ "taskId": task, "reason": "operator review" });
        let paused = self.result("tasks/pause", params).await;
        paused["handle"].as_str().unwrap().to_owned()
    }
}

/// A stream of events.
pub struct Watch {
    id: Value,
    stream: Box<TaskStream<Sqlite>>,
}

impl Watch {
    /// Returns the next event with its id; nothing at the end.
    pub async fn next(&mut self) -> Option<(String, Value)> {
        let event = self.stream.next().await.unwrap()?;
        let told = rpc::event(&self.id, &event.told);
        Some((event.id.to_string(), adjourn::core::json::stored(told.as_bytes()).unwrap()))
    }

    /// Returns everything up to the end.
    pub async fn rest(&mut self) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }

    /// Returns the next event that is no notification of the proposal.
    pub async fn update(&mut self) -> Value {
        loop {
            let event = self.stream.next().await.unwrap().unwrap();
            if let Told::Update(update) = event.told {
                return adjourn::core::json::stored(update.as_bytes()).unwrap();
            }
        }
    }
}

pub fn caller(tenant: &str, scopes: &[Scope]) -> Caller {
    Caller {
        name: "coordinator".into(),
        tenant: tenant.into(),
        scopes: scopes.iter().copied().collect(),
    }
}

pub fn message(id: &str, text: &str) -> Value {
    json!({ "kind": "message", "messageId": id, "role": "user",
            "parts": [{ "kind": "text", "text": text }] })
}
