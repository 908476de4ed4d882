//! Agents with models over the network: what a run does about what a provider answers.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use adjourn_agent::{
    Action, Agent, AgentBuilder, AgentEvent, AgentGuardrails, ApiKey, CancelReason,
    CancellationRequest, Clock, DefaultPolicy, Failure, FailureKind, ModelOptions, Price, Prices,
    RecoveryPolicy, Run, named_model,
};
use adjourn_core::time::Timestamp;
use adjourn_driver::BoxFuture;
use adjourn_testkit::log::Log;
use adjourn_testkit::provider::openai::{chunk, says};
use adjourn_testkit::provider::{Reply, Server, anthropic, openai};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::Level;

use super::anthropic::MODEL;
use super::{KEY, model_at};
use crate::fixture::{BEGINNING, Ran, errors, events, keys, question, text};

const OPENAI: &str = "openai/gpt-5";

/// The default policy, without waits.
struct AtOnce;

const POLICY: DefaultPolicy = DefaultPolicy { llm_max_retries: 3 };

impl RecoveryPolicy for AtOnce {
    fn retry_budget(&self, kind: FailureKind) -> u32 {
        POLICY.retry_budget(kind)
    }

    fn backoff(&self, _: FailureKind, _: u32) -> Duration {
        Duration::ZERO
    }

    fn decide(&self, failure: &Failure, attempts: u32) -> Action {
        POLICY.decide(failure, attempts)
    }
}

/// A clock that the test sets.
#[derive(Clone)]
struct SetClock(Arc<watch::Sender<Duration>>);

impl SetClock {
    fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Duration::ZERO)))
    }

    fn advance(&self, by: Duration) {
        self.0.send_modify(|time| *time += by);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(BEGINNING).after(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        *self.0.borrow()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let until = self.elapsed().saturating_add(duration);
        let mut time = self.0.subscribe();
        Box::pin(async move {
            time.wait_for(|time| *time >= until).await.unwrap();
        })
    }
}

fn agent_at(name: &str, server: &Server) -> AgentBuilder {
    let agent = Agent::builder_with(model_at(name, server)).keys(keys());
    agent.recovery_policy(AtOnce).clock(Arc::new(SetClock::new()))
}

fn error(status: u16) -> Reply {
    let message = format!("no: {KEY}");
    Reply::error(status, &json!({ "error": { "message": message, "type": "refused" } }))
}

/// What all that a run tells says, as a host would store it.
fn stored(events: &[AgentEvent]) -> String {
    serde_json::to_string(events).unwrap()
}

#[tokio::test]
async fn credentials_that_are_refused_make_the_agent_ask_without_telling_them() {
    let server = Server::start(vec![error(401), says("Hello.")]).await;
    let agent = agent_at(OPENAI, &server).build().unwrap();
    let run = events(agent.run("Hello?")).await;
    let asked = question(&run);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::AuthRequired));
    assert!(!stored(&run).contains(KEY), "{}", stored(&run));
    let resumed = agent.resume(&asked.suspension_record, "I have set it.").await.unwrap();
    assert_eq!(text(&events(resumed).await), "Hello.");
}

#[tokio::test]
async fn a_request_that_is_refused_is_handed_off() {
    for status in [400, 403, 404] {
        let server = Server::start(vec![error(status)]).await;
        let run = events(agent_at(OPENAI, &server).build().unwrap().run("Hello?")).await;
        let Some(AgentEvent::Handoff(handoff)) = run.last() else { panic!("{run:?}") };
        assert!(handoff.rationale.contains(&status.to_string()), "{}", handoff.rationale);
        assert!(!stored(&run).contains(KEY), "{}", stored(&run));
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn what_passes_is_tried_again() {
    let begins = || Reply::events([chunk(&json!({ "content": "I will" }), None)]);
    let truncated = Reply::events([
        chunk(&json!({ "content": "I will" }), Some("length")),
        "data: [DONE]\n\n".to_owned(),
    ]);
    for (reply, kind) in [
        (error(429), FailureKind::TransientProvider),
        (error(500), FailureKind::TransientProvider),
        (error(529), FailureKind::TransientProvider),
        (begins(), FailureKind::TransientProvider),
        (begins().cut(), FailureKind::TransientProvider),
        (truncated, FailureKind::OutputTruncated),
    ] {
        let server = Server::start(vec![reply.clone(), says("Hello.")]).await;
        let run = events(agent_at(OPENAI, &server).build().unwrap().run("Hello?")).await;
        assert!(text(&run).ends_with("Hello."), "{reply:?}: {run:?}");
        let met: Vec<_> = errors(&run).into_iter().filter_map(|error| error.failure).collect();
        assert_eq!(met.iter().map(|met| met.kind).collect::<Vec<_>>(), [kind], "{reply:?}");
        assert_eq!(server.asked().len(), 2);
        assert!(!server.asked()[1].body["messages"].to_string().contains("I will"));
    }
}

#[tokio::test]
async fn an_answer_that_repeats_the_key_is_recorded_without_it() {
    let (first, second) = KEY.split_at(9);
    let arguments = json!({ "at": KEY }).to_string();
    let call = json!({ "tool_calls": [{ "index": 0, "id": "call_a", "type": "function",
                                        "function": { "name": "look", "arguments": arguments } }] });
    let calls = Reply::events([
        chunk(&json!({ "reasoning_content": format!("It is {KEY}.") }), None),
        chunk(&json!({ "content": format!("Your key is {first}") }), None),
        chunk(&json!({ "content": format!("{second}.") }), None),
        chunk(&call, Some("tool_calls")),
        "data: [DONE]\n\n".to_owned(),
    ]);
    let server = Server::start(vec![calls, says(&format!("Again: {KEY}"))]).await;
    let ran = Ran::default();
    let run = events(agent_at(OPENAI, &server).tool(ran.tool("look")).build().unwrap().run("Hm?"));
    let run = run.await;
    assert_eq!(ran.names(), ["look"]);
    assert!(text(&run).contains("Your key is (key)."), "{run:?}");
    assert!(text(&run).ends_with("Again: (key)"), "{run:?}");
    assert!(!stored(&run).contains(KEY), "{}", stored(&run));
    assert!(!stored(&run).contains(second), "{}", stored(&run));
    assert!(!server.asked()[1].body["messages"].to_string().contains(KEY));
}

#[tokio::test]
async fn a_refusal_is_handed_off() {
    let refusal = chunk(&json!({ "refusal": "I will not." }), Some("stop"));
    let server = Server::start(vec![Reply::events([refusal, "data: [DONE]\n\n".to_owned()])]).await;
    let run = events(agent_at(OPENAI, &server).build().unwrap().run("Hello?")).await;
    assert!(matches!(run.last(), Some(AgentEvent::Handoff(_))), "{run:?}");
}

#[tokio::test]
async fn a_quota_parks_until_it_refills_if_it_may() {
    let limited = error(429).header("retry-after", "7200");
    for may in [true, false] {
        let server = Server::start(vec![limited.clone(), says("Hello.")]).await;
        let guardrails = AgentGuardrails { park_on_quota: may, ..AgentGuardrails::default() };
        let agent = agent_at(OPENAI, &server).guardrails(guardrails).build().unwrap();
        let run = events(agent.run("Hello?")).await;
        if !may {
            // Two hours are longer than a run may work.
            assert!(matches!(run.last(), Some(AgentEvent::Handoff(_))), "{run:?}");
            continue;
        }
        let parked = question(&run);
        assert_eq!(parked.originating_failure_kind, None);
        let conditions = serde_json::to_value(parked.conditions.unwrap()).unwrap();
        assert!(conditions.to_string().contains("2026-11-16T02:00:00"), "{conditions}");
        assert!(!stored(&run).contains(KEY), "{}", stored(&run));
        let resumed = agent.resume(&parked.suspension_record, "it is time").await.unwrap();
        assert_eq!(text(&events(resumed).await), "Hello.");
    }
}

/// Returns the next event of a run, and does something once the run waits for it.
async fn next_after(run: &mut Run, act: impl FnOnce()) -> Option<AgentEvent> {
    let mut act = Some(act);
    let mut next = pin!(run.next());
    poll_fn(|context| {
        let event = next.as_mut().poll(context);
        if let Some(act) = act.take_if(|_| event.is_pending()) {
            act();
        }
        event
    })
    .await
}

#[tokio::test]
async fn a_model_that_falls_silent_is_given_up_and_asked_again() {
    let mut server =
        Server::start(vec![anthropic::begins_to_say("Well").held(), anthropic::says(&["Hello."])])
            .await;
    let clock = SetClock::new();
    let agent = agent_at(MODEL, &server).clock(Arc::new(clock.clone())).build().unwrap();
    let mut run = agent.run("Hello?");
    while !matches!(run.next().await, Some(AgentEvent::TextDelta(_))) {}
    // The model has begun to answer; time passes while the run waits for more.
    let event = next_after(&mut run, || clock.advance(Duration::from_secs(20))).await;
    let Some(AgentEvent::Error(error)) = event else { panic!("{event:?}") };
    assert!(error.message.contains("silent for more than 20 s"), "{}", error.message);
    server.closed().await;
    assert_eq!(text(&events(run).await), "Hello.");
}

/// A server that takes the request and says nothing at all.
#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let options = ModelOptions {
        base_url: Some(url),
        api_key: Some(ApiKey::new(KEY)),
        ..ModelOptions::default()
    };
    let guardrails = AgentGuardrails { llm_max_retries: 0, ..AgentGuardrails::default() };
    let clock = SetClock::new();
    let agent = Agent::builder_with(named_model(OPENAI, &options).unwrap()).keys(keys());
    let agent = agent.guardrails(guardrails).clock(Arc::new(clock.clone())).build().unwrap();
    let mut run = agent.run("Hello?");
    assert_eq!(run.next().await.unwrap().tag(), "state_snapshot");
    let mut asked = vec![0; 1];
    let mut stream = tokio::select! {
        event = run.next() => panic!("{event:?}"),
        stream = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_exact(&mut asked).await.unwrap();
            stream
        } => stream,
    };
    let event = next_after(&mut run, || clock.advance(Duration::from_secs(30))).await;
    let Some(AgentEvent::Error(stalled)) = event else { panic!("{event:?}") };
    assert_eq!(stalled.error_type.as_deref(), Some("stalled"));
    // A step that fails has no events of its own before the last snapshot.
    let event = next_after(&mut run, || clock.advance(Duration::from_secs(30))).await;
    assert_eq!(event.unwrap().tag(), "state_snapshot");
    let rest = events(run).await;
    let Some(AgentEvent::Handoff(handoff)) = rest.last() else { panic!("{rest:?}") };
    assert!(handoff.rationale.contains("the answer took more than 60 s"), "{handoff:?}");
    // Its connection is closed.
    stream.read_to_end(&mut asked).await.unwrap();
}

#[tokio::test]
async fn a_cancel_breaks_a_call_off_at_once() {
    let mut server = Server::start(vec![anthropic::begins_to_say("Well").held()]).await;
    let agent = agent_at(MODEL, &server).build().unwrap();
    let cancellation = CancellationRequest::new(CancelReason::UserRequest);
    let mut run = agent.run("Hello?").cancellation(cancellation.clone());
    while !matches!(run.next().await, Some(AgentEvent::TextDelta(_))) {}
    cancellation.set();
    let rest = events(run).await;
    assert!(matches!(rest.last(), Some(AgentEvent::RunCancelled(_))), "{rest:?}");
    server.closed().await;
}

#[tokio::test]
async fn a_call_is_answered_and_all_that_was_used_is_counted() {
    let call = json!({ "tool_calls": [{ "index": 0, "id": "call_a", "type": "function",
                                        "function": { "name": "look", "arguments": "{}" } }] });
    let usage = json!({ "choices": [], "usage": {
        "prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010 } });
    let calls = Reply::events([
        chunk(&call, Some("tool_calls")),
        openai::event(&usage),
        "data: [DONE]\n\n".to_owned(),
    ]);
    let price =
        Price { prompt: 1.0, completion: 10.0, cached_prompt: Some(0.5), ..Price::default() };
    for priced in [true, false] {
        let server = Server::start(vec![calls.clone(), says("Done.")]).await;
        let ran = Ran::default();
        let prices = if priced { Prices::new().with(OPENAI, price) } else { Prices::new() };
        let agent = agent_at(OPENAI, &server).tool(ran.tool("look")).prices(prices);
        let agent = agent.build().unwrap();
        let run = events(agent.run("Look.")).await;
        assert_eq!(ran.names(), ["look"]);
        let told: Vec<Value> = run
            .iter()
            .filter(|event| event.tag() == "llm_call_completed")
            .map(|event| serde_json::to_value(event).unwrap())
            .collect();
        let costs: Vec<_> = told.iter().map(|call| call["cost_usd"].clone()).collect();
        // 1,000 and 10 tokens; 120 of which 64 cost half, and 8. Without a price, nobody knows.
        let expected = if priced { json!([0.0011, 0.000_168]) } else { json!([null, null]) };
        assert_eq!(Value::from(costs), expected);
        assert_eq!(told[1]["cached_prompt_tokens"], 64);
        let Some(AgentEvent::StateSnapshot(last)) = run.last() else { panic!("{run:?}") };
        assert_eq!(last.cumulative_prompt_tokens, 1120);
        assert_eq!(last.cumulative_completion_tokens, 18);
        assert_eq!(last.cumulative_cost_usd, if priced { 0.001_268 } else { 0.0 });
        assert_eq!(last.unpriced_calls, if priced { 0 } else { 2 });
        let sent = server.asked()[1].body["messages"].clone();
        assert_eq!(sent[1]["tool_calls"][0]["id"], "call_a");
        assert_eq!(
            sent[2],
            json!({ "role": "tool", "tool_call_id": "call_a",
                                    "content": "look ran" })
        );
    }
}

#[tokio::test]
async fn no_log_holds_the_key_or_what_was_said() {
    let log = Log::of(Level::TRACE);
    let said = "my password is swordfish";
    for (name, status) in [(OPENAI, 400), (MODEL, 400), (OPENAI, 401), (MODEL, 529)] {
        let body = json!({ "error": { "message": format!("{KEY}: {said}"), "type": "refused" } });
        let server = Server::start(vec![Reply::error(status, &body)]).await;
        let model = model_at(name, &server);
        super::failure(&*model).await;
    }
    let server = Server::start(vec![error(400)]).await;
    events(agent_at(OPENAI, &server).build().unwrap().run(said)).await;
    let logged = log.lines().join("\n");
    assert!(logged.contains("a failure was met"), "the log is not heard: {logged}");
    assert!(!logged.contains(KEY), "{logged}");
    assert!(!logged.contains("swordfish"), "{logged}");
}
