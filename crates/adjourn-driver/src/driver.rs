//! The trait that everything that runs an agent implements, and what it is given.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use adjourn_core::Session;
use adjourn_core::carry::Usage;
use adjourn_core::command::{CallResult, RunEnd};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use futures_core::Stream;
use serde_json::{Value, json};

use crate::client::Client;
use crate::content::{Block, CallContent};
use crate::control::{Control, Reply};
use crate::opening::{Continuation, Opening};
use crate::part::Part;
use crate::stop::StopWatch;
use crate::stream::emitting;
use crate::transcript::Transcript;

/// A future that can be kept and sent.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A stream that can be kept and sent.
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;

/// Something that runs an agent, for one claim of one session, or for several if it is kept.
///
/// Dropping it ends what it has outside of this process, too, as far as that can be without
/// waiting: a host that is killed awaits nothing.
pub trait Driver: Send {
    /// Runs one step: one model call of an agent whose loop is ours, or one prompt turn of an
    /// agent that has a loop of its own.
    ///
    /// The host commits each part before it polls again. A stream that ends without
    /// [`Part::Finished`] ends at a boundary, too.
    ///
    /// A step that says nothing, does nothing and leaves no [`Part::State`] is one for nothing: a
    /// run with three of them in a row fails.
    ///
    /// # Cancel safety
    /// The host drops the stream when the session is to be interrupted or canceled, and keeps the
    /// words so far; see [`Driver::ends_steps_itself`].
    fn step(&mut self, step: Step) -> BoxStream<'static, Part>;

    /// Says whether it ends a step by itself when [`Step::stop`] asks for that, as an agent with a
    /// loop of its own does, which must be told and may have calls under way.
    ///
    /// The host then drops the stream only after the time that [`Step::stop`] names, and awaits
    /// [`Driver::kill`] afterwards. It takes such a driver for one that has something outside of
    /// this process, also while its session rests.
    fn ends_steps_itself(&self) -> bool {
        false
    }

    /// Says whether it parks with the question where one of its calls has to be allowed and no person
    /// can be asked ([`UNASKED`]).
    ///
    /// Of the message with that call, nothing that has not started runs before the answer then. With
    /// any other driver only the call is declined, and those that nobody has to allow run.
    fn parks_unasked(&self) -> bool {
        false
    }

    /// Runs one tool call; many may be alive at once, beside nothing else of this driver.
    ///
    /// A driver that asks for no calls need not write it: a call whose stream ends without
    /// [`CallPart::Ended`] is told as one that came to no result.
    ///
    /// # Cancel safety
    /// Dropping the stream abandons the call: connections are closed, processes killed.
    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        drop(call);
        emitting(|_| std::future::ready(()))
    }

    /// Says how the run ended, if it did with the step whose calls have all been answered. It
    /// reads only what is durable.
    fn finish(&mut self, session: &Session) -> Option<RunEnd> {
        let _ = session;
        None
    }

    /// Takes something that a client has asked for while a step runs.
    ///
    /// The host has committed it already, and gives it to the next step with the session. A driver
    /// that does not write this hears of it then.
    ///
    /// # Cancel safety
    /// The host drops the future when the step is over.
    fn control(&mut self, control: Control) -> BoxFuture<'static, Reply> {
        drop(control);
        Box::pin(std::future::ready(Reply::NotSupported))
    }

    /// Says whether there is something worth keeping warm while the session is parked, or idle
    /// after its run. The next claim of the same host goes on with it, for a while.
    ///
    /// The host asks before each commit with which the session may come to rest, so that other
    /// hosts know of the driver by then, and once more when the session rests. A driver whose loop
    /// is the host's says `true` as long as it has something outside of this process: else another
    /// host that claims the session does not wait for its end.
    fn keep(&mut self) -> bool {
        false
    }

    /// Ends everything that it has outside of this process. The host awaits it, for some seconds
    /// at most.
    ///
    /// If a step is broken off while its stream or its calls still run, that is before the commit
    /// which says that nothing runs. At rest, which is a park, the end of a run or a boundary at
    /// which the host stops, nothing of the step runs any more: the driver is ended behind that
    /// commit, unless it is kept. Another host that claims the session meanwhile waits for the end,
    /// for at most a second, before it runs a step with a driver of its own; so it does for drivers
    /// with something to [`keep`](Driver::keep) and for those that
    /// [end steps themselves](Driver::ends_steps_itself).
    fn kill(&mut self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What a driver is given for one step.
#[derive(Clone)]
pub struct Step {
    /// The session, as the commit left it that began the step.
    pub session: Arc<Session>,
    /// Why the step is run: a prompt, a wake, or the step before it.
    pub opening: Opening,
    /// What is known of the step before, if that was broken off.
    pub continues: Option<Continuation>,
    /// Everything that was said so far, read from its end.
    pub transcript: Transcript,
    /// Says when the step is to come to an end, and by when.
    pub stop: StopWatch,
    /// The way to ask a client that sees the session: for permissions, files, terminals and forms.
    pub client: Arc<dyn Client>,
    /// Values of environment variables and headers, which are never stored.
    pub environment: Arc<Environment>,
}

/// What a driver is given for one tool call.
#[derive(Clone)]
pub struct Call {
    /// The session, as the commit left it that dispatched the call.
    pub session: Arc<Session>,
    /// The call, with its arguments.
    pub content: CallContent,
    /// The way to ask a client that sees the session: for permissions, files, terminals and forms.
    pub client: Arc<dyn Client>,
    /// Values of environment variables and headers, which are never stored.
    pub environment: Arc<Environment>,
}

/// One part of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallPart {
    /// News for people who watch: the fields of an ACP tool-call update that have changed. The
    /// host commits them within 50 ms, those of one call as one; how the call stands is told as
    /// the ledger has it, whatever `status` says.
    Updated(serde_json::Map<String, Value>),
    /// What the call has used: it adds up, and is committed with the call's result, so that it
    /// counts whatever becomes of the session behind it.
    Spent(Usage),
    /// The call is over, and this is its result.
    Ended {
        /// Whether the call did its work, failed, or was declined before it started.
        result: CallResult,
        /// The blocks that show the result.
        content: Vec<Block>,
        /// The result as a value, if the tool gives one.
        structured: Option<Value>,
    },
}

/// How a tool call came back, as the host has heard it from the parts of the call.
#[derive(Debug, Clone)]
pub struct Returned {
    /// Whether the call did its work, failed, or was declined before it started.
    pub result: CallResult,
    /// The blocks that show the result.
    pub content: Vec<Block>,
    /// The result as a value, if the tool gives one.
    pub structured: Option<Value>,
    /// What the call has used.
    pub usage: Usage,
}

/// Where the value of a result says that its call was not run because no person could be asked
/// about it.
pub const UNASKED: &str = "adjournUnasked";

impl Returned {
    /// Makes the return of a call that no person could be asked about. A driver that wants it all the
    /// same parks with the question ([`Driver::parks_unasked`]).
    pub fn unasked() -> Self {
        let why = "not run: no person can be asked for permission";
        let structured = Some(json!({ UNASKED: true }));
        Self { structured, ..Self::failed(CallResult::Declined, why) }
    }

    /// Makes the return of a call that did not do its work, which a text says why.
    pub fn failed(result: CallResult, why: impl Into<String>) -> Self {
        let (content, usage) = (vec![Block::text(why)], Usage::default());
        Self { result, content, structured: None, usage }
    }
}

/// Values of environment variables and of headers of MCP servers. They live in memory alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The values of environment variables, by name.
    pub variables: BTreeMap<String, String>,
    /// What MCP servers are given, by the names that the session knows them by.
    pub mcp_servers: BTreeMap<String, McpValues>,
    /// MCP servers, without values, that a client has named instead of those that the session was
    /// created with.
    pub servers: Option<Vec<Value>>,
}

/// Values that an MCP server is given. They live in memory alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct McpValues {
    /// Environment variables of its process, by name.
    pub variables: BTreeMap<String, String>,
    /// Headers of requests to it, by name; and the secrets of its address, by the names that
    /// [`mcp_address`](crate::mcp_address) keeps them by.
    pub headers: BTreeMap<String, String>,
}

impl Environment {
    /// Returns the values that this process has of the variables that a session reads.
    pub fn of_process(spec: &DriverSpec) -> Self {
        let value = |name: &String| Some((name.clone(), std::env::var(name).ok()?));
        Self { variables: spec.env.iter().filter_map(value).collect(), ..Self::default() }
    }

    /// Returns these values with others added, which hold where both have one: a variable by its
    /// name, an MCP server with all that it is given, the list of servers as a whole.
    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        self.variables.extend(others.variables);
        self.mcp_servers.extend(others.mcp_servers);
        self.servers = others.servers.or(self.servers);
        self
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values are secrets.
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("mcp_servers", &self.mcp_servers)
            .field("servers", &self.servers)
            .finish()
    }
}

impl std::fmt::Debug for McpValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values are secrets.
        f.debug_struct("McpValues")
            .field("variables", &self.variables.keys())
            .field("headers", &self.headers.keys())
            .finish()
    }
}

/// What of a session cannot be used, for the client that asked for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// The field, as clients name it: `cwd`, `mcpServers[0].command`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Unusable {
    /// Says what is wrong with a field.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

/// What a host makes the drivers of its sessions with.
pub trait Drivers: Send + Sync + 'static {
    /// Makes a driver, or says why it cannot be run here.
    ///
    /// It has nothing outside of this process before its first step: it is dropped if the session is
    /// another host's by then, or if its driver was kept.
    ///
    /// # Errors
    /// What is missing, in words for a person who looks at a session that stays Ready.
    fn make(&self, spec: &DriverSpec) -> Result<Box<dyn Driver>, String>;

    /// Checks what a session is about to be created with, as far as that can be without starting
    /// anything, so that a client is refused at once what [`Drivers::make`] would decline later.
    ///
    /// # Errors
    /// Which field cannot be used here, and why.
    fn check(&self, spec: &DriverSpec) -> Result<(), Unusable> {
        let _ = spec;
        Ok(())
    }

    /// Says what this session lacks here at the moment, in words as [`Drivers::make`] does.
    ///
    /// It is asked at every look, so that a session is taken as soon as nothing is lacking.
    fn lacks(&self, session: SessionId, spec: &DriverSpec) -> Option<String> {
        let _ = (session, spec);
        None
    }

    /// Says which values this session lacks here, in words as [`Drivers::make`] does: of `environment`,
    /// which is what its driver would be given, or of this process.
    ///
    /// It is asked at every look, so that a session is taken as soon as it was given its values.
    fn lacks_values(&self, spec: &DriverSpec, environment: &Environment) -> Option<String> {
        let _ = (spec, environment);
        None
    }

    /// Returns the values of the variables that a session reads: those of this process.
    fn environment(&self, spec: &DriverSpec) -> Environment {
        Environment::of_process(spec)
    }

    /// Returns what a client that sees the session can be asked.
    fn client(&self, session: SessionId) -> Arc<dyn Client> {
        let _ = session;
        Arc::new(crate::client::NoClient)
    }
}
