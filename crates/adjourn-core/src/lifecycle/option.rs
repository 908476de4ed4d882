//! `set_option`: a client chooses how the agent works, whatever the session is doing.

use super::Draft;
use crate::command::SetOption;
use crate::event::{OptionSet, What};
use crate::rejected::Rejected;

/// Sets an option. Nothing else of the session changes: one that is parked stays parked.
pub(super) fn set(draft: &mut Draft<'_>, set: &SetOption) -> Result<(), Rejected> {
    draft.not_ended()?;
    let options = &draft.session.options;
    let Some(option) = options.iter().find(|option| option.id == set.option) else {
        let ids = options.iter().map(|option| option.id.as_str());
        return Err(Rejected::invalid("option", one_of(ids, "this session has no options")));
    };
    if !option.allows(&set.value) {
        let ids = option.values.iter().map(|value| value.id.as_str());
        return Err(Rejected::invalid("value", one_of(ids, "it has no values")));
    }
    if option.value != set.value {
        let SetOption { option, value } = set.clone();
        draft.emit(What::OptionSet(OptionSet { option, value }));
    }
    Ok(())
}

/// Says what is allowed, or that nothing is.
fn one_of<'a>(ids: impl Iterator<Item = &'a str>, none: &str) -> String {
    let ids: Vec<_> = ids.collect();
    match ids.is_empty() {
        true => none.to_owned(),
        false => format!("expected one of {}", ids.join(", ")),
    }
}
