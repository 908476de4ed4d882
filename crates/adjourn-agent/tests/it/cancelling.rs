//! Cancelling: while a run runs it always wins, and leaves nothing to resume.

use std::time::Duration;

use adjourn_agent::events::ToolStatus;
use adjourn_agent::{
    AgentEvent, AgentGuardrails, CancelReason, CancellationRequest, FunctionTool, ResumeError,
    ToolError,
};
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
            { "text": "I look.", "calls": [{ "tool": "look" }, { "tool": "write" }] },
            { "text": "I was", "error": { "kind": "transient_provider" } },
            { "text": "Done." },
        ]));
        let ran = Ran::default();
        let agent = agent(&model).tool(ran.tool("look").idempotent()).tool(ran.tool("write"));
        let cancel = CancellationRequest::default();
        let mut run = agent.build().unwrap().run("Look.").cancellation(cancel.clone());
        let (mut seen, mut ran_before) = (Vec::new(), 0);
        while let Some(event) = run.next().await {
            if seen.len() == stop_at {
                cancel.set();
                ran_before = ran.names().len();
            }
            seen.push(event.tag());
        }
        if !seen.contains(&"run_cancelled") {
            // The run was over by then: every event but the last ones was tried.
            assert!(stop_at > 12, "{stop_at}: {seen:?}");
            return;
        }
        assert_eq!(seen.last(), Some(&"run_cancelled"), "{stop_at}: {seen:?}");
        // A call whose start was told may run; none starts behind the request.
        assert!(ran.names().len() <= ran_before + 1, "{stop_at}: {:?}", ran.names());
    }
}

/// A tool that works for a minute.
fn works() -> FunctionTool {
    FunctionTool::new("work", "Works for a minute.", |_: Value| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok::<_, ToolError>("worked")
    })
}

/// Cancels a run with one call of `work` after ten seconds; returns its events, and how long it took.
async fn cancelled_at_work(guardrails: AgentGuardrails) -> (Vec<AgentEvent>, Duration) {
    let model = model(json!([{ "calls": [{ "tool": "work" }] }]));
    let agent = agent(&model).guardrails(guardrails).tool(works()).build().unwrap();
    let cancel = CancellationRequest::default();
    let request = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(10)).await;
        request.set();
    });
    let begun = Instant::now();
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
