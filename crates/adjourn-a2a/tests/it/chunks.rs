//! Artifacts as they are made: each word is told once, and each artifact has one end.

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn_testkit::PATIENCE;
use adjourn_testkit::host::Fixture;
use serde_json::{Value, json};

use crate::peer::{Peer, STATES, Watch, message};
use crate::refusals::with_task;

const WORDS: usize = 40;

/// An agent that thinks, and then says forty words in ten seconds; then it says some more.
fn script() -> String {
    let words: Vec<_> = (0..WORDS).map(|number| format!("w{number}")).collect();
    let text = words.join(" ");
    json!({ "steps": [{ "say": { "text": text, "think": "hm hm hm hm hm hm hm hm", "ms": 10_000 } },
                      { "say": "Done." }] })
    .to_string()
}

fn whole() -> String {
    let words: Vec<_> = (0..WORDS).map(|number| format!("w{number}")).collect();
    words.join(" ")
}

/// What a client knows of an artifact.
#[derive(Debug, Clone, Default, PartialEq)]
struct Known {
    text: String,
    chunks: usize,
    is_over: bool,
    is_aborted: bool,
}

fn text(artifact: &Value) -> String {
    let parts = artifact["parts"].as_array().unwrap().iter();
    parts.map(|part| part["text"].as_str().unwrap()).collect()
}

/// The artifacts of a task, as a client puts them together.
#[derive(Debug, Clone, Default, PartialEq)]
struct Artifacts(BTreeMap<String, Known>);

impl Artifacts {
    /// Takes a task, with which a stream begins or which was read.
    fn of_task(task: &Value) -> Self {
        let mut artifacts = Self::default();
        for artifact in task["artifacts"].as_array().into_iter().flatten() {
            let id = artifact["artifactId"].as_str().unwrap().to_owned();
            let is_aborted = artifact.pointer("/metadata/aborted").is_some();
            artifacts.0.insert(id, Known { text: text(artifact), is_aborted, ..Known::default() });
        }
        artifacts
    }

    fn take(&mut self, event: &Value) {
        let update = &event["result"];
        if update["kind"] != "artifact-update" {
            return;
        }
        let id = update.pointer("/artifact/artifactId").unwrap().as_str().unwrap().to_owned();
        let known = self.0.contains_key(&id);
        assert_eq!(update["append"], known, "a chunk appends to what was told: {update}");
        let artifact = self.0.entry(id).or_default();
        assert!(!artifact.is_over, "behind the end: {update}");
        artifact.text += &text(&update["artifact"]);
        artifact.chunks += 1;
        artifact.is_over = update["lastChunk"].as_bool().unwrap();
        artifact.is_aborted |= update.pointer("/artifact/metadata/aborted").is_some();
    }

    /// Returns the texts, and which of them were broken off.
    fn texts(&self) -> Vec<(&str, bool)> {
        self.0.values().map(|known| (known.text.as_str(), known.is_aborted)).collect()
    }
}

/// Watches a task to its end, and lets time pass meanwhile.
async fn until_the_end(fixture: &Fixture, watch: &mut Watch, artifacts: &mut Artifacts) {
    while let Some(event) = next(fixture, watch).await {
        artifacts.take(&event);
    }
}

/// Returns the next event, and lets time pass until it comes.
async fn next(fixture: &Fixture, watch: &mut Watch) -> Option<Value> {
    next_with_id(fixture, watch).await.map(|(_, event)| event)
}

async fn next_with_id(fixture: &Fixture, watch: &mut Watch) -> Option<(String, Value)> {
    let start = std::time::Instant::now();
    loop {
        match tokio::time::timeout(Duration::from_millis(5), watch.next()).await {
            Ok(event) => return event,
            Err(_) => fixture.clock.advance(Duration::from_millis(50)),
        }
        assert!(start.elapsed() < PATIENCE, "nothing happens");
    }
}

/// Begins a task, and watches it until a part of its words was told; returns its id.
async fn begin(fixture: &Fixture, peer: &Peer, artifacts: &mut Artifacts) -> (Watch, String) {
    let mut watch =
        peer.watch("message/stream", json!({ "message": message("m1", "go") }), None).await;
    let first = next(fixture, &mut watch).await.unwrap();
    assert_eq!(first["result"]["kind"], "task");
    while artifacts.0.is_empty() {
        artifacts.take(&next(fixture, &mut watch).await.unwrap());
    }
    (watch, first["result"]["id"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_is_said_slowly_is_told_in_chunks_and_has_one_end() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::new(&fixture, &script());
    let mut artifacts = Artifacts::default();
    let (mut watch, task) = begin(&fixture, &peer, &mut artifacts).await;
    // One who comes in the middle is told what there is, and then the rest.
    let mut late = peer.watch("tasks/resubscribe", json!({ "id": task }), None).await;
    let snapshot = next(&fixture, &mut late).await.unwrap();
    let mut from_snapshot = Artifacts::of_task(&snapshot["result"]);
    until_the_end(&fixture, &mut watch, &mut artifacts).await;
    until_the_end(&fixture, &mut late, &mut from_snapshot).await;
    let expected = [("Done.", false), (&whole(), false)];
    let mut texts = artifacts.texts();
    texts.sort_unstable();
    assert_eq!(texts, expected);
    assert!(artifacts.0.values().all(|known| known.is_over), "{artifacts:?}");
    assert!(artifacts.0.values().any(|known| known.chunks > 2), "{artifacts:?}");
    assert_eq!(from_snapshot.texts(), artifacts.texts());
    assert!(from_snapshot.0.values().all(|known| known.is_over), "{from_snapshot:?}");
    assert_eq!(Artifacts::of_task(&peer.get(&task).await).texts(), artifacts.texts());
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_that_a_pause_breaks_off_are_told_once_and_end_as_aborted() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::new(&fixture, &script());
    let mut artifacts = Artifacts::default();
    let (mut watch, task) = begin(&fixture, &peer, &mut artifacts).await;
    let pause = json!({ "taskId": task, "mode": "interrupt_immediate" });
    let paused = peer.result("tasks/pause", pause).await;
    assert_eq!(paused["state"], "paused-by-client");
    let shown = Artifacts::of_task(&peer.get(&task).await);
    assert!(
        matches!(shown.texts()[..], [(words, true)] if whole().starts_with(words)),
        "{shown:?}"
    );
    peer.result("tasks/resume", json!({ "taskId": task })).await;
    until_the_end(&fixture, &mut watch, &mut artifacts).await;
    let texts = artifacts.texts();
    let aborted: Vec<_> = texts.iter().filter(|(_, is_aborted)| *is_aborted).collect();
    assert!(matches!(aborted[..], [(words, _)] if whole().starts_with(words)), "{texts:?}");
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts.contains(&(&whole(), false)), "{texts:?}");
    assert!(artifacts.0.values().all(|known| known.is_over), "{artifacts:?}");
    assert_eq!(Artifacts::of_task(&peer.get(&task).await).texts(), texts);
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_that_a_host_takes_along_when_it_dies_end_as_aborted() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let peer = Peer::new(&fixture, &script());
    let mut artifacts = Artifacts::default();
    let (mut watch, task) = begin(&fixture, &peer, &mut artifacts).await;
    host.kill().await;
    let other = fixture.host().await;
    until_the_end(&fixture, &mut watch, &mut artifacts).await;
    let texts = artifacts.texts();
    let aborted: Vec<_> = texts.iter().filter(|(_, is_aborted)| *is_aborted).collect();
    assert!(matches!(aborted[..], [(words, _)] if whole().starts_with(words)), "{texts:?}");
    assert!(texts.contains(&(&whole(), false)), "{texts:?}");
    assert!(artifacts.0.values().all(|known| known.is_over), "{artifacts:?}");
    assert_eq!(Artifacts::of_task(&peer.get(&task).await).texts(), texts);
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_any_event_of_a_long_task_every_server_tells_the_same() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    let text = whole();
    let mut steps = vec![json!({ "ask": { "question": "Which?" } })];
    steps.extend(vec![json!({ "say": "on" }); 60]);
    steps.push(json!({ "say": { "text": text, "ms": 10_000 } }));
    steps.push(json!({ "ask": { "question": "Sure?" } }));
    steps.push(json!({ "say": "Done." }));
    let script = json!({ "steps": steps }).to_string();
    let peer = Peer::knowing(&fixture, &script);
    let asking = peer.result("message/send", json!({ "message": message("m1", "go") })).await;
    let task = asking["id"].as_str().unwrap();
    let answer = |id: &str| {
        let message = with_task(message(id, "yes"), task);
        json!({ "message": message, "configuration": { "blocking": false } })
    };
    let mut watch = peer.watch("tasks/resubscribe", json!({ "id": task }), None).await;
    peer.result("message/send", answer("m2")).await;
    let (mut told, mut is_broken_off) = (Vec::new(), false);
    while let Some((id, event)) = next_with_id(&fixture, &mut watch).await {
        if event["result"]["append"] == true && !is_broken_off {
            is_broken_off = true;
            let pause = json!({ "taskId": task, "mode": "interrupt_immediate" });
            peer.result("tasks/pause", pause).await;
            peer.result("tasks/resume", json!({ "taskId": task })).await;
        }
        if event.pointer("/result/status/state") == Some(&"input-required".into())
            && !told.is_empty()
        {
            peer.result("message/send", answer("m3")).await;
        }
        told.push((id, event));
    }
    assert!(is_broken_off, "{told:?}");
    let other = Peer { activated: STATES, ..Peer::on(fixture.another_adjourn(), &script) };
    for (index, (id, _)) in told.iter().enumerate() {
        let seen = json!({ "id": task });
        let mut again = other.watch("tasks/resubscribe", seen, Some(id)).await;
        assert_eq!(again.rest().await, told[index + 1..], "behind {id}");
    }
    host.stop().await;
}
