//! Permissions at a terminal: what a call wants to do is shown, and whether it may is typed.

use adjourn::permission::Permissions;
use adjourn_core::id::SessionId;
use adjourn_driver::{BoxFuture, CallContent, PermissionAnswer, PermissionRequest};
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::foreground::{Stop, host_ended};
use crate::signals::{Ended, Signals};
use crate::terminal::{Output, one_line};

/// How many calls may wait to be shown: they are shown one after the other.
const WAITING: usize = 8;

/// A call that a person at the terminal has to allow.
pub struct Asked {
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
            let (answer, answered) = oneshot::channel();
            match asked.send(Asked { call: request.call, answer }).await {
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
    let Asked { call, mut answer } = asked;
    // Where there is no keyboard, no call is asked about.
    let Some(keyboard) = output.keyboard() else { return Ok(None) };
    let mut keyboard = keyboard.lock().await;
    keyboard.clear();
    show(&call, output);
    let typed = tokio::select! {
        line = keyboard.line() => {
            if line.is_none() {
                output.break_line();
            }
            line.unwrap_or_default()
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

fn show(call: &CallContent, output: &Output) {
    let what = match &call.title {
        Some(title) => title.clone(),
        None => call.arguments().to_string(),
    };
    output.say(&format!("May it call {}? {}", one_line(&call.tool), one_line(&what)));
    output.say("  1  yes, this time");
    output.say("  2  yes, and every further call of this tool in this session");
    output.say("  3  no");
    output.talk("(a number, or what it is to do instead; an empty line is no)");
    output.prompt("> ");
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
