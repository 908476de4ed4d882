//! Who may do what over HTTP.

use std::net::SocketAddr;
use std::path::Path;

use adjourn_a2a::Scope;
use adjourn_server::{Access, Token, can_be_reached};

use crate::arguments::Serve;
use crate::failure::Failure;
use crate::input_file::{self, SETTINGS_BYTES};
use crate::place::Place;

/// What to do where there is no token.
const HINT: &str = "set ADJOURN_TOKEN or --token-file for events, name tokens with --tokens-file, \
                    or let everybody on this machine in with --insecure-open";
/// What to do where no token is one for the agent.
const AGENT_HINT: &str = "name a file of them with --tokens-file, or let everybody on this machine \
                          in with --insecure-open";

/// What to do where everybody would be let in under a name for others.
const OPEN_HINT: &str = "--insecure-open is for this machine alone; name tokens with --tokens-file, \
                         or leave serve.public_name out";

/// Finds out who may do what: those who show the token for events, those who show one of a file, and
/// everybody on this machine if that is asked for.
pub fn access(
    place: &Place,
    serve: &Serve,
    address: &SocketAddr,
    has_agent: bool,
) -> Result<Access, Failure> {
    let tenant = place.settings.tenant.value.as_str();
    let (token, open) = place.settings.token()?;
    if let Some(path) = open {
        tracing::warn!("{0} can be read by others: chmod 600 {0}", path.display());
    }
    let mut tokens: Vec<_> = token.iter().map(|token| Token::for_events(token, tenant)).collect();
    if let Some(path) = &place.settings.tokens_file.value {
        tokens.extend(read(path, tenant)?);
    }
    // A name for others means that something in front of the server lets them through to it.
    if let (true, Some(name)) = (serve.insecure_open, &place.settings.public_name.value) {
        return Err(Failure::usage(format!("{name} is a name for others")).hint(OPEN_HINT));
    }
    match (serve.insecure_open, can_be_reached(address)) {
        (true, true) => Err(Failure::usage(format!("{address} can be reached by others"))
            .hint("--insecure-open is for loopback addresses; name tokens with --tokens-file")),
        (true, false) => Ok(Access::with(tokens).open_to_all(tenant)),
        (false, _) if tokens.is_empty() => {
            Err(Failure::usage("no caller could be let in: there are no tokens").hint(HINT))
        }
        (false, _) if has_agent && !tokens.iter().any(is_for_agents) => {
            let problem = "no agent could talk to this one: there are no tokens for it";
            Err(Failure::usage(problem).hint(AGENT_HINT))
        }
        (false, _) => Ok(Access::with(tokens)),
    }
}

/// Returns whether a token allows anything of an agent's tasks.
fn is_for_agents(token: &Token) -> bool {
    let scopes = Scope::ALL.into_iter().filter(|scope| *scope != Scope::Event);
    scopes.into_iter().any(|scope| token.allows(scope))
}

/// Reads a file of tokens; lines that are empty or begin with `#` are left out.
fn read(path: &Path, tenant: &str) -> Result<Vec<Token>, Failure> {
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
