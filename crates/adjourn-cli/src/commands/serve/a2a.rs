//! The agent that other agents talk to, and who may.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use adjourn::store::Sqlite;
use adjourn_a2a::{Agent, Face};
use adjourn_core::driver::Need;
use adjourn_server::{A2a, Access, Token, needs_token};

use crate::arguments::{Profile, Serve};
use crate::commands::run::read;
use crate::failure::Failure;
use crate::input_file::{self, SETTINGS_BYTES};
use crate::place::Place;

/// Makes the agent that is asked for, if one is.
pub fn agent(
    place: &Place,
    serve: &Serve,
    address: &SocketAddr,
) -> Result<Option<A2a<Sqlite>>, Failure> {
    let Some(script) = &serve.script else { return Ok(None) };
    let (driver, _) = read(script)?;
    // No person can be asked here: better no agent than one whose tasks wait for ever.
    if driver.needs.contains(&Need::Permissions) {
        let path = script.display();
        return Err(Failure::other(format!("{path} asks for permissions, which needs an editor"))
            .hint(format!("an editor runs it: `adjourn acp --script {path}`")));
    }
    let access = access(place, serve, address)?;
    let name = script.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into());
    let description = format!("The scripted agent {name}, whose tasks can be paused and resumed");
    let agent = Agent { name, description, driver, pausable: true };
    let profile = match place.settings.a2a_profile.value {
        Profile::Adjourn => adjourn_a2a::Profile::Adjourn,
        Profile::Rfc => adjourn_a2a::Profile::Rfc,
    };
    let face = Arc::new(Face::new(place.adjourn.clone(), agent, profile));
    Ok(Some(A2a { face, access }))
}

/// Finds out who may talk to it.
fn access(place: &Place, serve: &Serve, address: &SocketAddr) -> Result<Access, Failure> {
    let tenant = place.settings.tenant.value.as_str();
    let tokens = match &place.settings.tokens_file.value {
        Some(path) => tokens(path, tenant)?,
        None => Vec::new(),
    };
    match (serve.insecure_open, needs_token(address)) {
        (true, true) => Err(Failure::usage(format!("{address} can be reached by others"))
            .hint("--insecure-open is for loopback addresses; name tokens with --tokens-file")),
        (true, false) => Ok(Access::with(tokens).open_to_all(tenant)),
        (false, _) if tokens.is_empty() => {
            Err(Failure::usage("no agent could talk to this one: there are no tokens").hint(
                "name a file of them with --tokens-file, or let everybody on this machine in \
                 with --insecure-open",
            ))
        }
        (false, _) => Ok(Access::with(tokens)),
    }
}

/// Reads a file of tokens; lines that are empty or begin with `#` are left out.
fn tokens(path: &Path, tenant: &str) -> Result<Vec<Token>, Failure> {
    let text = input_file::read(path, SETTINGS_BYTES)
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = |(number, line)| {
        let wrong = |problem| Failure::usage(format!("{}:{number}: {problem}", path.display()));
        Token::read(line, tenant).map_err(wrong)
    };
    lines.map(read).collect()
}
