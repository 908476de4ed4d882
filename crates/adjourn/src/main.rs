//! `adjourn`: a durable pause for any AI agent, at the command line.
//!
//! One file per subcommand. stdout is data, stderr is talk; a refusal is one word and a sentence.

mod arguments;
mod commands;
mod failure;
mod place;
mod show;
mod stay;
mod watch;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::{Arguments, Verb};
use failure::Failure;
use show::Output;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are what was asked for; everything else is a mistake in usage.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { failure::USAGE } else { 0 });
        }
    };
    let output = Output::new(arguments.json);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(run(arguments, &output)),
        Err(error) => Err(Failure::other(format!("cannot start: {error}"))),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            ExitCode::from(failure.code())
        }
    }
}

async fn run(arguments: Arguments, output: &Output) -> Result<(), Failure> {
    let store = arguments.store;
    match arguments.verb {
        Verb::Demo => commands::demo::run(output).await,
        Verb::Run(run) => commands::run::run(store, run, output).await,
        Verb::Serve(serve) => commands::serve::run(store, serve, output).await,
        Verb::Ls => commands::ls::run(store, output),
        Verb::Show(which) => commands::show::run(store, &which, output),
        Verb::Log(log) => commands::log::run(store, &log, output).await,
        Verb::Suspend(suspend) => commands::suspend::run(store, suspend, output).await,
        Verb::Prompt(prompt) => commands::prompt::run(store, prompt, output).await,
        Verb::Resume(resume) => commands::resume::run(store, resume, output).await,
        Verb::Event(event) => commands::event::run(store, event, output).await,
        Verb::Cancel(cancel) => commands::cancel::run(store, cancel, output).await,
        Verb::Close(close) => commands::close::run(store, close, output).await,
        Verb::Takeover(which) => commands::takeover::run(store, &which, output).await,
        Verb::Prune => commands::prune::run(store, output).await,
        Verb::Backup(backup) => commands::backup::run(store, &backup, output),
    }
}
