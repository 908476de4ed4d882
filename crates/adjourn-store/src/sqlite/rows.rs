//! [`Rows`] on SQLite: one prepared statement per method.

use std::collections::BTreeSet;

use adjourn_core::Session;
use adjourn_core::arrival::Arrival;
use adjourn_core::conditions::{Key, Names};
use adjourn_core::facts::Answered;
use adjourn_core::id::{GateId, HostId, Seq, SessionId};
use adjourn_core::session::State;
use adjourn_core::time::Timestamp;
use adjourn_record::Hash;
use adjourn_record::chain::Tip;
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use crate::error::Error;
use crate::rows::{
    Cursor, EntryNo, EntryRow, GateRow, HostRow, NewEvent, OutboxRow, Portion, Rows, SessionNo,
    SessionRow, TenantNo,
};
use crate::transaction::Erased;

const SESSION: &str = "SELECT no, id, tenant, head, revision, link FROM session";
const ARRIVAL: &str = "SELECT seq, id, source, name, subject, time, session, tenant FROM event";

/// Events that were delivered, and that no open turn's window and no session that lags reaches back
/// to, oldest first; sessions that cannot be read since before `?2` do not count. The bound is found
/// once, and not for every event that is kept.
pub(super) const PRUNABLE_EVENTS: &str = "FROM event WHERE seq <= min(
         (SELECT seq - (session IS NOT NULL) FROM progress WHERE what = 'delivered'),
         coalesce((SELECT min(since) FROM session WHERE since IS NOT NULL
             AND no NOT IN (SELECT session FROM lag WHERE unreadable < ?2)), 9223372036854775807),
         coalesce((SELECT min(heard) FROM lag
             WHERE unreadable IS NULL OR unreadable >= ?2), 9223372036854775807))
     ORDER BY seq";

/// The rows of one connection.
pub(super) struct SqliteRows<'a> {
    connection: &'a Connection,
    /// Whether a write transaction must be open.
    writing: bool,
}

impl<'a> SqliteRows<'a> {
    /// Rows to be read, each statement for itself.
    pub(super) const fn reading(connection: &'a Connection) -> Self {
        Self { connection, writing: false }
    }

    /// Rows inside a write transaction.
    pub(super) const fn writing(connection: &'a Connection) -> Self {
        Self { connection, writing: true }
    }

    /// Prepares a statement, unless the transaction it belongs to is gone.
    ///
    /// Some errors (a full disk) make SQLite give up the whole transaction. What came after would
    /// be committed statement by statement.
    fn prepare(&self, sql: &str) -> Result<CachedStatement<'a>, Error> {
        if self.writing && self.connection.is_autocommit() {
            return Err(given_up());
        }
        Ok(self.connection.prepare_cached(sql)?)
    }

    fn numbers(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<SessionNo>, Error> {
        let mut statement = self.prepare(sql)?;
        let rows = statement.query_map(params, |row| row.get(0).map(SessionNo))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn arrivals(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Arrival>, Error> {
        let mut statement = self.prepare(&format!("{ARRIVAL} {sql}"))?;
        let rows = statement.query_map(params, |row| Ok(arrival(row)?.1))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn find(&self, sql: &str, params: impl rusqlite::Params) -> Result<Option<SessionRow>, Error> {
        let mut statement = self.prepare(sql)?;
        Ok(statement.query_row(params, session_row).optional()?)
    }

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
                   ORDER BY place LIMIT ?3";
        let (from, to) = (place(session, 0), place(SessionNo(session.0 + 1), 0));
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
            self.run("DELETE FROM transcript WHERE place = ?1", [place])?;
            erased += 1;
        }
        Ok(erased)
    }

    fn run(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, Error> {
        Ok(self.prepare(sql)?.execute(params)?)
    }
}

impl Rows for SqliteRows<'_> {
    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        self.find(&format!("{SESSION} WHERE id = ?1"), [id.uuid().as_bytes()])
    }

    fn session_by_no(&mut self, no: SessionNo) -> Result<Option<SessionRow>, Error> {
        self.find(&format!("{SESSION} WHERE no = ?1"), [no.0])
    }

    fn tenant_name(&mut self, tenant: TenantNo) -> Result<String, Error> {
        let mut statement = self.prepare("SELECT name FROM tenant WHERE no = ?1")?;
        Ok(statement.query_row([tenant.0], |row| row.get(0))?)
    }

    fn tenant(&mut self, name: &str) -> Result<TenantNo, Error> {
        let find = "SELECT no FROM tenant WHERE name = ?1";
        let known = self.prepare(find)?.query_row([name], |row| row.get(0)).optional()?;
        if let Some(no) = known {
            return Ok(TenantNo(no));
        }
        self.run("INSERT INTO tenant (name) VALUES (?1)", [name])?;
        Ok(TenantNo(self.connection.last_insert_rowid()))
    }

    fn add_session(&mut self, session: &Session, tenant: TenantNo) -> Result<SessionNo, Error> {
        self.run(
            "INSERT INTO session (id, tenant, state, revision, head, link, at)
             VALUES (?1, ?2, 0, 0, 0, zeroblob(32), 0)",
            params![session.id.uuid().as_bytes(), tenant.0],
        )?;
        let no = self.connection.last_insert_rowid();
        self.run("INSERT INTO unprompted (session) VALUES (?1)", [no])?;
        Ok(SessionNo(no))
    }

    fn set_session(&mut self, row: &SessionRow, session: &Session) -> Result<(), Error> {
        let Thin { state, owner, handle, due, since, at, gated } = Thin::of(session);
        self.run(
            "UPDATE session SET state = ?2, revision = ?3, head = ?4, link = ?5, owner = ?6,
                 handle = ?7, due = ?8, since = ?9, at = ?10, gated = ?11
             WHERE no = ?1",
            params![
                row.no.0,
                state,
                signed(row.tip.revision),
                row.head.0,
                row.tip.link.as_bytes(),
                owner,
                handle,
                due,
                since,
                at,
                gated,
            ],
        )?;
        Ok(())
    }

    fn entry(&mut self, no: EntryNo) -> Result<Option<EntryRow>, Error> {
        let sql = "SELECT session, revision, prev, link, body FROM journal WHERE no = ?1";
        let mut statement = self.prepare(sql)?;
        let entry = statement.query_row([no.0], |row| {
            Ok(EntryRow {
                session: SessionNo(row.get(0)?),
                revision: unsigned(row.get(1)?),
                prev: row.get::<_, Option<i64>>(2)?.map(EntryNo),
                link: Hash::from_bytes(row.get(3)?),
                body: row.get(4)?,
            })
        });
        Ok(entry.optional()?)
    }

    fn tip(&mut self, no: EntryNo) -> Result<Option<Tip>, Error> {
        let mut statement = self.prepare("SELECT revision, link FROM journal WHERE no = ?1")?;
        let tip = statement.query_row([no.0], |row| {
            Ok(Tip { revision: unsigned(row.get(0)?), link: Hash::from_bytes(row.get(1)?) })
        });
        Ok(tip.optional()?)
    }

    fn add_entry(&mut self, entry: &EntryRow) -> Result<EntryNo, Error> {
        self.run(
            "INSERT INTO journal (session, revision, prev, link, body) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![
                entry.session.0,
                signed(entry.revision),
                entry.prev.map(|prev| prev.0),
                entry.link.as_bytes(),
                entry.body,
            ],
        )?;
        Ok(EntryNo(self.connection.last_insert_rowid()))
    }

    fn add_said(&mut self, session: SessionNo, at: u64, said: &[Vec<u8>]) -> Result<(), Error> {
        for (place, body) in (place(session, at)..).zip(said) {
            self.run("INSERT INTO transcript (place, body) VALUES (?1, ?2)", params![place, body])?;
        }
        Ok(())
    }

    fn subscribe(
        &mut self,
        row: &SessionRow,
        old: &BTreeSet<Key>,
        new: &BTreeSet<Key>,
    ) -> Result<(), Error> {
        for key in old.difference(new) {
            self.run(
                "DELETE FROM subscription WHERE tenant = ?1 AND key = ?2 AND session = ?3",
                params![row.tenant.0, key.as_str(), row.no.0],
            )?;
        }
        for key in new.difference(old) {
            self.run(
                "INSERT INTO subscription (tenant, key, session) VALUES (?1, ?2, ?3)",
                params![row.tenant.0, key.as_str(), row.no.0],
            )?;
        }
        Ok(())
    }

    fn keyless_waits(&mut self, tenant: TenantNo) -> Result<u64, Error> {
        let sql = "SELECT count(*) FROM subscription WHERE tenant = ?1 AND key = ?2";
        let mut statement = self.prepare(sql)?;
        let count = statement.query_row(params![tenant.0, Key::ANY], |row| row.get(0))?;
        Ok(unsigned(count))
    }

    fn waiting(
        &mut self,
        tenant: TenantNo,
        keys: &[Key],
        after: SessionNo,
        limit: usize,
    ) -> Result<Vec<SessionNo>, Error> {
        // Each key's sessions come in order; merging them here keeps every query on the index.
        let mut found = BTreeSet::new();
        for key in keys {
            found.extend(self.numbers(
                "SELECT session FROM subscription
                 WHERE tenant = ?1 AND key = ?2 AND session > ?3 ORDER BY session LIMIT ?4",
                params![tenant.0, key.as_str(), after.0, size(limit)],
            )?);
        }
        Ok(found.into_iter().take(limit).collect())
    }

    fn due(&mut self, now: Timestamp, limit: usize) -> Result<Vec<SessionNo>, Error> {
        self.numbers(
            "SELECT no FROM session WHERE due IS NOT NULL AND due <= ?1 ORDER BY due LIMIT ?2",
            params![now.as_millis(), size(limit)],
        )
    }

    fn next_due(&mut self) -> Result<Option<Timestamp>, Error> {
        let sql = "SELECT due FROM session WHERE due IS NOT NULL ORDER BY due LIMIT 1";
        let mut statement = self.prepare(sql)?;
        let due = statement.query_row([], |row| row.get(0)).optional()?;
        Ok(due.map(Timestamp::from_millis))
    }

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
        let sql = "SELECT seq FROM progress WHERE what = 'acknowledged'";
        let seq = self.prepare(sql)?.query_row([], |row| row.get(0))?;
        Ok(Seq(unsigned(seq)))
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

    fn answered(&mut self, session: SessionNo, key: &str) -> Result<Option<Answered>, Error> {
        let sql = "SELECT answer FROM answer WHERE session = ?1 AND key = 'k:' || ?2";
        let mut statement = self.prepare(sql)?;
        let answer: Option<String> =
            statement.query_row(params![session.0, key], |row| row.get(0)).optional()?;
        answer.map(|answer| json(&answer)).transpose()
    }

    fn keep_answer(
        &mut self,
        session: SessionNo,
        key: &str,
        answered: &Answered,
        at: Timestamp,
    ) -> Result<(), Error> {
        self.run(
            "INSERT INTO answer (session, key, at, answer) VALUES (?1, 'k:' || ?2, ?3, ?4)",
            params![session.0, key, at.as_millis(), text(answered)?],
        )?;
        Ok(())
    }

    fn message_seen(&mut self, session: SessionNo, id: &str) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM answer WHERE session = ?1 AND key = 'm:' || ?2";
        Ok(self.prepare(sql)?.exists(params![session.0, id])?)
    }

    fn keep_message(&mut self, session: SessionNo, id: &str, at: Timestamp) -> Result<(), Error> {
        self.run(
            "INSERT OR IGNORE INTO answer (session, key, at) VALUES (?1, 'm:' || ?2, ?3)",
            params![session.0, id, at.as_millis()],
        )?;
        Ok(())
    }

    fn gates(&mut self) -> Result<Vec<GateRow>, Error> {
        let mut statement = self.prepare("SELECT gate, scope, at FROM gate ORDER BY at")?;
        let mut rows = statement.query([])?;
        let mut gates = Vec::new();
        while let Some(row) = rows.next()? {
            gates.push(GateRow {
                gate: json(&row.get::<_, String>(0)?)?,
                scope: json(&row.get::<_, String>(1)?)?,
                at: Timestamp::from_millis(row.get(2)?),
            });
        }
        Ok(gates)
    }

    fn add_gate(&mut self, gate: &GateRow) -> Result<(), Error> {
        self.run(
            "INSERT INTO gate (id, gate, scope, at) VALUES (?1, ?2, ?3, ?4)",
            params![
                gate.gate.id.uuid().as_bytes(),
                text(&gate.gate)?,
                text(&gate.scope)?,
                gate.at.as_millis()
            ],
        )?;
        Ok(())
    }

    fn remove_gate(&mut self, id: GateId) -> Result<bool, Error> {
        Ok(self.run("DELETE FROM gate WHERE id = ?1", [id.uuid().as_bytes()])? > 0)
    }

    fn owned(&mut self, after: SessionNo, limit: usize) -> Result<Vec<SessionNo>, Error> {
        self.numbers(
            "SELECT no FROM session WHERE owner IS NOT NULL AND no > ?1 ORDER BY no LIMIT ?2",
            params![after.0, size(limit)],
        )
    }

    fn gated(&mut self, after: SessionNo, limit: usize) -> Result<Vec<SessionNo>, Error> {
        self.numbers(
            "SELECT no FROM session WHERE gated = 1 AND no > ?1 ORDER BY no LIMIT ?2",
            params![after.0, size(limit)],
        )
    }

    fn some_lag(&mut self) -> Result<bool, Error> {
        Ok(self.prepare("SELECT 1 FROM lag LIMIT 1")?.exists([])?)
    }

    fn lags(&mut self, session: SessionNo) -> Result<bool, Error> {
        Ok(self.prepare("SELECT 1 FROM lag WHERE session = ?1")?.exists([session.0])?)
    }

    fn lagging(&mut self, limit: usize) -> Result<Vec<(SessionNo, Seq)>, Error> {
        let sql =
            "SELECT session, heard FROM lag WHERE unreadable IS NULL ORDER BY session LIMIT ?1";
        let mut statement = self.prepare(sql)?;
        let rows = statement.query_map([size(limit)], |row| {
            Ok((SessionNo(row.get(0)?), Seq(unsigned(row.get(1)?))))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn set_lagging(&mut self, session: SessionNo, heard: Seq) -> Result<(), Error> {
        self.run(
            "INSERT INTO lag (session, heard) VALUES (?1, ?2)
             ON CONFLICT (session) DO UPDATE SET heard = min(heard, excluded.heard)",
            [session.0, signed(heard.0)],
        )?;
        Ok(())
    }

    fn set_heard(&mut self, session: SessionNo, heard: Seq) -> Result<(), Error> {
        let sql = "UPDATE lag SET heard = ?2 WHERE session = ?1";
        self.run(sql, [session.0, signed(heard.0)])?;
        Ok(())
    }

    fn set_caught_up(&mut self, session: SessionNo) -> Result<(), Error> {
        self.run("DELETE FROM lag WHERE session = ?1", [session.0])?;
        Ok(())
    }

    fn set_unreadable(
        &mut self,
        session: SessionNo,
        heard: Seq,
        at: Timestamp,
    ) -> Result<(), Error> {
        self.run(
            "INSERT INTO lag (session, heard, unreadable) VALUES (?1, ?2, ?3)
             ON CONFLICT (session) DO UPDATE SET heard = min(heard, excluded.heard),
                 unreadable = coalesce(unreadable, excluded.unreadable)",
            [session.0, signed(heard.0), at.as_millis()],
        )?;
        self.run("UPDATE session SET due = NULL WHERE no = ?1", [session.0])?;
        Ok(())
    }

    fn set_readable(&mut self, session: SessionNo) -> Result<(), Error> {
        self.run("UPDATE lag SET unreadable = NULL WHERE session = ?1", [session.0])?;
        Ok(())
    }

    fn set_let_go(&mut self, session: SessionNo) -> Result<(), Error> {
        self.run("UPDATE session SET owner = NULL WHERE no = ?1", [session.0])?;
        Ok(())
    }

    fn is_let_go(&mut self, session: SessionNo) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM session WHERE no = ?1 AND owner IS NULL";
        Ok(self.prepare(sql)?.exists([session.0])?)
    }

    fn unsubscribe(&mut self, row: &SessionRow) -> Result<(), Error> {
        self.run(
            "DELETE FROM subscription WHERE tenant = ?1 AND session = ?2",
            [row.tenant.0, row.no.0],
        )?;
        Ok(())
    }

    fn owned_by(&mut self, host: HostId, limit: usize) -> Result<Vec<SessionNo>, Error> {
        self.numbers(
            "SELECT no FROM session WHERE owner = ?1
                 AND no NOT IN (SELECT session FROM lag WHERE unreadable IS NOT NULL)
             LIMIT ?2",
            params![host.uuid().as_bytes(), size(limit)],
        )
    }

    fn add_host(&mut self, host: &HostRow) -> Result<(), Error> {
        self.run(
            "INSERT INTO host (id, since, about) VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET about = excluded.about WHERE about != excluded.about",
            params![host.id.uuid().as_bytes(), host.since.as_millis(), host.about],
        )?;
        Ok(())
    }

    fn hosts(&mut self) -> Result<Vec<HostRow>, Error> {
        let mut statement = self.prepare("SELECT id, since, about FROM host ORDER BY id")?;
        let rows = statement.query_map([], |row| {
            Ok(HostRow {
                id: HostId::new(Uuid::from_bytes(row.get(0)?)),
                since: Timestamp::from_millis(row.get(1)?),
                about: row.get(2)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn remove_host(&mut self, id: HostId) -> Result<(), Error> {
        self.run("DELETE FROM host WHERE id = ?1", [id.uuid().as_bytes()])?;
        Ok(())
    }

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
        self.run("DELETE FROM unprompted WHERE session = ?1", [session.0])?;
        Ok(())
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
        let sql = "SELECT no FROM journal WHERE session = ?1 AND revision = 1
                       AND no != ?2 AND body IS NOT NULL";
        let mut first = self.prepare(sql)?;
        match first.query_row([row.no.0, row.head.0], |row| row.get(0).map(EntryNo)).optional()? {
            Some(first) => self.drop_body(first).map(|_| 1),
            None => Ok(0),
        }
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

    fn add_outbox(&mut self, kind: &str, body: &[u8], due: Timestamp) -> Result<i64, Error> {
        self.run(
            "INSERT INTO outbox (kind, body, due) VALUES (?1, ?2, ?3)",
            params![kind, body, due.as_millis()],
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    fn outbox(&mut self, now: Timestamp, limit: usize) -> Result<Vec<OutboxRow>, Error> {
        let sql = "SELECT no, kind, body, due, tries FROM outbox WHERE due <= ?1
                   ORDER BY due, no LIMIT ?2";
        let mut statement = self.prepare(sql)?;
        let rows = statement.query_map(params![now.as_millis(), size(limit)], |row| {
            Ok(OutboxRow {
                no: row.get(0)?,
                kind: row.get(1)?,
                body: row.get(2)?,
                due: Timestamp::from_millis(row.get(3)?),
                tries: row.get(4)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn retry_outbox(&mut self, no: i64, due: Timestamp) -> Result<(), Error> {
        let sql = "UPDATE outbox SET due = ?2, tries = tries + 1 WHERE no = ?1";
        self.run(sql, params![no, due.as_millis()])?;
        Ok(())
    }

    fn remove_outbox(&mut self, no: i64) -> Result<(), Error> {
        self.run("DELETE FROM outbox WHERE no = ?1", [no])?;
        Ok(())
    }
}

/// What the thin row repeats of a session's state, for indexes and lists.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Thin {
    pub(super) state: i64,
    pub(super) owner: Option<[u8; 16]>,
    pub(super) handle: Option<[u8; 16]>,
    pub(super) due: Option<i64>,
    pub(super) since: Option<i64>,
    pub(super) at: i64,
    pub(super) gated: i64,
}

impl Thin {
    pub(super) fn of(session: &Session) -> Self {
        let handle = session.suspended().map(|suspended| suspended.shown().pause.handle.uuid());
        Self {
            state: state_code(&session.state),
            owner: session.owner().map(|owner| owner.host.uuid().into_bytes()),
            handle: handle.map(Uuid::into_bytes),
            due: session.due().map(Timestamp::as_millis),
            since: session.needs_events_after().map(|since| signed(since.0)),
            at: session.at.as_millis(),
            gated: i64::from(session.is_gated()),
        }
    }
}

/// What SQLite itself says of a transaction that it rolled back.
pub(super) fn given_up() -> Error {
    const SQLITE_ABORT_ROLLBACK: i32 = 4 | (2 << 8);
    let error = rusqlite::ffi::Error::new(SQLITE_ABORT_ROLLBACK);
    rusqlite::Error::SqliteFailure(error, None).into()
}

/// The states as the thin row has them; partial indexes name them.
const fn state_code(state: &State) -> i64 {
    match state {
        State::Idle => 0,
        State::Ready(_) => 1,
        State::Running(_) => 2,
        State::Quiescing(_) => 3,
        State::Suspended(_) => 4,
        State::Ended(_) => 5,
    }
}

/// The name of a state, as it is on every wire, by its number in the thin row.
pub(super) const fn state_name(code: i64) -> &'static str {
    match code {
        0 => "idle",
        1 => "ready",
        2 => "running",
        3 => "quiescing",
        4 => "suspended",
        5 => "ended",
        _ => "unknown",
    }
}

pub(super) fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        no: SessionNo(row.get(0)?),
        id: SessionId::new(Uuid::from_bytes(row.get(1)?)),
        tenant: TenantNo(row.get(2)?),
        head: EntryNo(row.get(3)?),
        tip: Tip { revision: unsigned(row.get(4)?), link: Hash::from_bytes(row.get(5)?) },
    })
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

/// The key of a transcript entry: a session's entries lie together, in order.
pub(super) const fn place(session: SessionNo, index: u64) -> i64 {
    (session.0 << 32) | (index & 0xffff_ffff).cast_signed()
}

/// SQLite's integers are signed; ours never reach the bit that makes the difference.
pub(super) const fn signed(number: u64) -> i64 {
    number.cast_signed()
}

pub(super) const fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}

fn size(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn bytes_of(length: i64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

fn text<T: serde::Serialize>(value: &T) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::Damaged(error.to_string()))
}

fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Error> {
    adjourn_core::json::stored(text.as_bytes()).map_err(|error| Error::Damaged(error.to_string()))
}
