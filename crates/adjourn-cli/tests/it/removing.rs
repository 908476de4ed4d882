//! Sessions that are removed, and those that cannot be read.

use adjourn_core::id::SessionId;
use adjourn_record::Hash;
use adjourn_record::chain::{Chain, Tip};
use rusqlite::{Connection, params};
use serde_json::json;

use crate::home::Home;

const WAITS: &str = r#"{"steps": [{"await": {"reason": "ci", "conditions": {"onEvent": "go"}}},
                                  {"say": "done"}]}"#;

/// Runs a script until it parks, and returns the session's id.
fn parked(home: &Home) -> String {
    let script = home.file("waits.json", WAITS);
    let parked = home.json(&["run", "--script", &script, "--detach"]);
    assert_eq!(parked["state"], "suspended", "{parked}");
    parked["sessionId"].as_str().unwrap().to_owned()
}

/// Makes a session that has done all it was asked for.
fn idle(home: &Home) -> String {
    let id = parked(home);
    home.json(&["cancel", &id]);
    id
}

/// Lets the last entry of a session be of a kind that this program does not know, as a newer program
/// would have written and linked it.
pub fn make_newer(home: &Home, id: &str) {
    let path = home.path(".local/share/adjourn/store.db");
    let connection = Connection::open(path).unwrap();
    let id: SessionId = id.parse().unwrap();
    let sql = "SELECT journal.no, body, journal.revision,
                   (SELECT link FROM journal AS p WHERE p.no = journal.prev)
               FROM journal JOIN session ON head = journal.no WHERE id = ?1";
    let (no, body, revision, before): (i64, Vec<u8>, u32, [u8; 32]) = connection
        .query_row(sql, [id.uuid().as_bytes()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    let text = String::from_utf8_lossy(&body[1..]).replacen("suspended/1", "suspended/9", 1);
    let newer = [&body[..1], text.as_bytes()].concat();
    let before = Tip { revision: u64::from(revision) - 1, link: Hash::from_bytes(before) };
    let link = Chain::journal(id).extend(before, &newer).link;
    let sql = "UPDATE journal SET body = ?1, link = ?2 WHERE no = ?3";
    connection.execute(sql, params![newer, link.as_bytes(), no]).unwrap();
    let sql = "UPDATE session SET link = ?1 WHERE head = ?2";
    connection.execute(sql, params![link.as_bytes(), no]).unwrap();
}

#[test]
fn rm_ends_and_erases_what_neither_runs_nor_waits() {
    let home = Home::new();
    let (idle, ended, other) = (idle(&home), idle(&home), parked(&home));
    home.json(&["close", &ended]);
    let removed = home.jsons(&["rm", &idle, &ended]);
    let ids: Vec<_> = removed.iter().map(|object| &object["removed"]["sessionId"]).collect();
    assert_eq!(ids, [&json!(idle), &json!(ended)]);
    for object in &removed {
        assert!(object["removed"]["entries"].as_u64().unwrap() > 3, "{object}");
        assert_eq!(object["removed"]["said"], 1, "{object}");
    }
    // They are gone for everybody who asks.
    let left = home.jsons(&["ls", "--all"]);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["sessionId"], other.as_str());
    for command in [&["show", &idle] as &[&str], &["rm", &idle], &["rm", "--force", &ended]] {
        let told = home.told(command);
        assert_eq!(told.code, 4, "{command:?}: {told:?}");
    }
}

#[test]
fn rm_refuses_what_still_waits_and_removes_none_of_those_named_with_it() {
    let home = Home::new();
    let (idle, waits) = (idle(&home), parked(&home));
    let told = home.told(&["rm", &idle, &waits]);
    assert_eq!((told.code, told.data.as_str()), (3, ""), "{told:?}");
    assert!(told.talk.contains("is suspended, and may still go on"), "{told:?}");
    let end = &waits[waits.len() - 12..];
    assert!(told.talk.contains(&format!("`adjourn rm --force {end}`")), "{told:?}");
    let mistyped = home.told(&["rm", &idle, "nobody"]);
    assert_eq!((mistyped.code, mistyped.data.as_str()), (4, ""), "{mistyped:?}");
    assert_eq!(home.jsons(&["ls"]).len(), 2);

    assert_eq!(home.json(&["rm", "--force", &waits])["removed"]["sessionId"], waits.as_str());
    assert_eq!(home.jsons(&["ls"]).len(), 1);
    // What it waited for comes in vain, and nobody minds.
    home.json(&["event", "go"]);
    let text = home.told(&["rm", &idle]);
    assert!(text.data.starts_with(&format!("removed {idle}: ")), "{text:?}");
    let told = home.told(&["ls"]);
    assert_eq!((told.code, told.data.as_str()), (0, ""), "{told:?}");
}

#[test]
fn prune_drops_ended_sessions_when_it_is_asked_to() {
    let home = Home::new();
    let (idle, ended) = (idle(&home), idle(&home));
    home.json(&["close", &ended]);
    assert_eq!(home.json(&["prune"]), json!({"events": 0, "answers": 0}));
    let none = json!({"events": 0, "answers": 0, "sessions": 0});
    assert_eq!(home.json(&["prune", "--ended"]), none);
    assert_eq!(home.json(&["prune", "--ended", "--older-than", "30d"]), none);
    let told = home.told(&["prune", "--ended", "--older-than", "0s"]);
    assert_eq!(told.data, "dropped 0 events, 0 answers and 1 ended sessions\n", "{told:?}");
    assert_eq!(home.jsons(&["ls", "--all"]).len(), 1);
    assert_eq!(home.json(&["show", &idle])["state"], "idle");
    let told = home.told(&["prune", "--older-than", "30d"]);
    assert_eq!(told.code, 2, "{told:?}");
}

#[test]
fn a_session_that_cannot_be_read_is_named_and_can_be_removed() {
    let home = Home::new();
    let (broken, whole) = (parked(&home), parked(&home));
    make_newer(&home, &broken);
    let told = home.told(&["ls", "--json"]);
    assert_eq!(told.code, 5, "{told:?}");
    let rows: Vec<serde_json::Value> =
        told.data.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&rows[0]["sessionId"], &rows[0]["state"]), (&json!(broken), &json!("unreadable")));
    let why = rows[0]["error"].as_str().unwrap();
    assert!(why.contains("newer than this program"), "{why}");
    assert_eq!((&rows[1]["sessionId"], &rows[1]["state"]), (&json!(whole), &json!("suspended")));
    assert_eq!(rows[2]["error"]["reason"], "STORE");

    let told = home.told(&["ls"]);
    assert_eq!((told.code, told.data.lines().count()), (5, 2), "{told:?}");
    let row = told.data.lines().next().unwrap();
    assert!(row.contains("unreadable") && row.contains("newer than this program"), "{row}");
    assert!(told.talk.contains(&format!("error: session {broken} cannot be read\n")), "{told:?}");
    let told = home.told(&["show", &broken]);
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.talk.contains("cannot be read: it has an entry of the kind"), "{told:?}");
    assert!(told.talk.contains("use that one"), "{told:?}");

    // What comes for it keeps nobody from what is theirs; the host's log names it.
    let mut serving = home.serve();
    let told = home.json(&["event", "go"]);
    assert_eq!((&told["woke"], &told["waiting"]), (&json!(1), &json!(1)), "{told}");
    assert_eq!(home.json(&["status"])["unreadable"]["count"], 1);
    let told = home.told(&["event", "go"]);
    assert!(told.data.ends_with(": 1 session waits for it and cannot be read\n"), "{told:?}");
    let line = serving.line();
    assert!(line.contains(&format!("session {broken} cannot be read: ")), "{line}");
    drop(serving);

    let told = home.told(&["rm", &broken]);
    assert_eq!((told.code, told.data.as_str()), (5, ""), "{told:?}");
    assert!(told.talk.contains("`adjourn rm --force "), "{told:?}");
    assert_eq!(home.json(&["rm", "--force", &broken])["removed"]["sessionId"], broken.as_str());
    let left = home.jsons(&["ls", "--all"]);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["sessionId"], whole.as_str());
}

#[test]
fn an_editor_that_opted_in_and_the_log_are_told_what_a_list_leaves_out() {
    let home = Home::new();
    let (broken, whole) = (parked(&home), parked(&home));
    make_newer(&home, &broken);
    let script = home.file("waits.json", WAITS);
    let line = |id: u64, method: &str, params: serde_json::Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
    };
    for opted_in in [true, false] {
        let meta = if opted_in { json!({ "adjourn/suspend": {} }) } else { json!({}) };
        let greeting = json!({ "protocolVersion": 1, "clientCapabilities": { "_meta": meta } });
        let lines = [
            line(1, "initialize", greeting),
            line(2, "session/list", json!({})),
            line(3, "session/list", json!({ "cwd": "/elsewhere" })),
        ];
        let told = home.told_with(&(lines.join("\n") + "\n"), &["acp", "--script", &script]);
        assert_eq!(told.code, 0, "{told:?}");
        let answers = told.data.lines().map(|line| serde_json::from_str(line).unwrap());
        let answers: Vec<serde_json::Value> = answers.collect();
        let list = &answers[1]["result"];
        assert_eq!(list["sessions"].as_array().unwrap().len(), 1, "{list}");
        assert_eq!(list["sessions"][0]["sessionId"], whole.as_str());
        let left_out = &list["_meta"]["adjourn/suspend"]["unreadable"];
        match opted_in {
            true => {
                assert_eq!(left_out[0]["sessionId"], broken.as_str(), "{list}");
                let why = left_out[0]["error"].as_str().unwrap();
                assert!(why.contains("newer than this program"), "{why}");
            }
            false => assert!(list.get("_meta").is_none(), "{list}"),
        }
        let named = format!("session {broken} cannot be read: ");
        let left_out = told.talk.lines().filter(|line| line.contains("session/list leaves it out"));
        let left_out: Vec<_> = left_out.collect();
        assert!(left_out.len() == 1 && left_out[0].contains(&named), "{told:?}");
        assert!(left_out[0].contains(&format!("session={broken} host=host-")), "{told:?}");
    }
}

#[test]
fn an_event_for_a_session_that_cannot_be_read_is_kept_and_said_to_be() {
    let home = Home::new();
    // The last commit stays as it was.
    let (broken, _) = (parked(&home), parked(&home));
    make_newer(&home, &broken);
    let serving = home.serve();
    let told = home.told(&["event", "else", "--session", &broken]);
    assert_eq!(told.code, 0, "it was taken: {told:?}");
    assert!(told.data.contains("waits for it and cannot be read"), "{told:?}");
    assert_eq!(serving.terminate(), 0);
}
