//! Reading a session back: a short fold from the end of its journal.

use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::id::SessionId;
use adjourn_core::journal::Entry;
use adjourn_record::entry;

use crate::cache::Folded;
use crate::error::Error;
use crate::rows::{EntryNo, EntryRow, SessionRow};

/// Folds a session from its journal, which is read backwards: from the head to an entry that
/// carries the state, or to where `known` is.
pub(crate) fn fold(
    row: &SessionRow,
    known: Option<Folded>,
    mut entry: impl FnMut(EntryNo) -> Result<Option<EntryRow>, Error>,
) -> Result<Arc<Session>, Error> {
    let known = known.filter(|known| known.session.id == row.id);
    if let Some(known) = &known
        && known.session.revision == row.tip.revision
        && known.link == row.tip.link
    {
        return Ok(Arc::clone(&known.session));
    }
    let mut events = Vec::new();
    let mut next = Some(row.head);
    let mut session = None;
    while let Some(no) = next {
        let Some(stored) = entry(no)? else {
            return Err(unreadable(row.id, &format_args!("its journal entry {} is missing", no.0)));
        };
        if let Some(known) = &known
            && known.session.revision == stored.revision
            && known.link == stored.link
        {
            session = Some(Session::clone(&known.session));
            break;
        }
        let Some(body) = &stored.body else {
            return Err(unreadable(row.id, &"its state was pruned"));
        };
        let entry = decode(row.id, body)?;
        if entry.carries_state() {
            let state = entry.state().map_err(|error| unreadable(row.id, &error))?;
            if let Some(state) = state {
                session = Some(state);
                break;
            }
        }
        events.push(entry.event);
        next = stored.prev;
    }
    let session = match session {
        Some(mut session) => {
            for event in events.iter().rev() {
                session.evolve(event);
            }
            session
        }
        None => Session::fold(events.iter().rev())
            .ok_or_else(|| unreadable(row.id, &"its journal has no beginning"))?,
    };
    Ok(Arc::new(session))
}

/// Reads the bytes of a journal entry.
pub(crate) fn decode(session: SessionId, body: &[u8]) -> Result<Entry, Error> {
    let (_, payload) = entry::decode(body).map_err(|error| unreadable(session, &error))?;
    Entry::decode(payload).map_err(|error| unreadable(session, &error))
}

fn unreadable(session: SessionId, problem: &dyn std::fmt::Display) -> Error {
    Error::Unreadable { session, problem: problem.to_string() }
}

pub(crate) fn damaged(problem: &str) -> Error {
    Error::Damaged(problem.to_owned())
}
