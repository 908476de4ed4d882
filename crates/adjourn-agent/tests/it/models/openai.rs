//! The chat completions of `OpenAI`, and of all that speak like it.

use adjourn_agent::{FinishReason, ModelCall, ModelPart, ModelUsage, ToolSpec};
use adjourn_driver::{Block, ModelRole};
use adjourn_testkit::provider::openai::{chunk, says};
use adjourn_testkit::provider::{Reply, Server};
use serde_json::{Value, json};

use super::{asking, block, calling, heard, message, model_at, request, result, tools};
use crate::models::KEY;

fn ends(finish: &str) -> Reply {
    let said = chunk(&json!({ "content": "Well" }), None);
    Reply::events([said, chunk(&json!({}), Some(finish)), "data: [DONE]\n\n".to_owned()])
}

#[tokio::test]
async fn words_come_as_they_are_said_and_usage_at_the_end() {
    let server = Server::start(vec![says("Hello there.")]).await;
    let model = model_at("openai/gpt-5", &server);
    let usage = ModelUsage {
        prompt_tokens: Some(120),
        cached_prompt_tokens: Some(64),
        completion_tokens: Some(8),
        ..ModelUsage::default()
    };
    let parts = heard(&*model, request("Hello?")).await;
    assert_eq!(
        parts,
        [
            Ok(ModelPart::Text("Hello there.".to_owned())),
            Ok(ModelPart::Usage(usage)),
            Ok(ModelPart::Finished(FinishReason::Stop)),
        ]
    );
    let asked = server.asked().pop().unwrap();
    assert!(asked.head.starts_with("post /v1/chat/completions "), "{}", asked.head);
    assert!(asked.head.contains(&format!("authorization: bearer {KEY}")), "{}", asked.head);
    assert_eq!(asked.body["model"], "gpt-5");
    assert_eq!(asked.body["stream"], true);
    assert_eq!(asked.body["stream_options"], json!({ "include_usage": true }));
    assert_eq!(
        asked.body["messages"],
        json!([{ "role": "system", "content": "You are brief." },
               { "role": "user", "content": "Hello?" }])
    );
    assert_eq!(asked.body.get("reasoning_effort"), None);
    assert_eq!(asked.body.get("tools"), None);
}

#[tokio::test]
async fn a_name_is_sent_as_it_is() {
    let server = Server::start(vec![says("Hello.")]).await;
    // The end of it is no effort to reason.
    let model = model_at("openai/org/qwen-max", &server);
    heard(&*model, request("Hello?")).await;
    assert_eq!(server.body()["model"], "org/qwen-max");
    assert_eq!(server.body().get("reasoning_effort"), None);
}

#[tokio::test]
async fn effort_and_length_are_sent_if_they_are_said() {
    let server = Server::start(vec![says("Hello.")]).await;
    let options = adjourn_agent::ModelOptions {
        reasoning_effort: Some("low".to_owned()),
        max_output_tokens: Some(512),
        ..super::options_at(&server)
    };
    let model = adjourn_agent::named_model("openai/gpt-5", &options).unwrap();
    heard(&*model, request("Hello?")).await;
    assert_eq!(server.body()["reasoning_effort"], "low");
    assert_eq!(server.body()["max_completion_tokens"], 512);
}

#[tokio::test]
async fn what_the_model_thinks_is_told_apart() {
    let reply = Reply::events([
        chunk(&json!({ "reasoning_content": "Let me " }), None),
        chunk(&json!({ "reasoning_content": "see." }), None),
        chunk(&json!({ "content": "Yes." }), Some("stop")),
        "data: [DONE]\n\n".to_owned(),
    ]);
    let server = Server::start(vec![reply]).await;
    let parts = heard(&*model_at("openai/gpt-5", &server), request("Hello?")).await;
    assert_eq!(
        parts,
        [
            Ok(ModelPart::Thought("Let me ".to_owned())),
            Ok(ModelPart::Thought("see.".to_owned())),
            Ok(ModelPart::Text("Yes.".to_owned())),
            Ok(ModelPart::Finished(FinishReason::Stop)),
        ]
    );
}

fn call_piece(index: u32, id: Option<&str>, name: Option<&str>, arguments: &str) -> String {
    let mut call = json!({ "index": index, "function": { "arguments": arguments } });
    if let Some(id) = id {
        call["id"] = id.into();
        call["type"] = "function".into();
    }
    if let Some(name) = name {
        call["function"]["name"] = name.into();
    }
    chunk(&json!({ "tool_calls": [call] }), None)
}

fn call(id: &str, tool: &str, arguments: &str) -> Result<ModelPart, adjourn_agent::ModelError> {
    let (id, tool, arguments) = (id.to_owned(), tool.to_owned(), arguments.to_owned());
    Ok(ModelPart::Call(ModelCall { id, tool, arguments, signed: None }))
}

#[tokio::test]
async fn calls_that_come_in_pieces_are_whole() {
    let reply = Reply::events([
        call_piece(0, Some("call_a"), Some("lookup"), ""),
        call_piece(0, None, None, "{\"table\":"),
        call_piece(1, Some("call_b"), Some("files_read_1"), "{\"path\""),
        call_piece(0, None, None, "\"sales\"}"),
        call_piece(1, None, None, ":\"a.txt\"}"),
        call_piece(2, Some("call_c"), Some("lookup"), "{\"table\": oops"),
        chunk(&json!({}), Some("tool_calls")),
        "data: [DONE]\n\n".to_owned(),
    ]);
    let server = Server::start(vec![reply]).await;
    let mut asked = request("Look it up.");
    let schema = json!({ "type": "object", "properties": { "table": { "type": "string" } } });
    asked.tools = tools(&[
        ToolSpec::new("lookup", "Looks up.", schema.clone()),
        ToolSpec::new("files.read", "Reads.", json!({ "$schema": "x" })),
    ]);
    let parts = heard(&*model_at("openai/gpt-5", &server), asked).await;
    assert_eq!(
        parts,
        [
            call("call_a", "lookup", "{\"table\":\"sales\"}"),
            call("call_b", "files.read", "{\"path\":\"a.txt\"}"),
            call("call_c", "lookup", "{\"table\": oops"),
            Ok(ModelPart::Finished(FinishReason::ToolCalls)),
        ]
    );
    let tools = &server.body()["tools"];
    assert_eq!(tools[0]["function"]["name"], "lookup");
    assert_eq!(tools[0]["function"]["parameters"], schema);
    assert_eq!(tools[1]["function"]["name"], "files_read_1");
    assert_eq!(tools[1]["function"]["parameters"], json!({ "type": "object", "properties": {} }));
}

#[tokio::test]
async fn a_server_that_counts_calls_from_one_asks_for_each_once() {
    let reply = Reply::events([
        call_piece(1, Some("call_a"), Some("lookup"), ""),
        call_piece(1, None, None, "{}"),
        chunk(&json!({}), Some("tool_calls")),
        "data: [DONE]\n\n".to_owned(),
    ]);
    let server = Server::start(vec![reply]).await;
    let parts = heard(&*model_at("openai/gpt-5", &server), request("Look it up.")).await;
    let finished = Ok(ModelPart::Finished(FinishReason::ToolCalls));
    assert_eq!(parts, [call("call_a", "lookup", "{}"), finished]);
}

#[tokio::test]
async fn why_the_model_stopped_is_told() {
    let refuses = Reply::events([
        chunk(&json!({ "content": null, "refusal": "I will not." }), None),
        chunk(&json!({}), Some("stop")),
        "data: [DONE]\n\n".to_owned(),
    ]);
    for (reply, reason) in [
        (ends("length"), FinishReason::Length),
        (ends("content_filter"), FinishReason::ContentFilter),
        (ends("tired"), FinishReason::Other("tired".to_owned())),
        (refuses, FinishReason::Refusal),
    ] {
        let server = Server::start(vec![reply]).await;
        let parts = heard(&*model_at("openai/gpt-5", &server), request("Hello?")).await;
        assert_eq!(parts.last(), Some(&Ok(ModelPart::Finished(reason))));
    }
}

#[tokio::test]
async fn results_stand_right_behind_their_calls() {
    let server = Server::start(vec![says("Done.")]).await;
    let image = block(json!({ "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" }));
    let mut failed = result("functions.b:1", vec![Block::text("no such table")]);
    failed.is_error = true;
    let messages = vec![
        message(ModelRole::User, vec![Block::text("Look"), Block::text("at both.")]),
        calling(
            "I look.",
            &[("a", "lookup", json!({ "n": 1 })), ("functions.b:1", "lookup", json!("oops"))],
        ),
        result("a", vec![Block::text("one"), image]),
        failed,
        message(ModelRole::User, vec![Block::text("And?")]),
        message(ModelRole::Agent, vec![Block::thought("Hm."), Block::text("I think.")]),
    ];
    heard(&*model_at("openai/gpt-5", &server), asking(messages)).await;
    let sent = server.body()["messages"].clone();
    let image = json!({ "type": "image_url",
                        "image_url": { "url": "data:image/png;base64,aGVsbG8=" } });
    let text = |text: &str| json!({ "type": "text", "text": text });
    assert_eq!(
        sent,
        json!([
            { "role": "system", "content": "You are brief." },
            { "role": "user", "content": "Look\n\nat both." },
            { "role": "assistant", "content": "I look.", "tool_calls": [
                { "type": "function", "id": "a",
                  "function": { "name": "lookup", "arguments": "{\"n\":1}" } },
                { "type": "function", "id": "call00001",
                  "function": { "name": "lookup", "arguments": "{\"arguments\":\"oops\"}" } } ] },
            { "role": "tool", "tool_call_id": "a",
              "content": "one\n[adjourn] image/png follows the results." },
            { "role": "tool", "tool_call_id": "call00001", "content": "error: no such table" },
            { "role": "user", "content": [
                text("[adjourn] From the result of call a:"), image, text("And?")] },
            { "role": "assistant", "content": "I think." },
            { "role": "user", "content": "[adjourn] Go on." },
        ])
    );
    // The calls are of a tool that is not there any more, and that the provider must know.
    assert_eq!(server.body()["tools"][0]["function"]["name"], "lookup");
}

#[tokio::test]
async fn what_the_provider_does_not_take_is_said_to_be_left_out() {
    let server = Server::start(vec![says("I see.")]).await;
    let resource = |resource: Value| block(json!({ "type": "resource", "resource": resource }));
    let blocks = vec![
        block(json!({ "type": "audio", "mimeType": "audio/wav", "data": "aGVsbG8=" })),
        block(json!({ "type": "image", "mimeType": "image/tiff", "data": "aGVsbG8=" })),
        block(json!({ "type": "image", "mimeType": "image/png", "uri": "https://host/a.png" })),
        resource(json!({ "uri": "file:///a.txt", "text": "words" })),
        resource(json!({ "uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": "aGk=" })),
        resource(json!({ "uri": "file:///a.zip", "mimeType": "application/zip", "blob": "aGk=" })),
        block(
            json!({ "type": "resource_link", "name": "b", "uri": "file:///b", "description": "B" }),
        ),
        block(json!({ "type": "hologram" })),
    ];
    heard(&*model_at("openai/gpt-5", &server), asking(vec![message(ModelRole::User, blocks)]))
        .await;
    let left_out = "[adjourn] Left out, because this model cannot be shown it:";
    let text = |text: String| json!({ "type": "text", "text": text });
    assert_eq!(
        server.body()["messages"][1]["content"],
        json!([
            text(format!("{left_out} audio/wav")),
            text(format!("{left_out} image/tiff")),
            text(format!("{left_out} image/png, https://host/a.png")),
            text("<resource uri=\"file:///a.txt\">\nwords\n</resource>".to_owned()),
            { "type": "file", "file": { "filename": "a.pdf",
                                        "file_data": "data:application/pdf;base64,aGk=" } },
            text(format!("{left_out} application/zip, file:///a.zip")),
            text("[b](file:///b): B".to_owned()),
            text(format!("{left_out} hologram")),
        ])
    );
}
