//! Hexadecimal in lower case only: one spelling per value, so that equal bytes are equal texts.
//!
//! Owns the two directions and nothing else; what the bytes mean is the caller's.

use std::fmt;
use std::str::FromStr;

use crate::text::serde_as_text;

/// Bytes whose text is their digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hex<const N: usize>(pub(crate) [u8; N]);

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(&self.0, f)
    }
}

impl<const N: usize> FromStr for Hex<N> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = || format!("expected {} lower-case hexadecimal digits", 2 * N);
        read(text).map(Self).ok_or_else(wanted)
    }
}

serde_as_text!(Hex<32>);

/// Writes `bytes` as lower-case digits.
pub(crate) fn write(bytes: &[u8], out: &mut impl fmt::Write) -> fmt::Result {
    for byte in bytes {
        out.write_char(digit(byte >> 4))?;
        out.write_char(digit(byte & 0xf))?;
    }
    Ok(())
}

/// Reads exactly `N` bytes, or nothing: other lengths and upper case are refused.
pub(crate) fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

/// Returns the digit of a value below 16.
///
/// Computed rather than looked up: secrets pass here, and a table's cache lines would tell of them.
fn digit(value: u8) -> char {
    char::from(if value < 10 { b'0' + value } else { b'a' + value - 10 })
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives() {
        let bytes: [u8; 256] = std::array::from_fn(|n| u8::try_from(n).unwrap());
        let mut text = String::new();
        write(&bytes, &mut text).unwrap();
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"));
        assert_eq!(read(&text), Some(bytes));
    }

    #[test]
    fn one_spelling_and_one_length() {
        assert_eq!(read("0aff"), Some([0x0a, 0xff]));
        for other in ["0aFF", "0af", "0aff0", "0aff00", "0a", "", " 0af", "0agf", "0aéf"] {
            assert_eq!(read::<2>(other), None, "{other:?}");
        }
    }
}
