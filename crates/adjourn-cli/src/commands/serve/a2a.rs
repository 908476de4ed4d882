//! The agent that other agents talk to, and who may.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use adjourn::store::Sqlite;
use adjourn_a2a::{Agent, Face};
use adjourn_core::driver::Need;
use adjourn_server::{A2a, Access, Token, needs_token};

use crate::arguments::{AgentFlags, Profile, Serve};
use crate::chosen::Chosen;
use crate::failure::Failure;
use crate::input_file::{self, SETTINGS_BYTES};
use crate::place::Place;

/// Makes the agent that is asked for, if one is.
pub fn agent(
    place: &Place,
    serve: &Serve,
    address: &SocketAddr,
) -> Result<Option<A2a<Sqlite>>, Failure> {
    let Some(name) = name(&serve.agent) else { return Ok(None) };
    let chosen = Chosen::by(&serve.agent, &place.settings)?.run_here()?.working_in(None)?;
    let Chosen { driver, budget, .. } = chosen;
    // No person can be asked here: better no agent than one whose tasks wait for ever.
    if driver.needs.contains(&Need::Permissions) {
        return Err(Failure::other(format!("{name} asks for permissions, which needs an editor"))
            .hint("an editor runs it: `adjourn acp`"));
    }
    let access = access(place, serve, address)?;
    let description = format!("The agent {name}, whose tasks can be paused and resumed");
    let budget = budget.unwrap_or_default();
    let agent = Agent { name, description, driver, budget, pausable: true };
    let profile = match place.settings.a2a_profile.value {
        Profile::Adjourn => adjourn_a2a::Profile::Adjourn,
        Profile::Rfc => adjourn_a2a::Profile::Rfc,
    };
    let face = Arc::new(Face::new(place.adjourn.clone(), agent, profile));
    Ok(Some(A2a { face, access }))
}

/// Returns what the agent is called that flags choose; nothing if they choose none.
pub fn name(flags: &AgentFlags) -> Option<String> {
    let script = flags.script.as_deref().and_then(Path::file_stem);
    let script = script.map(|stem| stem.to_string_lossy().into_owned());
    script.or_else(|| flags.agent.clone()).or_else(|| flags.model.clone())
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
