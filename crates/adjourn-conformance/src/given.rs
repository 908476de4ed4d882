//! What a driver was given for each of its steps: not what the log has, but what reached it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use adjourn_core::Session;
use adjourn_core::command::RunEnd;
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::ledger::CallId;
use adjourn_driver::{
    Block, BoxFuture, BoxStream, Call, CallPart, Client, Continuation, Control, Driver, Drivers,
    Environment, ModelMessage, ModelRole, Opening, Part, Reply, Step,
};
use serde_json::{Map, Value, json};

/// Makes the same drivers as others do, and takes down what each step is given.
#[derive(Clone)]
pub struct Recording {
    inner: Arc<dyn Drivers>,
    record: Arc<Mutex<Record>>,
}

/// What was given so far.
#[derive(Debug, Default)]
struct Record {
    steps: Vec<Value>,
    problems: Vec<String>,
}

impl Recording {
    /// Records what the drivers that `inner` makes are given.
    pub fn of(inner: Arc<dyn Drivers>) -> Self {
        Self { inner, record: Arc::default() }
    }

    /// Returns what each step was given, in order, as a scenario's `given` has it.
    ///
    /// # Errors
    /// A step was given what no model could be asked with.
    pub fn given(&self) -> Result<Vec<Value>, String> {
        let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        match record.problems.first() {
            Some(problem) => Err(problem.clone()),
            None => Ok(record.steps.clone()),
        }
    }
}

impl Drivers for Recording {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        let inner = self.inner.make(spec)?;
        Ok(Box::new(Recorded { inner, record: Arc::clone(&self.record) }))
    }

    fn lacks(&self, session: SessionId, spec: &DriverSpec) -> Option<String> {
        self.inner.lacks(session, spec)
    }

    fn lacks_values(&self, spec: &DriverSpec, environment: &Environment) -> Option<String> {
        self.inner.lacks_values(spec, environment)
    }

    fn environment(&self, spec: &DriverSpec) -> Environment {
        self.inner.environment(spec)
    }

    fn client(&self, session: SessionId) -> Arc<dyn Client> {
        self.inner.client(session)
    }
}

struct Recorded {
    inner: Box<dyn Driver>,
    record: Arc<Mutex<Record>>,
}

impl Driver for Recorded {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        {
            let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
            let number = record.steps.len() + 1;
            let (given, problem) = look(&step);
            record.steps.push(given);
            record
                .problems
                .extend(problem.map(|problem| format!("given to step {number}: {problem}")));
        }
        self.inner.step(step)
    }

    fn ends_steps_itself(&self) -> bool {
        self.inner.ends_steps_itself()
    }

    fn parks_unasked(&self) -> bool {
        self.inner.parks_unasked()
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        self.inner.call(call)
    }

    fn finish(&mut self, session: &Session) -> Option<RunEnd> {
        self.inner.finish(session)
    }

    fn control(&mut self, control: Control) -> BoxFuture<'static, Reply> {
        self.inner.control(control)
    }

    fn keep(&mut self) -> bool {
        self.inner.keep()
    }

    fn kill(&mut self) -> BoxFuture<'static, ()> {
        self.inner.kill()
    }
}

/// Returns what a step is given, and what is wrong with it.
fn look(step: &Step) -> (Value, Option<String>) {
    let opening = match &step.opening {
        Opening::Prompt => "prompt",
        Opening::Wake(_) => "wake",
        Opening::Next => "next",
    };
    let continues = step.continues.as_ref().map(|continuation| {
        let names = |calls: &[(CallId, String)]| -> Vec<_> {
            calls.iter().map(|(_, tool)| tool.clone()).collect()
        };
        let Continuation { ended, unknown, not_run } = continuation;
        json!({ "ended": names(ended), "unknown": names(unknown), "notRun": names(not_run) })
    });
    let (messages, problem) = match step.transcript.messages() {
        Ok(view) => {
            let problem = providers_take(&view).err();
            (shown(&view), problem.map(|problem| format!("{problem}: {view:?}")))
        }
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let mut given = json!({ "opening": opening, "continues": continues, "messages": messages });
    let options =
        step.session.options.iter().map(|option| (option.id.clone(), json!(option.value)));
    let options: Map<String, Value> = options.collect();
    if let (false, Some(given)) = (options.is_empty(), given.as_object_mut()) {
        given.insert("options".to_owned(), options.into());
    }
    (given, problem)
}

/// Returns a view as a scenario has it: calls go by their tools.
fn shown(view: &[ModelMessage]) -> Vec<Value> {
    let mut tools = HashMap::new();
    let mut messages = Vec::new();
    for message in view {
        tools.extend(message.calls.iter().map(|call| (&call.id, call.tool.as_str())));
        let words = |thought: bool| {
            let blocks = message.blocks.iter().filter(|block| block.is_thought() == thought);
            blocks.filter_map(Block::words).collect::<Vec<_>>().join("\n")
        };
        let role = match message.role {
            ModelRole::User => "user",
            ModelRole::Agent => "agent",
            ModelRole::Tool => "tool",
        };
        let mut fields = Map::from_iter([("role".to_owned(), role.into())]);
        let mut put = |name: &str, value: Value, is_there: bool| {
            if is_there {
                fields.insert(name.to_owned(), value);
            }
        };
        let (text, thought) = (words(false), words(true));
        put("text", text.as_str().into(), !text.is_empty());
        put("thought", thought.as_str().into(), !thought.is_empty());
        let calls: Vec<_> = message.calls.iter().map(|call| call.tool.as_str()).collect();
        put("calls", json!(calls), !calls.is_empty());
        let arguments: Vec<_> = message.calls.iter().map(|call| &call.arguments).collect();
        put("arguments", json!(arguments), arguments.iter().any(|given| !given.is_null()));
        let answers = message.answers.as_ref().and_then(|call| tools.get(call));
        put("answers", json!(answers), answers.is_some());
        put("structured", json!(message.structured), message.structured.is_some());
        put("error", true.into(), message.is_error);
        messages.push(Value::Object(fields));
    }
    messages
}

/// Returns whether every model provider takes a view as a conversation.
///
/// # Errors
/// What one of them would refuse.
pub fn providers_take(view: &[ModelMessage]) -> Result<(), String> {
    let mut ids = HashSet::new();
    // Calls whose results are still to come.
    let mut owed = std::collections::VecDeque::new();
    let mut last = None;
    for (index, message) in view.iter().enumerate() {
        let wrong = |problem: &str| Err(format!("message {}: {problem}", index + 1));
        let blank = |block: &Block| block.words().is_some_and(|words| words.trim().is_empty());
        if message.blocks.iter().any(blank) {
            return wrong("a block without words");
        }
        // Not every adapter sends thoughts.
        if message.calls.is_empty() && message.blocks.iter().all(Block::is_thought) {
            return wrong("it says nothing");
        }
        match (message.role, &message.answers) {
            (ModelRole::Tool, Some(answers)) if owed.front() == Some(answers) => {
                owed.pop_front();
            }
            (ModelRole::Tool, _) => return wrong("a result that is not the next one"),
            (_, Some(_)) => return wrong("it answers a call and is no result"),
            (_, None) if !owed.is_empty() => {
                return wrong("it stands between a call and its result");
            }
            (ModelRole::Agent, None) if last.is_none() => return wrong("the agent speaks first"),
            (ModelRole::Agent, None) if last == Some(ModelRole::Agent) => {
                return wrong("two messages of the agent's");
            }
            (ModelRole::Agent | ModelRole::User, None) => {}
        }
        if message.role != ModelRole::Agent && !message.calls.is_empty() {
            return wrong("only an agent asks for calls");
        }
        if message.role == ModelRole::Agent
            && message.calls.is_empty()
            && message.blocks.last().is_some_and(Block::is_thought)
        {
            return wrong("it ends in a thought");
        }
        for call in &message.calls {
            if !ids.insert(&call.id) {
                return wrong("the id of one of its calls is another's, too");
            }
            owed.push_back(call.id.clone());
        }
        last = Some(message.role);
    }
    match owed.front() {
        Some(call) => Err(format!("call {call} has no result")),
        None => Ok(()),
    }
}
