//! Scripted agents whose tools leave a mark that no crash takes back.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::command::RunEnd;
use adjourn_core::driver::{DriverKind, DriverSpec};
use adjourn_core::ledger::{AskedCall, CallId};
use adjourn_host::clock::{BoxFuture, Clock};
use adjourn_host::driver::{Driver, Drivers, Returned, Thought};
use adjourn_host::script::{Script, ScriptDriver};

/// Makes drivers for scripts; each call writes a line when it starts.
pub struct Marking {
    clock: Arc<dyn Clock>,
    marks: Arc<File>,
}

impl Marking {
    /// Appends marks to a file that all hosts share.
    ///
    /// # Panics
    /// The file cannot be written.
    pub fn new(clock: Arc<dyn Clock>, marks: &Path) -> Self {
        let marks = File::options().create(true).append(true).open(marks).expect("marks are kept");
        Self { clock, marks: Arc::new(marks) }
    }
}

impl Drivers for Marking {
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        let DriverKind::Script { source } = &spec.kind else {
            return Err("this host runs scripts".to_owned());
        };
        let script = Script::parse(source).map_err(|error| error.to_string())?;
        let inner = ScriptDriver::new(script, Arc::clone(&self.clock));
        Ok(Box::new(MarkingDriver { inner, marks: Arc::clone(&self.marks) }))
    }
}

struct MarkingDriver {
    inner: ScriptDriver,
    marks: Arc<File>,
}

impl Driver for MarkingDriver {
    fn think<'a>(&'a mut self, session: &'a Session) -> BoxFuture<'a, Thought> {
        self.inner.think(session)
    }

    fn call(&mut self, session: &Session, call: &AskedCall) -> BoxFuture<'static, Returned> {
        let running = self.inner.call(session, call);
        let mark = format!("{} {} {}\n", session.id, call.id.0, call.tool);
        let marks = Arc::clone(&self.marks);
        Box::pin(async move {
            // In one piece: a line is there as a whole or not at all, whoever is killed.
            (&*marks).write_all(mark.as_bytes()).expect("marks are kept");
            running.await
        })
    }

    fn batch(&self, session: &Session, asked: &[CallId]) -> usize {
        self.inner.batch(session, asked)
    }

    fn finish(&mut self, session: &Session) -> Option<RunEnd> {
        self.inner.finish(session)
    }
}
