//! What there was to see from outside: notices, what each turn was given, what was said and run.

use std::collections::BTreeMap;

use adjourn_conformance::logs;
use adjourn_core::id::{RunId, Seq};
use adjourn_core::session::{Opening, Run, WakeReport};
use adjourn_core::time::Timestamp;
use adjourn_core::{Event, Session};
use serde_json::{Value, json};

/// Everything a scenario may have expectations about, but for the status.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// The lifecycle notices, in the words of the protocols.
    pub notices: Vec<Value>,
    /// What each turn was given.
    pub turns: Vec<Value>,
    /// What the agent said to the end.
    pub said: Vec<String>,
    /// How often each tool was started.
    pub tools: BTreeMap<String, u32>,
    /// When something happened by itself: a call returned, a deadline passed, a host came back.
    pub stirred: Vec<Timestamp>,
    turn: Option<(RunId, u64)>,
}

impl Trace {
    /// Takes down what observers are told of an event.
    pub fn notice(&mut self, event: &Event) {
        self.notices.extend(logs::notices(event));
    }

    /// Takes down what a turn is given, once, however many hosts take it up; returns whether it
    /// begins.
    pub fn turn(&mut self, session: &Session, run: &Run, data: &BTreeMap<Seq, Value>) -> bool {
        if self.turn.replace((run.id, run.turn)) == Some((run.id, run.turn)) {
            return false;
        }
        self.turns.push(match &run.opening {
            Opening::Prompt(content) => {
                json!({ "sees": "transcript", "prompt": content.excerpt, "told": "" })
            }
            Opening::Wake(report) => wake(session, report, data),
        });
        true
    }

    pub fn ran(&mut self, tool: &str) {
        *self.tools.entry(tool.to_owned()).or_default() += 1;
    }
}

fn wake(session: &Session, report: &WakeReport, data: &BTreeMap<Seq, Value>) -> Value {
    let whole = report.resumption.continue_transcript;
    let digest = if whole { String::new() } else { session.digest() };
    let input = report.input.as_ref().map(|content| Value::from(content.excerpt.as_str()));
    let event = report.arrival.as_ref().map(|arrival| {
        json!({
            "name": arrival.name,
            "subject": arrival.subject,
            "source": arrival.source,
            "id": arrival.id,
            "data": data.get(&arrival.seq),
        })
    });
    json!({
        "sees": if whole { "transcript" } else { "digest" },
        "cause": report.resumption.cause,
        "input": input.or(report.value.clone()),
        "event": event,
        "told": format!("{}\n{digest}", report.text(&session.status().unknown_calls)),
    })
}
