//! `event`: tells the store that something happened.

use std::fmt;

use adjourn::Published;
use adjourn_core::Session;
use adjourn_core::id::{Seq, SessionId};
use adjourn_core::json;
use adjourn_core::session::State;
use adjourn_store::rows::NewEvent;
use adjourn_store::{CommandError, Delivered, Error, Reached, Store as _, Transaction};
use serde_json::json;

use crate::arguments::Event;
use crate::failure::Failure;
use crate::liveness::Living;
use crate::place::Place;
use crate::settings::Settings;
use crate::terminal::{Output, one_line};
use crate::text_argument::{MOST, not_json, typed};

/// How many sessions an event is delivered to right here; hosts go on with the others.
const BATCH: usize = 256;
/// How many sessions are counted that may wait for an event.
const COUNTED: usize = 10_000;

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
    let addressed = new.session;
    let (seq, fresh, told) = match take(&place, new).await {
        Err(adjourn::Error::NotFound(id)) => return Err(not_there(&place, id)?),
        taken => taken?,
    };
    let (woke, waiting) = (told.woken.len(), told.held + told.left + told.kept);
    let mut object = json!({ "seq": seq, "fresh": fresh, "woke": woke, "waiting": waiting });
    let notice = notice(&Living::of(&place)?, &told);
    if let (Some(object), Some(notice)) = (object.as_object_mut(), &notice) {
        object.insert("notice".to_owned(), notice.as_str().into());
    }
    let line = match (fresh, addressed) {
        (false, _) => "known already, and taken once".to_owned(),
        (true, Some(id)) if told.is_nothing() => {
            // The event is taken, whatever can be said of the session.
            let session = place.session(id).ok();
            session.and_then(|session| deaf(&session)).unwrap_or_else(|| told.to_string())
        }
        (true, _) => told.to_string(),
    };
    output.object(&object, &format!("event {seq}: {line}"));
    if let Some(notice) = notice {
        output.talk(&notice);
    }
    Ok(())
}

/// What an event did, as far as it is delivered.
#[derive(Default)]
struct Told {
    /// The sessions that it woke.
    woken: Vec<SessionId>,
    /// How many sessions wait for it under a hold: it counts when the hold is lifted.
    held: usize,
    /// How many sessions wait for it that it has not been delivered to.
    left: usize,
    /// How many sessions may wait for it that cannot be read, or lag: it is kept for them.
    kept: usize,
    /// Whether it was delivered to all of them.
    delivered: bool,
}

impl Told {
    /// What a delivery did for one event of those that it delivered.
    fn of(seq: Seq, delivered: &Delivered, left: usize) -> Self {
        let reached = delivered.reached.iter().filter(|reached| reached.seq == seq);
        let (woken, held): (Vec<_>, Vec<_>) = reached.copied().partition(|reached| reached.woke);
        let woken = woken.into_iter().map(|Reached { session, .. }| session).collect();
        let kept = delivered.kept.iter().filter(|kept| **kept == seq).count();
        Self { woken, held: held.len(), left, kept, delivered: delivered.done >= seq }
    }

    /// Returns whether no session waits for it.
    const fn is_nothing(&self) -> bool {
        self.woken.is_empty() && self.held == 0 && self.left == 0 && self.kept == 0
    }

    /// The same, if it is not to be: whom it would have woken waits for it.
    fn rehearsed(self) -> Self {
        let left = self.left + self.woken.len() + self.held;
        Self { left, kept: self.kept, delivered: left == 0, ..Self::default() }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sessions = |count: usize, one: &str, more: &str| match count {
            1 => format!("1 session {one}"),
            count => format!("{count} sessions {more}"),
        };
        let mut parts = Vec::new();
        match self.woken.len() {
            0 => {}
            1 => parts.push("woke 1 session".to_owned()),
            count => parts.push(format!("woke {count} sessions")),
        }
        if self.held > 0 {
            let held = sessions(self.held, "waits for it under a hold", "wait for it under holds");
            parts.push(held);
        }
        if self.left > 0 {
            parts.push(sessions(self.left, "waits for it", "wait for it"));
        }
        if self.kept > 0 {
            let (one, more) = ("waits for it and cannot be read", "wait for it and cannot be read");
            parts.push(sessions(self.kept, one, more));
        }
        if parts.is_empty() {
            parts.push("nobody waits for it".to_owned());
        }
        f.write_str(&parts.join("; "))
    }
}

/// Stores an event. Where a host lives it is delivered right here, as far as that is quick; where
/// none does, it is stored for the next one, and only looked up whom it will wake.
async fn take(place: &Place, event: NewEvent) -> Result<(Seq, bool, Told), adjourn::Error> {
    let (new, by) = (event.clone(), place.adjourn.by());
    let deliver = move |tx: &mut Transaction<'_>| -> Result<(Seq, bool, Told), CommandError> {
        let (seq, fresh) = tx.acknowledge(&new)?;
        if !fresh {
            return Ok((seq, fresh, Told { delivered: true, ..Told::default() }));
        }
        let delivered = tx.deliver(&by, BATCH)?;
        let left = tx.awaiting(seq, COUNTED)?;
        Ok((seq, fresh, Told::of(seq, &delivered, left)))
    };
    let hosted = place.store.hosts()?.iter().any(|host| place.lives(host.id));
    let told = if hosted {
        match place.adjourn.transact(deliver).await {
            // What keeps an event from being delivered does not keep it from being stored.
            Err(CommandError::Store(Error::Damaged(_))) => Told::default(),
            taken => return Ok(taken?),
        }
    } else {
        // What is answered with an error leaves no trace.
        let rehearsal = place.adjourn.transact(move |tx| match deliver(tx) {
            Ok((_, _, told)) => Err(Rehearsed::Told(told)),
            Err(error) => Err(Rehearsed::Failed(error)),
        });
        match rehearsal.await {
            Err(Rehearsed::Told(told)) => told.rehearsed(),
            Ok(()) | Err(Rehearsed::Failed(CommandError::Store(Error::Damaged(_)))) => {
                Told::default()
            }
            Err(Rehearsed::Failed(error)) => return Err(error.into()),
        }
    };
    let Published { seq, fresh } = place.adjourn.publish(event).await?;
    Ok((seq, fresh, told))
}

/// How a delivery went that is not to be.
enum Rehearsed {
    Told(Told),
    Failed(CommandError),
}

impl From<Error> for Rehearsed {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
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
fn notice(living: &Living, told: &Told) -> Option<String> {
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
