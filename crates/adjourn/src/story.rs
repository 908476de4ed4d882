//! What happened and what was said, a line for each.

use adjourn_core::arrival::Arrival;
use adjourn_core::event::{Event, What};
use adjourn_core::session::{Pause, Resumption, Wait};
use adjourn_core::time::Timestamp;
use adjourn_host::said::Said;

use crate::terminal::{Look, Output, one_line};

/// Says what an event was, for a log.
pub fn event(event: &Event, output: &Output) -> String {
    let look = match &event.what {
        What::Suspended(_) | What::HoldLaid(_) => Look::Yellow,
        What::Resumed(_) | What::HoldLifted(_) => Look::Green,
        What::RunStarted(_) | What::RunEnded(_) => Look::Bold,
        What::HostLost(_) | What::CallsAbandoned(_) => Look::Red,
        _ => Look::Plain,
    };
    let at = output.word(Look::Dim, &event.at.to_string());
    let name = output.word(look, &format!("{:<18}", event.what.name()));
    let by = output.word(Look::Dim, &format!("{:<10}", event.by.to_string()));
    format!("{at}  {name} {by} {}", one_line(&detail(&event.what))).trim_end().to_owned()
}

/// Says what was said, for a transcript.
pub fn words(at: Timestamp, said: &Said) -> String {
    let role = match said {
        Said::User { .. } => "user",
        Said::Agent { aborted: false, .. } => "agent",
        Said::Agent { aborted: true, .. } => "agent, broken off",
        Said::Tool { .. } => "tool",
        Said::Host { .. } => "host",
    };
    // Further lines stand below the first one's words.
    let text = said.text().replace('\n', &format!("\n{:1$}", "", at.to_string().len() + 9));
    format!("{at}  {role:<6} {text}")
}

fn detail(what: &What) -> String {
    match what {
        What::RunStarted(started) => {
            let content = started.content.as_ref();
            content.map(|content| content.excerpt.clone()).unwrap_or_default()
        }
        What::Claimed(claimed) => claimed.host.to_string(),
        What::CallsAsked(asked) => {
            asked.calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>().join(", ")
        }
        What::StepFinished(finished) => finished.last_words.clone().unwrap_or_default(),
        What::SuspendRequested(requested) => pause(&requested.pause),
        What::SuspendJoined(joined) => joined.handle.to_string(),
        What::RequesterLeft(left) => left.handle.to_string(),
        What::SuspendWithdrawn(withdrawn) => withdrawn.handle.to_string(),
        What::Suspended(suspended) => pause(&suspended.park.pause),
        What::HoldLaid(laid) => pause(&laid.hold.pause),
        What::HoldLifted(lifted) => resumption(&lifted.resumption, lifted.arrival.as_ref()),
        What::Resumed(resumed) => resumption(&resumed.resumption, resumed.arrival.as_ref()),
        What::RunEnded(ended) => {
            let error = ended.end.error.as_deref().unwrap_or_default();
            format!("{} {error}", ended.end.outcome.as_str())
        }
        _ => String::new(),
    }
}

fn pause(pause: &Pause) -> String {
    match (&pause.wait, &pause.reason) {
        (Wait::Question(question), _) => format!("{} asks: {}", pause.handle, question.question),
        (Wait::Open, Some(reason)) => format!("{} {reason}", pause.handle),
        (Wait::Open, None) => pause.handle.to_string(),
    }
}

fn resumption(resumption: &Resumption, arrival: Option<&Arrival>) -> String {
    let by = match arrival {
        None => String::new(),
        Some(Arrival { name, subject: None, .. }) => format!(" {name}"),
        Some(Arrival { name, subject: Some(subject), .. }) => format!(" {name}:{subject}"),
    };
    format!("{} {}{by}", resumption.handle, resumption.cause)
}
