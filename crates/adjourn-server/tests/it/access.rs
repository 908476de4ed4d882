//! Who may do what: one layer for all that is served.

use std::io::Read as _;
use std::net::TcpStream;

use adjourn_a2a::Profile;
use adjourn_server::{Access, Names, PublicName, Token};
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::Events;
use adjourn_testkit::store::TENANT;
use serde_json::{Value, json};

use crate::agent::{BOSS, DONE, JSON, STATES, Setting, request, token, words};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"ci","type":"a"}"#;
const EVENTS: (&str, &str) = ("content-type", "application/cloudevents+json");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_scope_allows_its_own_and_nothing_else() {
    let fixture = Fixture::new();
    let scopes = ["read", "send", "pause", "resume", "agent", "event", "admin"];
    let tokens = scopes.map(|scope| token(scope, scope, TENANT));
    let ring = Token::for_events("ring", TENANT);
    let access = Access::with(tokens.into_iter().chain([ring, token("boss", "admin", TENANT)]));
    let served = Setting { access, ..Setting::new(DONE) }.on(&fixture).await;
    let task = served.begin("m1");
    served.result("tasks/pause", &json!({ "taskId": task }));
    // Each move is made by those alone who may; the first of them changes something.
    for (method, params, allowed) in [
        ("tasks/get", json!({ "id": task }), "read"),
        ("ListTasks", json!({}), "read"),
        ("tasks/resume", json!({ "taskId": task }), "resume"),
        ("tasks/await_resumption", json!({ "taskId": task, "reason": "ci" }), "agent"),
        ("AwaitTaskResumption", json!({ "taskId": task, "reason": "ci" }), "agent"),
        ("tasks/pause", json!({ "taskId": task }), "pause"),
        ("tasks/resubscribe", json!({ "id": task }), "read"),
        ("SubscribeToTask", json!({ "id": task }), "read"),
        ("message/stream", json!({ "message": words("m4") }), "send"),
        ("tasks/cancel", json!({ "id": task }), "send"),
        (
            "message/send",
            json!({ "message": words("m2"), "configuration": { "blocking": false } }),
            "send",
        ),
    ] {
        for name in scopes.into_iter().chain(["ring"]) {
            let shown = format!("Bearer {name}");
            let headers = [JSON, ("authorization", &shown)];
            let answer = served.send("POST /a2a", &headers, &request(method, &params));
            let may = name == allowed || name == "admin";
            assert_eq!(answer.status == 403, !may, "{method} with {name}: {}", answer.body);
            let denied = answer.json()["error"]["data"][0]["reason"] == "PERMISSION_DENIED";
            assert_eq!(denied, !may, "{method} with {name}: {}", answer.body);
        }
    }
    // The same over HTTP+JSON.
    let path = |verb: &str| format!("tasks/{task}{verb}");
    let message = json!({ "message": { "messageId": "m5", "role": "ROLE_USER",
                                       "parts": [{ "text": "go" }] },
                          "configuration": { "returnImmediately": true } });
    let message = message.to_string();
    let moves = [
        (format!("GET /a2a/{}", path("")), "", "read"),
        ("GET /a2a/tasks".to_owned(), "", "read"),
        (format!("POST /a2a/{}", path(":cancel")), "{}", "send"),
        ("POST /a2a/message:send".to_owned(), &message, "send"),
        ("POST /a2a/message:stream".to_owned(), &message, "send"),
        (format!("POST /a2a/{}", path(":pause")), "{}", "pause"),
    ];
    for ((what, body, allowed), name) in moves
        .iter()
        .flat_map(|moved| scopes.into_iter().chain(["ring"]).map(move |name| (moved, name)))
    {
        let shown = format!("Bearer {name}");
        let answer = served.send(what, &[JSON, ("authorization", &shown)], body);
        let may = name == *allowed || name == "admin";
        assert_eq!(answer.status == 403, !may, "{what} with {name}: {}", answer.body);
        let denied = answer.json()["error"]["details"][0]["reason"] == "PERMISSION_DENIED";
        assert_eq!(denied, !may, "{what} with {name}: {}", answer.body);
    }
    for name in scopes.into_iter().chain(["ring"]) {
        let shown = format!("Bearer {name}");
        let answer = served.send("POST /v1/events", &[EVENTS, ("authorization", &shown)], EVENT);
        let may = ["event", "admin", "ring"].contains(&name);
        assert_eq!(answer.status, if may { 200 } else { 403 }, "{name}: {}", answer.body);
    }
    // A handle is for those who may resume.
    served.result("tasks/get", &json!({ "id": task }));
    let task = served.begin("m3");
    served.result("tasks/pause", &json!({ "taskId": task }));
    for (name, sees) in [("read", false), ("admin", true)] {
        let shown = format!("Bearer {name}");
        let get = request("tasks/get", &json!({ "id": task }));
        let answer = served.send("POST /a2a", &[JSON, ("authorization", &shown)], &get);
        assert_eq!(answer.body.contains("suspend-"), sees, "{name}: {}", answer.body);
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_token_the_card_and_the_health_are_told_and_nothing_of_sessions() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = served.begin("m1");
    for path in ["/.well-known/agent-card.json", "/.well-known/agent.json", "/healthz", "/readyz"] {
        let answer = served.send(&format!("GET {path}"), &[], "");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        for secret in [&task, TENANT, "sess-", "run-"] {
            assert!(!answer.body.contains(secret), "{path}: {}", answer.body);
        }
    }
    let get = format!("GET /a2a/tasks/{task}");
    for (what, body) in [
        ("POST /a2a", request("tasks/get", &json!({ "id": task }))),
        ("POST /a2a/", request("tasks/list", &json!({}))),
        ("GET /a2a/tasks", String::new()),
        (get.as_str(), String::new()),
        ("GET /a2a/extendedAgentCard", String::new()),
        ("GET /a2a/nothing", String::new()),
        ("POST /v1/events", EVENT.to_owned()),
    ] {
        for shown in ["", "Bearer", "Bearer nobody", "Basic Ym9zczo=", "boss"] {
            let shown = [("authorization", shown)];
            let headers = if shown[0].1.is_empty() { &[][..] } else { &shown };
            let answer = served.send(what, &[&[JSON], headers].concat(), &body);
            assert_eq!(answer.status, 401, "{what} {shown:?}: {}", answer.body);
            assert!(answer.head.contains("\r\nwww-authenticate: bearer"), "{}", answer.head);
            assert!(!answer.body.contains("run-"), "{}", answer.body);
        }
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_yours_looks_like_what_is_not_there() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = served.begin("m1");
    let handle = served.result("tasks/pause", &json!({ "taskId": task }))["handle"].clone();
    let nobody = "run-019abf6b-7d51-7c1d-bb02-0123456789ab";
    let guest = ("authorization", "Bearer guest");
    let told = |task: &str, method: &str| {
        let params = json!({ "id": task, "taskId": task, "handle": handle, "reason": "ci" });
        let answer = served.send("POST /a2a", &[JSON, guest], &request(method, &params));
        (answer.status, answer.body.replace(task, "it"))
    };
    for method in [
        "tasks/get",
        "GetTask",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/pause",
        "tasks/resume",
        "tasks/await_resumption",
        "PauseTask",
        "ResumeTask",
        "AwaitTaskResumption",
    ] {
        assert_eq!(told(&task, method), told(nobody, method), "{method}");
    }
    for path in ["tasks/{}", "tasks/{}:subscribe", "acme/tasks/{}", "v1/tasks/{}"] {
        let told = |task: &str| {
            let answer =
                served.send(&format!("GET /a2a/{}", path.replace("{}", task)), &[guest], "");
            (answer.status, answer.body.replace(task, "it"))
        };
        assert_eq!(told(&task), told(nobody), "{path}");
        assert_eq!(told(&task).0, 404, "{path}");
    }
    for verb in ["pause", "resume", "awaitResumption"] {
        let told = |task: &str| {
            let path = format!("POST /a2a/tasks/{task}:{verb}");
            let answer = served.send(&path, &[JSON, guest], r#"{"reason":"ci"}"#);
            (answer.status, answer.body.replace(task, "it"))
        };
        assert_eq!(told(&task), told(nobody), "{verb}");
        assert_eq!(told(&task).0, 404, "{verb}");
    }
    // A message to a context of another tenant begins one of its own.
    let context = served.result("tasks/get", &json!({ "id": task }))["contextId"].clone();
    let mut message = words("m1");
    message["contextId"] = context.clone();
    let params = json!({ "message": message, "configuration": { "blocking": false } });
    let answer = served.send("POST /a2a", &[JSON, guest], &request("message/send", &params));
    let theirs = &answer.json()["result"];
    assert!(theirs["id"] != task.as_str() && theirs["history"][0]["messageId"] == "m1", "{theirs}");
    assert_eq!(served.result("ListTasks", &json!({}))["totalSize"], 1);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_published_in_the_tenant_of_their_token() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let parks =
        r#"{"steps": [{"await": {"reason": "ci", "conditions": {"onEvent": "ci.passed"}}}]}"#;
    let served = Setting::new(parks).on(&fixture).await;
    let sent = served.result("message/send", &json!({ "message": words("m1") }));
    let task = sent["id"].as_str().unwrap();
    assert!(sent.pointer("/metadata/harn/pause").is_some(), "{sent}");
    let mut watch = served.watch(task, &[], None);
    watch.next().unwrap();
    let event = r#"{"specversion":"1.0","id":"1","source":"ci","type":"ci.passed"}"#;
    let guest = ("authorization", "Bearer guest");
    let publish = |who| served.send("POST /v1/events", &[EVENTS, who], event).json();
    assert_eq!(publish(guest)["acknowledged"][0], json!({ "seq": 1, "fresh": true }));
    // The same id is the first one in this tenant; the other one woke nobody here.
    let shown = served.result("tasks/get", &json!({ "id": task }));
    assert!(shown.pointer("/metadata/harn/pause").is_some(), "{shown}");
    assert_eq!(publish(BOSS)["acknowledged"][0], json!({ "seq": 2, "fresh": true }));
    let (_, last) = watch.last().unwrap();
    assert_eq!(last.pointer("/result/status/state"), Some(&Value::from("completed")));
    host.stop().await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_called_by_its_names_and_by_no_page_of_another_site() {
    let fixture = Fixture::new();
    let names = Names::of([PublicName::read("https://agents.example.org").unwrap()]);
    let served = Setting { names, ..Setting::new(DONE) }.on(&fixture).await;
    let list = request("tasks/list", &json!({}));
    for (host, origin, expected) in [
        ("localhost", None, 200),
        ("127.0.0.1:1", None, 200),
        ("agents.example.org", None, 200),
        ("AGENTS.example.org:443", Some("https://agents.example.org"), 200),
        ("localhost:7070", Some("http://localhost:7070"), 200),
        ("127.0.0.1:7070", Some("https://agents.example.org"), 200),
        ("evil.example", None, 421),
        ("agents.example.org.evil.example", None, 421),
        ("10.0.0.1", None, 421),
        ("localhost", Some("https://evil.example"), 403),
        ("localhost:7070", Some("http://localhost:3000"), 403),
        ("agents.example.org", Some("null"), 403),
    ] {
        let origin = origin.map(|origin| ("origin", origin));
        for (what, body) in [
            ("POST /a2a", list.as_str()),
            ("GET /a2a/tasks", ""),
            ("GET /healthz", ""),
            ("GET /.well-known/agent-card.json", ""),
        ] {
            let headers = [&[JSON, BOSS, ("host", host)][..], origin.as_slice()].concat();
            let answer = served.send(what, &headers, body);
            assert_eq!(answer.status, expected, "{what} {host} {origin:?}: {}", answer.body);
            let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
            match expected {
                421 => assert_eq!(detail, "this server is called agents.example.org"),
                403 => assert_eq!(detail, "pages of other sites cannot use this server"),
                _ => {}
            }
        }
    }
    // The card says how it was reached.
    let card = |host| {
        let answer = served.send("GET /.well-known/agent-card.json", &[("host", host)], "");
        answer.json()["url"].clone()
    };
    assert_eq!(card("localhost:7070"), "http://localhost:7070/a2a");
    assert_eq!(card("agents.example.org"), "https://agents.example.org/a2a");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_is_known_is_told_what_it_may_do() {
    let fixture = Fixture::new();
    let access = Access::with([token("boss", "admin", TENANT), token("look", "read", "team")]);
    let served = Setting { access, ..Setting::new(DONE) }.on(&fixture).await;
    let card = served.send("GET /.well-known/agent-card.json", &[], "").json();
    assert_eq!(card["supportsAuthenticatedExtendedCard"], true);
    assert_eq!(card["capabilities"]["extendedAgentCard"], true);
    let look = ("authorization", "Bearer look");
    let rpc = |method| {
        let answer = served.send("POST /a2a", &[JSON, look], &request(method, &Value::Null));
        answer.json()["result"].clone()
    };
    let extended = rpc("GetExtendedAgentCard");
    let caller = extended.pointer("/capabilities/extensions/0/params/caller").unwrap();
    assert_eq!(*caller, json!({ "name": "look", "tenant": "team", "scopes": ["read"] }));
    assert_eq!(extended.pointer("/supportedInterfaces/0/tenant"), Some(&"team".into()));
    assert_eq!(rpc("agent/getAuthenticatedExtendedCard"), extended);
    for path in ["/a2a/extendedAgentCard", "/a2a/team/extendedAgentCard", "/a2a/v1/card"] {
        let answer = served.send(&format!("GET {path}"), &[look], "");
        assert_eq!(answer.json(), extended, "{path}");
    }
    assert_eq!(served.send("GET /a2a/acme/extendedAgentCard", &[look], "").status, 400);
    served.stop().await;

    // Where everybody is let in there is nothing more to tell.
    let access = Access::default().open_to_all(TENANT);
    let served = Setting { access, ..Setting::new(DONE) }.on(&fixture).await;
    let card = served.send("GET /.well-known/agent-card.json", &[], "").json();
    assert_eq!(card["capabilities"]["extendedAgentCard"], false);
    for (method, code) in
        [("GetExtendedAgentCard", -32004), ("agent/getAuthenticatedExtendedCard", -32007)]
    {
        let answer = served.send("POST /a2a", &[JSON], &request(method, &json!({})));
        assert_eq!(answer.json()["error"]["code"], code, "{method}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_peer_of_the_profile_rfc_is_told_the_proposals_states() {
    let fixture = Fixture::new();
    let setting = Setting { profile: Profile::Rfc, ..Setting::new(DONE) };
    let served = setting.on(&fixture).await;
    let task = served.begin("m1");
    let mut watch = served.watch(&task, &[], None);
    watch.next().unwrap();
    served.result("tasks/pause", &json!({ "taskId": task }));
    let shown = served.result("tasks/get", &json!({ "id": task }));
    assert_eq!(shown["status"]["state"], "paused-by-client");
    let (_, update) = watch.next().unwrap();
    assert_eq!(update["result"]["status"]["state"], "paused-by-client");
    let (_, frame) = watch.next().unwrap();
    assert_eq!(
        (&frame["method"], &frame["params"]["state"]),
        (&"tasks/statusUpdate".into(), &"paused-by-client".into())
    );
    assert!(
        watch.head.contains(&format!("a2a-extensions: urn:adjourn:a2a:pause:v1, {}", STATES.1))
    );
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_last_event_id_beyond_all_numbers_repeats_nothing() {
    const MOST: u64 = u64::MAX;
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = served.begin("m1");
    let (first, _) = served.watch(&task, &[STATES], None).next().unwrap();
    let revision = first.split('.').next().unwrap();
    let mut watch = served.watch(&task, &[STATES], Some(&format!("{revision}.{MOST}")));
    served.result("tasks/pause", &json!({ "taskId": task }));
    let (_, update) = watch.next().unwrap();
    assert_eq!(update["result"]["status"]["state"], "paused-by-client", "{update}");
    for odd in [format!("{MOST}.{MOST}"), format!("{MOST}"), "-1".to_owned(), "x".to_owned()] {
        assert!(served.watch(&task, &[STATES], Some(&odd)).head.contains("200"), "{odd}");
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_take_no_place_from_one_who_has_shown_a_token_and_watches() {
    const CONNECTIONS: usize = 8;
    let fixture = Fixture::new();
    let served = Setting { connections: CONNECTIONS, ..Setting::new(DONE) }.on(&fixture).await;
    let task = served.begin("m1");
    let mut watch = served.watch(&task, &[STATES], None);
    watch.next().unwrap();
    let mut idle = adjourn_testkit::http::Connection::open(served.address);
    let get = request("tasks/get", &json!({ "id": task }));
    assert_eq!(idle.send("POST /a2a", &[JSON, BOSS], &get).status, 200);
    let strangers: Vec<_> =
        (0..2 * CONNECTIONS).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    // They are taken in the order in which they came, so that all were when this is answered.
    served.result("tasks/pause", &json!({ "taskId": task }));
    let (_, paused) = watch.next().expect("the watcher was hung up on");
    assert_eq!(paused["result"]["status"]["state"], "paused-by-client", "{paused}");
    assert_eq!(idle.send("POST /a2a", &[JSON, BOSS], &get).status, 200);
    drop(strangers);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_take_no_place_where_the_known_have_all_that_they_may_have() {
    const CONNECTIONS: usize = 8;
    let fixture = Fixture::new();
    let served = Setting { connections: CONNECTIONS, ..Setting::new(DONE) }.on(&fixture).await;
    let task = served.begin("m1");
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    let mut watches: Vec<_> = (0..CONNECTIONS).map(|_| served.watch(&task, &[], None)).collect();
    watches.retain_mut(|watch| watch.next().is_some());
    // How many are told what happens next; the others were hung up on.
    let told = |watches: &mut Vec<Events>| {
        watches.retain_mut(|watch| watch.next().is_some());
        watches.len()
    };
    session.suspend().await.unwrap();
    let most = told(&mut watches);
    assert_eq!(most, CONNECTIONS - 1, "one place is for those who have yet to show who they are");
    let mut strangers: Vec<_> =
        (0..2 * CONNECTIONS).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    let last = strangers.pop();
    for stranger in &mut strangers {
        assert_eq!(stranger.read(&mut [0]).unwrap_or_default(), 0, "it is hung up on");
    }
    session.resume().await.unwrap();
    assert_eq!(told(&mut watches), most, "strangers push out strangers");
    // One who shows a token is heard; the one that was heard of longest ago comes back later.
    served.result("tasks/pause", &json!({ "taskId": task }));
    assert_eq!(told(&mut watches), most - 1);
    drop(last);
    served.stop().await;
}
