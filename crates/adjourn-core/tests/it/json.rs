//! JSON from outside: what is accepted is readable for ever, and nothing overflows a stack.

use adjourn_core::command::Suspend;
use adjourn_core::driver::DriverSpec;
use adjourn_core::journal::Entry;
use adjourn_core::json::{Unreadable, check, read, split_last, stored, stored_list};
use adjourn_core::{Command, Founding, limits};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::world::{World, ann, founding};

const LIMIT: usize = 1024 * 1024;

/// A key that serde_json takes for itself, as text inside of a string.
const RAW: &str = "$serde_json::private::RawValue";

/// Lists and objects in one another, by turns as the bits of `kinds` say.
fn nested(depth: usize, kinds: u64) -> String {
    let is_list = |level: usize| kinds >> (level % 64) & 1 == 1;
    let mut text = String::new();
    for level in 0..depth {
        text += if is_list(level) { "[" } else { r#"{"k":"# };
    }
    text += "1";
    for level in (0..depth).rev() {
        text += if is_list(level) { "]" } else { "}" };
    }
    text
}

/// Returns a value that is `depth` deep when serde_json is done with it: texts of documents in one
/// another, each with a fresh limit.
fn smuggled(documents: usize, key: &str) -> String {
    let mut text = nested(100, u64::MAX);
    for _ in 0..documents {
        let inner = Value::String(text).to_string();
        text = nested(100, u64::MAX).replace('1', &format!(r#"{{"{key}":{inner}}}"#));
    }
    text
}

/// Every way a value can be stored: with a suspension, and with the session itself.
fn is_readable_when_stored(value: &Value) {
    let mut world = World::new();
    let suspend = Suspend { meta: Some(value.clone()), ..Suspend::default() };
    world.give(ann(), Command::Suspend(suspend)).unwrap();
    let (whole, short) = world.refold();
    assert_eq!(whole, short);
    let servers = vec![value.clone()];
    let driver = DriverSpec { mcp_servers: servers, ..DriverSpec::script("{}") };
    World::founded(Founding { driver, ..founding() }).refold();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_accepted_is_readable_at_every_depth(kinds in any::<u64>()) {
        for depth in 1..=200 {
            let text = nested(depth, kinds);
            match read::<Value>(text.as_bytes(), LIMIT) {
                Ok(value) => {
                    prop_assert!(depth <= limits::JSON_DEPTH);
                    is_readable_when_stored(&value);
                }
                Err(Unreadable::TooDeep { .. }) => prop_assert!(depth > limits::JSON_DEPTH),
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }

    /// The look over a text agrees with the parser about depth, strings and keys.
    #[test]
    fn any_value_that_is_not_deep_is_accepted(text in r#"[\[\]{}:,"\\ua$ 10]{0,24}"#) {
        let parsed = stored::<Value>(text.as_bytes()).ok();
        let read = read::<Value>(text.as_bytes(), LIMIT);
        prop_assert_eq!(parsed, read.ok());
    }
}

#[test]
fn a_refusal_says_what_is_wrong_and_where() {
    let deep = nested(70, u64::MAX);
    let refused = [
        (
            format!(r#"{{"params":{{"prompt":[7,{{"a":{deep}}}]}}}}"#),
            "params.prompt[1].a[0]…: nested deeper than 64 levels, at byte 88",
        ),
        (
            format!(r#"{{"a":[{{"{RAW}":"1"}}]}}"#),
            "a[0]: a key must not begin with \"$serde_json::private::\", at byte 7",
        ),
        (
            format!(r#"{{"a":1, "{RAW}" :"1"}}"#),
            "a key must not begin with \"$serde_json::private::\", at byte 8",
        ),
        (
            r#"{"$serde_json::private::Number":"1"}"#.to_owned(),
            "a key must not begin with \"$serde_json::private::\", at byte 1",
        ),
        (
            format!("[{}]", "0,".repeat(300_000)),
            "[262143]: more than 262144 values, at byte 524288",
        ),
        (format!("\"{}\"", "x".repeat(LIMIT)), "longer than 1048576 bytes"),
        ("{".to_owned(), "not JSON: it ends too early, in line 1"),
    ];
    for (text, expected) in refused {
        let error = read::<Value>(text.as_bytes(), LIMIT).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert!(expected.ends_with(&error.problem()) && expected.starts_with(error.path()));
    }
}

#[test]
fn a_private_name_is_found_however_it_is_escaped() {
    for (at, character) in RAW.char_indices() {
        let escaped = format!("\\u{:04X}", u32::from(character));
        let key = [&RAW[..at], &escaped, &RAW[at + 1..]].concat();
        let text = format!(r#"{{"{key}":"1"}}"#);
        // It is the key that it is taken for, or this would show nothing.
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!(1));
        assert!(matches!(check(text.as_bytes(), LIMIT), Err(Unreadable::Reserved { .. })), "{key}");
        assert!(stored::<Value>(text.as_bytes()).is_err(), "{key}");
    }
    let whole: String = RAW.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let text = format!(r#"{{"{whole}":"1"}}"#);
    assert!(check(text.as_bytes(), LIMIT).is_err());
    assert!(stored::<Value>(text.as_bytes()).is_err());
}

#[test]
fn words_about_a_private_name_are_not_one() {
    let value = json!({
        "text": RAW, "list": [RAW, format!("\"{RAW}\":")], "$ref": "#/x", "a\\": { "$": RAW },
        "\"": "\u{1b}", "serde_json::private::RawValue": 1, "$serde_json": 1,
    });
    let text = value.to_string();
    assert_eq!(read::<Value>(text.as_bytes(), LIMIT).unwrap(), value);
    assert_eq!(stored::<Value>(text.as_bytes()).unwrap(), value);
}

/// Fourteen documents of two hundred levels each: more than any thread's stack takes.
#[test]
fn what_an_older_program_stored_is_an_error_and_not_the_end() {
    let text = smuggled(12, RAW);
    assert!(text.len() < 300_000, "{}", text.len());
    assert!(check(text.as_bytes(), LIMIT).is_err());
    assert!(stored::<Value>(text.as_bytes()).is_err());
    let mut world = World::new();
    let suspend = Suspend { meta: Some(json!({ "x": "HERE" })), ..Suspend::default() };
    world.give(ann(), Command::Suspend(suspend)).unwrap();
    let entry = String::from_utf8(world.journal.last().unwrap().clone()).unwrap();
    let poisoned = entry.replace("\"HERE\"", &text);
    assert!(Entry::decode(poisoned.as_bytes()).is_err());
    let deep = entry.replace("\"HERE\"", &nested(123, 0));
    assert!(Entry::decode(deep.as_bytes()).is_err());
}

#[test]
fn the_objects_of_a_list_are_read_with_their_texts() {
    let list = r#"{"a":[1,{"b":"},{"}]},{},{"c" : 2}"#;
    let read = stored_list::<Value>(list, 0).unwrap();
    let texts: Vec<_> = read.iter().map(|(_, text)| *text).collect();
    assert_eq!(texts, [r#"{"a":[1,{"b":"},{"}]}"#, "{}", r#"{"c" : 2}"#]);
    for (value, text) in &read {
        assert_eq!(*value, stored::<Value>(text.as_bytes()).unwrap());
    }
    assert_eq!(stored_list::<Value>("", 0), Some(Vec::new()));
    let private = format!(r#"{{"{RAW}":"1"}}"#);
    for list in
        ["{},", ",{}", "{} ,{}", "{}, {}", " {}", "{} ", "{}{}", "1", "{},1", "{", "{}]", &private]
    {
        assert_eq!(stored_list::<Value>(list, 0), None, "{list}");
    }
}

#[test]
fn the_last_value_of_an_object_is_split_off() {
    assert_eq!(split_last(r#"{"a":1,"b":[2]}"#, r#","b":["#, "]}"), Some((r#"{"a":1"#, "2")));
    assert_eq!(split_last(r#"{"a":1,"b":[2]} "#, r#","b":["#, "]}"), None);
    assert_eq!(split_last(r#"{"a":1}"#, r#","b":["#, "]}"), None);
    // The end of one is not the end of the other.
    assert_eq!(split_last(r#","b":[}"#, r#","b":["#, "[}"), None);
}
