//! Commands that stay with a session: who runs it, they or another host.

use serde_json::Value;

use crate::home::Home;

const SAYS: &str = r#"{"runs": [[{"say": "one"}], [{"say": "two"}], [{"say": "three"}]]}"#;
const PARKS: &str = r#"{"steps": [{"await": {"reason": "x"}}, {"say": "over"}]}"#;

/// Returns what happened to a session, and the hosts that claimed it.
fn happened(home: &Home, session: &str) -> (Vec<String>, Vec<String>) {
    let entries = home.jsons(&["log", session]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let claimed = entries.iter().filter(|entry| entry["event"] == "claimed");
    let hosts = claimed.map(|entry| text(&entry["host"])).collect();
    (entries.iter().map(|entry| text(&entry["event"])).collect(), hosts)
}

fn new(home: &Home, script: &str) -> String {
    let script = home.file("script.json", script);
    home.json(&["new", "--script", &script])["sessionId"].as_str().unwrap().to_owned()
}

#[test]
fn where_no_other_host_is_the_command_claims_with_what_it_says() {
    let home = Home::new();
    let session = new(&home, SAYS);
    for _ in 0..2 {
        home.json(&["prompt", &session, "go"]);
    }
    let (events, hosts) = happened(&home, &session);
    let starts = events.iter().enumerate().filter(|(_, event)| *event == "run_started");
    for (start, _) in starts {
        assert_eq!(events[start + 1], "claimed", "{events:?}");
    }
    assert_eq!(hosts.len(), 2);
    assert_ne!(hosts[0], hosts[1], "each command is a host of its own");

    let parked = new(&home, PARKS);
    home.json(&["prompt", &parked, "go"]);
    home.json(&["resume", &parked]);
    let (events, _) = happened(&home, &parked);
    let woken = events.iter().position(|event| event == "resumed").unwrap();
    assert_eq!(events[woken + 1], "claimed", "{events:?}");
}

#[test]
fn where_another_host_can_run_it_the_command_leaves_it_to_that() {
    let home = Home::new();
    let session = new(&home, SAYS);
    let serving = home.serve();
    for _ in 0..3 {
        home.json(&["prompt", &session, "go"]);
    }
    let (_, hosts) = happened(&home, &session);
    assert_eq!(hosts.len(), 3);
    assert!(hosts.iter().all(|host| *host == hosts[0]), "{hosts:?}");
    let script = home.file("script.json", SAYS);
    let told = home.told(&["run", "--script", &script, "--json"]);
    assert_eq!(told.code, 0, "{told:?}");
    let last: Value = serde_json::from_str(told.data.lines().next_back().unwrap()).unwrap();
    let (_, ran) = happened(&home, last["sessionId"].as_str().unwrap());
    assert_eq!(ran, vec![hosts[0].clone(); 3]);
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn a_command_that_is_refused_leaves_no_host_behind() {
    let home = Home::new();
    let session = new(&home, PARKS);
    home.json(&["close", &session]);
    let told = home.told(&["prompt", &session, "go"]);
    assert_eq!(told.code, 3, "{told:?}");
    let idle = new(&home, PARKS);
    home.json(&["suspend", &idle]);
    let told = home.told(&["resume", &idle, "--handle", &format!("suspend-{}", &session[5..])]);
    assert_eq!(told.code, 3, "{told:?}");
    // A watcher clears away what the dead have left; the living take theirs along.
    let left = std::fs::read_dir(home.path(".local/share/adjourn/store.db.hosts")).unwrap();
    assert_eq!(left.count(), 0);
}
