//! Reads the scenarios of `conformance/`, and plays them against a face.
//!
//! `conformance/README.md` says what a scenario means. Here is what every runner of this project
//! shares: [`scenario`] reads them, [`matching`] compares, [`play`] takes the steps in real time
//! against whatever implements [`Face`], and [`logs`] looks back with the command line's `log`.
//! The types to know are [`Scenario`], [`Face`], [`matching::Matcher`] and [`given::Recording`],
//! which holds what drivers were given.
//! The core's own runner takes the steps in virtual time, and shares the rest.
//!
//! # A runner for another face
//!
//! Implement [`Face`] for a value that holds one session and whatever runs it, and hand
//! [`play::every_scenario`] a function that makes one:
//!
//! ```no_run
//! # use adjourn_conformance::scenario::{Event, Restart, Resume, Scenario, Suspend, Why};
//! # use adjourn_conformance::{Ending, Face, Reply, play};
//! # use serde_json::Value;
//! # struct Mine;
//! # fn nothing() -> Reply { Reply::now(Ok(Value::Null)) }
//! # impl Face for Mine {
//! #     fn prompt(&mut self, _: &str) -> Reply { nothing() }
//! #     fn suspend(&mut self, _: &Suspend) -> Reply { nothing() }
//! #     fn resume(&mut self, _: &Resume) -> Reply { nothing() }
//! #     fn event(&mut self, _: &Event) -> Reply { nothing() }
//! #     fn cancel(&mut self, _: &Why) -> Reply { nothing() }
//! #     fn close(&mut self, _: &Why) -> Reply { nothing() }
//! #     fn restart(&mut self, _: &Restart) -> Reply { nothing() }
//! #     fn status(&mut self) -> Result<Value, String> { Ok(Value::Null) }
//! #     fn ending(&mut self) -> Result<Ending, String> { Ok(Ending::default()) }
//! # }
//! fn open(scenario: &Scenario) -> Result<Mine, String> {
//!     // Start a host, and make an idle session from `scenario.script`.
//! #   Ok(Mine)
//! }
//! let failures = play::every_scenario(8, &open);
//! assert!(failures.is_empty(), "{}", failures.join("\n"));
//! ```
//!
//! - `open` is called once for each time that a scenario is played, on a thread of its own. It
//!   returns when a host runs and the session is there. Dropping the value must end every process
//!   that it started.
//! - A verb returns a [`Reply`] at once, and never waits: verbs of a race are given one right
//!   after the other. [`Reply::later`] runs a closure on a thread of its own; [`Reply::pair`] is
//!   for a face that hears its answers on a thread that it has already. One that comes only when
//!   a suspend has taken effect, or a turn is over, is marked [`Reply::at_the_end`].
//! - Handles come in and go out as the face spells them; the player knows the scenario's names.
//! - A verb that the face does not have is given at the command line, and so is everything that it
//!   does not show. [`logs::ending`] makes the whole [`Ending`] of the command line's output; a
//!   face with notices of its own replaces its `timeline` with these.
//! - Drain graces are settings of a host in most places: [`Scenario::graces`] tells them before
//!   the hosts are started.
//!
//! - A runner that makes its drivers itself hands [`given::Recording`] to its hosts, and puts what
//!   it has recorded into [`Ending::given`]; any other leaves that out.
//!
//! Nothing in an implementation looks at a clock. Where a scenario fails on a machine that was too
//! slow for it, the player takes it again at a slower pace; [`play`] says when.

#![expect(
    clippy::disallowed_methods,
    reason = "scenarios and what a program under test prints are no strangers'"
)]

mod face;
pub mod given;
pub mod logs;
pub mod matching;
pub mod native;
pub mod play;
pub mod pulse;
pub mod scenario;

pub use face::{Answer, Ending, Face, Refusal, Reply};
pub use scenario::Scenario;

use std::path::Path;

/// Returns every scenario by the name of its file; whatever lies beside them is taken for one.
///
/// # Errors
/// The directory or a file in it cannot be read, or there is nothing in it.
pub fn scenarios() -> Result<Vec<(String, String)>, String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let wrong = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&directory).map_err(wrong)? {
        let path = entry.map_err(wrong)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name != "README.md" {
            found.push((name, std::fs::read_to_string(&path).map_err(wrong)?));
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(format!("there are no scenarios in {}", directory.display()));
    }
    Ok(found)
}
