//! How things look: aligned for people, one object per line for programs.

use std::io::{IsTerminal as _, Write as _};

use adjourn_core::Session;
use adjourn_core::event::{Event, What};
use adjourn_core::session::{Phase, Resumption, Wait};
use adjourn_core::time::Timestamp;
use adjourn_host::said::Said;
use serde_json::{Value, json};

use crate::failure::Failure;

/// Where output goes, and in which form.
pub struct Output {
    pub json: bool,
    colour: bool,
}

impl Output {
    pub fn new(json: bool) -> Self {
        let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self { json, colour }
    }

    /// Prints data.
    pub fn data(&self, line: &str) {
        // A reader that went away is no failure of ours.
        let _ = writeln!(std::io::stdout(), "{line}");
    }

    /// Prints data that is whole lines already.
    pub fn bytes(&self, bytes: &[u8]) {
        let _ = std::io::stdout().write_all(bytes);
    }

    /// Prints data as an object, or as a line for people.
    pub fn object(&self, object: &Value, line: &str) {
        self.data(&if self.json { object.to_string() } else { line.to_owned() });
    }

    /// Says something to whoever watches, not to whoever reads the data.
    pub fn talk(&self, line: &str) {
        if !self.json {
            let _ = writeln!(std::io::stderr(), "{}", self.dim(line));
        }
    }

    pub fn failure(&self, failure: &Failure) {
        if self.json {
            self.data(&failure.json().to_string());
        } else {
            let _ = writeln!(std::io::stderr(), "{}", failure.text());
        }
    }

    fn dim(&self, text: &str) -> String {
        if self.colour { format!("\x1b[2m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Returns the status as an object.
pub fn status(session: &Session) -> Value {
    // The status is made of text and numbers; it always encodes.
    serde_json::to_value(session.status()).unwrap_or_default()
}

/// Returns a resumption as an object.
pub fn resumption(resumption: &Resumption) -> Value {
    json!({
        "handle": resumption.handle,
        "cause": resumption.cause,
        "hadResumeInput": resumption.had_resume_input,
        "continueTranscript": resumption.continue_transcript,
        "resumedAt": resumption.resumed_at.to_string(),
    })
}

/// Says in a few words where a session stands, and what will move it on.
pub fn standing(session: &Session, now: Timestamp) -> String {
    let since = |time: Timestamp| format!("{} ago", span(now.since(time)));
    match session.phase() {
        Phase::Idle => match &session.last_run {
            Some(last) => format!("idle, last run {} {}", last.outcome.as_str(), since(last.at)),
            None => "idle".to_owned(),
        },
        Phase::Ready => format!("ready since {}: waits for a host", since(session.at)),
        Phase::Suspended | Phase::Asking => parked(session, now),
        Phase::Requested | Phase::Quiescing => {
            let calls = session.status().in_flight.join(", ");
            let what = if calls.is_empty() { "the step".to_owned() } else { calls };
            format!("about to be suspended: waits for {what}")
        }
        other => other.to_string(),
    }
}

fn parked(session: &Session, now: Timestamp) -> String {
    let Some(suspended) = session.suspended() else { return String::new() };
    let shown = suspended.shown();
    let mut text = match &shown.pause.wait {
        Wait::Question(question) => format!("asks: {}", question.question),
        Wait::Open => match &shown.pause.reason {
            Some(reason) => format!("suspended: {reason}"),
            None => "suspended".to_owned(),
        },
    };
    text += &format!(", by {}, {} ago", shown.pause.by, span(now.since(shown.suspended_at)));
    let mut wakes = Vec::new();
    if let Some(conditions) = &shown.pause.conditions {
        if let Some(pattern) = &conditions.on_event {
            wakes.push(format!("on event {pattern}"));
        }
        if conditions.trigger.is_some() {
            wakes.push("on its trigger".to_owned());
        }
    }
    if let Some(due) = shown.due {
        wakes.push(match due.at > now {
            true => format!("in {}", span(due.at.since(now))),
            false => "now".to_owned(),
        });
    }
    if wakes.is_empty() { text } else { format!("{text}; wakes {}", wakes.join(" or ")) }
}

/// Returns a duration as people say it.
pub fn span(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m", seconds / 60),
        7_200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Says what an event was, for a log.
pub fn event(event: &Event) -> String {
    let detail = match &event.what {
        What::RunStarted(started) => started
            .content
            .as_ref()
            .map(|content| content.excerpt.lines().next().unwrap_or_default().to_owned())
            .unwrap_or_default(),
        What::CallsAsked(asked) => {
            asked.calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>().join(", ")
        }
        What::Suspended(suspended) => {
            let pause = &suspended.park.pause;
            let reason = pause.reason.as_deref().unwrap_or_default();
            match &pause.wait {
                Wait::Question(question) => format!("{} asks: {}", pause.handle, question.question),
                Wait::Open => format!("{} {reason}", pause.handle),
            }
        }
        What::Resumed(resumed) => {
            format!("{} {}", resumed.resumption.handle, resumed.resumption.cause)
        }
        What::RunEnded(ended) => {
            let error = ended.end.error.as_deref().unwrap_or_default();
            format!("{} {error}", ended.end.outcome.as_str())
        }
        _ => String::new(),
    };
    let by = event.by.to_string();
    let line = format!("{}  {:<18} {by:<10} {detail}", event.at, event.what.name());
    line.trim_end().to_owned()
}

/// Says what was said, for a transcript.
pub fn words(at: Timestamp, said: &Said) -> String {
    let role = match said {
        Said::User { .. } => "user",
        Said::Agent { aborted: false, .. } => "agent",
        Said::Agent { aborted: true, .. } => "agent, broken off",
        Said::Tool { .. } => "tool",
        Said::Host { .. } => "host",
    };
    // Further lines stand below the first one's words.
    let text = said.text().replace('\n', &format!("\n{:1$}", "", at.to_string().len() + 9));
    format!("{at}  {role:<6} {text}")
}
