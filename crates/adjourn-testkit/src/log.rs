//! The log of a test: what the tasks of its thread write to it.

#![expect(clippy::unwrap_used, reason = "a test that fails should stop where it fails")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tracing::Level;
use tracing::subscriber::DefaultGuard;

/// Lines that were logged since it is there, on the thread that has made it.
#[must_use = "it hears nothing once it is dropped"]
pub struct Log {
    written: Written,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Keeps lines of a level, and of those above it.
    pub fn of(level: Level) -> Self {
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt().with_max_level(level).with_ansi(false).without_time();
        let log = log.with_writer(move || writer.clone()).finish();
        Self { written, _guard: tracing::subscriber::set_default(log) }
    }

    /// Returns the lines so far.
    ///
    /// # Panics
    /// A task panicked while it wrote one.
    pub fn lines(&self) -> Vec<String> {
        let written = self.written.0.lock().unwrap();
        String::from_utf8_lossy(&written).lines().map(str::to_owned).collect()
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
