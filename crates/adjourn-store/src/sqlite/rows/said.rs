//! Transcripts: what was said in sessions.
//!
//! A session's entries lie together in `transcript`, so that a long one is read in one sweep. Many
//! sessions that each say a few words would change a page there each time, though. So what was said
//! last lies in `recent` first, where sessions share pages, and is carried over a few entries at a
//! time. An entry is in one of the two, and all in `recent` come after those in `transcript`.

use rusqlite::Connection;

use super::{SqliteRows, Value, unsigned};
use crate::error::Error;
use crate::rows::SessionNo;
use crate::sqlite::schema;

/// How many entries of a session, and how many bytes of them, are kept in `recent`.
///
/// Measured with 64 sessions at work at once: a half and twice as much both change more pages.
const RECENT_ENTRIES: usize = 8;
const RECENT_BYTES: usize = 512;

/// Entries with places from `?1` to before `?2`, at most `?3`.
const SAID: &str = "SELECT place, body FROM transcript WHERE place >= ?1 AND place < ?2
     UNION ALL SELECT place, body FROM recent WHERE place >= ?1 AND place < ?2
     ORDER BY place LIMIT ?3";

/// The same in a file that could not be migrated.
const SAID_BEFORE: &str = "SELECT place, body FROM transcript WHERE place >= ?1 AND place < ?2
     ORDER BY place LIMIT ?3";

/// Returns the statement that reads transcripts, with the places from and to, and a limit.
pub(in crate::sqlite) fn reading(connection: &Connection) -> Result<&'static str, Error> {
    Ok(if keeps_recent(connection)? { SAID } else { SAID_BEFORE })
}

/// Returns whether what was said last lies apart: not in a file that could not be migrated.
pub(in crate::sqlite) fn keeps_recent(connection: &Connection) -> Result<bool, Error> {
    Ok(schema::version(connection)? >= schema::RECENT)
}

/// The key of a transcript entry: a session's entries lie together, in order.
pub(in crate::sqlite) const fn place(session: SessionNo, index: u64) -> i64 {
    (session.0 << 32) | (index & 0xffff_ffff).cast_signed()
}

/// Returns the places of all entries of a session: from, and before.
pub(in crate::sqlite) const fn places(session: SessionNo) -> [i64; 2] {
    [place(session, 0), place(SessionNo(session.0 + 1), 0)]
}

impl SqliteRows<'_> {
    /// Adds entries to a transcript that has `at` of them.
    pub(super) fn say(&self, session: SessionNo, at: u64, said: &[Vec<u8>]) -> Result<(), Error> {
        if said.is_empty() {
            return Ok(());
        }
        let (kept, bytes) = self.recent(session)?;
        let all = kept + said.len();
        let bytes = said.iter().fold(bytes, |bytes, entry| bytes.saturating_add(entry.len()));
        let is_carried = all > RECENT_ENTRIES || bytes > RECENT_BYTES;
        let sql = if is_carried {
            if kept > 0 {
                self.carry_over(session)?;
            }
            "INSERT INTO transcript (place, body) VALUES (?1, ?2)"
        } else {
            "INSERT INTO recent (place, body) VALUES (?1, ?2)"
        };
        for (place, body) in (place(session, at)..).zip(said) {
            self.write(sql, [place.into(), body.clone().into()])?;
        }
        if let Some(known) = self.writing {
            let (entries, bytes) = if is_carried { (0, 0) } else { (all, bytes) };
            known.keep_recent(session, entries, bytes);
        }
        Ok(())
    }

    /// Returns how many entries of a session are in `recent`, and their bytes.
    fn recent(&self, session: SessionNo) -> Result<(usize, usize), Error> {
        if let Some(recent) = self.writing.and_then(|known| known.recent(session)) {
            return Ok(recent);
        }
        let sql = "SELECT count(*), coalesce(sum(length(body)), 0) FROM recent
                   WHERE place >= ?1 AND place < ?2";
        let mut statement = self.prepare(sql)?;
        let found: (i64, i64) =
            statement.query_row(places(session), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let number = |found: i64| usize::try_from(found).unwrap_or(usize::MAX);
        Ok((number(found.0), number(found.1)))
    }

    /// Carries the entries of a session over to `transcript`.
    fn carry_over(&self, session: SessionNo) -> Result<(), Error> {
        let between = || places(session).map(Value::from);
        self.write(
            "INSERT INTO transcript SELECT place, body FROM recent
             WHERE place >= ?1 AND place < ?2",
            between(),
        )?;
        self.write("DELETE FROM recent WHERE place >= ?1 AND place < ?2", between())
    }

    /// Drops the entry at a place.
    pub(super) fn unsay(&self, place: i64) -> Result<(), Error> {
        if let Some(known) = self.writing {
            known.forget_recent();
        }
        self.run("DELETE FROM transcript WHERE place = ?1", [place])?;
        self.run("DELETE FROM recent WHERE place = ?1", [place])?;
        Ok(())
    }
}

/// Counts the entries of a session.
pub(in crate::sqlite) fn count(connection: &Connection, session: SessionNo) -> Result<u64, Error> {
    let sql = format!("SELECT count(*) FROM ({})", reading(connection)?);
    let mut statement = connection.prepare_cached(&sql)?;
    let [from, to] = places(session);
    Ok(unsigned(statement.query_row([from, to, i64::MAX], |row| row.get(0))?))
}
