//! The journal's encoding, frozen: every kind and version ever written stays readable.
//!
//! `tests/golden/` holds one example of each. A file is never changed; a kind that changes gets
//! a file of its next version beside the old one. `UPDATE_EXPECT=1` adds files that are missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adjourn_core::journal::Entry;

use crate::script::Play;

/// Scripts that together make every kind of event, with as many fields as possible.
const SCRIPTS: &[&str] = &[
    "prompt build message=m1
     claim
     step
     calls build lint! deploy wait used=5 place=2
     dispatch build lint
     return lint failed
     suspend request=1 reason=review on=ci.passed:main timeout=30m/resume_with_input grace=10s
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
    "prompt build
     claim
     step
     await ci
     suspend
     cancel
     prompt build
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

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The longest example of each kind, by the key under which it is written.
fn examples() -> BTreeMap<String, Vec<u8>> {
    let mut examples: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for script in SCRIPTS {
        let mut play = Play::new();
        let trace = play.run(script);
        assert!(!trace.contains("  ! "), "{trace}");
        for bytes in &play.world.journal {
            let entry = Entry::decode(bytes).unwrap();
            let event = serde_json::to_value(&entry.event).unwrap();
            let mut keys = event.as_object().unwrap().keys();
            let kind = keys.find(|key| key.contains('/')).unwrap().replace('/', ".");
            let example = examples.entry(kind).or_default();
            if bytes.len() > example.len() {
                *example = bytes.clone();
            }
        }
    }
    examples
}

#[test]
fn every_kind_of_event_has_a_golden_file() {
    let examples = examples();
    assert_eq!(examples.len(), 26, "{:?}", examples.keys());
    for (kind, bytes) in examples {
        let path = directory().join(format!("{kind}.json"));
        if std::env::var_os("UPDATE_EXPECT").is_some() && !path.exists() {
            std::fs::create_dir_all(directory()).unwrap();
            std::fs::write(&path, &bytes).unwrap();
        }
        let golden = std::fs::read(&path)
            .unwrap_or_else(|_| panic!("{kind} has no golden file: run `make update-expected`"));
        assert!(golden == bytes, "{kind} is encoded otherwise than its golden file says");
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

#[test]
fn an_unknown_kind_is_an_error_and_not_a_guess() {
    let bytes = std::fs::read(directory().join("claimed.1.json")).unwrap();
    let later = String::from_utf8(bytes).unwrap().replace("claimed/1", "claimed/2");
    assert!(Entry::decode(later.as_bytes()).is_err());
}

#[test]
fn a_state_of_a_newer_program_is_refused() {
    let bytes = std::fs::read(directory().join("suspended.1.json")).unwrap();
    let later = String::from_utf8(bytes).unwrap().replace(r#""state":{"v":1"#, r#""state":{"v":2"#);
    let error = Entry::decode(later.as_bytes()).unwrap().state().unwrap_err();
    assert_eq!(error.to_string(), "state version 2 is newer than this program");
}
