//! Promptness and liveness between the processes of one store.
//!
//! Beside the store lies a directory with two files per host: a lock that the host holds while it
//! lives, and a socket. A host is dead if and only if its lock can be taken, whatever clocks,
//! laptops and debuggers do. Whoever has committed something rings all sockets with an empty
//! datagram; a lost one costs at most a second, because hosts look by themselves that often.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use adjourn_core::id::HostId;

/// The directory of the hosts of a store.
#[derive(Debug, Clone)]
pub struct Hosts {
    directory: PathBuf,
}

/// A living host's lock and socket; both go when it does.
#[derive(Debug)]
pub struct Presence {
    hosts: Hosts,
    id: HostId,
    /// Held, not read.
    _lock: File,
    socket: tokio::net::UnixDatagram,
}

impl Hosts {
    /// Names the directory beside `store`.
    pub fn beside(store: &Path) -> Self {
        let mut name = store.as_os_str().to_owned();
        name.push(".hosts");
        Self { directory: name.into() }
    }

    /// Announces a host: takes its lock, and opens its socket.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub fn join(&self, id: HostId) -> io::Result<Presence> {
        fs::create_dir_all(&self.directory)?;
        let lock = File::options().create(true).truncate(false).write(true).open(self.lock(id))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::Error(error) => error,
            TryLockError::WouldBlock => io::Error::from(io::ErrorKind::AddrInUse),
        })?;
        let socket = UnixDatagram::bind(self.socket(id))?;
        socket.set_nonblocking(true)?;
        let socket = tokio::net::UnixDatagram::from_std(socket)?;
        Ok(Presence { hosts: self.clone(), id, _lock: lock, socket })
    }

    /// Returns whether a host is alive.
    ///
    /// # Errors
    /// The lock cannot be looked at.
    pub fn is_alive(&self, id: HostId) -> io::Result<bool> {
        let lock = match File::options().write(true).open(self.lock(id)) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match lock.try_lock() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Clears away what a dead host has left.
    pub fn bury(&self, id: HostId) {
        // Somebody else may have done it already.
        let _ = fs::remove_file(self.socket(id));
        let _ = fs::remove_file(self.lock(id));
    }

    /// Rings every host; returns how many heard it.
    pub fn ring(&self) -> usize {
        self.ring_but(None)
    }

    /// Rings every host but the one that rings, which knows; returns how many heard it.
    pub fn ring_others(&self, own: HostId) -> usize {
        self.ring_but(Some(self.socket(own)))
    }

    fn ring_but(&self, silent: Option<PathBuf>) -> usize {
        let Ok(entries) = fs::read_dir(&self.directory) else { return 0 };
        let mut sockets = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
            .filter(|path| Some(path) != silent.as_ref())
            .peekable();
        // Most of the time there is nobody else.
        if sockets.peek().is_none() {
            return 0;
        }
        let Ok(socket) = UnixDatagram::unbound() else { return 0 };
        let _ = socket.set_nonblocking(true);
        sockets
            .filter(|path| match socket.send_to(&[], path) {
                Ok(_) => true,
                // A full socket has a ring in it already.
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            })
            .count()
    }

    fn lock(&self, id: HostId) -> PathBuf {
        self.directory.join(format!("{id}.lock"))
    }

    fn socket(&self, id: HostId) -> PathBuf {
        // The path of a socket may have 107 bytes; the uuid's last part is enough to tell hosts apart.
        let id = id.uuid().simple().to_string();
        let end = id.get(16..).unwrap_or_default();
        self.directory.join(format!("{end}.sock"))
    }
}

impl Presence {
    /// Waits until somebody rings.
    pub async fn rung(&self) {
        let mut nothing = [0; 1];
        // An error is taken for a ring: looking once too often does no harm.
        let _ = self.socket.recv(&mut nothing).await;
        while self.socket.try_recv(&mut nothing).is_ok() {}
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.hosts.bury(self.id);
    }
}
