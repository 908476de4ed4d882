//! Lists of sessions: each a range of one index, in its order.

use adjourn_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use crate::error::Error;
use crate::query::Sort;

/// Where a session stands in an order: when it last changed, where that counts, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) at: i64,
    pub(super) no: i64,
}

impl Place {
    const FIRST: Self = Self { at: i64::MIN, no: i64::MIN };
    const LAST: Self = Self { at: i64::MAX, no: i64::MAX };

    /// Returns whether this place comes before another.
    pub(super) fn is_before(self, other: Self, descending: bool) -> bool {
        if descending { self > other } else { self < other }
    }

    /// Returns the place right before this one in the order of numbers, whether or not a session
    /// stands there.
    pub(super) const fn neighbour(self, descending: bool) -> Self {
        let no = match descending {
            true => self.no.saturating_add(1),
            false => self.no.saturating_sub(1),
        };
        Self { no, ..self }
    }
}

/// A list of sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum List {
    /// All sessions, by number.
    All,
    /// Those with a mark, by number.
    Marked(String),
    /// Those of a tenant that wait under a key, by number.
    Waiting { tenant: i64, key: String },
    /// Those of a tenant, or of any, that wait under a key of a range, once for each key.
    WaitingIn { tenant: Option<i64>, keys: Range },
    /// Those whose pause has a reason that begins so, as far as it is indexed, by number.
    Reason(String),
    /// Those whose pause has a reason of a range, by reason.
    ReasonIn(Range),
    /// Those in a state, by number.
    State(i64),
    /// Those in a state, by their last change.
    StateByChange(i64),
}

/// The texts from one to another, both among them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) from: String,
    pub(super) to: String,
}

impl Range {
    /// Returns the texts that begin so: each is before everything that goes on with the last
    /// character there is.
    pub(super) fn beginning(beginning: &str) -> Self {
        Self { from: beginning.to_owned(), to: format!("{beginning}{}", char::MAX) }
    }

    /// Returns one text.
    pub(super) fn only(text: &str) -> Self {
        Self { from: text.to_owned(), to: text.to_owned() }
    }
}

/// Which part of a list is read. A list that is in no order of sessions is always read whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The greatest first.
    pub(super) descending: bool,
    /// Behind this place.
    pub(super) after: Option<Place>,
    /// Not changed after this, where the list is by changes.
    pub(super) until: Timestamp,
    /// At most so many.
    pub(super) limit: usize,
}

impl List {
    /// Returns whether the list is in the order that is wanted.
    pub(super) const fn is_in_order(&self, sort: Sort) -> bool {
        match self {
            Self::WaitingIn { .. } | Self::ReasonIn(_) => false,
            Self::StateByChange(_) => sort.is_by_change(),
            Self::All
            | Self::Marked(_)
            | Self::Waiting { .. }
            | Self::Reason(_)
            | Self::State(_) => !sort.is_by_change(),
        }
    }

    /// Returns whether the list follows the journal, and may be behind it.
    pub(super) const fn follows(&self) -> bool {
        match self {
            Self::All | Self::Marked(_) | Self::Waiting { .. } | Self::WaitingIn { .. } => false,
            Self::Reason(_) | Self::ReasonIn(_) | Self::State(_) | Self::StateByChange(_) => true,
        }
    }

    /// Reads a part of the list.
    pub(super) fn read(&self, connection: &Connection, part: Part) -> Result<Vec<Place>, Error> {
        let mut places = Vec::new();
        if let Some((sql, values)) = self.statement_of_moment(part) {
            read_into(&mut places, connection, &sql, values)?;
        }
        if places.len() < part.limit {
            let (sql, values) = self.statement(Part { limit: part.limit - places.len(), ..part });
            read_into(&mut places, connection, &sql, values)?;
        }
        Ok(places)
    }

    /// Counts the list, but not further than `most`.
    pub(super) fn count(
        &self,
        connection: &Connection,
        until: Timestamp,
        most: usize,
    ) -> Result<usize, Error> {
        let part = Part { descending: false, after: None, until, limit: most };
        let (sql, values) = self.statement(part);
        let mut statement = connection.prepare_cached(&format!("SELECT count(*) FROM ({sql})"))?;
        let count: i64 = statement.query_row(params_from_iter(values), |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Returns the statement that reads the sessions of a list by changes which changed in the same
    /// moment as the one that the part is behind, and what is bound to it.
    ///
    /// They are read on their own, so that every bound is one that an index is searched by: of
    /// `(at, session) < (?, ?)` SQLite uses the first half alone, and nothing of it beside
    /// `at <= ?`. It would read everything before the part again, for each part.
    pub(super) fn statement_of_moment(&self, part: Part) -> Option<(String, Vec<Value>)> {
        let Part { descending, after, until, limit } = part;
        let (Self::StateByChange(state), Some(after)) = (self, after) else { return None };
        let (than, order) = if descending { ("<", "DESC") } else { (">", "ASC") };
        let sql = format!(
            "SELECT at, session FROM listing INDEXED BY listing_at
             WHERE state = ?1 AND at = ?2 AND session {than} ?3
             ORDER BY session {order} LIMIT ?4"
        );
        let values = vec![(*state).into(), after.at.into(), after.no.into(), bound(limit)];
        (after.at <= until.as_millis()).then_some((sql, values))
    }

    /// Returns the statement that reads a part of the list, and what is bound to it; of a list by
    /// changes, what changed in other moments than the one that the part is behind.
    pub(super) fn statement(&self, part: Part) -> (String, Vec<Value>) {
        let Part { descending, after, until, limit } = part;
        let (than, order) = if descending { ("<", "DESC") } else { (">", "ASC") };
        let behind = after.unwrap_or(if descending { Place::LAST } else { Place::FIRST });
        let limit = bound(limit);
        let by_number = |table: &str, number: &str, keys: &str, bound: Vec<Value>| {
            let (place, limited) = (bound.len() + 1, bound.len() + 2);
            let sql = format!(
                "SELECT 0, {number} FROM {table} WHERE {keys} {number} {than} ?{place}
                 ORDER BY {number} {order} LIMIT ?{limited}"
            );
            (sql, bound.into_iter().chain([behind.no.into(), limit.clone()]).collect())
        };
        let in_range = |sql: &str, Range { from, to }: &Range| {
            (sql.to_owned(), vec![from.clone().into(), to.clone().into(), limit.clone()])
        };
        match self {
            Self::All => by_number("session", "no", "", Vec::new()),
            Self::Marked(what) => {
                by_number("mark", "session", "what = ?1 AND", vec![what.clone().into()])
            }
            Self::Waiting { tenant, key } => {
                let bound = vec![(*tenant).into(), key.clone().into()];
                by_number("subscription", "session", "tenant = ?1 AND key = ?2 AND", bound)
            }
            Self::WaitingIn { tenant: Some(tenant), keys } => {
                let (sql, mut values) = in_range(WAITING_IN, keys);
                values.push((*tenant).into());
                (sql, values)
            }
            Self::WaitingIn { tenant: None, keys } => in_range(WAITING_ANYWHERE_IN, keys),
            Self::ReasonIn(reasons) => in_range(REASON_IN, reasons),
            Self::Reason(reason) => {
                let table = "listing INDEXED BY listing_reason";
                by_number(table, "session", "reason = ?1 AND", vec![reason.clone().into()])
            }
            Self::State(state) => {
                let table = "listing INDEXED BY listing_state";
                by_number(table, "session", "state = ?1 AND", vec![(*state).into()])
            }
            Self::StateByChange(state) => {
                let sql = format!(
                    "SELECT at, session FROM listing INDEXED BY listing_at
                     WHERE state = ?1 AND at >= ?2 AND at <= ?3
                     ORDER BY at {order}, session {order} LIMIT ?4"
                );
                let until = until.as_millis();
                let (from, to) = match after {
                    None => (i64::MIN, until),
                    Some(after) if descending => (i64::MIN, until.min(after.at.saturating_sub(1))),
                    Some(after) => (after.at.saturating_add(1), until),
                };
                (sql, vec![(*state).into(), from.into(), to.into(), limit])
            }
        }
    }
}

/// Returns a limit as it is bound to a statement.
fn bound(limit: usize) -> Value {
    Value::from(i64::try_from(limit).unwrap_or(i64::MAX))
}

/// Reads the places that a statement finds.
fn read_into(
    places: &mut Vec<Place>,
    connection: &Connection,
    sql: &str,
    values: Vec<Value>,
) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    while let Some(row) = rows.next()? {
        places.push(Place { at: row.get(0)?, no: row.get(1)? });
    }
    Ok(())
}

/// Who of a tenant waits under keys of a range.
const WAITING_IN: &str = "SELECT 0, session FROM subscription
     WHERE tenant = ?4 AND key >= ?1 AND key <= ?2 LIMIT ?3";
/// Who of any tenant does: the range is looked for once for each of them.
const WAITING_ANYWHERE_IN: &str = "SELECT 0, session FROM tenant CROSS JOIN subscription
     WHERE tenant = tenant.no AND key >= ?1 AND key <= ?2 LIMIT ?3";
/// Whose pause has a reason of a range.
const REASON_IN: &str = "SELECT 0, session FROM listing INDEXED BY listing_reason
     WHERE reason >= ?1 AND reason <= ?2 LIMIT ?3";
/// The first key of a tenant's waits in a range.
pub(super) const FIRST_KEY: &str = "SELECT key FROM subscription
     WHERE tenant = ?1 AND key >= ?2 AND key <= ?3 ORDER BY key LIMIT 1";
/// The next one behind a key.
pub(super) const NEXT_KEY: &str = "SELECT key FROM subscription
     WHERE tenant = ?1 AND key > ?2 AND key <= ?3 ORDER BY key LIMIT 1";
/// The next reason in a range.
pub(super) const NEXT_REASON: &str = "SELECT reason FROM listing INDEXED BY listing_reason
     WHERE reason > ?1 AND reason <= ?2 ORDER BY reason LIMIT 1";
/// The number of a tenant.
pub(super) const TENANT: &str = "SELECT no FROM tenant WHERE name = ?1";
