//! `session/update` for what the agent says, thinks and shows, in either version.
//!
//! A client is sent what its version has words for: in v1, whose list of updates is closed,
//! clients report an error for anything else.

use adjourn::core::Session;
use adjourn::core::option::SessionOption;
use adjourn::driver::{Shown, Words};
use adjourn::telling::Piece;
use serde_json::{Map, Value, json};

use crate::content::text;
use crate::options;
use crate::peer::{EXTENSION, Peer, Version};
use crate::update::{call_fields, shown as block, with};

/// Blocks that a message may have in v1.
const BLOCKS: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];
/// The one plan that an agent has at a time (v2).
const PLAN: &str = "plan";

/// Updates of an agent's own that are passed on as they are, by the version that has them.
const RAW: [&str; 12] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
    "notice",
];
const RAW_V2: [&str; 16] = [
    "user_message_chunk",
    "user_message",
    "agent_message_chunk",
    "agent_message",
    "agent_thought_chunk",
    "agent_thought",
    "tool_call_content_chunk",
    "tool_call_update",
    "terminal_update",
    "terminal_output_chunk",
    "plan_update",
    "available_commands_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
    "notice",
];

/// Pieces of one message of what the agent says and thinks.
///
/// In v1 each is a chunk. In v2 a piece that begins a message takes the place of what a client may
/// have of it, and so do those that come with it; others are added. What is thought has an id of its
/// own beside what is said.
pub fn agent_pieces(version: Version, pieces: &[Piece]) -> Vec<Value> {
    match version {
        Version::V1 => pieces.iter().filter_map(chunk_v1).collect(),
        Version::V2 => {
            let (thoughts, words): (Vec<_>, Vec<_>) =
                pieces.iter().partition(|piece| piece.words == Words::Thought);
            [thoughts, words].iter().flat_map(|alike| pieces_v2(alike)).collect()
        }
    }
}

fn chunk_v1(piece: &Piece) -> Option<Value> {
    // The list of blocks is closed in v1.
    let is_known = |content: &Value| {
        content.get("type").and_then(Value::as_str).is_some_and(|kind| BLOCKS.contains(&kind))
    };
    let content = match piece.content.as_ref().map(block).filter(is_known) {
        Some(content) => content,
        // A client is told that a message was broken off, whatever its last block is.
        None if piece.aborted => text(""),
        None => return None,
    };
    Some(with_end(with(update(piece, "_chunk"), "content", content), piece))
}

/// Returns the updates for pieces of a message that are all said, or all thought.
fn pieces_v2(pieces: &[&Piece]) -> Vec<Value> {
    let Some(first) = pieces.first() else { return Vec::new() };
    let content = pieces.iter().filter_map(|piece| piece.content.as_ref()).map(block);
    // Only the last piece of a message can have been broken off.
    let last = pieces.last().unwrap_or(first);
    if first.begins {
        let content: Vec<_> = content.collect();
        return vec![with_end(with(update(first, ""), "content", content), last)];
    }
    let added = content.map(|content| with(update(first, "_chunk"), "content", content));
    // The end is told of the message, not of a chunk.
    let end = last.aborted.then(|| with_end(update(last, ""), last));
    added.chain(end).collect()
}

/// Returns the beginning of an update for a piece.
fn update(piece: &Piece, suffix: &str) -> Value {
    let Piece { message, words, .. } = piece;
    match words {
        Words::Said => {
            json!({ "sessionUpdate": format!("agent_message{suffix}"), "messageId": message })
        }
        Words::Thought => json!({
            "sessionUpdate": format!("agent_thought{suffix}"),
            "messageId": format!("{message}-thought"),
        }),
    }
}

/// Says that a message was broken off, if it was.
fn with_end(update: Value, piece: &Piece) -> Value {
    match piece.aborted {
        true => with(update, "_meta", json!({ EXTENSION: { "aborted": true } })),
        false => update,
    }
}

/// Something that people are shown beside words; nothing if the client's version has no word for
/// it. `session` is as the moment leaves it.
pub fn shown(peer: &Peer, session: &Session, shown: &Shown) -> Option<Value> {
    Some(match (shown, peer.version) {
        (Shown::Plan(entries), Version::V1) => {
            json!({ "sessionUpdate": "plan", "entries": entries })
        }
        (Shown::Plan(entries), Version::V2) => json!({
            "sessionUpdate": "plan_update",
            "plan": { "type": "items", "planId": PLAN, "entries": entries },
        }),
        (Shown::Context { used, size }, _) => usage(session, Some(Context::new(*used, *size))),
        (Shown::Commands(commands), version) => {
            let commands: Vec<_> = commands.iter().map(|one| command(version, one)).collect();
            json!({ "sessionUpdate": "available_commands_update", "availableCommands": commands })
        }
        (Shown::Mode(mode), Version::V1) => options::current_mode(mode),
        // The mode is one of the config options in v2; one that clients cannot choose is not told.
        (Shown::Mode(mode), version @ Version::V2) => {
            let is_chosen = |option: &SessionOption| option.is_mode() && option.value == *mode;
            return session
                .options
                .iter()
                .any(is_chosen)
                .then(|| options::config_update(version, session));
        }
        (Shown::Call { id, update }, version) => {
            let fields = call_fields(version, update);
            if fields.is_empty() {
                return None;
            }
            let mut told = Map::new();
            told.insert("sessionUpdate".to_owned(), "tool_call_update".into());
            told.insert("toolCallId".to_owned(), id.0.clone().into());
            told.extend(fields);
            Value::Object(told)
        }
        (Shown::Raw(update), _) => return passes(peer, update).then(|| update.clone()),
    })
}

/// How much of its context an agent has said that it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    used: u64,
    size: u64,
}

impl Context {
    /// Takes tokens in the context, and those that it has room for.
    pub const fn new(used: u64, size: u64) -> Self {
        Self { used, size }
    }

    /// Returns what an entry of the transcript says of the context, if it does.
    pub const fn of(shown: Option<&Shown>) -> Option<Self> {
        match shown {
            Some(Shown::Context { used, size }) => Some(Self::new(*used, *size)),
            _ => None,
        }
    }
}

/// What the session uses and has cost so far.
///
/// The protocol wants to know how full the context is with it. Of an agent that never said so, all
/// tokens are told that the session has used: there are no more than these in its context, whose
/// size is not known.
pub fn usage(session: &Session, context: Option<Context>) -> Value {
    let totals = &session.totals;
    let Context { used, size } = context.unwrap_or_else(|| Context::new(totals.tokens(), 0));
    let update = json!({ "sessionUpdate": "usage_update", "used": used, "size": size });
    match totals.cost_micro_usd {
        0 => update,
        cost => with(update, "cost", cost_usd(cost)),
    }
}

/// Returns what a session has cost so far.
fn cost_usd(micro: u64) -> Value {
    // A double has every amount that was ever paid, to the millionth.
    #[expect(clippy::cast_precision_loss, reason = "beyond nine thousand million dollars")]
    let amount = micro as f64 / 1_000_000.0;
    json!({ "amount": amount, "currency": "USD" })
}

/// Returns a command as a version has it: in v2 it says which kind it is.
fn command(version: Version, command: &Value) -> Value {
    match (version, command.get("type")) {
        (Version::V2, None) => with(command.clone(), "type", "command"),
        _ => command.clone(),
    }
}

/// Returns whether an update of the agent's own can be passed on.
fn passes(peer: &Peer, update: &Value) -> bool {
    let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
    match peer.version {
        Version::V1 => RAW.contains(&kind) && (kind != "notice" || peer.notices),
        // What begins with an underscore is for clients that know it; others ignore it.
        Version::V2 => RAW_V2.contains(&kind) || kind.starts_with('_'),
    }
}

#[cfg(test)]
mod tests {
    use adjourn::driver::{Block, Message, Segment};
    use adjourn::telling::Telling;

    use super::*;

    fn read(value: &Value) -> Block {
        Block::from_fields(value.as_object().unwrap().clone()).unwrap()
    }

    /// Returns a message with words, thoughts and a picture, and its blocks as clients know them.
    fn mixed() -> (Message, [Value; 4]) {
        let shown = [
            json!({ "type": "text", "text": "hm", "_meta": { "signature": "c2ln" } }),
            json!({ "type": "text", "text": "look", "annotations": { "priority": 1.0 } }),
            json!({ "type": "image", "data": "AA==", "mimeType": "image/png" }),
            json!({ "type": "text", "text": "so" }),
        ];
        let [hm, look, picture, so] = &shown;
        let thought = |value: &Value| read(&with(value.clone(), "type", "thought"));
        let said = vec![thought(hm), read(look), read(picture), thought(so)];
        (Message { blocks: said, ..Message::agent("") }, shown)
    }

    fn update(kind: &str, id: &str, content: &Value) -> Value {
        json!({ "sessionUpdate": kind, "messageId": id, "content": content })
    }

    fn told(version: Version, said: &Message) -> Vec<Value> {
        agent_pieces(version, &Telling::default().entry(7, said))
    }

    #[test]
    fn what_the_agent_says_and_thinks_is_told_block_by_block_in_v1() {
        let (said, [hm, look, picture, so]) = mixed();
        let expected = [
            update("agent_thought_chunk", "m7-thought", &hm),
            update("agent_message_chunk", "m7", &look),
            update("agent_message_chunk", "m7", &picture),
            update("agent_thought_chunk", "m7-thought", &so),
        ];
        assert_eq!(told(Version::V1, &said), expected);
    }

    #[test]
    fn what_the_agent_says_and_thinks_is_two_messages_in_v2() {
        let (said, [hm, look, picture, so]) = mixed();
        let expected = [
            update("agent_thought", "m7-thought", &json!([hm, so])),
            update("agent_message", "m7", &json!([look, picture])),
        ];
        assert_eq!(told(Version::V2, &said), expected);
        let calls_only = Message { blocks: Vec::new(), ..Message::agent("") };
        for version in [Version::V1, Version::V2] {
            assert_eq!(told(version, &calls_only), [Value::Null; 0]);
        }
    }

    #[test]
    fn only_the_last_piece_of_a_message_is_told_as_broken_off() {
        let (said, _) = mixed();
        let aborted = Message { aborted: true, ..said };
        let marked = |version| -> Vec<_> {
            let told = told(version, &aborted);
            told.iter().map(|update| update["_meta"][EXTENSION]["aborted"] == true).collect()
        };
        assert_eq!(marked(Version::V1), [false, false, false, true]);
        // The thought came last; what was said before it is whole.
        assert_eq!(marked(Version::V2), [true, false]);
        // A block that v1 has no word for is left out, and the end is told all the same.
        let of_another_day = read(&json!({ "type": "of_another_day" }));
        let blocks = vec![Block::text("so"), of_another_day];
        let aborted = Message { blocks, aborted: true, ..Message::agent("") };
        let end = json!({ EXTENSION: { "aborted": true } });
        let expected = [
            update("agent_message_chunk", "m7", &text("so")),
            with(update("agent_message_chunk", "m7", &text("")), "_meta", end),
        ];
        assert_eq!(told(Version::V1, &aborted), expected);
    }

    #[test]
    fn a_segment_goes_on_with_its_message() {
        let mut telling = Telling::default();
        let segment = |offset, words: &str| Message {
            id: Some("s4.1".to_owned()),
            segment: Some(Segment { offset, last: false }),
            ..Message::agent(words)
        };
        let first = agent_pieces(Version::V2, &telling.entry(7, &segment(0, "one ")));
        assert_eq!(first, [update("agent_message", "s4.1", &json!([text("one ")]))]);
        let aborted = Message { aborted: true, ..segment(4, "two") };
        let mut again = telling.clone();
        let second = agent_pieces(Version::V2, &telling.entry(8, &aborted));
        let end = json!({ EXTENSION: { "aborted": true } });
        let broken_off =
            json!({ "sessionUpdate": "agent_message", "messageId": "s4.1", "_meta": end });
        assert_eq!(second, [update("agent_message_chunk", "s4.1", &text("two")), broken_off]);
        let v1 = agent_pieces(Version::V1, &again.entry(8, &aborted));
        let chunk = update("agent_message_chunk", "s4.1", &text("two"));
        assert_eq!(v1, [with(chunk, "_meta", end)]);
    }

    #[test]
    fn what_a_version_has_no_word_for_is_not_sent() {
        let info = json!({ "name": "editor" });
        let peer = |version| Peer::new(version, Default::default(), &info, &json!({}));
        let raw = |kind: &str| Shown::Raw(json!({ "sessionUpdate": kind, "x": 1 }));
        for (kind, v1, v2) in [
            ("config_option_update", true, true),
            ("_vendor", false, true),
            ("terminal_update", false, true),
            ("plan", true, false),
            ("notice", false, true),
            ("someday", false, false),
        ] {
            let Shown::Raw(update) = raw(kind) else { continue };
            assert_eq!(passes(&peer(Version::V1), &update), v1, "{kind}");
            assert_eq!(passes(&peer(Version::V2), &update), v2, "{kind}");
        }
    }
}
