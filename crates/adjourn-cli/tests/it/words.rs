//! What is typed wrong is told in this program's words, and leads to nothing that destroys.

use crate::home::Home;

/// Returns what is said about a command that cannot be read.
fn mistake(home: &Home, arguments: &[&str]) -> String {
    let told = home.told(arguments);
    assert_eq!((told.code, told.data.as_str()), (2, ""), "{arguments:?}: {told:?}");
    told.talk
}

#[test]
fn words_of_other_programs_lead_to_the_command_that_is_meant() {
    let home = Home::new();
    for (typed, hint) in [
        ("pause", "`adjourn suspend ID` pauses a session"),
        ("wake", "`adjourn resume ID` wakes a session"),
        ("ps", "`adjourn ls` lists sessions"),
        ("promt", "`adjourn prompt` is one; `adjourn --help` lists all"),
    ] {
        let expected = format!("error: there is no command {typed:?}\nhint: {hint}\n");
        assert_eq!(mistake(&home, &[typed]), expected);
    }
    let delete = mistake(&home, &["delete"]);
    assert!(delete.contains("`adjourn close ID` ends a session and keeps"), "{delete}");
    assert!(delete.contains("`adjourn rm ID` erases"), "{delete}");
}

#[test]
fn no_slip_leads_to_a_command_that_ends_or_removes_something() {
    let home = Home::new();
    let verbs = ["cancel", "close", "export", "prune", "restore", "rm", "takeover"];
    for verb in verbs {
        for end in 1..verb.len() {
            for typed in [format!("{}x", &verb[..end]), verb[..end].to_owned(), format!("x{verb}")]
            {
                let told = home.told(&[&typed, "x"]);
                if told.talk.starts_with("error: there is no command") {
                    let hint = told.talk.lines().last().unwrap();
                    let hinted =
                        verbs.iter().find(|verb| hint.contains(&format!("`adjourn {verb}")));
                    assert_eq!(hinted, None, "{typed}: {hint}");
                }
            }
        }
    }
    for typed in ["stop", "kill", "clean", "purge", "end", "cancle"] {
        let told = mistake(&home, &[typed]);
        let hinted = verbs.iter().find(|verb| told.contains(&format!("`adjourn {verb}")));
        assert_eq!(hinted, None, "{typed}: {told}");
    }
}

#[test]
fn a_short_flag_means_what_the_long_one_does() {
    let home = Home::new();
    let script = home.file("s.json", r#"{"steps": [{"await": {"reason": "x"}}]}"#);
    let told = home.told(&["run", "-s", &script, "-p", "hello", "-d"]);
    assert_eq!(told.code, 0, "{told:?}");
    let id = home.jsons(&["ls", "-a"])[0]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(home.json(&["show", &id])["prompt"], "hello");
    let held = home.json(&["suspend", &id, "-r", "lunch", "-t", "1h30m", "-e", "bell"]);
    assert_eq!(held["reason"], "lunch");
    let conditions = serde_json::json!({"onEvent": "bell", "timeout": {"durationMinutes": 90.0}});
    assert_eq!(held["resumeWhen"], conditions);
    assert!(home.told(&["show", &id]).data.contains("or in 1h 30m"), "as it is printed");
    let said = home.jsons(&["log", &id, "-t", "-n", "1"]);
    assert_eq!((said.len(), &said[0]["text"]), (1, &"hello".into()));
}

#[test]
fn durations_are_read_as_they_are_printed_in_settings_too() {
    let home = Home::new();
    home.file("c.toml", "[host]\ndrain = \"1h 30m\"\n");
    let mut command = home.command(&["config", "--json"]);
    command.env("ADJOURN_CONFIG", home.path("c.toml"));
    let told = home.ended(command);
    assert!(told.data.contains(r#"{"key":"host.drain","value":"1h30m""#), "{told:?}");
}

#[test]
fn the_log_has_its_last_lines_and_those_since_a_time() {
    let home = Home::new();
    let id = home.parked(
        r#"{"steps": [{"tool": {"name": "one"}}, {"tool": {"name": "two"}},
                      {"await": {"reason": "x"}}]}"#,
    );
    let all = home.told(&["log", &id]).data;
    let all: Vec<_> = all.lines().collect();
    for count in [1, 3, all.len(), 500] {
        let tail = home.told(&["log", &id, "--tail", &count.to_string()]).data;
        let from = all.len().saturating_sub(count);
        assert_eq!(tail.lines().collect::<Vec<_>>(), all[from..], "{count}");
    }
    assert_eq!(home.told(&["log", &id, "--since", "1h"]).data.lines().count(), all.len());
    let at = all[4].split_whitespace().next().unwrap();
    let since = home.told(&["log", &id, "--since", at]).data;
    let younger = all.iter().filter(|line| line.split_whitespace().next().unwrap() >= at);
    assert_eq!(since.lines().collect::<Vec<_>>(), younger.copied().collect::<Vec<_>>());
    assert_eq!(home.told(&["log", &id, "--since", "2999-01-01T00:00:00Z"]).data, "");
    // Whoever follows sees the last lines first, and then what comes.
    let follow = home.command(&["log", &id, "-f", "-n", "2"]).spawn().unwrap();
    home.json(&["close", &id]);
    let output = follow.wait_with_output().unwrap();
    let followed = String::from_utf8(output.stdout).unwrap();
    assert!(followed.trim_end().lines().last().unwrap().contains("session_ended"), "{followed}");
}

/// A journal that is long enough for its end to be read without its beginning.
#[test]
fn the_end_of_a_long_log_is_as_it_is_in_the_whole() {
    let home = Home::new();
    let tools = r#"{"tool": {"name": "build"}},"#.repeat(60);
    let id = home.parked(&format!(r#"{{"steps": [{tools} {{"await": {{"reason": "x"}}}}]}}"#));
    let all = home.told(&["log", &id]).data;
    let all: Vec<_> = all.lines().collect();
    assert!(all.len() > 300, "{}", all.len());
    for count in 1..12 {
        let tail = home.told(&["log", &id, "-n", &count.to_string()]).data;
        assert_eq!(tail.lines().collect::<Vec<_>>(), all[all.len() - count..], "{count}");
    }
}
