//! The agent that other agents talk to.

use std::path::Path;
use std::sync::Arc;

use adjourn::core::driver::Need;
use adjourn::store::Sqlite;
use adjourn_a2a::{Agent, Face, Receivers};
use adjourn_server::Pusher;

use crate::arguments::{AgentFlags, Profile, Push, Serve};
use crate::chosen::Chosen;
use crate::failure::Failure;
use crate::native::models;
use crate::place::Place;
use crate::settings::Settings;

/// An agent, and what tells others of its tasks.
pub type Served = (Arc<Face<Sqlite>>, Option<Arc<Pusher>>);

/// Finds out which agent is asked for, and what it is called, if one is.
pub fn chosen(settings: &Settings, serve: &Serve) -> Result<Option<(String, Chosen)>, Failure> {
    let Some(name) = name(&serve.agent) else { return Ok(None) };
    if settings.listen.value.is_none() {
        return Err(Failure::usage(format!("other agents cannot reach {name}"))
            .hint("say where to listen: --listen 127.0.0.1:7070"));
    }
    let chosen = Chosen::by(&serve.agent, settings)?.run_here()?.working_in(None)?;
    let chosen = chosen.within(None)?;
    // No person can be asked here: better no agent than one whose tasks wait for ever.
    if chosen.driver.needs.contains(&Need::Permissions) {
        return Err(Failure::other(format!("{name} asks for permissions, which needs an editor"))
            .hint("an editor runs it: `adjourn acp`"));
    }
    Ok(Some((name, chosen)))
}

/// Makes the agent that was chosen.
pub fn agent(
    place: &Place,
    serve: &Serve,
    (name, chosen): (String, Chosen),
) -> Result<Served, Failure> {
    let Chosen { driver, budget, .. } = chosen;
    let budget = budget.unwrap_or_default();
    let settled = serve.agent.agent.as_ref().and_then(|name| place.settings.agents.get(name));
    let pausable = settled.is_none_or(|settled| settled.pausable);
    let description = match pausable {
        true => format!("The agent {name}, whose tasks can be paused and resumed"),
        false => format!("The agent {name}"),
    };
    let agent = Agent { name, description, driver, budget, pausable };
    let profile = match place.settings.a2a_profile.value {
        Profile::Adjourn => adjourn_a2a::Profile::Adjourn,
        Profile::Rfc => adjourn_a2a::Profile::Rfc,
    };
    let face = Face::new(place.adjourn.clone(), agent, profile);
    let push = place.settings.push.value;
    if push == Push::Off {
        return Ok((Arc::new(face), None));
    }
    let pusher = Pusher::new(push == Push::Loopback).map_err(|problem| {
        Failure::other(format!("cannot send push notifications: {problem}"))
            .hint("--push off does without them")
    })?;
    let pusher = Arc::new(pusher);
    let receivers: Arc<dyn Receivers> = Arc::<Pusher>::clone(&pusher);
    Ok((Arc::new(face.pushing_to(receivers)), Some(pusher)))
}

/// Returns what the agent is called that flags choose; nothing if they choose none. Everybody is told
/// it: a file has its name there, and not the way to it.
fn name(flags: &AgentFlags) -> Option<String> {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let model = |model: &String| match models::file(model) {
        Some(path) => stem(path),
        None => Some(model.clone()),
    };
    let script = flags.script.as_deref().and_then(stem);
    script.or_else(|| flags.agent.clone()).or_else(|| flags.model.as_ref().and_then(model))
}
