//! The messages of the proposal, field by field, and a pause in the metadata of a task.

use adjourn::core::Session;
use adjourn::core::conditions::Spelling;
use adjourn::core::session::{Parked, Resumption};
use serde_json::{Map, Value, json};

use crate::part::without_nulls;
use crate::standing::Standing;
use crate::task::State;
use crate::version::PAUSE;

/// The answer to `tasks/pause`, once the pause is in force.
pub fn paused(task: &str, parked: &Parked, standing: Standing) -> Value {
    let pause = &parked.pause;
    without_nulls(json!({
        "taskId": task,
        "state": standing.literal().as_str(),
        "handle": pause.handle,
        "pausedAt": parked.suspended_at.to_string(),
        "reason": pause.reason,
        "conditions": pause.conditions,
        "metadata": pause.meta,
    }))
}

/// The answer to `tasks/pause` while calls in flight keep the pause from coming into force.
pub fn quiescing(task: &str, handle: &str, reason: Option<&str>) -> Value {
    without_nulls(json!({
        "taskId": task,
        "state": State::Working.as_str(),
        "phase": "quiescing",
        "handle": handle,
        "reason": reason,
    }))
}

/// The answer to `tasks/resume`, and what the event says that reports a wake.
pub fn resumed(task: &str, previous: State, state: State, resumption: &Resumption) -> Value {
    json!({
        "taskId": task,
        "state": state.as_str(),
        "previousState": previous.as_str(),
        "cause": resumption.cause,
        "hadResumeInput": resumption.had_resume_input,
        "continueTranscript": resumption.continue_transcript,
        "resumedAt": resumption.resumed_at.to_string(),
    })
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
    }
    update
}

/// A notification of the proposal, as a frame of a stream.
pub fn frame(params: &Value) -> Value {
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
    let mut woke = resumed("", previous, State::Working, resumption);
    if let Some(woke) = woke.as_object_mut() {
        woke.shift_remove("taskId");
        woke.shift_remove("state");
    }
    let mut metadata = Map::new();
    metadata.insert(PAUSE.to_owned(), woke);
    metadata
}
