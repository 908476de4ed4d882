//! `run`: an agent, in the foreground.

use std::sync::Arc;

use adjourn::core::id::SessionId;
use adjourn::core::session::{Outcome, Phase, State};
use adjourn::core::{Founding, Rejected, Session};

use crate::arguments::Run;
use crate::chosen::Chosen;
use crate::failure::Failure;
use crate::foreground::{Stayed, Until, host_if_no_other, leave, outcome, stop};
use crate::going_on::{command, needs_budget};
use crate::liveness::Living;
use crate::place::Place;
use crate::question::stay_answering;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::terminal::Output;
use crate::text_argument::typed;
use crate::used::used;
use crate::view::View;

/// What a script is prompted with, unless something else is said: it does not listen.
const GO: &str = "go";

pub async fn run(settings: &Settings, run: Run, output: &Output) -> Result<(), Failure> {
    let chosen = Chosen::by(&run.agent, settings)?.working_in(run.cwd.as_ref())?;
    let mut chosen = chosen.within(run.given.budget)?;
    if !run.detach {
        chosen = chosen.run_here()?;
    }
    // No person can be asked here: better no session than one that this command waits for, for ever.
    if chosen.asks && output.keyboard().is_none() {
        match run.agent.script.as_ref().map(|path| path.display()) {
            Some(path) => {
                let problem = format!("{path} asks for permissions, which needs an editor");
                let hint = format!("an editor runs it: `adjourn acp --script {path}`");
                return Err(Failure::other(problem).hint(hint));
            }
            None if !run.detach => {
                let problem = "its tools ask for permissions, and nobody can be asked here";
                return Err(Failure::other(problem).hint(
                    "--allow-all lets them run, --detach lets it park with its question; or run it \
                     at a terminal, or in an editor",
                ));
            }
            // It parks with the question.
            None => {}
        }
    }
    let task = match run.task.or(run.prompt) {
        Some(task) => typed(task)?,
        None if chosen.is_script => GO.to_owned(),
        None => {
            return Err(Failure::usage("what the agent is to do is missing")
                .hint("adjourn run \"review the last commit\" --model …"));
        }
    };
    let Chosen { driver, named_servers, budget, runs, .. } = chosen;
    let place = Place::open_or_make(settings).await?.naming(named_servers);
    let founding = run.given.founding(&place, driver, budget).await?;
    // One commit: a session that is made and never prompted would keep its name, and do nothing.
    let made = place.adjourn.create_from(founding).prompt(task.as_str()).with_commit();
    let (session, made) = made.await?;
    let (id, mut prompted) = (session.id(), made.session);
    output.talk(&format!("[{id}]"));
    let mut signals = Signals::new()?;
    let mut working = host_if_no_other(&place, &prompted, output).await?;
    let keyboard = if run.detach { None } else { output.keyboard() };
    let until = match (run.detach, &keyboard) {
        (true, _) => Until::Parked,
        // A person who watches it is shown how to answer it elsewhere.
        (false, None) if output.is_live() => Until::Idle,
        (false, None) => Until::Person,
        (false, Some(_)) => Until::Asking,
    };
    for number in 1..=runs {
        if number > 1 {
            prompted = say(&place, id, &task).await?;
        }
        let keyboard = keyboard.as_deref();
        let stayed =
            stay_answering(&place, &prompted, until, keyboard, &mut working, &mut signals, output);
        let session = match stayed.await {
            Ok(Stayed::Done(session)) => session,
            Ok(Stayed::Ended(ended, listening)) => {
                let which = (id, !run.keep);
                let from = (ended, listening);
                return leave(&place, which, working, from, &mut signals, output).await;
            }
            Err(failure) => {
                // What went wrong first is told; that it could not be stopped comes of it.
                let _ = stop(working, &place, &mut signals, output).await;
                return Err(failure);
            }
        };
        let living = Living::of(&place).await?;
        let view = View { session: &session, now: place.clock.now(), living: &living };
        output.talk(&format!("[{}]", view.text()));
        if let Some(used) = used(&session) {
            output.talk(&format!("[used {used}]"));
        }
        if matches!(session.state, State::Suspended(_)) {
            stop(working, &place, &mut signals, output).await?;
            if until == Until::Person {
                return Err(unanswered(&session));
            }
            let living = Living::of(&place).await?;
            let wakes = match session.phase() {
                _ if needs_budget(&session) => {
                    let used_up = session.used_up();
                    Rejected::BudgetNotRaised { session: id, used_up }.remedy().unwrap_or_default()
                }
                Phase::Asking => "an answer wakes it".to_owned(),
                // Nothing but a person wakes it.
                _ if view.wakes_by_hand() => format!("wake it with `adjourn resume {id}`"),
                _ if living.nobody_for(id) => {
                    "no host is left to wake it: start `adjourn serve`".to_owned()
                }
                _ => "another host wakes it".to_owned(),
            };
            output.talk(&format!("[it stays parked; {wakes}]"));
            return Ok(());
        }
        // A run that failed is the last one: what comes next was written for one that did not.
        let ended = matches!(session.state, State::Ended(_));
        if ended || number == runs || outcome(&session).is_err() {
            let stopped = stop(working, &place, &mut signals, output).await;
            // Why a run failed may pass, and its session is what there is to go on from.
            let failed =
                session.last_run.as_ref().is_some_and(|last| last.outcome == Outcome::Failed);
            let stays_open = !ended && (run.keep || failed);
            if stays_open {
                output
                    .talk(&format!("[it stays open; `adjourn prompt {id} TEXT` goes on with it]"));
            }
            // It has nothing more to do, however long its agent takes to end.
            if !ended && !stays_open {
                let closed = place.adjourn.session(id).close().await?;
                // People were told that it is done; programs read the last state off the data.
                if output.json {
                    place.tell(&closed.commit.session, output).await?;
                }
            }
            stopped?;
            return outcome(&session);
        }
    }
    Ok(())
}

/// The failure of a command that leaves a session parked, because no person is here to go on with it.
fn unanswered(session: &Session) -> Failure {
    let message = match session.phase() {
        Phase::Asking => {
            "its agent asks something, and no person can be asked here; it stays parked with the \
             question"
        }
        _ => "it has come to a limit, and a person has to go on with it; it stays parked",
    };
    Failure::unanswered(message).hint(command(session, &session.id.to_string()))
}

/// Makes a session.
pub async fn create(place: &Place, founding: Founding) -> Result<SessionId, Failure> {
    Ok(place.adjourn.create_from(founding).await?.id())
}

/// Gives a session a message, and returns it as it is then; a host of this process runs it, if
/// there is one.
pub async fn say(place: &Place, id: SessionId, text: &str) -> Result<Arc<Session>, Failure> {
    let session = place.session(id).await?;
    // An answer at a terminal is to the question that is shown there.
    let shown = session.suspended();
    let handle = shown.map(|suspended| suspended.shown().pause.handle);
    let prompted = place.adjourn.session(id).prompt(text).answering(handle).await?;
    Ok(prompted.commit.session)
}
