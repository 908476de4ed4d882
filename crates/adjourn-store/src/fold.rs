//! Reading a session back: a short fold from the end of its journal, whose links are checked on
//! the way. What does not fit is damaged, and named.

use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::event::{SessionImported, What};
use adjourn_core::id::SessionId;
use adjourn_core::journal::Entry;
use adjourn_record::chain::{Chain, Fault, Tip};
use adjourn_record::entry;

use crate::cache::Folded;
use crate::error::Error;
use crate::query::{marks, record_mark};
use crate::rows::{EntryNo, EntryRow, Rows, SessionRow};

/// Folds a session from its journal, which is read backwards: from the head to an entry that
/// carries the state, or to where `known` is.
pub(crate) fn fold(
    row: &SessionRow,
    known: Option<Folded>,
    rows: &mut dyn Rows,
) -> Result<Arc<Session>, Error> {
    let known = known.filter(|known| known.session.id == row.id);
    if let Some(known) = &known
        && known.tip() == row.tip
    {
        return Ok(Arc::clone(&known.session));
    }
    let mut events = Vec::new();
    let mut next = Some(row.head);
    let mut session = None;
    // What the next entry must be: what the row says, then what the entry after it was linked to.
    let mut expected = row.tip;
    while let Some(no) = next {
        let stored = rows.entry(no).map_err(|error| error.of(row.id))?;
        let stored = stored.ok_or_else(|| missing(row, no))?;
        fits(row, &stored, expected)?;
        let Some(body) = &stored.body else {
            return Err(unreadable(row.id, &"its state was pruned"));
        };
        // Most of the time it comes right behind what is known, which need not be read again.
        let follows = known.as_ref().filter(|known| links(row, known.tip(), &stored, body));
        if let Some(known) = follows {
            events.push(decode(row.id, body)?.event);
            session = Some(Session::clone(&known.session));
            break;
        }
        expected = before(row, &stored, body, rows)?;
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

/// Makes sure that an entry is the one that is expected at its place.
fn fits(row: &SessionRow, stored: &EntryRow, expected: Tip) -> Result<(), Error> {
    if stored.session == row.no && stored.tip() == expected {
        return Ok(());
    }
    let fault = match stored.revision {
        revision if revision > expected.revision => Fault::Missing { found: revision },
        revision if revision < expected.revision => {
            Fault::Misplaced { expected: expected.revision }
        }
        _ => Fault::OtherHead,
    };
    Err(broken(row, expected.revision, fault))
}

/// Makes sure that an entry's bytes give its link, and returns what must come before it.
fn before(
    row: &SessionRow,
    stored: &EntryRow,
    body: &[u8],
    rows: &mut dyn Rows,
) -> Result<Tip, Error> {
    let before = match stored.prev {
        None => Tip::START,
        Some(no) => {
            let tip = rows.tip(no).map_err(|error| error.of(row.id))?;
            tip.ok_or_else(|| missing(row, no))?
        }
    };
    match links(row, before, stored, body) {
        true => Ok(before),
        false => Err(broken(row, stored.revision, Fault::Altered)),
    }
}

/// Returns whether an entry with these bytes comes right behind a place in the journal.
fn links(row: &SessionRow, before: Tip, stored: &EntryRow, body: &[u8]) -> bool {
    before.revision + 1 == stored.revision
        && Chain::journal(row.id).extend(before, body) == stored.tip()
}

fn broken(row: &SessionRow, revision: u64, fault: Fault) -> Error {
    unreadable(row.id, &format_args!("its journal is damaged at entry {revision}: {fault}"))
}

pub(crate) fn missing(row: &SessionRow, no: EntryNo) -> Error {
    unreadable(row.id, &format_args!("its journal entry {} is missing", no.0))
}

/// Reads the bytes of a journal entry.
pub(crate) fn decode(session: SessionId, body: &[u8]) -> Result<Entry, Error> {
    let (_, payload) = entry::decode(body).map_err(|error| unreadable(session, &error))?;
    Entry::decode(payload).map_err(|error| unreadable(session, &error))
}

/// Returns what the session is found by that an entry creates; nothing if it cannot be read.
pub(crate) fn founding_marks(session: SessionId, body: &[u8]) -> Vec<String> {
    match decode(session, body).map(|entry| entry.event.what) {
        Ok(What::SessionCreated(created)) => marks(&created.into()),
        Ok(What::SessionImported(imported)) => {
            let SessionImported { founding, from, .. } = *imported;
            marks(&founding.into()).into_iter().chain([record_mark(&from)]).collect()
        }
        _ => Vec::new(),
    }
}

fn unreadable(session: SessionId, problem: &dyn std::fmt::Display) -> Error {
    Error::Unreadable { session, problem: problem.to_string() }
}

pub(crate) fn damaged(problem: &str) -> Error {
    Error::Damaged(problem.to_owned())
}
