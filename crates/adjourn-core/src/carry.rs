//! What carries over a suspension: totals, budgets, counters, lessons. Parked time is free.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::transcript::ShownAt;

/// What a step or a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Money, in millionths of a US dollar.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_micro_usd: u64,
    /// Tokens sent to the model.
    #[serde(skip_serializing_if = "is_zero")]
    pub prompt_tokens: u64,
    /// Tokens the model produced.
    #[serde(skip_serializing_if = "is_zero")]
    pub completion_tokens: u64,
    /// Time it took.
    #[serde(skip_serializing_if = "is_zero")]
    pub active_ms: u64,
}

impl Usage {
    /// Returns whether nothing was used.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            cost_micro_usd: self.cost_micro_usd.saturating_add(other.cost_micro_usd),
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            active_ms: self.active_ms.saturating_add(other.active_ms),
        }
    }
}

pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Totals over the life of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Totals {
    /// Money, in millionths of a US dollar.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_micro_usd: u64,
    /// Tokens sent to models.
    #[serde(skip_serializing_if = "is_zero")]
    pub prompt_tokens: u64,
    /// Tokens models produced.
    #[serde(skip_serializing_if = "is_zero")]
    pub completion_tokens: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, usage: &Usage) {
        self.cost_micro_usd = self.cost_micro_usd.saturating_add(usage.cost_micro_usd);
        self.prompt_tokens = self.prompt_tokens.saturating_add(usage.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(usage.completion_tokens);
    }

    /// Returns tokens in both directions.
    pub const fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }
}

/// What a session may use; absent is unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// Money over the session's life, in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micro_usd: Option<u64>,
    /// Tokens over the session's life, both directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Steps of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
    /// Time spent in the steps of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_ms: Option<u64>,
}

/// What a resume adds to the budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AddBudget {
    /// Money, in millionths of a US dollar.
    #[serde(skip_serializing_if = "is_zero")]
    pub cost_micro_usd: u64,
    /// Tokens.
    #[serde(skip_serializing_if = "is_zero")]
    pub tokens: u64,
    /// Steps that a run may have more.
    #[serde(skip_serializing_if = "is_zero")]
    pub iterations: u64,
}

impl AddBudget {
    /// Returns whether nothing is added.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether money or tokens are added, which a session has spent for good; steps are
    /// counted anew when their limit has stopped it.
    pub const fn is_to_spend(&self) -> bool {
        self.cost_micro_usd > 0 || self.tokens > 0
    }

    /// Returns both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            cost_micro_usd: self.cost_micro_usd.saturating_add(other.cost_micro_usd),
            tokens: self.tokens.saturating_add(other.tokens),
            iterations: self.iterations.saturating_add(other.iterations),
        }
    }
}

impl Budget {
    /// Returns the budget with more in it; what was unlimited stays so.
    #[must_use]
    pub fn raised(mut self, add: AddBudget) -> Self {
        let raise = |limit: &mut Option<u64>, by: u64| {
            if let Some(limit) = limit {
                *limit = limit.saturating_add(by);
            }
        };
        raise(&mut self.cost_micro_usd, add.cost_micro_usd);
        raise(&mut self.tokens, add.tokens);
        raise(&mut self.iterations, add.iterations);
        self
    }

    /// Returns whether money or tokens are used up.
    pub fn is_spent(&self, totals: &Totals) -> bool {
        !self.used_up(totals).is_empty()
    }

    /// Returns which of money and tokens are used up.
    pub fn used_up(&self, totals: &Totals) -> Vec<UsedUp> {
        let (cost, tokens) = (totals.cost_micro_usd, totals.tokens());
        [(Unit::MicroUsd, cost, self.cost_micro_usd), (Unit::Tokens, tokens, self.tokens)]
            .into_iter()
            .filter_map(|(unit, used, allowed)| Some(UsedUp { unit, used, allowed: allowed? }))
            .filter(|amount| amount.used >= amount.allowed)
            .collect()
    }
}

/// What a budget is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Millionths of a US dollar.
    MicroUsd,
    /// Tokens, both directions.
    Tokens,
}

impl Unit {
    /// Returns the word that people give amounts with.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MicroUsd => "usd",
            Self::Tokens => "tokens",
        }
    }

    /// Writes an amount as people give it: dollars with at least two decimals.
    fn amount(self, amount: u64) -> String {
        match self {
            Self::Tokens => amount.to_string(),
            Self::MicroUsd => {
                let text = format!("{}.{:06}", amount / 1_000_000, amount % 1_000_000);
                let cents = text.len() - "0000".len();
                let end = text.trim_end_matches('0').len().max(cents);
                text.get(..end).unwrap_or(&text).to_owned()
            }
        }
    }
}

/// An amount of a budget that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedUp {
    /// What it is counted in.
    pub unit: Unit,
    /// How much was used.
    pub used: u64,
    /// How much was allowed.
    pub allowed: u64,
}

/// It says by how much the amount must be raised.
impl std::fmt::Display for UsedUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { unit, used, allowed } = *self;
        let missing = unit.amount(used.saturating_sub(allowed));
        let (used, allowed) = (unit.amount(used), unit.amount(allowed));
        write!(f, "{} by more than {missing} ({used} of {allowed} is used)", unit.as_str())
    }
}

/// A limit that stops an agent, and that a resume after it treats in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Time spent in steps; a resume starts it again.
    TimeLimit,
    /// The number of steps; a resume starts it again.
    IterationLimit,
    /// Money or tokens; a resume must raise the budget.
    BudgetExceeded,
}

impl Limit {
    /// Returns the limit that a failure kind names, if it names one.
    pub fn from_failure_kind(kind: &str) -> Option<Self> {
        match kind {
            "time_limit" => Some(Self::TimeLimit),
            "iteration_limit" => Some(Self::IterationLimit),
            "budget_exceeded" => Some(Self::BudgetExceeded),
            _ => None,
        }
    }

    /// Returns the failure kind that names this limit.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TimeLimit => "time_limit",
            Self::IterationLimit => "iteration_limit",
            Self::BudgetExceeded => "budget_exceeded",
        }
    }
}

/// What an agent notes with a step about its own progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Notes {
    /// Repeat counters by key, as they stand; zero removes one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub repeats: BTreeMap<String, u64>,
    /// Failures met, one entry per attempt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
    /// Lessons learned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<String>,
    /// What the conversation is to be called from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Options that the agent has given another value, by their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Where the transcript has what people were shown with it, by kind. The host knows, not the
    /// agent.
    #[serde(skip_serializing_if = "ShownAt::is_empty")]
    pub shown_at: ShownAt,
    /// Whether no model has spoken in a step that is over: it is not counted among the steps of its
    /// run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub model_silent: bool,
}

impl Notes {
    /// Returns whether nothing is noted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Counters by name, bounded: what does not fit is counted under [`Counters::REST`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// The name under which everything beyond the bound is counted.
    pub const REST: &'static str = "(others)";

    /// Returns the counters by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }

    /// Returns one counter.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    fn slot(&mut self, name: &str, bound: usize) -> &mut u64 {
        let known = self.0.contains_key(name) || self.0.len() + 1 < bound;
        self.0.entry(if known { name } else { Self::REST }.to_owned()).or_insert(0)
    }

    pub(crate) fn add(&mut self, name: &str, by: u64, bound: usize) {
        let slot = self.slot(name, bound);
        *slot = slot.saturating_add(by);
    }

    pub(crate) fn put(&mut self, name: &str, value: u64, bound: usize) {
        if value == 0 {
            self.0.remove(name);
        } else {
            *self.slot(name, bound) = value;
        }
    }
}

/// What a run has used and met so far; it carries over suspensions and ends with the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// Steps in which the model has spoken, since the last reset.
    #[serde(skip_serializing_if = "is_zero")]
    pub iterations: u64,
    /// Time spent in steps, since the last reset.
    #[serde(skip_serializing_if = "is_zero")]
    pub active_ms: u64,
    /// Repeat counters of a loop detector.
    #[serde(skip_serializing_if = "Counters::is_empty")]
    pub repeats: Counters,
    /// Attempts per failure kind.
    #[serde(skip_serializing_if = "Counters::is_empty")]
    pub failures: Counters,
}

impl Counters {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Progress {
    /// Counts a step whose model is done, and what it used; one in which none has spoken does not
    /// count.
    pub(crate) fn model_done(&mut self, usage: &Usage, notes: &Notes) {
        self.iterations = self.iterations.saturating_add(u64::from(!notes.model_silent));
        self.spent(usage);
    }

    /// Counts time.
    pub(crate) fn spent(&mut self, usage: &Usage) {
        self.active_ms = self.active_ms.saturating_add(usage.active_ms);
    }

    pub(crate) fn note(&mut self, notes: &Notes) {
        for (key, count) in &notes.repeats {
            self.repeats.put(key, *count, limits::COUNTERS);
        }
        for kind in &notes.failures {
            self.failures.add(kind, 1, limits::COUNTERS);
        }
    }

    /// Starts the counter again that caused a suspension, and no other.
    pub(crate) fn reset(&mut self, limit: Limit) {
        match limit {
            Limit::TimeLimit => self.active_ms = 0,
            Limit::IterationLimit => self.iterations = 0,
            Limit::BudgetExceeded => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_stay_within_their_bound() {
        let mut counters = Counters::default();
        for number in 0..100 {
            counters.add(&format!("tool-{number}"), 1, 8);
        }
        assert_eq!(counters.iter().count(), 8);
        assert_eq!(counters.get(Counters::REST), 93);
    }

    #[test]
    fn raising_an_unlimited_budget_leaves_it_unlimited() {
        let budget = Budget { tokens: Some(10), ..Budget::default() };
        let raised = budget.raised(AddBudget { cost_micro_usd: 5, tokens: 5, iterations: 5 });
        assert_eq!(raised, Budget { tokens: Some(15), ..Budget::default() });
        let budget = Budget { iterations: Some(2), ..Budget::default() };
        let raised = budget.raised(AddBudget { cost_micro_usd: 5, tokens: 5, iterations: 5 });
        assert_eq!(raised, Budget { iterations: Some(7), ..Budget::default() });
    }
}
