//! What a session has used, in words for people.

use adjourn::core::carry::Totals;
use adjourn::core::{Session, json};
use serde_json::Value;

/// Says what a session has used; nothing if that is nothing.
pub fn used(session: &Session) -> Option<String> {
    let Totals { cost_micro_usd, .. } = session.totals;
    let unpriced = is_unpriced(session);
    match (cost_micro_usd, session.totals.tokens()) {
        (0, 0) => None,
        (0, tokens) if unpriced => Some(format!("{tokens} tokens at an unknown price")),
        (0, tokens) => Some(format!("{tokens} tokens")),
        (cost, tokens) if unpriced => {
            Some(format!("{} USD and what has no known price, {tokens} tokens", dollars(cost)))
        }
        (cost, tokens) => Some(format!("{} USD, {tokens} tokens", dollars(cost))),
    }
}

/// Returns whether the agent has made model calls without a known price.
fn is_unpriced(session: &Session) -> bool {
    let state = session.driver_state.as_deref().unwrap_or_default();
    let state: Option<Value> = json::stored(state.as_bytes()).ok();
    let calls = state.as_ref().and_then(|state| state.get("unpriced_calls")?.as_u64());
    calls.is_some_and(|calls| calls > 0)
}

/// Returns an amount in dollars: with cents, and with as many decimals more as it takes.
pub fn dollars(micros: u64) -> String {
    let (whole, decimals) = (micros / 1_000_000, format!("{:06}", micros % 1_000_000));
    let (cents, rest) = decimals.split_at(2);
    format!("{whole}.{cents}{}", rest.trim_end_matches('0'))
}
