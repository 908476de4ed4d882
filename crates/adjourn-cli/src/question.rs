//! A question at a terminal: it is shown with its choices, and the answer is typed right there.

use std::io::IsTerminal as _;
use std::sync::Arc;

use adjourn::core::Session;
use adjourn::core::command::Question;
use adjourn::core::id::Handle;
use adjourn::core::session::{Cause, Fate, Phase, Wait};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::{Mutex, mpsc};

use crate::failure::Failure;
use crate::foreground::{Stayed, Stop, Until, host_ended, stay};
use crate::going_on::takes_words;
use crate::permission::say_lines;
use crate::place::Place;
use crate::signals::{Ended, Signals};
use crate::terminal::{Output, marking_breaks, one_line};
use crate::watch::Watch;

/// Lines that are typed at the terminal.
///
/// A line is read only while a question is open: what is typed otherwise is meant for whatever
/// reads the terminal next.
pub struct Keyboard {
    /// Has the next line read.
    next: std::sync::mpsc::Sender<()>,
    /// Each line; nothing at the end of the input.
    lines: mpsc::Receiver<Option<String>>,
    /// Whether a line is being read: a read that has begun cannot be taken back.
    reading: bool,
    /// Whether the input is over: who has left one question open is asked no other.
    over: bool,
}

/// What became of a question.
enum Reply {
    /// It was answered here; the session as it is then.
    Said(Arc<Session>),
    /// It stays open: an empty line, or the end of the input.
    Open,
    /// The session has moved on: someone else has answered, or ended its run.
    Moved(Arc<Session>),
    /// A signal came first.
    Ended(Ended),
}

impl Keyboard {
    /// Listens to the terminal, if there is one that may be read from.
    pub fn at_terminal(output: &Output) -> Option<Self> {
        let stdin = std::io::stdin();
        // A job in the background that reads from its terminal is stopped, and its agent with it.
        let foreground = rustix::termios::tcgetpgrp(&stdin)
            .map_or(true, |group| group == rustix::process::getpgrp());
        let asks = !output.json && stdin.is_terminal() && std::io::stderr().is_terminal();
        if !asks || !foreground {
            return None;
        }
        let (next, wanted) = std::sync::mpsc::channel();
        let (sender, lines) = mpsc::channel(1);
        // In a thread of its own, which ends with the program.
        std::thread::spawn(move || {
            while wanted.recv().is_ok() {
                let mut line = String::new();
                let read = std::io::stdin().read_line(&mut line);
                let line = read.is_ok_and(|count| count > 0).then_some(line);
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Some(Self { next, lines, reading: false, over: false })
    }

    /// Forgets what was typed before a question was shown: a line, and the beginning of one.
    pub fn clear(&mut self) {
        // A terminal that cannot forget it shows it, so that it can be taken back by hand.
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
        if self.lines.try_recv().is_ok() {
            self.reading = false;
        }
    }

    /// Waits for the next line; nothing if the input is over.
    pub async fn line(&mut self) -> Option<String> {
        if self.over {
            return None;
        }
        if !self.reading {
            self.next.send(()).ok()?;
            self.reading = true;
        }
        let line = self.lines.recv().await.flatten();
        self.reading = false;
        self.over = line.is_none();
        line
    }
}

/// Stays with a session, and has its questions answered at the terminal, if there is one; a question
/// that is left open, or that takes more than words, ends the stay.
pub async fn stay_answering(
    place: &Place,
    from: &Arc<Session>,
    until: Until,
    keyboard: Option<&Mutex<Keyboard>>,
    working: &mut Option<Stop>,
    signals: &mut Signals,
    output: &Output,
) -> Result<Stayed, Failure> {
    let mut from = Arc::clone(from);
    loop {
        let stayed = stay(place, &from, until, working, signals, output).await?;
        let (session, keyboard) = match (stayed, keyboard) {
            (Stayed::Done(session), Some(keyboard)) if takes_words(&session) => (session, keyboard),
            (stayed, _) => return Ok(stayed),
        };
        let mut keyboard = keyboard.lock().await;
        from = match ask(place, &session, &mut keyboard, working, signals, output).await? {
            Reply::Said(session) | Reply::Moved(session) => session,
            Reply::Open => return Ok(Stayed::Done(session)),
            Reply::Ended(ended) => return Ok(Stayed::Ended(ended, None)),
        };
    }
}

/// Shows the question that a session asks, and takes the answer.
async fn ask(
    place: &Place,
    session: &Session,
    keyboard: &mut Keyboard,
    working: &mut Option<Stop>,
    signals: &mut Signals,
    output: &Output,
) -> Result<Reply, Failure> {
    let Some((handle, question)) = question(session) else {
        return Ok(Reply::Moved(place.session(session.id).await?));
    };
    keyboard.clear();
    show(question, output);
    let mut watcher = Watch::after(place, session);
    let answer = loop {
        tokio::select! {
            line = keyboard.line() => {
                if line.is_none() {
                    output.break_line();
                }
                match Meant::by(&line.unwrap_or_default(), &question.choices) {
                    Meant::Nothing => return Ok(Reply::Open),
                    Meant::Words(words) => break words,
                    Meant::NoChoice(number) => {
                        let most = question.choices.len();
                        output.talk(&format!("(there is no choice {number}: 1 to {most})"));
                        output.prompt("> ");
                        continue;
                    }
                }
            }
            () = watcher.wait() => {}
            ended = signals.next() => {
                output.break_line();
                return Ok(Reply::Ended(ended));
            }
            failure = host_ended(working) => {
                output.break_line();
                return Err(failure);
            }
        }
        let Some(seen) = watcher.look().await? else { return Err(Failure::no_session(session.id)) };
        if self::question(&seen.session).is_none_or(|(open, _)| open != handle) {
            output.break_line();
            output.talk(&format!("[{}]", closed(&seen.session, handle)));
            return Ok(Reply::Moved(seen.session));
        }
    };
    let said = place.adjourn.session(session.id).prompt(answer).answering(handle).await;
    match said {
        Ok(prompted) => Ok(Reply::Said(prompted.commit.session)),
        // Someone else was faster.
        Err(adjourn::Error::Refused(refused)) => {
            output.talk(&format!("[not taken: {}]", refused.told()));
            Ok(Reply::Moved(place.session(session.id).await?))
        }
        Err(error) => Err(error.into()),
    }
}

/// Says why a question is not open any more.
fn closed(session: &Session, handle: Handle) -> &'static str {
    let past = session.past.iter().rev().find(|past| past.handle == handle);
    match past.map(|past| past.fate) {
        Some(Fate::Resumed(Cause::ExplicitResume)) => "it was answered elsewhere",
        Some(Fate::Resumed(Cause::Timeout)) | Some(Fate::Failed) => "nobody answered it in time",
        Some(Fate::Resumed(_)) => "it goes on without an answer",
        Some(Fate::Canceled | Fate::Withdrawn) => "its run was canceled",
        Some(Fate::Closed) => "the session was closed",
        Some(Fate::Exported) => "the session was exported: it goes on elsewhere",
        // Only the last ones are remembered.
        None => "it is not asked any more",
    }
}

/// Returns the question that is open, and the handle that an answer names.
fn question(session: &Session) -> Option<(Handle, &Question)> {
    let shown = session.suspended().filter(|_| session.phase() == Phase::Asking)?.shown();
    match &shown.pause.wait {
        Wait::Question(question) => Some((shown.pause.handle, question)),
        Wait::Open => None,
    }
}

fn show(question: &Question, output: &Output) {
    let asked = marking_breaks(&question.question);
    match question.context.as_deref() {
        None | Some("") => output.say(&asked),
        // It may be what a call would do, whose lines are to be told apart.
        Some(context) if context.contains('\n') => {
            output.say(&asked);
            say_lines(context, output);
        }
        Some(context) => output.say(&format!("{asked} ({})", one_line(context))),
    }
    for (number, choice) in (1..).zip(&question.choices) {
        output.say(&format!("  {number}  {}", marking_breaks(choice)));
    }
    output.talk(match question.choices.as_slice() {
        [] => "(an empty line leaves it open)",
        _ => "(a number, or your own words; an empty line leaves it open)",
    });
    output.prompt("> ");
}

/// What is meant by a line.
#[derive(Debug, PartialEq, Eq)]
enum Meant {
    /// The question stays open.
    Nothing,
    /// An answer: a choice that was given by its number, or the words themselves.
    Words(String),
    /// The number of a choice that is not there.
    NoChoice(String),
}

impl Meant {
    /// Reads a line; what is written like a number is a choice of that name before it is one of
    /// that number.
    fn by(line: &str, choices: &[String]) -> Self {
        let line = line.trim();
        let is_number = line.bytes().all(|byte| byte.is_ascii_digit());
        let named = choices.iter().any(|choice| choice == line);
        if line.is_empty() {
            return Self::Nothing;
        }
        if choices.is_empty() || named || !is_number {
            return Self::Words(line.to_owned());
        }
        let place = line.parse().ok().and_then(|number: usize| number.checked_sub(1));
        match place.and_then(|place| choices.get(place)) {
            Some(choice) => Self::Words(choice.clone()),
            None => Self::NoChoice(line.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_means_a_choice_or_itself() {
        let choices = ["raw".to_owned(), "monthly".to_owned(), "1".to_owned()];
        let words = |words: &str| Meant::Words(words.to_owned());
        let no_choice = |number: &str| Meant::NoChoice(number.to_owned());
        for (line, meant) in [
            ("2\n", words("monthly")),
            (" raw \n", words("raw")),
            ("neither", words("neither")),
            ("2 of them", words("2 of them")),
            // A choice of that name goes before the place in the list.
            ("1", words("1")),
            ("0", no_choice("0")),
            ("4", no_choice("4")),
            ("99999999999999999999999", no_choice("99999999999999999999999")),
            ("\n", Meant::Nothing),
            ("  ", Meant::Nothing),
        ] {
            assert_eq!(Meant::by(line, &choices), meant, "{line:?}");
        }
        assert_eq!(Meant::by("2", &[]), words("2"));
    }
}
