//! What a person is asked, and told, about a failure.

use adjourn_core::command::Question;
use adjourn_core::limits;
use serde_json::Value;

use crate::events::{Handoff, PartialRunSummary};
use crate::failure::{Failure, FailureKind};

/// The metadata of a failure that has answers to choose from: a list of texts.
const CHOICES: &str = "choices";

/// Returns what a person is asked about a failure.
pub(crate) fn question(failure: &Failure) -> Question {
    let why = &failure.explanation;
    let question = match failure.kind {
        FailureKind::AmbiguousInput => {
            format!("The request can be read in more than one way: {why}. What is meant?")
        }
        FailureKind::LoopDetected => {
            format!("The agent goes round in circles: {why}. How should it go on?")
        }
        FailureKind::IterationLimit | FailureKind::TimeLimit => {
            format!("{why}. Should it go on, and with what?")
        }
        FailureKind::BudgetExceeded => {
            format!("{why}. Should it go on? Then its budget has to be raised.")
        }
        FailureKind::AuthRequired => {
            format!(
                "Credentials are missing or not accepted: {why}. Answer when they are in place; a \
                 program sees only the variables that it was started with."
            )
        }
        _ => format!("The agent cannot go on by itself: {why}. What should it do?"),
    };
    let context = (!failure.blockers.is_empty())
        .then(|| format!("In the way: {}", failure.blockers.join("; ")));
    let choices = failure.metadata.get(CHOICES).and_then(Value::as_array);
    let choices = choices.into_iter().flatten().filter_map(Value::as_str);
    Question {
        question,
        context,
        choices: choices.map(|choice| limits::excerpt(choice, limits::NAME_BYTES)).collect(),
        originating_failure_kind: Some(failure.kind.as_str().to_owned()),
    }
}

/// Returns what the model is told once, so that it tries something smaller.
pub(super) fn instruction(failure: &Failure) -> String {
    let why = &failure.explanation;
    match failure.kind {
        FailureKind::NoProgress => {
            "Your last answer was empty, or announced a call that was not in it. Take the next small \
             step, or say that you are done."
                .to_owned()
        }
        FailureKind::ScopeTooLarge => {
            format!("That was too much at once: {why}. Take a smaller part of it first.")
        }
        FailureKind::KernelInvalidated => {
            format!("What you had built up is gone: {why}. Set up again what you need of it.")
        }
        _ => format!("That did not work: {why}. Try something smaller."),
    }
}

/// Returns what a person is told who takes over.
pub(super) fn handoff(failure: &Failure) -> Handoff {
    let next = match failure.kind {
        FailureKind::TransientProvider => "Try again when the model's provider answers.",
        FailureKind::OutputTruncated => "Ask for less at once, or allow longer answers.",
        FailureKind::OutputRefused => "Put the request in other words.",
        FailureKind::CapabilityGap => "Use a model or a tool that can do this.",
        FailureKind::PolicyViolation => "Ask for something that is allowed.",
        FailureKind::ToolError => "Look at why the tool fails.",
        _ => "Split the work into smaller parts.",
    };
    Handoff {
        rationale: failure.to_string(),
        blockers: failure.blockers.clone(),
        suggested_next_steps: vec![next.to_owned()],
    }
}

/// Returns what a run leaves behind that ends with what it has.
pub(super) fn summary(failure: &Failure, lessons: &[Failure]) -> PartialRunSummary {
    let mut missing = vec![failure.to_string()];
    missing.extend(failure.blockers.iter().cloned());
    PartialRunSummary {
        missing,
        learned_facts: lessons.iter().map(ToString::to_string).collect(),
        next_step_plan: handoff(failure).suggested_next_steps,
    }
}
