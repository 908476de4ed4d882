//! An editor: the other end of the pipe to `adjourn acp`, in either version.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod unread;

use std::collections::HashMap;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::PATIENCE;
use crate::home::Home;
use crate::process::{Pid, Process, Signal};

pub use unread::Unread;

/// How long nothing must be heard where nothing may be said.
const QUIET: Duration = Duration::from_millis(400);

/// A program at the other end, and everything that was said.
pub struct Editor {
    agent: Process,
    /// What was said, in order: `>` by us, `<` to us.
    log: Vec<(char, Value)>,
    next: u64,
}

impl Editor {
    /// Starts an agent that follows a script.
    pub fn open(home: &Home, script: &str, arguments: &[&str]) -> Self {
        let script = home.file("script.json", script);
        let mut command = home.command(&[&["acp", "--script", &script], arguments].concat());
        let agent = Process::start(command.stderr(Stdio::inherit()));
        Self { agent, log: Vec::new(), next: 1 }
    }

    /// Starts an agent that some arguments describe, and introduces an editor.
    pub fn of_agent(home: &Home, arguments: &[&str], greeting: &Value) -> Self {
        let mut command = home.command(&[&["acp"], arguments].concat());
        Self::of_command(command.stderr(Stdio::inherit()), greeting)
    }

    /// Starts an agent by a command that was put together by hand, and introduces an editor.
    pub fn of_command(command: &mut Command, greeting: &Value) -> Self {
        let mut editor = Self { agent: Process::start(command), log: Vec::new(), next: 1 };
        editor.call("initialize", greeting.clone()).unwrap();
        editor
    }

    /// Starts an agent, and introduces an editor that knows nothing of suspensions.
    pub fn v1(home: &Home, script: &str) -> Self {
        Self::greeted(home, script, &[], &json!({ "protocolVersion": 1 }))
    }

    /// Starts an agent, and introduces an editor.
    pub fn greeted(home: &Home, script: &str, arguments: &[&str], greeting: &Value) -> Self {
        let mut editor = Self::open(home, script, arguments);
        editor.call("initialize", greeting.clone()).unwrap();
        editor
    }

    /// Starts an agent whose log goes into a file of the home, and introduces an editor.
    pub fn logging(home: &Home, script: &str, log: &str, greeting: &Value) -> Self {
        let script = home.file("script.json", script);
        let mut command = home.command(&["acp", "--script", &script]);
        let agent = Process::start(command.stderr(File::create(home.path(log)).unwrap()));
        let mut editor = Self { agent, log: Vec::new(), next: 1 };
        editor.call("initialize", greeting.clone()).unwrap();
        editor
    }

    /// Sends a line as it is.
    pub fn line(&mut self, line: &[u8]) {
        self.agent.tell(line);
    }

    /// Sends a message.
    pub fn send(&mut self, message: Value) {
        self.line(message.to_string().as_bytes());
        self.log.push(('>', message));
    }

    /// Sends a request, and returns its id.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.send(request(id, method, &params));
        id
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Answers a request of the agent's.
    pub fn reply(&mut self, id: &Value, result: Value) {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// Waits for a message.
    pub fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let Some(message) = self.message(PATIENCE) else {
                panic!("never {what}:\n{}", self.dialog());
            };
            self.log.push(('<', message.clone()));
            if wanted(&message) {
                return message;
            }
        }
    }

    /// Waits for the answer to a request.
    ///
    /// # Errors
    /// The error that the agent answers with.
    pub fn answer(&mut self, id: u64) -> Result<Value, Value> {
        let answer = self.until(&format!("an answer to {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        });
        match answer.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(answer["result"].clone()),
        }
    }

    /// Sends a request, and waits for its answer.
    ///
    /// # Errors
    /// The error that the agent answers with.
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Waits for an update; what a session is called is no news of it.
    pub fn update(&mut self, kind: &str) -> Value {
        let wanted = |message: &Value| {
            let update = &message["params"]["update"];
            update["sessionUpdate"] == kind && !is_title(update)
        };
        self.until(kind, wanted)["params"]["update"].clone()
    }

    /// Waits until a call stands so.
    pub fn call_is(&mut self, status: &str) {
        self.until(status, |message| {
            let update = &message["params"]["update"];
            update["toolCallId"].is_string() && update["status"] == status
        });
    }

    /// Waits until the foreground stands so (v2).
    pub fn state_is(&mut self, state: &str) {
        self.until(state, |message| message["params"]["update"]["state"] == state);
    }

    /// Waits for a request of the agent's.
    pub fn asked(&mut self, method: &str) -> Value {
        self.until(method, |message| message["method"] == method)
    }

    /// Makes a session.
    pub fn new_session(&mut self) -> String {
        let made = self.call("session/new", json!({ "cwd": "/tmp", "mcpServers": [] })).unwrap();
        made["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt, and returns its id.
    pub fn prompt(&mut self, session: &str, words: &str) -> u64 {
        let blocks = json!([{ "type": "text", "text": words }]);
        self.request("session/prompt", json!({ "sessionId": session, "prompt": blocks }))
    }

    /// Returns what comes while nothing should.
    pub fn overheard(&mut self) -> Vec<Value> {
        let overheard: Vec<_> = std::iter::from_fn(|| self.message(QUIET)).collect();
        self.log.extend(overheard.iter().map(|message| ('<', message.clone())));
        overheard
    }

    /// Waits for what comes next, if anything does.
    fn message(&self, patience: Duration) -> Option<Value> {
        let line = self.agent.line_within(patience).ok()?;
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}")))
    }

    /// Returns what was said so far.
    pub fn heard(&self) -> impl Iterator<Item = &Value> {
        self.log.iter().filter(|(from, _)| *from == '<').map(|(_, message)| message)
    }

    /// Returns everything that was said, with ids and times by the order in which they came up.
    pub fn dialog(&self) -> String {
        let mut names = Names::default();
        let lines = self.log.iter().map(|(from, message)| {
            let mut message = message.clone();
            names.normalise(&mut message);
            format!("{from} {message}\n")
        });
        lines.collect()
    }

    /// Sends bytes without the end of a line.
    pub fn half_line(&mut self, bytes: &[u8]) {
        self.agent.tell_half(bytes);
    }

    /// Returns how much memory the agent has taken at most, in bytes.
    pub fn peak_memory(&self) -> u64 {
        self.agent.child().peak_memory()
    }

    /// Says nothing more, and listens on.
    pub fn hang_up(&mut self) {
        self.agent.hang_up();
    }

    /// Returns the process that the agent is.
    pub fn pid(&self) -> Pid {
        self.agent.pid()
    }

    /// Sends the agent a signal.
    pub fn signal(&self, which: Signal) {
        self.agent.signal(which);
    }

    /// Ends the agent with SIGTERM, and returns its exit code.
    pub fn terminate(self) -> i32 {
        self.signal(Signal::TERM);
        self.close()
    }

    /// Goes away as an editor does, and returns the agent's exit code.
    pub fn close(self) -> i32 {
        self.agent.end()
    }

    /// Ends the agent with SIGKILL.
    pub fn kill(self) {
        self.agent.kill();
    }
}

/// Returns a request.
fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Returns whether an update says what a session is called.
pub fn is_title(update: &Value) -> bool {
    update["sessionUpdate"] == "session_info_update" && update["title"].is_string()
}

/// Names for what is another value in every run.
#[derive(Default)]
struct Names {
    known: HashMap<String, String>,
    counts: HashMap<&'static str, usize>,
}

impl Names {
    fn normalise(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.normalise(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.normalise(value)),
            _ => {}
        }
    }

    /// Puts names in the place of ids and times, wherever they stand in a text.
    fn text(&mut self, text: &str) -> String {
        let mut named = String::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let known = [("sess-", "session"), ("suspend-", "handle"), ("run-", "run")];
            let id = known.into_iter().find_map(|(prefix, kind)| {
                let id = rest.get(..prefix.len() + 36).filter(|id| id.starts_with(prefix))?;
                id[prefix.len()..]
                    .chars()
                    .all(|c| c.is_ascii_hexdigit() || c == '-')
                    .then_some((id, kind))
            });
            let time = rest.get(..24).filter(|time| time.ends_with('Z') && &time[10..11] == "T");
            let end = rest.get(..12).filter(|_| id.is_none() && time.is_none());
            let end = end.and_then(|end| self.known.iter().find(|(id, _)| id.ends_with(end)));
            let length = match (id, time) {
                // As lists show a session's id.
                (None, None) if end.is_some() => {
                    named += &end.map(|(_, name)| format!("<end of {}", &name[1..])).unwrap();
                    12
                }
                (Some((id, kind)), _) => {
                    named += &self.name(id, kind);
                    id.len()
                }
                // Times only have to be times: two may be equal or not.
                (None, Some(time)) => {
                    named += "<time>";
                    time.len()
                }
                (None, None) => {
                    named.push(first);
                    first.len_utf8()
                }
            };
            rest = &rest[length..];
        }
        named
    }

    fn name(&mut self, id: &str, kind: &'static str) -> String {
        if let Some(name) = self.known.get(id) {
            return name.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let name = format!("<{kind} {count}>");
        self.known.insert(id.to_owned(), name.clone());
        name
    }
}
