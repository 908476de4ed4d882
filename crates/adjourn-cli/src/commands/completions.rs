//! `completions` and `man`: what shells and manuals know of the commands, made from them.

use std::path::Path;

use clap::CommandFactory as _;
use serde_json::{Value, json};

use crate::arguments::{Arguments, Completions, Man};
use crate::failure::Failure;
use crate::terminal::Output;

pub fn completions(completions: &Completions, output: &Output) {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(completions.shell, &mut command, "adjourn", &mut script);
    let shell = completions.shell.to_string();
    text(output, script, |script| json!({ "shell": shell, "completions": script }));
}

pub fn man(man: &Man, output: &Output) -> Result<(), Failure> {
    match &man.directory {
        None => page(output),
        Some(directory) => pages(directory, output),
    }
}

/// Prints the page of the program itself.
fn page(output: &Output) -> Result<(), Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Arguments::command())
        .render(&mut page)
        .map_err(|error| Failure::other(format!("cannot make the page: {error}")))?;
    text(output, page, |page| json!({ "page": page }));
    Ok(())
}

/// Prints a text as it is, or in an object for programs.
fn text(output: &Output, bytes: Vec<u8>, object: impl FnOnce(&str) -> Value) {
    match output.json {
        true => output.data(&object(&String::from_utf8_lossy(&bytes)).to_string()),
        false => output.bytes(&bytes),
    }
}

/// Writes one page for each command.
fn pages(directory: &Path, output: &Output) -> Result<(), Failure> {
    let written = std::fs::create_dir_all(directory).and_then(|()| {
        // The generated `help` has a page for each command, which says nothing that theirs do not.
        let command = Arguments::command().disable_help_subcommand(true);
        clap_mangen::generate_to(command, directory)
    });
    written.map_err(|error| {
        Failure::other(format!("cannot write to {}: {error}", directory.display()))
    })?;
    let path = directory.display().to_string();
    output.object(&json!({ "man": path }), &path);
    Ok(())
}
