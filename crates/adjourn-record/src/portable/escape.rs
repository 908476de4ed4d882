//! A JSON text inside of a JSON text: about every eighth character of it is a quote.
//!
//! serde_json looks at one character after the other, and hands out each quote and what stands
//! between two of them. Here eight characters are looked at together. What is written and read is
//! the same.

/// How many bytes are looked at together.
const WORD: usize = size_of::<u64>();
/// How many bytes are escaped before they are handed out.
const BLOCK: usize = 1024;

/// A word with 1 in each of its bytes, and one with the highest bit of each.
const ONES: u64 = u64::from_ne_bytes([1; WORD]);
const HIGHEST: u64 = 0x80 * ONES;

/// Writes the characters of a text as they stand between the quotes of a JSON string.
pub(super) fn write(text: &str, out: &mut Vec<u8>) {
    // A block has no more than twice its length when it is escaped; a word is written behind that.
    let mut escaped = [0; 2 * BLOCK + WORD];
    for block in text.as_bytes().chunks(BLOCK) {
        match write_block(block, &mut escaped).and_then(|length| escaped.get(..length)) {
            Some(escaped) => out.extend_from_slice(escaped),
            None => write_bytes(block, out),
        }
    }
}

/// Escapes a block, and returns how long it is then; nothing if it has a control character, of which
/// a compact JSON text has none.
fn write_block(block: &[u8], out: &mut [u8; 2 * BLOCK + WORD]) -> Option<usize> {
    let (mut place, mut end) = (0, 0);
    while let Some(next) = block.get(place..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*next);
        put(out, end, *next)?;
        let marks = marks(word);
        let plain = first(marks);
        place += plain;
        end += plain;
        if marks != 0 {
            let quote = block.get(place).filter(|byte| **byte >= b' ')?;
            put(out, end, [b'\\', *quote])?;
            place += 1;
            end += 2;
        }
    }
    for byte in block.get(place..)? {
        match byte {
            0..b' ' => return None,
            b'"' | b'\\' => {
                put(out, end, [b'\\', *byte])?;
                end += 2;
            }
            plain => {
                put(out, end, [*plain])?;
                end += 1;
            }
        }
    }
    Some(end)
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            control @ 0..0x20 => write_control(*control, out),
            plain => out.push(*plain),
        }
    }
}

/// Writes a control character.
#[cold]
fn write_control(byte: u8, out: &mut Vec<u8>) {
    let quoted = serde_json::to_string(&char::from(byte)).unwrap_or_default();
    out.extend_from_slice(quoted.trim_matches('"').as_bytes());
}

/// Reads what stands between the quotes of a JSON string. Returns nothing if that is not all that
/// stands there, or if it has escapes that [`write`] makes of control characters only.
pub(super) fn read(written: &str) -> Option<String> {
    let bytes = written.as_bytes();
    // No character is longer than its escape; a word is written behind the last one.
    let mut text = vec![0; bytes.len() + WORD];
    let (mut place, mut end) = (0, 0);
    while let Some(next) = bytes.get(place..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*next);
        put(&mut text, end, *next)?;
        let marks = marks(word);
        let plain = first(marks);
        place += plain;
        end += plain;
        if marks != 0 {
            put(&mut text, end, [escaped(bytes, place)?])?;
            place += 2;
            end += 1;
        }
    }
    while let Some(byte) = bytes.get(place) {
        let (read, length) = match byte {
            0..0x20 | b'"' | b'\\' => (escaped(bytes, place)?, 2),
            plain => (*plain, 1),
        };
        *text.get_mut(end)? = read;
        place += length;
        end += 1;
    }
    text.truncate(end);
    String::from_utf8(text).ok()
}

/// Returns the character that the escape at a place stands for, if it is a quote or a backslash.
fn escaped(bytes: &[u8], place: usize) -> Option<u8> {
    match bytes.get(place..)? {
        [b'\\', escaped @ (b'"' | b'\\'), ..] => Some(*escaped),
        _ => None,
    }
}

/// Writes bytes at a place.
fn put<const N: usize>(out: &mut [u8], place: usize, bytes: [u8; N]) -> Option<()> {
    *out.get_mut(place..)?.first_chunk_mut()? = bytes;
    Some(())
}

/// Returns how many bytes come before the first one that is marked.
const fn first(marks: u64) -> usize {
    marks.trailing_zeros() as usize / 8
}

/// Marks quotes, backslashes and control characters, in the highest bits of their bytes. What is
/// marked behind the first one need not be one.
const fn marks(word: u64) -> u64 {
    let quotes = below(word ^ (b'"' as u64 * ONES), 1);
    let backslashes = below(word ^ (b'\\' as u64 * ONES), 1);
    (quotes | backslashes | below(word, b' ')) & HIGHEST
}

/// Marks the bytes that are below a limit, which is at most 128. The difference borrows from the
/// next byte just where it marks one, so that no byte before the first one is marked.
const fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(limit as u64 * ONES) & !word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        write(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_text_is_escaped_as_serde_json_does_it() {
        let all: String = (0..=0x2ff_u32).filter_map(char::from_u32).collect();
        let nested = serde_json::to_string(&serde_json::to_string(&all).unwrap()).unwrap();
        let long = "no quote in sixteen bytes, and then \"one\"";
        let quotes = "\"".repeat(3 * BLOCK + 5);
        let far = format!("{}\u{1}{}", quotes, "é\\".repeat(BLOCK));
        for text in [
            "",
            "plain",
            "\"",
            "\\",
            "a\"",
            "\"\"\\\\",
            "\n\u{1}\u{7f}",
            long,
            &all,
            &nested,
            &quotes,
            &far,
        ] {
            assert_eq!(format!("\"{}\"", written(text)), serde_json::to_string(text).unwrap());
        }
    }

    /// At every place of a word and of a block, and of any length behind it.
    #[test]
    fn a_quote_is_found_wherever_it_stands() {
        for (before, behind) in (0..20)
            .chain(BLOCK - 9..BLOCK + 9)
            .flat_map(|before| (0..10).map(move |behind| (before, behind)))
        {
            for quote in ["\"", "\\", "\\\"", "\u{1}", "\u{7f}", "é", "\u{85}", "𝄞\"", "#]"] {
                let text = format!("{}{quote}{}", "x".repeat(before), "y".repeat(behind));
                let written = written(&text);
                assert_eq!(format!("\"{written}\""), serde_json::to_string(&text).unwrap());
                let expected = (quote != "\u{1}").then_some(text);
                assert_eq!(read(&written), expected);
            }
        }
    }

    #[test]
    fn what_write_would_not_write_is_not_read() {
        for text in ["\"", "a\"b", "\\", "abc\\", "\n", "0123456\\", "01234567\\", "\u{1f}", "\\ "]
        {
            assert_eq!(read(text), None, "{text:?}");
            let long = format!("{text} and more of it behind that");
            assert_eq!(read(&long), None, "{long:?}");
        }
        // serde_json reads these.
        for text in [r"\/", r"\n", r"\u0022", r"0123456\u0022"] {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(read("").as_deref(), Some(""));
        assert_eq!(read(r#"\\\"\\"#).as_deref(), Some(r#"\"\"#));
        assert_eq!(read(r"\\\"), None);
    }
}
