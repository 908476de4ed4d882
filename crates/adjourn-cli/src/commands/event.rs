//! `event`: tells the store that something happened.

use adjourn::core::Session;
use adjourn::core::id::SessionId;
use adjourn::core::json;
use adjourn::core::session::State;
use adjourn::{Published, Reception};
use serde_json::json;

use crate::arguments::Event;
use crate::failure::Failure;
use crate::liveness::Living;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::{Output, one_line};
use crate::text_argument::{MOST, not_json, typed};

pub async fn run(settings: &Settings, event: Event, output: &Output) -> Result<(), Failure> {
    let data = event.data.map(typed).transpose()?;
    if let Some(data) = &data {
        json::read::<serde_json::Value>(data.as_bytes(), MOST).map_err(|error| {
            not_json("--data", "a text needs quotes of its own: --data '\"text\"'", error)
        })?;
    }
    let (name, subject) = match event.name.split_once(':') {
        Some((name, subject)) => (name.to_owned(), Some(subject.to_owned())),
        None => (event.name, None),
    };
    if name.is_empty() {
        return Err(Failure::usage("NAME: must not be empty").hint("say what happened: ci.passed"));
    }
    if let Some(odd) = odd(&name) {
        output.talk(&one_line(&format!("the name {name:?} {odd}; it is sent as it is")));
    }
    let place = Place::open_or_make(settings).await?;
    let addressed = match &event.session {
        Some(text) => Some(place.find(text).await?),
        None => None,
    };
    let mut new = adjourn::Event::new(name)
        .source(settings.source.value.clone())
        .to(addressed)
        .data_json(data);
    if let Some(subject) = subject {
        new = new.subject(subject);
    }
    if let Some(id) = event.id {
        new = new.id(id);
    }
    let (Published { seq, fresh }, told) = match place.adjourn.publish_and_deliver(new).await {
        Err(adjourn::Error::NotFound(id)) => return Err(not_there(&place, id).await?),
        taken => taken?,
    };
    let (woke, waiting) = (told.woken.len(), told.held + told.left + told.kept);
    let mut object = json!({ "seq": seq, "fresh": fresh, "woke": woke, "waiting": waiting });
    let notice = notice(&Living::of(&place).await?, &told);
    if let (Some(object), Some(notice)) = (object.as_object_mut(), &notice) {
        object.insert("notice".to_owned(), notice.as_str().into());
    }
    let line = match (fresh, addressed) {
        (false, _) if told.is_nothing() => "known already, and taken once".to_owned(),
        (false, _) => format!("known already; {}", effect(&told)),
        (true, Some(id)) if told.is_nothing() => {
            // The event is taken, whatever can be said of the session.
            let session = place.session(id).await.ok();
            session.and_then(|session| deaf(&session)).unwrap_or_else(|| effect(&told))
        }
        (true, _) => effect(&told),
    };
    output.object(&object, &format!("event {seq}: {line}"));
    if let Some(notice) = notice {
        output.talk(&notice);
    }
    Ok(())
}

/// Says what an event did.
fn effect(told: &Reception) -> String {
    let sessions = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 session {one}"),
        count => format!("{count} sessions {more}"),
    };
    let mut parts = Vec::new();
    match told.woken.len() {
        0 => {}
        1 => parts.push("woke 1 session".to_owned()),
        count => parts.push(format!("woke {count} sessions")),
    }
    if told.held > 0 {
        let held = sessions(told.held, "waits for it under a hold", "wait for it under holds");
        parts.push(held);
    }
    if told.left > 0 {
        parts.push(sessions(told.left, "waits for it", "wait for it"));
    }
    if told.kept > 0 {
        let (one, more) = ("waits for it and cannot be read", "wait for it and cannot be read");
        parts.push(sessions(told.kept, one, more));
    }
    if parts.is_empty() {
        parts.push("nobody waits for it".to_owned());
    }
    parts.join("; ")
}

/// Says why an event that was addressed to a session does nothing there, if the session is the cause.
fn deaf(session: &Session) -> Option<String> {
    let id = session.id;
    match &session.state {
        State::Ended(_) => Some(format!("{id} has ended")),
        State::Suspended(suspended) if suspended.shown().pause.is_clients() => {
            let pause = &suspended.shown().pause;
            let why = pause.reason.as_deref().map(|reason| format!(": {}", one_line(reason)));
            let (who, why) = (one_line(&pause.by.who()), why.unwrap_or_default());
            Some(format!("{id} is paused by {who}{why}; an event does not lift that"))
        }
        _ => None,
    }
}

/// Says what is missing for the event to have its effect.
fn notice(living: &Living, told: &Reception) -> Option<String> {
    if told.left > 0 || !told.delivered {
        return Some(match living.is_empty() {
            true => "it is delivered when a host runs: `adjourn serve`".to_owned(),
            false => "a host delivers it".to_owned(),
        });
    }
    let idle = told.woken.iter().any(|id| living.nobody_for(*id));
    idle.then(|| "no host is running to go on with it; start `adjourn serve`".to_owned())
}

/// Says why an event cannot be for a session: there is none, or it is another tenant's.
async fn not_there(place: &Place, id: SessionId) -> Result<Failure, Failure> {
    let session = place.session(id).await?;
    let (whose, ours) = (&session.tenant, &place.settings.tenant.value);
    Ok(Failure::not_found(format!("session {id} is of tenant {whose:?}, the event of {ours:?}"))
        .hint(format!("add --tenant {whose}")))
}

/// Says what is odd about the name of an event: it is taken, but hardly what was meant.
fn odd(name: &str) -> Option<&'static str> {
    if name.contains('*') {
        return Some("has a wildcard, which only means something to whoever waits");
    }
    if name.contains(char::is_whitespace) {
        return Some("has a space");
    }
    name.split('.').any(str::is_empty).then_some("has an empty part")
}
