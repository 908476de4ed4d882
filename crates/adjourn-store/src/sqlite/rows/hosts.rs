//! Hosts.

use adjourn_core::id::HostId;
use adjourn_core::time::Timestamp;
use rusqlite::params;
use uuid::Uuid;

use super::SqliteRows;
use crate::error::Error;
use crate::rows::{HostRow, Hosts};

impl Hosts for SqliteRows<'_> {
    fn add_host(&mut self, host: &HostRow) -> Result<(), Error> {
        if self.writing.is_some_and(|known| known.has_host(host)) {
            return Ok(());
        }
        self.run(
            "INSERT INTO host (id, since, about) VALUES (?1, ?2, ?3)
             ON CONFLICT (id) DO UPDATE SET about = excluded.about WHERE about != excluded.about",
            params![host.id.uuid().as_bytes(), host.since.as_millis(), host.about],
        )?;
        if let Some(known) = self.writing {
            known.keep_host(host);
        }
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
        if let Some(known) = self.writing {
            known.forget_host(id);
        }
        self.run("DELETE FROM host WHERE id = ?1", [id.uuid().as_bytes()])?;
        Ok(())
    }
}
