//! Commands that run here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use adjourn::Adjourn;
use adjourn::core::session::{Outcome, State};
use adjourn_agent::directory::DirectoryTool::Run;
use adjourn_agent::{Agent, AgentGuardrails, ToolCall};
use serde_json::json;

use super::{Desk, words};
use crate::fixture::{agent, events, keys, model};

/// Returns whether a process is there, and no mere entry that its parent has not read yet.
fn runs(pid: &str) -> bool {
    adjourn_testkit::process::is_running(pid.trim().parse().unwrap())
}

async fn until_gone(pid: &str) {
    let start = Instant::now();
    while runs(pid) {
        assert!(start.elapsed() < Duration::from_secs(40), "{pid} is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a command has written a file.
async fn written(desk: &Desk, name: &str) -> String {
    let start = Instant::now();
    loop {
        let text = std::fs::read_to_string(desk.path().join(name)).unwrap_or_default();
        if text.ends_with('\n') {
            return text;
        }
        assert!(start.elapsed() < Duration::from_secs(40), "{name} was never written");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_command_runs_in_the_directory_and_says_how_it_ended() {
    let desk = Desk::new();
    desk.write("a", "hello");
    let command = json!({ "command": "cat a; echo; echo oops >&2; cat; exit 3" });
    let output = desk.call(Run, command).await.unwrap();
    assert_eq!(words(&output.blocks), "hello\noops\n\n[exit status 3]");
    let ended = json!({ "exitCode": 3, "signal": null, "truncated": false });
    assert_eq!(output.structured, Some(ended));
    let killed = desk.said(Run, json!({ "command": "kill -9 $$" })).await;
    assert_eq!(killed, "[ended by signal 9]");
    let wrong = desk.said(Run, json!({ "command": "if" })).await;
    assert!(wrong.to_lowercase().contains("syntax error"), "{wrong}");
}

#[tokio::test]
async fn what_a_command_says_is_cut_in_the_middle() {
    let desk = Desk::new();
    let command = "echo first; seq 100000; echo last";
    let output = desk.call(Run, json!({ "command": command })).await.unwrap();
    let said = words(&output.blocks);
    assert!(said.starts_with("first\n1\n2\n") && said.contains("99999\n100000\nlast\n"));
    assert!(said.contains(" bytes are left out here]") && said.len() < 40_000, "{}", said.len());
    assert_eq!(output.structured.unwrap()["truncated"], true);
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_all_that_it_started() {
    let desk = Desk::new();
    let command = "sleep 600 & echo $! > child; echo begun; wait";
    let late = desk.call(Run, json!({ "command": command, "timeout_seconds": 1 })).await;
    let late = late.unwrap_err();
    let said = "begun\n\n[the command was ended: it took more than 1 s]";
    assert_eq!(words(&late.blocks), said);
    until_gone(&desk.text("child")).await;
}

/// A call that is given up has no output.
#[tokio::test]
async fn a_command_that_asks_for_more_time_than_its_call_has_is_ended_before_and_keeps_its_output()
{
    let desk = Desk::new();
    let arguments = json!({ "command": "echo hi; exec sleep 600", "timeout_seconds": 9 });
    let call = json!({ "tool": "run_command", "arguments": arguments });
    let model = model(json!([{ "calls": [call] }, { "text": "Done." }]));
    let guardrails = AgentGuardrails { tool_timeout_s: 3.0, ..AgentGuardrails::default() };
    let agent = agent(&model).tools(desk.tools.clone().allow_all().tools([Run]));
    let agent = agent.guardrails(guardrails).build().unwrap();
    events(agent.run("Run.")).await;
    let told = model.requests().remove(1).messages;
    let told = told.iter().find(|message| message.answers.is_some()).unwrap();
    assert!(told.is_error);
    let said = words(&told.blocks);
    assert!(said.starts_with("hi\n\n[the command was ended: it took more than 2."), "{said}");
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_ends_with_it() {
    let desk = Desk::new();
    let begun = Instant::now();
    let said = desk.said(Run, json!({ "command": "sleep 600 & echo $! > child; echo ok" })).await;
    assert_eq!(said, "ok\n\n[exit status 0]");
    assert!(begun.elapsed() < Duration::from_secs(60), "it is not waited for");
    until_gone(&desk.text("child")).await;
}

#[tokio::test]
async fn a_call_that_is_given_up_leaves_no_process() {
    let desk = Desk::new();
    let command = json!({ "command": "sleep 600 & echo $! > child; wait" });
    let call = desk.tool(Run).call(ToolCall::new(command));
    let child = tokio::select! {
        _ = call => panic!("it ended"),
        child = written(&desk, "child") => child,
    };
    until_gone(&child).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_a_crash_breaks_off_is_not_run_again_and_its_outcome_is_unknown() {
    let desk = Desk::new();
    let store = tempfile::tempdir().unwrap();
    let adjourn = Adjourn::open(store.path().join("agents.db")).await.unwrap();
    let command = "echo $$ >> begun; sleep 600";
    let model = model(json!([
        { "calls": [{ "tool": "run_command", "arguments": { "command": command } }] },
        { "text": "I will look what became of it." },
    ]));
    let agent = Agent::builder(Arc::clone(&model)).keys(keys()).name("runner");
    let agent = agent.tools(desk.tools.clone().allow_all().tools([Run])).build().unwrap();
    let session = adjourn.create_with(agent.driver_spec()).prompt("Run.").await.unwrap();
    let host = || {
        let driver = agent.clone();
        adjourn.host().driver("runner", move |_| driver.clone()).start()
    };
    let first = host().await.unwrap();
    let pid = written(&desk, "begun").await;
    first.kill().await;
    until_gone(&pid).await;
    let second = host().await.unwrap();
    let handle = loop {
        let state = session.load().await.unwrap();
        if let State::Suspended(suspended) = &state.state {
            assert_eq!(state.status().unknown_calls, ["run_command"]);
            break suspended.park.pause.handle;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    };
    session.resume().handle(handle).await.unwrap();
    let run = session.finished().await.unwrap();
    assert_eq!(run.end.outcome, Outcome::Completed);
    assert_eq!(desk.text("begun"), pid, "it ran once");
    let told = format!("{:?}", model.requests()[1].messages);
    assert!(told.contains("run_command: its outcome is unknown"), "{told}");
    second.stop().await.unwrap();
}
