//! How tasks of an agent look.

use std::time::Duration;

use adjourn::core::carry::Limit;
use adjourn::core::session::Pause;
use adjourn_a2a::client::Seen;
use serde_json::Value;

use crate::durations::span;
use crate::terminal::{Look, Output, marking_breaks, one_line, shorten};

/// How wide the labels are.
const WIDTH: usize = 10;
/// The most of a trigger that is shown.
const TRIGGER_CHARACTERS: usize = 48;
/// What a resume needs besides where a budget is used up.
const RAISE: &str = " --add-budget AMOUNTS";

/// Says in a line where a task stands, and why.
pub fn line(seen: &Seen) -> String {
    let state = seen.state.as_deref().unwrap_or("unknown");
    let why = why(seen);
    let standing = if why.is_empty() { state.to_owned() } else { format!("{state}: {why}") };
    match &seen.task {
        Some(task) => format!("{}  {standing}", one_line(task)),
        None => standing,
    }
}

/// Says in a few words where a task stands, why, and what a person can do about it.
pub fn standing(seen: &Seen, url: &str) -> String {
    let state = seen.state.as_deref().unwrap_or("unknown");
    let why = why(seen);
    let task = seen.task.as_deref().unwrap_or("TASK");
    let mut text = one_line(state);
    if !why.is_empty() {
        text += &format!(": {why}");
    }
    if seen.is_asking() {
        text += &format!("; answer it with `adjourn a2a send {url} ANSWER --task {task}`");
    }
    if seen.is_paused() {
        text += &waits_for(seen).map(|what| format!("; waits for {what}")).unwrap_or_default();
        let more = if reason(seen) == Some(Limit::BudgetExceeded.as_str()) { RAISE } else { "" };
        text += &format!("; wake it with `adjourn a2a resume {url} {task}{more}`");
    }
    text
}

/// Says what wakes a paused task by itself, as far as its agent says so in a way that is known.
fn waits_for(seen: &Seen) -> Option<String> {
    let conditions = seen.pause.as_ref()?.get("conditions")?;
    let event = conditions.get("onEvent").and_then(Value::as_str).map(one_line);
    let trigger = conditions.get("trigger").filter(|trigger| !trigger.is_null());
    let trigger =
        trigger.map(|trigger| shorten(&one_line(&trigger.to_string()), TRIGGER_CHARACTERS));
    let events: Vec<_> = event.into_iter().chain(trigger).collect();
    let minutes = conditions.pointer("/timeout/durationMinutes").and_then(Value::as_f64);
    let time = minutes.and_then(|minutes| Duration::try_from_secs_f64(minutes * 60.0).ok());
    match (events.join(" or "), time.map(span)) {
        (events, None) if events.is_empty() => None,
        (events, None) => Some(events),
        (events, Some(time)) if events.is_empty() => Some(time),
        (events, Some(time)) => Some(format!("{events}, for at most {time}")),
    }
}

fn reason(seen: &Seen) -> Option<&str> {
    of_pause(seen, "reason")
}

fn of_pause<'a>(seen: &'a Seen, name: &str) -> Option<&'a str> {
    seen.pause.as_ref()?.get(name)?.as_str()
}

/// Returns why a task stands where it does: what its pause is for, or what its agent says of it, and
/// what there is to choose from.
fn why(seen: &Seen) -> String {
    // The summary of one that lost its host names the calls whose outcome is unknown.
    let reason = match reason(seen) {
        Some(lost) if lost == Pause::HOST_INTERRUPTED => of_pause(seen, "summary").or(Some(lost)),
        reason => reason,
    };
    let words = reason.or(seen.status_words.as_deref()).unwrap_or_default();
    // An empty line sets the context of a question off, which the sign for a break does as well.
    let lines: Vec<_> = words.lines().filter(|line| !line.trim().is_empty()).collect();
    let words = marking_breaks(&lines.join("\n"));
    match seen.choices.as_slice() {
        [] => words,
        choices => {
            let choices = format!("[{}]", marking_breaks(&choices.join(" | ")));
            // Agents of ours say them with the question, too.
            if words.ends_with(&choices) { words } else { format!("{words} {choices}") }
        }
    }
}

/// Prints a task with all that there is to say of it.
pub fn tell(seen: &Seen, output: &Output) {
    output.data(&line(seen));
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let of_pause = |name: &str| seen.pause.as_ref().and_then(|pause| pause.get(name)).map(text);
    let mut lines = vec![
        ("context", seen.context.clone()),
        ("since", of_pause("pausedAt").or_else(|| seen.since.clone())),
        ("handle", of_pause("handle")),
        ("wakes on", of_pause("conditions")),
        ("summary", of_pause("summary")),
    ];
    lines.extend(seen.said.iter().map(|said| ("said", Some(said.text.clone()))));
    for (label, value) in lines {
        let Some(value) = value.filter(|value| !value.is_empty()) else { continue };
        let label = output.word(Look::Dim, &format!("{label:<WIDTH$}"));
        output.data(&format!("  {label} {}", one_line(&value)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns how a task that is paused by a client stands.
    fn paused(reason: &str, summary: &str) -> String {
        let pause = json!({ "state": "paused-by-client", "reason": reason, "summary": summary });
        let task = json!({ "id": "t", "status": { "state": "working" },
                           "metadata": { "harn": { "pause": pause } } });
        standing(&Seen::read(&task), "http://h")
    }

    #[test]
    fn what_a_person_has_to_know_of_a_pause_is_in_its_line() {
        assert_eq!(
            paused("review", "paused by boss"),
            "paused-by-client: review; wake it with `adjourn a2a resume http://h t`"
        );
        assert_eq!(
            paused("budget_exceeded", "paused by budget"),
            "paused-by-client: budget_exceeded; \
             wake it with `adjourn a2a resume http://h t --add-budget AMOUNTS`"
        );
        assert_eq!(
            paused("host_interrupted", "host_interrupted; outcome unknown: deploy"),
            "paused-by-client: host_interrupted; outcome unknown: deploy; \
             wake it with `adjourn a2a resume http://h t`"
        );
    }
}
