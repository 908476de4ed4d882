//! Where push notifications may go, and how many go at once.

use std::time::{Duration, Instant};

use adjourn::MOST_RECIPIENTS;
use adjourn_server::Pusher;
use adjourn_testkit::PATIENCE;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::receiver::{Receiver, Reply};
use serde_json::json;

use crate::agent::{Served, Setting};
use crate::push::{WAITS, begin, is_given_up, pushing, until_failed};

/// Serves an agent that tells receivers on the public internet alone.
async fn strict(fixture: &Fixture) -> Served {
    let pusher = Some(Pusher::new(false).unwrap());
    Setting { pusher, ..Setting::new(WAITS) }.on(fixture).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_may_not_be_told_any_more_is_told_nothing_until_it_may_be() {
    let (fixture, receiver) = (Fixture::new(), Receiver::new());
    let lenient = pushing(WAITS).on(&fixture).await;
    let task = begin(&lenient, &[], "m1", &json!({ "id": "c", "url": receiver.url("/") }));
    lenient.stop().await;
    let served = strict(&fixture).await;
    served.result("tasks/cancel", &json!({ "id": task }));
    until_failed(&fixture, &task, 1).await;
    until_failed(&fixture, &task, 2).await;
    served.stop().await;
    assert_eq!(receiver.came(), None);
    let lenient = pushing(WAITS).on(&fixture).await;
    receiver.until("TASK_STATE_CANCELED");
    lenient.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_may_not_be_told_for_too_long_is_given_up_until_it_is_set_again() {
    let (fixture, receiver) = (Fixture::new(), Receiver::new());
    let lenient = pushing(WAITS).on(&fixture).await;
    let mut config = json!({ "id": "c", "url": receiver.url("/") });
    let task = begin(&lenient, &[], "m1", &config);
    lenient.stop().await;
    let served = strict(&fixture).await;
    served.result("tasks/cancel", &json!({ "id": task }));
    for tries in 1..20 {
        until_failed(&fixture, &task, tries).await;
    }
    while !is_given_up(&fixture, &task).await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    config["taskId"] = json!(task);
    let refused = served.ask(&[], "CreateTaskPushNotificationConfig", &config);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    served.stop().await;
    assert_eq!(receiver.came(), None);
    let lenient = pushing(WAITS).on(&fixture).await;
    lenient.result("CreateTaskPushNotificationConfig", &config);
    receiver.until("TASK_STATE_CANCELED");
    lenient.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn so_many_receivers_are_told_at_once_and_no_more() {
    const AT_ONCE: usize = 128;
    // Eight receivers at each host, so that none waits for a place there.
    const HOSTS: usize = 18;
    const TASKS: usize = 9;
    let fixture = Fixture::new();
    let pusher = Some(Pusher::patient(true, Duration::from_secs(600)).unwrap());
    let served = Setting { pusher, ..Setting::new(WAITS) }.on(&fixture).await;
    let hosts: Vec<_> = (0..HOSTS).map(|_| Receiver::new()).collect();
    for host in &hosts {
        host.replies(std::iter::repeat_n(Reply::Nothing, 8));
    }
    for task in 0..TASKS {
        let id = served.begin(&format!("m{task}"));
        for number in 0..MOST_RECIPIENTS {
            let url = hosts[(task * MOST_RECIPIENTS + number) % HOSTS].url("/");
            let config = json!({ "taskId": id, "id": number.to_string(), "url": url });
            served.result("CreateTaskPushNotificationConfig", &config);
        }
        served.result("tasks/cancel", &json!({ "id": id }));
    }
    // None of them is answered, so that none gives its place to another.
    let (mut came, mut quiet, start) = (0, 0, Instant::now());
    while came < AT_ONCE || quiet < 40 {
        let more =
            hosts.iter().map(|host| std::iter::from_fn(|| host.came()).count()).sum::<usize>();
        (came, quiet) = (came + more, if more > 0 { 0 } else { quiet + 1 });
        assert!(came <= AT_ONCE, "{came} are told at once");
        assert!(start.elapsed() < PATIENCE, "{came} were told");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // To stop would take as long as the answers.
    drop(served);
}
