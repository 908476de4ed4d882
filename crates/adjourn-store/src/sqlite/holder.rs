//! Who has the write lock: so that whoever waits in vain can say whom to look at.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::turnstile::beside;

/// Where the write lock lies in the index of the log, by SQLite's file format.
const WRITE_LOCK: u64 = 120;

/// A process that has the write lock, as far as the system tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// Its number, where the system tells it.
    pub process: Option<u32>,
    /// Whether it is stopped, by a signal or a debugger.
    pub stopped: bool,
}

impl Holder {
    /// Looks who has the write lock of a store.
    pub(super) fn of(store: &Path) -> Self {
        Self::found(Self::find(&beside(store, "-shm"), writes))
    }

    /// Looks who has locked a whole file.
    pub(super) fn of_flock(file: &Path) -> Self {
        Self::found(Self::find(file, |line, file| holds(line, file, "FLOCK")))
    }

    /// Looks which other process has a database open, this program or another: SQLite holds a
    /// lock on it meanwhile.
    pub(super) fn of_database(file: &Path) -> Option<Self> {
        let process = Self::find(file, |line, file| holds(line, file, "POSIX"))?;
        Some(Self::found(Some(process)))
    }

    fn found(process: Option<u32>) -> Self {
        Self { process, stopped: process.is_some_and(is_stopped) }
    }

    fn find(file: &Path, whose: impl Fn(&str, &str) -> Option<u32>) -> Option<u32> {
        let about = std::fs::metadata(file).ok()?;
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        let file = format!("{}:{}", device(about.dev()), about.ino());
        let others = |process: &u32| *process != std::process::id();
        locks.lines().filter_map(|line| whose(line, &file)).find(others)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) if self.stopped => write!(f, "process {process}, which is stopped,"),
            Some(process) => write!(f, "process {process}"),
            None => f.write_str("another process"),
        }
    }
}

/// Returns whose lock a line of the system's list is, if it is the write lock in a file.
///
/// A line is like `7: POSIX  ADVISORY  WRITE 4711 fe:00:1234 120 120`; the file is its device and
/// its number there. Where the list names another device than the file itself does (some file
/// systems have several), nobody is found: better than somebody else.
fn writes(line: &str, file: &str) -> Option<u32> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "WRITE").skip(1);
    let process = words.next()?.parse().ok()?;
    let locked = words.next()?;
    let (start, end): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (locked == file && (start..=end).contains(&WRITE_LOCK)).then_some(process)
}

/// Returns whose lock a line of the system's list is, if it is a lock of a kind on a file.
fn holds(line: &str, file: &str, kind: &str) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    // Those who wait for the lock stand below its holder, with an arrow.
    (words.next()? == kind).then_some(())?;
    let process = words.nth(2)?.parse().ok()?;
    (words.next()? == file).then_some(process)
}

/// Returns a device as the system's list of locks writes it.
fn device(device: u64) -> String {
    let major = ((device >> 32) & 0xffff_f000) | ((device >> 8) & 0xfff);
    let minor = ((device >> 12) & 0xffff_ff00) | (device & 0xff);
    format!("{major:02x}:{minor:02x}")
}

fn is_stopped(process: u32) -> bool {
    let about = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The state follows the name, which stands in brackets.
    let state = about.rsplit(") ").next().and_then(|rest| rest.chars().next());
    matches!(state, Some('T' | 't'))
}

#[cfg(test)]
mod tests {
    use super::{device, holds, writes};

    #[test]
    fn the_write_lock_is_told_from_others() {
        for (line, process) in [
            ("7: POSIX  ADVISORY  WRITE 4711 fe:00:1234 120 120", Some(4711)),
            ("7: POSIX  ADVISORY  WRITE 4711 fe:00:1234 100 130", Some(4711)),
            ("7: POSIX  ADVISORY  WRITE 4711 fe:00:1234 121 121", None),
            ("7: POSIX  ADVISORY  READ 4711 fe:00:1234 120 120", None),
            ("7: POSIX  ADVISORY  WRITE 4711 fe:00:1235 120 120", None),
            ("7: POSIX  ADVISORY  WRITE 4711 fe:01:1234 120 120", None),
            ("7: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", None),
            ("7: POSIX  ADVISORY  WRITE -1 fe:00:1234 120 120", None),
            ("", None),
        ] {
            assert_eq!(writes(line, "fe:00:1234"), process, "{line}");
        }
    }

    #[test]
    fn a_lock_on_a_whole_file_is_told_from_others() {
        for (line, process) in [
            ("7: FLOCK  ADVISORY  READ 4711 fe:00:1234 0 EOF", Some(4711)),
            ("7: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", Some(4711)),
            ("7: -> FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF", None),
            ("7: POSIX  ADVISORY  READ 4711 fe:00:1234 0 EOF", None),
            ("7: FLOCK  ADVISORY  READ 4711 fe:00:1235 0 EOF", None),
            ("", None),
        ] {
            assert_eq!(holds(line, "fe:00:1234", "FLOCK"), process, "{line}");
        }
    }

    #[test]
    fn a_device_is_written_as_the_system_does() {
        assert_eq!([0xfe00, 0x19, 0x10_0300].map(device), ["fe:00", "00:19", "03:100"]);
    }
}
