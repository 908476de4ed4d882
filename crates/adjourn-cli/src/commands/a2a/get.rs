//! `a2a get`: one task of an agent.

use adjourn_a2a::client::{Ask, Seen};

use super::connection::Connection;
use super::shown;
use crate::arguments::Get;
use crate::failure::Failure;
use crate::terminal::Output;

pub async fn run(get: &Get, output: &Output) -> Result<(), Failure> {
    let connection = Connection::open(&get.peer).await?;
    let task = connection.granted(&Ask::Get { task: &get.task }).await?;
    let seen = Seen::read(&task);
    if output.json {
        let mut object = seen.to_value();
        if let Some(object) = object.as_object_mut() {
            // As the agent wrote it, for what is not in the rest.
            object.insert("task".to_owned(), task);
        }
        output.data(&object.to_string());
    } else {
        shown::tell(&seen, output);
    }
    Ok(())
}
