//! A suspend in the middle of a tool call, in each mode, from another process.

use crate::home::Home;

/// Two calls, one after the other, in one step, and a step after it.
const SCRIPT: &str = r#"{"steps": [
  {"sequence": [{"name": "first", "ms": 1500}, {"name": "second", "ms": 50}]},
  {"say": "afterwards"}]}"#;

fn revision(home: &Home, id: &str) -> usize {
    home.told(&["log", id]).data.lines().count()
}

/// Suspends in the middle of the first call: so many calls are dispatched, and more is said or not.
fn stops(mode: &str, dispatched: usize, said: bool) {
    let home = Home::new();
    let serving = home.serve();
    let script = home.file("script.json", SCRIPT);
    let mut running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let id = home.until_in_flight("first");
    let told = home.told(&["suspend", &id, "--mode", mode, "--json"]);
    assert_eq!(told.code, 0, "{told:?}");
    // It was not said before it was true, and it was said once.
    let lines: Vec<_> = told.data.lines().collect();
    assert_eq!(lines.len(), 1, "{mode}: {lines:?}");
    let shown = home.json(&["show", &id]);
    let answer: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    assert_eq!((&answer["state"], &shown["state"]), (&"suspended".into(), &"suspended".into()));
    let log = home.told(&["log", &id]).data;
    assert!(log.lines().next_back().unwrap().contains(" suspended "), "{mode}: {log}");
    assert_eq!(log.matches("calls_dispatched").count(), dispatched, "{mode}: {log}");
    assert_eq!(log.contains("afterwards"), said, "{mode}: {log}");

    // Nothing runs afterwards, although a host is there and has looked again.
    let before = revision(&home, &id);
    home.parked(r#"{"steps": [{"await": {"reason": "another"}}]}"#);
    assert_eq!(revision(&home, &id), before, "{mode}");
    assert_eq!(home.told(&["resume", &id]).code, 0);
    let log = home.told(&["log", &id]).data;
    assert_eq!(log.matches("calls_dispatched").count(), 2, "each ran once; {mode}: {log}");
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn finish_step_stops_after_the_step_and_says_so_after_the_commit() {
    stops("finish_step", 2, false);
}

#[test]
fn interrupt_immediate_stops_after_the_call_and_says_so_after_the_commit() {
    stops("interrupt_immediate", 1, false);
}

#[test]
fn wait_for_completion_stops_after_the_run_and_says_so_after_the_commit() {
    stops("wait_for_completion", 2, true);
}

#[test]
fn a_hung_call_is_named_and_a_grace_ends_it() {
    let home = Home::new();
    let serving = home.serve();
    let script = r#"{"steps": [{"tool": {"name": "hangs", "ms": 600000}}]}"#;
    let script = home.file("script.json", script);
    let mut running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let id = home.until_in_flight("hangs");
    let told = home.told(&["suspend", &id, "--grace", "300ms"]);
    assert_eq!(told.code, 0, "{told:?}");
    let waits = "[about to be suspended: waits for hangs; Ctrl-C takes it back]\n";
    assert_eq!(told.talk, waits);
    assert!(told.data.contains("  suspended for "), "{}", told.data);
    assert_eq!(home.json(&["show", &id])["unknownCalls"][0], "hangs");
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(serving.terminate(), 0);
}
