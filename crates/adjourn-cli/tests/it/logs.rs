//! The log on stderr: what it tells, to whom, and what it never tells. And what a host says about
//! how it is.

use std::io::{BufRead as _, BufReader, Read as _};

use adjourn_testkit::http;
use adjourn_testkit::process::{Child, Signal};
use rustix::process::{Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::acp::editor::Editor;
use crate::home::Home;
use crate::removing::make_newer;

const PARKS: &str = r#"{"runs": [[{"say": "sk-said"},
    {"await": {"reason": "sk-reason", "conditions": {"onEvent": "go"}}}, {"say": "done"}]]}"#;
/// Ends in a call that does not return.
const HANGS: &str = r#"{"runs": [[{"await": {"reason": "x", "conditions": {"onEvent": "go"}}},
    {"tool": {"name": "deploy", "ms": 3600000}}]]}"#;
/// What no line up to `info` may hold: each is something that a person or an agent has said, or a
/// secret.
const UNSAID: &str = "sk-";

/// Starts a host with a log, and returns it with the lines until it serves.
fn serve(home: &Home, arguments: &[&str]) -> (Child, BufReader<std::process::ChildStderr>, String) {
    let mut command = home.command(&[&["serve"], arguments].concat());
    command.env("ADJOURN_TOKEN", "sk-token").env("SECRET", "sk-environment");
    let mut child = Child::start(&mut command).unwrap();
    let mut log = BufReader::new(child.as_std().stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("serving ") {
        assert!(log.read_line(&mut said).unwrap() > 0, "it ended: {said}");
    }
    (child, log, said)
}

/// Ends a host, and returns all that it has logged.
fn ended(mut child: Child, mut log: BufReader<std::process::ChildStderr>, said: String) -> String {
    child.signal(Signal::TERM);
    let mut said = said;
    log.read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().code(), Some(0), "{said}");
    said
}

/// Has a session live its whole life beside a host, and returns its id.
fn live(home: &Home) -> String {
    let script = home.file("script.json", PARKS);
    let run = ["run", "--script", &script, "--detach", "--prompt", "sk-prompt", "--json"];
    let told = home.told(&run);
    assert_eq!(told.code, 0, "{told:?}");
    let last: Value = serde_json::from_str(told.data.lines().next_back().unwrap()).unwrap();
    let id = last["sessionId"].as_str().unwrap().to_owned();
    home.until(&id, "state", "suspended");
    home.json(&["event", "go", "--data", r#"{"key": "sk-data"}"#]);
    home.until(&id, "state", "idle");
    id
}

/// Returns the address that a host says that it listens on.
fn listens(said: &str) -> String {
    let (_, address) = said.split_once("listening on http://").unwrap();
    address.split_once("/v1/events").unwrap().0.to_owned()
}

fn get(address: &str, path: &str) -> (u16, Value) {
    let answer = http::send(address, &format!("GET {path}"), &[], "");
    (answer.status, answer.json())
}

#[test]
fn a_log_in_json_has_the_ids_of_all_it_tells_and_no_secret() {
    let home = Home::new();
    let (child, log, said) =
        serve(&home, &["--log-format", "json", "--listen", "127.0.0.1:0", "--insecure-open"]);
    let id = live(&home);
    let said = ended(child, log, said);
    assert!(!said.contains(UNSAID), "{said}");
    let lines: Vec<Value> =
        said.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let serving = |line: &&Value| line["message"].as_str().unwrap().starts_with("serving ");
    let host = lines.iter().find(serving).unwrap()["host"].clone();
    assert!(host.as_str().unwrap().starts_with("host-"), "{said}");
    let of_session: Vec<_> = lines.iter().filter(|line| line["session"] == id.as_str()).collect();
    for line in &of_session {
        assert_eq!(line["host"], host, "{line}");
        assert!(line["run"].as_str().unwrap().starts_with("run-"), "{line}");
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
    }
    let told: Vec<_> = of_session.iter().map(|line| line["message"].as_str().unwrap()).collect();
    // The command line has taken the prompt and the event, and has a log of its own.
    assert_eq!(told, ["claimed", "parked: waits by itself", "claimed", "run over"], "{said}");
    let [parked, woken] = [1, 2].map(|index| of_session[index]);
    assert!(parked["handle"].as_str().unwrap().starts_with("suspend-"), "{parked}");
    assert_eq!(woken["handle"], parked["handle"], "{woken}");
    assert_eq!(woken["cause"], "condition_fired", "{woken}");
    assert!(woken["waited_ms"].is_u64(), "{woken}");
    let all: Vec<_> = lines.iter().map(|line| line["message"].as_str().unwrap()).collect();
    assert!(all.contains(&"host stopped: everything is given back"), "{said}");
}

#[test]
fn a_log_in_text_has_steps_and_calls_where_it_is_asked_for_them() {
    let home = Home::new();
    let (child, log, said) = serve(&home, &["--log", "debug"]);
    let id = live(&home);
    let said = ended(child, log, said);
    let line = |what: &str| {
        let line = said.lines().find(|line| line.contains(what));
        line.unwrap_or_else(|| panic!("no {what:?} in {said}"))
    };
    let step = line("DEBUG step started");
    assert!(step.contains(&format!(" session={id} run=run-")), "{step}");
    assert!(line("INFO parked").contains(" handle=suspend-"), "{said}");
    // Also those of a decision that ends the run.
    assert!(line("DEBUG step finished").contains(&format!(" session={id} run=run-")), "{said}");
    for line in said.lines().filter(|line| line.contains(&format!(" session={id}"))) {
        assert!(line.contains(&format!(" session={id} run=run-")), "{line}");
    }
    // Nothing is there that a terminal would take for a command.
    assert!(!said.contains('\u{1b}'), "{said:?}");
    // Words and secrets are not in it at this level, either.
    assert!(!said.contains(UNSAID), "{said}");

    let (child, log, said) = serve_quietly(&home, &["--log", "off"]);
    live(&home);
    assert_eq!(ended(child, log, said), "");
}

/// Starts a host whose log does not say that it serves, and waits until it is there.
fn serve_quietly(
    home: &Home,
    arguments: &[&str],
) -> (Child, BufReader<std::process::ChildStderr>, String) {
    let mut command = home.command(&[&["serve"], arguments].concat());
    let mut child = Child::start(&mut command).unwrap();
    let log = BufReader::new(child.as_std().stderr.take().unwrap());
    let pid = json!(child.id());
    let start = std::time::Instant::now();
    while !home.jsons(&["hosts"]).iter().any(|host| host["pid"] == pid) {
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "it never hosts");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    (child, log, String::new())
}

#[test]
fn the_log_of_a_host_names_what_it_recovers() {
    let home = Home::new();
    let id = home.parked(HANGS);
    let first = home.serve();
    home.json(&["event", "go"]);
    assert_eq!(home.until_in_flight("deploy"), id);
    first.kill();
    let (child, log, said) = serve(&home, &[]);
    home.until(&id, "state", "suspended");
    let said = ended(child, log, said);
    let line = said.lines().find(|line| line.contains("recovered: its host died")).expect(&said);
    assert!(line.contains(" WARN ") && line.contains(&format!("session={id}")), "{line}");
    assert!(line.contains("lost_host=host-") && line.contains("unknown=1"), "{line}");
    assert!(line.contains(&format!("adjourn resume {id}")), "{line}");
    let serving = said.lines().find(|line| line.contains("serving ")).unwrap();
    let host = serving.split(' ').find(|word| word.starts_with("host=")).expect(serving);
    assert!(line.contains(&format!(" {host} ")), "the host that recovers it: {line}");
    assert!(line.contains(&format!("session={id} run={} ", run_of(&home, &id))), "{line}");
}

/// Returns the last run of a session.
fn run_of(home: &Home, id: &str) -> String {
    let entries = home.jsons(&["log", id]);
    let started = entries.iter().rev().find(|entry| entry["event"] == "run_started").unwrap();
    started["run"].as_str().unwrap().to_owned()
}

#[test]
fn the_log_of_a_host_names_what_it_wakes_by_itself_and_what_it_gives_back() {
    let home = Home::new();
    // It is woken by its own deadline, and parks again; then its host stops in its next step.
    let id = home.parked(
        r#"{"steps": [{"await": {"reason": "x",
            "conditions": {"timeout": {"durationMinutes": 0.005}}}},
            {"tool": {"name": "build", "ms": 1000}}, {"say": "done"}]}"#,
    );
    let handle = home.json(&["show", &id])["handle"].as_str().unwrap().to_owned();
    let (child, mut log, mut said) = serve(&home, &["--log-format", "json"]);
    read_until(&mut log, &mut said, "\"woken\"");
    home.until_in_flight("build");
    let lines = lines(&ended(child, log, said));
    let line = |what: &str| {
        let has = |line: &&Value| line["message"].as_str().unwrap().starts_with(what);
        lines.iter().find(has).unwrap_or_else(|| panic!("no {what:?} in {lines:?}"))
    };
    let (host, run) = (&line("serving ")["host"], json!(run_of(&home, &id)));
    let woken = line("woken");
    let ids = ["session", "run", "handle", "host"].map(|name| &woken[name]);
    assert_eq!(ids, [&json!(id), &run, &json!(handle), host], "{woken}");
    assert_eq!(woken["cause"], "timeout", "{woken}");
    let stops = line("host stops: it gives its sessions back");
    assert_eq!((&stops["host"], &stops["running"]), (host, &json!(1)), "{stops}");
    let back = line("given back, because its host stops");
    let ids = ["session", "run", "host"].map(|name| &back[name]);
    assert_eq!(ids, [&json!(id), &run, host], "{back}");
    assert_eq!(back["level"], "INFO", "{back}");
}

/// Reads on until a line has something.
fn read_until(log: &mut BufReader<std::process::ChildStderr>, said: &mut String, what: &str) {
    while !said.contains(what) {
        assert!(log.read_line(said).unwrap() > 0, "it ended without {what:?}: {said}");
    }
}

/// Returns what the spans around a line have, the inner ones over the outer ones, and their names.
fn spans(line: &Value) -> (Vec<&str>, serde_json::Map<String, Value>) {
    let spans = line["spans"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = spans.iter().filter_map(|span| span["name"].as_str()).collect();
    let fields = spans.iter().filter_map(Value::as_object).flatten();
    (names, fields.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Returns the lines of a log in JSON.
fn lines(said: &str) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
    said.lines().map(line).collect()
}

/// Has a host find no room and run a call when it has, and returns the session and the log.
fn troubled(level: &str) -> (String, Vec<Value>) {
    let home = Home::new();
    let id = home.parked(
        r#"{"steps": [{"await": {"reason": "x", "conditions": {"onEvent": "go"}}},
            {"tool": {"name": "build", "ms": 1}}, {"say": "done"}]}"#,
    );
    let (child, mut log, mut said) = serve(&home, &["--log", level, "--log-format", "json"]);
    limit_files(&child, Some(4096));
    home.json(&["event", "go"]);
    read_until(&mut log, &mut said, "nothing can be stored");
    limit_files(&child, None);
    read_until(&mut log, &mut said, "run over");
    (id, lines(&ended(child, log, said)))
}

#[test]
fn a_line_inside_of_a_call_or_a_commit_has_its_fields() {
    let (id, lines) = troubled("debug");
    let line = |what: &str| {
        let has = |line: &&Value| line["message"].as_str().unwrap().starts_with(what);
        lines.iter().find(has).unwrap_or_else(|| panic!("no {what:?} in {lines:?}"))
    };
    let (host, run) = (&line("serving ")["host"], &line("step started")["run"]);
    assert!(host.as_str().unwrap().starts_with("host-"), "{lines:?}");
    assert!(run.as_str().unwrap().starts_with("run-"), "{lines:?}");
    let (around, call) = spans(line("call over"));
    assert_eq!(around, ["claim", "call"]);
    let ids = [&call["session"], &call["run"], &call["host"], &call["tool"]];
    assert_eq!(ids, [&json!(id), run, host, &json!("build")]);
    let claim = &line("call over")["spans"][0];
    assert_eq!([&claim["session"], &claim["run"], &claim["host"]], [&json!(id), run, host]);
    let (around, commit) = spans(line("nothing can be stored"));
    assert_eq!(around, ["commit"]);
    assert!(commit["commands"].as_u64().unwrap() > 0, "{commit:?}");
    let (_, commit) = spans(line("there is room in the store again"));
    let ids = [&commit["session"], &commit["run"], &commit["host"]];
    assert_eq!(ids, [&json!(id), run, host], "{commit:?}");

    // Where it is not asked for, no commit pays for a span of its own.
    let (_, lines) = troubled("info");
    let full = |line: &&Value| line["message"].as_str().unwrap().starts_with("nothing can be");
    let full: Vec<_> = lines.iter().filter(full).map(spans).collect();
    assert_eq!(full, [(Vec::new(), serde_json::Map::new())]);
}

/// Limits the files of a process, as a disk does that is full; without a limit there is room again.
fn limit_files(child: &Child, bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Some(child.pid()), Resource::Fsize, limit).unwrap();
}

#[test]
fn the_log_of_a_host_says_once_that_the_disk_is_full_and_when_it_is_not() {
    let home = Home::new();
    let id = home.parked(PARKS);
    let (child, mut log, mut said) = serve(&home, &["--listen", "127.0.0.1:0", "--insecure-open"]);
    let address = listens(&said);
    assert_eq!(get(&address, "/readyz").0, 200);
    limit_files(&child, Some(4096));
    home.json(&["event", "go"]);
    read_until(&mut log, &mut said, "nothing can be stored");
    read_until(&mut log, &mut said, "the host cannot work now");
    let (status, body) = get(&address, "/readyz");
    assert_eq!(body["detail"], "the host cannot work now");
    assert_eq!((status, get(&address, "/healthz").0), (503, 200), "{body}");
    limit_files(&child, None);
    home.until(&id, "state", "idle");
    // The line is written once nothing hinders it.
    read_until(&mut log, &mut said, "the host works again");
    assert_eq!(get(&address, "/readyz").0, 200);
    let said = ended(child, log, said);
    for (what, level) in [
        ("nothing can be stored: the store is full: ", " WARN "),
        ("the host cannot work now: the store is full: ", " WARN "),
        ("there is room in the store again", " INFO "),
        ("the host works again", " INFO "),
    ] {
        let lines: Vec<_> = said.lines().filter(|line| line.contains(what)).collect();
        assert!(lines.len() == 1 && lines[0].contains(level), "{what}: {said}");
    }
    assert!(!said.contains(UNSAID), "{said}");
}

#[test]
fn the_log_of_a_host_names_each_session_that_a_full_disk_holds_up() {
    let home = Home::new();
    let waits = r#"{"await": {"reason": "sk-reason", "conditions": {"onEvent": "go"}}}"#;
    let id = home.parked(&format!(
        r#"{{"steps": [{waits}, {{"tool": {{"name": "build", "ms": 500}}}}, {{"say": "done"}}]}}"#
    ));
    // As an editor's agent logs, at a level at which it has no spans.
    let arguments = ["--log", "warn", "--log-format", "json"];
    let (child, mut log, mut said) = serve_quietly(&home, &arguments);
    home.json(&["event", "go"]);
    home.until_in_flight("build");
    limit_files(&child, Some(4096));
    read_until(&mut log, &mut said, "held up: ");
    limit_files(&child, None);
    home.until(&id, "state", "idle");
    let said = ended(child, log, said);
    let lines = lines(&said);
    let held_up =
        lines.iter().find(|line| line["message"].as_str().unwrap().starts_with("held up"));
    let held_up = held_up.unwrap();
    assert_eq!(held_up["level"], "WARN", "{held_up}");
    assert_eq!(held_up["session"], id.as_str(), "{held_up}");
    for (field, prefix) in [("run", "run-"), ("handle", "suspend-"), ("host", "host-")] {
        assert!(held_up[field].as_str().unwrap().starts_with(prefix), "{held_up}");
    }
    assert!(!said.contains(UNSAID), "{said}");
}

#[test]
fn the_log_of_a_host_names_a_session_that_it_leaves_to_others_and_why() {
    let home = Home::new();
    let asks = r#"{"steps": [{"tool": {"name": "deploy", "permission": true}}]}"#;
    let script = home.file("asks.json", asks);
    let new = home.json(&["new", "--script", &script]);
    let id = new["sessionId"].as_str().unwrap();
    home.json(&["prompt", id, "sk-prompt", "--detach"]);
    let (child, mut log, mut said) = serve(&home, &["--log", "debug"]);
    read_until(&mut log, &mut said, "its driver says: ");
    let said = ended(child, log, said);
    let lines: Vec<_> = said.lines().filter(|line| line.contains("left to other")).collect();
    assert_eq!(lines.len(), 1, "it is said once: {said}");
    let kind = "left to other hosts: its agent needs something that is not here now";
    assert!(lines[0].contains(" INFO ") && lines[0].contains(kind), "{said}");
    // What a driver says in its own words is for those who look for defects.
    let words: Vec<_> = said.lines().filter(|line| line.contains("permission")).collect();
    assert!(!words.is_empty() && words.iter().all(|line| line.contains(" DEBUG ")), "{said}");
    assert!(lines[0].contains(&format!("session={id} run=run-")), "{said}");
    assert!(lines[0].contains(" host=host-"), "{said}");
    assert!(!said.contains(UNSAID), "{said}");
}

#[test]
fn the_log_of_a_host_names_a_session_that_cannot_be_read() {
    let home = Home::new();
    let soon = r#"{"steps": [{"await": {"reason": "sk-reason",
        "conditions": {"timeout": {"durationMinutes": 0.001}}}}]}"#;
    let id = home.parked(soon);
    // What was committed last is compared with its signature when a store is opened.
    let script = home.file("script.json", PARKS);
    home.json(&["new", "--script", &script]);
    make_newer(&home, &id);
    let (child, mut log, mut said) = serve(&home, &[]);
    read_until(&mut log, &mut said, &format!("session {id} cannot be read"));
    let said = ended(child, log, said);
    let line = said.lines().find(|line| line.contains("cannot be read")).unwrap();
    assert!(line.contains(" WARN ") && line.contains(&format!("session={id}")), "{said}");
    assert!(!said.contains(UNSAID), "{said}");
}

#[test]
fn an_unknown_level_is_refused_with_what_there_is() {
    let home = Home::new();
    let told = home.told(&["serve", "--log", "loud"]);
    assert_eq!(told.code, 2, "{told:?}");
    let all = "expected one of off, error, warn, info, debug, trace";
    assert!(told.talk.contains(all), "{told:?}");
    let mut command = home.command(&["ls"]);
    command.env("ADJOURN_LOG", "loud");
    let told = home.ended(command);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.talk.contains(&format!("ADJOURN_LOG: {all}")), "{told:?}");
    let told = home.told(&["serve", "--log-format", "xml"]);
    assert!(told.code == 2 && told.talk.contains("expected one of text, json"), "{told:?}");
}

#[test]
fn a_failure_is_a_line_of_a_log_in_json() {
    let home = Home::new();
    let told = home.told(&["serve", "--log-format", "json", "--listen", "192.0.2.1:7070"]);
    assert_eq!(told.code, 2, "{told:?}");
    let last: Value = serde_json::from_str(told.talk.lines().next_back().unwrap()).unwrap();
    assert_eq!((&last["level"], &last["code"]), (&json!("ERROR"), &json!(2)), "{last}");
    assert!(last["hint"].as_str().unwrap().contains("ADJOURN_TOKEN"), "{last}");
}

#[test]
fn what_a_command_says_is_an_object_without_a_level_in_a_log_in_json() {
    let home = Home::new();
    home.parked(PARKS);
    home.parked(PARKS);
    let told = home.told(&["ls", "--limit", "1", "--log", "warn", "--log-format", "json"]);
    assert_eq!(told.code, 0, "{told:?}");
    let lines = lines(&told.talk);
    let goes_on = |line: &&Value| line["message"].as_str().unwrap().starts_with("there are more:");
    let said = lines.iter().find(goes_on).unwrap_or_else(|| panic!("{told:?}"));
    assert!(said["message"].as_str().unwrap().contains(" --after "), "{said}");
    assert!(said["timestamp"].as_str().unwrap().ends_with('Z'), "{said}");
    assert!(lines.iter().all(|line| line.get("level").is_none()), "{told:?}");
}

#[test]
fn commands_in_the_foreground_log_only_when_they_are_asked() {
    let home = Home::new();
    home.config("[log]\nlevel = \"debug\"");
    let script = home.file("script.json", PARKS);
    let run = ["run", "--script", &script, "--detach"];
    assert!(!home.told(&run).talk.contains(" INFO "), "a file speaks of those that serve");
    let mut command = home.command(&run);
    command.env("ADJOURN_LOG", "info");
    let told = home.ended(command);
    assert!(told.talk.contains(" INFO run started session="), "{told:?}");
    assert!(told.data.lines().all(|line| !line.contains("session=")), "{told:?}");
}

#[test]
fn an_editor_hears_nothing_of_the_log_on_stdout() {
    let home = Home::new().with_variable("ADJOURN_LOG", "trace");
    let home = home.with_variable("ADJOURN_LOG_FORMAT", "json");
    let greeting = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let mut editor = Editor::logging(&home, PARKS, "log", &greeting);
    let session = editor.new_session();
    let prompt = editor.prompt(&session, "sk-prompt");
    editor.answer(prompt).unwrap();
    editor.send(json!({ "jsonrpc": "2.0", "id": "four", "method": "session/unheard_of" }));
    editor.until("refused", |message| message["id"] == "four" && message["error"].is_object());
    editor.hang_up();
    editor.overheard();
    assert!(editor.heard().all(|message| message["jsonrpc"] == "2.0"), "{}", editor.dialog());
    assert_eq!(editor.close(), 0);
    let said = std::fs::read_to_string(home.path("log")).unwrap();
    let lines = lines(&said);
    assert!(lines.iter().any(|line| line["message"] == "parked: waits by itself"), "{said}");
    let is_refused = |line: &&Value| line["message"].as_str().unwrap().starts_with("request ref");
    let (around, request) = spans(lines.iter().find(is_refused).expect(&said));
    assert_eq!(around, ["connection", "request"]);
    assert_eq!([&request["method"], &request["id"]], ["session/unheard_of", r#""four""#]);
    assert_eq!(request["connection"], 1, "{request:?}");
    assert!(request["client"].is_string(), "{request:?}");
    assert!(!said.contains(UNSAID), "{said}");
}

#[test]
fn a_host_whose_log_is_not_read_goes_on() {
    let home = Home::new();
    // The test reads no more of its stderr: the pipe is full after a few hundred lines.
    let (mut child, log, _) = serve(&home, &["--log", "trace"]);
    let script: String = (0..400).map(|_| r#"{"say": "x"},"#).collect();
    let script = format!(r#"{{"steps": [{script}{{"say": "done"}}]}}"#);
    let script = home.file("long.json", &script);
    let told = home.told(&["run", "--script", &script, "--detach", "--json"]);
    assert_eq!(told.code, 0, "{told:?}");
    let id = home.sessions()[0]["sessionId"].as_str().unwrap().to_owned();
    home.until(&id, "state", "ended");
    child.signal(Signal::TERM);
    assert_eq!(child.wait().code(), Some(0));
    drop(log);
}

#[test]
fn a_host_that_stops_is_alive_and_not_ready() {
    let home = Home::new();
    home.parked(HANGS);
    let (serving, said) = home.serve_with(&["--listen", "127.0.0.1:0", "--insecure-open"]);
    let address = said.lines().find_map(|line| line.strip_prefix("listening on http://")).unwrap();
    let address = address.strip_suffix("/v1/events").unwrap();
    assert_eq!(get(address, "/healthz"), (200, json!({ "status": "alive" })));
    assert_eq!(get(address, "/readyz"), (200, json!({ "status": "ready" })));
    home.json(&["event", "go"]);
    home.until_in_flight("deploy");
    serving.signal(Signal::TERM);
    let start = std::time::Instant::now();
    let (status, body) = loop {
        let (status, body) = get(address, "/readyz");
        if status != 200 || start.elapsed() > std::time::Duration::from_secs(20) {
            break (status, body);
        }
    };
    assert_eq!((status, &body["detail"]), (503, &json!("the host is stopping")));
    assert_eq!(get(address, "/healthz").0, 200);
    serving.kill();
}

/// A server of MCP that repeats what it is asked on stderr, and ends.
const REPEATS: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}}' ;;
    *'"tools/list"'*) result='{"tools": [{"name": "ask", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}' ;;
    *'"tools/call"'*) printf '%s\n' "$line" >&2; exit 7 ;;
    *) continue ;;
  esac
  printf '{"jsonrpc": "2.0", "id": %s, "result": %s}\n' "$id" "$result"
done
"#;

/// A server of MCP that says in all that it sends what it was given.
const TELLS: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "logging": {}}, "serverInfo": {"name": "'$VALUE'", "version": "1"}}' ;;
    *'"tools/list"'*) result='{"tools": [{"name": "ask", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}' ;;
    *'"tools/call"'*) result='{"content": [{"type": "text", "text": "'$VALUE'"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "%s"}}\n' "$VALUE"
  printf '{"jsonrpc": "2.0", "id": %s, "result": %s}\n' "$id" "$result"
done
"#;

#[test]
fn no_level_logs_the_values_of_an_mcp_server_whatever_the_server_sends() {
    let home = Home::new();
    let server = json!({
        "command": "sh", "args": [home.file("server.sh", TELLS)], "env": { "VALUE": "hush-hush-77" },
    });
    let servers = json!({ "mcpServers": { "tells": server } });
    let servers = home.file("mcp.json", &servers.to_string());
    let answers = r#"
{"calls": [{"tool": "tells__ask"}]}
{"text": "Over."}
"#;
    let model = format!("scripted:{}", home.file("answers.jsonl", answers));
    for level in ["debug", "trace"] {
        let run = ["run", "go", "--model", &model, "--mcp", &servers, "--log", level];
        let told = home.told(&run);
        assert_eq!(told.code, 0, "{told:?}");
        assert!(told.talk.contains("DEBUG"), "{told:?}");
        assert!(!told.talk.contains("hush-hush"), "{level}: {}", told.talk);
    }
}

#[test]
fn what_an_mcp_server_says_is_logged_at_debug_alone() {
    let home = Home::new();
    let server = home.file("server.sh", REPEATS);
    let servers = json!({ "mcpServers": {
        "repeats": { "command": "sh", "args": [server] },
        "fails": { "command": "sh", "args": ["-c", "echo sk-failed >&2; exit 4"] },
    } });
    let servers = home.file("mcp.json", &servers.to_string());
    let answers = r#"
{"calls": [{"tool": "repeats__ask", "arguments": {"text": "sk-asked"}}]}
{"text": "Over."}
"#;
    let model = format!("scripted:{}", home.file("answers.jsonl", answers));
    let log = |level: &str| -> Vec<Value> {
        let run = ["run", "go", "--model", &model, "--mcp", &servers];
        let told = home.told(&[&run[..], &["--log", level, "--log-format", "json"]].concat());
        assert_eq!(told.code, 0, "{told:?}");
        let lines = told.talk.lines().map(|line| serde_json::from_str(line).expect(line));
        // What is said to the person who typed it has no level.
        lines.filter(|line: &Value| line.get("level").is_some()).collect()
    };
    let lines = log("warn");
    let of = |server: &str| -> Vec<&Value> {
        lines.iter().filter(|line| line["server"] == server).collect()
    };
    let (failed, ended) = (of("fails"), of("repeats"));
    assert!(failed.iter().any(|line| line["kind"] == "tool_error"), "{lines:#?}");
    assert!(ended.iter().any(|line| line["status"] == "exit status: 7"), "{lines:#?}");
    for line in &lines {
        assert!(!line.to_string().contains(UNSAID), "{line}");
    }
    let lines = log("debug");
    for word in ["sk-asked", "sk-failed"] {
        let says = |line: &&Value| line["message"].as_str().is_some_and(|said| said.contains(word));
        let said: Vec<_> = lines.iter().filter(says).collect();
        assert!(!said.is_empty(), "{word}: {lines:#?}");
        for line in said {
            assert_eq!(line["level"], "DEBUG", "{line}");
            let claim = &line["spans"][0];
            assert!(claim["session"].as_str().unwrap().starts_with("sess-"), "{line}");
        }
    }
}
