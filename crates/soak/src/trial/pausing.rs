//! Many peers pause and resume one task over A2A, through several programs, while its agent works:
//! every answer is a success or the right refusal, and the journal is what the task has come to.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use adjourn::core::carry::Budget;
use adjourn::core::driver::DriverSpec;
use adjourn::core::id::{RunId, SessionId};
use adjourn::core::json::stored;
use adjourn::core::{Session, command};
use adjourn::store::Sqlite;
use adjourn_a2a::rpc::{Headers, Reply};
use adjourn_a2a::{Agent, Caller, Face, Profile, Scope};
use adjourn_testkit::dice::Dice;
use adjourn_testkit::store::TENANT;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::oracle::whole_journal;
use crate::report::Report;
use crate::scene::Scene;

/// Peers that pause and resume at once.
const PEERS: usize = 32;
/// Programs that they ask; each has its own writer and takes its own turns at the lock.
const PROGRAMS: usize = 3;
/// Steps of the agent, each with a call that takes a while: more than it comes to.
const STEPS: usize = 4000;
const CALL: &str = r#"{"tool": {"name": "work", "ms": 20}}"#;
/// How many of the last handles a peer names.
const RECENT: usize = 3;

/// A program that peers ask.
type Program = Arc<Face<Sqlite>>;
/// What is known of the handles that were given out: how often each was resumed by its name.
type Handles = Arc<Mutex<BTreeMap<String, usize>>>;

/// Has peers pause and resume one task for a time.
///
/// # Panics
/// The store fails.
pub async fn run(directory: &Path, seed: u64, time: Duration) -> Report {
    let scene = Scene::at(directory);
    let programs: Vec<_> = (0..PROGRAMS).map(|_| program(&scene)).collect();
    let first = programs.first().expect("there are some");
    let host = first.adjourn.host().scripts().start().await.expect("a host starts");
    let message = json!({ "messageId": "m1", "role": "ROLE_USER", "parts": [{ "text": "go" }] });
    let at_once = json!({ "message": message, "configuration": { "returnImmediately": true } });
    let begun = ask(first, "SendMessage", at_once).await;
    let task = begun.pointer("/result/task/id").and_then(Value::as_str).expect("a task begins");
    let (handles, report) = (Handles::default(), Arc::new(Mutex::new(Report::default())));
    let (mut dice, until) = (Dice::new(seed), Instant::now() + time);
    let mut playing = JoinSet::new();
    for number in 0..PEERS {
        let program = Arc::clone(programs.get(number % PROGRAMS).expect("there are some"));
        let (handles, report, task) = (Arc::clone(&handles), Arc::clone(&report), task.to_owned());
        let mut dice = dice.fork();
        playing.spawn(async move {
            while Instant::now() < until {
                let done = play(&program, &task, &handles, &mut dice).await;
                let mut report = report.lock().unwrap_or_else(PoisonError::into_inner);
                match done {
                    Ok(()) => report.acknowledged += 1,
                    Err(problem) => report.wrong.push(problem),
                }
            }
        });
    }
    while let Some(played) = playing.join_next().await {
        played.expect("no peer panics");
    }
    let canceled = ask(first, "CancelTask", json!({ "id": task })).await;
    let mut report = report.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if canceled.pointer("/result/status/state") != Some(&json!("TASK_STATE_CANCELED")) {
        report.wrong.push(format!("it was not canceled: {canceled}"));
    }
    for (handle, times) in &*handles.lock().unwrap_or_else(PoisonError::into_inner) {
        if *times > 1 {
            report.doubled.push(format!("{handle} was resumed {times} times"));
        }
        report.resumes_raced += 1;
    }
    host.stop().await.expect("the host stops");
    compare(&scene, &programs, task, &mut report).await;
    report
}

/// Compares what every program shows, and what the journal says, with the session.
async fn compare(scene: &Scene, programs: &[Program], task: &str, report: &mut Report) {
    let fresh = program(scene);
    let run: RunId = task.parse().expect("a task is a run");
    let session = fresh.adjourn.session_of(run).await.expect("the store works");
    let session = session.expect("the task has a session");
    let state = session.load().await.expect("the session is there");
    if folded(&fresh, session.id()).await.as_ref() != Some(&*state) {
        report.wrong.push(format!("the journal of {} leads elsewhere", session.id()));
    }
    let shown = ask(&fresh, "GetTask", json!({ "id": task })).await;
    for program in programs {
        let other = ask(program, "GetTask", json!({ "id": task })).await;
        if other != shown {
            report.wrong.push(format!("programs show {other} and {shown}"));
        }
    }
}

/// Returns the session that a journal leads to.
async fn folded(program: &Program, id: SessionId) -> Option<Session> {
    let mut folded: Option<Session> = None;
    for entry in whole_journal(&program.adjourn, id).await {
        match &mut folded {
            Some(session) => session.evolve(&entry.event),
            None => folded = Session::born(&entry.event),
        }
    }
    folded
}

fn program(scene: &Scene) -> Program {
    let script = format!(r#"{{"steps": [{}]}}"#, vec![CALL; STEPS].join(","));
    let agent = Agent {
        name: "soak".to_owned(),
        description: "works for a while".to_owned(),
        driver: DriverSpec::script(script),
        budget: Budget::default(),
        pausable: true,
    };
    Arc::new(Face::new(scene.embed(), agent, Profile::Adjourn))
}

/// Pauses, resumes or looks; says what is wrong with the answer.
async fn play(
    program: &Program,
    task: &str,
    handles: &Handles,
    dice: &mut Dice,
) -> Result<(), String> {
    match dice.below(5) {
        0 | 1 => {
            let mode = match dice.once_in(2) {
                true => command::Mode::FinishStep,
                false => command::Mode::InterruptImmediate,
            };
            let params = json!({ "taskId": task, "mode": mode.as_str() });
            let paused = ask(program, "tasks/pause", params).await;
            if let Some(handle) = paused.pointer("/result/handle").and_then(Value::as_str) {
                let mut handles = handles.lock().unwrap_or_else(PoisonError::into_inner);
                handles.entry(handle.to_owned()).or_default();
            }
            let is = |path: &str, word: &str| paused.pointer(path).is_some_and(|is| is == word);
            let is_taken =
                is("/result/state", "paused-by-client") || is("/result/phase", "quiescing");
            match refusal(&paused) {
                None if is_taken => Ok(()),
                // Another peer has taken it back before it was in force.
                Some((-32011, "WITHDRAWN")) => Ok(()),
                _ => Err(format!("a pause is answered {paused}")),
            }
        }
        2 | 3 => {
            let handle = {
                let handles = handles.lock().unwrap_or_else(PoisonError::into_inner);
                let recent: Vec<_> = handles.keys().rev().take(RECENT).cloned().collect();
                let index = dice.index(RECENT + 1);
                recent.get(index).cloned()
            };
            let params = json!({ "taskId": task, "handle": handle });
            let resumed = ask(program, "tasks/resume", params).await;
            match (refusal(&resumed), &handle) {
                (None, Some(handle)) => {
                    let mut handles = handles.lock().unwrap_or_else(PoisonError::into_inner);
                    *handles.entry(handle.clone()).or_default() += 1;
                    Ok(())
                }
                (None, None)
                | (Some((-32011, "TASK_NOT_PAUSED")), _)
                | (Some((-32011, "ALREADY_RESUMED")), Some(_))
                | (Some((-32012, "SUSPENSION_HANDLE_MISMATCH")), Some(_)) => Ok(()),
                _ => Err(format!("a resume of {handle:?} is answered {resumed}")),
            }
        }
        _ => {
            let shown = ask(program, "GetTask", json!({ "id": task })).await;
            match shown.pointer("/result/status/state") {
                Some(state) if *state == "TASK_STATE_WORKING" => Ok(()),
                _ => Err(format!("the task is shown as {shown}")),
            }
        }
    }
}

/// Returns the code and the word of a refusal.
fn refusal(answer: &Value) -> Option<(i64, &str)> {
    let error = answer.get("error")?;
    let reason = error.pointer("/data/0/reason").and_then(Value::as_str);
    Some((error.get("code")?.as_i64()?, reason.unwrap_or_default()))
}

async fn ask(program: &Program, method: &str, params: Value) -> Value {
    let caller = Caller {
        name: "peer".into(),
        tenant: TENANT.into(),
        scopes: Scope::ALL.into_iter().collect(),
    };
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let headers = Headers::default();
    match program.rpc(&caller, headers, request.to_string().as_bytes()).await {
        Reply::Object { json, .. } => stored(json.as_bytes()).unwrap_or_default(),
        Reply::Stream(..) => Value::Null,
    }
}
