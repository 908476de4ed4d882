//! Staying with a session: what it says and does, as it happens.

use std::sync::Arc;
use std::time::Duration;

use adjourn::core::Session;
use adjourn::core::id::SessionId;
use adjourn::{Error, Moment, Moments};

use crate::place::Place;

/// How often one looks without being told of anything: hosts come and go without a commit.
pub const LOOK: Duration = Duration::from_millis(250);

/// A reader of one session that is told when something is committed.
pub struct Watch(Moments);

/// What has come since the last look.
pub struct Seen {
    pub session: Arc<Session>,
    pub moments: Vec<Moment>,
}

impl Watch {
    /// Watches a session from its beginning.
    pub fn from_start(place: &Place, id: SessionId) -> Self {
        Self(Moments::from_start(&place.adjourn.session(id)))
    }

    /// Watches what happens to a session from now on.
    pub fn after(place: &Place, session: &Session) -> Self {
        Self(Moments::after(&place.adjourn.session(session.id), session))
    }

    /// Watches a session from a revision on, and returns the session before it; nothing where that
    /// cannot be.
    pub async fn at(
        place: &Place,
        id: SessionId,
        revision: u64,
    ) -> Result<Option<(Session, Self)>, Error> {
        let moments = Moments::at(&place.adjourn.session(id), revision).await?;
        Ok(moments.map(|(session, moments)| (session, Self(moments))))
    }

    /// Returns what has come since the last look; nothing if there is no such session.
    pub async fn look(&mut self) -> Result<Option<Seen>, Error> {
        look(&mut self.0).await
    }

    /// Returns the next page of what has come, and the session as it was before that was read.
    pub async fn page(&mut self) -> Result<Option<Seen>, Error> {
        let Some(session) = self.0.session().await? else { return Ok(None) };
        let mut moments = self.0.page().await?;
        if moments.is_empty() && is_missing(&self.0, &session) {
            moments = self.0.page_before(session.revision + 1).await?;
        }
        Ok(Some(Seen { session, moments }))
    }

    /// Returns whether there are more pages at once.
    pub fn is_behind(&self) -> bool {
        self.0.is_behind()
    }

    /// Waits until there may be something new.
    pub async fn wait(&self) {
        // A store that fails says so at the next look.
        let _ = tokio::time::timeout(LOOK, self.0.changed()).await;
    }
}

/// Returns what has come since the last look; nothing if there is no such session.
pub async fn look(moments: &mut Moments) -> Result<Option<Seen>, Error> {
    let Some(session) = moments.session().await? else { return Ok(None) };
    let mut seen = moments.rest().await?;
    while is_missing(moments, &session) {
        let missing = moments.page_before(session.revision + 1).await?;
        if missing.is_empty() {
            break;
        }
        seen.extend(missing);
    }
    Ok(Some(Seen { session, moments: seen }))
}

/// Returns whether something that led to this state was not handed out: what another process has
/// committed is in the store before this one has heard of it.
fn is_missing(moments: &Moments, session: &Session) -> bool {
    moments.next_revision() <= session.revision
}
