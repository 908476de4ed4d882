//! What failures of a provider mean, and that none tells the key.

use std::time::Duration;

use adjourn_agent::{FailureKind, ModelPart};
use adjourn_core::time::Timestamp;
use adjourn_testkit::provider::openai::{chunk, event};
use adjourn_testkit::provider::{Reply, Server, anthropic};
use serde_json::json;

use super::anthropic::MODEL;
use super::{KEY, failure, heard, model_at, next, request};

const OPENAI: &str = "openai/gpt-5";

/// An answer of a status, which repeats the key as bad servers do.
fn refuses(status: u16, code: &str) -> Reply {
    let message = format!("refused with {KEY}");
    Reply::error(status, &json!({ "error": { "message": message, "type": code, "code": code } }))
}

#[tokio::test]
async fn each_status_is_a_failure_of_its_kind_and_none_tells_the_key() {
    use FailureKind::{AuthRequired, CapabilityGap, ScopeTooLarge, TransientProvider};
    for (status, code, kind) in [
        (400, "invalid_request_error", CapabilityGap),
        (400, "context_length_exceeded", ScopeTooLarge),
        (401, "invalid_api_key", AuthRequired),
        (403, "permission_error", CapabilityGap),
        (404, "model_not_found", CapabilityGap),
        (413, "request_too_large", ScopeTooLarge),
        (429, "rate_limit_exceeded", TransientProvider),
        (500, "server_error", TransientProvider),
        (503, "slow_down", TransientProvider),
        (529, "overloaded_error", TransientProvider),
        // A redirect is not followed: it would take the key along.
        (307, "moved", CapabilityGap),
    ] {
        for name in [OPENAI, MODEL] {
            let reply = refuses(status, code).header("location", "http://127.0.0.1:1/v1");
            let server = Server::start(vec![reply]).await;
            let error = failure(&*model_at(name, &server)).await;
            assert_eq!((error.kind, error.status), (kind, Some(status)), "{error:?}");
            assert!(error.message.starts_with(name), "{}", error.message);
            assert!(error.message.contains(&status.to_string()), "{}", error.message);
            assert!(!format!("{error:?}").contains(KEY), "{error:?}");
            assert_eq!(error.message.contains("refused with (key)"), status != 401, "{error}");
            assert_eq!(server.asked().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_known_by_what_each_provider_says() {
    for (code, message) in [
        ("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        ("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000"),
        ("invalid_request_error", "This model's maximum context length is 8192 tokens."),
        ("INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed"),
        ("exceed_context_size_error", "the request is larger than the context"),
    ] {
        let told = json!({ "error": { "message": message, "type": code } });
        let server = Server::start(vec![Reply::error(400, &told)]).await;
        let error = failure(&*model_at(OPENAI, &server)).await;
        assert_eq!(error.kind, FailureKind::ScopeTooLarge, "{error:?}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_taken_says_what_to_set() {
    let server = Server::start(vec![refuses(401, "invalid_api_key")]).await;
    let error = failure(&*model_at(OPENAI, &server)).await;
    assert!(error.message.contains("set OPENAI_API_KEY"), "{error}");
}

#[tokio::test]
async fn an_error_that_is_no_json_is_told_as_it_is() {
    let page = json!("<html>busy</html>");
    let server = Server::start(vec![Reply::error(502, &page)]).await;
    let error = failure(&*model_at(OPENAI, &server)).await;
    assert_eq!(error.kind, FailureKind::TransientProvider);
    assert!(error.message.contains("502 Bad Gateway") && error.message.contains("busy"), "{error}");
}

#[tokio::test]
async fn a_page_for_people_is_told_to_be_one() {
    let page = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>";
    for (name, reply, told) in [
        (OPENAI, Reply::page(404, page), "the answer is a web page \"Sign in\"; is the base URL"),
        (OPENAI, Reply::page(200, page), "nothing came that is an answer; is the base URL"),
        (MODEL, Reply::page(200, page), "nothing came that is an answer; is the base URL"),
    ] {
        let server = Server::start(vec![reply]).await;
        let error = failure(&*model_at(name, &server)).await;
        assert!(error.message.contains(told), "{error}");
    }
}

#[tokio::test]
async fn a_quota_that_is_used_up_says_when_it_refills() {
    let limited = || refuses(429, "rate_limit_exceeded");
    let time = Timestamp::parse("2026-11-16T06:00:00Z").unwrap();
    let now = Timestamp::parse("2026-11-16T05:00:00Z").unwrap();
    let in_seconds = |seconds| now.after(Duration::from_secs(seconds));
    for (reply, refills_at) in [
        (limited(), None),
        (limited().header("retry-after", "7"), Some(in_seconds(7))),
        (limited().header("retry-after", "Mon, 16 Nov 2026 06:00:00 GMT"), Some(time)),
        (limited().header("x-ratelimit-reset-tokens", "6m0s"), Some(in_seconds(360))),
        (limited().header("anthropic-ratelimit-tokens-reset", "2026-11-16T06:00:00Z"), Some(time)),
    ] {
        let server = Server::start(vec![reply]).await;
        let error = failure(&*model_at(MODEL, &server)).await;
        assert_eq!(error.quota_refills_at(now), refills_at, "{error:?}");
        assert_eq!(error.wait(now), refills_at.map(|at| at.since(now)), "{error:?}");
    }
    // A server that is down says when to come back, and that is no quota.
    let down = refuses(503, "down").header("retry-after", "7");
    let server = Server::start(vec![down]).await;
    let error = failure(&*model_at(MODEL, &server)).await;
    assert_eq!(error.quota_refills_at(now), None);
    assert_eq!(error.wait(now), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn an_error_in_the_midst_of_an_answer_is_a_failure_of_its_kind() {
    let told = |kind: &str| json!({ "type": "error", "error": { "type": kind, "message": KEY } });
    for (kind, status, means) in [
        ("overloaded_error", Some(529), FailureKind::TransientProvider),
        ("rate_limit_error", Some(429), FailureKind::TransientProvider),
        ("authentication_error", Some(401), FailureKind::AuthRequired),
        ("invalid_request_error", Some(400), FailureKind::CapabilityGap),
        ("unheard_of", None, FailureKind::TransientProvider),
    ] {
        let openai =
            Reply::events([chunk(&json!({ "content": "Well" }), None), event(&told(kind))]);
        let claude = Reply::events([anthropic::event(&told(kind))]);
        for (name, reply) in [(OPENAI, openai), (MODEL, claude)] {
            let server = Server::start(vec![reply]).await;
            let error = failure(&*model_at(name, &server)).await;
            assert_eq!((error.kind, error.status), (means, status), "{error:?}");
            assert!(!error.message.contains(KEY), "{error}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_cut_off_does_not_count_as_one() {
    let begins = || Reply::events([chunk(&json!({ "content": "Well" }), None)]);
    let claude = || anthropic::begins_to_say("Well");
    let garbage = Reply::events(["data: {\"choices\": [\n\n".to_owned()]);
    let stopped = || chunk(&json!({}), Some("stop"));
    let error = event(&json!({ "error": { "type": "server_error", "message": "oops" } }));
    for (name, reply) in [
        // That it has said why it stopped does not make up for what comes behind.
        (OPENAI, Reply::events([stopped()]).cut()),
        (OPENAI, Reply::events([stopped(), error])),
        (OPENAI, Reply::events([chunk(&json!({ "content": "Well" }), Some(""))])),
        (OPENAI, begins()),
        (OPENAI, begins().cut()),
        (OPENAI, garbage),
        (MODEL, claude()),
        (MODEL, claude().cut()),
    ] {
        let server = Server::start(vec![reply.clone()]).await;
        let parts = heard(&*model_at(name, &server), request("Hello?")).await;
        let finished = parts.iter().any(|part| matches!(part, Ok(ModelPart::Finished(_))));
        assert!(!finished, "{reply:?}: {parts:?}");
        if let Some(Err(error)) = parts.last() {
            assert_eq!(error.kind, FailureKind::TransientProvider, "{error:?}");
        }
    }
}

/// Room for all calls up to that place would take more memory than there is.
#[tokio::test]
async fn a_call_at_a_place_far_beyond_all_others_breaks_the_answer_off() {
    let call = |place: u32| {
        let function = json!({ "name": "look", "arguments": "{}" });
        let call = json!({ "index": place, "id": format!("c{place}"), "function": function });
        chunk(&json!({ "tool_calls": [call] }), None)
    };
    let done = || [chunk(&json!({}), Some("tool_calls")), "data: [DONE]\n\n".to_owned()];
    let escaped = call(u32::MAX).replace("tool_calls", r"tool\u005fcalls");
    for far in [call(30_000_000), escaped, call(20)] {
        let frames = [call(0), call(1), far].into_iter().chain(done());
        let server = Server::start(vec![Reply::events(frames)]).await;
        let error = failure(&*model_at(OPENAI, &server)).await;
        assert_eq!(error.kind, FailureKind::TransientProvider, "{error:?}");
        assert!(error.message.contains("it has a call at the place "), "{error}");
    }
    // As many calls as there are: how many may run is not decided here.
    let server = Server::start(vec![Reply::events((0..80).map(call).chain(done()))]).await;
    let parts = heard(&*model_at(OPENAI, &server), request("Hello?")).await;
    assert_eq!(parts.iter().filter(|part| matches!(part, Ok(ModelPart::Call(_)))).count(), 80);
}

#[tokio::test]
async fn a_provider_that_is_not_there_is_named() {
    let server = Server::start(Vec::new()).await;
    let url = server.url().to_owned();
    let model = model_at(OPENAI, &server);
    drop(server);
    let error = failure(&*model).await;
    assert_eq!(error.kind, FailureKind::TransientProvider);
    assert!(error.message.contains(&format!("{url} cannot be reached")), "{error}");
}

#[tokio::test]
async fn dropping_an_answer_closes_its_connection() {
    for (name, reply) in [
        (OPENAI, Reply::events([chunk(&json!({ "content": "Well" }), None)])),
        (MODEL, anthropic::begins_to_say("Well")),
    ] {
        let mut server = Server::start(vec![reply.held()]).await;
        let mut answer = model_at(name, &server).respond(request("Hello?"));
        let said = loop {
            let part = next(&mut answer).await.unwrap().unwrap();
            if part != ModelPart::Alive {
                break part;
            }
        };
        assert_eq!(said, ModelPart::Text("Well".to_owned()));
        drop(answer);
        server.closed().await;
    }
}
