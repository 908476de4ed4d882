//! The sessions that a process shows to its clients, or whose drivers it keeps warm, where other
//! hosts can read them.
//!
//! Each list is a file beside the host's lock, 16 bytes for a session: clients come and go often,
//! and none of that is worth a commit. A host's row in the store is read by every `ls` and would have
//! to be bounded; a file of any length costs only those who are about to claim a session that may
//! be in it. What is read while the file is written may be out of date by one session, which
//! costs no more than a moment's wait.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjourn_core::id::SessionId;
use uuid::Uuid;

/// The length of a session's id in the file.
const ID_BYTES: usize = 16;

/// Sessions that a process has something for: a client that sees them, or a driver that is kept.
#[derive(Debug, Clone)]
pub(crate) struct Shown(Arc<Mutex<List>>);

#[derive(Debug)]
struct List {
    path: PathBuf,
    /// None before the first session is shown, and if it cannot be written: then others do not
    /// know, and claim without waiting.
    file: Option<File>,
    /// What the file has, in its order.
    ids: Vec<SessionId>,
    /// For each session its place in the file, and how many clients see it.
    places: HashMap<SessionId, Place>,
    /// Whether the host stops, so that others need not wait for it.
    closed: bool,
}

#[derive(Debug)]
struct Place {
    index: usize,
    clients: usize,
}

/// A client that sees a session; it does until this is dropped.
#[derive(Debug)]
pub struct Showing {
    shown: Shown,
    id: SessionId,
}

impl Shown {
    /// Keeps the list in a file, which is made when the first session is shown.
    pub(crate) fn at(path: PathBuf) -> Self {
        let list =
            List { path, file: None, ids: Vec::new(), places: HashMap::new(), closed: false };
        Self(Arc::new(Mutex::new(list)))
    }

    /// Takes note that one more client sees a session.
    pub(crate) fn show(&self, id: SessionId) -> Showing {
        self.list().add(id);
        Showing { shown: self.clone(), id }
    }

    /// Returns whether a client of this process sees a session.
    pub(crate) fn contains(&self, id: SessionId) -> bool {
        self.list().places.contains_key(&id)
    }

    /// Writes the file anew, if it was cleared away.
    pub(crate) fn renew(&self) {
        let mut list = self.list();
        if !list.ids.is_empty() && !list.closed {
            list.file = None;
            list.write_all();
        }
    }

    /// Shows nothing to others from now on: the host stops, and takes no further session.
    pub(crate) fn close(&self) {
        let mut list = self.list();
        list.closed = true;
        if list.file.take().is_some() {
            // The host's other files go in a moment; if this one stays until then, others wait.
            let _ = std::fs::remove_file(&list.path);
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        // Nothing that is done with it can leave it half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        self.shown.list().remove(self.id);
    }
}

impl List {
    fn add(&mut self, id: SessionId) {
        if let Some(place) = self.places.get_mut(&id) {
            place.clients += 1;
            return;
        }
        let index = self.ids.len();
        self.ids.push(id);
        self.places.insert(id, Place { index, clients: 1 });
        if self.closed {
            return;
        }
        match self.file {
            Some(_) => self.write(|file| write_at(file, index, id)),
            None => self.write_all(),
        }
    }

    fn remove(&mut self, id: SessionId) {
        let Some(place) = self.places.get_mut(&id) else { return };
        place.clients -= 1;
        if place.clients > 0 {
            return;
        }
        let index = place.index;
        self.places.remove(&id);
        self.ids.swap_remove(index);
        let moved = self.ids.get(index).copied();
        if let Some(place) = moved.and_then(|moved| self.places.get_mut(&moved)) {
            place.index = index;
        }
        let length = (self.ids.len() * ID_BYTES) as u64;
        self.write(|file| {
            // The last one takes its place first, so that it is in the file at any time.
            moved.map_or(Ok(()), |moved| write_at(file, index, moved))?;
            file.set_len(length)
        });
    }

    fn write(&mut self, write: impl FnOnce(&File) -> io::Result<()>) {
        if self.file.as_ref().is_some_and(|file| write(file).is_err()) {
            self.file = None;
        }
    }

    fn write_all(&mut self) {
        let mut private = File::options();
        private.create(true).truncate(true).write(true).mode(0o600);
        self.file = private.open(&self.path).ok();
        let bytes: Vec<_> = self.ids.iter().flat_map(|id| *id.uuid().as_bytes()).collect();
        self.write(|file| file.write_all_at(&bytes, 0));
    }
}

fn write_at(file: &File, index: usize, id: SessionId) -> io::Result<()> {
    file.write_all_at(id.uuid().as_bytes(), (index * ID_BYTES) as u64)
}

/// Reads which sessions a process shows; none if it shows none, or if that cannot be read.
pub(crate) fn read(path: &Path) -> HashSet<SessionId> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let (ids, _) = bytes.as_chunks::<ID_BYTES>();
    ids.iter().map(|id| SessionId::new(Uuid::from_bytes(*id))).collect()
}

#[cfg(test)]
mod tests {
    use adjourn_store::Environment as _;
    use tempfile::TempDir;

    use super::*;
    use crate::clock::Machine;

    #[test]
    fn others_read_what_is_shown_as_long_as_a_client_sees_it() {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("host.shown");
        let shown = Shown::at(path.clone());
        assert_eq!(read(&path), HashSet::new());
        let ids: Vec<_> = (0..1500).map(|_| SessionId::new(Machine.uuid())).collect();
        let mut clients: Vec<_> = ids.iter().map(|id| shown.show(*id)).collect();
        let again = shown.show(ids[3]);
        assert_eq!(read(&path), ids.iter().copied().collect());
        // From the middle, so that others take their places.
        clients.drain(1..1499);
        assert_eq!(read(&path), [ids[0], ids[3], ids[1499]].into_iter().collect());
        assert!(shown.contains(ids[3]) && !shown.contains(ids[4]));
        drop(again);
        assert_eq!(read(&path), [ids[0], ids[1499]].into_iter().collect());
        std::fs::remove_file(&path).unwrap();
        shown.renew();
        assert_eq!(read(&path), [ids[0], ids[1499]].into_iter().collect());
        shown.close();
        assert_eq!(read(&path), HashSet::new(), "a host that stops shows nothing");
    }

    #[test]
    fn what_cannot_be_written_is_shown_all_the_same() {
        let shown = Shown::at(PathBuf::from("/nowhere/host.shown"));
        let id = SessionId::new(Machine.uuid());
        let client = shown.show(id);
        assert!(shown.contains(id));
        drop(client);
        assert!(!shown.contains(id));
    }
}
