//! What was typed and cannot be read, told like every other failure: one sentence and one hint.

use std::error::Error as _;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::arguments::Arguments;
use crate::failure::Failure;

/// Words that people type for a command of another name, and what to type instead.
const WORDS: &[(&[&str], &str)] = &[
    (&["pause", "park", "hold"], "`adjourn suspend ID` pauses a session"),
    (&["wake", "continue", "unpause"], "`adjourn resume ID` wakes a session"),
    (&["ps", "list", "sessions"], "`adjourn ls` lists sessions"),
    (&["answer", "send", "say"], "`adjourn prompt ID TEXT` answers a session, or goes on with it"),
    (&["inspect", "info", "get"], "`adjourn show ID` shows one session"),
    (&["logs", "history", "journal"], "`adjourn log ID` shows what happened to a session"),
    (&["emit", "notify"], "`adjourn event NAME` tells the store that something happened"),
    (&["top", "stats", "health"], "`adjourn status` counts sessions, hosts and events"),
    (&["start", "daemon"], "`adjourn run` runs a script, `adjourn serve` is a host"),
    (
        &["delete", "remove", "erase", "drop", "destroy"],
        "`adjourn close ID` ends a session and keeps what happened and was said in it; \
         `adjourn rm ID` erases that, too",
    ),
];

/// Commands that end or remove something: a slip of the finger must not lead to them.
const DESTRUCTIVE: &[&str] = &["cancel", "close", "export", "prune", "restore", "rm", "takeover"];

/// Turns what the reader of arguments found into a failure, in this program's own words.
pub fn told(error: &clap::Error) -> Failure {
    let argument = one(error, ContextKind::InvalidArg).map(name);
    let named = argument.as_deref().unwrap_or("an argument");
    let value = one(error, ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            Failure::usage("a command is missing").hint("`adjourn --help` lists them")
        }
        ErrorKind::InvalidSubcommand => unknown_command(error),
        ErrorKind::UnknownArgument => unknown_argument(error, named),
        ErrorKind::MissingRequiredArgument => {
            let missing: Vec<_> = all(error, ContextKind::InvalidArg).map(name).collect();
            let are = if missing.len() == 1 { "is" } else { "are" };
            Failure::usage(format!("{} {are} missing", missing.join(" and "))).hint(used(error))
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            let known = all(error, ContextKind::ValidValue).collect::<Vec<_>>().join(", ");
            let which = if known.is_empty() { known } else { format!(": one of {known}") };
            Failure::usage(format!("{named} needs a value{which}")).hint(used(error))
        }
        ErrorKind::InvalidValue => {
            let known = all(error, ContextKind::ValidValue).collect::<Vec<_>>().join(", ");
            let failure =
                Failure::usage(format!("{named}: expected one of {known}, not {value:?}"));
            match one(error, ContextKind::SuggestedValue) {
                Some(meant) => failure.hint(format!("{named} {meant}")),
                None => failure.hint(used(error)),
            }
        }
        ErrorKind::ValueValidation => {
            // What a value is refused for is said by this program's own readers.
            let problem = error.source().map(ToString::to_string).unwrap_or_default();
            Failure::usage(format!("{named}: {problem}, not {value:?}")).hint(used(error))
        }
        ErrorKind::ArgumentConflict => {
            let others = all(error, ContextKind::PriorArg).map(name).collect::<Vec<_>>();
            let message = match others.as_slice() {
                [other] if other == named => format!("{named} is given twice"),
                [] => format!("{named} does not go with the others"),
                others => format!("{named} does not go with {}", others.join(" and ")),
            };
            Failure::usage(message).hint(used(error))
        }
        ErrorKind::InvalidUtf8 => Failure::usage("an argument is not UTF-8"),
        _ => Failure::usage(format!("{named} has too many values or too few")).hint(used(error)),
    }
}

/// Says that there is no such command, and which one may be meant.
fn unknown_command(error: &clap::Error) -> Failure {
    let typed = one(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let failure = Failure::usage(format!("there is no command {typed:?}"));
    if let Some((_, hint)) = WORDS.iter().find(|(words, _)| words.contains(&typed.as_str())) {
        return failure.hint(*hint);
    }
    // The best guess is the last. Where it would destroy something, the others are worse guesses.
    let meant = all(error, ContextKind::SuggestedSubcommand).last();
    let meant = meant.filter(|meant| !DESTRUCTIVE.contains(&meant.as_str()));
    failure.hint(match meant {
        Some(meant) => format!("`adjourn {meant}` is one; `adjourn --help` lists all"),
        None => "`adjourn --help` lists them".to_owned(),
    })
}

/// Says that there is no such flag, or that nothing more was expected.
fn unknown_argument(error: &clap::Error, named: &str) -> Failure {
    if !named.starts_with('-') {
        let typed = one(error, ContextKind::InvalidArg).unwrap_or_default();
        let (failure, used) =
            (Failure::usage(format!("{typed:?} is one argument too many")), used(error));
        return failure.hint(match used.starts_with("usage: adjourn run ") {
            true => "a task of several words is put in quotes".to_owned(),
            false => used,
        });
    }
    let failure = Failure::usage(format!("there is no flag {named} here"));
    match one(error, ContextKind::SuggestedArg).map(name) {
        Some(meant) => failure.hint(format!("{meant} is one")),
        None => failure.hint(used(error)),
    }
}

/// Returns how the command is used, in one line.
fn used(error: &clap::Error) -> String {
    match error.get(ContextKind::Usage) {
        Some(usage) => {
            let usage = usage.to_string();
            let usage = usage.trim().strip_prefix("Usage: ").unwrap_or(usage.trim());
            let mut usage = usage.split_whitespace().collect::<Vec<_>>().join(" ");
            // What every command takes is there because it was typed, and not because it is needed.
            let mut command = Arguments::command();
            command.build();
            for argument in command.get_arguments().filter(|argument| argument.is_global_set()) {
                usage = usage.replace(&format!(" {argument}"), "");
            }
            format!("usage: {usage}")
        }
        None => "`--help` after the command says more".to_owned(),
    }
}

/// Returns the texts of one kind that belong to a mistake.
fn all(error: &clap::Error, kind: ContextKind) -> impl Iterator<Item = String> {
    let texts = match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    texts.into_iter()
}

fn one(error: &clap::Error, kind: ContextKind) -> Option<String> {
    all(error, kind).next()
}

/// Returns an argument's name without the shape of its value: `--mode <MODE>` is `--mode`.
fn name(shown: impl AsRef<str>) -> String {
    let name = shown.as_ref().split(' ').next().unwrap_or_default();
    name.trim_matches(['<', '>', '[', ']']).to_owned()
}

/// Says what is wrong with a field by the name under which it was typed: the lifecycle has the names
/// that programs write.
pub fn typed_as(path: &str, problem: &str) -> String {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (field, inside) = path.split_at(end);
    let name = match field {
        "by" => "--as",
        "reason" => "--reason",
        "labels" => "--label",
        "title" => "--title",
        "graceMs" => "--grace",
        "onEvent" => "--on-event",
        // All of the conditions together can only be too large by their trigger.
        "trigger" | "conditions" => "--trigger",
        "timeout" => "--timeout",
        "resumeWhen" => "--resume-when",
        "input" => "--input",
        "idempotencyKey" => "--idempotency-key",
        "type" => "NAME",
        "subject" => "SUBJECT",
        "id" => "--id",
        "source" => "--source",
        "tenant" => "--tenant",
        "data" => "--data",
        other => other,
    };
    match inside.strip_prefix('.').unwrap_or(inside) {
        "" => format!("{name}: {problem}"),
        inside => format!("{name}: {inside}: {problem}"),
    }
}
