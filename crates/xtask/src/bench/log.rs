//! A log that can be turned on and off, so that rounds with it and without it take turns.

use std::fs::File;
use std::sync::Arc;

use anyhow::Result;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{fmt, reload};

/// The log of this process: off, or at `info`, each line put together and written into nothing by
/// the thread that logs it. The program hands its lines to a thread that writes them; what that takes
/// is measured with the program itself (`acp_runs.rs`).
pub struct Log(Box<dyn Fn(LevelFilter) -> Result<()>>);

impl Log {
    /// Makes the log of this process, which is off.
    pub fn new() -> Result<Self> {
        let nothing = Arc::new(File::options().write(true).open("/dev/null")?);
        let lines = fmt::layer().with_writer(nothing).with_ansi(false).with_target(false);
        let (filter, handle) = reload::Layer::new(LevelFilter::OFF);
        let log = tracing_subscriber::registry().with(filter).with(lines);
        tracing::subscriber::set_global_default(log)?;
        Ok(Self(Box::new(move |level| Ok(handle.reload(level)?))))
    }

    /// Does something with the log at `info`.
    pub fn on<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let Self(set) = self;
        set(LevelFilter::INFO)?;
        let done = work();
        set(LevelFilter::OFF)?;
        done
    }
}
