//! Words as they come, plans, and calls that the agent runs by itself: live and in replays.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjourn_core::command::CallResult;
use adjourn_core::driver::DriverSpec;
use adjourn_core::ledger::CallId;
use adjourn_driver::{
    Block, BoxStream, Call, CallContent, CallPart, Driver, Drivers, Finish, Message, Part,
    Reported, Shown, Step, Words, emitting,
};
use serde_json::{Value, json};

use crate::process::{Client, Process};

const STREAMS: &str = r#"{"steps": [
  {"say": {"think": "let me see ", "text": "one two three", "ms": 250}},
  {"say": "at once"}
]}"#;

/// Takes about two and a half seconds, so that segments of it are committed.
const LONG: &str = r#"{"steps": [{"say": {"text": "a b c d e f g h i j", "ms": 2500}}]}"#;

/// Returns the updates of a client's messages.
fn updates(client: &Client) -> Vec<&Value> {
    client.heard().iter().map(|m| &m["params"]["update"]).filter(|u| u.is_object()).collect()
}

/// Puts together what a client shows of the agent's messages, by their ids and in their order.
fn shown(updates: &[&Value]) -> Vec<(String, String)> {
    let mut messages: Vec<(String, String)> = Vec::new();
    for update in updates {
        let kind = update["sessionUpdate"].as_str().unwrap();
        let (text, adds) = match kind {
            "agent_message_chunk" | "agent_thought_chunk" => (&update["content"]["text"], true),
            "agent_message" | "agent_thought" => (&update["content"][0]["text"], false),
            _ => continue,
        };
        let (id, text) = (update["messageId"].as_str().unwrap(), text.as_str().unwrap_or(""));
        match messages.iter_mut().find(|(known, _)| known == id) {
            Some((_, words)) if adds => words.push_str(text),
            Some((_, words)) if !text.is_empty() => text.clone_into(words),
            Some(_) => {}
            None => messages.push((id.to_owned(), text.to_owned())),
        }
    }
    messages
}

async fn connect(process: &Process, version: u64) -> Client {
    match version {
        1 => process.connect_of_today().await,
        _ => process.connect().await,
    }
}

/// Prompts, and waits until the run is over.
async fn run(client: &mut Client, session: &str) {
    client.prompt(session).await;
    if !client.is_of_today() {
        client.until_state("idle").await;
    }
}

/// Lets another client see all of a session, and returns what it is told.
async fn replayed(process: &Process, version: u64, session: &str) -> Client {
    let mut client = connect(process, version).await;
    match version {
        1 => {
            let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
            client.call("session/load", load).await;
        }
        _ => {
            let resume = json!({ "sessionId": session, "replayFrom": { "type": "start" } });
            client.call("session/resume", resume).await;
        }
    }
    client
}

fn apart(text: &str, version: u64) -> String {
    // Clients of version 1 are sent a blank line behind a message that another follows.
    if version == 1 { format!("{text}\n\n") } else { text.to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_are_told_as_they_come_and_once() {
    for version in [1, 2] {
        let process = Process::start(STREAMS).await;
        let mut client = connect(&process, version).await;
        let session = client.new_session().await;
        run(&mut client, &session).await;
        let told = updates(&client);
        let pieces = told.iter().filter(|update| {
            update["messageId"].as_str().is_some_and(|id| id.starts_with("s4.1"))
                && update["content"] != json!({ "type": "text", "text": "\n\n" })
        });
        // Each word is an update of its own, but for those that a busy machine says together.
        let texts: Vec<_> = pieces.map(|update| update["content"].to_string()).collect();
        assert!((2..=6).contains(&texts.len()), "{texts:#?}");
        let expected = [
            ("s4.1-thought".to_owned(), "let me see ".to_owned()),
            ("s4.1".to_owned(), apart("one two three", version)),
            ("m2".to_owned(), "at once".to_owned()),
        ];
        assert_eq!(shown(&told), expected, "version {version}");
        let second = replayed(&process, version, &session).await;
        assert_eq!(shown(&updates(&second)), expected, "version {version}, replayed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_sees_words_while_they_are_said_and_so_does_a_client_that_comes_late() {
    for version in [1, 2] {
        let process = Process::start(LONG).await;
        let other = process.beside(LONG).await;
        let mut client = connect(&process, 2).await;
        let session = client.new_session().await;
        // It attaches before anything runs.
        let mut watcher = replayed(&other, version, &session).await;
        client.prompt(&session).await;
        let says = |message: &Value| {
            let kind = message["params"]["update"]["sessionUpdate"].as_str();
            kind.is_some_and(|kind| kind.starts_with("agent_message"))
        };
        watcher.until("words", says).await;
        let session_now = || process.phase(&session);
        assert_eq!(session_now(), "running", "they came while the message went on");
        // One that comes in the middle is told what is committed, and how it goes on.
        let mut late = replayed(&process, version, &session).await;
        client.until_state("idle").await;
        let ends = |message: &Value| message.to_string().contains("j\"");
        for watching in [&mut watcher, &mut late] {
            if shown(&updates(watching)) != [("s4.1".to_owned(), "a b c d e f g h i j".to_owned())]
            {
                watching.until("the end", ends).await;
            }
        }
        let whole = [("s4.1".to_owned(), "a b c d e f g h i j".to_owned())];
        assert_eq!(shown(&updates(&client)), whole);
        assert_eq!(shown(&updates(&watcher)), whole, "version {version}");
        assert_eq!(shown(&updates(&late)), whole, "version {version}");
        let after = replayed(&process, version, &session).await;
        assert_eq!(shown(&updates(&after)), whole, "version {version}");
    }
}

/// A client that comes back in the middle of a message is told all of it where that takes the place
/// of what it has (version 2), and else how it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_whole_from_wherever_a_client_comes_back() {
    let whole = "a b c d e f g h i j";
    let process = Process::start(LONG).await;
    let mut client = connect(&process, 2).await;
    let session = client.new_session().await;
    client.prompt(&session).await;
    // Some are told nothing of the past, and come while the message goes on.
    client.until("a segment", |message| message.to_string().contains("f ")).await;
    let (mut first, mut second) = (connect(&process, 1).await, connect(&process, 2).await);
    for client in [&mut first, &mut second] {
        client.call("session/resume", json!({ "sessionId": session, "cwd": "/tmp" })).await;
    }
    client.until_state("idle").await;
    second.until_state("idle").await;
    first.until("the end", |message| message.to_string().contains("j\"")).await;
    let words = |client: &Client| shown(&updates(client)).pop().map(|(_, words)| words);
    assert_eq!(words(&second).unwrap(), whole);
    let rest = words(&first).unwrap();
    assert!(whole.ends_with(&rest) && rest.len() < whole.len(), "{rest}");

    let mut told = Vec::new();
    for seq in 1..=process.revision(&session) {
        for version in [1, 2] {
            let mut late = connect(&process, version).await;
            let from = json!({ "type": "_adjourn_from", "seq": seq });
            let resume = json!({ "sessionId": session, "cwd": "/tmp", "replayFrom": from });
            late.call("session/resume", resume).await;
            let Some(words) = words(&late) else { continue };
            match version {
                1 => assert!(whole.ends_with(&words), "from {seq}: {words}"),
                _ => assert_eq!(words, whole, "from {seq}"),
            }
            told.push((version, words));
        }
    }
    assert!(told.iter().any(|(version, words)| *version == 1 && words.len() < whole.len()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_host_dies_ends_as_aborted_for_every_watcher_and_in_replays() {
    for version in [1, 2] {
        let process = Process::start(LONG).await;
        let other = process.beside(LONG).await;
        let mut client = connect(&process, 2).await;
        let session = client.new_session().await;
        let mut watcher = replayed(&other, version, &session).await;
        client.prompt(&session).await;
        let says = |message: &Value| message["params"]["update"]["messageId"] == "s4.1";
        watcher.until("words", says).await;
        process.kill().await;
        let aborted = |message: &Value| {
            let update = &message["params"]["update"];
            update["messageId"] == "s4.1" && update["_meta"]["adjourn/suspend"]["aborted"] == true
        };
        watcher.until("the end of what was said", aborted).await;
        let first = |client: &Client| shown(&updates(client)).swap_remove(0);
        let committed: String = {
            let said = other.transcript(&session);
            let own = said.iter().filter(|message| message.id.as_deref() == Some("s4.1"));
            own.map(Message::text).collect()
        };
        assert!(!committed.is_empty() && "a b c d e f g h i j".starts_with(&committed));
        let (id, words) = first(&watcher);
        assert_eq!((id.as_str(), words.trim_end_matches("\n\n")), ("s4.1", committed.as_str()));
        let again = replayed(&other, version, &session).await;
        let (id, words) = first(&again);
        assert_eq!((id.as_str(), words.trim_end_matches("\n\n")), ("s4.1", committed.as_str()));
        assert!(again.heard().iter().any(aborted), "version {version}: {:#?}", again.heard());
    }
}

/// An agent that has a loop of its own, and says everything that there is.
struct OwnLoop;

impl Drivers for OwnLoop {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(Self))
    }
}

impl Driver for OwnLoop {
    fn ends_steps_itself(&self) -> bool {
        true
    }

    fn step(&mut self, _: Step) -> BoxStream<'static, Part> {
        emitting(|out| async move {
            let call = |id: &str| CallContent {
                title: Some("Look around".to_owned()),
                kind: Some("search".to_owned()),
                arguments: json!({ "for": "it" }),
                locations: vec![json!({ "path": "/src/a.rs", "line": 3 })],
                ..CallContent::new(CallId(id.to_owned()), "grep")
            };
            let delta = |message, words, text: &str| {
                let text = text.to_owned();
                Part::Delta { message, words, text }
            };
            let plan = json!({ "content": "look", "priority": "high", "status": "pending" });
            let fields = |value: Value| value.as_object().unwrap().clone();
            let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
            let parts = [
                delta(0, Words::Thought, "hm "),
                delta(0, Words::Said, "I look. "),
                Part::Shown(Shown::Plan(vec![plan])),
                delta(0, Words::Said, "Closely."),
                Part::Reported(Reported::Asked(call("c1"))),
                Part::Reported(Reported::Started(call("c1"))),
                Part::Reported(Reported::Updated(Shown::Call {
                    id: CallId("c1".to_owned()),
                    update: fields(json!({ "title": "Look closely", "status": "completed" })),
                })),
                Part::Reported(Reported::Ended {
                    id: CallId("c1".to_owned()),
                    result: CallResult::Done,
                    content: vec![Block::text("found"), Block::from_fields(fields(image)).unwrap()],
                    structured: Some(json!({ "matches": [3, 14] })),
                }),
                Part::Reported(Reported::Started(call("c2"))),
                Part::Shown(Shown::Context { used: 10, size: 200 }),
                Part::Shown(Shown::Mode("ask".to_owned())),
                Part::Shown(Shown::Commands(vec![
                    json!({ "name": "test", "description": "runs tests" }),
                ])),
                Part::Shown(Shown::Raw(json!({ "sessionUpdate": "_vendor", "x": 1 }))),
                delta(1, Words::Said, "Done."),
            ];
            for part in parts {
                out.emit(part).await;
            }
            out.emit(Part::Finished(Finish { ends: Some(completed()), ..Finish::default() })).await;
        })
    }

    fn call(&mut self, _: Call) -> BoxStream<'static, CallPart> {
        emitting(|_| std::future::ready(()))
    }
}

fn completed() -> adjourn_core::command::RunEnd {
    let outcome = adjourn_core::session::Outcome::Completed;
    adjourn_core::command::RunEnd { outcome, error: None, ends_session: false }
}

/// Returns what a client is told of plans, usage, modes, commands and calls.
fn beside_words(client: &Client) -> BTreeMap<String, Vec<Value>> {
    let mut kinds: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for update in updates(client) {
        let kind = update["sessionUpdate"].as_str().unwrap().to_owned();
        let words = ["user_message", "agent_", "session_info_update", "state_update"];
        if !words.iter().any(|prefix| kind.starts_with(prefix)) {
            kinds.entry(kind).or_default().push((*update).clone());
        }
    }
    kinds
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_an_agent_with_its_own_loop_does_is_told_live_and_again() {
    for version in [1, 2] {
        let process = Process::start_with(Arc::new(OwnLoop)).await;
        let mut client = connect(&process, version).await;
        let session = client.new_session().await;
        run(&mut client, &session).await;
        let second = replayed(&process, version, &session).await;
        let told = beside_words(&client);
        assert_eq!(told, beside_words(&second), "version {version}");
        assert_eq!(shown(&updates(&client)), shown(&updates(&second)), "version {version}");
        let [thought, said, done] = &shown(&updates(&client))[..] else { panic!("{told:#?}") };
        assert_eq!((thought.1.as_str(), said.1.as_str()), ("hm ", "I look. Closely."));
        assert_eq!(done.1, "Done.");

        let calls: Vec<_> = ["tool_call", "tool_call_update"]
            .iter()
            .flat_map(|kind| told.get(*kind).into_iter().flatten())
            .collect();
        let of =
            |id: &str| calls.iter().filter(|call| call["toolCallId"] == id).collect::<Vec<_>>();
        let first = of("c1");
        assert_eq!(first[0]["title"], "Look around");
        assert_eq!(first[0]["kind"], "search");
        assert_eq!(first[0]["status"], "pending");
        assert_eq!(first[0]["rawInput"], json!({ "for": "it" }));
        assert_eq!(first[0]["locations"], json!([{ "path": "/src/a.rs", "line": 3 }]));
        assert_eq!(first[1]["status"], "in_progress");
        assert_eq!(first[2]["title"], "Look closely");
        assert_eq!(first[2].get("status"), None, "how it stands is told as the journal has it");
        assert_eq!(first[3]["status"], "completed");
        assert_eq!(first[3]["content"][1]["content"]["type"], "image");
        assert_eq!(first[3]["rawOutput"], json!({ "matches": [3, 14] }));
        assert_eq!(first.len(), 4);
        // The step ended before this one did.
        assert_eq!(of("c2").last().unwrap()["status"], "failed");

        let usage = json!([{ "sessionUpdate": "usage_update", "used": 10, "size": 200 }]);
        assert_eq!(json!(told["usage_update"]), usage);
        let commands = &told["available_commands_update"][0]["availableCommands"];
        assert_eq!(commands[0]["name"], "test");
        match version {
            1 => {
                assert_eq!(told["plan"][0]["entries"][0]["content"], "look");
                assert_eq!(told["current_mode_update"][0]["currentModeId"], "ask");
                assert!(!told.contains_key("_vendor"), "the list of version 1 is closed");
            }
            _ => {
                assert_eq!(told["plan_update"][0]["plan"]["entries"][0]["content"], "look");
                assert_eq!(commands[0]["type"], "command");
                assert_eq!(told["_vendor"][0]["x"], 1);
                assert!(!told.contains_key("current_mode_update"), "version 2 has no modes");
            }
        }
    }
}

/// Tells of itself while it runs, and again right before its end.
const TELLS: &str = r#"{"steps": [
  {"tool": {"name": "build", "title": "Build", "ms": 600, "updates": [
    {"text": "compiling", "locations": ["/src/a.rs"]}, {"title": "Link", "text": "linking"}
  ]}},
  {"say": "built"}
]}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_tells_while_it_runs_is_told_live_elsewhere_and_again() {
    for version in [1, 2] {
        let process = Process::start(TELLS).await;
        let other = process.beside(TELLS).await;
        let mut client = connect(&process, version).await;
        let session = client.new_session().await;
        let mut watcher = replayed(&other, version, &session).await;
        let prompt = [json!({ "type": "text", "text": "go" })];
        client.request("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
        let compiles = |message: &Value| message.to_string().contains("compiling");
        for watching in [&mut client, &mut watcher] {
            watching.until("what the call tells", compiles).await;
            assert_eq!(process.phase(&session), "running", "version {version}");
        }
        let ends = |message: &Value| message.to_string().contains("built");
        client.until("the end", ends).await;
        watcher.until("the end", ends).await;
        let content = |text: &str| {
            let block = json!({ "type": "text", "text": text });
            json!([{ "type": "content", "content": block }])
        };
        let fields = |update: &Value| {
            let names = ["status", "title", "locations", "content"];
            let told = names.map(|name| (name.to_owned(), update[name].clone()));
            told.into_iter().filter(|(_, value)| !value.is_null()).collect()
        };
        let expected = [
            json!({ "status": "in_progress" }),
            json!({ "content": content("compiling"), "locations": [{ "path": "/src/a.rs" }] }),
            json!({ "content": content("linking"), "title": "Link" }),
            json!({ "status": "completed", "content": content("build done") }),
        ];
        let again = replayed(&process, version, &session).await;
        for (who, client) in [("live", &client), ("elsewhere", &watcher), ("again", &again)] {
            let told = beside_words(client).remove("tool_call_update").unwrap();
            // In version 2 a call begins with such an update, too.
            let told: Vec<Value> =
                told.iter().skip(usize::from(version == 2)).map(fields).collect();
            assert_eq!(told, expected, "version {version}, {who}");
        }
    }
}

const THINKS: &str = r#"{"steps": [
  {"think": {"text": "let me see", "ms": 100}}, {"think": "at once"}, {"say": "done"},
  {"think": {"text": "this will never come to an end", "ms": 9000}}
]}"#;

/// A message may have nothing but thoughts: live, again, and where it is broken off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thoughts_alone_are_told_live_and_again_and_end_as_broken_off() {
    for version in [1, 2] {
        let process = Process::start(THINKS).await;
        let mut client = connect(&process, version).await;
        let session = client.new_session().await;
        let prompt = [json!({ "type": "text", "text": "go" })];
        client.request("session/prompt", json!({ "sessionId": session, "prompt": prompt })).await;
        // It thinks for a second, so that a part of the thought is committed.
        client.until("a thought", |message| message.to_string().contains("\"this ")).await;
        client.notify("session/cancel", json!({ "sessionId": session })).await;
        let aborted = |update: &Value| {
            let kind = update["sessionUpdate"].as_str().unwrap_or_default();
            let thought = kind.starts_with("agent_thought");
            thought && update["_meta"]["adjourn/suspend"]["aborted"] == true
        };
        client.until("its end", |message| aborted(&message["params"]["update"])).await;
        let again = replayed(&process, version, &session).await;
        for (who, client) in [("live", &client), ("again", &again)] {
            let told = shown(&updates(client));
            let texts: Vec<_> = told.iter().map(|(_, text)| text.trim_end()).collect();
            let what = format!("version {version}, {who}: {texts:?}");
            assert_eq!(texts[..3], ["let me see", "at once", "done"], "{what}");
            assert!("this will never come to an end".starts_with(texts[3]), "{what}");
            assert!(
                told.iter().all(|(id, text)| id.ends_with("-thought") || text.starts_with("done")),
                "{what}"
            );
            assert_eq!(
                updates(client).iter().filter(|update| aborted(update)).count(),
                1,
                "{what}"
            );
        }
        assert_eq!(shown(&updates(&client)), shown(&updates(&again)), "version {version}");
        let view = adjourn_driver::model_view(&process.transcript(&session));
        let words: Vec<_> = view.iter().flat_map(|said| &said.blocks).collect();
        // A model is shown thoughts only with the words that follow them.
        let texts: Vec<_> = words.iter().filter_map(|block| block.words()).collect();
        assert_eq!(texts, ["go", "let me see", "at once", "done"]);
    }
}
