//! What a session says: whole messages for programs, words as they come for people.

use adjourn::driver::{Joining, Message, Role, Shown, Words};
use adjourn::telling::{Piece, Told, ends_words};
use adjourn::{Account, Error, Moment};
use serde_json::{Map, json};

use crate::entry;
use crate::terminal::{Look, Output, one_line, shorten};

/// Tools whose calls are shown as what they make of the session: a question, a wait.
const PARKING: &[&str] = &["ask_user", "await_resumption"];

/// What was printed of what a session says.
pub enum Spoken {
    /// Messages are printed when they are whole.
    Whole(Joining),
    /// Words are printed as they come.
    Words(AsTheyCome),
}

/// Words that are printed as they come.
#[derive(Default)]
pub struct AsTheyCome {
    /// The message whose line goes on.
    line: Option<(String, Words)>,
}

impl Spoken {
    /// Prints what is said for people at a terminal, or for programs.
    pub fn new(output: &Output) -> Self {
        match output.on_terminal() {
            true => Self::Words(AsTheyCome::default()),
            false => Self::Whole(Joining::default()),
        }
    }

    /// Returns whether words are printed before they are committed.
    pub const fn is_live(&self) -> bool {
        matches!(self, Self::Words(_))
    }

    /// Prints words that have come; returns whether the journal has to be read for those that are
    /// left.
    pub fn due(&mut self, account: &mut Account, output: &Output) -> bool {
        match self {
            Self::Whole(_) => false,
            Self::Words(words) => {
                words.print_due(account, output);
                account.waits()
            }
        }
    }

    /// Prints what was said with a moment.
    pub fn moment(
        &mut self,
        account: &mut Account,
        moment: &Moment,
        output: &Output,
    ) -> Result<(), Error> {
        let ended = account.bridge(moment)?;
        let told = account.tell(moment);
        match self {
            Self::Whole(joining) => whole(joining, moment, output),
            Self::Words(words) => {
                ended.iter().flatten().for_each(|piece| words.print(piece, output));
                words.moment(account, moment, &told, output);
            }
        }
        Ok(())
    }
}

/// Prints messages that are whole with a moment.
fn whole(joining: &mut Joining, moment: &Moment, output: &Output) {
    let said = moment.said.iter();
    let mut over: Vec<_> = said.filter_map(|(number, said)| joining.take(*number, said)).collect();
    if ends_words(&moment.event.what) {
        over.extend(joining.break_off());
    }
    for (number, said) in &over {
        if output.json {
            output.data(&json!({ "said": entry::said(moment, *number, said) }).to_string());
            continue;
        }
        match said.role {
            // One that only thinks, asks for calls, or shows something, has no words.
            Role::Agent if !said.aborted && !said.text().is_empty() => output.said(&said.text()),
            Role::Tool => tool(said, output),
            Role::Agent | Role::User | Role::Host => {}
        }
        notice(said, output);
        calls(said, output);
    }
}

/// How many lines of a result are shown, and how many columns of each; the transcript has all of it.
const SHOWN: (usize, usize) = (8, 160);

/// Prints what came of a call, marked if it failed or did not run.
fn tool(said: &Message, output: &Output) {
    let text = said.text();
    let mut lines = text.lines();
    let shown: Vec<_> = lines.by_ref().take(SHOWN.0).map(|line| shorten(line, SHOWN.1)).collect();
    let mark = if said.is_error { '✗' } else { '·' };
    output.talk(&format!("{mark} {}", shown.join("\n  ")));
    match lines.count() {
        0 => {}
        more => output.talk(&format!("  … and {more} more lines, in `adjourn log --transcript`")),
    }
}

/// Prints a line that people are told beside what is said.
fn notice(said: &Message, output: &Output) {
    if let Some(words) = notice_words(said) {
        output.talk(&format!("[{}]", one_line(&words)));
    }
}

fn notice_words(said: &Message) -> Option<String> {
    said.shown.as_ref().and_then(Shown::notice_words)
}

/// Prints the calls that a message asks for.
fn calls(said: &Message, output: &Output) {
    for call in said.calls.iter().filter(|_| said.role == Role::Agent && !said.aborted) {
        let parks = PARKING.contains(&call.tool.as_str());
        if !parks {
            let arguments = &call.arguments;
            let plain = arguments.is_null() || arguments.as_object().is_some_and(Map::is_empty);
            let what = match &call.title {
                Some(title) => format!("{}: {title}", call.tool),
                None if plain => call.tool.clone(),
                None => format!("{} {arguments}", call.tool),
            };
            output.talk(&format!("→ {}", shorten(&one_line(&what), SHOWN.1)));
        }
    }
}

impl AsTheyCome {
    fn moment(
        &mut self,
        account: &mut Account,
        moment: &Moment,
        told: &[Told<'_>],
        output: &Output,
    ) {
        for told in told {
            match told {
                Told::Entry(_, said) if said.role == Role::Tool => {
                    self.end_line(output);
                    tool(said, output);
                }
                Told::Entry(_, said) if notice_words(said).is_some() => {
                    self.end_line(output);
                    notice(said, output);
                }
                Told::Entry(..) => {}
                Told::Words(pieces) => pieces.iter().for_each(|piece| self.print(piece, output)),
            }
        }
        let is_over = |line: &(String, Words)| !account.knows(&line.0);
        if self.line.as_ref().is_some_and(is_over) {
            self.end_line(output);
        }
        if moment.said.iter().any(|(_, said)| !said.calls.is_empty()) {
            self.end_line(output);
            moment.said.iter().for_each(|(_, said)| calls(said, output));
        }
        self.print_due(account, output);
    }

    fn print_due(&mut self, account: &mut Account, output: &Output) {
        for piece in account.due() {
            self.print(&piece, output);
        }
    }

    fn print(&mut self, piece: &Piece, output: &Output) {
        let line = (piece.message.clone(), piece.words);
        if self.line.as_ref().is_some_and(|last| *last != line) {
            self.end_line(output);
        }
        let look = match piece.words {
            Words::Said => Look::Plain,
            Words::Thought => Look::Dim,
        };
        match piece.content.as_ref().map(|block| (block.words(), block.kind())) {
            Some((Some(words), _)) => output.words(look, words),
            Some((None, kind)) => output.words(Look::Dim, &format!("[{kind}]")),
            None => {}
        }
        self.line = Some(line);
        if piece.aborted {
            output.words(Look::Dim, " [broken off]");
            self.end_line(output);
        }
    }

    fn end_line(&mut self, output: &Output) {
        self.line = None;
        output.end_words();
    }
}
