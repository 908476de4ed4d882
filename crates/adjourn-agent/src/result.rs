//! What came of a run.

use adjourn_core::carry::Totals;

use crate::events::{Handoff, PartialRunSummary, RunCancelled, UserInputRequested};

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentResult {
    /// How the run ended.
    pub outcome: RunOutcome,
    /// The last words of the agent, whole.
    pub text: String,
    /// What the session has used so far.
    pub totals: Totals,
    /// How many answers of the model the run has had.
    pub iteration_count: u64,
}

/// How a run ended, as far as it did.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub enum RunOutcome {
    /// It did not: it was dropped.
    #[default]
    Unfinished,
    /// The agent did what it was asked to.
    Completed,
    /// It is suspended.
    Suspended(Box<UserInputRequested>),
    /// The agent gave the work back.
    HandedOff(Handoff),
    /// It ended with what it had.
    Stopped(PartialRunSummary),
    /// It was cancelled.
    Cancelled(RunCancelled),
    /// It failed: the agent asked for something that cannot be.
    Failed(String),
}
