//! Exporting: a portable record of a parked session, which ends here.

use std::future::IntoFuture;

use adjourn_core::actor::Actor;
use adjourn_core::command::Export;
use adjourn_core::event::{SealedRecord, What};
use adjourn_core::session::{Ended, SessionEnd, State};
use adjourn_core::{Command, Rejected, Session};
use adjourn_driver::payload::{Payload, RawEntry};
use adjourn_record::portable::{Header, Record};
use adjourn_store::{CommandError, Done, Request, Sqlite, Store, Transaction};

use crate::committing::Committing;
use crate::error::{Error, RecordError};
use crate::off_thread::off_thread;
use crate::session_ref::SessionRef;

/// A session that is about to be exported; see [`SessionRef::export`].
///
/// Awaited, it resolves at the commit that ends the session, and returns the record with which it
/// goes on elsewhere. A session that was exported before gives the same record again, byte for byte,
/// as long as it is not erased, the key that sealed it is good, and records are written as they were
/// then: what was lost on the way to a file is not lost.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the session is exported all the same, and its
/// record is had by exporting it again.
#[must_use = "nothing happens before it is awaited"]
pub struct ExportBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
    reason: Option<String>,
}

/// A session that was exported.
#[derive(Debug, Clone)]
pub struct Exported {
    /// The record. Whoever can read it can read the conversation: it is signed, not encrypted.
    pub record: Record,
    /// Whether it is, byte for byte, what the first export gave. Another one stands for the same
    /// suspension, and of both a store takes in one.
    pub is_first: bool,
    /// The session as it is here: over.
    pub session: std::sync::Arc<Session>,
    /// The commit that ended it; nothing if that was done before.
    pub commit: Option<Done>,
}

impl<S: Store> ExportBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>) -> Self {
        Self { by: session.by(), session, reason: None }
    }

    /// Says why.
    pub fn reason(mut self, reason: impl Into<Option<String>>) -> Self {
        self.reason = reason.into();
        self
    }

    /// Names who exports it, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    async fn commit(self) -> Result<Exported, Error> {
        let Self { session: reference, by, reason } = self;
        let (adjourn, id) = (reference.adjourn(), reference.id());
        let keys = adjourn.sealing_keys().await?;
        loop {
            let session = reference.load().await?;
            if let State::Ended(Ended { how: SessionEnd::Exported, .. }) = session.state {
                let (exported, sealed) = before_export(&reference, &session).await?;
                let payload = payload(&reference, exported).await?;
                let key = sealed.key.parse().ok().and_then(|key| keys.good(key));
                let key = key.unwrap_or_else(|| keys.current());
                let header = header(&payload.session)?;
                let record = Record::seal_again(key, &header, payload.encode(), &sealed.token)
                    .map_err(RecordError::from)?;
                let is_first = record.token() == sealed.token;
                return Ok(Exported { record, is_first, session, commit: None });
            }
            session.exportable()?;
            let revision = session.revision;
            let payload = payload(&reference, Session::clone(&session)).await?;
            let header = header(&payload.session)?;
            let record = Record::seal(keys.current(), &header, payload.encode())
                .map_err(RecordError::from)?;
            let sealed =
                SealedRecord { key: record.kid().to_owned(), token: record.token().to_owned() };
            let export = Command::Export(Export { record: sealed, reason: reason.clone() });
            let request = Request::new(id, by.clone(), export);
            // What has changed since it was read is not in the record.
            let unchanged = move |tx: &mut Transaction<'_>| -> Result<_, CommandError> {
                let now = tx.session(id)?.ok_or(CommandError::NotFound(id))?;
                (now.revision == revision).then(|| tx.command(request)).transpose()
            };
            if let Some(commit) = adjourn.transact(unchanged).await? {
                adjourn.process().values.forget(id);
                let session = std::sync::Arc::clone(&commit.session);
                return Ok(Exported { record, is_first: true, session, commit: Some(commit) });
            }
        }
    }
}

/// Returns what a record holds of a session.
async fn payload<S: Store>(
    reference: &SessionRef<S>,
    session: Session,
) -> Result<Payload<RawEntry>, Error> {
    let created = reference.created().await?.ok_or(Error::NotFound(session.id))?;
    let (store, id) = (reference.adjourn().process().store.clone(), session.id);
    let length = usize::try_from(session.transcript.length).unwrap_or(usize::MAX);
    let said = off_thread(move || store.transcript(id, 0, length)).await?;
    let messages = said.into_iter().map(RawEntry::new).collect::<Result<_, _>>();
    let messages = messages.map_err(RecordError::from)?;
    Ok(Payload { driver: created.driver, session, messages })
}

/// Returns the session as it was before it was exported, and the seal of the record.
async fn before_export<S: Store>(
    reference: &SessionRef<S>,
    session: &Session,
) -> Result<(Session, SealedRecord), Error> {
    // The end of the suspension, of the run if there was one, and of the session.
    let last = reference.journal(session.revision.saturating_sub(2).max(1), 3).await?;
    for entry in last {
        if let What::SuspensionEnded(ended) = &entry.event.what
            && let Some(sealed) = ended.record.clone()
            && let Ok(Some(before)) = entry.before()
        {
            return Ok((before, sealed));
        }
    }
    Err(Error::Unexpected(format!("session {} was exported without a trace", session.id)))
}

fn header(session: &Session) -> Result<Header, Rejected> {
    Header::of(session).ok_or_else(|| Rejected::NotSuspended { phase: session.phase() })
}

impl<S: Store> IntoFuture for ExportBuilder<S> {
    type Output = Result<Exported, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(self.commit())
    }
}
