//! What a model is told by the host before it speaks: wake reports, digests, the fates of calls.

use adjourn_core::id::Seq;
use adjourn_core::ledger::{CallState, OpenCall};
use adjourn_core::session::{Cause, Initiator, Opening, Resumption, WakeReport};
use adjourn_core::transcript::{Digest, ShownAt};
use adjourn_core::{BEFORE_THAT, Session, json};
use serde_json::Value;

use crate::content::{Fate, Message, Shown};

/// Returns what stands between the last thing the model saw and its next answer.
///
/// `event_data` reads what an event carries.
///
/// # Errors
/// What an event carries cannot be read.
pub fn told_first<E>(
    session: &Session,
    mut event_data: impl FnMut(Seq) -> Result<Option<String>, E>,
) -> Result<Vec<Message>, E> {
    let mut said = Vec::new();
    let Some(run) = session.run() else { return Ok(said) };
    if let Opening::Wake(report) = &run.opening
        && !run.told
    {
        if !report.resumption.continue_transcript {
            said.push(Message { digest: true, ..Message::host(session.digest()) });
        }
        if !is_silent(report) {
            let call = session.calls.at(CallState::Waiting).into_iter().next();
            let mut texts = Vec::new();
            for report in report.newest_first() {
                let data = match &report.arrival {
                    Some(arrival) => event_data(arrival.seq)?.map(data_line),
                    None => None,
                };
                // What became of calls is told once.
                let unknown =
                    if texts.is_empty() { session.status().unknown_calls } else { vec![] };
                texts.push(report.alone(&unknown) + &data.unwrap_or_default());
            }
            said.push(Message::host(texts.join(BEFORE_THAT)).answering(call));
        }
    }
    said.extend(fates(session));
    Ok(said)
}

/// Returns what became of calls that have no result: the model is told before it speaks again, or
/// with the end of the step that asked for them.
pub fn fates(session: &Session) -> Vec<Message> {
    let fate = |open: &OpenCall| {
        let fate = match open.state {
            CallState::NotRun => Fate::NotRun,
            CallState::Unknown => Fate::Unknown,
            // The agent ran these by itself, and its step is over without their end.
            CallState::Asked if open.call.by_agent => Fate::NotRun,
            CallState::Dispatched if open.call.by_agent => Fate::Unknown,
            CallState::Asked | CallState::Dispatched | CallState::Waiting | CallState::Deferred => {
                return None;
            }
        };
        Some(Message::fate(open.call.id.clone(), &open.call.tool, fate))
    };
    session.calls.iter().filter_map(fate).collect()
}

/// Returns the digests by which a command names what is said with it.
pub fn digests(said: &[Message]) -> Vec<Digest> {
    said.iter().map(|said| Digest::of(&said.encode())).collect()
}

/// Returns where the transcript has what people are shown with `said`, which comes behind `before`
/// entries. What only passes by, as news of a call does, is not among it.
pub fn shown_at(said: &[Message], before: u64) -> ShownAt {
    let mut at = ShownAt::default();
    for (number, message) in (before..).zip(said) {
        match &message.shown {
            Some(Shown::Plan(_)) => at.plan = Some(number),
            Some(Shown::Context { .. }) => at.context = Some(number),
            Some(Shown::Commands(_)) => at.commands = Some(number),
            Some(Shown::Mode(_)) => at.mode = Some(number),
            Some(Shown::Call { .. } | Shown::Raw(_)) | None => {}
        }
    }
    at
}

/// Returns what an event carries as a line of its own: quoted, so that no event can be taken for
/// further words of the host's.
fn data_line(data: String) -> String {
    let value = json::stored(data.as_bytes()).unwrap_or(Value::String(data));
    format!("\nIts data: {value}")
}

/// Returns whether a turn goes on as if there had been no pause: a person outside made it and
/// lifted it, and the transcript shows no trace of either.
fn is_silent(report: &WakeReport) -> bool {
    let Resumption { initiator, cause, continue_transcript, .. } = report.resumption;
    initiator == Initiator::Client
        && cause == Cause::ExplicitResume
        && continue_transcript
        && !report.host_interrupted
        && report.earlier.is_none()
}
