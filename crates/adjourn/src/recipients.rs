//! Those outside who are told what happens to a run, durably: at least once and in order.
//!
//! A recipient has a place in the journal of its session, and what lies behind it is what it is told
//! next. So nothing is queued, and nothing is lost with a process: [`Recipients`] finds who is behind,
//! in whichever process, and hands them out under a claim, one at a time. How they are told is up to
//! the caller; [`TakenRecipient::told`] moves the place on.
//!
//! What says how a recipient is told may hold secrets of others, and lies in the store encrypted.

mod queue;

use adjourn_core::id::{RunId, SessionId};
use adjourn_record::keys::DecryptError;
use adjourn_store::rows::RecipientRow;
use adjourn_store::{Added, CommandError, Store};

use crate::adjourn::Adjourn;
use crate::committing::Committing;
use crate::error::{Error, RecordError};
use crate::session_ref::SessionRef;

pub use queue::{Recipients, TakenRecipient, Then};

/// How many recipients of a kind a run may have.
pub const MOST_RECIPIENTS: usize = 16;

/// A recipient that is about to be added, or another body for one that is there.
#[derive(Clone)]
pub struct NewRecipient {
    /// The run that it is told of.
    pub run: RunId,
    /// The kind of recipient: those who tell it take this kind.
    pub kind: &'static str,
    /// Its name among those of its run and kind.
    pub id: String,
    /// How it is told; encrypted where it is stored.
    pub body: Vec<u8>,
    /// The last revision of the session that it is not told of.
    pub after: u64,
    /// Whether the run is over, so that there is nothing to tell.
    pub is_over: bool,
}

/// One that is told what happens to a run.
pub struct Recipient {
    /// Its name among those of its run and kind.
    pub id: String,
    /// How it is told, or why that cannot be read.
    pub body: Result<Vec<u8>, DecryptError>,
    /// Whether it could not be told for so long that it was given up.
    pub is_given_up: bool,
}

impl<S: Store> Adjourn<S> {
    /// Returns whether recipients can be added: the store has keys to keep secrets with.
    pub fn keeps_secrets(&self) -> bool {
        self.sealing().is_some()
    }
}

impl<S: Store> SessionRef<S> {
    /// Has one outside told what happens to a run of the session. One of the same name gets the new
    /// body and goes on where it was, also if it was given up.
    ///
    /// Resolves at the commit that does so.
    ///
    /// # Cancel safety
    /// That of [`Committing`]: dropped after it was polled, the recipient is added all the same.
    pub fn add_recipient(&self, new: NewRecipient) -> Committing<Result<Added, Error>> {
        let session = self.clone();
        Committing::new(async move {
            let (adjourn, id) = (session.adjourn(), session.id());
            let keys = adjourn.sealing_keys().await?;
            let context = context(id, new.run, new.kind, &new.id);
            let body = keys.encrypt(&context, &new.body);
            let body = body.map_err(|error| Error::Unexpected(error.to_string()))?;
            let new = adjourn_store::NewRecipient {
                session: id,
                run: new.run,
                kind: new.kind.to_owned(),
                id: new.id,
                body,
                after: new.after,
                is_over: new.is_over,
            };
            let added = adjourn.transact(move |tx| tx.add_recipient(new, MOST_RECIPIENTS)).await?;
            adjourn.feed().recipient_changed(id);
            Ok(added)
        })
    }

    /// Returns the recipients of a kind that a run has, in the order in which they were added.
    ///
    /// # Errors
    /// The store fails, or has no keys.
    pub async fn recipients(&self, run: RunId, kind: &str) -> Result<Vec<Recipient>, Error> {
        let rows = self.adjourn().process().store.recipients(self.id(), run, kind)?;
        let mut recipients = Vec::with_capacity(rows.len());
        for row in rows {
            let body = decrypt(self.adjourn(), &row).await?;
            let is_given_up = row.standing == adjourn_store::rows::Telling::GivenUp;
            recipients.push(Recipient { id: row.id, body, is_given_up });
        }
        Ok(recipients)
    }

    /// Has a recipient told nothing more, also nothing of what has happened; returns whether there was
    /// one.
    ///
    /// Resolves at the commit that removes it.
    ///
    /// # Cancel safety
    /// That of [`Committing`]: dropped after it was polled, the recipient is removed all the same.
    pub fn remove_recipient(
        &self,
        run: RunId,
        kind: &'static str,
        id: impl Into<String>,
    ) -> Committing<Result<bool, Error>> {
        let (session, name) = (self.clone(), id.into());
        Committing::new(async move {
            let id = session.id();
            let removed = session.adjourn().transact(move |tx| {
                Ok::<_, CommandError>(tx.remove_recipient(id, run, kind, &name)?)
            });
            Ok(removed.await?)
        })
    }
}

/// Returns how a recipient is told, or why that cannot be read.
async fn decrypt<S: Store>(
    adjourn: &Adjourn<S>,
    row: &RecipientRow,
) -> Result<Result<Vec<u8>, DecryptError>, Error> {
    let keys = adjourn.sealing_keys().await?;
    let context = context(row.session, row.run, &row.kind, &row.id);
    Ok(keys.decrypt(&context, &row.body).map(|body| body.to_vec()))
}

/// Returns what a body belongs to, so that it is none of another recipient.
fn context(session: SessionId, run: RunId, kind: &str, id: &str) -> Vec<u8> {
    format!("recipient\0{kind}\0{session}\0{run}\0{id}").into_bytes()
}

/// Whether there are no keys now, which may be there in a moment.
const fn lacks_keys(error: &Error) -> bool {
    matches!(error, Error::Record(RecordError::NoKeys) | Error::Keys(_))
}
