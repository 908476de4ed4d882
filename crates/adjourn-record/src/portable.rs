//! Portable records: signed snapshots of a suspended session that leave the store.
//!
//! A record is one JSON object whose members are texts, and a MAC over those texts. Owns the envelope,
//! the sealing and the opening; must not know what the payload says, nor whether a suspension was
//! resumed before: exactly one resume needs a ledger, which a record cannot carry.
//!
//! # The envelope
//!
//! ```json
//! {
//!   "v": 1,
//!   "kid": "key-<32 digits>",
//!   "token": "<nonce: 32 digits>.<MAC: 64 digits>",
//!   "tenant": "…", "session": "sess-…", "run": "run-…", "handle": "suspend-…",
//!   "suspendedAt": "2026-11-15T11:00:00.000Z", "expiresAt": "…",
//!   "payload": "<JSON text>"
//! }
//! ```
//!
//! The header's fields are members of their own, so that a database can find a record by its session
//! without opening it. Each is a text, and the MAC covers the texts as they stand, each with its length
//! in front. So nothing that a JSON store may do to the object matters (order of members, white space,
//! escapes, dropped duplicates), since none of it changes a text; and any other character in any text
//! does. Numbers and nested objects would be rewritten on the way; there are none but `v`, which has
//! only one value. Members beyond these are refused: nothing unsigned rides along.

mod escape;
mod token;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::id::{Handle, RunId, SessionId};
use adjourn_core::time::Timestamp;
use adjourn_core::{json, syntax};
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::hash::{Domain, length_prefix};
use crate::keys::{Key, KeyId, Keys, RandomnessError, Revocation};
use token::{Nonce, Token};

/// How old a record may be when the resumer says nothing else.
pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(86_400);

/// How far the clocks of two machines may be apart: a record from further in the future is not taken.
pub const CLOCK_SKEW: Duration = Duration::from_secs(60);

const VERSION: u64 = 1;
/// What stands in front of a record's payload, and what the record ends with behind it.
const PAYLOAD_BEGIN: &str = ",\"payload\":\"";
const PAYLOAD_END: &str = "\"}";
/// How long a record may be: its payload is a whole conversation, with what was shown in it.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// What a record says about the suspension, outside its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Whose session it is.
    pub tenant: String,
    /// The session.
    pub session: SessionId,
    /// The run that is suspended; an idle session has none.
    pub run: Option<RunId>,
    /// The suspension.
    pub handle: Handle,
    /// When it was committed.
    pub suspended_at: Timestamp,
    /// When the record ceases to be good, whatever age the resumer allows.
    pub expires_at: Option<Timestamp>,
}

impl Header {
    /// Returns what binds a record of a suspended session to it; nothing if it is not suspended.
    pub fn of(session: &Session) -> Option<Self> {
        let park = &session.suspended()?.park;
        Some(Self {
            tenant: session.tenant.clone(),
            session: session.id,
            run: session.run().map(|run| run.id),
            handle: park.pause.handle,
            suspended_at: park.suspended_at,
            expires_at: None,
        })
    }
}

/// A record, as it travels: read from text, written to text, and believed only once opened.
///
/// `Display` and `FromStr` are its compact JSON; the serde form embeds it in a larger object.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Record {
    v: u64,
    kid: String,
    token: String,
    tenant: String,
    session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
    handle: String,
    suspended_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    #[serde(with = "shared_text")]
    payload: Arc<String>,
}

/// A text that clones of a record share: it is a whole conversation.
mod shared_text {
    use std::sync::Arc;

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        text: &Arc<String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D>(deserializer: D) -> Result<Arc<String>, D::Error>
    where
        D: Deserializer<'de>,
    {
        String::deserialize(deserializer).map(Arc::new)
    }
}

impl Record {
    /// Seals `payload`, a JSON text, under the header.
    ///
    /// # Errors
    /// [`SealError`]: no randomness for the nonce, or a value that would not come back as it is.
    pub fn seal(key: &Key, header: &Header, payload: String) -> Result<Self, SealError> {
        Self::seal_with(key, header, payload, Nonce::random()?)
    }

    /// Seals `payload` once more as it was sealed before with this token: with the same header,
    /// payload and key it is the same record, byte for byte.
    ///
    /// # Errors
    /// [`SealError`]: the token is none, or a value would not come back as it is.
    pub fn seal_again(
        key: &Key,
        header: &Header,
        payload: String,
        token: &str,
    ) -> Result<Self, SealError> {
        let problem = "it is not a token";
        let token: Token =
            token.parse().map_err(|_| SealError::Unwritable { member: "token", problem })?;
        Self::seal_with(key, header, payload, token.nonce)
    }

    fn seal_with(
        key: &Key,
        header: &Header,
        payload: String,
        nonce: Nonce,
    ) -> Result<Self, SealError> {
        let mut record = Self {
            v: VERSION,
            kid: key.id().to_string(),
            token: String::new(),
            tenant: storable("tenant", header.tenant.clone())?,
            session: header.session.to_string(),
            run: header.run.map(|run| run.to_string()),
            handle: header.handle.to_string(),
            suspended_at: write_time("suspendedAt", header.suspended_at)?,
            expires_at: header.expires_at.map(|at| write_time("expiresAt", at)).transpose()?,
            payload: Arc::new(storable("payload", payload)?),
        };
        let digest = record.mac(key.mac(), &nonce).finalize().into_bytes().into();
        record.token = Token { nonce, digest }.to_string();
        Ok(record)
    }

    /// Returns its compact JSON, as `Display` does, in one piece.
    pub fn to_json(&self) -> String {
        // Of a JSON text that is written as a text, about every eighth character is escaped.
        let mut text = Vec::with_capacity(self.payload.len() + self.payload.len() / 6 + 1024);
        let without_payload = Self { payload: Arc::default(), ..self.clone() };
        // Its members are texts and a number: they always encode, and as UTF-8.
        let _ = serde_json::to_writer(&mut text, &without_payload);
        // The payload is the last one of them, and goes between its quotes.
        text.truncate(text.len().saturating_sub(PAYLOAD_END.len()));
        escape::write(&self.payload, &mut text);
        text.extend(PAYLOAD_END.as_bytes());
        String::from_utf8(text).unwrap_or_default()
    }

    /// Reads a record that is spelt as [`Record::to_json`] does it: its payload is unescaped without
    /// serde_json. Returns nothing if it is spelt in another way, or is none.
    fn as_written(text: &str) -> Option<Self> {
        let (members, payload) = json::split_last(text, PAYLOAD_BEGIN, PAYLOAD_END)?;
        // With an empty payload it is a record just if it is one with this: the payload is all of
        // one string, and the quotes around it are those of the empty one.
        let without_payload = [members, PAYLOAD_BEGIN, PAYLOAD_END].concat();
        let payload = Arc::new(escape::read(payload)?);
        Some(Self { payload, ..json::stored_text(&without_payload).ok()? })
    }

    /// Returns the id of the key that it says it was sealed with.
    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// Returns its token, which no other record has.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Opens a record: checks its token, the standing of its key, and its age.
    ///
    /// The age is counted from the suspension to `now`, and `None` lifts the limit; a record from the
    /// future (a clock went back) is not old. The record's own `expiresAt` holds in any case.
    ///
    /// # Errors
    /// [`OpenError`]. The token is checked before anything that the record says is believed.
    pub fn open(
        &self,
        keys: &Keys,
        now: Timestamp,
        max_age: Option<Duration>,
    ) -> Result<Opened<'_>, OpenError> {
        if self.v != VERSION {
            return Err(OpenError::Version { found: self.v });
        }
        let id: KeyId = read("kid", &self.kid)?;
        let token: Token = read("token", &self.token)?;
        let (mac, revoked) = keys.mac(id).ok_or(OpenError::UnknownKey { key: id })?;
        self.mac(mac, &token.nonce)
            // Compares in constant time.
            .verify(&token.digest.into())
            .map_err(|_| OpenError::TokenMismatch { key: id })?;
        if let Some(revocation) = revoked {
            return Err(OpenError::RevokedKey { key: id, revocation: revocation.clone() });
        }
        let header = self.header()?;
        let expired = |limit| Err(OpenError::Expired { handle: header.handle, limit });
        if let Some(at) = header.expires_at
            && now >= at
        {
            return expired(Limit::ExpiresAt(at));
        }
        if let Some(max_age) = max_age
            && now.since(header.suspended_at) > max_age
        {
            return expired(Limit::MaxAge { suspended_at: header.suspended_at, max_age });
        }
        Ok(Opened { key: id, header, payload: &self.payload })
    }

    /// Feeds all texts to the MAC, in an order and framing that is fixed.
    fn mac(&self, mut mac: Hmac<Sha256>, nonce: &Nonce) -> Hmac<Sha256> {
        mac.update(Domain::Record.tag());
        mac.update(&self.v.to_be_bytes());
        absorb(&mut mac, &self.kid);
        absorb(&mut mac, &self.tenant);
        absorb(&mut mac, &self.session);
        absorb_optional(&mut mac, self.run.as_deref());
        absorb(&mut mac, &self.handle);
        absorb(&mut mac, &self.suspended_at);
        absorb_optional(&mut mac, self.expires_at.as_deref());
        absorb(&mut mac, &nonce.to_string());
        absorb(&mut mac, &self.payload);
        mac
    }

    fn header(&self) -> Result<Header, OpenError> {
        Ok(Header {
            tenant: self.tenant.clone(),
            session: read("session", &self.session)?,
            run: self.run.as_deref().map(|text| read("run", text)).transpose()?,
            handle: read("handle", &self.handle)?,
            suspended_at: read_time("suspendedAt", &self.suspended_at)?,
            expires_at: self
                .expires_at
                .as_deref()
                .map(|text| read_time("expiresAt", text))
                .transpose()?,
        })
    }
}

fn absorb(mac: &mut Hmac<Sha256>, text: &str) {
    mac.update(&length_prefix(text.as_bytes()));
    mac.update(text.as_bytes());
}

/// Says first whether the member is there: one that is missing is not one without characters.
fn absorb_optional(mac: &mut Hmac<Sha256>, text: Option<&str>) {
    match text {
        None => mac.update(&[0]),
        Some(text) => {
            mac.update(&[1]);
            absorb(mac, text);
        }
    }
}

/// Refuses the one character that `jsonb` cannot hold; no JSON text has it.
fn storable(member: &'static str, text: String) -> Result<String, SealError> {
    if text.contains('\0') {
        return Err(SealError::Unwritable { member, problem: "it has a zero character" });
    }
    Ok(text)
}

/// Writes a time so that it comes back; those that RFC 3339 cannot write do not.
fn write_time(member: &'static str, time: Timestamp) -> Result<String, SealError> {
    let text = time.to_string();
    if Timestamp::parse(&text) != Ok(time) {
        return Err(SealError::Unwritable { member, problem: "it lies outside the calendar" });
    }
    Ok(text)
}

fn read<T>(member: &'static str, text: &str) -> Result<T, OpenError>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    text.parse().map_err(|error: T::Err| OpenError::malformed(member, &error))
}

fn read_time(member: &'static str, text: &str) -> Result<Timestamp, OpenError> {
    Timestamp::parse(text).map_err(|error| OpenError::malformed(member, &error))
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl fmt::Debug for Record {
    /// Leaves the payload out: it is a whole conversation, and none of a log's business.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("kid", &self.kid)
            .field("session", &self.session)
            .field("handle", &self.handle)
            .field("suspended_at", &self.suspended_at)
            .finish_non_exhaustive()
    }
}

impl FromStr for Record {
    type Err = OpenError;

    fn from_str(text: &str) -> Result<Self, OpenError> {
        /// All that is sure to be in an envelope of any version.
        #[derive(Deserialize)]
        struct Preamble {
            v: u64,
        }

        if text.len() > MOST_BYTES {
            let problem = format!("longer than {MOST_BYTES} bytes");
            return Err(OpenError::malformed("envelope", &problem));
        }
        if let Some(record) = Self::as_written(text) {
            return Ok(record);
        }
        // Its members are texts and a number, and others are refused: nothing in it nests, so that
        // a text of this length need not be looked through before it is read.
        json::stored_text(text).map_err(|error| match json::read(text.as_bytes(), MOST_BYTES) {
            Ok(Preamble { v: found }) if found != VERSION => OpenError::Version { found },
            _ => OpenError::malformed("envelope", &syntax::problem(&error)),
        })
    }
}

/// What an opened record says, vouched for by its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened<'r> {
    /// The key that sealed it.
    pub key: KeyId,
    /// The header.
    pub header: Header,
    /// The payload, byte for byte as it was sealed.
    pub payload: &'r str,
}

/// Why a record cannot be sealed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The operating system gave no randomness for the nonce.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
    /// A value would not come back from a JSON store as it is.
    #[error("{member} of the record cannot be written: {problem}")]
    Unwritable {
        /// The member it was meant for.
        member: &'static str,
        /// Why not.
        problem: &'static str,
    },
}

/// Why a record is not taken. Nothing of it may be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is not an envelope, or a member is not what it must be.
    #[error("record is malformed: {member}: {problem}")]
    Malformed {
        /// The member, or `envelope` for the object as a whole.
        member: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// It is of a version that this program does not know.
    #[error("record has unknown version {found}")]
    Version {
        /// The version.
        found: u64,
    },
    /// The key that it names is not among those held.
    #[error("record is sealed with unknown key {key}")]
    UnknownKey {
        /// The id of the key.
        key: KeyId,
    },
    /// The token is not the one that the key gives: the record was changed, or sealed with another
    /// secret.
    #[error("token of the record does not fit its content under key {key}")]
    TokenMismatch {
        /// The id of the key.
        key: KeyId,
    },
    /// The token fits, but the key was revoked: anybody may have sealed it.
    #[error(
        "record is sealed with key {key}, which was revoked at {}: {}",
        revocation.at,
        revocation.reason
    )]
    RevokedKey {
        /// The id of the key.
        key: KeyId,
        /// When it was revoked, and why.
        revocation: Revocation,
    },
    /// It is genuine, and too old.
    #[error("record of suspension {handle} has expired: {limit}")]
    Expired {
        /// The suspension.
        handle: Handle,
        /// The limit that it passed.
        limit: Limit,
    },
}

impl OpenError {
    fn malformed(member: &'static str, problem: &dyn fmt::Display) -> Self {
        Self::Malformed { member, problem: problem.to_string() }
    }
}

/// The limit that an expired record has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The record's own, set by whoever sealed it.
    ExpiresAt(Timestamp),
    /// The resumer's.
    MaxAge {
        /// When the suspension was committed.
        suspended_at: Timestamp,
        /// How old the record might be.
        max_age: Duration,
    },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ExpiresAt(at) => write!(f, "it was good until {at}"),
            Self::MaxAge { suspended_at, max_age } => {
                write!(
                    f,
                    "it is from {suspended_at} and may be at most {} s old",
                    max_age.as_secs_f64()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealing_gives_the_golden_record() {
        let golden = include_str!("../tests/golden/record.json");
        let key = Key::from_secrets(Timestamp::from_millis(1_763_200_000_000), &[1; 32], &[2; 32]);
        let header = Header {
            tenant: "acme".to_owned(),
            session: "sess-019abf6b-7d51-7c1d-bb02-0123456789ab".parse().unwrap(),
            run: Some("run-019abf6b-7d51-7c1d-bb02-0123456789ac".parse().unwrap()),
            handle: "suspend-019abf6b-7d51-7c1d-bb02-0123456789ad".parse().unwrap(),
            suspended_at: Timestamp::from_millis(1_763_200_000_123),
            expires_at: Some(Timestamp::from_millis(1_763_286_400_123)),
        };
        let payload =
            r#"{"messages":[{"role":"user","text":"Grüße \"park\" \ud83d\ude80"}],"cost":0.25}"#;
        let nonce = Nonce::from_bytes(*b"0123456789abcdef");
        let record = Record::seal_with(&key, &header, payload.to_owned(), nonce).unwrap();
        assert_eq!(record, golden.parse().unwrap());
        assert_eq!(record.to_string(), golden.trim_end());
    }
}
