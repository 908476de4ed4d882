//! A question at a terminal: it is shown with its choices, and the answer is typed right there.

use std::io::IsTerminal as _;
use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::command::Question;
use adjourn_core::id::Handle;
use adjourn_core::session::{Phase, Wait};
use adjourn_store::CommandError;
use tokio::sync::mpsc;

use crate::commands::run::say_to;
use crate::failure::Failure;
use crate::place::Place;
use crate::signals::{Ended, Signals};
use crate::stay::{Stop, host_ended};
use crate::terminal::{Output, one_line};
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
}

/// What became of a question.
pub enum Reply {
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
        Some(Self { next, lines, reading: false })
    }

    /// Forgets a line that was typed before a question was shown.
    fn clear(&mut self) {
        if self.lines.try_recv().is_ok() {
            self.reading = false;
        }
    }

    /// Waits for the next line; nothing if the input is over.
    async fn line(&mut self) -> Option<String> {
        if !self.reading {
            self.next.send(()).ok()?;
            self.reading = true;
        }
        let line = self.lines.recv().await.flatten();
        self.reading = false;
        line
    }
}

/// Shows the question that a session asks, and takes the answer.
pub async fn ask(
    place: &Place,
    session: &Session,
    keyboard: &mut Keyboard,
    working: &mut Option<Stop>,
    signals: &mut Signals,
    output: &Output,
) -> Result<Reply, Failure> {
    let Some((handle, question)) = question(session) else {
        return Ok(Reply::Moved(place.session(session.id)?));
    };
    keyboard.clear();
    show(question, output);
    let mut watcher = Watch::after(place, session);
    let typed = loop {
        tokio::select! {
            line = keyboard.line() => break line,
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
        let Some(seen) = watcher.look()? else { return Err(Failure::no_session(session.id)) };
        if self::question(&seen.session).is_none_or(|(open, _)| open != handle) {
            output.break_line();
            output.talk("[it was answered elsewhere]");
            return Ok(Reply::Moved(seen.session));
        }
    };
    if typed.is_none() {
        output.break_line();
    }
    let typed = typed.unwrap_or_default();
    let Some(answer) = answer(&typed, &question.choices) else { return Ok(Reply::Open) };
    match say_to(place, working.as_ref(), session.id, place.by(), answer, Some(handle)).await {
        Ok(session) => Ok(Reply::Said(session)),
        // Someone else was faster.
        Err(CommandError::Rejected(refused)) => {
            output.talk(&format!("[not taken: {refused}]"));
            Ok(Reply::Moved(place.session(session.id)?))
        }
        Err(error) => Err(error.into()),
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
    let context = question.context.as_deref().filter(|context| !context.is_empty());
    let context = context.map(|context| format!(" ({})", one_line(context))).unwrap_or_default();
    output.say(&format!("{}{context}", one_line(&question.question)));
    for (number, choice) in (1..).zip(&question.choices) {
        output.say(&format!("  {number}  {}", one_line(choice)));
    }
    output.talk(match question.choices.as_slice() {
        [] => "(an empty line leaves it open)",
        _ => "(a number, or your own words; an empty line leaves it open)",
    });
    output.prompt("> ");
}

/// Returns what is meant by a line: a choice by its number, or the words themselves.
///
/// A choice that is written like a number is meant by itself before it is meant as a number.
fn answer<'a>(line: &'a str, choices: &'a [String]) -> Option<&'a str> {
    let line = line.trim();
    if line.is_empty() {
        return None;
    }
    let named = choices.iter().any(|choice| choice == line);
    let number = line.parse::<usize>().ok().filter(|_| !named);
    let chosen = number.and_then(|number| choices.get(number.checked_sub(1)?));
    Some(chosen.map_or(line, String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_means_a_choice_or_itself() {
        let choices = ["raw".to_owned(), "monthly".to_owned(), "1".to_owned()];
        for (line, meant) in [
            ("2\n", Some("monthly")),
            (" raw \n", Some("raw")),
            ("neither", Some("neither")),
            // A choice of that name goes before the place in the list.
            ("1", Some("1")),
            ("0", Some("0")),
            ("4", Some("4")),
            ("\n", None),
            ("  ", None),
        ] {
            assert_eq!(answer(line, &choices), meant, "{line:?}");
        }
        assert_eq!(answer("2", &[]), Some("2"));
    }
}
