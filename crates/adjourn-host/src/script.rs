//! The scripted driver: an agent whose every step is written down, for demos, tests and benchmarks.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::carry::{Notes, Usage};
use adjourn_core::command::{CallResult, Question, RunEnd};
use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::driver::{DriverKind, DriverSpec, Need};
use adjourn_core::id::SessionId;
use adjourn_core::json;
use adjourn_core::ledger::{AskedCall, CallId};
use adjourn_core::limits;
use adjourn_core::rejected::Rejected;
use adjourn_core::session::Outcome;
use serde::Deserialize;
use serde_json::Value;

use crate::clock::{BoxFuture, Clock};
use crate::driver::{Driver, Drivers, Returned, Thought, Wish};
use crate::permission::{Permission, Permissions};

/// The most items a run may have, and the most runs a script.
const MOST: usize = 10_000;

/// Why a script is not one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ScriptError {
    /// Where.
    pub path: String,
    /// What is wrong there.
    pub problem: String,
}

/// A script: what the agent does in each run.
#[derive(Debug, Clone)]
pub struct Script {
    runs: Vec<Vec<Item>>,
    /// Whether the one run is repeated for every prompt.
    repeats: bool,
}

/// One step of a script.
#[derive(Debug, Clone)]
enum Item {
    Say(Say),
    Tools { tools: Vec<Tool>, at_once: bool },
    Await { reason: String, summary: Option<String>, conditions: Option<Conditions> },
    Ask(Question),
    Title(String),
    Fail(String),
    End,
}

/// What the agent says, and how long its model takes for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Say {
    text: String,
    #[serde(default)]
    ms: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tool {
    name: String,
    #[serde(default)]
    ms: u64,
    #[serde(default)]
    idempotent: bool,
    /// Whether somebody has to allow it first.
    #[serde(default)]
    permission: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    runs: Option<Vec<Vec<Value>>>,
    steps: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Written {
    Say(WrittenSay),
    Tool(Tool),
    Tools(Vec<Tool>),
    Sequence(Vec<Tool>),
    Await(WrittenAwait),
    Ask(WrittenAsk),
    Title(String),
    Fail(String),
    End(bool),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenSay {
    Text(String),
    Slowly(Say),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAwait {
    reason: String,
    summary: Option<String>,
    #[serde(default)]
    conditions: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAsk {
    question: String,
    context: Option<String>,
    #[serde(default)]
    choices: Vec<String>,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// Where it is wrong, and how.
    pub fn parse(source: &str) -> Result<Self, ScriptError> {
        let wrong = |path: String, problem: String| ScriptError { path, problem };
        let parsed: Source = json::read(source.as_bytes(), limits::DRIVER_SPEC_BYTES)
            .map_err(|error| wrong("script".to_owned(), error.to_string()))?;
        let (runs, repeats, name) = match (parsed.runs, parsed.steps) {
            (Some(runs), None) => (runs, false, "runs"),
            (None, Some(steps)) => (vec![steps], true, "steps"),
            _ => {
                let problem = "expected either `runs` or `steps`".to_owned();
                return Err(wrong("script".to_owned(), problem));
            }
        };
        if runs.len() > MOST || runs.iter().any(|run| run.len() > MOST) {
            return Err(wrong(name.to_owned(), format!("more than {MOST}")));
        }
        let mut script = Self { runs: Vec::new(), repeats };
        for (number, run) in runs.into_iter().enumerate() {
            let mut items = Vec::new();
            for (index, value) in run.into_iter().enumerate() {
                let path = if repeats {
                    format!("steps[{index}]")
                } else {
                    format!("runs[{number}][{index}]")
                };
                items.push(
                    Item::parse(value)
                        .map_err(|(inner, problem)| wrong(format!("{path}{inner}"), problem))?,
                );
            }
            script.runs.push(items);
        }
        Ok(script)
    }

    /// Returns how many runs there are; none if the one run is repeated.
    pub fn runs(&self) -> Option<usize> {
        (!self.repeats).then_some(self.runs.len())
    }

    /// Returns what a session with this script needs from a connected client.
    pub fn needs(&self) -> BTreeSet<Need> {
        let asks = self.runs.iter().flatten().any(|item| match item {
            Item::Tools { tools, .. } => tools.iter().any(|tool| tool.permission),
            _ => false,
        });
        asks.then_some(Need::Permissions).into_iter().collect()
    }

    fn run(&self, number: usize) -> Option<&[Item]> {
        let number = if self.repeats { 0 } else { number };
        self.runs.get(number).map(Vec::as_slice)
    }
}

impl Item {
    fn parse(value: Value) -> Result<Self, (String, String)> {
        let here = |problem: String| (String::new(), problem);
        let written: Written =
            serde_json::from_value(value).map_err(|error| here(error.to_string()))?;
        Ok(match written {
            Written::Say(WrittenSay::Text(text)) => Self::Say(Say { text, ms: 0 }),
            Written::Say(WrittenSay::Slowly(say)) => Self::Say(say),
            Written::Tool(tool) => {
                within(".tool", limits::name("name", &tool.name))?;
                Self::Tools { tools: vec![tool], at_once: true }
            }
            Written::Tools(tools) => {
                check_tools(".tools", &tools)?;
                Self::Tools { tools, at_once: true }
            }
            Written::Sequence(tools) => {
                check_tools(".sequence", &tools)?;
                Self::Tools { tools, at_once: false }
            }
            Written::Await(WrittenAwait { reason, summary, conditions }) => {
                within(".await", check_wait(&reason, summary.as_deref()))?;
                let conditions =
                    Conditions::parse(&conditions, Spelling::Camel).map_err(|invalid| {
                        let invalid = invalid.within("conditions");
                        (format!(".await.{}", invalid.path), invalid.problem)
                    })?;
                Self::Await { reason, summary, conditions }
            }
            Written::Ask(WrittenAsk { question, context, choices }) => {
                let question =
                    Question { question, context, choices, originating_failure_kind: None };
                within(".ask", check_question(&question))?;
                Self::Ask(question)
            }
            Written::Title(title) => {
                within("", limits::name("title", &title))?;
                Self::Title(title)
            }
            Written::Fail(why) => {
                within("", limits::text("fail", &why, limits::REASON_BYTES))?;
                Self::Fail(why)
            }
            Written::End(true) => Self::End,
            Written::End(false) => return Err((".end".to_owned(), "expected true".to_owned())),
        })
    }
}

/// Says where in an item something is that the lifecycle would refuse when the item is run.
fn within(place: &str, checked: Result<(), Rejected>) -> Result<(), (String, String)> {
    checked.map_err(|refused| match refused {
        Rejected::Invalid { path, problem } => (format!("{place}.{path}"), problem),
        other => (place.to_owned(), other.to_string()),
    })
}

fn check_tools(place: &str, tools: &[Tool]) -> Result<(), (String, String)> {
    let wrong = |problem: String| Err((place.to_owned(), problem));
    if tools.is_empty() {
        return wrong("must not be empty".to_owned());
    }
    if tools.len() > limits::OPEN_CALLS {
        return wrong(format!("more than {} tools in one item", limits::OPEN_CALLS));
    }
    for (index, tool) in tools.iter().enumerate() {
        within(&format!("{place}[{index}]"), limits::name("name", &tool.name))?;
    }
    Ok(())
}

fn check_wait(reason: &str, summary: Option<&str>) -> Result<(), Rejected> {
    if reason.trim().is_empty() {
        return Err(blank("reason"));
    }
    limits::text("reason", reason, limits::REASON_BYTES)?;
    limits::optional("summary", summary, limits::SUMMARY_BYTES)
}

fn check_question(question: &Question) -> Result<(), Rejected> {
    if question.question.trim().is_empty() {
        return Err(blank("question"));
    }
    limits::json("question", question, limits::QUESTION_BYTES)
}

fn blank(path: &str) -> Rejected {
    Rejected::Invalid { path: path.to_owned(), problem: "must not be empty".to_owned() }
}

/// A place in a script: the next item of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    run: usize,
    item: usize,
}

impl Place {
    /// Returns where the session has got to.
    fn of(session: &Session) -> Self {
        let place = session.driver_state.as_deref().and_then(Self::parse).unwrap_or_default();
        // A run that was canceled never came to its end; the next prompt does not go on with it.
        let fresh = session.run().is_some_and(|run| run.turn == 1 && run.progress.iterations == 0);
        if fresh && place.item > 0 { place.next_run() } else { place }
    }

    /// Returns the place of the item that a call belongs to.
    fn of_call(call: &CallId) -> Option<Self> {
        call.0.split('-').next().and_then(Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let (run, item) = text.split_once('.')?;
        Some(Self { run: run.parse().ok()?, item: item.parse().ok()? })
    }

    const fn next(self) -> Self {
        Self { run: self.run, item: self.item + 1 }
    }

    const fn next_run(self) -> Self {
        Self { run: self.run + 1, item: 0 }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.run, self.item)
    }
}

/// Drives a session by its script.
pub struct ScriptDriver {
    script: Script,
    clock: Arc<dyn Clock>,
    permissions: Option<Arc<dyn Permissions>>,
}

impl ScriptDriver {
    /// Makes a driver that refuses whatever has to be allowed.
    pub const fn new(script: Script, clock: Arc<dyn Clock>) -> Self {
        Self { script, clock, permissions: None }
    }

    /// Returns what the script says of a call.
    fn tool(&self, call: &AskedCall) -> Option<&Tool> {
        // By its number: two tools may have the same name.
        let index: usize = call.id.0.split('-').nth(1)?.parse().ok()?;
        match self.item(Place::of_call(&call.id)?)? {
            Item::Tools { tools, .. } => tools.get(index),
            _ => None,
        }
    }

    fn item(&self, place: Place) -> Option<&Item> {
        self.script.run(place.run)?.get(place.item)
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'static, ()> {
        self.clock.sleep_until(self.clock.now().after(Duration::from_millis(ms)))
    }

    /// How the run ends if nothing comes at `place`.
    fn end_at(&self, place: Place) -> Option<RunEnd> {
        self.item(place).is_none().then_some(RunEnd {
            outcome: Outcome::Completed,
            error: None,
            ends_session: false,
        })
    }
}

impl Driver for ScriptDriver {
    fn think<'a>(&'a mut self, session: &'a Session) -> BoxFuture<'a, Thought> {
        let place = Place::of(session);
        let mut thought = Thought {
            said: None,
            wish: Wish::Nothing(None),
            usage: Usage::default(),
            notes: Notes::default(),
            place: Some(place.next().to_string()),
        };
        let mut ms = 0;
        match self.item(place) {
            Some(Item::Say(say)) => {
                thought.said = Some(say.text.clone());
                ms = say.ms;
            }
            Some(Item::Tools { tools, .. }) => {
                let call = |(index, tool): (usize, &Tool)| AskedCall {
                    id: CallId(format!("{place}-{index}-{}", session.revision)),
                    tool: tool.name.clone(),
                    idempotent: tool.idempotent,
                };
                thought.wish = Wish::Calls(tools.iter().enumerate().map(call).collect());
            }
            Some(Item::Await { reason, summary, conditions }) => {
                thought.wish = Wish::Await {
                    reason: reason.clone(),
                    summary: summary.clone(),
                    conditions: conditions.clone(),
                };
            }
            Some(Item::Ask(question)) => thought.wish = Wish::Ask(question.clone()),
            Some(Item::Title(title)) => thought.notes.title = Some(title.clone()),
            Some(Item::Fail(why)) => {
                let end = RunEnd {
                    outcome: Outcome::Failed,
                    error: Some(why.clone()),
                    ends_session: false,
                };
                thought.wish = Wish::Nothing(Some(end));
            }
            Some(Item::End) => {
                let end = RunEnd { outcome: Outcome::Completed, error: None, ends_session: true };
                thought.wish = Wish::Nothing(Some(end));
            }
            None => {}
        }
        if let Wish::Nothing(end @ None) = &mut thought.wish {
            *end = self.end_at(place.next());
        }
        if matches!(thought.wish, Wish::Nothing(Some(_))) {
            thought.place = Some(place.next_run().to_string());
        }
        let sleep = (ms > 0).then(|| self.sleep(ms));
        Box::pin(async move {
            if let Some(sleep) = sleep {
                sleep.await;
            }
            thought
        })
    }

    fn permission(
        &mut self,
        session: &Session,
        call: &AskedCall,
    ) -> Option<BoxFuture<'static, Permission>> {
        self.tool(call).filter(|tool| tool.permission)?;
        Some(match &self.permissions {
            Some(permissions) => permissions.ask(session.id, call),
            None => {
                let why = "not run: nobody can be asked for permission".to_owned();
                Box::pin(std::future::ready(Permission::Refused(why)))
            }
        })
    }

    fn call(&mut self, _: &Session, call: &AskedCall) -> BoxFuture<'static, Returned> {
        let sleep = self.sleep(self.tool(call).map_or(0, |tool| tool.ms));
        let text = format!("{} done", call.tool);
        Box::pin(async move {
            sleep.await;
            Returned { result: CallResult::Done, text }
        })
    }

    fn batch(&self, _: &Session, asked: &[CallId]) -> usize {
        let item = asked.first().and_then(Place::of_call).and_then(|place| self.item(place));
        match item {
            Some(Item::Tools { at_once: false, .. }) => 1,
            _ => asked.len(),
        }
    }

    fn finish(&mut self, session: &Session) -> Option<RunEnd> {
        self.end_at(Place::of(session))
    }
}

/// Makes scripted drivers, and no others.
pub struct Scripted {
    clock: Arc<dyn Clock>,
    permissions: Option<Arc<dyn Permissions>>,
}

impl Scripted {
    /// Makes drivers where nobody can be asked for permissions.
    pub const fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, permissions: None }
    }

    /// Says who can be asked for permissions.
    #[must_use]
    pub fn asking(mut self, permissions: Arc<dyn Permissions>) -> Self {
        self.permissions = Some(permissions);
        self
    }
}

impl Drivers for Scripted {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        match &spec.kind {
            DriverKind::Script { source } => {
                let script = Script::parse(source).map_err(|error| error.to_string())?;
                let (clock, permissions) = (Arc::clone(&self.clock), self.permissions.clone());
                Ok(Box::new(ScriptDriver { script, clock, permissions }))
            }
            other => Err(format!("it has no driver for {} agents", other.name())),
        }
    }

    fn lacks(&self, session: SessionId, spec: &DriverSpec) -> Option<String> {
        if !spec.needs.contains(&Need::Permissions) {
            return None;
        }
        let lack = match &self.permissions {
            Some(permissions) if permissions.is_attended(session) => return None,
            Some(_) => "no editor of this host shows it",
            None => "no editor is connected to this host",
        };
        Some(format!("it asks for permissions, and {lack}"))
    }
}
