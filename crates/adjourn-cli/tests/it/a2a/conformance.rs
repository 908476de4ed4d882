//! The scenarios of `conformance/`, played over A2A: the session is a context, and each of its runs a
//! task.
//!
//! What A2A has no words for is typed in at the command line, as a second person would: events, the
//! end of a session, a pause of a session that is idle, the reason of a cancel. The status is what the
//! command line shows, with everything that A2A shows of the task in its place. At the end, all that
//! was told of pauses has to be all that the journal says of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn_conformance::scenario::{Event, How, Restart, Resume, Scenario, Suspend, Why};
use adjourn_conformance::{Answer, Ending, Face, Refusal, Reply, logs, play};
use adjourn_core::Session;
use adjourn_core::event::What;
use adjourn_core::id::RunId;
use adjourn_core::session::Wait;
use adjourn_testkit::http::{self, Events};
use serde_json::{Map, Value, json};

use super::{JSON, STATES, request};
use crate::conformance::{CONFIG, event_arguments, suspend_arguments, told};
use crate::home::{Home, Serving};

/// How many scenarios are played at once: they mostly wait.
const AT_ONCE: usize = 8;
/// The word for what a server that was killed leaves unanswered, although it was taken.
const LEFT: &str = "(left)";
/// How long a stream is listened to that tells nothing and does not end.
const SILENCE: Duration = Duration::from_millis(500);

/// What A2A cannot say, and why.
const LEFT_OUT: [&str; 3] = [
    // A message to a context that is parked, or whose session has ended, begins another session. What
    // becomes of the task of one that is closed is shown by `closed`.
    "prompt-to-a-session-paused-elsewhere.json",
    "close-suspended.json",
    "end-by-the-agent.json",
];

#[test]
fn every_scenario_holds_that_a2a_can_say() {
    let failures = play::scenarios_but(&LEFT_OUT, AT_ONCE, &Context::open);
    assert!(failures.is_empty(), "{}\n", failures.join("\n"));
}

/// A context, and the server that its agent has.
struct Context {
    home: Arc<Home>,
    /// The session, and the name of the context.
    id: String,
    graces: std::vec::IntoIter<Option<Duration>>,
    server: Arc<Mutex<Option<(Serving, String)>>>,
    messages: AtomicU64,
    /// Whether the session was paused without a task.
    is_parked_idle: Arc<AtomicBool>,
    /// The suspension that was shown when a resume was first sent under a key: its retries mean the
    /// same one.
    handles: BTreeMap<String, Value>,
}

impl Context {
    fn open(scenario: &Scenario) -> Result<Self, String> {
        let home = Arc::new(Home::new());
        home.config(CONFIG);
        let script = home.file("script.json", &scenario.script.to_string());
        let mut graces = scenario.graces().into_iter();
        let server = serve(&home, graces.next().flatten());
        let told = home.told(&["new", "--script", &script]);
        if told.code != 0 {
            return Err(told.talk);
        }
        Ok(Self {
            id: told.data.trim().to_owned(),
            home,
            graces,
            server: Arc::new(Mutex::new(Some(server))),
            messages: AtomicU64::new(0),
            is_parked_idle: Arc::default(),
            handles: BTreeMap::new(),
        })
    }

    fn address(&self) -> String {
        self.server.lock().unwrap().as_ref().unwrap().1.clone()
    }

    /// Returns the tasks of the context, the one first that came last to where it stands.
    fn tasks(&self) -> Vec<Value> {
        let list = json!({ "contextId": self.id, "pageSize": 100 });
        let listed = ask(&self.address(), "ListTasks", list);
        let mut tasks = listed.map(|listed| listed["tasks"].clone()).unwrap_or_default();
        tasks.as_array_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns the task that is not at its end.
    fn open_task(&self) -> Option<Value> {
        self.tasks().into_iter().find(|task| !is_over(task))
    }

    /// Asks about a task, and reads the answer.
    fn give(&self, method: &'static str, params: Value, read: fn(Answer) -> Answer) -> Reply {
        let address = self.address();
        Reply::later(move || read(ask(&address, method, params)))
    }

    /// Does what A2A cannot do, as a second person would.
    fn type_in(&self, arguments: Vec<String>) -> Reply {
        let home = Arc::clone(&self.home);
        Reply::later(move || told(&home, &arguments))
    }
}

impl Face for Context {
    fn prompt(&mut self, text: &str) -> Reply {
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        let mut message = json!({
            "messageId": format!("m{number}"), "role": "ROLE_USER", "parts": [{ "text": text }],
            "contextId": self.id,
        });
        if let Some(task) = self.open_task() {
            message["taskId"] = task["id"].clone();
        }
        let configuration = json!({ "returnImmediately": true });
        let params = json!({ "message": message, "configuration": configuration });
        let is_held = self.status().is_ok_and(|status| status["held"].is_string());
        let address = self.address();
        Reply::later(move || match ask(&address, "SendMessage", params) {
            // A2A has one word for all that is paused.
            Err(refusal) if refusal.reason == "TASK_PAUSED" && is_held => {
                Err(Refusal { reason: "HELD".to_owned(), ..refusal })
            }
            Err(refusal) if refusal.reason != LEFT => Err(refusal),
            _ => Ok(Value::Null),
        })
    }

    fn suspend(&mut self, suspend: &Suspend) -> Reply {
        let task = self.open_task().filter(|_| !suspend.elsewhere);
        let Some(task) = task else {
            let idle = self.open_task().is_none();
            self.is_parked_idle.store(idle, Ordering::SeqCst);
            return self.type_in(suspend_arguments(suspend, &self.id)).at_the_end();
        };
        let params = json!({
            "taskId": task["id"], "reason": suspend.reason, "mode": suspend.mode,
            "graceMs": suspend.grace_ms, "conditions": suspend.resume_when,
        });
        let reply = self.give("tasks/pause", params, |answer| match answer {
            // One that is withdrawn later was taken all the same, and made nothing.
            Err(refusal) if refusal.reason == "WITHDRAWN" => Ok(json!({})),
            Err(refusal) if refusal.reason == LEFT => Ok(Value::Null),
            Ok(paused) => Ok(json!({
                "handle": paused["handle"], "reason": paused["reason"],
                "suspendedAt": paused["pausedAt"], "resumeWhen": paused["conditions"],
            })),
            refused => refused,
        });
        reply.at_the_end()
    }

    fn resume(&mut self, resume: &Resume) -> Reply {
        let is_idle = self.is_parked_idle.load(Ordering::SeqCst);
        let task = match self.open_task() {
            Some(task) => Some(task),
            None if is_idle => None,
            None => self.tasks().into_iter().next(),
        };
        let Some(task) = task else {
            let parked = Arc::clone(&self.is_parked_idle);
            let (home, typed) = (Arc::clone(&self.home), resume_arguments(resume, &self.id));
            return Reply::later(move || {
                told(&home, &typed).inspect(|_| parked.store(false, Ordering::SeqCst))
            });
        };
        let shown = task.pointer("/metadata/harn/pause/handle").cloned();
        let handle = resume.handle.clone().map(Value::from).or(shown);
        // The answer to a retry tells of the wake that the first one made.
        let handle = match (&resume.idempotency_key, handle) {
            (Some(key), Some(handle)) => {
                Some(self.handles.entry(key.clone()).or_insert(handle).clone())
            }
            (Some(key), None) => self.handles.get(key).cloned(),
            (None, handle) => handle,
        };
        let named = match resume.idempotency_key {
            Some(_) => handle.clone(),
            None => resume.handle.clone().map(Value::from),
        };
        let params = json!({
            "taskId": task["id"], "handle": named, "input": resume.input,
            "continueTranscript": resume.continue_transcript,
            "idempotencyKey": resume.idempotency_key,
        });
        let address = self.address();
        Reply::later(move || {
            let mut resumed = ask(&address, "tasks/resume", params)?;
            // What is resumed was named, or shown before: the answer does not name it again.
            resumed["handle"] = handle.unwrap_or_default();
            Ok(resumed)
        })
    }

    fn event(&mut self, event: &Event) -> Reply {
        self.type_in(event_arguments(event, &self.id))
    }

    fn cancel(&mut self, why: &Why) -> Reply {
        match (&why.reason, self.open_task()) {
            (None, Some(task)) => {
                let read = |answer: Answer| match answer {
                    Err(refusal) if refusal.reason != LEFT => Err(refusal),
                    _ => Ok(Value::Null),
                };
                self.give("CancelTask", json!({ "id": task["id"] }), read).at_the_end()
            }
            _ => self.type_in(words("cancel", &self.id, why)),
        }
    }

    fn close(&mut self, why: &Why) -> Reply {
        self.type_in(words("close", &self.id, why))
    }

    fn restart(&mut self, restart: &Restart) -> Reply {
        let grace = self.graces.next().flatten();
        let (home, slot) = (Arc::clone(&self.home), Arc::clone(&self.server));
        let Restart { how, away, .. } = restart.clone();
        Reply::later(move || {
            let mut slot = slot.lock().unwrap();
            let (old, _) = slot.take().unwrap();
            match how {
                How::Kill => old.kill(),
                How::Drain => assert_eq!(old.terminate(), 0),
            }
            std::thread::sleep(away.map(|away| away.0).unwrap_or_default());
            *slot = Some(serve(&home, grace));
            Ok(Value::Null)
        })
    }

    fn status(&mut self) -> Result<Value, String> {
        let told = self.home.told(&["show", &self.id, "--json"]);
        let mut status: Value =
            serde_json::from_str(&told.data).map_err(|error| format!("{error}: {told:?}"))?;
        if let (Some(status), Some(task)) = (status.as_object_mut(), self.open_task()) {
            show(&task, status);
        }
        Ok(status)
    }

    fn ending(&mut self) -> Result<Ending, String> {
        let journal = self.home.told(&["log", &self.id, "--json"]);
        let transcript = self.home.told(&["log", &self.id, "--transcript", "--json"]);
        let ending = logs::ending(&journal.data, &transcript.data)?;
        let (runs, expected) = to_tell(&journal.data)?;
        let told = runs.iter().flat_map(|(task, begun)| frames(&self.address(), task, *begun));
        same(&told.collect::<Vec<_>>(), &expected)?;
        Ok(ending)
    }
}

/// Puts what A2A shows of a task in the place of what the command line shows of its session.
fn show(task: &Value, status: &mut Map<String, Value>) {
    let state = task["status"]["state"].as_str().unwrap_or_default();
    let pause = &task["metadata"]["urn:adjourn:a2a:pause:v1"];
    let is_at_rest = state.starts_with("TASK_STATE_PAUSED") || state.ends_with("_REQUIRED");
    let was_at_rest = status.get("state").is_some_and(|state| state == "suspended");
    if is_at_rest != was_at_rest {
        status.insert("state".to_owned(), json!(if is_at_rest { "suspended" } else { "running" }));
    }
    for (ours, theirs) in [
        ("handle", "handle"),
        ("reason", "reason"),
        ("initiator", "initiator"),
        ("suspendedAt", "pausedAt"),
        ("resumeWhen", "conditions"),
        ("summary", "summary"),
    ] {
        if pause.is_object() {
            status.insert(ours.to_owned(), pause[theirs].clone());
        }
    }
    let parts = task.pointer("/status/message/parts").and_then(Value::as_array);
    let question = parts.into_iter().flatten().find_map(|part| part.get("data"));
    for name in ["question", "context", "choices"] {
        if let Some(question) = question {
            status.insert(name.to_owned(), question[name].clone());
        }
    }
}

/// Returns the notifications of the proposal that a peer is told of a task from its beginning on, which
/// is an entry of the journal.
fn frames(address: &str, task: &RunId, begun: u64) -> Vec<Value> {
    let body = request("SubscribeToTask", json!({ "id": task })).to_string();
    let begun = begun.to_string();
    let headers = [JSON, STATES, ("last-event-id", begun.as_str()), ("connection", "close")];
    let events = Events::open(address, "POST /a2a", &headers, &body).until_silent_for(SILENCE);
    events
        .filter(|(_, event)| event["method"] == "tasks/statusUpdate")
        .map(|(_, event)| event["params"].clone())
        .collect()
}

/// Tasks in their order, each with the entry of the journal that begins it.
type Begun = Vec<(RunId, u64)>;

/// Returns the tasks, and what has to be told of pauses: what the journal says of them, in order. A
/// question is a state of its own, and a session without a run has no task; there are no notifications
/// of either. What a hold came with is told when the hold is lifted.
fn to_tell(journal: &str) -> Result<(Begun, Vec<Value>), String> {
    let mut session: Option<Session> = None;
    let (mut begun, mut expected, mut beneath) = (Vec::new(), Vec::new(), None);
    let mut untold = BTreeSet::new();
    for line in journal.lines() {
        let (revision, event) = logs::entry(line)?;
        if let What::RunStarted(started) = &event.what {
            begun.push((started.run, revision));
        }
        match &mut session {
            Some(session) => session.evolve(&event),
            None => session = Session::born(&event),
        }
        let Some(session) = &session else { continue };
        if let Some(suspended) = session.suspended() {
            let park = &suspended.park.pause;
            if matches!(park.wait, Wait::Question(_)) || session.run().is_none() {
                untold.insert(park.handle.to_string());
            }
            if let (Some(hold), true) = (&suspended.hold, session.run().is_none()) {
                untold.insert(hold.pause.handle.to_string());
            }
        }
        let is_told = |notice: &Value| {
            let handle = notice.pointer("/suspended/handle").or(notice.pointer("/resumed/handle"));
            !handle.and_then(Value::as_str).is_some_and(|handle| untold.contains(handle))
        };
        let mut notices = logs::notices(&event);
        if let (What::Suspended(_), 2) = (&event.what, notices.len()) {
            beneath = Some(notices.remove(0));
        }
        expected.extend(notices.into_iter().filter(is_told));
        if matches!(event.what, What::HoldLifted(_)) && session.suspended().is_some() {
            expected.extend(beneath.take().filter(is_told));
        }
    }
    Ok((begun, expected))
}

/// Compares what A2A tells of pauses with what has to be told: the same, with the same fields and in
/// the same order.
fn same(frames: &[Value], expected: &[Value]) -> Result<(), String> {
    let mut told: Vec<Value> = Vec::new();
    // Under a hold lies another suspension, which is told again when the hold is lifted.
    let mut open: Vec<Value> = Vec::new();
    for frame in frames {
        match (frame.get("previousState"), frame.get("handle")) {
            (Some(_), _) => told.push(json!({ "resumed": {
                "handle": open.pop(), "cause": frame["cause"],
                "hadResumeInput": frame["hadResumeInput"],
                "continueTranscript": frame["continueTranscript"],
                "resumedAt": frame["resumedAt"],
            } })),
            (None, Some(handle)) if open.contains(handle) => {}
            (None, handle) => {
                open.push(handle.cloned().unwrap_or_default());
                told.push(json!({ "suspended": {
                    "handle": handle, "initiator": frame["initiator"], "reason": frame["reason"],
                    "suspendedAt": frame["pausedAt"], "resumeWhen": frame["conditions"],
                } }));
            }
        }
    }
    match told == expected {
        true => Ok(()),
        false => Err(format!("told {told:#?}\nexpected {expected:#?}")),
    }
}

fn is_over(task: &Value) -> bool {
    let over = ["COMPLETED", "CANCELED", "FAILED", "REJECTED"];
    over.iter().any(|state| task["status"]["state"] == format!("TASK_STATE_{state}"))
}

/// Asks for something as a peer that knows paused states; one whose server is killed is told so.
fn ask(address: &str, method: &str, params: Value) -> Answer {
    let left = || Refusal { reason: LEFT.to_owned(), ..Refusal::broken("killed") };
    let body = request(method, params).to_string();
    let answer = http::try_send(address, "POST /a2a", &[JSON, STATES], &body);
    let mut answer: Value =
        serde_json::from_str(&answer.map_err(|_| left())?.body).map_err(|_| left())?;
    let Some(error) = answer.get("error") else { return Ok(answer["result"].take()) };
    let info = &error["data"][0];
    let reason = match info["reason"].as_str() {
        Some("INVALID_PARAMS") => "INVALID",
        reason => reason.unwrap_or("(broken)"),
    };
    // The proposal calls them so.
    let path =
        info["metadata"]["path"].as_str().map(|path| path.replacen("conditions", "resumeWhen", 1));
    Err(Refusal { reason: reason.to_owned(), path, message: error.to_string() })
}

fn serve(home: &Home, grace: Option<Duration>) -> (Serving, String) {
    let script = home.path("script.json").display().to_string();
    let grace = grace.map(|grace| format!("{}ms", grace.as_millis()));
    let mut arguments = vec!["--listen", "127.0.0.1:0", "--script", &script, "--insecure-open"];
    arguments.extend(grace.iter().flat_map(|grace| ["--drain", grace]));
    let (serving, said) = home.serve_with(&arguments);
    let (_, address) = said.split_once("an A2A agent on http://").unwrap();
    (serving, address.split_once("/a2a").unwrap().0.to_owned())
}

/// Returns how a verb is typed in.
fn words(verb: &str, id: &str, why: &Why) -> Vec<String> {
    let reason = why.reason.iter().flat_map(|reason| ["--reason", reason]);
    [verb, id, "--json"].into_iter().chain(reason).map(str::to_owned).collect()
}

/// Returns how a resume is typed in.
fn resume_arguments(resume: &Resume, id: &str) -> Vec<String> {
    let input = resume.input.as_ref().map(Value::to_string);
    let mut arguments = vec!["resume", id, "--json", "--detach"];
    arguments.extend(resume.handle.iter().flat_map(|handle| ["--handle", handle]));
    arguments.extend(input.iter().flat_map(|input| ["--input", input]));
    if resume.continue_transcript == Some(false) {
        arguments.push("--fresh");
    }
    arguments.extend(resume.idempotency_key.iter().flat_map(|key| ["--idempotency-key", key]));
    arguments.into_iter().map(str::to_owned).collect()
}
