//! Every limit on what a session may hold, in one place.
//!
//! Together they keep the whole state of a session at or below [`STATE_BYTES`]: it is written into the journal with every suspension, so its size is the price of a pause.
//!
//! [`REQUESTERS`], [`CONSUMED`], [`UNTOLD_WAKES`], [`COUNTED_TOOLS`], [`ALLOWED_TOOLS`], [`COUNTERS`] and [`LESSONS`] bound lists while events are folded.
//! They are part of the format: another number would fold an old journal to another state than the one it carries.

use std::fmt::Display;
use std::time::Duration;

use serde::Serialize;

use crate::id::{RunId, SessionId};
use crate::json;
use crate::rejected::Rejected;

/// The whole state of a session, encoded.
pub const STATE_BYTES: usize = 128 * 1024;
/// The part of it that only the work itself may fill: calls, counters, the driver's place.
pub const RESERVED_FOR_WORK: usize = 16 * 1024;
/// The part of it that is left for moving a session on: wake reports, past suspensions.
pub const RESERVED_FOR_MOVES: usize = 8 * 1024;

/// A reason for a pause.
pub const REASON_BYTES: usize = 4 * 1024;
/// A summary that an agent leaves behind.
pub const SUMMARY_BYTES: usize = 16 * 1024;
/// A question with its context and its choices.
pub const QUESTION_BYTES: usize = 16 * 1024;
/// What a prompt or a resume feeds to the agent.
pub const INPUT_BYTES: u64 = 12 * 1024 * 1024;
/// A call that an agent asks for or reports, with its title, its places and its arguments.
pub const CALL_BYTES: usize = 1024 * 1024;
/// Something that people are shown beside words: a plan, what a call tells of itself.
pub const SHOWN_BYTES: usize = 1024 * 1024;
/// The words of a call's result; what is longer is cut.
pub const RESULT_TEXT_BYTES: usize = 1024 * 1024;
/// What else a call's result has: pictures, files, its value. What does not fit is left out.
pub const RESULT_DATA_BYTES: usize = 8 * 1024 * 1024;
/// `_meta` or `metadata` kept with a suspension.
pub const META_BYTES: usize = 4 * 1024;
/// A name: of an event, a tenant, a principal, a tool, a label, an idempotency key, a conversation.
pub const NAME_BYTES: usize = 256;
/// An id of a trace or a span.
pub const SPAN_BYTES: usize = 64;
/// The id a model gave to a tool call.
pub const CALL_ID_BYTES: usize = 128;
/// Tool calls that are open at once.
pub const OPEN_CALLS: usize = 64;
/// Waits of one tenant that every event has to be matched against, because no name leads to them.
pub const KEYLESS_WAITS: u64 = 1000;
/// Labels of a session.
pub const LABELS: usize = 32;
/// The options of a session, with all that can be chosen.
pub const OPTIONS_BYTES: usize = 8 * 1024;
/// What a driver leaves with a step to find its place again.
pub const DRIVER_STATE_BYTES: usize = 64 * 1024;
/// What a session needs to run elsewhere: script, arguments, servers.
pub const DRIVER_SPEC_BYTES: usize = 512 * 1024;
/// Transcript entries appended by one commit.
pub const ENTRIES: usize = 1024;
/// The part of a message that is kept for digests and lists.
pub const EXCERPT_BYTES: usize = 1024;
/// Callers of `suspend` that are remembered by name; further ones count but cannot withdraw.
pub const REQUESTERS: usize = 16;
/// Consumed handles that are remembered, so that a late resume is told what became of its suspension.
pub const CONSUMED: usize = 16;
/// Wakes that no step has begun with, and that the next one is told of.
pub const UNTOLD_WAKES: usize = 4;
/// Tools whose use is counted by name; further ones are counted together.
pub const COUNTED_TOOLS: usize = 32;
/// Tools that are allowed for good; a person is asked again for further ones.
pub const ALLOWED_TOOLS: usize = 32;
/// Keys of a repeat or failure counter.
pub const COUNTERS: usize = 32;
/// Lessons kept, the oldest dropped first.
pub const LESSONS: usize = 16;
/// One lesson.
pub const LESSON_BYTES: usize = 256;
/// The digest handed to a turn that does not see the transcript.
pub const DIGEST_BYTES: usize = 16 * 1024;

/// How deep JSON from outside may nest. It leaves room for what is wrapped around it until it is
/// read again: serde_json reads no more than 127 levels.
pub const JSON_DEPTH: usize = 64;
/// How many values JSON from outside may have: each costs about a hundred bytes once it is read,
/// however few it had as text.
pub const JSON_VALUES: usize = 256 * 1024;

/// How long a panic and a drain wait for calls in flight before they are abandoned.
pub const GRACE: Duration = Duration::from_secs(30);
/// How long a cancel waits for them: a person who presses Stop looks on.
pub const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// How long a cancel waits for an agent with a loop of its own: it is told, ends its calls by
/// itself, and answers.
pub const OWN_LOOP_CANCEL_GRACE: Duration = Duration::from_secs(10);
/// The longest grace a caller may ask for.
pub const MAX_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// Refuses a text that is longer than `limit` bytes.
///
/// # Errors
/// How long it may be, at `path`.
pub fn text(path: impl Display, text: &str, limit: usize) -> Result<(), Rejected> {
    if text.len() > limit {
        return Err(Rejected::too_large(path.to_string(), limit));
    }
    Ok(())
}

/// Refuses an optional text that is longer than `limit` bytes.
///
/// # Errors
/// How long it may be, at `path`.
pub fn optional(path: &str, value: Option<&str>, limit: usize) -> Result<(), Rejected> {
    value.map_or(Ok(()), |value| text(path, value, limit))
}

/// Refuses a name that is empty, too long, or holds control characters.
///
/// # Errors
/// What is wrong with it, at `path`.
pub fn name(path: impl Display, value: &str) -> Result<(), Rejected> {
    if value.is_empty() {
        return Err(Rejected::invalid(path.to_string(), "must not be empty"));
    }
    if value.chars().any(char::is_control) {
        return Err(Rejected::invalid(path.to_string(), "must not hold control characters"));
    }
    text(path, value, NAME_BYTES)
}

/// Refuses a name for a session that is blank, too long, holds control characters, or could be taken
/// for an id: with the prefix of one, or made of as many of a UUID's digits as lists show of one.
///
/// # Errors
/// What is wrong with it, at `path`.
pub fn session_name(path: &str, value: &str) -> Result<(), Rejected> {
    name(path, value)?;
    if value.trim().is_empty() {
        return Err(Rejected::invalid(path, "must not be blank"));
    }
    let is_prefixed =
        [SessionId::PREFIX, RunId::PREFIX].iter().any(|prefix| value.starts_with(prefix));
    let digits = value.bytes().filter(u8::is_ascii_hexdigit).count();
    let is_of_a_uuid = value.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    if is_prefixed || (is_of_a_uuid && digits >= SessionId::SHORT) {
        return Err(Rejected::invalid(path, "expected a name that does not look like an id"));
    }
    Ok(())
}

/// Refuses a value whose JSON is longer than `limit` bytes.
///
/// # Errors
/// How long it may be, at `path`.
pub fn json<T: Serialize>(path: &str, value: &T, limit: usize) -> Result<(), Rejected> {
    if json_exceeds(value, limit) {
        return Err(Rejected::too_large(path, limit));
    }
    Ok(())
}

/// Refuses a grace that is longer than any caller needs.
///
/// # Errors
/// How long it may be.
pub(crate) fn grace(ms: Option<u64>) -> Result<(), Rejected> {
    if ms.is_some_and(|ms| Duration::from_millis(ms) > MAX_GRACE) {
        return Err(Rejected::invalid("graceMs", "longer than a day"));
    }
    Ok(())
}

/// Returns whether the JSON of a value is longer than `limit` bytes.
pub(crate) fn json_exceeds<T: Serialize>(value: &T, limit: usize) -> bool {
    // Most values are far below their limits, and need not be counted to know that.
    let is_far_below = json::bound(value).is_ok_and(|bound| bound <= limit);
    !is_far_below && json_bytes(value) > limit
}

/// Counts the bytes of a value's JSON without building it.
pub(crate) fn json_bytes<T: Serialize>(value: &T) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.write_all(bytes).map(|()| bytes.len())
        }
        // There are hundreds of pieces.
        fn write_all(&mut self, bytes: &[u8]) -> std::io::Result<()> {
            self.0 += bytes.len();
            Ok(())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Types of this crate always encode (no maps with keys that are not text, no failing impls).
    // Should one ever not, it counts as too large for any limit.
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// Cuts a text to at most `limit` bytes at a character, marking the cut.
pub fn excerpt(text: &str, limit: usize) -> String {
    const CUT: &str = "…";
    if text.len() <= limit {
        return plain(text);
    }
    let mut end = limit.saturating_sub(CUT.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut cut = plain(text.get(..end).unwrap_or_default());
    cut.push_str(CUT);
    cut
}

/// Replaces control characters: an excerpt is for lists, and must not grow when it is encoded.
fn plain(text: &str) -> String {
    // Most texts have none, which their bytes tell in one go.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.to_owned();
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_ends_at_a_character() {
        assert_eq!(excerpt("short", 16), "short");
        assert_eq!(excerpt("ééééé", 8), "éé…");
        assert!(excerpt(&"𝄞".repeat(99), 50).len() <= 50);
        assert_eq!(excerpt("a\nb\u{7f}\u{85}~", 16), "a b  ~");
    }
}
