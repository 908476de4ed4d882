//! What has happened in a session and what was said in it, read piece by piece.

use std::ops::Range;

use adjourn_core::Session;
use adjourn_core::event::SessionCreated;
use adjourn_core::id::SessionId;
use adjourn_core::journal::Entry;
use adjourn_core::ledger::AskedCall;
use adjourn_driver::{CallContent, Message};
use adjourn_store::{Error as StoreError, Store};

use crate::error::Error;
use crate::off_thread::off_thread;
use crate::session_ref::SessionRef;
use crate::{telling, transcript};

/// How much of a transcript is read on the thread that asks for it, or one entry: mostly so little that
/// others wait no longer for that thread than a change of threads takes.
const HERE_BYTES: usize = 16 * 1024;
/// How many entries of a transcript are tried at once, where its end is read.
const PAGE: u64 = 256;

impl<S: Store> SessionRef<S> {
    /// Returns what the session was created with; nothing if it was never there, or was removed.
    ///
    /// # Errors
    /// The store fails, or another program wrote what this one cannot read.
    pub async fn created(&self) -> Result<Option<SessionCreated>, Error> {
        let founding = self.adjourn().process().store.founding(self.id())?;
        Ok(founding.and_then(|entry| entry.event.what.founding().cloned()))
    }

    /// Returns a page of the session's journal, from a revision on. Entries that were pruned are
    /// left out.
    ///
    /// A journal is read from its end, so that this takes as long as there are entries behind the
    /// revision: it is read on another thread. [`SessionRef::watch`] reads all of a journal once.
    ///
    /// # Errors
    /// The store fails, or another program wrote what this one cannot read.
    pub async fn journal(&self, revision: u64, limit: usize) -> Result<Vec<Entry>, Error> {
        let (store, id) = (self.adjourn().process().store.clone(), self.id());
        off_thread(move || store.journal(id, revision, limit)).await
    }

    /// Returns a page of the session's transcript, from an entry on, each entry with its number.
    /// Those that this program cannot read are left out.
    ///
    /// # Errors
    /// The store fails.
    pub async fn transcript(&self, from: u64, limit: usize) -> Result<Vec<(u64, Message)>, Error> {
        let (store, id) = (self.adjourn().process().store.clone(), self.id());
        let mut entries = store.transcript_within(id, from, limit, HERE_BYTES)?;
        if !entries.is_empty() && entries.len() < limit {
            // The transcript ends there, or goes on with more than is read here. All of it is read
            // anew: some entries may have been erased between the two reads.
            entries = off_thread(move || store.transcript(id, from, limit)).await?;
        }
        let read = |(number, bytes): (u64, Vec<u8>)| Some((number, Message::decode(&bytes).ok()?));
        Ok((from..).zip(entries).filter_map(read).collect())
    }

    /// Returns the last entries of a part of the session's transcript that take at most `bytes`, or the
    /// last one alone, and the number of the first of them. Those that this program cannot read are
    /// left out.
    ///
    /// # Errors
    /// The store fails.
    pub async fn transcript_end(
        &self,
        part: Range<u64>,
        bytes: usize,
    ) -> Result<(u64, Vec<(u64, Message)>), Error> {
        let (store, id) = (self.adjourn().process().store.clone(), self.id());
        let all = usize::try_from(part.end.saturating_sub(part.start)).unwrap_or(usize::MAX);
        let here = store.transcript_within(id, part.start, all, HERE_BYTES.min(bytes))?;
        let (first, entries) = match here.len() == all {
            true => (part.start, here),
            false => off_thread(move || last_within(&store, id, part, bytes)).await?,
        };
        let read = |(number, bytes): (u64, Vec<u8>)| Some((number, Message::decode(&bytes).ok()?));
        Ok((first, (first..).zip(entries).filter_map(read).collect()))
    }

    /// Returns what a call was asked for with: its arguments are in the transcript alone.
    ///
    /// # Errors
    /// The store fails, or the transcript does not have the call where the journal says.
    pub async fn call_content(&self, call: &AskedCall) -> Result<CallContent, Error> {
        Ok(transcript::call_content(&self.adjourn().process().store, self.id(), call)?)
    }

    /// Returns what is committed of the message that is being said where `session` stands, each
    /// segment under its number in the transcript; nothing if none is.
    ///
    /// # Errors
    /// The store fails.
    pub async fn unfinished_message(
        &self,
        session: &Session,
    ) -> Result<Vec<(u64, Message)>, Error> {
        Ok(telling::unfinished(&self.adjourn().process().store, session)?)
    }
}

/// Reads a part of a transcript from its end, page by page, for as long as the pages fit into what is
/// left of the bytes; of one that does not, its second half is tried, and so on. Returns the entries
/// with the number of the first one.
fn last_within<S: Store>(
    store: &S,
    id: SessionId,
    part: Range<u64>,
    bytes: usize,
) -> Result<(u64, Vec<Vec<u8>>), StoreError> {
    let (mut first, mut left, mut most) = (part.end, bytes, PAGE);
    let mut pages = Vec::new();
    while first > part.start {
        let count = most.min(first - part.start);
        let limit = usize::try_from(count).unwrap_or(usize::MAX);
        let page = store.transcript_within(id, first - count, limit, left)?;
        let taken: usize = page.iter().map(Vec::len).sum();
        // A single entry is read whatever it takes, and only the last one of all is kept then.
        let fits = page.len() == limit && (taken <= left || pages.is_empty());
        match (fits, count) {
            (true, _) => {
                first -= count;
                left = left.saturating_sub(taken);
                pages.push(page);
            }
            (false, 1) => break,
            (false, _) => most = count / 2,
        }
    }
    Ok((first, pages.into_iter().rev().flatten().collect()))
}
