//! What is done about failures, where the settings of an agent say so.

use std::collections::BTreeMap;
use std::time::Duration;

use adjourn_agent::{Action, DefaultPolicy, Failure, FailureKind, RecoveryPolicy};

/// The default policy, but for the kinds of failures that the settings name.
#[derive(Debug)]
pub struct SettledPolicy {
    pub actions: BTreeMap<FailureKind, Action>,
    pub otherwise: DefaultPolicy,
}

impl RecoveryPolicy for SettledPolicy {
    fn retry_budget(&self, kind: FailureKind) -> u32 {
        // What the settings want to be retried is, as often as a model call would be.
        match (self.otherwise.retry_budget(kind), self.actions.get(&kind)) {
            (0, Some(Action::Retry)) => self.otherwise.llm_max_retries,
            (budget, _) => budget,
        }
    }

    fn backoff(&self, kind: FailureKind, attempts: u32) -> Duration {
        self.otherwise.backoff(kind, attempts)
    }

    fn decide(&self, failure: &Failure, attempts: u32) -> Action {
        match self.actions.get(&failure.kind) {
            Some(Action::Retry) if attempts >= self.retry_budget(failure.kind) => Action::Handoff,
            // Once, as everywhere: a model that is told again and again would never be stopped.
            Some(Action::NarrowScope) if attempts >= 1 => Action::Handoff,
            Some(action) => *action,
            None => self.otherwise.decide(failure, attempts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_hold_for_the_kinds_that_they_name() {
        let actions = [
            (FailureKind::ToolError, Action::AskUser),
            (FailureKind::OutputRefused, Action::Retry),
            (FailureKind::IterationLimit, Action::NarrowScope),
        ];
        let otherwise = DefaultPolicy { llm_max_retries: 3 };
        let policy = SettledPolicy { actions: actions.into(), otherwise };
        let decide = |kind, attempts| policy.decide(&Failure::new(kind, ""), attempts);
        assert_eq!(decide(FailureKind::ToolError, 0), Action::AskUser);
        assert_eq!(decide(FailureKind::OutputRefused, 2), Action::Retry);
        assert_eq!(decide(FailureKind::OutputRefused, 3), Action::Handoff);
        assert_eq!(decide(FailureKind::IterationLimit, 0), Action::NarrowScope);
        assert_eq!(decide(FailureKind::IterationLimit, 1), Action::Handoff);
        assert_eq!(decide(FailureKind::PolicyViolation, 0), Action::Handoff);
        assert_eq!(decide(FailureKind::TransientProvider, 2), Action::Retry);
    }
}
