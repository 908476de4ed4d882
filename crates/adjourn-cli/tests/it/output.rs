//! Output that cannot be written, or that nobody reads.

use std::fs::File;
use std::process::Stdio;

use crate::home::{Home, Told};

const SAYS: &str = r#"{"runs": [[{"say": "one"}, {"tool": {"name": "build"}}, {"say": "two"}]]}"#;
const LOST: &str = "error: cannot write the output: No space left on device (os error 28)\n";

/// Runs a command whose data goes elsewhere.
fn told(home: &Home, arguments: &[&str], stdout: impl Into<Stdio>) -> Told {
    let mut command = home.command(arguments);
    command.stdout(stdout);
    home.ended(command)
}

/// Runs a command on a full disk.
fn on_a_full_disk(home: &Home, arguments: &[&str]) -> Told {
    told(home, arguments, File::options().write(true).open("/dev/full").unwrap())
}

#[test]
fn output_that_cannot_be_written_is_no_success() {
    let home = Home::new();
    let script = home.file("script.json", SAYS);
    let ran = on_a_full_disk(&home, &["run", "--script", &script]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.talk.ends_with(LOST), "{ran:?}");
    // The work is done all the same, and it is said once what was lost.
    assert_eq!(ran.talk.matches("error:").count(), 1, "{ran:?}");
    let session = home.jsons(&["ls"]).remove(0);
    assert_eq!((&session["state"], &session["outcome"]), (&"ended".into(), &"completed".into()));

    let id = session["sessionId"].as_str().unwrap();
    for arguments in [
        &["ls", "--all"][..],
        &["ls", "--json"],
        &["show", id],
        &["log", id],
        &["log", id, "--json", "--follow"],
        &["config"],
        &["config", "--defaults"],
        &["completions", "bash"],
        &["man"],
        &["man", "--json"],
        &["event", "ci.passed", "--json"],
        &["--help"],
        &["--version"],
    ] {
        let told = on_a_full_disk(&home, arguments);
        assert_eq!(told.code, 1, "{arguments:?}: {told:?}");
        assert!(told.talk.ends_with(LOST), "{arguments:?}: {told:?}");
    }
}

#[test]
fn a_failure_of_the_command_itself_comes_first() {
    let home = Home::new();
    assert_eq!(home.told(&["event", "go"]).code, 0, "there is a store");
    let missing = r#"error: there is no session "nosuch""#;
    let told = on_a_full_disk(&home, &["show", "nosuch", "--json"]);
    assert_eq!(told.code, 4, "{told:?}");
    assert!(told.talk.starts_with(missing) && told.talk.ends_with(LOST), "{told:?}");
    let told = on_a_full_disk(&home, &["show", "--nosuch", "--json"]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.talk.starts_with("error: there is no flag "), "{told:?}");
    assert!(told.talk.ends_with(LOST), "{told:?}");
    // Nothing was to be written to stdout, and nothing is missing there.
    let told = on_a_full_disk(&home, &["show", "nosuch"]);
    assert_eq!(told.code, 4, "{told:?}");
    assert!(!told.talk.contains("cannot write"), "{told:?}");
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let home = Home::new();
    let script = home.file("script.json", SAYS);
    for arguments in [&["run", "--script", &script][..], &["ls", "--json"], &["man"], &["--help"]] {
        // Nobody holds the other end.
        let (_, pipe) = std::io::pipe().unwrap();
        let told = told(&home, arguments, pipe);
        assert_eq!(told.code, 0, "{arguments:?}: {told:?}");
        assert!(!told.talk.contains("error:"), "{arguments:?}: {told:?}");
    }
}

#[test]
fn an_object_is_not_printed_twice_in_a_row() {
    let home = Home::new();
    let says = (1..=20).map(|n| format!(r#"{{"say": "{n}"}}"#)).collect::<Vec<_>>().join(",");
    let script = home.file("script.json", &format!(r#"{{"runs": [[{says}]]}}"#));
    let objects = home.jsons(&["run", "--script", &script]);
    let said = objects.iter().filter(|object| object["said"]["role"] == "agent").count();
    assert_eq!(said, 20, "{objects:#?}");
    let states: Vec<_> = objects.iter().filter(|object| object["state"].is_string()).collect();
    assert_eq!(states.last().unwrap()["state"], "ended");
    for two in states.windows(2) {
        assert_ne!(two[0], two[1], "{states:#?}");
    }
}

#[test]
fn the_last_object_says_where_the_session_rests() {
    let home = Home::new();
    let _host = home.serve();
    let script = home.file(
        "script.json",
        r#"{"runs": [[{"say": "hello"}, {"await": {"reason": "x", "conditions": {"onEvent": "go"}}}]]}"#,
    );
    // The words and the park may be seen in one look or in two.
    for _ in 0..12 {
        let run = ["run", "--script", &script, "--detach", "--prompt", "x", "--json"];
        let told = home.told(&run);
        let last = told.data.lines().next_back().unwrap();
        let last: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!(last["state"], "suspended", "{told:?}");
    }
}
