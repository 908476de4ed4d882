//! The runs of a session, as its journal tells them: what a task is made from.
//!
//! A session knows the run that is under way and how the last one ended. Where a run begins and ends
//! in the journal and in the transcript, and what it has asked, is found by folding the journal once.

use std::sync::Arc;

use adjourn::Moment;
use adjourn::core::Session;
use adjourn::core::command::{Question, RunEnd};
use adjourn::core::event::What;
use adjourn::core::id::RunId;
use adjourn::core::session::{Outcome, Wait};
use adjourn::core::time::Timestamp;
use adjourn::telling::ends_words;

use crate::standing::Standing;

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The number of its first entry in the transcript: the prompt.
    pub from: u64,
    /// How far the transcript goes at its end; nothing while it is under way.
    pub to: Option<u64>,
    /// What the run is doing, or how it waits.
    pub standing: Standing,
    /// The time at which it came to that.
    pub since: Timestamp,
    /// The outcome of the run, once it is over.
    pub end: Option<RunEnd>,
    /// The revision of the last change.
    pub generation: u64,
    /// What it has asked, and how far the transcript went when it did.
    pub asked: Vec<(u64, Question)>,
    /// How far the transcript went when its agent last fell silent: a message that began before that
    /// and has no end was broken off.
    pub silent: u64,
    /// The ids of the messages that began it and went on with it, as the journal has them, and the
    /// revisions that took them.
    pub taken: Vec<(String, u64)>,
}

impl Run {
    /// Returns the revision at which a message began it or went on with it, by the id that the journal
    /// has of it; nothing if none did.
    pub fn took(&self, message: &str) -> Option<u64> {
        self.taken.iter().find(|(taken, _)| taken == message).map(|(_, revision)| *revision)
    }
}

/// A session, and the runs that it has had, as of one revision.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    session: Option<Arc<Session>>,
    runs: Vec<Run>,
}

impl Runs {
    /// Returns the session as far as it was folded.
    pub fn session(&self) -> Option<&Session> {
        self.session.as_deref()
    }

    /// Makes the run that is under way, and the last one, of a session as it is; nothing is folded, so
    /// that nothing is known of where they began or what they have asked.
    pub fn now(session: &Arc<Session>) -> Self {
        let mut runs = Self::default();
        runs.jump(session);
        runs
    }

    /// Returns its runs, the first one first.
    pub fn all(&self) -> &[Run] {
        &self.runs
    }

    /// Returns a run.
    pub fn get(&self, id: RunId) -> Option<&Run> {
        self.runs.iter().rev().find(|run| run.id == id)
    }

    /// Returns the run that took a message, and the revision at which the run took it. The message is
    /// named by the id that the journal has of it.
    pub fn that_took(&self, message: &str) -> Option<(RunId, u64)> {
        self.runs.iter().rev().find_map(|run| Some((run.id, run.took(message)?)))
    }

    /// Returns how far the journal was folded.
    pub fn revision(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.revision)
    }

    /// Goes on with a session whose journal does not reach back to its beginning, or has a gap.
    pub fn jump(&mut self, session: &Arc<Session>) {
        self.go_on_with(session);
        if let Some(last) = &session.last_run
            && self.get(last.id).is_none_or(|run| run.end.is_none())
        {
            if self.get(last.id).is_none() {
                self.begin(last.id, 0, last.at);
            }
            let end =
                RunEnd { outcome: last.outcome, error: last.error.clone(), ends_session: false };
            self.end(last.id, end, session.transcript.length, last.at);
            self.touch(last.id, session.revision);
        }
    }

    /// Goes on with a session and the run that is under way in it.
    fn go_on_with(&mut self, session: &Arc<Session>) {
        if let Some(run) = session.run()
            && self.get(run.id).is_none()
        {
            self.begin(run.id, run.from, run.started_at);
        }
        self.session = Some(Arc::clone(session));
        self.settle(session.revision, session.at);
    }

    /// Takes what happened next.
    pub fn apply(&mut self, moment: &Moment) {
        let at = moment.event.at;
        match &mut self.session {
            Some(session) => Arc::make_mut(session).evolve(&moment.event),
            None => self.session = Session::born(&moment.event).map(Arc::new),
        }
        let length = self.session.as_ref().map_or(0, |session| session.transcript.length);
        if let (true, Some(run)) = (ends_words(&moment.event.what), self.runs.last_mut()) {
            run.silent = length;
        }
        match &moment.event.what {
            What::RunStarted(started) => {
                self.begin(started.run, started.first_entry(), at);
                self.take(started.message_id.as_deref(), moment.revision);
            }
            What::Resumed(resumed) => self.take(resumed.message_id.as_deref(), moment.revision),
            // The run goes on under its own id, and what it asks is still to be answered. Those that
            // were over before are tasks of where it came from.
            What::SessionImported(_) => {
                if let Some(session) = self.session.clone() {
                    self.go_on_with(&session);
                    self.ask_again(&session);
                }
            }
            What::Suspended(suspended) => {
                let pause = &suspended.park.pause;
                if let (Wait::Question(question), Some(run)) = (&pause.wait, self.runs.last_mut()) {
                    run.asked.push((length, question.clone()));
                }
            }
            What::RunEnded(ended) => {
                self.touch(ended.run, moment.revision);
                self.end(ended.run, ended.end.clone(), length, at);
            }
            What::SessionEnded(_) => {
                // A run that was under way ends with its session.
                let open = self.runs.last().filter(|run| run.end.is_none()).map(|run| run.id);
                if let Some(run) = open {
                    let end =
                        RunEnd { outcome: Outcome::Canceled, error: None, ends_session: true };
                    self.touch(run, moment.revision);
                    self.end(run, end, length, at);
                }
            }
            _ => {}
        }
        self.settle(moment.revision, at);
    }

    fn begin(&mut self, id: RunId, from: u64, since: Timestamp) {
        self.runs.push(Run {
            id,
            from,
            to: None,
            standing: Standing::Working,
            since,
            end: None,
            generation: 0,
            asked: Vec::new(),
            silent: 0,
            taken: Vec::new(),
        });
    }

    fn take(&mut self, message: Option<&str>, revision: u64) {
        if let (Some(message), Some(run)) = (message, self.runs.last_mut()) {
            run.taken.push((message.to_owned(), revision));
        }
    }

    /// Takes note of the question that a session came with.
    fn ask_again(&mut self, session: &Session) {
        let wait = session.suspended().map(|suspended| &suspended.park.pause.wait);
        if let (Some(Wait::Question(question)), Some(run)) = (wait, self.runs.last_mut()) {
            run.asked.push((session.transcript.length, question.clone()));
        }
    }

    fn touch(&mut self, id: RunId, revision: u64) {
        if let Some(run) = self.runs.iter_mut().rev().find(|run| run.id == id) {
            run.generation = revision;
        }
    }

    fn end(&mut self, id: RunId, end: RunEnd, length: u64, at: Timestamp) {
        if let Some(run) = self.runs.iter_mut().rev().find(|run| run.id == id) {
            run.standing = Standing::Over(end.outcome);
            (run.since, run.to, run.end) = (at, Some(length), Some(end));
        }
    }

    /// Takes note of where the run that is under way stands.
    fn settle(&mut self, revision: u64, at: Timestamp) {
        let Some(session) = &self.session else { return };
        let Some(under_way) = session.run().map(|run| run.id) else { return };
        let Some(run) = self.runs.iter_mut().rev().find(|run| run.id == under_way) else { return };
        run.generation = revision;
        if let Some(standing) = Standing::of(session, under_way)
            && standing != run.standing
        {
            (run.standing, run.since) = (standing, at);
        }
    }
}
