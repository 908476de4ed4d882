//! A JSON text inside of a JSON text: about every eighth character of it is a quote.
//!
//! serde_json looks at one character after the other, and hands out each quote and what stands
//! between two of them. Here most of a conversation is taken a block at a time. What is written is
//! the same.

/// How many bytes are looked at together: as many as a processor compares at once.
const BLOCK: usize = 16;

/// Writes the characters of a text as they stand between the quotes of a JSON string.
pub(super) fn write(text: &str, out: &mut Vec<u8>) {
    let (blocks, rest) = text.as_bytes().as_chunks::<BLOCK>();
    for block in blocks {
        // All of them, without a branch: so it is one comparison for the whole block.
        if block.iter().fold(true, |plain, byte| plain & is_plain(*byte)) {
            out.extend_from_slice(block);
        } else {
            write_bytes(block, out);
        }
    }
    write_bytes(rest, out);
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

const fn is_plain(byte: u8) -> bool {
    (byte >= 0x20) & (byte != b'"') & (byte != b'\\')
}

/// Writes a control character, of which a compact JSON text has none.
#[cold]
fn write_control(byte: u8, out: &mut Vec<u8>) {
    let quoted = serde_json::to_string(&char::from(byte)).unwrap_or_default();
    out.extend_from_slice(quoted.trim_matches('"').as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_escaped_as_serde_json_does_it() {
        let all: String = (0..=0x2ff_u32).filter_map(char::from_u32).collect();
        let nested = serde_json::to_string(&serde_json::to_string(&all).unwrap()).unwrap();
        let long = "no quote in sixteen bytes, and then \"one\"";
        for text in
            ["", "plain", "\"", "\\", "a\"", "\"\"\\\\", "\n\u{1}\u{7f}", long, &all, &nested]
        {
            let mut out = Vec::new();
            write(text, &mut out);
            let quoted = format!("\"{}\"", String::from_utf8(out).unwrap());
            assert_eq!(quoted, serde_json::to_string(text).unwrap());
        }
    }
}
