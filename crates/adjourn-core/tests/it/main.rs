//! The lifecycle, tried from outside: every test drives the public functions only.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod bounds;
mod conformance;
mod golden;
mod harn_defects;
mod hostile;
mod json;
mod model;
mod moves;
mod properties;
mod script;
mod simulation;
mod table;
mod world;
