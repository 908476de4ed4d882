//! `a2a send`: says something to an agent, and stays until what comes of it rests.

use adjourn::clock::{Environment as _, Machine};
use adjourn_a2a::client::{Ask, Outgoing, Seen};

use super::connection::Connection;
use super::following::Following;
use crate::arguments::Send;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::Output;
use crate::text_argument::typed;

pub async fn run(send: Send, output: &Output) -> Result<(), Failure> {
    let text = typed(send.text)?;
    let id = send.message_id.unwrap_or_else(|| Machine.uuid().to_string());
    let message = Outgoing { id, text, task: send.task, context: send.context };
    let connection = Connection::open(&send.peer).await?;
    let mut signals = Signals::new()?;
    let mut following = Following::new(&connection, output);
    if send.detach || !connection.peer.streams {
        let ask = Ask::Send { message: &message, waits: !send.detach };
        let answered = tokio::select! {
            answered = connection.granted(&ask) => answered?,
            ended = signals.next() => return Err(following.left(ended)),
        };
        let seen = Seen::read(&answered);
        if send.detach {
            return following.detached(&seen);
        }
        following.tell(None, &seen);
    } else {
        following.send(&message, &mut signals).await?;
    }
    following.stay(&mut signals).await
}
