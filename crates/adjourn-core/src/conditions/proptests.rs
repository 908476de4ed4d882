//! Conditions and events made at random: nothing panics, nothing is lost, every match is found.

use std::cell::Cell;

use proptest::collection::{btree_map, hash_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Number, Value, json};

use super::*;

const TIME: Timestamp = Timestamp::from_millis(1_000);

fn parse(value: &Value) -> Result<Option<Conditions>, Invalid> {
    Conditions::parse(value, Spelling::Camel)
}

/// Makes JSON of every shape, out of words that mean something here and words that do not.
fn json_of_any_shape() -> impl Strategy<Value = Value> {
    let word = || {
        prop_oneof![
            8 => select(vec![
                "onEvent", "on_event", "trigger", "timeout", "since", "durationMinutes", "onTimeout",
                "input", "exact", "prefix", "suffix", "all", "any", "not", "at", "cron", "tz", "provider",
                "kind", "match", "events", "name", "subject", "time", "fail", "resume_with_input",
                "ci.passed", "a.*:b/**", "2026-11-16T09:00:00Z", "0 9 * * 1-5", "Europe/Berlin",
            ]).prop_map(str::to_owned),
            1 => any::<String>(),
        ]
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (1..100).prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(20, 60, 4, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => hash_map(word(), inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn pattern_text() -> impl Strategy<Value = String> {
    "[a-zé]{1,3}([.]([a-z]{1,3}|[*]{1,2}|ch[*]ed)){0,3}(:[^\\p{Cc}*]{1,6}([*]{1,2})?)?"
}

/// Makes triggers that are well formed, with points in time where they are allowed.
fn trigger_json() -> impl Strategy<Value = Value> {
    let attribute = select(Attribute::ALL.map(Attribute::as_str).to_vec());
    let texts = hash_map(attribute, "\\PC{0,5}", 1..4).prop_map(|texts| json!(texts));
    let name = || "[a-z.*\u{1f}]{1,5}";
    let leaf = prop_oneof![
        3 => (select(vec!["exact", "prefix", "suffix"]), texts)
            .prop_map(|(operator, texts)| json!({operator: texts})),
        1 => (name(), name())
            .prop_map(|(provider, kind)| json!({"provider": provider, "kind": kind})),
        1 => (name(), name(), vec(name(), 1..3)).prop_map(|(provider, kind, events)| {
            json!({"provider": provider, "kind": kind, "match": {"events": events}})
        }),
    ];
    let plain = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..4).prop_map(|list| json!({"all": list})),
            vec(inner.clone(), 1..4).prop_map(|list| json!({"any": list})),
            inner.prop_map(|inner| json!({"not": inner})),
        ]
    });
    let time = (0_u32..253_402_000).prop_map(|kiloseconds| {
        let time = Timestamp::from_millis(i64::from(kiloseconds) * 1_000_000);
        json!({"at": time.to_string().replace("0Z", "+00:00")})
    });
    let again = (0_u32..60, select(vec!["UTC", "Europe/Berlin"]))
        .prop_map(|(minute, zone)| json!({"cron": format!("{minute} 9 * * 1-5"), "tz": zone}));
    prop_oneof![plain, time, again]
        .prop_recursive(2, 6, 3, |inner| vec(inner, 1..4).prop_map(|list| json!({"any": list})))
}

fn timeout_json() -> impl Strategy<Value = Value> {
    let minutes = prop_oneof![
        (1..=5_260_320_u32).prop_map(Number::from),
        (f64::MIN_POSITIVE..=5_260_320.0).prop_map(|minutes| Number::from_f64(minutes).unwrap()),
    ];
    let action = option::of(select(OnTimeout::ALL.map(OnTimeout::as_str).to_vec()));
    (minutes, action, json_of_any_shape()).prop_map(|(minutes, action, input)| {
        let mut fields = Map::new();
        fields.insert("durationMinutes".to_owned(), Value::Number(minutes));
        if let Some(action) = action {
            fields.insert("onTimeout".to_owned(), json!(action));
        }
        if action == Some("resume_with_input") && !input.is_null() {
            fields.insert("input".to_owned(), input);
        }
        Value::Object(fields)
    })
}

fn conditions_json() -> impl Strategy<Value = Value> {
    let parts = (
        option::of(pattern_text().prop_map(Value::from)),
        option::of(trigger_json()),
        option::of(timeout_json()),
        option::of(any::<u64>().prop_map(Value::from)),
    );
    parts.prop_map(|(on_event, trigger, timeout, since)| {
        let fields =
            [("onEvent", on_event), ("trigger", trigger), ("timeout", timeout), ("since", since)];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(given.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn any_json_is_read_or_refused_with_its_path(value in json_of_any_shape()) {
        for spelling in [Spelling::Camel, Spelling::Snake] {
            match (Conditions::parse(&value, spelling), value.as_object()) {
                (Ok(None), fields) => {
                    prop_assert!(fields.is_none_or(|fields| fields.values().all(Value::is_null)));
                }
                (Ok(Some(conditions)), _) => {
                    prop_assert_ne!(&conditions, &Conditions::default());
                    let echo = serde_json::to_value(&conditions).unwrap();
                    prop_assert_eq!(parse(&echo), Ok(Some(conditions)));
                }
                (Err(invalid), Some(fields)) => {
                    // Only its size could be the fault of the whole, and none here is that large.
                    let place = fields.keys().any(|name| {
                        invalid.path.starts_with(&Invalid::new("").in_field(name).path)
                    });
                    prop_assert!(place, "{}", invalid);
                    prop_assert!(!invalid.problem.is_empty());
                }
                (Err(invalid), None) => prop_assert_eq!(invalid.path, ""),
            }
        }
    }

    #[test]
    fn any_trigger_and_timeout_is_read_or_refused(value in json_of_any_shape()) {
        for name in ["trigger", "timeout"] {
            if let Err(invalid) = parse(&json!({name: &value})) {
                prop_assert!(invalid.path.starts_with(name));
            }
        }
    }

    #[test]
    fn what_is_read_is_written_as_it_was_given(value in conditions_json()) {
        // Deep inputs are for the test above; they are the only way for these to be refused.
        if let Ok(Some(conditions)) = parse(&value) {
            prop_assert_eq!(&serde_json::to_value(&conditions).unwrap(), &value);
            let stored: Conditions = serde_json::from_value(value).unwrap();
            prop_assert_eq!(&stored, &conditions);
            let snake = serde_json::to_value(conditions.spelled(Spelling::Snake)).unwrap();
            prop_assert_eq!(Conditions::parse(&snake, Spelling::Snake), Ok(Some(conditions)));
        } else {
            let refused = parse(&value).err().map(|invalid| invalid.path).unwrap_or_default();
            prop_assert!(refused.is_empty() || refused.starts_with("timeout.input"), "{}", value);
        }
    }

    #[test]
    fn reading_and_matching_take_any_event(
        value in conditions_json(),
        (id, source, name) in any::<(String, String, String)>(),
        subject in option::of(any::<String>()),
        millis in any::<i64>(),
    ) {
        if let Ok(Some(conditions)) = parse(&value) {
            let time = Timestamp::from_millis(millis);
            let subject = subject.as_deref();
            let event = EventView { id: &id, source: &source, name: &name, subject, time };
            let found = conditions.keys().iter().any(|key| event_keys(event).contains(key));
            prop_assert!(found || !conditions.matches(event));
            conditions.next_due(time);
        }
    }
}

/// Makes names and subjects of few characters, well formed or not, so that they often agree.
fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[ab]([.][ab]){0,3}", "[ab.*:/\u{1f}]{0,5}", any::<String>(),]
}

/// Makes triggers of every shape, also of those that cannot be read, around the texts of an event.
fn trigger(name: String, subject: Option<String>) -> impl Strategy<Value = Trigger> {
    let texts = vec![name, subject.unwrap_or_default(), "a".to_owned()];
    let whole = prop_oneof![3 => select(texts.clone()), 1 => text()];
    let cut = (select(texts), any::<Index>()).prop_map(|(text, at)| {
        let cuts: Vec<_> = text.char_indices().map(|(cut, _)| cut).chain([text.len()]).collect();
        text.split_at(*at.get(&cuts)).0.to_owned()
    });
    let tail = prop_oneof![Just(String::new()), text()];
    let attribute = || {
        prop_oneof![
            4 => Just(Attribute::Name),
            2 => Just(Attribute::Subject),
            1 => select(Attribute::ALL.to_vec()),
        ]
    };
    let leaf = prop_oneof![
        4 => btree_map(attribute(), whole.clone(), 0..3).prop_map(Trigger::Exact),
        4 => btree_map(attribute(), cut, 0..3).prop_map(Trigger::Prefix),
        2 => btree_map(attribute(), tail, 0..3).prop_map(Trigger::Suffix),
        2 => (whole.clone(), vec(whole, 0..3)).prop_map(|(kind, events)| {
            Trigger::Harn { provider: "a".to_owned(), kind, events }
        }),
        1 => Just(Trigger::At(At::new(TIME))),
        1 => Just(Trigger::read(&json!({"cron": "* * * * *"}), Origin::Outside).unwrap()),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Trigger::All),
            vec(inner.clone(), 0..4).prop_map(Trigger::Any),
            inner.prop_map(|inner| Trigger::Not(Box::new(inner))),
        ]
    })
}

/// Makes patterns, often ones of the texts of an event with stars put in.
fn pattern(
    name: &str,
    subject: Option<&str>,
) -> impl Strategy<Value = Option<EventPattern>> + use<> {
    let event = match subject {
        Some(subject) => format!("{name}:{subject}"),
        None => name.to_owned(),
    };
    let starred = (Just(event), vec((any::<Index>(), select(vec!["*", "**"])), 0..3)).prop_map(
        |(text, stars)| {
            let mut chars: Vec<_> = text.chars().map(String::from).collect();
            for (at, star) in stars {
                if !chars.is_empty() {
                    let at = at.index(chars.len());
                    chars[at] = star.to_owned();
                }
            }
            chars.concat()
        },
    );
    prop_oneof![starred, "[ab]([.]([ab]|[*]{1,2}|a[*])){0,3}(:[ab/*]{1,3})?"]
        .prop_map(|text| text.parse().ok())
}

proptest! {
    #[test]
    fn triggers_that_a_pattern_is_about_lie_where_it_leads(
        (trigger, on_event, pattern) in (text(), option::of(text())).prop_flat_map(|(name, subject)| {
            let pattern = || pattern(&name, subject.as_deref());
            (trigger(name.clone(), subject.clone()), pattern(), pattern())
        }),
    ) {
        let conditions = Conditions { on_event, trigger: Some(trigger), ..Conditions::default() };
        if let Some(pattern) = pattern.filter(|pattern| conditions.are_about(pattern)) {
            let leads = keys_about(&pattern).into_iter().any(|range| {
                conditions.keys().iter().any(|key| match &range {
                    KeyRange::Only(only) => only == key,
                    KeyRange::Beginning(beginning) => key.as_str().starts_with(beginning),
                })
            });
            prop_assert!(leads, "{} does not lead to {:?}", pattern, conditions);
        }
    }
}

#[test]
fn conditions_that_match_an_event_share_a_key_with_it() {
    let cases = (text(), option::of(text())).prop_flat_map(|(name, subject)| {
        let trigger = option::of(trigger(name.clone(), subject.clone()));
        let pattern = pattern(&name, subject.as_deref());
        (Just(name), Just(subject), pattern, trigger)
    });
    let (total, matched, selective) = (4_000, Cell::new(0), Cell::new(0));
    let config = Config { source_file: Some(file!()), ..Config::with_cases(total) };
    TestRunner::new(config)
        .run(&cases, |(name, subject, on_event, trigger)| {
            let conditions = Conditions { on_event, trigger, ..Conditions::default() };
            let subject = subject.as_deref();
            let event = EventView { id: "1", source: "a", name: &name, subject, time: TIME };
            if let Some(trigger) = conditions.trigger.as_ref().filter(|one| one.matches(event)) {
                // Whatever is known of the event, what matches it is not ruled out.
                prop_assert!(trigger.may_match(&name, subject), "{:?}", trigger);
                prop_assert!(trigger.may_match(&name, None), "{:?}", trigger);
            }
            if conditions.matches(event) {
                let (waits, looks) = (conditions.keys(), event_keys(event));
                prop_assert!(
                    waits.iter().any(|key| looks.contains(key)),
                    "{:?} {:?}",
                    waits,
                    looks
                );
                matched.set(matched.get() + 1);
                selective.set(selective.get() + u32::from(!waits[0].is_any()));
            }
            Ok(())
        })
        .unwrap();
    // The law says nothing about conditions that match nothing, and little about `*`.
    assert!(matched.get() > total / 5, "{matched:?} of {total}");
    assert!(selective.get() > total / 20, "{selective:?} of {total}");
}
