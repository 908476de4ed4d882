//! A model that answers from a list: for tests, examples and work offline.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use adjourn_core::json::{self, Unreadable};
use adjourn_core::syntax;
use adjourn_driver::{BoxStream, emitting};
use serde::Deserialize;
use serde_json::Value;

use super::{FinishReason, Model, ModelCall, ModelError, ModelPart, ModelRequest, ModelUsage};
use crate::failure::FailureKind;

/// How long a script may be.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// A model that gives the answers of a script, one after the other.
///
/// The first request finds its place by the session: behind as many answers of the script as the
/// model has given in it. So a script goes on in another process, too, and with a fresh transcript.
/// Each further request gets the next answer, whatever session it is for. When the script is over,
/// the model says that it is done.
///
/// # The script
///
/// A JSON list of answers, or one JSON answer on each line. An answer is an object; each member may
/// be left out:
///
/// ```json
/// {
///   "thought": "what the model thinks",
///   "text": "what it says",
///   "calls": [{ "tool": "lookup", "arguments": { "table": "sales" }, "id": "call-1" }],
///   "usage": { "prompt_tokens": 120, "completion_tokens": 8, "cost_usd": 0.01 },
///   "finish": "stop | tool_calls | length | content_filter | refusal",
///   "ms": 2000,
///   "error": { "kind": "transient_provider", "message": "overloaded", "retry_after_s": 2 }
/// }
/// ```
///
/// Words come one after the other, each as a part of its own, and take `ms` milliseconds together.
/// With `error`, what comes before it is said, and then the call fails; beside `kind` it may have a
/// `message`, a `status`, `retry_after_s` and `resets_at`.
#[derive(Debug)]
pub struct ScriptedModel {
    id: String,
    answers: Vec<Scripted>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the next answer, if one was given before.
    next: Option<usize>,
    requests: VecDeque<ModelRequest>,
}

/// How many requests are remembered for tests to look at.
const REQUESTS: usize = 64;

/// A script that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("script of a model: {0}")]
pub struct ScriptError(String);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Scripted {
    thought: Option<String>,
    text: Option<String>,
    calls: Vec<ScriptedCall>,
    usage: Option<ScriptedUsage>,
    finish: Option<String>,
    ms: u64,
    error: Option<ScriptedError>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    tool: String,
    #[serde(default)]
    arguments: Value,
    #[serde(default)]
    id: Option<String>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedUsage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    cost_usd: Option<f64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedError {
    kind: FailureKind,
    #[serde(default)]
    message: String,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    retry_after_s: Option<f64>,
    #[serde(default)]
    resets_at: Option<String>,
}

impl ScriptedModel {
    /// Reads a script.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(script: &str) -> Result<Self, ScriptError> {
        let answers: Vec<Scripted> = if script.trim_start().starts_with('[') {
            json::read(script.as_bytes(), MOST_BYTES)
                .map_err(|error| ScriptError(problem(&error, true)))?
        } else {
            let lines = script.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            let answer = |(number, line): (usize, &str)| {
                json::read(line.as_bytes(), MOST_BYTES).map_err(|error| {
                    ScriptError(format!("line {}: {}", number + 1, problem(&error, false)))
                })
            };
            lines.map(answer).collect::<Result<_, _>>()?
        };
        let model = Self { id: "scripted".to_owned(), answers, state: Mutex::default() };
        for (number, answer) in model.answers.iter().enumerate() {
            let problem = |problem| ScriptError(format!("answer {}: {problem}", number + 1));
            answer.reason().map_err(problem)?;
            answer.failure().map_err(problem)?;
        }
        Ok(model)
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no script.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let problem =
            |error: &dyn std::fmt::Display| ScriptError(format!("{}: {error}", path.display()));
        let script = std::fs::read_to_string(path).map_err(|error| problem(&error))?;
        Self::parse(&script).map_err(|error| problem(&error.0))
    }

    /// Gives the model another id than `scripted`.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Begins with the answer of a number, from 0 on, wherever the conversation has got to.
    #[must_use]
    pub fn starting_at(self, answer: usize) -> Self {
        let state = State { next: Some(answer), ..State::default() };
        Self { state: Mutex::new(state), ..self }
    }

    /// Returns the last requests that it was given, the newest last.
    pub fn requests(&self) -> Vec<ModelRequest> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.requests.iter().cloned().collect()
    }

    /// Returns the next answer.
    fn next(&self, request: ModelRequest) -> Scripted {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let place = state.next.unwrap_or_else(|| self.place(request.answers));
        state.next = Some(place + 1);
        state.requests.push_back(request);
        if state.requests.len() > REQUESTS {
            state.requests.pop_front();
        }
        let next = self.answers.get(place);
        next.cloned()
            .unwrap_or_else(|| Scripted { text: Some("Done.".to_owned()), ..Scripted::default() })
    }
}

impl ScriptedModel {
    /// Returns the place behind so many answers that stay in a conversation.
    fn place(&self, answered: u64) -> usize {
        let answered = usize::try_from(answered).unwrap_or(usize::MAX);
        let kept = self.answers.iter().enumerate().filter(|(_, answer)| answer.is_kept());
        let last = kept.take(answered).last();
        last.map_or(0, |(place, _)| place + 1)
    }
}

/// Says what is wrong with a script; where in it is said already if it is one line.
fn problem(error: &Unreadable, lines: bool) -> String {
    let Unreadable::Malformed(error) = error else { return error.to_string() };
    match error.is_data() {
        // An answer that is JSON and no answer: which member is meant, and which there are.
        true => {
            let told = error.to_string();
            let (what, place) = told.rsplit_once(" at line ").unwrap_or((told.as_str(), ""));
            match (lines, place.split_once(" column ")) {
                (true, Some((line, _))) => format!("line {line}: {what}"),
                _ => what.to_owned(),
            }
        }
        false => syntax::problem(error),
    }
}

impl Scripted {
    /// Returns whether the answer stays in the conversation: it says or does something, to its end.
    fn is_kept(&self) -> bool {
        let whole = match self.reason() {
            Ok(FinishReason::Stop) => true,
            Ok(FinishReason::ToolCalls) => !self.calls.is_empty(),
            _ => false,
        };
        let says = self.text.as_ref().is_some_and(|text| !text.trim().is_empty());
        self.error.is_none() && whole && (says || !self.calls.is_empty())
    }

    fn reason(&self) -> Result<FinishReason, String> {
        Ok(match self.finish.as_deref() {
            None if self.calls.is_empty() => FinishReason::Stop,
            None | Some("tool_calls") => FinishReason::ToolCalls,
            Some("stop") => FinishReason::Stop,
            Some("length") => FinishReason::Length,
            Some("content_filter") => FinishReason::ContentFilter,
            Some("refusal") => FinishReason::Refusal,
            Some(other) => return Err(format!("finish: {other:?} is not known")),
        })
    }

    fn failure(&self) -> Result<Option<ModelError>, String> {
        let Some(error) = &self.error else { return Ok(None) };
        let retry_after = error.retry_after_s.map(Duration::try_from_secs_f64);
        let resets_at = error.resets_at.as_deref().map(adjourn_core::time::Timestamp::parse);
        Ok(Some(ModelError {
            kind: error.kind,
            message: error.message.clone(),
            status: error.status,
            retry_after: retry_after
                .transpose()
                .map_err(|error| format!("retry_after_s: {error}"))?,
            resets_at: resets_at.transpose().map_err(|error| format!("resets_at: {error}"))?,
        }))
    }

    /// Returns the parts of the answer.
    fn parts(self, number: u64) -> Vec<Result<ModelPart, ModelError>> {
        let mut parts = Vec::new();
        parts.extend(words(self.thought.as_deref()).map(|text| Ok(ModelPart::Thought(text))));
        parts.extend(words(self.text.as_deref()).map(|text| Ok(ModelPart::Text(text))));
        for (index, call) in self.calls.iter().enumerate() {
            let id = call.id.clone().unwrap_or_else(|| format!("call-{number}-{index}"));
            let arguments = match &call.arguments {
                Value::Null => String::new(),
                arguments => arguments.to_string(),
            };
            let tool = call.tool.clone();
            parts.push(Ok(ModelPart::Call(ModelCall { id, tool, arguments, signed: None })));
        }
        if let Some(ScriptedUsage { prompt_tokens, completion_tokens, cost_usd }) = self.usage {
            let usage =
                ModelUsage { prompt_tokens, completion_tokens, cost_usd, ..ModelUsage::default() };
            parts.push(Ok(ModelPart::Usage(usage)));
        }
        // Both were checked when the script was read.
        parts.push(match self.failure() {
            Ok(Some(error)) => Err(error),
            _ => Ok(ModelPart::Finished(self.reason().unwrap_or(FinishReason::Stop))),
        });
        parts
    }
}

/// Returns the words of a text, each with the space behind it.
fn words(text: Option<&str>) -> impl Iterator<Item = String> {
    text.unwrap_or_default().split_inclusive(' ').map(str::to_owned)
}

impl Model for ScriptedModel {
    fn id(&self) -> &str {
        &self.id
    }

    fn states_cost(&self) -> bool {
        let states = |answer: &Scripted| answer.usage.is_some_and(|usage| usage.cost_usd.is_some());
        self.answers.iter().any(states)
    }

    fn respond(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelPart, ModelError>> {
        let number = request.answers;
        let answer = self.next(request);
        let took = Duration::from_millis(answer.ms);
        let parts = answer.parts(number);
        let each = u32::try_from(parts.len()).map_or(took, |count| took / count.max(1));
        emitting(move |out| async move {
            for part in parts {
                // The first word takes its time, too: a model thinks before it speaks.
                if !each.is_zero() {
                    tokio::time::sleep(each).await;
                }
                out.emit(part).await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_script_is_told_with_its_line_and_what_there_is() {
        for (script, told) in [
            (
                "{\"text\": \"a\"}\n{\"txt\": 1}",
                "line 2: unknown field `txt`, expected one of `thought`, `text`",
            ),
            ("[{\"text\": \"a\"},\n {\"txt\": 1}]", "line 2: unknown field `txt`"),
            ("{\"text\": 1}", "line 1: invalid type: integer `1`, expected a string"),
            ("{\"text\": \"a\"", "line 1: not JSON: it ends too early"),
            ("{\"error\": {\"kind\": \"odd\"}}", "line 1: unknown variant `odd`, expected one of"),
            ("{\"finish\": \"odd\"}", "answer 1: finish: \"odd\" is not known"),
        ] {
            let error = ScriptedModel::parse(script).unwrap_err().to_string();
            assert!(error.contains(told), "{script}: {error}");
            assert!(!error.contains("column"), "{script}: {error}");
        }
    }
}
