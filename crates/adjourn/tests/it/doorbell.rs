//! The directory of hosts: who is alive, who is rung, and what the dead leave behind.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use adjourn::bell::Bell;
use adjourn::clock::{Clock, Machine};
use adjourn::doorbell::Hosts;
use adjourn::script::Scripted;
use adjourn::{Config, Host};
use adjourn_core::id::{HostId, SessionId};
use adjourn_store::{Environment as _, Store as _};
use tempfile::TempDir;

use crate::fixture::Fixture;

fn names(store: &std::path::Path) -> Vec<PathBuf> {
    let mut directory = store.as_os_str().to_owned();
    directory.push(".hosts");
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Leaves what somebody leaves who is killed: files, and nobody who holds the lock.
fn leave(hosts: &Hosts, store: &std::path::Path) -> HostId {
    let id = HostId::new(Machine.uuid());
    let presence = hosts.join(id).unwrap();
    let copies: Vec<_> = names(store)
        .into_iter()
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            let uuid = id.uuid().simple().to_string();
            name == format!("{id}.lock") || name == format!("{}.sock", uuid.split_at(16).1)
        })
        .collect();
    assert_eq!(copies.len(), 2);
    drop(presence);
    for path in copies {
        std::fs::write(path, "").unwrap();
    }
    id
}

#[tokio::test]
async fn what_the_dead_leave_is_swept_and_the_living_stay() {
    let directory = TempDir::new().unwrap();
    let store = directory.path().join("store.db");
    let hosts = Hosts::beside(&store);
    assert_eq!(hosts.sweep(), 0, "there is no directory yet");
    let living = HostId::new(Machine.uuid());
    let presence = hosts.join(living).unwrap();
    let dead: Vec<_> = (0..3).map(|_| leave(&hosts, &store)).collect();
    assert!(dead.iter().all(|id| !hosts.is_alive(*id).unwrap()));
    assert_eq!(names(&store).len(), 8);
    assert_eq!(hosts.sweep(), 3);
    assert_eq!(hosts.sweep(), 0);
    assert_eq!(names(&store).len(), 2);
    assert!(hosts.is_alive(living).unwrap());
    assert_eq!(hosts.ring(), 1);
    presence.rung().await;
    drop(presence);
    assert_eq!(names(&store), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn somebody_who_watches_clears_away_those_before() {
    let directory = TempDir::new().unwrap();
    let store = directory.path().join("store.db");
    let hosts = Hosts::beside(&store);
    leave(&hosts, &store);
    let bell = Bell::new(&hosts, &Machine);
    assert_eq!(names(&store).len(), 2);
    drop(bell);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_clears_away_what_watchers_left_while_it_ran() {
    let fixture = Fixture::new();
    let host = fixture.host().await;
    leave(&fixture.hosts(), fixture.store.path());
    let start = std::time::Instant::now();
    while names(fixture.store.path()).len() > 2 {
        assert!(start.elapsed().as_secs() < 20, "they are still there");
        fixture.clock.advance(std::time::Duration::from_secs(1));
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    host.stop().await;
    assert_eq!(names(fixture.store.path()), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_who_joins_is_swept_away() {
    let directory = TempDir::new().unwrap();
    let hosts = Hosts::beside(&directory.path().join("store.db"));
    let over = AtomicBool::new(false);
    // Joining needs the runtime that the sweepers would block.
    let runtime = tokio::runtime::Handle::current();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    hosts.sweep();
                }
            });
        }
        let _inside = runtime.enter();
        for _ in 0..300 {
            let id = HostId::new(Machine.uuid());
            let presence = hosts.join(id).unwrap();
            assert!(hosts.is_alive(id).unwrap());
            assert_eq!(hosts.ring(), 1);
            drop(presence);
        }
        over.store(true, Ordering::Relaxed);
    });
}

#[tokio::test]
async fn a_store_that_lies_deep_has_a_bell_too() {
    let directory = TempDir::new().unwrap();
    let deep = directory.path().join("a".repeat(60)).join("b".repeat(60));
    std::fs::create_dir_all(&deep).unwrap();
    let hosts = Hosts::beside(&deep.join("store.db"));
    let presence = hosts.join(HostId::new(Machine.uuid())).unwrap();
    assert_eq!(hosts.ring(), 1);
    presence.rung().await;
}

#[tokio::test]
async fn locks_that_exclude_nobody_are_found_out_when_a_host_joins() {
    let fixture = Fixture::new();
    let hosts = fixture.hosts().without_exclusion();
    let clock: Arc<dyn Clock> = Arc::new(Machine);
    let drivers = Arc::new(Scripted::new(Arc::clone(&clock)));
    let joined = Host::join(fixture.store.clone(), hosts, clock, drivers, Config::default()).await;
    let told = joined.err().expect("it would be taken for dead").to_string();
    assert!(told.contains("lets two processes hold one lock"), "{told}");
    assert!(told.contains("keep the store on a local disk"), "{told}");
    assert_eq!(names(fixture.store.path()), Vec::<PathBuf>::new(), "nothing is left of it");
    assert!(fixture.store.hosts().unwrap().is_empty(), "nor is it announced");
    // Those who only watch do without a bell.
    let bell = Bell::new(&fixture.hosts().without_exclusion(), &Machine);
    bell.rung().await;
}

/// A process with no descriptor left can still tell the living from the dead.
#[tokio::test]
async fn a_lock_is_looked_at_even_when_no_descriptor_is_left() {
    let directory = TempDir::new().unwrap();
    let store = directory.path().join("store.db");
    let hosts = Hosts::beside(&store);
    let living = HostId::new(Machine.uuid());
    let presence = hosts.join(living).unwrap();
    let dead = leave(&hosts, &store);
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let few = rustix::process::Rlimit { current: Some(256), ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, few).unwrap();
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    for _ in 0..3 {
        assert!(hosts.is_alive(living).unwrap());
        assert!(!hosts.is_alive(dead).unwrap());
        assert!(!hosts.is_alive(HostId::new(Machine.uuid())).unwrap());
        assert!(std::fs::File::open("/dev/null").is_err(), "the one that is kept is kept");
    }
    drop((taken, presence));
}

/// A lock that cannot be looked at makes its host neither alive nor dead.
#[tokio::test]
async fn a_lock_that_cannot_be_looked_at_says_nothing() {
    let directory = TempDir::new().unwrap();
    let hosts = Hosts::beside(&directory.path().join("store.db"));
    let presence = hosts.join(HostId::new(Machine.uuid())).unwrap();
    let id = HostId::new(Machine.uuid());
    // A link to itself cannot be followed by anybody.
    let lock = hosts.directory().join(format!("{id}.lock"));
    std::os::unix::fs::symlink(&lock, &lock).unwrap();
    assert!(hosts.is_alive(id).is_err());
    drop(presence);
}

#[tokio::test]
async fn a_host_that_begins_to_keep_a_driver_is_found_however_long_there_was_none() {
    let directory = TempDir::new().unwrap();
    let hosts = Hosts::beside(&directory.path().join("store.db"));
    let (keeper, session) = (HostId::new(Machine.uuid()), SessionId::new(Machine.uuid()));
    let presence = hosts.join(keeper).unwrap();
    // What was read of a directory that has not changed for long is not read again.
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    std::fs::File::open(hosts.directory()).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(hosts.keeper_of(session), None);
    assert_eq!(hosts.keeper_of(session), None);
    let list = hosts.directory().join(format!("{keeper}.warm"));
    std::fs::write(&list, session.uuid().as_bytes()).unwrap();
    assert_eq!(hosts.keeper_of(session), Some(keeper));
    std::fs::File::open(hosts.directory()).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(hosts.keeper_of(session), Some(keeper));
    std::fs::remove_file(&list).unwrap();
    assert_eq!(hosts.keeper_of(session), None);
    drop(presence);
}
