//! The messages of Anthropic.

use adjourn_agent::{FinishReason, ModelCall, ModelOptions, ModelPart, ModelUsage, named_model};
use adjourn_driver::{Block, ModelRole};
use adjourn_testkit::provider::anthropic::{begins, block_of, ends, event, says, text};
use adjourn_testkit::provider::{Reply, Server};
use serde_json::{Value, json};

use super::{KEY, asking, block, calling, heard, message, model_at, options_at, request, result};

pub const MODEL: &str = "anthropic/claude-sonnet-4-6";

const USAGE: ModelUsage = ModelUsage {
    prompt_tokens: Some(100),
    cached_prompt_tokens: Some(50),
    cache_write_tokens: Some(30),
    completion_tokens: Some(9),
    cost_usd: None,
};

#[tokio::test]
async fn words_come_as_they_are_said_and_usage_at_the_end() {
    let server = Server::start(vec![says(&["Hello", " there."])]).await;
    let parts = heard(&*model_at(MODEL, &server), request("Hello?")).await;
    assert_eq!(
        parts,
        [
            Ok(ModelPart::Text("Hello".to_owned())),
            Ok(ModelPart::Text(" there.".to_owned())),
            Ok(ModelPart::Usage(USAGE)),
            Ok(ModelPart::Finished(FinishReason::Stop)),
        ]
    );
    let asked = server.asked().pop().unwrap();
    assert!(asked.head.starts_with("post /v1/messages "), "{}", asked.head);
    assert!(asked.head.contains(&format!("x-api-key: {KEY}")), "{}", asked.head);
    assert!(asked.head.contains("anthropic-version: 2023-06-01"), "{}", asked.head);
    assert_eq!(asked.body["model"], "claude-sonnet-4-6");
    assert_eq!(asked.body["stream"], true);
    assert_eq!(asked.body["system"], "You are brief.");
    assert!(asked.body["max_tokens"].as_u64() >= Some(1), "{}", asked.body);
    // What was said so far is sent again with the next request: it is to be cached.
    let said = json!([{ "type": "text", "text": "Hello?",
                        "cache_control": { "type": "ephemeral" } }]);
    assert_eq!(asked.body["messages"], json!([{ "role": "user", "content": said }]));
}

#[tokio::test]
async fn the_base_url_is_taken_with_and_without_the_version() {
    for path in ["", "/", "/v1", "/v1/"] {
        let server = Server::start(vec![says(&["Hello."])]).await;
        let base_url = Some(format!("{}{path}", server.url()));
        let model = named_model(MODEL, &ModelOptions { base_url, ..options_at(&server) }).unwrap();
        heard(&*model, request("Hello?")).await;
        let asked = server.asked().pop().unwrap();
        assert!(asked.head.starts_with("post /v1/messages "), "{path:?}: {}", asked.head);
    }
}

#[tokio::test]
async fn thoughts_calls_and_pings_are_told_apart() {
    let thinking = block_of(
        0,
        &json!({ "type": "thinking", "thinking": "", "signature": "" }),
        &[
            json!({ "type": "thinking_delta", "thinking": "Let me see." }),
            json!({ "type": "signature_delta", "signature": "c2lnbmVk" }),
        ],
    );
    let calls = block_of(
        2,
        &json!({ "type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {} }),
        &[
            json!({ "type": "input_json_delta", "partial_json": "" }),
            json!({ "type": "input_json_delta", "partial_json": "{\"table\": " }),
            json!({ "type": "input_json_delta", "partial_json": "\"sales\"}" }),
        ],
    );
    let ping = vec![event(&json!({ "type": "ping" }))];
    let events =
        [vec![begins()], ping, thinking, text(1, &["I look."]), calls, ends("tool_use")].concat();
    let server = Server::start(vec![Reply::events(events)]).await;
    let parts = heard(&*model_at(MODEL, &server), request("Look it up.")).await;
    let call = ModelCall {
        id: "toolu_1".to_owned(),
        tool: "lookup".to_owned(),
        arguments: "{\"table\":\"sales\"}".to_owned(),
        signed: Some(json!({ "by": MODEL, "thoughts": [thought()] })),
    };
    assert_eq!(
        parts,
        [
            Ok(ModelPart::Thought("Let me see.".to_owned())),
            Ok(ModelPart::Text("I look.".to_owned())),
            Ok(ModelPart::Usage(USAGE)),
            Ok(ModelPart::Call(call)),
            Ok(ModelPart::Finished(FinishReason::ToolCalls)),
        ]
    );
}

fn thought() -> Value {
    json!({ "type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk" })
}

#[tokio::test]
async fn signed_thoughts_go_back_with_their_call_to_the_model_that_had_them() {
    for (by, thinks) in [(MODEL, true), ("anthropic/claude-opus-4-1", false)] {
        let server = Server::start(vec![says(&["Done."])]).await;
        let options =
            ModelOptions { reasoning_effort: Some("2048".to_owned()), ..options_at(&server) };
        let mut asks = calling("I look.", &[("toolu_1", "lookup", json!({}))]);
        asks.blocks.insert(0, Block::thought("Let me see."));
        asks.calls[0].signed = Some(json!({ "by": by, "thoughts": [thought()] }).into());
        let messages = vec![
            message(ModelRole::User, vec![Block::text("Look.")]),
            asks,
            result("toolu_1", vec![Block::text("3 rows")]),
        ];
        heard(&*named_model(MODEL, &options).unwrap(), asking(messages)).await;
        let body = server.body();
        let said = [
            json!({ "type": "text", "text": "I look." }),
            json!({ "type": "tool_use", "id": "toolu_1", "name": "lookup", "input": {} }),
        ];
        let thought = thinks.then(thought);
        let expected: Vec<Value> = thought.into_iter().chain(said).collect();
        assert_eq!(body["messages"][1]["content"], Value::from(expected));
        // A model that is not given its thoughts must not think about the result.
        assert_eq!(body.get("thinking").is_some(), thinks, "{body:#}");
    }
}

#[tokio::test]
async fn why_the_model_stopped_is_told() {
    for (word, reason) in [
        ("max_tokens", FinishReason::Length),
        ("refusal", FinishReason::Refusal),
        ("stop_sequence", FinishReason::Stop),
        ("pause_turn", FinishReason::Other("pause_turn".to_owned())),
    ] {
        let events = [vec![begins()], text(0, &["Well"]), ends(word)].concat();
        let server = Server::start(vec![Reply::events(events)]).await;
        let parts = heard(&*model_at(MODEL, &server), request("Hello?")).await;
        assert_eq!(parts.last(), Some(&Ok(ModelPart::Finished(reason))));
    }
}

#[tokio::test]
async fn results_stand_right_behind_their_calls() {
    let server = Server::start(vec![says(&["Done."])]).await;
    let image = block(json!({ "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" }));
    let mut failed = result("b", vec![Block::text("no such table")]);
    failed.is_error = true;
    let messages = vec![
        message(ModelRole::User, vec![Block::text("Look at both.")]),
        calling("", &[("a", "web_search", Value::Null), ("b", "lookup", json!({ "n": 1 }))]),
        result("a", vec![Block::text("one"), image]),
        failed,
    ];
    heard(&*model_at(MODEL, &server), asking(messages)).await;
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "aGVsbG8=" });
    assert_eq!(
        server.body()["messages"],
        json!([
            { "role": "user", "content": "Look at both." },
            { "role": "assistant", "content": [
                { "type": "tool_use", "id": "a", "name": "web_search_1", "input": {} },
                { "type": "tool_use", "id": "b", "name": "lookup", "input": { "n": 1 } } ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "is_error": false, "content": [
                    { "type": "text", "text": "one" },
                    { "type": "image", "source": source } ] },
                { "type": "tool_result", "tool_use_id": "b", "is_error": true,
                  "content": [{ "type": "text", "text": "no such table" }],
                  "cache_control": { "type": "ephemeral" } } ] },
        ])
    );
}

#[tokio::test]
async fn the_images_of_a_failed_call_follow_the_results() {
    let server = Server::start(vec![says(&["I see."])]).await;
    let image = block(json!({ "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" }));
    let mut failed = result("a", vec![Block::text("no such button"), image]);
    failed.is_error = true;
    let messages = vec![
        message(ModelRole::User, vec![Block::text("Click on both.")]),
        calling("", &[("a", "click", json!({})), ("b", "click", json!({}))]),
        failed,
        result("b", vec![Block::text("clicked")]),
    ];
    heard(&*model_at(MODEL, &server), asking(messages)).await;
    let text = |text: &str| json!({ "type": "text", "text": text });
    let results = json!([
        { "type": "tool_result", "tool_use_id": "a", "is_error": true, "content": [
            text("no such button"), text("[adjourn] image/png follows the results.")] },
        { "type": "tool_result", "tool_use_id": "b", "is_error": false,
          "content": [text("clicked")] },
    ]);
    assert_eq!(server.body()["messages"][2], json!({ "role": "user", "content": results }));
    let follows = &server.body()["messages"][3];
    assert_eq!(follows["role"], "user");
    assert_eq!(follows["content"][0], text("[adjourn] From the result of call a:"));
    assert_eq!(follows["content"][1]["source"]["data"], "aGVsbG8=");
}
