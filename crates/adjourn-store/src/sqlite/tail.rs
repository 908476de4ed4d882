//! The end of the journal: what the last commit says of it.

use adjourn_core::id::SessionId;
use adjourn_record::Hash;
use adjourn_record::chain::Chain;
use rusqlite::{Connection, OptionalExtension as _};
use uuid::Uuid;

use super::rows::{signed, unsigned};
use super::writer::last_commit;
use crate::error::Error;

/// Makes sure that the journal ends with what the last commit covers.
///
/// A file and a log that do not belong together show here, and so does a journal that was cut off
/// or added to. What lies further back is for the fold of each session, and for
/// [`verify`](super::Sqlite::verify).
///
/// # Errors
/// The store is damaged, or fails.
pub(super) fn check(connection: &Connection) -> Result<(), Error> {
    // One moment for both: others may be committing.
    let moment = connection.unchecked_transaction()?;
    let result = compare(connection);
    moment.finish()?;
    result
}

fn compare(connection: &Connection) -> Result<(), Error> {
    let last = last_commit(connection)?;
    let count = last.as_ref().map_or(1, |last| last.count);
    let sql = "SELECT link FROM journal ORDER BY no DESC LIMIT ?1";
    let mut statement = connection.prepare(sql)?;
    let links = statement.query_map([signed(count)], |row| row.get(0).map(Hash::from_bytes))?;
    let mut links: Vec<_> = links.collect::<Result<_, _>>()?;
    links.reverse();
    let problem = match last {
        None if links.is_empty() => return Ok(()),
        None => "there is no commit".to_owned(),
        Some(last) => match last.covers(links) {
            Ok(()) => return Ok(()),
            Err(broken) => broken.to_string(),
        },
    };
    let place = match altered(connection, count)? {
        Some(altered) => altered,
        None => end(connection)?,
    };
    Err(Error::Damaged(format!("{problem}; {place}")))
}

/// Names the first of the last entries whose bytes and place do not give the link beside it.
fn altered(connection: &Connection, count: u64) -> Result<Option<String>, Error> {
    let sql = "SELECT session.id, last.revision, last.link, last.body,
                      (SELECT link FROM journal WHERE no = last.prev)
               FROM (SELECT * FROM journal ORDER BY no DESC LIMIT ?1) AS last
               JOIN session ON session.no = last.session ORDER BY last.no";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([signed(count)])?;
    while let Some(row) = rows.next()? {
        let session = SessionId::new(Uuid::from_bytes(row.get(0)?));
        let revision = unsigned(row.get(1)?);
        let link = Hash::from_bytes(row.get(2)?);
        // The bytes of one that was pruned are gone.
        let Some(body) = row.get::<_, Option<Vec<u8>>>(3)? else { continue };
        let prev = row.get::<_, Option<[u8; 32]>>(4)?.map_or(Hash::ZERO, Hash::from_bytes);
        if Chain::journal(session).link(prev, revision, &body) != link {
            return Ok(Some(format!(
                "the bytes and the place of entry {revision} of session {session} do not give the \
                 link stored beside it"
            )));
        }
    }
    Ok(None)
}

/// Says where the journal ends.
fn end(connection: &Connection) -> Result<String, Error> {
    let sql = "SELECT session.id, journal.revision FROM journal
               JOIN session ON session.no = journal.session ORDER BY journal.no DESC LIMIT 1";
    let end: Option<([u8; 16], i64)> =
        connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(match end {
        Some((id, revision)) => format!(
            "the journal ends with entry {} of session {}",
            unsigned(revision),
            SessionId::new(Uuid::from_bytes(id))
        ),
        None => "the journal has no entry of any session".to_owned(),
    })
}
