//! Conditions as a whole: what is accepted and echoed, what is refused and where, what is matched.

use std::iter;

use serde_json::{Value, json};

use super::*;

fn parse(value: &Value) -> Result<Option<Conditions>, Invalid> {
    Conditions::parse(value, Spelling::Camel)
}

fn read(value: &Value) -> Conditions {
    parse(value).unwrap().unwrap()
}

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Conditions that use every part of the grammar.
fn everything() -> Value {
    json!({
        "onEvent": "file.ch*ed:src/**",
        "trigger": {"any": [
            {"exact": {"id": "1", "source": "s", "name": "n", "subject": "", "time": "t"}},
            {"all": [{"prefix": {"name": "a.b"}}, {"not": {"suffix": {"subject": ".rs"}}}]},
            {"at": "2026-11-16T09:00:00+01:00[Europe/Berlin]"},
            {"any": [{"at": "2027-01-01T00:00:00Z"}]},
            {"provider": "github", "kind": "push", "match": {"events": ["push", "pull"]}},
        ]},
        "timeout": {
            "durationMinutes": 30,
            "onTimeout": "resume_with_input",
            "input": {"say": ["go on", 1.5, null]},
        },
        "since": 42,
    })
}

#[test]
fn what_is_accepted_is_echoed_as_it_was_given() {
    for value in [
        everything(),
        json!({"onEvent": "ci.passed"}),
        json!({"timeout": {"durationMinutes": 30}}),
        json!({"timeout": {"durationMinutes": 30.0}}),
        json!({"timeout": {"durationMinutes": 0.25, "onTimeout": "fail"}}),
        json!({"timeout": {"durationMinutes": 5_260_320, "onTimeout": "resume_with_summary"}}),
        json!({"timeout": {"durationMinutes": 1, "onTimeout": "resume_with_input"}}),
        json!({"timeout": {"durationMinutes": 1, "onTimeout": "resume_with_input", "input": 0}}),
        json!({"trigger": {"at": "2026-11-16 09:00:00.123456+01"}}),
        json!({"trigger": {"exact": {"name": ""}}}),
        json!({"trigger": {"prefix": {"subject": ""}}}),
        json!({"trigger": {"provider": "p", "kind": "k"}}),
        json!({"trigger": {"any": [{"any": [{"at": "2026-11-16T09:00:00Z"}]}]}}),
        json!({"since": 0}),
        json!({"since": u64::MAX}),
    ] {
        let conditions = read(&value);
        let echo = serde_json::to_string(&conditions).unwrap();
        assert_eq!(echo.parse::<Value>().unwrap(), value);
        assert_eq!(serde_json::from_str::<Conditions>(&echo).unwrap(), conditions);
    }
}

#[test]
fn null_is_absent_and_nothing_is_no_conditions() {
    for value in [
        json!(null),
        json!({}),
        json!({"onEvent": null, "trigger": null, "timeout": null, "since": null}),
        json!({"onEvnt": null}),
    ] {
        assert_eq!(parse(&value), Ok(None), "{value}");
        assert_eq!(Conditions::parse(&value, Spelling::Snake), Ok(None), "{value}");
        let stored: Conditions = serde_json::from_value(value).unwrap();
        assert_eq!(stored, Conditions::default());
    }
    assert_eq!(serde_json::to_value(Conditions::default()).unwrap(), json!({}));

    for (value, same) in [
        (
            json!({"onEvent": "a", "timeout": {"durationMinutes": 1, "onTimeout": null, "input": null}}),
            json!({"onEvent": "a", "timeout": {"durationMinutes": 1}}),
        ),
        (
            json!({"trigger": {"exact": {"name": "a", "subject": null}, "prefix": null, "kind": null}}),
            json!({"trigger": {"exact": {"name": "a"}}}),
        ),
        (
            json!({"trigger": {"provider": "p", "kind": "k", "match": {"events": []}}}),
            json!({"trigger": {"provider": "p", "kind": "k"}}),
        ),
        (
            json!({"trigger": {"provider": "p", "kind": "k", "match": {"events": null}}}),
            json!({"trigger": {"provider": "p", "kind": "k", "match": {}}}),
        ),
    ] {
        assert_eq!(read(&value), read(&same), "{value}");
        assert_eq!(
            serde_json::to_value(read(&value)).unwrap(),
            serde_json::to_value(read(&same)).unwrap()
        );
    }
}

#[test]
fn conditions_are_equal_by_what_they_mean() {
    let at = |text: &str| read(&json!({"trigger": {"at": text}}));
    assert_eq!(at("2026-11-16T09:00:00Z"), at("2026-11-16T10:00:00+01:00"));
    assert_ne!(at("2026-11-16T09:00:00Z"), at("2026-11-16T09:00:00.001Z"));
    let minutes = |minutes: Value| read(&json!({"timeout": {"durationMinutes": minutes}}));
    assert_eq!(minutes(json!(30)), minutes(json!(30.0)));
    assert_ne!(read(&json!({"onEvent": "a"})), read(&json!({"onEvent": "a", "since": 1})));
}

#[test]
fn either_spelling_has_only_its_own_names() {
    let snake = json!({
        "on_event": "ci.passed",
        "timeout": {"duration_minutes": 30, "on_timeout": "resume_with_input", "input": "go"},
    });
    let conditions = Conditions::parse(&snake, Spelling::Snake).unwrap().unwrap();
    assert_eq!(serde_json::to_value(conditions.spelled(Spelling::Snake)).unwrap(), snake);

    let camel = serde_json::to_value(&conditions).unwrap();
    assert_eq!(
        camel,
        json!({
            "onEvent": "ci.passed",
            "timeout": {"durationMinutes": 30, "onTimeout": "resume_with_input", "input": "go"},
        })
    );
    assert_eq!(read(&camel), conditions);

    for (value, spelling, refusal) in [
        (
            json!({"onEvent": "a"}),
            Spelling::Snake,
            "onEvent: unknown field, expected on_event, trigger, timeout or since",
        ),
        (
            json!({"on_event": "a"}),
            Spelling::Camel,
            "on_event: unknown field, expected onEvent, trigger, timeout or since",
        ),
        (
            json!({"timeout": {"durationMinutes": 1}}),
            Spelling::Snake,
            "timeout.durationMinutes: unknown field, expected duration_minutes, on_timeout or input",
        ),
        (
            json!({"timeout": {"duration_minutes": 1, "input": 1}}),
            Spelling::Snake,
            "timeout.input: expected only where on_timeout is resume_with_input",
        ),
    ] {
        let invalid = Conditions::parse(&value, spelling).unwrap_err();
        assert_eq!(invalid.to_string(), refusal);
    }
}

#[test]
fn what_is_refused_says_where_and_why() {
    const MINUTES: &str = "expected a positive number of minutes, at most 5260320";
    const OPERATOR: &str = "expected exactly one of exact, prefix, suffix, all, any, not, at or cron, \
                            or a provider with a kind";
    const ATTRIBUTE: &str = "id, source, name, subject or time";
    const AT: &str = "expected only by itself or in any: a point in time is not a property \
                      of an event";
    const TIME: &str = "expected a time with its offset, such as 2026-11-16T09:00:00Z, \
                        and no zone that disagrees";
    let at = json!({"at": "2026-11-16T09:00:00Z"});
    let cron = json!({"cron": "0 9 * * 1-5"});
    let name = json!({"exact": {"name": "a"}});

    for (value, refusal) in [
        (json!(true), "conditions: expected an object, got true".to_owned()),
        (json!([]), "conditions: expected an object, got a list".to_owned()),
        (json!("ci.passed"), "conditions: expected an object, got \"ci.passed\"".to_owned()),
        (
            json!({"cron": "* * * * *"}),
            "cron: unknown field, expected onEvent, trigger, timeout or since".to_owned(),
        ),
        (json!({"onEvent": 1}), "onEvent: expected a string, got 1".to_owned()),
        (
            json!({"onEvent": "*"}),
            "onEvent: expected a name whose first part has no star, got \"*\"".to_owned(),
        ),
        (json!({"since": -1}), "since: expected a non-negative integer, got -1".to_owned()),
        (json!({"since": 1.5}), "since: expected a non-negative integer, got 1.5".to_owned()),
        (json!({"since": "1"}), "since: expected a non-negative integer, got \"1\"".to_owned()),
        // Timeouts.
        (json!({"timeout": 30}), "timeout: expected an object, got 30".to_owned()),
        (json!({"timeout": {}}), format!("timeout.durationMinutes: {MINUTES}, got nothing")),
        (
            json!({"timeout": {"durationMinutes": "30"}}),
            format!("timeout.durationMinutes: {MINUTES}, got \"30\""),
        ),
        (
            json!({"timeout": {"durationMinutes": 0}}),
            format!("timeout.durationMinutes: {MINUTES}, got 0"),
        ),
        (
            json!({"timeout": {"durationMinutes": -0.5}}),
            format!("timeout.durationMinutes: {MINUTES}, got -0.5"),
        ),
        (
            json!({"timeout": {"durationMinutes": 5_260_320.000_001}}),
            format!("timeout.durationMinutes: {MINUTES}, got 5260320.000001"),
        ),
        (
            json!({"timeout": {"durationMinutes": u64::MAX}}),
            format!("timeout.durationMinutes: {MINUTES}, got 18446744073709551615"),
        ),
        (
            json!({"timeout": {"durationMinutes": f64::MAX}}),
            format!("timeout.durationMinutes: {MINUTES}, got {}", json!(f64::MAX)),
        ),
        (
            json!({"timeout": {"durationMinutes": 1, "onTimeout": "panic"}}),
            "timeout.onTimeout: expected resume_with_summary, resume_with_input or fail, got \"panic\""
                .to_owned(),
        ),
        (
            json!({"timeout": {"durationMinutes": 1, "input": "x"}}),
            "timeout.input: expected only where onTimeout is resume_with_input".to_owned(),
        ),
        (
            json!({"timeout": {"durationMinutes": 1, "onTimeout": "fail", "input": false}}),
            "timeout.input: expected only where onTimeout is resume_with_input".to_owned(),
        ),
        // Triggers.
        (json!({"trigger": "a"}), "trigger: expected an object, got \"a\"".to_owned()),
        (json!({"trigger": {}}), format!("trigger: {OPERATOR}")),
        (json!({"trigger": {"exact": null}}), format!("trigger: {OPERATOR}")),
        (
            json!({"trigger": {"exact": {"name": "a"}, "not": name}}),
            format!("trigger: {OPERATOR}"),
        ),
        (
            json!({"trigger": {"exact": {"name": "a"}, "provider": "p"}}),
            format!("trigger: {OPERATOR}"),
        ),
        (
            json!({"trigger": {"equals": {}}}),
            "trigger.equals: unknown field, expected exact, prefix, suffix, all, any, not, at, \
             cron, tz, provider, kind or match"
                .to_owned(),
        ),
        (
            json!({"trigger": {"exact": {}}}),
            format!("trigger.exact: expected at least one of {ATTRIBUTE}"),
        ),
        (
            json!({"trigger": {"prefix": {"name": null}}}),
            format!("trigger.prefix: expected at least one of {ATTRIBUTE}"),
        ),
        (
            json!({"trigger": {"suffix": {"type": "a"}}}),
            format!("trigger.suffix.type: unknown field, expected {ATTRIBUTE}"),
        ),
        (
            json!({"trigger": {"exact": {"name": "x".repeat(257)}}}),
            "trigger.exact.name: expected at most 256 bytes, got 257".to_owned(),
        ),
        (json!({"trigger": {"all": {}}}), "trigger.all: expected a list, got an object".to_owned()),
        (json!({"trigger": {"all": []}}), "trigger.all: expected at least one trigger".to_owned()),
        (json!({"trigger": {"any": []}}), "trigger.any: expected at least one trigger".to_owned()),
        (
            json!({"trigger": {"any": [name, null]}}),
            "trigger.any[1]: expected an object, got nothing".to_owned(),
        ),
        (
            json!({"trigger": {"any": [name, name, {"exact": {"name": 1}}]}}),
            "trigger.any[2].exact.name: expected a string, got 1".to_owned(),
        ),
        (json!({"trigger": {"not": []}}), "trigger.not: expected an object, got a list".to_owned()),
        (json!({"trigger": {"all": [name, at]}}), format!("trigger.all[1].at: {AT}")),
        (json!({"trigger": {"not": at}}), format!("trigger.not.at: {AT}")),
        (json!({"trigger": {"not": cron}}), format!("trigger.not.cron: {AT}")),
        (
            json!({"trigger": {"cron": "0 9 * *"}}),
            "trigger.cron: expected five fields (minute, hour, day of the month, month, day of the \
             week), got 4, such as \"0 9 * * 1-5\""
                .to_owned(),
        ),
        (
            json!({"trigger": {"at": "2026-11-16T09:00:00Z", "tz": "UTC"}}),
            "trigger.tz: expected only with cron".to_owned(),
        ),
        (
            json!({"trigger": {"cron": "0 9 * * *", "at": "2026-11-16T09:00:00Z"}}),
            "trigger.at: unknown field, expected cron or tz".to_owned(),
        ),
        (
            json!({"trigger": {"any": [at, {"all": [{"any": [name, at]}]}]}}),
            format!("trigger.any[1].all[0].any[1].at: {AT}"),
        ),
        (
            json!({"trigger": {"at": "tomorrow"}}),
            format!("trigger.at: {TIME}, got \"tomorrow\""),
        ),
        (
            json!({"trigger": {"at": "2026-11-16T09:00:00"}}),
            format!("trigger.at: {TIME}, got \"2026-11-16T09:00:00\""),
        ),
        (
            json!({"trigger": {"at": "2026-11-16T09:00:00[Europe/Berlin]"}}),
            format!("trigger.at: {TIME}, got \"2026-11-16T09:00:00[Europe/Berlin]\""),
        ),
        (json!({"trigger": {"at": 0}}), "trigger.at: expected a string, got 0".to_owned()),
        (
            json!({"trigger": {"at": "2".repeat(257)}}),
            "trigger.at: expected at most 256 bytes, got 257".to_owned(),
        ),
        // Harn's form.
        (
            json!({"trigger": {"provider": "p"}}),
            "trigger.kind: expected a string, got nothing".to_owned(),
        ),
        (
            json!({"trigger": {"match": {}}}),
            "trigger.provider: expected a string, got nothing".to_owned(),
        ),
        (
            json!({"trigger": {"provider": "", "kind": "k"}}),
            "trigger.provider: expected a name, got \"\"".to_owned(),
        ),
        (
            json!({"trigger": {"provider": "p", "kind": "k", "when": "x"}}),
            "trigger.when: unknown field, expected exact, prefix, suffix, all, any, not, at, \
             cron, tz, provider, kind or match"
                .to_owned(),
        ),
        (
            json!({"trigger": {"provider": "p", "kind": "k", "match": {"event": "x"}}}),
            "trigger.match.event: unknown field, expected events".to_owned(),
        ),
        (
            json!({"trigger": {"provider": "p", "kind": "k", "match": {"events": ["a", ""]}}}),
            "trigger.match.events[1]: expected a name, got \"\"".to_owned(),
        ),
    ] {
        let invalid = parse(&value).unwrap_err();
        assert_eq!(invalid.to_string(), refusal, "{value}");
        let stored = serde_json::from_value::<Conditions>(value).unwrap_err();
        assert_eq!(stored.to_string(), refusal);
    }
}

#[test]
fn a_zone_is_checked_when_it_is_given_and_not_again() {
    for (zone, given) in
        [("Europe/Berlin", true), ("Europe/London", false), ("Mars/Olympus", false)]
    {
        let value = json!({"trigger": {"at": format!("2026-11-16T09:00:00+01:00[{zone}]")}});
        assert_eq!(parse(&value).is_ok(), given, "{zone}");
        let stored: Conditions = serde_json::from_value(value.clone()).unwrap();
        let due = Due { at: time("2026-11-16T08:00:00Z"), why: DueWhy::At };
        assert_eq!(stored.next_due(Timestamp::default()), Some(due));
        assert_eq!(serde_json::to_value(&stored).unwrap(), value);
    }
}

#[test]
fn a_number_beyond_all_bounds_is_refused() {
    for minutes in ["1e400", "-1e400", "0e0", "1e308", &"9".repeat(400)] {
        let text = format!(r#"{{"timeout": {{"durationMinutes": {minutes}}}}}"#);
        assert!(serde_json::from_str::<Conditions>(&text).is_err(), "{minutes}");
    }
}

#[test]
fn triggers_match_by_attribute() {
    let event = EventView {
        id: "e-1",
        source: "github",
        name: "ci.build.completed",
        subject: Some("main"),
        time: time("2026-11-16T10:00:00+01:00"),
    };
    let bare = EventView { subject: None, ..event };
    let yes = json!({"exact": {"name": "ci.build.completed"}});
    let no = json!({"exact": {"name": "ci.build"}});

    for (trigger, matches, matches_bare) in [
        (yes.clone(), true, true),
        (no.clone(), false, false),
        (json!({"exact": {"id": "e-1", "source": "github", "subject": "main"}}), true, false),
        (json!({"exact": {"name": "ci.build.completed", "id": "e-2"}}), false, false),
        (json!({"exact": {"time": "2026-11-16T09:00:00.000Z"}}), true, true),
        (json!({"exact": {"time": "2026-11-16T10:00:00+01:00"}}), false, false),
        (json!({"prefix": {"time": "2026-11-16T09:"}}), true, true),
        (json!({"prefix": {"name": "ci.b", "source": "git"}}), true, true),
        (json!({"prefix": {"subject": ""}}), true, false),
        (json!({"suffix": {"name": ".completed"}}), true, true),
        (json!({"suffix": {"subject": ""}}), true, false),
        (json!({"not": {"exact": {"subject": "main"}}}), false, true),
        (json!({"not": {"prefix": {"subject": ""}}}), false, true),
        (json!({"all": [yes, yes]}), true, true),
        (json!({"all": [yes, no]}), false, false),
        (json!({"any": [no, yes]}), true, true),
        (json!({"any": [no, no]}), false, false),
        (json!({"not": no}), true, true),
        (json!({"at": "2026-11-16T09:00:00Z"}), false, false),
        (json!({"any": [yes, {"at": "2026-11-16T09:00:00Z"}]}), true, true),
        (json!({"provider": "github", "kind": "ci.build.completed"}), true, true),
        (json!({"provider": "gitlab", "kind": "ci.build.completed"}), false, false),
        (json!({"provider": "github", "kind": "ci"}), false, false),
        (
            json!({"provider": "github", "kind": "ci", "match": {"events": ["x", "ci.build.completed"]}}),
            true,
            true,
        ),
        (
            json!({"provider": "github", "kind": "ci.build.completed", "match": {"events": ["x"]}}),
            false,
            false,
        ),
    ] {
        let conditions = read(&json!({"trigger": trigger}));
        assert_eq!(conditions.matches(event), matches, "{trigger}");
        assert_eq!(conditions.matches(bare), matches_bare, "{trigger} without subject");
    }
}

#[test]
fn any_part_of_the_conditions_is_enough() {
    let conditions = read(&json!({"onEvent": "a.*:x", "trigger": {"suffix": {"name": ".z"}}}));
    let event =
        |name, subject| EventView { id: "", source: "", name, subject, time: Timestamp::default() };
    assert!(conditions.matches(event("a.b", Some("x"))));
    assert!(conditions.matches(event("q.z", None)));
    assert!(!conditions.matches(event("a.b", Some("y"))));
    assert!(!read(&json!({"since": 1})).matches(event("a", None)));
    assert!(!read(&json!({"timeout": {"durationMinutes": 1}})).matches(event("a", None)));
}

#[test]
fn the_first_deadline_is_due() {
    let committed_at = time("2026-11-16T09:00:00Z");
    let at = |minute: u32| json!({"at": format!("2026-11-16T09:{minute:02}:00Z")});
    let name = json!({"exact": {"name": "a"}});
    for (value, due) in [
        (json!({"onEvent": "a"}), None),
        (json!({"trigger": name}), None),
        (json!({"timeout": {"durationMinutes": 10}}), Some((10, DueWhy::Timeout))),
        (json!({"trigger": at(5)}), Some((5, DueWhy::At))),
        (
            json!({"trigger": {"cron": "3-59/5 10 * * *", "tz": "Europe/Berlin"}}),
            Some((3, DueWhy::At)),
        ),
        (json!({"trigger": {"any": [at(7), {"cron": "4 * * * *"}]}}), Some((4, DueWhy::At))),
        (
            json!({"trigger": {"any": [at(7), name, {"any": [at(6), at(8)]}]}}),
            Some((6, DueWhy::At)),
        ),
        (json!({"trigger": at(5), "timeout": {"durationMinutes": 4}}), Some((4, DueWhy::Timeout))),
        (json!({"trigger": at(5), "timeout": {"durationMinutes": 6}}), Some((5, DueWhy::At))),
        (json!({"trigger": at(5), "timeout": {"durationMinutes": 5}}), Some((5, DueWhy::At))),
    ] {
        let due = due
            .map(|(minute, why)| Due { at: time(&format!("2026-11-16T09:{minute:02}:00Z")), why });
        assert_eq!(read(&value).next_due(committed_at), due, "{value}");
    }

    let past = read(&json!({"trigger": {"at": "1969-12-31T23:59:59Z"}}));
    assert_eq!(past.next_due(committed_at).unwrap().at, Timestamp::from_millis(-1_000));
    let never = read(&json!({"timeout": {"durationMinutes": 5_260_320}}));
    assert_eq!(never.next_due(Timestamp::from_millis(i64::MAX)).unwrap().at.as_millis(), i64::MAX);
}

#[test]
fn conditions_have_a_size() {
    // The texts are chosen so that what is written is longer than what is held.
    for (unit, written) in [("x", 1), ("\n", 2), ("\u{1}", 6), ("é", 2)] {
        let value = |units: usize, rest: usize| {
            let text = unit.repeat(units) + &"x".repeat(rest);
            json!({"trigger": {"exact": {"subject": text}}})
        };
        let room = MAX_BYTES - value(0, 0).to_string().len();
        let (units, rest) = (room / written, room % written);
        assert!(parse(&value(units, rest)).is_ok());
        let invalid = parse(&value(units, rest + 1)).unwrap_err();
        assert_eq!(invalid.to_string(), "conditions: expected at most 16384 bytes of json");
    }
}

#[test]
fn conditions_have_a_depth() {
    let nested = |levels: usize| {
        iter::repeat_n((), levels)
            .fold(json!({"exact": {"name": "a"}}), |inner, ()| json!({"not": inner}))
    };
    assert!(parse(&json!({"trigger": nested(13)})).is_ok());
    let invalid = parse(&json!({"trigger": nested(14)})).unwrap_err();
    assert_eq!(invalid.path, format!("trigger{}.exact", ".not".repeat(14)));
    assert_eq!(invalid.problem, "expected at most 16 levels of nesting");

    let timeout = |input: Value| {
        let action = "resume_with_input";
        json!({"timeout": {"durationMinutes": 1, "onTimeout": action, "input": input}})
    };
    let list = |levels| iter::repeat_n((), levels).fold(json!(1), |inner, ()| json!([inner]));
    assert!(parse(&timeout(list(14))).is_ok());
    let invalid = parse(&timeout(list(15))).unwrap_err();
    assert_eq!(invalid.path, format!("timeout.input{}", "[0]".repeat(14)));
}

/// A value this deep can be dropped only with a stack to match, which is for its owner to have.
#[test]
fn bottomless_conditions_are_refused() {
    let object = |name: &str, value| Value::Object(iter::once((name.to_owned(), value)).collect());
    let refuse = move || {
        for name in ["not", "any", "all", "input"] {
            let mut value = Value::Null;
            for level in 0..10_000 {
                let list = level % 2 == 0 && name != "not";
                value = if list { Value::Array(vec![value]) } else { object(name, value) };
            }
            let invalid = parse(&object("trigger", value)).unwrap_err();
            assert_eq!(invalid.problem, "expected at most 16 levels of nesting");
            assert!(invalid.path.starts_with(&format!("trigger.{name}")));
        }
    };
    std::thread::Builder::new().stack_size(64 << 20).spawn(refuse).unwrap().join().unwrap();
}

#[test]
fn huge_conditions_are_refused_in_few_words() {
    let huge = "\u{202e}\u{7}é".repeat(2 << 20);
    for value in [
        json!(huge),
        json!({ &huge: 1 }),
        json!({"onEvent": huge}),
        json!({"trigger": {"exact": {"subject": huge}}}),
        json!({"trigger": {"exact": {&huge: "x"}}}),
        json!({"trigger": {"any": vec![json!({"exact": {"name": "a"}}); 100_000]}}),
        json!({"since": vec![0; 1_000_000]}),
        json!({"timeout": {"durationMinutes": huge}}),
    ] {
        let invalid = parse(&value).unwrap_err();
        assert!(invalid.to_string().chars().count() < 1_000);
    }

    // Just below the limit each field judges for itself.
    let large = "\u{7}".repeat(2_000);
    for value in [
        json!({ &large: 1 }),
        json!({"onEvent": large}),
        json!({"trigger": {&large: {}}}),
        json!({"trigger": {"at": large}}),
        json!({"timeout": {"durationMinutes": large}}),
        json!({"since": large}),
    ] {
        let invalid = parse(&value).unwrap_err();
        assert!(invalid.to_string().len() < 600, "{invalid}");
        assert!(!invalid.to_string().contains('\u{7}'));
    }
}

/// Returns the path to every value in `value`, as a refusal spells it and as a pointer.
fn places(value: &Value, path: &str, pointer: &str, out: &mut Vec<(String, String)>) {
    out.push((path.to_owned(), pointer.to_owned()));
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                places(element, &format!("{path}[{index}]"), &format!("{pointer}/{index}"), out);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                places(field, &format!("{path}{dot}{name}"), &format!("{pointer}/{name}"), out);
            }
        }
        _ => {}
    }
}

#[test]
fn a_wrong_type_is_refused_wherever_it_stands() {
    let replacements = [
        json!(null),
        json!(true),
        json!(7),
        json!(-7.5),
        json!("text"),
        json!([7]),
        json!({"x": 7}),
    ];
    let mut all = Vec::new();
    places(&everything(), "", "", &mut all);
    for (path, pointer) in all {
        let anything_goes = path.starts_with("timeout.input");
        for replacement in &replacements {
            let mut value = everything();
            let place = value.pointer_mut(&pointer).unwrap();
            let same_type = std::mem::discriminant(place) == std::mem::discriminant(replacement);
            *place = replacement.clone();
            match parse(&value) {
                Ok(_) => assert!(
                    anything_goes || same_type || replacement.is_null(),
                    "{path} = {replacement} is accepted"
                ),
                // What is missing may be noticed by its parent, or by a sibling that relies on it.
                Err(invalid) if replacement.is_null() => {
                    let parent = path.trim_end_matches(|c| c != '.' && c != '[');
                    let parent = parent.trim_end_matches(['.', '[']);
                    assert!(invalid.path.starts_with(parent), "{path}: {invalid}");
                }
                Err(invalid) => {
                    assert!(!anything_goes);
                    assert!(invalid.path.starts_with(&path), "{path} = {replacement}: {invalid}");
                }
            }
        }
    }
}
