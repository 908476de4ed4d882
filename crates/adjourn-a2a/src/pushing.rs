//! Receivers of push notifications: configured, shown, and removed.

use std::sync::Arc;

use adjourn::core::id::RunId;
use adjourn::core::transcript::Digest;
use adjourn::driver::BoxFuture;
use adjourn::store::{Added, Store};
use adjourn::{MOST_RECIPIENTS, NewRecipient, SessionRef};
use serde_json::{Value, json};

use crate::arrived::Given;
use crate::error::{Error, TASK_NOT_FOUND, UNSUPPORTED_OPERATION};
use crate::face::{Asked, Face, Found};
use crate::message::Sent;
use crate::params::Params;
use crate::push::{Kept, PushConfig};
use crate::standing::Standing;
use crate::version::Version;

/// The kind of recipients that receivers of push notifications are.
pub const RECIPIENT_KIND: &str = "a2a.push";

/// Says which receivers may be told: the side that sends knows where it may connect to.
pub trait Receivers: Send + Sync {
    /// Checks a URL.
    ///
    /// # Errors
    /// Why nothing is sent there.
    fn check<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>>;
}

/// A receiver that was checked, with the words in which it is told.
pub(crate) struct Checked {
    id: Option<String>,
    kept: Kept,
}

impl<S: Store> Face<S> {
    /// Has push notifications configured for receivers that are let through; without keys to keep
    /// their secrets with there are none.
    #[must_use]
    pub fn pushing_to(mut self, receivers: Arc<dyn Receivers>) -> Self {
        self.receivers = Some(receivers).filter(|_| self.adjourn.keeps_secrets());
        self
    }

    /// Returns whether receivers of push notifications can be configured.
    pub fn pushes(&self) -> bool {
        self.receivers.is_some()
    }

    /// Refuses push notifications where there are none.
    pub(crate) fn check_pushes(&self) -> Result<&Arc<dyn Receivers>, Error> {
        self.receivers.as_ref().ok_or_else(Error::no_push)
    }

    /// Checks a configuration that a peer asks for, before anything is done with it.
    pub(crate) async fn check_push(
        &self,
        asked: &Asked<'_>,
        config: PushConfig,
    ) -> Result<Checked, Error> {
        let receivers = self.check_pushes()?;
        let refused = |problem: String| Error::invalid("url", &problem);
        receivers.check(&config.url).await.map_err(refused)?;
        let version = match asked.method.version {
            // The bodies of 0.3 are the same for both bindings.
            Version::V03 | Version::V03Proto => Version::V03,
            Version::V10 => Version::V10,
        };
        let id = config.id.clone();
        Ok(Checked { id, kept: Kept { config, version, activated: asked.activated } })
    }

    /// `tasks/pushNotificationConfig/set`.
    pub(crate) async fn set_push(&self, asked: &Asked<'_>, given: Given) -> Result<Value, Error> {
        let params = given.params()?;
        let task = &params.push_task(asked.method.version)?.to_owned();
        let found = self.find(asked, task).await?;
        let config = params.push_config(asked.method.version)?;
        // The receiver's name is looked up, which may take its time.
        drop(given);
        let checked = self.check_push(asked, config).await?;
        let after = found.runs.revision();
        let id = match &checked.id {
            Some(id) => id.clone(),
            None => self.adjourn.clock().uuid().to_string(),
        };
        self.add_push(asked, &found, (&id, &checked.kept), after).await?;
        Ok(checked.kept.config.to_value(task, &id, asked.method.version))
    }

    /// Adds the receiver that a message came with, which is told what happens behind a revision.
    pub(crate) async fn push_with(
        &self,
        asked: &Asked<'_>,
        found: &Found<S>,
        (checked, message): (&Checked, &Sent),
        after: u64,
    ) -> Result<(), Error> {
        let id = inline_id(asked, checked, message);
        self.add_push(asked, found, (&id, &checked.kept), after).await
    }

    /// Refuses the receiver that a message to a task comes with, if the task has too many others.
    pub(crate) async fn check_room(
        &self,
        asked: &Asked<'_>,
        task: &str,
        (checked, message): (&Checked, &Sent),
    ) -> Result<(), Error> {
        let (session, run) = self.pushed(asked, task).await?;
        let there = session.recipients(run, RECIPIENT_KIND).await;
        let there = there.map_err(|error| Error::of(error, task, asked.method.family))?;
        let id = inline_id(asked, checked, message);
        match there.len() < MOST_RECIPIENTS || there.iter().any(|known| known.id == id) {
            true => Ok(()),
            false => Err(too_many(task)),
        }
    }

    async fn add_push(
        &self,
        asked: &Asked<'_>,
        found: &Found<S>,
        (id, kept): (&str, &Kept),
        after: u64,
    ) -> Result<(), Error> {
        let task = found.run.to_string();
        let is_over = found.run().is_some_and(|run| {
            matches!(run.standing, Standing::Over(_)) && run.generation <= after
        });
        let new = NewRecipient {
            run: found.run,
            kind: RECIPIENT_KIND,
            id: id.to_owned(),
            body: kept.encode(),
            after,
            is_over,
        };
        let added = found.session.add_recipient(new).await;
        match added.map_err(|error| Error::of(error, &task, asked.method.family))? {
            Added::New | Added::Replaced => Ok(()),
            Added::TooMany => Err(too_many(&task)),
        }
    }

    /// `tasks/pushNotificationConfig/get`.
    pub(crate) async fn get_push(
        &self,
        asked: &Asked<'_>,
        params: Params<'_>,
    ) -> Result<Value, Error> {
        let version = asked.method.version;
        let (task, id) = (params.push_task(version)?, params.push_id(version)?);
        let (session, run) = self.pushed(asked, task).await?;
        let shown = self.shown_pushes(asked, &session, run).await?;
        // 0.3 may name none, where there is one.
        let mut shown = shown.into_iter().filter(|(known, _)| id.is_none_or(|id| id == known));
        let (_, shown) = shown.next().ok_or_else(|| no_push_config(task, id))?;
        Ok(shown)
    }

    /// `tasks/pushNotificationConfig/list`.
    pub(crate) async fn list_pushes(
        &self,
        asked: &Asked<'_>,
        params: Params<'_>,
    ) -> Result<Value, Error> {
        let version = asked.method.version;
        let task = params.push_task(version)?;
        let (session, run) = self.pushed(asked, task).await?;
        let shown = self.shown_pushes(asked, &session, run).await?;
        let shown: Vec<_> = shown.into_iter().map(|(_, shown)| shown).collect();
        Ok(match version {
            Version::V03 => shown.into(),
            Version::V03Proto | Version::V10 => json!({ "configs": shown, "nextPageToken": "" }),
        })
    }

    /// `tasks/pushNotificationConfig/delete`: one that is not there is gone, too.
    pub(crate) async fn delete_push(
        &self,
        asked: &Asked<'_>,
        params: Params<'_>,
    ) -> Result<Value, Error> {
        let version = asked.method.version;
        let (task, id) = (params.push_task(version)?, params.push_id(version)?);
        let id = id.ok_or_else(|| Error::invalid("pushNotificationConfigId", "is required"))?;
        let (session, run) = self.pushed(asked, task).await?;
        let removed = session.remove_recipient(run, RECIPIENT_KIND, id).await;
        removed.map_err(|error| Error::of(error, task, asked.method.family))?;
        Ok(match version {
            Version::V03 => Value::Null,
            Version::V03Proto | Version::V10 => json!({}),
        })
    }

    async fn pushed(&self, asked: &Asked<'_>, task: &str) -> Result<(SessionRef<S>, RunId), Error> {
        let Found { session, run, .. } = self.find_now(asked, task).await?;
        Ok((session, run))
    }

    /// Returns the receivers of a task with their names, as a peer is shown them.
    async fn shown_pushes(
        &self,
        asked: &Asked<'_>,
        session: &SessionRef<S>,
        run: RunId,
    ) -> Result<Vec<(String, Value)>, Error> {
        let task = run.to_string();
        let all = session.recipients(run, RECIPIENT_KIND).await;
        let all = all.map_err(|error| Error::of(error, &task, asked.method.family))?;
        let shown = all.into_iter().map(|recipient| {
            let kept = recipient.body.ok().and_then(|body| Kept::decode(&body));
            // What cannot be read any more can be deleted, and set again.
            let config = kept.map_or_else(PushConfig::unreadable, |kept| kept.config);
            let shown = config.to_value(&task, &recipient.id, asked.method.version);
            (recipient.id, shown)
        });
        Ok(shown.collect())
    }
}

/// Returns the name of the receiver that a message comes with: the same message again configures the
/// same receiver.
fn inline_id(asked: &Asked<'_>, checked: &Checked, message: &Sent) -> String {
    checked.id.clone().unwrap_or_else(|| {
        let digest = Digest::of(message.journaled_id(asked.caller).as_bytes()).to_string();
        format!("message-{}", digest.get(..16).unwrap_or(&digest))
    })
}

fn too_many(task: &str) -> Error {
    let problem = format!("the task has {MOST_RECIPIENTS} receivers; delete one first");
    Error::new(UNSUPPORTED_OPERATION, "TOO_MANY_RECEIVERS", problem).with("taskId", task)
}

/// There is no such configuration.
fn no_push_config(task: &str, id: Option<&str>) -> Error {
    let id: String = id.unwrap_or_default().chars().take(80).collect();
    let problem = format!("the task has no push notification configuration {id:?}");
    Error::new(TASK_NOT_FOUND, "TASK_NOT_FOUND", problem).with("taskId", task)
}
