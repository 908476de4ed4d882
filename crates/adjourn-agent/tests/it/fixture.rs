//! What the tests share: a clock, a model, tools, and ways to look at a run.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn_agent::events::{AgentError, UserInputRequested};
use adjourn_agent::{
    Agent, AgentBuilder, AgentEvent, Clock, FunctionTool, Key, Keys, Model, ModelError, ModelPart,
    ModelRequest, Run, ScriptedModel, SuspensionRecord, ToolError,
};
use adjourn_core::time::Timestamp;
use adjourn_driver::{BoxFuture, BoxStream, emitting};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The moment at which every test begins: 16 November 2026.
pub const BEGINNING: i64 = 1_794_787_200_000;

/// A clock that goes by tokio's, which tests hold.
#[derive(Clone)]
pub struct TestClock {
    begun: Instant,
}

impl TestClock {
    pub fn new() -> Self {
        Self { begun: Instant::now() }
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.begun.elapsed().as_millis()).unwrap();
        Timestamp::from_millis(BEGINNING + passed)
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// Keys that every process of a test would have.
pub fn keys() -> Keys {
    Keys::only(key(1))
}

pub fn key(number: u8) -> Key {
    Key::from_secrets(Timestamp::from_millis(BEGINNING), &[number; 32], &[number; 32])
}

/// A model that gives these answers.
pub fn model(answers: Value) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::parse(&answers.to_string()).unwrap())
}

/// An agent with the keys of the test, and a clock.
pub fn agent(model: &Arc<ScriptedModel>) -> AgentBuilder {
    Agent::builder(Arc::clone(model)).keys(keys()).clock(Arc::new(TestClock::new()))
}

/// The names of calls that really ran.
#[derive(Clone, Default)]
pub struct Ran(Arc<Mutex<Vec<String>>>);

impl Ran {
    pub fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn push(&self, name: &str) {
        self.0.lock().unwrap().push(name.to_owned());
    }

    /// A tool that takes note that it ran.
    pub fn tool(&self, name: &'static str) -> FunctionTool {
        let ran = self.clone();
        FunctionTool::new(name, "Takes note.", move |_: Value| {
            ran.push(name);
            async move { Ok::<_, ToolError>(format!("{name} ran")) }
        })
    }
}

/// Runs to the end, and returns every event.
pub async fn events(mut run: Run) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    events
}

/// Returns the tags of events, without those that tell how far words and costs are.
pub fn tags(events: &[AgentEvent]) -> Vec<&'static str> {
    let shown = events.iter().map(AgentEvent::tag);
    shown.filter(|tag| !matches!(*tag, "state_snapshot" | "text_delta")).collect()
}

/// Returns the question that a run ended with.
pub fn question(events: &[AgentEvent]) -> UserInputRequested {
    match events.last() {
        Some(AgentEvent::UserInputRequested(request)) => request.clone(),
        other => panic!("the run ended with {other:?}"),
    }
}

/// Runs until the agent asks, and returns the record, as a database would give it back.
pub async fn suspended(run: Run) -> SuspensionRecord {
    let asked = question(&events(run).await);
    stored(&asked.suspension_record)
}

/// Writes a record to JSON and reads it again.
pub fn stored(record: &SuspensionRecord) -> SuspensionRecord {
    let blob: Value = serde_json::to_value(record).unwrap();
    serde_json::from_value(blob).unwrap()
}

/// Returns the words of a run.
pub fn text(events: &[AgentEvent]) -> String {
    let word = |event: &AgentEvent| match event {
        AgentEvent::TextDelta(delta) => Some(delta.text.clone()),
        _ => None,
    };
    events.iter().filter_map(word).collect()
}

/// A model that says each of these parts after a while, whatever it is asked.
pub struct SlowModel(pub Vec<(u64, ModelPart)>);

impl Model for SlowModel {
    fn id(&self) -> &str {
        "slow"
    }

    fn respond(&self, _: ModelRequest) -> BoxStream<'static, Result<ModelPart, ModelError>> {
        let parts = self.0.clone();
        emitting(|out| async move {
            for (seconds, part) in parts {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                out.emit(Ok(part)).await;
            }
        })
    }
}

/// A model that asks a question, and has done when it is answered.
pub fn asks() -> Value {
    json!([{ "calls": [ask("Which table?")] }, { "text": "It has 3 rows." }])
}

/// A call of `ask_user`.
pub fn ask(question: &str) -> Value {
    json!({ "tool": "ask_user", "arguments": { "question": question } })
}

/// Changes the JSON of a record.
pub fn edited(record: &SuspensionRecord, edit: impl FnOnce(&mut Value)) -> SuspensionRecord {
    let mut blob = serde_json::to_value(record).unwrap();
    edit(&mut blob);
    serde_json::from_value(blob).unwrap()
}

/// Returns what a record holds, as JSON.
pub fn payload(record: &SuspensionRecord) -> Value {
    let blob = serde_json::to_value(record).unwrap();
    adjourn_core::json::stored(blob.get("payload").unwrap().as_str().unwrap().as_bytes()).unwrap()
}

/// Returns the errors of a run.
pub fn errors(events: &[AgentEvent]) -> Vec<AgentError> {
    let error = |event: &AgentEvent| match event {
        AgentEvent::Error(error) => Some(error.clone()),
        _ => None,
    };
    events.iter().filter_map(error).collect()
}

/// Returns the words of the last message that a model was given.
pub fn last_words(model: &ScriptedModel) -> String {
    let request = model.requests().pop().unwrap();
    let blocks = &request.messages.last().unwrap().blocks;
    blocks.iter().filter_map(|block| block.words()).collect()
}
