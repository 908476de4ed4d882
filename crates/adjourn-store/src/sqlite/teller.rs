//! Tells those who wait for a commit that it is durable: listeners first, then its callers.
//!
//! While commands wait for the thread that writes, a thread of its own does it, so that the next
//! commit need not wait until hundreds of tasks are woken. What was committed first is told first,
//! on whichever of the two threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::writer::Job;
use crate::committed::{Committed, Listeners};
use crate::error::Error;

/// Commits that may wait to be told; with more of them the thread that writes waits.
const WAITING: usize = 4;
/// With fewer callers it takes longer to wake another thread than to tell them.
const FEW: usize = 4;

/// A commit, and those who are to be told of it.
pub(super) struct Answers {
    /// Whether it is durable.
    pub(super) committed: Result<(), Error>,
    /// What it changed, for listeners.
    pub(super) changes: Committed,
    /// The callers whose commands are in it.
    pub(super) told: Vec<Box<dyn Job>>,
}

impl Answers {
    fn tell(self, listeners: &Listeners) {
        if self.committed.is_ok() {
            listeners.tell(&self.changes);
        }
        for job in self.told {
            job.tell(self.committed.clone());
        }
    }
}

/// Tells listeners and callers what was committed.
pub(super) struct Teller {
    listeners: Arc<Listeners>,
    thread: Option<Thread>,
}

/// The thread that tells, once there was reason to start it.
struct Thread {
    answers: SyncSender<Answers>,
    /// Commits that it was given and has not told yet.
    left: Arc<AtomicUsize>,
    handle: JoinHandle<()>,
}

impl Teller {
    pub(super) const fn new(listeners: Arc<Listeners>) -> Self {
        Self { listeners, thread: None }
    }

    /// Returns whether there are listeners.
    pub(super) fn is_listened_to(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Tells of a commit: here, or on the other thread while commands wait for this one.
    pub(super) fn tell(&mut self, answers: Answers, others_wait: bool) {
        let is_behind =
            self.thread.as_ref().is_some_and(|thread| thread.left.load(Ordering::Acquire) > 0);
        let is_handed_on = is_behind || (others_wait && answers.told.len() > FEW);
        if !is_handed_on {
            return answers.tell(&self.listeners);
        }
        if self.thread.is_none() {
            self.thread = Thread::start(&self.listeners);
        }
        let Some(thread) = &self.thread else { return answers.tell(&self.listeners) };
        thread.left.fetch_add(1, Ordering::AcqRel);
        // It is gone only if a listener has panicked there.
        if let Err(unsent) = thread.answers.send(answers) {
            self.thread = None;
            unsent.0.tell(&self.listeners);
        }
    }

    /// Waits until everybody is told.
    pub(super) fn finish(&mut self) {
        if let Some(Thread { answers, handle, .. }) = self.thread.take() {
            drop(answers);
            // If it has panicked, its callers know that they got no answer.
            let _ = handle.join();
        }
    }
}

impl Thread {
    /// Starts the thread; returns nothing if there is no room for one.
    fn start(listeners: &Arc<Listeners>) -> Option<Self> {
        let (answers, receiver) = sync_channel(WAITING);
        let left = Arc::<AtomicUsize>::default();
        let run = {
            let (listeners, left) = (Arc::clone(listeners), Arc::clone(&left));
            move || run(&receiver, &listeners, &left)
        };
        let named = std::thread::Builder::new().name("adjourn-teller".to_owned());
        Some(Self { answers, left, handle: named.spawn(run).ok()? })
    }
}

fn run(receiver: &Receiver<Answers>, listeners: &Listeners, left: &AtomicUsize) {
    while let Ok(answers) = receiver.recv() {
        answers.tell(listeners);
        left.fetch_sub(1, Ordering::AcqRel);
    }
}
