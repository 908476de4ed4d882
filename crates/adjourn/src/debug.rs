//! What handles show of themselves in the messages of a program: names, and nothing that was said.

use std::fmt::{Debug, Formatter, Result};

use adjourn_store::Store;

use crate::adjourn::Adjourn;
use crate::moments::Moments;
use crate::running::{HostBuilder, RunningHost};
use crate::session_ref::SessionRef;

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

impl<S: Store> Debug for Moments<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Moments").field("session", &self.id()).finish_non_exhaustive()
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
