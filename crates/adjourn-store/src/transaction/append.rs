//! How what was decided is written: the journal's entries, what was said, and every index.

use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::event::What;
use adjourn_core::facts::Answered;
use adjourn_core::id::RunId;
use adjourn_core::journal::Entry;
use adjourn_core::session::State;
use adjourn_core::transcript::{Digest, Head};
use adjourn_record::chain::Chain;
use adjourn_record::entry::{self, Codec};

use super::{Done, Transaction};
use crate::cache::Folded;
use crate::committed::Change;
use crate::error::{CommandError, Error};
use crate::fold::damaged;
use crate::rows::{EntryRow, SessionRow};

impl Transaction<'_> {
    /// Appends what was decided, and brings every index up to it.
    pub(super) fn append(
        &mut self,
        row: SessionRow,
        before: Option<&Session>,
        entries: Vec<Entry>,
        session: Session,
        said: Vec<Vec<u8>>,
    ) -> Result<Done, CommandError> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone().into());
        }
        // Refused before anything is written: whoever takes the refusal as an answer and goes on
        // must not keep half a command.
        let start = before.map_or(Head::EMPTY, |before| before.transcript);
        check_said(start, session.transcript, &said)?;
        let written = self.write(row, before, entries, session, said);
        if let Err(error) = &written {
            self.failed = Some(error.clone());
        }
        Ok(written?)
    }

    /// Writes what was decided; if this fails, half of it may be there.
    fn write(
        &mut self,
        mut row: SessionRow,
        before: Option<&Session>,
        entries: Vec<Entry>,
        session: Session,
        said: Vec<Vec<u8>>,
    ) -> Result<Done, Error> {
        let chain = Chain::journal(row.id);
        let mut events = Vec::with_capacity(entries.len());
        for entry in entries {
            let body =
                entry::encode(Codec::Json1, &entry).map_err(|error| damaged(&error.to_string()))?;
            let tip = chain.extend(row.tip, &body);
            let stored = EntryRow {
                session: row.no,
                revision: entry.revision,
                prev: Some(row.head).filter(|head| head.0 > 0),
                link: tip.link,
                body: Some(body),
            };
            row.head = self.rows.add_entry(stored)?;
            let (first, _) = self.committed.entries.unwrap_or((row.head, row.head));
            self.committed.entries = Some((first, row.head));
            row.tip = tip;
            self.links.push(tip.link);
            if let Some((key, answer)) = entry.event.answer() {
                let answered = Answered { body: key.body, run: key.run, answer };
                self.rows.keep_answer(row.no, &key.key, &answered, entry.event.at)?;
            }
            if let Some(id) = entry.event.message_id() {
                self.rows.keep_message(row.no, id, entry.event.at)?;
            }
            if let Some(run) = begun(&entry.event.what) {
                self.rows.add_run(run, row.no)?;
            }
            events.push(entry.event);
        }
        let place = before.map_or(0, |before| before.transcript.length);
        self.rows.add_said(row.no, place, &said)?;
        let old = before.map(Session::subscriptions).unwrap_or_default();
        self.rows.subscribe(&row, &old, &session.subscriptions())?;
        self.rows.set_session(&row, &session)?;
        // Once in its life.
        let unprompted = |session: &Session| session.transcript.length == 0;
        if before.is_none_or(unprompted)
            && (!unprompted(&session) || matches!(session.state, State::Ended(_)))
        {
            self.rows.set_prompted(row.no)?;
        }
        let session = Arc::new(session);
        let folded = Folded { link: row.tip.link, session: Arc::clone(&session) };
        self.changed.insert(row.no, folded);
        let events: Arc<[_]> = events.into();
        if self.is_listened_to {
            let (session, events) = (Arc::clone(&session), Arc::clone(&events));
            let change = Change { session, events, said };
            self.committed.changes.push(Arc::new(change));
        }
        Ok(Done { session, events, answered: None })
    }
}

/// Returns the run that is this session's from an event on.
fn begun(what: &What) -> Option<RunId> {
    match what {
        What::RunStarted(started) => Some(started.run),
        What::SessionImported(imported) => imported.state.run().map(|run| run.id),
        _ => None,
    }
}

/// Refuses transcript entries that do not lead from one head to another.
fn check_said(from: Head, to: Head, said: &[Vec<u8>]) -> Result<(), Error> {
    let digests: Vec<_> = said.iter().map(|entry| Digest::of(entry)).collect();
    if from.with_all(&digests) != to {
        return Err(Error::Unsaid("their digests are others"));
    }
    Ok(())
}
