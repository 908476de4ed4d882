//! `hosts`: which processes drive sessions, how much they run, and whether they are well.

use adjourn::core::time::Timestamp;
use serde_json::{Value, json};

use crate::durations::span;
use crate::failure::Failure;
use crate::liveness::{Health, Host, Living};
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::{Look, Output, fill};
use crate::view::short;

/// The columns, and how wide they are at least.
const HEAD: [(&str, usize); 4] = [("PID", 8), ("SINCE", 8), ("RUNS", 9), ("SIGN", 8)];

pub async fn run(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings).await?;
    let now = place.clock.now();
    let hosts = Living::and_dead(&place).await?;
    let columns = |cells: [String; 4]| {
        let cells = HEAD.iter().zip(cells).map(|((_, width), cell)| fill(&cell, *width));
        cells.collect::<Vec<_>>().join("  ")
    };
    if output.columns().is_some() && !output.json && !hosts.is_empty() {
        let head = columns(HEAD.map(|(name, _)| name.to_owned()));
        output.data(&output.word(Look::Dim, &format!("{head}  STATE")));
    }
    for host in &hosts {
        let health = host.health();
        let pid = host.about.pid().map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let sign = host.sign.map_or_else(|| "-".to_owned(), |sign| format!("{} ago", span(sign)));
        let cells = columns([pid, span(now.since(host.since)), runs(host), sign]);
        let word = output.word(look(health), health.word());
        output.object(&object(host, now), format!("{cells}  {word}{}", about(host)).trim_end());
    }
    for host in &hosts {
        if let Some(advice) = advice(host) {
            output.talk(&advice);
        }
    }
    if hosts.is_empty() {
        output.talk("no host is running; `adjourn serve` is one");
    }
    Ok(())
}

const fn look(health: Health) -> Look {
    match health {
        Health::Alive => Look::Green,
        Health::Silent | Health::Stopped => Look::Yellow,
        Health::Dead => Look::Red,
    }
}

/// Says how much a host runs, and how much it may.
fn runs(host: &Host) -> String {
    let running = host.drives.len();
    match (host.about.only_session(), host.about.max_running()) {
        (Some(_), _) => format!("{running} of 1"),
        (None, Some(room)) => format!("{running} of {room}"),
        (None, None) => running.to_string(),
    }
}

/// Says whom a host is there for, if not for all, and how many agents it keeps warm, if any.
fn about(host: &Host) -> String {
    let only = host.about.only_session();
    let only = only.map(|id| format!("; only for {}", short(&id.to_string())));
    let warm = Some(host.keeps.len()).filter(|warm| *warm > 0);
    let warm = warm.map(|warm| format!("; keeps {warm} warm"));
    only.into_iter().chain(warm).collect()
}

/// Says what to do about a host that is not well.
fn advice(host: &Host) -> Option<String> {
    let name = host.name();
    let pid = host.about.pid().map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    Some(match host.health() {
        Health::Alive => return None,
        Health::Stopped => format!(
            "{name} is stopped: let it go on with `kill -CONT {pid}`, or take its sessions with \
             `adjourn takeover ID`"
        ),
        Health::Silent => format!(
            "{name} holds its lock and gives no sign of life: it hangs, or it was stopped \
             elsewhere; `adjourn takeover ID` takes its sessions, `kill -9 {pid}` ends it"
        ),
        Health::Dead if host.drives.is_empty() => return None,
        Health::Dead => format!("{name} died; the next host takes over what it had"),
    })
}

fn object(host: &Host, now: Timestamp) -> Value {
    let mut object = json!({
        "hostId": host.id,
        "pid": host.about.pid(),
        "state": host.health().word(),
        "since": host.since.to_string(),
        "running": host.drives.len(),
        "warm": host.keeps.len(),
        "room": host.about.only_session().map_or(host.about.max_running(), |_| Some(1)),
        "lastSign": host.sign.map(|sign| now.before(sign).to_string()),
    });
    if let (Some(object), Some(only)) = (object.as_object_mut(), host.about.only_session()) {
        object.insert("only".to_owned(), json!(only));
    }
    object
}
