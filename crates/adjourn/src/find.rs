//! Finding sessions: by what they are, what they wait for, and the runs they have had.

use adjourn_core::Founding;
use adjourn_core::id::{RunId, SessionId};
use adjourn_store::{Counted, Filter, Page, Query, Sort, Sqlite, StateKind, Store, Tally};

use crate::adjourn::Adjourn;
use crate::error::Error;
use crate::session_ref::SessionRef;

/// How many sessions are found whose ids begin alike: it is enough to see that there is not one.
const ALIKE: usize = 16;

/// How many sessions of one name are looked for: enough to see that it is not one session's.
const NAMED: usize = 2;

/// The session that is meant by a text; see [`Adjourn::find`].
#[derive(Clone)]
pub enum Meant<S: Store = Sqlite> {
    /// The one session that the text names.
    One(SessionRef<S>),
    /// More than one open session has this name.
    Several,
    /// No session has had this run.
    NoRun(RunId),
    /// No session has this name.
    Unknown,
}

impl<S: Store> Adjourn<S> {
    /// Finds the session that is meant by a text: its id, the id of one of its runs, or its name.
    ///
    /// A name is the label [`Founding::NAME`] of a session of this tenant: that of the open one, or
    /// else of the last that has ended. Whether there is a session with an id shows when something
    /// is asked of it.
    ///
    /// # Errors
    /// The store fails.
    pub async fn find(&self, text: &str) -> Result<Meant<S>, Error> {
        if let Ok(id) = text.parse() {
            return Ok(Meant::One(self.session(id)));
        }
        if let Ok(run) = text.parse() {
            return Ok(self.session_of(run).await?.map_or(Meant::NoRun(run), Meant::One));
        }
        if let [first, rest @ ..] = self.called(text, &StateKind::OPEN).await?.as_slice() {
            return Ok(if rest.is_empty() {
                Meant::One(self.session(*first))
            } else {
                Meant::Several
            });
        }
        let ended = self.called(text, &[StateKind::Ended]).await?;
        Ok(ended.first().map_or(Meant::Unknown, |last| Meant::One(self.session(*last))))
    }

    /// Returns the sessions of this tenant with a name in one of some states, the newest first, at
    /// most two.
    async fn called(&self, name: &str, states: &[StateKind]) -> Result<Vec<SessionId>, Error> {
        let filter = Filter {
            // A name is one session's among those of its tenant.
            tenant: Some(self.tenant().to_owned()),
            labels: [(Founding::NAME.to_owned(), name.to_owned())].into(),
            states: states.to_vec(),
            ..Filter::default()
        };
        let mut query = Query { sort: Sort::Newest, ..Query::new(filter, NAMED) };
        let mut found = Vec::new();
        loop {
            let page = self.query(query.clone()).await?;
            found.extend(page.sessions.iter().map(|listed| match listed {
                Ok(session) => session.id,
                Err((id, _)) => *id,
            }));
            found.truncate(NAMED);
            match page.next {
                // A page may have too few, or none, only because looking for more took long enough.
                Some(next) if found.len() < NAMED => query.after = Some(next),
                _ => return Ok(found),
            }
        }
    }

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
    /// not delivered yet. It reads counts that are kept beside the list that queries answer from, and
    /// no session.
    ///
    /// # Errors
    /// The store fails.
    pub async fn tally(&self) -> Result<Tally, Error> {
        Ok(self.process().store.tally(self.clock().now()).await?)
    }
}
