//! Those outside who are told what happens to a run.

use adjourn_core::id::{HostId, RunId, SessionId};
use adjourn_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::{SqliteRows, signed, size, unsigned};
use crate::error::Error;
use crate::rows::{
    Of, OpenRecipient, RecipientRow, Recipients, SessionNo, SessionRow, Sessions as _, Telling,
    Told,
};
use crate::sqlite::schema;

/// What is read of a recipient, with its session's row beside it.
const COLUMNS: &str = "recipient.no, session.id, run, kind, recipient.id, body,
    recipient.revision, part, recipient.due, tries, ended, claim, holder, until";

impl Recipients for SqliteRows<'_> {
    fn recipients(
        &mut self,
        session: &SessionRow,
        run: RunId,
        kind: &str,
    ) -> Result<Vec<RecipientRow>, Error> {
        let sql = format!(
            "SELECT {COLUMNS} FROM recipient JOIN session ON session.no = session
             WHERE session = ?1 AND run = ?2 AND kind = ?3 ORDER BY recipient.no"
        );
        let mut statement = self.prepare(&sql)?;
        let rows =
            statement.query_map(params![session.no.0, run.uuid().as_bytes(), kind], recipient)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn recipient(&mut self, no: i64) -> Result<Option<(RecipientRow, u64)>, Error> {
        let sql = format!(
            "SELECT {COLUMNS}, session.revision FROM recipient JOIN session ON session.no = session
             WHERE recipient.no = ?1"
        );
        let mut statement = self.prepare(&sql)?;
        let found = statement
            .query_row([no], |row| Ok((recipient(row)?, unsigned(row.get(14)?))))
            .optional()?;
        Ok(found)
    }

    fn add_recipient(&mut self, session: SessionNo, row: &RecipientRow) -> Result<(), Error> {
        self.run(
            "INSERT INTO recipient (session, run, kind, id, body, revision, due, ended)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                session.0,
                row.run.uuid().as_bytes(),
                row.kind,
                row.id,
                row.body,
                signed(row.told.revision),
                row.due.as_millis(),
                ended_code(row.standing),
            ],
        )?;
        Ok(())
    }

    fn set_recipient(&mut self, row: &RecipientRow) -> Result<(), Error> {
        let holder = row.holder.as_ref();
        self.run(
            "UPDATE recipient SET body = ?2, revision = ?3, part = ?4, due = ?5, tries = ?6,
                 ended = ?7, claim = ?8, holder = ?9, until = ?10 WHERE no = ?1",
            params![
                row.no,
                row.body,
                signed(row.told.revision),
                row.told.part,
                row.due.as_millis(),
                row.tries,
                ended_code(row.standing),
                row.claim,
                holder.map(|(host, _)| *host.uuid().as_bytes()),
                holder.map(|(_, until)| until.as_millis()),
            ],
        )?;
        Ok(())
    }

    fn remove_recipient(&mut self, no: i64) -> Result<(), Error> {
        self.run("DELETE FROM recipient WHERE no = ?1", [no])?;
        Ok(())
    }
}

/// Returns the recipients of a run; none in a file that was never migrated.
pub(in crate::sqlite) fn of_run(
    connection: &Connection,
    session: SessionId,
    run: RunId,
    kind: &str,
) -> Result<Vec<RecipientRow>, Error> {
    if schema::version(connection)? < schema::RECIPIENT {
        return Ok(Vec::new());
    }
    let mut rows = SqliteRows::reading(connection);
    let Some(session) = rows.session(session)? else { return Ok(Vec::new()) };
    rows.recipients(&session, run, kind)
}

/// Returns recipients that are told more; none in a file that was never migrated.
pub(in crate::sqlite) fn open(
    connection: &Connection,
    kind: &str,
    of: Of,
    limit: usize,
) -> Result<Vec<OpenRecipient>, Error> {
    if schema::version(connection)? < schema::RECIPIENT {
        return Ok(Vec::new());
    }
    let select = "SELECT recipient.no, session.id, session.revision > recipient.revision,
                      recipient.due, holder, until
                  FROM recipient JOIN session ON session.no = session";
    let read = |row: &Row<'_>| {
        Ok(OpenRecipient {
            no: row.get(0)?,
            session: SessionId::new(Uuid::from_bytes(row.get(1)?)),
            is_behind: row.get(2)?,
            due: Timestamp::from_millis(row.get(3)?),
            holder: holder(row, 4)?,
        })
    };
    let rows = match of {
        Of::All(after) => {
            let sql = format!(
                "{select} WHERE ended IS NULL AND kind = ?1 AND recipient.no > ?2
                 ORDER BY recipient.no LIMIT ?3"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows = statement.query_map(params![kind, after, size(limit)], read)?;
            rows.collect::<Result<_, _>>()?
        }
        Of::Session(id) => {
            let sql = format!(
                "{select} WHERE session.id = ?2 AND ended IS NULL AND kind = ?1
                 ORDER BY recipient.no LIMIT ?3"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let rows =
                statement.query_map(params![kind, id.uuid().as_bytes(), size(limit)], read)?;
            rows.collect::<Result<_, _>>()?
        }
    };
    Ok(rows)
}

fn recipient(row: &Row<'_>) -> rusqlite::Result<RecipientRow> {
    Ok(RecipientRow {
        no: row.get(0)?,
        session: SessionId::new(Uuid::from_bytes(row.get(1)?)),
        run: RunId::new(Uuid::from_bytes(row.get(2)?)),
        kind: row.get(3)?,
        id: row.get(4)?,
        body: row.get(5)?,
        told: Told { revision: unsigned(row.get(6)?), part: row.get(7)? },
        due: Timestamp::from_millis(row.get(8)?),
        tries: row.get(9)?,
        standing: match row.get(10)? {
            None => Telling::Open,
            Some(1) => Telling::Over,
            Some(_) => Telling::GivenUp,
        },
        claim: row.get(11)?,
        holder: holder(row, 12)?,
    })
}

/// Reads who holds a recipient from two columns.
fn holder(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<(HostId, Timestamp)>> {
    let (host, until): (Option<[u8; 16]>, Option<i64>) = (row.get(column)?, row.get(column + 1)?);
    let held = host.zip(until);
    Ok(held
        .map(|(host, until)| (HostId::new(Uuid::from_bytes(host)), Timestamp::from_millis(until))))
}

const fn ended_code(standing: Telling) -> Option<i64> {
    match standing {
        Telling::Open => None,
        Telling::Over => Some(1),
        Telling::GivenUp => Some(2),
    }
}
