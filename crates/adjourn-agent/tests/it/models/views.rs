//! Every conversation of the engine's, as providers are sent it.

use std::collections::HashSet;

use adjourn_agent::{ModelRequest, ToolSpec};
use adjourn_core::ledger::CallId;
use adjourn_driver::{Block, CallContent, Fate, Message, Role, model_view};
use adjourn_testkit::provider::{Reply, Server, anthropic, openai};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::anthropic::MODEL;
use super::{asking, block, heard, model_at, tools};

fn blocks() -> impl Strategy<Value = Vec<Block>> {
    let block = prop_oneof![
        4 => Just(Block::text("Some words.")),
        1 => Just(Block::text(" \n")),
        1 => Just(Block::thought("Hm.")),
        1 => Just(block(json!({ "type": "image", "mimeType": "image/png", "data": "aGk=" }))),
        1 => Just(block(json!({ "type": "image", "mimeType": "image/tiff", "data": "aGk=" }))),
        1 => Just(block(json!({ "type": "audio", "mimeType": "audio/wav", "data": "aGk=" }))),
        1 => Just(block(json!({ "type": "resource_link", "name": "a", "uri": "file:///a" }))),
        1 => Just(block(json!({ "type": "resource", "resource": { "uri": "file:///a" } }))),
    ];
    proptest::collection::vec(block, 0..3)
}

fn id() -> impl Strategy<Value = CallId> {
    prop_oneof![Just("a"), Just("b"), Just("functions.c:0"), Just("d d")]
        .prop_map(|id| CallId(id.to_owned()))
}

fn call() -> impl Strategy<Value = CallContent> {
    let tool = prop_oneof![Just("look"), Just("files.read"), Just("web_search"), Just("(no name)")];
    let arguments = prop_oneof![Just(Value::Null), Just(json!({ "n": 1 })), Just(json!("oops"))];
    (id(), tool, arguments)
        .prop_map(|(id, tool, arguments)| CallContent { arguments, ..CallContent::new(id, tool) })
}

fn entry() -> impl Strategy<Value = Message> {
    let calls = proptest::collection::vec(call(), 0..3);
    prop_oneof![
        2 => blocks().prop_map(|blocks| Message::new(Role::User, blocks)),
        3 => (blocks(), calls).prop_map(|(blocks, calls)| {
            Message { calls, ..Message::new(Role::Agent, blocks) }
        }),
        3 => (id(), blocks(), any::<bool>()).prop_map(|(id, blocks, is_error)| {
            Message { is_error, ..Message::result(id, blocks) }
        }),
        1 => id().prop_map(|id| Message::fate(id, "look", Fate::Unknown)),
        1 => blocks().prop_map(|blocks| Message::new(Role::Host, blocks)),
        1 => Just(Message { digest: true, ..Message::host("What was said before.") }),
        1 => Just(Message { aborted: true, ..Message::agent("I wanted to") }),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let branches = prop_oneof![
        Just(json!([{ "required": ["a"] }, { "required": ["b"] }])),
        Just(json!([{ "type": "object", "properties": { "a": { "const": "x" } } },
                    { "type": "object", "properties": { "a": { "type": "null" } } }])),
        Just(json!([{ "$ref": "#/$defs/b" }, { "$ref": "#" }, { "type": "string" }])),
    ];
    let properties = json!({ "a": { "type": "string" } });
    let definitions = json!({ "b": { "properties": { "b": {} }, "required": ["b"] } });
    let with = move |word: &str, says: Value| json!({ word: says, "type": "object", "properties": properties, "$defs": definitions });
    let alone = move |word: &str, says: Value| json!({ word: says, "$defs": { "b": {} } });
    prop_oneof![
        2 => Just(json!({ "type": "object", "properties": {} })),
        1 => Just(json!({ "type": ["object", "null"] })),
        1 => Just(with("not", json!({ "required": ["a", "b"] }))),
        1 => Just(with("enum", json!([{ "a": "x" }]))),
        1 => Just(json!({ "$ref": "#/$defs/b", "$defs": { "b": { "type": "object" } } })),
        4 => (prop_oneof![Just("oneOf"), Just("anyOf"), Just("allOf")], branches, any::<bool>())
            .prop_map(move |(word, branches, typed)| {
                if typed { with(word, branches) } else { alone(word, branches) }
            }),
    ]
}

fn specs() -> impl Strategy<Value = Vec<ToolSpec>> {
    let names = proptest::sample::subsequence(vec!["look", "files.read", "web_search"], 0..=3);
    (names, proptest::collection::vec(schema(), 3)).prop_map(|(names, schemas)| {
        let spec = |(name, schema)| ToolSpec::new(name, "Does something.", schema);
        names.into_iter().zip(schemas).map(spec).collect()
    })
}

fn ensure(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

fn plain(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// Checks what both would of a tool's schema.
fn takes_schema(schema: &Value) -> Result<(), String> {
    ensure(schema["type"] == "object", "a schema is that of an object")?;
    ensure(schema["properties"].is_object(), "an object has properties")?;
    for word in ["oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref"] {
        ensure(schema.get(word).is_none(), "a schema has no alternatives at its top level")?;
    }
    Ok(())
}

/// Checks what Anthropic would.
fn anthropic_takes(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().unwrap();
    ensure(
        messages.first().is_some_and(|first| first["role"] == "user"),
        "the first is the user's",
    )?;
    ensure(messages.last().is_some_and(|last| last["role"] == "user"), "the last is the user's")?;
    let mut open: Vec<String> = Vec::new();
    let mut ids = HashSet::new();
    for message in messages {
        let parts = match &message["content"] {
            Value::String(text) => vec![json!({ "type": "text", "text": text })],
            parts => parts.as_array().unwrap().clone(),
        };
        ensure(!parts.is_empty(), "a message is not empty")?;
        let of = |kind: &'static str| parts.iter().filter(move |part| part["type"] == kind);
        ensure(
            of("text").all(|part| !part["text"].as_str().unwrap().trim().is_empty()),
            "no text is blank",
        )?;
        let results: Vec<String> = of("tool_result")
            .map(|part| part["tool_use_id"].as_str().unwrap().to_owned())
            .collect();
        ensure(results == open, "each call has its result right behind it")?;
        let leading = parts.iter().take(results.len()).all(|part| part["type"] == "tool_result");
        ensure(leading, "results come first")?;
        for failed in of("tool_result").filter(|part| part["is_error"] == true) {
            let content = failed["content"].as_array().unwrap();
            ensure(!content.is_empty(), "a failure says something")?;
            ensure(content.iter().all(|part| part["type"] == "text"), "failures are words")?;
        }
        open = of("tool_use").map(|part| part["id"].as_str().unwrap().to_owned()).collect();
        for part in of("tool_use") {
            ensure(message["role"] == "assistant", "calls are the agent's")?;
            ensure(part["input"].is_object(), "arguments are an object")?;
            ensure(plain(part["id"].as_str().unwrap()), "ids are plain")?;
            ensure(plain(part["name"].as_str().unwrap()), "names are plain")?;
            ensure(ids.insert(part["id"].clone()), "ids are unique")?;
        }
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        takes_schema(&tool["input_schema"])?;
    }
    ensure(ids.is_empty() || body["tools"].is_array(), "who calls has tools")
}

/// Checks what `OpenAI` would.
fn openai_takes(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().unwrap();
    ensure(
        messages.last().is_some_and(|last| last["role"] != "assistant"),
        "the last is not the agent's",
    )?;
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            ensure(
                open.first().is_some_and(|open| open == id),
                "results are in the order of calls",
            )?;
            open.remove(0);
            continue;
        }
        ensure(open.is_empty(), "each call has its result right behind it")?;
        let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
        let says = message["content"].as_str().is_none_or(|text| !text.trim().is_empty());
        ensure(says || !calls.is_empty(), "a message says something")?;
        for call in calls {
            open.push(call["id"].as_str().unwrap().to_owned());
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let arguments: Value = adjourn_core::json::stored(arguments.as_bytes()).unwrap();
            ensure(arguments.is_object(), "arguments are an object")?;
            ensure(plain(call["function"]["name"].as_str().unwrap()), "names are plain")?;
        }
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        takes_schema(&tool["function"]["parameters"])?;
    }
    ensure(open.is_empty(), "each call has its result")
}

async fn sent(name: &str, reply: Reply, entries: &[Message], specs: &[ToolSpec]) -> Value {
    let server = Server::start(vec![reply]).await;
    let request = ModelRequest { tools: tools(specs), ..asking(model_view(entries)) };
    heard(&*model_at(name, &server), request).await;
    server.body()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_view_is_one_that_providers_take(
        entries in proptest::collection::vec(entry(), 0..12),
        specs in specs(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let body = sent(MODEL, anthropic::says(&["Done."]), &entries, &specs).await;
            prop_assert_eq!(anthropic_takes(&body), Ok(()), "{:#}", body);
            let body = sent("openai/gpt-5", openai::says("Done."), &entries, &specs).await;
            prop_assert_eq!(openai_takes(&body), Ok(()), "{:#}", body);
            Ok(())
        })?;
    }
}
