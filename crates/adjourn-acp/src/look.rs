//! `session/status` and `session/list`: what is said of sessions without opening them.

use adjourn_core::Session;
use adjourn_core::session::State;
use adjourn_store::Store;
use adjourn_store::rows::SessionNo;
use serde_json::{Value, json};

use crate::connection::{Connection, plain};
use crate::face::StatusWords;
use crate::peer::{Peer, Version};
use crate::permission;
use crate::requests::{List, Named};
use crate::rpc::{Error, NOT_FOUND};
use crate::suspension::SessionStatus;
use crate::update::{meta, with};

/// Sessions on one page of `session/list`.
const PAGE: usize = 50;

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
            (_, false) if session.suspended().is_some() => SessionStatus::Suspended,
            (_, false) => SessionStatus::Saved,
        };
        let answer = json!({ "status": status, "_meta": meta(&session, peer, None) });
        Ok(match (status, peer.version) {
            (SessionStatus::Open, Version::V2) => {
                let asks =
                    self.is_attached(session.id) && permission::is_asked(&self.face.desk, &session);
                let foreground = permission::foreground(&session, asks);
                with(answer, "state", foreground.state(&session, peer))
            }
            _ => answer,
        })
    }

    pub(crate) fn list(&self, list: &List, peer: &Peer) -> Result<Value, Error> {
        let after = match &list.cursor {
            Some(cursor) => cursor
                .parse()
                .map_err(|_| Error::invalid("cursor", "not a cursor of this agent"))?,
            None => 0,
        };
        let mut after = SessionNo(after);
        let mut sessions = Vec::new();
        loop {
            let page = self.face.store.sessions(after, PAGE)?;
            let Some((last, _)) = page.last() else {
                return Ok(json!({ "sessions": sessions }));
            };
            after = *last;
            // One that cannot be read can be neither loaded nor described.
            for session in page.iter().filter_map(|(_, listed)| listed.as_ref().ok()) {
                if let Some(info) = self.info(session, list, peer)? {
                    sessions.push(info);
                }
            }
            if sessions.len() >= PAGE {
                return Ok(json!({ "sessions": sessions, "nextCursor": after.0.to_string() }));
            }
        }
    }

    /// Describes a session that is not over, if it is one of those that are wanted.
    fn info(&self, session: &Session, list: &List, peer: &Peer) -> Result<Option<Value>, Error> {
        if matches!(session.state, State::Ended(_)) || session.tenant != self.face.options.tenant {
            return Ok(None);
        }
        let cwd = self.face.cwd(session.id)?.unwrap_or_else(|| "/".to_owned());
        if list.cwd.as_ref().is_some_and(|wanted| plain(wanted) != plain(&cwd)) {
            return Ok(None);
        }
        let mut info = json!({
            "sessionId": session.id, "cwd": cwd, "updatedAt": session.at.to_string(),
        });
        let title = session.memory.first_prompt.lines().next().unwrap_or_default();
        if !title.is_empty() {
            info = with(info, "title", title);
        }
        if session.suspended().is_some() {
            info = with(info, "_meta", meta(session, peer, None));
        }
        Ok(Some(info))
    }
}
