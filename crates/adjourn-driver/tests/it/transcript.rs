//! A transcript is read from its end, page by page, and no further than is wanted.

use std::sync::{Arc, Mutex};

use adjourn_driver::{Message, ReadTranscript, Transcript, TranscriptError, model_view};

/// Entries in memory, and what was read of them.
struct Entries {
    entries: Vec<Message>,
    read: Mutex<Vec<(u64, usize)>>,
}

impl ReadTranscript for Entries {
    fn read(&self, from: u64, limit: usize) -> Result<Vec<Message>, TranscriptError> {
        self.read.lock().unwrap().push((from, limit));
        let from = usize::try_from(from).unwrap();
        Ok(self.entries[from..from + limit].to_vec())
    }
}

fn transcript(entries: Vec<Message>) -> (Arc<Entries>, Transcript) {
    let length = entries.len() as u64;
    let entries = Arc::new(Entries { entries, read: Mutex::default() });
    (Arc::clone(&entries), Transcript::new(entries, length))
}

fn said(count: usize) -> Vec<Message> {
    (0..count).map(|number| Message::host(number.to_string())).collect()
}

#[test]
fn what_a_model_is_shown_does_not_depend_on_where_a_page_begins() {
    for length in [0, 1, 255, 256, 257, 512, 513, 700] {
        for digest in [None, Some(0), Some(1), Some(254), Some(255), Some(256), Some(257)] {
            let mut entries = said(length);
            match digest.map(|digest| entries.get_mut(digest)) {
                Some(Some(entry)) => entry.digest = true,
                Some(None) => continue,
                None => {}
            }
            let (source, transcript) = transcript(entries);
            assert_eq!(transcript.messages().unwrap(), model_view(&source.entries));
        }
    }
}

#[test]
fn nothing_before_the_page_of_the_last_digest_is_read() {
    let mut entries = said(1000);
    entries[10].digest = true;
    entries[800].digest = true;
    let (source, transcript) = transcript(entries);
    assert_eq!(transcript.messages().unwrap().len(), 200);
    assert_eq!(*source.read.lock().unwrap(), [(744, 256), (784, 16)]);
}

/// A turn that is given a digest begins with what a person said, which was said before it.
#[test]
fn what_a_person_said_right_before_a_digest_is_shown_behind_it() {
    for said_before in [0, 3, 300] {
        let mut entries = said(said_before);
        entries.push(Message { digest: true, ..Message::host("an earlier digest") });
        entries.push(Message::user("before"));
        entries.push(Message::agent("an answer"));
        entries.extend(["one", "two"].map(Message::user));
        entries.push(Message { digest: true, ..Message::host("in short") });
        entries.push(Message::host("woken"));
        let (source, transcript) = transcript(entries);
        let view = transcript.messages().unwrap();
        let words: Vec<_> = view.iter().map(|said| said.blocks[0].words().unwrap()).collect();
        assert_eq!(words, ["in short", "one", "two", "woken"]);
        assert_eq!(view, model_view(&source.entries));
    }
}

#[test]
fn entries_right_before_a_place_come_in_order() {
    let (source, transcript) = transcript(said(10));
    assert_eq!(transcript.before(7, 3).unwrap(), source.entries[4..7]);
    assert_eq!(transcript.before(2, 5).unwrap(), source.entries[..2]);
    assert_eq!(transcript.before(99, 4).unwrap(), source.entries[6..]);
    assert_eq!(transcript.before(0, 4).unwrap(), []);
}
