//! A JSON text inside of a JSON text: about every eighth character of it is a quote.
//!
//! serde_json looks at one character after the other, and hands out each quote and what stands
//! between two of them. Here the quotes of a whole block are found at once, and the block is written
//! as it is; for each quote, what comes from there on is written once more, one place further on or
//! back. That is a few moves of the longest registers, whatever stands between two quotes. What is
//! written and read is the same.

/// How many bytes are looked at together: each has a bit in a `u64`.
const BLOCK: usize = 64;
/// How many bytes are handed out together.
const PIECE: usize = 8 * BLOCK;

/// A piece, and a block behind it: from each of its places on, a block can be moved.
type Piece = [u8; PIECE + BLOCK];
/// A piece in which each byte may be escaped, and a block behind it.
type Escaped = [u8; 2 * PIECE + BLOCK];

/// Writes the characters of a text as they stand between the quotes of a JSON string.
pub(super) fn write(text: &str, out: &mut Vec<u8>) {
    let mut escaped = [0; 2 * PIECE + BLOCK];
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let end = write_piece(&padded(rest), &mut escaped);
        let (piece, behind) = rest.split_at_checked(PIECE).unwrap_or((rest, &[]));
        let padding = PIECE - piece.len();
        match end.and_then(|end| escaped.get(..end.checked_sub(padding)?)) {
            Some(escaped) => out.extend_from_slice(escaped),
            None => write_bytes(piece, out),
        }
        rest = behind;
    }
}

/// Escapes a piece, and returns how long it is then; nothing if it has a control character, of which
/// a compact JSON text has none.
fn write_piece(piece: &Piece, out: &mut Escaped) -> Option<usize> {
    let mut end = 0;
    for place in (0..PIECE).step_by(BLOCK) {
        let block = block_at(piece, place)?;
        let mut quotes = quotes(&block)?;
        put(out, end, block)?;
        while quotes != 0 {
            let quote = quotes.trailing_zeros() as usize;
            put(out, end + quote, [b'\\'])?;
            end += 1;
            put(out, end + quote, block_at(piece, place + quote)?)?;
            quotes &= quotes - 1;
        }
        end += BLOCK;
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
    let mut rest = written.as_bytes();
    let mut text = Vec::with_capacity(rest.len());
    let mut plain = [0; PIECE + BLOCK];
    while !rest.is_empty() {
        let Read { taken, end } = read_piece(&padded(rest), &mut plain)?;
        let (piece, behind) = rest.split_at_checked(taken).unwrap_or((rest, &[]));
        let padding = taken - piece.len();
        text.extend_from_slice(plain.get(..end.checked_sub(padding)?)?);
        rest = behind;
    }
    String::from_utf8(text).ok()
}

/// What was read of a piece.
struct Read {
    /// How many bytes of it: its blocks end behind an escape, not in it.
    taken: usize,
    /// How many bytes they stand for.
    end: usize,
}

/// Reads a piece. Returns nothing if it has a quote or a control character, or another escape than
/// that of a quote or a backslash.
fn read_piece(piece: &Piece, out: &mut Piece) -> Option<Read> {
    let (mut taken, mut escapes) = (0, 0);
    while taken <= PIECE - BLOCK {
        let block = block_at(piece, taken)?;
        let mut quotes = quotes(&block)?;
        put(out, taken - escapes, block)?;
        let mut length = BLOCK;
        while quotes != 0 {
            let escape = quotes.trailing_zeros() as usize;
            let place = taken + escape;
            let [b'\\', b'"' | b'\\', ..] = piece.get(place..)? else { return None };
            put(out, place - escapes, block_at(piece, place + 1)?)?;
            escapes += 1;
            // The backslash and what it escapes, which stands in the next block if this one is over.
            quotes &= quotes - 1;
            quotes &= quotes.saturating_sub(1);
            length = length.max(escape + 2);
        }
        taken += length;
    }
    Some(Read { taken, end: taken - escapes })
}

/// Returns the first bytes of a text, with spaces behind its end.
fn padded(text: &[u8]) -> Piece {
    text.first_chunk().copied().unwrap_or_else(|| {
        let mut padded = [b' '; PIECE + BLOCK];
        padded.iter_mut().zip(text).for_each(|(padded, byte)| *padded = *byte);
        padded
    })
}

/// Returns a block that begins at any place of a piece.
fn block_at(piece: &Piece, place: usize) -> Option<[u8; BLOCK]> {
    piece.get(place..)?.first_chunk().copied()
}

/// Writes bytes at a place.
fn put<const N: usize>(out: &mut [u8], place: usize, bytes: [u8; N]) -> Option<()> {
    *out.get_mut(place..)?.first_chunk_mut()? = bytes;
    Some(())
}

/// Returns where a block has quotes and backslashes, the first byte in the lowest bit; nothing if it
/// has a control character.
fn quotes(block: &[u8; BLOCK]) -> Option<u64> {
    /// Moves the lowest bit of each byte into the highest byte, in their order.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    // Every byte is looked at, whatever comes before it: that is what a compiler makes few steps of.
    if block.iter().fold(false, |control, byte| control | (*byte < b' ')) {
        return None;
    }
    let marks = block.map(|byte| u8::from((byte == b'"') | (byte == b'\\')));
    let (words, _) = marks.as_chunks();
    let bits = |word: &[u8; 8]| u64::from_le_bytes(*word).wrapping_mul(GATHER) >> 56;
    Some(words.iter().rev().fold(0, |all, word| all << 8 | bits(word)))
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
        let quotes = "\"".repeat(3 * PIECE + 5);
        let far = format!("{}\u{1}{}", quotes, "é\\".repeat(PIECE));
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
            let written = written(text);
            assert_eq!(format!("\"{written}\""), serde_json::to_string(text).unwrap());
            let is_read = !text.bytes().any(|byte| byte < b' ');
            assert_eq!(read(&written), is_read.then(|| text.to_owned()));
        }
    }

    /// At every place of a block, at the end of a piece, and with any length behind it.
    #[test]
    fn a_quote_is_found_wherever_it_stands() {
        for (before, behind) in (0..BLOCK + 9)
            .chain(PIECE - BLOCK - 9..PIECE + 9)
            .flat_map(|before| [0, 1, 2, 7, BLOCK - 1, BLOCK].map(move |behind| (before, behind)))
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
            for before in (0..BLOCK + 2).chain(PIECE - BLOCK - 2..PIECE + 2) {
                let far = format!("{}{text}", r#"\""#.repeat(before / 2) + &"x".repeat(before % 2));
                assert_eq!(read(&far), None, "{far:?}");
                assert_eq!(read(&format!("{far} and more")), None, "{far:?}");
            }
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
