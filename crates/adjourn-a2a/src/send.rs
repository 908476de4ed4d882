//! Messages to the agent: new tasks, and answers to what a task asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use adjourn::core::command::Reach;
use adjourn::core::id::{RunId, SessionId};
use adjourn::core::limits::NAME_BYTES;
use adjourn::core::session::State;
use adjourn::core::{Rejected, Session};
use adjourn::driver::Message as Entry;
use adjourn::store::{Done, Store};
use adjourn::{Accepted, Filter, Query, SessionRef};

use crate::arrived::Given;
use crate::error::{Error, Source, UNSUPPORTED_OPERATION};
use crate::face::{Asked, Face, Found, SEND_PATIENCE, is_exported, sent};
use crate::fold::{Runs, Took};
use crate::message::Sent;
use crate::moved::TAKEN_IN;
use crate::params::Send;
use crate::projection::{self, CONTEXT, Wanted};
use crate::standing::Standing;
use crate::stream::TaskStream;
use crate::trace;

/// How many sessions of a context are looked at at once, where the first one goes on elsewhere.
const MORE: usize = 16;

impl<S: Store> Face<S> {
    /// `message/send`.
    pub(crate) async fn send(&self, asked: &Asked<'_>, given: Given) -> Result<String, Error> {
        let (Taken { mut found, pause, .. }, Awaited { blocking, pauses, wanted }) =
            self.read_and_take(asked, given).await?;
        if blocking {
            let run = found.run;
            let rests = |runs: &Runs| runs.standing(run) != Standing::Working;
            found = match pauses {
                true => self.until_paused(asked, found, pause).await?,
                false => self.wait(asked, found, SEND_PATIENCE, rests).await?,
            };
        }
        Ok(sent(&self.show(asked, &found, wanted).await?, asked.method.version))
    }

    /// `message/stream`.
    pub(crate) async fn send_and_watch(
        &self,
        asked: &Asked<'_>,
        given: Given,
    ) -> Result<TaskStream<S>, Error> {
        let (Taken { found, .. }, Awaited { wanted, .. }) =
            self.read_and_take(asked, given).await?;
        let task = self.show(asked, &found, wanted).await?;
        TaskStream::begin(asked, found, task, true, &self.shared).await
    }

    /// Reads a message and takes it. Its words are kept until it is taken and no longer, so that what
    /// waits for its task holds none of them.
    async fn read_and_take(
        &self,
        asked: &Asked<'_>,
        given: Given,
    ) -> Result<(Taken<S>, Awaited), Error> {
        let mut send = Send::read(given.params()?, asked.method.version)?;
        let (blocking, pauses, wanted) = (send.blocking, send.pause.is_some(), send.wanted);
        let awaited = Awaited { blocking, pauses, wanted };
        // A pause says nothing to the agent, and is waited for.
        let mut given = Some(given);
        if send.pause.is_some() {
            send.message.drop_words();
            given = None;
        }
        let taken = self.take_and_push(asked, &send).await?;
        drop(given);
        Ok((taken, awaited))
    }

    /// Takes a message, and has the receiver that it names told what comes of it.
    async fn take_and_push(&self, asked: &Asked<'_>, send: &Send) -> Result<Taken<S>, Error> {
        let Some(push) = &send.push else { return self.take(asked, send).await };
        // Nothing is begun for a receiver that cannot be told.
        let checked = self.check_push(asked, push.clone()).await?;
        if let Some(task) = &send.message.task {
            self.check_room(asked, task, (&checked, &send.message)).await?;
        }
        let taken = self.take(asked, send).await?;
        // Until this is answered nothing is promised: a peer that hears no answer sends the message
        // again, and the receiver is told what has happened since it was taken.
        let receiver = (&checked, &send.message);
        self.push_with(asked, &taken.found, receiver, taken.behind).await?;
        Ok(taken)
    }

    /// Takes a message, or finds where it was taken before.
    async fn take(&self, asked: &Asked<'_>, send: &Send) -> Result<Taken<S>, Error> {
        let message = &send.message;
        message.check_id(asked.caller)?;
        let (found, behind) = match (&message.task, &send.pause) {
            (Some(task), Some(pause)) => {
                return self.pause_by_message(asked, task, (message, pause.clone())).await;
            }
            (None, Some(_)) => {
                return Err(Error::invalid("message.taskId", "is required: a pause is of a task"));
            }
            (Some(task), None) => self.answer(asked, task, message).await?,
            (None, None) => {
                check_context(message)?;
                self.begin(asked, message).await?
            }
        };
        Ok(Taken { found, behind, pause: None })
    }

    /// Gives a message to a task: only one that asks something takes it. Returns the task, and the
    /// revision that took the message, now or before.
    async fn answer(
        &self,
        asked: &Asked<'_>,
        task: &str,
        message: &Sent,
    ) -> Result<(Found<S>, u64), Error> {
        let found = self.find(asked, task).await?;
        found.check_context(message)?;
        let id = message.journaled_id(asked.caller);
        // A retry is told what came of the first one, wherever the task stands by now.
        let family = asked.method.family;
        let taken = self.took(&found, &id).await;
        if let Some(taken) = taken.map_err(|error| Error::of(error, task, family))? {
            message.check_same(&taken)?;
            return Ok((found, taken.revision));
        }
        let refused = |reason, problem: &str| {
            Err(Error::new(UNSUPPORTED_OPERATION, reason, problem).with("taskId", task))
        };
        match found.standing() {
            Standing::Asking { .. } | Standing::Interrupted => {}
            Standing::Working => return refused("TASK_BUSY", "the task is at work"),
            Standing::Paused(_) => {
                return refused("TASK_PAUSED", "the task is paused; tasks/resume wakes it");
            }
            Standing::Over(_) => return refused("UNSUPPORTED_OPERATION", "the task is over"),
        }
        // By its handle: another question that is asked meanwhile is not answered.
        let parked = found.state().and_then(Session::suspended);
        let handle = parked.map(|suspended| suspended.shown().pause.handle);
        let Found { session, run, .. } = found;
        let prompt = session.prompt(message.entry()).answering(handle).reach(Reach::Questions);
        match prompt.message_id(id.clone()).await {
            Ok(prompted) => {
                let seen = prompted.commit.session;
                let found = self.after(session, run, &seen, family).await?;
                Ok((found, seen.revision))
            }
            // The same message was faster on another connection.
            Err(adjourn::Error::Refused(refused @ Rejected::DuplicateMessage { .. })) => {
                let found = self.find(asked, task).await?;
                let taken = self.took(&found, &id).await;
                let taken = taken.map_err(|error| Error::of(error, task, family))?;
                // An id that another task has taken is no retry of anything that was said to this one.
                let another = || Error::refused(&refused, task, family, Source::Message);
                let taken = taken.ok_or_else(another)?;
                message.check_same(&taken)?;
                Ok((found, taken.revision))
            }
            Err(error) => Err(Error::of_source(error, task, family, Source::Message)),
        }
    }

    /// Begins a task: in the session of its context if that is idle, and else in one of its own. The
    /// same message again is told of the task that the first one began.
    async fn begin(&self, asked: &Asked<'_>, message: &Sent) -> Result<(Found<S>, u64), Error> {
        match self.begin_once(asked, message).await {
            Err(adjourn::Error::Refused(Rejected::DuplicateMessage { session, .. })) => {
                self.begun_before(asked, session, message).await
            }
            begun => {
                let of = |error| Error::of_source(error, "", asked.method.family, Source::Message);
                let (session, run, seen) = begun.map_err(of)?;
                trace::concerns(session.id(), run);
                let found = self.after(session, run, &seen, asked.method.family).await?;
                Ok((found, seen.revision))
            }
        }
    }

    /// Finds the task that the same message began, and the revision at which it did. It may have been
    /// removed since.
    async fn begun_before(
        &self,
        asked: &Asked<'_>,
        session: SessionId,
        message: &Sent,
    ) -> Result<(Found<S>, u64), Error> {
        let adjourn = self.as_caller(asked.caller);
        let of = |error| match error {
            adjourn::Error::NotFound(_) => began_what_is_gone(message),
            error => Error::of(error, "", asked.method.family),
        };
        let id = message.journaled_id(asked.caller);
        let begun = self.begun_in(&adjourn.session(session), &id).await.map_err(of)?;
        let (begun_in, run, taken) = begun.ok_or_else(|| began_what_is_gone(message))?;
        message.check_same(&taken)?;
        // It may go on in another session by now.
        let found = self.session_with(&adjourn, run).await.map_err(of)?;
        let (session, state) = found.ok_or_else(|| began_what_is_gone(message))?;
        let runs = self.runs_at(&session, &state).await.map_err(of)?;
        trace::concerns(session.id(), run);
        let taken = if session.id() == begun_in { taken.revision } else { TAKEN_IN };
        Ok((Found { session, runs, run }, taken))
    }

    async fn begin_once(
        &self,
        asked: &Asked<'_>,
        message: &Sent,
    ) -> Result<Begun<S>, adjourn::Error> {
        let Some(context) = &message.context else {
            return self.found(asked, message, message.entry(), None).await;
        };
        let first = match self.first_of(asked, context).await? {
            Some(first) => first,
            None => {
                let alone = Some((context.as_str(), None));
                match self.found(asked, message, message.entry(), alone).await {
                    // Another message was faster: the context has a first session by now.
                    Err(adjourn::Error::Refused(Rejected::NameTaken { session, .. })) => {
                        let first = self.first_of(asked, context).await?;
                        first.unwrap_or_else(|| self.as_caller(asked.caller).session(session))
                    }
                    found => return found,
                }
            }
        };
        let id = message.journaled_id(asked.caller);
        let prompt = first.prompt(message.entry()).reach(Reach::Nothing).message_id(id);
        match prompt.once(message.key(asked.caller)).await {
            Ok(prompted) => Ok((first, prompted.run, prompted.commit.session)),
            // It is at something else.
            Err(adjourn::Error::Refused(Rejected::Busy { .. } | Rejected::Ended { .. })) => {
                let digest = first.load().await?.digest();
                let context = Some((context.as_str(), Some(first.id())));
                self.found(asked, message, message.entry_after(digest), context).await
            }
            Err(error) => Err(error),
        }
    }

    /// Creates a session for a message. Without a first one in its context, it is to be that, and is
    /// refused if there is one by then.
    async fn found(
        &self,
        asked: &Asked<'_>,
        message: &Sent,
        entry: Entry,
        context: Option<(&str, Option<SessionId>)>,
    ) -> Result<Begun<S>, adjourn::Error> {
        let mut create = self.as_caller(asked.caller).create_with(self.agent.driver.clone());
        create = create.budget(self.agent.budget).prompt(entry);
        create = create.message_id(message.journaled_id(asked.caller));
        create = create.once(message.key(asked.caller));
        if let Some((context, first)) = context {
            create = match first {
                Some(first) => create.label(CONTEXT, context).parent(first),
                None => create.own_label(CONTEXT, context),
            };
        }
        let (session, commit) = create.with_commit().await?;
        let run = begun(&commit).ok_or(adjourn::Error::NotFound(session.id()))?;
        Ok((session, run, commit.session))
    }

    /// Returns the session that a context is called by; nothing if there is none, or it was removed.
    pub(crate) async fn named(
        &self,
        asked: &Asked<'_>,
        context: &str,
    ) -> Result<Option<(SessionRef<S>, Arc<Session>)>, adjourn::Error> {
        let Ok(id) = context.parse::<SessionId>() else { return Ok(None) };
        let session = self.as_caller(asked.caller).session(id);
        match session.load().await {
            Ok(state) if state.tenant == *asked.caller.tenant => Ok(Some((session, state))),
            Ok(_) | Err(adjourn::Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Finds the first session of a context: the one that is called so, or the oldest that bears the
    /// name. Where that goes on elsewhere, it is the one that it goes on as, if that is in this store,
    /// or else the oldest that was begun beside it. One that was closed goes on in the oldest that is
    /// open, and without any, the newest tells the next one what was said.
    async fn first_of(
        &self,
        asked: &Asked<'_>,
        context: &str,
    ) -> Result<Option<SessionRef<S>>, adjourn::Error> {
        let (mut exported, mut beside, mut closed) = (Vec::new(), None, None);
        if let Some((session, state)) = self.named(asked, context).await? {
            match state.state {
                _ if is_exported(&state) => exported.push(state.id),
                State::Ended(_) => closed = Some(state.id),
                _ => return Ok(Some(session)),
            }
        }
        let adjourn = self.as_caller(asked.caller);
        let filter = Filter {
            tenant: Some(asked.caller.tenant.to_string()),
            labels: BTreeMap::from([(CONTEXT.to_owned(), context.to_owned())]),
            ..Filter::default()
        };
        // Mostly it is the first one.
        let mut query = Query::new(filter, 1);
        loop {
            let page = adjourn.query(query.clone()).await?;
            for listed in page.sessions.iter().flatten() {
                if is_exported(listed) {
                    exported.push(listed.id);
                } else if matches!(listed.state, State::Ended(_)) {
                    closed = Some(listed.id);
                } else if listed.parent.is_some_and(|parent| exported.contains(&parent)) {
                    beside = beside.or(Some(listed.id));
                } else {
                    return Ok(Some(adjourn.session(listed.id)));
                }
            }
            match page.next {
                Some(next) => (query.after, query.limit) = (Some(next), MORE),
                None => break,
            }
        }
        let first = beside.or(closed).or_else(|| exported.first().copied());
        Ok(first.map(|id| adjourn.session(id)))
    }
}

impl<S: Store> Found<S> {
    /// Refuses a message that is for another context than its task.
    pub(crate) fn check_context(&self, message: &Sent) -> Result<(), Error> {
        let context = self.state().map(projection::context);
        match message.context.is_none() || message.context == context {
            true => Ok(()),
            false => {
                Err(Error::invalid("message.contextId", "the task belongs to another context"))
            }
        }
    }
}

/// A message that was taken, now or before.
pub(crate) struct Taken<S: Store> {
    /// The task that goes on with it, or that it pauses.
    pub(crate) found: Found<S>,
    /// The revision behind which is what came of it.
    pub(crate) behind: u64,
    /// The pause that was accepted with it now.
    pub(crate) pause: Option<Accepted>,
}

/// How a message is answered once it is taken.
struct Awaited {
    /// Whether the answer waits for what comes of it.
    blocking: bool,
    /// Whether that is a pause, and not the rest of the task.
    pauses: bool,
    /// What is wanted of the task.
    wanted: Wanted,
}

/// Refuses the name of a context that no session can bear.
fn check_context(message: &Sent) -> Result<(), Error> {
    let wrong = |problem| Err(Error::invalid("message.contextId", problem));
    match message.context.as_deref().unwrap_or_default() {
        name if name.len() > NAME_BYTES => wrong("expected at most 256 bytes"),
        name if name.chars().any(char::is_control) => wrong("must not hold control characters"),
        _ => Ok(()),
    }
}

impl Sent {
    /// Refuses a message that says something else than the one that was taken under its id: it would
    /// be lost.
    fn check_same(&self, taken: &Took) -> Result<(), Error> {
        if taken.can_be(&self.entry()) {
            return Ok(());
        }
        let id: String = self.id.chars().take(80).collect();
        let problem =
            format!("another message was taken as {id:?} before; give this one its own id");
        Err(Error::new(UNSUPPORTED_OPERATION, "DUPLICATE_MESSAGE", problem))
    }
}

/// Refuses a message that was taken before, and whose task is not there any more.
fn began_what_is_gone(message: &Sent) -> Error {
    let id: String = message.id.chars().take(80).collect();
    let problem =
        format!("message {id:?} was taken before, and the task that it began was removed");
    Error::new(UNSUPPORTED_OPERATION, "DUPLICATE_MESSAGE", problem)
}

/// A session and its run that goes on with a message, as of the commit that took it.
type Begun<S> = (SessionRef<S>, RunId, Arc<Session>);

/// Returns the run that a commit began.
fn begun(commit: &Done) -> Option<RunId> {
    commit.session.run().map(|run| run.id).or_else(|| Some(commit.session.last_run.as_ref()?.id))
}
