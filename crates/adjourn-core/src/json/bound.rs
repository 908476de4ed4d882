//! How long the JSON of a value can be at most, without writing it.
//!
//! Every command that adds to a session has the session's JSON measured, and hardly any session is
//! near its limit. So nothing is formatted or searched for escapes here: a text counts as if each of
//! its bytes were escaped, a number as if it had all of its digits.

use std::fmt;

use serde::ser::{self, Serialize};

/// The most bytes that one byte of a text takes: `\u0000`.
const ESCAPED: usize = 6;
/// The most bytes of a number of 64 bits, whole or not, and the quotes around one that is a key.
const NUMBER: usize = 32;
/// The same with 128 bits.
const LONG_NUMBER: usize = 48;

/// Returns a number of bytes that the JSON of a value is not longer than.
///
/// # Errors
/// The value's own serialization fails.
pub(crate) fn bound<T: Serialize + ?Sized>(value: &T) -> Result<usize, serde_json::Error> {
    let mut bytes = Bytes(0);
    value.serialize(&mut bytes)?;
    Ok(bytes.0)
}

/// The bytes so far.
struct Bytes(usize);

impl Bytes {
    fn text(&mut self, text: &str) {
        self.0 = self.0.saturating_add(text.len().saturating_mul(ESCAPED)).saturating_add(2);
    }

    /// Counts the name of a field or a variant: it has nothing to escape, and is followed by a colon.
    fn name(&mut self, name: &str) {
        self.0 += name.len() + "\"\":".len();
    }

    /// Begins an array or an object.
    fn open(&mut self) -> &mut Self {
        self.0 += "[]".len();
        self
    }

    /// Begins an object with one field, which is an array or an object.
    fn open_variant(&mut self, name: &str) -> &mut Self {
        self.open().name(name);
        self.open()
    }

    /// Counts one part of an array or an object, and the comma behind it.
    fn part<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), serde_json::Error> {
        self.0 += ",".len();
        value.serialize(self)
    }
}

impl ser::Serializer for &mut Bytes {
    type Ok = ();
    type Error = serde_json::Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_bool(self, _: bool) -> Result<(), Self::Error> {
        self.0 += "false".len();
        Ok(())
    }

    fn serialize_i8(self, _: i8) -> Result<(), Self::Error> {
        self.0 += NUMBER;
        Ok(())
    }

    fn serialize_i16(self, _: i16) -> Result<(), Self::Error> {
        self.0 += NUMBER;
        Ok(())
    }

    fn serialize_i32(self, _: i32) -> Result<(), Self::Error> {
        self.0 += NUMBER;
        Ok(())
    }

    fn serialize_i64(self, _: i64) -> Result<(), Self::Error> {
        self.0 += NUMBER;
        Ok(())
    }

    fn serialize_i128(self, _: i128) -> Result<(), Self::Error> {
        self.0 += LONG_NUMBER;
        Ok(())
    }

    fn serialize_u8(self, _: u8) -> Result<(), Self::Error> {
        self.0 += NUMBER;
        Ok(())
    }

    fn serialize_u16(self, _: u16) -> Result<(), Self::Error> {
        self.0 += NUMBER;
        Ok(())
    }

    fn serialize_u32(self, _: u32) -> Result<(), Self::Error> {
        self.0 += NUMBER;
        Ok(())
    }

    fn serialize_u64(self, _: u64) -> Result<(), Self::Error> {
        self.0 += NUMBER;
        Ok(())
    }

    fn serialize_u128(self, _: u128) -> Result<(), Self::Error> {
        self.0 += LONG_NUMBER;
        Ok(())
    }

    fn serialize_f32(self, _: f32) -> Result<(), Self::Error> {
        self.0 += NUMBER;
        Ok(())
    }

    fn serialize_f64(self, _: f64) -> Result<(), Self::Error> {
        self.0 += NUMBER;
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Self::Error> {
        self.text(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<(), Self::Error> {
        self.text(value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Self::Error> {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result<(), Self::Error> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Self::Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Self::Error> {
        self.0 += "null".len();
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Self::Error> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), Self::Error> {
        self.name(variant);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Self::Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Self::Error> {
        self.open().name(variant);
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Self::Error> {
        Ok(self.open())
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Self::Error> {
        Ok(self.open())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Self::Error> {
        Ok(self.open())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Self::Error> {
        Ok(self.open_variant(variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Self::Error> {
        Ok(self.open())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Self::Error> {
        Ok(self.open())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self, Self::Error> {
        Ok(self.open_variant(variant))
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, value: &T) -> Result<(), Self::Error> {
        self.text(&value.to_string());
        Ok(())
    }
}

impl ser::SerializeSeq for &mut Bytes {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Self::Error> {
        self.part(value)
    }

    fn end(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl ser::SerializeTuple for &mut Bytes {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Self::Error> {
        self.part(value)
    }

    fn end(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl ser::SerializeTupleStruct for &mut Bytes {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Self::Error> {
        self.part(value)
    }

    fn end(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl ser::SerializeTupleVariant for &mut Bytes {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Self::Error> {
        self.part(value)
    }

    fn end(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl ser::SerializeMap for &mut Bytes {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Self::Error> {
        self.part(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Self::Error> {
        self.0 += ":".len();
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl ser::SerializeStruct for &mut Bytes {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Self::Error> {
        self.name(name);
        self.part(value)
    }

    fn end(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

impl ser::SerializeStructVariant for &mut Bytes {
    type Ok = ();
    type Error = serde_json::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Self::Error> {
        self.name(name);
        self.part(value)
    }

    fn end(self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;

    /// One of each shape that types of this crate have.
    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(i64),
        Tuple(bool, char),
        Struct { name: String, rest: Option<Box<Shape>> },
    }

    #[derive(Serialize)]
    struct Flattened {
        nothing: Option<u8>,
        unit: (),
        #[serde(flatten)]
        rest: BTreeMap<String, u64>,
    }

    fn holds<T: Serialize>(value: &T) {
        let text = serde_json::to_string(value).unwrap();
        let bound = bound(value).unwrap();
        assert!(bound >= text.len(), "{bound} bytes for {text}");
    }

    #[test]
    fn no_shape_is_longer_than_its_bound() {
        holds(&Shape::Unit);
        holds(&Shape::Newtype(i64::MIN));
        holds(&Shape::Tuple(true, '\u{1}'));
        let inner = Shape::Struct { name: "\u{1}\"\\/é".to_owned(), rest: None };
        holds(&Shape::Struct { name: String::new(), rest: Some(Box::new(inner)) });
        let rest = BTreeMap::from([(String::new(), 0), ("\t".to_owned(), u64::MAX)]);
        holds(&Flattened { nothing: None, unit: (), rest });
        holds(&BTreeMap::from([(i64::MIN, ()), (i64::MAX, ())]));
        holds(&(i128::MIN, u128::MAX, [[0u8; 0]; 9], [(); 9], [false; 9], "".to_owned()));
        holds(&(f64::MIN_POSITIVE, f64::MIN, f32::MIN_POSITIVE, f32::MIN, -0.0, f64::NAN));
        holds(&serde_json::value::to_raw_value(&json!({"a": [1.5]})).unwrap());
    }

    #[test]
    fn a_bound_is_not_so_far_from_the_length_that_sessions_are_measured_for_nothing() {
        let value =
            json!({"id": "sess-01a1df44-c97b-7076-bba7-8d66d49eebf9", "at": 1794970913839_u64});
        assert!(bound(&value).unwrap() < 8 * value.to_string().len());
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\\x00-\\x22\\\\]*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_json_is_longer_than_its_bound(value in values()) {
            holds(&value);
        }
    }
}
