//! `status`: how a store is, in a few lines.

use std::collections::BTreeMap;

use adjourn::core::time::Timestamp;
use adjourn::{Standing, Tally};
use serde_json::{Map, Value, json};

use crate::durations::span;
use crate::failure::Failure;
use crate::filter::Status;
use crate::liveness::{Health, Host, Living};
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::{Look, Output};

/// The states, in the order in which a session comes through them.
const STATES: [&str; 6] = ["idle", "ready", "running", "quiescing", "suspended", "ended"];
/// How wide the first column is.
const NAME: usize = "undelivered".len();

pub async fn run(settings: &Settings, status: &Status, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings).await?;
    let now = place.clock.now();
    if !status.wanted.is_anything() {
        return count(&place, status, output).await;
    }
    let hosts = Living::and_dead(&place).await?;
    let tally = place.adjourn.tally().await?;
    if output.json {
        output.data(&object(&place, &tally, &hosts).to_string());
        return Ok(());
    }
    let line = |name: &str, count: u64, more: &str| print(name, count, more, output);
    print_states(&tally.states, now, output);
    let since = tally.overdue_since.map(|since| now.since(since));
    let late = since.map(|late| format!("the oldest was due {} ago", span(late)));
    line("overdue", tally.overdue, &late.unwrap_or_default());
    line("undelivered", tally.undelivered, if tally.undelivered == 1 { "event" } else { "events" });
    if tally.unreadable > 0 {
        line("unreadable", tally.unreadable, "counted above, too: `adjourn ls` says why");
    }
    say_behind(tally.behind, output);
    let (alive, silent) = living(&hosts);
    let more = match silent {
        0 => runs(&hosts),
        silent => format!("{}; {silent} stopped or silent: `adjourn hosts`", runs(&hosts)),
    };
    line("hosts", alive, &more);
    let waits = tally.overdue + tally.undelivered > 0 || tally.states.contains_key("ready");
    if alive == 0 && waits {
        output.talk("no host is running to go on with what waits; start `adjourn serve`");
    }
    Ok(())
}

/// Counts the sessions that are asked for. Events and hosts are everybody's, and left out.
async fn count(place: &Place, status: &Status, output: &Output) -> Result<(), Failure> {
    let counted = place.adjourn.count(status.wanted.filter(place).await?).await?;
    let total: u64 = counted.states.values().map(|standing| standing.count).sum();
    if output.json {
        let mut object = json!({
            "store": place.adjourn.path().display().to_string(),
            "sessions": sessions(&counted.states),
        });
        if let (Some(object), 1..) = (object.as_object_mut(), counted.behind) {
            object.insert("behind".to_owned(), counted.behind.into());
        }
        output.data(&object.to_string());
        return Ok(());
    }
    print_states(&counted.states, place.clock.now(), output);
    print("in all", total, "", output);
    say_behind(counted.behind, output);
    Ok(())
}

/// Says that not everything is counted, if that is so.
fn say_behind(behind: u64, output: &Output) {
    if behind > 0 {
        output.talk(&format!("{behind} entries of the journal are not counted yet"));
    }
}

fn print(name: &str, count: u64, more: &str, output: &Output) {
    let name = output.word(Look::Dim, &format!("{name:<NAME$}"));
    output.data(format!("{name}  {count:>7}  {more}").trim_end());
}

/// Prints how many sessions are in which state.
fn print_states(states: &BTreeMap<&str, Standing>, now: Timestamp, output: &Output) {
    // What a newer program may have added to the states is counted, too.
    let unknown = states.keys().filter(|name| !STATES.contains(name));
    for name in STATES.iter().chain(unknown) {
        if let Some(Standing { count, oldest }) = states.get(name) {
            print(name, *count, &format!("the oldest for {}", span(now.since(*oldest))), output);
        }
    }
}

/// Returns how many sessions are in which state as an object.
fn sessions(states: &BTreeMap<&str, Standing>) -> Map<String, Value> {
    let mut sessions = Map::new();
    for name in STATES {
        let standing = states.get(name);
        let oldest = standing.map(|standing| standing.oldest.to_string());
        let count = standing.map_or(0, |standing| standing.count);
        sessions.insert(name.to_owned(), json!({ "count": count, "oldest": oldest }));
    }
    sessions
}

/// Counts the hosts that are alive, and of these those that give no sign of life.
fn living(hosts: &[Host]) -> (u64, u64) {
    let count = |which: &dyn Fn(&&Host) -> bool| {
        u64::try_from(hosts.iter().filter(which).count()).unwrap_or(u64::MAX)
    };
    let still = |host: &&Host| matches!(host.health(), Health::Silent | Health::Stopped);
    (count(&|host| host.alive), count(&still))
}

/// Says how much of their room the hosts use.
fn runs(hosts: &[Host]) -> String {
    let alive = || hosts.iter().filter(|host| host.alive);
    if alive().next().is_none() {
        return String::new();
    }
    let running: usize = alive().map(|host| host.drives.len()).sum();
    let room = alive().map(|host| match host.about.only_session() {
        Some(_) => 1,
        None => host.about.max_running().unwrap_or_default(),
    });
    format!("run {running} of {}", room.sum::<usize>())
}

fn object(place: &Place, tally: &Tally, hosts: &[Host]) -> Value {
    let (alive, silent) = living(hosts);
    let since = tally.overdue_since.map(|since| since.to_string());
    let mut object = json!({
        "store": place.adjourn.path().display().to_string(),
        "sessions": sessions(&tally.states),
        "overdue": { "count": tally.overdue, "since": since },
        "events": { "undelivered": tally.undelivered },
        "unreadable": { "count": tally.unreadable },
        "hosts": { "alive": alive, "silent": silent },
    });
    if let (Some(object), 1..) = (object.as_object_mut(), tally.behind) {
        object.insert("behind".to_owned(), tally.behind.into());
    }
    object
}
