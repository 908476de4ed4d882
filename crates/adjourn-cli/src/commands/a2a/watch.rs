//! `a2a watch`: what happens to a task of an agent.

use super::connection::Connection;
use super::following::Following;
use crate::arguments::Watch;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::Output;

pub async fn run(watch: &Watch, output: &Output) -> Result<(), Failure> {
    let connection = Connection::open(&watch.peer).await?;
    let mut signals = Signals::new()?;
    Following::of(&connection, &watch.task, output).stay(&mut signals).await
}
