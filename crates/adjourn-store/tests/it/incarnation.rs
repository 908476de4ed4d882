//! A log belongs to one file: to no earlier one, to no backup, and to none that took its place.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adjourn_core::id::SessionId;
use adjourn_store::sqlite::{Options, Point, Points, restore};
use adjourn_store::{CommandError, Environment as _, Error, Sqlite, Store as _};
use adjourn_testkit::VirtualClock;

use crate::fixture::{Fixture, create, keys, prompt, try_create};
use crate::queries::WITHOUT_LISTS;

/// Returns the companion of a store with such an end.
fn beside(store: &Path, end: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// Copies a store that is open as a kill would leave it: the file, its log and what names it.
fn killed(from: &Path) -> Fixture {
    // What goes on there must not take ids that are in the file.
    let environment = Arc::new(VirtualClock::of_series(2));
    let fixture = Fixture { environment, ..Fixture::new() };
    for end in ["", "-wal", "-incarnation"] {
        std::fs::copy(beside(from, end), beside(&fixture.path(), end)).unwrap();
    }
    assert!(std::fs::metadata(beside(&fixture.path(), "-wal")).unwrap().len() > 0);
    fixture
}

fn sound(store: &Sqlite) {
    store.verify(&keys().ring(), None).unwrap().unwrap_or_else(|fault| panic!("{fault}"));
}

fn has(store: &Sqlite, id: SessionId) -> bool {
    store.session(id).unwrap().is_some()
}

/// A store with a session that an earlier backup has, and one that it has not.
struct Scene {
    fixture: Fixture,
    store: Sqlite,
    backup: PathBuf,
    early: SessionId,
    late: SessionId,
}

impl Scene {
    fn new() -> Self {
        let fixture = Fixture::new();
        let store = fixture.open();
        let early = create(&store);
        let backup = fixture.directory.path().join("backup.db");
        store.backup(&backup).unwrap();
        let late = create(&store);
        for turn in 0..30 {
            prompt(&store, late, "words").unwrap_or_else(|error| panic!("{turn}: {error}"));
            let close = adjourn_core::Command::Cancel(adjourn_core::command::Cancel::default());
            crate::fixture::give(&store, late, close).unwrap();
        }
        Self { fixture, store, backup, early, late }
    }
}

#[test]
fn a_backup_copied_over_a_store_is_not_ruined_by_the_log_that_was_left() {
    let scene = Scene::new();
    let after = killed(scene.store.path());
    std::fs::copy(&scene.backup, after.path()).unwrap();
    let store = after.open();
    sound(&store);
    assert!(has(&store, scene.early) && !has(&store, scene.late));
    let aside = store.set_aside().expect("the log was not written for the backup").clone();
    assert_eq!(aside.log, beside(store.path(), "-wal"));
    assert!(aside.now.exists(), "it is kept: {aside:?}");
    // It is a store like any other from then on: its own log is its own.
    let id = create(&store);
    let killed = killed(store.path());
    let again = killed.open();
    assert!(has(&again, id) && again.set_aside().is_none());
    sound(&again);
}

#[test]
fn what_was_set_aside_is_still_the_log_of_the_file_it_was_written_for() {
    let scene = Scene::new();
    let (kept, after) = (killed(scene.store.path()), killed(scene.store.path()));
    std::fs::copy(&scene.backup, after.path()).unwrap();
    let aside = after.open().set_aside().unwrap().now.clone();
    std::fs::copy(aside, beside(&kept.path(), "-wal")).unwrap();
    let store = kept.open();
    assert!(has(&store, scene.late) && store.set_aside().is_none());
    sound(&store);
}

#[test]
fn a_log_goes_with_its_file_wherever_it_is_copied() {
    let scene = Scene::new();
    let copied = killed(scene.store.path());
    // Whoever knows SQLite copies two files; without a name the log is taken for the file's own.
    let two = killed(scene.store.path());
    std::fs::remove_file(beside(&two.path(), "-incarnation")).unwrap();
    // A process was killed while it drew a new name.
    let unnamed = killed(scene.store.path());
    std::fs::write(beside(&unnamed.path(), "-incarnation"), format!("{:-<32}\n", "")).unwrap();
    for fixture in [copied, two, unnamed] {
        let store = fixture.open();
        assert!(has(&store, scene.late) && store.set_aside().is_none());
        sound(&store);
        assert!(!std::fs::read(beside(&fixture.path(), "-incarnation")).unwrap().is_empty());
    }
}

#[test]
fn the_log_of_a_deleted_store_is_not_taken_for_that_of_the_next() {
    let scene = Scene::new();
    let after = killed(scene.store.path());
    std::fs::remove_file(after.path()).unwrap();
    let store = after.open();
    assert!(store.set_aside().is_some_and(|aside| aside.now.exists()));
    assert_eq!(store.size().unwrap().sessions, 0);
}

#[test]
fn a_store_from_before_incarnations_gets_one_and_keeps_its_log() {
    let scene = Scene::new();
    let (fixture, store, late) = (&scene.fixture, &scene.store, scene.late);
    let older = rusqlite::Connection::open(fixture.path()).unwrap();
    older.execute_batch(WITHOUT_LISTS).unwrap();
    older
        .execute_batch("DROP TABLE identity; DROP TABLE unprompted; PRAGMA user_version = 3")
        .unwrap();
    let after = killed(store.path());
    std::fs::remove_file(beside(&after.path(), "-incarnation")).unwrap();
    let store = after.open();
    assert!(has(&store, late) && store.set_aside().is_none());
    assert!(!std::fs::read(beside(&after.path(), "-incarnation")).unwrap().is_empty());
    // A backup from before incarnations is another file, too.
    drop(store);
    let scene = Scene::new();
    let after = killed(scene.store.path());
    let backup = rusqlite::Connection::open(&scene.backup).unwrap();
    backup.execute_batch(WITHOUT_LISTS).unwrap();
    backup
        .execute_batch("DROP TABLE identity; DROP TABLE unprompted; PRAGMA user_version = 3")
        .unwrap();
    drop(backup);
    std::fs::copy(&scene.backup, after.path()).unwrap();
    let store = after.open();
    assert!(store.set_aside().is_some() && !has(&store, scene.late));
    sound(&store);
}

#[test]
fn of_many_who_find_a_wrong_log_at_once_one_sets_it_aside() {
    let scene = Scene::new();
    let after = killed(scene.store.path());
    std::fs::copy(&scene.backup, after.path()).unwrap();
    let found: Vec<_> = std::thread::scope(|scope| {
        let openers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let store = after.open();
                    assert!(has(&store, scene.early) && !has(&store, scene.late));
                    (create(&store), store.set_aside().is_some())
                })
            })
            .collect();
        openers.into_iter().map(|opener| opener.join().unwrap()).collect()
    });
    assert_eq!(found.iter().filter(|(_, set_aside)| *set_aside).count(), 1);
    let store = after.open();
    assert!(found.iter().all(|(id, _)| has(&store, *id)), "nobody's commit went with the log");
    sound(&store);
}

#[test]
fn of_many_who_make_a_store_at_once_all_find_the_same() {
    let fixture = Fixture::new();
    let made: Vec<_> = std::thread::scope(|scope| {
        let makers: Vec<_> = (0..8).map(|_| scope.spawn(|| create(&fixture.open()))).collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    let store = fixture.open();
    assert!(store.set_aside().is_none() && made.iter().all(|id| has(&store, *id)));
}

#[test]
fn nothing_is_acknowledged_into_a_file_that_is_no_longer_at_the_path() {
    type Change = fn(&Path, &Path);
    let changes: [(&str, Change); 3] = [
        ("it was deleted or moved away", |store, _| std::fs::remove_file(store).unwrap()),
        ("it was deleted or moved away", |store, _| {
            std::fs::rename(store, store.with_extension("old")).unwrap();
        }),
        ("another file is in its place", |store, backup| std::fs::rename(backup, store).unwrap()),
    ];
    // Before the commit, and while it is under way.
    for at in [None, Some(Point::BeforeCommit), Some(Point::AfterCommit)] {
        for (told, change) in changes {
            let fixture = Fixture::new();
            let (path, backup) = (fixture.path(), fixture.directory.path().join("backup.db"));
            fixture.open().backup(&backup).unwrap();
            let armed = Arc::new(AtomicBool::new(false));
            let points = {
                let (armed, path, backup) = (armed.clone(), path.clone(), backup.clone());
                Points::hooked(move |point| {
                    if Some(point) == at && armed.swap(false, Ordering::SeqCst) {
                        change(&path, &backup);
                    }
                })
            };
            let store = Sqlite::open(Options { points, ..fixture.options() }).unwrap();
            create(&store);
            store.still_there().unwrap();
            match at {
                None => change(&path, &backup),
                Some(_) => armed.store(true, Ordering::SeqCst),
            }
            let error = try_create(&store).unwrap_err();
            let CommandError::Store(Error::Replaced { problem, .. }) = &error else {
                panic!("{at:?}: {error}")
            };
            assert_eq!(*problem, told, "{at:?}");
            assert!(store.still_there().unwrap_err().hint().unwrap().contains("adjourn restore"));
        }
    }
}

/// SQLite goes on with a log and an index that have no name any more, and others make new ones.
#[test]
fn nothing_is_acknowledged_into_a_log_that_is_no_longer_beside_the_store() {
    for at in [None, Some(Point::BeforeCommit), Some(Point::AfterCommit)] {
        for (suffix, replaced) in [("-wal", false), ("-wal", true), ("-shm", false), ("-shm", true)]
        {
            let fixture = Fixture::new();
            let path = beside(&fixture.path(), suffix);
            let change = move || {
                let there = std::fs::read(&path).unwrap();
                std::fs::remove_file(&path).unwrap();
                if replaced {
                    std::fs::write(&path, there).unwrap();
                }
            };
            let armed = Arc::new(AtomicBool::new(false));
            let points = {
                let (armed, change) = (armed.clone(), change.clone());
                Points::hooked(move |point| {
                    if Some(point) == at && armed.swap(false, Ordering::SeqCst) {
                        change();
                    }
                })
            };
            let store = Sqlite::open(Options { points, ..fixture.options() }).unwrap();
            create(&store);
            store.still_there().unwrap();
            match at {
                None => change(),
                Some(_) => armed.store(true, Ordering::SeqCst),
            }
            let error = try_create(&store).unwrap_err();
            let CommandError::Store(Error::Replaced { path, problem }) = &error else {
                panic!("{at:?} {suffix}: {error}")
            };
            let told = if replaced { "another file is in its place" } else { "it was deleted" };
            assert!(problem.starts_with(told), "{at:?} {suffix}: {error}");
            assert_eq!(*path, beside(&fixture.path(), suffix), "{at:?}");
            assert!(store.still_there().is_err());
        }
    }
}

/// What was in a log that somebody deleted is lost; nothing of it is mixed with what comes next.
#[test]
fn a_store_whose_log_was_deleted_under_a_host_is_sound_for_the_next() {
    let fixture = Fixture::new();
    let early = create(&fixture.open());
    let store = fixture.open();
    let late = create(&store);
    std::fs::remove_file(beside(&fixture.path(), "-wal")).unwrap();
    try_create(&store).unwrap_err();
    drop(store);
    let store = fixture.open();
    let next = create(&store);
    sound(&store);
    assert!(has(&store, early) && has(&store, next) && !has(&store, late));
}

#[test]
fn a_file_that_was_copied_over_the_store_is_noticed() {
    let scene = Scene::new();
    scene.store.still_there().unwrap();
    std::fs::copy(&scene.backup, scene.fixture.path()).unwrap();
    let error = scene.store.still_there().unwrap_err();
    assert!(error.to_string().ends_with("another file was copied over it"), "{error}");
    // What it had in its log does not follow it into the other file.
    let Scene { fixture, store, early, late, .. } = scene;
    assert!(std::fs::metadata(beside(&fixture.path(), "-wal")).unwrap().len() > 0);
    drop(store);
    let store = fixture.open();
    assert!(has(&store, early) && !has(&store, late) && store.set_aside().is_some());
    sound(&store);
}

#[test]
fn a_file_that_was_copied_over_the_store_is_not_ruined_by_closing_or_by_a_commit() {
    for commits in [false, true] {
        let scene = Scene::new();
        std::fs::copy(&scene.backup, scene.fixture.path()).unwrap();
        let Scene { fixture, store, early, late, .. } = scene;
        if commits {
            let error = try_create(&store).unwrap_err();
            assert!(error.to_string().ends_with("another file was copied over it"), "{error}");
        }
        drop(store);
        let store = fixture.open();
        assert!(has(&store, early) && !has(&store, late) && store.set_aside().is_some());
        sound(&store);
    }
}

#[test]
fn a_process_that_only_reads_does_not_carry_the_log_into_another_file() {
    let scene = Scene::new();
    let after = killed(scene.store.path());
    let reader = Sqlite::look(&after.path(), after.environment.clone(), 0).unwrap();
    assert!(has(&reader, scene.late));
    std::fs::copy(&scene.backup, after.path()).unwrap();
    drop(reader);
    let store = after.open();
    assert!(has(&store, scene.early) && !has(&store, scene.late));
    sound(&store);
}

#[test]
fn a_plain_copy_of_a_closed_store_is_not_ruined_by_a_later_log() {
    let fixture = Fixture::new();
    let early = create(&fixture.open());
    let cold = std::fs::read(fixture.path()).unwrap();
    // Carried into the file, beyond what the copy has.
    let middle: Vec<_> = (0..60).map(|_| create(&fixture.open())).collect();
    let store = fixture.open();
    let late = create(&store);
    let after = killed(store.path());
    std::fs::write(after.path(), cold).unwrap();
    let store = after.open();
    assert!(store.set_aside().is_some(), "the log was written for a later file");
    assert!(has(&store, early) && !has(&store, late) && !has(&store, middle[0]));
    sound(&store);
}

#[test]
fn a_store_that_is_open_keeps_its_incarnation() {
    let Scene { fixture, store, late, .. } = Scene::new();
    let named = || std::fs::read(beside(&fixture.path(), "-incarnation")).unwrap();
    let before = named();
    create(&fixture.open());
    assert_eq!(named(), before);
    store.still_there().unwrap();
    drop(store);
    // Nor does one that cannot be had alone, whatever the locks beside it say.
    let other = rusqlite::Connection::open(fixture.path()).unwrap();
    other.query_row("SELECT count(*) FROM session", [], |_| Ok(())).unwrap();
    assert!(has(&fixture.open(), late));
    assert_eq!(named(), before);
    drop(other);
    assert!(has(&fixture.open(), late));
    assert_ne!(named(), before);
}

#[test]
fn a_store_that_is_closed_leaves_no_log() {
    let Scene { fixture, store, late, .. } = Scene::new();
    let reader = Sqlite::look(&fixture.path(), fixture.environment.clone(), 0).unwrap();
    assert!(has(&reader, late));
    drop(store);
    assert!(beside(&fixture.path(), "-wal").exists(), "another process may read it");
    drop(reader);
    assert!(!beside(&fixture.path(), "-wal").exists());
}

#[test]
fn a_backup_is_restored_and_what_was_there_is_kept() {
    let scene = Scene::new();
    let after = killed(scene.store.path());
    let restored = restore(&scene.backup, &after.path(), after.environment.clone()).unwrap();
    assert_eq!(restored.kept.len(), 3, "{restored:?}");
    let store = after.open();
    assert!(has(&store, scene.early) && !has(&store, scene.late));
    assert!(store.set_aside().is_none(), "no log was left");
    sound(&store);
    assert!(scene.backup.exists() && !beside(&scene.backup, "-incarnation").exists());
    // What was kept is a store, and nothing of it is lost.
    let options = Options { path: restored.kept[0].clone(), ..after.options() };
    let old = Sqlite::open(options).unwrap();
    assert!(has(&old, scene.late) && old.set_aside().is_none());
    sound(&old);
    // The same backup serves again: each copy is one of its own.
    drop(store);
    restore(&scene.backup, &after.path(), after.environment.clone()).unwrap();
    assert!(has(&after.open(), scene.early));
}

/// The process was killed when the backup had its place, and the log of the file before had not gone:
/// no sidecar had named that file yet.
#[test]
fn a_restore_that_is_cut_short_leaves_no_log_that_is_taken_for_the_backups() {
    let scene = Scene::new();
    let hex = |path: &Path| -> String {
        let store = rusqlite::Connection::open(path).unwrap();
        let sql = "SELECT lower(hex(incarnation)) FROM identity";
        store.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let named = format!("not {}\n", hex(&scene.backup));
    // Before the backup had its place, the log is still that of the file which is there.
    let before = killed(scene.store.path());
    std::fs::write(beside(&before.path(), "-incarnation"), &named).unwrap();
    assert!(has(&before.open(), scene.late));
    let after = killed(scene.store.path());
    std::fs::write(beside(&after.path(), "-incarnation"), &named).unwrap();
    std::fs::copy(&scene.backup, after.path()).unwrap();
    let store = after.open();
    assert!(store.set_aside().is_some());
    assert!(has(&store, scene.early) && !has(&store, scene.late));
    sound(&store);
}

#[test]
fn a_restore_over_a_store_whose_log_has_no_name_is_whole() {
    let scene = Scene::new();
    let after = killed(scene.store.path());
    std::fs::write(beside(&after.path(), "-incarnation"), "").unwrap();
    let restored = restore(&scene.backup, &after.path(), after.environment.clone()).unwrap();
    let store = after.open();
    assert!(has(&store, scene.early) && !has(&store, scene.late));
    sound(&store);
    drop(store);
    // What was there is a store, with its log.
    let kept = Options { path: restored.kept[0].clone(), ..after.options() };
    assert!(has(&Sqlite::open(kept).unwrap(), scene.late));
}

#[test]
fn a_restore_that_fails_halfway_leaves_no_second_names() {
    let scene = Scene::new();
    let after = killed(scene.store.path());
    let now = after.environment.now().to_string();
    let digits: String = now.chars().filter(char::is_ascii_alphanumeric).collect();
    let old = beside(&after.path(), &format!(".before-{digits}"));
    // The database can be kept, its log cannot.
    std::fs::create_dir(beside(&old, "-wal")).unwrap();
    restore(&scene.backup, &after.path(), after.environment.clone()).unwrap_err();
    assert!(!old.exists());
    assert!(has(&after.open(), scene.late));
}

#[test]
fn a_backup_that_is_cut_short_has_no_name_yet() {
    let scene = Scene::new();
    let to = scene.fixture.directory.path().join("second.db");
    // What one before left, which was killed.
    std::fs::write(beside(&to, ".unfinished"), "half").unwrap();
    scene.store.backup(&to).unwrap();
    assert!(!beside(&to, ".unfinished").exists());
    scene.store.backup(&to).unwrap_err();
    let copy = Sqlite::look(&to, scene.fixture.environment.clone(), 0).unwrap();
    assert!(has(&copy, scene.late));
}

#[test]
fn a_restore_that_is_refused_changes_nothing() {
    let scene = Scene::new();
    let path = scene.fixture.path();
    let put = |from: &Path| restore(from, &path, scene.fixture.environment.clone());
    let refused = put(&scene.backup).unwrap_err();
    assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    let other = scene.fixture.directory.path().join("other.db");
    std::fs::write(&other, "no store at all, but long enough to be looked at as one").unwrap();
    let refused = put(&other).unwrap_err();
    assert!(matches!(refused, Error::NotAStore { .. }), "{refused}");
    std::fs::write(&other, "").unwrap();
    assert!(matches!(put(&other).unwrap_err(), Error::NotAStore { .. }));
    drop(scene.store);
    assert!(put(&path).unwrap_err().to_string().contains("it is the store itself"));
    // One whose middle is gone opens, but is no store to go on with.
    let mut broken = std::fs::read(&scene.backup).unwrap();
    let middle = broken.len() / 2;
    broken[middle..middle + 4096].fill(0xff);
    std::fs::write(&other, broken).unwrap();
    put(&other).unwrap_err();
    let store = scene.fixture.open();
    assert!(has(&store, scene.late));
    let left = std::fs::read_dir(scene.fixture.directory.path()).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_str().unwrap().contains("restor")), "{left:?}");
    let hasty = Options { patience: Duration::ZERO, ..scene.fixture.options() };
    drop(Sqlite::open(hasty).unwrap());
}
