//! First answers to idempotency keys, and ids of messages.

use adjourn_core::facts::Answered;
use adjourn_core::id::SessionId;
use adjourn_core::time::Timestamp;
use rusqlite::{OptionalExtension as _, params};

use super::{SqliteRows, json, text};
use crate::error::Error;
use crate::rows::{Answers, SessionNo, TenantNo};

impl Answers for SqliteRows<'_> {
    fn answered(&mut self, session: SessionNo, key: &str) -> Result<Option<Answered>, Error> {
        let sql = "SELECT answer FROM answer WHERE session = ?1 AND key = 'k:' || ?2";
        let mut statement = self.prepare(sql)?;
        let answer: Option<String> =
            statement.query_row(params![session.0, key], |row| row.get(0)).optional()?;
        answer.map(|answer| json(&answer)).transpose()
    }

    fn keep_answer(
        &mut self,
        session: SessionNo,
        key: &str,
        answered: &Answered,
        at: Timestamp,
    ) -> Result<(), Error> {
        self.write(
            "INSERT INTO answer (session, key, at, answer) VALUES (?1, 'k:' || ?2, ?3, ?4)",
            [
                session.0.into(),
                key.to_owned().into(),
                at.as_millis().into(),
                text(answered)?.into(),
            ],
        )
    }

    fn go_on_answering(&mut self, from: SessionNo, to: SessionNo) -> Result<(), Error> {
        self.write(
            "INSERT INTO answer (session, key, at, answer)
             SELECT ?2, key, at, answer FROM answer WHERE session = ?1",
            [from.0.into(), to.0.into()],
        )
    }

    fn message_seen(&mut self, session: SessionNo, id: &str) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM answer WHERE session = ?1 AND key = 'm:' || ?2";
        Ok(self.prepare(sql)?.exists(params![session.0, id])?)
    }

    fn keep_message(&mut self, session: SessionNo, id: &str, at: Timestamp) -> Result<(), Error> {
        self.write(
            "INSERT OR IGNORE INTO answer (session, key, at) VALUES (?1, 'm:' || ?2, ?3)",
            [session.0.into(), id.to_owned().into(), at.as_millis().into()],
        )
    }

    fn taken(&mut self, tenant: TenantNo, key: &str) -> Result<Option<SessionId>, Error> {
        let sql = "SELECT answer FROM answer WHERE session = ?1 AND key = 'o:' || ?2";
        let mut statement = self.prepare(sql)?;
        let session: Option<String> =
            statement.query_row(params![of_tenant(tenant), key], |row| row.get(0)).optional()?;
        session.map(|session| json(&session)).transpose()
    }

    fn keep_taken(
        &mut self,
        tenant: TenantNo,
        key: &str,
        session: SessionId,
        at: Timestamp,
    ) -> Result<(), Error> {
        self.write(
            "INSERT INTO answer (session, key, at, answer) VALUES (?1, 'o:' || ?2, ?3, ?4)",
            [
                of_tenant(tenant).into(),
                key.to_owned().into(),
                at.as_millis().into(),
                text(&session)?.into(),
            ],
        )
    }
}

/// Returns where the rows of a tenant stand: its number, negative, since those of sessions are not.
const fn of_tenant(tenant: TenantNo) -> i64 {
    -tenant.0
}
