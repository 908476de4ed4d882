//! `event`: tells the store that something happened.

use adjourn_store::Store as _;
use adjourn_store::rows::NewEvent;
use serde_json::json;

use crate::arguments::Event;
use crate::failure::Failure;
use crate::living::Living;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::Output;
use crate::typed::typed;

pub async fn run(settings: &Settings, event: Event, output: &Output) -> Result<(), Failure> {
    let data = event.data.map(typed).transpose()?;
    if let Some(data) = &data {
        serde_json::from_str::<serde_json::Value>(data)
            .map_err(|error| Failure::usage(format!("--data is not JSON: {error}")))?;
    }
    let place = Place::open(settings)?;
    let (name, subject) = match event.name.split_once(':') {
        Some((name, subject)) => (name.to_owned(), Some(subject.to_owned())),
        None => (event.name, None),
    };
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
    let (seq, fresh) = place.store.transact(move |tx| tx.acknowledge(&new)).await?;
    place.hosts.ring();
    let line = if fresh { format!("{seq}") } else { format!("{seq} (known already)") };
    output.object(&json!({ "seq": seq, "fresh": fresh }), &line);
    if Living::of(&place)?.is_empty() {
        output.talk("stored; it is delivered when a host runs: `adjourn serve`");
    }
    Ok(())
}
