//! What was typed and what came back, as text that is the same each time.

use adjourn_core::id::SessionId;

use crate::home::{Home, Told};

/// A session at a prompt: commands, and everything they said.
pub struct Transcript<'a> {
    home: &'a Home,
    text: String,
    ids: Vec<String>,
}

impl<'a> Transcript<'a> {
    pub fn new(home: &'a Home) -> Self {
        Self { home, text: String::new(), ids: Vec::new() }
    }

    /// Types a command, and takes down what it said: `2>` marks talk, `?` an exit code.
    pub fn type_in(&mut self, arguments: &[&str]) -> Told {
        let told = self.home.told(arguments);
        let quoted = |argument: &&str| match argument.contains([' ', '{', '"']) {
            true => format!("'{argument}'"),
            false => (*argument).to_owned(),
        };
        let typed: Vec<_> = arguments.iter().map(quoted).collect();
        let mut text = format!("$ adjourn {}\n", typed.join(" "));
        // Which states are seen on the way depends on who is faster; where it ends does not.
        let passing = ["[ready", "[running", "[quiescing"];
        let moving = ["\"state\":\"ready\"", "\"state\":\"running\""];
        let data: Vec<_> = told.data.lines().collect();
        for (number, line) in data.iter().enumerate() {
            let last = number + 1 == data.len();
            if last || !moving.iter().any(|state| line.contains(state)) {
                text += &format!("{line}\n");
            }
        }
        let talk = told.talk.lines().filter(|line| !passing.iter().any(|p| line.starts_with(p)));
        text.extend(talk.map(|line| format!("2> {line}\n")));
        if told.code != 0 {
            text += &format!("? {}\n", told.code);
        }
        self.text += &text;
        told
    }

    /// Returns everything, with ids numbered, times left out, and this home as `~`.
    pub fn text(mut self) -> String {
        let text = self.home.plain(&self.text);
        let mut normal = String::new();
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            if let Some((kind, id, after)) = id(rest) {
                let known = self.ids.iter().position(|known| known == id);
                let number = known.unwrap_or_else(|| {
                    self.ids.push(id.to_owned());
                    self.ids.len() - 1
                });
                let number = self.ids[..number].iter().filter(|other| kind_of(other) == kind);
                normal += &format!("{kind}:{}", number.count());
                rest = after;
            } else if let Some((number, after)) = self.end_of_an_id(rest) {
                normal += &format!("…sess:{number}");
                rest = after;
            } else if let Some(after) = time(rest) {
                normal += "TIME";
                rest = after;
            } else if let Some(after) = a_moment(&normal, rest) {
                normal += "0s";
                rest = after;
            } else {
                normal.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
        normal
    }

    /// Reads the end of a session's id as lists show it: which session, and what comes after.
    fn end_of_an_id<'t>(&self, text: &'t str) -> Option<(usize, &'t str)> {
        let end = text.get(..SessionId::SHORT)?;
        let mut sessions = self.ids.iter().filter(|id| kind_of(id) == "sess");
        let number = sessions.position(|id| id.ends_with(end))?;
        Some((number, &text[end.len()..]))
    }
}

fn kind_of(id: &str) -> &str {
    id.split('-').next().unwrap()
}

/// Reads an id: what it names, the whole of it, and what comes after.
fn id(text: &str) -> Option<(&str, &str, &str)> {
    const UUID: usize = 36;
    let kinds = ["sess", "run", "suspend", "host", "req"];
    let kind = kinds.into_iter().find(|kind| text.starts_with(&format!("{kind}-")))?;
    let end = kind.len() + 1 + UUID;
    let id = text.get(..end)?;
    let uuid = &id[kind.len() + 1..];
    let fits = uuid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    (fits && uuid.matches('-').count() == 4).then_some((&text[..kind.len()], id, &text[end..]))
}

/// Reads a point in time, and returns what comes after.
fn time(text: &str) -> Option<&str> {
    let shape: String = text
        .chars()
        .take(20)
        .map(|character| if character.is_ascii_digit() { '0' } else { character })
        .collect();
    if !shape.starts_with("0000-00-00T00:00:00") {
        return None;
    }
    text.find('Z').map(|end| &text[end + 1..])
}

/// Reads how long ago something was that has just happened, or how long it took.
fn a_moment<'a>(before: &str, text: &'a str) -> Option<&'a str> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let stands_alone = before.ends_with(' ') && !before.ends_with("m ");
    let rest = &text[digits..];
    match (digits, stands_alone) {
        (1.., true) if before.ends_with("after ") && rest.starts_with("ms") => Some(&rest[2..]),
        (1, true) => rest.strip_prefix('s'),
        _ => None,
    }
}
