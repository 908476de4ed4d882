//! Files that are read whole: bounded, so that none fills the memory.

use std::fs::File;
use std::io::{self, Error, Read as _};
use std::path::Path;

/// How long a file of settings, or one with a token, may be.
pub const SETTINGS_BYTES: usize = 1024 * 1024;

/// Reads a text of at most that many bytes. It may also come through a pipe, as a secret does.
///
/// # Errors
/// It cannot be read, is longer, or is no text.
pub fn read(path: &Path, most: usize) -> io::Result<String> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    // One byte more shows that it is longer.
    if file.take(most as u64 + 1).read_to_end(&mut bytes)? > most {
        return Err(Error::other(format!("it is longer than {} KiB", most >> 10)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let byte = error.utf8_error().valid_up_to() + 1;
        Error::other(format!("it is not UTF-8: it goes astray at byte {byte}"))
    })
}

/// Reads a text from a file, and from nothing else: a pipe may never end, nor may a device.
///
/// # Errors
/// As for [`read`], or it is no file.
pub fn read_regular(path: &Path, most: usize) -> io::Result<String> {
    let kind = path.metadata()?.file_type();
    match () {
        () if kind.is_file() => read(path, most),
        () if kind.is_dir() => Err(Error::other("it is a directory")),
        () => Err(Error::other("it is a pipe or a device, and not a file")),
    }
}
