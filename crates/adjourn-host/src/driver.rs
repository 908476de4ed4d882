//! What the host asks of whatever runs an agent.
//!
//! A driver thinks (one model call) and runs tools. It never commits: the host does, before and
//! after, so that every driver parks, wakes and recovers in the same way.

use adjourn_core::Session;
use adjourn_core::carry::{Notes, Usage};
use adjourn_core::command::{CallResult, Question, RunEnd};
use adjourn_core::conditions::Conditions;
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::ledger::{AskedCall, CallId};

use crate::clock::BoxFuture;
use crate::permission::Permission;

/// Something that runs an agent, for one claim of one session.
pub trait Driver: Send {
    /// Calls the model once.
    ///
    /// # Cancel safety
    /// Dropping the future breaks the call off; nothing of it may have an effect afterwards.
    fn think<'a>(&'a mut self, session: &'a Session) -> BoxFuture<'a, Thought>;

    /// Asks whether a call may start; none if nobody need be asked.
    ///
    /// # Cancel safety
    /// Nobody is asked before the future is polled. Dropping it takes the request back; the call
    /// has not started, and may be asked for again.
    fn permission(
        &mut self,
        session: &Session,
        call: &AskedCall,
    ) -> Option<BoxFuture<'static, Permission>> {
        let _ = (session, call);
        None
    }

    /// Runs one tool call.
    ///
    /// # Cancel safety
    /// Dropping the future abandons the call: connections are closed, processes killed.
    fn call(&mut self, session: &Session, call: &AskedCall) -> BoxFuture<'static, Returned>;

    /// Returns how many of the calls that were asked for are to be run at once, from the first on.
    fn batch(&self, session: &Session, asked: &[CallId]) -> usize {
        let _ = session;
        asked.len()
    }

    /// Says how the run ended, if it did with the step whose calls have all been answered.
    fn finish(&mut self, session: &Session) -> Option<RunEnd>;
}

/// What a model call came to.
#[derive(Debug, Clone)]
pub struct Thought {
    /// What the agent said.
    pub said: Option<String>,
    /// What it wants.
    pub wish: Wish,
    /// What it used.
    pub usage: Usage,
    /// What the agent noted.
    pub notes: Notes,
    /// Where the driver finds its place again; absent leaves the last one.
    pub place: Option<String>,
}

/// What an agent wants after it has thought.
#[derive(Debug, Clone)]
pub enum Wish {
    /// Nothing: the step is over, and perhaps the run with it.
    Nothing(Option<RunEnd>),
    /// Tools to be run, all at once.
    Calls(Vec<AskedCall>),
    /// To be parked until something happens.
    Await {
        /// Why.
        reason: String,
        /// What wakes it.
        conditions: Option<Conditions>,
        /// What to show meanwhile.
        summary: Option<String>,
    },
    /// To ask a person.
    Ask(Question),
}

/// How a tool call came back.
#[derive(Debug, Clone)]
pub struct Returned {
    /// How it ended.
    pub result: CallResult,
    /// What it answered.
    pub text: String,
}

/// Makes drivers.
pub trait Drivers: Send + Sync + 'static {
    /// Makes a driver, or says why it cannot be run here.
    ///
    /// # Errors
    /// What is missing, in words for whoever looks at a session that stays Ready.
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String>;

    /// Says what this session lacks here at the moment, in words as [`Drivers::make`] does.
    ///
    /// It is asked at every look, so that a session is taken as soon as nothing is lacking.
    fn lacks(&self, session: SessionId, spec: &DriverSpec) -> Option<String> {
        let _ = (session, spec);
        None
    }
}
