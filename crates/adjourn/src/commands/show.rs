//! `show`: one session.

use adjourn_core::Session;
use adjourn_core::event::What;
use adjourn_store::Store as _;
use serde_json::{Map, Value, json};

use crate::arguments::Which;
use crate::durations::span;
use crate::failure::Failure;
use crate::liveness::{Host, Living};
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::{Look, Output, one_line};
use crate::view::View;

/// Entries read to find the last prompt and to count them: a longer journal is not counted.
const MOST_ENTRIES: usize = 4096;
/// Entries read at a time.
const PAGE: usize = 256;

pub fn run(settings: &Settings, which: &Which, output: &Output) -> Result<(), Failure> {
    let place = Place::look(settings)?;
    let id = place.find(&which.session)?;
    let session = place.session(id)?;
    let living = Living::of(&place)?;
    let view = View { session: &session, now: place.clock.now(), living: &living };
    let mut object = view.json();
    let life = Life::of(&place, &session)?;
    if output.json {
        if let Some(object) = object.as_object_mut() {
            life.add_to(object, living.driving(&session));
        }
        output.data(&object.to_string());
        return Ok(());
    }
    let text = view.text();
    output.data(&format!("{}  {}", output.word(Look::Bold, &id.to_string()), text));
    if let Some(under) = view.under() {
        output.data(&format!("  {under}"));
    }
    let line = |key: &str, value: &str| {
        let key = output.word(Look::Dim, &format!("{key:<20}"));
        output.data(&format!("  {key} {}", one_line(value)));
    };
    let said = [("prompt", life.prompt.as_str()), ("lastWords", life.last_words)];
    said.iter().filter(|(_, words)| !words.is_empty()).for_each(|(key, words)| line(key, words));
    if let Some(runs) = life.runs {
        line("runs", &runs.to_string());
    }
    if let Some(host) = living.driving(&session) {
        line("host", &format!("{}, there for {}", host.name(), span(view.now.since(host.since))));
    }
    for (key, value) in object.as_object().into_iter().flatten() {
        // What has a line above needs none here, nor has what there is nothing of.
        let nothing = value.as_object().is_some_and(serde_json::Map::is_empty);
        if key != "sessionId" && key != "heldWait" && !nothing {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            line(key, &value);
        }
    }
    Ok(())
}

/// What a session was asked, and what it said.
struct Life<'a> {
    /// The beginning of its last prompt.
    prompt: String,
    /// How many prompts it was given, unless its journal is too long to count them.
    runs: Option<usize>,
    /// The beginning of what its agent said last.
    last_words: &'a str,
}

impl<'a> Life<'a> {
    fn of(place: &Place, session: &'a Session) -> Result<Self, Failure> {
        let places = place.store.places(session.id, 1)?;
        let all = places.len() <= MOST_ENTRIES;
        let last = places.get(places.len().saturating_sub(MOST_ENTRIES)..).unwrap_or_default();
        let (mut runs, mut prompt) = (0, session.memory.first_prompt.clone());
        for page in last.chunks(PAGE) {
            for entry in place.store.entries(session.id, page)? {
                if let What::RunStarted(started) = entry.event.what {
                    runs += 1;
                    prompt = started.content.map_or(prompt, |content| content.excerpt);
                }
            }
        }
        let last_words = session.memory.last_words.as_str();
        Ok(Self { prompt, runs: all.then_some(runs), last_words })
    }

    fn add_to(&self, object: &mut Map<String, Value>, host: Option<&Host>) {
        let text = |text: &str| Some(json!(text)).filter(|_| !text.is_empty());
        let host = host.map(|host| {
            json!({ "hostId": host.id, "pid": host.about.pid(), "since": host.since.to_string() })
        });
        for (key, value) in [
            ("prompt", text(&self.prompt)),
            ("lastWords", text(self.last_words)),
            ("runs", self.runs.map(|runs| json!(runs))),
            ("host", host),
        ] {
            object.extend(value.map(|value| (key.to_owned(), value)));
        }
    }
}
