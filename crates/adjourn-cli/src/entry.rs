//! What happened and what was said, as objects for programs: one for each entry of the journal and
//! of the transcript.
//!
//! The journal's own bytes are hashed and signed, and stay as they are; only what is printed is
//! made easier to read.

use adjourn::Moment;
use adjourn::core::Event;
use adjourn::core::time::Timestamp;
use adjourn::driver::Message;
use serde_json::{Map, Value, json};

/// Fields that hold a time; the journal has it as a number.
const TIMES: &[&str] = &[
    "at",
    "time",
    "createdAt",
    "startedAt",
    "requestedAt",
    "suspendedAt",
    "resumedAt",
    "abandonAt",
];
/// Fields that hold what others wrote, in their own words; times in them are text already.
const THEIRS: &[&str] = &["conditions", "driver", "labels", "meta", "value"];

/// Returns what happened as an object: which entry it is, when, who asked for it, its name and its
/// fields; also who committed it, if that was another actor.
pub fn happened(revision: u64, event: &Event) -> Value {
    let by = event.asked_by();
    let mut object = json!({ "revision": revision, "at": event.at.to_string(), "by": by });
    if let Some(object) = object.as_object_mut().filter(|_| *by != event.by) {
        object.insert("committedBy".to_owned(), json!(event.by));
    }
    // An event is one key that names its kind and version, and an object of text and numbers; it
    // always encodes.
    let Ok(Value::Object(what)) = serde_json::to_value(&event.what) else { return object };
    let Some(object_fields) = object.as_object_mut() else { return object };
    for (kind, fields) in what {
        let (name, version) = kind.split_once('/').unwrap_or((&kind, "1"));
        object_fields.insert("event".to_owned(), name.into());
        object_fields.insert("version".to_owned(), version.parse::<u64>().unwrap_or(1).into());
        if let Value::Object(mut fields) = fields {
            write_times(&mut fields);
            object_fields.extend(fields);
        }
    }
    object
}

/// Writes times as text, as everywhere else.
fn write_times(fields: &mut Map<String, Value>) {
    for (name, value) in fields {
        match value {
            Value::Number(number) if TIMES.contains(&name.as_str()) => {
                if let Some(millis) = number.as_i64() {
                    *value = Timestamp::from_millis(millis).to_string().into();
                }
            }
            Value::Object(fields) if !THEIRS.contains(&name.as_str()) => write_times(fields),
            _ => {}
        }
    }
}

/// Returns what was said as an object, with its place in the transcript, the entry of the journal
/// that it came with, and its words beside the blocks that they stand in.
pub fn said(moment: &Moment, index: u64, said: &Message) -> Value {
    let Moment { revision, event, .. } = moment;
    let mut object = json!({ "index": index, "revision": revision, "at": event.at.to_string() });
    if let (Some(object), Ok(Value::Object(fields))) =
        (object.as_object_mut(), serde_json::to_value(said))
    {
        object.extend(fields);
        object.insert("text".to_owned(), said.text().into());
    }
    object
}

#[cfg(test)]
mod tests {
    use adjourn::core::journal::Entry;

    use super::*;

    /// Returns whether a number that can only be a time is left.
    fn has_millis(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.as_i64().is_some_and(|number| number > 1 << 40),
            Value::Array(values) => values.iter().any(has_millis),
            Value::Object(fields) => fields.values().any(has_millis),
            _ => false,
        }
    }

    #[test]
    fn every_event_ever_written_is_shown_with_its_times_as_text() {
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../adjourn-core/tests/golden");
        let mut names = std::collections::BTreeSet::new();
        for file in std::fs::read_dir(golden).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let Ok(entry) = serde_json::from_str::<Entry>(&text) else { continue };
            let shown = happened(entry.revision, &entry.event);
            assert_eq!(shown["event"], entry.event.what.name(), "{path:?}");
            assert_eq!(shown["version"], 1, "{path:?}");
            assert!(!has_millis(&shown), "{path:?}: {shown}");
            let what = serde_json::to_value(&entry.event.what).unwrap();
            let fields = what.as_object().unwrap().values().next().unwrap();
            // Five say which event it is; none of its fields has a name of theirs.
            let (all, own) = (shown.as_object().unwrap().len(), fields.as_object().unwrap().len());
            let committed = usize::from(shown.get("committedBy").is_some());
            assert_eq!(all, own + 5 + committed, "{path:?}: {shown}");
            assert_eq!(committed == 0, *entry.event.asked_by() == entry.event.by);
            names.insert(entry.event.what.name());
        }
        // That there is one for every event is checked where they are written.
        assert!(names.len() >= 26, "{names:?}");
    }
}
