//! Recovery: which action a failure leads to.

use std::time::Duration;

use crate::failure::{Action, Failure, FailureKind};

/// Decides what is done about failures. A host replaces it with its own to recover otherwise.
///
/// A failure is decided when it is met; the agent then counts the attempt, keeps the lesson and
/// carries the action out.
pub trait RecoveryPolicy: Send + Sync + 'static {
    /// Returns how often in a row a failure of this kind is retried.
    fn retry_budget(&self, kind: FailureKind) -> u32;

    /// Returns how long a retry waits after `attempts` earlier ones, before jitter.
    fn backoff(&self, kind: FailureKind, attempts: u32) -> Duration;

    /// Returns what is done about a failure that was met `attempts` times before.
    fn decide(&self, failure: &Failure, attempts: u32) -> Action;
}

/// The policy that an agent has unless its host gives it another.
///
/// It does what a failure suggests, which is [`FailureKind::default_action`] unless a tool says
/// otherwise. What was retried as often as its budget allows, and what did not get better by
/// narrowing the scope once, is handed off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultPolicy {
    /// How often in a row a model call is retried that its provider failed.
    pub llm_max_retries: u32,
}

/// How often tool failures in a row are left to the model.
const TOOL_RETRIES: u32 = 2;
/// How often an answer is asked for again that was cut off.
const TRUNCATED_RETRIES: u32 = 1;
/// The longest wait before a retry.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

impl RecoveryPolicy for DefaultPolicy {
    fn retry_budget(&self, kind: FailureKind) -> u32 {
        match kind {
            FailureKind::TransientProvider => self.llm_max_retries,
            FailureKind::ToolError => TOOL_RETRIES,
            FailureKind::OutputTruncated => TRUNCATED_RETRIES,
            _ => 0,
        }
    }

    fn backoff(&self, kind: FailureKind, attempts: u32) -> Duration {
        match kind {
            FailureKind::TransientProvider => {
                let seconds = 1_u64.checked_shl(attempts).unwrap_or(u64::MAX);
                Duration::from_secs(seconds).min(LONGEST_BACKOFF)
            }
            _ => Duration::ZERO,
        }
    }

    fn decide(&self, failure: &Failure, attempts: u32) -> Action {
        match failure.suggested_action {
            Action::Retry if attempts >= self.retry_budget(failure.kind) => Action::Handoff,
            Action::NarrowScope if attempts >= 1 => Action::Handoff,
            action => action,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_leads_to_the_action_that_is_documented() {
        let policy = DefaultPolicy { llm_max_retries: 3 };
        let table: Vec<_> = FailureKind::ALL
            .iter()
            .map(|kind| format!("{kind} {:?}", policy.decide(&Failure::new(*kind, ""), 0)))
            .collect();
        expect_test::expect![[r#"
            transient_provider Retry
            output_truncated Retry
            output_refused Handoff
            ambiguous_input AskUser
            scope_too_large NarrowScope
            capability_gap Handoff
            no_progress NarrowScope
            loop_detected AskUser
            tool_error Retry
            policy_violation Handoff
            kernel_invalidated NarrowScope
            iteration_limit AskUser
            time_limit AskUser
            budget_exceeded AskUser
            auth_required AskUser"#]]
        .assert_eq(&table.join("\n"));
    }

    #[test]
    fn a_budget_that_is_used_up_is_a_handoff() {
        let policy = DefaultPolicy { llm_max_retries: 3 };
        let transient = Failure::new(FailureKind::TransientProvider, "");
        let actions: Vec<_> = (0..5).map(|attempts| policy.decide(&transient, attempts)).collect();
        assert_eq!(actions[..3], [Action::Retry; 3]);
        assert_eq!(actions[3..], [Action::Handoff; 2]);
        let narrow = Failure::new(FailureKind::NoProgress, "");
        assert_eq!(policy.decide(&narrow, 1), Action::Handoff);
    }

    #[test]
    fn the_wait_doubles_up_to_half_a_minute() {
        let policy = DefaultPolicy { llm_max_retries: 3 };
        let wait = |attempts| policy.backoff(FailureKind::TransientProvider, attempts).as_secs();
        assert_eq!([0, 1, 2, 4, 5, 63, 64].map(wait), [1, 2, 4, 16, 30, 30, 30]);
    }
}
