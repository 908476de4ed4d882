//! Every move of the lifecycle, as scripts and their traces.

mod agents_calls;
mod await_from_outside;
mod cancel;
mod export;
mod gates;
mod hold;
mod options;
mod park;
mod prompt;
mod recovery;
mod resume;
mod steps;
mod suspend;
mod wake;
