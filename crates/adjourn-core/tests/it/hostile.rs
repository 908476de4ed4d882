//! Hostile input that reaches the core: each a refusal with a path, never a panic.
//!
//! Conditions are the one place where a stranger's JSON comes this far; their parser has its own
//! property tests beside it. Here they are given as a peer gives them: as text.

use adjourn_core::conditions::{Conditions, Spelling};
use adjourn_core::driver::DriverSpec;
use adjourn_core::facts::Fresh;
use adjourn_core::id::RunId;
use adjourn_core::time::Timestamp;
use adjourn_core::{Facts, Founding, Rejected, Session};
use proptest::prelude::*;

use crate::world::{ann, founding, handle, uuid};

fn parse(text: &str) -> Result<Option<Conditions>, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| format!("json: {e}"))?;
    Conditions::parse(&value, Spelling::Camel).map_err(|invalid| {
        assert!(!invalid.to_string().starts_with(':'), "a refusal says where");
        assert!(invalid.path.len() + invalid.problem.len() < 1024, "a refusal is short: {invalid}");
        assert!(!invalid.problem.contains(char::is_control));
        invalid.to_string()
    })
}

#[test]
fn wrong_shapes_are_refused_with_their_path() {
    let deep = format!(r#"{{"trigger":{}1{}}}"#, r#"{"not":"#.repeat(40), "}".repeat(40));
    let long = format!(r#"{{"onEvent":"{}"}}"#, "a.".repeat(5_000_000));
    let cases: &[(&str, &str)] = &[
        (r#"[]"#, "conditions: "),
        (r#""ci.passed""#, "conditions: "),
        (r#"{"onEvents":"x"}"#, "onEvents: "),
        (r#"{"onEvent":7}"#, "onEvent: "),
        (r#"{"onEvent":""}"#, "onEvent: "),
        (r#"{"onEvent":"*.passed"}"#, "onEvent: "),
        (r#"{"onEvent":"ci..passed"}"#, "onEvent: "),
        (r#"{"onEvent":"ci.\u0000"}"#, "onEvent: "),
        (r#"{"timeout":5}"#, "timeout: "),
        (r#"{"timeout":{}}"#, "timeout.durationMinutes: "),
        (r#"{"timeout":{"durationMinutes":0}}"#, "timeout.durationMinutes: "),
        (r#"{"timeout":{"durationMinutes":-1}}"#, "timeout.durationMinutes: "),
        (r#"{"timeout":{"durationMinutes":"5"}}"#, "timeout.durationMinutes: "),
        (r#"{"timeout":{"durationMinutes":1e300}}"#, "timeout.durationMinutes: "),
        (r#"{"timeout":{"durationMinutes":18446744073709551615}}"#, "timeout.durationMinutes: "),
        (r#"{"timeout":{"durationMinutes":5,"onTimeout":"explode"}}"#, "timeout.onTimeout: "),
        (r#"{"timeout":{"durationMinutes":5,"input":1}}"#, "timeout.input: "),
        (r#"{"trigger":{"exact":{"colour":"red"}}}"#, "trigger.exact.colour: "),
        (
            r#"{"trigger":{"any":[{"exact":{"name":"a"}},{"exact":{"name":7}}]}}"#,
            "trigger.any[1].exact.name: ",
        ),
        (r#"{"trigger":{"not":{"at":"2026-11-16T09:00:00Z"}}}"#, "trigger.not.at: "),
        (r#"{"trigger":{"at":"tomorrow"}}"#, "trigger.at: "),
        (r#"{"trigger":{"provider":"ci"}}"#, "trigger.kind: "),
        (r#"{"since":-1}"#, "since: "),
        (r#"{"since":1.5}"#, "since: "),
        (&deep, ""),
        (&long, ""),
    ];
    for (text, path) in cases {
        let refusal = parse(text).expect_err(&text[..text.len().min(80)]);
        assert!(refusal.starts_with(path), "{refusal} for {}", &text[..text.len().min(80)]);
    }
}

/// Numbers that JSON cannot carry never reach the core: the reader refuses them.
#[test]
fn nan_and_infinities_are_no_json() {
    for text in ["NaN", "Infinity", "-Infinity", "1e400"] {
        let refusal = parse(&format!(r#"{{"timeout":{{"durationMinutes":{text}}}}}"#)).unwrap_err();
        assert!(refusal.starts_with("json: "), "{refusal}");
    }
}

fn found(founding: Founding) -> Result<(), Rejected> {
    let now = Timestamp::from_millis(0);
    let fresh = Fresh { handle: handle(0), run: RunId::new(uuid(2, 0)) };
    Session::create(&Facts::new(now, ann(), fresh), founding).map(|_| ())
}

#[test]
fn a_session_is_not_founded_on_nonsense() {
    let refused = |founding: Founding| match found(founding) {
        Err(Rejected::Invalid { path, .. }) => path,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(Founding { tenant: String::new(), ..founding() }), "tenant");
    assert_eq!(refused(Founding { tenant: "a\nb".to_owned(), ..founding() }), "tenant");
    let labels = (0..33).map(|n| (n.to_string(), String::new())).collect();
    assert_eq!(refused(Founding { labels, ..founding() }), "labels");
    let mut driver = DriverSpec::script("{}");
    driver.env = vec!["TOKEN=hunter2".to_owned()];
    assert_eq!(refused(Founding { driver, ..founding() }), "driver.env[0]");
    let driver = DriverSpec::script("x".repeat(600 * 1024));
    assert_eq!(refused(Founding { driver, ..founding() }), "driver");
}

proptest! {
    #![proptest_config(crate::properties::config(2000))]

    /// Any text: refused with a path, or taken and given back the same.
    #[test]
    fn any_text_is_refused_or_echoed(text in r#"\{"(onEvent|trigger|timeout|since)":.{0,60}\}"#) {
        if let Ok(Some(conditions)) = parse(&text) {
            let echo = serde_json::to_string(&conditions).unwrap();
            prop_assert_eq!(parse(&echo).unwrap().unwrap(), conditions);
        }
    }
}
