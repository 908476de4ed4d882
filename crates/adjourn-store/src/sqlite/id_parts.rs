//! Sessions by a part of their ids: how they begin, how the end begins that lists show, and how that
//! ends.

use adjourn_core::id::SessionId;
use rusqlite::{Connection, Rows, params};
use uuid::Uuid;

use crate::error::Error;

/// The digits of an id.
const ID: usize = 32;

/// Finds ids in a range.
const IDS: &str = "SELECT id FROM session WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3";
/// Finds ids of which the part that lists show is in a range.
const SHOWN: &str = "SELECT id FROM session WHERE substr(id, 11) BETWEEN ?1 AND ?2
                     ORDER BY substr(id, 11) LIMIT ?3";
/// Finds ids by their last two bytes, and of these those that end with some digits.
const ENDS: &str = "SELECT id FROM session
                    WHERE substr(id, 15) = ?1 AND hex(id) LIKE '%' || ?2 LIMIT ?3";
/// The digits of the last two bytes.
const LAST: usize = 4;

/// Returns sessions whose ids, or what lists show of these, begin with some digits, or end with them.
pub(super) fn like(
    connection: &Connection,
    digits: &str,
    limit: usize,
) -> Result<Vec<SessionId>, Error> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut found = Vec::new();
    for (sql, length) in [(IDS, ID), (SHOWN, SessionId::SHORT)] {
        let (Some(first), Some(last)) = (filled(digits, '0', length), filled(digits, 'f', length))
        else {
            continue;
        };
        let mut statement = connection.prepare_cached(sql)?;
        add(&mut found, statement.query(params![first, last, limit])?)?;
    }
    let last = digits.len().checked_sub(LAST).and_then(|start| digits.get(start..));
    if let Some(last) = last.and_then(|last| filled(last, '0', LAST))
        && filled(digits, '0', ID).is_some()
    {
        let mut statement = connection.prepare_cached(ENDS)?;
        add(&mut found, statement.query(params![last, digits, limit])?)?;
    }
    Ok(found)
}

/// Adds the ids of rows that are not there yet.
fn add(found: &mut Vec<SessionId>, mut rows: Rows<'_>) -> Result<(), Error> {
    while let Some(row) = rows.next()? {
        let id = SessionId::new(Uuid::from_bytes(row.get(0)?));
        if !found.contains(&id) {
            found.push(id);
        }
    }
    Ok(())
}

/// Returns the bytes that digits stand for when they are filled up with another one; nothing if
/// they are none, or too many.
fn filled(digits: &str, with: char, length: usize) -> Option<Vec<u8>> {
    if digits.is_empty() || digits.len() > length || !digits.is_ascii() {
        return None;
    }
    let whole: Vec<char> = digits.chars().chain(std::iter::repeat(with)).take(length).collect();
    let byte = |pair: &[char]| {
        let digits = pair.iter().map(|digit| digit.to_digit(16));
        digits.collect::<Option<Vec<_>>>()?.iter().try_fold(0_u8, |byte, digit| {
            byte.checked_mul(16)?.checked_add(u8::try_from(*digit).ok()?)
        })
    };
    whole.chunks(2).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::points::Points;
    use crate::sqlite::schema;

    #[test]
    fn every_part_is_found_by_an_index() {
        let connection = Connection::open_in_memory().unwrap();
        schema::migrate(&connection, &Points::default()).unwrap();
        for (sql, index) in [
            (IDS, "SEARCH session USING COVERING INDEX sqlite_autoindex_session_1 (id>? AND id<?)"),
            (SHOWN, "SEARCH session USING INDEX session_shown (<expr>>? AND <expr><?)"),
            (ENDS, "SEARCH session USING INDEX session_end (<expr>=?)"),
        ] {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = statement.query_map(params![1, 1, 1], |row| row.get::<_, String>(3));
            let plan: Vec<_> = steps.unwrap().collect::<Result<_, _>>().unwrap();
            assert_eq!(plan, [index], "{sql}");
        }
    }

    #[test]
    fn digits_are_filled_up_to_whole_bytes() {
        assert_eq!(filled("01a", '0', 6).unwrap(), [0x01, 0xa0, 0x00]);
        assert_eq!(filled("01a", 'f', 6).unwrap(), [0x01, 0xaf, 0xff]);
        for digits in ["", "1234567", "12g4", "\u{e4}"] {
            assert_eq!(filled(digits, '0', 6), None, "{digits:?}");
        }
    }
}
