//! Cancelling: while a run runs it always wins, and leaves nothing to resume.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adjourn_agent::events::ToolStatus;
use adjourn_agent::{
    AgentEvent, AgentGuardrails, CancelReason, CancellationRequest, FunctionTool, ResumeError,
    ToolError, ToolSource, Toolbox,
};
use adjourn_core::Session;
use adjourn_driver::{BoxFuture, Client, Environment, PermissionAnswer, PermissionRequest};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fixture::{Ran, agent, asks, events, model, suspended, tags};

#[tokio::test(start_paused = true)]
async fn agt_51_52_53_56_a_run_that_is_cancelled_before_it_begins_calls_no_model() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let cancel = CancellationRequest::new(CancelReason::ClientDisconnect);
    assert!(!cancel.is_set());
    cancel.set();
    assert!(cancel.is_set());
    let run = events(agent.run("Summarise sales").cancellation(cancel)).await;
    let Some(AgentEvent::RunCancelled(cancelled)) = run.last() else { panic!("{run:?}") };
    assert_eq!(cancelled.reason, CancelReason::ClientDisconnect);
    assert!(!cancelled.message.is_empty());
    assert_eq!(serde_json::to_value(cancelled).unwrap()["reason"], "client_disconnect");
    assert_eq!(CancellationRequest::default().reason(), CancelReason::UserRequest);
    assert!(model.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn agt_54_between_two_tools_nothing_more_starts() {
    let model = model(json!([{ "calls": [{ "tool": "first" }, { "tool": "second" }] }]));
    let (ran, cancel) = (Ran::default(), CancellationRequest::default());
    let (noted, request) = (ran.clone(), cancel.clone());
    let first = FunctionTool::new("first", "Cancels.", move |_: Value| {
        noted.push("first");
        request.set();
        async { Ok::<_, ToolError>("ran") }
    });
    let agent = agent(&model).tool(first).tool(ran.tool("second")).build().unwrap();
    let run = events(agent.run("Do both.").cancellation(cancel)).await;
    assert_eq!(ran.names(), ["first"]);
    assert_eq!(tags(&run).last(), Some(&"run_cancelled"));
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_at_any_event_is_the_last_word_of_the_run() {
    for stop_at in 0.. {
        let model = model(json!([
            { "text": "I look.", "calls": [{ "tool": "look" }, { "tool": "read" },
                                           { "tool": "list" }, { "tool": "write" }] },
            { "text": "I was", "error": { "kind": "transient_provider" } },
            { "text": "Done." },
        ]));
        let ran = Ran::default();
        let mut agent = agent(&model).tool(ran.tool("write"));
        for name in ["look", "read", "list"] {
            agent = agent.tool(ran.tool(name).idempotent());
        }
        let cancel = CancellationRequest::default();
        let mut run = agent.build().unwrap().run("Look.").cancellation(cancel.clone());
        let (mut seen, mut told, mut ran_before) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(event) = run.next().await {
            if seen.len() == stop_at {
                cancel.set();
                ran_before = ran.names();
            }
            seen.push(event.tag());
            if let AgentEvent::ToolEvent(event) = event {
                told.push((event.tool, event.status));
            }
        }
        if !seen.contains(&"run_cancelled") {
            // The run was over by then: every event but the last ones was tried.
            assert!(stop_at > 20, "{stop_at}: {seen:?}");
            return;
        }
        assert_eq!(seen.last(), Some(&"run_cancelled"), "{stop_at}: {seen:?}");
        assert_eq!(ran.names(), ran_before, "{stop_at}: {told:?}");
        // What became of every call whose start was told is told, too.
        for name in ["look", "read", "list", "write"] {
            let statuses = told.iter().filter(|(tool, _)| tool == name);
            let statuses: Vec<_> = statuses.map(|(_, status)| *status).collect();
            let ended = match ran_before.iter().any(|ran| ran == name) {
                true => ToolStatus::Completed,
                false => ToolStatus::NotRun,
            };
            let whole = [ToolStatus::Started, ended];
            assert!(statuses.is_empty() || statuses == whole, "{stop_at}: {told:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cancels_keeps_the_calls_beside_it_from_beginning() {
    let calls = json!([{ "tool": "first" }, { "tool": "second" }, { "tool": "third" }]);
    let model = model(json!([{ "calls": calls }]));
    let (ran, cancel) = (Ran::default(), CancellationRequest::default());
    let (noted, request) = (ran.clone(), cancel.clone());
    let second = FunctionTool::new("second", "Cancels, and works.", move |_: Value| {
        noted.push("second");
        request.set();
        async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok::<_, ToolError>("ran")
        }
    });
    let noted = ran.clone();
    let first = FunctionTool::new("first", "Works.", move |_: Value| {
        noted.push("first");
        async {
            tokio::time::sleep(Duration::from_secs(9)).await;
            Ok::<_, ToolError>("ran")
        }
    });
    let agent = agent(&model).tool(first.idempotent()).tool(second.idempotent());
    let agent = agent.tool(ran.tool("third").idempotent()).build().unwrap();
    let begun = Instant::now();
    let run = events(agent.run("Do all.").cancellation(cancel)).await;
    // Those that have begun run beside one another, to their ends.
    assert_eq!(begun.elapsed(), Duration::from_secs(9));
    assert_eq!(ran.names(), ["first", "second"]);
    let told = run.iter().filter_map(|event| match event {
        AgentEvent::ToolEvent(event) => Some((event.tool.as_str(), event.status)),
        _ => None,
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [
            ("first", ToolStatus::Started),
            ("second", ToolStatus::Started),
            ("third", ToolStatus::Started),
            ("third", ToolStatus::NotRun),
            ("second", ToolStatus::Completed),
            ("first", ToolStatus::Completed),
        ]
    );
    assert_eq!(tags(&run).last(), Some(&"run_cancelled"));
}

/// A tool that works for a minute.
fn works() -> FunctionTool {
    FunctionTool::new("work", "Works for a minute.", |_: Value| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok::<_, ToolError>("worked")
    })
}

/// Returns a request that is set after ten seconds.
fn in_ten_seconds() -> CancellationRequest {
    let cancel = CancellationRequest::default();
    let request = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        request.set();
    });
    cancel
}

/// Cancels a run with one call of `work` after ten seconds; returns its events, and how long it took.
async fn cancelled_at_work(guardrails: AgentGuardrails) -> (Vec<AgentEvent>, Duration) {
    let model = model(json!([{ "calls": [{ "tool": "work" }] }]));
    let agent = agent(&model).guardrails(guardrails).tool(works()).build().unwrap();
    let (cancel, begun) = (in_ten_seconds(), Instant::now());
    (events(agent.run("Work.").cancellation(cancel)).await, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn agt_55_a_tool_that_has_started_may_end_by_itself() {
    let (run, took) = cancelled_at_work(AgentGuardrails::default()).await;
    assert_eq!(took, Duration::from_secs(60));
    let ended = |event: &AgentEvent| match event {
        AgentEvent::ToolEvent(event) => Some(event.status),
        _ => None,
    };
    let ended: Vec<_> = run.iter().filter_map(ended).collect();
    assert_eq!(ended, [ToolStatus::Started, ToolStatus::Completed]);
    assert_eq!(tags(&run).last(), Some(&"run_cancelled"));
    assert_eq!(worked(&run), 60.0);
}

/// Returns how many seconds the last snapshot of a run says that it has worked.
fn worked(run: &[AgentEvent]) -> f64 {
    let seconds = run.iter().rev().find_map(|event| match event {
        AgentEvent::StateSnapshot(snapshot) => Some(snapshot.elapsed_seconds),
        _ => None,
    });
    seconds.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_broken_off_by_a_cancel_has_worked_as_well() {
    let agent = agent(&model(json!([{ "text": "Done.", "ms": 20_000 }])));
    let cancel = CancellationRequest::default();
    let mut run = agent.build().unwrap().run("Go.").cancellation(cancel.clone());
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        if event.tag() == "llm_call_completed" {
            cancel.set();
        }
        seen.push(event);
    }
    assert_eq!(tags(&seen).last(), Some(&"run_cancelled"));
    assert_eq!(worked(&seen), 20.0);
}

/// A client that thinks about each permission for an hour, and a source whose tools take as long.
struct Slow;

const HOUR: Duration = Duration::from_secs(3600);

impl Client for Slow {
    fn permission(&self, _: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        Box::pin(async {
            tokio::time::sleep(HOUR).await;
            PermissionAnswer::Granted { always: true }
        })
    }
}

impl ToolSource for Slow {
    fn tools(
        &self,
        _: Arc<Session>,
        _: Arc<Environment>,
    ) -> BoxFuture<'static, Result<Arc<Toolbox>, ToolError>> {
        Box::pin(async {
            tokio::time::sleep(HOUR).await;
            Ok(Arc::default())
        })
    }

    fn patience(&self) -> Duration {
        HOUR
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_permission_a_retry_or_a_source_ends_with_a_cancel() {
    let wants = json!([{ "calls": [{ "tool": "look" }, { "tool": "write" }] }]);
    let later = json!({ "kind": "transient_provider", "message": "later", "retry_after_s": 200 });
    let fails = json!([{ "error": later }]);
    for (script, has_source, asked) in
        [(wants, false, 1), (fails, false, 1), (json!([{ "text": "Done." }]), true, 0)]
    {
        let (model, ran) = (model(script), Ran::default());
        let agent = agent(&model).client(Arc::new(Slow)).tool(ran.tool("write"));
        let agent = agent.tool(ran.tool("look").asks_permission());
        let agent = if has_source { agent.tool_source(Arc::new(Slow)) } else { agent };
        let (cancel, begun) = (in_ten_seconds(), Instant::now());
        let run = events(agent.build().unwrap().run("Go.").cancellation(cancel)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(10), "{run:?}");
        assert_eq!(tags(&run).last(), Some(&"run_cancelled"), "{run:?}");
        assert!(ran.names().is_empty(), "{run:?}");
        assert_eq!(model.requests().len(), asked);
    }
}

/// A source that has its tools when the model is told of them, and looks for ten seconds for them when
/// one is called.
struct Returns(Arc<Toolbox>, AtomicUsize);

impl ToolSource for Returns {
    fn tools(
        &self,
        _: Arc<Session>,
        _: Arc<Environment>,
    ) -> BoxFuture<'static, Result<Arc<Toolbox>, ToolError>> {
        let wait = match self.1.fetch_add(1, Ordering::AcqRel) {
            0 => Duration::ZERO,
            _ => Duration::from_secs(10),
        };
        let toolbox = Arc::clone(&self.0);
        Box::pin(async move {
            tokio::time::sleep(wait).await;
            Ok(toolbox)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_tool_is_found_behind_a_cancel_does_not_begin() {
    let (ran, cancel) = (Ran::default(), CancellationRequest::default());
    let mut toolbox = Toolbox::new();
    toolbox.add(Arc::new(ran.tool("look"))).unwrap();
    let source = Arc::new(Returns(Arc::new(toolbox), AtomicUsize::new(0)));
    let model = model(json!([{ "calls": [{ "tool": "look" }] }]));
    let agent = agent(&model).tool_source(source).build().unwrap();
    let request = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(5)).await;
        request.set();
    });
    let run = events(agent.run("Look.").cancellation(cancel)).await;
    assert!(ran.names().is_empty());
    assert_eq!(tags(&run).last(), Some(&"run_cancelled"), "{run:?}");
    let observed = run.iter().find_map(|event| match event {
        AgentEvent::ToolResultObserved(observed) => Some(observed.content.clone()),
        _ => None,
    });
    assert_eq!(observed.unwrap(), "not run: the run was cancelled before the tool began");
}

#[tokio::test(start_paused = true)]
async fn agt_57_a_tool_that_has_started_is_stopped_by_its_time_out() {
    let guardrails = AgentGuardrails { tool_timeout_s: 20.0, ..AgentGuardrails::default() };
    let (run, took) = cancelled_at_work(guardrails).await;
    assert_eq!(took, Duration::from_secs(20));
    assert_eq!(tags(&run).last(), Some(&"run_cancelled"));
}

#[tokio::test(start_paused = true)]
async fn a_resume_that_is_cancelled_before_it_begins_leaves_nothing_to_resume() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Summarise sales")).await;
    let cancel = CancellationRequest::default();
    cancel.set();
    let run = agent.resume(&record, "monthly").cancellation(cancel).await.unwrap();
    assert_eq!(tags(&events(run).await), ["run_cancelled"]);
    let again = agent.resume(&record, "monthly").await.unwrap_err();
    assert!(matches!(again, ResumeError::AlreadyConsumed { .. }), "{again}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_set_behind_the_question_leaves_the_record_as_it_is() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let cancel = CancellationRequest::default();
    let record = suspended(agent.run("Summarise sales").cancellation(cancel.clone())).await;
    cancel.set();
    let run = events(agent.resume(&record, "monthly").await.unwrap()).await;
    assert!(!tags(&run).contains(&"run_cancelled"), "{run:?}");
}

#[tokio::test(start_paused = true)]
async fn a_suspended_run_is_cancelled_by_revoking_its_record() {
    let model = model(asks());
    let agent = agent(&model).build().unwrap();
    let record = suspended(agent.run("Summarise sales")).await;
    // A tenant that shares the keys can neither revoke it nor read it.
    let strange = crate::fixture::agent(&model).tenant("other").build().unwrap();
    let other = |refused| matches!(refused, ResumeError::OtherOwner { what: "tenant", .. });
    assert!(other(strange.revoke(&record).await.unwrap_err()));
    assert!(other(strange.read(&record).unwrap_err()));
    agent.revoke(&record).await.unwrap();
    let refused = agent.resume(&record, "monthly").await.unwrap_err();
    assert_eq!(refused.to_string().rsplit(' ').nth(1), Some("revoked"), "{refused}");
    assert_eq!(model.requests().len(), 1);
}
