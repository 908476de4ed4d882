//! Long answers, kept until their peers have taken them.
//!
//! A slow reader must not keep others from being answered, and what is answered was mostly done already,
//! so that an answer is never refused. Where there is too much of them, the connection is closed that has
//! had one for longest: its peer asks again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use axum::body::Bytes;

use crate::connections::ConnectionSlot;

/// What an answer may have that is not counted: as many of these as there are connections take less
/// than the long ones.
const SHORT_BYTES: usize = 64 * 1024;

/// The long answers of all connections.
#[derive(Debug, Clone)]
pub(crate) struct Answers(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    /// How many bytes there may be.
    most: usize,
    bytes: usize,
    last: u64,
    /// By their numbers, in the order in which they were given.
    answers: BTreeMap<u64, Answer>,
}

#[derive(Debug)]
struct Answer {
    bytes: usize,
    connection: Weak<ConnectionSlot>,
}

/// The text of an answer. It is dropped when the last of it is written, or its connection is closed.
struct Text {
    text: String,
    number: u64,
    answers: Answers,
}

impl Answers {
    /// Makes room for so many bytes.
    pub(crate) fn new(most: usize) -> Self {
        let (bytes, last, answers) = (0, 0, BTreeMap::new());
        Self(Arc::new(Mutex::new(Kept { most, bytes, last, answers })))
    }

    /// Makes the body of an answer, or a part of it, that is written to a connection.
    pub(crate) fn body(&self, text: String, connection: &Arc<ConnectionSlot>) -> Bytes {
        if text.len() <= SHORT_BYTES {
            return Bytes::from(text);
        }
        let number = self.kept().add(text.len(), connection);
        Bytes::from_owner(Text { text, number, answers: self.clone() })
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Counts an answer, and closes connections until there is room for it; returns its number.
    fn add(&mut self, bytes: usize, connection: &Arc<ConnectionSlot>) -> u64 {
        while self.bytes + bytes > self.most
            && let Some((_, oldest)) = self.answers.pop_first()
        {
            self.bytes -= oldest.bytes;
            if let Some(connection) = oldest.connection.upgrade() {
                connection.hang_up();
            }
        }
        self.last += 1;
        self.bytes += bytes;
        let connection = Arc::downgrade(connection);
        self.answers.insert(self.last, Answer { bytes, connection });
        self.last
    }

    fn remove(&mut self, number: u64) {
        if let Some(answer) = self.answers.remove(&number) {
            self.bytes -= answer.bytes;
        }
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        self.answers.kept().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;
    use crate::connections::Connections;

    fn is_hung_up(connection: &ConnectionSlot) -> bool {
        let given_away = pin!(connection.given_away());
        given_away.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn where_there_is_too_much_who_has_had_an_answer_for_longest_is_hung_up_on() {
        let (connections, answers) = (Connections::new(8), Answers::new(SHORT_BYTES * 3));
        let [slow, fast, late] = [(); 3].map(|()| connections.admit());
        let long = || "x".repeat(SHORT_BYTES + 1);
        let mut kept = answers.body(long(), &slow);
        let taken = answers.body(long(), &fast);
        drop(taken);
        assert_eq!(answers.kept().bytes, SHORT_BYTES + 1);
        let _second = answers.body(long(), &fast);
        assert_eq!(answers.body("x".repeat(SHORT_BYTES), &late).len(), SHORT_BYTES);
        assert!(!is_hung_up(&slow));
        let _third = answers.body(long(), &late);
        assert!(is_hung_up(&slow) && !is_hung_up(&fast));
        // Of an answer that is sent in parts, each keeps all of it.
        let part = kept.split_off(SHORT_BYTES);
        drop((kept, part));
        assert_eq!(answers.kept().bytes, 2 * (SHORT_BYTES + 1));
    }
}
