//! Keys that are twice in one object.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Returns the first key that an object of a text has twice, and the path of the object.
///
/// # Errors
/// The text is no JSON.
pub(super) fn key(text: &[u8]) -> Result<Option<(String, String)>, serde_json::Error> {
    let Looked(found) = super::trusted(text)?;
    Ok(found.map(|Repeated { path, key }| (path, key)))
}

/// A key that is twice in the object at a path.
struct Repeated {
    path: String,
    key: String,
}

impl Repeated {
    /// Returns the same, seen from the value around it.
    fn within(self, step: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        Self { path: format!("{step}{dot}{}", self.path), key: self.key }
    }
}

/// A value that was looked through, and what was found in it first.
struct Looked(Option<Repeated>);

impl<'de> Deserialize<'de> for Looked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Looks)
    }
}

struct Looks;

impl<'de> Visitor<'de> for Looks {
    type Value = Looked;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Looked, A::Error> {
        let (mut keys, mut found) = (BTreeSet::new(), None);
        while let Some(key) = fields.next_key::<String>()? {
            if found.is_some() {
                fields.next_value::<IgnoredAny>()?;
                continue;
            }
            let Looked(inside) = fields.next_value()?;
            found = inside.map(|inside| inside.within(&key));
            if found.is_none() && keys.contains(&key) {
                found = Some(Repeated { path: String::new(), key });
                continue;
            }
            keys.insert(key);
        }
        Ok(Looked(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Looked, A::Error> {
        let (mut index, mut found) = (0_usize, None);
        while let Some(Looked(inside)) = values.next_element()? {
            found = found.or(inside.map(|inside| inside.within(&format!("[{index}]"))));
            index += 1;
        }
        Ok(Looked(found))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Looked, E> {
        Ok(Looked(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Looked, E> {
        Ok(Looked(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Looked, E> {
        Ok(Looked(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Looked, E> {
        Ok(Looked(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Looked, E> {
        Ok(Looked(None))
    }

    fn visit_unit<E>(self) -> Result<Looked, E> {
        Ok(Looked(None))
    }
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn a_key_is_found_that_an_object_has_twice() {
        for (text, found) in [
            (r#"{"a": 1, "b": 2}"#, None),
            (r#"[{"a": 1}, {"a": 2}, "a", null, true, 1.5, -1]"#, None),
            (r#"{"a": 1, "a": 2}"#, Some(("", "a"))),
            (r#"{"steps": [{}, {"say": "x", "say": "y"}]}"#, Some(("steps[1]", "say"))),
            (r#"{"a": {"b": [[{"c": 1, "c": 2, "c": 3}]]}, "a": 1}"#, Some(("a.b[0][0]", "c"))),
            // However it is written.
            (r#"{"say": 1, "s\u0061y": 2}"#, Some(("", "say"))),
        ] {
            let found = found.map(|(path, key): (&str, &str)| (path.to_owned(), key.to_owned()));
            assert_eq!(key(text.as_bytes()).unwrap(), found, "{text}");
        }
    }
}
