//! Finding sessions: by what they are, what they wait for, and the runs they have had.

use adjourn_core::id::RunId;
use adjourn_store::{Counted, Filter, Page, Query, Store};

use crate::adjourn::Adjourn;
use crate::error::Error;
use crate::session_ref::SessionRef;

impl<S: Store> Adjourn<S> {
    /// Returns a page of the sessions that a query asks for, of all tenants unless its filter names
    /// one.
    ///
    /// # Errors
    /// The store fails.
    pub async fn query(&self, query: Query) -> Result<Page, Error> {
        Ok(self.store().query(query).await?)
    }

    /// Counts the sessions that a filter lets through, by their state.
    ///
    /// # Errors
    /// The store fails.
    pub async fn count(&self, filter: Filter) -> Result<Counted, Error> {
        Ok(self.store().count(filter).await?)
    }

    /// Returns the way to the session that a run belongs to, unless it was erased.
    ///
    /// # Errors
    /// The store fails.
    pub fn session_of(&self, run: RunId) -> Result<Option<SessionRef<S>>, Error> {
        Ok(self.store().session_of(run)?.map(|id| self.session(id)))
    }
}
