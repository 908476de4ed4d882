//! `session/resume` and `session/load`: a client comes to see a session, or to wake it, or both.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use adjourn::core::Session;
use adjourn::core::carry::AddBudget;
use adjourn::core::event::What;
use adjourn::core::facts::Answer;
use adjourn::core::id::Handle;
use adjourn::driver::{ClientAbilities, Message};
use adjourn::store::{Done, Store};
use serde_json::{Value, json};

use crate::options;
use crate::peer::{EXTENSION, Profile, Version};
use crate::refusal::ALREADY_RESUMED;
use crate::requests::{Replay, Wish};
use crate::rpc::{Error, Id};
use crate::session::{Attachment, WaitingResume};
use crate::suspension::ResumedUpdate;
use crate::update::meta_up_to;

impl<S: Store> Attachment<S> {
    /// Lets a client see the session, and wakes it if that is asked for; `written` is how much had been
    /// written to the client when it asked.
    pub(crate) async fn resume(
        &mut self,
        id: &Id,
        wish: &Wish,
        load: bool,
        written: u64,
    ) -> Result<(), Error> {
        let budget = wish.budget()?;
        let handle = match &wish.fields.handle {
            Some(name) => Some(self.handle(name)?),
            None => None,
        };
        self.watch().await?;
        // What happened before is told first, to a client that saw the session already.
        self.catch_up().await?;
        // More of a budget is for the question that the client saw. A key says by itself what is meant,
        // and a retry must not differ from the first try.
        let handle = match handle {
            None if budget.is_some() && wish.fields.idempotency_key.is_none() => {
                self.question.as_ref().and_then(|shown| shown.seen_by(written))
            }
            given => given,
        };
        let was_attached = self.attached.load(Ordering::Relaxed);
        // What came to nothing comes to nothing again.
        let key = wish.fields.idempotency_key.as_ref();
        let repeated = key.is_some() && key == self.idle_key.as_ref();
        let implied = !load
            && (self.peer.profile == Profile::Rfc || was_attached)
            && !(was_attached && (repeated || wish.only_replays()));
        let given = match wish.wakes() || implied {
            true => self.wake(wish, handle, budget).await?,
            false => None,
        };
        let Some(view) = &self.view else { return Ok(()) };
        let seen = view.session().revision + 1;
        // A replay ends where the live updates begin: where the client has been, or else where the
        // wake is, or else where the session is now.
        let until = match &given {
            Some(done) if !was_attached && !done.events.is_empty() => *revisions(done).start(),
            _ => seen,
        };
        let woke = given.as_ref().is_some_and(|done| !done.events.is_empty());
        if let Replay::From(revision) = wish.replay {
            // What a wake has done is not taken back.
            self.replay(Some(id).filter(|_| !woke), revision, until).await?;
        }
        let comes_new = !was_attached && wish.replay == Replay::Nothing;
        if comes_new {
            self.prepare_introduction().await?;
        }
        match given {
            Some(done) if !done.events.is_empty() => {
                self.has_moved(&done);
                let at = *revisions(&done).start();
                self.attach(at);
                // Of what the commit has done nothing is told before the answer.
                let answer = self.standing(at - 1, &done.session, resumed(&done));
                self.resumes.push(WaitingResume { id: id.clone(), at, answer });
            }
            Some(done) => self.answer_attach(id, resumed(&done)),
            None => {
                self.idle_key = wish.fields.idempotency_key.clone();
                self.answer_attach(id, Value::Null);
            }
        }
        if comes_new && !woke {
            self.introduce_turn().await;
        }
        Ok(())
    }

    /// Wakes the session; nothing if there is nothing to wake and the request named no suspension.
    async fn wake(
        &mut self,
        wish: &Wish,
        handle: Option<Handle>,
        add_budget: Option<AddBudget>,
    ) -> Result<Option<Done>, Error> {
        let said = wish.fields.input.clone().filter(|input| !input.is_null());
        let said = said.map(Message::user_value);
        let has_input = said.is_some();
        let mut resume = self.session().resume().handle(handle);
        if let Some(said) = said {
            resume = resume.input(said);
        }
        if wish.fields.continue_transcript == Some(false) {
            resume = resume.fresh();
        }
        if let Some(key) = &wish.fields.idempotency_key {
            resume = resume.key(key);
        }
        if let Some(added) = add_budget {
            resume = resume.add_budget(added);
        }
        // It can be asked for permissions already: without that, no host would take the session.
        let _viewer = self.face.attend(self.id, ClientAbilities::default());
        match resume.await.map_err(Error::from) {
            Ok(woken) => Ok(Some(woken.commit)),
            // A request that only wants the session to go on succeeds if nothing has to be woken.
            Err(error) if handle.is_none() && !has_input && forgiven(&error, wish) => Ok(None),
            // What is on its way to rest cannot be resumed any more than what runs.
            Err(error) if error.is("TASK_BUSY") => Err(Error { code: ALREADY_RESUMED, ..error }),
            Err(error) => Err(error),
        }
    }

    /// Finds the suspension that a client means, by our name for it or by its own.
    fn handle(&self, name: &str) -> Result<Handle, Error> {
        if let Some(handle) = self.aliases.get(name) {
            return Ok(*handle);
        }
        name.parse().map_err(|_| {
            let data = json!({ "reason": "SUSPENSION_HANDLE_MISMATCH", "handle": name });
            let message = format!("{name:?} names no suspension of this session");
            Error::new(crate::refusal::HANDLE_MISMATCH, message).with(data)
        })
    }

    /// Answers that the session is attached, and shows where it stands.
    fn answer_attach(&mut self, id: &Id, resumed: Value) {
        let Some(view) = &self.view else { return };
        let revision = view.session().revision;
        let answer = self.standing(revision, view.session(), resumed);
        if self.peer.version == Version::V2 {
            let foreground = self.foreground_of(view.session());
            let update = foreground.update(view.session(), &self.peer, revision);
            self.update(&update);
            self.foreground = Some(foreground);
        }
        self.lines.respond(id, &Ok(answer));
        let now = self.foreground.take();
        self.attach(revision + 1);
        self.foreground = now;
        self.tell_title();
        self.introduce();
        self.introduce_parks();
        self.show_open_question();
    }

    /// Returns the answer to a request that attached or resumed: where the session stands, and what
    /// the resume did, in `_meta`.
    fn standing(&self, told: u64, session: &Session, resumed: Value) -> Value {
        let mut meta = meta_up_to(told, session, &self.peer, None);
        if let (Some(Value::Object(status)), false) = (meta.get_mut(EXTENSION), resumed.is_null()) {
            status.insert("resumed".to_owned(), resumed);
        }
        let mut answer = options::fields(self.peer.version, session);
        answer.insert("_meta".to_owned(), Value::Object(meta));
        Value::Object(answer)
    }
}

/// Returns whether a refusal does not matter to a request that asked for nothing in particular.
fn forgiven(error: &Error, wish: &Wish) -> bool {
    let at_work = ["TASK_NOT_PAUSED", "TASK_BUSY", "ENDED"].iter().any(|word| error.is(word));
    // Where every resume wakes, there would be no other way to see the session.
    at_work
        || (!wish.wakes() && error.is("HANDLE_REQUIRED"))
        || (!wish.wakes() && error.is("EMPTY_REPLY"))
}

/// Returns the revisions that a commit added.
pub(crate) fn revisions(done: &Done) -> RangeInclusive<u64> {
    let last = done.session.revision;
    last + 1 - done.events.len() as u64..=last
}

/// Returns what a resume did, the first time if it was not the first.
fn resumed(done: &Done) -> Value {
    let first = done.events.iter().find_map(|event| match &event.what {
        What::Resumed(resumed) => Some(&resumed.resumption),
        What::HoldLifted(lifted) => Some(&lifted.resumption),
        _ => None,
    });
    let first = first.or(match &done.answered {
        Some(Answer::Resumed(first)) => Some(first),
        Some(Answer::Withdrawn { .. }) | None => None,
    });
    let Some(first) = first else { return Value::Null };
    let mut resumed = serde_json::to_value(ResumedUpdate::of(first)).unwrap_or_default();
    // It stands in an answer, not in an update.
    if let Some(fields) = resumed.as_object_mut() {
        fields.shift_remove("sessionUpdate");
    }
    resumed
}
