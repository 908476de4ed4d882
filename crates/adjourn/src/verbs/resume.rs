//! Resumes: what ends a pause.

use std::future::IntoFuture;

use adjourn_core::Command;
use adjourn_core::actor::Actor;
use adjourn_core::carry::AddBudget;
use adjourn_core::command::Resume;
use adjourn_core::event::{Event, What};
use adjourn_core::facts::{Answer, SpanLinks};
use adjourn_core::id::{Handle, RunId};
use adjourn_core::session::Resumption;
use adjourn_driver::Message;
use adjourn_store::{Done, Request, Spares, Sqlite, Store};

use super::unheard_of;
use crate::committing::Committing;
use crate::error::Error;
use crate::session_ref::SessionRef;

/// A resume that is about to be asked for; see [`SessionRef::resume`].
///
/// Awaited, it resolves at the commit that ends the pause. A host of this process that can run the
/// session claims it with the same commit.
///
/// # Cancel safety
/// That of [`Committing`]: dropped after it was polled, the session is resumed all the same. A
/// caller that does not know whether it was asks again under the same
/// [key](ResumeBuilder::key), and is told what came of the first time.
#[must_use = "nothing happens before it is awaited"]
pub struct ResumeBuilder<S: Store = Sqlite> {
    pub(crate) session: SessionRef<S>,
    by: Actor,
    resume: Resume,
    message: Option<Message>,
    spans: SpanLinks,
    run: Option<RunId>,
    spares: Spares,
}

/// What a resume did.
#[derive(Debug, Clone)]
pub struct Woken {
    /// The pause that it ended, or the pending suspend that it took back.
    pub answer: Answer,
    /// Whether this is the answer of an earlier resume with the same key: nothing has happened
    /// since.
    pub repeated: bool,
    /// The commit that did it; without events if the answer is an earlier one.
    pub commit: Done,
}

impl Woken {
    /// Returns the pause that it ended, if it ended one.
    pub const fn resumption(&self) -> Option<&Resumption> {
        match &self.answer {
            Answer::Resumed(resumption) => Some(resumption),
            Answer::Withdrawn { .. } => None,
        }
    }
}

impl<S: Store> ResumeBuilder<S> {
    pub(crate) fn new(session: SessionRef<S>, resume: Resume) -> Self {
        let (by, spans) = (session.by(), SpanLinks { prior: None, pipeline: None });
        let spares = Spares::Nothing;
        Self { session, by, resume, message: None, spans, run: None, spares }
    }

    /// Names the suspension that is meant. Without it, the one that is in force is.
    pub fn handle(mut self, handle: impl Into<Option<Handle>>) -> Self {
        self.resume.handle = handle.into();
        self
    }

    /// Gives the agent something to go on with.
    pub fn input(mut self, message: impl Into<Message>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Makes a retry harmless: the same key is answered as the first time.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.resume.idempotency_key = Some(key.into());
        self
    }

    /// Gives the input an id: the same one is taken once, however often it is sent.
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        self.resume.message_id = Some(id.into());
        self
    }

    /// Lets the agent go on with a digest of what was said before, and not with all of it.
    pub const fn fresh(mut self) -> Self {
        self.resume.continue_transcript = false;
        self
    }

    /// Adds to what the session may use.
    pub const fn add_budget(mut self, budget: AddBudget) -> Self {
        self.resume.add_budget = Some(budget);
        self
    }

    /// Names the traces it belongs to.
    pub fn spans(mut self, spans: SpanLinks) -> Self {
        self.spans = spans;
        self
    }

    /// Names the run that is meant: if another is under way by then, or none, it is refused. A
    /// [key](ResumeBuilder::key) that was answered for this run is answered again all the same; one
    /// that was answered for another run is refused.
    pub const fn of_run(mut self, run: RunId) -> Self {
        self.run = Some(run);
        self
    }

    /// Means a pause and no question: one that is asked by then is left open, and the resume is
    /// refused.
    pub const fn of_pause(mut self) -> Self {
        self.spares = Spares::Questions;
        self
    }

    /// Names who asks for it, as the journal has it.
    pub fn by(mut self, by: Actor) -> Self {
        self.by = by;
        self
    }

    async fn commit(self) -> Result<Woken, Error> {
        let Self { session, by, mut resume, message, spans, run, spares } = self;
        resume.input = message.as_ref().map(Message::content);
        let mut request = Request::new(session.id(), by, Command::Resume(resume))
            .saying(message.iter().map(Message::encode).collect())
            .of_run(run)
            .sparing(spares);
        request.spans = spans;
        let commit = session.adjourn().give(request).await?;
        let (answer, repeated) = match commit.events.iter().find_map(answer) {
            Some(answer) => (Some(answer), false),
            None => (commit.answered.clone(), true),
        };
        let answer = answer.ok_or_else(|| unheard_of(&commit, "a resume ended no pause"))?;
        Ok(Woken { answer, repeated, commit })
    }
}

/// Returns what a resume is answered, if an event says so.
fn answer(event: &Event) -> Option<Answer> {
    match &event.what {
        What::Resumed(resumed) => Some(Answer::Resumed(resumed.resumption.clone())),
        What::HoldLifted(lifted) => Some(Answer::Resumed(lifted.resumption.clone())),
        What::SuspendWithdrawn(withdrawn) => {
            Some(Answer::Withdrawn { handle: withdrawn.handle, at: event.at })
        }
        _ => None,
    }
}

impl<S: Store> IntoFuture for ResumeBuilder<S> {
    type Output = Result<Woken, Error>;
    type IntoFuture = Committing<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Committing::new(self.commit())
    }
}
