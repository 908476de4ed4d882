//! Named points in the life of a commit, where tests look in or pull the plug.
//!
//! Without the feature `faults` nothing is hooked to them, and passing one costs nothing.

#[cfg(feature = "faults")]
use std::sync::Arc;

/// A point that a commit or a migration passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    /// A step of a migration is about to run.
    BeforeMigrationStep,
    /// A step of a migration has run, and its version is not written yet.
    InMigration,
    /// The write lock is held.
    Locked,
    /// All commands of a group have run; nothing is durable.
    BeforeCommit,
    /// The group is durable; nobody has been told.
    AfterCommit,
}

/// What to do at each point: nothing, outside tests.
#[derive(Clone, Default)]
pub struct Points {
    #[cfg(feature = "faults")]
    hook: Option<Arc<dyn Fn(Point) + Send + Sync>>,
}

impl Points {
    /// Calls `hook` at every point.
    #[cfg(feature = "faults")]
    pub fn hooked(hook: impl Fn(Point) + Send + Sync + 'static) -> Self {
        Self { hook: Some(Arc::new(hook)) }
    }

    #[cfg(feature = "faults")]
    pub(crate) fn reach(&self, point: Point) {
        if let Some(hook) = &self.hook {
            hook(point);
        }
    }

    #[cfg(not(feature = "faults"))]
    pub(crate) const fn reach(&self, _: Point) {}
}

#[cfg(feature = "faults")]
impl std::fmt::Debug for Points {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.hook.is_some() { "Points(hooked)" } else { "Points" })
    }
}
