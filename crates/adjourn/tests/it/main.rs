//! The host, on a real store and with scripted agents.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod awaiting;
mod bounds;
mod budgets;
mod call_news;
mod canned;
mod canned_commits;
mod canned_model;
mod claiming;
mod clocks;
mod conformance;
mod content;
mod context;
mod declining;
mod doorbell;
mod driving;
mod dropping;
mod embedding;
mod examples;
mod failing;
mod fake;
mod feeding;
mod hearing;
mod histories;
mod hostile;
mod hung;
mod killing;
mod live_moments;
mod moving;
mod options;
mod outcomes;
mod own_loop;
mod permissions;
mod points;
#[path = "../../../adjourn-driver/tests/it/provider.rs"]
mod provider;
mod recipients;
mod run_costs;
mod scripted;
mod scripts;
mod spoken;
mod steps;
mod stopping;
mod streaming;
mod telling;
mod unharmed;
mod upkeep;
mod watching;

use adjourn_testkit::{host as fixture, log};
