//! Listeners and callers are told of commits in their order, however busy the store is.

use std::collections::HashSet;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn_core::id::SessionId;
use adjourn_store::{Committed, Error, Listener, Sqlite, Store as _};

use crate::fixture::{Fixture, prompt};

/// What a listener was told so far.
#[derive(Default)]
struct Told(Mutex<(i64, HashSet<(SessionId, u64)>)>);

impl Listener for Told {
    fn committed(&self, committed: &Committed) {
        let mut told = self.0.lock().unwrap();
        if let Some((first, last)) = committed.entries {
            assert!(first.0 > told.0, "{} comes behind {}", first.0, told.0);
            told.0 = last.0;
        }
        let changes = committed.changes.iter();
        told.1.extend(changes.map(|change| (change.session.id, change.session.revision)));
    }
}

impl Told {
    fn knows(&self, id: SessionId, revision: u64) -> bool {
        self.0.lock().unwrap().1.contains(&(id, revision))
    }
}

/// With this many callers, commands wait while others are told.
#[test]
fn listeners_hear_of_a_commit_in_order_and_before_its_callers() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let told = Arc::<Told>::default();
    let listener: Arc<dyn Listener> = Arc::<Told>::clone(&told);
    store.listen(Arc::downgrade(&listener));
    let sessions: Vec<_> = (0..64).map(|_| fixture.create(&store)).collect();
    std::thread::scope(|scope| {
        for id in sessions {
            let (store, told) = (&store, &told);
            scope.spawn(move || {
                for _ in 0..8 {
                    let done = prompt(store, id, "go on").unwrap();
                    assert!(told.knows(id, done.session.revision));
                    let cancel = adjourn_core::command::Cancel::default();
                    let cancel = adjourn_core::Command::Cancel(cancel);
                    let done = crate::fixture::give(store, id, cancel).unwrap();
                    assert!(told.knows(id, done.session.revision));
                }
            });
        }
    });
    let last = store.last_entry().unwrap();
    assert_eq!(told.0.lock().unwrap().0, last.0, "everything was told");
}

/// A listener that drops the last clone of the store where commits are told beside the writer.
struct Last(Mutex<Option<(Sqlite, Receiver<()>)>>, Sender<&'static str>);

impl Listener for Last {
    fn committed(&self, _: &Committed) {
        if std::thread::current().name() != Some("adjourn-teller") {
            return;
        }
        if let Some((store, is_last)) = self.0.lock().unwrap().take() {
            self.1.send("told").unwrap();
            is_last.recv().unwrap();
            drop(store);
            self.1.send("closed").unwrap();
        }
    }
}

#[test]
fn the_store_can_be_closed_on_the_thread_that_tells() {
    let fixture = Fixture::new();
    let store = fixture.open();
    let (is_last, heard_last) = channel();
    let (says, heard) = channel();
    let last = Last(Mutex::new(Some((store.clone(), heard_last))), says);
    let listener: Arc<dyn Listener> = Arc::new(last);
    store.listen(Arc::downgrade(&listener));
    // Commands that wait for the writer make it leave the telling to the other thread.
    let mut told = None;
    while told.is_none() {
        let (go, may_go) = channel();
        drop(store.transact(move |_| {
            may_go.recv().unwrap();
            Ok::<_, Error>(())
        }));
        (0..1000).for_each(|_| drop(store.transact(|_| Ok::<_, Error>(()))));
        // It is gone if the queue is still full of those before.
        let _ = go.send(());
        told = heard.recv_timeout(Duration::from_secs(1)).ok();
    }
    drop(store);
    is_last.send(()).unwrap();
    assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok("closed"));
}
