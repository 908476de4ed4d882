//! A host that finds its store locked or full waits until it is not, and says so.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use adjourn_testkit::process::{Child, Signal};
use rustix::process::{Resource, Rlimit, prlimit};

use crate::acp::editor::Editor;
use crate::home::{Home, unlogged};

/// A host that does not serve yet.
struct Waiting {
    child: Child,
    talk: BufReader<ChildStderr>,
}

impl Waiting {
    fn start(mut command: Command) -> Self {
        let mut child = Child::start(&mut command).unwrap();
        let talk = BufReader::new(child.as_std().stderr.take().unwrap());
        Self { child, talk }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.talk.read_line(&mut line).unwrap();
        unlogged(line)
    }

    fn ends(mut self) -> i32 {
        self.child.wait().code().unwrap()
    }
}

fn store(home: &Home) -> std::path::PathBuf {
    home.parked(r#"{"steps": [{"await": {"reason": "x"}}]}"#);
    home.path(".local/share/adjourn/store.db")
}

#[test]
fn a_store_that_is_locked_is_waited_for() {
    let home = Home::new();
    let other = rusqlite::Connection::open(store(&home)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = Waiting::start(home.command(&["serve"]));
    let line = waiting.line();
    assert_eq!(line, "waiting for the store: another process keeps it locked\n");
    other.execute_batch("COMMIT").unwrap();
    assert!(waiting.line().starts_with("serving "));
    waiting.child.signal(Signal::TERM);
    assert_eq!(waiting.ends(), 0);
}

#[test]
fn a_host_that_waits_can_be_stopped() {
    let home = Home::new();
    let other = rusqlite::Connection::open(store(&home)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut waiting = Waiting::start(home.command(&["serve"]));
    assert!(waiting.line().starts_with("waiting "));
    let told = Instant::now();
    waiting.child.signal(Signal::INT);
    assert_eq!(waiting.ends(), 0);
    assert!(
        told.elapsed() < Duration::from_secs(15),
        "it waited for the lock: {:?}",
        told.elapsed()
    );
}

/// A limit on the size of files is a disk that is full, also for whoever lives on when it comes.
#[test]
fn a_store_that_is_full_is_waited_for() {
    let home = Home::new();
    store(&home);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -S -f 8; exec \"$0\" serve", env!("CARGO_BIN_EXE_adjourn")]);
    command.env_clear().envs(home.environment());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut waiting = Waiting::start(command);
    let line = waiting.line();
    assert!(line.starts_with("waiting for the store: the store is full: "), "{line}");
    let no_limit = Rlimit { current: None, maximum: None };
    prlimit(Some(waiting.child.pid()), Resource::Fsize, no_limit).unwrap();
    assert!(waiting.line().starts_with("serving "));
    waiting.child.signal(Signal::TERM);
    assert_eq!(waiting.ends(), 0);
}

#[test]
fn a_command_that_comes_to_a_limit_is_told_that_the_store_is_full() {
    let home = Home::new();
    store(&home);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 8; exec \"$0\" event a", env!("CARGO_BIN_EXE_adjourn")]);
    command.env_clear().envs(home.environment());
    let told = home.ended(command);
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.talk.contains("the store is full"), "{told:?}");
}

/// Greets an agent, and returns its answer.
fn greeted(child: &mut Child) -> serde_json::Value {
    let greeting =
        br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    answer(child, greeting)
}

fn answer(child: &mut Child, request: &[u8]) -> serde_json::Value {
    let input = child.as_std().stdin.as_mut().unwrap();
    input.write_all(&[request, b"\n"].concat()).unwrap();
    let mut line = Vec::new();
    let output = child.as_std().stdout.as_mut().unwrap();
    // One byte at a time: what comes behind the line is for the next answer.
    while line.last() != Some(&b'\n') {
        let mut byte = [0];
        output.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    serde_json::from_slice(&line).unwrap()
}

#[test]
fn an_editor_is_greeted_while_the_store_is_locked_and_served_when_it_is_not() {
    let home = Home::new();
    let script = home.file("waits.json", r#"{"steps": [{"say": "hello"}]}"#);
    let other = rusqlite::Connection::open(store(&home)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut command = home.command(&["acp", "--script", &script]);
    command.stdin(Stdio::piped());
    let mut waiting = Waiting::start(command);
    let asked = Instant::now();
    let introduced = greeted(&mut waiting.child);
    assert_eq!(introduced["result"]["protocolVersion"], 1, "{introduced}");
    assert!(asked.elapsed() < Duration::from_secs(15), "it waited for the lock");
    assert_eq!(waiting.line(), "waiting for the store: another process keeps it locked\n");
    other.execute_batch("COMMIT").unwrap();
    let new = br#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/tmp","mcpServers":[]}}"#;
    let made = answer(&mut waiting.child, new);
    assert!(made["result"]["sessionId"].is_string(), "{made}");
    drop(waiting.child.as_std().stdin.take());
    assert_eq!(waiting.ends(), 0);
}

/// It is told the same as when the store is there.
#[test]
fn an_editor_that_is_greeted_while_the_store_is_locked_is_told_of_mcp_where_it_works() {
    let home = Home::new();
    let other = rusqlite::Connection::open(store(&home)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answers = home.file("answers.jsonl", r#"{"text": "Hello."}"#);
    let model = format!("scripted:{answers}");
    for (arguments, works) in [(["--model", &model], true), (["--agent", "conformance"], false)] {
        let mut command = home.command(&[&["acp"], &arguments[..]].concat());
        command.stdin(Stdio::piped());
        let mut waiting = Waiting::start(command);
        let introduced = greeted(&mut waiting.child);
        let mcp = &introduced["result"]["agentCapabilities"]["mcpCapabilities"];
        assert_eq!(mcp["http"], works, "{introduced}");
        waiting.child.signal(Signal::TERM);
        assert_eq!(waiting.ends(), 0);
    }
}

#[test]
fn an_editor_that_goes_while_the_store_is_locked_does_not_keep_the_agent() {
    let home = Home::new();
    let script = home.file("waits.json", r#"{"steps": [{"say": "hello"}]}"#);
    let other = rusqlite::Connection::open(store(&home)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let waiting = Waiting::start(home.command(&["acp", "--script", &script]));
    let asked = Instant::now();
    assert_eq!(waiting.ends(), 0);
    assert!(asked.elapsed() < Duration::from_secs(15), "it waited for the lock");
}

#[test]
fn an_editor_is_told_that_the_store_is_full_and_what_to_do() {
    let home = Home::new();
    store(&home);
    let script = home.file("waits.json", r#"{"steps": [{"say": "hello"}]}"#);
    let mut command = Command::new("sh");
    let limited = "ulimit -f 8; exec \"$0\" acp --script \"$1\"";
    command.args(["-c", limited, env!("CARGO_BIN_EXE_adjourn"), &script]);
    command.env_clear().envs(home.environment());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut waiting = Waiting::start(command);
    let refused = greeted(&mut waiting.child);
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(
        words.starts_with("the store is full: ") && words.contains("free some space"),
        "{words}"
    );
    drop(waiting.child.as_std().stdin.take());
    assert_eq!(waiting.line(), "error: the store is full: disk I/O error\n");
    assert_eq!(waiting.ends(), 5);
}

/// A disk that stays full does not keep an agent that is to stop: it ends as if it had died.
#[test]
fn an_agent_that_cannot_give_back_what_it_has_ends_all_the_same() {
    let home = Home::new();
    home.config("[host]\ndrain = \"200ms\"");
    let script = r#"{"runs": [[{"tool": {"name": "long", "ms": 600000}}, {"say": "done"}]]}"#;
    let mut editor = Editor::v1(&home, script);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.call_is("in_progress");
    let full = Rlimit { current: Some(4096), maximum: None };
    prlimit(Some(editor.pid()), Resource::Fsize, full).unwrap();
    let stops = Instant::now();
    assert_eq!(editor.close(), 5);
    assert!(stops.elapsed() < Duration::from_secs(15), "it waited for the disk");
    let serving = home.serve();
    let parked = home.until(&session, "state", "suspended");
    assert_eq!(parked["reason"], "host_interrupted", "{parked}");
    assert_eq!(serving.terminate(), 0);
}
