//! Events from outside: a build that finished, a file that changed, a message on a channel.
//!
//! The word *event* belongs to the journal in this crate ([`crate::Event`]); what comes in from
//! the world is an [`Arrival`].

use serde::{Deserialize, Serialize};

use crate::conditions::EventView;
use crate::id::{Seq, SessionId};
use crate::time::Timestamp;

/// An acknowledged event, without its data.
///
/// The data (up to 256 KiB) stays in the store under `seq`; a driver that wants it reads it there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Arrival {
    /// Its place in the order of acknowledgement.
    pub seq: Seq,
    /// The id its source gave it.
    pub id: String,
    /// Where it comes from.
    pub source: String,
    /// What happened, dot-separated.
    pub name: String,
    /// To what it happened, slash-separated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// When it happened, as its source says.
    pub time: Timestamp,
    /// The session it is addressed to, whatever that session waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

impl Arrival {
    /// Returns what conditions are matched against.
    pub fn view(&self) -> EventView<'_> {
        EventView {
            id: &self.id,
            source: &self.source,
            name: &self.name,
            subject: self.subject.as_deref(),
            time: self.time,
        }
    }
}
