//! Receivers of push notifications whose keys are not there, or must not be used any more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::Adjourn;
use adjourn::clock::Environment as _;
use adjourn::keys::{Key, Keys, Revocation};
use adjourn_a2a::RECIPIENT_KIND;
use adjourn_store::Store as _;
use adjourn_testkit::PATIENCE;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::receiver::{Receiver, Reply};
use adjourn_testkit::store::TENANT;
use serde_json::json;

use crate::push::{WAITS, begin, is_given_up, pushing, until_failed};

/// Works on the store as a program does that has no keys yet.
fn without_keys(fixture: &Fixture) -> Adjourn {
    let clock = Arc::new(fixture.clock.clone());
    Adjourn::on(fixture.another(), fixture.hosts(), clock).unwrap().in_tenant(TENANT)
}

/// Waits until the one receiver of a task is put off, and lets as much time pass as it is put off for.
async fn until_put_off(fixture: &Fixture, task: &str) {
    let run = task.parse().unwrap();
    let session = fixture.adjourn().session_of(run).await.unwrap().unwrap().id();
    let start = Instant::now();
    loop {
        let row = &fixture.store.recipients(session, run, RECIPIENT_KIND).unwrap()[0];
        let wait = row.due.since(fixture.clock.now());
        if row.holder.is_none() && !wait.is_zero() {
            fixture.clock.advance(wait);
            return;
        }
        assert!(start.elapsed() < PATIENCE, "it is not put off");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_without_keys_takes_no_try_from_a_receiver() {
    let fixture = Fixture::new();
    let receiver = Receiver::new();
    let served = pushing(WAITS).on(&fixture).await;
    let task = begin(&served, &[], "m1", &json!({ "id": "c", "url": receiver.url("/") }));
    served.stop().await;

    let adjourn = without_keys(&fixture);
    let served = pushing(WAITS).on_store(adjourn.clone()).await;
    served.result("tasks/cancel", &json!({ "id": task }));
    // More often than a receiver may fail.
    for _ in 0..25 {
        until_put_off(&fixture, &task).await;
    }
    assert_eq!(receiver.came(), None);
    receiver.replies([Reply::Status(503)]);
    adjourn.keep_secrets_with(adjourn_testkit::store::keys());
    fixture.clock.advance(Duration::from_secs(5));
    let first = receiver.next().key().to_owned();
    until_failed(&fixture, &task, 1).await;
    let told = receiver.until("TASK_STATE_CANCELED");
    assert_eq!(told[0].key(), first);
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_whose_key_was_revoked_is_given_up_and_shown_without_its_url() {
    let fixture = Fixture::new();
    let receiver = Receiver::new();
    let served = pushing(WAITS).on(&fixture).await;
    let task = begin(&served, &[], "m1", &json!({ "id": "c", "url": receiver.url("/") }));
    served.stop().await;

    let old = adjourn_testkit::store::keys().current().clone();
    let revoked = Revocation { at: fixture.clock.now(), reason: "stolen".to_owned() };
    let new = Key::from_secrets(fixture.clock.now(), &[3; 32], &[4; 32]);
    let adjourn = without_keys(&fixture);
    adjourn.keep_secrets_with(Keys::only(new).accepting(old, Some(revoked)));
    let served = pushing(WAITS).on_store(adjourn).await;
    served.result("tasks/pause", &json!({ "taskId": task }));
    while !is_given_up(&fixture, &task).await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let listed = served.result("ListTaskPushNotificationConfigs", &json!({ "taskId": task }));
    assert_eq!(listed["configs"], json!([{ "id": "c", "url": "", "taskId": task }]));
    // Set again, it goes on where it was.
    let params = json!({ "taskId": task, "id": "c", "url": receiver.url("/") });
    served.result("CreateTaskPushNotificationConfig", &params);
    served.result("tasks/cancel", &json!({ "id": task }));
    assert_eq!(receiver.until("TASK_STATE_CANCELED").len(), 2, "the pause, and the end");
    served.stop().await;
}
