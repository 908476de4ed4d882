//! The transcript, as a driver reads it.

use std::sync::Arc;

use crate::content::Message;
use crate::view::{INPUTS, ModelMessage, said_last, view_of};

/// How many entries are read at a time.
const PAGE: usize = 256;

/// The transcript cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the transcript cannot be read: {0}")]
pub struct TranscriptError(pub String);

/// Reads entries of one session's transcript.
pub trait ReadTranscript: Send + Sync {
    /// Returns up to `limit` entries from number `from` on; the first has the number 0.
    ///
    /// # Errors
    /// The transcript cannot be read.
    fn read(&self, from: u64, limit: usize) -> Result<Vec<Message>, TranscriptError>;
}

/// A transcript up to the commit that began a step.
#[derive(Clone)]
pub struct Transcript {
    source: Arc<dyn ReadTranscript>,
    length: u64,
}

impl std::fmt::Debug for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcript").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Transcript {
    /// Makes a transcript of `length` entries.
    pub fn new(source: Arc<dyn ReadTranscript>, length: u64) -> Self {
        Self { source, length }
    }

    /// Returns how many entries it has.
    pub const fn len(&self) -> u64 {
        self.length
    }

    /// Returns whether nothing was said.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns up to `limit` entries that come right before number `end`, in order.
    ///
    /// # Errors
    /// The transcript cannot be read.
    pub fn before(&self, end: u64, limit: usize) -> Result<Vec<Message>, TranscriptError> {
        let end = end.min(self.length);
        let from = end.saturating_sub(limit as u64);
        self.source.read(from, usize::try_from(end - from).unwrap_or(limit))
    }

    /// Returns the entries from the last one on that `begins` holds for; all of them if it holds
    /// for none.
    ///
    /// # Errors
    /// The transcript cannot be read.
    pub fn since(
        &self,
        mut begins: impl FnMut(&Message) -> bool,
    ) -> Result<Vec<Message>, TranscriptError> {
        // Pages from the last one to the first.
        let mut pages = Vec::new();
        let mut end = self.length;
        while end > 0 {
            let mut page = self.before(end, PAGE)?;
            end = end.saturating_sub(PAGE as u64);
            if let Some(start) = page.iter().rposition(&mut begins) {
                page.drain(..start);
                end = 0;
            }
            pages.push(page);
        }
        let mut entries = pages.pop().unwrap_or_default();
        entries.reserve(pages.iter().map(Vec::len).sum());
        while let Some(page) = pages.pop() {
            entries.extend(page);
        }
        Ok(entries)
    }

    /// Returns what a model is shown: see [`model_view`](crate::model_view).
    ///
    /// # Errors
    /// The transcript cannot be read.
    pub fn messages(&self) -> Result<Vec<ModelMessage>, TranscriptError> {
        let mut entries = self.since(|message| message.digest)?;
        if entries.first().is_some_and(|first| first.digest) {
            // What a person said right before a digest is shown with it.
            let mut before = self.before(self.length - entries.len() as u64, INPUTS)?;
            let said = before.split_off(before.len() - said_last(&before));
            entries.splice(..0, said);
        }
        Ok(view_of(entries))
    }
}
