//! Why a session stays Ready: nobody is there, or nobody who is there can run it.

use adjourn_core::driver::DriverSpec;
use adjourn_testkit::host::wait;

use crate::home::Home;
use crate::races::open;

/// Makes a session that no host can run, as one of another version might.
fn impossible(home: &Home) -> String {
    let created = open(home).create_with(DriverSpec::script("a script of the future"));
    wait(created).unwrap().id().to_string()
}

#[test]
fn whoever_stays_with_a_session_takes_over_when_its_host_is_gone() {
    let home = Home::new();
    let script = r#"{"steps": [{"await": {"reason": "x"}},
                               {"tool": {"name": "again", "ms": 1000, "idempotent": true}},
                               {"say": "done"}]}"#;
    let id = home.parked(script);
    let serving = home.serve();
    let staying = home.command(&["resume", &id]).spawn().unwrap();
    home.until_in_flight("again");
    serving.kill();
    let output = staying.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("done\n"));
    let log = home.told(&["log", &id]).data;
    assert_eq!(log.matches("host_lost").count(), 1, "{log}");
    let lost = log.lines().find(|line| line.contains("host_lost")).unwrap();
    assert!(lost.ends_with(" died; runs again: again"), "{lost}");
    assert!(log.lines().any(|l| l.contains("calls_returned") && l.ends_with(" again")), "{log}");
}

#[test]
fn a_run_that_is_canceled_is_no_success() {
    let home = Home::new();
    let script = home.file("s.json", r#"{"steps": [{"await": {"reason": "x"}}]}"#);
    let running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let start = std::time::Instant::now();
    let id = loop {
        let sessions = home.sessions();
        if let Some(parked) = sessions.iter().find(|session| session["state"] == "suspended") {
            break parked["sessionId"].as_str().unwrap().to_owned();
        }
        assert!(start.elapsed().as_secs() < 20, "it never parked");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert_eq!(home.told(&["cancel", &id, "--reason", "enough"]).code, 0);
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.ends_with("error: the run was canceled: enough\n"), "{talk}");
}

#[test]
fn it_is_said_who_cannot_run_a_session_and_why() {
    let home = Home::new();
    // Something makes the store.
    home.json(&["event", "a"]);
    let id = impossible(&home);
    let told = home.told(&["prompt", &id, "go", "--detach"]);
    assert_eq!(told.code, 0, "{told:?}");
    let unable = "nothing runs it, and `adjourn serve` could not: script: ";
    assert!(told.talk.starts_with(unable), "{}", told.talk);
    let none = "waits for a host: none is running; start `adjourn serve`";
    assert_eq!(home.json(&["show", &id])["notice"], none);
    assert!(home.told(&["ls"]).data.contains(none));

    let serving = home.serve();
    let cannot = format!("host {} cannot run it: script: not JSON: ", serving.pid());
    let start = std::time::Instant::now();
    loop {
        let ls = home.told(&["ls"]).data;
        if ls.contains(&cannot) {
            break;
        }
        assert!(start.elapsed().as_secs() < 20, "never {cannot:?}: {ls}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(home.told(&["show", &id]).data.contains(&cannot));

    // A prompt that no host takes is kept, and that is said.
    assert_eq!(home.told(&["cancel", &id]).code, 0);
    let told = home.json(&["prompt", &id, "again", "--detach"]);
    let notice = told["notice"].as_str().unwrap_or_default();
    assert!(notice.starts_with("no host that is running takes it: script: "), "{told}");

    // Whoever stays with it tries to be its host, too, before it gives up.
    assert_eq!(home.told(&["cancel", &id]).code, 0);
    let told = home.told(&["prompt", &id, "again"]);
    assert_eq!(told.code, 1, "{told:?}");
    let error = told.talk.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
    assert!(error.starts_with("error: it stays ready, but nobody runs it: "), "{}", told.talk);
    assert_eq!(error.matches("cannot run it: script: ").count(), 2, "{}", told.talk);
    assert_eq!(serving.terminate(), 0);
    assert_eq!(home.json(&["show", &id])["notice"], none, "a host that left says nothing");
}

#[test]
fn a_command_in_the_foreground_runs_its_own_session_only() {
    let home = Home::new();
    let parked = r#"{"steps": [{"await": {"reason": "x"}}, {"say": "done"}]}"#;
    let stranger = home.parked(parked);
    let script = home.file("own.json", parked);
    let mut running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let start = std::time::Instant::now();
    let own = loop {
        let suspended = |session: &&serde_json::Value| {
            session["state"] == "suspended" && session["sessionId"] != stranger.as_str()
        };
        if let Some(session) = home.jsons(&["ls"]).iter().find(suspended) {
            break session["sessionId"].as_str().unwrap().to_owned();
        }
        assert!(start.elapsed().as_secs() < 20, "it never parked");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };

    // A stranger's session does not end up in a process that goes away soon.
    let told = home.told(&["resume", &stranger, "--detach"]);
    assert_eq!(told.talk, "nothing runs it yet; start `adjourn serve`\n");
    let none = "waits for a host: none is running; start `adjourn serve`";
    assert_eq!(home.json(&["show", &stranger])["notice"], none);

    // Its own goes on there, whoever wakes it.
    let told = home.told(&["resume", &own]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(running.wait().unwrap().success());
    assert_eq!(home.json(&["show", &stranger])["state"], "ready");
}

#[test]
fn a_key_that_is_used_again_tells_how_the_run_ended() {
    let home = Home::new();
    let id = home.parked(r#"{"steps": [{"await": {"reason": "x"}}, {"fail": "no room"}]}"#);
    let resume = ["resume", id.as_str(), "--idempotency-key", "k"];
    let first = home.told(&resume);
    assert_eq!(first.code, 1, "{first:?}");
    assert!(first.talk.ends_with("error: the run failed: no room\n"), "{first:?}");
    let again = home.told(&resume);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.talk.ends_with("error: the run failed: no room\n"), "{again:?}");
    let detached = home.told(&["resume", &id, "--idempotency-key", "k", "--detach"]);
    assert_eq!(detached.code, 0, "whoever does not stay is told that it was taken: {detached:?}");
}

#[test]
fn whoever_stays_does_not_wait_behind_a_host_without_room() {
    let home = Home::new();
    let serving = home.serve_with(&["--max-running", "1"]).0;
    let busy = home.parked(
        r#"{"steps": [{"await": {"reason": "x"}},
                                         {"tool": {"name": "long", "ms": 60000}}]}"#,
    );
    assert_eq!(home.told(&["resume", &busy, "--detach"]).code, 0);
    home.until_in_flight("long");
    let other = home.parked(r#"{"steps": [{"await": {"reason": "x"}}, {"say": "done"}]}"#);
    let told = home.told(&["resume", &other, "--detach"]);
    assert_eq!(told.code, 0, "{told:?}");
    let full = format!("host {} has no room: it runs 1, as many as it may", serving.pid());
    assert_eq!(home.json(&["show", &other])["notice"], full);
    // It is ready already; whoever asks for it once more becomes its host.
    let told = home.told(&["resume", &other]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.data.starts_with("done\n"), "{told:?}");
    home.told(&["cancel", &busy]);
    serving.kill();
}

#[test]
fn a_resume_that_lets_a_kept_failure_go_tells_it() {
    let home = Home::new();
    let id = home.parked(r#"{"steps": [{"await": {"reason": "x"}},
                                       {"tool": {"name": "slow", "ms": 300}}, {"fail": "because"}]}"#);
    let serving = home.serve();
    assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
    home.until_in_flight("slow");
    let told = home.told(&["suspend", &id, "--mode", "wait_for_completion"]);
    assert_eq!(told.code, 0, "{told:?}");
    let told = home.told(&["resume", &id]);
    assert_eq!(told.code, 1, "{told:?}");
    assert!(told.talk.ends_with("error: the run failed: because\n"), "{told:?}");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn a_session_that_nobody_is_there_to_wake_says_so() {
    let home = Home::new();
    let waits = r#"{"steps": [{"await": {"reason": "x", "conditions": {"onEvent": "go"}}}]}"#;
    let (waits, by_hand) =
        (home.parked(waits), home.parked(r#"{"steps": [{"await": {"reason": "x"}}]}"#));
    let nobody = "nobody is there to wake it; start `adjourn serve`";
    assert_eq!(home.json(&["show", &waits])["notice"], nobody);
    assert_eq!(home.json(&["show", &by_hand])["notice"], serde_json::Value::Null);
    let listed = home.told(&["ls"]);
    assert_eq!(listed.talk, "nobody is there to wake what waits; start `adjourn serve`\n");
    let serving = home.serve();
    assert_eq!(home.json(&["show", &waits])["notice"], serde_json::Value::Null);
    assert_eq!(home.told(&["ls"]).talk, "");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn a_cancel_does_not_wait_for_a_dead_host() {
    let home = Home::new();
    let id = home.parked(r#"{"steps": [{"await": {"reason": "x"}},
                                       {"tool": {"name": "long", "ms": 60000, "idempotent": false}}]}"#);
    let serving = home.serve();
    assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
    home.until_in_flight("long");
    serving.kill();
    let told = home.json(&["cancel", &id]);
    assert_eq!(
        (told["state"].as_str(), told["outcome"].as_str()),
        (Some("idle"), Some("canceled"))
    );
}

/// Starts a session whose tool is in flight on a host, and kills that host.
fn orphaned(home: &Home, idempotent: bool) -> String {
    let script = format!(
        r#"{{"steps": [{{"await": {{"reason": "x"}}}},
                      {{"tool": {{"name": "long", "ms": 1000, "idempotent": {idempotent}}}}},
                      {{"say": "done"}}]}}"#
    );
    let id = home.parked(&script);
    let serving = home.serve();
    assert_eq!(home.told(&["resume", &id, "--detach"]).code, 0);
    home.until_in_flight("long");
    serving.kill();
    id
}

#[test]
fn a_session_whose_host_died_is_not_told_to_be_busy() {
    let home = Home::new();
    let id = orphaned(&home, false);
    let told = home.told(&["prompt", &id, "go on"]);
    assert_eq!(told.code, 0, "{told:?}");
    let died = "its host died; it is taken over, and nobody knows what became of long\n";
    assert!(told.talk.starts_with(died), "{told:?}");
    assert!(told.data.starts_with("done\n"), "{told:?}");

    let id = orphaned(&home, false);
    let told = home.told(&["resume", &id]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.talk.starts_with(died), "{told:?}");

    // What may be run twice goes on by itself: there is nothing to resume, and it is run here.
    let id = orphaned(&home, true);
    let told = home.told(&["resume", &id]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.talk.starts_with("its host died; it is taken over\n"), "{told:?}");
    assert!(told.data.starts_with("done\n"), "{told:?}");
    let id = orphaned(&home, true);
    let told = home.told(&["prompt", &id, "go on"]);
    assert_eq!(told.code, 3, "{told:?}");
    assert!(told.talk.starts_with("its host died; it is taken over\n"), "{told:?}");
    assert!(told.talk.contains("hint: `adjourn resume` goes on with it here"), "{told:?}");
}

/// Its own host is for this session alone, and another that has just claimed it is not full of it.
#[test]
fn nobody_is_without_room_because_of_the_session_itself() {
    let home = Home::new();
    let script = home.file("say.json", r#"{"runs": [[{"say": "hi"}]]}"#);
    for _ in 0..20 {
        let mut command = home.command(&["run", "--script", &script]);
        command.env("ADJOURN_MAX_RUNNING", "1");
        let told = home.ended(command);
        assert_eq!(told.code, 0, "{told:?}");
    }
    let serving = home.serve_with(&["--max-running", "1"]).0;
    let id = home.json(&["new", "--script", &script])["sessionId"].as_str().unwrap().to_owned();
    for _ in 0..20 {
        let told = home.told(&["prompt", &id, "go"]);
        assert_eq!(told.code, 0, "{told:?}");
        assert!(!told.talk.contains("no room"), "{told:?}");
    }
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn what_needs_an_editor_is_not_sent_to_a_host_without_one() {
    let home = Home::new();
    let script = r#"{"steps": [{"tool": {"name": "deploy", "permission": true}}]}"#;
    let script = home.file("script.json", script);
    let id = home.told(&["new", "--script", &script]).data.trim().to_owned();
    assert_eq!(home.told(&["prompt", &id, "go", "--detach"]).code, 0);
    let listed = home.told(&["ls"]).data;
    assert!(
        listed.contains("none is running; an editor runs it: `adjourn acp --script "),
        "{listed}"
    );
    assert!(!listed.contains("adjourn serve"), "{listed}");
}

#[test]
fn a_prompt_that_ends_in_a_wait_without_a_host_says_what_starts_one() {
    let home = Home::new();
    let script =
        r#"{"steps": [{"await": {"reason": "ci", "conditions": {"onEvent": "ci.done"}}}]}"#;
    let script = home.file("script.json", script);
    let id = home.told(&["new", "--script", &script]).data.trim().to_owned();
    let told = home.told(&["prompt", &id, "go"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.talk.ends_with("no host is left to wake it: start `adjourn serve`\n"), "{told:?}");
}
