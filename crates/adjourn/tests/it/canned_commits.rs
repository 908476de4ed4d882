//! A host that dies at each of its commits, right before it is durable or right after, while it runs
//! an agent whose loop is ours; alone, and with a suspend that came right before that commit.

use std::sync::Arc;

use adjourn::Config;
use adjourn_core::Command;
use adjourn_core::command::{Mode, Suspend};
use adjourn_core::id::SessionId;
use adjourn_store::sqlite::{Point, Points};
use adjourn_store::{Request, Sqlite, Store as _};
use tokio::sync::watch;

use crate::canned::{Canned, expected, spec};
use crate::canned_model::{Life, SUSPENDS, is_at_rest};
use crate::fixture::{Fixture, ann};
use crate::points::within;
use crate::spoken::spoken;

/// Where and how a host dies.
#[derive(Debug, Clone, Copy)]
struct Death {
    /// The number of the commit.
    commit: usize,
    /// Right before it, or right after.
    point: Point,
    /// The suspend that is asked for right behind the commit before.
    suspends: Option<Mode>,
}

/// Where a host that is to die stands.
#[derive(Debug, Clone, Copy, Default)]
struct Doom {
    /// Whether its commits count.
    counts: bool,
    /// How many it has made, with the one that it is about to make.
    commits: usize,
    died: bool,
}

/// Opens the store for a host that dies: its writer ends in the middle of a commit, which then never
/// comes to be, or is never told of.
fn doomed(fixture: &Fixture, id: SessionId, death: Death) -> (Sqlite, watch::Sender<Doom>) {
    let doom = watch::Sender::new(Doom::default());
    let store = fixture.another_with(|options| {
        let (doom, client) = (doom.clone(), fixture.store.clone());
        options.points = Points::hooked(move |point| {
            if !doom.borrow().counts {
                return;
            }
            if point == Point::BeforeCommit {
                doom.send_modify(|doom| doom.commits += 1);
            }
            let number = doom.borrow().commits;
            if point == Point::AfterCommit
                && number + 1 == death.commit
                && let Some(mode) = death.suspends
            {
                let suspend = Command::Suspend(Suspend { mode, ..Suspend::default() });
                let request = Request::new(id, ann(), suspend);
                let _ = client.transact(move |tx| tx.command(request)).wait();
            }
            if (number, point) == (death.commit, death.point) {
                doom.send_modify(|doom| doom.died = true);
                panic!("as it was told to");
            }
        });
    });
    (store, doom)
}

/// Lets a host die, and another one go on; returns whether there was such a commit.
async fn lives_through(death: Death) -> bool {
    let what = format!("{death:?}");
    println!("{what}");
    let (fixture, canned) = (Fixture::new(), Canned::new(None, false));
    let id = fixture.create_with(spec());
    let (store, doom) = doomed(&fixture, id, death);
    let drivers = Arc::new(canned.clone());
    let host = fixture.host_on(store, drivers, Config::default()).await;
    doom.send_modify(|doom| doom.counts = true);
    let mut dies = doom.subscribe();
    fixture.prompt(id, "tidy up");
    let mut life = Life { fixture, canned, id, host, digests: Vec::new(), interrupted: false };
    loop {
        let rests = life.fixture.until(id, "at rest", is_at_rest);
        tokio::select! {
            biased;
            died = within(dies.wait_for(|doom| doom.died)) => {
                died.unwrap();
                break;
            }
            session = rests => match session.state.name() {
                // It is about to die with the commit that ended the run.
                "idle" if doom.borrow().commits >= death.commit => {}
                "idle" => {
                    doom.send_modify(|doom| doom.counts = false);
                    life.host.stop().await;
                    return false;
                }
                _ => life.wake(true),
            }
        }
    }
    let Life { fixture, canned, .. } = &life;
    let next = fixture.host_with(Arc::new(canned.clone())).await;
    std::mem::replace(&mut life.host, next).kill().await;
    life.fixture.ring_hosts();

    let session = life.end(true).await;
    let ran = life.canned.ran().len();
    let said = life.fixture.said(id);
    let lost = !said.iter().any(|said| said.text() == "look ran");
    assert!(ran == 1 || (ran == 0 && lost), "{what}: it ran {ran} times");
    assert!(lost || !life.interrupted, "{what}");
    let shown = life.check(&session, lost, &what);
    assert_eq!(shown, expected(lost, life.interrupted), "{what}");
    // What was committed of a step that came to its end is told once, and nothing else as whole.
    let whole: Vec<_> = spoken(&said).into_iter().filter(|(_, whole)| *whole).collect();
    let words = ["Let me look.", "I have to ask.", "It is done."];
    assert_eq!(whole, words.map(|words| (words.to_owned(), true)), "{what}");
    life.host.stop().await;
    true
}

async fn lives_through_at_every_commit(point: Point) {
    for suspends in SUSPENDS {
        let mut commit = 1;
        while lives_through(Death { commit, point, suspends }).await {
            commit += 1;
        }
        // The claim, the first answer, its call twice, the second answer with the question; the
        // next claim, and the last answer.
        assert!(commit > 7, "{point:?}, {suspends:?}: only {commit} commits");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_dies_before_any_commit_repeats_nothing_and_the_model_knows_what_ran() {
    lives_through_at_every_commit(Point::BeforeCommit).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_dies_behind_any_commit_repeats_nothing_and_the_model_knows_what_ran() {
    lives_through_at_every_commit(Point::AfterCommit).await;
}
