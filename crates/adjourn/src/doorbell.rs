//! Promptness and liveness between the processes of one store.
//!
//! Beside the store lies a directory with files of each host: a lock that the host holds while it
//! lives, a socket, the sessions that its process shows to clients, and those whose drivers it keeps
//! warm. A host is dead if and only if its lock can be taken, whatever clocks, laptops and debuggers
//! do. A process that has committed something rings all sockets with a datagram
//! that names the sessions (`ring.rs`); an empty one says that anything may have changed. A lost one
//! costs at most a second, because hosts look by themselves that often.
//!
//! A host that is stopped or stuck still holds its lock. So it also gives a sign of life every few
//! seconds, the time of the lock's file, which says nothing about its death and much about its health.
//!
//! A lock that no process holds means nothing, and any process that finds one may clear it away.
//! So a host that has taken its lock looks whether the file is still there, and starts over if it is not.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use adjourn_core::id::{HostId, SessionId};

use crate::ring::{BYTES, Ring};
use crate::shown::{self, Shown};

/// The longest path a socket can be bound to, in bytes.
const SOCKET_PATH: usize = 107;
/// How often a host tries to take its lock, and how long it rests between: a process that holds it
/// is about to clear it away.
const TRIES: u32 = 200;
const REST: Duration = Duration::from_millis(5);

/// How many rings are taken at once for all there were: the shortest queue of a socket that is in
/// use holds more than twice as many.
const MERGED: usize = 4;

/// What the operating system answers where a process, or the machine, has no descriptor left.
const NO_DESCRIPTOR: [i32; 2] = [24, 23];

/// The directory of the hosts of a store.
#[derive(Debug, Clone)]
pub struct Hosts {
    directory: PathBuf,
    /// Whether a lock on a file excludes others, as it should.
    #[cfg(feature = "faults")]
    exclusive: bool,
    spare: Spare,
    keepers: Arc<Mutex<Option<Keepers>>>,
}

/// The hosts that keep drivers warm, as the directory showed them.
///
/// Every claim asks for them, and most of the time there are none: as long as the directory has not
/// changed, it is not read again.
#[derive(Debug, Clone)]
struct Keepers {
    /// When the directory had last changed.
    modified: SystemTime,
    /// The hosts that had a list of such drivers in it.
    hosts: Vec<HostId>,
}

/// A directory may change again at the time that it shows already, since file systems keep times in
/// steps, of two seconds at most: what was read is known to be all of it when that time has passed by
/// more.
const SETTLED: Duration = Duration::from_millis(2_100);

/// A descriptor that is kept for looking at locks: a process that has no other left must still be
/// able to tell the living from the dead.
#[derive(Debug, Clone)]
struct Spare(Arc<Mutex<Option<File>>>);

impl Spare {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Self::kept())))
    }

    fn kept() -> Option<File> {
        File::open("/dev/null").ok()
    }

    /// Opens a file and looks at it, if need be with the descriptor that is kept for that.
    fn look<T>(
        &self,
        open: impl Fn() -> io::Result<File>,
        look: impl FnOnce(&File) -> T,
    ) -> io::Result<T> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = open().or_else(|error| match error.raw_os_error() {
            Some(code) if NO_DESCRIPTOR.contains(&code) && kept.take().is_some() => open(),
            _ => Err(error),
        });
        // The file is closed before its descriptor is taken back.
        let looked = opened.map(|file| look(&file));
        if kept.is_none() {
            *kept = Self::kept();
        }
        looked
    }
}

/// A living host's lock and socket; both go when it does.
#[derive(Debug)]
pub struct Presence {
    hosts: Hosts,
    id: HostId,
    lock: File,
    socket: tokio::net::UnixDatagram,
}

/// The lock of a process that is no host, by which others see that it is alive.
#[derive(Debug)]
pub struct Sign {
    hosts: Hosts,
    id: HostId,
    _lock: File,
}

impl Sign {
    /// Returns the id by which others look for it.
    pub(crate) const fn id(&self) -> HostId {
        self.id
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        self.hosts.bury(self.id);
    }
}

impl Hosts {
    /// Names the directory beside `store`, which is to be the file's own path: over a link, hosts
    /// would not find each other.
    pub fn beside(store: &Path) -> Self {
        let mut name = store.as_os_str().to_owned();
        name.push(".hosts");
        Self {
            directory: name.into(),
            #[cfg(feature = "faults")]
            exclusive: true,
            spare: Spare::new(),
            keepers: Arc::default(),
        }
    }

    /// Acts as if the directory were on a file system whose locks exclude no process, as some network
    /// mounts are.
    #[cfg(feature = "faults")]
    #[must_use]
    pub fn without_exclusion(self) -> Self {
        Self { exclusive: false, ..self }
    }

    /// Returns where the directory is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Announces a host: takes its lock, and opens its socket.
    ///
    /// # Errors
    /// The directory cannot be written, or locks exclude no process there.
    pub fn join(&self, id: HostId) -> io::Result<Presence> {
        let lock = self.take(id)?;
        self.excludes(id)?;
        let socket = self.bind(id)?;
        Ok(Presence { hosts: self.clone(), id, lock, socket })
    }

    /// Shows that a process is alive which is no host and hears no rings: takes a lock.
    ///
    /// # Errors
    /// The directory cannot be written, or locks exclude no process there.
    pub(crate) fn sign(&self, id: HostId) -> io::Result<Sign> {
        let lock = self.take(id)?;
        self.excludes(id)?;
        Ok(Sign { hosts: self.clone(), id, _lock: lock })
    }

    /// Makes sure that a lock that was just taken cannot be taken once more: otherwise every host
    /// would take every other for dead, and what it drives for its own.
    fn excludes(&self, id: HostId) -> io::Result<()> {
        let second = File::open(self.lock(id))?;
        match self.lock_shared(&second) {
            Err(TryLockError::WouldBlock) => Ok(()),
            Err(TryLockError::Error(error)) => Err(error),
            Ok(()) => {
                // It is held in vain: the host would be taken for dead all the same.
                self.bury(id);
                Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "its file system lets two processes hold one lock, so a living host cannot be \
                     told from a dead one; keep the store on a local disk (--store names it)",
                ))
            }
        }
    }

    /// Tries a shared lock, as the file system has them.
    fn lock_shared(&self, file: &File) -> Result<(), TryLockError> {
        #[cfg(feature = "faults")]
        if !self.exclusive {
            return Ok(());
        }
        file.try_lock_shared()
    }

    /// Opens the socket of a host whose lock is taken.
    fn bind(&self, id: HostId) -> io::Result<tokio::net::UnixDatagram> {
        // What is there under its name is what is left of an earlier one.
        let _ = fs::remove_file(self.socket(id));
        let near = Near::new(&self.directory)?;
        let socket = UnixDatagram::bind(near.path(&self.socket(id)))?;
        socket.set_nonblocking(true)?;
        tokio::net::UnixDatagram::from_std(socket)
    }

    /// Takes the lock of a host that is about to live.
    fn take(&self, id: HostId) -> io::Result<File> {
        // For its owner alone: a process that can open a lock can hold it, too.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let path = self.lock(id);
        for _ in 0..TRIES {
            let mut private = File::options();
            private.create(true).truncate(false).read(true).write(true).mode(0o600);
            let lock = private.open(&path)?;
            match lock.try_lock() {
                Ok(()) if is_at(&lock, &path) => return Ok(lock),
                // It was cleared away before it was locked, or is about to be.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => std::thread::sleep(REST),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Err(io::Error::from(io::ErrorKind::AddrInUse))
    }

    /// Returns whether a host is alive.
    ///
    /// # Errors
    /// The lock cannot be looked at. That says nothing about the host: neither may its sessions be
    /// taken, nor may anybody wait for it.
    pub fn is_alive(&self, id: HostId) -> io::Result<bool> {
        // For reading: it is also looked at where nothing can be written. Shared, so that two
        // who look at once do not take each other for the host.
        let looked = self.spare.look(
            || File::open(self.lock(id)),
            |lock| match self.lock_shared(lock) {
                Ok(()) => Ok(false),
                Err(TryLockError::WouldBlock) => Ok(true),
                Err(TryLockError::Error(error)) => Err(error),
            },
        );
        match looked {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            looked => looked.flatten(),
        }
    }

    /// Returns the hosts and watchers that are alive.
    pub fn living(&self) -> Vec<HostId> {
        self.having(".lock").into_iter().filter(|id| self.is_alive(*id).unwrap_or(true)).collect()
    }

    /// Returns those that have a file of a kind, alive or not.
    fn having(&self, suffix: &str) -> Vec<HostId> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        let names = entries.flatten().map(|entry| entry.file_name());
        names.filter_map(|name| name.to_str()?.strip_suffix(suffix)?.parse().ok()).collect()
    }

    /// Returns when a host last gave a sign of life; see [`Presence::sign`].
    ///
    /// # Errors
    /// The lock cannot be looked at.
    pub fn last_sign(&self, id: HostId) -> io::Result<SystemTime> {
        fs::metadata(self.lock(id))?.modified()
    }

    /// Clears away what a dead host has left.
    pub fn bury(&self, id: HostId) {
        // The lock last: as long as it is there, the others are found through it. Another host
        // may have done it already.
        let _ = fs::remove_file(self.socket(id));
        let _ = fs::remove_file(self.shown(id));
        let _ = fs::remove_file(self.warm(id));
        let _ = fs::remove_file(self.lock(id));
    }

    /// Returns the sessions that the process of a host shows to its clients.
    pub fn shown_by(&self, id: HostId) -> HashSet<SessionId> {
        shown::read(&self.shown(id))
    }

    /// Returns the sessions whose drivers a host keeps warm, or is about to keep or to end.
    pub fn kept_by(&self, id: HostId) -> HashSet<SessionId> {
        shown::read(&self.warm(id))
    }

    /// Returns the living host that keeps the driver of a session warm, or is about to keep or to end
    /// it, if one does.
    ///
    /// One whose lock cannot be looked at does not count: nothing may wait for it.
    pub fn keeper_of(&self, session: SessionId) -> Option<HostId> {
        let mut keepers = self.keepers().into_iter();
        let keeps = |id: &HostId| self.kept_by(*id).contains(&session);
        keepers.find(|id| keeps(id) && self.is_alive(*id).unwrap_or(false))
    }

    /// Returns the hosts that have a list of drivers that they keep warm, alive or not.
    fn keepers(&self) -> Vec<HostId> {
        let modified = || fs::metadata(&self.directory).and_then(|about| about.modified()).ok();
        // Looked at before the directory is read: what changes meanwhile shows the next time.
        let Some(modified) = modified() else { return self.having(".warm") };
        let mut known = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| known.modified == modified) {
            return known.hosts.clone();
        }
        let hosts = self.having(".warm");
        let is_settled = modified.elapsed().is_ok_and(|elapsed| elapsed > SETTLED);
        *known = is_settled.then(|| Keepers { modified, hosts: hosts.clone() });
        hosts
    }

    /// Makes the list of the sessions that the process of a host shows.
    pub(crate) fn list_shown(&self, id: HostId) -> Shown {
        Shown::at(self.shown(id))
    }

    /// Makes the list of the sessions whose drivers a host keeps warm.
    pub(crate) fn list_kept(&self, id: HostId) -> Shown {
        Shown::at(self.warm(id))
    }

    /// Clears away what all dead hosts and watchers have left; returns how many there were.
    ///
    /// Those who only watch are in no list, and one that is killed is not missed.
    pub fn sweep(&self) -> usize {
        self.having(".lock").into_iter().filter(|id| self.sweep_one(*id)).count()
    }

    fn sweep_one(&self, id: HostId) -> bool {
        let path = self.lock(id);
        let Ok(lock) = File::options().write(true).open(&path) else { return false };
        // Held until both files are gone, so that a host that is just joining notices.
        let dead = lock.try_lock().is_ok() && is_at(&lock, &path);
        if dead {
            self.bury(id);
        }
        dead
    }

    /// Rings every host, to look for itself what has changed; returns how many heard it.
    pub fn ring(&self) -> usize {
        self.ring_others(&[], &Ring::anything())
    }

    /// Rings every host but those of the process that rings, which know; returns how many heard it.
    pub fn ring_others(&self, own: &[HostId], ring: &Ring) -> usize {
        let silent: Vec<_> = own.iter().map(|id| self.socket(*id)).collect();
        let Ok(entries) = fs::read_dir(&self.directory) else { return 0 };
        let mut sockets = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
            .filter(|path| !silent.contains(path))
            .peekable();
        // Most of the time there is no other process.
        if sockets.peek().is_none() {
            return 0;
        }
        let (Ok(socket), Ok(near)) = (UnixDatagram::unbound(), Near::new(&self.directory)) else {
            return 0;
        };
        let _ = socket.set_nonblocking(true);
        let bytes = ring.encode();
        sockets
            .filter(|path| match socket.send_to(&bytes, near.path(path)) {
                Ok(_) => true,
                // A process that empties a full socket looks for itself; see `Presence::rung`.
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            })
            .count()
    }

    fn lock(&self, id: HostId) -> PathBuf {
        self.directory.join(format!("{id}.lock"))
    }

    fn shown(&self, id: HostId) -> PathBuf {
        self.directory.join(format!("{id}.shown"))
    }

    fn warm(&self, id: HostId) -> PathBuf {
        self.directory.join(format!("{id}.warm"))
    }

    fn socket(&self, id: HostId) -> PathBuf {
        // Short, since the path of a socket is: the uuid's last part tells hosts apart.
        let id = id.uuid().simple().to_string();
        let end = id.get(16..).unwrap_or_default();
        self.directory.join(format!("{end}.sock"))
    }
}

/// Returns whether an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// A way to the sockets of a directory, however deep it lies.
struct Near {
    /// Held while its number is in use as a path.
    directory: Option<File>,
}

impl Near {
    fn new(directory: &Path) -> io::Result<Self> {
        let longest = directory.as_os_str().len() + "/0123456789abcdef.sock".len();
        let directory = (longest > SOCKET_PATH).then(|| File::open(directory)).transpose()?;
        Ok(Self { directory })
    }

    fn path(&self, socket: &Path) -> PathBuf {
        match (&self.directory, socket.file_name()) {
            (Some(directory), Some(name)) => {
                PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name)
            }
            _ => socket.to_owned(),
        }
    }
}

impl Presence {
    /// Announces the host anew if its lock or its socket was cleared away; returns whether
    /// that was so. Others took it for dead meanwhile.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn renew(&mut self) -> io::Result<bool> {
        let locked = is_at(&self.lock, &self.hosts.lock(self.id));
        if locked && self.hosts.socket(self.id).exists() {
            return Ok(false);
        }
        if !locked {
            self.lock = self.hosts.take(self.id)?;
        }
        self.socket = self.hosts.bind(self.id)?;
        Ok(true)
    }

    /// Gives a sign of life: the time of the lock's file. Nothing is committed for it.
    pub fn sign(&self) {
        // A host whose file system takes no times is not worse off than one that gives no sign.
        let _ = self.lock.set_modified(SystemTime::now());
    }

    /// Waits for a ring, and returns what was rung meanwhile.
    pub async fn rung(&self) -> Ring {
        // One byte longer than any ring, so that one of something else shows.
        let mut bytes = [0; BYTES + 1];
        let read = |length: usize, bytes: &[u8]| Ring::decode(bytes.get(..length).unwrap_or(&[]));
        let mut ring = match self.socket.recv(&mut bytes).await {
            Ok(length) => read(length, &bytes),
            // An error is taken for a ring: looking once too often does no harm.
            Err(_) => Ring::anything(),
        };
        let mut rings = 1;
        while let Ok(length) = self.socket.try_recv(&mut bytes) {
            ring.merge(read(length, &bytes));
            rings += 1;
        }
        // The socket may have been full, and further rings are lost.
        if rings > MERGED { Ring::anything() } else { ring }
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.hosts.bury(self.id);
    }
}
