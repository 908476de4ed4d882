//! What a person is asked when a limit of the session's own is reached.

use adjourn_core::Session;
use adjourn_core::carry::{Limit, Unit, UsedUp};

use crate::driver::questions;
use crate::failure::{Failure, FailureKind};
use crate::record::{dollars, seconds};

/// Returns the question of a session that has reached a limit, in the words that guardrails have.
pub(super) fn question(session: &Session, limit: Limit) -> String {
    let budget = &session.budget;
    let progress = session.run().map(|run| run.progress.clone()).unwrap_or_default();
    let (kind, why) = match limit {
        Limit::BudgetExceeded => {
            let used_up: Vec<_> = budget.used_up(&session.totals).into_iter().map(spent).collect();
            let why = match used_up.is_empty() {
                true => "The session has used up its budget".to_owned(),
                false => format!("The session has {}", used_up.join(", and has ")),
            };
            (FailureKind::BudgetExceeded, why)
        }
        Limit::IterationLimit => {
            let steps = progress.iterations;
            let why = format!("The run has had {steps} steps, as many as it may");
            (FailureKind::IterationLimit, why)
        }
        Limit::TimeLimit => {
            let worked = progress.active_ms / 1000;
            let may = seconds(budget.active_ms.unwrap_or_default());
            (
                FailureKind::TimeLimit,
                format!("The run has worked for {worked} s, and may for {may} s"),
            )
        }
    };
    questions::question(&Failure::new(kind, why)).question
}

fn spent(UsedUp { unit, used, allowed }: UsedUp) -> String {
    match unit {
        Unit::MicroUsd => {
            format!("cost {} USD, and may cost {} USD", dollars(used), dollars(allowed))
        }
        Unit::Tokens => format!("used {used} tokens, and may use {allowed}"),
    }
}
