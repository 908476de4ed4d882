//! An editor that reads no more into what it hears than it must: it shares the machine with what is
//! measured.

use std::io;
use std::process::Command;

use serde_json::Value;

use super::request;
use crate::process::{Child, Pipe};

/// An editor that has introduced itself, and keeps nothing of what was said.
#[derive(Debug)]
pub struct Unread {
    /// The agent's pipe, for lines that are sent and read as they are.
    pub agent: Pipe,
    next: u64,
}

impl Unread {
    /// Starts an agent, and introduces an editor.
    ///
    /// # Errors
    /// It cannot be started, or does not answer well.
    pub fn start(command: &mut Command, greeting: &Value) -> io::Result<Self> {
        let mut editor = Self { agent: Pipe::start(command)?, next: 1 };
        editor.call("initialize", greeting)?;
        Ok(editor)
    }

    /// Returns a request as a line.
    pub fn line(id: u64, method: &str, params: &Value) -> String {
        request(id, method, params).to_string() + "\n"
    }

    /// Sends a request, and returns its id.
    ///
    /// # Errors
    /// The agent has ended.
    pub fn send(&mut self, method: &str, params: &Value) -> io::Result<u64> {
        let id = self.next;
        self.next += 1;
        self.agent.tell(Self::line(id, method, params))?;
        Ok(id)
    }

    /// Reads the next message; returns whether it is the answer to a request.
    ///
    /// # Errors
    /// The agent has ended.
    pub fn is_answer(&mut self, id: u64) -> io::Result<bool> {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        Ok(self.agent.line()?.starts_with(&answer))
    }

    /// Sends a request, and returns the whole of its answer.
    ///
    /// # Errors
    /// The agent has ended, or answers with an error.
    pub fn call(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        let id = self.send(method, params)?;
        loop {
            let message: Value = serde_json::from_str(&self.agent.line()?)?;
            if message["id"] != id || message.get("method").is_some() {
                continue;
            }
            return match message.get("error") {
                Some(_) => Err(io::Error::other(format!("the agent answered {message}"))),
                None => Ok(message),
            };
        }
    }

    /// Returns the agent's process.
    pub fn process(&self) -> &Child {
        self.agent.child()
    }
}
