//! `event`: tells the store that something happened.

use adjourn_core::id::SessionId;
use adjourn_core::json;
use adjourn_store::rows::NewEvent;
use adjourn_store::{CommandError, Store as _};
use serde_json::json;

use crate::arguments::Event;
use crate::failure::Failure;
use crate::living::Living;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::{Output, one_line};
use crate::typed::{MOST, not_json, typed};

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
    let place = Place::open_or_make(settings)?;
    let new = NewEvent {
        id: event.id.unwrap_or_else(|| place.clock.uuid().to_string()),
        source: settings.source.value.clone(),
        name,
        subject,
        time: place.clock.now(),
        tenant: settings.tenant.value.clone(),
        session: event.session.as_deref().map(|text| place.find(text)).transpose()?,
        data,
    };
    let acknowledged = place.store.transact(move |tx| tx.acknowledge(&new)).await;
    let (seq, fresh) = match acknowledged {
        Err(CommandError::NotFound(id)) => return Err(not_there(&place, id)?),
        other => other?,
    };
    place.hosts.ring();
    let line = if fresh { format!("{seq}") } else { format!("{seq} (known already)") };
    let notice = Living::of(&place)?
        .is_empty()
        .then_some("stored; it is delivered when a host runs: `adjourn serve`");
    let mut object = json!({ "seq": seq, "fresh": fresh });
    if let (Some(object), Some(notice)) = (object.as_object_mut(), notice) {
        object.insert("notice".to_owned(), notice.into());
    }
    output.object(&object, &line);
    if let Some(notice) = notice.filter(|_| !output.json) {
        output.talk(notice);
    }
    Ok(())
}

/// Says why an event cannot be for a session: nobody has it, or somebody else.
fn not_there(place: &Place, id: SessionId) -> Result<Failure, Failure> {
    let Some(session) = place.store.session(id)? else { return Ok(Failure::no_session(id)) };
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
