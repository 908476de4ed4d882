//! What must be true of the store, as those outside of it know: what was acknowledged to them,
//! and the marks that tools left.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use adjourn::Adjourn;
use adjourn::core::actor::Actor;
use adjourn::core::command::{CallResult, Loss};
use adjourn::core::event::{Event, What};
use adjourn::core::id::{Handle, Seq, SessionId};
use adjourn::core::journal::Entry;
use adjourn::core::session::Cause;
use adjourn::core::time::Timestamp;
use adjourn::store::Done;
use adjourn_testkit::store::keys;

use crate::client::Client;
use crate::report::Report;
use crate::scene::Scene;
use crate::story::{ONCE, Story};

/// What was acknowledged about one session.
#[derive(Debug, Default)]
pub struct Remembered {
    /// The events of each command that was answered with success, and the revision they led to.
    done: Vec<(u64, Vec<Event>)>,
    /// How somebody who came too late was told that a suspension had been resumed.
    resumed: Vec<(Handle, Timestamp, Cause, Actor)>,
    /// The ids of events that were acknowledged, and their numbers.
    happened: Vec<(String, Seq)>,
}

impl Remembered {
    /// Remembers that a command was answered with success.
    pub fn done(&mut self, done: &Done) {
        if !done.events.is_empty() {
            self.done.push((done.session.revision, done.events.to_vec()));
        }
    }

    /// Remembers what somebody who came too late was told.
    pub fn resumed(&mut self, handle: Handle, at: Timestamp, cause: Cause, by: Actor) {
        self.resumed.push((handle, at, cause, by));
    }

    /// Remembers that an event was acknowledged.
    pub fn happened(&mut self, id: String, seq: Seq) {
        self.happened.push((id, seq));
    }

    /// Looks for all of it in the store.
    ///
    /// # Panics
    /// The store fails.
    pub async fn check(&self, client: &Client, id: SessionId, report: &mut Report) {
        self.compare(id, &whole_journal(client.adjourn(), id).await, report);
        for (event, seq) in &self.happened {
            // The same event again has the number it had, and is no news.
            match client.happens(0, event.clone(), "again", "again".to_owned()).await {
                Ok((found, false)) if found == *seq => {}
                other => report.lost.push(format!("event {event} with number {seq}: {other:?}")),
            }
        }
        let count = self.done.len() + self.resumed.len() + self.happened.len();
        report.acknowledged += count as u64;
    }

    /// Looks for the commands in a journal.
    fn compare(&self, id: SessionId, journal: &[Entry], report: &mut Report) {
        for (revision, events) in &self.done {
            let end = usize::try_from(*revision).expect("a revision");
            let found = journal.get(end.saturating_sub(events.len())..end);
            let same = found.is_some_and(|found| found.iter().map(|e| &e.event).eq(events));
            if !same {
                let names: Vec<_> = events.iter().map(|event| event.what.name()).collect();
                report.lost.push(format!("{id}: {names:?} at revision {revision}"));
            }
        }
        let mut ends: HashMap<Handle, Vec<(Timestamp, Cause, &Actor)>> = HashMap::new();
        for Entry { event, .. } in journal {
            let resumption = match &event.what {
                What::Resumed(resumed) => &resumed.resumption,
                What::HoldLifted(lifted) => &lifted.resumption,
                _ => continue,
            };
            let end = (event.at, resumption.cause, &event.by);
            ends.entry(resumption.handle).or_default().push(end);
        }
        for (handle, ends) in &ends {
            if ends.len() > 1 {
                report.doubled.push(format!("{id}: {handle} was resumed {} times", ends.len()));
            }
        }
        for (handle, at, cause, by) in &self.resumed {
            if ends.get(handle).and_then(|ends| ends.first()) != Some(&(*at, *cause, by)) {
                let told = format!("{handle} was resumed at {at} ({cause}) by {by}");
                report.lost.push(format!("{id}: somebody was told that {told}"));
            }
        }
    }
}

/// How often a call may have left its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// Hosts died: calls that may not run twice ran at most once.
    AtMostOnce,
    /// Nothing died: every call ran once.
    ExactlyOnce,
}

/// Compares the marks that tools left with the journals.
///
/// # Panics
/// The marks cannot be read, or the store fails.
pub async fn check_marks(
    scene: &Scene,
    adjourn: &Adjourn,
    stories: &BTreeMap<SessionId, Story>,
    marks: Marks,
    report: &mut Report,
) {
    let text = std::fs::read_to_string(scene.marks()).unwrap_or_default();
    let mut lived = Vec::new();
    for (id, story) in stories {
        lived.push((*id, story, whole_journal(adjourn, *id).await));
    }
    compare_marks(&text, lived, marks, report);
}

/// Compares marks with stories and journals.
fn compare_marks<'a>(
    text: &str,
    stories: impl IntoIterator<Item = (SessionId, &'a Story, Vec<Entry>)>,
    marks: Marks,
    report: &mut Report,
) {
    let mut calls: HashMap<&str, HashMap<&str, Vec<&str>>> = HashMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("a mark has three words");
        let (session, call, tool) = (word(), word(), word());
        calls.entry(session).or_default().entry(tool).or_default().push(call);
        report.calls += 1;
    }
    for (id, story, journal) in stories {
        let calls = calls.remove(id.to_string().as_str()).unwrap_or_default();
        let (dispatched, returned) = ledger(&journal);
        for lost in journal.iter().filter_map(|entry| match &entry.event.what {
            What::HostLost(lost) => Some(lost),
            _ => None,
        }) {
            report.recovered += u64::from(lost.how == Loss::Died);
            report.unknown += lost.unknown.len() as u64;
        }
        for tool in &story.tools {
            let marked = calls.get(tool.as_str()).map_or(&[][..], Vec::as_slice);
            let harmless = marks == Marks::AtMostOnce && !tool.starts_with(ONCE);
            if marked.len() > 1 && !harmless {
                report.doubled.push(format!("{id}: {tool} ran {} times: {marked:?}", marked.len()));
            }
            if marks == Marks::ExactlyOnce && marked.is_empty() {
                report.lost.push(format!("{id}: {tool} never ran"));
            }
            for call in marked {
                if !dispatched.contains(*call) {
                    report.wrong.push(format!("{id}: {tool} ran as {call}, which was not begun"));
                }
            }
        }
        let ran: BTreeSet<_> = calls.values().flatten().copied().collect();
        for call in returned.iter().filter(|call| !ran.contains(call.as_str())) {
            report.wrong.push(format!("{id}: {call} returned, and left no mark"));
        }
    }
    for session in calls.keys() {
        report.wrong.push(format!("{session} left marks, and nobody knows it"));
    }
}

/// Returns the calls that a journal says were begun, and those that came back.
fn ledger(journal: &[Entry]) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut dispatched, mut returned) = (BTreeSet::new(), BTreeSet::new());
    for entry in journal {
        match &entry.event.what {
            What::CallsDispatched(calls) => {
                dispatched.extend(calls.calls.iter().map(|call| call.0.clone()));
            }
            What::CallsReturned(calls) => {
                // One that was declined never began: what came before it in its sequence is unknown.
                let ran = calls.calls.iter().filter(|call| call.result != CallResult::Declined);
                returned.extend(ran.map(|call| call.id.0.clone()));
            }
            _ => {}
        }
    }
    (dispatched, returned)
}

/// Verifies the whole store.
///
/// # Panics
/// The store fails.
pub async fn verify(adjourn: &Adjourn, report: &mut Report) {
    let head = adjourn.head().await.expect("the store works");
    let verified = adjourn.verify(keys().ring(), Some(head)).await.expect("the store works");
    if let Err(fault) = verified {
        report.wrong.push(fault.to_string());
    }
}

pub(crate) async fn whole_journal(adjourn: &Adjourn, id: SessionId) -> Vec<Entry> {
    adjourn.session(id).journal(1, usize::MAX).await.expect("the store works")
}

#[cfg(test)]
mod tests;
