//! Scripted agents whose tools leave a mark that no crash takes back.

use std::fs::File;
use std::future::poll_fn;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use adjourn::clock::Clock;
use adjourn::core::Session;
use adjourn::core::command::RunEnd;
use adjourn::core::driver::{DriverKind, DriverSpec};
use adjourn::driver::{BoxStream, Call, CallPart, Driver, Drivers, Part, Step, emitting};
use adjourn::script::{Script, ScriptDriver};

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
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        self.inner.step(step)
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        let mark = format!("{} {} {}\n", call.session.id, call.content.id.0, call.content.tool);
        let mut running = self.inner.call(call);
        let marks = Arc::clone(&self.marks);
        emitting(move |out| async move {
            // In one piece: a line is there as a whole or not at all, whoever is killed.
            (&*marks).write_all(mark.as_bytes()).expect("marks are kept");
            while let Some(part) = poll_fn(|context| running.as_mut().poll_next(context)).await {
                out.emit(part).await;
            }
        })
    }

    fn finish(&mut self, session: &Session) -> Option<RunEnd> {
        self.inner.finish(session)
    }
}
