//! The directory that tools work in: everything is opened below it, and nothing beside it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fstat, mkdirat, openat, readlinkat, renameat, stat,
    statat, unlinkat,
};
use rustix::io::Errno;

use crate::tool::ToolError;

/// How a file is opened that is only looked at. One that would let the opener wait does not.
const LOOK: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
/// How a directory is opened.
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// How many links may lead to a file; the system's own limit.
const MOST_LINKS: usize = 40;
/// How many directories a way may go through that is taken one after the other.
const MOST_DIRECTORIES: usize = 128;
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
            true => self.below(given).ok_or_else(outside)?,
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

    /// Returns what is left of an absolute path behind the directory, by whichever of its names the
    /// path goes: it may be reached by a link. Nothing is opened by that name.
    fn below<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        if let Ok(rest) = path.strip_prefix(&self.path) {
            return Some(rest);
        }
        let own = fstat(&self.directory).ok()?;
        let is_own = |name: &&Path| {
            stat(*name).is_ok_and(|found| (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino))
        };
        path.strip_prefix(path.ancestors().find(is_own)?).ok()
    }

    /// Opens something below the directory, by whatever links lead there without leaving it.
    fn at(&self, place: &Path, flags: OFlags) -> Result<OwnedFd, ToolError> {
        self.beneath(place, flags | OFlags::CLOEXEC).map_err(|error| {
            let why = match error {
                Errno::XDEV => "it leads out of the directory".to_owned(),
                Errno::LOOP => "there are too many links on the way to it".to_owned(),
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
            let look = |flags| self.beneath(&so_far, LOOK | OFlags::CLOEXEC | flags);
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
        let mut passing = OsString::from(".");
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

    /// Opens what a path leads to below the directory, and nothing else.
    #[cfg(target_os = "linux")]
    fn beneath(&self, place: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        use rustix::fs::{ResolveFlags, openat2};

        let place = if place.as_os_str().is_empty() { Path::new(".") } else { place };
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.directory, place, flags, Mode::empty(), within) {
            // An old system, or a sandbox that does not know the call; something leads out, as the
            // system takes every absolute link to do; or something was renamed meanwhile, anywhere.
            Err(Errno::NOSYS | Errno::PERM | Errno::XDEV | Errno::AGAIN) => {
                self.step_by_step(place, flags)
            }
            opened => opened,
        }
    }

    /// Opens what a path leads to below the directory, and nothing else.
    #[cfg(not(target_os = "linux"))]
    fn beneath(&self, place: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.step_by_step(place, flags)
    }

    /// Opens what a path leads to, one directory after the other.
    ///
    /// The system follows no link here. What a link names is looked for below the directory, and
    /// `..` goes back to the directory that the way came by, which is held open: whatever is swapped
    /// or moved meanwhile, no step leads out.
    fn step_by_step(&self, place: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut way: Vec<OwnedFd> = Vec::new();
        let mut rest = Vec::new();
        ahead(&mut rest, place);
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                way.pop().ok_or(Errno::XDEV)?;
                continue;
            }
            let from = way.last().unwrap_or(&self.directory);
            let (is_last, follows) = (rest.is_empty(), !flags.contains(OFlags::NOFOLLOW));
            // What is no link cannot be read as one; what is wrong otherwise, opening it tells.
            if let Ok(target) = readlinkat(from, &name, Vec::new())
                && (follows || !is_last)
            {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = Path::new(OsStr::from_bytes(target.as_bytes()));
                let target = match target.is_absolute() {
                    true => {
                        way.clear();
                        self.below(target).ok_or(Errno::XDEV)?
                    }
                    false => target,
                };
                ahead(&mut rest, target);
                continue;
            }
            let flags = if is_last { flags } else { DIRECTORY | OFlags::CLOEXEC };
            let opened = openat(from, &name, flags | OFlags::NOFOLLOW, Mode::empty())?;
            if is_last {
                return Ok(opened);
            }
            // Each is held open.
            if way.len() == MOST_DIRECTORIES {
                return Err(Errno::NAMETOOLONG);
            }
            way.push(opened);
        }
        // It ends at a directory that the way came by.
        openat(way.last().unwrap_or(&self.directory), ".", flags, Mode::empty())
    }
}

/// Puts the names of a path before those that are left of a way, the first one last.
fn ahead(rest: &mut Vec<OsString>, path: &Path) {
    let names = path.components().rev().filter_map(|component| match component {
        Component::Normal(name) => Some(name),
        Component::ParentDir => Some(OsStr::new("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    });
    rest.extend(names.map(OsStr::to_owned));
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn without_help_of_the_system_links_are_followed_and_lead_nowhere_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        std::fs::create_dir_all(path.join("a/deep")).unwrap();
        std::fs::write(path.join("a/b"), "b").unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("b"), "outside").unwrap();
        let up = Path::new("..").join(outside.path().file_name().unwrap());
        for (target, name) in [
            (Path::new("a"), "link"),
            (&path.join("a"), "absolute"),
            (&path.join("link/deep/../b"), "over"),
            (Path::new("a/deep/.."), "back"),
            (Path::new("a/../../x"), "above"),
            (outside.path(), "out"),
            (&up, "up"),
            (Path::new("round"), "round"),
            (&path.join("none"), "nowhere"),
        ] {
            symlink(target, path.join(name)).unwrap();
        }
        let root = Root::open(path).unwrap();
        let open = |place: &str| root.step_by_step(Path::new(place), LOOK).map(File::from);
        for place in ["a/b", "link/b", "absolute/b", "over", "back/b", "link/deep/../b"] {
            let read = open(place).map(|file| io::read_to_string(file).unwrap());
            assert_eq!(read.as_deref(), Ok("b"), "{place}");
        }
        assert!(open("back").unwrap().metadata().unwrap().is_dir());
        assert!(open(".").unwrap().metadata().unwrap().is_dir());
        for (place, why) in [
            ("out/b", Errno::XDEV),
            ("up/b", Errno::XDEV),
            ("above", Errno::XDEV),
            ("..", Errno::XDEV),
            ("round", Errno::LOOP),
            ("nowhere", Errno::NOENT),
            ("a/b/c", Errno::NOTDIR),
        ] {
            assert_eq!(open(place).map(|_| ()).unwrap_err(), why, "{place}");
        }
        let unfollowed = root.step_by_step(Path::new("nowhere"), LOOK | OFlags::NOFOLLOW);
        assert_eq!(unfollowed.unwrap_err(), Errno::LOOP);
    }
}
