//! The journal, and what was said.

use adjourn_record::Hash;
use adjourn_record::chain::Tip;
use rusqlite::OptionalExtension as _;

use super::{SqliteRows, signed, unsigned};
use crate::error::Error;
use crate::rows::{EntryNo, EntryRow, Journal, SessionNo};

impl SqliteRows<'_> {
    /// Returns the number of the last entry of all journals; 0 if there is none.
    fn last_entry(&self) -> Result<EntryNo, Error> {
        if let Some(last) = self.writing.and_then(|known| known.last_entry.get()) {
            return Ok(last);
        }
        let mut statement = self.prepare("SELECT coalesce(max(no), 0) FROM journal")?;
        Ok(EntryNo(statement.query_row([], |row| row.get(0))?))
    }
}

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

    fn add_entry(&mut self, entry: EntryRow) -> Result<EntryNo, Error> {
        let EntryNo(last) = self.last_entry()?;
        let no = EntryNo(last + 1);
        self.write(
            "INSERT INTO journal (no, session, revision, prev, link, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            [
                no.0.into(),
                entry.session.0.into(),
                signed(entry.revision).into(),
                entry.prev.map(|prev| prev.0).into(),
                (*entry.link.as_bytes()).into(),
                entry.body.into(),
            ],
        )?;
        if let Some(known) = self.writing {
            known.last_entry.set(Some(no));
        }
        Ok(no)
    }

    fn add_said(&mut self, session: SessionNo, at: u64, said: &[Vec<u8>]) -> Result<(), Error> {
        self.say(session, at, said)
    }
}
