//! What goes wrong: a sentence, a hint, an exit code, and nothing changed.

use crate::home::Home;

const IDLE: &str = r#"{"steps": [{"await": {"reason": "x"}}]}"#;

/// The same words for the flag, the variable and the file.
const LISTEN: &str = "expected an address and a port: 127.0.0.1:7070 or localhost:7070";

/// A home with one parked session.
fn parked() -> (Home, String) {
    let home = Home::new();
    let script = home.file("script.json", IDLE);
    home.told(&["run", "--script", &script, "--detach"]);
    let id = home.json(&["ls"])["sessionId"].as_str().unwrap().to_owned();
    (home, id)
}

/// A name for others means that they are let through to loopback.
const OPEN_TO_OTHERS: [&str; 6] =
    ["serve", "--listen", "127.0.0.1:0", "--insecure-open", "--public-name", "agents.example"];

#[test]
fn every_kind_of_failure_has_its_code() {
    let (home, id) = parked();
    let long = "x".repeat(5000);
    let odd = home.file("odd.json", r#"{"steps": [{"shout": "x"}]}"#);
    let text = home.file("text.txt", "not a database at all, but long enough to be looked at");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["frobnicate"], 2, "error: there is no command"),
        (&["run", "--script", "nowhere.json"], 2, "error: cannot read nowhere.json"),
        (&["run", "--script", &odd], 2, "steps[0]: there is no \"shout\" here; expected say, "),
        (&["new", "--script", &odd], 2, "steps[0]: there is no \"shout\" here; expected say, "),
        (&["suspend", &id, "--on-event", "*.x"], 2, "error: --on-event: "),
        (&["suspend", &id, "--trigger", "{"], 2, "hint: --trigger '{"),
        (&["suspend", &id, "--resume-when", "{"], 2, "hint: --resume-when '{"),
        (&["suspend", &id, "--resume-when", r#"{"on": 1}"#], 2, "error: --resume-when: on: "),
        (&["suspend", &id, "--timeout", "5x"], 2, "expected a duration like"),
        (&["suspend", &id, "--reason", &long], 2, "error: --reason: longer than 4096 bytes"),
        (&["resume", &id, "--handle", "suspend-1"], 2, "error: --handle: expected `suspend-`"),
        (&["resume", &id, "--add-budget", "lots"], 2, "error: --add-budget: "),
        (&["event", "a b\u{1}c"], 2, "error: NAME: must not hold control characters"),
        (
            &["resume", &id, "--handle", "suspend-01a1df44-c97b-7076-bba7-8d66d49eebf9"],
            3,
            "does not name the suspension",
        ),
        (&["serve", "--listen", "0.0.0.0:0"], 2, "hint: set ADJOURN_TOKEN"),
        (&["serve", "--listen", "127.0.0.1:0"], 2, "in with --insecure-open"),
        (&["serve", "--listen", "0.0.0.0:0", "--insecure-open"], 2, "is for loopback addresses"),
        (&OPEN_TO_OTHERS, 2, "agents.example is a name for others"),
        (&["serve", "--public-name", "a b"], 2, "expected a host's name"),
        (&["serve", "--listen", "example.org:80"], 2, LISTEN),
        (&["show", "zzzz"], 4, "error: there is no session \"zzzz\"\nhint: "),
        (&["cancel", "sess-01a1df44-c97b-7076-bba7-8d66d49eebf9"], 4, "error: there is no session"),
        (&["ls", "--store", "/"], 5, "error: / is not a store: it is a directory\nhint: "),
        (&["ls", "--store", &text], 5, "is not a store: it is not a database"),
        (&["event", "a", "--store", "/nowhere/x.db"], 5, "hint: make its directory first"),
        (&["backup", &text], 5, "hint: name a file that is not there yet"),
    ];
    let before = home.json(&["show", &id]);
    for (arguments, code, expected) in cases {
        let told = home.told(arguments);
        assert_eq!(told.code, *code, "{arguments:?}: {told:?}");
        assert!(told.talk.contains(expected), "{arguments:?}: {}", told.talk);
        assert_eq!(told.data, "", "{arguments:?}");
    }
    assert_eq!(home.json(&["show", &id]), before, "nothing changed");
    let beside = std::fs::read_dir(std::path::Path::new(&text).parent().unwrap()).unwrap();
    let names: Vec<_> = beside.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with("text.txt-")), "{names:?}");
}

#[test]
fn a_refusal_is_an_object_for_programs() {
    let (home, id) = parked();
    for arguments in [&["ls", "--frob"] as &[_], &["frobnicate"], &["suspend"]] {
        let told = home.told(&[arguments, &["--json"]].concat());
        assert_eq!((told.code, told.talk.as_str()), (2, ""), "{told:?}");
        let object: serde_json::Value = serde_json::from_str(&told.data).unwrap();
        assert_eq!(object["error"]["reason"], "USAGE");
    }
    let told = home.told(&["resume", &id, "--detach", "--json"]);
    assert_eq!(told.code, 0);
    let told = home.told(&["resume", &id, "--detach", "--json"]);
    assert_eq!(told.code, 3);
    let object: serde_json::Value = serde_json::from_str(&told.data).unwrap();
    assert_eq!(object["error"]["reason"], "TASK_NOT_PAUSED");
    let told = home.told(&["prompt", &id, "more", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&told.data).unwrap();
    assert_eq!((told.code, &object["error"]["reason"]), (3, &"TASK_BUSY".into()));
}

#[test]
fn what_cannot_be_read_is_told_in_a_sentence_and_a_hint() {
    let home = Home::new();
    let mut transcript = crate::transcript::Transcript::new(&home);
    let cases: &[&[&str]] = &[
        &["frobnicate"],
        &["suspnd", "x"],
        &["suspend"],
        &["log", "x", "--folow"],
        &["suspend", "x", "--mode", "slowly"],
        &["suspend", "x", "--timeout", "5x"],
        &["suspend", "x", "--on-timeout", "fail"],
    ];
    for arguments in cases {
        for json in [&[] as &[_], &["--json"]] {
            assert_eq!(transcript.type_in(&[arguments, json].concat()).code, 2);
        }
    }
    transcript.type_in(&["--json"]);
    expect_test::expect![[r#"
        $ adjourn frobnicate
        2> error: there is no command "frobnicate"
        2> hint: `adjourn --help` lists them
        ? 2
        $ adjourn frobnicate --json
        {"error":{"reason":"USAGE","message":"there is no command \"frobnicate\"","hint":"`adjourn --help` lists them"}}
        ? 2
        $ adjourn suspnd x
        2> error: there is no command "suspnd"
        2> hint: `adjourn suspend` is one; `adjourn --help` lists all
        ? 2
        $ adjourn suspnd x --json
        {"error":{"reason":"USAGE","message":"there is no command \"suspnd\"","hint":"`adjourn suspend` is one; `adjourn --help` lists all"}}
        ? 2
        $ adjourn suspend
        2> error: SESSION is missing
        2> hint: usage: adjourn suspend <SESSION>
        ? 2
        $ adjourn suspend --json
        {"error":{"reason":"USAGE","message":"SESSION is missing","hint":"usage: adjourn suspend <SESSION>"}}
        ? 2
        $ adjourn log x --folow
        2> error: there is no flag --folow here
        2> hint: --follow is one
        ? 2
        $ adjourn log x --folow --json
        {"error":{"reason":"USAGE","message":"there is no flag --folow here","hint":"--follow is one"}}
        ? 2
        $ adjourn suspend x --mode slowly
        2> error: --mode: expected one of finish_step, interrupt_immediate, wait_for_completion, not "slowly"
        2> hint: `--help` after the command says more
        ? 2
        $ adjourn suspend x --mode slowly --json
        {"error":{"reason":"USAGE","message":"--mode: expected one of finish_step, interrupt_immediate, wait_for_completion, not \"slowly\"","hint":"`--help` after the command says more"}}
        ? 2
        $ adjourn suspend x --timeout 5x
        2> error: --timeout: expected a duration like 500ms, 90s, 30m, 1h30m or 2d, not "5x"
        2> hint: `--help` after the command says more
        ? 2
        $ adjourn suspend x --timeout 5x --json
        {"error":{"reason":"USAGE","message":"--timeout: expected a duration like 500ms, 90s, 30m, 1h30m or 2d, not \"5x\"","hint":"`--help` after the command says more"}}
        ? 2
        $ adjourn suspend x --on-timeout fail
        2> error: --timeout is missing
        2> hint: usage: adjourn suspend --timeout <DURATION> --on-timeout <ACTION> <SESSION>
        ? 2
        $ adjourn suspend x --on-timeout fail --json
        {"error":{"reason":"USAGE","message":"--timeout is missing","hint":"usage: adjourn suspend --timeout <DURATION> --on-timeout <ACTION> <SESSION>"}}
        ? 2
        $ adjourn --json
        {"error":{"reason":"USAGE","message":"a command is missing","hint":"`adjourn --help` lists them"}}
        ? 2
    "#]].assert_eq(&transcript.text());
}

#[test]
fn a_mistake_is_told_with_what_was_typed_and_without_bad_guesses() {
    let home = Home::new();
    let erases = "`adjourn rm ID` erases that, too";
    let cases: &[(&[&str], &str, &str)] = &[
        (
            &["run", "-s", "x", "ship", "it"],
            "\"it\" is one argument too many",
            "hint: a task of several words is put in quotes\n",
        ),
        (
            &["status", "of it"],
            "\"of it\" is one argument too many",
            "hint: usage: adjourn status [OPTIONS]\n",
        ),
        (
            &["--store", "x.db", "show"],
            "SESSION is missing",
            "hint: usage: adjourn show <SESSION>\n",
        ),
        (&["remove"], "there is no command \"remove\"", erases),
        (&["erase"], "there is no command \"erase\"", erases),
        (&["drop"], "there is no command \"drop\"", erases),
        (&["destroy"], "there is no command \"destroy\"", erases),
        // The best guess removes things.
        (&["prun"], "there is no command \"prun\"", "hint: `adjourn --help` lists them\n"),
        (&["cancle"], "there is no command \"cancle\"", "hint: `adjourn --help` lists them\n"),
        (&["resum"], "there is no command \"resum\"", "hint: `adjourn resume` is one; "),
    ];
    for (typed, message, hint) in cases {
        let told = home.told(typed);
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.talk.starts_with(&format!("error: {message}\n")), "{typed:?}: {told:?}");
        assert!(told.talk.contains(hint), "{typed:?}: {told:?}");
    }
}
