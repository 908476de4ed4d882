//! Lines of bounded length from a stream; one that is too long costs itself and nothing else.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How long a line may be: the largest prompt, and room for how its sender writes it.
pub const LINE_BYTES: usize = 16 * 1024 * 1024;
/// How much is kept of a line that is too long: enough to see which request it is.
const START: usize = 1024;
/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// A stream that is read line by line.
#[derive(Debug)]
pub struct Lines<R> {
    from: R,
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// How far was looked for its end.
    looked: usize,
    /// The start of a line that is too long, while the rest of it is being thrown away.
    skipping: Option<Vec<u8>>,
    /// The start of the last one that was.
    skipped: Vec<u8>,
}

/// A line, or what was there instead.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line, without its end.
    Whole(&'a [u8]),
    /// The start of a line longer than [`LINE_BYTES`]; the rest is not kept.
    TooLong(&'a [u8]),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines from a stream.
    pub const fn new(from: R) -> Self {
        Self { from, buffer: Vec::new(), start: 0, looked: 0, skipping: None, skipped: Vec::new() }
    }

    /// Returns whether the next line is here already.
    pub fn is_ready(&self) -> bool {
        let rest = self.buffer.get(self.looked..).unwrap_or_default();
        memchr::memchr(b'\n', rest).is_some()
    }

    /// Returns the next line, or nothing at the end of the stream.
    ///
    /// What stands between the last line's end and the end of the stream is a line, too.
    ///
    /// # Errors
    /// The stream fails.
    pub async fn next(&mut self) -> std::io::Result<Option<Line<'_>>> {
        loop {
            let rest = self.buffer.get(self.looked..).unwrap_or_default();
            if let Some(length) = memchr::memchr(b'\n', rest) {
                let (start, end) = (self.start, self.looked + length);
                self.start = end + 1;
                self.looked = self.start;
                if let Some(line) = self.skipping.take() {
                    self.skipped = line;
                    return Ok(Some(Line::TooLong(&self.skipped)));
                }
                let line = self.buffer.get(start..end).unwrap_or_default();
                return Ok(Some(Line::Whole(line.strip_suffix(b"\r").unwrap_or(line))));
            }
            self.looked = self.buffer.len();
            if self.looked - self.start > LINE_BYTES && self.skipping.is_none() {
                let line = self.buffer.get(self.start..).unwrap_or_default();
                self.skipping = Some(line.get(..START).unwrap_or(line).to_vec());
            }
            if self.skipping.is_some() {
                self.start = self.looked;
            }
            if !self.fill().await? {
                if self.buffer.is_empty() || self.skipping.is_some() {
                    return Ok(None);
                }
                self.buffer.push(b'\n');
            }
        }
    }

    /// Reads more; returns whether there was any.
    async fn fill(&mut self) -> std::io::Result<bool> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.looked -= self.start;
            self.start = 0;
            // A long line is over; the room it took is given back.
            if self.buffer.is_empty() && self.buffer.capacity() > 4 * CHUNK {
                self.buffer = Vec::new();
            }
        }
        self.buffer.reserve(CHUNK);
        Ok(self.from.read_buf(&mut self.buffer).await? > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let mut bytes = b"one\r\n".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', 3 * LINE_BYTES));
        bytes.extend(b"\ntwo\nhalf");
        let mut lines = Lines::new(bytes.as_slice());
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(b"one")));
        assert_eq!(lines.next().await.unwrap(), Some(Line::TooLong(&[b'x'; START])));
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(b"two")));
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(b"half")));
        assert_eq!(lines.next().await.unwrap(), None);
        assert!(lines.buffer.capacity() < LINE_BYTES, "the room is given back");
    }

    #[tokio::test]
    async fn lines_come_whole_however_the_stream_is_cut() {
        let text = b"a\n\nbcd\n";
        for cut in 0..text.len() {
            let (head, tail) = text.split_at(cut);
            let mut lines = Lines::new(head.chain(tail));
            for expected in [&b"a"[..], b"", b"bcd"] {
                assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(expected)), "{cut}");
            }
            assert_eq!(lines.next().await.unwrap(), None);
        }
    }
}
