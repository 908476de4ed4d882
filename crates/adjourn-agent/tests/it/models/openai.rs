//! The chat completions of `OpenAI`, and of all that speak like it.

use adjourn_agent::{FinishReason, ModelCall, ModelPart, ModelUsage, ToolSpec};
use adjourn_driver::{Block, ModelRole};
use adjourn_testkit::provider::openai::{chunk, event, says};
use adjourn_testkit::provider::{Reply, Server};
use serde_json::{Value, json};

use super::{asking, block, calling, heard, message, model_at, next, request, result, tools};
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

/// Returns the event of a stream that brings these entries of `delta.tool_calls`.
fn call_entries(entries: Value) -> String {
    chunk(&json!({ "tool_calls": entries }), None)
}

fn done() -> [String; 2] {
    [chunk(&json!({}), Some("tool_calls")), "data: [DONE]\n\n".to_owned()]
}

/// Hears an answer with these events.
async fn heard_of(
    events: impl IntoIterator<Item = String>,
) -> Vec<Result<ModelPart, adjourn_agent::ModelError>> {
    let server = Server::start(vec![Reply::events(events)]).await;
    heard(&*model_at("openai/gpt-5", &server), request("Look it up.")).await
}

#[tokio::test]
async fn calls_with_one_index_and_other_ids_are_other_calls() {
    let finished = || Ok(ModelPart::Finished(FinishReason::ToolCalls));
    let both = || [call("a", "lookup", "{\"n\":1}"), call("b", "lookup", "{\"n\":2}"), finished()];
    // Each call whole, in a message of its own or in one with the other.
    let entry = |id: &str, arguments: &str| {
        json!({ "index": 0, "id": id, "type": "function",
                "function": { "name": "lookup", "arguments": arguments } })
    };
    let (a, b) = (entry("a", "{\"n\":1}"), entry("b", "{\"n\":2}"));
    let apart = [call_entries(json!([a])), call_entries(json!([b]))];
    assert_eq!(heard_of(apart.into_iter().chain(done())).await, both());
    let together = [call_entries(json!([a, b]))];
    assert_eq!(heard_of(together.into_iter().chain(done())).await, both());
    // In pieces, which belong to the call that has begun last; some servers repeat the name.
    let pieces = [
        call_piece(0, Some("a"), Some("lookup"), ""),
        call_piece(0, Some("a"), Some("lookup"), "{\"n\""),
        call_piece(0, Some(""), Some("lookup"), ":1}"),
        call_piece(0, Some("b"), Some("lookup"), "{"),
        call_piece(0, Some("b"), None, "\"n\""),
        call_piece(0, None, None, ":2}"),
    ];
    assert_eq!(heard_of(pieces.into_iter().chain(done())).await, both());
}

#[tokio::test]
async fn calls_with_one_index_and_no_id_are_other_calls_and_one_id_under_several_is_one() {
    let finished = || Ok(ModelPart::Finished(FinishReason::ToolCalls));
    let piece = |name: &str, arguments: &str| call_piece(0, Some(""), Some(name), arguments);
    let nameless = [
        piece("lookup", "{\"n\":"),
        // Some servers repeat the name.
        piece("lookup", "\"}{\"}"),
        piece("lookup", ""),
        piece("lookup", "{\"n\":2}"),
        piece("see", "{}"),
    ];
    assert_eq!(
        heard_of(nameless.into_iter().chain(done())).await,
        [
            call("call_0", "lookup", "{\"n\":\"}{\"}"),
            call("call_1", "lookup", "{\"n\":2}"),
            call("call_2", "see", "{}"),
            finished()
        ]
    );
    let again = [
        call_piece(0, Some("a"), Some("lookup"), "{\"n\""),
        call_piece(1, Some("a"), Some("lookup"), "{\"n\":1}"),
        call_piece(2, Some("a"), Some("lookup"), "{\"n\":1}"),
        call_piece(3, Some("b"), Some("lookup"), "{\"n\":1}"),
    ];
    assert_eq!(
        heard_of(again.into_iter().chain(done())).await,
        [call("a", "lookup", "{\"n\":1}"), call("b", "lookup", "{\"n\":1}"), finished()]
    );
}

#[tokio::test]
async fn calls_without_an_index_are_heard() {
    let finished = || Ok(ModelPart::Finished(FinishReason::ToolCalls));
    let piece = |id: Option<&str>, name: Option<&str>, arguments: &str| json!({ "id": id, "function": { "name": name, "arguments": arguments } });
    let by_id = [
        call_entries(json!([piece(Some("a"), Some("lookup"), "{\"n\"")])),
        call_entries(json!([piece(Some("a"), None, ":"), piece(None, None, "1}")])),
        call_entries(json!([piece(Some("b"), Some("lookup"), "{\"n\":2}")])),
    ];
    assert_eq!(
        heard_of(by_id.into_iter().chain(done())).await,
        [call("a", "lookup", "{\"n\":1}"), call("b", "lookup", "{\"n\":2}"), finished()]
    );
    // A piece with an id belongs to the call with that id, whichever was the last.
    let mixed = [
        call_entries(json!([piece(Some("a"), Some("lookup"), "{\"n\"")])),
        call_entries(json!([piece(Some("b"), Some("lookup"), "{\"n\":2")])),
        call_entries(json!([piece(Some("a"), None, ":1}"), piece(Some("b"), None, "}")])),
    ];
    assert_eq!(
        heard_of(mixed.into_iter().chain(done())).await,
        [call("a", "lookup", "{\"n\":1}"), call("b", "lookup", "{\"n\":2}"), finished()]
    );
    // Those without an id get ones that no other call of the answer has.
    let by_name = [
        call_entries(json!([piece(None, Some("look"), ""), piece(None, None, "{}")])),
        call_entries(json!([piece(Some("call_0"), Some("see"), "{}")])),
        call_entries(json!([piece(None, Some("look"), ""), { "function": { "arguments": {} } }])),
    ];
    assert_eq!(
        heard_of(by_name.into_iter().chain(done())).await,
        [
            call("call_1", "look", "{}"),
            call("call_0", "see", "{}"),
            call("call_2", "look", "{}"),
            finished()
        ]
    );
    // What belongs to no call is none.
    let nothing = [call_entries(json!([piece(None, None, "{}"), {}, 7]))];
    assert_eq!(heard_of(nothing.into_iter().chain(done())).await, [finished()]);
}

#[tokio::test]
async fn a_piece_of_a_call_without_an_index_is_a_sign_of_life() {
    let piece = call_entries(json!([{ "id": "a", "function": { "name": "look" } }]));
    let server = Server::start(vec![Reply::events([piece]).held()]).await;
    let mut answer = model_at("openai/gpt-5", &server).respond(request("Look it up."));
    assert_eq!(next(&mut answer).await, Some(Ok(ModelPart::Alive)));
}

#[tokio::test]
async fn an_answer_that_has_said_why_it_stopped_is_over_when_its_stream_is() {
    let usage = |place: Value| event(&json!({ "choices": [], "usage": place }));
    let used = json!({ "prompt_tokens": 120, "completion_tokens": 8 });
    let spent = ModelUsage {
        prompt_tokens: Some(120),
        completion_tokens: Some(8),
        ..ModelUsage::default()
    };
    let words = [
        chunk(&json!({ "content": "Well" }), None),
        chunk(&json!({}), Some("length")),
        usage(used.clone()),
        usage(Value::Null),
    ];
    assert_eq!(
        heard_of(words).await,
        [
            Ok(ModelPart::Text("Well".to_owned())),
            Ok(ModelPart::Usage(spent)),
            Ok(ModelPart::Finished(FinishReason::Length)),
        ]
    );
    let groq = event(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
                              "x_groq": { "usage": used } }));
    let calls = [call_piece(0, Some("a"), Some("lookup"), "{}"), groq];
    assert_eq!(
        heard_of(calls).await,
        [
            Ok(ModelPart::Usage(spent)),
            call("a", "lookup", "{}"),
            Ok(ModelPart::Finished(FinishReason::Stop)),
        ]
    );
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
