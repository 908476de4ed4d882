//! Messages that were committed piece by piece are shown as one, or not at all.

use adjourn_core::ledger::CallId;
use adjourn_driver::{Block, CallContent, Joining, Message, Role, Segment, model_view};
use serde_json::{Value, json};

fn part(id: &str, offset: u64, last: bool, blocks: Vec<Block>) -> Message {
    let segment = Some(Segment { offset, last });
    Message { id: Some(id.to_owned()), segment, ..Message::new(Role::Agent, blocks) }
}

fn text(id: &str, offset: u64, last: bool, words: &str) -> Message {
    part(id, offset, last, vec![Block::text(words)])
}

fn block(value: Value) -> Block {
    Block::from_fields(value.as_object().unwrap().clone()).unwrap()
}

/// Returns the blocks that the agent says, message by message, after a prompt.
fn agent_says(parts: impl IntoIterator<Item = Message>) -> Vec<Vec<Value>> {
    let entries: Vec<_> = std::iter::once(Message::user("go")).chain(parts).collect();
    let view = model_view(&entries).into_iter().skip(1);
    view.map(|message| message.blocks.iter().map(Block::to_value).collect()).collect()
}

fn words(parts: impl IntoIterator<Item = Message>) -> Vec<String> {
    let said = agent_says(parts).into_iter();
    let texts = said.flat_map(|blocks| blocks.into_iter().map(|block| block["text"].clone()));
    texts.map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn segments_are_one_message() {
    assert_eq!(words([text("m", 0, false, "on"), text("m", 2, true, "e")]), ["one"]);
    let three = [text("m", 0, false, "a"), text("m", 1, false, "b"), text("m", 2, true, "c")];
    assert_eq!(words(three), ["abc"]);
    assert_eq!(words([text("m", 0, true, "whole")]), ["whole"]);
}

#[test]
fn messages_said_at_the_same_time_stay_apart() {
    let parts = [
        text("m", 0, false, "m1"),
        text("n", 0, false, "n1"),
        text("m", 2, true, "m2"),
        text("n", 2, true, "n2"),
    ];
    // They are one message of the agent's, with a block for each.
    assert_eq!(words(parts), ["m1m2", "n1n2"]);
}

#[test]
fn what_has_no_end_no_beginning_or_a_hole_is_not_shown() {
    assert_eq!(words([text("m", 0, false, "no end")]), [""; 0]);
    assert_eq!(words([text("m", 9, true, "no beginning")]), [""; 0]);
    assert_eq!(words([text("m", 0, false, "a hole"), text("m", 9, true, "x")]), [""; 0]);
    let aborted = Message { aborted: true, ..text("m", 0, false, "a") };
    assert_eq!(words([aborted, text("m", 1, true, "b")]), [""; 0]);
    let aborted = Message { aborted: true, ..text("m", 1, true, "b") };
    assert_eq!(words([text("m", 0, false, "a"), aborted]), [""; 0]);
}

#[test]
fn a_message_that_begins_anew_leaves_the_broken_one_behind() {
    let parts = [text("m", 0, false, "brok"), text("m", 0, false, "who"), text("m", 3, true, "le")];
    assert_eq!(words(parts), ["whole"]);
}

#[test]
fn a_message_that_began_before_the_digest_is_not_shown() {
    let digest = Message { digest: true, ..Message::host("[adjourn] In short") };
    assert_eq!(words([text("m", 0, false, "a"), digest, text("m", 1, true, "b")]), [""; 0]);
}

#[test]
fn offsets_count_bytes_and_thoughts() {
    let parts = [
        part("m", 0, false, vec![Block::thought("grü")]),
        part("m", 4, false, vec![Block::thought("bel"), Block::text("ä")]),
        part("m", 9, true, vec![Block::text("h")]),
    ];
    let expected = json!([
        { "type": "thought", "text": "grübel" }, { "type": "text", "text": "äh" },
    ]);
    assert_eq!(json!(agent_says(parts)), json!([expected]));
}

#[test]
fn blocks_without_words_keep_their_place_and_need_none() {
    let picture = block(json!({ "type": "image", "data": "AA==", "mimeType": "image/png" }));
    let parts = [
        part("m", 0, false, vec![picture.clone()]),
        part("m", 0, false, vec![Block::text("see"), picture.clone()]),
        part("m", 3, true, vec![Block::text("above")]),
    ];
    let expected = [picture.to_value(), json!({ "type": "text", "text": "see" })];
    let expected =
        [&expected[..], &[picture.to_value(), json!({ "type": "text", "text": "above" })]];
    assert_eq!(agent_says(parts), [expected.concat()]);
}

#[test]
fn a_block_keeps_what_it_says_about_itself() {
    let noted = |words: &str| json!({ "type": "text", "text": words, "_meta": { "k": 1 } });
    // The rest of a block need not say it again; what says something else is another block.
    let rest = [block(noted("a")), Block::text("b"), block(noted("c"))];
    let other = block(json!({ "type": "text", "text": "d", "annotations": {} }));
    let [first, second, third] = rest;
    let parts = [
        part("m", 0, false, vec![first]),
        part("m", 1, false, vec![second]),
        part("m", 2, false, vec![third]),
        part("m", 3, true, vec![other.clone(), Block::text("e")]),
    ];
    let expected = [noted("abc"), other.to_value(), json!({ "type": "text", "text": "e" })];
    assert_eq!(agent_says(parts), [expected]);
}

#[test]
fn calls_come_with_whichever_segment_asks_for_them() {
    let call = |id: &str| CallContent::new(CallId(id.to_owned()), "build");
    let entries = [
        Message::user("go"),
        Message { calls: vec![call("a")], ..text("m", 0, false, "I ") },
        Message { calls: vec![call("b")], ..text("m", 2, true, "build") },
        Message::result(CallId("b".to_owned()), vec![Block::text("built b")]),
        Message::result(CallId("a".to_owned()), vec![Block::text("built a")]),
    ];
    let view = model_view(&entries);
    assert_eq!(view[1].calls, [call("a"), call("b")]);
    let results: Vec<_> = view[2..].iter().map(|message| message.blocks[0].words()).collect();
    assert_eq!(results, [Some("built a"), Some("built b")]);
}

#[test]
fn segments_that_come_one_by_one_are_handed_out_whole_or_as_broken_off() {
    let mut joining = Joining::default();
    assert_eq!(joining.take(3, &text("m", 0, false, "on")), None);
    let shown = Message::agent("at once");
    assert_eq!(joining.take(4, &shown), Some((4, shown.clone())));
    assert_eq!(joining.open().map(|(_, open)| open.text()).collect::<Vec<_>>(), ["on"]);
    let (number, whole) = joining.take(5, &text("m", 2, true, "e")).unwrap();
    assert_eq!((number, whole.text().as_str(), whole.segment), (3, "one", None));
    assert!(joining.break_off().is_empty() && !whole.aborted);
    joining.take(6, &text("n", 0, false, "tw"));
    let aborted = Message { aborted: true, ..text("n", 2, false, "o") };
    assert!(joining.take(7, &aborted).is_some_and(|(_, n)| n.aborted && n.text() == "two"));
    joining.take(8, &text("o", 0, false, "thr"));
    let broken: Vec<_> = joining.break_off();
    assert!(matches!(&broken[..], [(8, o)] if o.aborted && o.text() == "thr"), "{broken:?}");
}
