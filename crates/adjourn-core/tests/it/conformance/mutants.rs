//! The runner, tried: a suite that passes is worth something only if its runner can fail.

use serde_json::{Value, json};

use super::{play_all, scenarios};

/// Where a scenario says what is expected.
const EXPECTATIONS: &[&str] =
    &["expect", "answer", "refused", "timeline", "turns", "tools", "said"];

#[test]
fn every_expectation_of_every_scenario_counts() {
    let mut idle = Vec::new();
    for (file, text) in scenarios() {
        let scenario: Value = serde_json::from_str(&text).unwrap();
        let places = places(&scenario);
        assert!(!places.is_empty(), "{file} expects nothing");
        for place in places {
            let mut mutant = scenario.clone();
            let value = mutant.pointer_mut(&place).unwrap();
            *value = other(&place, value);
            if play_all(&mutant.to_string(), 1).is_empty() {
                idle.push(format!("{file}: {place}"));
            }
        }
    }
    assert!(idle.is_empty(), "nothing fails if these are wrong:\n{}", idle.join("\n"));
}

#[test]
fn what_nobody_knows_is_refused() {
    let step = |step: &str| {
        format!(
            r#"{{"name": "n", "serves": ["SUS-01"], "script": {{"runs": []}}, "steps": [{step}]}}"#
        )
    };
    let whole =
        |extra: &str| step(r#"{"at": "0s", "expect": {"state": "idle"}}"#).replacen('{', extra, 1);
    assert_eq!(play_all(&whole("{"), 1), Vec::<String>::new());
    for (text, complaint) in [
        (whole(r#"{"speed": 1, "#), "unknown field `speed`"),
        (whole("{").replace("SUS-01", "SUS-118"), "SUS-118 is no requirement"),
        (
            whole("{").replace(r#""runs": []"#, r#""runs": [[{"sing": "la"}]]"#),
            "script: runs[0][0]: there is no \"sing\" here",
        ),
        (
            whole("{").replace(r#""runs": []"#, r#""runs": [[{"title": "la"}]]"#),
            "the simulation does not play",
        ),
        (step(r#"{"at": "soon", "expect": {}}"#), "expected a time like `0.3s`"),
        (step(r#"{"at": "0s"}"#), "nothing is done or expected"),
        (step(r#"{"at": "0s", "expect": {"stat": "idle"}}"#), "nobody knows a field \"stat\""),
        (step(r#"{"at": "0s", "pause": {}}"#), "unknown variant `pause`"),
        (step(r#"{"at": "0s", "suspend": {"why": "x"}}"#), "unknown field `why`"),
        (step(r#"{"at": "0s", "suspend": {}, "close": {}}"#), "expected one verb"),
        (step(r#"{"at": "0s", "resume": {"handle": "h1"}}"#), "no handle has been called \"h1\""),
        (step(""), "a scenario has a name, a purpose and steps"),
    ] {
        let found = play_all(&text, 1).join("\n");
        assert!(found.contains(complaint), "{text}\nexpected: {complaint}\nfound: {found}");
    }
}

#[test]
fn a_failure_says_where_and_what() {
    let text = r#"{
        "name": "a mistake", "serves": ["SUS-24"],
        "script": {"runs": [[{"tool": {"name": "build", "ms": 800}}]]},
        "steps": [
            {"at": "0s", "prompt": "go", "expect": {"state": "working"}},
            {"at": "0.7s", "suspend": {}, "refused": {"reason": "HELD"}},
            {"at": "2s", "expect": {"state": "idle", "suspendedAt": "2s"}}
        ]
    }"#;
    let mut found = play_all(text, 1);
    found.retain(|line| !line.contains("the whole status is"));
    expect_test::expect![[r#"
        step 2 (at 0.7s): expected to be refused HELD, and was not
        step 3 (at 2s): state: expected "idle", found "suspended"
        step 3 (at 2s): suspendedAt: expected "2s", found "0.8s"
        timeline: expected 0, found 1: [{"suspended":{"handle":"suspend-03000000-0000-7000-8000-000000000006","initiator":"client","reason":null,"suspendedAt":"2026-11-16T09:00:00.800Z","resumeWhen":null}}]
        tools: expected {}, found {"build": 1}
        step 2 is too close to what happens at 800ms"#]]
    .assert_eq(&found.join("\n"));
}

/// Returns the place of every value that is expected.
fn places(scenario: &Value) -> Vec<String> {
    fn leaves(place: String, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (name, field) in fields {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    leaves(format!("{place}/{name}"), field, found);
                }
            }
            Value::Array(elements) if !elements.is_empty() => {
                // The list as a whole counts, too: an element more or less is a difference.
                found.push(place.clone());
                for (index, element) in elements.iter().enumerate() {
                    leaves(format!("{place}/{index}"), element, found);
                }
            }
            _ => found.push(place),
        }
    }
    let steps = scenario["steps"].as_array().unwrap().iter().enumerate();
    let steps = steps.map(|(index, step)| (format!("/steps/{index}"), step));
    let mut found = Vec::new();
    for (place, part) in steps.chain([(String::new(), scenario)]) {
        for name in EXPECTATIONS {
            if let Some(expected) = part.get(name) {
                leaves(format!("{place}/{name}"), expected, &mut found);
            }
        }
    }
    found
}

/// Returns a value that is as well-formed as `value`, and another.
fn other(place: &str, value: &Value) -> Value {
    let is_text = ["/refused/", "/said/", "/told/"].iter().any(|part| place.contains(part));
    match value {
        Value::Null | Value::Object(_) => Value::from("something"),
        Value::Bool(truth) => Value::from(!truth),
        Value::Number(number) => Value::from(number.as_u64().unwrap() + 1),
        Value::String(text) if is_text => Value::from(format!("{text}, or so")),
        Value::String(_) => Value::Null,
        Value::Array(elements) if place.ends_with("/told") => {
            Value::from([elements.as_slice(), &["something else".into()]].concat())
        }
        Value::Array(elements) => match elements.split_last() {
            Some((_, fewer)) => fewer.into(),
            None if place.ends_with("/timeline") => json!([{ "resumed": {} }]),
            None => json!(["something"]),
        },
    }
}
