//! Finding sessions: by what they are, what they wait for, and the runs they have had.

use adjourn_core::id::{RunId, SessionId};
use adjourn_store::{Counted, Filter, Page, Query, Store, Tally};

use crate::adjourn::Adjourn;
use crate::error::Error;
use crate::session_ref::SessionRef;

/// How many sessions are found whose ids begin alike: it is enough to see that there is not one.
const ALIKE: usize = 16;

impl<S: Store> Adjourn<S> {
    /// Returns a page of the sessions that a query asks for, of all tenants unless its filter names
    /// one.
    ///
    /// # Errors
    /// The store fails.
    pub async fn query(&self, query: Query) -> Result<Page, Error> {
        Ok(self.process().store.query(query).await?)
    }

    /// Counts the sessions that a filter lets through, by their state.
    ///
    /// # Errors
    /// The store fails.
    pub async fn count(&self, filter: Filter) -> Result<Counted, Error> {
        Ok(self.process().store.count(filter).await?)
    }

    /// Returns the sessions of which a person may have typed a part of the id: how the end that lists
    /// show ([`SessionId::short`]) begins or ends, or else how the whole begins. There are no more
    /// than a few: it is enough to see that there is not one.
    ///
    /// # Errors
    /// The store fails.
    pub async fn sessions_like(&self, text: &str) -> Result<Vec<SessionRef<S>>, Error> {
        let digits = text.strip_prefix(SessionId::PREFIX).unwrap_or(text).replace('-', "");
        let mut ids = self.process().store.ids_like(&digits, ALIKE)?;
        let is_shown = |id: &SessionId| {
            let shown = id.short();
            shown.starts_with(text) || shown.ends_with(text)
        };
        let begins = |id: &SessionId| {
            let whole = id.to_string();
            whole.starts_with(text)
                || whole
                    .strip_prefix(SessionId::PREFIX)
                    .is_some_and(|bare| bare.starts_with(text) || bare.ends_with(text))
        };
        match ids.iter().any(is_shown) {
            true => ids.retain(is_shown),
            false => ids.retain(begins),
        }
        Ok(ids.into_iter().map(|id| self.session(id)).collect())
    }

    /// Returns the way to the session that a run belongs to, unless it was erased.
    ///
    /// # Errors
    /// The store fails.
    pub async fn session_of(&self, run: RunId) -> Result<Option<SessionRef<S>>, Error> {
        Ok(self.process().store.session_of(run)?.map(|id| self.session(id)))
    }

    /// Counts all sessions by their state, the deadlines that have passed, and the events that are
    /// not delivered yet. It reads a thin row of each session, on another thread: the counts of a
    /// store in use are not of one moment.
    ///
    /// # Errors
    /// The store fails.
    pub async fn tally(&self) -> Result<Tally, Error> {
        Ok(self.process().store.tally(self.clock().now()).await?)
    }
}
