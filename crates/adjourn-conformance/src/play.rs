//! Plays scenarios in real time.
//!
//! A verb is given at its time; then the player looks again and again until what is expected is
//! there, for at most [`ROOM`]. Nothing in a scenario lies closer than that to what happens by
//! itself, so a machine on which everything that takes no time takes less than that sees what the
//! scenario says.
//!
//! A busy machine may be slower. The player takes down what should have taken no time and did: the
//! answer to a verb, a look, waking up, and a few commits that it makes all the while. If a
//! scenario failed and one of these took longer than [`SLOW`], nothing is known, and the scenario
//! is played again at half the pace or less: every time in it is twice as long, and so is the
//! room. A failure counts if nothing was slow, or at the slowest pace. So no product is excused by
//! being played again, but only by a slow machine.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use adjourn_core::time::Timestamp;
use serde_json::Value;

use crate::face::{Answer, Face, Refusal, Reply};
use crate::matching::{Matcher, judge, judge_race};
use crate::pulse::Pulse;
use crate::scenario::{Does, Fields, How, Moment, Scenario, Step, Verb};

/// How far a step keeps from what happens by itself, and how long the player looks for what is
/// expected.
pub const ROOM: Duration = Duration::from_millis(200);

/// What should take no time and takes longer than this is slow.
///
/// A quarter of the room: a verb, the commits that it leads to, and a look have place in it.
pub const SLOW: Duration = Duration::from_millis(50);

/// How many times as long a scenario may take as it says.
///
/// Where fifteen processes wait for each core, some need eight.
const SLOWEST: u32 = 16;

/// How long the player waits between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How long a verb may go unanswered before the face is taken for broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long before its beginning a scenario is set up; the script may name points in time, so it
/// must begin when that was said.
const AHEAD: Duration = Duration::from_millis(250);

/// Plays every scenario, `at_once` at a time, and returns what failed: the file, the step, and the
/// difference. Prints a line for each.
pub fn every_scenario<F: Face>(
    at_once: usize,
    open: &(impl Fn(&Scenario) -> Result<F, String> + Sync),
) -> Vec<String> {
    scenarios_but(&[], at_once, open)
}

/// Plays every scenario but those whose files are named, as [`every_scenario`] does.
pub fn scenarios_but<F: Face>(
    left_out: &[&str],
    at_once: usize,
    open: &(impl Fn(&Scenario) -> Result<F, String> + Sync),
) -> Vec<String> {
    let mut scenarios = match crate::scenarios() {
        Ok(scenarios) => scenarios,
        Err(error) => return vec![error],
    };
    scenarios.retain(|(file, _)| !left_out.contains(&file.as_str()));
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some((file, text)) = scenarios.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let played = scenario(text, open);
                    println!("{}", line(file, &played));
                    let found = played.failures.iter().map(|failure| format!("{file}: {failure}"));
                    failures.lock().unwrap_or_else(PoisonError::into_inner).extend(found);
                }
            });
        }
    });
    failures.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what is printed of a scenario.
fn line(file: &str, played: &Played) -> String {
    let word = if played.failures.is_empty() { "ok    " } else { "FAILED" };
    let mut line = format!("{word} {file}");
    if played.pace > 1 {
        line += &format!(", {} times as slow; before that: ", played.pace);
        line += &played.passed_over.join("; ");
    }
    line
}

/// How a scenario went.
#[derive(Debug)]
pub struct Played {
    /// How many times as long as it says it took.
    pub pace: u32,
    /// What went wrong, with the step.
    pub failures: Vec<String>,
    /// What went wrong first at each pace at which the machine was slow.
    pub passed_over: Vec<String>,
}

/// Plays one scenario, slower if the machine is too slow for it.
pub fn scenario<F: Face>(text: &str, open: &impl Fn(&Scenario) -> Result<F, String>) -> Played {
    let (mut pace, mut passed_over) = (1, Vec::new());
    loop {
        let (failures, slowest) = at_pace(pace, text, open);
        match failures.first() {
            Some(first) if pace < SLOWEST && is_slow(slowest, pace) => {
                passed_over.push(format!("{first} (something took {slowest:?})"));
                pace = slower(pace, slowest);
            }
            _ => return Played { pace, failures, passed_over },
        }
    }
}

/// Plays a scenario once, `pace` times as long as it says; returns what went wrong, and the longest
/// that anything took that should take no time.
pub fn at_pace<F: Face>(
    pace: u32,
    text: &str,
    open: &impl Fn(&Scenario) -> Result<F, String>,
) -> (Vec<String>, Duration) {
    let (pulse, begin) = (Pulse::shared(), Instant::now());
    match set_up(text, pace, open) {
        Ok((scenario, face, start)) => {
            let (failures, slowest) = Attempt::new(&scenario, face, start, pace).play();
            (failures, slowest.max(pulse.slowest(begin)))
        }
        Err(error) => (vec![error], Duration::ZERO),
    }
}

/// Returns a pace at which there is room for what took so long, and as much again.
fn slower(pace: u32, slowest: Duration) -> u32 {
    let mut slower = pace * 2;
    while slower < SLOWEST && ROOM * slower < slowest * 2 {
        slower *= 2;
    }
    slower
}

/// Returns whether the machine was too slow for a failure to count.
fn is_slow(slowest: Duration, pace: u32) -> bool {
    slowest > SLOW * pace
}

/// When a scenario begins, by the wall clock and by one that never jumps.
#[derive(Clone, Copy)]
struct Start {
    shown: Timestamp,
    own: Instant,
}

/// Makes a session ahead of the time at which its scenario begins.
fn set_up<F: Face>(
    text: &str,
    pace: u32,
    open: &impl Fn(&Scenario) -> Result<F, String>,
) -> Result<(Scenario, F, Start), String> {
    let mut ahead = AHEAD * pace;
    loop {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + ahead;
        let millis = i64::try_from(since.as_millis()).map_err(|error| error.to_string())?;
        let start = Start { shown: Timestamp::from_millis(millis), own: Instant::now() + ahead };
        let scenario = Scenario::read(text, start.shown, pace)?;
        let face = open(&scenario)?;
        if Instant::now() <= start.own || ahead > PATIENCE {
            return Ok((scenario, face, start));
        }
        ahead *= 2;
    }
}

/// A scenario that is being played.
struct Attempt<'a, F> {
    scenario: &'a Scenario,
    face: F,
    start: Start,
    pace: u32,
    room: Duration,
    matcher: Matcher,
    failures: Vec<String>,
    /// The longest that something took which should have taken no time.
    slowest: Duration,
    /// The answer that comes when the next host is there.
    away: Option<Reply>,
    /// Verbs that are answered at the end, and their steps.
    pending: Vec<(usize, Reply)>,
}

impl<'a, F: Face> Attempt<'a, F> {
    fn new(scenario: &'a Scenario, face: F, start: Start, pace: u32) -> Self {
        let room = ROOM * pace;
        Self {
            scenario,
            face,
            start,
            pace,
            room,
            matcher: Matcher::new(start.shown, room),
            failures: Vec::new(),
            slowest: Duration::ZERO,
            away: None,
            pending: Vec::new(),
        }
    }

    /// Returns what went wrong, and how slow the machine was.
    fn play(mut self) -> (Vec<String>, Duration) {
        for (index, step) in self.scenario.steps.iter().enumerate() {
            let before = self.failures.len();
            self.step(index, step);
            self.name(index, before);
            self.hear_late();
        }
        self.ending();
        (self.failures, self.slowest)
    }

    fn step(&mut self, index: usize, step: &Step) {
        let at = self.start.own + step.at.0;
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        // While nobody is there, the world goes on and clients do not.
        if !matches!(&step.does, Does::One(Verb::Event(_))) {
            self.until_served();
        }
        self.took(at);
        match &step.does {
            Does::Nothing => {}
            Does::One(Verb::Restart(restart)) => {
                self.away = Some(self.face.restart(restart));
                // Nothing takes time here but the start of a process.
                if restart.how == How::Kill && restart.away.is_none() {
                    self.until_served();
                    self.took(at);
                }
            }
            Does::One(verb) => {
                let reply = self.give(verb);
                if reply.at_the_end && step.refused.is_none() {
                    self.pending.push((index, reply));
                } else {
                    let answer = self.answer(&reply, at);
                    self.answered(&answer, step);
                }
            }
            Does::Race(verbs) => {
                let replies: Vec<_> = verbs.iter().map(|verb| self.give(verb)).collect();
                let answers: Vec<_> = replies.iter().map(|reply| self.answer(reply, at)).collect();
                self.failures.extend(judge_race(&answers, step.refused.as_ref()));
            }
        }
        if let Some(expected) = &step.expect {
            self.until_served();
            self.look(expected);
        }
    }

    /// Judges what was answered meanwhile; a verb that is refused is so at once.
    fn hear_late(&mut self) {
        for (index, reply) in std::mem::take(&mut self.pending) {
            match reply.within(Duration::ZERO) {
                Some(answer) => self.answered_late(index, &answer),
                None => self.pending.push((index, reply)),
            }
        }
    }

    /// Judges what is still to be answered: whatever became of a verb, somebody waits for it.
    fn hear_last(&mut self) {
        for (index, reply) in std::mem::take(&mut self.pending) {
            let unanswered = || Err(Refusal::broken("it is never answered"));
            let answer = reply.within(self.room).unwrap_or_else(unanswered);
            self.answered_late(index, &answer);
        }
    }

    fn answered_late(&mut self, index: usize, answer: &Answer) {
        let before = self.failures.len();
        if let Some(step) = self.scenario.steps.get(index) {
            self.answered(answer, step);
        }
        self.name(index, before);
    }

    /// Says of everything that was found since then to which step it belongs.
    fn name(&mut self, index: usize, since: usize) {
        let Some(step) = self.scenario.steps.get(index) else { return };
        let at = Moment(step.at.0 / self.pace);
        for found in self.failures.iter_mut().skip(since) {
            *found = format!("step {} (at {at}): {found}", index + 1);
        }
    }

    fn give(&mut self, verb: &Verb) -> Reply {
        match verb {
            Verb::Prompt(text) => self.face.prompt(text),
            Verb::Suspend(suspend) => self.face.suspend(suspend),
            Verb::Resume(resume) => {
                let mut resume = resume.clone();
                match resume.handle.as_ref().map(|word| self.matcher.handle(word)).transpose() {
                    Ok(handle) => {
                        resume.handle = handle;
                        self.face.resume(&resume)
                    }
                    Err(unknown) => Reply::now(Err(Refusal::broken(unknown))),
                }
            }
            Verb::Event(event) => self.face.event(event),
            Verb::Cancel(why) => self.face.cancel(why),
            Verb::Close(why) => self.face.close(why),
            Verb::Restart(restart) => self.face.restart(restart),
        }
    }

    /// Compares how a verb is answered with what its step expects.
    fn answered(&mut self, answer: &Answer, step: &Step) {
        self.failures.extend(judge(answer, step.refused.as_ref()));
        let (Ok(answer), Some(expected)) = (answer, &step.answer) else { return };
        // Not every face says what a suspend has made.
        if matches!(step.does, Does::One(Verb::Suspend(_))) && answer.is_null() {
            return;
        }
        let found = self.matcher.differences(expected, answer);
        self.failures.extend(found.into_iter().map(|found| format!("answer.{found}")));
    }

    /// Waits for the answer to a verb that was given at `at`.
    fn answer(&mut self, reply: &Reply, at: Instant) -> Answer {
        let answer = reply.within(PATIENCE);
        self.took(at);
        answer.unwrap_or_else(|| Err(Refusal::broken("there is no answer")))
    }

    /// Waits until the next host is there, if there is none.
    fn until_served(&mut self) {
        let Some(reply) = self.away.take() else { return };
        match reply.within(PATIENCE) {
            Some(answer) => self.failures.extend(judge(&answer, None)),
            None => self.failures.push("the next host does not come".to_owned()),
        }
    }

    /// Looks until what is expected is there, or for as long as there is room.
    fn look(&mut self, expected: &Fields) {
        let until = Instant::now() + self.room;
        loop {
            let began = Instant::now();
            let (found, status) = match self.face.status() {
                Ok(status) => {
                    let mut matcher = self.matcher.clone();
                    let found = matcher.differences(expected, &status);
                    if found.is_empty() {
                        self.matcher = matcher;
                    }
                    (found, status)
                }
                Err(error) => (vec![error], Value::Null),
            };
            self.took(began);
            if found.is_empty() {
                return;
            }
            if began >= until {
                self.failures.extend(found);
                self.failures.push(format!("the whole status is {status}"));
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// Looks back on the whole, when everything that takes no time has happened.
    fn ending(&mut self) {
        self.until_served();
        let asleep = Instant::now();
        std::thread::sleep(self.room);
        self.took(asleep + self.room);
        match self.face.ending() {
            Ok(ending) => self.failures.extend(self.matcher.ending(self.scenario, &ending)),
            Err(error) => self.failures.push(error),
        }
        self.hear_last();
    }

    /// Takes down that something which should take no time is over only now.
    fn took(&mut self, since: Instant) {
        self.slowest = self.slowest.max(since.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_slow_machine_is_an_excuse() {
        let ms = Duration::from_millis;
        assert!(!is_slow(ms(50), 1));
        assert!(is_slow(ms(51), 1));
        assert!(!is_slow(ms(100), 2), "what was slow is quick enough for half the pace");
    }

    #[test]
    fn the_next_pace_has_room_for_what_was_slow() {
        let ms = Duration::from_millis;
        let paces = [60, 200, 201, 900, 60_000].map(|slowest| slower(1, ms(slowest)));
        assert_eq!(paces, [2, 2, 4, 16, 16]);
        assert_eq!(slower(4, ms(210)), 8);
    }
}
