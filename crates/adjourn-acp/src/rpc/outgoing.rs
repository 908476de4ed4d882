//! Messages to a client, as lines of JSON.

use serde::Serialize;
use serde_json::Value;

use super::{Error, Id};

/// Messages that go out together, in order: lines of JSON.
#[derive(Debug, Default)]
pub struct Outgoing(Vec<u8>);

impl Outgoing {
    /// Adds a notification.
    pub fn notify(&mut self, method: &str, params: &impl Serialize) {
        self.line(|line| {
            line.extend_from_slice(br#"{"jsonrpc":"2.0","method":""#);
            line.extend_from_slice(method.as_bytes());
            line.extend_from_slice(br#"","params":"#);
            serde_json::to_writer(line, params)
        });
    }

    /// Adds a request of ours.
    pub fn request(&mut self, id: &Id, method: &str, params: &impl Serialize) {
        self.line(|line| {
            line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            line.extend_from_slice(id.as_json().as_bytes());
            line.extend_from_slice(br#","method":""#);
            line.extend_from_slice(method.as_bytes());
            line.extend_from_slice(br#"","params":"#);
            serde_json::to_writer(line, params)
        });
    }

    /// Adds the answer to a request.
    pub fn respond(&mut self, id: &Id, result: &Result<Value, Error>) {
        self.line(|line| {
            line.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            line.extend_from_slice(id.as_json().as_bytes());
            match result {
                Ok(result) => {
                    line.extend_from_slice(br#","result":"#);
                    serde_json::to_writer(line, result)
                }
                Err(error) => {
                    line.extend_from_slice(br#","error":"#);
                    serde_json::to_writer(line, &error.to_json())
                }
            }
        });
    }

    /// Returns how many bytes wait to go out.
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether nothing waits to go out.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes what waits to go out.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }

    fn line(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>) {
        let start = self.0.len();
        match write(&mut self.0) {
            Ok(()) => self.0.push(b'}'),
            // Nothing we send fails to encode; half a line would break all that follow.
            Err(_) => self.0.truncate(start),
        }
        if self.0.len() > start {
            self.0.push(b'\n');
        }
    }
}
