//! `session/status` and `session/list`: what is said of sessions without opening them.

use adjourn::core::Session;
use adjourn::core::id::{HostId, SessionId};
use adjourn::core::session::State;
use adjourn::store::Store;
use adjourn::{Cursor, Filter, Query, Sort, StateKind, StoreError};
use serde_json::{Map, Value, json};

use crate::connection::{Connection, absolute};
use crate::face::StatusWords;
use crate::peer::{EXTENSION, Peer, Version};
use crate::request_permission;
use crate::requests::{List, Named};
use crate::rpc::{Error, NOT_FOUND};
use crate::suspension::SessionStatus;
use crate::update::{meta, with};

/// Sessions on one page of `session/list`.
const PAGE: usize = 50;
impl<S: Store> Connection<S> {
    pub(crate) async fn status(&self, named: &Named, peer: &Peer) -> Result<Value, Error> {
        let words = match (self.face.options.status, peer.version) {
            (StatusWords::ByVersion, Version::V1) => StatusWords::Live,
            (StatusWords::ByVersion, Version::V2) => StatusWords::Open,
            (words, _) => words,
        };
        let session = match (self.face.find_meant(&named.session_id).await, words) {
            (Ok(session), _) => session,
            (Err(error), StatusWords::Live) if error.code == NOT_FOUND => {
                return Ok(json!({ "status": SessionStatus::NotFound }));
            }
            (Err(error), _) => return Err(error),
        };
        let over = matches!(session.state, State::Ended(_));
        let keeper = if over { None } else { self.face.keeper_of(session.id).await };
        // What a host drives is not kept yet.
        let drives = |host: &HostId| session.owner().is_some_and(|owner| owner.host == *host);
        let keeper = keeper.filter(|keeper| !drives(keeper));
        let is_driven = self.is_attached(session.id) || self.face.is_driven(&session).await;
        let live = !over && (is_driven || keeper.is_some());
        let status = match (words, live) {
            (StatusWords::Live, true) => SessionStatus::Live,
            (StatusWords::Live, false) => SessionStatus::NotFound,
            (_, true) => SessionStatus::Open,
            // A word of ours: for those who know it, and where the settings want it.
            (words, false)
                if session.suspended().is_some()
                    && (peer.opted_in() || self.face.options.status == words) =>
            {
                SessionStatus::Suspended
            }
            (_, false) => SessionStatus::Saved,
        };
        let mut meta = meta(&session, peer, None);
        if let (Some(keeper), Some(Value::Object(told))) = (keeper, meta.get_mut(EXTENSION)) {
            told.insert("keptWarmBy".to_owned(), json!(keeper));
        }
        let answer = json!({ "status": status, "_meta": meta });
        Ok(match (status, peer.version) {
            (SessionStatus::Open, Version::V2) => {
                let asks = self.is_attached(session.id)
                    && request_permission::is_asked(&self.face.permissions, &session);
                let foreground = request_permission::foreground(&session, asks);
                with(answer, "state", foreground.state(&session, peer))
            }
            _ => answer,
        })
    }

    pub(crate) async fn list(&mut self, list: &List, peer: &Peer) -> Result<Value, Error> {
        let after = list.cursor.as_deref().map(str::parse::<Cursor>).transpose();
        let after = after.map_err(|_| Error::invalid("cursor", "not a cursor of this agent"))?;
        let filter = Filter {
            states: StateKind::OPEN.to_vec(),
            tenant: Some(self.face.adjourn.tenant().to_owned()),
            cwd: list.cwd.as_deref().map(absolute).transpose()?,
            prompted: true,
            ..Filter::default()
        };
        let query = Query { sort: Sort::Newest, after, ..Query::new(filter, PAGE) };
        let page = self.face.adjourn.query(query).await.map_err(|error| match error {
            adjourn::Error::Store(StoreError::ForeignCursor(problem)) => {
                Error::invalid("cursor", problem)
            }
            error => error.into(),
        })?;
        let (mut sessions, mut unreadable) = (Vec::new(), Vec::new());
        for listed in &page.sessions {
            let described = match listed {
                Ok(session) => self.info(session, peer).await,
                Err((id, error)) => Err((*id, adjourn::Error::Store(error.clone()))),
            };
            match described {
                Ok(info) => sessions.push(info),
                Err((id, error)) if error.is_of_a_session() => {
                    unreadable.push(self.named(id, &error));
                }
                Err((_, error)) => return Err(error.into()),
            }
        }
        let mut answer = json!({ "sessions": sessions });
        if let Some(next) = page.next {
            answer = with(answer, "nextCursor", next.to_string());
        }
        let mut about = Map::new();
        if !unreadable.is_empty() {
            about.insert("unreadable".to_owned(), unreadable.into());
        }
        if page.behind > 0 {
            about.insert("behind".to_owned(), page.behind.into());
        }
        if !about.is_empty() && peer.opted_in() {
            answer = with(answer, "_meta", json!({ EXTENSION: about }));
        }
        Ok(answer)
    }

    /// Describes a session that cannot be read, and names it in the log of the process, once for a
    /// connection.
    fn named(&mut self, id: SessionId, error: &adjourn::Error) -> Value {
        if self.unreadable.insert(id) {
            let host = self.face.claimant.host();
            tracing::warn!(session = %id, %host, "{error}; session/list leaves it out");
        }
        let problem = match error {
            adjourn::Error::Store(StoreError::Unreadable { problem, .. }) => problem.clone(),
            error => error.to_string(),
        };
        json!({ "sessionId": id, "error": problem })
    }

    /// Describes a session.
    async fn info(
        &self,
        session: &Session,
        peer: &Peer,
    ) -> Result<Value, (SessionId, adjourn::Error)> {
        let cwd = self.face.cwd(session.id).await.map_err(|error| (session.id, error))?;
        let mut info = json!({
            "sessionId": session.id,
            "cwd": cwd.as_deref().unwrap_or("/"),
            "updatedAt": session.at.to_string(),
        });
        if let Some(title) = session.title() {
            info = with(info, "title", title);
        }
        if session.suspended().is_some() {
            info = with(info, "_meta", meta(session, peer, None));
        }
        Ok(info)
    }
}
