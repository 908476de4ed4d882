//! The store in one SQLite file, shared by any number of processes on one machine.

mod answering;
mod aside;
mod checkpoint;
mod connection;
mod holder;
mod id_parts;
mod identity;
mod idle;
mod listing;
mod opened;
mod points;
mod query;
mod reader;
mod restore;
mod rows;
mod schema;
mod sidecar;
mod signers;
mod tail;
mod tally;
mod teller;
mod turnstile;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use adjourn_core::id::SessionId;
use adjourn_record::keys::{KeyId, KeyRing, Keys};
use rusqlite::Connection;
use tokio::sync::mpsc;

pub use holder::Holder;
#[cfg(feature = "faults")]
pub use points::{Point, Points};
pub use restore::{Restored, restore};
pub use sidecar::SetAside;
pub use verify::{Fault, Verified};

use crate::cache::Cache;
use crate::committed::Listeners;
use crate::environment::Environment;
use crate::error::Error;
use checkpoint::Checkpoints;
use connection::Sees;
use opened::Opened;
#[cfg(not(feature = "faults"))]
use points::Points;
use rows::{Known, Unwritten};
use sidecar::{Looked, Sidecar};
use signers::{known_signer, register};
use teller::{Teller, Tells};
use turnstile::{PATIENCE, beside};
use writer::{Counters, Job, Writer};

/// Commands that may wait for the writer; beyond it callers wait to be let in.
const QUEUE: usize = 1024;
/// Sessions kept folded if nobody says otherwise: at one or two KiB each, a few MiB.
pub const CACHE: usize = 4096;
/// How long a process that only reads waits for another that is making the store, once there are
/// signs of that: it takes a few writes to the disk.
const MAKING: Duration = Duration::from_secs(5);
/// How long it waits for such a sign.
const SIGN: Duration = Duration::from_millis(500);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(10);
/// Reading connections kept open for reuse.
const READERS: usize = 8;

/// How a store is opened.
pub struct Options {
    /// The file; its directory must be there.
    pub path: PathBuf,
    /// The clock and the source of ids.
    pub environment: Arc<dyn Environment>,
    /// What commits are signed with.
    pub keys: Keys,
    /// Whether these keys go on where a key left off that is not among them.
    pub new_signer: bool,
    /// The most pages the file may have.
    pub max_pages: Option<u32>,
    /// How long to wait for the write lock while another process has it.
    pub patience: Duration,
    /// How many sessions are kept folded in memory, so that most commands need not read them.
    pub cache: usize,
    /// What tests do at named points.
    #[cfg(feature = "faults")]
    pub points: Points,
}

impl Options {
    /// The plain way to open a store.
    pub fn new(path: impl Into<PathBuf>, environment: Arc<dyn Environment>, keys: Keys) -> Self {
        Self {
            path: path.into(),
            environment,
            keys,
            new_signer: false,
            max_pages: None,
            patience: PATIENCE,
            cache: CACHE,
            #[cfg(feature = "faults")]
            points: Points::default(),
        }
    }
}

/// A store in one SQLite file. Cheap to clone; the last clone closes it.
#[derive(Clone)]
pub struct Sqlite(Arc<Inner>);

struct Inner {
    opened: Arc<Opened>,
    sees: Sees,
    environment: Arc<dyn Environment>,
    queue: Option<mpsc::Sender<Box<dyn Job>>>,
    writer: Option<std::thread::JoinHandle<()>>,
    /// The thread that tells of commits beside the writer.
    tells: Tells,
    /// What the next commit is to be signed with, if that changes.
    next_keys: Arc<Mutex<Option<Keys>>>,
    readers: Mutex<Vec<Connection>>,
    cache: Arc<Cache>,
    counters: Arc<Counters>,
    listeners: Arc<Listeners>,
    /// The log that was found beside the file, and was not its own.
    set_aside: Option<SetAside>,
    /// Held as long as any connection is open: others may not put another file in place.
    _sidecar: Option<Sidecar>,
}

impl Sqlite {
    /// Opens the store, making it if it is not there.
    ///
    /// # Errors
    /// What is there is no store, or a newer one, or cannot be written.
    pub fn open(options: Options) -> Result<Self, Error> {
        let Options {
            path,
            environment,
            keys,
            new_signer,
            max_pages,
            patience,
            cache,
            #[cfg(feature = "faults")]
            points,
        } = options;
        #[cfg(not(feature = "faults"))]
        let points = Points::default();
        connection::refuse_what_is_no_file(&path)?;
        let path = connection::settle(&path)?;
        // Nothing is left beside a name that is not to be used.
        connection::refuse_second_name(&path)?;
        Sidecar::renew(&path)?;
        let (mut sidecar, set_aside) = Sidecar::enter(&path, patience)?;
        connection::remove_left_names(&path)?;
        let file = connection::FileId::at(&path)?;
        let (mut connection, mut turnstile) = connection::open_writer(&path, &points, max_pages)?;
        sidecar.settle(&path, &connection)?;
        let incarnation = identity::incarnation(&connection)?;
        turnstile.patience = patience;
        tail::check(&connection)?;
        if !new_signer {
            known_signer(&connection, &keys)?;
        }
        register(&connection, &mut turnstile, &keys)?;
        // From here on the turnstile waits; SQLite must not, or it would sleep with its own ideas
        // of how long. Before, it must: others may be opening or closing the same file.
        connection.busy_timeout(Duration::ZERO)?;
        let cache = Arc::new(Cache::new(cache));
        let counters = Arc::new(Counters::default());
        let listeners = Arc::<Listeners>::default();
        let next_keys = Arc::new(Mutex::new(None));
        let opened = Arc::new(Opened::new(path, file, incarnation).with_log()?);
        let checkpoints = Checkpoints::of(&mut connection, &opened)?;
        let (queue, receiver) = mpsc::channel(QUEUE);
        let tells = Tells::default();
        let writer = Writer {
            connection,
            checkpoints,
            turnstile,
            points,
            opened: Arc::clone(&opened),
            environment: Arc::clone(&environment),
            keys,
            next_keys: Arc::clone(&next_keys),
            cache: Arc::clone(&cache),
            counters: Arc::clone(&counters),
            teller: Teller::new(Arc::clone(&listeners), tells.clone()),
            known: Known::default(),
            unwritten: Unwritten::default(),
            careful: 0,
            last_took: Duration::ZERO,
            full: false,
        };
        let writer = std::thread::Builder::new()
            .name("adjourn-writer".to_owned())
            .spawn(move || writer.run(receiver))
            .map_err(|error| Error::io("cannot start the writer", error))?;
        Ok(Self(Arc::new(Inner {
            opened,
            sees: Sees::All,
            environment,
            queue: Some(queue),
            writer: Some(writer),
            tells,
            next_keys,
            readers: Mutex::new(Vec::new()),
            cache,
            counters,
            listeners,
            set_aside,
            _sidecar: Some(sidecar),
        })))
    }

    /// Opens a store that is there for reading alone: without keys, and also where nothing can be
    /// written. What is given to [`transact`](crate::Store::transact) fails with
    /// [`Error::Closed`].
    ///
    /// # Errors
    /// What is there is no store, or a newer one, or cannot be read.
    pub fn look(
        path: &Path,
        environment: Arc<dyn Environment>,
        cache: usize,
    ) -> Result<Self, Error> {
        connection::refuse_what_is_no_file(path)?;
        let path = connection::find(path)?;
        let start = Instant::now();
        let (Looked { sidecar, set_aside, .. }, file, (connection, sees)) = loop {
            let looked = Sidecar::look(&path, PATIENCE)?;
            let file = connection::FileId::at(&path)?;
            match connection::open_to_look(&path, file, looked.log_is_own)? {
                Some(found) => break (looked, file, found),
                None => {
                    let patience = if sidecar::path(&path).exists() { MAKING } else { SIGN };
                    if start.elapsed() > patience {
                        let problem = "it is empty".to_owned();
                        return Err(Error::NotAStore { path, problem });
                    }
                    std::thread::sleep(LOOK);
                }
            }
        };
        let incarnation = match schema::version(&connection)? {
            version if version >= schema::IDENTITY => identity::incarnation(&connection)?,
            _ => None,
        };
        Ok(Self(Arc::new(Inner {
            opened: Arc::new(Opened::new(path, file, incarnation)),
            sees,
            environment,
            queue: None,
            writer: None,
            tells: Tells::default(),
            next_keys: Arc::default(),
            readers: Mutex::new(vec![connection]),
            cache: Arc::new(Cache::new(cache)),
            counters: Arc::default(),
            listeners: Arc::default(),
            set_aside,
            _sidecar: sidecar,
        })))
    }

    /// Returns the log that cannot be read where the store was opened, if there is one: what is
    /// read may lack what was committed last.
    pub fn unread_log(&self) -> Option<PathBuf> {
        let log = beside(self.0.opened.path(), "-wal");
        let there = || log.metadata().is_ok_and(|about| about.len() > 0);
        (self.0.sees == Sees::File && there()).then_some(log)
    }

    /// Returns the log that lay beside the file and was not written for it, if there was one; it
    /// was not read.
    pub fn set_aside(&self) -> Option<&SetAside> {
        self.0.set_aside.as_ref()
    }

    /// Returns where the file really is, whatever links led to it.
    pub fn path(&self) -> &Path {
        self.0.opened.path()
    }

    /// Signs with other keys from the next commit on.
    pub fn use_keys(&self, keys: Keys) {
        *self.0.next_keys.lock().unwrap_or_else(PoisonError::into_inner) = Some(keys);
    }

    /// Returns whether a store goes on with these keys: whether they know the key that the last
    /// commit was signed with, or the store was told of a newer one.
    ///
    /// # Errors
    /// The store fails.
    pub fn goes_on_with(&self, keys: &Keys) -> Result<bool, Error> {
        match self.read(|connection| known_signer(connection, keys)) {
            Ok(()) => Ok(true),
            Err(Error::UnknownSigner(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the key that the last commit was signed with.
    ///
    /// # Errors
    /// The store fails.
    pub fn signer(&self) -> Result<Option<KeyId>, Error> {
        self.read(|connection| Ok(writer::last_commit(connection)?.map(|row| row.key)))
    }

    /// Returns the public halves of the keys that the store was opened with, ever.
    ///
    /// # Errors
    /// The store fails.
    pub fn keys(&self) -> Result<KeyRing, Error> {
        self.read(signers::registered)
    }

    /// Verifies everything: every entry, every link, every commit and its signature.
    ///
    /// `ring` decides which keys are trusted; take it from the key directory, since whoever can
    /// write to the store can add a key to it. `known` is a head that was kept elsewhere.
    ///
    /// # Errors
    /// The store fails. Damage is not an error but the result.
    pub fn verify(
        &self,
        ring: &KeyRing,
        known: Option<adjourn_record::commit::Head>,
    ) -> Result<Result<Verified, Fault>, Error> {
        self.read(|connection| verify::verify(connection, ring, known))
    }

    /// Returns the head of the commits, to be kept elsewhere.
    ///
    /// # Errors
    /// The store fails.
    pub fn head(&self) -> Result<adjourn_record::commit::Head, Error> {
        self.read(|connection| {
            let last = writer::last_commit(connection)?;
            Ok(last.map_or(adjourn_record::commit::Head::START, |row| row.head()))
        })
    }

    /// Lends a reading connection; no statement on it may outlive one page of results.
    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Error>) -> Result<T, Error> {
        self.0.counters.reads.fetch_add(1, Ordering::Relaxed);
        let idle = self.readers().pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let opened = &self.0.opened;
                connection::open_reader(opened.path(), opened.file(), self.0.sees)?
            }
        };
        let result = read(&connection);
        let mut readers = self.readers();
        if readers.len() < READERS {
            readers.push(connection);
        }
        result
    }

    /// Lends a reading connection for something of one session.
    fn read_of<T>(
        &self,
        id: SessionId,
        read: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.read(read).map_err(|error| error.of(id))
    }

    fn readers(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.0.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // The queue ends, the writer finishes what is in it, and the file is closed.
        self.queue = None;
        // A caller or a listener may drop the last clone on the thread that writes, or on the one
        // that tells, which the writer waits for: then nothing can wait for the writer here.
        let here = std::thread::current().id();
        if let Some(writer) = self.writer.take()
            && writer.thread().id() != here
            && !self.tells.is_on(here)
        {
            let _ = writer.join();
        }
        let readers = self.readers.get_mut().unwrap_or_else(PoisonError::into_inner);
        self.opened.close(readers.iter());
    }
}
