//! Objects whose fields are those of two types: `serde(flatten)`, read in one go.
//!
//! What serde derives for a flattened field reads all of an object into a buffer, and both types from
//! that. A session has such objects within such objects, and every suspension reads them. Here the
//! fields of one of the types are taken out on the way, and the other type reads the rest where it
//! stands. What is read and what is refused is the same.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};

/// Fields that stand in an object beside those of another type.
pub(crate) trait Beside: Default {
    /// Reads the value of a field if it is one of these; returns whether it is.
    fn take<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        object: &mut A,
    ) -> Result<bool, A::Error>;
}

/// Names fields that stand in an object beside those of another type, each with its name there.
macro_rules! beside {
    ($name:ident { $($text:literal => $field:ident: $type:ty),+ $(,)? }) => {
        #[derive(Default)]
        struct $name {
            $($field: Option<$type>),+
        }

        impl $crate::json::beside::Beside for $name {
            fn take<'de, A: serde::de::MapAccess<'de>>(
                &mut self,
                name: &str,
                object: &mut A,
            ) -> Result<bool, A::Error> {
                match name {
                    $($text if self.$field.is_some() => {
                        Err(serde::de::Error::duplicate_field($text))
                    }
                    $text => {
                        self.$field = Some(object.next_value()?);
                        Ok(true)
                    })+
                    _ => Ok(false),
                }
            }
        }
    };
}

pub(crate) use beside;

/// Reads an object with the fields of two types.
///
/// # Errors
/// It is no object, or one that a type does not take.
pub(crate) fn read<'de, T, B, D>(deserializer: D) -> Result<(T, B), D::Error>
where
    T: Deserialize<'de>,
    B: Beside,
    D: Deserializer<'de>,
{
    deserializer.deserialize_map(Both(PhantomData))
}

/// Returns the value of a field that has to be there.
///
/// # Errors
/// It is not.
pub(crate) fn required<T, E: Error>(value: Option<T>, name: &'static str) -> Result<T, E> {
    value.ok_or_else(|| E::missing_field(name))
}

struct Both<T, B>(PhantomData<(T, B)>);

impl<'de, T: Deserialize<'de>, B: Beside> Visitor<'de> for Both<T, B> {
    type Value = (T, B);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(T, B), A::Error> {
        let mut beside = B::default();
        let rest = Rest { object, beside: &mut beside };
        let value = T::deserialize(MapAccessDeserializer::new(rest))?;
        Ok((value, beside))
    }
}

/// An object without the fields that are taken out of it.
struct Rest<'b, A, B> {
    object: A,
    beside: &'b mut B,
}

impl<'de, A: MapAccess<'de>, B: Beside> MapAccess<'de> for Rest<'_, A, B> {
    type Error = A::Error;

    fn next_key_seed<K>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error>
    where
        K: DeserializeSeed<'de>,
    {
        while let Some(Name(name)) = self.object.next_key()? {
            if self.beside.take(&name, &mut self.object)? {
                continue;
            }
            return match name {
                Cow::Borrowed(name) => seed.deserialize(BorrowedStrDeserializer::new(name)),
                Cow::Owned(name) => seed.deserialize(StrDeserializer::new(&name)),
            }
            .map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.object.next_value_seed(seed)
    }
}

/// The name of a field, where it stands if it can be had there.
struct Name<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;

        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field's name")
            }

            fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_identifier(NameVisitor)
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Deserializer};
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Inner {
        a: u8,
        #[serde(default)]
        b: Option<String>,
    }

    /// What serde derives.
    #[derive(Debug, PartialEq, Deserialize)]
    struct Derived {
        #[serde(flatten)]
        inner: Box<Inner>,
        c: u8,
        #[serde(default)]
        d: Option<Vec<u8>>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct DerivedOuter {
        #[serde(flatten)]
        derived: Derived,
        e: bool,
    }

    beside! { DerivedFields { "c" => c: u8, "d" => d: Option<Vec<u8>> } }
    beside! { OuterFields { "e" => e: bool } }

    struct Read(Derived);

    impl<'de> Deserialize<'de> for Read {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let (inner, DerivedFields { c, d }) = read(deserializer)?;
            Ok(Self(Derived { inner, c: required(c, "c")?, d: d.flatten() }))
        }
    }

    struct ReadOuter(DerivedOuter);

    impl<'de> Deserialize<'de> for ReadOuter {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let (Read(derived), OuterFields { e }) = read(deserializer)?;
            Ok(Self(DerivedOuter { derived, e: required(e, "e")? }))
        }
    }

    #[test]
    fn fields_of_two_types_are_read_as_serde_reads_them() {
        for text in [
            r#"{"a":1,"c":2,"e":true}"#,
            r#"{"e":false,"d":[1,2],"c":2,"b":"x","a":1}"#,
            r#"{"a":1,"b":null,"c":2,"d":null,"e":true}"#,
            r#"{"a":1,"\u0063":2,"\u0065":true,"\u0062":"x"}"#,
            r#"{"a":1,"c":2,"e":true,"unknown":{"a":3,"c":[4]}}"#,
            // A field is missing, is there twice, or is of another type.
            r#"{"a":1,"e":true}"#,
            r#"{"c":2,"e":true}"#,
            r#"{"a":1,"c":2}"#,
            r#"{"a":1,"a":1,"c":2,"e":true}"#,
            r#"{"a":1,"c":2,"c":2,"e":true}"#,
            r#"{"a":1,"c":2,"e":true,"e":true}"#,
            r#"{"a":1,"c":null,"e":true}"#,
            r#"{"a":"x","c":2,"e":true}"#,
            r#"{"a":1,"c":2,"d":7,"e":true}"#,
            "[1,2,true]",
            "{",
        ] {
            let derived = trusted::<DerivedOuter>(text);
            let read = trusted::<ReadOuter>(text).map(|ReadOuter(outer)| outer);
            assert_eq!(read, derived, "{text}");
        }
        let value = json!({"a": 1, "c": 2, "e": true});
        let ReadOuter(read) = ReadOuter::deserialize(value).unwrap();
        assert_eq!((read.derived.inner.a, read.derived.c, read.e), (1, 2, true));
    }

    /// Reads a text; what is wrong with it may be said in other words.
    fn trusted<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, ()> {
        crate::json::trusted(text.as_bytes()).map_err(drop)
    }
}
