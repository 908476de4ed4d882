//! The directory of key files.
//!
//! One file per key, `<id>.json`, one per revocation, `<id>.revoked.json`, and one per key of others
//! whose records are opened here, `<id>.sealing.json`; directory mode 0700, file mode 0600. Files appear whole, by renaming, so readers take no lock. Writers hold an exclusive
//! lock on `.lock`, which the kernel releases if they die: two processes that both find the directory
//! empty make one key between them.
//!
//! Owns the files' names, modes and writing; what they say belongs to [`super::file`]. The path comes
//! from outside: nothing here looks for a home or a configuration directory.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use adjourn_core::time::Timestamp;
use zeroize::Zeroizing;

use super::Keys;
use super::file::{Damage, KeyFile, RevocationFile};
use super::public::{KeyId, KeyRing, PublicKey, Revocation};
use super::secret::{Key, RandomnessError, SealingKey};

/// Group and others: whatever they may do with a key file is too much.
const OTHERS: u32 = 0o077;

/// No key file is nearly as long; a longer one is not read.
const LONGEST: u64 = 64 * 1024;

const LOCK: &str = ".lock";

/// Where a file is written before it gets its name. Only the holder of the lock writes there, so one
/// that is found belongs to a writer that died.
const UNFINISHED: &str = ".unfinished";

/// Keys kept in files, one per id.
///
/// The current key is the one made last. A key that was rotated away signs nothing any more, even if
/// the one after it is revoked; it is still accepted. A process works with the [`Keys`] it loaded until
/// it loads them again.
#[derive(Debug, Clone)]
pub struct KeyDir {
    path: PathBuf,
}

impl KeyDir {
    /// Names the directory. It is made when the first key is.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns where the directory is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads all keys, and makes one if there is none or the last one was revoked.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn load(&self, now: Timestamp) -> Result<Keys, Error> {
        if let Some(keys) = self.scan()?.into_keys() {
            return Ok(keys);
        }
        let lock = self.lock()?;
        // Another process may have made the key while this one waited for the lock.
        let content = self.scan()?;
        if content.current().is_none() {
            self.make(&lock, &content, now)?;
        }
        self.reload()
    }

    /// Reads all keys, and makes none: nothing is returned if there is none that may sign.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn existing(&self) -> Result<Option<Keys>, Error> {
        Ok(self.scan()?.into_keys())
    }

    /// Makes a further key, which becomes the current one, and reads all keys.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn rotate(&self, now: Timestamp) -> Result<Keys, Error> {
        let lock = self.lock()?;
        self.make(&lock, &self.scan()?, now)?;
        self.reload()
    }

    /// Marks a key as revoked. A key that is revoked already keeps its first revocation.
    ///
    /// Commits it signed keep their signatures and are marked; records it sealed are refused. If it was
    /// the current key, the next [`load`](Self::load) makes another. Its secret file may then be
    /// deleted: the revocation stays. The file need not be here in the first place: it may have been
    /// on a machine that was stolen, and a store still has the public half.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn revoke(
        &self,
        key: &PublicKey,
        reason: &str,
        now: Timestamp,
    ) -> Result<Revocation, Error> {
        let lock = self.lock()?;
        let content = self.scan()?;
        let id = key.id();
        if let Some(first) = content.revocation(id) {
            return Ok(first.clone());
        }
        let fresh = || Revocation { at: now, reason: reason.to_owned() };
        let revocation = key.revoked().cloned().unwrap_or_else(fresh);
        let held = content.files.iter().find(|file| file.key.id() == id);
        let file = RevocationFile {
            key: key.clone().with_revocation(revocation.clone()),
            generation: held.map_or(0, |file| file.generation),
        };
        let path = self.path.join(format!("{id}{REVOCATION_SUFFIX}"));
        let text = file.write().map_err(|damage| Error::damaged(&path, damage))?;
        self.install(&lock, &path, &text)?;
        Ok(revocation)
    }

    /// Reads the public halves of all keys. Makes nothing; without a directory there are none.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn ring(&self) -> Result<KeyRing, Error> {
        let content = self.scan()?;
        let public = content.files.iter().map(|file| file.key.public(None));
        Ok(public.chain(content.revoked.into_values().map(|file| file.key)).collect())
    }

    /// Returns the text of a file with which another directory [accepts](Self::accept) records that
    /// a key of this one seals: the current key, unless another is named.
    ///
    /// Whoever has it can seal records that pass for this user's, and sign nothing else.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn share(&self, key: Option<KeyId>) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
        let Some(keys) = self.scan()?.into_keys() else { return Ok(None) };
        let Some(key) = keys.good(key.unwrap_or(keys.current().id())) else { return Ok(None) };
        let text = key.sealing_half().write();
        text.map(Some).map_err(|damage| Error::damaged(&self.path, damage))
    }

    /// Accepts records from elsewhere, by the text that [`share`](Self::share) gives there; returns
    /// the public half of the key that seals them.
    ///
    /// # Errors
    /// The text is not such a file, which is said with the name `from`; the key was revoked here; or
    /// see [`Error`].
    pub fn accept(&self, text: &[u8], from: &Path) -> Result<PublicKey, Error> {
        let key = SealingKey::read(text).map_err(|damage| Error::damaged(from, damage))?;
        let lock = self.lock()?;
        if let Some(revocation) = self.scan()?.revocation(key.id()) {
            return Err(Error::Revoked { key: key.id(), revocation: revocation.clone() });
        }
        let path = self.path.join(format!("{}{SEALING_SUFFIX}", key.id()));
        let text = key.write().map_err(|damage| Error::damaged(&path, damage))?;
        self.install(&lock, &path, &text)?;
        Ok(key.public().clone())
    }

    /// Reads the public halves of keys of others whose records are opened here, with their
    /// revocations.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn accepted(&self) -> Result<Vec<PublicKey>, Error> {
        let content = self.scan()?;
        let revoked = |key: &SealingKey| match content.revocation(key.id()) {
            Some(revocation) => key.public().clone().with_revocation(revocation.clone()),
            None => key.public().clone(),
        };
        Ok(content.sealing.iter().map(revoked).collect())
    }

    fn reload(&self) -> Result<Keys, Error> {
        // Only deleting files by hand between two system calls leads here.
        let vanished = || Error::io("find a key in", &self.path, io::ErrorKind::NotFound.into());
        self.scan()?.into_keys().ok_or_else(vanished)
    }

    fn make(&self, lock: &Lock, content: &Content, now: Timestamp) -> Result<(), Error> {
        let generation = content.last_generation().saturating_add(1);
        let file = KeyFile { key: Key::generate(now)?, generation };
        let path = self.path.join(format!("{}{KEY_SUFFIX}", file.key.id()));
        let text = file.write().map_err(|damage| Error::damaged(&path, damage))?;
        self.install(lock, &path, &text)
    }

    /// Writes a file so that it appears whole under its name, and outlasts a power cut from then on.
    fn install(&self, _lock: &Lock, path: &Path, text: &[u8]) -> Result<(), Error> {
        let unfinished = self.path.join(UNFINISHED);
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io("remove", &unfinished, error));
            }
            _ => {}
        }
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&unfinished)
            .and_then(|mut file| file.write_all(text).and_then(|()| file.sync_all()))
            .map_err(|error| Error::io("write", &unfinished, error))?;
        fs::rename(&unfinished, path).map_err(|error| Error::io("write", path, error))?;
        File::open(&self.path)
            .and_then(|dir| dir.sync_all())
            .map_err(|error| Error::io("sync", &self.path, error))
    }

    /// Makes the directory where it is missing, and waits for the writer's lock.
    fn lock(&self) -> Result<Lock, Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.path)
            .map_err(|error| Error::io("make", &self.path, error))?;
        let path = self.path.join(LOCK);
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .and_then(|file| file.lock().map(|()| Lock { _file: file }))
            .map_err(|error| Error::io("lock", &path, error))
    }

    fn scan(&self) -> Result<Content, Error> {
        let mut content = Content::default();
        let listing = match fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(content),
            other => other.map_err(|error| Error::io("list", &self.path, error))?,
        };
        let dir = fs::metadata(&self.path).map_err(|error| Error::io("read", &self.path, error))?;
        check_mode(&self.path, &dir, 0o700)?;
        for entry in listing {
            let entry = entry.map_err(|error| Error::io("list", &self.path, error))?;
            if let Some((id, kind)) = entry.file_name().to_str().and_then(parse_name) {
                let path = entry.path();
                let text = read_guarded(&path)?;
                content.take(id, kind, &text).map_err(|damage| Error::damaged(&path, damage))?;
            }
        }
        // Generations differ unless files were copied in from elsewhere; then the order is at least
        // the same for everybody.
        content.files.sort_by_key(|file| (file.generation, file.key.created(), file.key.id()));
        Ok(content)
    }
}

/// Held while files are written.
#[derive(Debug)]
struct Lock {
    _file: File,
}

/// What the directory holds; key files in the order in which they were made.
#[derive(Debug, Default)]
struct Content {
    files: Vec<KeyFile>,
    /// Of keys of others.
    sealing: Vec<SealingKey>,
    revoked: BTreeMap<KeyId, RevocationFile>,
}

impl Content {
    /// Takes in the text of the file that is named for `id`.
    fn take(&mut self, id: KeyId, kind: Kind, text: &[u8]) -> Result<(), Damage> {
        let found = match kind {
            Kind::Key => {
                let file = KeyFile::read(text)?;
                let found = file.key.id();
                self.files.push(file);
                found
            }
            Kind::Sealing => {
                let key = SealingKey::read(text)?;
                let found = key.id();
                self.sealing.push(key);
                found
            }
            Kind::Revocation => {
                let file = RevocationFile::read(text)?;
                let found = file.key.id();
                self.revoked.insert(found, file);
                found
            }
        };
        if found == id { Ok(()) } else { Err(Damage::OtherName { id: found }) }
    }

    fn revocation(&self, id: KeyId) -> Option<&Revocation> {
        self.revoked.get(&id)?.key.revoked()
    }

    fn last_generation(&self) -> u32 {
        let made = self.files.iter().map(|file| file.generation);
        made.chain(self.revoked.values().map(|file| file.generation)).max().unwrap_or(0)
    }

    /// Returns the key made last, unless it was revoked.
    fn current(&self) -> Option<&KeyFile> {
        let last = self.files.last()?;
        let revoked = self.revocation(last.key.id()).is_some();
        (!revoked && last.generation == self.last_generation()).then_some(last)
    }

    fn into_keys(mut self) -> Option<Keys> {
        self.current()?;
        let keys = Keys::only(self.files.pop()?.key);
        let keys = self.files.iter().fold(keys, |keys, file| {
            let revocation = self.revocation(file.key.id()).cloned();
            keys.accepting(file.key.clone(), revocation)
        });
        let held = |id| self.files.iter().any(|file| file.key.id() == id);
        let gone = self.revoked.values().filter(|file| !held(file.key.id()));
        let keys = gone.fold(keys, |keys, file| keys.remembering(file.key.clone()));
        Some(
            self.sealing.iter().fold(keys, |keys, key| {
                keys.opening(key.clone(), self.revocation(key.id()).cloned())
            }),
        )
    }
}

const KEY_SUFFIX: &str = ".json";
const REVOCATION_SUFFIX: &str = ".revoked.json";
const SEALING_SUFFIX: &str = ".sealing.json";

enum Kind {
    Key,
    Sealing,
    Revocation,
}

/// Tells what a file is by its name; what is not named for a key is not looked at.
fn parse_name(name: &str) -> Option<(KeyId, Kind)> {
    let suffixes = [
        (REVOCATION_SUFFIX, Kind::Revocation),
        (SEALING_SUFFIX, Kind::Sealing),
        (KEY_SUFFIX, Kind::Key),
    ];
    let (id, kind) =
        suffixes.into_iter().find_map(|(suffix, kind)| Some((name.strip_suffix(suffix)?, kind)))?;
    Some((id.parse().ok()?, kind))
}

/// Reads a file that nobody else can read or write.
fn read_guarded(path: &Path) -> Result<Zeroizing<Vec<u8>>, Error> {
    let failed = |error| Error::io("read", path, error);
    let file = File::open(path).map_err(failed)?;
    // The mode of the file that was opened, whatever its name leads to by now.
    let metadata = file.metadata().map_err(failed)?;
    check_mode(path, &metadata, 0o600)?;
    // As long as the file is, so that reading does not leave copies behind by growing.
    let length = usize::try_from(metadata.len().min(LONGEST)).unwrap_or(0);
    let mut text = Zeroizing::new(Vec::with_capacity(length.saturating_add(1)));
    file.take(LONGEST).read_to_end(&mut text).map_err(failed)?;
    Ok(text)
}

fn check_mode(path: &Path, metadata: &fs::Metadata, wanted: u32) -> Result<(), Error> {
    let mode = metadata.mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    Err(Error::Exposed { path: path.to_owned(), mode, wanted })
}

/// Why keys cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was to be done.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Others than the owner can get at the file or directory.
    #[error("{} is open to others than its owner (mode {mode:04o})", path.display())]
    Exposed {
        /// The file or directory.
        path: PathBuf,
        /// Its mode.
        mode: u32,
        /// The mode it should have.
        wanted: u32,
    },
    /// A file does not hold what its name promises.
    #[error("key file {} is not usable: {damage}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        damage: Damage,
    },
    /// A key that is to be accepted was revoked here, which is for good.
    #[error(
        "key {key} was revoked here at {}: {}",
        revocation.at,
        if revocation.reason.is_empty() { "without a reason" } else { &revocation.reason }
    )]
    Revoked {
        /// The id of the key.
        key: KeyId,
        /// When it was revoked, and why.
        revocation: Revocation,
    },
    /// The operating system gave no randomness for a key.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

impl Error {
    /// Returns what a person can do about it, in one line.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Exposed { path, wanted, .. } => Some(format!(
                "run `chmod {wanted:o} {}`; if somebody else may have read it, rotate and revoke the key",
                path.display()
            )),
            Self::Revoked { .. } => Some(
                "records that it seals are not taken in; `adjourn keys rotate` where it comes from \
                 makes another one to share"
                    .to_owned(),
            ),
            Self::Damaged { damage: Damage::Version { .. }, .. } => {
                Some("a newer version of this program wrote it".to_owned())
            }
            Self::Damaged { path, .. } => Some(format!(
                "restore {} from a backup, or move it away; what it sealed cannot then be opened here",
                path.display()
            )),
            Self::Io { .. } | Self::Randomness(_) => None,
        }
    }

    fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    fn damaged(path: &Path, damage: Damage) -> Self {
        Self::Damaged { path: path.to_owned(), damage }
    }
}
