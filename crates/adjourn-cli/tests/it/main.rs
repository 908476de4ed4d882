//! The program, as people and scripts use it: real processes on a real store.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod a2a;
mod acp;
mod asking;
mod budgets;
mod by_hand;
mod clients;
mod conformance;
mod depths;
mod embedded;
mod endings;
mod events;
mod files;
mod flags;
mod foreground;
mod generated;
mod keys;
mod layers;
mod limits;
mod logs;
mod modes;
mod moving;
mod native;
mod output;
mod principal;
mod pty;
mod queries;
mod races;
mod ready;
mod refusals;
mod refused;
mod release;
mod removing;
mod settings;
mod signals;
mod slips;
mod snapshots;
mod status;
mod stores;
mod streaming;
mod takeover;
mod terminal;
mod transcript;
mod unusable_store;
mod waiting;
mod words;

use adjourn_testkit::home;
