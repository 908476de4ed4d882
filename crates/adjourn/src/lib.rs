//! A durable pause for the agents of a program: sessions that are parked, and go on when something
//! happens, in whichever process is there by then.
//!
//! ```
#![doc = include_str!("../examples/embed.rs")]
//! ```
//!
//! - [`Adjourn`] is an open store: [`create`](Adjourn::create), [`publish`](Adjourn::publish),
//!   [`session`](Adjourn::session), [`query`](Adjourn::query), [`host`](Adjourn::host).
//! - [`SessionRef`] is the way to one session. Its verbs are builders that are awaited; each says at
//!   which commit it resolves, and what dropping it does.
//! - [`Moments`] is what happens in a session, past and live, whichever process does it;
//!   [`LiveMoments`] has also what its agent says, word by word.
//! - [`RunningHost`] drives sessions with the [`Driver`](driver::Driver)s that it was given by name,
//!   delivers events, acts on deadlines, and takes over what dead hosts have left.
//!
//! A program keeps them as it keeps anything else, and needs no other crate to name what it is
//! given:
//!
//! ```
//! use adjourn::store::{Done, Retention};
//!
//! struct App {
//!     host: adjourn::RunningHost,
//!     session: adjourn::SessionRef,
//!     moments: adjourn::Moments,
//!     commits: Vec<Done>,
//! }
//!
//! fn host(adjourn: &adjourn::Adjourn, retention: Retention) -> adjourn::HostBuilder {
//!     adjourn.host().retention(retention)
//! }
//! ```
//!
//! Any number of programs work on one store at once, and so do the command line and editors. What
//! one of them commits, the others are told of; nothing has to be rung, polled or refreshed.
//! Everything that is answered is durable. What must be done next is read off the state, so that a
//! program that dies leaves nothing behind that others do not find.
//!
//! Reads are `async`: every method of [`Adjourn`], [`SessionRef`] and [`Moments`] that looks at the
//! store or at a file. Those of one session, of a page or of a host ([`SessionRef::load`],
//! [`Moments::page`], [`Adjourn::known_hosts`], [`Adjourn::ready`]) are made on the thread that polls
//! them, from memory or with a few indexed reads, and take microseconds. Those that grow with a journal or with the store
//! ([`SessionRef::journal`], [`Adjourn::query`], [`Adjourn::tally`], [`Adjourn::backup`], the first
//! page of a long [`SessionRef::watch`]) are made on another thread, and hold up no task. A read whose
//! future is dropped changes nothing; one on another thread goes on to its end there, unheard.
//!
//! What lies beneath is here for faces and tools: [`Account`], which tells a session to one client,
//! [`Claimant`], the [`feed`] of commits, [`live`] text, and the [`script`]ed driver. The few reads of
//! these that are not `async` ([`Account::bridge`], [`Claimant::spec`]) take microseconds, too.

pub mod about;
mod account;
mod adjourn;
#[cfg(feature = "testing")]
pub mod bell;
mod builder;
mod claimant;
pub mod clock;
mod committing;
mod config;
mod create;
mod debug;
mod declined;
#[cfg(not(feature = "testing"))]
mod doorbell;
#[cfg(feature = "testing")]
pub mod doorbell;
mod drive;
mod ending;
mod error;
mod failures;
pub mod feed;
mod find;
mod finished;
mod history;
mod host;
mod import;
mod key_rotation;
mod known_hosts;
pub mod live;
mod live_moments;
mod maintenance;
mod moments;
mod off_thread;
mod other_processes;
pub mod permission;
mod process;
mod publish;
mod readiness;
mod reception;
mod recipients;
mod ring;
mod running;
pub mod script;
mod sealing;
mod session_ref;
mod shown;
mod slots;
pub mod telling;
mod trace;
mod transcript;
mod values;
mod verbs;
mod warm;
#[cfg(not(feature = "testing"))]
mod watch;
#[cfg(feature = "testing")]
pub mod watch;

pub use account::Account;
pub use adjourn::{Adjourn, TENANT};
pub use adjourn_store::{
    Counted, Cursor, Filter, NotACursor, Page, Query, ReasonPattern, Sort, Standing, StateKind,
    Tally,
};
pub use builder::{AdjournBuilder, key_directory, user_key_directory};
pub use claimant::Claimant;
pub use committing::Committing;
pub use config::{Claims, Config};
pub use create::CreateBuilder;
pub use error::{Error, NotSuspended, RecordError, StoreError};
pub use failures::Failures;
pub use find::Meant;
pub use finished::FinishedRun;
#[cfg(feature = "testing")]
pub use host::Host;
pub use import::ImportBuilder;
pub use known_hosts::KnownHost;
pub use live_moments::{LiveMoment, LiveMoments, LiveWatchBuilder};
pub use maintenance::{living_at, restore};
pub use moments::{Moments, WatchBuilder};
pub use publish::{Event, NotPublished, Published};
pub use readiness::NotReady;
pub use reception::Reception;
pub use recipients::{MOST_RECIPIENTS, NewRecipient, Recipient, Recipients, TakenRecipient, Then};
#[cfg(feature = "testing")]
pub use ring::Ring;
pub use running::{HostBuilder, RunningHost};
pub use session_ref::SessionRef;
pub use shown::Showing;
pub use verbs::{
    Accepted, AwaitBuilder, CancelBuilder, Canceled, CloseBuilder, Closed, ExportBuilder, Exported,
    PromptBuilder, Prompted, RemoveBuilder, ResumeBuilder, SetOptionBuilder, SuspendBuilder,
    Suspension, TakenOver, TakeoverBuilder, WithdrawBuilder, Withdrawn, Woken,
};
pub use watch::Moment;

pub mod store {
    //! Where sessions are kept: what signatures name of it, and what a [`Transaction`] is asked for.

    pub use adjourn_record::commit::Head;
    pub use adjourn_store::rows::Told;
    pub use adjourn_store::sqlite::{CACHE, Fault, Restored, SetAside, Verified};
    pub use adjourn_store::{
        Added, CommandError, Done, Erased, Listed, Metrics, Pruned, Request, Retention, Size,
        Sqlite, Store, Transaction,
    };
}

pub mod record {
    //! Portable records: signed snapshots of parked sessions that leave the store.

    pub use adjourn_record::portable::{DEFAULT_MAX_AGE, Limit, OpenError, Record, SealError};
}

pub mod keys {
    //! The keys that commits are signed with, and portable records sealed.

    pub use adjourn_record::keys::{
        DecryptError, Error, Key, KeyDir, KeyId, KeyRing, Keys, PublicKey, Revocation, SealingKey,
    };
}

/// The lifecycle: sessions as they are, commands, events of the journal, refusals.
pub use adjourn_core as core;

pub mod driver {
    //! What an agent has to do to be parked and woken.
    //!
    //! A driver with a tool, a park and a question:
    //!
    //! ```
    #![doc = include_str!("../examples/drive.rs")]
    //! ```

    pub use adjourn_driver::*;
}
