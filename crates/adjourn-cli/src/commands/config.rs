//! `config`: what holds, and where each value came from.

use serde_json::json;

use crate::failure::Failure;
use crate::settings::{KEYS, Settings, SettledAgent};
use crate::terminal::{Output, fill, width};

pub fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let rows = settings.rows();
    let text = |value: &Option<serde_json::Value>| match value {
        None => "-".to_owned(),
        Some(value) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    };
    let keys = rows.iter().map(|row| row.key.len()).max().unwrap_or_default();
    let values = rows.iter().map(|row| width(&text(&row.value))).max().unwrap_or_default();
    for row in &rows {
        let object = json!({ "key": row.key, "value": row.value, "source": row.source });
        let value = fill(&text(&row.value), values);
        let line = format!("{:<keys$}  {value}  {}", row.key, row.source);
        output.object(&object, &line);
    }
    if let Some(file) = &settings.file {
        let there = if settings.file_is_there { "" } else { ", which is not there" };
        output.talk(&format!("the file is {}{there}", file.display()));
    }
    settings.agents.values().try_for_each(SettledAgent::check)
}

/// Prints a file with every setting, commented out.
pub fn defaults(output: &Output) {
    let file = commented();
    output.object(&json!({ "defaults": file }), file.trim_end());
}

fn commented() -> String {
    let mut file = "# Settings of adjourn. Flags and environment variables override them.\n\
                    # Paths are meant from where this file is; ~ is the home directory.\n"
        .to_owned();
    let mut section = "";
    for key in KEYS {
        let (inside, name) = key.name.split_once('.').unwrap_or(("", key.name));
        file += "\n";
        if inside != section {
            file += &format!("[{inside}]\n");
            section = inside;
        }
        for line in key.about.lines() {
            file += &format!("# {line}\n");
        }
        file += &format!("# {name} = {}\n", key.example);
    }
    file + AGENTS
}

/// Sections whose names the user gives.
const AGENTS: &str = r#"
# An agent that `run --agent reviewer`, `new` and `acp` take; docs/operations.md has all it can have.
#[agent.reviewer]
#model = "anthropic/claude-sonnet-4-5"
#instructions = "You review changes."
#budget = "usd=2,tokens=200000"
#[agent.reviewer.guardrails]
#max_iterations = 30
#[agent.reviewer.policy]
#tool_error = "ask_user"

# What a model costs: US dollars for a million tokens.
#[prices."anthropic/claude-sonnet-4-5"]
#prompt = 3.0
#completion = 15.0
#context_tokens = 200000
"#;
