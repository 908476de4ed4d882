//! `a2a`: asks an agent of another server, so that a person can try it.
//!
//! What is asked, and what the answers say, is `adjourn_a2a::client`'s; here it is sent, and told to
//! people and programs.

mod connection;
mod following;
mod get;
mod masking;
mod pause;
mod resume;
mod send;
mod shown;
mod watch;

use crate::arguments::A2a;
use crate::failure::Failure;
use crate::terminal::Output;

pub async fn run(asked: A2a, output: &Output) -> Result<(), Failure> {
    match asked {
        A2a::Send(send) => send::run(send, output).await,
        A2a::Get(get) => get::run(&get, output).await,
        A2a::Pause(pause) => pause::run(&pause, output).await,
        A2a::Resume(resume) => resume::run(resume, output).await,
        A2a::Watch(watch) => watch::run(&watch, output).await,
    }
}
