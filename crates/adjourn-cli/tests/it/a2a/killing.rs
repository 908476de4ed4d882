//! SIGKILL of the server, again and again, while a task is paused, resumed and watched: what was
//! acknowledged is there, a message that is sent again is the same one, and a watcher that comes back
//! each time is told every event once.

use std::time::{Duration, Instant};

use adjourn_testkit::dice::Dice;
use adjourn_testkit::http::{self, Answer};
use serde_json::{Value, json};

use super::{JSON, STATES, Server, message, request};

/// How often the server is killed in a pause, and then in a resume, at least and at most: until some
/// requests were answered before it died, and others were not.
const ROUNDS: std::ops::Range<usize> = 6..40;

/// An agent that waits for an event, so that nothing but the peers moves its task.
const WAITS: &str = r#"{"steps": [{"await": {"reason": "ci", "conditions": {"onEvent": "ci.passed"}}}, {"say": "merged"}]}"#;

/// Kills of the server while it is asked for something.
struct Kills {
    dice: Dice,
    /// How long a server that was just started takes for an answer.
    answer: Duration,
    answered: usize,
    cut_off: usize,
}

impl Kills {
    /// Measures an answer on a task that is there for nothing else.
    fn measure(server: &mut Server) -> Self {
        let sent = server.result(&[STATES], "SendMessage", message("m0"));
        server.kill();
        server.start(&["--insecure-open"]);
        let start = Instant::now();
        server.result(&[], "tasks/pause", json!({ "taskId": sent["task"]["id"] }));
        Self { dice: Dice::drawn(), answer: start.elapsed(), answered: 0, cut_off: 0 }
    }

    /// Sends a request in a thread of its own, and kills the server at any time up to twice as long as
    /// an answer takes. Returns the answer, if there was one.
    fn ask_and_kill(&mut self, server: &mut Server, method: &str, params: Value) -> Option<Value> {
        let address = server.address.clone();
        let body = request(method, params).to_string();
        let asking = std::thread::spawn(move || -> Option<Answer> {
            // The server may die before there is an answer, or in the middle of it.
            let ask = || http::send(&*address, "POST /a2a", &[JSON, STATES], &body);
            std::panic::catch_unwind(ask).ok()
        });
        let micros = u64::try_from(2 * self.answer.as_micros()).unwrap();
        // How far the request has come by then is left to chance.
        std::thread::sleep(Duration::from_micros(self.dice.below(micros)));
        server.kill();
        let answer = asking.join().unwrap().map(|answer| answer.json());
        server.start(&["--insecure-open"]);
        let result = answer.and_then(|answer| answer.get("result").cloned());
        match result {
            Some(_) => self.answered += 1,
            None => self.cut_off += 1,
        }
        result
    }

    /// Returns whether enough was tried.
    fn are_enough(&self, rounds: usize) -> bool {
        rounds >= ROUNDS.start && self.answered > 0 && self.cut_off > 0
    }
}

#[test]
fn a_server_that_is_killed_in_the_middle_loses_nothing_that_it_has_acknowledged() {
    let mut server = Server::new(WAITS, &["--insecure-open"]);
    let mut kills = Kills::measure(&mut server);
    // A message that was perhaps taken is sent again until there is an answer.
    let sent = kills.ask_and_kill(&mut server, "SendMessage", message("m1"));
    let again = server.result(&[STATES], "SendMessage", message("m1"));
    let task = again["task"]["id"].clone();
    if let Some(sent) = sent {
        assert_eq!(sent["task"]["id"], task);
    }
    let listed = server.result(&[STATES], "ListTasks", json!({}));
    assert_eq!(listed["totalSize"], 2, "{listed}");

    let mut seen = vec![server.watch(&task, None).next().unwrap()];
    let mut rounds = 0;
    while !kills.are_enough(rounds) {
        rounds += 1;
        let Kills { answer, answered, cut_off, .. } = &kills;
        let tried = format!("{answered} answered, {cut_off} cut off, {answer:?} each");
        assert!(rounds < ROUNDS.end, "it was never killed in the middle: {tried}");
        let last = seen.last().unwrap().0.clone();
        let mut watch = server.watch(&task, Some(&last));
        let pause = json!({ "taskId": task, "reason": "review" });
        let paused = kills.ask_and_kill(&mut server, "tasks/pause", pause);
        // What the stream told before it was cut off is kept.
        while let Some(event) = watch.next() {
            seen.push(event);
        }
        let shown = server.result(&[STATES], "GetTask", json!({ "id": task }));
        let handle = shown.pointer("/metadata/urn:adjourn:a2a:pause:v1/handle").cloned();
        if let Some(paused) = paused {
            assert_eq!(shown.pointer("/status/state"), Some(&"TASK_STATE_PAUSED_BY_CLIENT".into()));
            assert_eq!(handle.as_ref(), Some(&paused["handle"]));
        }
        // It is paused, or was never asked to be.
        let handle = server.result(&[], "tasks/pause", json!({ "taskId": task }))["handle"].clone();
        let resume = json!({ "taskId": task, "handle": handle });
        let last = seen.last().unwrap().0.clone();
        let mut watch = server.watch(&task, Some(&last));
        let resumed = kills.ask_and_kill(&mut server, "tasks/resume", resume.clone());
        while let Some(event) = watch.next() {
            seen.push(event);
        }
        let once = server.post(&[JSON], &request("tasks/resume", resume)).json();
        let reason = once.pointer("/error/data/0/reason");
        match resumed {
            Some(_) => assert_eq!(reason, Some(&"ALREADY_RESUMED".into()), "{once}"),
            None => {
                assert!(reason.is_none() || reason == Some(&"ALREADY_RESUMED".into()), "{once}");
            }
        }
    }
    let last = seen.last().unwrap().0.clone();
    let mut watch = server.watch(&task, Some(&last));
    server.home.json(&["event", "ci.passed"]);
    while let Some(event) = watch.next() {
        seen.push(event);
    }
    // One who was never cut off is told the same.
    let mut whole = vec![seen[0].clone()];
    let mut watch = server.watch(&task, Some(&seen[0].0.clone()));
    while let Some(event) = watch.next() {
        whole.push(event);
    }
    assert_eq!(seen, whole);
    let (_, end) = seen.last().unwrap();
    let state = end.pointer("/result/statusUpdate/status/state");
    assert_eq!(state, Some(&"TASK_STATE_COMPLETED".into()), "{end}");
    assert_eq!(server.serving.take().unwrap().terminate(), 0);
}
