//! Transcripts of the store, as drivers and faces read them.

use adjourn_core::id::SessionId;
use adjourn_core::ledger::AskedCall;
use adjourn_core::transcript::Digest;
use adjourn_driver::{CallContent, Message, ReadTranscript, TranscriptError};
use adjourn_store::{Error, Store};

/// Reads the transcript of one session from its store.
pub(crate) struct StoredTranscript<S> {
    pub(crate) store: S,
    pub(crate) session: SessionId,
}

impl<S: Store> ReadTranscript for StoredTranscript<S> {
    fn read(&self, from: u64, limit: usize) -> Result<Vec<Message>, TranscriptError> {
        let unread = |error: &dyn std::fmt::Display| TranscriptError(error.to_string());
        let entries = self.store.transcript(self.session, from, limit);
        let entries = entries.map_err(|error| unread(&error))?;
        let read = |bytes: &Vec<u8>| Message::decode(bytes).map_err(|error| unread(&error));
        entries.iter().map(read).collect()
    }
}

/// Reads what a call was asked for with: its arguments are in the transcript alone, and what stands
/// there must be what the journal vouches for.
///
/// # Errors
/// The store fails, or the transcript does not have the call where the journal says, or has other
/// words there.
pub(crate) fn call_content<S: Store>(
    store: &S,
    session: SessionId,
    call: &AskedCall,
) -> Result<CallContent, Error> {
    let Some(entry) = call.entry else {
        return Ok(CallContent::new(call.id.clone(), call.tool.clone()));
    };
    let entries = store.transcript(session, entry, 1)?;
    if let (Some(digest), Some(bytes)) = (call.digest, entries.first())
        && Digest::of(bytes) != digest
    {
        let problem = format!("its transcript has other words for call {} than asked", call.id);
        return Err(Error::Unreadable { session, problem });
    }
    let asked = entries.first().and_then(|bytes| Message::decode(bytes).ok());
    let mut calls = asked.into_iter().flat_map(|message| message.calls);
    // An entry that this program cannot read is the session's trouble, not the store's.
    calls.find(|content| content.id == call.id).ok_or_else(|| Error::Unreadable {
        session,
        problem: format!("its transcript has no call {} where the journal says", call.id),
    })
}
