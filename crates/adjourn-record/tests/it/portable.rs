//! Portable records: through any JSON store and back, and nothing else than what was sealed.

use std::fmt::Write as _;
use std::time::Duration;

use adjourn_core::time::Timestamp;
use adjourn_record::keys::{Keys, Revocation};
use adjourn_record::portable::{DEFAULT_MAX_AGE, Header, Limit, OpenError, Record, SealError};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value};

use crate::fixtures::{NOW, key, session};

fn header() -> Header {
    Header {
        tenant: "acme".to_owned(),
        session: session(1),
        run: Some("run-019abf6b-7d51-7c1d-bb02-0123456789ac".parse().unwrap()),
        handle: "suspend-019abf6b-7d51-7c1d-bb02-0123456789ad".parse().unwrap(),
        suspended_at: NOW,
        expires_at: Some(later(3_600_000)),
    }
}

fn later(millis: i64) -> Timestamp {
    Timestamp::from_millis(NOW.as_millis() + millis)
}

fn seal(header: &Header, payload: &str) -> Record {
    Record::seal(&key(1), header, payload.to_owned()).unwrap()
}

fn sample() -> Record {
    seal(&header(), r#"{"messages":["Grüße \"park\" \ud83d\ude80","a\nb"],"cost":0.25}"#)
}

fn keys() -> Keys {
    Keys::only(key(1))
}

fn members(record: &Record) -> Map<String, Value> {
    let Value::Object(members) = serde_json::to_value(record).unwrap() else {
        panic!("a record is an object");
    };
    members
}

/// Reads and opens an envelope with these members, as the tests' resumer.
fn open(members: &Map<String, Value>) -> Result<String, OpenError> {
    open_text(&serde_json::to_string(members).unwrap())
}

fn open_text(text: &str) -> Result<String, OpenError> {
    let record: Record = text.parse()?;
    record.open(&keys(), NOW, Some(DEFAULT_MAX_AGE)).map(|opened| opened.payload.to_owned())
}

/// Writes members as some JSON store might: in any order, with any white space and any escapes.
fn rewrite(members: &Map<String, Value>, order: &[Index], choices: &[Index]) -> String {
    let mut left: Vec<_> = members.iter().collect();
    let mut choices = choices.iter().cycle();
    let mut choose = |out_of: usize| choices.next().unwrap().index(out_of);
    let spaces = ["", " ", "\n  ", "\t", "\r\n"];
    let mut text = String::from("{");
    for (n, at) in order.iter().cycle().take(left.len()).enumerate() {
        let (name, value) = left.remove(at.index(left.len()));
        let comma = if n == 0 { "" } else { "," };
        let colon = spaces[choose(spaces.len())];
        write!(text, "{comma}{}\"{name}\"{colon}:", spaces[choose(spaces.len())]).unwrap();
        match value {
            Value::String(value) => {
                text.push('"');
                for character in value.chars() {
                    if choose(2) == 0 || character < ' ' || matches!(character, '"' | '\\') {
                        for unit in character.encode_utf16(&mut [0; 2]) {
                            if choose(2) == 0 {
                                write!(text, "\\u{unit:04x}").unwrap();
                            } else {
                                write!(text, "\\u{unit:04X}").unwrap();
                            }
                        }
                    } else {
                        text.push(character);
                    }
                }
                text.push('"');
            }
            other => write!(text, "{other}").unwrap(),
        }
    }
    text + "}\n"
}

proptest! {
    #[test]
    fn a_record_survives_any_json_store(
        tenant in "[^\0]{0,20}",
        payload in "[^\0]{0,200}",
        idle: bool,
        order in vec(any::<Index>(), 1..10),
        choices in vec(any::<Index>(), 1..64),
    ) {
        let mut header = Header { tenant, ..header() };
        if idle {
            (header.run, header.expires_at) = (None, None);
        }
        let record = seal(&header, &payload);
        let stored = rewrite(&members(&record), &order, &choices);
        let back: Record = stored.parse().unwrap();
        prop_assert_eq!(&back, &record, "{}", stored);
        let opened = back.open(&keys(), NOW, Some(DEFAULT_MAX_AGE)).unwrap();
        prop_assert_eq!((opened.header, opened.payload), (header, &*payload));
        prop_assert_eq!(opened.key, key(1).id());
    }

    #[test]
    fn any_other_payload_or_tenant_is_refused(
        payload in "[^\0]{0,60}",
        other in "[^\0]{0,60}",
    ) {
        prop_assume!(payload != other);
        for member in ["payload", "tenant"] {
            let record = seal(&Header { tenant: payload.clone(), ..header() }, &payload);
            let mut members = members(&record);
            members.insert(member.to_owned(), other.clone().into());
            let mismatch = OpenError::TokenMismatch { key: key(1).id() };
            prop_assert_eq!(open(&members), Err(mismatch));
        }
    }
}

#[test]
fn a_round_trip_through_a_parsed_value_keeps_the_record() {
    let record = sample();
    let value: Value = serde_json::from_str(&record.to_string()).unwrap();
    for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
        assert_eq!(text.parse::<Record>().unwrap(), record);
        assert!(open_text(&text).is_ok());
    }
}

#[test]
fn a_changed_character_in_any_member_is_found() {
    let members = members(&sample());
    assert!(open(&members).is_ok());
    let mut tried = 0;
    for (name, value) in &members {
        let Some(text) = value.as_str() else { continue };
        let characters: Vec<char> = text.chars().collect();
        for at in 0..characters.len() {
            let mut variants: Vec<Vec<char>> = Vec::new();
            let swapped_case: Vec<char> = if characters[at].is_lowercase() {
                characters[at].to_uppercase().collect()
            } else {
                characters[at].to_lowercase().collect()
            };
            let next = char::from_u32(characters[at] as u32 + 1).unwrap();
            for other in ['0', 'f', ' ', 'é', '\u{1f680}', next].into_iter().chain(swapped_case) {
                if other != characters[at] {
                    let mut variant = characters.clone();
                    variant[at] = other;
                    variants.push(variant);
                }
                let mut variant = characters.clone();
                variant.insert(at, other);
                variants.push(variant);
            }
            let mut variant = characters.clone();
            variant.remove(at);
            variants.push(variant);
            for variant in variants {
                let variant: String = variant.into_iter().collect();
                let mut changed = members.clone();
                changed.insert(name.clone(), variant.clone().into());
                assert!(open(&changed).is_err(), "{name}: {variant}");
                tried += 1;
            }
        }
    }
    assert!(tried > 5000, "{tried}");
}

#[test]
fn a_flipped_bit_anywhere_in_the_text_is_found() {
    let text = sample().to_string();
    for bit in 0..text.len() * 8 {
        let mut bytes = text.clone().into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(changed) = String::from_utf8(bytes) {
            assert!(open_text(&changed).is_err(), "{changed}");
        }
    }
}

#[test]
fn members_cannot_be_missing_added_repeated_exchanged_or_of_another_type() {
    let members = members(&sample());
    for name in members.keys() {
        let mut fewer = members.clone();
        fewer.remove(name);
        assert!(open(&fewer).is_err(), "without {name}");
        for other in [Value::Null, 1.into(), 2.into(), 1.5.into(), "1".into(), "".into()] {
            if members[name] != other {
                let mut changed = members.clone();
                changed.insert(name.clone(), other.clone());
                assert!(open(&changed).is_err(), "{name}: {other}");
            }
        }
        for other in members.keys().filter(|other| *other != name) {
            let mut exchanged = members.clone();
            exchanged.insert(name.clone(), members[other].clone());
            exchanged.insert(other.clone(), members[name].clone());
            assert!(open(&exchanged).is_err(), "{name} and {other}");
        }
        let repeated = format!("{{\"{name}\":{},{}", members[name], &sample().to_string()[1..]);
        assert!(open_text(&repeated).is_err(), "{repeated}");
    }
    let mut more = members;
    more.insert("note".to_owned(), "unsigned".into());
    assert!(matches!(open(&more), Err(OpenError::Malformed { member: "envelope", .. })));
}

#[test]
fn a_missing_member_and_null_are_the_same() {
    let idle = Header { run: None, expires_at: None, ..header() };
    let mut members = members(&seal(&idle, "{}"));
    assert!(!members.contains_key("run") && !members.contains_key("expiresAt"));
    members.insert("run".to_owned(), Value::Null);
    members.insert("expiresAt".to_owned(), Value::Null);
    assert_eq!(open(&members).as_deref(), Ok("{}"));
    members.insert("run".to_owned(), "".into());
    assert_eq!(open(&members), Err(OpenError::TokenMismatch { key: key(1).id() }));
}

#[test]
fn the_record_does_not_contain_the_secrets() {
    let text = sample().to_string();
    for secret in ["01".repeat(32), "02".repeat(32)] {
        assert!(!text.contains(&secret));
    }
}

#[test]
fn every_sealing_gives_another_token() {
    let tokens: Vec<_> = (0..3).map(|_| members(&sample())["token"].clone()).collect();
    assert!(tokens[0] != tokens[1] && tokens[1] != tokens[2] && tokens[0] != tokens[2]);
    let token = tokens[0].as_str().unwrap();
    let (nonce, digest) = token.split_once('.').unwrap();
    let is_hex = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    assert!(nonce.len() == 32 && digest.len() == 64 && is_hex(nonce) && is_hex(digest));
}

#[test]
fn only_holders_of_the_secret_open_a_record() {
    let record = sample();
    let (id, open) = (key(1).id(), |keys: &Keys| record.open(keys, NOW, None).map(|_| ()));
    assert_eq!(open(&Keys::only(key(3))), Err(OpenError::UnknownKey { key: id }));
    assert_eq!(open(&Keys::ephemeral(NOW).unwrap()), Err(OpenError::UnknownKey { key: id }));
    assert_eq!(open(&Keys::only(key(3)).accepting(key(1), None)), Ok(()));

    // The same signing secret, hence the same id, with another sealing secret.
    let half = adjourn_record::keys::Key::from_secrets(NOW, &[1; 32], &[9; 32]);
    assert_eq!(half.id(), id);
    assert_eq!(open(&Keys::only(half)), Err(OpenError::TokenMismatch { key: id }));
}

#[test]
fn a_revoked_key_opens_nothing() {
    let revocation = Revocation { at: NOW, reason: "laptop lost".to_owned() };
    let keys = Keys::only(key(3)).accepting(key(1), Some(revocation.clone()));
    let refused = OpenError::RevokedKey { key: key(1).id(), revocation };
    assert_eq!(sample().open(&keys, NOW, None), Err(refused));

    // What was changed is not even genuine, and that is what is said of it.
    let mut changed = members(&sample());
    changed.insert("tenant".to_owned(), "other".into());
    let changed: Record = serde_json::from_value(changed.into()).unwrap();
    let mismatch = OpenError::TokenMismatch { key: key(1).id() };
    assert_eq!(changed.open(&keys, NOW, None), Err(mismatch));
}

#[test]
fn the_age_is_the_resumers_to_choose() {
    let record = seal(&Header { expires_at: None, ..header() }, "{}");
    let open = |now, max_age| record.open(&keys(), now, max_age).map(|_| ());
    let day = 86_400_000;
    assert_eq!(DEFAULT_MAX_AGE, Duration::from_millis(86_400_000));
    assert_eq!(open(later(day), Some(DEFAULT_MAX_AGE)), Ok(()));
    let limit = Limit::MaxAge { suspended_at: NOW, max_age: DEFAULT_MAX_AGE };
    let expired = OpenError::Expired { handle: header().handle, limit };
    assert_eq!(open(later(day + 1), Some(DEFAULT_MAX_AGE)), Err(expired));
    assert_eq!(open(later(day + 1), Some(DEFAULT_MAX_AGE * 2)), Ok(()));
    assert_eq!(open(later(1000 * day), None), Ok(()));
    assert!(open(later(1), Some(Duration::ZERO)).is_err());
    // A clock that went back makes nothing old.
    assert_eq!(open(later(-1000 * day), Some(Duration::ZERO)), Ok(()));
}

#[test]
fn nobody_can_widen_expires_at() {
    let record = sample();
    let open = |now, max_age| record.open(&keys(), now, max_age).map(|_| ());
    assert_eq!(open(later(3_599_999), None), Ok(()));
    let limit = Limit::ExpiresAt(later(3_600_000));
    let expired = OpenError::Expired { handle: header().handle, limit };
    assert_eq!(open(later(3_600_000), None), Err(expired.clone()));
    assert_eq!(open(later(3_600_000), Some(Duration::MAX)), Err(expired));

    let mismatch = OpenError::TokenMismatch { key: key(1).id() };
    let mut widened = members(&record);
    widened.insert("expiresAt".to_owned(), "2099-01-01T00:00:00.000Z".into());
    assert_eq!(self::open(&widened), Err(mismatch.clone()));
    widened.remove("expiresAt");
    assert_eq!(self::open(&widened), Err(mismatch.clone()));
    // The same instant in another spelling is another text.
    widened.insert("expiresAt".to_owned(), "2025-11-15T10:46:40.000+00:00".into());
    assert_eq!(self::open(&widened), Err(mismatch));
}

#[test]
fn what_would_not_come_back_is_not_sealed() {
    let seal = |header: Header, payload: &str| {
        Record::seal(&key(1), &header, payload.to_owned()).map(|_| ()).unwrap_err()
    };
    let far = Timestamp::from_millis(i64::MAX);
    let unwritable = |member, problem| SealError::Unwritable { member, problem };
    let (calendar, zero) = ("it lies outside the calendar", "it has a zero character");
    assert_eq!(
        seal(Header { expires_at: Some(far), ..header() }, ""),
        unwritable("expiresAt", calendar)
    );
    assert_eq!(
        seal(Header { suspended_at: far, ..header() }, ""),
        unwritable("suspendedAt", calendar)
    );
    assert_eq!(
        seal(Header { tenant: "a\0".to_owned(), ..header() }, ""),
        unwritable("tenant", zero)
    );
    assert_eq!(seal(header(), "\0"), unwritable("payload", zero));
}
