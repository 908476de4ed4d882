//! Programs that embed the library, beside a terminal and an editor, on one store at once.
//!
//! A program is this very test binary, started again. It is given orders in lines, and answers
//! each with one line.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use adjourn::core::Rejected;
use adjourn::core::command::CallResult;
use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::ledger::CallId;
use adjourn::driver::{
    BoxStream, Call, CallContent, CallPart, Driver, Finish, Message, Opening, Park, Part,
    RequestedCall, Step, emitting,
};
use adjourn::{Adjourn, Error, Event};
use adjourn_testkit::http;
use adjourn_testkit::process::{Process, say};
use serde_json::{Value, json};

use crate::acp::editor::Editor;
use crate::home::Home;

const STORE: &str = "ADJOURN_TEST_STORE";
const ROUNDS: usize = 5;
/// The agents of the terminal and of the editor.
const SAYS: &str = r#"{"steps": [{"say": "over"}]}"#;

/// Where the event comes from that all publish.
const SOURCE: &str = "ci";

/// Parks until an event comes, and is done when it is woken.
struct Waiter {
    event: String,
}

impl Driver for Waiter {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let parts = match step.opening {
            Opening::Wake(_) => {
                vec![Part::Message(Message::agent("woken")), Part::Finished(Finish::completed())]
            }
            Opening::Prompt | Opening::Next => {
                let until = json!({ "onEvent": self.event });
                let conditions = Conditions::parse(&until, Spelling::Camel).unwrap();
                let park = Park::Await { reason: "x".to_owned(), conditions, summary: None };
                vec![Part::Park(park), Part::Finished(Finish::default())]
            }
        };
        parts_of(parts)
    }
}

/// Calls a tool that takes until a file is there, and may be run twice.
struct Worker {
    file: String,
}

impl Driver for Worker {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        parts_of(match step.session.driver_state.as_deref() {
            None => {
                let content = CallContent::new(CallId("wait-1".to_owned()), "wait");
                let call = RequestedCall { idempotent: true, ..RequestedCall::new(content) };
                vec![Part::Calls(vec![call]), Part::Finished(Finish::default().at("called"))]
            }
            Some(_) => {
                vec![Part::Message(Message::agent("worked")), Part::Finished(Finish::completed())]
            }
        })
    }

    fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
        let file = self.file.clone();
        emitting(move |out| async move {
            while !Path::new(&file).exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let ended =
                CallPart::Ended { result: CallResult::Done, content: Vec::new(), structured: None };
            out.emit(ended).await;
        })
    }
}

fn parts_of(parts: Vec<Part>) -> BoxStream<'static, Part> {
    emitting(|out| async move {
        for part in parts {
            out.emit(part).await;
        }
    })
}

/// The body of every program. It does nothing in an ordinary run of the tests; the tests that start
/// it judge what it says.
#[test]
fn plays_a_program() {
    let Ok(store) = std::env::var(STORE) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(program(store));
}

async fn program(store: String) {
    let (sender, mut orders) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
        std::process::exit(0);
    });
    let adjourn = Adjourn::open(store).await.unwrap();
    let text = |config: &Value| config.as_str().unwrap().to_owned();
    let waiter = move |config: &Value| Waiter { event: text(config) };
    let worker = move |config: &Value| Worker { file: text(config) };
    let host = adjourn.host().driver("waiter", waiter).driver("worker", worker);
    let _host = host.start().await.unwrap();
    say("ready");
    while let Some(order) = orders.recv().await {
        let words: Vec<_> = order.split(' ').collect();
        say(obey(&adjourn, &words).await);
    }
}

/// Does what the parent says, and answers with one line.
async fn obey(adjourn: &Adjourn, order: &[&str]) -> String {
    match order {
        ["create", driver, config] => {
            let created = adjourn.create(*driver).config(*config).prompt("go").await;
            created.unwrap().id().to_string()
        }
        ["suspend", id] => {
            let session = adjourn.session(id.parse().unwrap());
            session.suspend().await.unwrap().handle.to_string()
        }
        ["resume", id, handle] => {
            let session = adjourn.session(id.parse().unwrap());
            match session.resume().handle(Some(handle.parse().unwrap())).await {
                Ok(_) => "won".to_owned(),
                Err(Error::Refused(Rejected::AlreadyResumed { .. })) => "lost".to_owned(),
                Err(other) => other.to_string(),
            }
        }
        ["publish", name, id] => {
            let published = adjourn.publish(Event::new(*name).id(*id).source(SOURCE)).await;
            published.unwrap().fresh.to_string()
        }
        ["finished", id] => {
            let run = adjourn.session(id.parse().unwrap()).finished().await.unwrap();
            run.end.outcome.as_str().to_owned()
        }
        other => panic!("{other:?}"),
    }
}

/// A program in a process of its own; it does not outlive the test.
struct Program(Process);

impl Program {
    fn start(home: &Home) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env_clear().envs(home.environment());
        command.env(STORE, home.path(".local/share/adjourn/store.db"));
        let program = Self(Process::start_again(&mut command, "embedded::plays_a_program"));
        assert_eq!(program.answer(), "ready");
        program
    }

    fn order(&mut self, order: &str) {
        self.0.tell(order);
    }

    fn answer(&self) -> String {
        self.0.line().unwrap()
    }

    fn does(&mut self, order: &str) -> String {
        self.order(order);
        self.answer()
    }
}

/// Returns how often something happened to a session.
fn count(home: &Home, id: &str, event: &str) -> usize {
    home.jsons(&["log", id]).iter().filter(|entry| entry["event"] == event).count()
}

#[test]
fn a_pause_is_ended_once_by_two_programs_a_terminal_and_an_editor() {
    let home = Home::new();
    // The command line makes the store: the programs sign with its user's keys.
    home.json(&["event", "first"]);
    let (mut one, mut two) = (Program::start(&home), Program::start(&home));
    let mut editor = Editor::v1(&home, SAYS);
    for round in 0..ROUNDS {
        let id = one.does("create waiter x");
        let handle = home.until(&id, "state", "suspended")["handle"].as_str().unwrap().to_owned();
        let resume = format!("resume {id} {handle}");
        one.order(&resume);
        two.order(&resume);
        let asked = editor
            .request("session/resume", json!({ "sessionId": id, "cwd": "/", "handle": handle }));
        let told = home.told(&["resume", &id, "--handle", &handle, "--detach", "--json"]);
        let mut won = Vec::new();
        for (who, answer) in [("one", one.answer()), ("two", two.answer())] {
            match answer.as_str() {
                "won" => won.push(who),
                other => assert_eq!(other, "lost", "{who} in round {round}"),
            }
        }
        match editor.answer(asked) {
            Ok(_) => won.push("the editor"),
            Err(error) => assert_eq!(error["code"], 4003, "{error}"),
        }
        match told.code {
            0 => won.push("the terminal"),
            _ => assert!(told.data.contains("ALREADY_RESUMED"), "{told:?}"),
        }
        assert_eq!(won.len(), 1, "{won:?} in round {round}");
        assert_eq!(two.does(&format!("finished {id}")), "completed");
        assert_eq!(count(&home, &id, "resumed"), 1);
    }
    editor.close();
}

#[test]
fn an_event_is_taken_once_from_two_programs_a_terminal_and_a_server() {
    let home = Home::new();
    home.json(&["event", "first"]);
    let (mut one, mut two) = (Program::start(&home), Program::start(&home));
    let (serving, said) = home.serve_with(&["--listen", "127.0.0.1:0", "--insecure-open"]);
    let address = said.lines().find_map(|line| line.strip_prefix("listening on http://")).unwrap();
    let address = address.strip_suffix("/v1/events").unwrap();
    for round in 0..ROUNDS {
        let name = format!("ci.passed.{round}");
        let id = one.does(&format!("create waiter {name}"));
        home.until(&id, "state", "suspended");
        let publish = format!("publish {name} build-{round}");
        one.order(&publish);
        two.order(&publish);
        let build = format!("build-{round}");
        let (over_http, told) = std::thread::scope(|scope| {
            let over_http = scope.spawn(|| {
                let event = json!({
                    "specversion": "1.0", "id": build, "source": SOURCE, "type": name,
                });
                let headers = [("content-type", "application/cloudevents+json")];
                http::send(address, "POST /v1/events", &headers, &event.to_string())
            });
            let told = home.json(&["event", &name, "--id", &build, "--source", SOURCE]);
            (over_http.join().unwrap(), told)
        });
        assert_eq!(over_http.status, 200, "{over_http:?}");
        let fresh = [
            one.answer() == "true",
            two.answer() == "true",
            over_http.json()["acknowledged"][0]["fresh"] == true,
            told["fresh"] == true,
        ];
        assert_eq!(fresh.iter().filter(|fresh| **fresh).count(), 1, "{fresh:?} in round {round}");
        assert_eq!(two.does(&format!("finished {id}")), "completed");
        assert_eq!(count(&home, &id, "resumed"), 1, "round {round}");
        assert_eq!(count(&home, &id, "run_ended"), 1, "round {round}");
    }
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn what_a_killed_program_was_doing_another_goes_on_with() {
    let home = Home::new();
    home.json(&["event", "first"]);
    let mut one = Program::start(&home);
    let go = home.path("go").to_str().unwrap().to_owned();
    let id = one.does(&format!("create worker {go}"));
    home.until_in_flight("wait");
    // Neither the terminal nor the editor knows the driver: they leave it to those who do.
    let mut editor = Editor::v1(&home, SAYS);
    let mut two = Program::start(&home);
    one.0.kill();
    home.until_log(&id, "host_lost");
    std::fs::write(&go, "").unwrap();
    assert_eq!(two.does(&format!("finished {id}")), "completed");
    assert_eq!(count(&home, &id, "host_lost"), 1);
    assert_eq!(count(&home, &id, "run_ended"), 1);
    assert_eq!(home.json(&["show", &id])["state"], "idle");
    let loaded = json!({ "sessionId": id, "cwd": "/", "mcpServers": [] });
    editor.call("session/load", loaded).unwrap();
    let told = editor.heard().filter_map(|message| {
        let text = &message["params"]["update"]["content"]["text"];
        text.as_str().map(str::to_owned)
    });
    assert!(told.collect::<String>().contains("worked"), "{}", editor.dialog());
    editor.close();
}

#[test]
fn a_pause_of_a_program_is_seen_and_ended_at_a_terminal() {
    let home = Home::new();
    home.json(&["event", "first"]);
    let (mut one, mut two) = (Program::start(&home), Program::start(&home));
    let go = home.path("go").to_str().unwrap().to_owned();
    let id = one.does(&format!("create worker {go}"));
    home.until_in_flight("wait");
    // It runs in one program; the other asks for the pause, and is answered when it is in force.
    two.order(&format!("suspend {id}"));
    home.until_log(&id, "suspend_requested");
    std::fs::write(&go, "").unwrap();
    let handle = two.answer();
    assert_eq!(home.json(&["show", &id])["handle"], handle.as_str());
    home.json(&["resume", &id, "--detach"]);
    assert_eq!(two.does(&format!("finished {id}")), "completed");
}

#[test]
fn a_store_that_a_program_made_is_opened_by_the_command_line() {
    let home = Home::new();
    let store = home.path("agents.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let id = runtime.block_on(async {
        let adjourn = Adjourn::open(&store).await.unwrap();
        adjourn.create("waiter").prompt("go").await.unwrap().id()
    });
    let store = store.to_str().unwrap();
    let listed = home.json(&["--store", store, "ls"]);
    assert_eq!(listed["sessionId"], id.to_string());
    let paused = home.json(&["--store", store, "suspend", &id.to_string()]);
    assert_eq!(paused["state"], "suspended");
    let keys = home.told(&["--store", store, "keys", "list"]);
    assert!(keys.talk.contains("agents.db.keys"), "{keys:?}");
    assert!(!home.path(".config/adjourn/keys").exists(), "no other key is made");
}
