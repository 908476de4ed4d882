//! Files that only their owner reads: written whole, or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file that is about to be written. It gets its name when all of it is there and synced.
pub struct PrivateFile {
    path: PathBuf,
    unfinished: PathBuf,
    file: File,
    replaces: bool,
}

impl PrivateFile {
    /// Makes sure that a file can be made, and that none is there yet unless it is to be replaced.
    pub fn begin(path: &Path, replaces: bool) -> Result<Self, Failure> {
        if !replaces && path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        let name = path.file_name().ok_or_else(|| {
            Failure::usage(format!("{} is not the name of a file", path.display()))
        })?;
        let name = format!(".{}.{}.unfinished", name.to_string_lossy(), std::process::id());
        let unfinished = path.with_file_name(name);
        // One that is there belongs to a process that had this id and died.
        let _ = fs::remove_file(&unfinished);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished);
        let file = file.map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path: path.to_owned(), unfinished, file, replaces })
    }

    /// Writes the file; from then on it outlasts a power cut.
    pub fn finish(mut self, text: &[u8]) -> Result<(), Failure> {
        self.file
            .write_all(text)
            .and_then(|()| self.file.sync_all())
            .map_err(|error| cannot_write(&self.path, &error))?;
        let named = match self.replaces {
            true => fs::rename(&self.unfinished, &self.path),
            // Unlike a rename, it does not take the place of a file that was made meanwhile.
            false => fs::hard_link(&self.unfinished, &self.path),
        };
        named.and_then(|()| synced(&self.path)).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => exists(&self.path),
            _ => cannot_write(&self.path, &error),
        })
    }
}

impl Drop for PrivateFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// Syncs the directory of a file, so that its name lasts.
fn synced(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all())
}

fn exists(path: &Path) -> Failure {
    Failure::refused("FILE_EXISTS", format!("{} is there already", path.display()))
        .hint("name another file, or let --force replace it")
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::other(format!("cannot write {}: {error}", path.display()))
}
