//! Where a trial takes place: a directory with a store, and the marks that tools leave.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adjourn::Adjourn;
use adjourn::clock::Machine;
use adjourn::doorbell::Hosts;
use adjourn_store::Sqlite;
use adjourn_testkit::store::options;

/// A directory with a store and the marks of its agents' tools.
#[derive(Debug, Clone)]
pub struct Scene(PathBuf);

impl Scene {
    /// Names the directory; it must be there.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self(directory.into())
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// Returns where the store is.
    pub fn store(&self) -> PathBuf {
        self.0.join("store.db")
    }

    /// Returns where tools leave their marks.
    pub fn marks(&self) -> PathBuf {
        self.0.join("marks")
    }

    /// Opens the store, with the machine's own clock.
    ///
    /// # Panics
    /// It cannot be opened.
    pub fn open(&self) -> Sqlite {
        Sqlite::open(options(self.store(), Arc::new(Machine))).expect("the store opens")
    }

    /// Opens the store as a program does that embeds the library.
    ///
    /// # Panics
    /// It cannot be opened.
    pub fn embed(&self) -> Adjourn {
        adjourn_testkit::host::embed(self.open(), Arc::new(Machine)).expect("the store works")
    }

    /// Returns the hosts of the store.
    pub fn hosts(&self) -> Hosts {
        Hosts::beside(&self.store())
    }

    /// Returns the files that hosts and watchers keep beside the store.
    pub fn files_of_hosts(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.0.join("store.db.hosts")) else {
            return Vec::new();
        };
        // What hosts do one at a time has a lock that is no host's, and stays.
        let is_of_host = |path: &PathBuf| path.extension().is_some();
        entries.flatten().map(|entry| entry.path()).filter(is_of_host).collect()
    }
}
