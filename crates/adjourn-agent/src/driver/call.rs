//! One tool call: checked, run, and stopped when it takes too long.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;

use adjourn_core::MARK;
use adjourn_core::carry::Usage;
use adjourn_core::command::CallResult;
use adjourn_driver::{Block, BoxFuture, Call, CallPart, Emitter, emitting, signature};
use serde_json::json;
use tokio::sync::oneshot;

use super::AgentDriver;
use super::answer::stalled;
use super::place::Place;
use crate::failure::FailureKind;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// Where the failure of a call stands in the value of its result.
pub(super) const FAILURE: &str = "adjournFailure";
/// Where the value stands that a call has given beside its failure.
const STRUCTURED: &str = "structuredContent";

/// Runs a call, and emits how it ended.
pub(super) async fn run(driver: AgentDriver, call: Call, out: Emitter<CallPart>) {
    let running = driver.active.begin(Arc::clone(&driver.clock));
    let result = attempt(&driver, &call, &out).await;
    let spent = Usage { active_ms: running.take_millis(), ..Usage::default() };
    drop(running);
    if !spent.is_nothing() {
        out.emit(CallPart::Spent(spent)).await;
    }
    let warning = warning(&driver, &call).map(Block::text);
    let ended = match result {
        Ok(ToolOutput { blocks, structured }) => CallPart::Ended {
            result: CallResult::Done,
            content: warning.into_iter().chain(blocks).collect(),
            structured,
        },
        Err(ToolError { failure, blocks, structured }) => {
            let blocks = match blocks.is_empty() {
                true => vec![Block::text(failure.explanation.clone())],
                false => blocks,
            };
            CallPart::Ended {
                result: CallResult::Failed,
                content: warning.into_iter().chain(blocks).collect(),
                // The next step reads it from there, whatever host runs that.
                structured: Some(match structured {
                    Some(value) => json!({ FAILURE: failure.bounded(), STRUCTURED: value }),
                    None => json!({ FAILURE: failure.bounded() }),
                }),
            }
        }
    };
    out.emit(ended).await;
}

/// What ends a wait for a tool.
enum Woken {
    /// It tells something; nothing once it has returned.
    Part(Option<CallPart>),
    Late,
    Silent,
}

async fn attempt(
    driver: &AgentDriver,
    call: &Call,
    out: &Emitter<CallPart>,
) -> Result<ToolOutput, ToolError> {
    let name = &call.content.tool;
    let (clock, limits) = (&driver.clock, &driver.inner.limits);
    let begun = clock.elapsed();
    let late_at = begun.saturating_add(limits.tool_timeout);
    let mut given = ToolCall {
        id: call.content.id.clone(),
        arguments: call.content.arguments(),
        session: Some(Arc::clone(&call.session)),
        client: Arc::clone(&call.client),
        environment: Arc::clone(&call.environment),
        within: None,
        out: None,
    };
    let (finder, wanted) = (driver.clone(), call.clone());
    let (returns, returned) = oneshot::channel();
    // What the tool tells goes through here, because it is a sign of life.
    let mut parts = emitting(|told| async move {
        given.out = Some(told);
        let running = unharmed(wanted.content.tool.clone(), async move {
            // Looking for the tool is a part of the call: a server may hang then, too.
            let tool = find(&finder, &wanted).await?;
            if finder.is_canceled() {
                return Err(ToolError::new("not run: the run was cancelled before the tool began"));
            }
            given.within = Some(late_at.saturating_sub(finder.clock.elapsed()));
            tool.call(given).await
        });
        // It is waited for: a call that is given up drops this, too.
        let _ = returns.send(running.await);
    });
    let (mut heard_at, mut told) = (begun, false);
    loop {
        let now = clock.elapsed();
        let silent_at = heard_at.saturating_add(limits.stall_threshold);
        let woken = tokio::select! {
            // What has come counts, however late it is looked at.
            biased;
            part = poll_fn(|context| parts.as_mut().poll_next(context)) => Woken::Part(part),
            () = clock.sleep(late_at.saturating_sub(now)) => Woken::Late,
            () = clock.sleep(silent_at.saturating_sub(now)), if !told => Woken::Silent,
        };
        match woken {
            Woken::Part(None) => return returned.await?,
            Woken::Part(Some(part)) if now < late_at => {
                out.emit(part).await;
                // Counted from when the host has taken it: until then the tool waits.
                (heard_at, told) = (clock.elapsed(), false);
            }
            // A tool that always has something to tell must end in time, too.
            Woken::Part(Some(_)) | Woken::Late => {
                let limit = limits.tool_timeout.as_secs_f64();
                return Err(ToolError::new(format!("{name} took more than {limit} s")));
            }
            Woken::Silent => {
                told = true;
                let silence = clock.elapsed().saturating_sub(heard_at);
                driver.tell(|| stalled(name, silence));
            }
        }
    }
}

/// Returns the tool of a call, if it is there and takes the arguments.
///
/// Both are looked at here, right before the call runs, so that a call which was deferred for a week
/// is checked against the tools of that day.
async fn find(driver: &AgentDriver, call: &Call) -> Result<Arc<dyn Tool>, ToolError> {
    let (name, arguments) = (&call.content.tool, call.content.arguments());
    let found = match &driver.inner.toolbox {
        own if own.get(name).is_some() => Ok(Some(Arc::clone(own))),
        _ => driver.sources.find(&call.session, &call.environment, name).await,
    };
    let found = found.map_err(|(source, ToolError { failure, .. })| {
        // It may be one of those that cannot be had at the moment.
        let why = format!("there is no tool {name:?}: {}", failure.explanation);
        // A person who was asked about the source has left it as it is.
        let is_asked = Place::read(&call.session).asked_sources.contains(&source);
        ToolError::of(if is_asked { FailureKind::ToolError } else { failure.kind }, why)
    })?;
    let tool = found.as_ref().and_then(|toolbox| Some((toolbox, toolbox.get(name)?)));
    let Some((toolbox, tool)) = tool else {
        return Err(ToolError::new(format!("there is no tool {name:?}")));
    };
    toolbox.check(name, &arguments)?;
    if tool.spec().permission && !was_guarded(call) {
        let why = format!("not run: {name} could not be asked about; ask for it again");
        return Err(ToolError::new(why));
    }
    Ok(Arc::clone(tool))
}

/// Returns whether a call was asked for as one that a person has to allow: then it is one that was
/// allowed. The tool may have come, or have changed, since the model asked for it.
fn was_guarded(call: &Call) -> bool {
    Place::read(&call.session).guarded.contains(&call.content.id)
}

/// Runs a tool so that one that panics fails, and no more.
fn unharmed(
    name: String,
    running: impl Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
    let mut running = Box::pin(running);
    Box::pin(std::future::poll_fn(move |context| {
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(context)));
        polled.unwrap_or_else(|_| Poll::Ready(Err(ToolError::new(format!("{name} panicked")))))
    }))
}

/// Returns what the model is told that repeats itself.
fn warning(driver: &AgentDriver, call: &Call) -> Option<String> {
    let soft = driver.inner.limits.loop_soft_threshold;
    let repeats = Place::read(&call.session).repeats;
    let count = repeats.of(&signature(&call.content));
    (soft > 0 && count >= soft).then(|| {
        format!(
            "{MARK} This call was made {count} times with the same arguments. Do not repeat it."
        )
    })
}
