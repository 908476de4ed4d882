//! What handles and verbs show of themselves in the messages of a program: names, and nothing that
//! was said.

use std::fmt::{Debug, Formatter, Result};

use adjourn_store::Store;

use crate::adjourn::Adjourn;
use crate::builder::AdjournBuilder;
use crate::create::CreateBuilder;
use crate::find::Meant;
use crate::live_moments::{LiveMoments, LiveWatchBuilder};
use crate::moments::{Moments, WatchBuilder};
use crate::running::{HostBuilder, RunningHost};
use crate::session_ref::SessionRef;
use crate::verbs::{
    CancelBuilder, CloseBuilder, PromptBuilder, RemoveBuilder, ResumeBuilder, SetOptionBuilder,
    SuspendBuilder, TakeoverBuilder, WithdrawBuilder,
};

impl<S: Store> Debug for Adjourn<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Adjourn").field("tenant", &self.tenant()).finish_non_exhaustive()
    }
}

impl<S: Store> Debug for SessionRef<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple("SessionRef").field(&self.id()).finish()
    }
}

impl<S: Store> Debug for Meant<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::One(session) => f.debug_tuple("One").field(session).finish(),
            Self::Several => f.write_str("Several"),
            Self::NoRun(run) => f.debug_tuple("NoRun").field(run).finish(),
            Self::Unknown => f.write_str("Unknown"),
        }
    }
}

impl<S: Store> Debug for Moments<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Moments").field("session", &self.id()).finish_non_exhaustive()
    }
}

impl<S: Store> Debug for LiveMoments<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("LiveMoments").field("session", &self.id()).finish_non_exhaustive()
    }
}

impl<S: Store> Debug for LiveWatchBuilder<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let id = &self.watch.session.id();
        f.debug_struct("LiveWatchBuilder").field("session", id).finish_non_exhaustive()
    }
}

impl<S: Store> Debug for HostBuilder<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("HostBuilder").finish_non_exhaustive()
    }
}

impl<S: Store> Debug for RunningHost<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_tuple("RunningHost").field(&self.id()).finish()
    }
}

impl Debug for AdjournBuilder {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("AdjournBuilder").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<S: Store> Debug for CreateBuilder<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let id = &self.founding.id;
        f.debug_struct("CreateBuilder").field("session", id).finish_non_exhaustive()
    }
}

/// Shows a verb with the session that it is about.
macro_rules! shows_its_session {
    ($($verb:ident),+) => {$(
        impl<S: Store> Debug for $verb<S> {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                f.debug_struct(stringify!($verb))
                    .field("session", &self.session.id())
                    .finish_non_exhaustive()
            }
        }
    )+};
}

shows_its_session!(
    CancelBuilder,
    CloseBuilder,
    PromptBuilder,
    RemoveBuilder,
    ResumeBuilder,
    SetOptionBuilder,
    SuspendBuilder,
    TakeoverBuilder,
    WatchBuilder,
    WithdrawBuilder
);
