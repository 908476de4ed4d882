//! `takeover`: takes a session from a host that hangs, for whichever host is free to go on with.

use adjourn::TakenOver;
use adjourn::core::Session;
use adjourn::core::id::HostId;
use adjourn::core::session::{Phase, State};
use serde_json::json;

use crate::arguments::Takeover;
use crate::failure::Failure;
use crate::going_on::command;
use crate::liveness::Living;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;
use crate::view::View;

pub async fn run(settings: &Settings, takeover: &Takeover, output: &Output) -> Result<(), Failure> {
    let place = Place::open(settings).await?;
    let id = place.find(&takeover.which.session).await?;
    match place.adjourn.session(id).take_over().await? {
        TakenOver::From { host, commit } => tell(&place, &commit.session, host, output).await,
        TakenOver::Nobody(session) => Err(nobodys(&session)),
    }
}

/// The failure of a takeover where no host has the session.
fn nobodys(session: &Session) -> Failure {
    let command = || command(session, &session.id.to_string());
    let hint = match session.phase() {
        Phase::Ready => "start a host: `adjourn serve`".to_owned(),
        Phase::Suspended => format!("wake it: `{}`", command()),
        Phase::Asking => format!("answer it: `{}`", command()),
        _ => "`adjourn ls` shows what runs".to_owned(),
    };
    let message = format!("no host runs the session: it is {}", session.phase());
    Failure::refused("NOT_RUNNING", message).hint(hint)
}

async fn tell(
    place: &Place,
    session: &Session,
    host: HostId,
    output: &Output,
) -> Result<(), Failure> {
    let known = place.adjourn.known_host(host).await?;
    let process = known.as_ref().and_then(|known| known.about.pid());
    let alive = known.is_some_and(|known| known.alive);
    let living = Living::of(place).await?;
    let view = View { session, now: place.clock.now(), living: &living };
    let mut object = view.json();
    if let Some(object) = object.as_object_mut() {
        object.insert(
            "takenFrom".to_owned(),
            json!({ "host": host, "pid": process, "alive": alive }),
        );
    }
    output.object(&object, &format!("{}  {}", session.id, view.text()));
    match process {
        Some(process) if alive => output.talk(&format!(
            "process {process} had it; what it still does for the session is refused. If it \
             hangs for good, end it: kill -9 {process}"
        )),
        _ => {}
    }
    let nobody = living.nobody_but(host, session.id);
    if matches!(session.state, State::Ready(_)) && nobody {
        output.talk("no other host runs; start one: `adjourn serve`");
    }
    Ok(())
}
