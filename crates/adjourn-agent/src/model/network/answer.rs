//! Answers: what a provider's stream says, part by part.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use genai::chat::{
    ChatStream, ChatStreamEvent, ContentPart, MessageContent, StopReason, StreamEnd, Usage,
};
use serde_json::{Value, json};
use tracing::{Dispatch, dispatcher};

use super::frames::{Frames, Refused};
use super::names::ToolNames;
use crate::model::{FinishReason, ModelCall, ModelPart, ModelUsage};

/// A provider's answer, as it comes.
pub(super) struct Answer {
    stream: ChatStream,
    /// The model's id.
    model: String,
    names: ToolNames,
    frames: Frames,
    /// What the end of the answer has said and was not taken yet.
    last: VecDeque<ModelPart>,
}

impl Answer {
    pub(super) const fn new(
        stream: ChatStream,
        model: String,
        names: ToolNames,
        frames: Frames,
    ) -> Self {
        Self { stream, model, names, frames, last: VecDeque::new() }
    }

    /// Returns the next part. An answer whose last part is not [`ModelPart::Finished`] was cut off.
    pub(super) async fn next(&mut self) -> Option<Result<ModelPart, genai::Error>> {
        if let Some(part) = self.last.pop_front() {
            return Some(Ok(part));
        }
        loop {
            let event = poll_fn(|context| match poll(&mut self.stream, context) {
                // genai tells nothing of pieces that it passes over.
                Poll::Pending if self.frames.take_piece() => {
                    Poll::Ready(Some(Ok(ChatStreamEvent::Heartbeat)))
                }
                // There are servers that close the connection where others say that all is said.
                Poll::Ready(None) => {
                    Poll::Ready(self.frames.ended().map(|end| Ok(ChatStreamEvent::End(end))))
                }
                polled => polled,
            });
            return Some(Ok(match event.await? {
                Ok(ChatStreamEvent::Chunk(chunk)) => ModelPart::Text(chunk.content),
                Ok(ChatStreamEvent::ReasoningChunk(chunk)) => ModelPart::Thought(chunk.content),
                // Calls are whole when the answer is.
                Ok(
                    ChatStreamEvent::ToolCallChunk(_)
                    | ChatStreamEvent::ThoughtSignatureChunk(_)
                    | ChatStreamEvent::Heartbeat,
                ) => ModelPart::Alive,
                // It says that the request is made, and nothing of the provider.
                Ok(ChatStreamEvent::Start) => continue,
                Ok(ChatStreamEvent::End(end)) => {
                    self.end(end);
                    self.last.pop_front()?
                }
                Err(error) => return Some(Err(error)),
            }));
        }
    }

    /// Returns whether nothing came that a provider sends.
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    fn end(&mut self, end: StreamEnd) {
        if let Some(usage) = &end.captured_usage {
            self.last.push_back(ModelPart::Usage(used(usage)));
        }
        let reason = end.captured_stop_reason.clone();
        let mut thoughts = signed_thoughts(end.captured_content.as_ref());
        let mut calls = self.frames.take_calls();
        if calls.is_empty() {
            calls = end.captured_into_tool_calls().unwrap_or_default();
        }
        let reason = match reason {
            _ if self.frames.tell_refusal() => FinishReason::Refusal,
            Some(reason) => finish(reason),
            None if calls.is_empty() => FinishReason::Stop,
            None => FinishReason::ToolCalls,
        };
        for call in calls {
            let arguments = match call.fn_arguments {
                // What is no JSON stays as the model wrote it.
                Value::String(text) => text,
                Value::Null => String::new(),
                arguments => arguments.to_string(),
            };
            let tool = self.names.given(call.fn_name);
            let signed = match (thoughts.take(), call.thought_signatures) {
                (Some(thoughts), _) => Some(json!({ "by": self.model, "thoughts": thoughts })),
                (None, Some(signatures)) => {
                    Some(json!({ "by": self.model, "signatures": signatures }))
                }
                (None, None) => None,
            };
            let call = ModelCall { id: call.call_id, tool, arguments, signed };
            self.last.push_back(ModelPart::Call(call));
        }
        self.last.push_back(ModelPart::Finished(reason));
    }
}

/// Waits for what genai makes of the next frame, unless that frame is refused.
fn poll(
    stream: &mut ChatStream,
    context: &mut Context<'_>,
) -> Poll<Option<genai::Result<ChatStreamEvent>>> {
    let mut poll = || Pin::new(&mut *stream).poll_next(context);
    // It logs the bodies of answers as they are, key and conversation included.
    let mut poll = || dispatcher::with_default(&Dispatch::none(), &mut poll);
    // The stream is not polled again behind a refusal.
    match catch_unwind(AssertUnwindSafe(&mut poll)) {
        Ok(polled) => polled,
        Err(cause) => match cause.downcast::<Refused>() {
            Ok(refused) => Poll::Ready(Some(Err(refused.0))),
            Err(panic) => resume_unwind(panic),
        },
    }
}

/// Returns the thoughts of an answer that its provider has signed, as Anthropic has them.
fn signed_thoughts(content: Option<&MessageContent>) -> Option<Vec<Value>> {
    let mut thoughts = Vec::new();
    let mut signature = None;
    for part in content?.parts() {
        match part {
            ContentPart::ThoughtSignature(signed) => signature = Some(signed),
            ContentPart::ReasoningContent(thinking) => {
                let block = |signature| json!({ "type": "thinking", "thinking": thinking, "signature": signature });
                thoughts.extend(signature.take().map(block));
            }
            // A thought that the provider shows to nobody.
            ContentPart::Custom(custom) => thoughts.push(custom.data.clone()),
            _ => {}
        }
    }
    (!thoughts.is_empty()).then_some(thoughts)
}

fn used(usage: &Usage) -> ModelUsage {
    let tokens = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let details = usage.prompt_tokens_details.as_ref();
    ModelUsage {
        prompt_tokens: tokens(usage.prompt_tokens),
        cached_prompt_tokens: tokens(details.and_then(|details| details.cached_tokens)),
        cache_write_tokens: tokens(details.and_then(|details| details.cache_creation_tokens)),
        completion_tokens: tokens(usage.completion_tokens),
        cost_usd: None,
    }
}

fn finish(reason: StopReason) -> FinishReason {
    match reason {
        StopReason::Completed(_) | StopReason::StopSequence(_) => FinishReason::Stop,
        StopReason::MaxTokens(_) => FinishReason::Length,
        StopReason::ToolCall(_) => FinishReason::ToolCalls,
        StopReason::ContentFilter(word) if word == "refusal" => FinishReason::Refusal,
        StopReason::ContentFilter(_) => FinishReason::ContentFilter,
        StopReason::Other(word) => FinishReason::Other(word),
    }
}
