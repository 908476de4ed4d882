//! Guardrails: how far an agent may go before it asks, and how long one call may take.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of an agent. One that is hit makes the agent ask; see
/// [`DefaultPolicy`](crate::DefaultPolicy).
///
/// A limit counts what it says: `max_iterations` of 5 gives five answers of the model. Parked time
/// is free, and so is the time that a consumer of events takes between two of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentGuardrails {
    /// How many answers of the model a run may have that can be used (`iteration_limit`).
    pub max_iterations: u64,
    /// How many seconds a run may work, in model calls and tools (`time_limit`).
    pub max_execution_time_s: f64,
    /// How many seconds one model call may take; then it is broken off (`transient_provider`).
    pub llm_timeout_s: f64,
    /// How often in a row a failed model call is retried by the default policy.
    pub llm_max_retries: u32,
    /// How many seconds one tool call may take; then it is dropped (`tool_error`).
    pub tool_timeout_s: f64,
    /// After how many seconds without a sign of life of a model or a tool watchers are told so. It
    /// stops nothing, and counts for nothing.
    pub stall_threshold_s: f64,
    /// How many seconds a model that has begun to answer may be silent (`transient_provider`).
    pub stream_heartbeat_s: f64,
    /// The number of equal calls from which on their results warn the model.
    pub loop_soft_threshold: u64,
    /// The number of equal calls of which the last does not run any more (`loop_detected`).
    pub loop_hard_threshold: u64,
    /// How many US dollars a session may cost (`budget_exceeded`). An agent with this limit is built
    /// only if the price of its model is known, or if the model says what its answers cost; an answer
    /// that comes without its usage costs nothing by this count.
    pub max_cost_usd: Option<f64>,
    /// How many tokens a session may use, in both directions (`budget_exceeded`).
    pub max_tokens: Option<u64>,
    /// Whether a provider's quota that names the time at which it refills parks the run until then.
    pub park_on_quota: bool,
}

impl Default for AgentGuardrails {
    fn default() -> Self {
        Self {
            max_iterations: 50,
            max_execution_time_s: 300.0,
            llm_timeout_s: 60.0,
            llm_max_retries: 3,
            tool_timeout_s: 600.0,
            stall_threshold_s: 30.0,
            stream_heartbeat_s: 20.0,
            loop_soft_threshold: 2,
            loop_hard_threshold: 6,
            max_cost_usd: None,
            max_tokens: None,
            park_on_quota: false,
        }
    }
}

/// The same limits, as they are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) max_iterations: u64,
    pub(crate) max_execution_time: Duration,
    pub(crate) llm_timeout: Duration,
    pub(crate) tool_timeout: Duration,
    pub(crate) stall_threshold: Duration,
    pub(crate) stream_heartbeat: Duration,
    pub(crate) loop_soft_threshold: u64,
    pub(crate) loop_hard_threshold: u64,
    pub(crate) max_cost_micro_usd: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) park_on_quota: bool,
}

impl AgentGuardrails {
    /// Checks the limits; the error names the field that makes no sense.
    pub(crate) fn limits(&self) -> Result<Limits, InvalidGuardrail> {
        let seconds = |name, seconds: f64| {
            Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|duration| !duration.is_zero())
                .ok_or(InvalidGuardrail { name, problem: "expected a positive number of seconds" })
        };
        let at_least = |name, value: u64, least: u64, problem| match value >= least {
            true => Ok(value),
            false => Err(InvalidGuardrail { name, problem }),
        };
        let max_cost_micro_usd = match self.max_cost_usd {
            None => None,
            Some(usd) => Some(crate::prices::micro_usd(usd).ok_or(InvalidGuardrail {
                name: "max_cost_usd",
                problem: "expected an amount that is not negative",
            })?),
        };
        Ok(Limits {
            max_iterations: at_least(
                "max_iterations",
                self.max_iterations,
                1,
                "expected 1 or more",
            )?,
            max_execution_time: seconds("max_execution_time_s", self.max_execution_time_s)?,
            llm_timeout: seconds("llm_timeout_s", self.llm_timeout_s)?,
            tool_timeout: seconds("tool_timeout_s", self.tool_timeout_s)?,
            stall_threshold: seconds("stall_threshold_s", self.stall_threshold_s)?,
            stream_heartbeat: seconds("stream_heartbeat_s", self.stream_heartbeat_s)?,
            loop_soft_threshold: self.loop_soft_threshold,
            loop_hard_threshold: at_least(
                "loop_hard_threshold",
                self.loop_hard_threshold,
                2,
                "expected 2 or more: one call is no loop",
            )?,
            max_cost_micro_usd,
            max_tokens: self.max_tokens,
            park_on_quota: self.park_on_quota,
        })
    }
}

/// A guardrail that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("guardrail {name}: {problem}")]
pub struct InvalidGuardrail {
    /// The name of the field.
    pub name: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
}
