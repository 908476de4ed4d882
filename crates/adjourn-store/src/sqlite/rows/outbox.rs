//! Messages to the outside.

use adjourn_core::time::Timestamp;
use rusqlite::params;

use super::{SqliteRows, size};
use crate::error::Error;
use crate::rows::{Outbox, OutboxRow};

impl Outbox for SqliteRows<'_> {
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
