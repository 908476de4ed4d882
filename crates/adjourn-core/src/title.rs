//! What a conversation is called in lists.

use crate::session::Session;

/// How long a title made from a prompt may be: about a line of a list.
const CHARACTERS: usize = 72;

impl Session {
    /// Returns what the conversation is called: the agent's name for it, or else the one that it was
    /// created with, or else the beginning of its first prompt, on one line.
    ///
    /// A session without any of them has no title.
    pub fn title(&self) -> Option<String> {
        let named = one_line(&self.memory.title);
        let title = if named.is_empty() { shortened(&self.memory.first_prompt) } else { named };
        (!title.is_empty()).then_some(title)
    }

    /// Returns whether the session has ever had something to do.
    pub fn was_prompted(&self) -> bool {
        self.run().is_some() || self.last_run.is_some()
    }
}

/// Puts words on one line, with single spaces between them.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Cuts a text at the end of a word, or of a character if its first word is too long, and marks the
/// cut.
fn shortened(text: &str) -> String {
    const CUT: char = '…';
    let line = one_line(text);
    let Some((end, _)) = line.char_indices().nth(CHARACTERS) else { return line };
    // The mark takes the place of the last character.
    let room = line.char_indices().nth(CHARACTERS - 1).map_or(end, |(room, _)| room);
    let kept = line.get(..room).unwrap_or_default();
    let whole = match line.get(room..).is_some_and(|rest| rest.starts_with(' ')) {
        true => kept,
        false => kept.rsplit_once(' ').map_or(kept, |(words, _)| words),
    };
    format!("{}{CUT}", whole.trim_end_matches([',', '.', ':', ';', ' ', CUT]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line_cut_at_a_word() {
        assert_eq!(shortened(" Fix  the\n tests\t"), "Fix the tests");
        let exact = "x".repeat(CHARACTERS);
        assert_eq!(shortened(&exact), exact);
        let words = "word, ".repeat(40);
        let title = shortened(&words);
        assert!(title.ends_with("word…") && title.chars().count() <= CHARACTERS, "{title}");
        let one = shortened(&"é".repeat(500));
        assert_eq!(one, "é".repeat(CHARACTERS - 1) + "…");
        assert_eq!(shortened(" \n"), "");
    }
}
