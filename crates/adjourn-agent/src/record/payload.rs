//! What a record holds: the session, what was said, and readings of both for people and databases.

use std::collections::BTreeMap;

use adjourn_core::driver::DriverSpec;
use adjourn_core::id::{RunId, SessionId};
use adjourn_core::session::{Parked, Suspended, Wait};
use adjourn_core::time::Timestamp;
use adjourn_core::{Session, json};
use adjourn_driver::Message;
use adjourn_record::portable::{Header, SealError};
use serde::{Deserialize, Serialize};

use crate::driver::place::Place;
use crate::driver::signature;
use crate::failure::{Failure, FailureKind};

/// The version of the payload that is written.
const SCHEMA: u32 = 1;

/// A suspended session with everything that it takes to go on elsewhere.
///
/// It is written with the readings that people and databases look for (`run_id`, `pending_question`,
/// `cumulative_cost_usd` and so on). What counts when it is read is `driver`, `state` and
/// `messages`; the readings follow from them.
#[derive(Debug, Clone, PartialEq)]
pub struct Payload {
    /// What it takes to run the session.
    pub driver: DriverSpec,
    /// The session.
    pub session: Session,
    /// What was said, entry for entry.
    pub messages: Vec<Message>,
}

/// Why no record can be made of a session, or none be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The session is not suspended.
    #[error("session {session} is not suspended")]
    NotSuspended {
        /// The session.
        session: SessionId,
    },
    /// A client holds the session: its agent's wait lies under a pause of another's.
    #[error("session {session} is held")]
    Held {
        /// The session.
        session: SessionId,
    },
    /// The session lost its host with calls of unknown outcome: a person has to look first.
    #[error("session {session} lost its host, and the outcome of a call is unknown")]
    HostInterrupted {
        /// The session.
        session: SessionId,
    },
    /// The record cannot be sealed.
    #[error(transparent)]
    Seal(SealError),
    /// The payload cannot be read.
    #[error("payload of the record: {problem}")]
    Malformed {
        /// What is wrong with it.
        problem: String,
    },
}

/// The payload as it is written. The readings have the names that the guide to suspending gives them.
#[derive(Serialize)]
struct Written<'a> {
    schema: u32,
    run_id: Option<RunId>,
    session_id: SessionId,
    agent: &'a str,
    model_id: Option<&'a str>,
    started_at: Option<String>,
    suspended_at: String,
    pending_question: Option<&'a str>,
    pending_question_context: Option<&'a str>,
    pending_choices: &'a [String],
    originating_failure_kind: Option<&'a str>,
    iteration_count: u64,
    elapsed_seconds: f64,
    cumulative_cost_usd: f64,
    cumulative_prompt_tokens: u64,
    cumulative_completion_tokens: u64,
    tool_call_history: Vec<String>,
    last_repeat_counts: &'a BTreeMap<String, u64>,
    lessons_learned: &'a [Failure],
    failure_attempts: &'a BTreeMap<FailureKind, u32>,
    driver: &'a DriverSpec,
    state: &'a Session,
    messages: &'a [Message],
}

/// What of it counts.
#[derive(Deserialize)]
struct Read {
    schema: u32,
    driver: DriverSpec,
    state: Session,
    messages: Vec<Message>,
}

impl Payload {
    /// Returns the suspension, if a record can be made of it.
    pub(crate) fn parked(&self) -> Result<&Parked, PayloadError> {
        let session = self.session.id;
        let Some(Suspended { park, hold, .. }) = self.session.suspended() else {
            return Err(PayloadError::NotSuspended { session });
        };
        if hold.is_some() {
            return Err(PayloadError::Held { session });
        }
        if park.pause.host_interrupted {
            return Err(PayloadError::HostInterrupted { session });
        }
        Ok(park)
    }

    /// Returns what the signature binds the payload to.
    pub(crate) fn header(&self) -> Result<Header, PayloadError> {
        let park = self.parked()?;
        Ok(Header {
            tenant: self.session.tenant.clone(),
            session: self.session.id,
            run: self.session.run().map(|run| run.id),
            handle: park.pause.handle,
            suspended_at: park.suspended_at,
            expires_at: None,
        })
    }

    /// Returns the model that the session runs with, if it is a native agent's.
    pub fn model(&self) -> Option<&str> {
        crate::agent::model_of(&self.driver)
    }

    /// Returns the payload's JSON text.
    pub(crate) fn encode(&self) -> String {
        let session = &self.session;
        let (run, totals) = (session.run(), &session.totals);
        let park = session.suspended().map(|suspended| &suspended.park);
        let question = park.and_then(|park| match &park.pause.wait {
            Wait::Question(question) => Some(question),
            Wait::Open => None,
        });
        let place = Place::read(session);
        let calls = self.messages.iter().flat_map(|message| &message.calls);
        let written = Written {
            schema: SCHEMA,
            run_id: run.map(|run| run.id),
            session_id: session.id,
            agent: session.driver.agent(),
            model_id: self.model(),
            started_at: run.map(|run| run.started_at.to_string()),
            suspended_at: park.map_or(session.at, |park| park.suspended_at).to_string(),
            pending_question: question.map(|question| question.question.as_str()),
            pending_question_context: question.and_then(|question| question.context.as_deref()),
            pending_choices: question.map_or(&[], |question| question.choices.as_slice()),
            originating_failure_kind: question
                .and_then(|question| question.originating_failure_kind.as_deref()),
            iteration_count: place.iterations,
            elapsed_seconds: seconds(run.map_or(0, |run| run.progress.active_ms)),
            cumulative_cost_usd: dollars(totals.cost_micro_usd),
            cumulative_prompt_tokens: totals.prompt_tokens,
            cumulative_completion_tokens: totals.completion_tokens,
            tool_call_history: calls.map(signature).collect(),
            last_repeat_counts: &place.repeats,
            lessons_learned: &place.lessons,
            failure_attempts: &place.attempts,
            driver: &self.driver,
            state: session,
            messages: &self.messages,
        };
        // No map with keys that are not text, no failing impl: this always encodes.
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// It is none, or one of a later version.
    pub fn decode(text: &str) -> Result<Self, PayloadError> {
        /// The one field that a payload of every version has.
        #[derive(Deserialize)]
        struct Versioned {
            schema: u32,
        }
        let malformed = |problem| PayloadError::Malformed { problem };
        let read = json::stored::<Read>(text.as_bytes());
        let schema = read.as_ref().map(|read| read.schema);
        let schema =
            schema.or_else(|_| json::stored::<Versioned>(text.as_bytes()).map(|v| v.schema));
        match schema {
            Ok(SCHEMA) | Err(_) => {}
            Ok(other) => return Err(malformed(format!("schema {other} is not known"))),
        }
        let Read { driver, state: session, messages, .. } =
            read.map_err(|error| malformed(error.to_string()))?;
        if session.transcript.length != messages.len() as u64 {
            let (is, said) = (messages.len(), session.transcript.length);
            return Err(malformed(format!("it has {is} messages, and {said} were said")));
        }
        Ok(Self { driver, session, messages })
    }

    /// Returns when the session was suspended.
    pub fn suspended_at(&self) -> Option<Timestamp> {
        self.parked().ok().map(|park| park.suspended_at)
    }
}

/// Returns an amount of money in US dollars.
#[expect(clippy::cast_precision_loss, reason = "fine up to nine billion dollars")]
pub(crate) fn dollars(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1e6
}

/// Returns a length of time in seconds.
#[expect(clippy::cast_precision_loss, reason = "fine up to a hundred thousand years")]
pub(crate) fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}
