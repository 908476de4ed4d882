//! `session/status` and `session/list`: what is said of sessions without opening them.

use adjourn_core::event::What;
use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_store::Store;
use adjourn_store::rows::SessionNo;
use serde_json::{Value, json};

use crate::connection::{Connection, absolute, tidy};
use crate::face::StatusWords;
use crate::peer::{EXTENSION, Peer, Version};
use crate::request_permission;
use crate::requests::{List, Named};
use crate::rpc::{Error, NOT_FOUND};
use crate::suspension::SessionStatus;
use crate::update::{meta, with};

/// Sessions on one page of `session/list`.
const PAGE: usize = 50;
/// How many times as many are looked at for one page: where few are wanted, a page has fewer of
/// them, or none, and the next one goes on.
const LOOKS: usize = 20;

/// Why a session is not in a list.
enum Unlisted {
    /// It cannot be read; the others can.
    Unreadable(adjourn_store::Error),
    /// The store fails.
    Failed(Error),
}

impl From<adjourn_store::Error> for Unlisted {
    fn from(error: adjourn_store::Error) -> Self {
        match error.is_of_a_session() {
            true => Self::Unreadable(error),
            false => Self::Failed(error.into()),
        }
    }
}

impl<S: Store> Connection<S> {
    pub(crate) fn status(&self, named: &Named, peer: &Peer) -> Result<Value, Error> {
        let words = match (self.face.options.status, peer.version) {
            (StatusWords::ByVersion, Version::V1) => StatusWords::Live,
            (StatusWords::ByVersion, Version::V2) => StatusWords::Open,
            (words, _) => words,
        };
        let session = match (self.face.find(&named.session_id), words) {
            (Ok(session), _) => session,
            (Err(error), StatusWords::Live) if error.code == NOT_FOUND => {
                return Ok(json!({ "status": SessionStatus::NotFound }));
            }
            (Err(error), _) => return Err(error),
        };
        let over = matches!(session.state, State::Ended(_));
        let live = !over && (self.is_attached(session.id) || self.face.is_driven(&session));
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
        let answer = json!({ "status": status, "_meta": meta(&session, peer, None) });
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

    pub(crate) fn list(&mut self, list: &List, peer: &Peer) -> Result<Value, Error> {
        let before = match &list.cursor {
            Some(cursor) => cursor
                .parse()
                .map_err(|_| Error::invalid("cursor", "not a cursor of this agent"))?,
            None => i64::MAX,
        };
        let wanted = list.cwd.as_deref().map(absolute).transpose()?;
        let mut before = SessionNo(before);
        let (mut sessions, mut unreadable) = (Vec::new(), Vec::new());
        let mut next = None;
        for _ in 0..LOOKS {
            let page = self.face.store.ids_before(before, PAGE)?;
            for (no, id) in &page {
                before = *no;
                match self.info(*id, wanted.as_deref(), peer) {
                    Ok(info) => sessions.extend(info),
                    Err(Unlisted::Unreadable(error)) => unreadable.extend(self.named(*id, &error)),
                    Err(Unlisted::Failed(error)) => return Err(error),
                }
                if sessions.len() == PAGE {
                    break;
                }
            }
            next = Some(before.0.to_string());
            if page.len() < PAGE && sessions.len() < PAGE {
                next = None;
                break;
            }
            if sessions.len() == PAGE {
                break;
            }
        }
        let mut answer = json!({ "sessions": sessions });
        if let Some(next) = next {
            answer = with(answer, "nextCursor", next);
        }
        if !unreadable.is_empty() && peer.opted_in() {
            answer = with(answer, "_meta", json!({ EXTENSION: { "unreadable": unreadable } }));
        }
        Ok(answer)
    }

    /// Describes a session that cannot be read, unless it is another tenant's, and names it in the
    /// log of the process, once for a connection.
    fn named(&mut self, id: SessionId, error: &adjourn_store::Error) -> Option<Value> {
        let founding = self.face.store.founding(id).ok().flatten();
        if let Some(What::SessionCreated(created)) = founding.map(|entry| entry.event.what)
            && created.tenant != self.face.options.tenant
        {
            return None;
        }
        if self.unreadable.insert(id) {
            self.face.notes.tell(&format!("{error}; session/list leaves it out"));
        }
        let problem = match error {
            adjourn_store::Error::Unreadable { problem, .. } => problem.clone(),
            error => error.to_string(),
        };
        Some(json!({ "sessionId": id, "error": problem }))
    }

    /// Describes a session that was prompted and is not over, if it is one of those in `wanted`.
    fn info(
        &self,
        id: SessionId,
        wanted: Option<&str>,
        peer: &Peer,
    ) -> Result<Option<Value>, Unlisted> {
        let Some(session) = self.face.store.session(id)? else { return Ok(None) };
        let over = matches!(session.state, State::Ended(_));
        if over || !session.was_prompted() || session.tenant != self.face.options.tenant {
            return Ok(None);
        }
        let cwd =
            self.face.cwd(session.id).map_err(Unlisted::Failed)?.unwrap_or_else(|| "/".to_owned());
        if wanted.is_some_and(|wanted| tidy(wanted) != tidy(&cwd)) {
            return Ok(None);
        }
        let mut info = json!({
            "sessionId": session.id, "cwd": cwd, "updatedAt": session.at.to_string(),
        });
        if let Some(title) = session.title() {
            info = with(info, "title", title);
        }
        if session.suspended().is_some() {
            info = with(info, "_meta", meta(&session, peer, None));
        }
        Ok(Some(info))
    }
}
