//! Named points in the life of a commit, where tests look in or pull the plug.

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
pub struct Points(Option<Arc<dyn Fn(Point) + Send + Sync>>);

impl Points {
    /// Calls `hook` at every point.
    pub fn hooked(hook: impl Fn(Point) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    pub(crate) fn reach(&self, point: Point) {
        if let Some(hook) = &self.0 {
            hook(point);
        }
    }
}

impl std::fmt::Debug for Points {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Points(hooked)" } else { "Points" })
    }
}
