//! Tasks as peers see them: the states, and the objects of both versions.

use adjourn::core::session::{Initiator, Outcome};
use adjourn::core::time::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::message::{DIRECT_ANSWER, Message, WrittenMessage};
use crate::part::{Part, WrittenPart, without_nulls};
use crate::version::Version;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Work is due, or done, or comes to rest.
    Working,
    /// A person has to answer, or to look.
    InputRequired,
    /// A person has to authenticate.
    AuthRequired,
    /// The agent did what it was asked to.
    Completed,
    /// A client ended it.
    Canceled,
    /// The agent did not do it.
    Failed,
    /// The agent would not do it.
    Rejected,
    /// A caller, an operator or a policy paused it.
    PausedByClient,
    /// The agent parked itself.
    PausedByAgent,
}

impl State {
    /// Returns the state of a pause.
    pub const fn paused_by(initiator: Initiator) -> Self {
        match initiator {
            Initiator::Client => Self::PausedByClient,
            Initiator::Agent => Self::PausedByAgent,
        }
    }

    /// Returns the state of a run that is over.
    pub const fn of_outcome(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Completed => Self::Completed,
            Outcome::Failed => Self::Failed,
            Outcome::Canceled => Self::Canceled,
            Outcome::Rejected => Self::Rejected,
        }
    }

    /// Returns whether nothing comes after it.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Canceled | Self::Failed | Self::Rejected)
    }

    /// Returns whether it waits for a message.
    pub const fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }

    /// Returns whether it is one of the proposal's.
    pub const fn is_paused(self) -> bool {
        matches!(self, Self::PausedByClient | Self::PausedByAgent)
    }

    /// Returns the word of 0.3 and of the proposal.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::AuthRequired => "auth-required",
            Self::Completed => "completed",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::PausedByClient => "paused-by-client",
            Self::PausedByAgent => "paused-by-agent",
        }
    }

    /// Returns the word of a version.
    pub const fn spelled(self, version: Version) -> &'static str {
        match (version, self) {
            (Version::V03, state) => state.as_str(),
            // The proto file of 0.3 spells it with two l.
            (Version::V03Proto, Self::Canceled) => "TASK_STATE_CANCELLED",
            (_, Self::Working) => "TASK_STATE_WORKING",
            (_, Self::InputRequired) => "TASK_STATE_INPUT_REQUIRED",
            (_, Self::AuthRequired) => "TASK_STATE_AUTH_REQUIRED",
            (_, Self::Completed) => "TASK_STATE_COMPLETED",
            (_, Self::Canceled) => "TASK_STATE_CANCELED",
            (_, Self::Failed) => "TASK_STATE_FAILED",
            (_, Self::Rejected) => "TASK_STATE_REJECTED",
            (_, Self::PausedByClient) => "TASK_STATE_PAUSED_BY_CLIENT",
            (_, Self::PausedByAgent) => "TASK_STATE_PAUSED_BY_AGENT",
        }
    }

    /// Reads the word of either version; nothing if there is no such state.
    pub fn read(word: &str) -> Option<Self> {
        let word = word.strip_prefix("TASK_STATE_").unwrap_or(word);
        let word = word.to_ascii_lowercase().replace('_', "-");
        // A new task is working from its first commit on; 0.3's REST spells a cancel with two l.
        let word = match word.as_str() {
            "submitted" => "working",
            "cancelled" => "canceled",
            word => word,
        };
        const ALL: [State; 9] = [
            State::Working,
            State::InputRequired,
            State::AuthRequired,
            State::Completed,
            State::Canceled,
            State::Failed,
            State::Rejected,
            State::PausedByClient,
            State::PausedByAgent,
        ];
        ALL.into_iter().find(|state| state.as_str() == word)
    }
}

/// Where a task stands, since when, and what it says of that.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// The state, as the peer is told it.
    pub state: State,
    /// Since when.
    pub at: Timestamp,
    /// What there is to say about it.
    pub message: Option<Message>,
}

impl Status {
    fn written<'a>(
        &'a self,
        task: &'a str,
        context: &'a str,
        version: Version,
    ) -> WrittenStatus<'a> {
        let message = self.message.as_ref().map(|said| said.written(task, context, version));
        WrittenStatus {
            state: self.state.spelled(version),
            message,
            timestamp: self.at.to_string(),
        }
    }
}

/// A status as a version writes it. Its fields are in the order in which they are written.
#[derive(Debug, Serialize)]
struct WrittenStatus<'a> {
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<WrittenMessage<'a>>,
    timestamp: String,
}

/// Something that the agent has made: one message of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// The message's id.
    pub id: String,
    /// What it says.
    pub parts: Vec<Part>,
    /// Whether it was broken off.
    pub aborted: bool,
}

impl Artifact {
    /// Returns the artifact as a version writes it.
    pub fn written(&self, version: Version) -> WrittenArtifact<'_> {
        let parts = self.parts.iter().map(|part| part.written(version)).collect();
        let metadata = self.aborted.then_some(Aborted { aborted: true });
        WrittenArtifact { artifact_id: &self.id, parts, metadata }
    }
}

/// An artifact as a version writes it. Its fields are in the order in which they are written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenArtifact<'a> {
    artifact_id: &'a str,
    parts: Vec<WrittenPart<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Aborted>,
}

/// What the metadata of an artifact says that was broken off.
#[derive(Debug, Serialize)]
struct Aborted {
    aborted: bool,
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The run's id.
    pub id: String,
    /// The context's.
    pub context: String,
    /// The state of the task, since when, and what its agent says of it.
    pub status: Status,
    /// What the agent has made; nothing if it was not asked for.
    pub artifacts: Vec<Artifact>,
    /// Those of the artifacts, by id, that the agent goes on with.
    pub open: Vec<String>,
    /// What was said to the agent and asked by it; nothing if it was not asked for.
    pub history: Vec<Message>,
    /// Its pause, in the words of the extensions.
    pub metadata: Map<String, Value>,
    /// How many changes it has seen.
    pub generation: u64,
}

impl Task {
    /// Returns the message that the agent answered with, if it completed with one that it marked as
    /// its answer and made nothing else.
    pub fn direct_answer(&self) -> Option<Message> {
        let ([artifact], State::Completed) = (self.artifacts.as_slice(), self.status.state) else {
            return None;
        };
        let mut parts = artifact.parts.clone();
        let is_marked = parts.first_mut().is_some_and(|part| part.take_mark(DIRECT_ANSWER));
        is_marked.then(|| Message::of_parts(artifact.id.clone(), parts))
    }

    /// Returns the task as a version writes it.
    pub fn written(&self, version: Version) -> WrittenTask<'_> {
        let said = |said| Message::written(said, &self.id, &self.context, version);
        WrittenTask {
            kind: (version == Version::V03).then_some("task"),
            id: &self.id,
            context_id: &self.context,
            status: self.status.written(&self.id, &self.context, version),
            artifacts: self.artifacts.iter().map(|artifact| artifact.written(version)).collect(),
            history: self.history.iter().map(said).collect(),
            metadata: &self.metadata,
            generation: known_generation(self.generation, version),
        }
    }
}

/// A task as a version writes it. Its fields are in the order in which they are written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenTask<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    id: &'a str,
    context_id: &'a str,
    status: WrittenStatus<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<WrittenArtifact<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    history: Vec<WrittenMessage<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: &'a Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<u64>,
}

/// Something that a watcher of a task is told.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// The task as it is.
    Task(Task),
    /// It stands elsewhere.
    Status {
        /// Where.
        status: Status,
        /// Its pause or its wake, in the words of the extensions.
        metadata: Map<String, Value>,
        /// Whether nothing comes behind it on this stream.
        is_final: bool,
    },
    /// The agent has made something, or more of it.
    Artifact {
        /// What is new of it.
        artifact: Artifact,
        /// Whether it goes on with what was told.
        append: bool,
        /// Whether it is whole with it.
        last: bool,
    },
}

impl Update {
    /// Returns the update as a version writes it, as of a generation of its task.
    pub fn to_value(&self, task: &str, context: &str, generation: u64, version: Version) -> Value {
        let (name, kind, value) = match self {
            Self::Task(task) => ("task", None, json!(task.written(version))),
            Self::Status { status, metadata, is_final } => (
                "statusUpdate",
                Some("status-update"),
                json!({
                    "taskId": task,
                    "contextId": context,
                    "status": status.written(task, context, version),
                    "final": (version != Version::V10).then_some(is_final),
                    "metadata": (!metadata.is_empty()).then_some(metadata),
                    "generation": known_generation(generation, version),
                }),
            ),
            Self::Artifact { artifact, append, last } => (
                "artifactUpdate",
                Some("artifact-update"),
                json!({
                    "taskId": task,
                    "contextId": context,
                    "artifact": artifact.written(version),
                    "append": append,
                    "lastChunk": last,
                    "generation": known_generation(generation, version),
                }),
            ),
        };
        match version {
            Version::V03Proto | Version::V10 => {
                let mut named = Map::new();
                named.insert(name.to_owned(), without_nulls(value));
                named.into()
            }
            Version::V03 => match (kind, without_nulls(value)) {
                (Some(kind), Value::Object(fields)) => {
                    let kind = ("kind".to_owned(), kind.into());
                    std::iter::once(kind).chain(fields).collect::<Map<_, _>>().into()
                }
                (_, value) => value,
            },
        }
    }
}

/// Returns the generation for clients that do not refuse what they do not know.
const fn known_generation(generation: u64, version: Version) -> Option<u64> {
    match version {
        Version::V03 | Version::V10 => Some(generation),
        Version::V03Proto => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_spelled_as_each_version_has_it_and_read_in_every_spelling() {
        for (state, v03, v10) in [
            (State::Working, "working", "TASK_STATE_WORKING"),
            (State::InputRequired, "input-required", "TASK_STATE_INPUT_REQUIRED"),
            (State::AuthRequired, "auth-required", "TASK_STATE_AUTH_REQUIRED"),
            (State::Completed, "completed", "TASK_STATE_COMPLETED"),
            (State::Canceled, "canceled", "TASK_STATE_CANCELED"),
            (State::Failed, "failed", "TASK_STATE_FAILED"),
            (State::Rejected, "rejected", "TASK_STATE_REJECTED"),
            (State::PausedByClient, "paused-by-client", "TASK_STATE_PAUSED_BY_CLIENT"),
            (State::PausedByAgent, "paused-by-agent", "TASK_STATE_PAUSED_BY_AGENT"),
        ] {
            assert_eq!((state.spelled(Version::V03), state.spelled(Version::V10)), (v03, v10));
            assert_eq!((State::read(v03), State::read(v10)), (Some(state), Some(state)));
        }
        assert_eq!(State::read("TASK_STATE_CANCELLED"), Some(State::Canceled));
        assert_eq!(State::Canceled.spelled(Version::V03Proto), "TASK_STATE_CANCELLED");
        assert_eq!(State::Working.spelled(Version::V03Proto), "TASK_STATE_WORKING");
        assert_eq!(State::read("TASK_STATE_SUBMITTED"), Some(State::Working));
        assert_eq!(State::read("TASK_STATE_UNSPECIFIED"), None);
    }
}
