//! `a2a send`: says something to an agent, and stays until what comes of it rests.

use adjourn::clock::{Environment as _, Machine};
use adjourn_a2a::client::Outgoing;

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
        // An agent may take its time for an answer that waits, and a connection does not last as long.
        let answered = following.give(&message, &mut signals).await?;
        if send.detach {
            return following.detached(&answered);
        }
        following.tell(None, &answered);
    } else {
        following.send(&message, &mut signals).await?;
    }
    following.stay(&mut signals).await
}
