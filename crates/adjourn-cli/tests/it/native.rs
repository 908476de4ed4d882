//! Real agents at the command line, with models that answer from a file.

mod agents;
mod client_tools;
mod described;
mod editors;
mod endpoints;
mod killed;
mod library;
mod network;
mod readme;
mod tools;
mod values;

use serde_json::{Value, json};

use crate::home::Home;
use crate::pty::OnTerminal;

/// A model that asks, waits for an event, and is done.
const ASKS: &str = r#"
{"thought": "hm", "text": "I look around.", "calls": [{"tool": "ask_user", "arguments": {"question": "Which table?", "choices": ["raw", "monthly"]}}], "usage": {"prompt_tokens": 120, "completion_tokens": 8, "cost_usd": 0.002}}
{"text": "I wait.", "calls": [{"tool": "await_resumption", "arguments": {"reason": "waiting on ci", "conditions": {"onEvent": "ci.passed"}}}], "usage": {"prompt_tokens": 150, "completion_tokens": 9}}
{"text": "All is done.", "usage": {"prompt_tokens": 160, "completion_tokens": 4}}
"#;

/// Writes the answers of a model, and returns its name.
pub fn model(home: &Home, answers: &str) -> String {
    format!("scripted:{}", home.file("answers.jsonl", answers))
}

/// Returns what the agent and the user have said in a session.
pub fn said(home: &Home, session: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let said = home.jsons(&["log", session, "--transcript"]).into_iter();
    let words = said.map(|said| (text(&said["role"]), text(&said["text"])));
    words.filter(|(role, text)| role != "host" && !text.is_empty()).collect()
}

/// Returns the words alone of what the agent and the user have said in a session.
pub fn texts(home: &Home, session: &str) -> Vec<String> {
    said(home, session).into_iter().map(|(_, text)| text).collect()
}

pub fn only_session(home: &Home) -> String {
    home.jsons(&["ls", "--all"])[0]["sessionId"].as_str().unwrap().to_owned()
}

#[test]
fn a_task_is_done_and_what_it_used_is_told() {
    let home = Home::new();
    let answers = r#"{"text": "Reviewed.", "usage": {"prompt_tokens": 90, "completion_tokens": 10, "cost_usd": 0.0125}}"#;
    let model = model(&home, answers);
    let told = home.told(&["run", "review it", "--model", &model]);
    assert_eq!((told.code, told.data.as_str()), (0, "Reviewed.\n"), "{told:?}");
    assert!(told.talk.contains("[used 0.0125 USD, 100 tokens]"), "{}", told.talk);
    let shown = home.json(&["show", &only_session(&home)]);
    assert_eq!((&shown["state"], &shown["agent"]), (&json!("ended"), &json!("native")));
}

#[test]
fn what_has_no_known_price_is_said_to_have_none_and_settings_give_it_one() {
    let home = Home::new();
    let answers =
        r#"{"text": "Reviewed.", "usage": {"prompt_tokens": 90, "completion_tokens": 10}}"#;
    let model = model(&home, answers);
    let run = || home.told(&["run", "review it", "--model", &model]).talk;
    assert!(run().contains("[used 100 tokens at an unknown price]"));
    home.config("[prices.\"scripted\"]\nprompt = 2\ncompletion = 10.5\n");
    assert!(run().contains("[used 0.000285 USD, 100 tokens]"));
    let wrong = "[prices.\"scripted\"]\nprompt = \"2\"\ncompletion = 1\n";
    home.config(wrong);
    let told = home.told(&["ls"]);
    let problem =
        r#"config.toml:2: prices."scripted".prompt: expected an amount from 0 on, found a string"#;
    assert!(told.talk.contains(problem), "{told:?}");
}

/// A budget in dollars that could never be reached is refused, and says how it could be.
#[test]
fn a_budget_in_dollars_needs_a_price() {
    let home = Home::new();
    let answers =
        r#"{"text": "Reviewed.", "usage": {"prompt_tokens": 90, "completion_tokens": 10}}"#;
    let model = model(&home, answers);
    let settings = "[agent.a]\nmodel = \"scripted:../../answers.jsonl\"\n";
    let (budget, rail) = ("budget = \"usd=1\"\n", "[agent.a.guardrails]\nmax_cost_usd = 1.0\n");
    for (settings, arguments, limit) in [
        ("", &["run", "go", "--model", &model, "--budget", "usd=1"][..], "a budget in usd"),
        ("", &["new", "--model", &model, "--budget", "usd=1,tokens=5"], "a budget in usd"),
        (&format!("{settings}{budget}"), &["run", "go", "--agent", "a"], "a budget in usd"),
        (&format!("{settings}{budget}"), &["acp", "--agent", "a"], "a budget in usd"),
        (&format!("{settings}{rail}"), &["run", "go", "--agent", "a"], "guardrails.max_cost_usd"),
    ] {
        home.config(settings);
        let told = home.told(arguments);
        assert_eq!(told.code, 2, "{arguments:?}: {told:?}");
        let problem = format!("{limit} can never be reached: what scripted costs is not known");
        assert!(told.talk.contains(&problem), "{arguments:?}: {told:?}");
        assert!(told.talk.contains("[prices.\"scripted\"] with prompt and"), "{told:?}");
    }
    assert!(!home.path(".local/share/adjourn/store.db").exists(), "nothing was made");
    home.config(&format!("{settings}{budget}[prices.\"scripted\"]\nprompt = 2\ncompletion = 1\n"));
    assert_eq!(home.told(&["run", "go", "--agent", "a"]).code, 0);
    // What is typed goes before what the agent has.
    home.config(&format!("{settings}{budget}"));
    assert_eq!(home.told(&["run", "go", "--agent", "a", "--budget", "tokens=500"]).code, 0);
}

/// A price is a host's own: one that has none cannot keep to the budget, and says so.
#[test]
fn a_host_without_the_price_does_not_go_on_with_a_budget_in_dollars() {
    let answers = r#"
{"text": "I wait.", "calls": [{"tool": "await_resumption", "arguments": {"reason": "x"}}], "usage": {"prompt_tokens": 90, "completion_tokens": 10}}
{"text": "Reviewed.", "usage": {"prompt_tokens": 90, "completion_tokens": 10}}
"#;
    for served in [false, true] {
        let home = Home::new();
        let model = model(&home, answers);
        home.config("[prices.\"scripted\"]\nprompt = 2\ncompletion = 1\n");
        let arguments = ["run", "go", "--model", &model, "--budget", "usd=1", "--name", "r"];
        let told = home.told(&[&arguments[..], &["--detach"]].concat());
        assert_eq!(told.code, 0, "{told:?}");
        home.config("");
        let serving = served.then(|| home.serve());
        let told = home.told(&["resume", "r"]);
        assert_eq!(told.code, 1, "{told:?}");
        let problem = "What scripted costs is not known here, and cost is limited";
        assert!(told.talk.contains(problem), "{told:?}");
        let shown = home.json(&["show", "r"]);
        assert_eq!(shown["outcome"], "failed", "{shown}");
        assert!(shown["error"].as_str().unwrap().contains(problem), "{shown}");
        assert!(!said(&home, "r").iter().any(|(_, text)| text == "Reviewed."));
        assert!(serving.is_none_or(|serving| serving.terminate() == 0));
    }
}

#[test]
fn it_asks_parks_and_goes_on_in_other_processes() {
    let home = Home::new();
    let model = model(&home, ASKS);
    let told = home.told(&["run", "load it", "--model", &model, "--detach", "--name", "loader"]);
    assert_eq!(told.code, 0, "{told:?}");
    // The journal has the answers of the model: its file is not needed any more.
    std::fs::remove_file(model.strip_prefix("scripted:").unwrap()).unwrap();
    let asking = home.json(&["show", "loader"]);
    assert_eq!(asking["question"], "Which table?");
    assert_eq!(asking["choices"], json!(["raw", "monthly"]));
    let told = home.told(&["prompt", "loader", "monthly"]);
    assert!(told.data.contains("suspended for") && told.data.contains("wakes on ci.passed"));
    let serving = home.serve();
    assert_eq!(home.told(&["event", "ci.passed"]).code, 0);
    let done = home.until("loader", "state", "idle");
    assert_eq!(done["outcome"], "completed");
    let (user, agent) = ("user".to_owned(), "agent".to_owned());
    let expected = [
        (user.clone(), "load it"),
        (agent.clone(), "I look around."),
        (user, "monthly"),
        (agent.clone(), "I wait."),
        (agent, "All is done."),
    ];
    let expected = expected.map(|(role, text)| (role, text.to_owned()));
    assert_eq!(said(&home, "loader"), expected);
    assert_eq!(serving.terminate(), 0);
}

#[test]
fn a_terminal_shows_words_and_thoughts_and_offers_the_choices() {
    let home = Home::new();
    let model = model(&home, ASKS);
    let run = home.command(&["run", "load it", "--model", &model]);
    let mut terminal = OnTerminal::start_typing(run, 100);
    terminal.until("hm");
    terminal.until("I look around.");
    terminal.until("Which table?\r\n  1  raw\r\n  2  monthly\r\n");
    terminal.until("> ");
    terminal.type_in("2\n");
    terminal.until("parked: waiting on ci · wakes on ci.passed · 0.002 USD and what has no");
    assert_eq!(home.told(&["event", "ci.passed"]).code, 0);
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("All is done.\n"), "{screen}");
    assert!(!screen.contains("ask_user"), "a question is shown as one: {screen}");
    assert!(said(&home, &only_session(&home)).contains(&("user".to_owned(), "monthly".to_owned())));
}

#[test]
fn a_session_that_is_kept_takes_further_prompts() {
    let home = Home::new();
    let model = model(&home, "{\"text\": \"One.\"}\n{\"text\": \"Two.\"}\n");
    let told = home.told(&["run", "count", "--model", &model, "--keep", "--name", "counter"]);
    assert_eq!((told.code, told.data.as_str()), (0, "One.\n"), "{told:?}");
    assert!(told.talk.contains("it stays open; `adjourn prompt sess-"), "{}", told.talk);
    let told = home.told(&["prompt", "counter", "go on"]);
    assert!(told.data.starts_with("Two.\n"), "{told:?}");
}

#[test]
fn a_budget_that_is_passed_parks_the_session_and_is_raised_by_a_resume() {
    let home = Home::new();
    // A call of a tool that there is none of is told to the model, and the run goes on.
    let answers = r#"
{"text": "One.", "calls": [{"tool": "none"}], "usage": {"prompt_tokens": 90, "completion_tokens": 30}}
{"text": "Two."}
"#;
    let model = model(&home, answers);
    let arguments = ["run", "read", "--model", &model, "--budget", "tokens=100", "--name", "r"];
    let told = home.told(&[&arguments[..], &["--detach"]].concat());
    assert_eq!(told.code, 0, "{told:?}");
    let parked = home.json(&["show", "r"]);
    assert_eq!(parked["reason"], "budget_exceeded", "{parked}");
    assert_eq!(parked["initiator"], "client", "{parked}");
    let refused = home.told(&["resume", "r"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.talk.contains("--add-budget"), "{refused:?}");
    let told = home.told(&["resume", "r", "--add-budget", "tokens=1000"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.data.starts_with("Two.\n"), "{told:?}");
    assert_eq!(home.json(&["show", "r"])["outcome"], "completed");
}

#[test]
fn what_is_typed_wrong_is_told_with_what_is_right() {
    let home = Home::new();
    let model = model(&home, ASKS);
    let script = home.file("script.json", r#"{"steps": [{"say": "x"}]}"#);
    for (arguments, problem) in [
        (&["run", "task"][..], "what is to run it is missing: --model, --agent or --script"),
        (&["run", "--model", &model][..], "what the agent is to do is missing"),
        (&["run", "task", "--model", "gpt"][..], "--model: "),
        (
            &["run", "task", "--model", &model, "--mcp", "nowhere.json"][..],
            "--mcp: cannot read nowhere.json: No such file or directory",
        ),
        (&["run", "task", "--model", "scripted:/none"][..], "--model: "),
        (&["run", "task", "--agent", "reviewer"][..], "there is no agent \"reviewer\""),
        (&["run", "task", "--model", &model, "--script", &script][..], "does not go with"),
        (&["run", "task", "--model", &model, "--cwd", "/none"][..], "--cwd /none: "),
        (&["run", "task", "--model", &model, "--prompt", "x"][..], "does not go with"),
    ] {
        let told = home.told(arguments);
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.talk.contains(problem), "{arguments:?}: {}", told.talk);
        assert!(!home.path(".local/share/adjourn/store.db").exists(), "nothing was made");
    }
}

#[test]
fn a_scripted_model_goes_on_behind_its_answers_with_a_fresh_transcript() {
    let home = Home::new();
    let model = model(&home, ASKS);
    home.told(&["run", "load it", "--model", &model, "--detach", "--name", "loader"]);
    let told = home.told(&["resume", "loader", "--fresh", "--input", "monthly"]);
    assert_eq!(told.code, 0, "{told:?}");
    let words: Vec<_> = said(&home, "loader").into_iter().map(|(_, text)| text).collect();
    assert_eq!(words, ["load it", "I look around.", "monthly", "I wait."], "{told:?}");
}
