//! One file per subcommand.

pub mod acp;
pub mod backup;
pub mod cancel;
pub mod close;
pub mod completions;
pub mod config;
pub mod demo;
pub mod event;
pub mod hosts;
pub mod keys;
pub mod log;
pub mod ls;
pub mod new;
pub mod prompt;
pub mod prune;
pub mod restore;
pub mod resume;
pub mod rm;
pub mod run;
pub mod serve;
pub mod show;
pub mod status;
pub mod suspend;
pub mod takeover;
pub mod wait;
