//! What is stored of what was said, and what a model is shown of it.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that fails should stop where it fails"
)]

mod golden;
mod provider;
mod segments;
mod transcript;
mod view;
mod views;
