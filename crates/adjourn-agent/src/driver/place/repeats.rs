//! How often an agent has asked for each call: by that it is known to go round in circles.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many calls are counted; the one that was asked for the longest time ago is forgotten first, so
/// that a circle is found whatever was asked for before it.
const REPEATS: usize = 64;

/// How often each call was asked for, by its signature. The one that was asked for last comes last.
///
/// It is written as an object whose names stand in that order. The names of earlier states stand in
/// the order of the alphabet, which is as good as any to begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Repeats(Vec<(String, u64)>);

impl Repeats {
    /// Returns how often a call was asked for.
    pub(crate) fn of(&self, signature: &str) -> u64 {
        let found = self.0.iter().find(|(counted, _)| counted == signature);
        found.map_or(0, |(_, count)| *count)
    }

    /// Counts a call, and returns how often it was asked for.
    pub(crate) fn count(&mut self, signature: String) -> u64 {
        let count = self.of(&signature).saturating_add(1);
        self.0.retain(|(counted, _)| *counted != signature);
        if self.0.len() >= REPEATS {
            self.0.remove(0);
        }
        self.0.push((signature, count));
        count
    }

    /// Halves the counts, so that each call may be made again at least once; `hard` is the number of
    /// equal calls that is a loop.
    pub(crate) fn decay(&mut self, hard: u64) {
        for (_, count) in &mut self.0 {
            *count = (*count / 2).min(hard.saturating_sub(2));
        }
        self.0.retain(|(_, count)| *count > 0);
    }
}

impl Serialize for Repeats {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(signature, count)| (signature, count)))
    }
}

impl<'de> Deserialize<'de> for Repeats {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Repeats;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a count for each call")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Repeats, A::Error> {
                let mut counts = Vec::new();
                while let Some(count) = map.next_entry()? {
                    counts.push(count);
                }
                Ok(Repeats(counts))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use adjourn_core::json;

    use super::*;

    #[test]
    fn as_many_calls_as_are_counted_are_known_as_a_circle() {
        let mut repeats = Repeats::default();
        for round in 1..=6 {
            for call in 0..REPEATS {
                assert_eq!(repeats.count(format!("call:{call}")), round);
            }
        }
        assert_eq!(repeats.count("another".to_owned()), 1);
        assert_eq!(repeats.of("call:0"), 0, "that is the one longest ago");
        assert_eq!(repeats.of("call:1"), 6);
        assert_eq!(repeats.0.len(), REPEATS);
    }

    #[test]
    fn the_order_is_kept_with_the_counts_and_any_order_is_read() {
        let earlier = r#"{"a":1,"b":7,"c":2}"#;
        let mut repeats: Repeats = json::stored_text(earlier).unwrap();
        assert_eq!([repeats.of("a"), repeats.of("b"), repeats.of("c")], [1, 7, 2]);
        assert_eq!(repeats.count("a".to_owned()), 2);
        let written = serde_json::to_string(&repeats).unwrap();
        assert_eq!(written, r#"{"b":7,"c":2,"a":2}"#);
        let mut read: Repeats = json::stored_text(&written).unwrap();
        assert_eq!(read, repeats);
        for call in 0..REPEATS - 2 {
            read.count(format!("call:{call}"));
        }
        assert_eq!([read.of("b"), read.of("c"), read.of("a")], [0, 2, 2]);
    }
}
