//! `adjourn`: a durable pause for any AI agent, at the command line.
//!
//! One file per subcommand. stdout is data, stderr is talk; a refusal is one word and a sentence.
//!
//! - [`arguments::Arguments`] is what was typed; [`settings::Settings`] what holds, with where it
//!   came from: flags over variables over the file.
//! - [`place::Place`] is the store that a command works on, through the library and nothing else.
//! - [`terminal::Output`] is where a command says what it did, to people or as JSON.
//! - [`failure::Failure`] is why it could not, with a hint and the exit code.
//!
//! Start reading at `commands/suspend.rs`, which is as short as they come, then `foreground.rs`, which
//! stays with a session until it rests.

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "a test reads what it has written itself")
)]

mod arguments;
mod chosen;
mod commands;
mod conformance_agent;
mod descriptors;
mod durations;
mod entry;
mod failure;
mod filter;
mod foreground;
mod founding;
mod going_on;
mod input_file;
mod interrupt;
mod liveness;
mod log_lines;
mod logging;
mod native;
mod permission;
mod place;
mod private_file;
mod question;
mod settings;
mod signals;
mod spoken;
mod stdio;
mod terminal;
mod text_argument;
mod times;
mod usage_error;
mod used;
mod view;
mod wakes;
mod watch;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use arguments::{Arguments, Verb};
use failure::Failure;
use settings::Settings;
use terminal::Output;

/// Commands are made by one thread, decided by a second and told by a third; the allocator of the C
/// library takes a lock for each part that another thread drops.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Help and version are what was asked for; everything else is a mistake in usage.
        Err(error) if !error.use_stderr() => {
            let output = Output::new(false);
            output.wrote(error.print());
            return end(Ok(()), &output);
        }
        Err(error) => {
            // What was meant cannot be known, but programs say so at any place.
            let json = std::env::args_os().any(|argument| argument == "--json");
            match error.kind() {
                // A user who types nothing else is shown what there is.
                ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand if !json => {
                    let _ = error.print();
                    return ExitCode::from(failure::USAGE);
                }
                _ => return end(Err(usage_error::told(&error)), &Output::new(json)),
            }
        }
    };
    let output = Output::new(arguments.json);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let result = match runtime {
        Ok(runtime) => {
            let result = runtime.block_on(run(arguments, &output));
            // A read of stdin that is not awaited any more must not keep the program.
            runtime.shutdown_background();
            result
        }
        Err(error) => Err(Failure::other(format!("cannot start: {error}"))),
    };
    end(result, &output)
}

/// Says how a command ended, and returns its exit code.
fn end(result: Result<(), Failure>, output: &Output) -> ExitCode {
    if let Err(failure) = &result {
        output.failure(failure);
    }
    let lost = output.lost();
    if let Some(lost) = &lost {
        output.failure(lost);
    }
    logging::end();
    // What went wrong with the command itself counts before what went wrong with its output.
    match result.err().or(lost) {
        Some(failure) => ExitCode::from(failure.code()),
        None => ExitCode::SUCCESS,
    }
}

async fn run(arguments: Arguments, output: &Output) -> Result<(), Failure> {
    signals::outlive_size_limits();
    // What is true of the program itself is said whatever a file or a variable holds.
    match &arguments.verb {
        Verb::Config(config) if config.defaults => {
            commands::config::defaults(output);
            return Ok(());
        }
        Verb::Completions(completions) => {
            commands::completions::completions(completions, output);
            return Ok(());
        }
        Verb::Man(man) => return commands::completions::man(man, output),
        _ => {}
    }
    let settings = match Settings::of(&arguments) {
        Ok(settings) => settings,
        Err(failure) if matches!(arguments.verb, Verb::Acp(_)) => {
            return Err(commands::acp::refuse(failure).await);
        }
        Err(failure) => return Err(failure),
    };
    output.logs_json(logging::start(&settings, &arguments.verb)?);
    let settings = &settings;
    match arguments.verb {
        Verb::Demo => commands::demo::run(settings, output).await,
        Verb::Run(run) => commands::run::run(settings, run, output).await,
        Verb::New(new) => commands::new::run(settings, &new, output).await,
        Verb::Serve(serve) => commands::serve::run(settings, serve, output).await,
        Verb::Acp(acp) => commands::acp::run(settings, acp, output).await,
        Verb::Ls(ls) => commands::ls::run(settings, &ls, output).await,
        Verb::Status(status) => commands::status::run(settings, &status, output).await,
        Verb::Hosts => commands::hosts::run(settings, output).await,
        Verb::Show(which) => commands::show::run(settings, &which, output).await,
        Verb::Log(log) => commands::log::run(settings, &log, output).await,
        Verb::Wait(wait) => commands::wait::run(settings, &wait, output).await,
        Verb::Suspend(suspend) => commands::suspend::run(settings, suspend, output).await,
        Verb::Prompt(prompt) => commands::prompt::run(settings, prompt, output).await,
        Verb::Resume(resume) => commands::resume::run(settings, resume, output).await,
        Verb::Event(event) => commands::event::run(settings, event, output).await,
        Verb::Cancel(cancel) => commands::cancel::run(settings, cancel, output).await,
        Verb::Close(close) => commands::close::run(settings, close, output).await,
        Verb::Export(export) => commands::export::run(settings, export, output).await,
        Verb::Import(import) => commands::import::run(settings, import, output).await,
        Verb::Takeover(takeover) => commands::takeover::run(settings, &takeover, output).await,
        Verb::Rm(rm) => commands::rm::run(settings, &rm, output).await,
        Verb::Prune(prune) => commands::prune::run(settings, &prune, output).await,
        Verb::Backup(backup) => commands::backup::run(settings, &backup, output).await,
        Verb::Keys(keys) => commands::keys::run(settings, &keys, output).await,
        Verb::Restore(restore) => commands::restore::run(settings, &restore, output).await,
        Verb::A2a(asked) => commands::a2a::run(asked, output).await,
        Verb::Config(_) => commands::config::run(settings, output),
        // Answered above.
        Verb::Completions(_) | Verb::Man(_) => Ok(()),
    }
}
