//! Many peers at once, on one task.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use adjourn_testkit::dice::Dice;
use adjourn_testkit::host::Fixture;
use serde_json::{Value, json};

use crate::peer::{Peer, STATES};

const PEERS: usize = 32;
const MOVES: usize = 20;

/// What is known of the handles that were given out: how often each was resumed by its name.
type Handles = Arc<Mutex<BTreeMap<String, usize>>>;

/// Pauses or resumes at random; every answer is a success or the right refusal.
async fn play(peer: &Peer, task: &str, handles: &Handles, dice: &mut Dice) {
    for _ in 0..MOVES {
        if dice.once_in(2) {
            let paused = peer.ask("tasks/pause", json!({ "taskId": task })).await;
            match paused["result"]["handle"].as_str() {
                Some(handle) => {
                    assert_eq!(paused["result"]["state"], "paused-by-client");
                    handles.lock().unwrap().entry(handle.to_owned()).or_default();
                }
                // Another peer has taken it back before it was in force.
                None => assert_eq!(reason(&paused), Some("WITHDRAWN"), "{paused}"),
            }
            continue;
        }
        let known: Vec<_> = handles.lock().unwrap().keys().cloned().collect();
        let handle = match known.len() {
            0 => None,
            _ if dice.once_in(3) => None,
            // The last ones are those that may be in force.
            count => Some(known[count - 1 - dice.index(count.min(3))].clone()),
        };
        let answer = peer.ask("tasks/resume", json!({ "taskId": task, "handle": handle })).await;
        match (reason(&answer), &handle) {
            (None, Some(handle)) => {
                assert_eq!(answer["result"]["previousState"], "paused-by-client");
                *handles.lock().unwrap().get_mut(handle).unwrap() += 1;
            }
            (None, None) => assert_eq!(answer["result"]["state"], "working"),
            // The last sixteen handles are remembered; an older one belongs to no pause.
            (Some("TASK_NOT_PAUSED"), None)
            | (Some("ALREADY_RESUMED" | "SUSPENSION_HANDLE_MISMATCH"), Some(_)) => {}
            _ => panic!("{handle:?}: {answer}"),
        }
    }
}

/// Returns the word of a refusal.
fn reason(answer: &Value) -> Option<&str> {
    answer.pointer("/error/data/0/reason").and_then(Value::as_str)
}

/// Has many peers pause and resume one task, and compares what came of it with its journal.
async fn race(fixture: &Fixture, peer: Peer) {
    let peer = Arc::new(peer);
    let task = peer.begin().await;
    let (handles, mut dice) = (Handles::default(), Dice::drawn());
    let mut playing = tokio::task::JoinSet::new();
    for _ in 0..PEERS {
        let (peer, task, handles) = (Arc::clone(&peer), task.clone(), Arc::clone(&handles));
        let mut dice = dice.fork();
        playing.spawn(async move { play(&peer, &task, &handles, &mut dice).await });
    }
    while let Some(played) = playing.join_next().await {
        played.unwrap();
    }
    for (handle, resumed) in handles.lock().unwrap().iter() {
        assert!(*resumed <= 1, "{handle} was resumed {resumed} times");
    }
    // A paused task stays as it is. Whoever reads the whole journal finds it as this peer has it.
    let last = peer.pause(&task).await;
    let fresh = Peer::new(fixture, "{}");
    assert_eq!(fresh.get(&task).await, peer.get(&task).await);
    let knowing = Peer { activated: STATES, ..fresh };
    let shown = knowing.get(&task).await;
    assert_eq!(shown["status"]["state"], "paused-by-client");
    assert_eq!(shown.pointer("/metadata/harn/pause/handle"), Some(&last.into()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_peers_who_pause_and_resume_one_task_each_pause_is_ended_once() {
    let fixture = Fixture::new();
    let peer = Peer::new(&fixture, r#"{"steps": [{"say": "done"}]}"#);
    race(&fixture, peer).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_peers_who_race_with_an_agent_at_work_each_pause_is_ended_once() {
    let fixture = Fixture::new();
    let _host = fixture.host().await;
    // More steps than the peers leave it time for.
    let script = json!({ "steps": vec![json!({ "say": "on and on" }); 5000] });
    let peer = Peer::new(&fixture, &script.to_string());
    race(&fixture, peer).await;
}
