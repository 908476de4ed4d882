//! Reads: each sees one moment, and holds it no longer than a page of results takes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use adjourn_core::Session;
use adjourn_core::id::{HostId, Seq, SessionId};
use adjourn_core::journal::Entry;
use adjourn_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use uuid::Uuid;

use super::identity;
use super::rows::{PRUNABLE_EVENTS, SqliteRows, said, session_row, signed, state_name, unsigned};
use super::sidecar::sync_directory;
use super::turnstile::beside;
use crate::cache::{Cache, Folded};
use crate::committed::Appended;
use crate::error::Error;
use crate::fold::{decode, fold};
use crate::retention::{Retention, before};
use crate::rows::{EntryNo, Journal as _, SessionNo, SessionRow, Sessions as _};
use crate::store::{Listed, Size};

pub(super) fn session(
    connection: &Connection,
    cache: &Cache,
    id: SessionId,
) -> Result<Option<Arc<Session>>, Error> {
    // Without a transaction around both reads the journal may have gone on after the row was
    // read; it is append-only, so what the row says is still there.
    let Some(row) = SqliteRows::reading(connection).session(id)? else { return Ok(None) };
    load(connection, cache, &row).map(Some)
}

pub(super) fn sessions(
    connection: &Connection,
    cache: &Cache,
    after: SessionNo,
    limit: usize,
) -> Result<Vec<(SessionNo, Listed)>, Error> {
    let sql = "SELECT no, id, tenant, head, revision, link FROM session
               WHERE no > ?1 ORDER BY no LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![after.0, limit], session_row)?;
    let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
    let page = page(connection)?;
    let mut sessions = Vec::with_capacity(rows.len());
    for row in &rows {
        let listed = match load(connection, cache, row) {
            // A session that cannot be read must not hold up the others.
            Err(error) if error.is_of_a_session() => Err((row.id, error)),
            session => Ok(session?),
        };
        sessions.push((row.no, listed));
    }
    page.finish()?;
    Ok(sessions)
}

/// Returns the sessions that are marked as unreadable.
pub(super) fn unreadable(
    connection: &Connection,
    after: SessionNo,
    limit: usize,
) -> Result<Vec<(SessionNo, SessionId)>, Error> {
    let sql = "SELECT no, id FROM lag JOIN session ON no = session
               WHERE unreadable IS NOT NULL AND session > ?1 ORDER BY session LIMIT ?2";
    numbered(connection, sql, after, limit)
}

/// Returns whether there is something to drop. Each look is at the first of an index.
pub(super) fn prunable(
    connection: &Connection,
    retention: &Retention,
    now: Timestamp,
) -> Result<bool, Error> {
    let there = |sql: &str, kept: Option<Duration>| -> Result<bool, Error> {
        let Some(kept) = kept else { return Ok(false) };
        let before = before(now, kept).as_millis();
        Ok(connection.prepare_cached(sql)?.exists([before])?)
    };
    let events = format!("SELECT 1 FROM (SELECT at {PRUNABLE_EVENTS} LIMIT 1) WHERE at < ?1");
    let bounds = [retention.events, Retention::UNREADABLE].map(|kept| before(now, kept));
    let bounds = bounds.map(Timestamp::as_millis);
    Ok(connection.prepare_cached(&events)?.exists(bounds)?
        || there("SELECT 1 FROM answer WHERE at < ?1", Some(retention.answers))?
        || there(
            "SELECT 1 FROM session WHERE state = 5 AND pruned = 0 AND at < ?1",
            retention.ended,
        )?
        || there(
            "SELECT 1 FROM unprompted JOIN session ON no = session WHERE state = 0 AND at < ?1",
            retention.unprompted,
        )?
        || connection.prepare_cached("SELECT 1 FROM erasing")?.exists([])?)
}

/// Holds one moment for a page of results: locks are taken once, and not for every row.
fn page(connection: &Connection) -> Result<Transaction<'_>, Error> {
    Ok(connection.unchecked_transaction()?)
}

pub(super) fn ready(
    connection: &Connection,
    after: SessionNo,
    limit: usize,
) -> Result<Vec<(SessionNo, SessionId)>, Error> {
    let sql = "SELECT no, id FROM session WHERE state = 1 AND no > ?1
                   AND no NOT IN (SELECT session FROM lag WHERE unreadable IS NOT NULL)
               ORDER BY no LIMIT ?2";
    numbered(connection, sql, after, limit)
}

pub(super) fn driven_by(connection: &Connection, host: HostId) -> Result<Vec<SessionId>, Error> {
    let mut statement = connection.prepare_cached("SELECT id FROM session WHERE owner = ?1")?;
    let ids = statement.query_map([host.uuid().as_bytes()], |row| {
        Ok(SessionId::new(Uuid::from_bytes(row.get(0)?)))
    })?;
    Ok(ids.collect::<Result<_, _>>()?)
}

pub(super) fn strays(connection: &Connection) -> Result<Vec<HostId>, Error> {
    let sql = "SELECT DISTINCT owner FROM session
               WHERE owner IS NOT NULL AND owner NOT IN (SELECT id FROM host)
                   AND no NOT IN (SELECT session FROM lag WHERE unreadable IS NOT NULL)";
    let mut statement = connection.prepare_cached(sql)?;
    let hosts = statement.query_map([], |row| Ok(HostId::new(Uuid::from_bytes(row.get(0)?))))?;
    Ok(hosts.collect::<Result<_, _>>()?)
}

fn numbered(
    connection: &Connection,
    sql: &str,
    from: SessionNo,
    limit: usize,
) -> Result<Vec<(SessionNo, SessionId)>, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![from.0, limit], |row| {
        Ok((SessionNo(row.get(0)?), SessionId::new(Uuid::from_bytes(row.get(1)?))))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn load(
    connection: &Connection,
    cache: &Cache,
    row: &SessionRow,
) -> Result<Arc<Session>, Error> {
    let mut rows = SqliteRows::reading(connection);
    let session = fold(row, cache.get(row.no), &mut rows)?;
    cache.put(row.no, Folded { link: row.tip.link, session: Arc::clone(&session) });
    Ok(session)
}

pub(super) fn places(
    connection: &Connection,
    id: SessionId,
    revision: u64,
) -> Result<Vec<EntryNo>, Error> {
    let page = page(connection)?;
    let Some(row) = SqliteRows::reading(connection).session(id)? else { return Ok(Vec::new()) };
    // The journal is read from its end: each entry knows the one before it.
    let sql = "SELECT revision, prev FROM journal WHERE no = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut places = Vec::new();
    let mut next = Some(row.head.0);
    while let Some(no) = next {
        let entry = statement.query_row([no], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let (found, prev): (i64, Option<i64>) =
            entry.ok_or_else(|| crate::fold::missing(&row, EntryNo(no)))?;
        if unsigned(found) < revision {
            break;
        }
        places.push(EntryNo(no));
        next = prev;
    }
    places.reverse();
    page.finish()?;
    Ok(places)
}

pub(super) fn entries(
    connection: &Connection,
    id: SessionId,
    places: &[EntryNo],
) -> Result<Vec<Entry>, Error> {
    let page = page(connection)?;
    let mut rows = SqliteRows::reading(connection);
    let mut entries = Vec::with_capacity(places.len());
    for no in places {
        if let Some(body) = rows.entry(*no)?.and_then(|entry| entry.body) {
            entries.push(decode(id, &body)?);
        }
    }
    page.finish()?;
    Ok(entries)
}

pub(super) fn appended(
    connection: &Connection,
    after: EntryNo,
    limit: usize,
) -> Result<Vec<Appended>, Error> {
    let sql = "SELECT journal.no, id, journal.revision, state, due
               FROM journal LEFT JOIN session ON session.no = journal.session
               WHERE journal.no > ?1 ORDER BY journal.no LIMIT ?2";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(params![after.0, limit], |row| {
        let id: Option<[u8; 16]> = row.get(1)?;
        let state: Option<i64> = row.get(3)?;
        let due: Option<i64> = row.get(4)?;
        Ok(Appended {
            no: EntryNo(row.get(0)?),
            session: id.map(|id| SessionId::new(Uuid::from_bytes(id))),
            revision: unsigned(row.get(2)?),
            is_ready: state.is_some_and(|state| state_name(state) == "ready"),
            due: due.map(Timestamp::from_millis),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn last_entry(connection: &Connection) -> Result<EntryNo, Error> {
    let sql = "SELECT coalesce(max(no), 0) FROM journal";
    Ok(EntryNo(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?))
}

pub(super) fn founding(connection: &Connection, id: SessionId) -> Result<Option<Entry>, Error> {
    let Some(row) = SqliteRows::reading(connection).session(id)? else { return Ok(None) };
    let sql = "SELECT body FROM journal WHERE session = ?1 AND revision = 1";
    let mut statement = connection.prepare_cached(sql)?;
    let body: Option<Option<Vec<u8>>> =
        statement.query_row([row.no.0], |row| row.get(0)).optional()?;
    body.flatten().map(|body| decode(id, &body)).transpose()
}

pub(super) fn transcript(
    connection: &Connection,
    id: SessionId,
    index: u64,
    limit: usize,
    bytes: usize,
) -> Result<Vec<Vec<u8>>, Error> {
    let Some(row) = SqliteRows::reading(connection).session(id)? else { return Ok(Vec::new()) };
    // Beyond this a place would be another's.
    let Ok(index) = u32::try_from(index).map(u64::from) else { return Ok(Vec::new()) };
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let [_, end] = said::places(row.no);
    let mut statement = connection.prepare_cached(said::reading(connection)?)?;
    let mut rows = statement.query([said::place(row.no, index), end, limit])?;
    let (mut page, mut taken) = (Vec::new(), 0_usize);
    while let Some(row) = rows.next()? {
        let body = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
        taken = taken.saturating_add(body.len());
        if taken > bytes && !page.is_empty() {
            break;
        }
        page.push(body.to_vec());
    }
    Ok(page)
}

pub(super) fn event_data(connection: &Connection, seq: Seq) -> Result<Option<String>, Error> {
    let mut statement = connection.prepare_cached("SELECT data FROM event WHERE seq = ?1")?;
    let data: Option<Option<String>> =
        statement.query_row([signed(seq.0)], |row| row.get(0)).optional()?;
    Ok(data.flatten())
}

pub(super) fn size(connection: &Connection, path: &Path) -> Result<Size, Error> {
    let number = |sql: &str| -> Result<u64, Error> {
        Ok(unsigned(connection.query_row(sql, [], |row| row.get(0))?))
    };
    let page = number("PRAGMA page_size")?;
    let log = std::fs::metadata(beside(path, "-wal")).map_or(0, |log| log.len());
    Ok(Size {
        sessions: number("SELECT count(*) FROM session")?,
        suspended: number("SELECT count(*) FROM session WHERE state = 4")?,
        // Dense and never deleted from.
        entries: number("SELECT coalesce(max(no), 0) FROM journal")?,
        events: number("SELECT count(*) FROM event")?,
        file: page * number("PRAGMA page_count")?,
        free: page * number("PRAGMA freelist_count")?,
        log,
    })
}

pub(super) fn backup(connection: &Connection, to: &Path) -> Result<(), Error> {
    use std::os::unix::fs::OpenOptionsExt as _;

    let cannot = |error| Error::io(format!("cannot write {}", to.display()), error);
    let unfinished = beside(to, ".unfinished");
    let Some(target) = unfinished.to_str() else {
        return Err(cannot(std::io::Error::from(std::io::ErrorKind::InvalidFilename)));
    };
    // A copy is as private as the store; SQLite takes a file that is there if it is empty.
    let make = |path| std::fs::File::options().write(true).create_new(true).mode(0o600).open(path);
    // Until the copy is whole and one of its own, an empty file has its name.
    make(to).map_err(cannot)?;
    let copied = copy(connection, target, || make(&unfinished)).and_then(|()| {
        std::fs::rename(&unfinished, to).map_err(cannot)?;
        sync_directory(to)
    });
    copied.inspect_err(|_| {
        // Half a copy is none.
        let _ = std::fs::remove_file(&unfinished);
        let _ = std::fs::remove_file(to);
    })
}

/// Copies a store into a file that `make` makes, and makes the copy one of its own.
fn copy(
    connection: &Connection,
    target: &str,
    make: impl FnOnce() -> std::io::Result<std::fs::File>,
) -> Result<(), Error> {
    let cannot = |error| Error::io(format!("cannot write {target}"), error);
    // What is left of a copy that was cut short.
    let _ = std::fs::remove_file(target);
    let file = make().map_err(cannot)?;
    // The online backup starts over whenever another process commits; a saturated store would
    // never be copied. This holds one read transaction instead, and the log grows meanwhile.
    // A connection that may only query may not write a copy either.
    connection.pragma_update(None, "query_only", false)?;
    let copied = connection.execute("VACUUM INTO ?1", [target]);
    connection.pragma_update(None, "query_only", true)?;
    copied?;
    // Whatever lies beside the store was not written for the copy.
    identity::renew(Path::new(target))?;
    file.sync_all().map_err(cannot)
}
