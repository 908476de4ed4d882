//! What is dropped, a portion at a time.

use adjourn_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::said::places;
use super::{SqliteRows, size};
use crate::error::Error;
use crate::fold::founding_marks;
use crate::query::stays;
use crate::rows::{EntryNo, Portion, Removal, SessionNo, SessionRow};
use crate::transaction::Erased;

/// Events that were delivered, and that no open turn's window and no session that lags reaches back
/// to, oldest first; sessions that cannot be read since before `?2` do not count. The bound is found
/// once, and not for every event that is kept.
pub(in crate::sqlite) const PRUNABLE_EVENTS: &str = "FROM event WHERE seq <= min(
         (SELECT seq - (session IS NOT NULL) FROM progress WHERE what = 'delivered'),
         coalesce((SELECT min(since) FROM session WHERE since IS NOT NULL
             AND no NOT IN (SELECT session FROM lag WHERE unreadable < ?2)), 9223372036854775807),
         coalesce((SELECT min(heard) FROM lag
             WHERE unreadable IS NULL OR unreadable >= ?2), 9223372036854775807))
     ORDER BY seq";

impl SqliteRows<'_> {
    /// Replaces an entry by one without a body, and returns the one before it.
    ///
    /// A row that shrinks where it is leaves its page half empty for ever; one that is deleted and
    /// written again lets pages be merged and given back.
    fn drop_body(&self, no: EntryNo) -> Result<Option<EntryNo>, Error> {
        let sql = "DELETE FROM journal WHERE no = ?1 RETURNING session, revision, prev, link";
        let kept: (i64, i64, Option<i64>, [u8; 32]) = self
            .prepare(sql)?
            .query_row([no.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        let (session, revision, prev, link) = kept;
        self.run(
            "INSERT INTO journal (no, session, revision, prev, link) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![no.0, session, revision, prev, link],
        )?;
        Ok(prev.map(EntryNo))
    }

    /// Drops a portion of what was said in a session; returns how many entries.
    fn erase_said(&self, session: SessionNo, portion: &mut Portion) -> Result<u64, Error> {
        let sql = "SELECT place, length(body) FROM transcript WHERE place >= ?1 AND place < ?2
                   UNION ALL SELECT place, length(body) FROM recent WHERE place >= ?1 AND place < ?2
                   ORDER BY place LIMIT ?3";
        let [from, to] = places(session);
        let mut statement = self.prepare(sql)?;
        let said = statement
            .query_map([from, to, size(portion.rows)], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let said: Vec<(i64, i64)> = said.collect::<Result<_, _>>()?;
        let mut erased = 0;
        for (place, bytes) in said {
            if portion.is_used_up() {
                break;
            }
            portion.take(bytes_of(bytes));
            self.unsay(place)?;
            erased += 1;
        }
        Ok(erased)
    }
}

impl Removal for SqliteRows<'_> {
    fn prunable(&mut self, before: Timestamp, limit: usize) -> Result<Vec<SessionNo>, Error> {
        self.numbers(
            "SELECT no FROM session WHERE state = 5 AND pruned = 0 AND at < ?1 LIMIT ?2",
            params![before.as_millis(), size(limit)],
        )
    }

    fn unprompted(&mut self, before: Timestamp, limit: usize) -> Result<Vec<SessionNo>, Error> {
        self.numbers(
            "SELECT no FROM unprompted JOIN session ON no = session
             WHERE state = 0 AND at < ?1 ORDER BY session LIMIT ?2",
            params![before.as_millis(), size(limit)],
        )
    }

    fn set_prompted(&mut self, session: SessionNo) -> Result<(), Error> {
        self.write("DELETE FROM unprompted WHERE session = ?1", [session.0.into()])
    }

    fn erasing(&mut self, limit: usize) -> Result<Vec<SessionNo>, Error> {
        self.numbers("SELECT session FROM erasing ORDER BY session LIMIT ?1", [size(limit)])
    }

    fn begin_erasing(&mut self, row: &SessionRow) -> Result<u64, Error> {
        let sql = "UPDATE session SET pruned = 1 WHERE no = ?1 AND pruned = 0";
        if self.run(sql, [row.no.0])? == 0 {
            return Ok(0);
        }
        self.run(
            "INSERT INTO erasing (session, next)
             SELECT session, prev FROM journal WHERE no = ?1",
            [row.head.0],
        )?;
        self.run("DELETE FROM listing WHERE session = ?1", [row.no.0])?;
        // What happened is not told any more.
        self.run("DELETE FROM recipient WHERE session = ?1", [row.no.0])?;
        let sql = "SELECT no, body FROM journal WHERE session = ?1 AND revision = 1
                       AND no != ?2 AND body IS NOT NULL";
        let mut first = self.prepare(sql)?;
        let first: Option<(i64, Vec<u8>)> = first
            .query_row([row.no.0, row.head.0], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((first, body)) = first else { return Ok(0) };
        // What is left of one whose founding cannot be read leads nowhere.
        for mark in founding_marks(row.id, &body).into_iter().filter(|mark| !stays(mark)) {
            let sql = "DELETE FROM mark WHERE what = ?1 AND session = ?2";
            self.run(sql, params![mark, row.no.0])?;
        }
        self.drop_body(EntryNo(first)).map(|_| 1)
    }

    fn erase(&mut self, session: SessionNo, portion: &mut Portion) -> Result<Erased, Error> {
        let mut erased = Erased::default();
        let sql = "SELECT next FROM erasing WHERE session = ?1";
        let next: Option<Option<i64>> =
            self.prepare(sql)?.query_row([session.0], |row| row.get(0)).optional()?;
        let Some(mut next) = next else { return Ok(erased) };
        let begun = next;
        let sql = "SELECT prev, length(body) FROM journal WHERE no = ?1";
        while let Some(no) = next.filter(|_| !portion.is_used_up()) {
            let found: (Option<i64>, Option<i64>) =
                self.prepare(sql)?.query_row([no], |row| Ok((row.get(0)?, row.get(1)?)))?;
            if let Some(bytes) = found.1 {
                self.drop_body(EntryNo(no))?;
                erased.entries += 1;
                portion.take(bytes_of(bytes));
            }
            next = found.0;
        }
        erased.said = self.erase_said(session, portion)?;
        // What was just at the end of its portion may be done with: the next look finds out.
        erased.more = portion.is_used_up();
        if !erased.more {
            self.run("DELETE FROM erasing WHERE session = ?1", [session.0])?;
        } else if next != begun {
            let sql = "UPDATE erasing SET next = ?2 WHERE session = ?1";
            self.run(sql, params![session.0, next])?;
        }
        Ok(erased)
    }

    fn give_back(&mut self, pages: u32) -> Result<(), Error> {
        let mut statement = self.prepare(&format!("PRAGMA incremental_vacuum({pages})"))?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok(())
    }

    fn prune_events(
        &mut self,
        before: Timestamp,
        unreadable: Timestamp,
        portion: &mut Portion,
    ) -> Result<u64, Error> {
        let sql = format!("SELECT seq, at, octet_length(data) {PRUNABLE_EVENTS} LIMIT ?1");
        let mut statement = self.prepare(&sql)?;
        let old = statement.query_map([size(portion.rows), unreadable.as_millis()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get::<_, Option<i64>>(2)?))
        })?;
        let old: Vec<(i64, i64, Option<i64>)> = old.collect::<Result<_, _>>()?;
        let mut pruned = 0;
        for (seq, _, bytes) in old.into_iter().filter(|(_, at, _)| *at < before.as_millis()) {
            if portion.is_used_up() {
                break;
            }
            portion.take(bytes_of(bytes.unwrap_or_default()));
            pruned += self.run("DELETE FROM event WHERE seq = ?1", [seq])? as u64;
        }
        Ok(pruned)
    }

    fn prune_answers(&mut self, before: Timestamp, limit: usize) -> Result<u64, Error> {
        let pruned = self.run(
            "DELETE FROM answer WHERE (session, key) IN (
                 SELECT session, key FROM answer WHERE at < ?1 ORDER BY at LIMIT ?2)",
            params![before.as_millis(), size(limit)],
        )?;
        Ok(pruned as u64)
    }
}

fn bytes_of(length: i64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
