//! The bytes of one entry: what a journal row stores, and what is hashed.
//!
//! Byte 0 says how the rest is written. Owns that byte and the way in and out of JSON; must not know
//! what an entry means.

use adjourn_core::json;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How the bytes after byte 0 are written.
///
/// Byte 0 has the codec in its high four bits and the codec's version in its low four. Neither is
/// ever zero, so a blank row is not an entry. A codec that was once written stays readable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// JSON text in UTF-8, version 1: byte `0x11`.
    Json1,
}

const JSON: u8 = 1;

impl Codec {
    /// Returns byte 0 of entries in this codec.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Json1 => JSON << 4 | 1,
        }
    }

    /// Reads byte 0.
    ///
    /// # Errors
    /// A codec, or a version of a codec, that this program does not know.
    pub const fn from_byte(byte: u8) -> Result<Self, Error> {
        match (byte >> 4, byte & 0xf) {
            (JSON, 1) => Ok(Self::Json1),
            (JSON, version) => Err(Error::UnknownVersion { byte, codec: "JSON", version }),
            _ => Err(Error::UnknownCodec { byte }),
        }
    }
}

/// Why bytes are not an entry, or a value cannot be one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is not even byte 0.
    #[error("entry is empty: byte 0, which says its codec, is missing")]
    Empty,
    /// The high four bits of byte 0 name no codec.
    #[error("entry has unknown codec byte {byte:#04x}")]
    UnknownCodec {
        /// Byte 0 as found.
        byte: u8,
    },
    /// The codec is known, but not in the version that the low four bits name.
    #[error("entry has unknown codec byte {byte:#04x}: version {version} of {codec}")]
    UnknownVersion {
        /// Byte 0 as found.
        byte: u8,
        /// The codec that the high four bits name.
        codec: &'static str,
        /// The version that the low four bits name.
        version: u8,
    },
    /// The value has no JSON form, for example a map whose keys are not strings.
    #[error("value cannot be written as a JSON entry")]
    Unwritable(#[source] serde_json::Error),
    /// The bytes after byte 0 are not the wanted value.
    #[error("JSON entry cannot be read")]
    Unreadable(#[source] serde_json::Error),
}

/// Writes a value as the bytes of an entry.
///
/// # Errors
/// [`Error::Unwritable`] where the value has no form in this codec.
pub fn encode(codec: Codec, value: &impl Serialize) -> Result<Vec<u8>, Error> {
    // Most entries are 1-2 KiB (perf.md); starting there spares the growing from one byte.
    const USUAL: usize = 1024;
    let mut bytes = Vec::with_capacity(USUAL);
    bytes.push(codec.byte());
    match codec {
        Codec::Json1 => serde_json::to_writer(&mut bytes, value).map_err(Error::Unwritable)?,
    }
    Ok(bytes)
}

/// Splits an entry into its codec and the bytes written in it.
///
/// # Errors
/// [`Error::Empty`], [`Error::UnknownCodec`] or [`Error::UnknownVersion`].
pub fn decode(entry: &[u8]) -> Result<(Codec, &[u8]), Error> {
    let (byte, payload) = entry.split_first().ok_or(Error::Empty)?;
    Ok((Codec::from_byte(*byte)?, payload))
}

/// Reads the value of an entry.
///
/// # Errors
/// Those of [`decode`], and [`Error::Unreadable`] where the payload is not a `T`.
pub fn read<T: DeserializeOwned>(entry: &[u8]) -> Result<T, Error> {
    match decode(entry)? {
        (Codec::Json1, payload) => json::stored(payload).map_err(Error::Unreadable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_comes_back() {
        let entry = encode(Codec::Json1, &("suspended", 7)).unwrap();
        assert_eq!(entry, b"\x11[\"suspended\",7]");
        assert_eq!(decode(&entry).unwrap(), (Codec::Json1, &b"[\"suspended\",7]"[..]));
        assert_eq!(read::<(String, u32)>(&entry).unwrap(), ("suspended".to_owned(), 7));
    }

    #[test]
    fn only_bytes_that_were_ever_written_are_known() {
        for byte in 0..=u8::MAX {
            match Codec::from_byte(byte) {
                Ok(codec) => assert_eq!(codec.byte(), byte),
                Err(error) => assert!(error.to_string().contains(&format!("{byte:#04x}"))),
            }
        }
        assert_eq!(
            Codec::from_byte(0x12).unwrap_err().to_string(),
            "entry has unknown codec byte 0x12: version 2 of JSON"
        );
        assert_eq!(
            Codec::from_byte(0x00).unwrap_err().to_string(),
            "entry has unknown codec byte 0x00"
        );
        assert!(matches!(decode(&[]), Err(Error::Empty)));
        assert!(matches!(read::<u32>(b"\x11{"), Err(Error::Unreadable(_))));
    }
}
