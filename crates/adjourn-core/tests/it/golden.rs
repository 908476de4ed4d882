//! The journal's encoding, frozen: every kind and version ever written stays readable.
//!
//! `tests/golden/` holds examples of each. A file is never changed; what is written otherwise than
//! before gets a file beside those that are there. `UPDATE_EXPECT=1` adds files that are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use adjourn_core::Founding;
use adjourn_core::carry::Budget;
use adjourn_core::driver::{DriverSpec, Need};
use adjourn_core::facts::{SpanLink, SpanLinks};
use adjourn_core::journal::Entry;

use crate::script::Play;
use crate::world::{World, founding, session_id};

/// Scripts that together make every kind of event, with as many fields as possible.
///
/// Their prompts have the reach that the command line had when the first files were written.
const SCRIPTS: &[&str] = &[
    "prompt build reach=own_face message=m1
     claim
     step
     calls build lint! deploy wait used=5 place=2
     dispatch build lint
     return lint failed
     suspend request=1 reason=review meta=kept on=ci.passed:main timeout=30m/resume_with_input grace=10s
     suspend request=2 mode=interrupt_immediate
     withdraw request=2
     await ci call=wait summary=\"waiting on ci\" used=12 words=\"starting\" place=\"3\" lesson=\"look twice\" failure=loop_detected repeat=2 on=ci.* timeout=5m
     return build
     event ci.failed
     resume key=k1
     claim host=2
     step
     abort
     step
     ask which choices=raw,monthly context=\"two match\" kind=iteration_limit
     resume handle=3 input=raw key=k2 fresh tokens=7
     claim
     step
     calls fetch
     dispatch fetch
     suspend grace=1s
     t=2s abandon
     suspend
     cancel reason=\"not wanted\"",
    "prompt build reach=own_face
     claim
     step
     calls build used=1
     dispatch build
     suspend reason=review meta=kept timeout=1m/resume_with_input limit=time_limit
     cancel reason=\"not wanted\"
     return build
     suspend reason=review meta=kept limit=time_limit on=ci.passed:main timeout=1m/resume_with_input
     t=1m expire
     claim
     step
     suspend reason=review limit=iteration_limit
     finish end=failed used=1
     resume key=k9 message=m9 input=more tokens=3 fresh
     claim
     step
     await ci summary=waiting on=ci.passed:main meta=kept
     event ci.passed:main
     suspend
     resume
     suspend
     resume input=hurry
     suspend
     resume
     claim
     step
     await ci
     suspend
     event ping addressed
     resume
     cancel",
    "prompt build reach=own_face
     claim
     step
     calls a! b
     dispatch a
     suspend mode=interrupt_immediate on=e
     died
     event e
     claim
     step
     calls c
     suspend mode=interrupt_immediate
     resume
     claim
     dispatch c
     return c
     finish end=completed ends_session",
    "prompt build reach=own_face
     claim
     step
     calls a! b
     dispatch a b
     drain
     resume
     claim
     dispatch a
     cancel reason=\"not wanted\" grace=5s
     return a",
    "prompt build
     claim
     step
     await ci
     suspend
     cancel
     prompt build reach=own_face
     claim
     step
     calls build
     dispatch build
     died
     resume
     claim
     step
     suspend
     resume key=k3
     finish
     drain
     claim
     step
     cancel reason=\"not wanted\"
     finish
     close reason=done",
];

/// Examples of their own, each the last entry of its kind in its script: those of kinds and fields
/// that came later.
const LATER: &[(&str, &str)] = &[
    (
        "calls_returned.1-usage",
        "prompt build
         claim
         step
         calls build
         dispatch build
         return build used=3",
    ),
    (
        "resumed.1-tells-all",
        "prompt build
         claim
         step
         await ci on=ci.passed
         event ci.passed
         suspend
         resume input=one
         suspend
         resume input=two",
    ),
    (
        "suspend_joined.1-reason",
        "prompt build
     claim
     step
     calls build
     dispatch build
     died
     suspend request=1 reason=lunch",
    ),
    (
        "progressed.1",
        "prompt a
         take
         progress asks=read,write starts=read place=2 used=3",
    ),
    (
        "progressed.1-2",
        "prompt a
         take
         progress asks=read starts=read
         progress ends=read",
    ),
    (
        "calls_left.1",
        "prompt a
         take
         progress asks=read,write starts=read
         died",
    ),
    (
        "progressed.1-notes",
        "prompt a
         take
         progress title=T lesson=\"look twice\" failure=loop_detected repeat=2 words=\"so far\"",
    ),
    (
        "calls_asked.1-notes",
        "prompt a
         take
         calls read title=T lesson=\"look twice\" words=\"let me see\"",
    ),
    (
        "calls_asked.1-digest",
        "prompt a
         take
         calls read asked=words",
    ),
    (
        "step_aborted.1-notes",
        "prompt a
         take
         abort title=T lesson=\"look twice\" words=\"so far\" used=2",
    ),
    (
        "progressed.1-shown",
        "prompt a
         take
         progress plan=1 mode_shown=1",
    ),
    (
        "suspended.1-shown",
        "prompt a
         take
         await ci plan=1",
    ),
    (
        "step_finished.1-title",
        "prompt a
     claim
     step
     finish title=T",
    ),
    (
        "suspended.1-title",
        "prompt a
     claim
     step
     finish title=T end=completed
     suspend",
    ),
    (
        "resumed.1-steps",
        "prompt build
         claim
         step
         suspend reason=review limit=iteration_limit
         finish
         resume steps=3",
    ),
    (
        "hold_lifted.1-steps",
        "prompt build
         claim
         step
         await ci
         suspend
         resume steps=3",
    ),
    (
        "suspend_withdrawn.1-steps",
        "prompt build
         claim
         step
         suspend
         resume steps=3",
    ),
    (
        "await_requested.1",
        "prompt build
         claim
         step
         worker ci on=ci.passed:main timeout=30m/fail summary=\"waiting on ci\" meta=kept",
    ),
    (
        "await_ended.1",
        "prompt build
         claim
         step
         worker ci
         ask which",
    ),
    (
        "suspended.1-worker",
        "prompt build
         claim
         step
         worker ci on=ci.passed:main
         suspend
         finish",
    ),
    (
        "suspended.1-joined",
        "prompt build
         claim
         step
         suspend request=1
         suspend request=2 reason=lunch by=acp
         finish",
    ),
    (
        "suspended.1-joined-later",
        "prompt build
         claim
         step
         suspend request=1
         suspend request=2 reason=lunch by=acp
         suspend request=3 by=acp
         finish",
    ),
];

/// A session with as much in it as one that is exported can have.
const EXPORTED: &str = "prompt build message=m1
     take
     calls look used=5 place=2
     dispatch look
     return look
     await ci summary=waiting used=12 words=starting place=3 lesson=twice on=ci.* timeout=5m";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// A session with everything that a session can have from its first day on.
fn full_world() -> World {
    let span = |digit: &str| SpanLink { trace_id: digit.repeat(32), span_id: digit.repeat(16) };
    let mut driver = DriverSpec::script(r#"{"steps":[]}"#);
    driver.cwd = Some("/home/ann/project".to_owned());
    driver.env = vec!["CI_TOKEN".to_owned()];
    driver.mcp_servers = vec![serde_json::json!({ "command": "mcp-files", "name": "files" })];
    driver.needs = [Need::Files, Need::Permissions].into();
    let mut world = World::founded(Founding {
        labels: [("team".to_owned(), "infra".to_owned())].into(),
        parent: Some(session_id(7)),
        budget: Budget { tokens: Some(1_000_000), ..Budget::default() },
        driver,
        ..founding()
    });
    world.spans = SpanLinks { prior: Some(span("a")), pipeline: Some(span("b")) };
    world
}

/// Examples of each kind: the longest, and those that add fields to it.
fn examples() -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut entries: Vec<(String, Vec<u8>)> = Vec::new();
    for script in SCRIPTS {
        let mut play = Play::on(full_world());
        let trace = play.run(script);
        assert!(!trace.contains("  ! "), "{trace}");
        for bytes in &play.world.journal {
            let entry = Entry::decode(bytes).unwrap();
            let event = serde_json::to_value(&entry.event).unwrap();
            let mut keys = event.as_object().unwrap().keys();
            let kind = keys.find(|key| key.contains('/')).unwrap().replace('/', ".");
            entries.push((kind, bytes.clone()));
        }
    }
    entries.sort_by_key(|(_, bytes)| std::cmp::Reverse(bytes.len()));
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut examples: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for (kind, bytes) in entries {
        let fields = seen.entry(kind.clone()).or_default();
        let before = fields.len();
        collect(&serde_json::from_slice(&bytes).unwrap(), fields);
        if fields.len() > before {
            examples.entry(kind).or_default().push(bytes);
        }
    }
    for (name, script) in LATER {
        let mut play = Play::on(full_world());
        play.run(script);
        // The last one of its kind: a decision may lead to more behind it.
        let kind = name.split('.').next().unwrap();
        let is_of_kind = |bytes: &&Vec<u8>| Entry::decode(bytes).unwrap().event.what.name() == kind;
        let example = play.world.journal.iter().rev().find(is_of_kind).unwrap();
        examples.insert((*name).to_owned(), vec![example.clone()]);
    }
    let mut named = Play::on(World::founded(Founding {
        driver: DriverSpec::named("reviewer", serde_json::json!({ "model": "small" })),
        ..founding()
    }));
    named.run("suspend");
    let mut named = named.world.journal;
    examples.insert("suspended.1-named".to_owned(), vec![named.pop().unwrap()]);
    examples.insert("session_created.1-named".to_owned(), vec![named.pop().unwrap()]);
    let titled = World::founded(Founding { title: Some("Nightly".to_owned()), ..founding() });
    examples.insert("session_created.1-titled".to_owned(), titled.journal);
    let mut exported = Play::on(full_world());
    exported.run(EXPORTED);
    let there = exported.world.imported(4).unwrap();
    examples.insert("session_imported.1".to_owned(), there.journal);
    exported.run("export reason=moved");
    let journal = &mut exported.world.journal;
    examples.insert("session_ended.1-exported".to_owned(), vec![journal.pop().unwrap()]);
    journal.pop();
    examples.insert("suspension_ended.1-exported".to_owned(), vec![journal.pop().unwrap()]);
    for (name, script) in [
        ("session_created.1-options", ""),
        ("option_set.1", "set mode ask"),
        ("suspended.1-options", "set mode ask\nsuspend"),
        ("step_finished.1-options", "prompt a\nclaim\nstep\nfinish chooses=ask"),
    ] {
        let mut play = Play::on(World::with_modes());
        play.run(script);
        examples.insert(name.to_owned(), vec![play.world.journal.pop().unwrap()]);
    }
    examples
}

/// The golden files of a kind: the first, then those beside it, up to one that is missing.
fn files(kind: &str) -> impl Iterator<Item = PathBuf> {
    let beside = move |number: u32| match number {
        1 => directory().join(format!("{kind}.json")),
        _ => directory().join(format!("{kind}-{number}.json")),
    };
    (1..).map(beside)
}

/// Collects the names of all fields in a value.
fn collect(value: &serde_json::Value, fields: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                fields.insert(key.clone());
                collect(value, fields);
            }
        }
        serde_json::Value::Array(values) => {
            values.iter().for_each(|value| collect(value, fields));
        }
        _ => {}
    }
}

#[test]
fn every_kind_of_event_has_a_golden_file() {
    let examples = examples();
    let kinds = examples.keys().filter(|name| !name.contains('-')).count();
    assert_eq!(kinds, 32, "{:?}", examples.keys());
    for (kind, examples) in examples {
        for bytes in examples {
            let mut golden = files(&kind).take_while(|path| path.exists());
            if golden.any(|path| std::fs::read(path).unwrap() == bytes) {
                continue;
            }
            let example = String::from_utf8_lossy(&bytes);
            let update = std::env::var_os("UPDATE_EXPECT").is_some();
            assert!(update, "no golden file (`make update-expected` adds it) of {kind}: {example}");
            let path = files(&kind).find(|path| !path.exists()).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
    }
}

#[test]
fn every_golden_file_is_readable() {
    let mut read = 0;
    for file in std::fs::read_dir(directory()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let entry = Entry::decode(&bytes).unwrap();
        assert_eq!(entry.encode().unwrap(), bytes, "what is read is written the same");
        entry.decision().unwrap();
        entry.state().unwrap();
        read += 1;
    }
    assert!(read >= 26, "{read}");
}

/// Fields that only some sessions have are frozen, too.
#[test]
fn the_golden_files_have_every_field() {
    let all: String = std::fs::read_dir(directory())
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    for field in [
        "parent",
        "labels",
        "budget",
        "cwd",
        "mcpServers",
        "env",
        "needs",
        "priorSpanLink",
        "pipelineSpanLink",
        "meta",
        "kept",
        "value",
        "arrival",
        "subject",
        "session",
        "earlier",
        "messageId",
        "answered",
        "added",
        "reset",
        "dispatch",
        "notRun",
        "unknown",
        "deferred",
        "hold",
        "fired",
        "limit",
        "requesters",
        "overrides",
        "wake",
        "question",
        "choices",
        "context",
        "originatingFailureKind",
        "driverState",
        "notes",
        "usage",
        "lastWords",
        "abandonAt",
        "again",
        "endsSession",
        "idempotent",
        "keepsOpening",
        "tellsAll",
        "hostInterrupted",
        "title",
        "joined",
        "joinedLater",
        "named",
        "config",
        "options",
        "values",
        "description",
        "fromWorker",
        "shownAt",
    ] {
        assert!(all.contains(&format!("\"{field}\":")), "no golden file has {field}");
    }
}

#[test]
fn an_unknown_kind_is_an_error_and_not_a_guess() {
    let bytes = std::fs::read(directory().join("claimed.1.json")).unwrap();
    let later = String::from_utf8(bytes).unwrap().replace("claimed/1", "claimed/2");
    assert!(Entry::decode(later.as_bytes()).is_err());
}

#[test]
fn a_state_of_a_newer_program_is_refused() {
    let bytes = std::fs::read(directory().join("suspended.1.json")).unwrap();
    let later = String::from_utf8(bytes).unwrap().replace(r#""state":{"v":1"#, r#""state":{"v":3"#);
    let error = Entry::decode(later.as_bytes()).unwrap().state().unwrap_err();
    assert_eq!(error.to_string(), "state version 3 is newer than this program");
}
