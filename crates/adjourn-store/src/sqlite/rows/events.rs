//! Events, and how far they are delivered.

use adjourn_core::arrival::Arrival;
use adjourn_core::conditions::Names;
use adjourn_core::id::{Seq, SessionId};
use adjourn_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::{SqliteRows, signed, size, unsigned};
use crate::error::Error;
use crate::rows::{Cursor, Events, NewEvent, SessionNo, TenantNo};

const ARRIVAL: &str = "SELECT seq, id, source, name, subject, time, session, tenant FROM event";

impl SqliteRows<'_> {
    fn arrivals(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Arrival>, Error> {
        let mut statement = self.prepare(&format!("{ARRIVAL} {sql}"))?;
        let rows = statement.query_map(params, |row| Ok(arrival(row)?.1))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Events for SqliteRows<'_> {
    fn add_event(
        &mut self,
        tenant: TenantNo,
        event: &NewEvent,
        at: Timestamp,
    ) -> Result<(Seq, bool), Error> {
        let known = "SELECT seq FROM event WHERE tenant = ?1 AND source = ?2 AND id = ?3";
        let known = self
            .prepare(known)?
            .query_row(params![tenant.0, event.source, event.id], |row| row.get(0))
            .optional()?;
        if let Some(seq) = known {
            return Ok((Seq(unsigned(seq)), false));
        }
        // Not the table's own numbering: events are pruned, their numbers never come again.
        let next = "UPDATE progress SET seq = seq + 1 WHERE what = 'acknowledged' RETURNING seq";
        let seq: i64 = self.prepare(next)?.query_row([], |row| row.get(0))?;
        if let Some(known) = self.writing {
            known.high.set(None);
        }
        self.run(
            "INSERT INTO event (seq, tenant, name, id, source, subject, time, session, at, data)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                seq,
                tenant.0,
                event.name,
                event.id,
                event.source,
                event.subject,
                event.time.as_millis(),
                event.session.map(|session| session.uuid().into_bytes()),
                at.as_millis(),
                event.data,
            ],
        )?;
        Ok((Seq(unsigned(seq)), true))
    }

    fn high(&mut self) -> Result<Seq, Error> {
        if let Some(high) = self.writing.and_then(|known| known.high.get()) {
            return Ok(high);
        }
        let sql = "SELECT seq FROM progress WHERE what = 'acknowledged'";
        let high = Seq(unsigned(self.prepare(sql)?.query_row([], |row| row.get(0))?));
        if let Some(known) = self.writing {
            known.high.set(Some(high));
        }
        Ok(high)
    }

    fn event_data(&mut self, seq: Seq) -> Result<Option<String>, Error> {
        let mut statement = self.prepare("SELECT data FROM event WHERE seq = ?1")?;
        let data = statement.query_row([signed(seq.0)], |row| row.get(0)).optional()?;
        Ok(data.flatten())
    }

    fn event_after(&mut self, seq: Seq) -> Result<Option<(TenantNo, Arrival)>, Error> {
        let sql = format!("{ARRIVAL} WHERE seq > ?1 ORDER BY seq LIMIT 1");
        let mut statement = self.prepare(&sql)?;
        Ok(statement.query_row([signed(seq.0)], arrival).optional()?)
    }

    fn events_named(
        &mut self,
        tenant: TenantNo,
        after: Seq,
        until: Seq,
        names: Names<'_>,
        limit: usize,
    ) -> Result<Vec<Arrival>, Error> {
        let (after, until) = (signed(after.0), signed(until.0));
        let (tenant, limit) = (tenant.0, size(limit));
        match names {
            // The plus keeps SQLite from an index that knows nothing of the window: what is kept of
            // a tenant's events may be many times what came in one turn.
            Names::All => self.arrivals(
                "WHERE +tenant = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4",
                params![tenant, after, until, limit],
            ),
            Names::Only(name) => self.arrivals(
                "WHERE tenant = ?1 AND name = ?5 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4",
                params![tenant, after, until, limit, name],
            ),
            // `/` follows `.`, so the range holds the name itself and what goes on with a dot.
            Names::Under(name) => self.arrivals(
                "WHERE +tenant = ?1 AND seq > ?2 AND seq <= ?3
                     AND (+name = ?5 OR (+name >= ?5 || '.' AND +name < ?5 || '/'))
                 ORDER BY seq LIMIT ?4",
                params![tenant, after, until, limit, name],
            ),
        }
    }

    fn event_addressed(
        &mut self,
        tenant: TenantNo,
        session: SessionId,
        after: Seq,
    ) -> Result<Option<Arrival>, Error> {
        let found = self.arrivals(
            "WHERE session = ?1 AND seq > ?2 AND tenant = ?3 ORDER BY seq LIMIT 1",
            params![session.uuid().as_bytes(), signed(after.0), tenant.0],
        )?;
        Ok(found.into_iter().next())
    }

    fn cursor(&mut self) -> Result<Cursor, Error> {
        let sql = "SELECT seq, session FROM progress WHERE what = 'delivered'";
        let cursor = self.prepare(sql)?.query_row([], |row| {
            let session: Option<i64> = row.get(1)?;
            Ok(Cursor { seq: Seq(unsigned(row.get(0)?)), session: session.map(SessionNo) })
        })?;
        Ok(cursor)
    }

    fn set_cursor(&mut self, cursor: Cursor) -> Result<(), Error> {
        self.run(
            "UPDATE progress SET seq = ?1, session = ?2
             WHERE what = 'delivered' AND (seq <> ?1 OR session IS NOT ?2)",
            params![signed(cursor.seq.0), cursor.session.map(|session| session.0)],
        )?;
        Ok(())
    }
}

fn arrival(row: &Row<'_>) -> rusqlite::Result<(TenantNo, Arrival)> {
    let session: Option<[u8; 16]> = row.get(6)?;
    let arrival = Arrival {
        seq: Seq(unsigned(row.get(0)?)),
        id: row.get(1)?,
        source: row.get(2)?,
        name: row.get(3)?,
        subject: row.get(4)?,
        time: Timestamp::from_millis(row.get(5)?),
        session: session.map(|bytes| SessionId::new(Uuid::from_bytes(bytes))),
    };
    Ok((TenantNo(row.get(7)?), arrival))
}
