//! Sessions: the thin rows that lists and indexes are made of, and whose they are.

use std::sync::LazyLock;

use adjourn_core::Session;
use adjourn_core::id::{HostId, SessionId};
use adjourn_core::session::State;
use adjourn_core::time::Timestamp;
use adjourn_record::Hash;
use adjourn_record::chain::Tip;
use rusqlite::{OptionalExtension as _, Row, params};
use uuid::Uuid;

use super::{SqliteRows, signed, size, unsigned};
use crate::error::Error;
use crate::rows::{EntryNo, SessionNo, SessionRow, Sessions, TenantNo};

const BY_ID: &str = "SELECT no, id, tenant, head, revision, link FROM session WHERE id = ?1";
const BY_NO: &str = "SELECT no, id, tenant, head, revision, link FROM session WHERE no = ?1";

/// Columns of a session's row that indexes depend on, and their places among the parameters of an
/// update. An update that leaves one of them out has SQLite leave its indexes alone.
const INDEXED: [&str; 5] = ["state = ?6", "owner = ?7", "due = ?8", "since = ?9", "gated = ?10"];

/// The updates of a session's row: one for each set of columns of [`INDEXED`] that change.
static UPDATES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let sets = 0..1usize << INDEXED.len();
    let update = |set: usize| {
        let changed = INDEXED.iter().enumerate().filter(|(place, _)| set & (1 << place) != 0);
        let changed: String = changed.map(|(_, column)| format!("{column}, ")).collect();
        format!(
            "UPDATE session SET revision = ?2, head = ?3, link = ?4, handle = ?5, {changed}at = ?11
             WHERE no = ?1"
        )
    };
    sets.map(update).collect()
});

/// Returns the update that changes what is not as it was; all, if that is not known.
fn update(before: Option<&Thin>, after: &Thin) -> &'static str {
    let changes = before.map_or([true; INDEXED.len()], |before| {
        [
            before.state != after.state,
            before.owner != after.owner,
            before.due != after.due,
            before.since != after.since,
            before.gated != after.gated,
        ]
    });
    let set = changes.iter().rev().fold(0, |set, changes| set << 1 | usize::from(*changes));
    UPDATES.get(set).map_or("", String::as_str)
}

impl SqliteRows<'_> {
    /// Forgets the rows of sessions: one was changed beside [`Sessions::set_session`].
    pub(super) fn forget_rows(&self) {
        if let Some(known) = self.writing {
            known.forget();
        }
    }

    fn find(&self, sql: &str, params: impl rusqlite::Params) -> Result<Option<SessionRow>, Error> {
        let mut statement = self.prepare(sql)?;
        Ok(statement.query_row(params, session_row).optional()?)
    }
}

impl Sessions for SqliteRows<'_> {
    fn session(&mut self, id: SessionId) -> Result<Option<SessionRow>, Error> {
        if let Some(row) = self.writing.and_then(|known| known.session(id)) {
            return Ok(Some(row));
        }
        let row = self.find(BY_ID, [id.uuid().as_bytes()])?;
        if let (Some(known), Some(row)) = (self.writing, &row) {
            known.keep_session(row, None);
        }
        Ok(row)
    }

    fn session_by_no(&mut self, no: SessionNo) -> Result<Option<SessionRow>, Error> {
        self.find(BY_NO, [no.0])
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

    fn add_session(
        &mut self,
        session: &Session,
        tenant: TenantNo,
        marks: &[String],
    ) -> Result<SessionNo, Error> {
        self.run(
            "INSERT INTO session (id, tenant, state, revision, head, link, at)
             VALUES (?1, ?2, 0, 0, 0, zeroblob(32), 0)",
            params![session.id.uuid().as_bytes(), tenant.0],
        )?;
        let no = self.connection.last_insert_rowid();
        self.run("INSERT OR IGNORE INTO unprompted (session) VALUES (?1)", [no])?;
        for mark in marks {
            self.run(
                "INSERT OR IGNORE INTO mark (what, session) VALUES (?1, ?2)",
                params![mark, no],
            )?;
        }
        Ok(SessionNo(no))
    }

    fn open_with(&mut self, tenant: TenantNo, mark: &str) -> Result<Option<SessionId>, Error> {
        // The newest first: of those with one name it is the open one, if any is.
        let sql = "SELECT session.id FROM mark CROSS JOIN session ON session.no = mark.session
             WHERE mark.what = ?1 AND session.tenant = ?2 AND session.state <> 5
             ORDER BY mark.session DESC LIMIT 1";
        let mut statement = self.prepare(sql)?;
        let id = |row: &Row<'_>| row.get(0).map(Uuid::from_bytes).map(SessionId::new);
        Ok(statement.query_row(params![mark, tenant.0], id).optional()?)
    }

    fn ever_with(&mut self, mark: &str) -> Result<Option<SessionId>, Error> {
        let sql = "SELECT session.id FROM mark CROSS JOIN session ON session.no = mark.session
             WHERE mark.what = ?1 LIMIT 1";
        let mut statement = self.prepare(sql)?;
        let id = |row: &Row<'_>| row.get(0).map(Uuid::from_bytes).map(SessionId::new);
        Ok(statement.query_row([mark], id).optional()?)
    }

    fn set_session(&mut self, row: &SessionRow, session: &Session) -> Result<(), Error> {
        let thin = Thin::of(session);
        let before = self.writing.and_then(|known| known.thin(row.id));
        self.write(
            update(before.as_ref(), &thin),
            [
                row.no.0.into(),
                signed(row.tip.revision).into(),
                row.head.0.into(),
                (*row.tip.link.as_bytes()).into(),
                thin.handle.into(),
                thin.state.into(),
                thin.owner.into(),
                thin.due.into(),
                thin.since.into(),
                thin.gated.into(),
                thin.at.into(),
            ],
        )?;
        if let Some(known) = self.writing {
            known.keep_session(row, Some(thin));
        }
        Ok(())
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

    fn owned_by(&mut self, host: HostId, limit: usize) -> Result<Vec<SessionNo>, Error> {
        self.numbers(
            "SELECT no FROM session WHERE owner = ?1
                 AND no NOT IN (SELECT session FROM lag WHERE unreadable IS NOT NULL)
             LIMIT ?2",
            params![host.uuid().as_bytes(), size(limit)],
        )
    }

    fn set_let_go(&mut self, session: SessionNo) -> Result<(), Error> {
        self.forget_rows();
        self.run("UPDATE session SET owner = NULL WHERE no = ?1", [session.0])?;
        Ok(())
    }

    fn is_let_go(&mut self, session: SessionNo) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM session WHERE no = ?1 AND owner IS NULL";
        Ok(self.prepare(sql)?.exists([session.0])?)
    }
}

/// What the thin row repeats of a session's state, for indexes and lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sqlite) struct Thin {
    pub(in crate::sqlite) state: i64,
    pub(in crate::sqlite) owner: Option<[u8; 16]>,
    pub(in crate::sqlite) handle: Option<[u8; 16]>,
    pub(in crate::sqlite) due: Option<i64>,
    pub(in crate::sqlite) since: Option<i64>,
    pub(in crate::sqlite) at: i64,
    pub(in crate::sqlite) gated: i64,
}

impl Thin {
    pub(in crate::sqlite) fn of(session: &Session) -> Self {
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
pub(in crate::sqlite) const fn state_name(code: i64) -> &'static str {
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

pub(in crate::sqlite) fn session_row(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        no: SessionNo(row.get(0)?),
        id: SessionId::new(Uuid::from_bytes(row.get(1)?)),
        tenant: TenantNo(row.get(2)?),
        head: EntryNo(row.get(3)?),
        tip: Tip { revision: unsigned(row.get(4)?), link: Hash::from_bytes(row.get(5)?) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_names_the_columns_that_change_and_no_other_that_an_index_depends_on() {
        let before =
            Thin { state: 0, owner: None, handle: None, due: None, since: None, at: 0, gated: 0 };
        let named = |before: Option<&Thin>, after: &Thin| {
            let sql = update(before, after);
            INDEXED.iter().copied().filter(|column| sql.contains(column)).collect::<Vec<_>>()
        };
        assert_eq!(named(None, &before), INDEXED, "all, if nothing is known");
        let later = Thin { at: 1, handle: Some([1; 16]), ..before.clone() };
        assert!(named(Some(&before), &later).is_empty());
        let changes = [
            Thin { state: 1, ..before.clone() },
            Thin { owner: Some([1; 16]), ..before.clone() },
            Thin { due: Some(1), ..before.clone() },
            Thin { since: Some(1), ..before.clone() },
            Thin { gated: 1, ..before.clone() },
        ];
        for (column, after) in INDEXED.iter().zip(&changes) {
            assert_eq!(named(Some(&before), after), [*column]);
            assert_eq!(named(Some(after), &before), [*column]);
        }
        let two = Thin { state: 2, since: Some(1), ..before.clone() };
        assert_eq!(named(Some(&before), &two), ["state = ?6", "since = ?9"]);
    }
}
