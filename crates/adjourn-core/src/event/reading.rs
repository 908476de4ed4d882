//! Reading events, by hand: with a derived reader every event would first be copied into a
//! generic value, which takes longer than all the rest of reading a journal.

use std::cell::Cell;

use serde::Deserialize;
use serde::de::value::{EnumAccessDeserializer, StrDeserializer, UnitDeserializer};
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer as _, MapAccess,
    VariantAccess, Visitor,
};

use super::{Event, What};

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Event;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an event")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
                let (mut at, mut by, mut what) = (None, None, None);
                while let Some(field) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                    match &*field {
                        "at" => at = Some(map.next_value()?),
                        "by" => by = Some(map.next_value()?),
                        // A kind and its version.
                        kind if kind.contains('/') => {
                            what = Some(map.next_value_seed(Kind(kind))?);
                        }
                        _ => {
                            map.next_value::<de::IgnoredAny>()?;
                        }
                    }
                }
                let at = at.ok_or_else(|| de::Error::missing_field("at"))?;
                let by = by.ok_or_else(|| de::Error::missing_field("by"))?;
                let what = what.ok_or_else(|| de::Error::custom("an event of no kind"))?;
                Ok(Event { at, by, what })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Reads what happened, of the kind that was named before it.
struct Kind<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Kind<'_> {
    type Value = What;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<What, D::Error> {
        What::deserialize(EnumAccessDeserializer::new(Variant { kind: self.0, deserializer }))
    }
}

impl What {
    /// Returns whether this program knows a kind, with its version.
    pub(crate) fn knows(kind: &str) -> bool {
        let known = Cell::new(false);
        // It always fails: the kind is there, and nothing that happened.
        let _ = Self::deserialize(EnumAccessDeserializer::new(Probe { kind, known: &known }));
        known.get()
    }
}

/// Takes note whether a kind is known, and has nothing to read behind it.
struct Probe<'a> {
    kind: &'a str,
    known: &'a Cell<bool>,
}

impl<'de> EnumAccess<'de> for Probe<'_> {
    type Error = de::value::Error;
    type Variant = Payload<UnitDeserializer<Self::Error>>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self::Variant), Self::Error> {
        let kind: StrDeserializer<'_, Self::Error> = self.kind.into_deserializer();
        let kind = seed.deserialize(kind)?;
        self.known.set(true);
        Ok((kind, Payload(().into_deserializer())))
    }
}

struct Variant<'a, D> {
    kind: &'a str,
    deserializer: D,
}

impl<'de, D: Deserializer<'de>> EnumAccess<'de> for Variant<'_, D> {
    type Error = D::Error;
    type Variant = Payload<D>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Payload<D>), D::Error> {
        let kind = seed.deserialize(self.kind.into_deserializer())?;
        Ok((kind, Payload(self.deserializer)))
    }
}

struct Payload<D>(D);

impl<'de, D: Deserializer<'de>> VariantAccess<'de> for Payload<D> {
    type Error = D::Error;

    fn unit_variant(self) -> Result<(), D::Error> {
        Err(de::Error::custom("every kind of event has a payload"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, D::Error> {
        seed.deserialize(self.0)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, D::Error> {
        Err(de::Error::custom("no kind of event is a tuple"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, D::Error> {
        Err(de::Error::custom("every kind of event has a type of its own"))
    }
}
