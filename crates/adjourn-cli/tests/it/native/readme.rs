//! What the README says about real agents works as it stands there.

use std::ffi::OsString;
use std::process::{Command, Stdio};

use super::network::{ANTHROPIC, KEY, Provider, home};
use crate::home::{Home, Told, program};

const README: &str = include_str!("../../../../../README.md");
const OPERATIONS: &str = include_str!("../../../../../docs/operations.md");

/// Returns the part of a page under a heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("\n{heading}\n")).unwrap();
    let level = heading.split(' ').next().unwrap();
    rest.split(&format!("\n{level} ")).next().unwrap()
}

/// Returns the text of the first block of code in a part of a page.
fn block<'a>(section: &'a str, language: &str) -> &'a str {
    let (_, rest) = section.split_once(&format!("```{language}\n")).unwrap();
    rest.split("```").next().unwrap()
}

/// Has a shell run a line, as a person would who has typed it.
fn typed(home: &Home, provider: &Provider, line: &str) -> Told {
    let mut path = OsString::from(program().parent().unwrap());
    path.push(":/usr/bin:/bin");
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).env_clear().envs(home.environment()).env("PATH", path);
    shell.env("ANTHROPIC_API_KEY", KEY).env("ANTHROPIC_BASE_URL", provider.url());
    shell.current_dir(home.path("")).stdin(Stdio::null());
    home.ended(shell)
}

/// Gives a home the agents that the settings are explained with.
fn settle(home: &Home) {
    let agents = block(section(OPERATIONS, "### Agents"), "toml");
    assert!(agents.contains("[agent.reviewer]") && agents.contains("mcp = \"mcp.json\""));
    home.config(agents);
    home.file(".config/adjourn/mcp.json", r#"{"mcpServers": {}}"#);
}

#[test]
fn the_commands_for_a_real_agent_run_as_they_are_written() {
    let section = section(README, "## Run a real agent");
    let lines: Vec<_> = block(section, "").lines().filter_map(|l| l.strip_prefix("$ ")).collect();
    let [export, commands @ ..] = lines.as_slice() else { panic!("{section}") };
    assert!(export.starts_with("export ANTHROPIC_API_KEY="), "{export}");
    // Those within sentences which say all that is needed.
    let within = section.split('`').filter(|code| code.starts_with("adjourn "));
    let within: Vec<_> = within.filter(|code| code.contains(" --agent ")).collect();
    assert!(!commands.is_empty() && within.len() > 1, "{section}");
    // What comes first is typed by people who have no settings yet, and so no prices.
    let lines = commands.iter().map(|line| (line, false));
    for (line, settled) in lines.chain(within.iter().map(|line| (line, true))) {
        let provider = Provider::start(vec![(ANTHROPIC.says)("None of them.")]);
        let home = home(&ANTHROPIC, &provider);
        if settled {
            settle(&home);
        }
        let told = typed(&home, &provider, line);
        assert_eq!(told.code, 0, "{line}: {told:?}");
        if line.starts_with("adjourn run ") {
            assert_eq!(told.data, "None of them.\n", "{line}: {told:?}");
        }
    }
}

#[test]
fn the_host_that_other_agents_talk_to_starts_as_it_is_written() {
    let block = block(section(README, "## Let other agents give it work"), "");
    let line = block.lines().find_map(|line| line.strip_prefix("$ adjourn serve ")).unwrap();
    let provider = Provider::start(vec![(ANTHROPIC.says)("Reviewed.")]);
    let home = home(&ANTHROPIC, &provider);
    settle(&home);
    // Another program may have that port.
    let line = line.replace(":7070", ":0");
    let (serving, said) = home.serve_with(&line.split(' ').collect::<Vec<_>>());
    assert!(said.contains("an A2A agent on http://127.0.0.1:"), "{said}");
    assert_eq!(serving.terminate(), 0);
}
