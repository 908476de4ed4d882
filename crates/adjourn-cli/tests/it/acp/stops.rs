//! How clients stop an agent: they close its input, send SIGTERM, and some time later SIGKILL.

use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::editor::Editor;
use crate::home::Home;

/// A call that returns soon, and one that would not.
const TWO_STEPS: &str = r#"{"runs": [[
  {"tool": {"name": "short", "ms": 3000}}, {"tool": {"name": "long", "ms": 600000}}, {"say": "done"}
]]}"#;
const LONG: &str = r#"{"runs": [[{"tool": {"name": "long", "ms": 600000}}, {"say": "done"}]]}"#;

/// Starts an agent, and returns it in the middle of a call.
fn working(home: &Home, script: &str) -> (Editor, String) {
    let mut editor = Editor::v1(home, script);
    let session = editor.new_session();
    editor.prompt(&session, "go");
    editor.call_is("in_progress");
    (editor, session)
}

/// Returns the names of what happened, in order.
fn happened(home: &Home, session: &str) -> Vec<String> {
    let entries = home.jsons(&["log", session]);
    entries.iter().map(|entry| entry["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_end_of_input_and_a_signal_after_it_are_one_request() {
    for signals in [&[][..], &[Signal::TERM], &[Signal::INT], &[Signal::TERM, Signal::HUP]] {
        let home = Home::new();
        let (mut editor, session) = working(&home, TWO_STEPS);
        editor.hang_up();
        // As acpx does; others leave more time.
        std::thread::sleep(Duration::from_millis(100));
        for which in signals {
            editor.signal(*which);
        }
        assert_eq!(editor.close(), 0, "{signals:?}");
        let happened = happened(&home, &session);
        let last = &happened[happened.len() - 2..];
        assert_eq!(last, ["calls_returned", "drained"], "{signals:?}");
        assert_eq!(home.json(&["show", &session])["state"], "ready");
    }
}

#[test]
fn a_second_sigterm_counts_when_two_seconds_have_passed() {
    let home = Home::new();
    let (mut editor, session) = working(&home, LONG);
    editor.hang_up();
    editor.signal(Signal::TERM);
    let first = Instant::now();
    std::thread::sleep(Duration::from_millis(1000));
    editor.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(home.json(&["show", &session])["inFlight"][0], "long", "the same request");
    std::thread::sleep(Duration::from_millis(2100).saturating_sub(first.elapsed()));
    editor.signal(Signal::TERM);
    assert_eq!(editor.close(), 143);
    left_as_by_a_dead_host(&home, &session);
}

#[test]
fn a_client_that_kills_leaves_what_a_dead_host_leaves() {
    let home = Home::new();
    let (mut editor, session) = working(&home, LONG);
    editor.hang_up();
    editor.signal(Signal::TERM);
    editor.kill();
    left_as_by_a_dead_host(&home, &session);
}

#[test]
fn a_drain_that_is_over_leaves_what_a_dead_host_leaves() {
    let home = Home::new();
    home.config("[host]\ndrain = \"200ms\"");
    let (editor, session) = working(&home, LONG);
    assert_eq!(editor.close(), 0);
    left_as_by_a_dead_host(&home, &session);
}

fn left_as_by_a_dead_host(home: &Home, session: &str) {
    let serving = home.serve();
    let parked = home.until(session, "state", "suspended");
    assert_eq!(parked["reason"], "host_interrupted", "{parked}");
    assert_eq!(parked["unknownCalls"][0], "long", "{parked}");
    assert_eq!(serving.terminate(), 0);
}

/// An editor that cannot be written to is not one that has gone.
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let home = Home::new();
    let script = home.file("script.json", LONG);
    let mut command = home.command(&["acp", "--script", &script]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut child = command.stdin(Stdio::piped()).stdout(full).spawn().unwrap();
    let greeting =
        br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    let mut input = child.stdin.take().unwrap();
    input.write_all(greeting).unwrap();
    input.write_all(b"\n").unwrap();
    let ended = child.wait_with_output().unwrap();
    let talk = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{talk}");
    assert!(
        talk.contains("error: the editor cannot be reached: No space left on device"),
        "{talk}"
    );
    drop(input);
}
