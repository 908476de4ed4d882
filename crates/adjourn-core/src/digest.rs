//! What a turn is told about the time before it: wake reports, and digests for turns that do not
//! see the transcript. Both are made from bounded state and marked as the host's words.

use std::fmt::Write as _;
use std::time::Duration;

use crate::ledger::CallState;
use crate::limits;
use crate::session::{Cause, Opening, Session, WakeReport};

/// How a text of the host's begins, so that neither model nor reader takes it for a person's.
pub const MARK: &str = "[adjourn]";

/// What stands between a wake and the one before it, where a model is told of both.
pub const BEFORE_THAT: &str = "\nBefore that: ";

impl Session {
    /// Returns the digest that stands in for the transcript, at most 16 KiB.
    ///
    /// It holds the first prompt, the last words, what ran, what is open, and why it was parked.
    pub fn digest(&self) -> String {
        let mut text = format!("{MARK} The conversation so far is not shown. In short:\n");
        let mut line = |label: &str, value: &str| {
            if !value.is_empty() {
                let _ = writeln!(text, "- {label}: {value}");
            }
        };
        line("first prompt", &self.memory.first_prompt);
        line("last words", &self.memory.last_words);
        line("what ran", &self.what_ran());
        line("never run", &self.named(&[CallState::NotRun, CallState::Deferred]));
        line("outcome unknown", &self.named(&[CallState::Unknown]));
        if let Some(Opening::Wake(report)) = self.run().map(|run| &run.opening) {
            line("asked", report.question.as_deref().unwrap_or_default());
            line("parked because", report.reason.as_deref().unwrap_or_default());
            line("left for this moment", report.summary.as_deref().unwrap_or_default());
        }
        line("learned", &self.memory.lessons.join("; "));
        cut(text)
    }

    fn what_ran(&self) -> String {
        let mut parts = Vec::new();
        for (tool, times) in self.memory.ran.iter() {
            let failed = match self.memory.failed.get(tool) {
                0 => String::new(),
                failed => format!(", {failed} failed"),
            };
            parts.push(format!("{tool} ({times}×{failed})"));
        }
        parts.join(", ")
    }

    fn named(&self, states: &[CallState]) -> String {
        let open = self.calls.iter().filter(|open| states.contains(&open.state));
        open.map(|open| open.call.tool.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Returns one sentence on why the session is parked, for people: the agent's summary, or one
    /// made from the state.
    pub fn summary(&self) -> Option<String> {
        let suspended = self.suspended()?;
        let pause = &suspended.shown().pause;
        if let Some(summary) = &pause.summary {
            return Some(summary.clone());
        }
        let mut text = match (&pause.reason, pause.host_interrupted) {
            (Some(reason), true) => reason.clone(),
            (Some(reason), false) => format!("paused by {}: {reason}", pause.by.who()),
            (None, _) => format!("paused by {}", pause.by.who()),
        };
        for (states, label) in
            [([CallState::Unknown], "outcome unknown"), ([CallState::Deferred], "not started")]
        {
            let calls = self.named(&states);
            if !calls.is_empty() {
                let _ = write!(text, "; {label}: {calls}");
            }
        }
        Some(limits::excerpt(&text, limits::SUMMARY_BYTES))
    }
}

impl WakeReport {
    /// Returns the report as the host's words, with those of the wakes before it that no step had
    /// begun with.
    pub fn text(&self, unknown: &[&str]) -> String {
        let mut texts = vec![self.alone(unknown)];
        texts.extend(self.newest_first().skip(1).map(|earlier| earlier.alone(&[])));
        cut(texts.join(BEFORE_THAT))
    }

    /// Returns this wake alone as the host's words: what woke it, after how long, with what, and which
    /// calls are of `unknown` outcome.
    pub fn alone(&self, unknown: &[&str]) -> String {
        let waited = span(Duration::from_millis(self.waited_ms));
        let mut text = format!("{MARK} ");
        let _ = match (self.resumption.cause, &self.arrival) {
            (Cause::ExplicitResume, _) => write!(text, "Resumed after {waited}"),
            (Cause::Timeout, _) => write!(text, "The wait timed out after {waited}"),
            (Cause::ConditionFired | Cause::ExternalEvent, Some(arrival)) => {
                let subject = arrival.subject.as_deref().map(|s| format!(":{s}"));
                let subject = subject.unwrap_or_default();
                write!(
                    text,
                    "Woken after {waited} by event {}{subject} ({} from {})",
                    arrival.name, arrival.id, arrival.source
                )
            }
            (Cause::ConditionFired, None) => {
                write!(text, "Woken after {waited} at the time that was set")
            }
            (Cause::ExternalEvent, None) => write!(text, "Woken by the host after {waited}"),
        };
        text.push('.');
        if self.host_interrupted {
            text.push_str(" It had waited because its host stopped.");
        } else if let Some(reason) = &self.reason {
            let _ = write!(text, " It had waited because: {reason}.");
        }
        if let Some(summary) = &self.summary {
            let _ = write!(text, " Left for this moment: {summary}");
        }
        if let Some(value) = &self.value {
            let _ = write!(text, " Input: {value}");
        } else if self.input.is_some() {
            text.push_str(" The answer is the user's message.");
        }
        if !unknown.is_empty() {
            let _ = write!(text, " It is unknown what became of: {}.", unknown.join(", "));
        }
        cut(text)
    }
}

/// Returns a length of time in few digits: in whole seconds, or in milliseconds.
fn span(length: Duration) -> String {
    match length.as_secs() {
        0 => format!("{}ms", length.as_millis()),
        seconds => format!("{seconds}s"),
    }
}

/// Keeps a text of several lines within its limit.
fn cut(mut text: String) -> String {
    if text.len() > limits::DIGEST_BYTES {
        let mut end = limits::DIGEST_BYTES;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_without_needless_digits() {
        let told = [0, 18, 999, 1_000, 3_019, 7_384_113].map(Duration::from_millis).map(span);
        assert_eq!(told, ["0ms", "18ms", "999ms", "1s", "3s", "7384s"]);
    }
}
