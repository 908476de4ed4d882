//! One agent's life: it is prompted, answered, woken, paused and raced for, until it ends.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use adjourn::core::Rejected;
use adjourn::core::command::{Mode, Suspend};
use adjourn::core::facts::Answer;
use adjourn::core::id::{Handle, Seq, SessionId};
use adjourn::core::session::{Initiator, Parked, State, Wait};
use adjourn::store::Done;
use adjourn::{Error, SessionRef, TakenOver};
use adjourn_testkit::dice::Dice;

use crate::client::{Client, named};
use crate::oracle::Remembered;
use crate::report::Report;
use crate::story::{EVENT, Story};

/// How long nothing may happen to a session before it counts as lost, in a trial.
pub const STUCK: Duration = Duration::from_secs(45);
/// The most who race for one resume or send one event.
const RACERS: usize = 6;

/// How clients treat an agent.
#[derive(Debug, Clone, Copy)]
pub struct Manners {
    /// What they do to it besides what it waits for.
    pub temper: Temper,
    /// The longest pause between two looks at it, in milliseconds.
    pub pace_ms: u64,
    /// How long nothing may happen to it before it counts as lost.
    pub stuck: Duration,
}

/// What clients do to an agent besides what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temper {
    /// They pause it at its boundaries, and let it go on.
    Calm,
    /// They also interrupt, abandon, cancel, and take it from its host.
    Wild,
}

/// The life of one session.
pub struct Life {
    client: Client,
    report: Arc<Mutex<Report>>,
    dice: Dice,
    manners: Manners,
    number: u64,
    id: SessionId,
    remembered: Remembered,
    /// The number under which each event that it waits for was sent last.
    sent: Vec<(String, Seq)>,
    races: u64,
}

impl Life {
    /// Lives the life of an agent to its end; returns which session it was.
    ///
    /// # Panics
    /// The store fails.
    pub async fn live(
        client: Client,
        report: Arc<Mutex<Report>>,
        mut dice: Dice,
        manners: Manners,
        number: u64,
    ) -> (SessionId, Story) {
        let story = Story::draw(number, &mut dice);
        let created = client.create(&story.source).await.expect("a session is made");
        let id = created.session.id;
        let (remembered, sent) = (Remembered::default(), Vec::new());
        let mut life =
            Self { client, report, dice, manners, number, id, remembered, sent, races: 0 };
        life.remembered.done(&created);
        let prompted = life.session().prompt("go").await.expect("a new session is idle");
        life.remembered.done(&prompted.commit);
        let ended = life.until_it_ends().await;
        let mut checked = Report::default();
        life.remembered.check(&life.client, id, &mut checked).await;
        checked.sessions = u64::from(ended);
        life.tell(|report| report.add(checked));
        (id, story)
    }

    /// Treats it as clients do; returns whether it came to its end.
    async fn until_it_ends(&mut self) -> bool {
        let (mut revision, mut since) = (0, Instant::now());
        loop {
            tokio::time::sleep(self.dice.millis(2, self.manners.pace_ms)).await;
            let session = self.client.adjourn().session(self.id).load().await;
            let session = session.expect("a session stays");
            if session.revision != revision {
                (revision, since) = (session.revision, Instant::now());
            }
            match &session.state {
                State::Ended(_) => return true,
                State::Idle => {
                    // Two may close it.
                    if let Ok(closed) = self.session().close().await {
                        self.remembered.done(&closed.commit);
                    }
                }
                State::Suspended(suspended) => self.parked(suspended.shown()).await,
                State::Ready(_) | State::Running(_) | State::Quiescing(_) => {
                    self.disturb().await;
                }
            }
            if since.elapsed() > self.manners.stuck {
                let problem =
                    format!("{}: nothing happens any more: {:?}", self.id, session.status());
                self.tell(|report| report.lost.push(problem));
                return false;
            }
        }
    }

    /// Does for a parked session what it waits for.
    async fn parked(&mut self, shown: &Parked) {
        let pause = &shown.pause;
        let on_event =
            pause.conditions.as_ref().and_then(|conditions| conditions.on_event.as_ref());
        match (&pause.wait, pause.initiator, on_event) {
            (Wait::Question(_), ..) => self.race(pause.handle, Some("this")).await,
            (Wait::Open, Initiator::Client, _) => {
                // With an input, calls that were put off are not run.
                let input = self.manners.temper == Temper::Wild && self.dice.once_in(4);
                let input = input.then_some("go on");
                self.race(pause.handle, input).await;
            }
            (Wait::Open, Initiator::Agent, Some(pattern)) => {
                let pattern = pattern.to_string();
                let subject = pattern.split_once(':').expect("a subject").1.to_owned();
                let sent = self.sent.iter().rev().find(|(known, _)| *known == subject);
                match sent {
                    // It was sent in this turn, so it must wake it, and nothing else is done.
                    Some((_, seq)) if *seq > pause.window => {}
                    _ if self.dice.once_in(2) => self.happens(subject).await,
                    _ => {}
                }
            }
            // A deadline: it comes by itself, now and then in a race with somebody.
            (Wait::Open, Initiator::Agent, None) if self.dice.once_in(8) => {
                self.race(pause.handle, None).await;
            }
            (Wait::Open, Initiator::Agent, None) => {}
        }
    }

    /// Does something to a session that is at work.
    async fn disturb(&mut self) {
        let wild = self.manners.temper == Temper::Wild;
        match self.dice.below(100) {
            0..8 => {
                let mode = match self.dice.below(3) {
                    0 => Mode::WaitForCompletion,
                    1 if wild => Mode::InterruptImmediate,
                    _ => Mode::FinishStep,
                };
                let grace_ms = (wild && self.dice.once_in(4)).then(|| self.dice.below(20));
                let suspend = Suspend { mode, grace_ms, ..Suspend::default() };
                // It may just have asked something, which cannot be suspended.
                if let Ok(accepted) = self.session().suspend_as(suspend).accepted().await {
                    self.remembered.done(&accepted.commit);
                }
            }
            8..16 => {
                // Before it waits for it: the next one that it will wait for.
                let next = self.sent.len() + 1;
                let subject = format!("{}/{next}", self.number);
                self.tell(|report| report.events_raced += 1);
                self.happens(subject).await;
            }
            16 if wild => {
                if let Ok(canceled) = self.session().cancel().await {
                    self.remembered.done(&canceled.commit);
                }
            }
            17 | 18 if wild => {
                if let Ok(TakenOver::From { commit, .. }) = self.session().take_over().await {
                    self.remembered.done(&commit);
                    self.tell(|report| report.takeovers += 1);
                }
            }
            _ => {}
        }
    }

    /// Sends an event, often several times at once; all are answered alike.
    async fn happens(&mut self, subject: String) {
        self.races += 1;
        let id = format!("{}-{}", self.number, self.races);
        let senders = self.racers();
        let tasks: Vec<_> = (0..senders)
            .map(|sender| {
                let (client, id, subject) = (self.client.clone(), id.clone(), subject.clone());
                tokio::spawn(async move { client.happens(sender, id, EVENT, subject).await })
            })
            .collect();
        let (mut seqs, mut news) = (Vec::new(), 0);
        for task in tasks {
            let (seq, fresh) = task.await.expect("no panic").expect("an event is acknowledged");
            self.remembered.happened(id.clone(), seq);
            seqs.push(seq);
            news += usize::from(fresh);
        }
        seqs.dedup();
        if let ([seq], 1) = (&seqs[..], news) {
            self.sent.push((subject, *seq));
        } else {
            let problem = format!("event {id} has the numbers {seqs:?} and was news {news} times");
            self.tell(|report| report.doubled.push(problem));
        }
        if senders > 1 {
            self.tell(|report| report.events_raced += senders as u64);
        }
    }

    /// Returns how many do something at once: often only one.
    fn racers(&mut self) -> usize {
        if self.dice.once_in(2) { 1 } else { 1 + self.dice.index(RACERS) }
    }

    /// Resumes a suspension, often several times at once: one does, the others are told.
    async fn race(&mut self, handle: Handle, input: Option<&'static str>) {
        self.races += 1;
        let keyed = self.dice.once_in(2);
        let idempotency_key = keyed.then(|| format!("key-{}", self.races));
        let racers = self.racers();
        let tasks: Vec<_> = (0..racers)
            .map(|racer| {
                let by = named(format!("{}-{}-{racer}", self.number, self.races));
                let mut resume = self.client.session(racer, self.id, by).resume().handle(handle);
                if let Some(input) = input {
                    resume = resume.input(input);
                }
                if let Some(key) = &idempotency_key {
                    resume = resume.key(key);
                }
                tokio::spawn(async move { resume.await.map(|woken| woken.commit) })
            })
            .collect();
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.expect("no panic"));
        }
        self.judge(handle, keyed, &answers);
        if racers > 1 {
            self.tell(|report| report.resumes_raced += racers as u64);
        }
    }

    /// Checks that at most one of those who raced has won, and that the others were told of it.
    fn judge(&mut self, handle: Handle, keyed: bool, answers: &[Result<Done, Error>]) {
        let won = |answer: &&Result<Done, Error>| {
            answer.as_ref().is_ok_and(|done| !done.events.is_empty())
        };
        let winners = answers.iter().filter(won).count();
        let mut told = Vec::new();
        for answer in answers {
            match answer {
                Ok(done) => {
                    self.remembered.done(done);
                    let first = done.events.iter().find_map(adjourn::core::Event::answer);
                    told.push(first.map(|(_, answer)| answer).or_else(|| done.answered.clone()));
                }
                Err(Error::Refused(Rejected::AlreadyResumed { handle, at, cause, by })) => {
                    self.remembered.resumed(*handle, *at, *cause, by.clone());
                }
                // A cancel or a takeover came between.
                Err(Error::Refused(_)) if winners == 0 => {}
                Err(error) => {
                    let problem = format!("{}: {handle} was resumed, and {error}", self.id);
                    self.tell(|report| report.wrong.push(problem));
                }
            }
        }
        let alike = |pair: &[Option<Answer>]| pair.first() == pair.last();
        let all_told =
            told.iter().all(Option::is_some) && (winners == 0 || told.len() == answers.len());
        if keyed && !(told.windows(2).all(alike) && all_told) {
            let problem = format!("{}: one key, and the answers {told:?}", self.id);
            self.tell(|report| report.wrong.push(problem));
        }
        if winners > 1 || (!keyed && told.len() > 1) {
            let problem = format!("{}: {handle} was resumed by {winners}", self.id);
            self.tell(|report| report.doubled.push(problem));
        }
    }

    /// Returns the way to the session for one of its clients.
    fn session(&mut self) -> SessionRef {
        let by = named(self.number.to_string());
        self.client.session(self.dice.index(3), self.id, by)
    }

    fn tell(&self, tell: impl FnOnce(&mut Report)) {
        tell(&mut self.report.lock().expect("nobody panics while telling"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_session_that_nobody_drives_is_lost_and_has_not_ended() {
        let directory = tempfile::tempdir().unwrap();
        let client = Client::new(&Scene::at(directory.path()));
        let report = Arc::new(Mutex::new(Report::default()));
        let stuck = Duration::from_millis(50);
        let manners = Manners { temper: Temper::Calm, pace_ms: 3, stuck };
        Life::live(client, Arc::clone(&report), Dice::new(1), manners, 0).await;
        let report = report.lock().unwrap();
        assert_eq!((report.sessions, report.lost.len()), (0, 1), "{}", report.problems());
    }
}
