//! Budgets that are used up: every place names the one command that the session takes.

use serde_json::json;

use crate::acp::editor::Editor;
use crate::home::Home;
use crate::native::{model, texts};
use crate::pty::OnTerminal;

/// A model that uses what it may in its first answer.
const USES: &str = r#"
{"text": "One.", "calls": [{"tool": "none"}], "usage": {"prompt_tokens": 250, "completion_tokens": 50}}
{"text": "Two."}
"#;

/// What the model is told about the call in it.
const NONE: &str = "there is no tool \"none\"";

/// An agent that asks whether it may use more than 200 tokens.
fn asking_home() -> Home {
    let home = Home::new();
    model(&home, USES);
    home.config(
        "[agent.a]\nmodel = \"scripted:../../answers.jsonl\"\n[agent.a.guardrails]\nmax_tokens = 200\n",
    );
    home
}

/// A home with a session that asks so, and its id.
fn asking() -> (Home, String) {
    let home = asking_home();
    let told = home.told(&["run", "go", "--agent", "a", "--name", "r", "--detach"]);
    assert_eq!(told.code, 0, "{told:?}");
    let shown = home.json(&["show", "r"]);
    assert_eq!(shown["wait"], "question", "{shown}");
    let id = shown["sessionId"].as_str().unwrap().to_owned();
    (home, id)
}

/// Returns the command that each place has to name.
fn raise(id: &str, amounts: &str) -> String {
    format!("adjourn resume {id} --add-budget {amounts}")
}

#[test]
fn a_question_for_more_budget_is_answered_by_the_resume_that_gives_it() {
    let (home, id) = asking();
    let (long, short) = (raise(&id, "AMOUNTS"), raise(&id[id.len() - 12..], "AMOUNTS"));
    let shown = home.told(&["show", "r"]).data;
    let standing = format!("; wakes on a resume with --add-budget; go on with `{long}`\n");
    assert!(shown.lines().next().is_some_and(|line| format!("{line}\n").ends_with(&standing)));
    assert!(home.told(&["ls"]).data.contains("on a resume with --add-budget"));
    for (arguments, hint) in [
        (&["resume", "r"][..], &long),
        (&["prompt", "r", " "], &long),
        (&["prompt", "r", "yes"], &short),
        (&["takeover", "r"], &long),
    ] {
        let told = home.told(arguments);
        assert!(told.code == 3 && told.talk.contains(hint), "{arguments:?}: {told:?}");
    }
    let told = home.told(&["resume", "r", "--add-budget", "tokens=500"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.data.starts_with("Two.\n"), "{told:?}");
    assert_eq!(texts(&home, "r"), ["go", "One.", NONE, "Two."]);
}

#[test]
fn a_resume_with_more_budget_says_its_own_words_and_is_repeated_with_its_key() {
    let (home, _) = asking();
    let given = ["resume", "r", "--add-budget", "tokens=500", "--input", "\"no more\""];
    assert_eq!(home.told(&given).code, 0);
    assert_eq!(texts(&home, "r"), ["go", "One.", NONE, "no more", "Two."]);

    let (home, _) = asking();
    let keyed = ["resume", "r", "--add-budget", "tokens=500", "--idempotency-key", "k"];
    for _ in 0..2 {
        let told = home.told(&keyed);
        assert_eq!(told.code, 0, "{told:?}");
    }
    assert_eq!(texts(&home, "r"), ["go", "One.", NONE, "Two."]);
    let other = ["resume", "r", "--add-budget", "tokens=5", "--idempotency-key", "k"];
    let told = home.told(&other);
    assert!(told.code == 3 && told.talk.contains("hint: a key stands for one"), "{told:?}");
}

#[test]
fn an_editor_gives_more_budget_without_words_too() {
    let (home, id) = asking();
    let mut editor = Editor::of_agent(&home, &["--agent", "a"], &json!({ "protocolVersion": 1 }));
    let attach = json!({ "sessionId": id });
    editor.call("session/resume", attach.clone()).unwrap();
    let mut wake = attach;
    wake["addBudget"] = json!({ "tokens": 500 });
    editor.call("session/resume", wake).unwrap();
    home.until(&id, "outcome", "completed");
    assert_eq!(texts(&home, "r"), ["go", "One.", NONE, "Two."]);
    assert_eq!(editor.close(), 0);
}

#[test]
fn at_a_terminal_no_answer_is_asked_for_that_would_not_be_taken() {
    let home = asking_home();
    let terminal =
        OnTerminal::start_typing(home.command(&["run", "go", "--agent", "a", "--name", "r"]), 200);
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert!(!screen.contains("> "), "{screen}");
    let id = home.json(&["show", "r"])["sessionId"].as_str().unwrap().to_owned();
    assert!(screen.contains(&format!("; go on with `{}`]", raise(&id, "AMOUNTS"))), "{screen}");
}

#[test]
fn a_run_in_a_pipe_ends_where_only_a_person_lets_it_go_on() {
    let home = Home::new();
    let model = model(&home, USES);
    let run = ["run", "go", "--model", &model, "--name"];
    for (name, budget, takes) in
        [("poor", "tokens=100", Some("tokens=…")), ("slow", "steps=1", None)]
    {
        let told = home.told(&[&run[..], &[name, "--budget", budget]].concat());
        assert_eq!(told.code, 7, "{told:?}");
        let id = home.json(&["show", name])["sessionId"].as_str().unwrap().to_owned();
        let command = match takes {
            Some(amounts) => raise(&id, amounts),
            None => format!("adjourn resume {id}"),
        };
        let hint = format!("a person has to go on with it; it stays parked\nhint: {command}\n");
        assert!(told.talk.ends_with(&hint), "{told:?}");
    }
    let shown = home.told(&["show", "poor"]).data;
    assert!(shown.contains("; wakes on a resume with --add-budget; go on with `"), "{shown}");
    let terminal = OnTerminal::start(
        home.command(&[&run[..], &["left", "--budget", "tokens=100"]].concat()),
        200,
    );
    terminal.until("--add-budget tokens=…` goes on with it: budget_exceeded");
    terminal.signal(rustix::process::Signal::INT);
    let (code, screen) = terminal.end();
    let id = home.json(&["show", "left"])["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(code, 130, "{screen}");
    let left = "left; it stays parked, and wakes on a resume with --add-budget";
    assert!(screen.contains(left) && screen.contains(&raise(&id, "tokens=…")), "{screen}");
}
