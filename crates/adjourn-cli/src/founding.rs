//! What a session is made with: the flags of commands that make one.

use adjourn::core::carry::{AddBudget, Budget};
use adjourn::core::driver::DriverSpec;
use adjourn::core::id::SessionId;
use adjourn::core::{Founding, Rejected, limits};
use clap::Args;

use crate::failure::Failure;
use crate::filter::{label, unlike};
use crate::place::Place;

/// The label that has the name of a session.
pub const NAME: &str = Founding::NAME;

/// What a session is made with, beside its driver.
#[derive(Debug, Default, Args)]
pub struct Given {
    /// A name to find it by instead of its id, as the label `name`; no other open session has it
    #[arg(id = "session_name", long = "name", value_name = "NAME", value_parser = name)]
    pub name: Option<String>,
    /// A label to find it by; it may be given more than once
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// What lists call it, until the agent calls it otherwise
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    /// The session on whose behalf it is made
    #[arg(long, value_name = "SESSION")]
    pub parent: Option<String>,
    /// What it may use before it parks: usd=5, tokens=20000, steps=50, with commas between them
    #[arg(long, value_name = "AMOUNTS", value_parser = budget, allow_hyphen_values = true)]
    pub budget: Option<Budget>,
}

impl Given {
    /// Returns what a session with a driver is made from; `budget` is what it may use.
    pub async fn founding(
        &self,
        place: &Place,
        driver: DriverSpec,
        budget: Option<Budget>,
    ) -> Result<Founding, Failure> {
        let mut labels = unlike(&self.labels)?;
        if let Some(name) = &self.name
            && labels.insert(NAME.to_owned(), name.clone()).is_some()
        {
            return Err(Failure::usage("--name does not go with a label of the same key"));
        }
        let parent = match &self.parent {
            // Whether it is there shows when the session is made.
            Some(parent) => Some(place.find(parent).await?),
            None => None,
        };
        Ok(Founding {
            id: SessionId::new(place.clock.uuid()),
            tenant: place.settings.tenant.value.clone(),
            labels,
            parent,
            driver,
            budget: budget.unwrap_or_default(),
            title: self.title.clone(),
        })
    }
}

/// Reads a name, as the store will.
pub fn name(text: &str) -> Result<String, String> {
    match limits::session_name(NAME, text) {
        Err(Rejected::Invalid { problem, .. }) => Err(problem),
        Err(other) => Err(other.to_string()),
        Ok(()) => Ok(text.to_owned()),
    }
}

/// Amounts as they are typed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Amounts {
    micro_usd: Option<u64>,
    tokens: Option<u64>,
    steps: Option<u64>,
}

/// Reads `usd=5`, `tokens=20000` and `steps=50`, with commas between them, each at most once.
fn amounts(text: &str) -> Result<Amounts, &'static str> {
    let expected = "expected amounts like usd=5, tokens=20000 or usd=5,tokens=20000,steps=50";
    let mut amounts = Amounts::default();
    for part in text.split(',') {
        let (unit, number) = part.split_once('=').ok_or(expected)?;
        let count = || number.parse().ok().filter(|count| *count > 0);
        let (amount, read) = match unit.trim() {
            "usd" => (&mut amounts.micro_usd, micros(number)),
            "tokens" => (&mut amounts.tokens, count()),
            "steps" => (&mut amounts.steps, count()),
            _ => return Err(expected),
        };
        // The same twice is not what was meant.
        if amount.replace(read.ok_or(expected)?).is_some() {
            return Err(expected);
        }
    }
    Ok(amounts)
}

/// Reads what a session may use.
pub fn budget(text: &str) -> Result<Budget, String> {
    let Amounts { micro_usd, tokens, steps } = amounts(text)?;
    Ok(Budget { cost_micro_usd: micro_usd, tokens, iterations: steps, active_ms: None })
}

/// Reads what is added to what a session may use.
pub fn add_budget(text: &str) -> Result<AddBudget, String> {
    let Amounts { micro_usd, tokens, steps } = amounts(text)?;
    Ok(AddBudget {
        cost_micro_usd: micro_usd.unwrap_or_default(),
        tokens: tokens.unwrap_or_default(),
        iterations: steps.unwrap_or_default(),
    })
}

/// Reads dollars as millionths of one: digits, and at most six behind the point.
fn micros(usd: &str) -> Option<u64> {
    const DECIMALS: usize = 6;
    let (whole, decimals) = usd.split_once('.').unwrap_or((usd, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(decimals) || decimals.len() > DECIMALS {
        return None;
    }
    let decimals: u64 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
    let micros = whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(decimals)?;
    (micros > 0).then_some(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_to_the_millionth() {
        let budget = |text| budget(text).unwrap();
        assert_eq!(budget("usd=5").cost_micro_usd, Some(5_000_000));
        assert_eq!(budget("usd=0.000001").cost_micro_usd, Some(1));
        assert_eq!(budget("usd=12.5").cost_micro_usd, Some(12_500_000));
        let all = budget("steps=3,usd=0.02,tokens=9");
        let limits = (all.cost_micro_usd, all.tokens, all.iterations, all.active_ms);
        assert_eq!(limits, (Some(20_000), Some(9), Some(3), None));
        let added = add_budget("steps=3,usd=0.02,tokens=9").unwrap();
        assert_eq!(added, AddBudget { cost_micro_usd: 20_000, tokens: 9, iterations: 3 });
        let tokens = AddBudget { tokens: 9, ..AddBudget::default() };
        assert_eq!(add_budget("tokens=9").unwrap(), tokens);
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in [
            "",
            "5",
            "5usd",
            "usd",
            "usd=",
            "usd=0",
            "usd=-1",
            "usd=NaN",
            "usd=1e3",
            "usd=.5",
            "usd=0.0000001",
            "usd=99999999999999999999",
            "tokens=1.5",
            "tokens=0",
            "steps=-1",
            "usd=1,usd=2",
            "usd=1,",
            ",usd=1",
            "eur=5",
            "usd=5;tokens=1",
        ] {
            assert!(budget(text).is_err(), "{text:?}");
            assert!(add_budget(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_name_is_none_that_an_id_could_be() {
        for text in ["", " ", "a\nb", "sess-1", "run-7", "bb02-0123456789ab", "0123456789ab"] {
            assert!(name(text).is_err(), "{text:?}");
        }
        for text in ["nightly build", "2026-11-16", "decade"] {
            assert_eq!(name(text).as_deref(), Ok(text));
        }
    }
}
