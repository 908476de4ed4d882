//! A watcher is told each word once, in the order of the transcript, however it comes.

use std::sync::Arc;

use adjourn::live::{Delta, Missed};
use adjourn::telling::{Piece, Telling};
use adjourn_core::id::Epoch;
use adjourn_core::journal::Entry;
use adjourn_core::{Session, json};
use adjourn_driver::{Block, Message, Role, Segment, Words};

/// Words of one message, as a model says them.
const WORDS: [&str; 5] = ["one ", "zwei ", "trøis ", "four ", "five"];
/// The revision at which the step began, and the entries that lay before it.
const SINCE: u64 = 4;
const BEFORE: u64 = 2;

/// Returns a session at a revision, with some entries in its transcript.
fn session(revision: u64, length: u64) -> Session {
    let golden = include_str!("../../../adjourn-core/tests/golden/session_created.1.json");
    let entry: Entry = json::stored(golden.as_bytes()).unwrap();
    let mut session = Session::born(&entry.event).unwrap();
    session.revision = revision;
    session.transcript.length = length;
    session
}

fn delta(message: &str, offset: usize, text: &str, entry: u64) -> Arc<Delta> {
    Arc::new(Delta {
        message: message.to_owned(),
        offset: offset as u64,
        words: Words::Said,
        text: text.to_owned(),
        epoch: Epoch(0),
        since: SINCE,
        entry,
    })
}

fn segment(id: &str, offset: usize, last: bool, words: &str) -> Message {
    let segment = Some(Segment { offset: offset as u64, last });
    let blocks = if words.is_empty() { Vec::new() } else { vec![Block::text(words)] };
    Message { id: Some(id.to_owned()), segment, ..Message::new(Role::Agent, blocks) }
}

fn words(pieces: &[Piece]) -> String {
    pieces.iter().filter_map(|piece| piece.content.as_ref()?.words()).collect()
}

#[test]
fn whatever_is_missed_and_wherever_segments_end_each_word_is_told_once() {
    let count = WORDS.len();
    for missed in 0..1_u32 << count {
        for cuts in 0..1_u32 << count {
            let mut telling = Telling::default();
            let (mut told, mut entry, mut offset, mut fresh) =
                (String::new(), BEFORE, 0, String::new());
            for (index, word) in WORDS.iter().enumerate() {
                if missed & (1 << index) == 0 {
                    telling.hear(Ok(delta("s4.1", offset + fresh.len(), word, entry)));
                }
                fresh += word;
                let now = session(SINCE + entry - BEFORE, entry);
                told += &words(&telling.due(&now));
                if cuts & (1 << index) != 0 {
                    let piece = segment("s4.1", offset, false, &fresh);
                    told += &words(&telling.entry(entry, &piece));
                    (offset, entry) = (offset + fresh.len(), entry + 1);
                    fresh.clear();
                }
                assert!(WORDS.concat().starts_with(&told), "{told}");
            }
            told += &words(&telling.entry(entry, &segment("s4.1", offset, true, &fresh)));
            assert_eq!(told, WORDS.concat(), "missed {missed:b}, cut {cuts:b}");
            assert!(!telling.knows("s4.1"));
            // It is over with its end, so nothing is broken off with its step.
            assert_eq!(telling.after(&session(20, 20)), []);
        }
    }
}

#[test]
fn words_wait_for_what_lies_before_them() {
    let mut telling = Telling::default();
    telling.hear(Ok(delta("s4.1", 0, "late", BEFORE + 1)));
    assert_eq!(telling.due(&session(SINCE - 1, BEFORE)), [], "their step is not known");
    assert_eq!(telling.due(&session(SINCE, BEFORE)), [], "an entry lies between");
    assert!(telling.waits());
    assert_eq!(words(&telling.due(&session(SINCE + 1, BEFORE + 1))), "late");
    assert!(!telling.waits());
    // Words behind a message that was told to here do not wait for its commit.
    telling.hear(Ok(delta("s4.2", 0, "next", BEFORE + 2)));
    assert_eq!(words(&telling.due(&session(SINCE + 1, BEFORE + 1))), "next");
    // If something was missed, they do.
    telling.hear(Err(Missed));
    telling.hear(Ok(delta("s4.3", 0, "behind", BEFORE + 3)));
    assert_eq!(telling.due(&session(SINCE + 1, BEFORE + 1)), []);
    assert_eq!(words(&telling.due(&session(SINCE + 2, BEFORE + 3))), "behind");
}

/// A message of a step that goes on may be committed before its words are heard.
#[test]
fn words_of_a_message_that_was_told_whole_are_not_told_again() {
    let mut telling = Telling::default();
    let whole = Message { segment: None, ..segment("s4.1", 0, true, "one two") };
    assert_eq!(words(&telling.entry(BEFORE, &whole)), "one two");
    telling.hear(Ok(delta("s4.1", 0, "one ", BEFORE)));
    telling.hear(Ok(delta("s4.1", 4, "two", BEFORE)));
    telling.hear(Ok(delta("s4.2", 0, "three", BEFORE + 1)));
    assert_eq!(words(&telling.due(&session(SINCE + 1, BEFORE + 1))), "three");
}

/// Words may come between the moment from which a watcher hears them and its look at the session.
#[test]
fn a_watcher_that_comes_is_told_no_words_of_what_lies_behind_it() {
    // As it begins where the next step speaks already.
    let mut telling = Telling::default();
    telling.hear(Ok(delta("s4.1", 0, "old ", BEFORE)));
    assert_eq!(telling.due(&session(SINCE + 2, BEFORE + 1)), []);
    assert!(!telling.waits());
}

/// A host that hung, and whose session another host of the process has taken, still speaks.
#[test]
fn words_that_are_said_under_a_claim_that_is_over_are_not_told() {
    let mut now = session(SINCE + 4, BEFORE);
    now.epoch = Epoch(2);
    let mut telling = Telling::default();
    let stale = Delta { epoch: Epoch(1), ..Delta::clone(&delta("s4.1", 0, "stale", BEFORE)) };
    telling.hear(Ok(Arc::new(stale)));
    let own = Delta {
        epoch: Epoch(2),
        since: SINCE + 4,
        ..Delta::clone(&delta("s8.1", 0, "fresh", BEFORE))
    };
    telling.hear(Ok(Arc::new(own)));
    assert_eq!(words(&telling.due(&now)), "fresh");
}

#[test]
fn what_never_commits_is_broken_off_once_and_its_step_says_no_more() {
    let mut telling = Telling::default();
    telling.hear(Ok(delta("s4.1", 0, "half a", BEFORE)));
    telling.due(&session(SINCE, BEFORE));
    let over = telling.after(&session(SINCE + 1, BEFORE));
    assert_eq!(over.len(), 1);
    assert!(over[0].aborted && over[0].content.is_none() && over[0].message == "s4.1");
    assert_eq!(telling.after(&session(SINCE + 2, BEFORE)), []);
    telling.hear(Ok(delta("s4.1", 6, " word", BEFORE)));
    assert_eq!(telling.due(&session(SINCE + 2, BEFORE)), []);
    assert!(!telling.waits());
}

#[test]
fn the_words_that_an_abort_commits_are_told_with_it() {
    let mut telling = Telling::default();
    telling.hear(Ok(delta("s4.1", 0, "half ", BEFORE)));
    telling.due(&session(SINCE, BEFORE));
    let entry = Message { segment: None, aborted: true, ..segment("s4.1", 0, false, "half a") };
    let pieces = telling.entry(BEFORE, &entry);
    assert_eq!(words(&pieces), "a");
    assert!(pieces[0].aborted && !pieces[0].begins);
    assert_eq!(telling.after(&session(SINCE + 1, BEFORE + 1)), [], "that was told");
}

#[test]
fn only_a_text_right_behind_another_of_its_message_stands_apart() {
    let picture = serde_json::json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
    let picture = Block::from_fields(picture.as_object().unwrap().clone()).unwrap();
    let blocks = ["one", "two"].map(Block::text).to_vec();
    let blocks = [blocks, vec![picture, Block::text("three"), Block::thought("hm")]].concat();
    let pieces = Telling::default().entry(BEFORE, &Message::new(Role::Agent, blocks));
    let apart: Vec<_> = pieces.iter().map(|piece| piece.apart).collect();
    assert_eq!(apart, [false, true, false, false, false]);
    let begins: Vec<_> = pieces.iter().map(|piece| piece.begins).collect();
    assert_eq!(begins, [true, false, false, false, true]);
}
