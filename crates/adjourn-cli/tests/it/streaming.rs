//! Words as they come, in a terminal; whole messages in a pipe.

use serde_json::Value;

use crate::home::Home;
use crate::pty::OnTerminal;

/// A thought and words that take longer than a segment waits.
const LONG: &str = r#"{"runs": [
  [{"say": {"think": "hm hm ", "text": "one two three four five six", "ms": 1600}}, {"say": "end"}],
  [{"say": {"text": "seven eight nine ten", "ms": 4000}}]
]}"#;

/// The first of these runs, alone.
const ONCE: &str = r#"{"runs": [
  [{"say": {"think": "hm hm ", "text": "one two three four five six", "ms": 1600}}, {"say": "end"}]
]}"#;

#[test]
fn on_a_terminal_words_come_one_by_one_and_once() {
    let home = Home::new();
    let script = home.file("script.json", ONCE);
    let terminal = OnTerminal::start(home.command(&["run", "--script", &script]), 80);
    terminal.until("\x1b[2mhm \x1b[0m");
    terminal.until("one two ");
    assert!(!terminal.raw().contains("six"), "{}", terminal.raw());
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    let lines: Vec<_> = screen.lines().collect();
    let said = lines.iter().position(|line| *line == "hm hm ").unwrap();
    assert_eq!(&lines[said..said + 3], ["hm hm ", "one two three four five six", "end"]);
    assert_eq!(screen.matches("one").count(), 1, "{screen}");
}

#[test]
fn on_a_terminal_words_of_another_process_come_before_the_message_is_over() {
    let home = Home::new();
    let script = home.file("script.json", LONG);
    let session = home.json(&["new", "--script", &script])["sessionId"].clone();
    let session = session.as_str().unwrap();
    let serving = home.serve();
    let terminal = OnTerminal::start(home.command(&["prompt", session, "go"]), 80);
    terminal.until("one two");
    let now = home.json(&["show", session]);
    assert_eq!(now["state"], "running", "{now}");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("\none two three four five six\nend\n"), "{screen}");
    assert_eq!(screen.matches("one").count(), 1, "{screen}");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn on_a_terminal_a_message_whose_host_is_killed_ends_as_broken_off() {
    let home = Home::new();
    let script = home.file("script.json", LONG);
    let session = home.json(&["new", "--script", &script])["sessionId"].clone();
    let session = session.as_str().unwrap();
    let serving = home.serve();
    let terminal = OnTerminal::start(home.command(&["prompt", session, "go"]), 80);
    terminal.until("one two");
    serving.kill();
    terminal.until("[broken off]");
    // This process is the host now, and its agent begins anew.
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("\none two three four five six\nend\n"), "{screen}");
    assert_eq!(screen.matches("one").count(), 2, "{screen}");
}

#[test]
fn in_a_pipe_a_message_is_one_line_and_one_object() {
    let home = Home::new();
    let script = home.file("script.json", ONCE);
    let told = home.told(&["run", "--script", &script]);
    assert_eq!(told.data, "one two three four five six\nend\n");
    let told = home.told(&["run", "--script", &script, "--json"]);
    let objects = told.data.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let said: Vec<_> = objects.filter_map(|object| object.get("said").cloned()).collect();
    let agent: Vec<_> = said.iter().filter(|said| said["role"] == "agent").collect();
    assert_eq!(agent.len(), 2, "{agent:#?}");
    assert_eq!(agent[0]["text"], "one two three four five six");
    assert_eq!(agent[0].get("segment"), None, "{}", agent[0]);
}

#[test]
fn a_transcript_shows_a_message_once_and_says_which_was_broken_off() {
    let home = Home::new();
    let script = home.file("script.json", LONG);
    let session = home.json(&["new", "--script", &script])["sessionId"].clone();
    let session = session.as_str().unwrap();
    home.told(&["prompt", session, "go"]);
    let whole = home.told(&["log", "--transcript", session]).data;
    assert_eq!(whole.matches("one two three four five six").count(), 1, "{whole}");
    assert!(whole.contains("(thinks) hm hm"), "{whole}");
    // A host that dies in the middle leaves a message without its end.
    let serving = home.serve();
    home.told(&["prompt", session, "go", "--detach"]);
    home.until_log(session, "progressed");
    home.until(session, "state", "running");
    // The first segment is committed after a second, long before the message is over.
    while !home.told(&["log", "--transcript", session]).data.contains("seven") {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    serving.kill();
    home.told(&["resume", session]);
    let after = home.told(&["log", "--transcript", session]).data;
    assert!(after.contains("agent, broken off seven"), "{after}");
    assert!(after.contains("seven eight nine ten"), "{after}");
}
