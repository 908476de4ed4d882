//! What no peer should send: each is refused with a word for it, and harms nobody else.

use std::time::Duration;

use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::Awaited;
use serde_json::{Value, json};

use crate::agent::{BOSS, DONE, JSON, Served, Setting, request};

/// Still answers, and has made nothing of what was sent.
fn is_well(served: &Served) {
    assert_eq!(served.result("ListTasks", &json!({}))["totalSize"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_no_request_are_named() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_params = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{deep}}}"#);
    let long_id = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ListTasks"}}"#, "x".repeat(257));
    for (body, code) in [
        (long_id.as_str(), -32600),
        ("", -32700),
        ("{", -32700),
        ("\u{0}", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"GetTask\",}", -32700),
        ("NaN", -32700),
        ("null", -32600),
        ("7", -32600),
        ("[]", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"tasks/list"}]"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"tasks/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":[],"method":"tasks/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","method":"tasks/list"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/send"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"TASKS/GET"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":"x"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":7}}"#, -32602),
        (deep.as_str(), -32600),
        (deep_params.as_str(), -32600),
    ] {
        let answer = served.send("POST /a2a", &[JSON, BOSS], body);
        let head: String = body.chars().take(60).collect();
        let error = &answer.json()["error"];
        assert_eq!((answer.status, &error["code"]), (200, &json!(code)), "{head}");
        let reason = match code {
            -32700 => "PARSE_ERROR",
            -32600 => "INVALID_REQUEST",
            -32601 => "METHOD_NOT_FOUND",
            _ => "INVALID_PARAMS",
        };
        assert_eq!(error["data"][0]["reason"], reason, "{head}");
    }
    // Bytes that are no text at all.
    let mut connection = Awaited::open(served.address).await;
    let head = "POST /a2a HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer boss\r\n\
                content-type: application/json\r\ncontent-length: 3\r\n\r\n";
    connection.write([head.as_bytes(), &[0xff, 0xfe, 0x00]].concat()).await.unwrap();
    assert_eq!(connection.answer().await.unwrap().json()["error"]["code"], -32700);
    is_well(&served);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_are_no_request_are_named_over_http_json() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (body, reason) in [
        ("{", "PARSE_ERROR"),
        ("\u{0}", "PARSE_ERROR"),
        (r#"{"message":{},}"#, "PARSE_ERROR"),
        ("NaN", "PARSE_ERROR"),
        (deep.as_str(), "INVALID_REQUEST"),
        ("", "INVALID_PARAMS"),
        ("null", "INVALID_PARAMS"),
        ("7", "INVALID_PARAMS"),
        ("[]", "INVALID_PARAMS"),
        (r#"[{"message":{}}]"#, "INVALID_PARAMS"),
        ("{}", "INVALID_PARAMS"),
        (r#"{"message":"x"}"#, "INVALID_PARAMS"),
    ] {
        let head: String = body.chars().take(60).collect();
        for (path, at) in [
            ("message:send", "/error/details/0/reason"),
            ("acme/message:stream", "/error/details/0/reason"),
            ("v1/message:send", "/data/0/reason"),
        ] {
            let answer = served.send(&format!("POST /a2a/{path}"), &[JSON, BOSS], body);
            assert_eq!(answer.status, 400, "{path} {head}: {}", answer.body);
            let named = answer.json().pointer(at).cloned();
            assert_eq!(named, Some(json!(reason)), "{path} {head}: {}", answer.body);
        }
    }
    // Also where the path says what is asked for, and the body only how.
    let task = served.begin("m1");
    for (verb, kind, body, reason) in [
        ("pause", JSON.1, "{", "PARSE_ERROR"),
        ("resume", JSON.1, "[1]", "INVALID_PARAMS"),
        ("awaitResumption", JSON.1, "\u{0}", "PARSE_ERROR"),
        ("cancel", JSON.1, "7", "INVALID_PARAMS"),
        ("pause", "text/plain", "{}", "CONTENT_TYPE_NOT_SUPPORTED"),
        ("cancel", "application/x-www-form-urlencoded", "a=b", "CONTENT_TYPE_NOT_SUPPORTED"),
    ] {
        let what = format!("POST /a2a/tasks/{task}:{verb}");
        let answer = served.send(&what, &[BOSS, ("content-type", kind)], body);
        assert_eq!(answer.status, 400, "{verb} {body}: {}", answer.body);
        let named = &answer.json()["error"]["details"][0]["reason"];
        assert_eq!(named, reason, "{verb} {body}: {}", answer.body);
    }
    let shown = served.result("tasks/get", &json!({ "id": task }));
    assert_eq!(shown["status"]["state"], "working");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_content_types_versions_and_extensions_are_told_or_left_alone() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let list = request("ListTasks", &json!({}));
    for kind in ["text/plain", "application/xml", "", "application/jsonx", "multipart/form-data"] {
        let answer = served.send("POST /a2a", &[BOSS, ("content-type", kind)], &list);
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (200, &json!(-32005)),
            "{kind}"
        );
        let path = "POST /a2a/message:send";
        let answer = served.send(path, &[BOSS, ("content-type", kind)], "{}");
        assert_eq!(answer.status, 400, "{kind}");
        assert!(answer.body.contains("CONTENT_TYPE_NOT_SUPPORTED"), "{}", answer.body);
    }
    for (version, is_known) in [
        ("", true),
        ("0.3", true),
        ("1.0", true),
        ("1.0.1", true),
        ("0.2", false),
        ("1", false),
        ("1.1", false),
        ("9999999999.0", false),
        ("1.0; drop", false),
    ] {
        let headers = [JSON, BOSS, ("a2a-version", version)];
        let answer = served.send("POST /a2a", &headers, &list).json();
        assert_eq!(answer.get("result").is_some(), is_known, "{version:?}: {answer}");
        assert!(is_known || answer["error"]["code"] == -32009, "{answer}");
        let answer = served.send("GET /a2a/tasks", &headers, "");
        assert_eq!(answer.status, if is_known { 200 } else { 400 }, "{version:?}");
    }
    let many = vec!["urn:x"; 1000].join(",");
    for extensions in ["urn:unknown", ",,,", many.as_str(), "urn:adjourn:a2a:pause:v2"] {
        let answer = served.send("POST /a2a", &[JSON, BOSS, ("a2a-extensions", extensions)], &list);
        assert_eq!(answer.status, 200);
        assert!(!answer.head.contains("\r\na2a-extensions:"), "{}", answer.head);
    }
    is_well(&served);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_ids_find_nothing_and_break_nothing() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let long = "x".repeat(100_000);
    for id in [
        "x",
        "run-",
        "run-00000000-0000-0000-0000-000000000000",
        "run-019ABF6B-7D51-7C1D-BB02-0123456789AB",
        "sess-019abf6b-7d51-7c1d-bb02-0123456789ab",
        "../../etc/passwd",
        "' OR 1=1 --",
        "\u{1f600}",
        "a\u{0}b",
        long.as_str(),
    ] {
        for (method, code) in
            [("tasks/get", -32001), ("tasks/pause", -32004), ("ResumeTask", -32001)]
        {
            let answer = served.ask(&[], method, &json!({ "id": id, "taskId": id }));
            assert_eq!(answer["error"]["code"], code, "{method} {id:.40}: {answer:.300}");
            assert!(answer.to_string().len() < 1000, "what was sent does not come back whole");
        }
        let mut message = crate::agent::words("m1");
        message["taskId"] = id.into();
        let answer = served.ask(&[], "message/send", &json!({ "message": message }));
        assert_eq!(answer["error"]["code"], -32001, "{id:.40}");
    }
    for path in ["%2e%2e", "run-%00", "%ff%fe", "a%2Fb", ":", ":pause", "a:b:c"] {
        let answer = served.send(&format!("GET /a2a/tasks/{path}"), &[BOSS], "");
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
    }
    for (field, value) in [
        ("messageId", json!("")),
        ("messageId", json!("x".repeat(300))),
        ("contextId", json!(long)),
        ("contextId", json!("a\nb")),
    ] {
        let mut message = crate::agent::words("m1");
        message[field] = value;
        let answer = served.ask(&[], "message/send", &json!({ "message": message }));
        assert_eq!(answer["error"]["code"], -32602, "{field}: {answer:.300}");
    }
    is_well(&served);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_has_a_bound_and_so_has_what_is_said_in_it() {
    const MIB: usize = 1024 * 1024;
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let sending = |bytes: usize| {
        let mut message = crate::agent::words("m1");
        message["parts"][0]["text"] = "x".repeat(bytes).into();
        let params = json!({ "message": message, "configuration": { "blocking": false } });
        request("message/send", &params)
    };
    let huge = served.send("POST /a2a", &[JSON, BOSS], &sending(16 * MIB));
    assert_eq!(huge.status, 413, "{}", huge.body);
    assert_eq!(huge.json()["detail"], "a request may have 16777216 bytes");
    let long = served.send("POST /a2a", &[JSON, BOSS], &sending(13 * MIB));
    assert_eq!((long.status, &long.json()["error"]["code"]), (200, &json!(-32602)));
    is_well(&served);
    let fits = served.send("POST /a2a", &[JSON, BOSS], &sending(11 * MIB));
    assert_eq!(fits.json()["result"]["kind"], "task");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_has_a_bound() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let long = "x".repeat(200_000);
    let names: Vec<_> = (0..100).map(|number| format!("x-{number}")).collect();
    let many: Vec<_> = names.iter().map(|name| (name.as_str(), "1")).collect();
    for headers in [&[("x-long", long.as_str())][..], &many] {
        let answer = served.send("GET /healthz", headers, "");
        assert_eq!(answer.status, 431, "{}", answer.body);
    }
    is_well(&served);
    served.stop().await;
}

/// The clock of this test goes on by itself when there is nothing else to do.
#[tokio::test(start_paused = true)]
async fn a_body_that_never_comes_is_not_waited_for() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let mut connection = Awaited::open(served.address).await;
    let head = "POST /a2a HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer boss\r\n\
                content-type: application/json\r\ncontent-length: 99\r\n\r\n{";
    connection.write(head).await.unwrap();
    let start = tokio::time::Instant::now();
    let answer = tokio::time::timeout(Duration::from_secs(120), connection.answer());
    assert_eq!(answer.await.unwrap().unwrap().status, 408);
    assert!(start.elapsed() >= Duration::from_secs(29), "{:?}", start.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_client_may_not_call_its_own_is_left_alone() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let mut message = crate::agent::words("m1");
    for (field, value) in [
        ("role", json!("agent")),
        ("role", json!(7)),
        ("parts", json!([])),
        ("parts", json!({})),
        ("parts", json!([{ "kind": "text" }])),
        ("parts", json!([{ "kind": "file", "file": {} }])),
        ("taskId", json!([])),
    ] {
        let mut message = message.clone();
        message[field] = value;
        let answer = served.ask(&[], "message/send", &json!({ "message": message }));
        assert_eq!(answer["error"]["code"], -32602, "{field}: {answer}");
    }
    // Fields that are not known are no mistake.
    message["mood"] = "good".into();
    let params = json!({ "message": message, "whatever": [1], "configuration": { "blocking": false, "x": 1 } });
    let task: Value = served.result("message/send", &params);
    assert_eq!(task["status"]["state"], "working");
    served.stop().await;
}

/// On a runtime of one thread, which the server needs too.
async fn is_alive(served: &Served) {
    let answer = Awaited::open(served.address).await.send("GET /healthz", &[], "").await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_peer_that_takes_nothing_of_its_answer_is_hung_up_on_and_others_are_served() {
    const BYTES: usize = 11 * 1024 * 1024;
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let mut message = crate::agent::words("m1");
    message["parts"][0]["text"] = "x".repeat(BYTES).into();
    let params = json!({ "message": message, "configuration": { "blocking": false } });
    let headers = [JSON, BOSS];
    let mut other = Awaited::open(served.address).await;
    let sent = other.send("POST /a2a", &headers, &request("message/send", &params)).await.json();
    let get = format!("GET /a2a/tasks/{}", sent["result"]["id"].as_str().unwrap());
    let mut slow = Awaited::open(served.address).await;
    slow.begin(&get, &[BOSS], "").await;
    // The answer has begun.
    slow.line().await.unwrap().unwrap();
    let body = request("tasks/get", &json!({ "id": "run-x" }));
    assert_eq!(other.send("POST /a2a", &headers, &body).await.status, 200);
    // A peer has a minute, which this clock takes when there is nothing else to do.
    tokio::time::pause();
    tokio::time::sleep(Duration::from_secs(600)).await;
    tokio::time::resume();
    let mut taken = Vec::new();
    let _ = slow.rest(&mut taken).await;
    assert!(taken.len() < BYTES, "it took its time, and the whole answer came");
    is_alive(&served).await;
    served.stop().await;
}
