//! `resume`: wakes a session, and runs it on if no other host does.

use std::sync::Arc;
use std::time::Duration;

use adjourn::Claims;
use adjourn::core::Session;
use adjourn::core::event::What;
use adjourn::core::session::{Phase, State, Wait};
use adjourn::driver::Message;
use adjourn::store::Done;
use serde_json::json;

use crate::arguments::Resume;
use crate::failure::Failure;
use crate::foreground::{Stayed, Stop, Until, host, host_if_no_other, leave, outcome, stop};
use crate::going_on::{command, takes_words};
use crate::liveness::{Living, starts};
use crate::place::Place;
use crate::question::stay_answering;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::terminal::{Output, marking_breaks};
use crate::text_argument::input;
use crate::used::used;
use crate::view::{helps, resumption};
use crate::watch::Watch;

/// How long a host has to take a session, or to say why it does not.
const TRIES: Duration = Duration::from_secs(2);

pub async fn run(settings: &Settings, resume: Resume, output: &Output) -> Result<(), Failure> {
    let given = resume.handle.as_deref().map(str::parse).transpose();
    let given = given.map_err(|error| {
        Failure::usage(format!("--handle: {error}")).hint("`adjourn show` has the one that is open")
    })?;
    let said = resume.input.map(input).transpose()?.flatten().map(Message::user_value);
    let place = Place::open(settings).await?;
    let id = place.find(&resume.which.session).await?;
    let session = place.recovered(id, output).await?;
    // It was woken, or given back, and no host runs it yet: what is wanted is clear.
    let bare = given.is_none()
        && said.is_none()
        && resume.add_budget.is_none()
        && !resume.fresh
        && resume.idempotency_key.is_none();
    let is_clear = matches!(session.state, State::Ready(_)) || asks_here(&session, output);
    if bare && !resume.detach && is_clear {
        return go_on(&place, &session, None, false, output).await;
    }
    // Without --handle, the user means the question that is shown. A key says by itself what
    // is meant, and a retry must not differ from the first try.
    let by_sight = resume.idempotency_key.is_none() && session.phase() == Phase::Asking;
    let shown = session.suspended().filter(|_| by_sight);
    let handle = given.or(shown.map(|suspended| suspended.shown().pause.handle));
    let mut wake = place.adjourn.session(id).resume().handle(handle);
    if let Some(said) = said {
        wake = wake.input(said);
    }
    if resume.fresh {
        wake = wake.fresh();
    }
    if let Some(key) = resume.idempotency_key {
        wake = wake.key(key);
    }
    if let Some(added) = resume.add_budget {
        wake = wake.add_budget(added);
    }
    let staying = host_for(&place, &session, resume.detach, output).await?;
    let woken = match wake.await {
        Ok(woken) => woken,
        Err(refused) => {
            let refused = with_question(refused.into(), &session);
            return Err(dismiss(staying, refused).await);
        }
    };
    if let (true, Some(resumed)) = (output.json, woken.resumption()) {
        output.data(&json!({ "resumed": resumption(resumed) }).to_string());
    }
    let Done { session, events, .. } = &woken.commit;
    go_on(&place, session, staying, resume.detach, output).await?;
    // What ended right there, or was resumed before with the same key, has an outcome, too.
    let ended = events.iter().any(|event| matches!(event.what, What::RunEnded(_)));
    match (ended || woken.repeated) && !resume.detach {
        true => outcome(&*place.session(id).await?),
        false => Ok(()),
    }
}

/// What a command has that stays with a session: the signals that end it, heard from before anything
/// can run here, and a host in this process, if it needs one.
pub struct Staying {
    working: Option<Stop>,
    signals: Signals,
}

/// Becomes the host of a session that is about to be given work, if the command stays with it and
/// no other host can run it: what makes it ready is claimed in the same commit then.
pub async fn host_for(
    place: &Place,
    session: &Session,
    detach: bool,
    output: &Output,
) -> Result<Option<Staying>, Failure> {
    // To one that is at work, a command gives nothing to do.
    let rests = matches!(session.state, State::Idle | State::Suspended(_));
    if detach || !rests {
        return Ok(None);
    }
    let signals = Signals::new()?;
    let working = host_if_no_other(place, session, output).await?;
    Ok(Some(Staying { working, signals }))
}

/// Returns whether a session asks something that the person at this terminal can answer.
fn asks_here(session: &Session, output: &Output) -> bool {
    takes_words(session) && output.keyboard().is_some()
}

/// Adds what is asked, and how it is answered, to the refusal of a reply that says nothing.
pub fn with_question(refused: Failure, session: &Session) -> Failure {
    let wait = session.suspended().map(|suspended| &suspended.shown().pause.wait);
    let Some(Wait::Question(question)) = wait.filter(|_| refused.is_refused("EMPTY_REPLY")) else {
        return refused;
    };
    let (context, choices) = helps(question);
    let asked = format!("{}{context}{choices}", marking_breaks(&question.question));
    let command = command(session, &session.id.to_string());
    refused.hint(format!("it asks: {asked}; answer with `{command}`"))
}

/// Stops a host that has nothing to do, because the command was refused.
pub async fn dismiss(staying: Option<Staying>, refused: Failure) -> Failure {
    if let Some(working) = staying.and_then(|staying| staying.working) {
        // Why the command was refused is what matters.
        let _ = working.now().await;
    }
    refused
}

/// Stays with a session that a command gave work to do, as its host if there is no other.
///
/// `session` is what the command made of it. By now another host may be done with it; what that
/// one said and how it ended is told all the same.
pub async fn go_on(
    place: &Place,
    session: &Arc<Session>,
    staying: Option<Staying>,
    detach: bool,
    output: &Output,
) -> Result<(), Failure> {
    let id = session.id;
    let (mut working, signals) = match staying {
        Some(Staying { working, signals }) => (working, Some(signals)),
        None => (None, None),
    };
    let hosted = !Living::of(place).await?.nobody_awake_for(id);
    let at_work = matches!(session.state, State::Ready(_) | State::Running(_));
    if detach || !(at_work || asks_here(session, output)) {
        if let Some(working) = working {
            working.now().await?;
        }
        let ready = matches!(session.state, State::Ready(_));
        let notice = if detach && ready { left_ready(place, session).await? } else { None };
        return place.tell_with(session, notice, output).await;
    }
    let mut signals = signals.map_or_else(Signals::new, Ok)?;
    if !hosted {
        working = Some(host(place, Claims::Only(id), output).await?);
    }
    let (until, keyboard) = (Until::Parked, output.keyboard());
    let keyboard = keyboard.as_deref();
    let stayed =
        stay_answering(place, session, until, keyboard, &mut working, &mut signals, output).await;
    if let Ok(Stayed::Ended(ended, listening)) = stayed {
        return leave(place, (id, false), working, (ended, listening), &mut signals, output).await;
    }
    let stopped = stop(working, place, &mut signals, output).await;
    let Stayed::Done(session) = stayed? else { return Ok(()) };
    stopped?;
    if !output.json {
        let nobody = Living::of(place).await?.nobody_wakes(&session);
        let notice = nobody.then(|| format!("no host is left to wake it: {}", starts(&session)));
        place.tell_with(&session, notice, output).await?;
        if let Some(used) = used(&session) {
            output.talk(&format!("[used {used}]"));
        }
    }
    outcome(&session)
}

/// Says what a session lacks that is left to whichever host runs it.
async fn left_ready(place: &Place, session: &Session) -> Result<Option<String>, Failure> {
    let id = session.id;
    let unable = place.unable(id).await?;
    let mut watcher = Watch::after(place, session);
    // Whether another host can, is known when it has tried; what this program can run, others can.
    let looked = async {
        while unable.is_some() {
            let Some(seen) = watcher.look().await? else { return Ok(true) };
            let living = Living::of(place).await?;
            if !matches!(seen.session.state, State::Ready(_)) {
                return Ok(true);
            }
            if living.refusal(&seen.session).is_some() || living.nobody_for(id) {
                break;
            }
            watcher.wait().await;
        }
        Ok::<_, Failure>(false)
    };
    let taken = tokio::time::timeout(TRIES, looked).await.unwrap_or(Ok(false))?;
    let nobody = Living::of(place).await?.nobody_for(id);
    Ok(match (unable, taken, nobody) {
        (_, true, _) | (None, false, false) => None,
        (None, false, true) => Some("nothing runs it yet; start `adjourn serve`".to_owned()),
        (Some(why), false, true) => {
            Some(format!("nothing runs it, and `adjourn serve` could not: {why}"))
        }
        (Some(why), false, false) => Some(format!("no host that is running takes it: {why}")),
    })
}
