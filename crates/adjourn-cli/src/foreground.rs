//! Staying with a session in the foreground, as its host if there is no other.

use std::sync::Arc;
use std::time::Duration;

use adjourn::core::Session;
use adjourn::core::id::SessionId;
use adjourn::core::session::{Outcome, Phase, State};
use adjourn::live::LiveWords;
use adjourn::store::Retention;
use adjourn::{Account, Claimant, Claims, RunningHost};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::durations::span;
use crate::failure::Failure;
use crate::going_on::{command, needs_budget};
use crate::interrupt::{self, Interrupted, drives, interrupt, stop_suspended};
use crate::liveness::Living;
use crate::native::ProgramDrivers;
use crate::permission::{Asked, AtTerminal, next_asked, permit};
use crate::place::Place;
use crate::settings::Settings;
use crate::signals::{Ended, Signals};
use crate::spoken::Spoken;
use crate::terminal::Output;
use crate::used::used;
use crate::view::{View, short};
use crate::watch::{LOOK, Seen, look};

/// When to leave a session alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When it is parked, idle or over.
    Parked,
    /// When it asks something, is idle or over.
    Asking,
    /// When a person has to go on with it, because it asks something or has come to a limit, or it
    /// is idle or over.
    Person,
    /// When it is idle or over.
    Idle,
}

/// How staying with a session came to its end.
pub enum Stayed {
    /// The session is where it was to be.
    Done(Arc<Session>),
    /// A signal came first; what the session says until it is given back is told then, if it was
    /// listened to.
    Ended(Ended, Option<Box<Listening>>),
}

/// How far it was told what a session says and does.
pub struct Listening {
    account: Account,
    spoken: Spoken,
    /// The state that was printed last, for programs.
    printed: Value,
}

impl Listening {
    fn after(place: &Place, session: &Session, output: &Output) -> Self {
        let account = Account::after(&place.adjourn.session(session.id), session.clone());
        Self { account, spoken: Spoken::new(output), printed: Value::Null }
    }

    /// Returns what has come since the last look; nothing if there is no such session.
    async fn look(&mut self) -> Result<Option<Seen>, Failure> {
        Ok(look(self.account.moments()).await?)
    }

    /// Prints what was seen.
    fn tell(&mut self, seen: &Seen, view: &View<'_>, output: &Output) -> Result<(), Failure> {
        for moment in &seen.moments {
            self.spoken.moment(&mut self.account, moment, output)?;
        }
        // Steps and claims are no news by themselves. That it rests is, also where what led to it
        // was read together with an earlier state.
        if output.json && (!seen.moments.is_empty() || rests(&seen.session)) {
            let object = view.json();
            if object != self.printed {
                output.data(&object.to_string());
                self.printed = object;
            }
        }
        Ok(())
    }

    /// Waits until there may be something new; returns whether the journal may have it, and not only
    /// words that were not committed yet.
    pub async fn wait(&mut self) -> bool {
        tokio::time::timeout(LOOK, self.account.stirs()).await.unwrap_or(true)
    }

    /// Prints what was committed and said since it was last looked at.
    pub async fn tell_rest(&mut self, place: &Place, output: &Output) -> Result<(), Failure> {
        let Some(seen) = self.look().await? else { return Ok(()) };
        let living = Living::of(place).await?;
        let view = View { session: &seen.session, now: place.clock.now(), living: &living };
        self.tell(&seen, &view, output)?;
        self.spoken.due(&mut self.account, output);
        Ok(())
    }
}

/// Returns whether a session has nothing to do until somebody or something wakes it.
const fn rests(session: &Session) -> bool {
    matches!(session.state, State::Idle | State::Suspended(_) | State::Ended(_))
}

/// Runs a host in this process, and returns how to stop it. Where it is there for one session, a
/// person at the terminal can be asked for permissions.
pub async fn host(place: &Place, claims: Claims, output: &Output) -> Result<Stop, Failure> {
    let drivers = ProgramDrivers::new(place);
    match claims {
        Claims::Only(session) if output.keyboard().is_some() => {
            let (terminal, asked) = AtTerminal::new(session);
            let mut stop = host_with(place, claims, drivers.asking(Arc::new(terminal))).await?;
            stop.heard.asked = Some(asked);
            Ok(stop)
        }
        Claims::Only(_) | Claims::All => host_with(place, claims, drivers).await,
    }
}

/// Runs a host in this process for a session that a command is about to give work to, if no other
/// host can run it: a command in the foreground may go before the work is done.
pub async fn host_if_no_other(
    place: &Place,
    session: &Session,
    output: &Output,
) -> Result<Option<Stop>, Failure> {
    let living = Living::of(place).await?;
    match living.nobody_awake_for(session.id) || living.refusal(session).is_some() {
        true => host(place, Claims::Only(session.id), output).await.map(Some),
        false => Ok(None),
    }
}

/// Runs a host in this process, and returns how to stop it.
pub async fn host_with(
    place: &Place,
    claims: Claims,
    drivers: ProgramDrivers,
) -> Result<Stop, Failure> {
    let Settings { max_running, max_warm, warm_for, drain, failures, ended, .. } = &place.settings;
    let mut host = place
        .adjourn
        .host()
        .others(Arc::new(drivers))
        .max_running(max_running.value)
        .drain(drain.value)
        .warm(max_warm.value, warm_for.value)
        .failures(failures.policy())
        .about(format!(r#"{{"pid":{}}}"#, std::process::id()))
        .retention(Retention { ended: ended.value, ..Retention::of_hosts() });
    let mut heard = Heard::default();
    match claims {
        Claims::All => {}
        // A command that stays with one session is told of that one.
        Claims::Only(id) => {
            host = host.only(id);
            heard.words = Some(place.adjourn.live().watch(id));
        }
    }
    let host = host.start().await?;
    Ok(Stop { claims, heard, host })
}

/// A host that works until it is told to stop.
pub struct Stop {
    claims: Claims,
    heard: Heard,
    host: RunningHost,
}

/// What comes from the one session that a host of this process is there for.
#[derive(Default)]
struct Heard {
    /// Its words, from the first one on.
    words: LiveWords,
    /// The calls that a person at the terminal has to allow.
    asked: Option<mpsc::Receiver<Asked>>,
}

impl Stop {
    pub async fn now(self) -> Result<(), Failure> {
        Ok(self.host.stop().await?)
    }

    /// Waits until it ends by itself, and returns why it did; it is over then.
    pub async fn ended(&mut self) -> Failure {
        self.host.ended().await.into()
    }

    /// Returns how faces of this process claim for it.
    pub const fn claimant(&self) -> &Claimant {
        self.host.claimant()
    }

    /// Stops it, but does not wait longer than until the next signal; returns that one if it came
    /// first.
    pub async fn or(
        self,
        place: &Place,
        signals: &mut Signals,
        output: &Output,
    ) -> Result<Option<Ended>, Failure> {
        let by = place.clock.elapsed().saturating_add(place.settings.drain.value);
        let line = || {
            let left = by.saturating_sub(place.clock.elapsed());
            let left = span(left.saturating_add(Duration::from_millis(999)));
            format!("giving sessions back: calls in flight have {left} · Ctrl-C does not wait")
        };
        let stopped = async {
            // What rests has no calls in flight, and is not given back.
            if let Claims::Only(id) = self.claims
                && place.session(id).await.is_ok_and(|session| rests(&session))
            {
                output.clear();
                return self.now().await;
            }
            output.live_while(self.now(), line).await
        };
        tokio::select! {
            stopped = stopped => stopped.map(|()| None),
            ended = signals.again() => Ok(Some(ended)),
        }
    }
}

/// Stops this process's own host, if there is one; the next signal ends the command instead.
pub async fn stop(
    working: Option<Stop>,
    place: &Place,
    signals: &mut Signals,
    output: &Output,
) -> Result<(), Failure> {
    let Some(working) = working else { return Ok(()) };
    let claims = working.claims;
    match (working.or(place, signals, output).await?, claims) {
        (None, _) => Ok(()),
        (Some(Ended(code)), Claims::All) => Err(did_not_wait(code)),
        (Some(Ended(code)), Claims::Only(id)) => Err(cut_short(&*place.session(id).await?, code)),
    }
}

/// The failure of a host that was there for one session, and was ended before it had stopped.
fn cut_short(session: &Session, code: u8) -> Failure {
    match rests(session) {
        true => Failure::interrupted(code, "did not wait until its agent has ended; it is at rest")
            .hint(format!("adjourn show {}", session.id)),
        false => did_not_wait(code),
    }
}

/// The failure of a host that was ended before it could give its sessions back.
pub fn did_not_wait(code: u8) -> Failure {
    let message =
        "did not wait: calls in flight are cut off, if there are any, and their outcome is unknown";
    Failure::interrupted(code, message)
        .hint("`adjourn serve` takes over; what may not be run twice waits for `adjourn resume`")
}

/// Waits until this process's own host ends by itself, if there is one.
pub async fn host_ended(working: &mut Option<Stop>) -> Failure {
    match working {
        Some(host) => {
            let failure = host.ended().await;
            *working = None;
            failure
        }
        None => std::future::pending().await,
    }
}

/// Shows what a session says and does, until it is time to leave it alone.
///
/// It begins after `from`, the session as a command left it: another host may have said something
/// since. If no host drives it, or none can, this process becomes its host, and no other session's.
pub async fn stay(
    place: &Place,
    from: &Session,
    until: Until,
    working: &mut Option<Stop>,
    signals: &mut Signals,
    output: &Output,
) -> Result<Stayed, Failure> {
    let mut asked = None;
    let stayed = stay_hearing(&mut asked, place, from, until, working, signals, output).await;
    // What is asked from now on is for the next stay.
    if let Some(working) = working {
        working.heard.asked = asked.or(working.heard.asked.take());
    }
    stayed
}

/// Stays with a session, and takes what comes from this process's own host as it comes.
async fn stay_hearing(
    asked: &mut Option<mpsc::Receiver<Asked>>,
    place: &Place,
    from: &Session,
    until: Until,
    working: &mut Option<Stop>,
    signals: &mut Signals,
    output: &Output,
) -> Result<Stayed, Failure> {
    let id = from.id;
    let mut listening = Listening::after(place, from, output);
    let mut last = None;
    loop {
        let Some(seen) = listening.look().await? else {
            return Err(Failure::no_session(id));
        };
        let session = &seen.session;
        let living = Living::of(place).await?;
        let view = || View { session, now: place.clock.now(), living: &living };
        let leave = match &session.state {
            State::Idle | State::Ended(_) => true,
            State::Suspended(_) => match until {
                Until::Parked => true,
                Until::Asking => session.phase() == Phase::Asking,
                Until::Person => session.phase() == Phase::Asking || view().is_at_limit(),
                Until::Idle => false,
            },
            State::Ready(_) | State::Running(_) | State::Quiescing(_) => false,
        };
        listening.tell(&seen, &view(), output)?;
        if !output.json {
            // Where a live line shows what moves, only what stands is worth a line of its own.
            let moves = session.run().is_some() && session.suspended().is_none();
            // What waits for this process's own host does not wait.
            let own = working.is_some() && matches!(session.state, State::Ready(_));
            // Where it is left, its caller says where it stands: as data or as talk, but once.
            let shown = own || leave || (output.is_live() && moves);
            if last != Some(session.phase()) && !shown {
                output.talk(&format!("[{}]", view().text()));
            }
        }
        last = Some(session.phase());
        if leave {
            // What is said from now on is for the next stay.
            if let (Some(working), true) = (working, listening.account.listens()) {
                working.heard.words = listening.account.stop_listening();
            }
            return Ok(Stayed::Done(seen.session));
        }
        let refusal = match &session.state {
            State::Ready(_) => living.refusal(session),
            _ => None,
        };
        match (&working, refusal) {
            (Some(_), Some(refusal)) => {
                let hint = format!("start a host that can, or end its run: adjourn cancel {id}");
                let message = format!("it stays ready, but nobody runs it: {refusal}");
                return Err(Failure::other(message).hint(hint));
            }
            (None, refusal) if refusal.is_some() || living.nobody_awake_for(id) => {
                *working = Some(host(place, Claims::Only(id), output).await?);
            }
            _ => {}
        }
        let own = drives(working.as_ref(), session);
        if listening.spoken.is_live() && !listening.account.listens() {
            let words = working.as_mut().and_then(|working| working.heard.words.take());
            listening.account.listen(words);
        }
        if asked.is_none() {
            *asked = working.as_mut().and_then(|working| working.heard.asked.take());
        }
        loop {
            tokio::select! {
                committed = output.live_while(listening.wait(), || live(&view(), own)) => {
                    // The journal is not read for words that go on with what was printed.
                    if committed || listening.spoken.due(&mut listening.account, output) {
                        break;
                    }
                }
                call = next_asked(asked) => {
                    if let Some(ended) = permit(call, working, signals, output).await? {
                        return Ok(Stayed::Ended(ended, Some(Box::new(listening))));
                    }
                    break;
                }
                ended = signals.next() => {
                    return Ok(Stayed::Ended(ended, Some(Box::new(listening))));
                }
                failure = host_ended(working) => return Err(failure),
            }
        }
    }
}

/// Says what goes on, for a line that moves; `own` says whether this process drives it.
fn live(view: &View<'_>, own: bool) -> String {
    let View { session, now, .. } = view;
    let row = view.row();
    let short_id = short(&session.id.to_string()).to_owned();
    let what = match session.phase() {
        Phase::Running => format!("running {} {}", view.works_on(), span(now.since(session.at))),
        // How to go on comes first: a long question is cut.
        Phase::Suspended | Phase::Asking if needs_budget(session) => {
            format!("`{}` goes on with it: {}", command(session, &short_id), row.why)
        }
        Phase::Suspended => format!("parked: {} · wakes {}", row.why, row.wakes),
        Phase::Asking => {
            format!("`{}` answers: {}", command(session, &short_id), row.with_choices())
        }
        _ => format!("{}: {}", row.state, row.why),
    };
    let used = used(session).map(|used| format!(" · {used}")).unwrap_or_default();
    let leaves = if own { "suspends" } else { "leaves" };
    format!("{what}{used} · Ctrl-C {leaves} it")
}

/// Leaves a session because a signal says so: suspends it if this process drives it and the signal is
/// a Ctrl-C, gives it back otherwise, tells what it has said until then, and says how to go on. One
/// that has nothing more to do is closed, if the command `closes` it at its end.
pub async fn leave(
    place: &Place,
    (id, closes): (SessionId, bool),
    working: Option<Stop>,
    (Ended(code), mut listening): (Ended, Option<Box<Listening>>),
    signals: &mut Signals,
    output: &Output,
) -> Result<(), Failure> {
    let mut working = working;
    let session = place.session(id).await?;
    let mut interrupted = Interrupted::Left;
    if let Some(working) = &mut working
        && Ended(code) == Ended::INTERRUPT
        && drives(Some(working), &session)
    {
        interrupted = interrupt(place, &session, working, &mut listening, signals, output).await?;
    }
    let (interrupted, again) = match (working, interrupted) {
        (Some(working), Interrupted::Suspended) => {
            stop_suspended(place, id, working, signals, output).await?
        }
        (Some(working), interrupted @ (Interrupted::Left | Interrupted::Canceled)) => {
            (interrupted, working.or(place, signals, output).await?)
        }
        // It is not waited for: another host finds what this one had.
        (Some(_), interrupted @ Interrupted::Hurried) | (None, interrupted) => (interrupted, None),
    };
    if let Some(mut listening) = listening {
        listening.tell_rest(place, output).await?;
    }
    let mut session = place.session(id).await?;
    if closes && matches!(session.state, State::Idle) {
        session = place.adjourn.session(id).close().await?.commit.session;
    }
    let told = interrupt::told(&interrupted, &session, Ended(code));
    if again.is_some() {
        // What has become of it holds, also if its agent has not ended yet.
        return Err(told.filter(|_| rests(&session)).unwrap_or_else(|| cut_short(&session, code)));
    }
    if let Some(failure) = told {
        return Err(failure);
    }
    let living = Living::of(place).await?;
    let wakes = View { session: &session, now: place.clock.now(), living: &living }.wakes();
    let follow = format!("adjourn log --follow {id}");
    let (message, hint) = match (&session.state, session.phase()) {
        (_, Phase::Asking) => {
            ("left; it waits for an answer".to_owned(), command(&session, &id.to_string()))
        }
        (State::Suspended(_), _) => {
            let hint = command(&session, &id.to_string());
            (format!("left; it stays parked, and wakes {wakes}"), hint)
        }
        (State::Ready(_), _) if living.nobody_for(id) => {
            ("given back; it goes on when a host runs".to_owned(), "adjourn serve".to_owned())
        }
        (State::Ready(_), _) => match living.refusal(&session) {
            Some(why) => (format!("left; {why}"), "another `adjourn serve` takes it".to_owned()),
            None => ("left; another host goes on with it".to_owned(), follow),
        },
        (State::Idle, _) => ("left; it is idle".to_owned(), format!("adjourn prompt {id} TEXT")),
        (State::Ended(_), _) => ("left; it has ended".to_owned(), format!("adjourn show {id}")),
        (State::Running(_) | State::Quiescing(_), _) => {
            ("left; another host goes on with it".to_owned(), follow)
        }
    };
    Err(Failure::interrupted(code, message).hint(hint))
}

/// Turns a run that did not complete into a failure.
pub fn outcome(session: &Session) -> Result<(), Failure> {
    let Some(last) = session.last_run.as_ref().filter(|_| session.run().is_none()) else {
        return Ok(());
    };
    let ended = match last.outcome {
        Outcome::Completed => return Ok(()),
        Outcome::Failed => "the run failed",
        Outcome::Canceled => "the run was canceled",
        Outcome::Rejected => "the run was rejected",
    };
    let why = last.error.as_deref().unwrap_or("nobody said why");
    Err(Failure::other(format!("{ended}: {why}")))
}
