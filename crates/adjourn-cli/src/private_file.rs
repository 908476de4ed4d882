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
        let name = name.to_string_lossy();
        clear_away(path, &name);
        let unfinished = path.with_file_name(unfinished(&name, std::process::id()));
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

/// Returns what a file is called while a process writes it.
fn unfinished(name: &str, process: u32) -> String {
    format!(".{name}.{process}.unfinished")
}

/// Removes what processes have left behind that were killed while they wrote the same file.
fn clear_away(path: &Path, name: &str) {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(parent.unwrap_or(Path::new("."))) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name().to_string_lossy().into_owned();
        let process = found
            .strip_prefix(&format!(".{name}."))
            .and_then(|rest| rest.strip_suffix(".unfinished")?.parse::<u32>().ok());
        if let Some(process) = process
            && !Path::new("/proc").join(process.to_string()).exists()
        {
            let _ = fs::remove_file(entry.path());
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_behind_is_cleared_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("record");
        // No process has this id: Linux gives none that is so high.
        let dead = directory.path().join(unfinished("record", u32::MAX));
        let alive = directory.path().join(unfinished("record", 1));
        let others = directory.path().join(unfinished("other", u32::MAX));
        for left in [&dead, &alive, &others] {
            fs::write(left, "half").unwrap();
        }
        PrivateFile::begin(&path, false).unwrap().finish(b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        let there = [&dead, &alive, &others].map(|left| left.exists());
        assert_eq!(there, [false, true, true]);
    }
}
