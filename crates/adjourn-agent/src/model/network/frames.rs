//! Frames: what an answer says that genai passes over.
//!
//! Most of it is of the format of `OpenAI`, which many servers speak in ways of their own: they number
//! calls as they like, or not at all, and some close the connection without a last word.

mod calls;

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use genai::chat::{ChatFrameSink, FrameCtx, RawFrameRef, StopReason, StreamEnd, ToolCall, Usage};
use serde::Deserialize as _;
use serde_json::Value;

use calls::Calls;

/// How many places for calls an answer may leave out between two calls. Servers count from 0 or 1, and
/// some count what is no call, too.
const PLACES_LEFT_OUT: u64 = 8;
/// The fields of a frame that something is read of.
const FIELDS: [&str; 4] = ["\"tool_calls\"", "\"finish_reason\"", "\"usage\"", "\"refusal\""];

/// Why a frame is refused.
pub(super) struct Refused(pub(super) genai::Error);

/// What is seen of the frames of an answer.
#[derive(Clone, Default)]
pub(super) struct Frames(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    /// Whether there was a frame at all: a page for people has none.
    any: bool,
    /// Whether the answer is a refusal in the words of `OpenAI`: a field of its own beside the
    /// content.
    refusal: bool,
    /// The highest place that a call has had.
    highest: u64,
    /// The calls in the format of `OpenAI`.
    calls: Calls,
    /// Whether a piece of a call came since this was last asked.
    piece: bool,
    /// Why the model stopped, in the format of `OpenAI`.
    finish: Option<String>,
    usage: Option<Usage>,
}

impl Frames {
    /// Returns whether the answer had no frame.
    pub(super) fn is_empty(&self) -> bool {
        !self.seen().any
    }

    pub(super) fn tell_refusal(&self) -> bool {
        self.seen().refusal
    }

    /// Returns whether a piece of a call came since this was last asked.
    pub(super) fn take_piece(&self) -> bool {
        std::mem::take(&mut self.seen().piece)
    }

    /// Takes out the calls of an answer in the format of `OpenAI`, in the order in which they began.
    pub(super) fn take_calls(&self) -> Vec<ToolCall> {
        std::mem::take(&mut self.seen().calls).whole()
    }

    /// Returns the end of an answer whose stream has ended without one, if the model had said why it
    /// stopped.
    pub(super) fn ended(&self) -> Option<StreamEnd> {
        let mut seen = self.seen();
        let reason = StopReason::from(seen.finish.take()?);
        Some(StreamEnd {
            captured_usage: seen.usage.take(),
            captured_stop_reason: Some(reason),
            ..StreamEnd::default()
        })
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// Takes note of a frame. Returns the place of a call in it that is far beyond those before it.
    fn take(&mut self, frame: RawFrameRef<'_>) -> Option<u64> {
        self.any = true;
        // Most frames have no such field, and are not read twice. The name of a field may be escaped.
        let may_tell = FIELDS.iter().any(|field| tells(frame.data, field));
        if !may_tell && !frame.data.contains("\\u") {
            return None;
        }
        let mut frame = frame.json()?;
        let pieces = frame.pointer("/choices/0/delta/tool_calls").and_then(Value::as_array);
        for piece in pieces.into_iter().flatten() {
            let place = piece.get("index").and_then(Value::as_u64);
            if let Some(place) = place {
                if place > self.highest.saturating_add(PLACES_LEFT_OUT) {
                    return Some(place);
                }
                self.highest = self.highest.max(place);
            }
            self.calls.take(place, piece);
            self.piece = true;
        }
        let said = |path| {
            let text = frame.pointer(path).and_then(Value::as_str);
            text.filter(|text| !text.is_empty())
        };
        self.refusal |= said("/choices/0/delta/refusal").is_some();
        if let Some(reason) = said("/choices/0/finish_reason") {
            self.finish = Some(reason.to_owned());
        }
        // Groq has it in a place of its own.
        let usage = ["/usage", "/x_groq/usage"].into_iter().find_map(|path| {
            let usage = frame.pointer_mut(path).map(Value::take)?;
            Usage::deserialize(usage).ok().filter(|usage| *usage != Usage::default())
        });
        if let Some(mut usage) = usage {
            usage.compact_details();
            self.usage = Some(usage);
        }
        None
    }
}

impl ChatFrameSink for Frames {
    fn on_frame(&self, context: &FrameCtx, frame: RawFrameRef<'_>) {
        let far = self.seen().take(frame);
        // genai makes room for all calls up to the place of one, right behind this: a number alone would
        // take all memory of the process. A sink returns nothing, so unwinding is the only way to keep
        // the frame from it; no message of a panic is printed.
        if let Some(place) = far {
            let cause = format!("it has a call at the place {place}, far beyond all others");
            let error = Box::from(cause.as_str());
            let model_iden = context.model_iden.clone();
            resume_unwind(Box::new(Refused(genai::Error::WebStream { model_iden, cause, error })));
        }
    }
}

/// Returns whether a frame has a field with a value other than `null`, as far as can be told without
/// reading it. A text in which the field's name stands has its quotes escaped.
fn tells(frame: &str, field: &str) -> bool {
    frame.split(field).skip(1).any(|rest| {
        let value = rest.trim_start().strip_prefix(':');
        value.is_some_and(|value| !value.trim_start().starts_with("null"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_only_if_one_of_its_fields_has_a_value() {
        for (frame, told) in [
            (r#"{"finish_reason":null}"#, false),
            (r#"{"finish_reason" : null }"#, false),
            ("{\"finish_reason\":\n null}", false),
            (r#"{"content":"the \"finish_reason\": stop"}"#, false),
            (r#"{"finish_reason":"stop"}"#, true),
            (r#"{"finish_reason": "stop"}"#, true),
            (r#"{"finish_reason":null,"finish_reason":"stop"}"#, true),
        ] {
            assert_eq!(tells(frame, "\"finish_reason\""), told, "{frame}");
        }
    }
}
