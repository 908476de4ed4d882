//! Slips of those who type commands and write scripts: each is told what is wrong, in its own words.

use crate::home::Home;

/// Runs a script that is wrong, and returns what is said about it.
fn refused(home: &Home, script: &[u8]) -> String {
    let path = home.file("script.json", "");
    std::fs::write(&path, script).unwrap();
    let told = home.told(&["run", "--script", &path]);
    assert_eq!(told.code, 2, "{told:?}");
    told.talk.strip_prefix("error: ").unwrap().replace(&path, "SCRIPT")
}

#[test]
fn what_is_wrong_with_the_text_of_a_script_is_said() {
    let home = Home::new();
    for (script, said) in [
        (
            &br#"{"steps": [{"say": "x"}, {"say": "y", "say": "z"}]}"#[..],
            "SCRIPT: script: steps[1]: the key \"say\" is there twice\n",
        ),
        (br#"{"steps": [], "steps": []}"#, "SCRIPT: script: the key \"steps\" is there twice\n"),
        (
            br#"{"steps": [{"say": {"text": "x", "ms": 1e400}}]}"#,
            "SCRIPT: script: the number in line 1 that ends in column 44 is too large\n",
        ),
        (
            b"\xef\xbb\xbf{\"steps\": []}",
            "SCRIPT: script: not JSON: it begins with a byte order mark; save it as UTF-8 without one\n",
        ),
        (
            b"{\"steps\": [{\"say\": \"gr\xfc\xdfe\"}]}",
            "cannot read SCRIPT: it is not UTF-8: it goes astray at byte 23\n",
        ),
    ] {
        assert_eq!(refused(&home, script), said);
    }
}

#[test]
fn a_number_or_a_state_that_is_none_is_told_with_what_is_expected() {
    let home = Home::new();
    for (arguments, said) in [
        (&["ls", "-n", "-1"][..], "--limit: expected a whole number from 1 on, not \"-1\""),
        (
            &["ls", "--older-than", "-1s"],
            "--older-than: expected how long ago, like 90s or 2d, not \"-1s\"",
        ),
        (
            &["ls", "--state", "suspended,"],
            "--state needs a value: one of idle, ready, running, quiescing, suspended, asking, ended",
        ),
    ] {
        let told = home.told(arguments);
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.talk.starts_with(&format!("error: {said}\n")), "{told:?}");
    }
}

#[test]
fn a_list_shows_the_title_of_a_session() {
    let home = Home::new();
    let waits = r#"{"steps": [{"await": {"reason": "waiting on ci"}}]}"#;
    let script = home.file("script.json", waits);
    let run = ["run", "--script", &script, "--detach", "--title", "Fix the login"];
    assert_eq!(home.told(&run).code, 0);
    let told = home.told(&["ls"]);
    assert!(told.data.contains("Fix the login · waiting on ci"), "{told:?}");
}
