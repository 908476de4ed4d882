//! What a model is shown of long texts: the beginning and the end.

use std::collections::VecDeque;

/// How much of a command's output is kept of the beginning, and as much again of the end.
const HALF: usize = 16 * 1024;

/// The beginning and the end of what a command says.
#[derive(Default)]
pub(super) struct Cut {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Cut {
    /// How much is kept at most.
    pub(super) const BYTES: usize = 2 * HALF;

    /// Takes more of it.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = HALF.saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let over = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..over);
    }

    /// Returns whether something was left out.
    pub(super) fn is_cut(&self) -> bool {
        self.left_out() > 0
    }

    fn left_out(&self) -> u64 {
        self.total - self.head.len() as u64 - self.tail.len() as u64
    }

    /// Returns it as a text, with a note where something was left out.
    pub(super) fn text(&self) -> String {
        let (mut bytes, tail) = (self.head.clone(), self.tail.iter());
        if self.is_cut() {
            let note = format!("\n[{} bytes are left out here]\n", self.left_out());
            bytes.extend_from_slice(note.as_bytes());
        }
        bytes.extend(tail);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the text of a file, or nothing if it is binary.
pub(super) fn as_text(bytes: Vec<u8>) -> Option<String> {
    if bytes.contains(&0) {
        return None;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_in_the_middle() {
        let mut cut = Cut::default();
        cut.push(b"begin ");
        assert_eq!((cut.text().as_str(), cut.is_cut()), ("begin ", false));
        for _ in 0..Cut::BYTES {
            cut.push(b"xy");
        }
        cut.push(b" end");
        let text = cut.text();
        assert!(text.starts_with("begin xy") && text.ends_with("xy end") && cut.is_cut());
        assert!(text.contains(&format!("[{} bytes are left out here]", Cut::BYTES + 10)));
        assert!(text.len() < Cut::BYTES + 50);
    }
}
