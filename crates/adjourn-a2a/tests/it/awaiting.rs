//! `tasks/await_resumption`: workers outside of the host that park a task for its agent.

use adjourn::Event;
use adjourn::core::Session;
use adjourn_a2a::Scope;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::told;
use adjourn_testkit::store::TENANT;
use expect_test::expect;
use serde_json::{Value, json};

use crate::peer::{Peer, caller};

/// The agent works at something that takes a minute, and has a step behind it.
const BUILDS: &str = r#"{"steps": [{"tool": {"name": "build", "ms": 60000}}, {"say": "merged"}]}"#;
const ONE_STEP: &str = r#"{"steps": [{"tool": {"name": "build", "ms": 60000}}]}"#;

/// The parameters that the proposal has.
fn seed(task: &str) -> Value {
    json!({
        "taskId": task,
        "reason": "waiting on ci/build:1234",
        "conditions": {
            "onEvent": "ci.build.completed:1234",
            "timeout": { "durationMinutes": 30, "onTimeout": "fail" },
        },
        "summary": "Paused on CI build 1234; ETA 3m.",
        "metadata": {},
    })
}

/// A worker: it speaks for the agent, and may do nothing else.
fn worker(peer: Peer) -> Peer {
    Peer { caller: caller(TENANT, &[Scope::Agent]), ..peer }
}

#[tokio::test]
async fn an_await_is_answered_and_its_task_observed_as_the_proposal_has_it() {
    let fixture = Fixture::new();
    let client = Peer::knowing(&fixture, BUILDS);
    let task = client.begin().await;
    let worker = worker(Peer::new(&fixture, BUILDS));
    let parked = worker.ask("tasks/await_resumption", seed(&task)).await;
    expect![[r#"
        {
          "jsonrpc": "2.0",
          "id": "req-1",
          "result": {
            "taskId": "run-1",
            "state": "paused-by-agent",
            "handle": "suspend-2",
            "pausedAt": "2026-11-16T09:00:00.000Z",
            "reason": "waiting on ci/build:1234",
            "conditions": {
              "onEvent": "ci.build.completed:1234",
              "timeout": {
                "durationMinutes": 30,
                "onTimeout": "fail"
              }
            }
          }
        }
    "#]]
    .assert_eq(&told(&parked));
    let shown = client.get(&task).await;
    assert_eq!(shown["status"]["state"], "paused-by-agent");
    let pause = &shown["metadata"]["urn:adjourn:a2a:pause:v1"];
    assert_eq!(pause["handle"], parked["result"]["handle"]);
    assert_eq!(
        (&pause["initiator"], &pause["summary"]),
        (&json!("agent"), &json!("Paused on CI build 1234; ETA 3m."),)
    );
    // A worker that tries again is told the same; one that waits for something else is refused.
    let again = worker.result("AwaitTaskResumption", seed(&task)).await;
    assert_eq!(again, parked["result"]);
    let other = json!({ "taskId": task, "reason": "x", "conditions": { "onEvent": "x" } });
    let refused = worker.refused("tasks/await_resumption", other).await;
    assert_eq!(refused, (-32011, "CONDITIONS_DIFFER".to_owned()));
    let resumed = client.result("tasks/resume", json!({ "taskId": task })).await;
    assert_eq!(resumed["previousState"], "paused-by-agent");
}

#[tokio::test]
async fn an_await_waits_for_the_step_and_is_told_in_frames() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let client = Peer::knowing(&fixture, BUILDS);
    let task = client.begin().await;
    let mut watch = client.watch("SubscribeToTask", json!({ "id": task }), None).await;
    let worker = worker(Peer::new(&fixture, BUILDS));
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    // The call takes longer than a worker is kept waiting.
    tokio::time::pause();
    let pending = worker.result("tasks/await_resumption", seed(&task)).await;
    tokio::time::resume();
    assert_eq!((&pending["state"], &pending["phase"]), (&json!("working"), &json!("quiescing")));
    assert_eq!(pending["reason"], "waiting on ci/build:1234");
    fixture.pass_until(session.id(), "suspended").await;
    let mut frames = Vec::new();
    let mut published = false;
    while let Some((_, event)) = watch.next().await {
        if event["method"] == "tasks/statusUpdate" {
            frames.push(event["params"].clone());
        }
        if !published && !frames.is_empty() {
            published = true;
            let event = Event::new("ci.build.completed").subject("1234");
            fixture.adjourn().publish(event).await.unwrap();
        }
    }
    assert_eq!(frames.len(), 2, "{frames:?}");
    assert_eq!(frames[0]["handle"], pending["handle"]);
    assert_eq!(
        (&frames[0]["state"], &frames[0]["initiator"]),
        (&json!("paused-by-agent"), &json!("agent"),)
    );
    assert_eq!(
        (&frames[1]["previousState"], &frames[1]["cause"]),
        (&json!("paused-by-agent"), &json!("condition_fired"),)
    );
    host.stop().await;
}

#[tokio::test]
async fn a_worker_that_asks_again_under_a_hold_is_told_of_its_park_and_where_the_task_stands() {
    let fixture = Fixture::new();
    let client = Peer::knowing(&fixture, BUILDS);
    let task = client.begin().await;
    let worker = worker(Peer::new(&fixture, BUILDS));
    let parked = worker.result("tasks/await_resumption", seed(&task)).await;
    let hold = client.pause(&task).await;
    assert_eq!(client.get(&task).await["status"]["state"], "paused-by-client");
    let mut held = parked.clone();
    held["state"] = "paused-by-client".into();
    assert_eq!(worker.result("tasks/await_resumption", seed(&task)).await, held);
    let other = json!({ "taskId": task, "reason": "x", "conditions": { "onEvent": "x" } });
    let refused = worker.refused("tasks/await_resumption", other).await;
    assert_eq!(refused, (-32011, "CONDITIONS_DIFFER".to_owned()));
    client.result("tasks/resume", json!({ "taskId": task, "handle": hold })).await;
    assert_eq!(worker.result("tasks/await_resumption", seed(&task)).await, parked);
}

#[tokio::test]
async fn a_park_that_comes_into_force_under_a_hold_is_answered_with_the_state_of_the_task() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let client = Peer::knowing(&fixture, BUILDS);
    let task = client.begin().await;
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    session.suspend().accepted().await.unwrap();
    let both = async {
        let is_pending = |session: &Session| session.agents_pause().is_some();
        fixture.until(session.id(), "asked to park", is_pending).await;
        fixture.pass_until(session.id(), "suspended").await
    };
    let asked = client.result("tasks/await_resumption", seed(&task));
    let (parked, suspended) = tokio::join!(asked, both);
    let shown = client.get(&task).await;
    assert_eq!(
        (&parked["state"], &shown["status"]["state"]),
        (&json!("paused-by-client"), &json!("paused-by-client"))
    );
    let own = suspended.suspended().unwrap().park.pause.handle.to_string();
    assert_eq!(parked["handle"], own, "the park's own, and not the hold's");
    host.stop().await;
}

#[tokio::test]
async fn a_task_that_is_at_its_end_first_is_not_pausable() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::new(&fixture, ONE_STEP);
    let task = peer.begin().await;
    let session = fixture.adjourn().session_of(task.parse().unwrap()).await.unwrap().unwrap();
    fixture.until_in_flight(session.id(), "build").await;
    let ends = async {
        let is_pending = |session: &Session| session.agents_pause().is_some();
        fixture.until(session.id(), "asked to park", is_pending).await;
        fixture.pass_until(session.id(), "idle").await;
    };
    let (refused, ()) = tokio::join!(peer.refused("tasks/await_resumption", seed(&task)), ends);
    assert_eq!(refused, (-32011, "TASK_NOT_PAUSABLE".to_owned()));
    assert_eq!(peer.get(&task).await["status"]["state"], "completed");
    // Behind its end, too.
    let refused = peer.refused("tasks/await_resumption", seed(&task)).await;
    assert_eq!(refused, (-32011, "TASK_NOT_PAUSABLE".to_owned()));
    host.stop().await;
}

#[tokio::test]
async fn a_paused_task_a_malformed_await_and_an_agent_without_pauses_are_refused() {
    let fixture = Fixture::new();
    let mut peer = Peer::new(&fixture, BUILDS);
    let task = peer.begin().await;
    for params in [
        json!({ "taskId": task }),
        json!({ "taskId": task, "reason": "  " }),
        json!({ "reason": "ci" }),
        json!({ "taskId": task, "reason": "ci",
                "conditions": { "timeout": { "durationMinutes": 1, "onTimeout": "explode" } } }),
    ] {
        let refused = peer.refused("tasks/await_resumption", params.clone()).await;
        assert_eq!(refused, (-32602, "INVALID_PARAMS".to_owned()), "{params}");
    }
    peer.pause(&task).await;
    let refused = peer.refused("tasks/await_resumption", seed(&task)).await;
    assert_eq!(refused, (-32011, "TASK_NOT_PAUSABLE".to_owned()));
    peer.face.agent.pausable = false;
    for method in ["tasks/await_resumption", "AwaitTaskResumption"] {
        assert_eq!(peer.refused(method, seed(&task)).await.0, -32601, "{method}");
    }
}
