//! An editor at the other end of a pipe that reads no more into what it hears than it must: it
//! shares the machine with what is measured.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::child::Child;

/// An editor that has introduced itself.
pub struct Editor {
    /// The agent.
    pub child: Child,
    next: u64,
}

impl Editor {
    /// Introduces an editor to an agent.
    pub fn greet(child: Child, greeting: &Value) -> Result<Self> {
        let mut editor = Self { child, next: 1 };
        editor.call("initialize", greeting)?;
        Ok(editor)
    }

    /// Returns a request as a line.
    pub fn line(id: u64, method: &str, params: &Value) -> String {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string() + "\n"
    }

    /// Sends a request, and returns its id.
    pub fn send(&mut self, method: &str, params: &Value) -> Result<u64> {
        let id = self.next;
        self.next += 1;
        self.child.say(Self::line(id, method, params).as_bytes())?;
        Ok(id)
    }

    /// Reads the next message; returns whether it is the answer to a request.
    pub fn is_answer(&mut self, id: u64) -> Result<bool> {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"#);
        Ok(self.child.line()?.starts_with(&answer))
    }

    /// Sends a request, and returns its answer.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.send(method, params)?;
        loop {
            let message: Value = serde_json::from_str(&self.child.line()?)?;
            if message.get("id") == Some(&json!(id)) && message.get("method").is_none() {
                ensure!(message.get("error").is_none(), "the agent answered {message}");
                return Ok(message);
            }
        }
    }
}
