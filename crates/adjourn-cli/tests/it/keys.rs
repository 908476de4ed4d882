//! Keys at the command line: listed, rotated, revoked, and never replaced in silence.

use std::path::PathBuf;

use serde_json::Value;

use crate::home::Home;

const PARKS: &str = r#"{"steps": [{"await": {"reason": "night"}}, {"say": "done"}]}"#;

fn directory(home: &Home) -> PathBuf {
    home.path(".config/adjourn/keys")
}

/// Returns the ids of the keys in a state.
fn in_state(home: &Home, state: &str) -> Vec<String> {
    let keys = home.jsons(&["keys", "list"]);
    let id = |key: &Value| key["key"].as_str().unwrap().to_owned();
    keys.iter().filter(|key| key["state"] == state).map(id).collect()
}

#[test]
fn a_missing_key_is_an_error_and_nothing_is_made_in_its_place() {
    let home = Home::new();
    let id = home.parked(PARKS);
    let [key] = &in_state(&home, "current")[..] else { panic!("one key") };
    std::fs::rename(directory(&home), home.path("moved")).unwrap();
    for command in [&["suspend", &id] as &[_], &["resume", &id], &["event", "a"], &["serve"]] {
        let told = home.told(command);
        assert_eq!(told.code, 5, "{command:?}: {told:?}");
        let expected = format!("error: the last commit is signed with key {key}, which is not");
        assert!(told.talk.starts_with(&expected), "{told:?}");
        assert!(told.talk.contains("hint: put its file back"), "{told:?}");
    }
    assert!(!directory(&home).exists(), "no other was made");
    assert_eq!(home.told(&["ls"]).code, 0, "looking needs none");
    assert_eq!(in_state(&home, "missing"), [key.as_str()]);
    // Another store's key is no way around.
    let other = home.path("other.db");
    home.json(&["event", "a", "--store", other.to_str().unwrap()]);
    assert_eq!(home.told(&["event", "a"]).code, 5);
    // Said in so many words, it goes on.
    let made = home.json(&["keys", "rotate"]);
    home.json(&["event", "a"]);
    home.json(&["resume", &id, "--detach"]);
    assert_eq!(in_state(&home, "current"), [made["key"].as_str().unwrap()]);
    // Put back, the old one is there beside it.
    let back = format!("{key}.json");
    std::fs::copy(home.path("moved").join(&back), directory(&home).join(&back)).unwrap();
    home.json(&["event", "b"]);
    assert_eq!(in_state(&home, "missing"), Vec::<String>::new());
}

#[test]
fn a_host_that_runs_takes_up_a_key_that_is_rotated_or_revoked() {
    let home = Home::new();
    let serving = home.serve();
    home.parked(PARKS);
    let [first] = &in_state(&home, "current")[..] else { panic!("one key") };
    let second = home.json(&["keys", "rotate"])["key"].as_str().unwrap().to_owned();
    assert_eq!(in_state(&home, "accepted"), [first.as_str()]);
    let told = home.jsons(&["keys", "revoke", &second[..8], "--reason", "laptop lost"]);
    assert_eq!((&told[0]["state"], &told[0]["reason"]), (&"revoked".into(), &"laptop lost".into()));
    let third = told[1]["key"].as_str().unwrap();
    assert_eq!(in_state(&home, "revoked"), [second.as_str()]);
    assert_eq!(in_state(&home, "current"), [third]);
    assert_eq!(home.told(&["keys", "revoke", "ffff0000ffff"]).code, 4);
    // The commands that give it something to do have the new key at once.
    let start = std::time::Instant::now();
    loop {
        let id = home.parked(PARKS);
        home.json(&["resume", &id, "--detach"]);
        home.until(&id, "state", "idle");
        let signers = signers(&home);
        // All that was committed for the last of them, by the host and by the commands.
        if signers.iter().rev().take(6).all(|key| third.ends_with(key)) {
            break;
        }
        assert!(start.elapsed().as_secs() < 20, "{signers:?}");
    }
    serving.terminate();
}

#[test]
fn a_key_that_was_rotated_away_does_not_sign_again_when_the_next_is_missing() {
    let home = Home::new();
    home.json(&["event", "a"]);
    home.parked(PARKS);
    let second = home.json(&["keys", "rotate"])["key"].as_str().unwrap().to_owned();
    home.parked(PARKS);
    std::fs::remove_file(directory(&home).join(format!("{second}.json"))).unwrap();
    let told = home.told(&["new", "--script", &home.file("script.json", PARKS)]);
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.talk.contains(&format!("signed with key {second}, which is not")), "{told:?}");
    let third = home.json(&["keys", "rotate"])["key"].as_str().unwrap().to_owned();
    home.parked(PARKS);
    assert!(third.ends_with(signers(&home).last().unwrap()));
}

#[test]
fn a_host_whose_key_is_deleted_makes_no_other_and_says_so() {
    let home = Home::new();
    let mut serving = home.serve();
    home.parked(PARKS);
    let [key] = &in_state(&home, "current")[..] else { panic!("one key") };
    std::fs::remove_file(directory(&home).join(format!("{key}.json"))).unwrap();
    while !serving.line().contains("the key of the last commit is no longer in") {}
    let left = std::fs::read_dir(directory(&home)).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_str().unwrap().ends_with(".json")), "{left:?}");
    assert_eq!(serving.terminate(), 0);
    let signers = signers(&home);
    assert!(signers.iter().all(|signer| key.ends_with(signer)), "{signers:?}");
}

#[test]
fn keys_are_listed_without_a_home_and_none_is_made_for_a_store_that_is_none() {
    let home = Home::new();
    home.parked(PARKS);
    let path = home.path(".local/share/adjourn/store.db");
    let store = ["keys", "list", "--store", path.to_str().unwrap()];
    let output = home.command(&store).env_remove("HOME").output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && talk.contains("no HOME to have keys in"), "{talk}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("missing"));
    let other = home.file("other.db", "no store at all, but long enough to be looked at as one");
    assert_eq!(home.told(&["keys", "rotate", "--store", &other]).code, 5);
    assert_eq!(in_state(&home, "current").len() + in_state(&home, "accepted").len(), 1);
}

/// Returns who signed each commit.
fn signers(home: &Home) -> Vec<String> {
    let path = home.path(".local/share/adjourn/store.db");
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut statement = connection.prepare("SELECT lower(hex(key)) FROM commits").unwrap();
    let keys = statement.query_map([], |row| row.get(0)).unwrap();
    keys.map(Result::unwrap).collect()
}
