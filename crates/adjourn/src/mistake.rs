//! What was typed and cannot be read, told like every other failure: one sentence and one hint.

use clap::error::ErrorKind;

use crate::failure::Failure;

/// Turns what the reader of arguments says into a failure.
pub fn told(error: &clap::Error) -> Failure {
    use ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, MissingSubcommand};
    if matches!(error.kind(), DisplayHelpOnMissingArgumentOrSubcommand | MissingSubcommand) {
        return Failure::usage("a command is missing").hint("`adjourn --help` lists them");
    }
    // The reader has paragraphs: what is wrong, perhaps what may have been meant, how it is used.
    let text = error.to_string();
    let mut paragraphs = text.trim_end().split("\n\n").map(one_line);
    let wrong = paragraphs.next().unwrap_or_default();
    let wrong = wrong.strip_prefix("error: ").unwrap_or(&wrong).to_owned();
    let rest: Vec<_> = paragraphs.collect();
    let meant = rest.iter().find_map(|text| text.strip_prefix("tip: ")).map(str::to_owned);
    let used = rest.iter().find_map(|text| text.strip_prefix("Usage: "));
    let used = used.map(|used| format!("usage: {used}"));
    let hint = meant.or(used).unwrap_or_else(|| "`--help` after the command says more".to_owned());
    Failure::usage(wrong).hint(hint)
}

/// Says what is wrong with a field by the name under which it was typed: the lifecycle has the names
/// that programs write.
pub fn typed_as(path: &str, problem: &str) -> String {
    let end = path.find(['.', '[']).unwrap_or(path.len());
    let (field, inside) = path.split_at(end);
    let name = match field {
        "by" => "--as",
        "reason" => "--reason",
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

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}
