//! `session/await_resumption`: when a client need not answer it any more, and the names that
//! clients give to suspensions by their answers.

use adjourn::core::id::Handle;
use adjourn::store::Store;

use crate::session::{Attachment, Ours};

/// How long a client's name for a suspension may be; our own are shorter by far.
const ALIAS_BYTES: usize = 1024;

impl<S: Store> Attachment<S> {
    /// Takes back what was asked about a wait that is over; a late answer would name nothing.
    pub(crate) fn forget_await(&mut self) {
        let Some(view) = &self.view else { return };
        let waits = view.session().suspended().map(|suspended| suspended.park.pause.handle);
        let over = self.ours.iter().filter_map(|(id, ours)| match ours {
            Ours::Await(handle) if Some(*handle) != waits => Some(id.clone()),
            _ => None,
        });
        for id in over.collect::<Vec<_>>() {
            self.call_off(&id);
        }
    }

    /// Takes a client's name for a suspension.
    pub(crate) fn alias(&mut self, alias: String, handle: Handle) {
        let Some(view) = &self.view else { return };
        // A name of ours cannot be given to another suspension.
        if alias.len() > ALIAS_BYTES || alias.parse::<Handle>().is_ok() {
            return;
        }
        // A suspension that is over can be named as long as the session knows what became of it.
        let past = &view.session().past;
        self.aliases.retain(|_, named| past.iter().any(|past| past.handle == *named));
        self.aliases.insert(alias, handle);
    }
}
