//! Reading conditions from JSON: the limits, the rules for fields, and the outermost object.
//!
//! What a field means is read beside its type, in `pattern`, `trigger` and `timeout`; the rules
//! here are the same for all of them. `null` is absent wherever a field may stand, even an unknown
//! one. A `null` in a list is an element and is refused as such.

use std::io;

use serde_json::{Map, Value};

use super::invalid::Invalid;
use super::{Conditions, EventPattern, MAX_BYTES, MAX_DEPTH, Spelling, Timeout, Trigger};
use crate::id::Seq;

/// Where conditions are read from.
///
/// What was journaled stays readable whatever was decided since: which offset a time zone has on
/// some day (governments decide that), and how large conditions may be. Both are checked when
/// conditions are given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Outside,
    Journal,
}

impl Conditions {
    /// Reads conditions, or nothing from what means that there are none: `null`, `{}` and an object
    /// of nothing but `null`.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn parse(value: &Value, spelling: Spelling) -> Result<Option<Self>, Invalid> {
        Self::read(value, spelling, Origin::Outside)
    }

    /// Reads conditions as [`Conditions::parse`] does, but from where `origin` says.
    pub(super) fn read(
        value: &Value,
        spelling: Spelling,
        origin: Origin,
    ) -> Result<Option<Self>, Invalid> {
        if value.is_null() {
            return Ok(None);
        }
        let fields = object(value)?;
        // The depth comes first: nothing after it may meet a value that it could not walk.
        check_depth(value, MAX_DEPTH)?;
        if origin == Origin::Outside {
            check_size(value)?;
        }

        let names = [spelling.on_event(), Spelling::TRIGGER, Spelling::TIMEOUT, Spelling::SINCE];
        check_names(fields, &names)?;
        let conditions = Self {
            on_event: optional(fields, spelling.on_event(), EventPattern::read)?,
            trigger: optional(fields, Spelling::TRIGGER, |value| Trigger::read(value, origin))?,
            timeout: optional(fields, Spelling::TIMEOUT, |value| Timeout::read(value, spelling))?,
            since: optional(fields, Spelling::SINCE, since)?,
        };
        Ok((conditions != Self::default()).then_some(conditions))
    }
}

fn since(value: &Value) -> Result<Seq, Invalid> {
    let number =
        value.as_u64().ok_or_else(|| Invalid::expected("a non-negative integer", value))?;
    Ok(Seq(number))
}

/// Refuses a value in which more than `left` lists and objects lie inside each other.
fn check_depth(value: &Value, left: usize) -> Result<(), Invalid> {
    let deeper = || {
        left.checked_sub(1)
            .ok_or_else(|| Invalid::new(format!("expected at most {MAX_DEPTH} levels of nesting")))
    };
    match value {
        Value::Array(elements) => {
            let left = deeper()?;
            for (index, element) in elements.iter().enumerate() {
                check_depth(element, left).map_err(|invalid| invalid.in_element(index))?;
            }
        }
        Value::Object(fields) => {
            let left = deeper()?;
            for (name, field) in fields {
                check_depth(field, left).map_err(|invalid| invalid.in_field(name))?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(())
}

/// Refuses a value that takes more than [`MAX_BYTES`] as JSON.
fn check_size(value: &Value) -> Result<(), Invalid> {
    serde_json::to_writer(Allowance(MAX_BYTES), value)
        .map_err(|_| Invalid::new(format!("expected at most {MAX_BYTES} bytes of json")))
}

/// Takes so many bytes, keeps none of them, and fails at the first one too many.
struct Allowance(usize);

impl io::Write for Allowance {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the fields of an object.
pub(super) fn object(value: &Value) -> Result<&Map<String, Value>, Invalid> {
    value.as_object().ok_or_else(|| Invalid::expected("an object", value))
}

/// Returns the elements of a list.
pub(super) fn list(value: &Value) -> Result<&[Value], Invalid> {
    value.as_array().map(Vec::as_slice).ok_or_else(|| Invalid::expected("a list", value))
}

/// Returns a text of any length.
pub(super) fn string(value: &Value) -> Result<&str, Invalid> {
    value.as_str().ok_or_else(|| Invalid::expected("a string", value))
}

/// Returns a text that is short enough to be a name.
pub(super) fn short_string(value: &Value) -> Result<&str, Invalid> {
    let text = string(value)?;
    check_length(text)?;
    Ok(text)
}

/// Returns a text that can be the name of something.
pub(super) fn name(value: &Value) -> Result<&str, Invalid> {
    match short_string(value)? {
        "" => Err(Invalid::expected("a name", value)),
        text => Ok(text),
    }
}

/// Refuses a text that is too long for a name or a pattern.
pub(super) fn check_length(text: &str) -> Result<(), Invalid> {
    let (most, bytes) = (super::MAX_NAME_BYTES, text.len());
    if bytes <= most {
        Ok(())
    } else {
        Err(Invalid::new(format!("expected at most {most} bytes, got {bytes}")))
    }
}

/// Refuses fields that are none of `names`.
pub(super) fn check_names(fields: &Map<String, Value>, names: &[&str]) -> Result<(), Invalid> {
    match fields.iter().find(|(name, value)| !value.is_null() && !names.contains(&name.as_str())) {
        Some((name, _)) => {
            Err(Invalid::new(format!("unknown field, expected {}", one_of(names))).in_field(name))
        }
        None => Ok(()),
    }
}

/// Lists names for a refusal: `a, b or c`.
pub(super) fn one_of(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [name] => (*name).to_owned(),
        [names @ .., last] => format!("{} or {last}", names.join(", ")),
    }
}

/// Returns a field, if it is there and not `null`.
pub(super) fn present<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

/// Reads a field that may be absent.
pub(super) fn optional<'a, T>(
    fields: &'a Map<String, Value>,
    name: &str,
    read: impl FnOnce(&'a Value) -> Result<T, Invalid>,
) -> Result<Option<T>, Invalid> {
    present(fields, name).map(read).transpose().map_err(|invalid| invalid.in_field(name))
}

/// Reads a field that must be there; where it is not, `read` says what it expected.
pub(super) fn required<'a, T>(
    fields: &'a Map<String, Value>,
    name: &str,
    read: impl FnOnce(&'a Value) -> Result<T, Invalid>,
) -> Result<T, Invalid> {
    let value = present(fields, name).unwrap_or(&Value::Null);
    read(value).map_err(|invalid| invalid.in_field(name))
}
