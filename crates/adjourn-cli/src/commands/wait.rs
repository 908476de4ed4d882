//! `wait`: returns when a session is idle, suspended or ended, or when the time is over.

use std::time::Duration;

use adjourn::core::Session;
use adjourn::core::event::{Event, What};
use adjourn::core::session::State;
use tokio::time::Instant;

use crate::arguments::{Wait, WaitFor};
use crate::durations::exact;
use crate::failure::Failure;
use crate::liveness::Living;
use crate::place::Place;
use crate::settings::Settings;
use crate::signals::{Ended, Signals};
use crate::terminal::Output;
use crate::view::{View, short};
use crate::watch::{Seen, Watch};

pub async fn run(settings: &Settings, wait: &Wait, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings).await?;
    let id = place.find(&wait.which.session).await?;
    let mut session = place.session(id).await?;
    let mut watcher = Watch::after(&place, &session);
    let mut signals = Signals::new()?;
    let until = wait.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut reached = wait.states.iter().any(|state| is_in(*state, &session));
    loop {
        if reached {
            return place.tell(&session, output).await;
        }
        if let State::Ended(_) = session.state {
            let message = format!("it has ended, and will not be {} again", named(&wait.states));
            return Err(Failure::refused("ENDED", message).hint(format!("adjourn show {id}")));
        }
        let living = Living::of(&place).await?;
        let view = || View { session: &session, now: place.clock.now(), living: &living };
        let line = || {
            let row = view().row();
            format!("{} for {}: {} · Ctrl-C leaves it", row.state, row.since, row.why)
        };
        tokio::select! {
            () = output.live_while(watcher.wait(), line) => {}
            () = over(until) => return Err(late(&view(), wait.timeout)),
            Ended(code) = signals.next() => {
                let id = id.to_string();
                return Err(Failure::interrupted(code, format!("left; it is {}", session.phase()))
                    .hint(format!("adjourn show {}", short(&id))));
            }
        }
        let Some(Seen { session: now, moments }) = watcher.look().await? else {
            return Err(Failure::no_session(id));
        };
        // What it came to counts, also if it has gone on since.
        reached = wait.states.iter().any(|state| {
            is_in(*state, &now) || moments.iter().any(|moment| comes_to(*state, &moment.event))
        });
        session = now;
    }
}

const fn is_in(state: WaitFor, session: &Session) -> bool {
    match state {
        WaitFor::Idle => matches!(session.state, State::Idle),
        WaitFor::Suspended => matches!(session.state, State::Suspended(_)),
        WaitFor::Ended => matches!(session.state, State::Ended(_)),
    }
}

/// Returns whether an event brings a session into a state.
const fn comes_to(state: WaitFor, event: &Event) -> bool {
    match state {
        WaitFor::Idle => matches!(event.what, What::RunEnded(_)),
        WaitFor::Suspended => matches!(event.what, What::Suspended(_)),
        WaitFor::Ended => matches!(event.what, What::SessionEnded(_)),
    }
}

async fn over(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

fn named(states: &[WaitFor]) -> String {
    let names = states.iter().map(|state| match state {
        WaitFor::Idle => "idle",
        WaitFor::Suspended => "suspended",
        WaitFor::Ended => "ended",
    });
    names.collect::<Vec<_>>().join(" or ")
}

/// Says that the time is over, and where the session stands instead.
fn late(view: &View<'_>, timeout: Option<Duration>) -> Failure {
    let after = exact(timeout.unwrap_or_default());
    Failure::late(format!("not in time: after {after} it is {}", view.standing()))
        .hint(format!("adjourn show {}", short(&view.session.id.to_string())))
}
