//! Server-sent events, taken apart as their bytes come.

/// More than an agent may say in one event.
const MOST: usize = 32 * 1024 * 1024;

/// An event is longer than any that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an event of its stream is longer than {} MiB", MOST >> 20)
    }
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEvent {
    /// The last id that was said.
    pub id: Option<String>,
    /// What is told.
    pub data: Vec<u8>,
}

/// Takes the bytes of a stream, and returns its events.
#[derive(Debug, Default)]
pub struct EventReader {
    /// What has come of a line that is not whole yet.
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    id: Option<String>,
}

impl EventReader {
    /// Takes the next bytes, and returns the events that are whole with them. Comments, which keep a
    /// stream alive, are none.
    ///
    /// # Errors
    /// An event is too long.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<ReadEvent>, TooLong> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + self.data.len() + piece.len() > MOST {
                return Err(TooLong);
            }
            self.line.extend_from_slice(piece);
            if self.line.pop_if(|last| *last == b'\n').is_some() {
                self.line.pop_if(|last| *last == b'\r');
                let line = std::mem::take(&mut self.line);
                events.extend(self.take_line(&line));
            }
        }
        Ok(events)
    }

    fn take_line(&mut self, line: &[u8]) -> Option<ReadEvent> {
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            let is_event = std::mem::take(&mut self.has_data);
            return is_event.then(|| ReadEvent { id: self.id.clone(), data });
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => line.split_at(colon),
            None => (line, &[] as &[u8]),
        };
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"id" => {
                // It comes back in a header, which takes nothing else.
                let is_plain = value.iter().all(|byte| (0x20..0x7f).contains(byte));
                let text = std::str::from_utf8(value).ok().filter(|_| is_plain);
                self.id = text.map(str::to_owned);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = ": still here\n\nid: 3\ndata: {\"a\":1}\n\nretry: 5\ndata:x\r\ndata: y\r\n\r\n\
                          event: other\nid: 4.1\ndata: z\n\ndata: never whole\n";

    #[test]
    fn events_are_read_wherever_the_bytes_are_cut() {
        for size in 1..STREAM.len() {
            let (mut reader, mut events) = (EventReader::default(), Vec::new());
            for bytes in STREAM.as_bytes().chunks(size) {
                events.extend(reader.take(bytes).unwrap());
            }
            let events: Vec<_> = events
                .iter()
                .map(|event| (event.id.as_deref(), std::str::from_utf8(&event.data).unwrap()))
                .collect();
            let expected = [(Some("3"), "{\"a\":1}"), (Some("3"), "x\ny"), (Some("4.1"), "z")];
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn an_event_that_never_ends_is_given_up() {
        let mut reader = EventReader::default();
        let megabyte = vec![b'x'; 1 << 20];
        let taken = (0..64).map(|_| reader.take(&megabyte)).find(Result::is_err);
        assert_eq!(taken, Some(Err(TooLong)));
    }
}
