//! The journal, and what was said.

use adjourn_record::Hash;
use adjourn_record::chain::Tip;
use rusqlite::{OptionalExtension as _, params};

use super::{SqliteRows, signed, unsigned};
use crate::error::Error;
use crate::rows::{EntryNo, EntryRow, Journal, SessionNo};

impl Journal for SqliteRows<'_> {
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
        self.say(session, at, said)
    }
}
