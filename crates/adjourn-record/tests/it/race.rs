//! Two that find no key make one between them: threads of a process, and processes.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Barrier;

use adjourn_record::keys::KeyDir;

use crate::fixtures::NOW;

const DIR: &str = "ADJOURN_RECORD_RACE_DIR";
const RACERS: usize = 8;

fn key_files(path: &Path) -> usize {
    let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("key-")).count()
}

#[test]
fn threads_that_race_for_the_first_key_share_one() {
    let root = tempfile::tempdir().unwrap();
    let dir = KeyDir::new(root.path().join("config/adjourn/keys"));
    let barrier = Barrier::new(RACERS);
    let ids: BTreeSet<_> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS)
            .map(|_| {
                scope.spawn(|| {
                    barrier.wait();
                    dir.load(NOW).unwrap().current().id()
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    assert_eq!((ids.len(), key_files(dir.path())), (1, 1));
}

#[test]
fn processes_that_race_for_the_first_key_share_one() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("keys");
    let mut racers: Vec<_> = (0..RACERS)
        .map(|_| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "race::racer", "--nocapture"])
                .env(DIR, &path)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    // They wait for the end of their input, so that all of them are running when the race begins.
    racers.iter_mut().for_each(|racer| drop(racer.stdin.take()));
    let ids: BTreeSet<_> = racers
        .into_iter()
        .map(|racer| {
            let output = racer.wait_with_output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let id = text.split_whitespace().find(|word| word.starts_with("key-"));
            id.unwrap_or_else(|| panic!("no key: {text}")).to_owned()
        })
        .collect();
    assert_eq!((ids.len(), key_files(&path)), (1, 1));
}

/// One process of the race above; by itself it does nothing.
#[test]
fn racer() {
    let Some(path) = std::env::var_os(DIR) else { return };
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    println!(" {} ", KeyDir::new(path).load(NOW).unwrap().current().id());
}

#[test]
fn rotations_that_race_make_a_key_each_and_agree_on_the_last() {
    let root = tempfile::tempdir().unwrap();
    let dir = KeyDir::new(root.path().join("keys"));
    std::thread::scope(|scope| {
        for _ in 0..RACERS {
            scope.spawn(|| dir.rotate(NOW).unwrap());
        }
    });
    assert_eq!(key_files(dir.path()), RACERS);
    assert_eq!(dir.load(NOW).unwrap().current().id(), dir.load(NOW).unwrap().current().id());
}
