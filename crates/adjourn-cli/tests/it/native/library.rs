//! Records that the library and the program give each other.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use adjourn_agent::{
    Agent, Clock as _, KeyDir, RunOutcome, ScriptedModel, SuspensionRecord, SystemClock,
};
use serde_json::{Value, json};

use super::{ASKS, model, said};
use crate::home::Home;

/// A program of its own that embeds an agent, with the keys of this home.
fn embedded(home: &Home, model: ScriptedModel, name: Option<&str>) -> Agent {
    let keys = KeyDir::new(home.path(".config/adjourn/keys")).load(SystemClock.now()).unwrap();
    let agent = Agent::builder(model).keys(keys);
    let agent = match name {
        Some(name) => agent.name(name),
        None => agent,
    };
    agent.build().unwrap()
}

/// A model of that name which asks, and then says something.
fn asking(id: &str) -> ScriptedModel {
    let ask = json!({ "tool": "ask_user", "arguments": { "question": "Which table?" } });
    let answers = json!([{ "calls": [ask] }, { "text": "Done here." }]);
    ScriptedModel::parse(&answers.to_string()).unwrap().with_id(id)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().build().unwrap().block_on(future)
}

/// Runs an agent until it asks, and returns the record, and the file that has it.
fn suspended(home: &Home, agent: &Agent) -> (SuspensionRecord, String) {
    let result = block_on(async { agent.run("Load it.").result().await });
    let RunOutcome::Suspended(asked) = result.outcome else { panic!("it asks nothing") };
    let file = home.file("record.json", &asked.suspension_record.to_string());
    (asked.suspension_record, file)
}

/// Answers one request as OpenAI does, and returns where it listens and what was asked.
fn provider(says: &'static str) -> (String, std::thread::JoinHandle<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim().to_lowercase().split_once(": ") {
                Some(("content-length", bytes)) => length = bytes.parse().unwrap(),
                None if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let chunk = |delta: Value, finish: Option<&str>| {
            let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
            format!("data: {}\n\n", json!({ "id": "1", "choices": [choice] }))
        };
        let (words, end) =
            (chunk(json!({ "content": says }), None), chunk(json!({}), Some("stop")));
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n\
             {words}{end}data: [DONE]\n\n"
        )
        .unwrap();
        serde_json::from_slice(&body).unwrap()
    });
    (url, answering)
}

#[test]
fn a_record_of_the_library_is_imported_and_goes_on() {
    let home = Home::new();
    let (_, record) = suspended(&home, &embedded(&home, asking("openai/gpt-5"), None));
    // A key is a host's, and this may be none.
    let imported = home.json(&["import", &record, "--name", "mine"]);
    assert_eq!(imported["question"], "Which table?", "{imported}");
    let notice = imported["notice"].as_str().unwrap();
    assert!(notice.starts_with("it goes on with openai/gpt-5 alone: "), "{notice}");
    let (url, asked) = provider("The monthly table has 12 rows.");
    let mut answering = home.command(&["prompt", "mine", "monthly"]);
    answering.env("OPENAI_API_KEY", "sk-test").env("OPENAI_BASE_URL", url);
    let told = home.ended(answering);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.data.starts_with("The monthly table has 12 rows.\n"), "{told:?}");
    let asked = asked.join().unwrap();
    assert_eq!(asked["model"], "gpt-5");
    let heard = asked["messages"].to_string();
    assert!(heard.contains("Load it.") && heard.contains("monthly"), "{heard}");
}

#[test]
fn a_record_that_no_host_could_run_is_refused_and_not_used_up() {
    let home = Home::new();
    let agent = embedded(&home, asking("of-my-own"), None);
    let (record, file) = suspended(&home, &agent);
    let told = home.told(&["import", &file]);
    assert_eq!(told.code, 3, "{told:?}");
    let problem =
        "no host of this program could run the session: model: \"of-my-own\" names no model";
    assert!(told.talk.contains(problem), "{told:?}");
    assert!(told.talk.contains("the record is not used up"), "{told:?}");
    assert_eq!(home.told(&["ls", "--all", "--json"]).data, "");
    let result = block_on(async { agent.resume(&record, "raw").await.unwrap().result().await });
    assert_eq!(result.text, "Done here.");
}

#[test]
fn a_session_that_is_exported_is_resumed_by_the_library() {
    let home = Home::new();
    let model = model(&home, ASKS);
    let told = home.told(&["run", "load it", "--model", &model, "--detach", "--name", "loader"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert_eq!(said(&home, "loader").len(), 2);
    let file = home.path("record.json").to_str().unwrap().to_owned();
    home.json(&["export", "loader", &file]);
    let record: SuspensionRecord = std::fs::read_to_string(&file).unwrap().parse().unwrap();
    // What `--model` names is an agent called native.
    let agent = embedded(&home, asking("scripted"), Some("native"));
    let result = block_on(async { agent.resume(&record, "raw").await.unwrap().result().await });
    assert_eq!(result.text, "Done here.");
}
