//! What sessions wait for, and which of them have not heard all that came.

use std::collections::BTreeSet;

use adjourn_core::conditions::Key;
use adjourn_core::id::Seq;
use adjourn_core::time::Timestamp;
use rusqlite::params;

use super::{SqliteRows, signed, size, unsigned};
use crate::error::Error;
use crate::rows::{SessionNo, SessionRow, TenantNo, Waits};

impl Waits for SqliteRows<'_> {
    fn subscribe(
        &mut self,
        row: &SessionRow,
        old: &BTreeSet<Key>,
        new: &BTreeSet<Key>,
    ) -> Result<(), Error> {
        for key in old.difference(new) {
            self.write(
                "DELETE FROM subscription WHERE tenant = ?1 AND key = ?2 AND session = ?3",
                [row.tenant.0.into(), key.as_str().to_owned().into(), row.no.0.into()],
            )?;
        }
        for key in new.difference(old) {
            self.write(
                "INSERT INTO subscription (tenant, key, session) VALUES (?1, ?2, ?3)",
                [row.tenant.0.into(), key.as_str().to_owned().into(), row.no.0.into()],
            )?;
        }
        Ok(())
    }

    fn unsubscribe(&mut self, row: &SessionRow) -> Result<(), Error> {
        self.run(
            "DELETE FROM subscription WHERE tenant = ?1 AND session = ?2",
            [row.tenant.0, row.no.0],
        )?;
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
        self.forget_rows();
        self.run("UPDATE session SET due = NULL WHERE no = ?1", [session.0])?;
        Ok(())
    }

    fn set_readable(&mut self, session: SessionNo) -> Result<(), Error> {
        self.run("UPDATE lag SET unreadable = NULL WHERE session = ?1", [session.0])?;
        Ok(())
    }
}
