//! Where an agent finds the tools of one server: connected when they are first asked for.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use adjourn_core::Session;
use adjourn_driver::{BoxFuture, Environment};
use rmcp::service::ServiceError;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::config::{Launch, McpServer};
use super::connection::{Connection, cause, chain, kind_of};
use super::names::prefix;
use super::tool::McpTool;
use crate::failure::FailureKind;
use crate::tool::{ToolError, ToolSource, Toolbox};

/// How long a server that could not be used is left alone: each try may take as long as a
/// connection may.
const TRY_AGAIN: Duration = Duration::from_secs(30);

/// The tools of one server, for one driver.
pub(super) struct McpSource {
    server: Arc<McpServer>,
    directory: Option<PathBuf>,
    within: Duration,
    state: Arc<Mutex<State>>,
    open: Arc<AtomicBool>,
}

/// How a server stands.
#[derive(Default)]
enum State {
    #[default]
    Closed,
    Open {
        connection: Connection,
        toolbox: Arc<Toolbox>,
        /// How often the tools had changed when they were listed.
        changes: u64,
    },
    Failed {
        error: ToolError,
        launch: Launch,
        at: Instant,
    },
}

impl McpSource {
    pub(super) fn new(server: McpServer, directory: Option<PathBuf>, within: Duration) -> Self {
        Self {
            server: Arc::new(server),
            directory,
            within,
            state: Arc::default(),
            open: Arc::default(),
        }
    }
}

impl ToolSource for McpSource {
    fn instance(&self) -> Option<Arc<dyn ToolSource>> {
        let (server, directory) = (McpServer::clone(&self.server), self.directory.clone());
        Some(Arc::new(Self::new(server, directory, self.within)))
    }

    fn name(&self) -> Option<String> {
        Some(self.server.name.clone())
    }

    fn patience(&self) -> Duration {
        // It is connected, perhaps in another way after the first, and asked for its tools, each within
        // that time.
        self.within.saturating_mul(4)
    }

    fn may_have(&self, tool: &str) -> bool {
        tool.starts_with(&prefix(&self.server.name))
    }

    fn tools(
        &self,
        _: Arc<Session>,
        environment: Arc<Environment>,
    ) -> BoxFuture<'static, Result<Arc<Toolbox>, ToolError>> {
        let (server, within) = (Arc::clone(&self.server), self.within);
        let launch = self.server.launch(self.directory.as_deref(), &environment);
        let (state, open) = (Arc::clone(&self.state), Arc::clone(&self.open));
        Box::pin(async move {
            let launch = launch.map_err(|missing| {
                let (name, missing) = (&server.name, missing.join(", "));
                ToolError::new(format!("MCP server {name:?} cannot be used: it lacks {missing}"))
            })?;
            // It is held while the server is connected, so that one driver connects it once.
            let mut state = state.lock().await;
            let tools = state.tools(&server, launch, within).await;
            open.store(matches!(*state, State::Open { .. }), Ordering::Release);
            tools
        })
    }

    fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let (state, open) = (Arc::clone(&self.state), Arc::clone(&self.open));
        Box::pin(async move {
            let closed = std::mem::take(&mut *state.lock().await);
            open.store(false, Ordering::Release);
            if let State::Open { connection, .. } = closed {
                connection.close().await;
            }
        })
    }
}

impl State {
    /// Returns the tools of a server, which is connected if it is not.
    async fn tools(
        &mut self,
        server: &Arc<McpServer>,
        launch: Launch,
        within: Duration,
    ) -> Result<Arc<Toolbox>, ToolError> {
        match self {
            Self::Open { connection, toolbox, changes } if connection.is_good_for(&launch) => {
                let now = connection.changes();
                if *changes == now {
                    return Ok(Arc::clone(toolbox));
                }
                match list(server, &launch, connection, within).await {
                    Ok(found) => {
                        (*toolbox, *changes) = (Arc::clone(&found), now);
                        return Ok(found);
                    }
                    Err(error) => {
                        let at = Instant::now();
                        *self = Self::Failed { error: error.clone(), launch, at };
                        return Err(error);
                    }
                }
            }
            Self::Failed { error, launch: tried, at }
                if *tried == launch && at.elapsed() < TRY_AGAIN =>
            {
                return Err(error.clone());
            }
            Self::Open { .. } | Self::Failed { .. } | Self::Closed => {}
        }
        if let Self::Open { connection, .. } = std::mem::take(self) {
            let status = connection.close().await.map(tracing::field::display);
            tracing::warn!(server = server.name, status, "MCP server is started again");
        }
        let opened = match Connection::open(&server.name, &launch, within).await {
            Ok(connection) => {
                let changes = connection.changes();
                match list(server, &launch, &connection, within).await {
                    Ok(toolbox) => Ok((connection, toolbox, changes)),
                    Err(error) => {
                        connection.close().await;
                        Err(error)
                    }
                }
            }
            Err(error) => Err(error),
        };
        match opened {
            Ok((connection, toolbox, changes)) => {
                *self = Self::Open { connection, toolbox: Arc::clone(&toolbox), changes };
                Ok(toolbox)
            }
            Err(error) => {
                // What the server said may hold words of people, and is for `debug` alone.
                let (kind, why) = (error.failure.kind, &error.failure.explanation);
                tracing::warn!(server = server.name, %kind, "MCP server cannot be used");
                tracing::debug!("{why}");
                *self = Self::Failed { error: error.clone(), launch, at: Instant::now() };
                Err(error)
            }
        }
    }
}

/// Asks a server for its tools.
async fn list(
    server: &Arc<McpServer>,
    launch: &Launch,
    connection: &Connection,
    within: Duration,
) -> Result<Arc<Toolbox>, ToolError> {
    let secrets = launch.secrets();
    let failed = |kind, why: String| {
        let (name, why) = (&server.name, secrets.redact(&why));
        ToolError::of(kind, format!("MCP server {name:?} does not say which tools it has: {why}"))
    };
    let listed = match tokio::time::timeout(within, connection.peer().list_all_tools()).await {
        Ok(Ok(listed)) => listed,
        Ok(Err(ServiceError::TransportClosed)) => {
            let why = format!("it {}", connection.too_long().how());
            return Err(failed(FailureKind::ToolError, why));
        }
        Ok(Err(error)) => {
            let error = cause(&error);
            return Err(failed(kind_of(error), chain(error)));
        }
        Err(_) => {
            let why = format!("it took more than {} s", within.as_secs_f64());
            return Err(failed(FailureKind::ToolError, why));
        }
    };
    let mut toolbox = Toolbox::new();
    for tool in listed {
        let tool = McpTool::new(server, &tool, connection, secrets.clone());
        // One tool that cannot be used keeps none of the others away.
        if let Err(error) = tool.and_then(|tool| Ok(toolbox.add(Arc::new(tool))?)) {
            // It may repeat what the server said of the tool, which is for `debug` alone.
            let why = secrets.redact(&error.failure.explanation);
            tracing::warn!(server = server.name, "a tool of an MCP server is left out");
            tracing::debug!("{why}");
        }
    }
    Ok(Arc::new(toolbox))
}
