//! A question at a terminal is answered where it is asked.

use crate::home::Home;
use crate::pty::OnTerminal;

const ASKS: &str = r#"{"runs": [[
  {"ask": {"question": "which table?", "context": "two match", "choices": ["raw", "monthly"]}},
  {"ask": {"question": "how many?"}},
  {"say": "done"}]]}"#;

/// What is shown before the first answer is typed.
const SHOWN: &str = "which table? (two match)\r\n  1  raw\r\n  2  monthly\r\n";

fn run(home: &Home) -> OnTerminal {
    let script = home.file("script.json", ASKS);
    let terminal = OnTerminal::start_typing(home.command(&["run", "--script", &script]), 100);
    terminal.until(SHOWN);
    terminal.until("(a number, or your own words; an empty line leaves it open)");
    terminal.until("> ");
    terminal
}

fn said(home: &Home) -> Vec<serde_json::Value> {
    let id = home.jsons(&["ls"])[0]["sessionId"].as_str().unwrap().to_owned();
    let said = home.jsons(&["log", &id, "--transcript"]);
    let users = said.into_iter().filter(|said| said["role"] == "user");
    users.map(|said| said["text"].clone()).collect()
}

/// Whatever asks, a command in a pipe ends with the question, and says how it is answered.
#[test]
fn a_question_where_no_person_is_ends_the_command_and_stays_open() {
    let home = Home::new();
    let script = home.file("script.json", ASKS);
    let told = home.told(&["run", "--script", &script]);
    assert_eq!(told.code, 7, "{told:?}");
    assert!(told.talk.contains(": which table? (two match) [raw | monthly]; "), "{told:?}");
    let id = home.jsons(&["ls"])[0]["sessionId"].as_str().unwrap().to_owned();
    let hint = format!(
        "no person can be asked here; it stays parked with the question\nhint: adjourn prompt {id} ANSWER\n"
    );
    assert!(told.talk.ends_with(&hint), "{told:?}");
    assert_eq!(home.told(&["prompt", &id, "raw"]).code, 0, "it is open");
    let told = home.told(&["run", "--script", &script, "--json"]);
    assert_eq!(told.code, 7, "{told:?}");
    let lines: Vec<_> = told.data.lines().rev().take(2).collect();
    assert!(lines[0].starts_with(r#"{"error":{"reason":"UNANSWERED","#), "{told:?}");
    assert!(lines[1].contains(r#""question":"which table?""#), "{told:?}");
}

#[test]
fn an_answer_is_typed_as_a_number_or_in_ones_own_words() {
    let home = Home::new();
    let mut terminal = run(&home);
    terminal.type_in("2\n");
    terminal.until("how many?\r\n");
    terminal.until("(an empty line leaves it open)");
    terminal.type_in("three\n");
    terminal.until("done");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(said(&home), ["go", "monthly", "three"]);
}

#[test]
fn a_question_is_left_open_by_an_empty_line_or_the_end_of_the_input() {
    for typed in ["\n", "\x04"] {
        let home = Home::new();
        let mut terminal = run(&home);
        terminal.type_in(typed);
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{screen}");
        let id = home.jsons(&["ls"])[0]["sessionId"].as_str().unwrap().to_owned();
        let how = format!("answer it with `adjourn prompt {id} ANSWER`");
        assert!(screen.contains(&how), "{screen}");
        assert_eq!(home.json(&["show", &id])["question"], "which table?");
        assert_eq!(home.told(&["prompt", &id, "raw", "--detach"]).code, 0);
    }
}

#[test]
fn somebody_else_may_be_faster() {
    let home = Home::new();
    let mut terminal = run(&home);
    let id = home.jsons(&["ls"])[0]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(home.told(&["prompt", &id, "raw", "--detach"]).code, 0);
    terminal.until("[it was answered elsewhere]");
    // What is typed next answers the question that is shown by then.
    terminal.until("how many?\r\n");
    terminal.type_in("four\n");
    terminal.until("done");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(said(&home), ["go", "raw", "four"]);
}

#[test]
fn a_question_that_was_canceled_is_not_called_answered() {
    for (verb, why) in [("cancel", "[its run was canceled]"), ("close", "[the session was closed]")]
    {
        let home = Home::new();
        let terminal = run(&home);
        let id = home.jsons(&["ls"])[0]["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(home.told(&[verb, &id]).code, 0);
        let (_, screen) = terminal.end();
        assert!(screen.contains(why), "{screen}");
        assert!(!screen.contains("answered"), "{screen}");
    }
}

#[test]
fn a_resume_of_a_session_that_asks_already_takes_the_answer() {
    for served in [false, true] {
        let home = Home::new();
        let id = home.parked(ASKS);
        let serving = served.then(|| home.serve());
        let mut terminal = OnTerminal::start_typing(home.command(&["resume", &id]), 100);
        terminal.until(SHOWN);
        terminal.until("> ");
        terminal.type_in("2\n");
        terminal.until("how many?\r\n");
        terminal.until("(an empty line leaves it open)\u{1b}[0m\r\n> ");
        terminal.type_in("three\n");
        terminal.until("done");
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{screen}");
        assert_eq!(said(&home), ["go", "monthly", "three"]);
        assert!(serving.is_none_or(|serving| serving.terminate() == 0));
    }
    // Where nobody can be asked, it is said what is asked.
    let home = Home::new();
    let id = home.parked(ASKS);
    let told = home.told(&["resume", &id]);
    assert!(told.code == 3 && told.talk.contains("it asks: which table?"), "{told:?}");
}

#[test]
fn what_was_begun_for_one_question_does_not_answer_the_next() {
    let home = Home::new();
    let mut terminal = run(&home);
    terminal.type_in("prod");
    terminal.until("prod");
    let id = home.jsons(&["ls"])[0]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(home.told(&["prompt", &id, "raw", "--detach"]).code, 0);
    terminal.until("how many?\r\n");
    terminal.until("(an empty line leaves it open)\u{1b}[0m\r\n> ");
    terminal.type_in("four\n");
    terminal.until("done");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(said(&home), ["go", "raw", "four"]);
}

#[test]
fn a_number_that_no_choice_has_is_asked_for_again() {
    let home = Home::new();
    let mut terminal = run(&home);
    terminal.type_in("3\n");
    terminal.until("(there is no choice 3: 1 to 2)");
    terminal.type_in("1\n");
    terminal.until("how many?\r\n");
    terminal.until("(an empty line leaves it open)\u{1b}[0m\r\n> ");
    terminal.type_in("3\n");
    terminal.until("done");
    assert_eq!(terminal.end().0, 0);
    assert_eq!(said(&home), ["go", "raw", "3"]);
}

#[test]
fn ctrl_c_leaves_a_question_open_and_says_how_to_answer() {
    let home = Home::new();
    let terminal = run(&home);
    terminal.signal(rustix::process::Signal::INT);
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen}");
    assert!(screen.contains("left; it waits for an answer"), "{screen}");
    assert_eq!(home.jsons(&["ls"])[0]["wait"], "question");
}

/// Whichever command drives the session, or only watches it, takes the answer.
#[test]
fn a_question_is_answered_in_a_resume_and_in_a_prompt_too() {
    let script = r#"{"runs": [[{"await": {"reason": "x"}},
      {"ask": {"question": "which table?", "context": "two match", "choices": ["raw", "monthly"]}},
      {"ask": {"question": "how many?"}},
      {"await": {"reason": "y"}},
      {"say": "done"}]]}"#;
    for served in [false, true] {
        let home = Home::new();
        let id = home.parked(script);
        let serving = served.then(|| home.serve());
        let mut terminal = OnTerminal::start_typing(home.command(&["resume", &id]), 100);
        terminal.until(SHOWN);
        terminal.until("> ");
        terminal.type_in("2\n");
        terminal.until("how many?\r\n");
        terminal.until("(an empty line leaves it open)\u{1b}[0m\r\n> ");
        terminal.type_in("\n");
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{screen}");
        assert!(
            screen.contains(&format!("answer it with `adjourn prompt {id} ANSWER`")),
            "{screen}"
        );
        assert_eq!(home.json(&["show", &id])["question"], "how many?");
        // What it parks for otherwise ends the command, as ever.
        let terminal = OnTerminal::start_typing(home.command(&["prompt", &id, "three"]), 100);
        let (code, screen) = terminal.end();
        assert_eq!(code, 0, "{screen}");
        assert_eq!(home.json(&["show", &id])["reason"], "y", "{screen}");
        assert_eq!(said(&home), ["go", "monthly", "three"]);
        assert!(serving.is_none_or(|serving| serving.terminate() == 0));
    }
}

#[test]
fn a_prompt_at_a_terminal_takes_the_answers_to_what_it_leads_to() {
    let home = Home::new();
    let script = home.file("script.json", ASKS);
    home.json(&["new", "--script", &script, "--name", "loader"]);
    let arguments = ["prompt", "loader", "load it"];
    let mut terminal = OnTerminal::start_typing(home.command(&arguments), 100);
    terminal.until(SHOWN);
    terminal.until("> ");
    terminal.type_in("raw\n");
    terminal.until("how many?\r\n");
    terminal.until("(an empty line leaves it open)\u{1b}[0m\r\n> ");
    terminal.type_in("four\n");
    terminal.until("done");
    let (code, screen) = terminal.end();
    assert_eq!(code, 0, "{screen}");
    assert_eq!(said(&home), ["load it", "raw", "four"]);
}
