//! What a portable record holds: a parked session, what was said in it, and readings of both for
//! people and databases.
//!
//! Owns the payload's JSON. How a record is sealed and opened belongs to `adjourn-record`; who may
//! go on with it, to the library and to the store that takes it in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;

use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::id::{RunId, SessionId};
use adjourn_core::session::Wait;
use adjourn_core::transcript::{Digest, Head};
use adjourn_core::{Session, json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::content::Message;
use crate::signature::signature;

/// The version of the payload that is written. Version 1 had longer past suspensions in its state.
const SCHEMA: u32 = 2;

/// How long a state and a message are, about: room for them is made at once.
const STATE_BYTES: usize = 8 * 1024;
const MESSAGE_BYTES: usize = 512;
/// How long a message is at least, about. A record that says it has more than fit into it gets no
/// room for them.
const SHORT_MESSAGE_BYTES: usize = 128;

/// What stands in front of the messages, and what a payload ends with behind them.
const MESSAGES_BEGIN: &str = ",\"messages\":[";
const MESSAGES_END: &str = "]}";

/// A suspended session with everything that it takes to go on elsewhere.
///
/// It is written with the readings that people and databases look for (`run_id`, `pending_question`,
/// `cumulative_cost_usd` and so on). What counts when it is read is `driver`, `state` and
/// `messages`; the readings follow from them.
///
/// Whoever looks at what was said reads it as [`Message`]s; a store keeps each entry as it is
/// ([`RawEntry`]), because the journal vouches for its bytes; a library that runs the session does
/// both ([`KeptEntry`]).
#[derive(Debug, Clone, PartialEq)]
pub struct Payload<M = Message> {
    /// What it takes to run the session.
    pub driver: DriverSpec,
    /// The session.
    pub session: Session,
    /// What was said, entry for entry.
    pub messages: Vec<M>,
}

/// An entry of a transcript, as a payload has it.
pub trait Said: DeserializeOwned {
    /// Returns the signatures of the calls that were asked for with it.
    fn signatures(&self) -> Cow<'_, [String]>;

    /// Writes its JSON text behind what is written already.
    fn write(&self, text: &mut Vec<u8>);
}

impl Said for Message {
    fn signatures(&self) -> Cow<'_, [String]> {
        Cow::Owned(self.calls.iter().map(signature).collect())
    }

    fn write(&self, text: &mut Vec<u8>) {
        // No map with keys that are not text, no failing impl: this always encodes.
        let _ = serde_json::to_writer(text, self);
    }
}

/// An entry of a transcript, byte for byte as it was said.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawEntry(Box<RawValue>);

impl RawEntry {
    /// Takes the bytes of an entry.
    ///
    /// # Errors
    /// The bytes are no JSON text.
    pub fn new(bytes: Vec<u8>) -> Result<Self, MalformedPayload> {
        let malformed = |problem: &dyn std::fmt::Display| MalformedPayload(problem.to_string());
        let text = String::from_utf8(bytes).map_err(|error| malformed(&error))?;
        RawValue::from_string(text).map(Self).map_err(|error| malformed(&error))
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        String::from(Box::<str>::from(self.0)).into_bytes()
    }
}

impl Said for RawEntry {
    fn signatures(&self) -> Cow<'_, [String]> {
        // One that this program cannot read travels all the same, and has no reading.
        let message = Message::decode(self.0.get().as_bytes());
        message.map(|message| message.signatures().into_owned()).unwrap_or_default().into()
    }

    fn write(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.0.get().as_bytes());
    }
}

/// An entry of a transcript that is read, and goes on as it was said.
#[derive(Debug, Clone)]
pub struct KeptEntry {
    /// What was said.
    message: Message,
    /// Its bytes, if it comes from a payload: they are not written anew with the next one.
    text: Option<Box<str>>,
    /// The signatures of its calls, if the payload that it comes from has them: they are not worked
    /// out anew.
    signatures: Option<Vec<String>>,
}

impl KeptEntry {
    fn new(message: Message, text: impl Into<Box<str>>) -> Self {
        Self { message, text: Some(text.into()), signatures: None }
    }

    /// Returns what was said.
    pub const fn message(&self) -> &Message {
        &self.message
    }
}

impl From<Message> for KeptEntry {
    fn from(message: Message) -> Self {
        Self { message, text: None, signatures: None }
    }
}

impl<'de> Deserialize<'de> for KeptEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let message = json::stored_text(text.get()).map_err(serde::de::Error::custom)?;
        Ok(Self::new(message, text))
    }
}

impl Said for KeptEntry {
    fn signatures(&self) -> Cow<'_, [String]> {
        match &self.signatures {
            Some(signatures) => Cow::Borrowed(signatures),
            None => self.message.signatures(),
        }
    }

    fn write(&self, text: &mut Vec<u8>) {
        match &self.text {
            Some(said) => text.extend_from_slice(said.as_bytes()),
            None => self.message.write(text),
        }
    }
}

/// The text is no payload, or one of a later version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("payload of the record: {0}")]
pub struct MalformedPayload(pub String);

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
    tool_call_history: Vec<&'a str>,
    last_repeat_counts: BTreeMap<String, u64>,
    lessons_learned: Vec<Box<RawValue>>,
    failure_attempts: BTreeMap<String, u32>,
    driver: &'a DriverSpec,
    state: &'a Session,
    /// None: they are written behind all else, each as it was said.
    messages: [(); 0],
}

/// What of it counts, and the one reading that takes long to work out.
#[derive(Deserialize)]
#[serde(bound(deserialize = "M: DeserializeOwned"))]
struct Read<M> {
    schema: u32,
    #[serde(default)]
    tool_call_history: Vec<String>,
    driver: DriverSpec,
    state: Session,
    messages: Vec<M>,
}

/// What the native agent notes in its driver's state, as far as there are readings of it. The state
/// of other drivers has none of this.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Noted {
    iterations: u64,
    repeats: BTreeMap<String, u64>,
    attempts: BTreeMap<String, u32>,
    lessons: Vec<Box<RawValue>>,
}

impl Noted {
    fn read(session: &Session) -> Self {
        let state = session.driver_state.as_deref().unwrap_or("{}");
        json::stored_text(state).unwrap_or_default()
    }
}

impl<M: Said> Payload<M> {
    /// Returns the model that the session runs with, if it is a native agent's.
    pub fn model(&self) -> Option<&str> {
        model_of(&self.driver)
    }

    /// Returns the payload's JSON text; equal payloads have the same.
    pub fn encode(&self) -> String {
        encode(&self.driver, &self.session, &self.messages)
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// It is none, or one of a later version.
    pub fn decode(text: &str) -> Result<Self, MalformedPayload> {
        /// The one field that a payload of every version has.
        #[derive(Deserialize)]
        struct Versioned {
            schema: u32,
        }
        let read = json::stored_text::<Read<M>>(text);
        let schema = read.as_ref().map(|read| read.schema);
        let schema = schema.or_else(|_| json::stored_text::<Versioned>(text).map(|v| v.schema));
        match schema {
            Ok(1..=SCHEMA) | Err(_) => {}
            Ok(other) => return Err(MalformedPayload(format!("schema {other} is not known"))),
        }
        let Read { driver, state: session, messages, .. } =
            read.map_err(|error| MalformedPayload(error.to_string()))?;
        if session.transcript.length != messages.len() as u64 {
            let (is, said) = (messages.len(), session.transcript.length);
            return Err(MalformedPayload(format!("it has {is} messages, and {said} were said")));
        }
        Ok(Self { driver, session, messages })
    }
}

/// A text that is written in pieces, of which most are one quote, colon or comma.
struct Pieces<'a>(&'a mut Vec<u8>);

impl io::Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes).map(|()| bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match bytes {
            [byte] => self.0.push(*byte),
            bytes => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the JSON text of a payload that is in pieces.
pub fn encode<M: Said>(driver: &DriverSpec, session: &Session, messages: &[M]) -> String {
    let (run, totals) = (session.run(), &session.totals);
    let park = session.suspended().map(|suspended| &suspended.park);
    let question = park.and_then(|park| match &park.pause.wait {
        Wait::Question(question) => Some(question),
        Wait::Open => None,
    });
    let noted = Noted::read(session);
    let signatures: Vec<_> = messages.iter().map(Said::signatures).collect();
    let written = Written {
        schema: SCHEMA,
        run_id: run.map(|run| run.id),
        session_id: session.id,
        agent: session.driver.agent(),
        model_id: model_of(driver),
        started_at: run.map(|run| run.started_at.to_string()),
        suspended_at: park.map_or(session.at, |park| park.suspended_at).to_string(),
        pending_question: question.map(|question| question.question.as_str()),
        pending_question_context: question.and_then(|question| question.context.as_deref()),
        pending_choices: question.map_or(&[], |question| question.choices.as_slice()),
        originating_failure_kind: question
            .and_then(|question| question.originating_failure_kind.as_deref()),
        iteration_count: noted.iterations,
        elapsed_seconds: seconds(run.map_or(0, |run| run.progress.active_ms)),
        cumulative_cost_usd: dollars(totals.cost_micro_usd),
        cumulative_prompt_tokens: totals.prompt_tokens,
        cumulative_completion_tokens: totals.completion_tokens,
        tool_call_history: signatures
            .iter()
            .flat_map(|each| each.iter())
            .map(String::as_str)
            .collect(),
        last_repeat_counts: noted.repeats,
        lessons_learned: noted.lessons,
        failure_attempts: noted.attempts,
        driver,
        state: session,
        messages: [],
    };
    let mut text = Vec::with_capacity(STATE_BYTES + messages.len() * MESSAGE_BYTES);
    // No map with keys that are not text, no failing impl: this always encodes, and as UTF-8.
    if serde_json::to_writer(Pieces(&mut text), &written).is_err() {
        return String::new();
    }
    text.truncate(text.len().saturating_sub(MESSAGES_END.len()));
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        message.write(&mut text);
    }
    text.extend_from_slice(MESSAGES_END.as_bytes());
    String::from_utf8(text).unwrap_or_default()
}

impl Payload<KeptEntry> {
    /// Reads a payload as [`Payload::decode`] does; one that [`encode`] wrote is looked through only
    /// once.
    ///
    /// # Errors
    /// It is none, or one of a later version.
    pub fn decode_kept(text: &str) -> Result<Self, MalformedPayload> {
        Self::as_written(text).map_or_else(|| Self::decode(text), Ok)
    }

    /// Reads a payload that is spelt as [`encode`] does it. Returns nothing if it is spelt in another
    /// way, or is none.
    fn as_written(text: &str) -> Option<Self> {
        let (members, list) = json::split_last(text, MESSAGES_BEGIN, MESSAGES_END)?;
        // With an empty list it is a payload just if it is one with this: the messages are all that
        // stands in the list, and the brackets around it are those of the empty one.
        let without_messages = [members, MESSAGES_BEGIN, MESSAGES_END].concat();
        let read = json::stored_text::<Read<KeptEntry>>(&without_messages).ok()?;
        let Read { schema, tool_call_history, driver, state: session, .. } = read;
        let room = list.len() / SHORT_MESSAGE_BYTES;
        let said = usize::try_from(session.transcript.length).unwrap_or(room);
        let messages = json::stored_list(list, said.min(room))?;
        let is_whole =
            (1..=SCHEMA).contains(&schema) && session.transcript.length == messages.len() as u64;
        let messages = messages.into_iter().map(|(said, text)| KeptEntry::new(said, text));
        let mut messages: Vec<_> = messages.collect();
        give_signatures(&mut messages, tool_call_history);
        is_whole.then_some(Self { driver, session, messages })
    }
}

/// Gives messages the signatures that stand beside them, unless they are not as many as the calls.
fn give_signatures(messages: &mut [KeptEntry], signatures: Vec<String>) {
    let calls: usize = messages.iter().map(|entry| entry.message.calls.len()).sum();
    if calls != signatures.len() {
        return;
    }
    let mut signatures = signatures.into_iter();
    for entry in messages {
        entry.signatures = Some(signatures.by_ref().take(entry.message.calls.len()).collect());
    }
}

impl Payload<RawEntry> {
    /// Takes a session out of a payload, with the bytes of what was said, which are those that the
    /// session's journal vouched for.
    ///
    /// # Errors
    /// Other words are in the payload than were said.
    pub fn into_parts(self) -> Result<(DriverSpec, Session, Vec<Vec<u8>>), MalformedPayload> {
        let Self { driver, session, messages } = self;
        let said: Vec<_> = messages.into_iter().map(RawEntry::into_bytes).collect();
        let digests: Vec<_> = said.iter().map(|entry| Digest::of(entry)).collect();
        if Head::EMPTY.with_all(&digests) != session.transcript {
            return Err(MalformedPayload("its messages are not those that were said".to_owned()));
        }
        Ok((driver, session, said))
    }
}

/// Returns the model that a native agent's session runs with.
pub fn model_of(spec: &DriverSpec) -> Option<&str> {
    match &spec.kind {
        DriverKind::Native { model } => Some(model),
        DriverKind::Named { config, .. } => config.get("model")?.as_str(),
        DriverKind::Script { .. } | DriverKind::Acp { .. } => None,
    }
}

/// Has a native agent's session run with another model; one of another driver stays as it is.
pub fn set_model(spec: &mut DriverSpec, other: &str) {
    match &mut spec.kind {
        DriverKind::Native { model } => other.clone_into(model),
        DriverKind::Named { config, .. } => {
            if let Some(model) = config.get_mut("model") {
                *model = other.into();
            }
        }
        DriverKind::Script { .. } | DriverKind::Acp { .. } => {}
    }
}

/// Returns an amount of money in US dollars.
#[expect(clippy::cast_precision_loss, reason = "fine up to nine billion dollars")]
pub fn dollars(micro_usd: u64) -> f64 {
    micro_usd as f64 / 1e6
}

/// Returns a length of time in seconds.
#[expect(clippy::cast_precision_loss, reason = "fine up to a hundred thousand years")]
pub fn seconds(millis: u64) -> f64 {
    millis as f64 / 1e3
}
