//! What a session is called: told once, and whenever it changes.

use adjourn::core::Session;
use adjourn::core::event::{Event, What};
use adjourn::store::Store;
use serde_json::json;

use crate::session::Attachment;

impl<S: Store> Attachment<S> {
    /// Tells the title of the session as it is, unless the client knows it.
    pub(crate) fn tell_title(&mut self) {
        let Some(title) = self.view.as_ref().and_then(|view| view.session().title()) else {
            return;
        };
        if self.title.as_ref() != Some(&title) {
            self.update(&json!({ "sessionUpdate": "session_info_update", "title": title }));
            self.title = Some(title);
        }
    }
}

/// Returns whether an event may give a session another title; `before` is the session as the event
/// finds it.
pub fn may_change(before: &Session, event: &Event) -> bool {
    match &event.what {
        What::RunStarted(_) => before.memory.first_prompt.is_empty(),
        _ => event.notes().is_some_and(|notes| notes.title.is_some()),
    }
}
