//! The one reader of JSON: of what comes from outside, and of what was stored.
//!
//! serde_json reads an object whose first key is one of its private names as the text of another
//! document, with a fresh limit on its depth. Values of any depth can be smuggled in that way; the
//! next reader of what was written of them overflows its stack, or refuses it. So nothing from
//! outside is handed to serde_json before [`read`] or [`check`] has seen it.
//!
//! # Contract
//!
//! What [`read`] accepts nests at most [`limits::JSON_DEPTH`] deep. Events, entries and messages
//! wrap fewer levels around it than are left to serde_json's own limit of 127, so [`stored`] reads
//! whatever was made of it, for ever.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use memchr::memmem::{self, Finder};
use serde::Deserialize;
use serde::de::Error as _;

use crate::limits;

pub(crate) mod beside;
mod bound;
mod repeated;

pub(crate) use bound::bound;

/// How the keys begin that mean something to serde_json itself.
const PRIVATE: &str = "$serde_json::private::";

/// How many steps of a path are named; the deepest have none that helps.
const STEPS: usize = 5;
/// How much of a key is named.
const KEY_CHARACTERS: usize = 40;

/// Why a text from outside is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// The text is too long.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// How long it may be.
        limit: usize,
    },
    /// Arrays and objects lie too deep in one another.
    #[error("{}nested deeper than {} levels, at byte {byte}", at(path), limits::JSON_DEPTH)]
    TooDeep {
        /// Where, as far as it helps; empty where it has no name.
        path: String,
        /// Where, in the text.
        byte: usize,
    },
    /// There are more values than anybody has use for.
    #[error("{}more than {} values, at byte {byte}", at(path), limits::JSON_VALUES)]
    TooMany {
        /// Where, as far as it helps; empty where it has no name.
        path: String,
        /// Where, in the text.
        byte: usize,
    },
    /// A key is one that the parser keeps for itself.
    #[error("{}a key must not begin with {PRIVATE:?}, at byte {byte}", at(path))]
    Reserved {
        /// The object that has the key; empty where it has no name.
        path: String,
        /// Where, in the text.
        byte: usize,
    },
    /// The text begins with a mark that some editors write and that is no JSON.
    #[error("not JSON: it begins with a byte order mark; save it as UTF-8 without one")]
    ByteOrderMark,
    /// An object has a key twice: which of the values counts is left to each reader.
    #[error("{}the key {key:?} is there twice", at(path))]
    Twice {
        /// The object that has the key; empty where it has no name.
        path: String,
        /// The key.
        key: String,
    },
    /// The text is no JSON, or JSON of another shape.
    #[error("{}", crate::syntax::problem(.0))]
    Malformed(#[from] serde_json::Error),
}

impl Unreadable {
    /// Returns where in the value it is, if that has a name.
    pub fn path(&self) -> &str {
        match self {
            Self::TooDeep { path, .. }
            | Self::TooMany { path, .. }
            | Self::Reserved { path, .. }
            | Self::Twice { path, .. } => path,
            Self::TooLong { .. } | Self::ByteOrderMark | Self::Malformed(_) => "",
        }
    }

    /// Returns what is wrong, for callers that say where in other words.
    pub fn problem(&self) -> String {
        let all = self.to_string();
        match self.path() {
            "" => all,
            path => all.strip_prefix(&*at(path)).map(str::to_owned).unwrap_or(all),
        }
    }
}

impl From<Unreadable> for serde_json::Error {
    fn from(unreadable: Unreadable) -> Self {
        match unreadable {
            Unreadable::Malformed(error) => error,
            refused => Self::custom(refused),
        }
    }
}

/// Reads a text from outside, of at most `limit` bytes.
///
/// # Errors
/// What is wrong with it, and where.
pub fn read<'de, T: Deserialize<'de>>(text: &'de [u8], limit: usize) -> Result<T, Unreadable> {
    check(text, limit)?;
    trusted(text).map_err(|error| match text.starts_with(b"\xef\xbb\xbf") {
        true => Unreadable::ByteOrderMark,
        false => Unreadable::Malformed(error),
    })
}

/// Reads a text from outside that a person has written, of at most `limit` bytes: a key that is
/// there twice is a slip, and refused.
///
/// # Errors
/// What is wrong with it, and where.
pub fn read_written<'de, T>(text: &'de [u8], limit: usize) -> Result<T, Unreadable>
where
    T: Deserialize<'de>,
{
    let value = read(text, limit)?;
    match repeated::key(text).map_err(Unreadable::Malformed)? {
        Some((path, key)) => Err(Unreadable::Twice { path, key }),
        None => Ok(value),
    }
}

/// Refuses a text from outside that is longer than `limit` bytes, nests too deep, has too many
/// values or a key of serde_json's own. Whether it is JSON shows when it is read.
///
/// # Errors
/// What is wrong with it, and where.
pub fn check(text: &[u8], limit: usize) -> Result<(), Unreadable> {
    if text.len() > limit {
        return Err(Unreadable::TooLong { limit });
    }
    scan(text, limits::JSON_DEPTH, limits::JSON_VALUES).map_err(|(found, byte)| {
        let path = path(text, byte);
        match found {
            Found::Depth => Unreadable::TooDeep { path, byte },
            Found::Values => Unreadable::TooMany { path, byte },
            Found::Private => Unreadable::Reserved { path, byte },
        }
    })
}

/// Reads what this program or an older one has stored.
///
/// Older ones checked less: a key of serde_json's own is an error here, too.
///
/// # Errors
/// The bytes are not what was stored, or are such that they cannot be read safely.
pub fn stored<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, serde_json::Error> {
    refuse_private(bytes)?;
    trusted(bytes)
}

/// Reads what was stored, as [`stored`] does, where it is known to be text already: none of it is
/// looked at again for being UTF-8.
///
/// # Errors
/// The text is not what was stored, or is such that it cannot be read safely.
#[expect(clippy::disallowed_methods, reason = "it was looked through")]
pub fn stored_text<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, serde_json::Error> {
    refuse_private(text.as_bytes())?;
    serde_json::from_str(text)
}

/// Splits the text of an object whose last value begins and ends with these: returns what comes
/// before that value's beginning, and what comes up to its end.
pub fn split_last<'t>(object: &'t str, begin: &str, end: &str) -> Option<(&'t str, &'t str)> {
    let object = object.strip_suffix(end)?;
    let (before, rest) =
        object.split_at_checked(memmem::find(object.as_bytes(), begin.as_bytes())?)?;
    Some((before, rest.strip_prefix(begin)?))
}

/// Reads the objects of a list that was stored, which is given without its brackets: returns each
/// with its text. Returns nothing if there is more between them than a comma, or if one of them
/// cannot be read as [`stored`] does it. Room is made for as many as are `expected`.
pub fn stored_list<'de, T: Deserialize<'de>>(
    list: &'de str,
    expected: usize,
) -> Option<Vec<(T, &'de str)>> {
    refuse_private(list.as_bytes()).ok()?;
    let (mut rest, mut objects) = (list, Vec::with_capacity(expected));
    while rest.starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        let object = values.next()?.ok()?;
        let (text, behind) = rest.split_at_checked(values.byte_offset())?;
        objects.push((object, text));
        match behind.strip_prefix(',') {
            Some(next) if next.starts_with('{') => rest = next,
            Some(_) => return None,
            None => return behind.is_empty().then_some(objects),
        }
    }
    rest.is_empty().then_some(objects)
}

/// Refuses what was stored if it has a key of serde_json's own.
fn refuse_private(bytes: &[u8]) -> Result<(), serde_json::Error> {
    /// Without one of these no key is private, however it is escaped. What is stored rarely has
    /// either, and looking for them costs next to nothing.
    static SIGNS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [Finder::new(PRIVATE), Finder::new(r"\u")]);
    if SIGNS.iter().any(|sign| sign.find(bytes).is_some())
        && let Err((_, byte)) = scan(bytes, usize::MAX, usize::MAX)
    {
        return Err(serde_json::Error::custom(format!(
            "a key begins with {PRIVATE:?}, at byte {byte}"
        )));
    }
    Ok(())
}

/// Reads a text that was looked through.
#[expect(clippy::disallowed_methods, reason = "it was looked through")]
pub(crate) fn trusted<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(text)
}

/// What a text must not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Depth,
    Values,
    Private,
}

/// Looks through a text once, up to the first thing in it that must not be there.
///
/// It need not be JSON: a parser stops at the first byte that is none, and up to there both agree
/// on what is a key and how deep it lies.
fn scan(text: &[u8], depth: usize, values: usize) -> Result<(), (Found, usize)> {
    let (mut open, mut count, mut place) = (0_usize, 0_usize, 0_usize);
    while let Some(byte) = text.get(place) {
        match byte {
            b'"' => {
                let (string, end) = string(text, place + 1);
                if string.is_suspect() && is_key(text, end) && string.is_private() {
                    return Err((Found::Private, place));
                }
                place = end;
                continue;
            }
            b'[' | b'{' => {
                open += 1;
                count += 1;
                if open > depth {
                    return Err((Found::Depth, place));
                }
            }
            b']' | b'}' => open = open.saturating_sub(1),
            b',' => count += 1,
            _ => {}
        }
        if count > values {
            return Err((Found::Values, place));
        }
        place += 1;
    }
    Ok(())
}

/// A string as it is written, without its quotes.
#[derive(Clone, Copy)]
struct Written<'a> {
    text: &'a [u8],
    escaped: bool,
}

impl Written<'_> {
    /// Whether it can be a private name at all.
    fn is_suspect(&self) -> bool {
        self.escaped || self.text.first() == Some(&b'$')
    }

    fn is_private(&self) -> bool {
        let mut rest = self.text;
        PRIVATE.bytes().all(|expected| unescaped(&mut rest) == Some(expected))
    }
}

/// Takes the string that begins behind a quote; returns it, and where the text goes on.
fn string(text: &[u8], start: usize) -> (Written<'_>, usize) {
    let (mut end, mut escaped) = (start, false);
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let Some(length) = memchr::memchr2(b'"', b'\\', rest) else {
            // It has no end; no parser takes it for a string.
            return (Written { text: rest, escaped }, text.len());
        };
        end += length;
        if text.get(end) == Some(&b'"') {
            let text = text.get(start..end).unwrap_or_default();
            return (Written { text, escaped }, end + 1);
        }
        escaped = true;
        end += 2;
    }
}

/// Returns whether the string that ends here is a key.
fn is_key(text: &[u8], end: usize) -> bool {
    text.get(end..).unwrap_or_default().trim_ascii_start().first() == Some(&b':')
}

/// Takes the next character off a string, if it is one that a private name can have.
fn unescaped(rest: &mut &[u8]) -> Option<u8> {
    let (first, tail) = rest.split_first()?;
    *rest = tail;
    if *first != b'\\' {
        return Some(*first);
    }
    // Of all escapes, only one by its number gives a character of such a name.
    let digits = tail.strip_prefix(b"u")?.get(..4)?;
    *rest = tail.get(5..)?;
    u8::from_str_radix(std::str::from_utf8(digits).ok()?.strip_prefix("00")?, 16).ok()
}

/// Returns the path of the value that a byte belongs to, by its first few steps.
fn path(text: &[u8], byte: usize) -> String {
    enum Step<'a> {
        Key(&'a [u8]),
        Index(usize),
    }
    let (mut steps, mut place) = (Vec::new(), 0);
    while let Some(next) = text.get(place).filter(|_| place < byte) {
        place += 1;
        match (next, steps.last_mut()) {
            (b'[', _) => steps.push(Step::Index(0)),
            (b'{', _) => steps.push(Step::Key(b"")),
            (b']' | b'}', _) => {
                steps.pop();
            }
            (b',', Some(Step::Index(index))) => *index += 1,
            (b',', Some(Step::Key(key))) => *key = b"",
            (b'"', last) => {
                let (string, end) = string(text, place);
                place = end;
                if let Some(Step::Key(key)) = last
                    && is_key(text, end)
                {
                    *key = string.text;
                }
            }
            _ => {}
        }
    }
    let mut path = String::new();
    for step in steps.iter().take(STEPS) {
        match step {
            Step::Index(index) => {
                let _ = write!(path, "[{index}]");
            }
            Step::Key([]) => {}
            Step::Key(key) => {
                if !path.is_empty() {
                    path.push('.');
                }
                let key = String::from_utf8_lossy(key);
                let short = |c: &char| !c.is_control();
                path.extend(key.chars().filter(short).take(KEY_CHARACTERS));
            }
        }
    }
    if steps.len() > STEPS {
        path.push('…');
    }
    path
}

/// Says where, if that has a name.
fn at(path: &str) -> Cow<'static, str> {
    match path {
        "" => Cow::Borrowed(""),
        path => Cow::Owned(format!("{path}: ")),
    }
}
