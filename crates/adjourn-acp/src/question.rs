//! Questions to a person: as a form where the client can show one, or else as words.

use adjourn_core::pause::Parked;
use adjourn_core::session::{Phase, Wait};
use adjourn_store::Store;
use serde_json::json;

use crate::session::{Attachment, Ours};
use crate::update;

impl<S: Store> Attachment<S> {
    /// Nobody is asked any more: the form need not be answered.
    pub(crate) fn forget_question(&mut self) {
        let Some(handle) = self.question.take() else { return };
        let answered = Ours::Question(handle);
        let open: Vec<_> = self
            .ours
            .iter()
            .filter(|(_, ours)| **ours == answered)
            .map(|(id, _)| id.clone())
            .collect();
        for id in open {
            self.call_off(&id);
        }
    }

    /// Shows a question that has just come up, as words.
    pub(crate) fn question_as_words(&mut self, before: Phase) {
        if before != Phase::Asking && self.is_asking() && !self.peer.forms {
            self.show_open_question();
        }
    }

    /// Shows a question that has just come up, as a form.
    pub(crate) fn question_as_form(&mut self, before: Phase) {
        let lifted = before == Phase::Suspended;
        if before != Phase::Asking && self.is_asking() && (self.peer.forms || lifted) {
            self.show_open_question();
        }
    }

    /// Shows the question that is open, unless this client has seen it.
    pub(crate) fn show_open_question(&mut self) {
        let Some(suspended) = self.view.as_ref().and_then(|view| view.session.suspended()) else {
            return;
        };
        let parked = suspended.park.clone();
        let Wait::Question(question) = &parked.pause.wait else { return };
        let handle = parked.pause.handle;
        let seen = match self.peer.forms {
            true => self.ours.values().any(|ours| *ours == Ours::Question(handle)),
            false => self.question == Some(handle),
        };
        if suspended.hold.is_some() || seen {
            return;
        }
        self.question = Some(handle);
        if !self.peer.forms {
            return self.question_words(&parked);
        }
        let mut answer = json!({ "type": "string", "title": question.question });
        if !question.choices.is_empty() {
            answer = update::with(answer, "enum", question.choices.clone());
        }
        let message = match &question.context {
            Some(context) => format!("{}\n\n{context}", question.question),
            None => question.question.clone(),
        };
        let id = self.number();
        self.ours.insert(id.clone(), Ours::Question(handle));
        self.lines.request(
            &id,
            "elicitation/create",
            &json!({
                "mode": "form", "sessionId": self.id, "message": message,
                "requestedSchema": {
                    "type": "object", "properties": { "answer": answer }, "required": ["answer"],
                },
            }),
        );
    }

    pub(crate) fn question_words(&mut self, parked: &Parked) {
        let Wait::Question(question) = &parked.pause.wait else { return };
        let mut words = question.question.clone();
        if let Some(context) = &question.context {
            words += &format!("\n\n{context}");
        }
        for choice in &question.choices {
            words += &format!("\n- {choice}");
        }
        let id = format!("question-{}", parked.pause.handle);
        self.update(&update::agent_message(self.peer.version, &id, &words, false));
    }
}
