//! Agents of the settings.

use super::{model, said};
use crate::home::Home;

const ANSWERS: &str = r#"
{"text": "One.", "calls": [{"tool": "await_resumption", "arguments": {"reason": "more"}}], "usage": {"prompt_tokens": 60, "completion_tokens": 0}}
{"text": "Two.", "usage": {"prompt_tokens": 60, "completion_tokens": 0}}
"#;

/// Settings with an agent whose model lies beside them.
fn settings(budget: &str) -> String {
    format!(
        r#"
[agent.reviewer]
model = "scripted:../../answers.jsonl"
instructions = "You review."
budget = "{budget}"

[agent.reviewer.guardrails]
max_iterations = 7
tool_timeout_s = 2.5

[agent.reviewer.policy]
tool_error = "ask_user"
"#
    )
}

#[test]
fn an_agent_is_run_by_its_name_and_listed_by_it() {
    let home = Home::new();
    model(&home, ANSWERS);
    home.config(&settings("tokens=100"));
    let told = home.told(&["run", "read", "--agent", "reviewer", "--name", "r", "--detach"]);
    assert_eq!(told.code, 0, "{told:?}");
    let found = home.jsons(&["ls", "--agent", "reviewer"]);
    assert_eq!(found.len(), 1);
    let shown = home.json(&["show", "r"]);
    assert_eq!((&shown["agent"], &shown["budget"]["tokens"]), (&"reviewer".into(), &100.into()));
    // A flag goes before what the agent has.
    let arguments = ["new", "--agent", "reviewer", "--budget", "tokens=5", "--name", "small"];
    assert_eq!(home.told(&arguments).code, 0);
    assert_eq!(home.json(&["show", "small"])["budget"]["tokens"], 5);
}

#[test]
fn what_holds_for_agents_is_shown_with_its_place() {
    let home = Home::new();
    home.config(&settings("usd=5"));
    let told = home.told(&["config"]);
    assert_eq!(told.code, 2, "its model is not there: {told:?}");
    assert!(told.talk.contains("agent.reviewer.model: cannot read "), "{told:?}");
    assert_eq!(home.told(&["event", "x"]).code, 0, "other commands do not need it");
    model(&home, ANSWERS);
    let rows = home.jsons(&["config"]);
    let row = |key: &str| {
        let row = rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}"));
        let source = row["source"].as_str().unwrap();
        let (path, line) = source.rsplit_once(':').unwrap();
        assert!(path.ends_with("config.toml"), "{source}");
        (row["value"].clone(), line.to_owned())
    };
    assert_eq!(row("agent.reviewer.instructions"), ("You review.".into(), "4".to_owned()));
    assert_eq!(row("agent.reviewer.budget"), ("usd=5".into(), "5".to_owned()));
    assert_eq!(row("agent.reviewer.guardrails.max_iterations"), (7.into(), "8".to_owned()));
    assert_eq!(row("agent.reviewer.policy.tool_error"), ("ask_user".into(), "12".to_owned()));
    assert!(row("agent.reviewer.model").0.as_str().unwrap().ends_with("answers.jsonl"));
}

#[test]
fn all_that_is_said_of_a_price_is_shown() {
    let home = Home::new();
    let part = "[prices.\"a\"]\nprompt = 3\ncompletion = 15.5\n";
    let whole = "cached_prompt = 0.3\ncache_write = 3.75\ncontext_tokens = 200000\n";
    let plain = "3 USD for a million tokens, 15.5 for a million that it writes";
    let more = ", 0.3 for a million that were cached, 3.75 for a million put into the cache; room \
                for 200000 tokens";
    for (settings, expected) in
        [(part.to_owned(), plain.to_owned()), (format!("{part}{whole}"), format!("{plain}{more}"))]
    {
        home.config(&settings);
        let rows = home.jsons(&["config"]);
        let row = rows.iter().find(|row| row["key"] == "prices.\"a\"").unwrap();
        assert_eq!(row["value"], expected.as_str(), "{row}");
    }
}

/// A session keeps the agent that it was made with: what the settings say later holds for later ones.
#[test]
fn a_session_keeps_what_its_agent_was_when_it_was_made() {
    let home = Home::new();
    model(&home, ANSWERS);
    home.config(&settings("tokens=1000"));
    let told = home.told(&["run", "read", "--agent", "reviewer", "--name", "r", "--detach"]);
    assert_eq!(told.code, 0, "{told:?}");
    home.config("");
    model(&home, r#"{"text": "Something else."}"#);
    assert_eq!(home.told(&["resume", "r"]).code, 0);
    let texts: Vec<_> = said(&home, "r").into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["read", "One.", "Two."]);
    let told = home.told(&["run", "read", "--agent", "reviewer"]);
    assert!(told.talk.contains("there is no agent \"reviewer\" in the settings"), "{told:?}");
}

#[test]
fn what_is_wrong_with_an_agent_is_told_with_its_line_and_what_is_allowed() {
    let home = Home::new();
    let model = "model = \"scripted:a.jsonl\"\n";
    for (text, line, problem) in [
        ("modle = \"x\"\n".to_owned(), 2, "there is no setting \"agent.a.modle\""),
        (String::new(), 1, "agent.a: it has no model"),
        ("model = \"gpt\"\n".to_owned(), 2, "agent.a.model: "),
        ("model = 5\n".to_owned(), 2, "agent.a.model: expected a string, found an integer"),
        (format!("{model}budget = \"5\"\n"), 3, "agent.a.budget: expected amounts like usd=5"),
        (
            format!("{model}[agent.a.guardrails]\nmax_iteration = 5\n"),
            4,
            "agent.a.guardrails.max_iteration: unknown field `max_iteration`, expected one of \
             `max_iterations`",
        ),
        (
            format!("{model}[agent.a.guardrails]\nmax_iterations = 0\n"),
            4,
            "agent.a.guardrails.max_iterations: expected 1 or more",
        ),
        (
            format!("{model}[agent.a.guardrails]\nmax_iterations = -1\n"),
            4,
            "agent.a.guardrails.max_iterations: expected a whole number from 0 on, found a \
             negative integer",
        ),
        (
            format!("{model}[agent.a.guardrails]\npark_on_quota = \"yes\"\n"),
            4,
            "agent.a.guardrails.park_on_quota: expected true or false, found a string",
        ),
        (
            format!("{model}[agent.a.policy]\ntool_eror = \"stop\"\n"),
            4,
            "agent.a.policy.tool_eror: there is no such failure; expected one of \
             transient_provider,",
        ),
        (
            format!("{model}[agent.a.policy]\ntool_error = \"ask\"\n"),
            4,
            "agent.a.policy.tool_error: expected one of retry, ask_user, narrow_scope, handoff, \
             stop, not \"ask\"",
        ),
    ] {
        home.config(&format!("[agent.a]\n{text}"));
        let told = home.told(&["config"]);
        assert_eq!(told.code, 2, "{text}: {told:?}");
        let expected = format!("config.toml:{line}: {problem}");
        assert!(told.talk.contains(&expected), "{text}: {} has no {expected}", told.talk);
    }
    home.config(&format!("[agent.script]\n{model}"));
    let told = home.told(&["config"]);
    assert!(told.talk.contains("agent.script: lists use that name for something else"), "{told:?}");
}
