//! Tells those who wait for a commit that it is durable: listeners first, then its callers.
//!
//! While commands wait for the thread that writes, a thread of its own does it, so that the next
//! commit need not wait until hundreds of tasks are woken. What was committed first is told first,
//! on whichever of the two threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, ThreadId};

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
    tells: Tells,
}

/// Which thread tells of commits beside the writer; none before there was reason to start one.
#[derive(Clone, Default)]
pub(super) struct Tells(Arc<Mutex<Option<ThreadId>>>);

impl Tells {
    /// Returns whether a thread is the one that tells.
    pub(super) fn is_on(&self, thread: ThreadId) -> bool {
        *self.thread() == Some(thread)
    }

    fn thread(&self) -> MutexGuard<'_, Option<ThreadId>> {
        // Nothing that is done with it can leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that tells, once there was reason to start it.
struct Thread {
    answers: SyncSender<Answers>,
    /// Commits that it was given and has not told yet.
    left: Arc<AtomicUsize>,
    handle: JoinHandle<()>,
}

impl Teller {
    pub(super) const fn new(listeners: Arc<Listeners>, tells: Tells) -> Self {
        Self { listeners, thread: None, tells }
    }

    /// Returns whether there are listeners.
    pub(super) fn is_listened_to(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Tells of a commit: here, or on the other thread while commands wait for this one.
    pub(super) fn tell(&mut self, answers: Answers, others_wait: bool) {
        let is_behind =
            self.thread.as_ref().is_some_and(|thread| thread.left.load(Ordering::Acquire) > 0);
        if is_behind || (others_wait && answers.told.len() > FEW) {
            self.hand_over(answers);
        } else {
            answers.tell(&self.listeners);
        }
    }

    fn hand_over(&mut self, answers: Answers) {
        if self.thread.is_none() {
            self.thread = Thread::start(&self.listeners);
            // Known before it is given anything to tell.
            *self.tells.thread() = self.thread.as_ref().map(|thread| thread.handle.thread().id());
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

#[cfg(test)]
mod tests {
    use super::super::writer::Undo;
    use super::*;
    use crate::transaction::Transaction;

    /// The commit that a caller was told of, whether it is durable, and the thread that told it.
    type Heard = Arc<Mutex<Vec<(usize, bool, Option<String>)>>>;

    struct Caller {
        commit: usize,
        heard: Heard,
    }

    impl Job for Caller {
        fn run(&mut self, _: &mut Transaction<'_>) -> Result<(), Undo> {
            Ok(())
        }

        fn undone(&mut self, _: Option<Error>) {}

        fn tell(self: Box<Self>, committed: Result<(), Error>) {
            let thread = std::thread::current().name().map(str::to_owned);
            self.heard.lock().unwrap().push((self.commit, committed.is_ok(), thread));
        }
    }

    fn answers(commit: usize, callers: usize, heard: &Heard) -> Answers {
        let caller = || -> Box<dyn Job> { Box::new(Caller { commit, heard: Arc::clone(heard) }) };
        let committed = if commit == 2 { Err(Error::Closed) } else { Ok(()) };
        let told = std::iter::repeat_with(caller).take(callers).collect();
        Answers { committed, changes: Committed::default(), told }
    }

    #[test]
    fn commits_are_told_in_order_on_the_other_thread_while_commands_wait() {
        let (mut teller, heard) = (Teller::new(Arc::default(), Tells::default()), Heard::default());
        teller.tell(answers(0, 1, &heard), true);
        for commit in 1..20 {
            // One without callers that wait behind it comes behind those that do, all the same.
            teller.tell(answers(commit, FEW + 1, &heard), commit % 3 > 0);
        }
        teller.finish();
        let heard = heard.lock().unwrap();
        assert_eq!(heard.len(), 1 + 19 * (FEW + 1), "everybody is told before the end");
        assert!(heard.is_sorted_by_key(|(commit, ..)| *commit), "{heard:?}");
        assert!(heard.iter().all(|(commit, durable, _)| *durable == (*commit != 2)), "{heard:?}");
        let by = |commit: usize| heard.iter().find(|told| told.0 == commit).unwrap().2.as_deref();
        assert_ne!(by(0), Some("adjourn-teller"), "one caller is told at once");
        assert_eq!(by(1), Some("adjourn-teller"), "many are told beside the next commit");
    }
}
