//! Questions to a person: as a message always, and as a form where the client can show one.
//!
//! A form can be dismissed; the question stays open, and the message says how it stands. The next
//! time the client attaches it is shown the form again.

use std::sync::Arc;

use adjourn::core::command::Question;
use adjourn::core::id::Handle;
use adjourn::core::limits::INPUT_BYTES;
use adjourn::core::pause::Parked;
use adjourn::core::session::{Phase, Wait};
use adjourn::driver::Message;
use adjourn::store::Store;
use serde_json::{Value, json};

use crate::outbox::Mark;
use crate::rpc::{Error, Id};
use crate::session::{Attachment, Ours, View};
use crate::update;

/// What is wrong with an answer that was not even read.
pub(crate) const UNREADABLE: &str = "it is too long, or nested too deeply, to be read";

/// A question that this client was shown.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) handle: Handle,
    /// Marks the message that shows it.
    mark: Arc<Mark>,
}

impl Shown {
    /// Returns the question if it had been written when the client sent something; `written` is how
    /// much had been written by then.
    pub(crate) fn seen_by(&self, written: u64) -> Option<Handle> {
        self.mark.is_within(written).then_some(self.handle)
    }
}

impl<S: Store> Attachment<S> {
    /// Takes the form back: the question is not open any more.
    pub(crate) fn forget_question(&mut self) {
        let Some(Shown { handle, .. }) = self.question.take() else { return };
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

    /// Shows a question that has just come up, as a message: before the answer to the prompt that
    /// brought it up.
    pub(crate) fn question_as_message(&mut self, before: Phase) {
        if before != Phase::Asking
            && let Some(parked) = self.open_question()
        {
            self.question_message(&parked);
        }
    }

    /// Shows a question that has come up with this commit, as a form if the client has those.
    pub(crate) fn question_as_form(&mut self) {
        let began = self.view.as_ref().map(|view| view.began);
        if began != Some(Phase::Asking) {
            self.show_open_question();
        }
    }

    /// Shows the question that is open: the message unless this client was shown it, and the form
    /// unless it has it.
    pub(crate) fn show_open_question(&mut self) {
        let Some(parked) = self.open_question() else { return };
        let handle = parked.pause.handle;
        if self.question.as_ref().is_none_or(|shown| shown.handle != handle) {
            self.question_message(&parked);
        }
        let has_form = self.ours.values().any(|ours| *ours == Ours::Question(handle));
        if self.peer.abilities.forms && !has_form {
            self.question_form(&parked);
        }
    }

    /// Takes the answer to a form.
    pub(crate) async fn question_answered(&mut self, id: &Id, handle: Handle, result: &Value) {
        let accepted = result.get("action").is_some_and(|action| action == "accept");
        let answer = result.pointer("/content/answer").filter(|_| accepted);
        let Some(answer) = answer else { return };
        let said = Message::user_value(answer.clone());
        let answered = self.session().resume().handle(handle).input(said).await;
        match answered.map_err(Error::from) {
            Ok(woken) => self.has_moved(&woken.commit),
            // This was no answer, and it is asked again.
            Err(error) if error.is("EMPTY_REPLY") => self.show_open_question(),
            // If another answer came first, it holds, and this one is not missed.
            Err(error) => self.answer_not_taken(id, handle, &error.message).await,
        }
    }

    /// Says that the answer to a form was not taken, if the question is still open. An answer
    /// cannot be answered with an error, so that this is a message; the form is not shown again
    /// before the next attach, because a client that answers by itself would answer as before.
    pub(crate) async fn answer_not_taken(&mut self, id: &Id, handle: Handle, why: &str) {
        let session = self.session().load().await.ok();
        let suspended = session.as_ref().and_then(|session| session.suspended());
        if suspended.is_none_or(|suspended| suspended.park.pause.handle != handle) {
            return;
        }
        let words = format!(
            "Your answer was not taken: {why}. The question is still open: send an answer of at \
             most {} MiB as a message.",
            INPUT_BYTES >> 20
        );
        self.say(format!("not-taken-{}", id.as_json()), &words);
    }

    /// Adds the question to a refusal that has its cause in it, for clients that show only that.
    pub(crate) async fn with_question(&self, error: Error) -> Error {
        let asked = self.session().load().await.ok();
        let asked = asked.as_ref().and_then(|session| session.suspended());
        let asked = asked.map(|suspended| &suspended.park.pause.wait);
        match asked {
            Some(Wait::Question(question)) => error.saying(&not_taken(question)),
            Some(Wait::Open) | None => error,
        }
    }

    /// Returns the question that is open, if there is one and nothing lies over it.
    fn open_question(&self) -> Option<Parked> {
        let session = self.view.as_ref().map(View::session)?;
        let asks = session.phase() == Phase::Asking;
        session.suspended().filter(|_| asks).map(|suspended| suspended.park.clone())
    }

    fn question_form(&mut self, parked: &Parked) {
        let Wait::Question(question) = &parked.pause.wait else { return };
        let mut answer = json!({ "type": "string", "title": question.question });
        if !question.choices.is_empty() {
            answer = update::with(answer, "enum", question.choices.clone());
        }
        let message = match &question.context {
            Some(context) => format!("{}\n\n{context}", question.question),
            None => question.question.clone(),
        };
        let id = self.number();
        self.ours.insert(id.clone(), Ours::Question(parked.pause.handle));
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

    /// Shows a question as a message; a prompt that the client sends after it answers it.
    pub(crate) fn question_message(&mut self, parked: &Parked) {
        let Wait::Question(question) = &parked.pause.wait else { return };
        let mut words = question.question.clone();
        if let Some(context) = &question.context {
            words += &format!("\n\n{context}");
        }
        for choice in &question.choices {
            words += &format!("\n- {choice}");
        }
        let handle = parked.pause.handle;
        self.say(format!("question-{handle}"), &words);
        // A later question of the same batch marks all that goes before it.
        let marked = self.mark.get_or_insert_default();
        marked.end = self.lines.len();
        let mark = Arc::clone(&marked.mark);
        self.question = Some(Shown { handle, mark });
    }
}

/// Says that a message was not taken as the answer to a question.
pub(crate) fn not_taken(question: &Question) -> String {
    let mut asked = question.question.clone();
    if !question.choices.is_empty() {
        asked += &format!(" ({}).", question.choices.join(", "));
    } else if !asked.ends_with(['?', '.', '!']) {
        asked.push('.');
    }
    format!("The agent has asked: {asked} Your message was not taken; send your answer.")
}
