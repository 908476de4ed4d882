//! Records: every byte of them counts.

use std::sync::Arc;

use adjourn_agent::{Agent, Keys, Payload, ResumeError, SuspensionRecord};
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::time::Timestamp;
use adjourn_driver::payload::KeptEntry;
use adjourn_record::keys::Revocation;
use adjourn_record::portable::{Header, Record};
use serde_json::{Value, json};

use crate::fixture::{
    BEGINNING, TestClock, agent, ask, asks, edited, events, key, keys, model, question, suspended,
};

fn with_keys(model: &Arc<adjourn_agent::ScriptedModel>, keys: Keys) -> Agent {
    agent(model).keys(keys).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn any_byte_of_a_record_that_is_flipped_is_refused() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Go.")).await;
    let text = record.to_string();
    assert!(text.is_ascii());
    let mut accepted = 0;
    for place in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[place] ^= 1;
        let Ok(changed) = String::from_utf8(bytes) else { continue };
        // One that is no record any more is refused when it is read.
        let Ok(changed) = changed.parse::<SuspensionRecord>() else { continue };
        match agent.read(&changed) {
            Err(_) => {}
            Ok(_) => accepted += 1,
        }
        assert_ne!(changed, record, "byte {place}");
    }
    assert_eq!(accepted, 0);
}

#[tokio::test(start_paused = true)]
async fn any_field_of_a_record_that_is_edited_added_or_left_out_is_refused() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Go.")).await;
    let fields = serde_json::to_value(&record).unwrap().as_object().unwrap().clone();
    for (name, value) in &fields {
        let mut blob = fields.clone();
        blob.remove(name);
        let missing = serde_json::from_value::<SuspensionRecord>(Value::Object(blob));
        assert!(missing.is_err() || agent.read(&missing.unwrap()).is_err(), "without {name}");
        if let Some(text) = value.as_str() {
            let changed = edited(&record, |blob| blob[name] = json!(format!("{text} ")));
            assert!(agent.read(&changed).is_err(), "{name}");
        }
    }
    let mut blob = fields;
    blob.insert("note".to_owned(), json!("unsigned"));
    assert!(serde_json::from_value::<SuspensionRecord>(Value::Object(blob)).is_err());
}

#[tokio::test(start_paused = true)]
async fn agt_16_to_18_33_to_36_a_record_is_read_by_whoever_has_the_secret_and_does_not_hold_it() {
    let model = model(asks());
    let record = suspended(with_keys(&model, Keys::only(key(7))).run("Go.")).await;
    let text = record.to_string();
    assert!(!text.contains(&"07".repeat(32)) && !text.contains("BwcHBwcH"), "{text}");
    let token = serde_json::to_value(&record).unwrap()["token"].as_str().unwrap().to_owned();
    let (nonce, digest) = token.split_once('.').unwrap();
    assert_eq!((nonce.len(), digest.len()), (32, 64));
    assert!(with_keys(&model, Keys::only(key(7))).resume(&record, "x").await.is_ok());
    let other = with_keys(&model, Keys::only(key(8))).resume(&record, "x").await.unwrap_err();
    assert!(matches!(other, ResumeError::UnknownKey { .. }), "{other}");
}

#[tokio::test(start_paused = true)]
async fn defect_18_records_have_key_ids_that_rotate_and_can_be_revoked() {
    let model = model(asks());
    let record = suspended(with_keys(&model, Keys::only(key(1))).run("Go.")).await;
    let rotated = Keys::only(key(2)).accepting(key(1), None);
    assert!(with_keys(&model, rotated).resume(&record, "x").await.is_ok());
    let at = Timestamp::from_millis(BEGINNING);
    let revocation = Revocation { at, reason: "it leaked".to_owned() };
    let revoked = Keys::only(key(2)).accepting(key(1), Some(revocation));
    let refused = with_keys(&model, revoked).resume(&record, "x").await.unwrap_err();
    assert!(matches!(refused, ResumeError::RevokedKey { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_payload_is_written_as_it_was_read() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Go.")).await;
    let payload = agent.read(&record).unwrap();
    let again = SuspensionRecord::seal(keys().current(), &payload, None).unwrap();
    let text = |record: &SuspensionRecord| {
        serde_json::to_value(record).unwrap()["payload"].as_str().unwrap().to_owned()
    };
    assert_eq!(text(&again), text(&record));
    let later = text(&record).replacen("\"schema\":2", "\"schema\":3", 1);
    assert!(<Payload>::decode(&later).unwrap_err().to_string().contains("schema 3"));
}

/// One that is spelt as it was written is split at its messages; that must not show.
#[tokio::test(start_paused = true)]
async fn a_payload_is_the_same_however_it_is_spelt_and_whatever_is_called_messages_in_it() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run(r#"Say ,"messages":[{}]}."#)).await;
    let payload = agent.read(&record).unwrap();
    let mut named = payload.clone();
    let config = json!({ "model": "m", "messages": [{}], "more": { "messages": [] } });
    named.driver.kind = DriverKind::Named { name: "n".to_owned(), config };
    for payload in [payload, named] {
        let written = payload.encode();
        let spaced = written.replacen(",\"messages\":[{", ", \"messages\": [ {", 1);
        let pretty: Value = adjourn_core::json::stored(written.as_bytes()).unwrap();
        let pretty = serde_json::to_string_pretty(&pretty).unwrap();
        for text in [&written, &spaced, &pretty] {
            let kept = Payload::decode_kept(text).unwrap();
            assert_eq!((&kept.driver, &kept.session), (&payload.driver, &payload.session));
            let messages: Vec<_> = kept.messages.iter().map(KeptEntry::message).collect();
            assert_eq!(messages, payload.messages.iter().collect::<Vec<_>>());
            let whole = Payload::<KeptEntry>::decode(text).unwrap();
            assert_eq!(kept.encode(), whole.encode(), "each entry goes on as it was spelt");
        }
        // A payload that is damaged is refused for the same reason.
        let ends = [0, 1, written.len() / 2, written.len() - 3, written.len() - 1];
        let cut = ends.iter().map(|end| written[..*end].to_owned());
        let wrong = ["[{},{", "[{}{", "[1,{", "[],\"messages\":[{", "[{\"v\":1},{"].iter();
        let wrong = wrong.map(|list| {
            let (before, behind) = written.rsplit_once(",\"messages\":[{").unwrap();
            format!("{before},\"messages\":{list}{behind}")
        });
        for text in cut.chain(wrong) {
            let kept = Payload::decode_kept(&text).map(|_| ());
            assert_eq!(kept, Payload::<KeptEntry>::decode(&text).map(|_| ()), "{text}");
            assert!(kept.is_err(), "{text}");
        }
    }
}

/// Seals a payload under another header than its own.
fn sealed(payload: &str, change: impl FnOnce(&mut Header)) -> SuspensionRecord {
    let read = <Payload>::decode(payload).unwrap();
    let suspended = read.session.suspended().unwrap();
    let mut header = Header {
        tenant: read.session.tenant.clone(),
        session: read.session.id,
        run: read.session.run().map(|run| run.id),
        handle: suspended.park.pause.handle,
        suspended_at: suspended.park.suspended_at,
        expires_at: None,
    };
    change(&mut header);
    Record::seal(keys().current(), &header, payload.to_owned()).unwrap().into()
}

/// The session's head vouches for the bytes of an entry, however an older program spelt it.
#[tokio::test(start_paused = true)]
async fn what_was_said_goes_from_record_to_record_as_it_is() {
    let model = model(json!([{ "calls": [ask("Which?")] }, { "calls": [ask("And then?")] }]));
    let agent = agent(&model).build().unwrap();
    let payload = |record: &SuspensionRecord| {
        serde_json::to_value(record).unwrap()["payload"].as_str().unwrap().to_owned()
    };
    let first = payload(&suspended(agent.run("Go.")).await);
    let written = r#"{"v":1,"role":"user","blocks":[{"type":"text","text":"Go."}]}"#;
    let other =
        r#"{"role": "user", "v": 1, "blocks": [{"type":"text","text":"G\u006f."}], "of": {}}"#;
    assert!(first.contains(written));
    let record = sealed(&first.replacen(written, other, 1), |_| {});
    assert_eq!(agent.read(&record).unwrap().messages[0].text(), "Go.");
    let second = payload(&suspended(agent.resume(&record, "That.").await.unwrap()).await);
    assert!(second.contains(other), "{second}");
}

#[tokio::test(start_paused = true)]
async fn defect_6_a_record_from_the_future_never_is_young() {
    let model = model(asks());
    let ahead = Arc::new(TestClock::new());
    let first = Agent::builder(Arc::clone(&model)).keys(keys()).clock(Arc::clone(&ahead) as _);
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    let record = question(&events(first.build().unwrap().run("Go.")).await).suspension_record;
    // A machine whose clock is two minutes behind.
    let second = agent(&model).build().unwrap();
    let refused = second.resume(&record, "x").await.unwrap_err();
    assert!(matches!(refused, ResumeError::FromTheFuture { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_payload_under_a_header_that_is_not_its_own_is_refused() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Go.")).await;
    let text = serde_json::to_value(&record).unwrap()["payload"].as_str().unwrap().to_owned();
    assert!(agent.resume(&sealed(&text, |_| {}), "x").await.is_ok());
    let handle = "suspend-019abf6b-7d51-7c1d-bb02-0123456789ab".parse().unwrap();
    let other = sealed(&text, |header| header.handle = handle);
    let refused = agent.resume(&other, "x").await.unwrap_err();
    assert!(matches!(refused, ResumeError::Malformed { .. }), "{refused}");
    let expires = Timestamp::from_millis(BEGINNING - 1);
    let expired = sealed(&text, |header| header.expires_at = Some(expires));
    let refused = agent.resume(&expired, "x").max_suspension_age(None).await.unwrap_err();
    assert!(matches!(refused, ResumeError::SuspensionExpired { .. }), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_record_of_another_driver_is_refused() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Go.")).await;
    let payload = Payload { driver: DriverSpec::script("[]"), ..agent.read(&record).unwrap() };
    let other = SuspensionRecord::seal(keys().current(), &payload, None).unwrap();
    let refused = agent.resume(&other, "x").await.unwrap_err();
    assert!(matches!(refused, ResumeError::OtherDriver { .. }), "{refused}");
}
