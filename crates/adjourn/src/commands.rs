//! One file per subcommand.

pub mod backup;
pub mod cancel;
pub mod close;
pub mod demo;
pub mod event;
pub mod log;
pub mod ls;
pub mod prompt;
pub mod prune;
pub mod resume;
pub mod run;
pub mod serve;
pub mod show;
pub mod suspend;
pub mod takeover;
