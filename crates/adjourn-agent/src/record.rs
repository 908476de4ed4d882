//! Suspension records: all that is needed to resume a run, signed.

use std::fmt;
use std::str::FromStr;

use adjourn_core::driver::DriverSpec;
use adjourn_core::time::Timestamp;
use adjourn_core::{Rejected, Session};
use adjourn_driver::payload::{self, Said};
use adjourn_record::keys::{Key, Keys};
use adjourn_record::portable::{Header, Opened, Record, SealError};
use serde::{Deserialize, Serialize};

pub use adjourn_driver::payload::Payload;
pub(crate) use adjourn_driver::payload::{dollars, seconds};

use crate::resume::ResumeError;

/// Why no record can be made of a session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The session is not suspended, or in a way that no record can be made of.
    #[error(transparent)]
    Refused(#[from] Rejected),
    /// The record cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
}

/// A suspended run, as it travels: a JSON object that any database can keep.
///
/// Every byte that means something is signed, and the signature is bound to tenant, session, run,
/// suspension and time. The record is signed, not encrypted: whoever can read it can read the
/// conversation. It never holds the secret that signed it.
///
/// `Serialize`, `Display` and `FromStr` are the same object. What it says is believed only once it
/// was opened, by [`Agent::resume`](crate::Agent::resume) or [`Agent::read`](crate::Agent::read).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SuspensionRecord(Record);

impl SuspensionRecord {
    /// Seals a suspended session; the record ceases to be good at `expires_at`, whatever age a
    /// resumer allows.
    ///
    /// # Errors
    /// The session is not suspended, or in a way that no record can be made of; there is no
    /// randomness.
    pub fn seal(
        key: &Key,
        payload: &Payload,
        expires_at: Option<Timestamp>,
    ) -> Result<Self, PayloadError> {
        Self::seal_parts(key, &payload.driver, &payload.session, &payload.messages, expires_at)
    }

    /// Seals a suspended session that is in pieces.
    pub(crate) fn seal_parts(
        key: &Key,
        driver: &DriverSpec,
        session: &Session,
        messages: &[impl Said],
        expires_at: Option<Timestamp>,
    ) -> Result<Self, PayloadError> {
        session.exportable()?;
        let not_suspended = || Rejected::NotSuspended { phase: session.phase() };
        let header = Header::of(session).ok_or_else(not_suspended)?;
        let header = Header { expires_at, ..header };
        Ok(Record::seal(key, &header, payload::encode(driver, session, messages)).map(Self)?)
    }

    /// Returns its JSON, as `Display` and `Serialize` write it, in one piece.
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }

    /// Checks the signature and returns what was signed.
    pub(crate) fn open(&self, keys: &Keys) -> Result<Opened<'_>, ResumeError> {
        // The age is the caller's to check: at the beginning of time no record has expired.
        let never = Timestamp::from_millis(i64::MIN);
        self.0.open(keys, never, None).map_err(ResumeError::from)
    }
}

impl fmt::Display for SuspensionRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for SuspensionRecord {
    type Err = ResumeError;

    fn from_str(text: &str) -> Result<Self, ResumeError> {
        text.parse().map(Self).map_err(ResumeError::from)
    }
}

impl From<Record> for SuspensionRecord {
    fn from(record: Record) -> Self {
        Self(record)
    }
}

/// Returns the header's words for a person.
pub(crate) fn named(header: &Header) -> String {
    format!("suspension {} of session {}", header.handle, header.session)
}
