//! What happened and what was said, a line for each.

use std::collections::BTreeMap;

use adjourn::core::Session;
use adjourn::core::actor::Actor;
use adjourn::core::arrival::Arrival;
use adjourn::core::command::{CallResult, Loss, ReturnedCall};
use adjourn::core::event::{Event, What};
use adjourn::core::ledger::CallId;
use adjourn::core::session::{Pause, Resumption, Wait};
use adjourn::core::time::Timestamp;
use adjourn::driver::{Message, Role, Shown};
use serde_json::Value;

use crate::terminal::{Look, Output, one_line};
use crate::times::Times;
use crate::view::short;

/// What happened so far, as far as what happens next is told by it.
#[derive(Debug, Default)]
pub struct LogLines {
    /// The tools of calls that are open: later events name only the call.
    tools: BTreeMap<CallId, String>,
    /// Who asked for the end of the run under way.
    canceled_by: Option<Actor>,
    times: Times,
}

impl LogLines {
    /// A story whose times are shown in a certain way.
    pub fn new(times: Times) -> Self {
        Self { times, ..Self::default() }
    }

    /// Goes on from a state in the middle of a journal.
    pub fn go_on_from(&mut self, session: &Session) {
        let open = session.calls.iter().map(|open| (open.call.id.clone(), open.call.tool.clone()));
        self.tools.extend(open);
    }

    /// Brings the reader's time up to date.
    pub const fn look_at(&mut self, now: Timestamp) {
        self.times.look_at(now);
    }

    /// Returns a point in time as this story shows it.
    pub fn time(&self, at: Timestamp) -> String {
        self.times.show(at)
    }

    /// Says what an event was, for a log.
    pub fn event(&mut self, event: &Event, output: &Output) -> String {
        if let What::CallsAsked(asked) = &event.what {
            let tools = asked.calls.iter().map(|call| (call.id.clone(), call.tool.clone()));
            self.tools.extend(tools);
        }
        let mut detail = self.detail(&event.what);
        if self.times.are_for_people() {
            detail = short_ids(&detail);
        }
        let line = line(&self.times.show(event.at), event, self.asked_by(event), &detail, output);
        match &event.what {
            What::CancelRequested(_) => self.canceled_by = Some(event.by.clone()),
            What::CallsReturned(returned) => {
                returned.calls.iter().for_each(|call| drop(self.tools.remove(&call.id)));
            }
            What::RunStarted(_) | What::RunEnded(_) => {
                self.tools.clear();
                self.canceled_by = None;
            }
            _ => {}
        }
        line
    }

    /// Returns who asked for what happened, which its owner may have committed later.
    fn asked_by<'a>(&'a self, event: &'a Event) -> &'a Actor {
        match (&event.what, &self.canceled_by) {
            (What::RunEnded(_), Some(by)) => by,
            _ => event.asked_by(),
        }
    }

    fn detail(&self, what: &What) -> String {
        match what {
            What::CallsDispatched(dispatched) => self.named(&dispatched.calls),
            What::CallsReturned(returned) => {
                let one = |call: &ReturnedCall| match call.result {
                    CallResult::Done => self.tool(&call.id).to_owned(),
                    CallResult::Failed => format!("{} failed", self.tool(&call.id)),
                    CallResult::Declined => format!("{} was declined", self.tool(&call.id)),
                };
                returned.calls.iter().map(one).collect::<Vec<_>>().join(", ")
            }
            What::CallsAbandoned(abandoned) => self.named(&abandoned.calls),
            What::Drained(drained) if drained.unknown.is_empty() => String::new(),
            What::Drained(drained) => format!("left behind: {}", self.named(&drained.unknown)),
            What::HostLost(lost) => {
                let how = match lost.how {
                    Loss::Died => "died",
                    Loss::Takeover => "was taken over from",
                    Loss::Stopped => "stopped and did not wait any longer",
                };
                let mut text = format!("{} {how}", lost.host);
                if !lost.again.is_empty() {
                    text += &format!("; runs again: {}", self.named(&lost.again));
                }
                if !lost.unknown.is_empty() {
                    text += &format!("; left behind: {}", self.named(&lost.unknown));
                }
                text
            }
            other => detail(other),
        }
    }

    fn named(&self, calls: &[CallId]) -> String {
        calls.iter().map(|call| self.tool(call)).collect::<Vec<_>>().join(", ")
    }

    /// Returns a call's tool; what was asked may have been pruned.
    fn tool(&self, call: &CallId) -> &str {
        self.tools.get(call).map_or("a call", String::as_str)
    }
}

/// Returns a text with the ends of ids in the place of ids.
fn short_ids(text: &str) -> String {
    let is_id = |word: &str| {
        let uuid = word.split_once('-').map(|(_, uuid)| uuid).unwrap_or_default();
        uuid.len() == 36 && uuid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let word = |word| if is_id(word) { short(word) } else { word };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

fn line(at: &str, event: &Event, by: &Actor, detail: &str, output: &Output) -> String {
    let look = match &event.what {
        What::Suspended(_) | What::HoldLaid(_) => Look::Yellow,
        What::Resumed(_) | What::HoldLifted(_) => Look::Green,
        What::RunStarted(_) | What::RunEnded(_) => Look::Bold,
        What::HostLost(_) | What::CallsAbandoned(_) => Look::Red,
        _ => Look::Plain,
    };
    let at = output.word(Look::Dim, at);
    let name = output.word(look, &format!("{:<18}", event.what.name()));
    let by = output.word(Look::Dim, &format!("{:<10}", one_line(&by.to_string())));
    format!("{at}  {name} {by} {}", one_line(detail)).trim_end().to_owned()
}

/// Says what was said, for a transcript; nothing if there is nothing in it that is shown.
pub fn words(at: &str, said: &Message) -> Option<String> {
    let role = match said.role {
        Role::User => "user",
        Role::Agent if said.aborted => "agent, broken off",
        Role::Agent => "agent",
        Role::Tool => "tool",
        Role::Host => "host",
    };
    // Further lines stand below the first one's words.
    let calls = said.calls.iter().map(|call| match call.arguments.is_null() {
        true => format!("→ {}", call.tool),
        false => format!("→ {} {}", call.tool, call.arguments),
    });
    let said_blocks = said.said_blocks();
    let blocks = said_blocks.iter().map(|block| match (block.words(), block.is_thought()) {
        (Some(words), false) => words.to_owned(),
        (Some(words), true) => format!("(thinks) {words}"),
        (None, _) => format!("[{}]", block.kind()),
    });
    let shown = said.shown.iter().filter_map(shown);
    let lines: Vec<_> = blocks.chain(calls).chain(shown).collect();
    if lines.is_empty() && said.shown.is_some() {
        return None;
    }
    let text = lines.join("\n");
    let text = text.trim_end_matches('\n');
    let text = text.replace('\n', &format!("\n{:1$}", "", at.len() + 9));
    Some(format!("{at}  {role:<6} {text}"))
}

/// Says what people are shown beside words; nothing of what a call shows as content alone.
fn shown(shown: &Shown) -> Option<String> {
    let named = |list: &[Value], field: &str| {
        let names = list.iter().filter_map(|one| one.get(field)?.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    if let Some(words) = shown.notice_words() {
        return Some(format!("[{words}]"));
    }
    Some(match shown {
        Shown::Plan(entries) => format!("[plan: {}]", named(entries, "content")),
        Shown::Context { used, size: 0 } => format!("[context: {used} tokens]"),
        Shown::Context { used, size } => format!("[context: {used} of {size} tokens]"),
        Shown::Commands(commands) => format!("[commands: {}]", named(commands, "name")),
        Shown::Mode(mode) => format!("[mode: {mode}]"),
        Shown::Call { id, update } => {
            let title = update.get("title").and_then(Value::as_str);
            let content = update.get("content");
            let text = content.and_then(|content| content.pointer("/0/content/text"));
            if let Some(told) = title.or(text.and_then(Value::as_str)) {
                return Some(format!("[call {}: {told}]", id.0));
            }
            let changed = changed_files(content);
            if !changed.is_empty() {
                return Some(format!("[changes {changed}]"));
            }
            // What else has no words is named.
            let names: Vec<_> =
                update.keys().map(String::as_str).filter(|name| *name != "content").collect();
            if names.is_empty() {
                return None;
            }
            format!("[call {}: {}]", id.0, names.join(", "))
        }
        Shown::Raw(update) => {
            let kind = update.get("sessionUpdate").and_then(Value::as_str);
            format!("[{}]", kind.unwrap_or("an update of the agent's own"))
        }
    })
}

/// Names the files whose changes a call shows.
fn changed_files(content: Option<&Value>) -> String {
    let parts = content.and_then(Value::as_array).into_iter().flatten();
    let diffs = parts.filter(|part| part.get("type").and_then(Value::as_str) == Some("diff"));
    let paths = diffs.filter_map(|diff| diff.get("path")?.as_str());
    paths.collect::<Vec<_>>().join(", ")
}

fn detail(what: &What) -> String {
    match what {
        What::RunStarted(started) => {
            let content = started.content.as_ref();
            content.map(|content| content.excerpt.clone()).unwrap_or_default()
        }
        What::Claimed(claimed) => claimed.host.to_string(),
        What::CallsAsked(asked) => {
            asked.calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>().join(", ")
        }
        What::StepFinished(finished) => finished.last_words.clone().unwrap_or_default(),
        What::SuspendRequested(requested) => pause(&requested.pause),
        What::AwaitRequested(requested) => pause(&requested.pause),
        What::AwaitEnded(ended) => ended.handle.to_string(),
        What::SuspendJoined(joined) => joined.handle.to_string(),
        What::RequesterLeft(left) => left.handle.to_string(),
        What::SuspendWithdrawn(withdrawn) => withdrawn.handle.to_string(),
        What::Suspended(suspended) => pause(&suspended.park.pause),
        What::HoldLaid(laid) => pause(&laid.hold.pause),
        What::HoldLifted(lifted) => resumption(&lifted.resumption, lifted.arrival.as_ref()),
        What::Resumed(resumed) => resumption(&resumed.resumption, resumed.arrival.as_ref()),
        What::OptionSet(set) => format!("{}={}", set.option, set.value),
        What::RunEnded(ended) => {
            let error = ended.end.error.as_deref().unwrap_or_default();
            format!("{} {error}", ended.end.outcome.as_str())
        }
        What::SessionImported(imported) => {
            let from = &imported.from;
            format!("{} from {}", from.handle, from.session)
        }
        What::SuspensionEnded(ended) => match &ended.record {
            Some(record) => format!("{} exported, sealed with {}", ended.handle, record.key),
            None => String::new(),
        },
        _ => String::new(),
    }
}

fn pause(pause: &Pause) -> String {
    match (&pause.wait, &pause.reason) {
        (Wait::Question(question), _) => format!("{} asks: {}", pause.handle, question.question),
        (Wait::Open, Some(reason)) => format!("{} {reason}", pause.handle),
        (Wait::Open, None) => pause.handle.to_string(),
    }
}

fn resumption(resumption: &Resumption, arrival: Option<&Arrival>) -> String {
    let by = match arrival {
        None => String::new(),
        Some(Arrival { name, subject: None, .. }) => format!(" {name}"),
        Some(Arrival { name, subject: Some(subject), .. }) => format!(" {name}:{subject}"),
    };
    format!("{} {}{by}", resumption.handle, resumption.cause)
}
