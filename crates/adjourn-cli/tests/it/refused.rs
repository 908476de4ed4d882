//! Every refusal of the lifecycle that can be met by typing, and that it changes nothing.

use expect_test::expect;

use crate::home::Home;
use crate::transcript::Transcript;

const WAITS: &str = r#"{"steps": [{"await": {"reason": "ci", "conditions": {"onEvent": "ci.*"}}},
                                  {"ask": {"question": "which?"}}]}"#;
const SLOW: &str = r#"{"steps": [{"tool": {"name": "slow", "ms": 60000}}]}"#;

/// Types commands that must all be refused, for people and for programs.
fn refused(home: &Home, id: &str, commands: &[&[&str]]) -> String {
    let mut transcript = Transcript::new(home);
    let before = home.json(&["show", id]);
    for arguments in commands {
        for json in [&[] as &[_], &["--json"]] {
            let told = transcript.type_in(&[arguments, json].concat());
            assert!(told.code == 2 || told.code == 3, "{arguments:?}: {told:?}");
            assert_eq!(home.json(&["show", id]), before, "{arguments:?} changed something");
        }
    }
    transcript.text()
}

#[test]
fn a_session_that_waits() {
    let home = Home::new();
    let id = home.parked(WAITS);
    let handle = home.json(&["show", &id])["handle"].as_str().unwrap().to_owned();
    // Somebody suspends it: a hold, with a handle of its own.
    home.json(&["suspend", &id, "--reason", "review", "--on-event", "review.done"]);
    let text = refused(
        &home,
        &id,
        &[
            &["suspend", &id, "--on-event", "other"],
            &["resume", &id, "--handle", &handle],
            &["prompt", &id, "hello"],
            &["resume", &id, "--input", "5"],
        ],
    );
    expect![[r#"
        $ adjourn suspend sess:0 --on-event other
        2> error: suspension suspend:0 has other conditions
        2> hint: suspend without conditions to join it, or resume it first
        ? 3
        $ adjourn suspend sess:0 --on-event other --json
        {"error":{"reason":"CONDITIONS_DIFFER","message":"suspension suspend:0 has other conditions","handle":"suspend:0","current":{"onEvent":"review.done"},"hint":"suspend without conditions to join it, or resume it first"}}
        ? 3
        $ adjourn resume sess:0 --handle suspend:1
        2> error: held by ann: review
        2> hint: lift the hold with: adjourn resume …sess:0
        ? 3
        $ adjourn resume sess:0 --handle suspend:1 --json
        {"error":{"reason":"HELD","message":"held by ann: review","handle":"suspend:0","by":"cli:ann","why":"review","hint":"lift the hold with: adjourn resume …sess:0"}}
        ? 3
        $ adjourn prompt sess:0 hello
        2> error: held by ann: review
        2> hint: lift the hold with: adjourn resume …sess:0
        ? 3
        $ adjourn prompt sess:0 hello --json
        {"error":{"reason":"HELD","message":"held by ann: review","handle":"suspend:0","by":"cli:ann","why":"review","hint":"lift the hold with: adjourn resume …sess:0"}}
        ? 3
        $ adjourn resume sess:0 --input 5
        2> error: --input: a hold is lifted without input
        ? 2
        $ adjourn resume sess:0 --input 5 --json
        {"error":{"reason":"USAGE","message":"--input: a hold is lifted without input","path":"input"}}
        ? 2
    "#]].assert_eq(&text);
}

#[test]
fn a_session_that_asks() {
    let home = Home::new();
    let id = home.parked(WAITS);
    let handle = home.json(&["show", &id])["handle"].as_str().unwrap().to_owned();
    let told = home.told(&["resume", &id, "--idempotency-key", "k1"]);
    assert!(told.data.contains(": which?; wakes on an answer"), "{told:?}");
    // The same key and body again is the same answer again, and no second resume.
    assert_eq!(home.told(&["resume", &id, "--idempotency-key", "k1"]).code, 0);
    let text = refused(
        &home,
        &id,
        &[
            &["suspend", &id],
            &["resume", &id],
            &["resume", &id, "--input", "\"  \""],
            &["prompt", &id, " "],
            &["resume", &id, "--handle", &handle],
            &["resume", &id, "--handle", "suspend-01a1df44-c97b-7076-bba7-8d66d49eebf9"],
            &["resume", &id, "--idempotency-key", "k1", "--input", "raw"],
        ],
    );
    expect![[r#"
        $ adjourn suspend sess:0
        2> error: a session that is waiting for an answer cannot be suspended
        2> hint: `adjourn show` says how it is answered, `adjourn cancel` ends its run
        ? 3
        $ adjourn suspend sess:0 --json
        {"error":{"reason":"TASK_NOT_PAUSABLE","message":"a session that is waiting for an answer cannot be suspended","hint":"`adjourn show` says how it is answered, `adjourn cancel` ends its run"}}
        ? 3
        $ adjourn resume sess:0
        2> error: a question is answered with a text that is not blank
        2> hint: it asks: which?; answer with `adjourn prompt sess:0 ANSWER`
        ? 3
        $ adjourn resume sess:0 --json
        {"error":{"reason":"EMPTY_REPLY","message":"a question is answered with a text that is not blank","hint":"it asks: which?; answer with `adjourn prompt sess:0 ANSWER`"}}
        ? 3
        $ adjourn resume sess:0 --input '"  "'
        2> error: a question is answered with a text that is not blank
        2> hint: it asks: which?; answer with `adjourn prompt sess:0 ANSWER`
        ? 3
        $ adjourn resume sess:0 --input '"  "' --json
        {"error":{"reason":"EMPTY_REPLY","message":"a question is answered with a text that is not blank","hint":"it asks: which?; answer with `adjourn prompt sess:0 ANSWER`"}}
        ? 3
        $ adjourn prompt sess:0 ' '
        2> error: a question is answered with a text that is not blank
        2> hint: it asks: which?; answer with `adjourn prompt sess:0 ANSWER`
        ? 3
        $ adjourn prompt sess:0 ' ' --json
        {"error":{"reason":"EMPTY_REPLY","message":"a question is answered with a text that is not blank","hint":"it asks: which?; answer with `adjourn prompt sess:0 ANSWER`"}}
        ? 3
        $ adjourn resume sess:0 --handle suspend:0
        2> error: suspension suspend:0 was resumed at TIME (explicit_resume) by cli:ann
        2> hint: `adjourn show` has the handle that is open, if there is one
        ? 3
        $ adjourn resume sess:0 --handle suspend:0 --json
        {"error":{"reason":"ALREADY_RESUMED","message":"suspension suspend:0 was resumed at TIME (explicit_resume) by cli:ann","handle":"suspend:0","at":"TIME","cause":"explicit_resume","by":"cli:ann","hint":"`adjourn show` has the handle that is open, if there is one"}}
        ? 3
        $ adjourn resume sess:0 --handle suspend:1
        2> error: handle suspend:1 does not name the suspension of this session
        2> hint: `adjourn show` has the handle that is open, if there is one
        ? 3
        $ adjourn resume sess:0 --handle suspend:1 --json
        {"error":{"reason":"SUSPENSION_HANDLE_MISMATCH","message":"handle suspend:1 does not name the suspension of this session","handle":"suspend:1","hint":"`adjourn show` has the handle that is open, if there is one"}}
        ? 3
        $ adjourn resume sess:0 --idempotency-key k1 --input raw
        2> error: idempotency key "k1" was used for something else
        2> hint: a key stands for one request; take another for this one
        ? 3
        $ adjourn resume sess:0 --idempotency-key k1 --input raw --json
        {"error":{"reason":"IDEMPOTENCY_KEY_REUSED","message":"idempotency key \"k1\" was used for something else","hint":"a key stands for one request; take another for this one"}}
        ? 3
    "#]].assert_eq(&text);
}

#[test]
fn a_session_that_runs() {
    let home = Home::new();
    let script = home.file("slow.json", SLOW);
    let serving = home.serve();
    let mut running = home.command(&["run", "--script", &script]).spawn().unwrap();
    let id = home.until_in_flight("slow");
    let text = refused(&home, &id, &[&["prompt", &id, "more"], &["resume", &id]]);
    expect![[r#"
        $ adjourn prompt sess:0 more
        2> error: the session is busy (running)
        2> hint: wait until it is idle, or suspend it
        ? 3
        $ adjourn prompt sess:0 more --json
        {"error":{"reason":"TASK_BUSY","message":"the session is busy (running)","hint":"wait until it is idle, or suspend it"}}
        ? 3
        $ adjourn resume sess:0
        2> error: the session is running, not suspended
        2> hint: `adjourn ls` shows what is parked
        ? 3
        $ adjourn resume sess:0 --json
        {"error":{"reason":"TASK_NOT_PAUSED","message":"the session is running, not suspended","hint":"`adjourn ls` shows what is parked"}}
        ? 3
    "#]].assert_eq(&text);
    running.kill().unwrap();
    running.wait().unwrap();
    serving.kill();
}

#[test]
fn a_session_that_is_ready_and_one_that_is_canceling() {
    let home = Home::new();
    let id = home.parked(WAITS);
    home.json(&["resume", &id, "--detach"]);
    let mut text = refused(&home, &id, &[&["resume", &id, "--detach"], &["prompt", &id, "more"]]);
    home.json(&["cancel", &id]);
    home.json(&["close", &id]);

    let script = home.file("slow.json", SLOW);
    let serving = home.serve();
    let slow = home.told(&["new", "--script", &script]).data.trim().to_owned();
    home.json(&["prompt", &slow, "go", "--detach"]);
    home.until_in_flight("slow");
    let mut canceling = home.command(&["cancel", &slow]).spawn().unwrap();
    home.until(&slow, "phase", "canceling");
    text += "--- canceling\n";
    let commands: &[&[&str]] = &[&["suspend", &slow], &["prompt", &slow, "x"], &["resume", &slow]];
    text += &refused(&home, &slow, commands);
    serving.kill();
    canceling.kill().unwrap();
    canceling.wait().unwrap();
    expect![[r#"
        $ adjourn resume sess:0 --detach
        2> error: the session is ready, not suspended
        2> hint: `adjourn resume` goes on with it here, `adjourn serve` as a host
        ? 3
        $ adjourn resume sess:0 --detach --json
        {"error":{"reason":"TASK_NOT_PAUSED","message":"the session is ready, not suspended","hint":"`adjourn resume` goes on with it here, `adjourn serve` as a host"}}
        ? 3
        $ adjourn prompt sess:0 more
        2> error: the session is busy (ready)
        2> hint: `adjourn resume` goes on with it here, `adjourn serve` as a host
        ? 3
        $ adjourn prompt sess:0 more --json
        {"error":{"reason":"TASK_BUSY","message":"the session is busy (ready)","hint":"`adjourn resume` goes on with it here, `adjourn serve` as a host"}}
        ? 3
        --- canceling
        $ adjourn suspend sess:0
        2> error: a session that is canceling cannot be suspended
        2> hint: wait until it is idle
        ? 3
        $ adjourn suspend sess:0 --json
        {"error":{"reason":"TASK_NOT_PAUSABLE","message":"a session that is canceling cannot be suspended","hint":"wait until it is idle"}}
        ? 3
        $ adjourn prompt sess:0 x
        2> error: the session is busy (canceling)
        2> hint: wait until it is idle
        ? 3
        $ adjourn prompt sess:0 x --json
        {"error":{"reason":"TASK_BUSY","message":"the session is busy (canceling)","hint":"wait until it is idle"}}
        ? 3
        $ adjourn resume sess:0
        2> error: the session is busy (canceling)
        2> hint: wait until it is idle
        ? 3
        $ adjourn resume sess:0 --json
        {"error":{"reason":"TASK_BUSY","message":"the session is busy (canceling)","hint":"wait until it is idle"}}
        ? 3
    "#]].assert_eq(&text);
}

#[test]
fn a_session_that_is_idle_and_one_that_has_ended() {
    let home = Home::new();
    let id = home.parked(WAITS);
    home.json(&["cancel", &id]);
    let mut text = refused(&home, &id, &[&["cancel", &id], &["resume", &id]]);
    home.json(&["close", &id]);
    text += "--- ended\n";
    let commands: &[&[&str]] =
        &[&["prompt", &id, "x"], &["suspend", &id], &["resume", &id], &["cancel", &id]];
    text += &refused(&home, &id, commands);
    expect![[r#"
        $ adjourn cancel sess:0
        2> error: the session is idle; there is nothing to cancel
        2> hint: `adjourn close` ends the session itself
        ? 3
        $ adjourn cancel sess:0 --json
        {"error":{"reason":"NOTHING_TO_CANCEL","message":"the session is idle; there is nothing to cancel","hint":"`adjourn close` ends the session itself"}}
        ? 3
        $ adjourn resume sess:0
        2> error: the session is idle, not suspended
        2> hint: `adjourn ls` shows what is parked
        ? 3
        $ adjourn resume sess:0 --json
        {"error":{"reason":"TASK_NOT_PAUSED","message":"the session is idle, not suspended","hint":"`adjourn ls` shows what is parked"}}
        ? 3
        --- ended
        $ adjourn prompt sess:0 x
        2> error: the session ended at TIME
        2> hint: `adjourn run` makes another
        ? 3
        $ adjourn prompt sess:0 x --json
        {"error":{"reason":"ENDED","message":"the session ended at TIME","at":"TIME","hint":"`adjourn run` makes another"}}
        ? 3
        $ adjourn suspend sess:0
        2> error: the session ended at TIME
        2> hint: `adjourn run` makes another
        ? 3
        $ adjourn suspend sess:0 --json
        {"error":{"reason":"ENDED","message":"the session ended at TIME","at":"TIME","hint":"`adjourn run` makes another"}}
        ? 3
        $ adjourn resume sess:0
        2> error: the session ended at TIME
        2> hint: `adjourn run` makes another
        ? 3
        $ adjourn resume sess:0 --json
        {"error":{"reason":"ENDED","message":"the session ended at TIME","at":"TIME","hint":"`adjourn run` makes another"}}
        ? 3
        $ adjourn cancel sess:0
        2> error: the session ended at TIME
        2> hint: `adjourn run` makes another
        ? 3
        $ adjourn cancel sess:0 --json
        {"error":{"reason":"ENDED","message":"the session ended at TIME","at":"TIME","hint":"`adjourn run` makes another"}}
        ? 3
    "#]].assert_eq(&text);
}
