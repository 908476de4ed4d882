//! Many peers at once on one task, each with a token over a connection of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use adjourn_server::Access;
use adjourn_testkit::dice::Dice;
use adjourn_testkit::host::Fixture;
use adjourn_testkit::http::Connection;
use adjourn_testkit::store::TENANT;
use serde_json::{Value, json};

use crate::agent::{DONE, JSON, STATES, Served, Setting, request, token};

const PEERS: usize = 32;
const MOVES: usize = 100;
/// What the peers show; those of one name are one caller to the agent.
const TOKENS: [(&str, &str); 3] = [
    ("authorization", "Bearer boss"),
    ("authorization", "Bearer ann"),
    ("authorization", "Bearer bob"),
];

/// What is known of the handles that were given out: how often each was resumed by its name.
type Handles = Mutex<BTreeMap<String, usize>>;

/// A peer with a connection that it keeps.
struct Peer {
    connection: Connection,
    token: (&'static str, &'static str),
}

impl Peer {
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let headers = [JSON, self.token, STATES];
        let answer = self.connection.send("POST /a2a", &headers, &request(method, params));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()
    }

    /// Pauses or resumes at random; every answer is a success or the right refusal.
    fn play(&mut self, task: &str, handles: &Handles, dice: &mut Dice) {
        for _ in 0..MOVES {
            if dice.once_in(2) {
                let paused = self.ask("tasks/pause", &json!({ "taskId": task }));
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
            let answer = self.ask("tasks/resume", &json!({ "taskId": task, "handle": handle }));
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
}

/// Returns the word of a refusal.
fn reason(answer: &Value) -> Option<&str> {
    answer.pointer("/error/data/0/reason").and_then(Value::as_str)
}

/// Has many peers pause and resume one task.
fn play(address: SocketAddr, task: &str) -> Handles {
    let (handles, mut dice) = (Handles::default(), Dice::drawn());
    std::thread::scope(|scope| {
        for number in 0..PEERS {
            let (handles, mut dice) = (&handles, dice.fork());
            scope.spawn(move || {
                let (connection, token) =
                    (Connection::open(address), TOKENS[number % TOKENS.len()]);
                Peer { connection, token }.play(task, handles, &mut dice);
            });
        }
    });
    handles
}

fn setting(script: &str) -> Setting<'_> {
    let scopes = "read,pause,resume";
    let tokens =
        [("boss", "admin"), ("ann", scopes), ("bob", scopes)].map(|(n, s)| token(n, s, TENANT));
    Setting { access: Access::with(tokens), ..Setting::new(script) }
}

/// Has many peers race on one task, and compares what came of it with its journal.
async fn race(fixture: &Fixture, script: &str) {
    let served: Served = setting(script).on(fixture).await;
    let task = served.begin("m1");
    let handles = play(served.address, &task).into_inner().unwrap();
    for (handle, resumed) in &handles {
        assert!(*resumed <= 1, "{handle} was resumed {resumed} times");
    }
    // A paused task stays as it is. Whoever reads the whole journal finds it as this server has it.
    let last = served.result("tasks/pause", &json!({ "taskId": task }));
    let fresh = setting("{}").on_store(fixture.another_adjourn()).await;
    let show = |served: &Served| served.ask(&[STATES], "tasks/get", &json!({ "id": task }));
    let shown = show(&fresh);
    assert_eq!(shown, show(&served));
    assert_eq!(shown["result"]["status"]["state"], "paused-by-client");
    assert_eq!(shown.pointer("/result/metadata/harn/pause/handle"), Some(&last["handle"]));
    // And its links, its signatures and what was stored of it agree.
    let ring = adjourn_testkit::store::keys().ring();
    fixture.adjourn().verify(ring, None).await.unwrap().unwrap();
    fresh.stop().await;
    served.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_connections_that_pause_and_resume_one_task_each_pause_is_ended_once() {
    let fixture = Fixture::new();
    race(&fixture, DONE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_connections_that_race_with_an_agent_at_work_each_pause_is_ended_once() {
    let fixture = Fixture::new();
    let _host = fixture.host().await;
    // More steps than the peers leave it time for.
    let script = json!({ "steps": vec![json!({ "say": "on and on" }); 5000] });
    race(&fixture, &script.to_string()).await;
}
