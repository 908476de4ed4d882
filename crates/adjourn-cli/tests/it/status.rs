//! How a store and its hosts are, in a few lines.

use std::time::{Duration, SystemTime};

use adjourn::doorbell::Hosts;
use adjourn_core::id::SessionId;
use expect_test::expect;

use crate::home::Home;
use crate::transcript::Transcript;

const WAITS: &str = r#"{"steps": [{"await": {"reason": "x", "conditions": {"onEvent": "go"}}},
                                  {"tool": {"name": "slow", "ms": 60000}}]}"#;
const LATE: &str = r#"{"steps": [
  {"await": {"reason": "x", "conditions": {"timeout": {"durationMinutes": 0.03}}}}]}"#;

#[test]
fn the_status_of_a_store_counts_what_is_there_and_what_waits() {
    let home = Home::new();
    home.parked(WAITS);
    let late = home.parked(LATE);
    let ended = home.parked(r#"{"steps": [{"await": {"reason": "x"}}]}"#);
    home.json(&["close", &ended]);
    let start = std::time::Instant::now();
    while home.json(&["status"])["overdue"]["count"] != 1 {
        assert!(start.elapsed() < Duration::from_secs(20), "its time never came");
    }
    let mut transcript = Transcript::new(&home);
    transcript.type_in(&["status"]);
    expect![[r#"
        $ adjourn status
        suspended          2  the oldest for 0s
        ended              1  the oldest for 0s
        overdue            1  the oldest was due 0s ago
        undelivered        0  events
        hosts              0
        2> no host is running to go on with what waits; start `adjourn serve`
    "#]]
    .assert_eq(&transcript.text());
    let status = home.json(&["status"]);
    assert_eq!(status["sessions"]["suspended"]["count"], 2, "{status}");
    assert_eq!(status["sessions"]["running"]["count"], 0, "{status}");
    assert_eq!(status["overdue"]["since"], home.json(&["show", &late])["dueAt"], "{status}");
    assert_eq!(status["events"]["undelivered"], 0, "{status}");

    let serving = home.serve();
    home.json(&["event", "go"]);
    home.until_in_flight("slow");
    home.until(&late, "state", "idle");
    let told = home.told(&["status"]);
    assert_eq!((told.code, told.talk.as_str()), (0, ""), "{told:?}");
    assert!(told.data.contains("\nhosts              1  run 1 of 64\n"), "{told:?}");
    let status = home.json(&["status"]);
    assert_eq!(status["hosts"]["alive"], 1, "{status}");
    assert_eq!(status["overdue"]["count"], 0, "{status}");
    serving.kill();
}

#[test]
fn hosts_are_listed_with_what_they_run_and_their_last_sign_of_life() {
    let home = Home::new();
    home.json(&["event", "first"]);
    let told = home.told(&["hosts"]);
    assert_eq!((told.code, told.data.as_str()), (0, ""), "{told:?}");
    assert_eq!(told.talk, "no host is running; `adjourn serve` is one\n");

    let id = home.parked(WAITS);
    let serving = home.serve_with(&["--max-running", "7"]).0;
    home.json(&["event", "go"]);
    home.until_in_flight("slow");
    let host = home.json(&["hosts"]);
    assert_eq!((&host["pid"], &host["state"]), (&serving.pid().into(), &"alive".into()));
    assert_eq!((&host["running"], &host["room"]), (&1.into(), &7.into()), "{host}");
    // The time of a file may lag behind the clock by a few milliseconds.
    let at = |field: &str| host[field].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let before = at("since").duration_since(at("lastSign"));
    assert!(before < jiff::SignedDuration::from_millis(100), "{host}");
    assert!(home.told(&["hosts"]).data.contains("  1 of 7 "), "{:?}", home.told(&["hosts"]));
    assert_eq!(home.json(&["show", &id])["host"]["pid"], serving.pid(), "who runs it is shown");

    // One that is stopped is named, where its sessions are listed, too.
    serving.stop();
    let told = home.told(&["hosts"]);
    assert!(told.data.ends_with("  stopped\n"), "{told:?}");
    assert!(told.talk.contains(&format!("`kill -CONT {}`", serving.pid())), "{told:?}");
    let stopped = format!("host {} is stopped; `adjourn hosts` says more", serving.pid());
    assert_eq!(home.json(&["show", &id])["notice"], stopped.as_str());
    assert_eq!(home.json(&["status"])["hosts"]["silent"], 1);
    serving.go_on();
    serving.kill();
    let died = home.json(&["hosts"]);
    assert_eq!((&died["state"], &died["running"]), (&"dead".into(), &1.into()), "{died}");
}

#[test]
fn a_host_gives_signs_of_life_without_a_commit_and_one_that_gives_none_is_named() {
    let home = Home::new();
    let serving = home.serve();
    let directory = home.path(".local/share/adjourn/store.db.hosts");
    let id = home.json(&["hosts"])["hostId"].as_str().unwrap().to_owned();
    let lock = std::fs::File::options().write(true).open(directory.join(format!("{id}.lock")));
    let lock = lock.unwrap();
    let signed = || lock.metadata().unwrap().modified().unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(60);
    lock.set_modified(long_ago).unwrap();
    let host = home.json(&["hosts"]);
    assert_eq!(host["state"], "silent", "{host}");
    let told = home.told(&["hosts"]);
    assert!(told.data.contains("  1m ") && told.data.ends_with("  silent\n"), "{told:?}");
    assert!(told.talk.contains("gives no sign of life"), "{told:?}");
    let commits = || {
        let store = rusqlite::Connection::open(home.path(".local/share/adjourn/store.db")).unwrap();
        store.query_row("SELECT count(*) FROM commits", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let before = commits();
    let start = std::time::Instant::now();
    while signed() <= long_ago + Duration::from_secs(1) {
        assert!(start.elapsed() < Duration::from_secs(20), "it gives no sign");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(home.json(&["hosts"])["state"], "alive");
    assert_eq!(commits(), before, "nothing is committed for a sign");
    assert_eq!(serving.terminate(), 0);
}

/// No agent of the command line keeps anything, so the list is written as a host does.
#[test]
fn the_host_that_keeps_an_agent_warm_is_named_as_long_as_it_lives() {
    let home = Home::new();
    let id = home.parked(WAITS);
    let serving = home.serve();
    let host = home.json(&["hosts"]);
    assert_eq!(host["warm"], 0, "{host}");
    assert_eq!(home.json(&["show", &id]).get("keptWarmBy"), None);
    let session: SessionId = id.parse().unwrap();
    let list = format!("{}.warm", host["hostId"].as_str().unwrap());
    let hosts = Hosts::beside(&home.path(".local/share/adjourn/store.db"));
    std::fs::write(hosts.directory().join(list), session.uuid().as_bytes()).unwrap();
    assert_eq!(home.json(&["hosts"])["warm"], 1);
    assert!(home.told(&["hosts"]).data.ends_with("alive; keeps 1 warm\n"));
    let shown = home.json(&["show", &id]);
    assert_eq!(shown["keptWarmBy"]["pid"], serving.pid(), "{shown}");
    let told = home.told(&["show", &id]);
    assert!(
        told.data.contains(&format!("kept warm by         host {}", serving.pid())),
        "{told:?}"
    );
    serving.kill();
    assert_eq!(home.json(&["show", &id]).get("keptWarmBy"), None);
}
