//! Other processes: this very test binary, started again to play one role, and to be killed,
//! starved or stopped while it does.
//!
//! A child ends when its input does, so none outlives the test that started it.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{self, Receiver};

use adjourn_store::sqlite::Options;
use adjourn_testkit::VirtualClock;
use adjourn_testkit::process::Process;

const ROLE: &str = "ADJOURN_TEST_ROLE";
const STORE: &str = "ADJOURN_TEST_STORE";
const SERIES: &str = "ADJOURN_TEST_SERIES";

/// The body of every child process. It tests nothing by itself and does nothing in an ordinary
/// run of the tests; the tests that start it judge what it says.
#[test]
fn plays_its_role() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let orders = orders();
    match role.split_once(' ').unwrap_or((&role, "")) {
        ("write", point) => crate::crash::write(point),
        ("saturate", "") => crate::fairness::saturate(&orders),
        ("single", "") => crate::fairness::single(&orders),
        ("fill", "") => crate::faults::fill(&orders),
        ("try", "") => crate::faults::try_it(),
        _ => panic!("there is no role {role:?}"),
    }
}

/// Returns how this child is to open the store: with ids that no other process makes.
pub fn options() -> Options {
    let variable = |name| std::env::var(name).expect("the parent has set it");
    let series = variable(SERIES).parse().expect("a series");
    crate::fixture::options(variable(STORE), Arc::new(VirtualClock::of_series(series)))
}

/// Passes on what the parent says, and ends this process with it.
fn orders() -> Receiver<String> {
    let (sender, orders) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            // A role that takes no orders has dropped the other end.
            let _ = sender.send(line);
        }
        std::process::exit(0);
    });
    orders
}

/// Starts a child in a role, with the store at `path`.
pub fn start(role: &str, path: &Path) -> Process {
    start_by(Command::new(std::env::current_exe().unwrap()), role, path)
}

/// Starts a child by a command that starts this test binary.
pub fn start_by(mut command: Command, role: &str, path: &Path) -> Process {
    static CHILDREN: AtomicU16 = AtomicU16::new(100);
    let series = CHILDREN.fetch_add(1, Ordering::Relaxed).to_string();
    command.env(ROLE, role).env(STORE, path).env(SERIES, series);
    Process::start_again(&mut command, "child::plays_its_role")
}
