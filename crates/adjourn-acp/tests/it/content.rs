//! What a person says comes back as it was said: over both versions, through the store, and in what
//! a model is shown.

use adjourn_driver::{Block, ModelRole, model_view};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::process::{Client, Process};

/// How many prompts a session is given at most.
const PROMPTS: usize = 3;

/// JSON of any kind, of moderate size.
pub fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let object = prop::collection::vec((any::<String>(), inner.clone()), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A block of a prompt, with or without what every block may have, and with fields of another day.
pub fn block() -> impl Strategy<Value = Value> {
    let text = any::<String>();
    let data = prop::collection::vec(prop::sample::select(b"AZaz09+/".to_vec()), 0..40)
        .prop_map(|bytes| String::from_utf8(bytes).unwrap());
    let block = prop_oneof![
        4 => text.prop_map(|text| json!({ "type": "text", "text": text })),
        2 => (data.clone(), prop::option::of(any::<String>())).prop_map(|(data, uri)| {
            json!({ "type": "image", "data": data, "mimeType": "image/png", "uri": uri })
        }),
        1 => data.clone().prop_map(|data| {
            json!({ "type": "audio", "data": data, "mimeType": "audio/wav" })
        }),
        1 => any::<String>().prop_map(|text| json!({
            "type": "resource", "resource": { "uri": "file:///a.rs", "text": text },
        })),
        1 => (data, any_json()).prop_map(|(blob, meta)| json!({
            "type": "resource",
            "resource": { "uri": "file:///a.bin", "blob": blob, "_meta": { "k": meta } },
        })),
        2 => (any::<String>(), any::<u32>()).prop_map(|(name, size)| json!({
            "type": "resource_link", "uri": "file:///a.rs", "name": name, "title": name,
            "description": name, "size": size,
        })),
        1 => any_json().prop_map(|value| json!({ "type": "of_another_day", "value": value })),
    ];
    let annotations = json!({ "audience": ["assistant"], "priority": 0.7 });
    let annotations = prop::option::of(Just(annotations));
    let meta = prop::option::of(prop::collection::vec((any::<String>(), any_json()), 0..3));
    let unknown = prop::option::of(any_json());
    (block, annotations, meta, unknown).prop_map(|(mut block, annotations, meta, unknown)| {
        let meta = meta.map(|fields| Value::Object(fields.into_iter().collect()));
        let more = [("annotations", annotations), ("_meta", meta), ("x-unknown", unknown)];
        for (field, value) in more {
            if let Some(value) = value {
                block[field] = value;
            }
        }
        block
    })
}

fn says_something(block: &Value) -> bool {
    block["type"] != "text" || !block["text"].as_str().unwrap().trim().is_empty()
}

/// A prompt that is not blank, which the lifecycle refuses.
fn prompt() -> impl Strategy<Value = Vec<Value>> {
    let blocks = prop::collection::vec(block(), 1..5);
    blocks.prop_filter("a blank prompt is refused", |blocks| blocks.iter().any(says_something))
}

/// The same random prompts every time, unless `ADJOURN_SEED` asks for others.
pub fn config(cases: u32) -> Config {
    let seed = std::env::var("ADJOURN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("ADJOURN_SEED={seed}");
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() }
}

/// Gives a session prompts, and waits until each is done.
async fn give(client: &mut Client, session: &str, prompts: &[Vec<Value>]) {
    for prompt in prompts {
        let prompt = json!({ "sessionId": session, "prompt": prompt });
        let given = client.request("session/prompt", prompt).await;
        let answer = client.answer(given).await;
        assert!(answer.get("result").is_some(), "{answer}");
        if !client.is_of_today() {
            client.until_state("idle").await;
        }
    }
}

/// Returns what a client is shown that a person has said, message by message.
async fn replayed(client: &mut Client, session: &str) -> Vec<Vec<Value>> {
    let before = client.heard().len();
    let all = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
    match client.is_of_today() {
        true => client.call("session/load", all).await,
        false => {
            let start = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
            client.call("session/resume", start).await
        }
    };
    let mut messages: Map<String, Value> = Map::new();
    for update in client.heard()[before..].iter().map(|message| &message["params"]["update"]) {
        let blocks = match update["sessionUpdate"].as_str() {
            Some("user_message_chunk") => vec![update["content"].clone()],
            Some("user_message") => update["content"].as_array().unwrap().clone(),
            _ => continue,
        };
        let id = update["messageId"].as_str().unwrap();
        let message = messages.entry(id).or_insert_with(|| json!([]));
        message.as_array_mut().unwrap().extend(blocks);
    }
    messages.into_iter().map(|(_, blocks)| blocks.as_array().unwrap().clone()).collect()
}

async fn round_trip(
    process: &Process,
    of_today: bool,
    prompts: &[Vec<Value>],
) -> Result<(), TestCaseError> {
    let mut first =
        if of_today { process.connect_of_today().await } else { process.connect().await };
    let session = first.new_session().await;
    give(&mut first, &session, prompts).await;
    first.leave().await;
    for mut other in [process.connect_of_today().await, process.connect().await] {
        let shown = replayed(&mut other, &session).await;
        prop_assert_eq!(&shown[..], prompts);
        other.leave().await;
    }
    let view = model_view(&process.transcript(&session));
    let users = view.iter().filter(|message| message.role == ModelRole::User);
    let shown: Vec<Vec<_>> =
        users.map(|message| message.blocks.iter().map(Block::to_value).collect()).collect();
    // Texts without words are left out: no provider takes them.
    let told = |prompt: &Vec<Value>| prompt.iter().filter(|b| says_something(b)).cloned().collect();
    let told: Vec<Vec<Value>> = prompts.iter().map(told).collect();
    prop_assert_eq!(shown, told);
    Ok(())
}

#[test]
fn prompts_come_back_without_loss_over_both_versions_and_in_what_a_model_is_shown() {
    let runs = vec![json!([{ "say": "ok" }]); PROMPTS];
    let runtime = Runtime::new().unwrap();
    let process = runtime.block_on(Process::start(&json!({ "runs": runs }).to_string()));
    let cases = (any::<bool>(), prop::collection::vec(prompt(), 1..=PROMPTS));
    let tried = TestRunner::new(config(64)).run(&cases, |(of_today, prompts)| {
        runtime.block_on(round_trip(&process, of_today, &prompts))
    });
    let guard = runtime.enter();
    drop(process);
    drop(guard);
    tried.unwrap();
}

/// What answers a question, or is given with a resume, is shown as what it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_input_that_is_a_list_of_blocks_is_shown_as_such_and_another_value_in_words() {
    let script = r#"{"runs": [[{"await": {"reason": "ci"}}, {"await": {"reason": "ci"}}]]}"#;
    let process = Process::start(script).await;
    let mut client = process.connect().await;
    let session = client.new_session().await;
    client.prompt(&session).await;
    let blocks = json!([
        { "type": "text", "text": "see", "_meta": { "k": [1.5] } },
        { "type": "image", "data": "AA==", "mimeType": "image/png" },
    ]);
    let value = json!({ "table": "monthly" });
    for input in [&blocks, &value] {
        client.until("parked", |message| message.to_string().contains("_suspended")).await;
        let meta = json!({ "adjourn/suspend": { "input": input } });
        client.call("session/resume", json!({ "sessionId": session, "_meta": meta })).await;
    }
    client.until_state("idle").await;
    let mut other = process.connect_of_today().await;
    let shown = replayed(&mut other, &session).await;
    assert_eq!(json!(shown[1]), blocks);
    assert_eq!(json!(shown[2]), json!([{ "type": "text", "text": value.to_string() }]));
    let structured = process.transcript(&session).into_iter().find_map(|said| said.structured);
    assert_eq!(structured, Some(value));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_block_of_a_prompt_is_refused_by_its_path() {
    let process = Process::start(r#"{"runs": [[{"say": "ok"}]]}"#).await;
    let mut client = process.connect().await;
    let session = client.new_session().await;
    for (block, path) in [
        (json!({ "text": "x" }), "prompt[1].type"),
        (json!({ "type": 7 }), "prompt[1].type"),
        (json!({ "type": "text" }), "prompt[1].text"),
        (json!({ "type": "text", "text": 7 }), "prompt[1].text"),
        (json!({ "type": "thought", "text": "not a person's" }), "prompt[1].type"),
    ] {
        let prompt = json!([{ "type": "text", "text": "go" }, block]);
        let prompt = json!({ "sessionId": session, "prompt": prompt });
        let given = client.request("session/prompt", prompt).await;
        let refused = client.answer(given).await;
        assert_eq!(refused["error"]["data"]["path"], path, "{refused}");
    }
}
