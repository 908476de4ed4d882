//! `prompt`: starts a run, or answers what the session waits for.

use super::{Draft, resume};
use crate::command::{Prompt, Reach, Resume};
use crate::event::{RunStarted, What};
use crate::limits;
use crate::rejected::Rejected;
use crate::session::{Initiator, State, Suspended, Wait, WakeReport};
use crate::transcript::Content;

pub(super) fn decide(draft: &mut Draft<'_>, prompt: &Prompt) -> Result<(), Rejected> {
    draft.not_ended()?;
    check_input("prompt", &prompt.content)?;
    if let Some(id) = &prompt.message_id {
        limits::name("messageId", id)?;
        if draft.facts.message_seen {
            let session = draft.session.id;
            return Err(Rejected::DuplicateMessage { message_id: id.clone(), session });
        }
    }
    match &draft.session.state {
        State::Idle => {
            if let Some(given) = prompt.handle {
                return Err(resume::no_suspension(&draft.session, Some(given)));
            }
            not_blank("prompt", &prompt.content)?;
            start_run(draft, Some(&prompt.content), None, prompt.message_id.clone());
            Ok(())
        }
        State::Suspended(suspended) => {
            may_wake(suspended, prompt.reach, draft)?;
            // A question says itself what is no answer.
            if suspended.park.pause.wait == Wait::Open {
                not_blank("prompt", &prompt.content)?;
            }
            let resume = Resume {
                handle: prompt.handle,
                input: Some(prompt.content.clone()),
                message_id: prompt.message_id.clone(),
                ..Resume::default()
            };
            resume::suspended(draft, &resume)
        }
        State::Ready(_) | State::Running(_) | State::Quiescing(_) | State::Ended(_) => {
            Err(Rejected::Busy { phase: draft.session.phase() })
        }
    }
}

/// Starts the next run of a session that is idle, by what is said or by what a wake brings along.
pub(super) fn start_run(
    draft: &mut Draft<'_>,
    content: Option<&Content>,
    wake: Option<WakeReport>,
    message_id: Option<String>,
) {
    let transcript = draft.session.transcript;
    let arrival = wake.as_ref().and_then(|report| report.arrival.as_ref());
    let started = RunStarted {
        run: draft.facts.fresh.run,
        content: content.cloned(),
        message_id,
        window: arrival.map_or(draft.facts.high, |arrival| arrival.seq),
        transcript: content.map_or(transcript, |content| transcript.with(content.digest)),
        wake: wake.map(Box::new),
    };
    draft.emit(What::RunStarted(started));
}

/// Refuses what is too long to be fed to an agent.
pub(super) fn check_input(path: &str, content: &Content) -> Result<(), Rejected> {
    limits::text(format_args!("{path}.excerpt"), &content.excerpt, limits::EXCERPT_BYTES)?;
    if content.bytes > limits::INPUT_BYTES {
        let (limit, mebibytes) = (limits::INPUT_BYTES, limits::INPUT_BYTES >> 20);
        let problem = format!("longer than {mebibytes} MiB ({limit} bytes)");
        return Err(Rejected::invalid(path, problem));
    }
    Ok(())
}

/// Nothing is said by saying nothing; the sender has lost what was to be said.
pub(super) fn not_blank(path: &str, content: &Content) -> Result<(), Rejected> {
    match content.blank {
        true => Err(Rejected::invalid(path, "must not be blank")),
        false => Ok(()),
    }
}

/// Refuses a message that reaches for a pause which another way ends.
fn may_wake(suspended: &Suspended, reach: Reach, draft: &Draft<'_>) -> Result<(), Rejected> {
    let session = &draft.session;
    if reach == Reach::Nothing {
        return Err(Rejected::Busy { phase: session.phase() });
    }
    if let Some(hold) = &suspended.hold {
        return Err(resume::held(session, hold));
    }
    let pause = &suspended.park.pause;
    // No client made such a pause, so that no client has to end it first.
    if matches!(pause.wait, Wait::Question(_)) || pause.host_interrupted {
        return Ok(());
    }
    let own_face = reach == Reach::OwnFace && pause.by.face == draft.facts.by.face;
    match (pause.initiator, &pause.joined) {
        (Initiator::Agent, _) if reach != Reach::Questions => Ok(()),
        (Initiator::Client, None) if own_face => Ok(()),
        // The message speaks for the actor who made the pause, and not for those who joined from elsewhere.
        (Initiator::Client, Some(joined)) if own_face => {
            Err(resume::joined(session, pause.handle, joined))
        }
        _ => Err(resume::paused(session, pause)),
    }
}
