//! What is written is of the shapes that are described, and nothing else.

use adjourn::NotSuspended;
use adjourn::core::Rejected;
use adjourn::core::actor::{Actor, Face};
use adjourn::core::id::{GateId, Handle, SessionId};
use adjourn::core::rejected::Paused;
use adjourn::core::session::{Cause, Phase};
use adjourn::core::time::Timestamp;

use super::*;
use crate::error::{Error, Source};
use crate::method::Family;

/// Returns the names of the fields that something has, and those that a shape requires and has.
fn check(name: &str, value: &Value) {
    let (_, _, fields) = SHAPES.iter().find(|(shape, ..)| *shape == name).unwrap();
    let value = value.as_object().unwrap();
    for field in value.keys() {
        assert!(fields.iter().any(|(known, ..)| known == field), "{name} has no {field}");
    }
    for (field, _, always) in *fields {
        assert!(!always || value.contains_key(*field), "{name} lacks {field}");
    }
}

#[test]
fn what_is_written_is_of_these_shapes() {
    use adjourn::core::session::{Initiator, Phase, Resumption};
    let handle = "suspend-019abf6b-7d51-7c1d-bb02-0123456789ab".parse().unwrap();
    check("PauseTaskPending", &crate::pause::quiescing("t", handle, None));
    let resumption = Resumption {
        handle,
        cause: Cause::Timeout,
        had_resume_input: false,
        continue_transcript: true,
        resumed_at: adjourn::core::time::Timestamp::from_millis(0),
        initiator: Initiator::Agent,
        then: Phase::Ready,
    };
    let (before, now) = (State::PausedByAgent, State::Working);
    let resumed = crate::pause::Resumed::new("t", before, now, &resumption);
    check("ResumeTaskResponse", &json!(resumed));
    let wake = crate::pause::wake_metadata(before, &resumption);
    check("WakeMetadata", &wake[crate::version::PAUSE]);
}

/// Returns one of each refusal that a request of a peer may meet.
fn refusals() -> Vec<Rejected> {
    let (phase, at) = (Phase::Running, Timestamp::from_millis(0));
    let id = "019abf6b-7d51-7c1d-bb02-0123456789ab";
    let handle: Handle = format!("suspend-{id}").parse().unwrap();
    let session: SessionId = format!("sess-{id}").parse().unwrap();
    let gate: GateId = format!("gate-{id}").parse().unwrap();
    let by = || Actor::new(Face::A2a, "ann");
    let paused = || {
        let (reason, used_up) = (None, Vec::new());
        Box::new(Paused { session, handle, by: by(), reason, used_up })
    };
    let (path, problem) = ("reason".to_owned(), "expected a text".to_owned());
    vec![
        Rejected::Invalid { path, problem },
        Rejected::NotSuspendable { phase },
        Rejected::NotSuspended { phase },
        Rejected::HandleMismatch { given: handle },
        Rejected::AlreadyResumed { handle, at, cause: Cause::Timeout, by: by() },
        Rejected::Withdrawn { handle, at, by: by() },
        Rejected::Held(paused()),
        Rejected::Gated { gate, by: by(), reason: None },
        Rejected::PausedByAnother(paused()),
        Rejected::NotPermitted,
        Rejected::Ended { at },
        Rejected::ConditionsDiffer { handle, current: None },
        Rejected::Busy { phase },
        Rejected::EmptyReply,
        Rejected::HandleRequired { handle },
        Rejected::BudgetNotRaised { session, used_up: Vec::new() },
        Rejected::IdempotencyKeyReused { key: "k".to_owned() },
        Rejected::DuplicateMessage { message_id: "m".to_owned(), session },
    ]
}

#[test]
fn every_code_has_its_reasons() {
    for refused in refusals() {
        for family in [Family::Standard, Family::Proposal, Family::Alias] {
            // A message that begins or answers a task has no key and no handle to be reused.
            let is_resumes = matches!(
                refused,
                Rejected::HandleRequired { .. } | Rejected::IdempotencyKeyReused { .. }
            );
            let is_messages = matches!(refused, Rejected::DuplicateMessage { .. });
            let is_standard = family == Family::Standard;
            if is_standard && is_resumes || !is_standard && is_messages {
                continue;
            }
            let Error { code, reason, .. } =
                Error::refused(&refused, "t", family, Source::Parameters);
            let known = ERRORS.iter().find(|(known, ..)| *known == code);
            assert!(
                known.is_some_and(|(_, reasons, _)| reasons.contains(&reason)),
                "{code} {reason}"
            );
        }
    }
}

#[test]
fn a_refusal_in_the_codes_of_a2a_itself_holds_no_handle() {
    for refused in refusals() {
        let error = Error::refused(&refused, "t", Family::Standard, Source::Message).to_rpc();
        assert!(!error.to_string().contains("suspend-"), "{error}");
    }
    let handle = "suspend-019abf6b-7d51-7c1d-bb02-0123456789ab".parse().unwrap();
    for why in [NotSuspended::Overtaken, NotSuspended::Withdrawn(Actor::new(Face::A2a, "ann"))] {
        let error = adjourn::Error::NotSuspended { handle, why };
        let error = Error::of(error, "t", Family::Standard).to_rpc();
        assert!(!error.to_string().contains("suspend-"), "{error}");
    }
}

#[test]
fn every_shape_that_is_named_is_there() {
    let schema = schema();
    let text = schema.to_string();
    for named in text.split("\"#/$defs/").skip(1) {
        let name = named.split('"').next().unwrap();
        assert!(schema["$defs"].get(name).is_some(), "{name}");
    }
}
