//! The scenarios of `conformance/`, played over ACP: one process is the agent and its host.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn_conformance::scenario::{Event, How, Restart, Resume, Scenario, Suspend, Why};
use adjourn_conformance::{Answer, Ending, Face, Refusal, Reply, logs, play};
use adjourn_testkit::process::Child;
use serde_json::{Value, json};

use crate::conformance::{CONFIG, event_arguments, suspend_arguments, told};
use crate::home::Home;

/// The word for what an agent that goes leaves unanswered, although it was taken.
const LEFT: &str = "(left)";

/// How many scenarios are played at once: they mostly wait.
const AT_ONCE: usize = 8;

#[test]
fn every_scenario_holds_in_version_1() {
    let failures = play::every_scenario(AT_ONCE, &|scenario: &Scenario| Window::open(scenario, 1));
    assert!(failures.is_empty(), "{}\n", failures.join("\n"));
}

#[test]
fn every_scenario_holds_in_version_2() {
    let failures = play::every_scenario(AT_ONCE, &|scenario: &Scenario| Window::open(scenario, 2));
    assert!(failures.is_empty(), "{}\n", failures.join("\n"));
}

/// An editor's window on one session.
struct Window {
    home: Arc<Home>,
    version: u64,
    id: String,
    graces: std::vec::IntoIter<Option<Duration>>,
    agent: Arc<Mutex<Option<Agent>>>,
    /// The lifecycle notices that the editor was sent.
    timeline: Arc<Mutex<Vec<Value>>>,
}

impl Window {
    fn open(scenario: &Scenario, version: u64) -> Result<Self, String> {
        let home = Arc::new(Home::new());
        home.config(CONFIG);
        home.file("script.json", &scenario.script.to_string());
        let mut graces = scenario.graces().into_iter();
        let timeline = Arc::default();
        let agent = Agent::start(&home, version, graces.next().flatten(), &timeline);
        let made = agent.call("session/new", json!({ "cwd": "/", "mcpServers": [] }));
        let made = made.map_err(|refusal| refusal.message)?;
        let id = made["sessionId"].as_str().unwrap().to_owned();
        let agent = Arc::new(Mutex::new(Some(agent)));
        Ok(Self { home, version, id, graces, agent, timeline })
    }

    fn give(&self, method: &str, mut params: Value, read: fn(Answer) -> Answer) -> Reply {
        params["sessionId"] = json!(self.id);
        let (sender, reply) = Reply::pair();
        let agent = self.agent.lock().unwrap();
        agent.as_ref().unwrap().request(method, &params, move |answer| {
            // Whoever gave the verb may not care any more.
            let _ = sender.send(read(answer));
        });
        reply
    }

    /// Does what an editor cannot do, as a second person would.
    fn type_in(&self, arguments: Vec<String>) -> Reply {
        let home = Arc::clone(&self.home);
        Reply::later(move || told(&home, &arguments))
    }
}

impl Face for Window {
    fn prompt(&mut self, text: &str) -> Reply {
        let prompt = json!({ "prompt": [{ "type": "text", "text": text }] });
        // In version 1 the answer comes when the turn is over, whatever became of it.
        let reply = self.give("session/prompt", prompt, |answer| match answer {
            Err(refusal) if !["RUN_FAILED", LEFT].contains(&refusal.reason.as_str()) => {
                Err(refusal)
            }
            _ => Ok(Value::Null),
        });
        if self.version == 1 { reply.at_the_end() } else { reply }
    }

    fn suspend(&mut self, suspend: &Suspend) -> Reply {
        if suspend.elsewhere {
            return self.type_in(suspend_arguments(suspend, &self.id)).at_the_end();
        }
        let request = json!({
            "reason": suspend.reason, "mode": suspend.mode, "graceMs": suspend.grace_ms,
            "resumeWhen": suspend.resume_when,
        });
        let reply = self.give("session/suspend", request, |answer| match answer {
            // One that is withdrawn later was taken all the same, and made nothing.
            Err(refusal) if refusal.reason == "WITHDRAWN" => Ok(json!({})),
            Err(refusal) if refusal.reason == LEFT => Ok(Value::Null),
            Ok(result) if result["handle"].is_null() => Err(Refusal::broken(result.to_string())),
            answer => answer,
        });
        reply.at_the_end()
    }

    fn resume(&mut self, resume: &Resume) -> Reply {
        let request = json!({
            "handle": resume.handle, "input": resume.input,
            "continueTranscript": resume.continue_transcript,
            "idempotencyKey": resume.idempotency_key,
        });
        self.give("session/resume", request, |answer| {
            answer.map(|result| result["_meta"]["adjourn/suspend"]["resumed"].clone())
        })
    }

    fn event(&mut self, event: &Event) -> Reply {
        self.type_in(event_arguments(event, &self.id))
    }

    fn cancel(&mut self, why: &Why) -> Reply {
        match &why.reason {
            Some(_) => self.type_in(words("cancel", &self.id, why)),
            None => {
                let agent = self.agent.lock().unwrap();
                agent.as_ref().unwrap().notify("session/cancel", json!({ "sessionId": self.id }));
                Reply::now(Ok(Value::Null))
            }
        }
    }

    fn close(&mut self, why: &Why) -> Reply {
        self.type_in(words("close", &self.id, why))
    }

    fn restart(&mut self, restart: &Restart) -> Reply {
        let grace = self.graces.next().flatten();
        let (home, slot) = (Arc::clone(&self.home), Arc::clone(&self.agent));
        let (timeline, id, version) = (Arc::clone(&self.timeline), self.id.clone(), self.version);
        let Restart { how, away, .. } = restart.clone();
        Reply::later(move || {
            let mut slot = slot.lock().unwrap();
            slot.take().unwrap().end(how == How::Kill);
            std::thread::sleep(away.map(|away| away.0).unwrap_or_default());
            // What was told before is told again, and nothing twice.
            timeline.lock().unwrap().clear();
            let agent = Agent::start(&home, version, grace, &timeline);
            let (method, params) = match version {
                1 => ("session/load", json!({ "sessionId": id, "cwd": "/", "mcpServers": [] })),
                _ => {
                    let start = json!({ "type": "start" });
                    ("session/resume", json!({ "sessionId": id, "cwd": "/", "replayFrom": start }))
                }
            };
            let attached = agent.call(method, params);
            *slot = Some(agent);
            attached
        })
    }

    fn status(&mut self) -> Result<Value, String> {
        let agent = self.agent.lock().unwrap();
        let status =
            agent.as_ref().unwrap().call("session/status", json!({ "sessionId": self.id }));
        let status = status.map_err(|refusal| refusal.message)?;
        Ok(status["_meta"]["adjourn/suspend"].clone())
    }

    fn ending(&mut self) -> Result<Ending, String> {
        let journal = self.home.told(&["log", &self.id, "--json"]);
        let transcript = self.home.told(&["log", &self.id, "--transcript", "--json"]);
        let ending = logs::ending(&journal.data, &transcript.data)?;
        Ok(Ending { timeline: self.timeline.lock().unwrap().clone(), ..ending })
    }
}

/// Returns how a verb is typed in.
fn words(verb: &str, id: &str, why: &Why) -> Vec<String> {
    let reason = why.reason.iter().flat_map(|reason| ["--reason", reason]);
    [verb, id, "--json"].into_iter().chain(reason).map(str::to_owned).collect()
}

type Heard = Box<dyn FnOnce(Answer) + Send>;

/// An agent's process, and who waits for which of its answers.
struct Agent {
    child: Child,
    input: Mutex<Option<ChildStdin>>,
    pending: Arc<Mutex<HashMap<u64, Heard>>>,
    /// Whether it had no time to answer.
    killed: Arc<AtomicBool>,
}

impl Agent {
    fn start(
        home: &Home,
        version: u64,
        grace: Option<Duration>,
        timeline: &Arc<Mutex<Vec<Value>>>,
    ) -> Self {
        let script = home.path("script.json");
        let mut command = home.command(&["acp", "--script", script.to_str().unwrap()]);
        if let Some(grace) = grace {
            command.env("ADJOURN_DRAIN", format!("{}ms", grace.as_millis()));
        }
        let mut child = Child::start(command.stdin(Stdio::piped()).stderr(Stdio::null())).unwrap();
        let output = BufReader::new(child.as_std().stdout.take().unwrap());
        let pending: Arc<Mutex<HashMap<u64, Heard>>> = Arc::default();
        let (waiting, timeline) = (Arc::clone(&pending), Arc::clone(timeline));
        let killed: Arc<AtomicBool> = Arc::default();
        let dead = Arc::clone(&killed);
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                hear(&serde_json::from_str(&line).unwrap(), &waiting, &timeline);
            }
            // Verbs that a killed agent took are journaled all the same; any other has answered.
            for (_, heard) in waiting.lock().unwrap().drain() {
                heard(Err(match dead.load(Ordering::Acquire) {
                    true => Refusal { reason: LEFT.to_owned(), ..Refusal::broken("killed") },
                    false => Refusal::broken("the agent went without an answer"),
                }));
            }
        });
        let input = Mutex::new(child.as_std().stdin.take());
        let agent = Self { child, input, pending, killed };
        // The notices of the proposal are wanted from the beginning.
        let knows = json!({ "supportsSuspend": true });
        let greeting = json!({
            "protocolVersion": version, "clientCapabilities": knows, "capabilities": knows,
        });
        agent.call("initialize", greeting).unwrap();
        agent
    }

    fn send(&self, message: &Value) {
        // A killed agent reads nothing.
        let _ = writeln!(self.input.lock().unwrap().as_mut().unwrap(), "{message}");
    }

    fn notify(&self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    fn request(&self, method: &str, params: &Value, heard: impl FnOnce(Answer) + Send + 'static) {
        let mut pending = self.pending.lock().unwrap();
        let id = 1 + pending.keys().max().unwrap_or(&0);
        pending.insert(id, Box::new(heard));
        drop(pending);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn call(&self, method: &str, params: Value) -> Answer {
        let (sender, answer): (Sender<Answer>, _) = channel();
        self.request(method, &params, move |answer| {
            let _ = sender.send(answer);
        });
        answer
            .recv_timeout(Duration::from_secs(20))
            .unwrap_or_else(|_| Err(Refusal::broken(format!("no answer to {method}"))))
    }

    /// Ends the process: without warning, or as an editor that closes.
    fn end(mut self, kill: bool) {
        if kill {
            self.killed.store(true, Ordering::Release);
            let _ = self.child.kill();
        }
        *self.input.lock().unwrap() = None;
        let ended = self.child.wait();
        assert!(kill || ended.success());
    }
}

/// Takes in what an agent says.
fn hear(message: &Value, pending: &Mutex<HashMap<u64, Heard>>, timeline: &Mutex<Vec<Value>>) {
    let update = &message["params"]["update"];
    if let Some(kind @ ("suspended" | "resumed")) = update["sessionUpdate"].as_str() {
        timeline.lock().unwrap().push(json!({ kind: update }));
    }
    let Some(id) = message["id"].as_u64().filter(|_| message.get("method").is_none()) else {
        return;
    };
    let Some(heard) = pending.lock().unwrap().remove(&id) else { return };
    heard(match message.get("error") {
        None => Ok(message["result"].clone()),
        Some(error) => {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            Err(Refusal {
                reason: match (&error["code"], text(&error["data"]["reason"])) {
                    (code, None) if *code == -32800 => LEFT.to_owned(),
                    (_, reason) => reason.unwrap_or_else(|| "(broken)".to_owned()),
                },
                path: text(&error["data"]["path"]),
                message: error.to_string(),
            })
        }
    });
}
