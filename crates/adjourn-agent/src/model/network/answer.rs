//! Answers: what a provider's stream says, part by part.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures_core::Stream;
use genai::chat::{
    ChatFrameSink, ChatStream, ChatStreamEvent, ContentPart, FrameCtx, MessageContent, RawFrameRef,
    StopReason, StreamEnd, ToolCall, Usage,
};
use serde_json::{Value, json};
use tracing::{Dispatch, dispatcher};

use super::names::ToolNames;
use crate::model::{FinishReason, ModelCall, ModelPart, ModelUsage};

/// How many places for calls an answer may leave out between two calls. Servers count from 0 or 1, and
/// some count what is no call, too.
const PLACES_LEFT_OUT: u64 = 8;

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
            let event = poll_fn(|context| poll(&mut self.stream, context));
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
        let calls = whole(end.captured_into_tool_calls().unwrap_or_default());
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

/// Why a frame is refused.
struct Refused(genai::Error);

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

/// Leaves out calls that are the beginning of others: a server that counts calls from 1 makes genai
/// fill the place of the one before with what it has of the first.
fn whole(calls: Vec<ToolCall>) -> Vec<ToolCall> {
    let begins = |call: &ToolCall, later: &ToolCall| {
        let part = call.fn_arguments.is_string() || call.fn_arguments == later.fn_arguments;
        call.call_id == later.call_id && call.fn_name == later.fn_name && part
    };
    let doubled = |(place, call)| calls.iter().skip(place + 1).any(|later| begins(call, later));
    let keep: Vec<bool> = calls.iter().enumerate().map(|call| !doubled(call)).collect();
    let kept = calls.into_iter().zip(keep).filter(|(_, keep)| *keep);
    kept.map(|(call, _)| call).collect()
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

/// What is seen of the frames of an answer that genai passes over.
#[derive(Clone, Default)]
pub(super) struct Frames(Arc<Seen>);

#[derive(Default)]
struct Seen {
    /// Whether there was a frame at all: a page for people has none.
    any: AtomicBool,
    /// Whether the answer is a refusal in the words of `OpenAI`: a field of its own beside the
    /// content.
    refusal: AtomicBool,
    /// The highest place that a call has had.
    highest: AtomicU64,
}

impl Frames {
    /// Returns whether the answer had no frame.
    pub(super) fn is_empty(&self) -> bool {
        !self.0.any.load(Ordering::Relaxed)
    }

    fn tell_refusal(&self) -> bool {
        self.0.refusal.load(Ordering::Relaxed)
    }

    /// Takes note of the places of the calls in a frame in the format of `OpenAI`. Returns one that is
    /// far beyond those before it.
    fn far_place(&self, frame: &Value) -> Option<u64> {
        let calls = frame.pointer("/choices/0/delta/tool_calls").and_then(Value::as_array)?;
        let mut places = calls.iter().filter_map(|call| call.get("index").and_then(Value::as_u64));
        places.find(|place| {
            let before = self.0.highest.fetch_max(*place, Ordering::Relaxed);
            *place > before.saturating_add(PLACES_LEFT_OUT)
        })
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, context: &FrameCtx, frame: RawFrameRef<'_>) {
        self.0.any.store(true, Ordering::Relaxed);
        // Most frames have no such field, and are not read twice. The name of a field may be escaped.
        let has = |name| frame.data.contains(name);
        if !has("refusal") && !has("tool_calls") && !has("\\u") {
            return;
        }
        let json = frame.json();
        // genai makes room for all calls up to the place of one, right behind this: a number alone would
        // take all memory of the process. A sink returns nothing, so unwinding is the only way to keep
        // the frame from it; no message of a panic is printed.
        if let Some(place) = json.as_ref().and_then(|json| self.far_place(json)) {
            let cause = format!("it has a call at the place {place}, far beyond all others");
            let error = Box::from(cause.as_str());
            let model_iden = context.model_iden.clone();
            resume_unwind(Box::new(Refused(genai::Error::WebStream { model_iden, cause, error })));
        }
        let words = json.as_ref().and_then(|json| json.pointer("/choices/0/delta/refusal"));
        if words.and_then(Value::as_str).is_some_and(|words| !words.is_empty()) {
            self.0.refusal.store(true, Ordering::Relaxed);
        }
    }
}
