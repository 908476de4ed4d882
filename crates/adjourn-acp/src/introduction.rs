//! How things stand, for a client that comes to see a session without its past: the agent's mode,
//! commands, plan and usage. A replay tells the same, each where it was said.

use adjourn::core::Session;
use adjourn::core::carry::Totals;
use adjourn::driver::Shown;
use adjourn::store::Store;
use serde_json::Value;

use crate::agent_update::{self, Context};
use crate::peer::{Peer, Version};
use crate::rpc::Error;
use crate::session::Attachment;

impl<S: Store> Attachment<S> {
    /// Reads what a client that has seen nothing of the session is to be told of how things stand.
    pub(crate) async fn prepare_introduction(&mut self) -> Result<(), Error> {
        let Some(view) = self.view.take() else { return Ok(()) };
        let prepared = self.standing_updates(view.session()).await;
        self.view = Some(view);
        self.introduction = prepared?;
        Ok(())
    }

    /// Tells how things stand, if that was prepared.
    pub(crate) fn introduce(&mut self) {
        for update in std::mem::take(&mut self.introduction) {
            self.update(&update);
        }
    }

    /// Returns how full the agent of a session has said that its context is.
    pub(crate) async fn context_of(&self, session: &Session) -> Result<Option<Context>, Error> {
        let shown = self.shown_in(session.shown_at.context).await?;
        Ok(Context::of(shown.as_ref()))
    }

    async fn standing_updates(&self, session: &Session) -> Result<Vec<Value>, Error> {
        let mut updates = Vec::new();
        let at = session.shown_at;
        for entry in [at.mode, at.commands, at.plan] {
            let shown = self.shown_in(entry).await?;
            let shown = shown.filter(|shown| !is_answered(&self.peer, session, shown));
            updates
                .extend(shown.and_then(|shown| agent_update::shown(&self.peer, session, &shown)));
        }
        if self.context.is_some() || session.totals != Totals::default() {
            updates.push(agent_update::usage(session, self.context));
        }
        Ok(updates)
    }

    /// Returns what people were shown with an entry of the transcript; nothing if it was erased.
    async fn shown_in(&self, entry: Option<u64>) -> Result<Option<Shown>, Error> {
        let Some(entry) = entry else { return Ok(None) };
        let said = self.session().transcript(entry, 1).await?;
        Ok(said.into_iter().find_map(|(number, said)| said.shown.filter(|_| number == entry)))
    }
}

/// Returns whether the answer that attaches a client says it, as it does of options.
fn is_answered(peer: &Peer, session: &Session, shown: &Shown) -> bool {
    let Shown::Mode(mode) = shown else { return false };
    let mut modes = session.options.iter().filter(|option| option.is_mode());
    peer.version == Version::V2 || modes.any(|option| option.value == *mode)
}
