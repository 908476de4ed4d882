//! Push notifications, to a receiver on loopback.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use adjourn::clock::Environment as _;
use adjourn_a2a::RECIPIENT_KIND;
use adjourn_server::{Access, Pusher};
use adjourn_store::Store as _;
use adjourn_testkit::PATIENCE;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::receiver::{Received, Receiver, Reply};
use adjourn_testkit::store::TENANT;
use serde_json::{Value, json};

use crate::agent::{BOSS, DONE, JSON, STATES, Served, Setting, token, words};

/// An agent that says something, waits for an event, and says more.
pub const WAITS: &str = r#"{"steps": [{"say": "I look."},
    {"await": {"reason": "ci", "conditions": {"onEvent": "ci.passed"}}}, {"say": "Done."}]}"#;

/// An agent that is served with push notifications to loopback addresses, which have half a second
/// for an answer.
pub fn pushing(script: &str) -> Setting<'_> {
    let pusher = Pusher::patient(true, Duration::from_millis(500)).unwrap();
    Setting { pusher: Some(pusher), ..Setting::new(script) }
}

/// Waits until telling the one receiver of a task has failed so often in a row, and lets as much time
/// pass as it is put off.
pub async fn until_failed(fixture: &Fixture, task: &str, tries: u32) -> Duration {
    let run = task.parse().unwrap();
    let session = fixture.adjourn().session_of(run).await.unwrap().unwrap().id();
    let start = Instant::now();
    loop {
        let row = &fixture.store.recipients(session, run, RECIPIENT_KIND).unwrap()[0];
        if row.tries == tries && row.holder.is_none() {
            let wait = row.due.since(fixture.clock.now());
            fixture.clock.advance(wait);
            return wait;
        }
        assert!(start.elapsed() < PATIENCE, "{} failures", row.tries);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Begins a task with a receiver of 1.0 for it, and returns its id.
pub fn begin(served: &Served, headers: &[(&str, &str)], id: &str, config: &Value) -> String {
    let params = json!({
        "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": "go" }] },
        "configuration": { "returnImmediately": true, "taskPushNotificationConfig": config },
    });
    let sent = served.ask(headers, "SendMessage", &params);
    assert!(sent.get("result").is_some(), "{sent}");
    sent["result"]["task"]["id"].as_str().unwrap().to_owned()
}

fn states(all: &[Received]) -> Vec<&str> {
    all.iter().filter_map(Received::state).collect()
}

pub async fn is_given_up(fixture: &Fixture, task: &str) -> bool {
    let run = task.parse().unwrap();
    let session = fixture.adjourn().session_of(run).await.unwrap().unwrap();
    let all = session.recipients(run, RECIPIENT_KIND).await.unwrap();
    all.iter().all(|recipient| recipient.is_given_up)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_are_set_shown_and_deleted_in_both_versions_and_bindings() {
    let fixture = Fixture::new();
    let served = pushing(DONE).on(&fixture).await;
    let card = served.send("GET /.well-known/agent-card.json", &[], "").json();
    assert_eq!(card["capabilities"]["pushNotifications"], true);
    let task = served.begin("m1");
    let url = "http://127.0.0.1:9/hook";

    // 0.3 over JSON-RPC.
    let config = json!({ "id": "a", "url": url, "token": "t0ken",
                         "authentication": { "schemes": ["Bearer"], "credentials": "s3cret" } });
    let params = json!({ "taskId": task, "pushNotificationConfig": config });
    let shown = json!({ "taskId": task, "pushNotificationConfig":
        { "id": "a", "url": url, "authentication": { "schemes": ["Bearer"] } } });
    let set = served.result("tasks/pushNotificationConfig/set", &params);
    assert_eq!(set, shown, "secrets are not shown again");
    let by_id = json!({ "id": task, "pushNotificationConfigId": "a" });
    assert_eq!(served.result("tasks/pushNotificationConfig/get", &by_id), shown);
    assert_eq!(served.result("tasks/pushNotificationConfig/get", &json!({ "id": task })), shown);
    let listed = served.result("tasks/pushNotificationConfig/list", &json!({ "id": task }));
    assert_eq!(listed, json!([shown]));

    // 1.0 over JSON-RPC; the server names it.
    let made = served.result(
        "CreateTaskPushNotificationConfig",
        &json!({ "taskId": task, "url": url, "authentication": { "scheme": "Basic" } }),
    );
    let id = made["id"].as_str().unwrap();
    let shown =
        json!({ "id": id, "url": url, "authentication": { "scheme": "Basic" }, "taskId": task });
    assert_eq!(made, shown);
    let params = json!({ "taskId": task, "id": id });
    assert_eq!(served.result("GetTaskPushNotificationConfig", &params), shown);
    let listed = served.result("ListTaskPushNotificationConfigs", &json!({ "taskId": task }));
    assert_eq!(listed["configs"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed["nextPageToken"], "");
    assert_eq!(served.result("DeleteTaskPushNotificationConfig", &params), json!({}));
    assert_eq!(
        served.result("DeleteTaskPushNotificationConfig", &params),
        json!({}),
        "gone is gone"
    );

    // HTTP+JSON of both, with a tenant in front where there are tenants.
    let path = format!("tasks/{task}/pushNotificationConfigs");
    let v03 = json!({ "parent": format!("tasks/{task}"), "configId": "b", "config": {
        "name": format!("tasks/{task}/pushNotificationConfigs/b"),
        "pushNotificationConfig": { "url": url } } });
    for (prefix, body, inner) in [
        ("", json!({ "taskId": task, "id": "b", "url": url }), ""),
        ("acme/", json!({ "id": "b", "url": url }), ""),
        ("v1/", v03, "/pushNotificationConfig"),
    ] {
        let send = |what: &str, body: &str| {
            let answer = served.send(what, &[JSON, BOSS], body);
            assert_eq!(answer.status, 200, "{what}: {}", answer.body);
            answer.json()
        };
        let made = send(&format!("POST /a2a/{prefix}{path}"), &body.to_string());
        assert_eq!(made.pointer(&format!("{inner}/url")), Some(&json!(url)), "{made}");
        let one = format!("/a2a/{prefix}{path}/b");
        assert_eq!(send(&format!("GET {one}"), ""), made);
        let listed = send(&format!("GET /a2a/{prefix}{path}"), "");
        assert_eq!(listed["configs"].as_array().unwrap().len(), 2, "{listed}");
        assert_eq!(send(&format!("DELETE {one}"), ""), json!({}));
        let gone = served.send(&format!("GET {one}"), &[JSON, BOSS], "");
        assert_eq!(gone.status, 404, "{}", gone.body);
    }
    let gone = served.result("tasks/pushNotificationConfig/delete", &by_id);
    assert_eq!(gone, Value::Null);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_is_told_the_events_of_the_stream_in_order_and_never_the_handle() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let (served, receiver) = (pushing(WAITS).on(&fixture).await, Receiver::new());
    let config = json!({ "id": "c1", "url": receiver.url("/hook?x=1"), "token": "t0ken",
                         "authentication": { "scheme": "Bearer", "credentials": "s3cret" } });
    let task = begin(&served, &[STATES], "m1", &config);
    let paused = receiver.until("TASK_STATE_PAUSED_BY_AGENT");
    let held = served.result("tasks/pause", &json!({ "taskId": task, "reason": "review" }));
    let held_by = receiver.until("TASK_STATE_PAUSED_BY_CLIENT");
    served.result("tasks/resume", &json!({ "taskId": task, "handle": held["handle"] }));
    let lifted = receiver.until("TASK_STATE_PAUSED_BY_AGENT");
    fixture.event("ci.passed");
    let ended = receiver.until("TASK_STATE_COMPLETED");
    let all = [paused, held_by, lifted, ended].concat();

    // The stream tells the same from its beginning on, besides the frames.
    let told: Vec<_> = served.watch(&task, &[STATES], Some("2")).collect();
    let told: Vec<_> = told
        .into_iter()
        .filter_map(|(id, event)| Some((id, event.get("result")?.clone())))
        .collect();
    assert!(all.len() >= 6, "{all:?}");
    assert_eq!(told.len(), all.len(), "{told:?}");
    for (received, (id, _)) in all.iter().zip(&told) {
        assert_eq!(received.key(), format!("{task}/c1/{id}"));
        assert_eq!(received.path, "/hook?x=1");
        assert_eq!(received.header("content-type"), Some("application/a2a+json"));
        assert_eq!(received.header("authorization"), Some("Bearer s3cret"));
        assert_eq!(received.header("x-a2a-notification-token"), Some("t0ken"));
        let body = received.body.to_string();
        assert!(!body.contains("\"handle\"") && !body.contains("suspend-"), "{body}");
    }
    let reasons: Vec<_> = all
        .iter()
        .filter_map(|received| {
            received
                .body
                .pointer("/statusUpdate/metadata/urn:adjourn:a2a:pause:v1/reason")?
                .as_str()
        })
        .collect();
    assert_eq!(reasons, ["ci", "review", "ci"]);
    host.stop().await;
    served.stop().await;
    assert!(receiver.came().is_none(), "each was told once");
}

/// As after a connection that broke, or a server that was killed, between the message and its receiver.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_sent_again_has_its_receiver_told_what_came_of_the_first_one() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let (served, receiver) = (pushing(DONE).on(&fixture).await, Receiver::new());
    let params = json!({ "message": { "messageId": "m1", "role": "ROLE_USER",
                                      "parts": [{ "text": "go" }] } });
    let done = served.result("SendMessage", &params);
    assert_eq!(done["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let task = begin(&served, &[], "m1", &json!({ "url": receiver.url("/") }));
    assert_eq!(done["task"]["id"], task);
    receiver.until("TASK_STATE_COMPLETED");
    host.stop().await;
    served.stop().await;
}

/// Nothing is at work there, so that the pause is in force with the commit that takes the message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_comes_with_a_pause_is_told_of_it() {
    let fixture = Fixture::new();
    let (served, receiver) = (pushing(DONE).on(&fixture).await, Receiver::new());
    let begins = json!({ "message": words("m1"), "configuration": { "blocking": false } });
    let task = served.result("message/send", &begins)["id"].as_str().unwrap().to_owned();
    let pauses = |id: &str, configuration: Value| {
        json!({ "configuration": configuration,
                "message": { "messageId": id, "taskId": task, "role": "ROLE_USER",
                             "parts": [{ "text": "wait" }],
                             "metadata": { "harn": { "pause": true } } } })
    };
    let told =
        |receiver: &Receiver| json!({ "taskPushNotificationConfig": { "url": receiver.url("/") } });
    let again = Receiver::new();
    let joining = Receiver::new();
    // The third is as after a server that was killed between the second and its receiver.
    for (id, configuration, receiver) in [
        ("m2", told(&receiver), Some(&receiver)),
        ("m3", json!({}), None),
        ("m3", told(&again), Some(&again)),
        ("m4", told(&joining), Some(&joining)),
    ] {
        let sent = served.ask(&[STATES], "SendMessage", &pauses(id, configuration));
        let state = sent.pointer("/result/task/status/state");
        assert_eq!(state, Some(&json!("TASK_STATE_PAUSED_BY_CLIENT")), "{sent}");
        if let Some(receiver) = receiver {
            assert_eq!(states(&receiver.until("TASK_STATE_PAUSED_BY_CLIENT")).len(), 1);
        }
    }
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_receiver_is_one_too_many_is_not_taken() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let asks = r#"{"steps": [{"ask": {"question": "Mend it?"}}, {"say": "Done."}]}"#;
    let served = pushing(asks).on(&fixture).await;
    let message = |id: &str, about: &Value| {
        let mut message =
            json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": "go" }] });
        message.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
        message
    };
    let asked = served.result("SendMessage", &json!({ "message": message("m1", &json!({})) }));
    let task = asked["task"]["id"].as_str().unwrap();
    for number in 0..16 {
        let url = format!("http://127.0.0.1:9/{number}");
        served.result("CreateTaskPushNotificationConfig", &json!({ "taskId": task, "url": url }));
    }
    let push = json!({ "id": "late", "url": "http://127.0.0.1:9/late" });
    let answer = json!({ "message": message("m2", &json!({ "taskId": task })),
                         "configuration": { "taskPushNotificationConfig": push } });
    let refused = served.ask(&[], "SendMessage", &answer);
    assert_eq!(
        refused.pointer("/error/data/0/reason"),
        Some(&json!("TOO_MANY_RECEIVERS")),
        "{refused}"
    );
    let still = served.result("GetTask", &json!({ "id": task }));
    assert_eq!(still["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "nothing was answered");
    host.stop().await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_of_0_3_is_told_the_task() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let (served, receiver) = (pushing(WAITS).on(&fixture).await, Receiver::new());
    let config = json!({ "url": receiver.url("/hook"), "token": "t0ken" });
    let params = json!({ "message": words("m1"),
        "configuration": { "blocking": false, "pushNotificationConfig": config } });
    let task = served.result("message/send", &params)["id"].as_str().unwrap().to_owned();
    // The same message again is the same task, and the same receiver.
    assert_eq!(served.result("message/send", &params)["id"], task.as_str());
    let listed = served.result("tasks/pushNotificationConfig/list", &json!({ "id": task }));
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.until_state(session.id(), "suspended").await;
    fixture.event("ci.passed");
    let all = receiver.until("completed");
    for received in &all {
        assert_eq!((&received.body["kind"], &received.body["id"]), (&json!("task"), &json!(task)));
        assert_eq!(received.header("content-type"), Some("application/json"));
        assert_eq!(received.header("x-a2a-notification-token"), Some("t0ken"));
        assert_eq!(received.header("authorization"), None);
    }
    assert_eq!(all.last().unwrap().body["artifacts"].as_array().unwrap().len(), 2);
    let generations: Vec<_> =
        all.iter().map(|received| received.body["generation"].as_u64().unwrap()).collect();
    assert!(generations.is_sorted(), "{generations:?}");
    host.stop().await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fails_or_takes_too_long_is_tried_again_with_the_same_key_before_anything_else() {
    let fixture = Fixture::new();
    let (served, receiver, other) =
        (pushing(WAITS).on(&fixture).await, Receiver::new(), Receiver::new());
    let elsewhere = Reply::To(other.url("/stolen"));
    receiver.replies([Reply::Status(500), Reply::Nothing, elsewhere, Reply::Status(404)]);
    let task = begin(&served, &[], "m1", &json!({ "id": "c", "url": receiver.url("/") }));
    served.result("tasks/cancel", &json!({ "id": task }));
    let mut all = Vec::new();
    for tries in 1..=4 {
        all.push(receiver.next());
        until_failed(&fixture, &task, tries).await;
    }
    all.extend(receiver.until("TASK_STATE_CANCELED"));
    let keys: Vec<_> = all.iter().map(Received::key).collect();
    assert!(keys[..5].iter().all(|key| *key == keys[0]), "{keys:?}");
    let mut distinct = keys.clone();
    distinct.dedup();
    assert_eq!(distinct.len(), all.len() - 4, "nothing overtakes: {keys:?}");
    assert_eq!(other.came(), None, "a redirect is not followed");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_is_left_alone_for_as_long_as_it_asks_within_bounds() {
    let fixture = Fixture::new();
    let (served, receiver) = (pushing(WAITS).on(&fixture).await, Receiver::new());
    let later = |wait: &str| Reply::Later(503, wait.to_owned());
    receiver.replies([later("120"), later("86400"), later("0"), later("soon")]);
    let task = begin(&served, &[], "m1", &json!({ "id": "c", "url": receiver.url("/") }));
    served.result("tasks/cancel", &json!({ "id": task }));
    // Less than the wait that is due anyway is not taken.
    for (tries, least, most) in [(1, 120, 120), (2, 600, 600), (3, 2, 4), (4, 4, 8)] {
        receiver.next();
        let wait = until_failed(&fixture, &task, tries).await;
        let bounds = Duration::from_secs(least)..=Duration::from_secs(most);
        assert!(bounds.contains(&wait), "{tries}: {wait:?}");
    }
    receiver.next();
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_fails_too_often_is_given_up_until_it_is_set_again() {
    let fixture = Fixture::new();
    let (served, receiver) = (pushing(WAITS).on(&fixture).await, Receiver::new());
    receiver.replies(std::iter::repeat_n(Reply::Status(503), 20));
    let config = json!({ "id": "c", "url": receiver.url("/") });
    let task = begin(&served, &[], "m1", &config);
    served.result("tasks/cancel", &json!({ "id": task }));
    let first = receiver.next().key().to_owned();
    for tries in 1..20 {
        until_failed(&fixture, &task, tries).await;
        assert_eq!(receiver.next().key(), first);
    }
    while !is_given_up(&fixture, &task).await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut config = config;
    config["taskId"] = json!(task);
    let listed = served.result("ListTaskPushNotificationConfigs", &json!({ "taskId": task }));
    assert_eq!(listed["configs"], json!([config]), "it is still shown");
    served.result("CreateTaskPushNotificationConfig", &config);
    let again = receiver.until("TASK_STATE_CANCELED");
    assert_eq!(again[0].key(), first, "it goes on where it was");

    // One that says that it is gone is not asked twice.
    receiver.replies([Reply::Status(410)]);
    let gone = begin(&served, &[], "m2", &json!({ "id": "c", "url": receiver.url("/") }));
    served.result("tasks/cancel", &json!({ "id": gone }));
    while !is_given_up(&fixture, &gone).await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    served.stop().await;
}

/// On a clock that stands still, so that what is put off is not told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_wait_for_others_at_the_same_host_and_are_not_put_off() {
    let fixture = Fixture::new();
    let (served, receiver) = (pushing(WAITS).on(&fixture).await, Receiver::new());
    receiver.replies(std::iter::repeat_n(Reply::Nothing, 8));
    let config = json!({ "id": "c", "url": receiver.url("/") });
    let tasks: BTreeSet<_> =
        (0..12).map(|number| begin(&served, &[], &format!("m{number}"), &config)).collect();
    for task in &tasks {
        served.result("tasks/cancel", &json!({ "id": task }));
    }
    let task_of = |told: Received| told.key().split('/').next().unwrap().to_owned();
    let told: BTreeSet<_> = tasks.iter().map(|_| task_of(receiver.next())).collect();
    assert_eq!(told, tasks);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_queued_for_a_receiver_goes_when_it_is_deleted_and_another_is_not_kept_waiting() {
    let fixture = Fixture::new();
    let (served, deleted, other) =
        (pushing(WAITS).on(&fixture).await, Receiver::new(), Receiver::new());
    deleted.replies(std::iter::repeat_n(Reply::Status(500), 100));
    let task = begin(&served, &[], "m1", &json!({ "id": "a", "url": deleted.url("/") }));
    let params = json!({ "taskId": task, "id": "b", "url": other.url("/") });
    served.result("CreateTaskPushNotificationConfig", &params);
    served.result("tasks/pause", &json!({ "taskId": task }));
    deleted.next();
    served.result("DeleteTaskPushNotificationConfig", &json!({ "taskId": task, "id": "a" }));
    served.result("tasks/cancel", &json!({ "id": task }));
    other.until("TASK_STATE_CANCELED");
    fixture.clock.advance(Duration::from_secs(3600));
    // A third one that is set now is told what happens next, and nothing else is sent.
    let again = begin(&served, &[], "m2", &json!({ "url": other.url("/") }));
    served.result("tasks/cancel", &json!({ "id": again }));
    other.until("TASK_STATE_CANCELED");
    let late: Vec<_> = std::iter::from_fn(|| deleted.came()).collect();
    assert!(late.len() <= 1, "only what was under way: {late:?}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn urls_that_lead_inside_are_refused_and_nothing_is_begun_for_them() {
    let fixture = Fixture::new();
    let strict = Setting { pusher: Some(Pusher::new(false).unwrap()), ..Setting::new(DONE) };
    let (strict, local) = (strict.on(&fixture).await, pushing(DONE).on(&fixture).await);
    let task = strict.begin("m1");
    let refused = |served: &Served, url: &str| {
        let params = json!({ "taskId": task, "url": url });
        served.ask(&[], "CreateTaskPushNotificationConfig", &params)["error"]["code"].clone()
    };
    for url in ["http://127.0.0.1:9/", "http://localhost/", "https://localhost./", "https://[::1]/"]
    {
        assert_eq!(refused(&strict, url), json!(-32602), "{url}");
    }
    for url in [
        "http://example.org/",
        "https://10.0.0.1/",
        "https://169.254.169.254/",
        "ftp://127.0.0.1/",
        "https://user@example.org/",
        "",
    ] {
        assert_eq!(refused(&strict, url), json!(-32602), "{url}");
        assert_eq!(refused(&local, url), json!(-32602), "{url}");
    }
    let params = json!({ "message": words("m2"),
        "configuration": { "pushNotificationConfig": { "url": "http://127.0.0.1:9/" } } });
    assert_eq!(strict.ask(&[], "message/send", &params)["error"]["code"], -32602);
    assert_eq!(strict.result("ListTasks", &json!({}))["totalSize"], 1);
    strict.stop().await;
    local.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_push_notifications_the_methods_say_so() {
    let fixture = Fixture::new();
    let served = Setting::new(DONE).on(&fixture).await;
    let task = served.begin("m1");
    let card = served.send("GET /.well-known/agent-card.json", &[], "").json();
    assert_eq!(card["capabilities"]["pushNotifications"], false);
    for method in [
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "tasks/pushNotificationConfig/delete",
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
    ] {
        let params = json!({ "taskId": task, "id": "c", "url": "https://example.org" });
        assert_eq!(served.ask(&[], method, &params)["error"]["code"], -32003, "{method}");
    }
    let path = format!("GET /a2a/tasks/{task}/pushNotificationConfigs");
    let answer = served.send(&path, &[JSON, BOSS], "");
    assert_eq!(answer.status, 400, "{}", answer.body);
    let params = json!({ "message": words("m2"),
        "configuration": { "pushNotificationConfig": { "url": "https://example.org" } } });
    assert_eq!(served.ask(&[], "message/send", &params)["error"]["code"], -32003);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn receivers_are_for_those_who_may_send_and_those_of_others_are_not_there() {
    let fixture = Fixture::new();
    let tokens = [
        token("boss", "admin", TENANT),
        token("reader", "read", TENANT),
        token("guest", "admin", "another"),
    ];
    let served = Setting { access: Access::with(tokens), ..pushing(DONE) }.on(&fixture).await;
    let task = served.begin("m1");
    let params = json!({ "taskId": task, "id": "c", "url": "http://127.0.0.1:9/" });
    served.result("CreateTaskPushNotificationConfig", &params);
    for method in [
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
    ] {
        let body = crate::agent::request(method, &params);
        let answer = |name: &str| {
            let bearer = format!("Bearer {name}");
            let answer = served.send("POST /a2a", &[JSON, ("authorization", &bearer)], &body);
            (answer.status, answer.json()["error"]["code"].clone())
        };
        assert_eq!(answer("reader").0, 403, "{method}");
        assert_eq!(answer("guest"), (200, json!(-32001)), "{method}");
    }
    let listed = served.result("ListTaskPushNotificationConfigs", &json!({ "taskId": task }));
    assert_eq!(listed["configs"].as_array().unwrap().len(), 1);
    for index in 1..16 {
        let params =
            json!({ "taskId": task, "id": index.to_string(), "url": "http://127.0.0.1:9/" });
        served.result("CreateTaskPushNotificationConfig", &params);
    }
    let params = json!({ "taskId": task, "url": "http://127.0.0.1:9/" });
    let refused = served.ask(&[], "CreateTaskPushNotificationConfig", &params);
    assert_eq!(refused["error"]["code"], -32004, "{refused}");
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_of_receivers_are_in_no_file_of_the_store() {
    let fixture = Fixture::new();
    let (served, receiver) = (pushing(WAITS).on(&fixture).await, Receiver::new());
    let config = json!({ "url": receiver.url("/hook-h1dden"), "token": "t0ken-h1dden",
        "authentication": { "scheme": "Bearer", "credentials": "s3cret-h1dden" } });
    let task = begin(&served, &[], "m1", &config);
    served.result("tasks/cancel", &json!({ "id": task }));
    let told = receiver.until("TASK_STATE_CANCELED");
    assert_eq!(told[0].header("authorization"), Some("Bearer s3cret-h1dden"));
    let directory = fixture.store.path().parent().unwrap();
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let hidden = bytes.windows(6).any(|window| window == b"h1dden");
            assert!(!hidden, "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 0);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_tell_a_receiver_in_order_and_each_event_once() {
    let fixture = Fixture::new();
    let receiver = Receiver::new();
    let one = pushing(WAITS).on(&fixture).await;
    let two = pushing(WAITS).on_store(fixture.another_adjourn()).await;
    let task = begin(&one, &[STATES], "m1", &json!({ "id": "c", "url": receiver.url("/") }));
    for round in 0..10 {
        let (first, second) = if round % 2 == 0 { (&one, &two) } else { (&two, &one) };
        first.result("tasks/pause", &json!({ "taskId": task }));
        second.result("tasks/resume", &json!({ "taskId": task }));
    }
    two.result("tasks/cancel", &json!({ "id": task }));
    let all = receiver.until("TASK_STATE_CANCELED");
    let expected = ["TASK_STATE_PAUSED_BY_CLIENT", "TASK_STATE_WORKING"].repeat(10);
    assert_eq!(states(&all), [expected, vec!["TASK_STATE_CANCELED"]].concat());
    let mut keys: Vec<_> = all.iter().map(Received::key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all.len());
    one.stop().await;
    two.stop().await;
    assert_eq!(receiver.came(), None);
}
