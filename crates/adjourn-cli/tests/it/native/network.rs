//! Models over the network: the program against providers on loopback, in both formats.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};

use adjourn_testkit::provider::{Asked, Reply, Server, anthropic, openai};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::texts;
use crate::acp::editor::Editor;
use crate::home::{Home, signal};

/// The key that nothing may hold but the requests.
pub const KEY: &str = "sk-secret-0123456789-abcdef";

/// A provider's format, and how the program is told where the provider is.
pub struct Format {
    pub model: &'static str,
    /// The beginning of its variables.
    pub variables: &'static str,
    /// The header that has the key.
    pub header: &'static str,
    pub says: fn(&str) -> Reply,
    pub calls: fn(&str, &str, &str, &Value) -> Reply,
    refuses_key: fn(&str) -> Reply,
}

pub const OPENAI: Format = Format {
    model: "openai/gpt-5",
    variables: "OPENAI",
    header: "authorization: bearer ",
    says: openai::says,
    calls: openai::calls,
    refuses_key: openai::refuses_key,
};

pub const ANTHROPIC: Format = Format {
    model: "anthropic/claude-sonnet-4-5",
    variables: "ANTHROPIC",
    header: "x-api-key: ",
    says: |text| anthropic::says(&[text]),
    calls: anthropic::calls,
    refuses_key: anthropic::refuses_key,
};

/// A provider that answers while a test waits for programs.
pub struct Provider {
    server: Server,
    _runtime: tokio::runtime::Runtime,
}

impl Provider {
    pub fn start(replies: Vec<Reply>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_io().build().unwrap();
        let server = runtime.block_on(Server::start(replies));
        Self { server, _runtime: runtime }
    }

    pub fn url(&self) -> String {
        format!("{}/v1", self.server.url())
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.server.asked()
    }
}

/// A home whose programs have a key, and know where the provider is.
pub fn home(format: &Format, provider: &Provider) -> Home {
    Home::new()
        .with_variable(format!("{}_API_KEY", format.variables), KEY)
        .with_variable(format!("{}_BASE_URL", format.variables), provider.url())
}

/// Returns a command that logs all there is to a file.
fn logging(home: &Home, name: &str, arguments: &[&str]) -> Command {
    let mut command = home.command(&[arguments, &["--log", "trace"]].concat());
    command.stderr(File::create(home.path(name)).unwrap());
    command
}

/// Starts a host that logs all there is.
fn served(home: &Home) -> Child {
    logging(home, "serve.log", &["serve"]).spawn().unwrap()
}

fn end(mut child: Child) -> i32 {
    signal(&child, Signal::TERM);
    child.wait().unwrap().code().unwrap()
}

/// Looks for the key in everything below a directory, and returns how many files there are.
fn files_without_key(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let check = |path: std::path::PathBuf| match path {
        path if path.is_dir() => files_without_key(&path),
        path if path.is_file() => {
            let bytes = std::fs::read(&path).unwrap();
            let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            assert!(!found, "{} holds the key", path.display());
            1
        }
        _ => 0,
    };
    entries.map(check).sum()
}

#[test]
fn a_run_parks_and_a_host_goes_on_with_it() {
    for format in [OPENAI, ANTHROPIC] {
        let conditions =
            json!({ "reason": "waiting on ci", "conditions": { "onEvent": "ci.passed" } });
        let provider = Provider::start(vec![
            (format.calls)("I wait.", "call_1", "await_resumption", &conditions),
            (format.says)("All is done."),
        ]);
        let home = home(&format, &provider);
        let arguments = ["run", "load it", "--model", format.model, "--name", "r", "--detach"];
        let told = home.ended(logging(&home, "run.log", &arguments));
        let log = std::fs::read_to_string(home.path("run.log")).unwrap();
        assert_eq!((told.code, told.data.as_str()), (0, "I wait.\n"), "{log}");
        assert!(log.contains("[used ") && log.contains(" tokens at an unknown price]"), "{log}");
        let parked = home.json(&["show", "r"]);
        assert_eq!(parked["reason"], "waiting on ci", "{parked}");
        let serving = served(&home);
        assert_eq!(home.told(&["event", "ci.passed"]).code, 0);
        assert_eq!(home.until("r", "state", "idle")["outcome"], "completed");
        assert_eq!(end(serving), 0);
        assert_eq!(texts(&home, "r"), ["load it", "I wait.", "All is done."]);
        let asked = provider.asked();
        assert_eq!(asked.len(), 2);
        for asked in &asked {
            assert!(asked.head.contains(&format!("{}{KEY}", format.header)), "{}", asked.head);
        }
        // The host has sent the conversation back, with the call and what became of it.
        let sent = asked[1].body["messages"].to_string();
        assert!(sent.contains("load it") && sent.contains("call_1"), "{sent}");
        assert!(files_without_key(&home.path("")) > 2, "the store and two logs");
    }
}

#[test]
fn an_editor_is_told_what_a_provider_says() {
    for format in [OPENAI, ANTHROPIC] {
        let provider =
            Provider::start(vec![(format.refuses_key)(KEY), (format.says)("Here I am.")]);
        let home = home(&format, &provider);
        let mut command = logging(&home, "acp.log", &["acp", "--model", format.model]);
        let mut editor = Editor::of_command(&mut command, &json!({ "protocolVersion": 1 }));
        let session = editor.new_session();
        // A key that is not taken is a question, which the next prompt answers.
        let prompt = editor.prompt(&session, "hello?");
        assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
        assert_eq!(home.json(&["show", &session])["wait"], "question", "{}", editor.dialog());
        let prompt = editor.prompt(&session, "try again");
        assert_eq!(editor.answer(prompt).unwrap()["stopReason"], "end_turn");
        let dialog = editor.dialog();
        assert!(dialog.contains(&format!("set {}_API_KEY", format.variables)), "{dialog}");
        assert!(dialog.contains("Here I am."), "{dialog}");
        assert!(!dialog.contains(KEY), "{dialog}");
        assert_eq!(editor.close(), 0);
        assert!(files_without_key(&home.path("")) > 1, "the store and a log");
    }
}

#[test]
fn a_key_that_is_not_taken_asks_wherever_the_session_runs() {
    for format in [OPENAI, ANTHROPIC] {
        let provider = Provider::start(vec![
            (format.refuses_key)(KEY),
            (format.says)("From the run."),
            (format.refuses_key)(KEY),
            (format.says)("From the host."),
        ]);
        let home = home(&format, &provider);
        let asks = |name: &str| {
            let asking = home.until(name, "wait", "question");
            let question = format!("{} {}", asking["question"], asking["context"]);
            assert!(question.contains(&format!("set {}_API_KEY", format.variables)), "{asking}");
            assert!(question.contains("401"), "{asking}");
        };
        let arguments = ["run", "hello?", "--model", format.model, "--name", "r", "--detach"];
        let told = home.ended(logging(&home, "run.log", &arguments));
        assert_eq!(told.code, 0, "{told:?}");
        asks("r");
        let told = home.ended(logging(&home, "prompt.log", &["prompt", "r", "try again"]));
        assert!(told.data.starts_with("From the run.\n"), "{told:?}");

        let serving = served(&home);
        home.json(&["new", "--model", format.model, "--name", "s"]);
        assert_eq!(home.told(&["prompt", "s", "hello?", "--detach"]).code, 0);
        asks("s");
        assert_eq!(home.told(&["prompt", "s", "try again", "--detach"]).code, 0);
        assert_eq!(home.until("s", "state", "idle")["outcome"], "completed");
        assert_eq!(end(serving), 0);
        assert_eq!(texts(&home, "s").last().unwrap(), "From the host.");
        for name in ["r", "s"] {
            let shown = home.told(&["show", name, "--json"]).data;
            let log = home.told(&["log", name, "--transcript", "--json"]).data;
            assert!(!format!("{shown}{log}").contains(KEY), "{shown}{log}");
        }
        assert!(files_without_key(&home.path("")) > 3, "the store and three logs");
    }
}
