//! Messages to the agent: new tasks, and answers to what a task asks.

use std::collections::BTreeMap;

use adjourn::core::Rejected;
use adjourn::core::command::Reach;
use adjourn::core::id::{RunId, SessionId};
use adjourn::core::limits::NAME_BYTES;
use adjourn::core::session::State as At;
use adjourn::driver::Message as Entry;
use adjourn::store::{Done, Store};
use adjourn::{Filter, Query, SessionRef};
use serde_json::Value;

use crate::error::{Error, UNSUPPORTED_OPERATION};
use crate::face::{Asked, Face, Found, SEND_PATIENCE, sent};
use crate::message::Sent;
use crate::params::{Params, Send};
use crate::projection::{self, CONTEXT};
use crate::standing::Standing;
use crate::stream::TaskStream;

impl<S: Store> Face<S> {
    /// `message/send`.
    pub(crate) async fn send(&self, asked: &Asked<'_>, params: Params<'_>) -> Result<Value, Error> {
        let send = Send::read(params, asked.method.version)?;
        let mut found = self.take(asked, &send).await?;
        if send.blocking {
            let rests = |standing| standing != Standing::Working;
            found = self.wait(found, SEND_PATIENCE, rests).await?;
        }
        Ok(sent(&self.show(asked, &found, send.wanted).await?, asked.method.version))
    }

    /// `message/stream`.
    pub(crate) async fn send_and_watch(
        &self,
        asked: &Asked<'_>,
        params: Params<'_>,
    ) -> Result<TaskStream<S>, Error> {
        let send = Send::read(params, asked.method.version)?;
        let found = self.take(asked, &send).await?;
        let task = self.show(asked, &found, send.wanted).await?;
        TaskStream::begin(asked, found, task, true).await
    }

    /// Takes a message, and returns the task that goes on with it.
    async fn take(&self, asked: &Asked<'_>, send: &Send) -> Result<Found<S>, Error> {
        let message = &send.message;
        match (&message.task, &send.pause) {
            (Some(task), Some(pause)) => self.pause_by_message(asked, task, pause.clone()).await,
            (None, Some(_)) => {
                Err(Error::invalid("message.taskId", "is required: a pause is of a task"))
            }
            (Some(task), None) => self.answer(asked, task, message).await,
            (None, None) => self.begin(asked, message).await,
        }
    }

    /// Gives a message to a task: only one that asks something takes it.
    async fn answer(
        &self,
        asked: &Asked<'_>,
        task: &str,
        message: &Sent,
    ) -> Result<Found<S>, Error> {
        let found = self.find(asked, task).await?;
        let state = found.state();
        let context = state.map(projection::context);
        if message.context.is_some() && message.context != context {
            return Err(Error::invalid("message.contextId", "the task belongs to another context"));
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
        let handle = state.and_then(|state| Some(state.suspended()?.shown().pause.handle));
        let Found { session, run, .. } = found;
        let prompt = session.prompt(message.entry()).answering(handle).reach(Reach::Questions);
        match prompt.message_id(&message.id).await {
            Ok(prompted) => {
                let seen = prompted.commit.session;
                self.after(session, run, &seen, asked.method.family).await
            }
            // It was taken before: a retry is told what came of it.
            Err(adjourn::Error::Refused(Rejected::DuplicateMessage { .. })) => {
                self.find(asked, task).await
            }
            Err(error) => Err(Error::of(error, task, asked.method.family)),
        }
    }

    /// Begins a task: in the session of its context if that is idle, and else in one of its own.
    async fn begin(&self, asked: &Asked<'_>, message: &Sent) -> Result<Found<S>, Error> {
        let family = asked.method.family;
        let of = |error| Error::of(error, "", family);
        let Some(context) = &message.context else {
            return self.found(asked, message.entry(), None).await;
        };
        if context.len() > NAME_BYTES || context.chars().any(char::is_control) {
            return Err(Error::invalid("message.contextId", "expected at most 256 bytes"));
        }
        let Some(first) = self.first_of(asked, context).await? else {
            return self.found(asked, message.entry(), Some((context, None))).await;
        };
        let state = first.load().await.map_err(of)?;
        if matches!(state.state, At::Idle) {
            let prompt = first.prompt(message.entry()).reach(Reach::Questions);
            match prompt.message_id(&message.id).await {
                Ok(prompted) => {
                    let seen = prompted.commit.session;
                    return self.after(first, prompted.run, &seen, family).await;
                }
                // A retry is told of the task that the first one began.
                Err(adjourn::Error::Refused(Rejected::DuplicateMessage { .. })) => {
                    let runs = self.runs_of(&first).await.map_err(of)?;
                    if let Some(run) = runs.all().last().map(|run| run.id) {
                        return Ok(Found { session: first, runs, run });
                    }
                }
                // It has begun something else meanwhile.
                Err(adjourn::Error::Refused(
                    Rejected::Busy { .. } | Rejected::PausedByAnother(_) | Rejected::Held(_),
                )) => {}
                Err(error) => return Err(of(error)),
            }
        }
        let entry = message.entry_after(state.digest());
        self.found(asked, entry, Some((context, Some(first.id())))).await
    }

    /// Creates a session for a message.
    async fn found(
        &self,
        asked: &Asked<'_>,
        entry: Entry,
        context: Option<(&str, Option<SessionId>)>,
    ) -> Result<Found<S>, Error> {
        let family = asked.method.family;
        let mut create = self.as_caller(asked.caller).create_with(self.agent.driver.clone());
        create = create.budget(self.agent.budget);
        if let Some((context, first)) = context {
            create = create.label(CONTEXT, context);
            if let Some(first) = first {
                create = create.parent(first);
            }
        }
        let created = create.prompt(entry).with_commit().await;
        let (session, commit) = created.map_err(|error| Error::of(error, "", family))?;
        let run = begun(&commit).ok_or_else(|| Error::no_task("", family))?;
        self.after(session, run, &commit.session, family).await
    }

    /// Finds the first session of a context: the one that is called so, or the oldest that bears the
    /// name.
    pub(crate) async fn first_of(
        &self,
        asked: &Asked<'_>,
        context: &str,
    ) -> Result<Option<SessionRef<S>>, Error> {
        let adjourn = self.as_caller(asked.caller);
        let of = |error| Error::of(error, "", asked.method.family);
        if let Ok(id) = context.parse::<SessionId>() {
            let session = adjourn.session(id);
            return match session.load().await {
                Ok(state) if state.tenant == *asked.caller.tenant => Ok(Some(session)),
                Ok(_) | Err(adjourn::Error::NotFound(_)) => Ok(None),
                Err(error) => Err(of(error)),
            };
        }
        let filter = Filter {
            tenant: Some(asked.caller.tenant.to_string()),
            labels: BTreeMap::from([(CONTEXT.to_owned(), context.to_owned())]),
            ..Filter::default()
        };
        let mut query = Query::new(filter, 1);
        loop {
            let page = adjourn.query(query.clone()).await.map_err(of)?;
            if let Some(Ok(listed)) = page.sessions.first() {
                return Ok(Some(adjourn.session(listed.id)));
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(None),
            }
        }
    }
}

/// Returns the run that a commit began.
fn begun(commit: &Done) -> Option<RunId> {
    commit.session.run().map(|run| run.id).or_else(|| Some(commit.session.last_run.as_ref()?.id))
}
