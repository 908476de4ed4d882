//! Agents with tools: they ask for permission at the terminal, and nothing runs twice.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{model, only_session, said};
use crate::home::{Home, signal};
use crate::pty::OnTerminal;

const WRITES: &str = r#"
{"text": "I write.", "calls": [{"tool": "write_file", "arguments": {"path": "a.txt", "content": "hello"}}]}
{"text": "Over."}
"#;

/// A server whose one tool says what its variable `WORD` holds.
pub const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "words", "version": "1"}}' ;;
    *'"tools/list"'*) result='{"tools": [{"name": "word", "description": "Says a word.", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}}]}' ;;
    *'"tools/call"'*) result='{"content": [{"type": "text", "text": "the word has '${#WORD}' letters"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc": "2.0", "id": %s, "result": %s}\n' "$id" "$result"
done
"#;

/// A model that calls the tool of that server, waits, and calls it again.
pub const CALLS: &str = r#"
{"calls": [{"tool": "words__word", "arguments": {"n": 1}}]}
{"text": "I wait.", "calls": [{"tool": "await_resumption", "arguments": {"reason": "more"}}]}
{"calls": [{"tool": "words__word", "arguments": {"n": 2}}]}
{"text": "Over."}
"#;

/// Returns what tools have said in a session.
pub fn results(home: &Home, session: &str) -> Vec<String> {
    let said = home.jsons(&["log", session, "--transcript"]).into_iter();
    let results = said.filter(|said| said["role"] == "tool");
    results.map(|said| said["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn killed_in_a_tool_it_does_not_run_twice() {
    let home = Home::new();
    let command = "echo $$ > pid; echo ran >> ran.txt; exec sleep 600";
    let call = json!({ "tool": "run_command", "arguments": { "command": command } });
    let answers = format!("{}\n{{\"text\": \"Over.\"}}\n", json!({ "calls": [call] }));
    let (model, cwd) = (model(&home, &answers), home.path("").display().to_string());
    let arguments =
        ["run", "go", "--model", &model, "--tools", "run", "--allow-all", "--cwd", &cwd];
    let running = home.command(&arguments).spawn().unwrap();
    let id = home.until_in_flight("run_command");
    home.until_there("ran.txt");
    let pid = std::fs::read_to_string(home.path("pid")).unwrap().trim().parse().unwrap();
    signal(&running, Signal::KILL);
    running.wait_with_output().unwrap();
    // Nor does it go on alone, beside what a person may start in its place.
    home.until_gone(pid);
    let serving = home.serve();
    let parked = home.until(&id, "state", "suspended");
    assert_eq!(parked["unknownCalls"], json!(["run_command"]), "{parked}");
    assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
    home.until(&id, "outcome", "completed");
    assert_eq!(std::fs::read_to_string(home.path("ran.txt")).unwrap(), "ran\n");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn a_terminal_is_asked_whether_a_call_may_run() {
    for (typed, written, told) in [
        ("1\n", true, "a.txt has 5 bytes"),
        ("no\n", false, "not run: the user does not allow it"),
        ("use b.txt\n", false, "not run: the user says: use b.txt"),
    ] {
        let home = Home::new();
        let (model, cwd) = (model(&home, WRITES), home.path("").display().to_string());
        let arguments = ["run", "go", "--model", &model, "--tools", "write", "--cwd", &cwd];
        let mut terminal = OnTerminal::start_typing(home.command(&arguments), 100);
        terminal.until("May it call write_file? Write a.txt\r\n");
        for shown in
            ["\r\n  path: a.txt\r\n", "\r\n  content: hello\r\n", "  1  yes, this time\r\n"]
        {
            terminal.until(shown);
        }
        terminal.until("> ");
        assert!(!home.path("a.txt").exists(), "it asks first");
        terminal.type_in(typed);
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{screen}");
        assert!(screen.contains("Over."), "{screen}");
        assert_eq!(home.path("a.txt").exists(), written, "{typed:?}: {screen}");
        let result = results(&home, &only_session(&home)).concat().to_lowercase();
        assert!(result.contains(&told.to_lowercase()), "{typed:?}: {result}");
    }
}

/// Starts a run whose model makes one call, and returns what is shown when it asks for it.
fn asked(home: &Home, call: &Value) -> (OnTerminal, String) {
    let answers = format!("{}\n{{\"text\": \"Over.\"}}\n", json!({ "calls": [call] }));
    let (model, cwd) = (model(home, &answers), home.path("").display().to_string());
    let arguments = ["run", "go", "--model", &model, "--tools", "all", "--cwd", &cwd];
    let terminal = OnTerminal::start_typing(home.command(&arguments), 100);
    terminal.until("> ");
    let raw = terminal.raw();
    let (_, shown) = raw.split_once("May it call ").unwrap();
    let (shown, _) = shown.split_once("  1  yes").unwrap();
    (terminal, shown.replace("\r\n", "\n"))
}

#[test]
fn a_permission_shows_all_that_a_call_would_do() {
    let (comment, path) = ("#".repeat(300), format!("{}/a.txt", "d".repeat(240)));
    for (tool, arguments, expected) in [
        (
            "run_command",
            json!({ "command": format!("echo safe {comment}\n\u{1b}[2K\r  1  no\n") }),
            vec![format!(
                "  command (2 lines, 324 bytes):\n    | echo safe {comment}\n    | \
                 \\u{{1b}}[2K\\u{{d}}  1  no\n"
            )],
        ),
        (
            "write_file",
            json!({ "path": path, "content": "one\ntwo\n" }),
            vec![
                format!("  path: {path}\n"),
                "  content (2 lines, 8 bytes):\n    | one\n    | two\n".to_owned(),
            ],
        ),
        (
            "edit_file",
            json!({ "path": "a.txt", "old_text": "one\ntwo", "new_text": "" }),
            vec![
                "  path: a.txt\n".to_owned(),
                "  old_text (2 lines, 7 bytes):\n    | one\n    | two\n".to_owned(),
                "  new_text: \"\"\n".to_owned(),
            ],
        ),
    ] {
        let home = Home::new();
        let (mut terminal, shown) = asked(&home, &json!({ "tool": tool, "arguments": arguments }));
        let (first, rest) = shown.split_once('\n').unwrap();
        assert!(first.starts_with(&format!("{tool}? ")), "{first}");
        for argument in &expected {
            assert!(rest.contains(argument), "{argument:?}: {rest:?}");
        }
        assert_eq!(rest.len(), expected.concat().len(), "and nothing else: {rest:?}");
        terminal.type_in("no\n");
        assert_eq!(terminal.end().0, 0);
    }
}

#[test]
fn a_permission_says_how_much_it_does_not_show() {
    let home = Home::new();
    let command = "echo x\n".repeat(101) + "echo the last";
    let call = json!({ "tool": "run_command", "arguments": { "command": command } });
    let (mut terminal, shown) = asked(&home, &call);
    let id = only_session(&home);
    assert!(shown.contains("  command (102 lines, 720 bytes):\n    | echo x\n"), "{shown}");
    assert_eq!(shown.matches("    | echo x\n").count(), 100, "{shown}");
    let end = format!(
        "    … and 2 lines, 20 bytes that are not shown\n(elsewhere, `adjourn log {id} \
         --transcript` shows all of it)\n"
    );
    assert!(shown.ends_with(&end), "{shown}");
    let log = home.told(&["log", &id, "--transcript"]);
    assert!(log.data.contains("echo the last"), "{log:?}");
    terminal.type_in("no\n");
    assert_eq!(terminal.end().0, 0);
}

#[test]
fn ctrl_c_at_a_permission_suspends_and_a_resume_asks_again() {
    let home = Home::new();
    let (model, cwd) = (model(&home, WRITES), home.path("").display().to_string());
    let arguments = ["run", "go", "--model", &model, "--tools", "write", "--cwd", &cwd];
    let terminal = OnTerminal::start_typing(home.command(&arguments), 100);
    terminal.until("May it call write_file?");
    terminal.until("> ");
    terminal.signal(Signal::INT);
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen}");
    assert!(screen.contains("suspended; it goes on where it stopped"), "{screen}");
    let id = only_session(&home);
    let mut terminal = OnTerminal::start_typing(home.command(&["resume", &id]), 100);
    terminal.until("May it call write_file?");
    terminal.until("> ");
    terminal.type_in("1\n");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(std::fs::read_to_string(home.path("a.txt")).unwrap(), "hello");
}

/// A person who is asked goes away with the process that asked, however that ends; a host without a
/// person takes the session, and keeps the question.
#[test]
fn a_permission_whose_asker_is_gone_is_a_question_that_waits() {
    for ends in ["killed", "closed", "suspended"] {
        let home = Home::new();
        let (model, cwd) = (model(&home, WRITES), home.path("").display().to_string());
        let arguments = ["run", "go", "--model", &model, "--tools", "write", "--cwd", &cwd];
        let terminal = OnTerminal::start_typing(home.command(&arguments), 100);
        terminal.until("May it call write_file?");
        terminal.until("> ");
        let id = only_session(&home);
        match ends {
            "killed" => drop(terminal),
            "closed" => {
                terminal.signal(Signal::HUP);
                terminal.end();
            }
            _ => {
                terminal.signal(Signal::INT);
                terminal.end();
            }
        }
        let serving = home.serve();
        if ends == "suspended" {
            assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
        }
        home.until(&id, "question", "May the agent call write_file? Write a.txt");
        assert!(!home.path("a.txt").exists(), "{ends}: nothing has run");
        assert_eq!(home.told(&["prompt", &id, "Allow once", "--detach"]).code, 0, "{ends}");
        home.until(&id, "outcome", "completed");
        assert_eq!(std::fs::read_to_string(home.path("a.txt")).unwrap(), "hello", "{ends}");
        let ran = results(&home, &id).into_iter().filter(|result| !result.starts_with("not run"));
        assert_eq!(ran.count(), 1, "{ends}: it ran once");
        assert_eq!(serving.terminate(), 0);
    }
}

#[test]
fn a_permission_whose_asker_is_gone_is_not_asked_for_behind_other_words() {
    let home = Home::new();
    let (model, cwd) = (model(&home, WRITES), home.path("").display().to_string());
    let arguments = ["run", "go", "--model", &model, "--tools", "write", "--cwd", &cwd];
    let terminal = OnTerminal::start_typing(home.command(&arguments), 100);
    terminal.until("May it call write_file?");
    terminal.until("> ");
    let id = only_session(&home);
    terminal.signal(Signal::INT);
    terminal.end();
    let serving = home.serve();
    let resume = ["resume", &id, "--input", "leave it", "--detach"];
    assert_eq!(home.told(&resume).code, 0);
    home.until(&id, "outcome", "completed");
    assert!(!home.path("a.txt").exists());
    assert_eq!(serving.terminate(), 0);
}

/// What runs in two lines is not shown as one, whose second half could be taken for a comment.
#[test]
fn a_permission_that_was_asked_in_the_background_shows_a_command_line_by_line() {
    let home = Home::new();
    let command = "echo ok #\ntouch a.txt";
    let call = json!({ "tool": "run_command", "arguments": { "command": command } });
    let answers = format!("{}\n{{\"text\": \"Over.\"}}\n", json!({ "calls": [call] }));
    let (model, cwd) = (model(&home, &answers), home.path("").display().to_string());
    let serving = home.serve();
    let new = ["new", "--model", &model, "--tools", "run", "--cwd", &cwd, "--name", "r"];
    assert_eq!(home.told(&new).code, 0);
    assert_eq!(home.told(&["prompt", "r", "go", "--detach"]).code, 0);
    home.until("r", "wait", "question");
    for told in [home.told(&["show", "r"]), home.told(&["resume", "r", "--detach"])] {
        let shown = told.data + &told.talk;
        assert!(shown.contains("command: echo ok # ⏎   touch a.txt"), "{shown}");
    }
    let mut terminal = OnTerminal::start_typing(home.command(&["resume", "r"]), 100);
    terminal.until("    | command: echo ok #\r\n    |   touch a.txt\r\n  1  Allow once\r\n");
    terminal.until("> ");
    assert!(!terminal.raw().contains("# touch"), "{}", terminal.raw());
    terminal.type_in("3\n");
    assert_eq!(terminal.end().0, 0);
    assert!(!home.path("a.txt").exists());
    assert_eq!(serving.terminate(), 0);
}

/// A terminal that goes away ends its input before it ends its programs.
#[test]
fn the_end_of_input_at_a_permission_refuses_nothing() {
    let home = Home::new();
    let (model, cwd) = (model(&home, WRITES), home.path("").display().to_string());
    let tools = ["--tools", "write", "--cwd", &cwd, "--name", "r"];
    let arguments = [&["run", "go", "--model", &model], &tools[..]].concat();
    let mut terminal = OnTerminal::start_typing(home.command(&arguments), 100);
    terminal.until("May it call write_file?");
    terminal.until("> ");
    terminal.type_in("\u{4}");
    terminal.until("May the agent call write_file?");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(!home.path("a.txt").exists());
    assert_eq!(home.told(&["prompt", "r", "Allow once"]).code, 0);
    assert_eq!(std::fs::read_to_string(home.path("a.txt")).unwrap(), "hello");
}

#[test]
fn where_nobody_can_be_asked_it_says_what_lets_it_run() {
    let home = Home::new();
    let (model, cwd) = (model(&home, WRITES), home.path("").display().to_string());
    let arguments = ["run", "go", "--model", &model, "--tools", "write", "--cwd", &cwd];
    let told = home.told(&arguments);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.talk.contains("--allow-all lets them run"), "{told:?}");
    let told = home.told(&[&arguments[..], &["--allow-all"]].concat());
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.talk.contains("→ write_file: Write a.txt"), "{told:?}");
    assert_eq!(std::fs::read_to_string(home.path("a.txt")).unwrap(), "hello");
    let told = home.told(&["run", "go", "--model", &model, "--tools", "fly"]);
    assert!(told.talk.contains("--tools: \"fly\" is none of read, write, edit"), "{told:?}");
}

#[test]
fn mcp_servers_are_connected_and_their_values_are_stored_nowhere() {
    let home = Home::new();
    let server = home.file("server.sh", SERVER);
    let word = "tell-no-one-of-this";
    let servers = json!({ "mcpServers": { "words": {
        "command": "sh", "args": [server], "env": { "WORD": word } } } });
    let servers = home.file("mcp.json", &servers.to_string());
    let model = model(&home, CALLS);
    let arguments = ["run", "go", "--model", &model, "--mcp", &servers, "--name", "r", "--detach"];
    let told = home.told(&arguments);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(results(&home, "r"), ["the word has 19 letters"], "{told:?}");
    for file in std::fs::read_dir(home.path(".local/share/adjourn")).unwrap() {
        let path = file.unwrap().path();
        let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        let found = bytes.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!found, "{} holds it", path.display());
    }
    // A host that has no value leaves it to others, and says what is missing.
    let serving = home.serve();
    assert_eq!(home.told(&["resume", "r", "--detach"]).code, 0);
    let lacks = |shown: &Value| shown["notice"].as_str().is_some_and(|n| n.contains("WORD"));
    let shown = home.until_shown("r", lacks);
    assert_eq!(shown["state"], "ready");
    assert_eq!(serving.terminate(), 0);
    // One whose environment has it goes on.
    let mut resuming = home.command(&["resume", "r"]);
    let told = home.ended({
        resuming.env("WORD", "four");
        resuming
    });
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(results(&home, "r")[1], "the word has 4 letters");
    assert_eq!(said(&home, "r").last().unwrap().1, "Over.");
}

/// Which tools of a server ask is known when it is connected, so a host begins without knowing.
#[test]
fn a_call_that_nobody_can_be_asked_about_parks_with_the_question() {
    let home = Home::new();
    let hint = r#""readOnlyHint": true"#;
    assert!(SERVER.contains(hint));
    let changing = SERVER.replace(hint, r#""readOnlyHint": false"#);
    let server = home.file("server.sh", &changing);
    let model = model(&home, CALLS);
    let run = |allowed: Value, name: &str| {
        let servers = json!({ "mcpServers": { "words": {
            "command": "sh", "args": [server], "alwaysAllow": allowed } } });
        let servers = home.file("mcp.json", &servers.to_string());
        let arguments = ["run", "go", "--model", &model, "--mcp", &servers, "--name", name];
        let told = home.told(&[&arguments[..], &["--detach"]].concat());
        assert_eq!(told.code, 0, "{told:?}");
        told
    };
    run(json!(["word"]), "allowed");
    assert_eq!(results(&home, "allowed").concat(), "the word has 0 letters");
    // It says what it asks, and how to answer.
    let told = run(json!([]), "asking");
    assert!(told.talk.contains("May the agent call words__word?"), "{told:?}");
    assert!(told.talk.contains("n: 1"), "it says with what: {told:?}");
    assert!(told.talk.contains("answer it with `adjourn prompt "), "{told:?}");
    let shown = home.json(&["show", "asking"]);
    assert_eq!(shown["choices"], json!(["Allow once", "Allow always", "Do not allow"]));
    assert!(results(&home, "asking").is_empty(), "nothing has run");
    // A command that would stay with it does not wait for an answer that no person can give there.
    let arguments =
        ["run", "go", "--model", &model, "--mcp", &home.path("mcp.json").display().to_string()];
    let told = home.told(&arguments);
    assert_eq!(told.code, 7, "{told:?}");
    assert!(told.talk.contains("May the agent call words__word? (n: 1) [Allow once"), "{told:?}");
    assert!(told.talk.contains("hint: adjourn prompt sess-"), "{told:?}");
    // The answer decides, in another process; once is once.
    let told = home.told(&["prompt", "asking", "allow once"]);
    assert_eq!(results(&home, "asking"), ["the word has 0 letters"], "{told:?}");
    assert_eq!(home.json(&["show", "asking"])["reason"], "more", "{told:?}");
    // A host in the background asks in the same way.
    let serving = home.serve();
    assert_eq!(home.told(&["resume", "asking", "--detach"]).code, 0);
    home.until("asking", "question", "May the agent call words__word?");
    let told = home.told(&["resume", "asking", "--detach"]);
    assert_ne!(told.code, 0, "a question needs an answer: {told:?}");
    assert!(told.talk.contains("May the agent call words__word?"), "{told:?}");
    assert!(told.talk.contains("adjourn prompt"), "{told:?}");
    assert_eq!(home.told(&["prompt", "asking", "rather not", "--detach"]).code, 0);
    home.until("asking", "outcome", "completed");
    assert_eq!(results(&home, "asking").len(), 1, "it did not run");
    assert_eq!(serving.terminate(), 0);
    let said = said(&home, "asking");
    assert!(said.iter().any(|(role, text)| role == "user" && text == "rather not"), "{said:?}");
}

#[test]
fn a_call_that_is_allowed_for_good_is_not_asked_about_again() {
    let home = Home::new();
    let (model, cwd) = (model(&home, WRITES), home.path("").display().to_string());
    let arguments = ["run", "go", "--model", &model, "--tools", "write", "--cwd", &cwd];
    let arguments = [&arguments[..], &["--name", "w", "--detach"]].concat();
    let told = home.told(&arguments);
    assert!(told.talk.contains("May the agent call write_file? Write a.txt"), "{told:?}");
    let told = home.told(&["prompt", "w", "Allow always"]);
    assert_eq!(std::fs::read_to_string(home.path("a.txt")).unwrap(), "hello", "{told:?}");
    assert!(told.data.contains("Over."), "{told:?}");
}

/// A session that waits for a key would run later, beside the one that is made when there is a key.
#[test]
fn what_runs_an_agent_itself_refuses_a_model_without_its_key() {
    let home = Home::new();
    let port = ["serve", "--listen", "127.0.0.1:0", "--insecure-open", "--model", "openai/gpt-5"];
    for arguments in
        [&["run", "go", "--model", "openai/gpt-5"][..], &["acp", "--model", "openai/gpt-5"], &port]
    {
        let told = home.told(arguments);
        assert_eq!(told.code, 2, "{arguments:?}: {told:?}");
        assert!(told.talk.contains("set OPENAI_API_KEY"), "{arguments:?}: {told:?}");
    }
    assert_eq!(home.told(&["ls", "--all", "--json"]).data, "", "there is no session that waits");
}

#[test]
fn a_host_without_the_key_of_a_model_says_how_to_give_it() {
    let home = Home::new();
    let told = home.told(&["new", "--model", "openai/gpt-5", "--name", "r"]);
    assert_eq!(told.code, 0, "{told:?}");
    let serving = home.serve();
    assert_eq!(home.told(&["prompt", "r", "go", "--detach"]).code, 0);
    let says = |shown: &Value| {
        shown["notice"].as_str().is_some_and(|notice| notice.contains("set OPENAI_API_KEY"))
    };
    let shown = home.until_shown("r", says);
    assert_eq!(shown["state"], "ready");
    assert_eq!(serving.terminate(), 0);
}

/// The diff that an editor is shown is no line of a transcript; that a file changes is.
#[test]
fn a_transcript_says_which_file_a_call_changes() {
    let home = Home::new();
    let (model, cwd) = (model(&home, WRITES), home.path("").display().to_string());
    let arguments = ["run", "go", "--model", &model, "--tools", "write", "--allow-all", "--keep"];
    let told = home.told(&[&arguments[..], &["--cwd", &cwd]].concat());
    assert_eq!(told.code, 0, "{told:?}");
    let log = home.told(&["log", &only_session(&home), "--transcript"]).data;
    let changes = log.lines().filter_map(|line| line.split_once("[changes "));
    let changes: Vec<_> = changes.map(|(_, path)| path).collect();
    assert!(matches!(changes.as_slice(), [path] if path.ends_with("a.txt]")), "{log}");
    assert!(!log.contains("[call "), "{log}");
}
