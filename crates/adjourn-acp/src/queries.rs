//! `session/status` and `session/list`: what is said of sessions without opening them.

use adjourn_core::id::SessionId;
use adjourn_core::session::State;
use adjourn_store::Store;
use adjourn_store::rows::SessionNo;
use serde_json::{Value, json};

use crate::connection::{Connection, absolute, tidy};
use crate::face::StatusWords;
use crate::peer::{Peer, Version};
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

    pub(crate) fn list(&self, list: &List, peer: &Peer) -> Result<Value, Error> {
        let before = match &list.cursor {
            Some(cursor) => cursor
                .parse()
                .map_err(|_| Error::invalid("cursor", "not a cursor of this agent"))?,
            None => i64::MAX,
        };
        let wanted = list.cwd.as_deref().map(absolute).transpose()?;
        let mut before = SessionNo(before);
        let mut sessions = Vec::new();
        for _ in 0..LOOKS {
            let page = self.face.store.ids_before(before, PAGE)?;
            for (no, id) in &page {
                before = *no;
                sessions.extend(self.info(*id, wanted.as_deref(), peer)?);
                if sessions.len() == PAGE {
                    break;
                }
            }
            if page.len() < PAGE && sessions.len() < PAGE {
                return Ok(json!({ "sessions": sessions }));
            }
            if sessions.len() == PAGE {
                break;
            }
        }
        Ok(json!({ "sessions": sessions, "nextCursor": before.0.to_string() }))
    }

    /// Describes a session that was prompted and is not over, if it is one of those in `wanted`.
    fn info(
        &self,
        id: SessionId,
        wanted: Option<&str>,
        peer: &Peer,
    ) -> Result<Option<Value>, Error> {
        let session = match self.face.store.session(id) {
            Ok(Some(session)) => session,
            Ok(None) => return Ok(None),
            // One that cannot be read can be neither loaded nor described.
            Err(error) if error.is_of_a_session() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let over = matches!(session.state, State::Ended(_));
        if over || !session.was_prompted() || session.tenant != self.face.options.tenant {
            return Ok(None);
        }
        let cwd = self.face.cwd(session.id)?.unwrap_or_else(|| "/".to_owned());
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
