//! One model call: its words are passed on as they come, and it is stopped when it takes too long.

use std::future::poll_fn;
use std::time::Duration;

use adjourn_driver::{Emitter, Part, Words};

use super::AgentDriver;
use crate::events::{AgentError, AgentEvent};
use crate::failure::{Failure, FailureKind};
use crate::model::{FinishReason, ModelCall, ModelError, ModelPart, ModelRequest, ModelUsage};

/// What came of a model call.
#[derive(Debug)]
pub(super) struct Answer {
    /// Whether it said something.
    pub(super) said: bool,
    pub(super) calls: Vec<ModelCall>,
    pub(super) usage: ModelUsage,
    /// How the model ended its answer, or why it gave none.
    pub(super) end: Result<FinishReason, ModelError>,
    pub(super) took: Duration,
}

/// What ends a wait for the model's next part.
enum Woken {
    Part(Option<Result<ModelPart, ModelError>>),
    Late,
    Silent,
}

/// Asks the model, and passes its words on.
pub(super) async fn hear(
    driver: &AgentDriver,
    request: ModelRequest,
    out: &Emitter<Part>,
) -> Answer {
    let (clock, limits) = (&driver.clock, &driver.inner.limits);
    let begun = clock.elapsed();
    let mut parts = driver.inner.model.respond(request);
    let mut answer = Answer {
        said: false,
        calls: Vec::new(),
        usage: ModelUsage::default(),
        end: Err(cut_off("the answer ended before it was complete")),
        took: Duration::ZERO,
    };
    let deadline = begun.saturating_add(limits.llm_timeout);
    let (mut heard_at, mut heard, mut told) = (begun, false, false);
    loop {
        let now = clock.elapsed();
        let heartbeat = heard_at.saturating_add(limits.stream_heartbeat);
        let late_at = if heard { deadline.min(heartbeat) } else { deadline };
        let silent_at = heard_at.saturating_add(limits.stall_threshold);
        let woken = tokio::select! {
            // What has come counts, however late it is looked at.
            biased;
            part = poll_fn(|context| parts.as_mut().poll_next(context)) => Woken::Part(part),
            () = clock.sleep(late_at.saturating_sub(now)) => Woken::Late,
            () = clock.sleep(silent_at.saturating_sub(now)), if !told => Woken::Silent,
        };
        match woken {
            Woken::Part(Some(Ok(part))) => {
                (heard, told) = (true, false);
                if answer.take(part, out).await {
                    break;
                }
                // Counted from when the host has taken the words: until then the model is not asked.
                heard_at = clock.elapsed();
            }
            Woken::Part(Some(Err(error))) => {
                answer.end = Err(error);
                break;
            }
            Woken::Part(None) => break,
            Woken::Late => {
                let timeout = clock.elapsed() >= deadline;
                let limit = if timeout { limits.llm_timeout } else { limits.stream_heartbeat };
                let what = if timeout { "the answer took" } else { "the model was silent for" };
                let message = format!("{what} more than {} s", limit.as_secs_f64());
                answer.end = Err(cut_off(message));
                break;
            }
            Woken::Silent => {
                told = true;
                let silence = clock.elapsed().saturating_sub(heard_at);
                driver.tell(|| stalled("the model", silence));
            }
        }
    }
    answer.took = clock.elapsed().saturating_sub(begun);
    answer
}

impl Answer {
    /// Takes a part, and returns whether it was the last one.
    async fn take(&mut self, part: ModelPart, out: &Emitter<Part>) -> bool {
        let (words, text) = match part {
            ModelPart::Text(text) => (Words::Said, text),
            ModelPart::Thought(text) => (Words::Thought, text),
            ModelPart::Call(call) => {
                self.calls.push(call);
                return false;
            }
            ModelPart::Usage(usage) => {
                self.usage = usage;
                return false;
            }
            ModelPart::Alive => return false,
            ModelPart::Finished(reason) => {
                self.end = Ok(reason);
                return true;
            }
        };
        if !text.is_empty() {
            self.said |= words == Words::Said && !text.trim().is_empty();
            out.emit(Part::Delta { message: 0, words, text }).await;
        }
        false
    }
}

fn cut_off(message: impl Into<String>) -> ModelError {
    ModelError::new(FailureKind::TransientProvider, message)
}

/// Says that something gives no sign of life. It counts for nothing.
pub(super) fn stalled(what: &str, silence: Duration) -> AgentEvent {
    let message = format!("{what} has given no sign of life for {} s", silence.as_secs());
    AgentEvent::Error(AgentError {
        failure: Some(Failure::new(FailureKind::NoProgress, &message)),
        message,
        recoverable: true,
        error_type: Some("stalled".to_owned()),
    })
}
