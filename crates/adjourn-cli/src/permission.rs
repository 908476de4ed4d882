//! Permissions at a terminal: what a call wants to do is shown, and whether it may is typed.

use adjourn::core::id::SessionId;
use adjourn::driver::{BoxFuture, CallContent, PermissionAnswer, PermissionRequest};
use adjourn::permission::Permissions;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::foreground::{Stop, host_ended};
use crate::signals::{Ended, Signals};
use crate::terminal::{Output, marking_breaks, one_line, shorten};

/// How many calls may wait to be shown: they are shown one after the other.
const WAITING: usize = 8;

/// How many columns the title of a call may take: what the call does is said by its arguments.
const TITLE_COLUMNS: usize = 80;

/// How many lines of one argument are shown.
const MOST_LINES: usize = 100;

/// How many bytes of one argument are shown.
const MOST_BYTES: usize = 8 * 1024;

/// A call that a person at the terminal has to allow.
pub struct Asked {
    session: SessionId,
    call: CallContent,
    answer: oneshot::Sender<PermissionAnswer>,
}

/// The person at the terminal, who is asked about the calls of one session.
pub struct AtTerminal {
    session: SessionId,
    asked: mpsc::Sender<Asked>,
}

impl AtTerminal {
    /// Has calls of a session asked about, and returns where they come out.
    pub fn new(session: SessionId) -> (Self, mpsc::Receiver<Asked>) {
        let (asked, receiver) = mpsc::channel(WAITING);
        (Self { session, asked }, receiver)
    }
}

impl Permissions for AtTerminal {
    fn ask(&self, request: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        let asked = self.asked.clone();
        Box::pin(async move {
            let PermissionRequest { session, call, .. } = request;
            let (answer, answered) = oneshot::channel();
            match asked.send(Asked { session, call, answer }).await {
                Ok(()) => answered.await.unwrap_or(PermissionAnswer::Gone),
                Err(_) => PermissionAnswer::Gone,
            }
        })
    }

    fn is_attended(&self, session: SessionId) -> bool {
        self.session == session
    }
}

/// Waits for the next call that has to be allowed; for ever if none can be.
pub async fn next_asked(asked: &mut Option<mpsc::Receiver<Asked>>) -> Asked {
    match asked {
        Some(receiver) => match receiver.recv().await {
            Some(asked) => asked,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// Shows what a call wants to do, and takes the answer; returns a signal that came first.
pub async fn permit(
    asked: Asked,
    working: &mut Option<Stop>,
    signals: &mut Signals,
    output: &Output,
) -> Result<Option<Ended>, Failure> {
    let Asked { session, call, mut answer } = asked;
    // Where there is no keyboard, no call is asked about.
    let Some(keyboard) = output.keyboard() else { return Ok(None) };
    let mut keyboard = keyboard.lock().await;
    keyboard.clear();
    show(session, &call, output);
    let typed = tokio::select! {
        line = keyboard.line() => {
            let Some(line) = line else {
                output.break_line();
                // Who is gone has not refused it: the agent parks with the question.
                return Ok(None);
            };
            line
        }
        () = answer.closed() => {
            output.break_line();
            output.talk("[that is not asked any more]");
            return Ok(None);
        }
        ended = signals.next() => {
            output.break_line();
            // No answer is no refusal: the call waits until it is taken back, or asked about again.
            tokio::spawn(async move { answer.closed().await });
            return Ok(Some(ended));
        }
        failure = host_ended(working) => {
            output.break_line();
            return Err(failure);
        }
    };
    // A call that was taken back meanwhile does not run, whatever the answer is.
    let _ = answer.send(meant(&typed));
    Ok(None)
}

fn show(session: SessionId, call: &CallContent, output: &Output) {
    let title = call.title.as_deref();
    let title = title.map(|title| shorten(&marking_breaks(title), TITLE_COLUMNS));
    let title = title.map(|title| format!(" {title}")).unwrap_or_default();
    output.say(&format!("May it call {}?{title}", one_line(&call.tool)));
    let mut is_cut = false;
    match call.arguments() {
        Value::Object(arguments) => {
            for (name, value) in &arguments {
                is_cut |= show_argument(name, value, output);
            }
        }
        other => is_cut = show_argument("arguments", &other, output),
    }
    if is_cut {
        output.say(&format!("(elsewhere, `adjourn log {session} --transcript` shows all of it)"));
    }
    output.say("  1  yes, this time");
    output.say("  2  yes, and every further call of this tool in this session");
    output.say("  3  no");
    output.talk("(a number, or what it is to do instead; an empty line is no)");
    output.prompt("> ");
}

/// Shows an argument, and returns whether something of it is left out.
fn show_argument(name: &str, value: &Value, output: &Output) -> bool {
    let text = match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        // In JSON, a line break is visible as it is.
        value => value.to_string(),
    };
    let shown = beginning(&text);
    let rest = text.get(shown.len()..).unwrap_or_default();
    let name = one_line(name);
    if !text.contains('\n') && rest.is_empty() {
        output.say(&format!("  {name}: {text}"));
        return false;
    }
    output.say(&format!("  {name} ({}):", size(&text)));
    say_lines(shown, output);
    if !rest.is_empty() {
        output.say(&format!("    … and {} that are not shown", size(rest)));
    }
    !rest.is_empty()
}

/// Shows a text line by line, each with a mark: what it says must not be taken for what stands around
/// it, such as the choices below.
pub fn say_lines(text: &str, output: &Output) {
    for line in text.split_terminator('\n') {
        output.say(&format!("    | {line}"));
    }
}

/// Returns as much of a text as is shown.
fn beginning(text: &str) -> &str {
    let lines = text.match_indices('\n').nth(MOST_LINES - 1);
    let lines = lines.map_or(text.len(), |(last, _)| last + 1);
    let end = text.floor_char_boundary(lines.min(MOST_BYTES));
    text.get(..end).unwrap_or(text)
}

/// Says how long a text is.
fn size(text: &str) -> String {
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let lines = text.split_terminator('\n').count();
    format!("{}, {}", counted(lines, "line"), counted(text.len(), "byte"))
}

/// Reads an answer: everything that is no yes is a no, and the model is told the words.
fn meant(line: &str) -> PermissionAnswer {
    match line.trim() {
        "1" | "y" | "yes" => PermissionAnswer::Granted { always: false },
        "2" | "always" => PermissionAnswer::Granted { always: true },
        "" | "3" | "n" | "no" => {
            PermissionAnswer::Refused("not run: the user does not allow it".to_owned())
        }
        words => PermissionAnswer::Refused(format!("not run: the user says: {words}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_shown_up_to_its_bounds() {
        let lines = |count| "x\n".repeat(count);
        assert_eq!(beginning(&lines(MOST_LINES)), lines(MOST_LINES));
        assert_eq!(beginning(&lines(MOST_LINES + 1)), lines(MOST_LINES));
        assert_eq!(beginning("one line"), "one line");
        let wide = "é".repeat(MOST_BYTES);
        assert_eq!(beginning(&wide), "é".repeat(MOST_BYTES / 2));
        assert_eq!(beginning(&format!("x{wide}")).len(), MOST_BYTES - 1);
        assert_eq!(size("a\nb"), "2 lines, 3 bytes");
        assert_eq!(size("\n"), "1 line, 1 byte");
    }

    #[test]
    fn only_a_yes_is_one() {
        for yes in ["1", " y\n", "yes"] {
            assert_eq!(meant(yes), PermissionAnswer::Granted { always: false }, "{yes:?}");
        }
        assert_eq!(meant("2\n"), PermissionAnswer::Granted { always: true });
        for no in ["", "\n", "3", "n", "no", "11", "use rg instead"] {
            assert!(matches!(meant(no), PermissionAnswer::Refused(_)), "{no:?}");
        }
        let told = PermissionAnswer::Refused("not run: the user says: use rg".to_owned());
        assert_eq!(meant("use rg\n"), told);
    }
}
