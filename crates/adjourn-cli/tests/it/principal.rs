//! Who asks: what the journal names, and what whoever is refused is told.

use serde_json::Value;

use crate::home::Home;

/// Makes a session that is idle, and returns its id.
fn idle(home: &Home) -> String {
    let script = home.file("script.json", r#"{"steps": [{"say": "hello"}]}"#);
    let told = home.told(&["new", "--script", &script]);
    assert_eq!(told.code, 0, "{told:?}");
    told.data.trim().to_owned()
}

/// Returns who asked for the last thing that happened.
fn last_asker(home: &Home, id: &str) -> Value {
    home.jsons(&["log", id]).pop().unwrap()["by"].clone()
}

#[test]
fn the_journal_names_whoever_asked() {
    let home = Home::new();
    let id = idle(&home);
    assert_eq!(last_asker(&home, &id)["principal"], "ann", "the user's name");

    std::fs::create_dir_all(home.path(".config/adjourn")).unwrap();
    home.file(".config/adjourn/config.toml", "as = \"carol\"\n");
    assert_eq!(home.told(&["suspend", &id]).code, 0);
    assert_eq!(last_asker(&home, &id)["principal"], "carol", "the file over the user");

    let mut resume = home.command(&["resume", &id]);
    resume.env("ADJOURN_AS", "dave");
    assert_eq!(home.ended(resume).code, 0);
    assert_eq!(last_asker(&home, &id)["principal"], "dave", "the variable over the file");

    let mut suspend = home.command(&["suspend", &id, "--as", "bob"]);
    suspend.env("ADJOURN_AS", "dave");
    assert_eq!(home.ended(suspend).code, 0);
    assert_eq!(last_asker(&home, &id)["principal"], "bob", "the flag over the variable");
    let shown = home.told(&["show", &id]);
    assert!(shown.data.contains("by cli:bob"), "{shown:?}");

    for name in ["", " ", "two\nlines"] {
        let told = home.told(&["resume", &id, "--as", name]);
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.talk.contains("expected a name on one line"), "{told:?}");
    }
}

/// Timers, services and containers set no variable that names the user.
#[test]
fn without_variables_the_system_names_the_user() {
    let home = Home::new();
    for empty in [false, true] {
        let mut config = home.command(&["config", "--json"]);
        config.env_remove("USER");
        if empty {
            config.env("USER", "").env("LOGNAME", " ");
        }
        let told = home.ended(config);
        let of_system = std::process::Command::new("id").arg("-un").output().unwrap();
        let name = String::from_utf8(of_system.stdout).unwrap();
        // Names that only a directory service knows are told by their number.
        let number = format!("\"uid {}\"", rustix::process::geteuid().as_raw());
        let named = told.data.contains(&format!("\"{}\"", name.trim()));
        assert!((!name.trim().is_empty() && named) || told.data.contains(&number), "{told:?}");
    }
}

/// A pause takes effect when its host commits it; it is its caller's all the same.
#[test]
fn the_log_shows_who_asked_and_not_who_committed() {
    let home = Home::new();
    let script = r#"{"steps": [{"tool": {"name": "build", "ms": 1500}}, {"say": "done"}]}"#;
    let script = home.file("script.json", script);
    let host = home.serve();
    let id = home.told(&["new", "--script", &script]).data.trim().to_owned();
    assert_eq!(home.told(&["prompt", &id, "go", "--detach"]).code, 0);
    assert_eq!(home.until_in_flight("build"), id);
    let told = home.told(&["suspend", &id, "--as", "bob", "--reason", "lunch"]);
    assert_eq!(told.code, 0, "{told:?}");

    let log = home.told(&["log", &id]);
    let line = log.data.lines().find(|line| line.contains(" suspended ")).unwrap();
    assert!(line.contains("cli:bob"), "{line}");
    let suspended = home.jsons(&["log", &id]).into_iter().find(|o| o["event"] == "suspended");
    let suspended = suspended.unwrap();
    assert_eq!(suspended["by"]["principal"], "bob", "{suspended}");
    assert_eq!(suspended["committedBy"]["face"], "agent", "{suspended}");

    assert_eq!(host.terminate(), 0);
}

#[test]
fn a_prompt_to_a_paused_session_is_refused_with_who_why_and_what_to_type() {
    let home = Home::new();
    let id = idle(&home);
    assert_eq!(home.told(&["suspend", &id, "--as", "bob", "--reason", "lunch"]).code, 0);
    let end = &id[id.len() - 12..];

    let told = home.told(&["prompt", &id, "hello"]);
    assert_eq!(told.code, 3, "{told:?}");
    let talk = format!("error: paused by bob: lunch\nhint: resume it with: adjourn resume {end}\n");
    assert_eq!(told.talk, talk);
    let told = home.told(&["prompt", &id, "hello", "--json"]);
    let error: Value = serde_json::from_str(told.data.trim()).unwrap();
    let error = &error["error"];
    assert_eq!(error["reason"], "TASK_PAUSED");
    assert_eq!((&error["by"], &error["why"]), (&"cli:bob".into(), &"lunch".into()));

    // What is said there works.
    assert_eq!(home.told(&["resume", end]).code, 0);
    let told = home.told(&["prompt", end, "hello"]);
    assert_eq!(told.code, 0, "{told:?}");
}
