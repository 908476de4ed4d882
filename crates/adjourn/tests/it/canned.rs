//! A model that answers from a list, its tools, and what they saw and did.

use std::sync::{Arc, Mutex};

use adjourn_core::command::{CallResult, Question, RunEnd};
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::ledger::CallId;
use adjourn_core::session::Outcome;
use adjourn_driver::{
    Block, BoxStream, Call, CallContent, CallPart, Driver, Drivers, Finish, ModelMessage,
    ModelRole, Park, Part, RequestedCall, Step, Words, emitting,
};
use serde_json::json;

use crate::points::Points;

/// What the model says at each of its turns, in two pieces.
const WORDS: [[&str; 2]; 3] = [["Let me ", "look."], ["I have to ", "ask."], ["It is ", "done."]];

/// The model, its tools, and what they saw and did.
#[derive(Clone)]
pub struct Canned {
    pub points: Points,
    /// The view that each step was given.
    pub views: Arc<Mutex<Vec<Vec<ModelMessage>>>>,
    /// The words of each step that the host has taken, and whether the step came to its end.
    passed: Arc<Mutex<Vec<(String, bool)>>>,
    /// The calls that were really started.
    ran: Arc<Mutex<Vec<CallContent>>>,
    /// Which driver ran each step.
    stepped: Arc<Mutex<Vec<usize>>>,
    /// The number of this driver, from its first step on.
    number: Option<usize>,
    /// Whether drivers want to be kept.
    keeps: bool,
}

impl Canned {
    pub fn new(hold_at: Option<usize>, keeps: bool) -> Self {
        let (views, passed, ran, stepped) = Default::default();
        Self { points: Points::new(hold_at), views, passed, ran, stepped, number: None, keeps }
    }

    /// Returns how many drivers have run steps.
    pub fn drivers(&self) -> usize {
        self.stepped.lock().unwrap().iter().max().copied().unwrap_or(0)
    }

    /// Returns the words of the steps that have said something, and whether each step came to its
    /// end.
    pub fn passed(&self) -> Vec<(String, bool)> {
        let passed = self.passed.lock().unwrap();
        passed.iter().filter(|(words, _)| !words.is_empty()).cloned().collect()
    }

    pub fn ran(&self) -> Vec<CallContent> {
        self.ran.lock().unwrap().clone()
    }
}

impl Drivers for Canned {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(self.clone()))
    }
}

fn calls(answer: usize, revision: u64) -> Vec<RequestedCall> {
    let call = |tool: &str| {
        let content = CallContent::new(CallId(format!("{tool}-{revision}")), tool);
        RequestedCall::new(CallContent { arguments: json!({ "path": tool }), ..content })
    };
    let question = Question {
        question: "which table?".to_owned(),
        context: None,
        choices: Vec::new(),
        originating_failure_kind: None,
    };
    let ask = RequestedCall { parks: Some(Park::Ask(question)), ..call("ask_user") };
    match answer {
        0 => vec![call("look")],
        1 => vec![call("write"), ask, call("read")],
        _ => Vec::new(),
    }
}

impl Driver for Canned {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let next = self.drivers() + 1;
        self.stepped.lock().unwrap().push(*self.number.get_or_insert(next));
        self.views.lock().unwrap().push(step.transcript.messages().unwrap());
        let answer: usize = step.session.driver_state.as_deref().unwrap_or("0").parse().unwrap();
        let calls = calls(answer, step.session.revision);
        let ends = calls.is_empty().then_some(RunEnd {
            outcome: Outcome::Completed,
            error: None,
            ends_session: false,
        });
        let finish = Finish { ends, ..Finish::default() }.at((answer + 1).to_string());
        let (points, stop) = (self.points.clone(), step.stop.clone());
        let passed = Arc::clone(&self.passed);
        emitting(move |out| async move {
            let this = {
                let mut passed = passed.lock().unwrap();
                passed.push((String::new(), false));
                passed.len() - 1
            };
            points.pass("before the first word", Some(&stop)).await;
            for text in WORDS[answer] {
                let words = Words::Said;
                out.emit(Part::Delta { message: 0, words, text: text.to_owned() }).await;
                passed.lock().unwrap()[this].0 += text;
                points.pass("behind words", Some(&stop)).await;
            }
            if !calls.is_empty() {
                out.emit(Part::Calls(calls)).await;
                points.pass("behind the calls", Some(&stop)).await;
            }
            passed.lock().unwrap()[this].1 = true;
            out.emit(Part::Finished(finish)).await;
        })
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        self.ran.lock().unwrap().push(call.content.clone());
        let points = self.points.clone();
        emitting(move |out| async move {
            points.pass("in a call", None).await;
            let content = vec![Block::text(format!("{} ran", call.content.tool))];
            let (result, structured) = (CallResult::Done, None);
            out.emit(CallPart::Ended { result, content, structured }).await;
        })
    }

    fn keep(&mut self) -> bool {
        self.keeps
    }
}

pub fn spec() -> DriverSpec {
    let kind = DriverKind::Native { model: "canned".to_owned() };
    DriverSpec { kind, ..DriverSpec::script("") }
}

/// Returns a view in short: the role, the words up to how long something took, the calls.
pub fn in_short(view: &[ModelMessage]) -> Vec<String> {
    let line = |message: &ModelMessage| {
        let role = match message.role {
            ModelRole::User => "user",
            ModelRole::Agent => "agent",
            ModelRole::Tool => "tool",
        };
        let words: Vec<_> = message.blocks.iter().filter_map(Block::words).collect();
        let words = words.concat();
        let (begins, rest) = words.split_once(" after ").unwrap_or((&words, ""));
        let rest = rest.split_once(". ").map_or("", |(_, rest)| rest);
        let tools: Vec<_> = message.calls.iter().map(|call| call.tool.as_str()).collect();
        format!("{role}: {begins} {rest} {}", tools.join(",")).trim_end().to_owned()
    };
    view.iter().map(line).collect()
}

/// Returns what a model is shown in the end, in short: `lost` is whether its host was lost while a
/// call was under way, and `interrupted` whether the session was parked for that.
pub fn expected(lost: bool, interrupted: bool) -> Vec<String> {
    let look = match lost {
        true => "tool: [adjourn] look: its outcome is unknown: it was cut off while it ran",
        false => "tool: look ran",
    };
    let not_run = "not run: it was stopped before it started";
    let interrupted = interrupted.then(|| {
        "user: [adjourn] Resumed It had waited because its host stopped. It is unknown what became \
         of: look."
            .to_owned()
    });
    let before = ["user: tidy up", "agent: Let me look.  look", look].map(str::to_owned);
    let behind = [
        "agent: I have to ask.  write,ask_user,read".to_owned(),
        format!("tool: [adjourn] write: {not_run}"),
        "tool: [adjourn] Resumed The answer is the user's message.".to_owned(),
        format!("tool: [adjourn] read: {not_run}"),
        "user: monthly".to_owned(),
        "agent: It is done.".to_owned(),
    ];
    before.into_iter().chain(interrupted).chain(behind).collect()
}
