//! Matching a text against a pattern with stars.
//!
//! It knows neither names nor subjects, only that a pattern has parts and which character separates
//! them.
//!
//! - `*` stands for a run of characters within one part, `**` for a run that may span parts.
//! - A star that is a whole part stands for at least one character, because a part is never empty:
//!   `a.*` does not match `a.`, and `a.**` matches `a.b.c` but not `a`.
//! - A star that completes a part may stand for nothing: `ch*ed` matches `ched`, and `src/**.rs`
//!   matches `src/.rs`.

/// Tells whether the whole of `text` matches `pattern`.
///
/// All ways to match are followed at once, one character of the text after the other. The work is
/// therefore at most the product of the two lengths, whatever the pattern.
pub(super) fn matches(pattern: &str, separator: char, text: &str) -> bool {
    if is_literal(pattern) {
        return pattern == text;
    }
    let mut steps = compile(pattern, separator);

    // The state before the first character: runs at the start of the pattern may stand for nothing.
    let mut before = true;
    for step in &mut steps {
        step.reached = before && matches!(step.token, Token::Run(_));
        before = step.reached;
    }

    let mut at_start = true;
    for c in text.chars() {
        // For the step before the one at hand: whether the text without and with `c` gets that far.
        let (mut without, mut with) = (at_start, false);
        let mut alive = false;
        for step in &mut steps {
            let reached = match step.token {
                Token::Exactly(wanted) => without && wanted == c,
                Token::One(span) => without && span.takes(c, separator),
                Token::Run(span) => with || (step.reached && span.takes(c, separator)),
            };
            without = std::mem::replace(&mut step.reached, reached);
            with = reached;
            alive |= reached;
        }
        if !alive {
            return false;
        }
        at_start = false;
    }
    steps.last().is_some_and(|step| step.reached)
}

/// Tells whether a pattern matches one text only, itself.
pub(super) fn is_literal(pattern: &str) -> bool {
    !pattern.contains('*')
}

/// One step of a pattern, and whether the text so far can be matched up to and with it.
struct Step {
    token: Token,
    reached: bool,
}

#[derive(Clone, Copy)]
enum Token {
    /// This character.
    Exactly(char),
    /// Any one character: what a star that is a whole part takes at least.
    One(Span),
    /// Any number of characters.
    Run(Span),
}

#[derive(Clone, Copy)]
enum Span {
    WithinPart,
    AcrossParts,
}

impl Span {
    fn takes(self, c: char, separator: char) -> bool {
        match self {
            Self::WithinPart => c != separator,
            Self::AcrossParts => true,
        }
    }
}

fn compile(pattern: &str, separator: char) -> Vec<Step> {
    let mut steps = Vec::with_capacity(pattern.len());
    let mut push = |token| steps.push(Step { token, reached: false });
    let mut chars = pattern.chars().peekable();
    let mut part_begins = true;
    while let Some(c) = chars.next() {
        if c != '*' {
            push(Token::Exactly(c));
            part_begins = c == separator;
            continue;
        }
        let across = chars.next_if_eq(&'*').is_some();
        let span = if across { Span::AcrossParts } else { Span::WithinPart };
        let part_ends = chars.peek().is_none_or(|next| *next == separator);
        if part_begins && part_ends {
            push(Token::One(span));
        }
        push(Token::Run(span));
        part_begins = false;
    }
    steps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stars_match_as_documented() {
        for (pattern, texts, others) in [
            ("a.b", &["a.b"][..], &["a", "a.", "a.b.", "a.bb", "A.b", ""][..]),
            ("a.*", &["a.b", "a.bcd", "a.*"], &["a", "a.", "a.b.c", "b.a"]),
            ("a.*.c", &["a.b.c"], &["a.c", "a..c", "a.b.b.c"]),
            ("a.**", &["a.b", "a.b.c", "a..", "a..b"], &["a", "a.", "b.a"]),
            ("a.**.c", &["a.b.c", "a.b.b.c", "a.c.c"], &["a.c", "a..c", "a.b.d"]),
            ("file.ch*ed", &["file.changed", "file.ched"], &["file.ch.ed", "file.chd"]),
            ("a.b*", &["a.b", "a.bc"], &["a.b.c", "a."]),
            ("a.*b", &["a.b", "a.cb"], &["a.c.b", "a.bc"]),
            ("a.b**", &["a.b", "a.bc", "a.b.c"], &["a.", "a.c"]),
            ("a.**b", &["a.b", "a.c.b"], &["a.", "ab"]),
            ("a.*b*", &["a.b", "a.cbd", "a.bb"], &["a.c", "a.b.b"]),
            ("*", &["a", "é"], &["", "a.b", "."]),
            ("**", &["a", "a.b", "."], &[""]),
        ] {
            for text in texts {
                assert!(matches(pattern, '.', text), "{pattern} {text}");
            }
            for text in others {
                assert!(!matches(pattern, '.', text), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn the_separator_makes_the_parts() {
        assert!(matches("src/*.rs", '/', "src/lib.rs"));
        assert!(matches("src/*", '/', "src/a.b.c"));
        assert!(!matches("src/*", '/', "src/a/b"));
        assert!(matches("src/**.rs", '/', "src/.rs"));
        assert!(matches("src/**/*.rs", '/', "src/a/b/lib.rs"));
    }

    /// With a matcher that backtracks, this pattern takes longer than the universe lasts.
    #[test]
    fn a_hostile_pattern_is_matched_in_time() {
        let pattern = format!("a.{}b", "*a**a".repeat(40));
        let text = format!("a.{}", "a".repeat(10_000));
        assert!(!matches(&pattern, '.', &text));
        assert!(matches(&pattern, '.', &format!("{text}b")));
    }

    /// Says what a match is, without any thought of cost.
    fn naive(pattern: &[char], part_begins: bool, text: &[char]) -> bool {
        let (span, rest) = match pattern {
            [] => return text.is_empty(),
            ['*', '*', rest @ ..] => (Span::AcrossParts, rest),
            ['*', rest @ ..] => (Span::WithinPart, rest),
            [wanted, pattern @ ..] => {
                return text
                    .split_first()
                    .is_some_and(|(c, text)| c == wanted && naive(pattern, *c == '.', text));
            }
        };
        let whole = part_begins && matches!(rest, [] | ['.', ..]);
        (usize::from(whole)..=text.len()).any(|length| {
            let (run, text) = text.split_at(length);
            run.iter().all(|c| span.takes(*c, '.')) && naive(rest, false, text)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn agrees_with_the_naive_matcher(
            pattern in "([ab.]|\\*|\\*\\*|é){0,8}",
            text in "[ab.é]{0,9}",
        ) {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(
                matches(&pattern, '.', &text),
                naive(&chars(&pattern), true, &chars(&text))
            );
        }

        #[test]
        fn takes_any_two_texts(pattern in any::<String>(), text in any::<String>()) {
            matches(&pattern, '/', &text);
        }
    }
}
