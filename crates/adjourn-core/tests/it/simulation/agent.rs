//! The scripted agent of a scenario, and what of it a simulation can play.

use adjourn_core::carry::Usage;
use adjourn_driver::script::{Item, Script, Tool};
use serde_json::Value;

/// Reads a scenario's script.
///
/// What the simulation does not play is an error, so that a scenario cannot ask for it in vain.
pub fn read(script: &Value) -> Result<Script, String> {
    let read = Script::parse(&script.to_string());
    let read = read.map_err(|error| format!("script: {error}"))?;
    let runs = (0..read.runs().unwrap_or(1)).filter_map(|number| read.run(number));
    for item in runs.flatten() {
        let is_played = match item {
            // What is thought beside words changes nothing in a lifecycle.
            Item::Say(say) => say.text.is_some() && say.spend == Usage::default(),
            Item::Tools { .. } | Item::Await { .. } | Item::Ask(_) | Item::Fail(_) | Item::End => {
                true
            }
            Item::FailStep { .. } | Item::Spend(_) | Item::Show(_) | Item::Title(_) => false,
        };
        if !is_played {
            return Err(format!("script: the simulation does not play {item:?}"));
        }
    }
    Ok(read)
}

/// Returns the calls that the model asks for.
pub fn tools(item: &Item) -> &[Tool] {
    match item {
        Item::Tools { tools, .. } => tools,
        _ => &[],
    }
}

/// Returns how long the model speaks.
pub const fn model_ms(item: &Item) -> u64 {
    match item {
        Item::Say(say) => say.ms,
        _ => 0,
    }
}
