//! Prices: what a model call costs, where that is known.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::ModelUsage;

/// The price of a model, in US dollars per million tokens, and what they buy at most at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// For tokens that the model is sent.
    pub prompt: f64,
    /// For tokens that the model produces.
    pub completion: f64,
    /// For tokens that the model is sent and its provider had cached; without it, as much as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_prompt: Option<f64>,
    /// For tokens that the model is sent and its provider puts into its cache; without it, as much
    /// as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// How many tokens the model has room for, which clients are told beside what it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
}

/// Prices by the model's id. There is no list of them built in: it would be wrong by tomorrow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prices(BTreeMap<String, Price>);

impl Prices {
    /// Knows no price.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds the price of a model.
    #[must_use]
    pub fn with(mut self, model: impl Into<String>, price: Price) -> Self {
        self.0.insert(model.into(), price);
        self
    }

    /// Returns whether the price of a model is known.
    pub fn knows(&self, model: &str) -> bool {
        self.0.contains_key(model)
    }

    /// Returns how many tokens a model has room for, if that is known.
    pub fn context_tokens(&self, model: &str) -> Option<u64> {
        self.0.get(model)?.context_tokens
    }

    /// Returns what a call cost in millionths of a US dollar: what its provider says, else what its
    /// tokens cost; nothing if that is not known.
    pub fn cost(&self, model: &str, usage: &ModelUsage) -> Option<u64> {
        if let Some(cost) = usage.cost_usd {
            return micro_usd(cost);
        }
        let price = self.0.get(model)?;
        let (sent, completion) = (usage.prompt_tokens?, usage.completion_tokens?);
        let cached = usage.cached_prompt_tokens.unwrap_or(0).min(sent);
        let written = usage.cache_write_tokens.unwrap_or(0).min(sent - cached);
        let parts = [
            (sent - cached - written, price.prompt),
            (cached, price.cached_prompt.unwrap_or(price.prompt)),
            (written, price.cache_write.unwrap_or(price.prompt)),
            (completion, price.completion),
        ];
        let cost = |(tokens, per_million): (u64, f64)| {
            Some(f64::from(u32::try_from(tokens).ok()?) * per_million / 1e6)
        };
        micro_usd(parts.into_iter().map(cost).sum::<Option<f64>>()?)
    }
}

/// Returns an amount in millionths, rounded; nothing if it is no amount of money.
pub(crate) fn micro_usd(usd: f64) -> Option<u64> {
    let micro = (usd * 1e6).round();
    // Above 2^53 a float has no units any more.
    let known = (0.0..=9e15).contains(&micro);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    known.then_some(micro as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        prompt: 3.0,
        completion: 15.0,
        cached_prompt: None,
        cache_write: None,
        context_tokens: None,
    };

    fn usage(prompt: u64, completion: u64) -> ModelUsage {
        let (prompt_tokens, completion_tokens) = (Some(prompt), Some(completion));
        ModelUsage { prompt_tokens, completion_tokens, ..ModelUsage::default() }
    }

    #[test]
    fn a_call_costs_what_its_tokens_cost() {
        let prices = Prices::new().with("m", PRICE);
        assert_eq!(prices.cost("m", &usage(1_000_000, 100_000)), Some(4_500_000));
        assert_eq!(prices.cost("m", &usage(0, 0)), Some(0));
    }

    #[test]
    fn what_the_provider_had_cached_has_a_price_of_its_own() {
        let cached = ModelUsage {
            cached_prompt_tokens: Some(600_000),
            cache_write_tokens: Some(100_000),
            ..usage(1_000_000, 0)
        };
        let prices = Prices::new().with("m", PRICE);
        assert_eq!(prices.cost("m", &cached), Some(3_000_000));
        let price = Price { cached_prompt: Some(0.3), cache_write: Some(3.75), ..PRICE };
        let prices = Prices::new().with("m", price);
        assert_eq!(prices.cost("m", &cached), Some(900_000 + 180_000 + 375_000));
        let odd = ModelUsage { cached_prompt_tokens: Some(5), ..usage(1, 0) };
        assert_eq!(prices.cost("m", &odd), Some(0));
    }

    #[test]
    fn an_unknown_price_is_said_to_be_unknown() {
        let prices = Prices::new().with("m", PRICE);
        assert_eq!(prices.cost("other", &usage(1, 1)), None);
        assert_eq!(prices.cost("m", &ModelUsage::default()), None);
        let said = ModelUsage { cost_usd: Some(0.25), ..ModelUsage::default() };
        assert_eq!(prices.cost("other", &said), Some(250_000));
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(micro_usd(wrong), None);
        }
    }
}
