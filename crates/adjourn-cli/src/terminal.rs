//! Where output goes: data to stdout, talk to stderr; colour and a live line on a terminal only.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use tokio::sync::Mutex;
use unicode_width::UnicodeWidthChar as _;

use crate::failure::Failure;
use crate::logging;
use crate::question::Keyboard;

/// How often a live line moves.
const FRAME: Duration = Duration::from_millis(120);
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// How a word looks on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Plain,
    Dim,
    Bold,
    Red,
    Green,
    Yellow,
    Magenta,
    Cyan,
}

impl Look {
    const ALL: [Self; 8] = [
        Self::Plain,
        Self::Dim,
        Self::Bold,
        Self::Red,
        Self::Green,
        Self::Yellow,
        Self::Magenta,
        Self::Cyan,
    ];

    /// Returns whether a code is that of a look.
    fn is_code(code: &str) -> bool {
        Self::ALL.iter().any(|look| look.code() == code)
    }

    const fn code(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Magenta => "35",
            Self::Cyan => "36",
        }
    }
}

/// Where output goes, and in which form.
pub struct Output {
    pub json: bool,
    data_in_colour: bool,
    talk_in_colour: bool,
    data_on_terminal: bool,
    json_on_terminal: bool,
    live: bool,
    /// Whether a live line stands at the end of stderr.
    drawn: Cell<bool>,
    /// Whether a line that goes on stands at the end of stdout.
    goes_on: Cell<bool>,
    started: Instant,
    /// Whether stderr is for a log in JSON, and nothing else.
    logs_json: Cell<bool>,
    /// Why data could not be written; what would follow it is not written either.
    broken: RefCell<Option<io::Error>>,
    /// What is typed at the terminal, once that was asked for.
    keyboard: OnceCell<Option<Rc<Mutex<Keyboard>>>>,
}

/// Says what must be known on stderr, also if stdout is for a program.
pub fn warn(line: &str) {
    let _ = writeln!(io::stderr(), "warning: {}", one_line(line));
}

impl Output {
    pub fn new(json: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        // A terminal that says it can do nothing is believed.
        let able = !json && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let colour = able && !set("NO_COLOR");
        Self {
            json,
            data_in_colour: colour && io::stdout().is_terminal(),
            talk_in_colour: colour && io::stderr().is_terminal(),
            data_on_terminal: !json && io::stdout().is_terminal(),
            json_on_terminal: json && io::stdout().is_terminal(),
            live: able && io::stderr().is_terminal(),
            drawn: Cell::new(false),
            goes_on: Cell::new(false),
            started: Instant::now(),
            logs_json: Cell::new(false),
            broken: RefCell::new(None),
            keyboard: OnceCell::new(),
        }
    }

    /// Returns what is typed at the terminal, if there is a person who can be asked. There is one
    /// keyboard, however many ask.
    pub fn keyboard(&self) -> Option<Rc<Mutex<Keyboard>>> {
        let open = || Keyboard::at_terminal(self).map(|keyboard| Rc::new(Mutex::new(keyboard)));
        self.keyboard.get_or_init(open).clone()
    }

    /// Prints data: on a terminal nothing that others wrote moves the cursor, in a pipe it stays as it
    /// is.
    pub fn data(&self, line: &str) {
        self.print(line, |line| painted(self.data_in_colour, line));
    }

    /// Prints data that others wrote: on a terminal it has no colour of its own either.
    pub fn said(&self, line: &str) {
        self.print(line, lines);
    }

    fn print(&self, line: &str, shown: impl FnOnce(&str) -> String) {
        self.clear();
        if self.is_read() {
            // The same object for every reader, but on a terminal nothing of it moves the cursor.
            let shown = match (self.json_on_terminal, self.data_on_terminal) {
                (true, _) => escaped(line),
                (_, true) => shown(line),
                _ => line.to_owned(),
            };
            self.wrote(writeln!(io::stdout(), "{shown}"));
        }
    }

    /// Prints words of data on a terminal, whose line may go on.
    pub fn words(&self, look: Look, text: &str) {
        self.erase();
        if self.is_read() && !text.is_empty() {
            let shown = paint(self.data_in_colour, look, &lines(text));
            let written = write!(io::stdout(), "{shown}").and_then(|()| io::stdout().flush());
            self.wrote(written);
            self.goes_on.set(!text.ends_with('\n'));
        }
    }

    /// Ends a line of words, if one goes on.
    pub fn end_words(&self) {
        if self.goes_on.replace(false) {
            self.wrote(writeln!(io::stdout()));
        }
    }

    /// Prints data that is whole lines already.
    pub fn bytes(&self, bytes: &[u8]) {
        self.wrote(io::stdout().write_all(bytes).and_then(|()| io::stdout().flush()));
    }

    /// Remembers whether data could be written.
    pub fn wrote(&self, written: io::Result<()>) {
        if let Err(error) = written {
            self.broken.borrow_mut().get_or_insert(error);
        }
    }

    /// Returns whether data can still be written, as far as is known.
    pub fn is_read(&self) -> bool {
        self.broken.borrow().is_none()
    }

    /// Refuses to begin if nobody can read stdout, for data that must not be lost: the reader of the
    /// pipe is gone, or stdout is closed or leads to the null device. A reader that goes away later is
    /// found when the data is written.
    pub fn check_reader() -> Result<(), Failure> {
        let stdout = io::stdout();
        let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
        let gone = match poll(&mut asked, Some(&Timespec::default())) {
            // No event was asked for: what is told is that the other end is gone.
            Ok(found) => found > 0,
            Err(_) => false,
        };
        // A stdout that was closed is one that leads to the null device by now.
        let device = |file: File| file.metadata().ok().map(|file| file.rdev());
        let own = stdout.as_fd().try_clone_to_owned().ok().and_then(|own| device(own.into()));
        let null = File::open("/dev/null").ok().and_then(device);
        match (gone, own.is_some() && own == null) {
            (true, _) => Err(Failure::other("nobody reads stdout any more")),
            (_, true) => Err(Failure::other("stdout is closed, or leads to /dev/null")),
            _ => Ok(()),
        }
    }

    /// Returns why data was lost that the reader wanted.
    pub fn lost(&self) -> Option<Failure> {
        let broken = self.broken.borrow();
        // A reader that went away is no failure of ours.
        let error = broken.as_ref().filter(|error| error.kind() != ErrorKind::BrokenPipe)?;
        Some(Failure::other(format!("cannot write the output: {error}")))
    }

    /// Prints data as an object, or as a line for people.
    pub fn object(&self, object: &Value, line: &str) {
        self.data(&if self.json { object.to_string() } else { line.to_owned() });
    }

    /// Takes note whether stderr is for a log in JSON: what else is said there is part of it.
    pub fn logs_json(&self, logs_json: bool) {
        self.logs_json.set(logs_json);
    }

    /// Says something to the person who watches, not to the reader of the data.
    pub fn talk(&self, line: &str) {
        if self.logs_json.get() {
            logging::say(line);
        } else if !self.json {
            self.clear();
            // What others wrote is in it.
            let line = if io::stderr().is_terminal() { lines(line) } else { line.to_owned() };
            let line = paint(self.talk_in_colour, Look::Dim, &line);
            let _ = writeln!(io::stderr(), "{line}");
        }
    }

    /// Says what the person at the terminal is to answer.
    pub fn say(&self, line: &str) {
        self.clear();
        let _ = writeln!(io::stderr(), "{}", lines(line));
    }

    /// Shows where to type.
    pub fn prompt(&self, mark: &str) {
        self.clear();
        let _ = write!(io::stderr(), "{mark}");
        let _ = io::stderr().flush();
    }

    /// Ends a line that the user may have begun to type.
    pub fn break_line(&self) {
        let _ = writeln!(io::stderr());
    }

    pub fn failure(&self, failure: &Failure) {
        if self.json {
            self.data(&failure.json().to_string());
            // Where no object can be written, it is said where it can be.
            if self.is_read() {
                return;
            }
        }
        if self.logs_json.get() {
            let mut lines = failure.lines().into_iter().map(|(_, text)| text);
            let (message, hint) = (lines.next().unwrap_or_default(), lines.next());
            tracing::error!(hint, code = failure.code(), "{message}");
            return;
        }
        self.clear();
        for (word, text) in failure.lines() {
            let look = if word == "error" { Look::Red } else { Look::Cyan };
            let word = match word {
                "" => String::new(),
                word => paint(self.talk_in_colour, look, &format!("{word}:")) + " ",
            };
            let _ = writeln!(io::stderr(), "{word}{text}");
        }
    }

    /// Returns a word of data as it looks here.
    pub fn word(&self, look: Look, text: &str) -> String {
        paint(self.data_in_colour, look, text)
    }

    /// Returns whether the data goes to a terminal.
    pub const fn on_terminal(&self) -> bool {
        self.data_on_terminal
    }

    /// Returns how many columns a line of data may have, if it goes to a terminal.
    pub fn columns(&self) -> Option<usize> {
        if !io::stdout().is_terminal() {
            return None;
        }
        columns(io::stdout())
    }

    /// Returns whether there is a terminal on which a line can move.
    pub const fn is_live(&self) -> bool {
        self.live
    }

    /// Shows what is going on, in a line that the next one replaces.
    pub fn live(&self, line: &str) {
        // It would take the place of the words.
        if !self.live || self.goes_on.get() {
            return;
        }
        let frame = self.started.elapsed().as_millis() / FRAME.as_millis();
        let frame = FRAMES.get(usize::try_from(frame).unwrap_or(0) % FRAMES.len());
        let width = columns(io::stderr()).unwrap_or(80);
        // A line that wraps cannot be replaced.
        let line = shorten(&one_line(line), width.saturating_sub(3));
        let line = paint(self.talk_in_colour, Look::Dim, &line);
        let _ = write!(io::stderr(), "\r\x1b[2K{} {line}", frame.unwrap_or(&' '));
        let _ = io::stderr().flush();
        self.drawn.set(true);
    }

    /// Waits for something, while a line says what is going on.
    pub async fn live_while<T>(
        &self,
        what: impl Future<Output = T>,
        line: impl Fn() -> String,
    ) -> T {
        let mut what = std::pin::pin!(what);
        loop {
            self.live(&line());
            tokio::select! {
                done = &mut what => return done,
                () = tokio::time::sleep(FRAME), if self.live => {}
            }
        }
    }

    /// Takes the live line away, and ends a line of words.
    pub fn clear(&self) {
        self.erase();
        self.end_words();
    }

    fn erase(&self) {
        if self.drawn.replace(false) {
            let _ = write!(io::stderr(), "\r\x1b[2K");
            let _ = io::stderr().flush();
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.clear();
    }
}

fn paint(colour: bool, look: Look, text: &str) -> String {
    match (colour, look) {
        (false, _) | (_, Look::Plain) => text.to_owned(),
        _ => format!("\x1b[{}m{text}\x1b[0m", look.code()),
    }
}

fn columns(terminal: impl std::os::fd::AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Returns the most columns that a text may take.
///
/// What some terminals join into one picture, others show in its parts; a line must not wrap on
/// any of them.
pub fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

fn columns_of(c: char) -> usize {
    match c {
        // Makes a wide picture of a narrow sign before it.
        '\u{fe0f}' => 1,
        c => c.width().unwrap_or(0),
    }
}

/// Returns a text with blanks after it, up to some columns.
pub fn fill(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(width(text)))
}

/// Cuts a text to some columns, and marks the cut.
pub fn shorten(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub(1) else { return String::new() };
    let mut taken = 0;
    let fits = |c: &char| {
        taken += columns_of(*c);
        taken <= room
    };
    let kept: String = text.chars().take_while(fits).collect();
    kept.trim_end().to_owned() + "…"
}

/// Returns a text of some lines with every character escaped that could move the cursor elsewhere.
fn lines(text: &str) -> String {
    visible(text, |c| matches!(c, '\n' | '\t').then_some(c))
}

/// Returns a text on one line: what others wrote must not move the cursor.
pub fn one_line(text: &str) -> String {
    visible(text, |c| matches!(c, '\n' | '\t').then_some(' '))
}

/// Returns a text on one line with a sign where its lines end, for what a person decides about: a
/// command does something else in two lines than in one.
pub fn marking_breaks(text: &str) -> String {
    let lines: Vec<_> = text.split_terminator('\n').map(one_line).collect();
    lines.join(" ⏎ ")
}

/// Returns a text with every character escaped that could move the cursor, so that no two texts look
/// alike; some are `spared`, and shown as another.
fn visible(text: &str, spared: impl Fn(char) -> Option<char>) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match spared(c) {
            Some(other) => shown.push(other),
            None if moves(c) => shown.extend(c.escape_unicode()),
            None => shown.push(c),
        }
    }
    shown
}

/// Returns lines in which only the colours of this program are left, if there are any.
fn painted(colour: bool, text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut shown = lines(parts.next().unwrap_or_default());
    for part in parts {
        let code = part.split_once('m').filter(|(code, _)| colour && Look::is_code(code));
        match code {
            Some((code, rest)) => shown += &format!("\x1b[{code}m{}", lines(rest)),
            None => shown += &lines(&format!("\x1b[{part}")),
        }
    }
    shown
}

/// Returns an object with every character escaped that could move the cursor. All of them are in
/// texts: JSON has none elsewhere.
fn escaped(object: &str) -> String {
    let mut escaped = String::with_capacity(object.len());
    for c in object.chars() {
        match moves(c) {
            true => escaped += &format!("\\u{:04x}", u32::from(c)),
            false => escaped.push(c),
        }
    }
    escaped
}

/// Returns whether a character moves the cursor, or what stands around it: marks of direction make
/// a line read otherwise than it is.
fn moves(c: char) -> bool {
    let turns = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    turns || c.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_filled_by_columns() {
        for (text, most, cut) in [
            ("waiting", 7, "waiting"),
            ("waiting", 6, "waiti…"),
            ("wait for it", 6, "wait…"),
            ("漢字", 4, "漢字"),
            ("漢字漢字", 4, "漢…"),
            ("漢字漢字", 5, "漢字…"),
            // Marks over a letter take no room.
            ("e\u{301}e\u{301}", 2, "e\u{301}e\u{301}"),
            // A heart is narrow as text, and wide as a picture.
            ("❤\u{fe0f}❤\u{fe0f}", 3, "❤\u{fe0f}…"),
            ("waiting", 1, "…"),
            ("waiting", 0, ""),
        ] {
            assert_eq!(shorten(text, most), cut, "{text:?} in {most}");
            assert!(width(cut) <= most, "{cut:?}");
        }
        assert_eq!(fill("漢字", 6), "漢字  ");
        assert_eq!(fill("漢字", 3), "漢字");
    }

    #[test]
    fn nothing_turns_the_line_around() {
        let turns = "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}";
        let text = format!("a\n{turns}b");
        let escaped_turns: String = turns.chars().flat_map(char::escape_unicode).collect();
        assert_eq!(one_line(&text), format!("a {escaped_turns}b"));
        assert_eq!(lines(&text), format!("a\n{escaped_turns}b"));
        let object = Value::from(format!("{text}\u{7f}\u{9b}\u{1b}é")).to_string();
        let shown = escaped(&object);
        assert!(!shown.chars().any(moves), "{shown}");
        assert_eq!(
            adjourn::core::json::stored::<Value>(shown.as_bytes()).unwrap().to_string(),
            object
        );
        // No two texts look alike.
        assert_ne!(one_line("a\u{1b}b"), one_line("a\u{7}b"));
        // What is written from right to left by itself stays.
        assert_eq!(one_line("שלום"), "שלום");
    }

    #[test]
    fn where_a_line_ends_can_be_seen_on_one_line() {
        assert_eq!(marking_breaks("echo ok #\nrm -rf src\n"), "echo ok # ⏎ rm -rf src");
        assert_eq!(marking_breaks("a\n\n\u{1b}b\tc"), r"a ⏎  ⏎ \u{1b}b c");
        assert_eq!(marking_breaks(""), "");
    }

    #[test]
    fn of_all_that_moves_the_cursor_only_own_colours_are_left() {
        let red = paint(true, Look::Red, "a");
        let line = format!("{red}\x1b[2Jb\x1b[8mc\x1b]0;d\u{7}\u{202e}e");
        let shown = r"\u{1b}[2Jb\u{1b}[8mc\u{1b}]0;d\u{7}\u{202e}e";
        assert_eq!(painted(true, &line), format!("{red}{shown}"));
        assert_eq!(painted(false, &red), r"\u{1b}[31ma\u{1b}[0m");
        assert_eq!(painted(true, "a\tb\nc\x1b["), "a\tb\nc\\u{1b}[");
    }
}
