//! What of a call, and of what people are shown, can be stored: not more than the limits allow, and
//! nothing that could not be read again.

use adjourn_core::json::{self, Unreadable};
use adjourn_core::{MARK, Rejected, limits};
use serde::Serialize;
use serde_json::json;

use crate::content::{CallContent, Shown};

impl CallContent {
    /// Refuses a call that is longer than [`limits::CALL_BYTES`] with its arguments, or that could
    /// not be read again. `path` is where its arguments stand.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self, path: &str) -> Result<(), Rejected> {
        check(self, limits::CALL_BYTES)
            .map_err(|wrong| Rejected::Invalid { path: path.to_owned(), problem: wrong.problem() })
    }

    /// Leaves out the arguments and places of a call that [`CallContent::check`] refuses, and says
    /// so in their stead.
    #[must_use]
    pub fn cut(self) -> Self {
        match check(&self, limits::CALL_BYTES) {
            Ok(()) => self,
            Err(_) => self.without_arguments(),
        }
    }

    /// Leaves out the arguments and places of a call, and says so in their stead.
    #[must_use]
    pub fn without_arguments(self) -> Self {
        let bytes = encoded(&self.arguments).len();
        let note = format!("{MARK} {bytes} bytes of arguments are left out");
        let title = self.title.filter(|title| title.len() <= limits::EXCERPT_BYTES);
        let kind = self.kind.filter(|kind| kind.len() <= limits::NAME_BYTES);
        Self { title, kind, arguments: json!({ "cut": note }), ..Self::new(self.id, self.tool) }
    }
}

/// Refuses the calls of one step if [`CallContent::check`] refuses one of them, or if they are
/// longer than [`limits::INPUT_BYTES`] together.
///
/// # Errors
/// What is wrong with them.
pub fn check_calls<'a>(calls: impl IntoIterator<Item = &'a CallContent>) -> Result<(), Rejected> {
    let mut total = 0;
    for (index, call) in calls.into_iter().enumerate() {
        call.check(&format!("calls[{index}].arguments"))?;
        total += encoded(call).len() as u64;
    }
    if total > limits::INPUT_BYTES {
        let problem = format!("longer than {} bytes together", limits::INPUT_BYTES);
        return Err(Rejected::Invalid { path: "calls".to_owned(), problem });
    }
    Ok(())
}

impl Shown {
    /// Leaves out what is longer than [`limits::SHOWN_BYTES`] or could not be read again: of a
    /// call's update the fields that do not fit, one after the other, else the whole; returns
    /// nothing if nothing is left.
    pub fn bounded(self) -> Option<Self> {
        let Self::Call { id, mut update } = self else {
            return check(&self, limits::SHOWN_BYTES).is_ok().then_some(self);
        };
        let mut room = limits::SHOWN_BYTES;
        update.retain(|name, value| {
            let fits = check(&(name, &value), room).is_ok();
            room -= if fits { encoded(&(name, value)).len() } else { 0 };
            fits
        });
        (!update.is_empty()).then_some(Self::Call { id, update })
    }
}

fn check(value: &impl Serialize, limit: usize) -> Result<(), Unreadable> {
    json::check(&encoded(value), limit)
}

fn encoded(value: &impl Serialize) -> Vec<u8> {
    // No map with keys that are not text, no failing impl: this always encodes.
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use adjourn_core::ledger::CallId;
    use serde_json::{Map, Value};

    use super::*;

    fn call(arguments: Value) -> CallContent {
        let (title, kind) = (Some("Write a file".to_owned()), Some("edit".to_owned()));
        CallContent { title, kind, arguments, ..CallContent::new(CallId::from("c"), "write") }
    }

    fn deep(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, _| json!([inner]))
    }

    #[test]
    fn a_call_that_fits_is_left_as_it_is() {
        let room = limits::CALL_BYTES - encoded(&call(json!(""))).len();
        let longest = call(json!("x".repeat(room)));
        assert!(longest.check("arguments").is_ok());
        assert_eq!(longest.clone().cut(), longest);
        assert!(call(json!("x".repeat(room + 1))).check("arguments").is_err());
    }

    #[test]
    fn arguments_that_cannot_be_stored_are_left_out_and_that_is_said() {
        let private = json!({ "$serde_json::private::RawValue": "1" });
        for (arguments, problem) in [
            (json!("x".repeat(limits::CALL_BYTES)), "longer than 1048576 bytes"),
            (deep(limits::JSON_DEPTH), "nested deeper than 64 levels"),
            (private, "must not begin with"),
        ] {
            let call = call(arguments);
            let refused = call.check("calls[0].arguments").unwrap_err().to_string();
            assert!(refused.starts_with("calls[0].arguments: "), "{refused}");
            assert!(refused.contains(problem), "{refused}");
            let cut = call.cut();
            assert!(cut.check("arguments").is_ok());
            assert_eq!(cut.title(), "Write a file");
            assert!(cut.arguments()["cut"].as_str().unwrap().ends_with("arguments are left out"));
        }
    }

    #[test]
    fn calls_of_one_step_fit_into_one_entry() {
        let longest = call(json!("x".repeat(limits::CALL_BYTES - 500)));
        check_calls(&vec![longest.clone(); 11]).unwrap();
        let refused = check_calls(&vec![longest; 13]).unwrap_err().to_string();
        assert_eq!(refused, "calls: longer than 12582912 bytes together");
    }

    #[test]
    fn fields_of_an_update_that_do_not_fit_are_left_out() {
        let id = || CallId::from("c");
        let update = |fields: Value| match fields {
            Value::Object(update) => Shown::Call { id: id(), update },
            _ => panic!("no object"),
        };
        let long = "x".repeat(limits::SHOWN_BYTES);
        let shown = update(json!({ "rawOutput": long, "title": "Link", "content": deep(99) }));
        assert_eq!(shown.bounded(), Some(update(json!({ "title": "Link" }))));
        assert_eq!(Shown::Call { id: id(), update: Map::new() }.bounded(), None);
        assert_eq!(Shown::Raw(json!({ "x": long })).bounded(), None);
        let mode = Shown::Mode("ask".to_owned());
        assert_eq!(mode.clone().bounded(), Some(mode));
    }
}
