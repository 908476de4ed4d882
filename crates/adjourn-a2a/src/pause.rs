//! The messages of the proposal, field by field, and a pause in the metadata of a task.

use adjourn::core::Session;
use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::id::Handle;
use adjourn::core::session::{Cause, Parked, Pause, Resumption};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::part::{shown, without_nulls};
use crate::standing::Standing;
use crate::task::State;
use crate::version::PAUSE;

/// The answer to `tasks/pause`, once the pause is in force. Its fields are in the order in which they
/// are written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Paused<'a> {
    task_id: &'a str,
    state: &'static str,
    handle: Handle,
    paused_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<&'a Conditions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Value>,
}

impl<'a> Paused<'a> {
    /// Makes the answer from the pause that is in force.
    pub fn new(task: &'a str, parked: &'a Parked, standing: Standing) -> Self {
        let pause = &parked.pause;
        Self {
            task_id: task,
            state: standing.literal().as_str(),
            handle: pause.handle,
            paused_at: parked.suspended_at.to_string(),
            reason: pause.reason.as_deref(),
            conditions: pause.conditions.as_ref(),
            metadata: pause.meta.as_ref().and_then(shown),
        }
    }
}

/// The answer to `tasks/pause` while calls in flight keep the pause from coming into force.
pub fn quiescing(task: &str, handle: Handle, pause: Option<&Pause>) -> Value {
    without_nulls(json!({
        "taskId": task,
        "state": State::Working.as_str(),
        "phase": "quiescing",
        "handle": handle,
        "reason": pause.and_then(|pause| pause.reason.as_deref()),
        "conditions": pause.and_then(|pause| pause.conditions.as_ref()),
        "metadata": pause.and_then(|pause| pause.meta.as_ref()).and_then(shown),
    }))
}

/// The answer to `tasks/resume`, and what the event says that reports a wake. Its fields are in the
/// order in which they are written.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resumed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    previous_state: &'static str,
    cause: &'a Cause,
    had_resume_input: bool,
    continue_transcript: bool,
    resumed_at: String,
}

impl<'a> Resumed<'a> {
    /// Makes what is said of a task that is woken.
    pub fn new(task: &'a str, previous: State, state: State, resumption: &'a Resumption) -> Self {
        let woke = Self::of_wake(previous, resumption);
        Self { task_id: Some(task), state: Some(state.as_str()), ..woke }
    }

    /// Makes what is said of a wake where the task and its state are told beside it.
    fn of_wake(previous: State, resumption: &'a Resumption) -> Self {
        Self {
            task_id: None,
            state: None,
            previous_state: previous.as_str(),
            cause: &resumption.cause,
            had_resume_input: resumption.had_resume_input,
            continue_transcript: resumption.continue_transcript,
            resumed_at: resumption.resumed_at.to_string(),
        }
    }
}

/// The `params` of a `tasks/statusUpdate` frame that reports a pause. The handle is for those who may
/// resume.
pub fn paused_update(task: &str, parked: &Parked, standing: Standing, may_resume: bool) -> Value {
    let pause = &parked.pause;
    let mut update = json!({ "taskId": task, "state": standing.literal().as_str() });
    if let Some(update) = update.as_object_mut() {
        if may_resume {
            update.insert("handle".to_owned(), pause.handle.to_string().into());
        }
        if let Some(reason) = &pause.reason {
            update.insert("reason".to_owned(), reason.as_str().into());
        }
        update.insert("initiator".to_owned(), json!(pause.initiator));
        update.insert("pausedAt".to_owned(), parked.suspended_at.to_string().into());
        // It is there also where there are none.
        update.insert("conditions".to_owned(), json!(pause.conditions));
        if let Some(metadata) = pause.meta.as_ref().and_then(shown) {
            update.insert("metadata".to_owned(), json!(metadata));
        }
    }
    update
}

/// A notification of the proposal, as a frame of a stream.
pub fn frame(params: &impl Serialize) -> Value {
    json!({ "jsonrpc": "2.0", "method": "tasks/statusUpdate", "params": params })
}

/// What the metadata of a task says of its pause: in our extension, and in the tunnel of an earlier
/// implementation.
pub fn metadata(session: &Session, standing: Standing, may_resume: bool) -> Map<String, Value> {
    let mut metadata = Map::new();
    let (Standing::Paused(_) | Standing::Interrupted, Some(suspended)) =
        (standing, session.suspended())
    else {
        return metadata;
    };
    let parked = suspended.shown();
    let pause = &parked.pause;
    let handle = may_resume.then_some(pause.handle);
    let ours = json!({
        "state": standing.literal().as_str(),
        "handle": handle,
        "reason": pause.reason,
        "initiator": pause.initiator,
        "pausedAt": parked.suspended_at.to_string(),
        "conditions": pause.conditions,
        "summary": session.summary(),
        "metadata": pause.meta,
    });
    metadata.insert(PAUSE.to_owned(), without_nulls(ours));
    let conditions = pause.conditions.as_ref();
    let conditions = conditions.map(|conditions| json!(conditions.spelled(Spelling::Snake)));
    let tunnel = json!({
        "state": standing.literal().as_str(),
        "reason": pause.reason,
        "initiator": pause.initiator,
        "handle": handle,
        "conditions": conditions,
    });
    metadata.insert("harn".to_owned(), json!({ "pause": without_nulls(tunnel) }));
    metadata
}

/// What the metadata of the event says that reports a wake.
pub fn wake_metadata(previous: State, resumption: &Resumption) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert(PAUSE.to_owned(), json!(Resumed::of_wake(previous, resumption)));
    metadata
}
