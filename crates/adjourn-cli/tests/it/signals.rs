//! Ctrl-C and its kin: what waits is taken back, what runs is suspended or given back, and it is said
//! how to go on.

use std::io::Read as _;
use std::process::Child;

use rustix::process::Signal;
use serde_json::json;

use crate::home::{Home, signal};
use crate::pty::OnTerminal;

const SLOW: &str = r#"{"runs": [[{"tool": {"name": "slow", "ms": 60000}}, {"say": "done"}]]}"#;
const HALF: &str = r#"{"runs": [[{"tool": {"name": "half", "ms": 2000}},
                                 {"tool": {"name": "other", "ms": 60000}}]]}"#;

/// Waits for a command's end, and returns its code and what it said.
fn ended(mut child: Child) -> (i32, String) {
    let mut talk = String::new();
    child.stderr.take().unwrap().read_to_string(&mut talk).unwrap();
    (child.wait().unwrap().code().unwrap(), talk)
}

#[test]
fn a_suspend_that_waits_is_taken_back() {
    let home = Home::new();
    let script = home.file("script.json", SLOW);
    let serving = home.serve();
    let running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let id = home.until_in_flight("slow");
    let suspending = OnTerminal::start(home.command(&["suspend", &id]), 100);
    suspending.until("about to be suspended: waits for slow, ");
    let shown = home.json(&["show", &id]);
    assert_eq!((&shown["state"], &shown["inFlight"][0]), (&"quiescing".into(), &"slow".into()));
    suspending.signal(Signal::INT);
    let (code, screen) = suspending.end();
    assert_eq!((code, screen.as_str()), (130, "taken back: the session goes on\n"));
    assert_eq!(home.json(&["show", &id])["state"], "running");
    assert!(home.told(&["log", &id]).data.contains("suspend_withdrawn"));

    // Two ask for it, one takes it back: it stays asked for.
    let mut first = home.command(&["suspend", &id]).spawn().unwrap();
    home.until(&id, "state", "quiescing");
    let second = home.command(&["suspend", &id]).spawn().unwrap();
    home.until_log(&id, "suspend_joined");
    signal(&second, Signal::TERM);
    let (code, talk) = ended(second);
    assert_eq!(code, 143, "{talk}");
    assert!(talk.contains("taken back, but it will be suspended: others want it, too"), "{talk}");
    assert_eq!(home.json(&["show", &id])["state"], "quiescing");
    first.kill().unwrap();
    first.wait().unwrap();
    serving.kill();
    signal(&running, Signal::KILL);
    running.wait_with_output().unwrap();
}

#[test]
fn a_signal_that_is_to_be_ignored_is_ignored() {
    let home = Home::new();
    let serving = home.serve_ignoring("HUP");
    serving.signal(Signal::HUP);
    // It still serves.
    let id = home.parked(r#"{"steps": [{"await": {"reason": "x"}}, {"say": "woken"}]}"#);
    assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
    home.until(&id, "state", "idle");
    assert_eq!(serving.terminate(), 0);
    // One that is not told to ignore it gives everything back.
    assert_eq!(home.serve().end_by(Signal::HUP), 0);
}

#[test]
fn a_log_that_nobody_reads_ends() {
    let home = Home::new();
    let id = home.parked(r#"{"steps": [{"await": {"reason": "x"}}]}"#);
    let mut following = home.command(&["log", &id, "--follow"]).spawn().unwrap();
    drop(following.stdout.take());
    let start = std::time::Instant::now();
    while following.try_wait().unwrap().is_none() {
        assert!(start.elapsed().as_secs() < 20, "it goes on");
        // It finds out when it has something to say.
        home.told(&["suspend", &id]);
        home.told(&["resume", &id, "--detach"]);
    }
}

#[test]
fn a_run_is_given_back_at_its_boundary() {
    let home = Home::new();
    let script = home.file("script.json", HALF);
    let running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let id = home.until_in_flight("half");
    signal(&running, Signal::TERM);
    let (code, talk) = ended(running);
    assert_eq!(code, 143, "{talk}");
    let expected = "given back; it goes on when a host runs\nhint: adjourn serve\n";
    assert!(talk.ends_with(expected), "{talk}");
    let ready = home.json(&["show", &id]);
    assert_eq!(ready["state"], "ready", "{ready}");
    let waits = "waits for a host: none is running; start `adjourn serve`";
    assert_eq!(ready["notice"], waits);
    let serving = home.serve();
    home.until_in_flight("other");
    let log = home.told(&["log", &id]).data;
    assert_eq!(log.matches("calls_dispatched").count(), 2, "each ran once: {log}");
    serving.kill();
}

#[test]
fn what_is_said_until_a_run_is_given_back_is_told() {
    let home = Home::new();
    let text = "alpha beta gamma delta epsilon zeta eta theta";
    let say = format!(r#"{{"say": {{"text": "{text}", "ms": 2400}}}}"#);
    let script = home.file("script.json", &format!(r#"{{"steps": [{say}, {{"say": "done"}}]}}"#));
    // Each has a name of its own: one that was closed is found by its name, too.
    for (name, json) in [("talker", false), ("program", true)] {
        let mut arguments = vec!["run", "--script", &script, "--name", name];
        arguments.extend(json.then_some("--json"));
        let running = home.command(&arguments).spawn().unwrap();
        home.until_log(name, "step_started");
        signal(&running, Signal::TERM);
        let output = running.wait_with_output().unwrap();
        let data = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(143), "{data}");
        match json {
            false => assert_eq!(data, format!("{text}\n")),
            true => assert!(data.contains(r#"{"said":"#) && data.contains(text), "{data}"),
        }
        home.json(&["close", name]);
    }
}

#[test]
fn a_signal_during_the_last_answer_hints_at_what_can_be_done() {
    let say = r#"{"say": {"text": "alpha beta gamma delta epsilon", "ms": 1500}}"#;
    let home = Home::new();
    let script = home.file("script.json", &format!(r#"{{"runs": [[{say}]]}}"#));
    for (name, keep) in [("closed", false), ("kept", true)] {
        let mut arguments = vec!["run", "--script", &script, "--name", name];
        arguments.extend(keep.then_some("--keep"));
        let running = home.command(&arguments).spawn().unwrap();
        home.until_log(name, "step_started");
        signal(&running, Signal::TERM);
        let (code, talk) = ended(running);
        assert_eq!(code, 143, "{talk}");
        let shown = home.json(&["show", name]);
        let id = shown["sessionId"].as_str().unwrap();
        let (state, left) = match keep {
            false => ("ended", format!("left; it has ended\nhint: adjourn show {id}\n")),
            true => ("idle", format!("left; it is idle\nhint: adjourn prompt {id} TEXT\n")),
        };
        assert_eq!((&shown["state"], &shown["outcome"]), (&state.into(), &"completed".into()));
        assert!(talk.ends_with(&left), "{talk}");
    }
}

#[test]
fn ctrl_c_suspends_at_the_boundary_and_says_how_to_go_on() {
    let home = Home::new();
    let script = home.file("script.json", HALF);
    for command in ["run", "prompt", "resume"] {
        let running = match command {
            "run" => home.command(&["run", "--script", &script]).spawn().unwrap(),
            _ => {
                let made = home.json(&["new", "--script", &script, "--name", command]);
                let id = made["sessionId"].as_str().unwrap();
                home.json(&["suspend", id]);
                let arguments = match command {
                    "prompt" => {
                        home.json(&["resume", id]);
                        vec!["prompt", id, "go"]
                    }
                    _ => vec!["resume", id, "--input", "go"],
                };
                home.command(&arguments).spawn().unwrap()
            }
        };
        let id = home.until_in_flight("half");
        signal(&running, Signal::INT);
        let (code, talk) = ended(running);
        assert_eq!(code, 130, "{command}: {talk}");
        let expected = format!(
            "suspended; it goes on where it stopped when it is resumed\nhint: adjourn resume {id}\n"
        );
        assert!(talk.ends_with(&expected), "{command}: {talk}");
        let parked = home.json(&["show", &id]);
        assert_eq!(parked["state"], "suspended", "{parked}");
        assert_eq!(parked["initiator"], "client", "{parked}");
        assert_eq!(parked["reason"], "interrupted at the terminal", "{parked}");
        let serving = home.serve();
        assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
        home.until_in_flight("other");
        let log = home.told(&["log", &id]).data;
        assert_eq!(log.matches("calls_dispatched").count(), 2, "each ran once: {log}");
        home.json(&["cancel", &id]);
        home.json(&["close", &id]);
        serving.kill();
    }
}

/// In a pipe no line moves: what is waited for is said once.
#[test]
fn ctrl_c_in_a_pipe_says_once_what_it_waits_for() {
    let home = Home::new();
    home.config("[host]\ncancel_grace = \"0s\"\n");
    let script = home.file("script.json", SLOW);
    let running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let id = home.until_in_flight("slow");
    signal(&running, Signal::INT);
    home.until_shown(&id, |shown| shown["phase"].is_string());
    // Whatever the host commits meanwhile, what is waited for stays the same.
    for number in 0..5 {
        assert_eq!(home.told(&["event", &format!("tick.{number}"), "--session", &id]).code, 0);
    }
    home.json(&["cancel", &id]);
    let (_, talk) = ended(running);
    assert_eq!(talk.matches("about to be suspended: waits for slow").count(), 1, "{talk}");
}

#[test]
fn a_second_ctrl_c_cancels_the_run() {
    let home = Home::new();
    home.config("[host]\ncancel_grace = \"0s\"\n");
    let script = home.file("script.json", SLOW);
    let running = OnTerminal::start(home.command(&["run", "--script", &script]), 100);
    running.until("running slow 0s · Ctrl-C suspends it");
    let id = home.until_in_flight("slow");
    running.signal(Signal::INT);
    // One that follows at once is the same one, passed on by another program.
    running.signal(Signal::TERM);
    running.until("about to be suspended: waits for slow, 1s · Ctrl-C cancels its run");
    running.signal(Signal::INT);
    let (code, screen) = running.end();
    assert_eq!(code, 130, "{screen}");
    let hint = format!("its run was canceled\nhint: adjourn log {id}\n");
    assert!(screen.ends_with(&hint), "{screen}");
    let shown = home.json(&["show", &id]);
    assert_eq!((&shown["state"], &shown["outcome"]), (&"ended".into(), &"canceled".into()));
    assert_eq!(shown["unknownCalls"][0], "slow", "{shown}");
}

/// A person who is in a hurry presses the keys twice in a fraction of a second.
#[test]
fn two_quick_presses_of_ctrl_c_cancel_the_run() {
    let home = Home::new();
    home.config("[host]\ncancel_grace = \"0s\"\n");
    let script = home.file("script.json", SLOW);
    for command in ["run", "prompt"] {
        let running = match command {
            "run" => home.command(&["run", "--script", &script]).spawn().unwrap(),
            _ => {
                home.json(&["new", "--script", &script, "--name", "later"]);
                home.command(&["prompt", "later", "go"]).spawn().unwrap()
            }
        };
        let id = home.until_in_flight("slow");
        signal(&running, Signal::INT);
        // What is tried is how far apart they are.
        std::thread::sleep(std::time::Duration::from_millis(120));
        signal(&running, Signal::INT);
        let (code, talk) = ended(running);
        assert_eq!(code, 130, "{talk}");
        assert!(
            talk.ends_with(&format!("its run was canceled\nhint: adjourn log {id}\n")),
            "{talk}"
        );
        assert_eq!(home.json(&["show", &id])["outcome"], "canceled");
    }
}

/// A server that answers a call when there is a file `go`, and ends neither with its input nor when it
/// is asked to.
const STUBBORN: &str = r#"
trap '' TERM
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}' ;;
    *'"tools/list"'*) result='{"tools": [{"name": "wait", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}' ;;
    *'"tools/call"'*) while ! [ -e go ]; do sleep 0.02; done; result='{"content": [{"type": "text", "text": "it came"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc": "2.0", "id": %s, "result": %s}\n' "$id" "$result"
done
while :; do sleep 1; done
"#;

/// Starts a run whose agent has that server, presses Ctrl-C, and waits until it is suspended: the
/// command is still there, because the server is.
fn suspended(home: &Home) -> (Child, String) {
    let server = home.file("server.sh", STUBBORN);
    let servers = json!({ "mcpServers": { "s": { "command": "sh", "args": [server] } } });
    let servers = home.file("mcp.json", &servers.to_string());
    let answers = "{\"calls\": [{\"tool\": \"s__wait\"}]}\n{\"text\": \"Over.\"}\n";
    let model = format!("scripted:{}", home.file("answers.jsonl", answers));
    let cwd = home.path("").display().to_string();
    let run = ["run", "go", "--model", &model, "--mcp", &servers, "--cwd", &cwd];
    let running = home.command(&run).spawn().unwrap();
    let id = home.until_in_flight("s__wait");
    signal(&running, Signal::INT);
    home.until(&id, "state", "quiescing");
    home.file("go", "");
    home.until(&id, "state", "suspended");
    (running, id)
}

#[test]
fn a_second_ctrl_c_cancels_a_run_that_is_suspended_already() {
    let home = Home::new();
    let (mut running, id) = suspended(&home);
    // Until the command has ended: a third press does not wait for the server, and takes nothing back.
    while running.try_wait().unwrap().is_none() {
        signal(&running, Signal::INT);
        home.json(&["show", &id]);
    }
    let (code, talk) = ended(running);
    assert_eq!(code, 130, "{talk}");
    let hint = format!("its run was canceled\nhint: adjourn log {id}\n");
    assert!(talk.ends_with(&hint), "{talk}");
    let shown = home.json(&["show", &id]);
    assert_eq!((&shown["state"], &shown["outcome"]), (&"ended".into(), &"canceled".into()));
}

#[test]
fn another_signal_does_not_wait_for_the_agent_of_a_suspended_run_and_it_is_said_how_to_resume_it() {
    let home = Home::new();
    let (mut running, id) = suspended(&home);
    while running.try_wait().unwrap().is_none() {
        signal(&running, Signal::TERM);
        home.json(&["show", &id]);
    }
    let (code, talk) = ended(running);
    assert_eq!(code, 130, "{talk}");
    let hint = format!("goes on where it stopped when it is resumed\nhint: adjourn resume {id}\n");
    assert!(talk.ends_with(&hint), "{talk}");
    assert_eq!(home.json(&["show", &id])["state"], "suspended");
}

#[test]
fn a_terminal_that_is_closed_gives_the_session_back() {
    let home = Home::new();
    let script = home.file("script.json", HALF);
    let running = OnTerminal::start(home.command(&["run", "--script", &script]), 100);
    let id = home.until_in_flight("half");
    running.signal(Signal::HUP);
    let (code, screen) = running.end();
    assert_eq!(code, 129, "{screen}");
    assert_eq!(home.json(&["show", &id])["state"], "ready");
}

#[test]
fn a_second_signal_does_not_wait() {
    let home = Home::new();
    let script = home.file("script.json", SLOW);
    let running = OnTerminal::start(home.command(&["run", "--script", &script]), 100);
    let id = home.until_in_flight("slow");
    running.signal(Signal::TERM);
    running.until("giving sessions back: calls in flight have 29s");
    running.signal(Signal::INT);
    let (code, screen) = running.end();
    assert_eq!(code, 143, "{screen}");
    assert!(screen.contains("did not wait: calls in flight are cut off"), "{screen}");
    let shown = home.json(&["show", &id]);
    assert_eq!(shown["notice"], "its host died; start `adjourn serve`", "{shown}");
    let serving = home.serve();
    let parked = home.until(&id, "state", "suspended");
    assert_eq!(parked["unknownCalls"][0], "slow");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn what_is_parked_is_left_parked_and_what_another_hosts_is_left_to_it() {
    let home = Home::new();
    let script = r#"{"runs": [[{"await": {"reason": "x", "conditions": {"onEvent": "a"}}},
                               {"ask": {"question": "which?"}},
                               {"tool": {"name": "slow", "ms": 60000}}]]}"#;
    let script = home.file("script.json", script);
    let running = OnTerminal::start(home.command(&["run", "--script", &script]), 100);
    running.until("parked: x · wakes on a · Ctrl-C leaves it");
    running.signal(Signal::INT);
    let (code, screen) = running.end();
    let id = home.json(&["ls"])["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(code, 130);
    let hint = format!("left; it stays parked, and wakes on a\nhint: adjourn resume {id}\n");
    assert!(screen.ends_with(&hint), "{screen}");

    let serving = home.serve();
    let told = home.told(&["resume", &id]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.data.contains("asking for "), "{}", told.data);
    let answering = home.command(&["prompt", &id, "this"]).spawn().unwrap();
    home.until_in_flight("slow");
    signal(&answering, Signal::INT);
    let (code, talk) = ended(answering);
    assert_eq!(code, 130);
    let hint = format!("left; another host goes on with it\nhint: adjourn log --follow {id}\n");
    assert!(talk.ends_with(&hint), "{talk}");
    assert_eq!(home.json(&["show", &id])["state"], "running");
    serving.kill();
}

/// A session that is made is prompted with the same commit: whenever `run` is killed, what it leaves
/// has work to do, and a name is never kept by a session that has none.
#[test]
fn a_run_that_is_killed_leaves_no_session_that_was_never_prompted() {
    let home = Home::new();
    let script = home.file("script.json", r#"{"steps": [{"say": "done"}]}"#);
    assert_eq!(home.told(&["run", "--script", &script]).code, 0, "there is a store");
    for after in 0..24 {
        let name = format!("job-{after}");
        let arguments = ["run", "--script", &script, "--name", &name, "--detach"];
        let mut running = home.command(&arguments).spawn().unwrap();
        // Opening the store takes some milliseconds, each commit about one.
        std::thread::sleep(std::time::Duration::from_millis(after * 3));
        running.kill().unwrap();
        running.wait().unwrap();
    }
    for session in home.jsons(&["ls", "--all"]) {
        assert!(session["runId"].is_string(), "{session}");
    }
}
