//! The runs of a session, as its journal tells them: what a task is made from.
//!
//! A session knows the run that is under way and how the last one ended. Where a run begins and ends
//! in the journal and in the transcript, and what it has asked, is found by folding the journal once.

use std::sync::Arc;

use adjourn::Moment;
use adjourn::core::Session;
use adjourn::core::command::{Question, RunEnd};
use adjourn::core::event::What;
use adjourn::core::id::{RunId, SessionId};
use adjourn::core::session::{Initiator, Outcome, Wait};
use adjourn::core::time::Timestamp;
use adjourn::driver::{Message as Entry, Role};
use adjourn::telling::{ends_words, message_id};

use crate::message::WordsMark;
use crate::standing::Standing;

/// More than an export adds to the journal that it ends: tasks that go on elsewhere are counted on from
/// behind that.
const EXPORT: u64 = 8;

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
    /// The messages of its agent, by id, that have no end yet.
    open: Vec<String>,
    /// What it has been through. It grows with each wait, and is shared by all who know the run while
    /// its agent speaks.
    past: Arc<Past>,
}

/// What a run has been through.
#[derive(Debug, Clone, Default)]
struct Past {
    /// What it has asked, in order.
    asked: Vec<AskedQuestion>,
    /// The messages that began it and went on with it, in order.
    taken: Vec<Took>,
    /// Where it has stood, in order; the last one is where it stands.
    stood: Vec<Stood>,
    /// The revisions at which messages of its agent were broken off, and how far the transcript went
    /// then.
    broken_off: Vec<(u64, u64)>,
}

/// A message that a run took.
#[derive(Debug, Clone)]
pub struct Took {
    /// Its id, as the journal has it.
    id: Arc<str>,
    /// The revision that took it.
    pub revision: u64,
    /// The mark of its words, if they are known.
    words: Option<WordsMark>,
}

impl Took {
    /// Returns whether it can be the one that says this: a sender may use an id again by mistake.
    pub fn can_be(&self, said: &Entry) -> bool {
        self.words.is_none_or(|words| words == WordsMark::of(said))
    }
}

/// A question, and when it was asked.
#[derive(Debug, Clone)]
pub struct AskedQuestion {
    /// The revision that asked it.
    pub revision: u64,
    /// How far the transcript went then.
    pub at: u64,
    /// The question.
    pub question: Arc<Question>,
}

/// Where a run stood from a revision on.
#[derive(Debug, Clone, Copy)]
struct Stood {
    revision: u64,
    standing: Standing,
    since: Timestamp,
}

impl Run {
    /// Returns what it has asked, in order.
    pub fn asked(&self) -> &[AskedQuestion] {
        &self.past.asked
    }

    /// Returns the message that began it or went on with it, by the id that the journal has of it;
    /// nothing if none did.
    pub fn took(&self, message: &str) -> Option<&Took> {
        self.past.taken.iter().find(|taken| *taken.id == *message)
    }

    /// Returns the revision from which on it was last paused by a client; nothing if it never was.
    pub fn paused_at(&self) -> Option<u64> {
        let mut stood = self.past.stood.iter().rev();
        let paused = stood.find(|stood| stood.standing == Standing::Paused(Initiator::Client));
        paused.map(|stood| stood.revision)
    }

    /// Returns how far the transcript went when its agent was last broken off: a message that began
    /// before that and has no end will have none.
    pub fn silent(&self) -> u64 {
        self.past.broken_off.last().map_or(0, |(_, length)| *length)
    }

    /// Takes note of what is said, and of whether the agent falls silent behind it.
    fn hear(&mut self, moment: &Moment, length: u64) {
        for (number, entry) in moment.said.iter().filter(|(_, entry)| entry.role == Role::Agent) {
            let id = message_id(*number, entry);
            self.open.retain(|open| *open != id);
            if !entry.aborted && entry.segment.is_some_and(|segment| !segment.last) {
                self.open.push(id);
            }
        }
        if ends_words(&moment.event.what) && !self.open.is_empty() {
            self.open.clear();
            self.past_mut().broken_off.push((moment.revision, length));
        }
    }

    /// Returns the run as it was at a revision, but for what was being said then; nothing if it had not
    /// begun.
    fn as_of(run: &Arc<Self>, revision: u64) -> Option<Arc<Self>> {
        let past = &run.past;
        let known = past.stood.partition_point(|stood| stood.revision <= revision);
        let stood = past.stood.get(..known)?;
        let Stood { standing, since, .. } = *stood.last()?;
        // A run that is over does not change any more.
        if matches!(standing, Standing::Over(_)) {
            return Some(Arc::clone(run));
        }
        let asked = past.asked.iter().take_while(|asked| asked.revision <= revision);
        let taken = past.taken.iter().take_while(|taken| taken.revision <= revision);
        let broken_off = past.broken_off.iter().take_while(|(broken, _)| *broken <= revision);
        Some(Arc::new(Self {
            id: run.id,
            from: run.from,
            to: None,
            standing,
            since,
            end: None,
            generation: revision,
            open: Vec::new(),
            past: Arc::new(Past {
                asked: asked.cloned().collect(),
                taken: taken.cloned().collect(),
                stood: stood.to_vec(),
                broken_off: broken_off.copied().collect(),
            }),
        }))
    }

    /// Takes note of where it stands from a revision on.
    fn stand(&mut self, revision: u64, standing: Standing, since: Timestamp) {
        (self.standing, self.since) = (standing, since);
        self.past_mut().stood.push(Stood { revision, standing, since });
    }

    fn past_mut(&mut self) -> &mut Past {
        Arc::make_mut(&mut self.past)
    }
}

/// A session, and the runs that it has had, as of one revision.
#[derive(Debug, Clone, Default)]
pub struct Runs {
    session: Option<Arc<Session>>,
    runs: Vec<Arc<Run>>,
    origin: Option<Origin>,
}

/// Where a session comes from that was taken in.
#[derive(Debug, Clone, Copy)]
struct Origin {
    /// The session there.
    session: SessionId,
    /// How far its tasks were counted there.
    generation: u64,
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
    pub fn all(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// Returns how far the transcript went when the agent was last broken off before a revision was over.
    pub fn silent_at(&self, revision: u64) -> u64 {
        let broken_off = self.runs.iter().rev().flat_map(|run| run.past.broken_off.iter().rev());
        let mut broken_off = broken_off.skip_while(|(broken, _)| *broken > revision);
        broken_off.next().map_or(0, |(_, length)| *length)
    }

    /// Returns what was known at an earlier state of the session, in which a message was being said of
    /// which these segments were committed, each under its number, if one was.
    pub fn as_of(&self, session: Session, said: &[(u64, Entry)]) -> Self {
        let then = |run| Run::as_of(run, session.revision);
        let mut runs: Vec<_> = self.runs.iter().filter_map(then).collect();
        if let (Some((number, entry)), Some(run)) = (said.first(), runs.last_mut()) {
            Arc::make_mut(run).open.push(message_id(*number, entry));
        }
        Self { session: Some(Arc::new(session)), runs, origin: self.origin }
    }

    /// Returns the session that this one was before it was taken in; nothing if it was created.
    pub fn origin(&self) -> Option<SessionId> {
        self.origin.map(|origin| origin.session)
    }

    /// Takes note of how far tasks had been counted before they came to where this session was taken
    /// in from.
    pub fn counts_on(&mut self, before: u64) {
        if let Some(origin) = &mut self.origin {
            origin.generation += before;
        }
    }

    /// Counts as far as another fold of the same session.
    pub fn counts_as(&mut self, other: &Self) {
        self.origin = self.origin.and(other.origin);
    }

    /// Returns the generation of tasks at a revision: one that was moved is counted on from where it was.
    pub fn generation(&self, revision: u64) -> u64 {
        self.origin.map_or(0, |origin| origin.generation) + revision
    }

    /// Returns what tells the events of a session that was taken in from those of where it comes from,
    /// which have revisions of their own; nothing of one that was created.
    pub fn tag(&self) -> Option<String> {
        Some(self.origin.and(self.session())?.id.short())
    }

    /// Returns a run.
    pub fn get(&self, id: RunId) -> Option<&Run> {
        self.runs.iter().rev().find(|run| run.id == id).map(|run| &**run)
    }

    fn get_mut(&mut self, id: RunId) -> Option<&mut Run> {
        self.runs.iter_mut().rev().find(|run| run.id == id).map(Arc::make_mut)
    }

    fn last_mut(&mut self) -> Option<&mut Run> {
        self.runs.last_mut().map(Arc::make_mut)
    }

    /// Returns where a run stands: it works until its end is known.
    pub fn standing(&self, id: RunId) -> Standing {
        self.get(id).map_or(Standing::Working, |run| run.standing)
    }

    /// Returns the run that took a message, which is named by the id that the journal has of it.
    pub fn that_took(&self, message: &str) -> Option<(RunId, &Took)> {
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
                self.begin(last.id, 0, session.revision, last.at);
            }
            let end =
                RunEnd { outcome: last.outcome, error: last.error.clone(), ends_session: false };
            self.end(last.id, end, session.revision, session.transcript.length, last.at);
        }
    }

    /// Goes on with a session and the run that is under way in it.
    fn go_on_with(&mut self, session: &Arc<Session>) {
        if let Some(run) = session.run()
            && self.get(run.id).is_none()
        {
            self.begin(run.id, run.from, session.revision, run.started_at);
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
        if !moment.said.is_empty() || ends_words(&moment.event.what) {
            self.hear(moment, length);
        }
        match &moment.event.what {
            What::RunStarted(started) => {
                self.begin(started.run, started.first_entry(), moment.revision, at);
                self.take(started.message_id.as_deref(), moment);
            }
            What::Resumed(resumed) => self.take(resumed.message_id.as_deref(), moment),
            // The run goes on under its own id, and what it asks is still to be answered. Those that
            // were over before are tasks of where it came from.
            What::SessionImported(imported) => {
                let generation = imported.state.revision + EXPORT;
                self.origin = Some(Origin { session: imported.from.session, generation });
                if let Some(session) = self.session.clone() {
                    self.go_on_with(&session);
                    self.ask_again(&session);
                }
            }
            What::Suspended(suspended) => {
                let pause = &suspended.park.pause;
                if let (Wait::Question(question), Some(run)) = (&pause.wait, self.last_mut()) {
                    let (revision, question) = (moment.revision, Arc::new(question.clone()));
                    run.past_mut().asked.push(AskedQuestion { revision, at: length, question });
                }
            }
            What::RunEnded(ended) => {
                self.end(ended.run, ended.end.clone(), moment.revision, length, at);
            }
            What::SessionEnded(_) => {
                // A run that was under way ends with its session.
                let open = self.runs.last().filter(|run| run.end.is_none()).map(|run| run.id);
                if let Some(run) = open {
                    let end =
                        RunEnd { outcome: Outcome::Canceled, error: None, ends_session: true };
                    self.end(run, end, moment.revision, length, at);
                }
            }
            _ => {}
        }
        self.settle(moment.revision, at);
    }

    fn begin(&mut self, id: RunId, from: u64, revision: u64, since: Timestamp) {
        let standing = Standing::Working;
        self.runs.push(Arc::new(Run {
            id,
            from,
            to: None,
            standing,
            since,
            end: None,
            generation: revision,
            open: Vec::new(),
            past: Arc::new(Past {
                stood: vec![Stood { revision, standing, since }],
                ..Past::default()
            }),
        }));
    }

    fn hear(&mut self, moment: &Moment, length: u64) {
        if let Some(run) = self.last_mut() {
            run.hear(moment, length);
        }
    }

    fn take(&mut self, message: Option<&str>, moment: &Moment) {
        if let (Some(message), Some(run)) = (message, self.last_mut()) {
            let mut said = moment.said.iter().map(|(_, entry)| entry);
            let words = said.find(|entry| entry.role == Role::User).map(WordsMark::of);
            let (id, revision) = (message.into(), moment.revision);
            run.past_mut().taken.push(Took { id, revision, words });
        }
    }

    /// Takes note of the question that a session came with.
    fn ask_again(&mut self, session: &Session) {
        let wait = session.suspended().map(|suspended| &suspended.park.pause.wait);
        if let (Some(Wait::Question(question)), Some(run)) = (wait, self.last_mut()) {
            let (revision, at) = (session.revision, session.transcript.length);
            let question = Arc::new(question.clone());
            run.past_mut().asked.push(AskedQuestion { revision, at, question });
        }
    }

    fn end(&mut self, id: RunId, end: RunEnd, revision: u64, length: u64, at: Timestamp) {
        if let Some(run) = self.get_mut(id) {
            run.stand(revision, Standing::Over(end.outcome), at);
            (run.to, run.end, run.generation) = (Some(length), Some(end), revision);
        }
    }

    /// Takes note of where the run that is under way stands.
    fn settle(&mut self, revision: u64, at: Timestamp) {
        let Some(session) = &self.session else { return };
        let Some(under_way) = session.run().map(|run| run.id) else { return };
        let standing = Standing::of(session, under_way);
        let Some(run) = self.get_mut(under_way) else { return };
        run.generation = revision;
        if let Some(standing) = standing
            && standing != run.standing
        {
            run.stand(revision, standing, at);
        }
    }
}
