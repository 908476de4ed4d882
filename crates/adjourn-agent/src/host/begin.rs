//! How a run begins: with a prompt, or with a record that is checked first.

use std::time::Duration;

use adjourn_core::carry::{AddBudget, Budget};
use adjourn_core::command::{Prompt, Reach};
use adjourn_core::driver::DriverSpec;
use adjourn_core::facts::{Facts, Fresh};
use adjourn_core::id::{Handle, RunId, SessionId};
use adjourn_core::{Command, Founding, Rejected, Session, command};
use adjourn_driver::Message;
use adjourn_driver::payload::{KeptEntry, Said, model_of, set_model};
use adjourn_record::portable::Header;
use uuid::Uuid;

use super::commands::{Entries, decided, program};
use crate::agent::Inner;
use crate::clock::Clock;
use crate::consumed::Consumption;
use crate::record::{Payload, SuspensionRecord};
use crate::resume::{ResumeError, check_age};

/// What a run begins with.
pub(crate) enum Beginning {
    /// A message, in a session of its own.
    Prompt(Message),
    /// A session that goes on.
    Resumed(Box<Resumed>),
}

/// A session that was suspended, with the reply in it.
pub(crate) struct Resumed {
    driver: DriverSpec,
    session: Session,
    messages: Vec<KeptEntry>,
    handle: Handle,
}

/// Under which terms a record is resumed.
pub(crate) struct Terms {
    pub(crate) max_age: Option<Duration>,
    pub(crate) add_budget: Option<AddBudget>,
    pub(crate) any_model: bool,
}

/// Checks a record and what it is resumed with; nothing changes.
pub(crate) fn check(
    inner: &Inner,
    record: &SuspensionRecord,
    reply: Message,
    terms: Terms,
) -> Result<Resumed, ResumeError> {
    let content = reply.content();
    if content.blank {
        return Err(ResumeError::EmptyReply);
    }
    let opened = record.open(&inner.keys)?;
    check_age(&opened.header, inner.clock.now(), terms.max_age)?;
    let payload = Payload::decode_kept(opened.payload)?;
    if Header::of(&payload.session) != Some(Header { expires_at: None, ..opened.header }) {
        let problem = "its payload is not that of its header".to_owned();
        return Err(ResumeError::Malformed { problem });
    }
    is_own(inner, &payload)?;
    if !terms.any_model {
        is_same("model", payload.model().unwrap_or_default(), inner.model.id())?;
    }
    let Payload { mut driver, session, mut messages } = payload;
    if terms.any_model {
        // The next record is of the model that goes on with it.
        set_model(&mut driver, inner.model.id());
    }
    let handle = session.suspended().map(|suspended| suspended.park.pause.handle);
    let resume = command::Resume {
        handle,
        input: Some(content),
        add_budget: terms.add_budget,
        ..command::Resume::default()
    };
    let session = decided(&session, inner.clock.as_ref(), program(), &Command::Resume(resume))?;
    messages.push(reply.into());
    let handle = handle.ok_or_else(|| ResumeError::Malformed {
        problem: "its session is not suspended".to_owned(),
    })?;
    Ok(Resumed { driver, session, messages, handle })
}

/// Refuses a record of another tenant, agent or session, or of another driver.
pub(crate) fn is_own<M: Said>(inner: &Inner, payload: &Payload<M>) -> Result<(), ResumeError> {
    let (session, own) = (&payload.session, inner.driver_spec());
    if model_of(&payload.driver).is_none() {
        return Err(ResumeError::OtherDriver { kind: session.driver.kind.clone() });
    }
    is_same("tenant", &session.tenant, &inner.config.tenant)?;
    is_same("agent", session.driver.agent(), own.summary().agent())?;
    match inner.session {
        Some(only) => is_same("session", &session.id.to_string(), &only.to_string()),
        None => Ok(()),
    }
}

/// Refuses a record in which something else is named than the agent has.
fn is_same(what: &'static str, record: &str, agent: &str) -> Result<(), ResumeError> {
    if record == agent {
        return Ok(());
    }
    let (record, agent) = (record.to_owned(), agent.to_owned());
    Err(ResumeError::OtherOwner { what, record, agent })
}

/// Takes note that a record is resumed; of several who try, one succeeds.
pub(crate) async fn consume(inner: &Inner, resumed: &Resumed) -> Result<(), ResumeError> {
    match inner.ledger.consume(resumed.handle).await? {
        Consumption::First => Ok(()),
        Consumption::Already(how) => {
            Err(ResumeError::AlreadyConsumed { handle: resumed.handle, how })
        }
    }
}

/// Returns the session that a run begins with, and what was said in it.
pub(super) fn session(
    inner: &Inner,
    spec: &DriverSpec,
    beginning: Beginning,
    clock: &dyn Clock,
) -> Result<(Session, Entries, DriverSpec), Rejected> {
    let message = match beginning {
        Beginning::Prompt(message) => message,
        Beginning::Resumed(resumed) => {
            let Resumed { driver, session, messages, .. } = *resumed;
            return Ok((session, Entries::new(messages), driver));
        }
    };
    let founding = Founding {
        id: inner.session.unwrap_or_else(|| SessionId::new(Uuid::now_v7())),
        tenant: inner.config.tenant.clone(),
        labels: Default::default(),
        parent: None,
        driver: spec.clone(),
        budget: Budget::default(),
        title: None,
    };
    let fresh = Fresh { handle: Handle::new(Uuid::now_v7()), run: RunId::new(Uuid::now_v7()) };
    let created = Session::create(&Facts::new(clock.now(), program(), fresh), founding)?;
    let Some(session) = Session::fold(&created) else {
        return Err(Rejected::OutOfStep { problem: "no session was created".to_owned() });
    };
    let prompt =
        Prompt { content: message.content(), message_id: None, handle: None, reach: Reach::Waits };
    let session = decided(&session, clock, program(), &Command::Prompt(prompt))?;
    Ok((session, Entries::new(vec![message.into()]), spec.clone()))
}
