//! Listeners and callers are told of commits in their order, however busy the store is.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use adjourn_core::id::SessionId;
use adjourn_store::{Committed, Listener, Store as _};

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
