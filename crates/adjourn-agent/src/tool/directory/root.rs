//! The directory that tools work in: everything is opened below it, and nothing beside it.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::tool::ToolError;

/// How a file is opened that is only looked at. One that would let the opener wait does not.
const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// How a directory is opened.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// What a file may be done with that is made here, less what the umask takes away.
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);
/// The same for a directory.
const NEW_DIRECTORY: Mode = Mode::from_raw_mode(0o777);

/// A directory that is held open, so that it stays the same one wherever its path leads later.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    directory: OwnedFd,
}

impl Root {
    /// Opens a directory.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let directory = rustix::fs::open(&path, DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { path, directory })
    }

    /// Returns where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns where something in it is.
    pub(super) fn absolute(&self, place: &Path) -> String {
        self.path.join(place).to_string_lossy().into_owned()
    }

    /// Returns where a path leads in it, as far as the path itself tells.
    pub(super) fn within(&self, path: &str) -> Result<PathBuf, ToolError> {
        let outside = || ToolError::new(format!("{path:?} lies outside of the directory"));
        if path.contains('\0') {
            return Err(ToolError::new("a path has no zero in it"));
        }
        let given = Path::new(path);
        let given = match given.is_absolute() {
            true => given.strip_prefix(&self.path).map_err(|_| outside())?,
            false => given,
        };
        let mut place = PathBuf::new();
        for component in given.components() {
            match component {
                Component::Normal(name) => place.push(name),
                Component::CurDir => {}
                Component::ParentDir if place.pop() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(outside());
                }
            }
        }
        Ok(place)
    }

    /// Opens something below the directory, by whatever links lead there without leaving it.
    fn at(&self, place: &Path, flags: OFlags) -> Result<OwnedFd, ToolError> {
        let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
        beneath(&self.directory, place, flags | OFlags::CLOEXEC).map_err(|error| {
            let why = match error {
                Errno::XDEV => "it leads out of the directory".to_owned(),
                Errno::LOOP => "a link on the way to it is not followed".to_owned(),
                error => io::Error::from(error).to_string(),
            };
            ToolError::new(format!("{}: {why}", place.display()))
        })
    }

    /// Opens a directory.
    pub(super) fn directory(&self, place: &Path) -> Result<OwnedFd, ToolError> {
        self.at(place, DIRECTORY)
    }

    /// Looks whether a file lies in the directory, links followed, or is not there yet and would lie
    /// there. A client that is asked for it follows links, too.
    pub(super) fn check(&self, place: &Path) -> Result<(), ToolError> {
        match self.file(place) {
            Ok(_) => Ok(()),
            Err(_) if self.is_missing(place) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the first name on the way that leads nowhere is itself not there. A link that
    /// leads nowhere is there: a write through it makes its target, wherever that is.
    fn is_missing(&self, place: &Path) -> bool {
        let mut so_far = PathBuf::new();
        for component in place.components() {
            so_far.push(component);
            let look = |flags| beneath(&self.directory, &so_far, LOOK | OFlags::CLOEXEC | flags);
            match look(OFlags::empty()) {
                Ok(_) => {}
                Err(Errno::NOENT) => {
                    return matches!(look(OFlags::NOFOLLOW), Err(Errno::NOENT));
                }
                Err(_) => return false,
            }
        }
        false
    }

    /// Opens a file to be read.
    pub(super) fn file(&self, place: &Path) -> Result<File, ToolError> {
        let file = self.at(place, LOOK)?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(File::from(file)),
            FileType::Directory => {
                Err(ToolError::new(format!("{} is a directory", place.display())))
            }
            _ => Err(ToolError::new(format!("{} is no file", place.display()))),
        }
    }

    /// Reads a file, of which no more than `limit` bytes are read. Returns how long it is, too.
    pub(super) fn read(&self, place: &Path, limit: u64) -> Result<(Vec<u8>, u64), ToolError> {
        let file = self.file(place)?;
        let length = file.metadata()?.len();
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes)?;
        Ok((bytes, length))
    }

    /// Writes a file: all of it or nothing. Directories are made on the way.
    pub(super) fn write(&self, place: &Path, bytes: &[u8]) -> Result<(), ToolError> {
        let (Some(name), Some(parent)) = (place.file_name(), place.parent()) else {
            return Err(ToolError::new("the directory itself is no file"));
        };
        let parent = self.made(parent)?;
        let mode = match statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Some(Mode::from_raw_mode(stat.st_mode)),
                // What it leads to is written, if that lies in the directory.
                FileType::Symlink => {
                    let mut file = File::from(self.at(place, OFlags::WRONLY | OFlags::TRUNC)?);
                    file.write_all(bytes)?;
                    return Ok(file.sync_all()?);
                }
                _ => return Err(ToolError::new(format!("{} is no file", place.display()))),
            },
            Err(Errno::NOENT) => None,
            Err(error) => return Err(error.into()),
        };
        let mut passing = std::ffi::OsString::from(".");
        passing.push(name);
        passing.push(format!(".{}~", uuid::Uuid::now_v7().simple()));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&parent, &passing, flags, NEW_FILE)?);
        let written = (|| {
            file.write_all(bytes)?;
            if let Some(mode) = mode {
                fchmod(&file, mode)?;
            }
            file.sync_all()?;
            Ok::<_, io::Error>(renameat(&parent, &passing, &parent, name)?)
        })();
        if written.is_err() {
            // It may be that it cannot be taken away either; what failed is said.
            let _ = unlinkat(&parent, &passing, AtFlags::empty());
        }
        Ok(written?)
    }

    /// Opens a directory, which is made with those on the way to it.
    fn made(&self, place: &Path) -> Result<OwnedFd, ToolError> {
        let mut so_far = PathBuf::new();
        let mut directory = self.directory(&so_far)?;
        for component in place.components() {
            match mkdirat(&directory, component.as_os_str(), NEW_DIRECTORY) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            so_far.push(component);
            directory = self.directory(&so_far)?;
        }
        Ok(directory)
    }
}

/// Opens what a path leads to below a directory, and nothing else.
#[cfg(target_os = "linux")]
fn beneath(directory: &OwnedFd, place: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(directory, place, flags, Mode::empty(), within) {
        // An old system, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => step_by_step(directory, place, flags),
        opened => opened,
    }
}

/// Opens what a path leads to below a directory, and nothing else.
#[cfg(not(target_os = "linux"))]
fn beneath(directory: &OwnedFd, place: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    step_by_step(directory, place, flags)
}

/// Opens what a path leads to, one directory after the other, and follows no links.
fn step_by_step(directory: &OwnedFd, place: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut components = place.components().peekable();
    let mut reached: Option<OwnedFd> = None;
    while let Some(component) = components.next() {
        let flags = match components.peek() {
            Some(_) => DIRECTORY | OFlags::CLOEXEC,
            None => flags,
        };
        let from = reached.as_ref().unwrap_or(directory);
        let name = component.as_os_str();
        reached = Some(openat(from, name, flags | OFlags::NOFOLLOW, Mode::empty())?);
    }
    reached.ok_or(Errno::NOENT)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn without_help_of_the_system_no_link_is_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        std::fs::create_dir(path.join("a")).unwrap();
        std::fs::write(path.join("a/b"), "b").unwrap();
        symlink("a", path.join("link")).unwrap();
        symlink("/etc/hostname", path.join("a/out")).unwrap();
        let root = Root::open(path).unwrap();
        let open = |place: &str| step_by_step(&root.directory, Path::new(place), LOOK);
        assert!(open("a/b").is_ok());
        assert!(open("link/b").is_err());
        assert_eq!(open("a/out").unwrap_err(), Errno::LOOP);
    }
}
