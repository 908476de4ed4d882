//! Sessions are found by what they are: `ls` and `status` with their flags, and names and runs where
//! an id is taken.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::home::Home;

const WAITS: &str = r#"{"steps": [{"await": {"reason": "waiting on ci",
    "conditions": {"onEvent": "ci.passed:pr/12"}}}]}"#;
const ASKS: &str = r#"{"steps": [{"ask": {"question": "which one?"}}]}"#;
const PLAIN: &str = r#"{"steps": [{"say": "done"}]}"#;

/// A home with four sessions, by their names: one that waits, one that asks, one that is new and
/// one that has ended.
fn populated() -> Home {
    let home = Home::new();
    for (name, script, labels) in
        [("waiting", WAITS, &["team=web", "stage=one"][..]), ("asking", ASKS, &["team=web"])]
    {
        let script = home.file("script.json", script);
        let mut arguments = vec!["run", "--script", &script, "--detach", "--name", name];
        arguments.extend(labels.iter().flat_map(|label| ["--label", label]));
        let told = home.told(&arguments);
        assert_eq!(told.code, 0, "{told:?}");
    }
    let script = home.file("script.json", PLAIN);
    for name in ["new", "ended"] {
        let told = home.told(&[
            "new",
            "--script",
            &script,
            "--name",
            name,
            "--label",
            "team=infra",
            "--parent",
            "waiting",
            "--title",
            "Fix the build",
        ]);
        assert_eq!(told.code, 0, "{told:?}");
    }
    home.json(&["close", "ended"]);
    home
}

/// Keeps lists from following the journal, as if others had committed more than can be looked at, where
/// nothing can be written.
pub fn keep_lists_behind(home: &Home) {
    let stay = "UPDATE progress SET seq = -100000 WHERE what = 'listed';
        CREATE TRIGGER stay BEFORE UPDATE ON progress WHEN NEW.what = 'listed'
            BEGIN SELECT RAISE (ABORT, 'no'); END";
    let store = home.path(".local/share/adjourn/store.db");
    rusqlite::Connection::open(store).unwrap().execute_batch(stay).unwrap();
}

/// Returns the names of the sessions that `ls` lists as JSON.
fn listed(home: &Home, flags: &[&str]) -> Vec<String> {
    names(&home.jsons(&[&["ls"], flags].concat()))
}

fn names(sessions: &[Value]) -> Vec<String> {
    let name = |session: &Value| session["labels"]["name"].as_str().map(str::to_owned);
    sessions.iter().filter_map(name).collect()
}

/// A list that cannot be brought up to the journal says how far it is behind.
#[test]
fn ls_and_status_say_how_current_they_are() {
    let home = populated();
    assert!(home.jsons(&["ls"]).iter().all(|line| line.get("behind").is_none()));
    assert_eq!(home.json(&["status"]).get("behind"), None);
    keep_lists_behind(&home);
    let behind = |value: &Value| value["behind"].as_u64().is_some_and(|behind| behind > 100_000);
    // Without a filter it is not the list that is asked.
    let suspended = ["ls", "--state", "suspended"];
    let listed = home.jsons(&suspended);
    assert!(listed.iter().any(behind), "{listed:?}");
    assert!(behind(&home.json(&["status"])));
    assert!(behind(&home.json(&["status", "--state", "suspended"])));
    for (command, says) in
        [(&suspended[..], " entries of the journal behind"), (&["status"], "not counted yet")]
    {
        let told = home.told(command);
        assert!(told.talk.contains(says), "{told:?}");
    }
}

#[test]
fn every_flag_finds_its_sessions_and_flags_together_those_that_have_both() {
    let home = populated();
    let cwd = home.path("").to_str().unwrap().to_owned();
    for (flags, found) in [
        (&[][..], &["waiting", "asking", "new", "ended"][..]),
        (&["--state", "suspended"], &["waiting", "asking"]),
        (&["--state", "asking"], &["asking"]),
        (&["--state", "idle,ended"], &["new", "ended"]),
        (&["--state", "running"], &[]),
        (&["--label", "team=web"], &["waiting", "asking"]),
        (&["--label", "team=web", "--label", "stage=one"], &["waiting"]),
        (&["--label", "team=we"], &[]),
        (&["--label", "team="], &[]),
        (&["--label", "a=' OR 1=1 --"], &[]),
        (&["--agent", "script"], &["waiting", "asking", "new", "ended"]),
        (&["--agent", "reviewer"], &[]),
        (&["--waiting-for", "ci.passed"], &["waiting"]),
        (&["--waiting-for", "ci.*"], &["waiting"]),
        (&["--waiting-for", "ci.passed:pr/12"], &["waiting"]),
        (&["--waiting-for", "ci.passed:pr/13"], &[]),
        (&["--reason", "waiting on ci"], &["waiting"]),
        (&["--reason", "waiting*"], &["waiting"]),
        (&["--reason", "waiting"], &[]),
        (&["--older-than", "0s"], &["waiting", "asking", "new", "ended"]),
        (&["--older-than", "1h"], &[]),
        (&["--parent", "waiting"], &["new", "ended"]),
        (&["--parent", "asking"], &[]),
        (&["--tenant", "local"], &["waiting", "asking", "new", "ended"]),
        (&["--tenant", "other"], &[]),
        (&["--cwd", &cwd], &[]),
        (&["--cwd", "/"], &["waiting", "asking", "new", "ended"]),
        (&["--sort", "newest"], &["ended", "new", "asking", "waiting"]),
        (&["--sort", "freshest", "--state", "idle,ended"], &["ended", "new"]),
        (&["--state", "suspended", "--label", "team=web", "--waiting-for", "ci.**"], &["waiting"]),
        (&["--state", "idle", "--label", "team=infra", "--sort", "newest"], &["new"]),
    ] {
        assert_eq!(listed(&home, flags), found, "{flags:?}");
    }
    // For people, what has ended is left out unless they ask for it.
    let told = home.told(&["ls", "--label", "team=infra"]);
    assert_eq!((told.code, told.data.lines().count()), (0, 1), "{told:?}");
    assert_eq!(home.told(&["ls", "--label", "team=infra", "--all"]).data.lines().count(), 2);
    assert_eq!(home.told(&["ls", "--state", "ended"]).data.lines().count(), 1);
    let told = home.told(&["ls", "--label", "team=nowhere"]);
    assert_eq!((told.code, told.data.as_str()), (0, ""), "{told:?}");
    assert_eq!(told.talk, "no session is like that; `adjourn ls --all` lists all of them\n");
}

#[test]
fn a_session_waits_for_what_could_wake_it_and_not_for_what_a_not_rules_out() {
    let home = Home::new();
    let failed = r#"{"exact": {"name": "ci.failed"}}"#;
    for (name, trigger) in [
        ("not", format!(r#"{{"not": {failed}}}"#)),
        ("all", format!(r#"{{"all": [{{"prefix": {{"name": "ci."}}}}, {{"not": {failed}}}]}}"#)),
        ("any", format!(r#"{{"any": [{{"exact": {{"name": "cd.done"}}}}, {{"not": {failed}}}]}}"#)),
    ] {
        let await_it = format!(r#"{{"reason": "x", "conditions": {{"trigger": {trigger}}}}}"#);
        let script = format!(r#"{{"steps": [{{"await": {await_it}}}]}}"#);
        let script = home.file("script.json", &script);
        let told = home.told(&["run", "--script", &script, "--detach", "--name", name]);
        assert_eq!(told.code, 0, "{told:?}");
    }
    for (pattern, found) in [
        ("ci.passed", &["all"][..]),
        ("ci.*", &["all"]),
        ("ci.failed", &[]),
        ("cd.done", &["any"]),
        ("cd.**", &["any"]),
        ("deploy.done", &[]),
    ] {
        assert_eq!(listed(&home, &["--waiting-for", pattern]), found, "{pattern}");
    }
}

#[test]
fn pages_go_on_where_the_last_one_ended() {
    let home = populated();
    for (sort, all) in [
        ("oldest", ["waiting", "asking", "new", "ended"]),
        ("newest", ["ended", "new", "asking", "waiting"]),
    ] {
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut arguments = vec!["ls", "--limit", "3"];
            match &cursor {
                Some(cursor) => arguments.extend(["--after", cursor]),
                None => arguments.extend(["--sort", sort]),
            }
            let page = home.jsons(&arguments);
            found.extend(names(&page));
            let last = page.last().unwrap();
            cursor = last["next"].as_str().map(str::to_owned);
            if cursor.is_none() {
                assert_eq!(page.len(), 1, "{page:?}");
                break;
            }
            // What is made meanwhile comes where its place is, and nothing comes twice.
            assert_eq!(page.len(), 4, "{page:?}");
        }
        assert_eq!(found, all);
    }
    // People are told what to type.
    let told = home.told(&["ls", "-n", "1"]);
    let cursor =
        told.talk.lines().find_map(|line| line.strip_prefix("there are more: go on with --after "));
    let next = home.told(&["ls", "-n", "1", "--after", cursor.unwrap()]);
    assert!(next.code == 0 && next.data != told.data && next.data.lines().count() == 1);
    let other = home.told(&["ls", "--sort", "newest", "--after", cursor.unwrap()]);
    assert_eq!(other.code, 2, "{other:?}");
    assert!(other.talk.contains("in another order"), "{other:?}");
    // In another list, or in another store, it would begin anew.
    let message = "error: --after: the cursor is not of this list: ";
    let other = home.told(&["ls", "-n", "1", "--state", "idle", "--after", cursor.unwrap()]);
    assert_eq!(other.code, 2, "{other:?}");
    let problem = format!("{message}it was given for another filter or order");
    assert!(other.talk.starts_with(&problem), "{other:?}");
    let elsewhere = populated().told(&["ls", "-n", "1", "--after", cursor.unwrap()]);
    assert_eq!(elsewhere.code, 2, "{elsewhere:?}");
    let problem = format!("{message}this store has no session where it ended");
    assert!(elsewhere.talk.starts_with(&problem), "{elsewhere:?}");
    // A limit that is not reached leaves nothing to go on with.
    assert_eq!(home.jsons(&["ls", "--limit", "4"]).len(), 4);
}

#[test]
fn what_is_spelled_badly_is_refused_with_what_was_expected() {
    let home = populated();
    for (arguments, said) in [
        (&["ls", "--state", "sleeping"][..], "--state: expected one of idle, ready, running"),
        (&["ls", "--label", "team"], "--label: expected KEY=VALUE"),
        (&["ls", "--label", "=web"], "--label: expected KEY=VALUE"),
        (&["ls", "--label", "a=1", "--label", "a=2"], "--label: a is given two values"),
        (&["ls", "--waiting-for", "*.passed"], "--waiting-for: expected a name whose first part"),
        (&["ls", "--waiting-for", "**"], "--waiting-for: expected a name whose first part"),
        (&["ls", "--waiting-for", ""], "--waiting-for: expected a name"),
        (&["ls", "--older-than", "yesterday"], "--older-than: expected a duration"),
        (&["ls", "--limit", "0"], "--limit: expected a whole number from 1 on"),
        (&["ls", "--sort", "size"], "--sort: expected one of oldest, newest"),
        (&["ls", "--after", "x"], "--after: expected a cursor"),
        (&["ls", "--all", "--state", "idle"], "--all does not go with --state"),
        (&["status", "--state", "sleeping"], "--state: expected one of"),
        (&["ls", "--parent", "nobody"], "there is no session \"nobody\""),
        (&["new", "--script", "x", "--budget", "5usd"], "--budget: expected amounts like usd=5"),
        (&["new", "--script", "x", "--name", "sess-1"], "--name: expected a name that does not"),
        (&["resume", "waiting", "--add-budget", "steps=0"], "--add-budget: expected amounts like"),
    ] {
        let told = home.told(arguments);
        assert!(matches!(told.code, 2 | 4), "{arguments:?}: {told:?}");
        assert!(told.talk.contains(said), "{arguments:?}: {}", told.talk);
    }
    // What the lifecycle refuses is named as it was typed.
    let script = home.file("script.json", PLAIN);
    let long = "x".repeat(300);
    for (flag, value) in [
        ("--label", format!("a={long}")),
        ("--label", "name=sess-1".to_owned()),
        ("--label", "name=".to_owned()),
        ("--name", long.clone()),
        ("--title", long.clone()),
    ] {
        let told = home.told(&["new", "--script", &script, flag, &value]);
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.talk.starts_with(&format!("error: {flag}: ")), "{told:?}");
    }
    let told = home.told(&["new", "--script", &script, "--parent", "nobody"]);
    assert_eq!(told.code, 4, "{told:?}");
}

#[test]
fn a_name_is_looked_for_among_the_sessions_of_its_tenant() {
    let home = Home::new();
    let script = home.file("script.json", r#"{"runs": [[{"say": "one"}]]}"#);
    let of = |tenant: &str, arguments: &[&str]| {
        let mut command = home.command(arguments);
        command.env("ADJOURN_TENANT", tenant);
        home.ended(command)
    };
    let made = ["a", "b"].map(|tenant| {
        let told = of(tenant, &["new", "--script", &script, "--name", "nightly", "--json"]);
        let session: serde_json::Value = serde_json::from_str(&told.data).expect(&told.talk);
        session["sessionId"].as_str().unwrap().to_owned()
    });
    for (tenant, id) in ["a", "b"].iter().zip(&made) {
        let told = of(tenant, &["show", "nightly", "--json"]);
        assert!(told.data.contains(id), "{told:?}");
    }
    assert_eq!(of("c", &["suspend", "nightly"]).code, 4);
}

#[test]
fn a_session_is_found_by_its_name_and_by_each_of_its_runs() {
    let home = populated();
    let script = home.file("script.json", r#"{"runs": [[{"say": "one"}], [{"say": "two"}]]}"#);
    let id = home.json(&["new", "--script", &script, "--name", "talker"])["sessionId"].clone();
    let id = id.as_str().unwrap();
    let mut runs = Vec::new();
    for _ in 0..2 {
        assert_eq!(home.told(&["prompt", "talker", "go"]).code, 0);
        runs.push(home.json(&["show", "talker"])["runId"].as_str().unwrap().to_owned());
    }
    assert_ne!(runs[0], runs[1]);
    for found in [&runs[0], &runs[1], "talker", id] {
        assert_eq!(home.json(&["show", found])["sessionId"], id, "{found}");
        assert!(home.told(&["log", found]).data.contains("completed"), "{found}");
    }
    let waiting = home.json(&["show", "waiting"]);
    let run = waiting["runId"].as_str().unwrap();
    home.json(&["resume", run, "--detach"]);
    assert_eq!(home.json(&["show", "waiting"])["state"], "ready");
    let other = "run-019abf6b-7d51-7c1d-bb02-0123456789ab";
    let told = home.told(&["show", other]);
    assert_eq!((told.code, told.talk.contains(other)), (4, true), "{told:?}");
    // A name belongs to one open session, and is free again when that has ended.
    for name in [["--name", "talker"], ["--label", "name=talker"]] {
        let told = home.told(&["new", "--script", &script, name[0], name[1]]);
        assert_eq!(told.code, 3, "{told:?}");
        assert!(told.talk.contains(&format!("session {id} is called \"talker\"")), "{told:?}");
    }
    home.json(&["close", "talker"]);
    assert_eq!(home.json(&["show", "talker"])["sessionId"], id, "the last that has ended");
    let next = home.json(&["new", "--script", &script, "--name", "talker"]);
    assert_eq!(home.json(&["show", "talker"])["sessionId"], next["sessionId"]);
}

#[test]
fn a_budget_that_is_used_up_says_what_raises_it() {
    let home = Home::new();
    let step = r#"{"say": {"text": "a", "spend": {"usd": 0.5}}}"#;
    let script = home.file("script.json", &format!(r#"{{"steps": [{step}, {step}]}}"#));
    let name = ["run", "--script", &script, "--name", "poor", "--budget", "usd=0.4", "--detach"];
    let told = home.told(&name);
    let id = home.json(&["show", "poor"])["sessionId"].as_str().unwrap().to_owned();
    let short = id.get(id.len() - 12..).unwrap();
    let used = format!(
        "raise usd by more than 0.10 (0.50 of 0.40 is used) with: adjourn resume {short} --add-budget usd=…"
    );
    assert!(told.talk.contains(&format!("[it stays parked; {used}]")), "{told:?}");
    for arguments in [
        &["prompt", "poor", "hi"][..],
        &["resume", "poor"],
        &["resume", "poor", "--add-budget", "tokens=5"],
        // What is too little is not added.
        &["resume", "poor", "--add-budget", "usd=0.01"],
    ] {
        let told = home.told(arguments);
        assert!(told.talk.ends_with(&format!("hint: {used}\n")), "{arguments:?}: {told:?}");
    }
    let told = home.told(&["resume", "poor", "--add-budget", "usd=0.2"]);
    assert_eq!(told.code, 0, "{told:?}");
}

#[test]
fn what_a_session_was_made_with_is_shown() {
    let home = populated();
    let script = home.file("script.json", PLAIN);
    let budget = "usd=0.5,tokens=9,steps=3";
    home.json(&["new", "--script", &script, "--name", "rich", "--budget", budget]);
    let shown = home.told(&["show", "new"]).data;
    for line in ["agent                script", "title                Fix the build"] {
        assert!(shown.contains(line), "{shown}");
    }
    assert!(shown.contains("labels               name=new, team=infra"), "{shown}");
    let parent = home.json(&["show", "waiting"])["sessionId"].clone();
    assert!(shown.contains(&format!("parent               {}", parent.as_str().unwrap())));
    assert!(
        home.told(&["show", "rich"])
            .data
            .contains("budget               usd=0.50,tokens=9,steps=3")
    );
    let json = home.json(&["show", "new"]);
    assert_eq!((&json["parent"], &json["title"]), (&parent, &"Fix the build".into()), "{json}");
    assert_eq!((&json["agent"], &json["labels"]["team"]), (&"script".into(), &"infra".into()));
    let budget = &home.json(&["show", "rich"])["budget"];
    assert_eq!(budget.to_string(), r#"{"costMicroUsd":500000,"tokens":9,"iterations":3}"#);
}

#[test]
fn status_counts_what_the_same_flags_list() {
    let home = populated();
    let told = home.told(&["status", "--label", "team=web"]);
    assert_eq!(told.code, 0, "{told:?}");
    let age = told.data.strip_prefix("suspended          2  the oldest for ");
    let age = age.and_then(|rest| rest.strip_suffix("s\nin all             2\n"));
    assert!(age.is_some_and(|seconds| seconds.parse::<u32>().is_ok()), "{told:?}");
    let status = home.json(&["status", "--state", "idle,ended"]);
    let count = |state: &str| status["sessions"][state]["count"].clone();
    assert_eq!((count("idle"), count("ended"), count("suspended")), (1.into(), 1.into(), 0.into()));
    assert!(status.get("hosts").is_none(), "{status}");
    assert_eq!(home.told(&["status", "--waiting-for", "cd.*"]).data, "in all             0\n");
}

#[test]
fn a_session_that_passes_its_budget_parks_until_it_has_more() {
    let home = Home::new();
    let script = home.file(
        "script.json",
        r#"{"steps": [{"say": {"text": "one", "spend": {"usd": 0.01, "tokens": 10}}},
                      {"say": {"text": "two", "spend": {"usd": 0.015}}},
                      {"say": "three"}]}"#,
    );
    for (budget, too_little, enough) in
        [("usd=0.02", "usd=0.005", "usd=0.01,tokens=1"), ("tokens=10,usd=5", "usd=1", "tokens=1")]
    {
        let told =
            home.told(&["run", "--script", &script, "--detach", "--budget", budget, "--json"]);
        assert_eq!(told.code, 0, "{told:?}");
        let parked: Value = serde_json::from_str(told.data.lines().next_back().unwrap()).unwrap();
        let id = parked["sessionId"].as_str().unwrap();
        assert_eq!(parked["state"], "suspended", "{parked}");
        assert_eq!(
            (&parked["initiator"], &parked["reason"]),
            (&"client".into(), &"budget_exceeded".into())
        );
        let found = home.jsons(&["ls", "--reason", "budget_exceeded"]);
        assert_eq!(found.iter().map(|one| &one["sessionId"]).collect::<Vec<_>>(), [id]);
        for refused in [&[][..], &["--add-budget", too_little]] {
            let told = home.told(&[&["resume", id], refused].concat());
            assert_eq!(told.code, 3, "{refused:?}: {told:?}");
        }
        let told = home.told(&["resume", id, "--add-budget", enough]);
        assert_eq!(told.code, 0, "{told:?}");
        assert_eq!(home.json(&["show", id])["outcome"], "completed");
    }
    // So does one that has made its steps; they are counted anew after a resume.
    let told =
        home.told(&["run", "--script", &script, "--detach", "--budget", "steps=2", "--json"]);
    let parked: Value = serde_json::from_str(told.data.lines().next_back().unwrap()).unwrap();
    assert_eq!(
        (&parked["initiator"], &parked["reason"]),
        (&"client".into(), &"iteration_limit".into())
    );
    assert_eq!(home.told(&["resume", parked["sessionId"].as_str().unwrap()]).code, 0);
}

#[test]
fn a_resume_raises_how_many_steps_a_run_may_have() {
    let home = Home::new();
    let steps = [r#"{"say": "on"}"#; 6].join(", ");
    let script = home.file("script.json", &format!(r#"{{"steps": [{steps}]}}"#));
    let new = ["run", "--script", &script, "--detach", "--name"];
    let said = || home.told(&["log", "busy", "--transcript"]).data.matches("agent  on").count();
    home.told(&[&new[..], &["busy", "--budget", "steps=1"]].concat());
    assert_eq!((said(), &home.json(&["show", "busy"])["reason"]), (1, &"iteration_limit".into()));
    // The steps are counted anew, and there are two more of them.
    let told = home.told(&["resume", "busy", "--add-budget", "steps=2"]);
    assert_eq!(told.code, 0, "{told:?}");
    let shown = home.json(&["show", "busy"]);
    assert_eq!((said(), &shown["reason"]), (4, &"iteration_limit".into()), "{shown}");
    assert_eq!(shown["budget"]["iterations"], 3, "{shown}");
    let told = home.told(&["resume", "busy", "--add-budget", "steps=1,tokens=5,usd=1"]);
    assert_eq!(told.code, 0, "{told:?}");
    let shown = home.json(&["show", "busy"]);
    assert_eq!((said(), &shown["outcome"]), (6, &"completed".into()), "{shown}");
    // What had no limit has none.
    assert_eq!(shown["budget"].to_string(), r#"{"iterations":4}"#);
}

#[test]
fn a_list_is_up_to_date_while_hosts_and_others_change_it() {
    let home = populated();
    let serving = home.serve();
    let script = home.file("script.json", WAITS);
    let start = Instant::now();
    for number in 0..5 {
        let name = format!("busy-{number}");
        home.json(&["new", "--script", &script, "--name", &name]);
        assert!(listed(&home, &["--state", "idle"]).contains(&name), "at once");
        home.told(&["prompt", &name, "go", "--detach"]);
        assert!(!listed(&home, &["--state", "idle"]).contains(&name), "at once");
        while !listed(&home, &["--waiting-for", "ci.passed"]).contains(&name) {
            assert!(start.elapsed() < Duration::from_secs(20), "it never waits");
        }
    }
    home.json(&["event", "ci.passed:pr/12"]);
    while !listed(&home, &["--state", "suspended", "--reason", "waiting*"]).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "they never wake");
    }
    serving.kill();
}
