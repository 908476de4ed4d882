//! Events and deadlines, whenever they come: they wake, and they wake once.

use crate::home::Home;

/// Works a little, then waits for an event, and is idle when it has come.
const SCRIPT: &str = r#"{"steps": [
  {"tool": {"name": "work", "ms": 20}},
  {"await": {"reason": "ci", "conditions": {"onEvent": "ci.passed:main"}}},
  {"say": "woken"}]}"#;

fn resumed(home: &Home, id: &str) -> usize {
    home.told(&["log", id]).data.matches(" resumed ").count()
}

#[test]
fn an_event_wakes_once_whether_it_comes_before_while_or_after_it_parks() {
    let home = Home::new();
    let id = home.parked(SCRIPT);
    let serving = home.serve();
    assert_eq!(home.json(&["event", "ci.passed:main"])["seq"], 1);
    home.until(&id, "state", "idle");
    // Each turn races with its event: it may come before the call, in it, while the session
    // parks, or after that.
    for round in 1..=12_u64 {
        assert_eq!(home.told(&["prompt", &id, "again", "--detach"]).code, 0);
        assert_eq!(home.json(&["event", "ci.passed:other"])["fresh"], true);
        std::thread::sleep(std::time::Duration::from_millis(round * 4));
        assert_eq!(home.json(&["event", "ci.passed:main"])["fresh"], true);
        home.until(&id, "state", "idle");
        assert_eq!(resumed(&home, &id), usize::try_from(round).unwrap() + 1);
    }
    // One from before the turn is not what the turn waits for.
    assert_eq!(home.told(&["prompt", &id, "again", "--detach"]).code, 0);
    home.until(&id, "state", "suspended");
    assert_eq!(home.json(&["event", "ci.passed:other"])["fresh"], true);
    // Another session shows that the host has dealt with it.
    let other = home.parked(SCRIPT);
    home.json(&["event", "a", "--session", &other]);
    home.until(&other, "state", "idle");
    assert_eq!(home.json(&["show", &id])["state"], "suspended");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn a_deadline_that_passed_while_nothing_ran_acts_once_at_the_start() {
    let home = Home::new();
    let id = home.parked(
        r#"{"steps": [
          {"await": {"reason": "x", "conditions": {"timeout": {"durationMinutes": 0.005}}}},
          {"say": "woken"}]}"#,
    );
    let start = std::time::Instant::now();
    // Since when it is due is said: until then a host was missing.
    while !home.told(&["show", &id]).data.contains("wakes now (due 1s ago)") {
        assert!(start.elapsed().as_secs() < 20, "its time never came");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    for _ in 0..2 {
        let serving = home.serve();
        let idle = home.until(&id, "state", "idle");
        assert_eq!(idle["cause"], "timeout");
        assert_eq!(serving.terminate(), 0);
    }
    assert_eq!(resumed(&home, &id), 1);
}

#[test]
fn an_event_says_whom_it_woke() {
    let home = Home::new();
    let told = |event: &[&str]| {
        let told = home.told(&[&["event"], event].concat());
        assert_eq!(told.code, 0, "{told:?}");
        (told.data, told.talk)
    };
    assert_eq!(told(&["ci.passed:main"]), ("event 1: nobody waits for it\n".into(), "".into()));
    let ids = [home.parked(SCRIPT), home.parked(SCRIPT)];
    let held = home.parked(SCRIPT);
    home.json(&["suspend", &held, "--reason", "review"]);
    assert_eq!(told(&["ci.passed:other"]).0, "event 2: nobody waits for it\n");
    // No host is there: it is said who waits for it, and what is missing.
    assert_eq!(
        told(&["ci.passed:main", "--id", "e3"]),
        (
            "event 3: 3 sessions wait for it\n".into(),
            "it is delivered when a host runs: `adjourn serve`\n".into()
        )
    );
    for id in &ids {
        assert_eq!(home.json(&["show", id])["state"], "suspended");
    }
    assert_eq!(
        told(&["ci.passed:main", "--id", "e3"]).0,
        "event 3: known already; 3 sessions wait for it\n"
    );
    // Whom the next one would wake, the first one does.
    let object = home.json(&["event", "ci.passed:main"]);
    assert_eq!((&object["seq"], &object["fresh"]), (&4.into(), &true.into()));
    assert_eq!((&object["woke"], &object["waiting"]), (&0.into(), &0.into()), "{object}");

    let serving = home.serve();
    for id in &ids {
        assert_eq!(home.until(id, "state", "idle")["cause"], "condition_fired");
        assert_eq!(resumed(&home, id), 1);
    }
    assert_eq!(home.json(&["show", &held])["heldWait"]["fired"]["by"], "event");
    // Where one is there, it is said whom it woke.
    let waits = [home.parked(SCRIPT), home.parked(SCRIPT)];
    let held = home.parked(SCRIPT);
    home.json(&["suspend", &held, "--reason", "review"]);
    let object = home.json(&["event", "ci.passed:main"]);
    assert_eq!((&object["woke"], &object["waiting"]), (&2.into(), &1.into()), "{object}");
    assert_eq!(object["notice"], serde_json::Value::Null, "{object}");
    for id in &waits {
        home.until(id, "state", "idle");
        assert_eq!(resumed(&home, id), 1);
    }
    let both = home.parked(SCRIPT);
    let woke = "event 6: woke 1 session\n";
    assert_eq!(told(&["ci.passed:main"]), (woke.into(), "".into()));
    home.until(&both, "state", "idle");
    let last = home.parked(SCRIPT);
    assert_eq!(told(&["a", "--session", &last]), ("event 7: woke 1 session\n".into(), "".into()));
    home.until(&last, "state", "idle");
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn an_event_for_nobody_is_refused() {
    let home = Home::new();
    let id = home.parked(SCRIPT);
    let unknown = "sess-01890000-0000-7000-8000-000000000000";
    let told = home.told(&["event", "a", "--session", unknown]);
    assert_eq!((told.code, told.data.as_str()), (4, ""), "{told:?}");
    let told = home.told(&["event", "a", "--session", &id, "--tenant", "another"]);
    assert_eq!((told.code, told.data.as_str()), (4, ""), "{told:?}");
    let expected = format!(
        "error: session {id} is of tenant \"local\", the event of \"another\"\n\
         hint: add --tenant local\n"
    );
    assert_eq!(told.talk, expected);
    let told = home.told(&["event", ""]);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.talk.starts_with("error: NAME: must not be empty"), "{}", told.talk);
    // None of them was stored.
    assert_eq!(home.json(&["event", "a", "--session", &id])["seq"], 1);
}

#[test]
fn whose_a_session_is_is_shown_if_it_is_not_the_usual_one() {
    let home = Home::new();
    let usual = home.parked(SCRIPT);
    assert_eq!(home.json(&["show", &usual])["tenant"], serde_json::Value::Null);
    assert!(!home.told(&["show", &usual]).data.contains("tenant"));
    let script = home.file("script.json", SCRIPT);
    let mut new = home.command(&["new", "--script", &script]);
    new.env("ADJOURN_TENANT", "acme");
    let id = home.ended(new).data.trim().to_owned();
    assert_eq!(home.json(&["show", &id])["tenant"], "acme");
    assert!(home.told(&["show", &id]).data.contains("\n  tenant               acme\n"));
    let told = home.told(&["event", "a", "--session", &id]);
    assert!(told.talk.contains("is of tenant \"acme\""), "{}", told.talk);
    assert_eq!(home.told(&["event", "a", "--session", &id, "--tenant", "acme"]).code, 0);
}

#[test]
fn a_name_that_is_hardly_meant_is_remarked_upon() {
    let home = Home::new();
    for (name, remark) in
        [("ci.*", "has a wildcard"), ("ci passed", "has a space"), ("ci..a", "has an empty part")]
    {
        let told = home.told(&["event", name]);
        assert_eq!(told.code, 0, "{told:?}");
        assert!(told.talk.contains(remark), "{}", told.talk);
    }
    let told = home.told(&["event", "ci.passed:src/*.rs"]);
    assert!(!told.talk.contains("the name"), "{}", told.talk);
}

#[test]
fn what_wakes_is_said_by_its_trigger_and_its_time() {
    let home = Home::new();
    for (conditions, expected) in [
        (
            r#"{"trigger": {"exact": {"name": "ci.passed"}}}"#,
            r#"; wakes on {"exact":{"name":"ci.passed"}}"#,
        ),
        (r#"{"trigger": {"at": "2999-01-01T00:00:00Z"}}"#, "; wakes at 2999-01-01T00:00:00.000Z"),
        (
            r#"{"trigger": {"any": [{"prefix": {"name": "ci."}}, {"at": "2999-01-01T00:00:00Z"}]}}"#,
            r#"; wakes on {"prefix":{"name":"ci."}} or at 2999-01-01T00:00:00.000Z"#,
        ),
        (
            r#"{"onEvent": "a", "timeout": {"durationMinutes": 30, "onTimeout": "fail"}}"#,
            "; wakes on a or fails in ",
        ),
        (
            r#"{"timeout": {"durationMinutes": 30, "onTimeout": "fail"}}"#,
            "; wakes on a resume or fails in ",
        ),
    ] {
        let script =
            format!(r#"{{"steps": [{{"await": {{"reason": "x", "conditions": {conditions}}}}}]}}"#);
        let id = home.parked(&script);
        let shown = home.told(&["show", &id]).data;
        let first = shown.lines().next().unwrap();
        assert!(first.contains(expected), "{first}");
        assert!(expected.ends_with("in ") || first.ends_with(expected), "{first}");
    }
}

#[test]
fn it_is_said_why_an_event_does_nothing_to_the_session_that_it_is_for() {
    let home = Home::new();
    let script = home.file("script.json", r#"{"steps": [{"say": "hello"}]}"#);
    let id = home.told(&["new", "--script", &script]).data.trim().to_owned();
    let sent = |home: &Home| home.told(&["event", "x", "--session", &id]).data;
    assert!(sent(&home).ends_with(": nobody waits for it\n"));
    assert_eq!(home.told(&["suspend", &id, "--reason", "lunch"]).code, 0);
    let paused = format!(": {id} is paused by ann: lunch; an event does not lift that\n");
    assert!(sent(&home).ends_with(&paused), "{}", sent(&home));
    assert_eq!(home.told(&["close", &id]).code, 0);
    assert!(sent(&home).ends_with(&format!(": {id} has ended\n")), "{}", sent(&home));
}
