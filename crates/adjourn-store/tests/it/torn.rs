//! Writes that a crash cut short, at every length: the log behind a commit, and the pages that a
//! checkpoint carries from the log into the file.
//!
//! A kill seldom hits the middle of a write. Here its traces are made by hand.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use adjourn_core::id::SessionId;
use adjourn_store::{Sqlite, Store as _};
use adjourn_testkit::VirtualClock;
use adjourn_testkit::dice::Dice;

use crate::crash::{at_work, trios, turn_all};
use crate::fixture::{Fixture, keys};

const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const PAGE: usize = 4096;

#[test]
fn a_commit_cut_short_is_there_completely_or_not_at_all() {
    let mut dice = Dice::drawn();
    let fixture = Fixture::new();
    let store = with_a_trio(&fixture);
    let trio = trios(&store).remove(0);
    let before = Files::of(&fixture.path());
    let old = revision(&store, &trio).unwrap();
    turn(&store, &trio);
    let after = Files::of(&fixture.path());
    assert!(before.log.len() < after.log.len() && before.file == after.file);

    // Every end of a frame, and some places within each.
    let frame = FRAME_HEADER + PAGE;
    let mut cuts: Vec<_> = (before.log.len()..after.log.len()).step_by(frame).collect();
    let within: Vec<_> = cuts.iter().map(|cut| cut + 1 + dice.index(frame - 1)).collect();
    cuts.extend(within);
    for cut in cuts {
        for zeros in [false, true] {
            let mut log = after.log.clone();
            if zeros {
                // The file had grown, but its blocks were not written.
                log[cut..].fill(0);
            } else {
                log.truncate(cut);
            }
            let store = Files { log, ..after.clone() }.open();
            let found = revision(&store.1, &trio);
            assert_eq!(found, Some(old), "cut at {cut} of {}", after.log.len());
            turn(&store.1, &trio);
        }
    }
    let store = after.open();
    assert_eq!(revision(&store.1, &trio), Some(old + 1));
}

#[test]
fn a_checkpoint_cut_short_at_any_page_loses_nothing() {
    let mut dice = Dice::drawn();
    let fixture = Fixture::new();
    let store = with_a_trio(&fixture);
    let trio = trios(&store).remove(0);
    for _ in 0..5 {
        turn(&store, &trio);
    }
    let files = Files::of(&fixture.path());
    let newest = revision(&store, &trio);
    let pages = files.logged_pages();
    assert!(pages.len() > 30, "a checkpoint of only {} pages", pages.len());
    for written in (0..=pages.len()).step_by(3) {
        let mut file = files.file.clone();
        for (at, (number, page)) in pages.iter().enumerate().take(written) {
            let start = (number - 1) * PAGE;
            file.resize(file.len().max(start + PAGE), 0);
            // The last page it got to is there only in part.
            let end = if at + 1 == written { dice.index(PAGE) } else { PAGE };
            file[start..start + end].copy_from_slice(&page[..end]);
        }
        let store = Files { file, ..files.clone() }.open();
        assert_eq!(revision(&store.1, &trio), newest, "after {written} of {} pages", pages.len());
        turn(&store.1, &trio);
    }
}

/// A store file and its log, as a crash left them.
#[derive(Clone)]
struct Files {
    file: Vec<u8>,
    log: Vec<u8>,
    /// What says that the log is the file's.
    incarnation: Vec<u8>,
}

impl Files {
    /// Copies the files of a store that is open, and in which nothing is under way.
    fn of(path: &Path) -> Self {
        let log = std::fs::read(path.with_extension("db-wal")).unwrap();
        let incarnation = std::fs::read(path.with_extension("db-incarnation")).unwrap();
        assert!(!incarnation.is_empty());
        Self { file: std::fs::read(path).unwrap(), log, incarnation }
    }

    fn open(self) -> (Fixture, Sqlite) {
        let mut fixture = Fixture::new();
        // What goes on here must not take ids that are in the file.
        fixture.environment = Arc::new(VirtualClock::of_series(2));
        std::fs::write(fixture.path(), self.file).unwrap();
        std::fs::write(fixture.path().with_extension("db-wal"), self.log).unwrap();
        let sidecar = fixture.path().with_extension("db-incarnation");
        std::fs::write(sidecar, self.incarnation).unwrap();
        let store = fixture.open();
        assert_eq!(store.set_aside(), None);
        let connection = rusqlite::Connection::open(fixture.path()).unwrap();
        let check: String =
            connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(check, "ok");
        store.verify(&keys().ring(), None).unwrap().unwrap_or_else(|fault| panic!("{fault}"));
        (fixture, store)
    }

    /// Returns the newest version of every page in the log, in the order of a checkpoint.
    fn logged_pages(&self) -> BTreeMap<usize, &[u8]> {
        let frames = self.log[LOG_HEADER..].chunks_exact(FRAME_HEADER + PAGE);
        frames
            .map(|frame| {
                let (header, page) = frame.split_at(FRAME_HEADER);
                let number = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
                (number as usize, page)
            })
            .collect()
    }
}

fn with_a_trio(fixture: &Fixture) -> Sqlite {
    let store = fixture.open();
    for _ in 0..3 {
        at_work(&store);
    }
    turn(&store, &trios(&store).remove(0));
    store
}

fn turn(store: &Sqlite, trio: &[SessionId]) {
    let trio = trio.to_vec();
    store.transact(move |tx| turn_all(tx, &trio)).wait().unwrap();
}

/// Returns the revision of the three, which is one and the same.
fn revision(store: &Sqlite, trio: &[SessionId]) -> Option<u64> {
    let revisions: Vec<_> =
        trio.iter().map(|id| store.session(*id).unwrap().map(|found| found.revision)).collect();
    assert!(revisions.iter().all(|revision| *revision == revisions[0]), "{revisions:?}");
    revisions[0]
}
