//! The scripted driver: an agent whose every step is written down, for demos, tests and benchmarks.

mod driver;
mod play;

pub use adjourn_driver::script::{Script, ScriptError};
pub use driver::{ScriptDriver, Scripted};
