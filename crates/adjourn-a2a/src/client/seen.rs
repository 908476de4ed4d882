//! What an answer or an event says of a task, in either version.

use serde_json::{Map, Value, json};

use crate::task::State;
use crate::version::PAUSE;

/// Words of the agent: an artifact, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The artifact's id.
    pub id: String,
    /// What it says; what is no text is named in brackets.
    pub text: String,
    /// Whether it goes on with what was said under the same id.
    pub append: bool,
}

/// What is said of a task: all of it, or what has changed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// The task.
    pub task: Option<String>,
    /// Its context.
    pub context: Option<String>,
    /// Where it stands, in the word of 0.3 and of the proposal, whichever way that was said; a state
    /// that is not known here is as the agent spelled it.
    pub state: Option<String>,
    /// The time since when it stands there, as the agent wrote it.
    pub since: Option<String>,
    /// What the agent says of where it stands: a question, an error.
    pub status_words: Option<String>,
    /// What there is to choose from, if the agent asks and says so.
    pub choices: Vec<String>,
    /// Its pause, if it is paused: `handle`, `reason`, `initiator`, `pausedAt`, `conditions`.
    pub pause: Option<Map<String, Value>>,
    /// What the agent has said.
    pub said: Vec<Said>,
    /// The agent's answer, if it answered with a message and made no task.
    pub message: Option<String>,
}

impl Seen {
    /// Reads a task, a message, an event, or the answer to a pause or a resume. What is not there is
    /// left out, and what is not known passed over.
    pub fn read(value: &Value) -> Self {
        let names = ["task", "message", "msg", "statusUpdate", "artifactUpdate"];
        let named = names.iter().find_map(|name| {
            let inner = value.get(name).filter(|inner| inner.is_object())?;
            Some((*name, inner))
        });
        let kind = value.get("kind").and_then(Value::as_str);
        match (named, kind) {
            (Some(("message" | "msg", message)), _) => Self::of_message(message),
            (Some((_, inner)), _) => Self::of_task(inner),
            (None, Some("message")) => Self::of_message(value),
            (None, _) => Self::of_task(value),
        }
    }

    fn of_message(message: &Value) -> Self {
        let text = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            task: text("taskId"),
            context: text("contextId"),
            message: Some(words(message)),
            ..Self::default()
        }
    }

    fn of_task(task: &Value) -> Self {
        let text = |of: &Value, name: &str| {
            let text = of.get(name).and_then(Value::as_str).map(str::to_owned);
            text.filter(|text| !text.is_empty())
        };
        let status = task.get("status").unwrap_or(&Value::Null);
        let pause = pause(task);
        let literal = pause.as_ref().and_then(|pause| pause.get("state")).and_then(Value::as_str);
        // The answer to a pause has its state beside the task's id.
        let state = literal.map(str::to_owned).or_else(|| text(status, "state"));
        let state = state.or_else(|| text(task, "state"));
        let one = task.get("artifact").map(|artifact| said(artifact, task));
        let all = task.get("artifacts").and_then(Value::as_array);
        let all = all.into_iter().flatten().map(|artifact| said(artifact, &Value::Null));
        let message = status.get("message").filter(|message| message.is_object());
        Self {
            task: text(task, "id").or_else(|| text(task, "taskId")),
            context: text(task, "contextId"),
            state: state.map(|state| spelled(&state)),
            since: text(status, "timestamp"),
            status_words: message.map(words).filter(|words| !words.is_empty()),
            choices: message.map(choices).unwrap_or_default(),
            pause,
            said: one.into_iter().chain(all).collect(),
            message: None,
        }
    }

    /// Returns whether the task is at its end.
    pub fn is_over(&self) -> bool {
        self.known().is_some_and(State::is_terminal)
    }

    /// Returns whether the task waits for a message.
    pub fn is_asking(&self) -> bool {
        self.known().is_some_and(State::is_interrupted)
    }

    /// Returns whether the task is paused.
    pub fn is_paused(&self) -> bool {
        self.known().is_some_and(State::is_paused)
    }

    fn known(&self) -> Option<State> {
        self.state.as_deref().and_then(State::read)
    }

    /// Returns it as an object whose shape is the same for every version of the agent.
    pub fn to_value(&self) -> Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: Option<Value>| {
            object.extend(value.map(|value| (name.to_owned(), value)));
        };
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        put("taskId", text(&self.task));
        put("contextId", text(&self.context));
        put("state", text(&self.state));
        put("since", text(&self.since));
        put("statusMessage", text(&self.status_words));
        put("choices", (!self.choices.is_empty()).then(|| json!(self.choices)));
        put("pause", self.pause.clone().map(Value::Object));
        let said = |said: &Said| {
            let Said { id, text, append } = said;
            json!({ "artifactId": id, "text": text, "append": append })
        };
        let all: Vec<_> = self.said.iter().map(said).collect();
        put("said", (!all.is_empty()).then(|| all.into()));
        put("message", text(&self.message));
        object.into()
    }
}

/// Returns the word of 0.3 for a state, however it is spelled.
fn spelled(state: &str) -> String {
    let word = state.strip_prefix("TASK_STATE_").unwrap_or(state);
    match word.to_ascii_lowercase().replace('_', "-").as_str() {
        "cancelled" => "canceled".to_owned(),
        word => word.to_owned(),
    }
}

/// Returns what is said of a task's pause: in the metadata of our extension, in the tunnel of an
/// earlier implementation, or beside the task's id, as the proposal has it.
fn pause(task: &Value) -> Option<Map<String, Value>> {
    let metadata = task.get("metadata");
    let ours = metadata.and_then(|metadata| metadata.get(PAUSE));
    let tunnel = || metadata.and_then(|metadata| metadata.get("harn")?.get("pause"));
    let is_paused = |pause: &Value| {
        let state = pause.get("state").and_then(Value::as_str).and_then(State::read);
        state.is_some_and(State::is_paused)
    };
    let found = ours.or_else(tunnel).or(Some(task)).filter(|pause| is_paused(pause))?;
    let fields = found.as_object()?.clone();
    Some(fields.into_iter().filter(|(name, _)| name != "taskId").collect())
}

fn said(artifact: &Value, update: &Value) -> Said {
    let id = artifact.get("artifactId").and_then(Value::as_str).unwrap_or_default().to_owned();
    let append = update.get("append").and_then(Value::as_bool).unwrap_or(false);
    Said { id, text: words(artifact), append }
}

/// Returns the choices of a question, which stand as a value beside its words.
fn choices(message: &Value) -> Vec<String> {
    let parts = message.get("parts").or_else(|| message.get("content")).and_then(Value::as_array);
    let values = parts.into_iter().flatten().filter_map(|part| part.get("data"));
    let mut values = values.map(|value| value.get("data").unwrap_or(value));
    let all = values.find_map(|value| value.get("choices")?.as_array());
    all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns what parts say, one after the other.
fn words(of: &Value) -> String {
    let parts = of.get("parts").or_else(|| of.get("content")).and_then(Value::as_array);
    let mut words = String::new();
    for part in parts.into_iter().flatten() {
        if let Some(text) = part.get("text").and_then(Value::as_str) {
            words += text;
            continue;
        }
        let told = match part.get("data") {
            // What a question has as a value, it says in words, too.
            Some(_) if !words.is_empty() => continue,
            Some(value) => value.get("data").unwrap_or(value).to_string(),
            None => format!("[{}]", file_name(part)),
        };
        words += &told;
    }
    words
}

/// Returns what a file is called, or where it is.
fn file_name(part: &Value) -> &str {
    let file = part.get("file").unwrap_or(part);
    let names = ["filename", "name", "url", "uri", "fileWithUri", "mediaType", "mimeType"];
    let name = names.iter().find_map(|name| file.get(*name)?.as_str().filter(|n| !n.is_empty()));
    name.unwrap_or("file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_the_same_in_both_versions() {
        let v10 = json!({ "task": {
            "id": "t", "contextId": "c",
            "status": { "state": "TASK_STATE_INPUT_REQUIRED", "timestamp": "2026-04-30T12:34:56.789Z",
                "message": { "parts": [{ "text": "Merge?" }, { "data": { "choices": ["yes"] } }] } },
            "artifacts": [{ "artifactId": "a", "parts": [{ "text": "I start " }, { "text": "it." }] }],
        } });
        let v03 = json!({
            "kind": "task", "id": "t", "contextId": "c",
            "status": { "state": "input-required", "timestamp": "2026-04-30T12:34:56.789Z",
                "message": { "kind": "message", "parts": [
                    { "kind": "text", "text": "Merge?" }, { "kind": "data", "data": { "choices": ["yes"] } }] } },
            "artifacts": [{ "artifactId": "a", "parts": [{ "kind": "text", "text": "I start it." }] }],
        });
        let seen = Seen::read(&v10);
        assert_eq!(seen, Seen::read(&v03));
        assert!(seen.is_asking() && !seen.is_over());
        assert_eq!(seen.status_words.as_deref(), Some("Merge?"));
        assert_eq!(seen.choices, ["yes"]);
        assert_eq!(seen.to_value()["choices"], json!(["yes"]));
        assert_eq!(seen.said, [Said { id: "a".into(), text: "I start it.".into(), append: false }]);
    }

    #[test]
    fn a_pause_is_seen_wherever_it_is_said() {
        let pause = json!({ "state": "paused-by-agent", "reason": "ci", "handle": "suspend-1" });
        for task in [
            json!({ "id": "t", "status": { "state": "working" }, "metadata": { PAUSE: pause } }),
            json!({ "id": "t", "status": { "state": "TASK_STATE_WORKING" }, "metadata": { "harn": { "pause": pause } } }),
            json!({ "statusUpdate": { "taskId": "t", "status": { "state": "TASK_STATE_PAUSED_BY_AGENT" }, "metadata": { PAUSE: pause } } }),
            json!({ "taskId": "t", "state": "paused-by-agent", "reason": "ci", "handle": "suspend-1" }),
        ] {
            let seen = Seen::read(&task);
            assert!(seen.is_paused(), "{task}");
            assert_eq!(
                (seen.task.as_deref(), seen.state.as_deref()),
                (Some("t"), Some("paused-by-agent"))
            );
            assert_eq!(seen.pause.unwrap(), *pause.as_object().unwrap(), "{task}");
        }
        // What a wake says in the same place is no pause.
        let woke = json!({ "statusUpdate": { "taskId": "t", "status": { "state": "TASK_STATE_WORKING" },
            "metadata": { PAUSE: { "previousState": "paused-by-agent", "cause": "timeout" } } } });
        let seen = Seen::read(&woke);
        assert_eq!((seen.state.as_deref(), seen.pause), (Some("working"), None));
    }

    #[test]
    fn messages_artifacts_and_states_that_are_not_known_are_read() {
        let message = json!({ "kind": "message", "contextId": "c", "parts": [{ "kind": "text", "text": "hi" }] });
        assert_eq!(Seen::read(&message).message.as_deref(), Some("hi"));
        let wrapped = json!({ "message": { "contextId": "c", "parts": [{ "text": "hi" }] } });
        assert_eq!(Seen::read(&wrapped), Seen::read(&message));
        let artifact = json!({ "artifactUpdate": { "taskId": "t", "append": true,
            "artifact": { "artifactId": "a", "parts": [{ "url": "https://x", "filename": "o.txt" }] } } });
        let seen = Seen::read(&artifact);
        assert_eq!(seen.said, [Said { id: "a".into(), text: "[o.txt]".into(), append: true }]);
        assert_eq!(seen.state, None);
        let odd = json!({ "id": "t", "status": { "state": "TASK_STATE_ON_FIRE" } });
        let odd = Seen::read(&odd);
        assert_eq!(odd.state.as_deref(), Some("on-fire"));
        assert!(!odd.is_over() && !odd.is_asking() && !odd.is_paused());
        let canceled = json!({ "id": "t", "status": { "state": "TASK_STATE_CANCELLED" } });
        assert!(Seen::read(&canceled).is_over());
    }
}
