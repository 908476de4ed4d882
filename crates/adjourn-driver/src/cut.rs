//! What of a call's result is kept, if it is longer than one may be.

use adjourn_core::{MARK, json, limits};

use crate::content::{Block, Message, Role};

impl Message {
    /// Cuts a result to what is kept of one, and says in a block behind it how much is missing.
    ///
    /// Its words end at a character, after at most [`limits::RESULT_TEXT_BYTES`]. Of its other
    /// blocks and its value, those are left out that do not fit into
    /// [`limits::RESULT_DATA_BYTES`], one after the other.
    #[must_use]
    pub fn cut(self) -> Self {
        self.cut_to(limits::RESULT_TEXT_BYTES, limits::RESULT_DATA_BYTES)
    }

    fn cut_to(mut self, mut text_room: usize, mut data_room: usize) -> Self {
        let mut missing_text = 0;
        let mut missing = Vec::new();
        let mut fits = |value: Vec<u8>, what: &dyn Fn() -> String| {
            let bytes = value.len();
            // What nests too deep could not be read again.
            let fits = json::check(&value, data_room).is_ok();
            match fits {
                true => data_room -= bytes,
                false => missing.push(format!("{} of {bytes} bytes", what())),
            }
            fits
        };
        self.blocks.retain_mut(|block| {
            let Some(words) = block.words() else {
                return fits(encoded(block), &|| format!("a block of the type {}", block.kind()));
            };
            let (length, kept) = (words.len(), words.floor_char_boundary(text_room));
            missing_text += length - kept;
            // Nothing is kept of what comes behind a cut.
            text_room = if kept < length { 0 } else { text_room - kept };
            block.truncate_words(kept);
            // One that was empty before is left as it is.
            kept > 0 || length == 0
        });
        self.structured = self
            .structured
            .filter(|value| fits(encoded(value), &|| "the result as a value".to_owned()));
        if missing_text > 0 {
            missing.insert(0, format!("{missing_text} bytes of text"));
        }
        if !missing.is_empty() {
            let what = if self.role == Role::Tool { "result" } else { "message" };
            let words = format!("{MARK} This {what} is cut. Missing: {}.", missing.join(", "));
            self.blocks.push(Block::text(words));
        }
        self
    }
}

/// Returns a value's JSON.
fn encoded(value: &impl serde::Serialize) -> Vec<u8> {
    // Blocks and values always encode.
    serde_json::to_vec(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use adjourn_core::ledger::CallId;
    use serde_json::{Value, json};

    use super::*;

    fn result(blocks: Value) -> Message {
        let Value::Array(blocks) = blocks else { panic!("no list") };
        let block = |block: Value| Block::from_fields(block.as_object().unwrap().clone()).unwrap();
        Message::result(CallId("c".to_owned()), blocks.into_iter().map(block).collect())
    }

    fn text(words: &str) -> Value {
        json!({ "type": "text", "text": words })
    }

    #[test]
    fn what_fits_is_left_as_it_is() {
        let fits = result(json!([text(""), text("four"), { "type": "image", "data": "AAAA" }]));
        let fits = Message { structured: Some(json!({ "n": 1 })), ..fits };
        assert_eq!(fits.clone().cut_to(4, 100), fits);
        assert_eq!(fits.clone().cut(), fits);
    }

    #[test]
    fn words_end_at_a_character_and_the_note_says_how_much_is_missing() {
        let annotated = json!({ "type": "text", "text": "äöü", "_meta": { "k": 1 } });
        let cut = result(json!([text("ab"), annotated, text("more")])).cut_to(5, 100);
        let note = text("[adjourn] This result is cut. Missing: 8 bytes of text.");
        let kept = json!({ "type": "text", "text": "ä", "_meta": { "k": 1 } });
        assert_eq!(cut, result(json!([text("ab"), kept, note])));
    }

    #[test]
    fn pictures_and_values_that_do_not_fit_are_left_out_and_named() {
        let picture = |bytes| json!({ "type": "image", "data": "A".repeat(bytes) });
        let long = result(json!([text("see"), picture(500), picture(10)]));
        let cut = Message { structured: Some(json!("v".repeat(98))), ..long }.cut_to(9, 100);
        let note = "[adjourn] This result is cut. Missing: a block of the type image of 526 bytes, \
                    the result as a value of 100 bytes.";
        assert_eq!(cut, result(json!([text("see"), picture(10), text(note)])));
    }

    #[test]
    fn what_could_not_be_read_again_is_left_out() {
        let deep = (0..200).fold(Value::Null, |inner, _| json!([inner]));
        let image = json!({ "type": "image", "data": "AA==", "_meta": deep });
        let cut = Message { structured: Some(deep), ..result(json!([text("see"), image])) }.cut();
        assert_eq!(cut.structured, None);
        assert_eq!(cut.blocks.iter().map(Block::kind).collect::<Vec<_>>(), ["text", "text"]);
        assert_eq!(Message::decode(&cut.encode()).unwrap(), cut);
    }

    #[test]
    fn what_is_kept_of_a_result_is_bounded() {
        let mut blocks = vec![Block::text("ß".repeat(4 << 20)); 3];
        let data = json!({ "type": "image", "data": "A".repeat(3 << 20) });
        blocks.extend(vec![Block::from_fields(data.as_object().unwrap().clone()).unwrap(); 9]);
        let cut = Message::result(CallId("c".to_owned()), blocks).cut();
        let kinds: Vec<_> = cut.blocks.iter().map(Block::kind).collect();
        assert_eq!(kinds, ["text", "image", "image", "text"]);
        let room = limits::RESULT_TEXT_BYTES + limits::RESULT_DATA_BYTES;
        assert!(cut.encode().len() < room + 1024);
        // It is cut where it is made, and not again where it is read.
        assert_eq!(Message::decode(&cut.encode()).unwrap(), cut);
    }
}
