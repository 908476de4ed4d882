//! What the scripted agent spends.

use adjourn_core::carry::Usage;
use serde_json::Value;

use super::reading::{Fields, Wrong, expected};

/// The most dollars of one item: up to here a number of JSON is exact to the millionth.
const MOST_USD: u64 = 1_000_000_000;
const MICROS: u64 = 1_000_000;
/// How many decimals a millionth has.
const DECIMALS: usize = 6;

/// Reads what is spent.
pub(super) fn usage(place: &str, value: Value) -> Result<Usage, Wrong> {
    let mut fields = Fields::of(place, value)?;
    let (usd, tokens) = (fields.take("usd"), fields.take("tokens"));
    fields.end(&["usd", "tokens"])?;
    if usd.is_null() && tokens.is_null() {
        return Err((place.to_owned(), "expected usd, tokens or both".to_owned()));
    }
    let completion_tokens = match tokens {
        Value::Null => 0,
        tokens => tokens.as_u64().ok_or_else(|| {
            expected(&format!("{place}.tokens"), "a whole number from 0 on", &tokens)
        })?,
    };
    let cost_micro_usd = match usd {
        Value::Null => 0,
        usd => micros(&usd).ok_or_else(|| {
            let what = format!("dollars from 0 to {MOST_USD} with at most {DECIMALS} decimals");
            match usd {
                Value::Number(usd) => {
                    (format!("{place}.usd"), format!("expected {what}, found {usd}"))
                }
                other => expected(&format!("{place}.usd"), &what, &other),
            }
        })?,
    };
    Ok(Usage { cost_micro_usd, completion_tokens, ..Usage::default() })
}

/// Reads the field of an item that spends something beside what it does.
pub(super) fn field(fields: &mut Fields) -> Result<Usage, Wrong> {
    match fields.take("spend") {
        Value::Null => Ok(Usage::default()),
        value => usage(&fields.at("spend"), value),
    }
}

/// Returns an amount of dollars in millionths; nothing if there are none that are the same amount.
fn micros(usd: &Value) -> Option<u64> {
    // A number is shown as the shortest text that reads as the same number, which is the one that
    // was written: counting with it instead would round.
    let shown = match usd.as_u64() {
        Some(whole) => whole.to_string(),
        None => usd.as_f64()?.to_string(),
    };
    let (whole, decimals) = shown.split_once('.').unwrap_or((&shown, ""));
    if decimals.len() > DECIMALS {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|whole| *whole <= MOST_USD)?;
    let decimals: u64 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
    Some(whole * MICROS + decimals)
}

#[cfg(test)]
mod tests {
    use adjourn_core::json;

    use super::*;

    #[test]
    fn dollars_are_read_exactly() {
        let read = |text: &str| micros(&json::stored(text.as_bytes()).unwrap());
        for (text, expected) in [
            ("0", Some(0)),
            ("0.0", Some(0)),
            ("0.02", Some(20_000)),
            ("0.1", Some(100_000)),
            ("0.000001", Some(1)),
            ("1e-6", Some(1)),
            ("1.10", Some(1_100_000)),
            ("0.57", Some(570_000)),
            ("5", Some(5_000_000)),
            ("999999999.999999", Some(999_999_999_999_999)),
            ("1e9", Some(1_000_000_000_000_000)),
            ("0.0000001", None),
            ("0.0200001", None),
            ("-0.02", None),
            ("-1", None),
            ("1000000001", None),
            ("1e300", None),
            ("18446744073709551615", None),
            ("\"0.02\"", None),
            ("true", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
