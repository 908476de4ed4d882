//! Where a trial takes place: a directory with a store, and the marks that tools leave.

use std::path::{Path, PathBuf};

use adjourn::Adjourn;
use adjourn_testkit::store::{TENANT, keys};

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

    /// Opens the store as a program does that embeds the library, with the machine's own clock.
    ///
    /// # Panics
    /// It cannot be opened.
    pub fn embed(&self) -> Adjourn {
        let opening = Adjourn::builder(self.store()).keys(keys()).tenant(TENANT);
        opening.open_blocking().expect("the store opens")
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
