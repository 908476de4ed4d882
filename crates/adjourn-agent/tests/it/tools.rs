//! Tools: checked before they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adjourn_agent::{
    AgentBuilder, AgentConfig, AgentGuardrails, CallDescription, FailureKind, FunctionTool,
    ResumeError, RunOutcome, ToolError, ToolSource, Toolbox,
};
use adjourn_core::command::CallResult;
use adjourn_core::ledger::CallId;
use adjourn_core::{Session, limits};
use adjourn_driver::{
    BoxFuture, Call, CallContent, CallPart, Client, Driver as _, Environment, NoClient,
    PermissionAnswer, PermissionRequest,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fixture::{Ran, agent, events, model, question, tags, text};

/// What the tool `read` takes.
#[derive(Deserialize, JsonSchema)]
struct Read {
    /// The file to read.
    path: String,
    /// How many lines.
    #[serde(default)]
    lines: Option<u32>,
}

fn read(ran: &Ran) -> FunctionTool {
    let ran = ran.clone();
    FunctionTool::new("read", "Reads a file.", move |read: Read| {
        ran.push(&read.path);
        async move { Ok::<_, ToolError>(json!({ "lines": read.lines.unwrap_or(7) })) }
    })
}

#[tokio::test(start_paused = true)]
async fn the_schema_of_a_function_is_that_of_its_arguments() {
    let model = model(json!([]));
    let agent = agent(&model).tool(read(&Ran::default())).build().unwrap();
    events(agent.run("Read.")).await;
    let tools = model.requests()[0].tools.clone();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["ask_user", "read"]);
    let parameters = &tools[1].parameters;
    assert_eq!(parameters["required"], json!(["path"]));
    assert_eq!(parameters["properties"]["path"]["description"], "The file to read.");
    assert_eq!(tools[0].parameters["required"], json!(["question"]));
}

#[tokio::test(start_paused = true)]
async fn arguments_that_the_schema_refuses_never_reach_the_tool() {
    let wrong = json!({ "tool": "read", "arguments": { "path": 7 } });
    let right = json!({ "tool": "read", "arguments": { "path": "a.txt", "lines": 2 } });
    let model = model(json!([
        { "calls": [wrong, { "tool": "none" }] }, { "calls": [right] }, { "text": "Done." },
    ]));
    let ran = Ran::default();
    let agent = agent(&model).tool(read(&ran)).build().unwrap();
    let run = events(agent.run("Read.")).await;
    assert_eq!(ran.names(), ["a.txt"]);
    assert_eq!(text(&run), "Done.");
    let seen = format!("{:?}", model.requests()[1].messages);
    assert!(seen.contains("/path"), "the model is told what is wrong, and where: {seen}");
    assert!(seen.contains("there is no tool"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_deferred_is_checked_against_the_tools_of_the_day() {
    let model = model(crate::fixture::asks());
    let ran = Ran::default();
    let mut agent = agent(&model).tool(read(&ran)).build().unwrap();
    let record = crate::fixture::suspended(agent.run("Read.")).await;
    let session = Arc::new(agent.read(&record).unwrap().session);
    // Calls as they may have been asked for before the program had another version.
    for (tool, arguments, ends) in [
        ("read", json!({ "file": "a.txt" }), CallResult::Failed),
        ("gone", json!({}), CallResult::Failed),
        ("read", json!({ "path": "a.txt" }), CallResult::Done),
    ] {
        let content = CallContent { arguments, ..CallContent::new(CallId::from("c"), tool) };
        let (client, environment) = (Arc::new(NoClient), Arc::default());
        let mut parts =
            agent.call(Call { session: Arc::clone(&session), content, client, environment });
        let part = std::future::poll_fn(|context| parts.as_mut().poll_next(context)).await;
        let Some(CallPart::Ended { result, .. }) = part else { panic!("{part:?}") };
        assert_eq!(result, ends, "{tool}");
    }
    assert_eq!(ran.names(), ["a.txt"]);
}

/// A tool may come, or ask for permission, behind the message that calls it: a person could not be
/// asked about the call, so it does not run.
#[tokio::test(start_paused = true)]
async fn a_call_that_no_person_was_asked_about_does_not_run() {
    let model = model(crate::fixture::asks());
    let ran = Ran::default();
    let mut agent = agent(&model).tool(read(&ran).asks_permission()).build().unwrap();
    let record = crate::fixture::suspended(agent.run("Read.")).await;
    let session = Arc::new(agent.read(&record).unwrap().session);
    let arguments = json!({ "path": "a.txt" });
    let content = CallContent { arguments, ..CallContent::new(CallId::from("c"), "read") };
    let (client, environment) = (Arc::new(NoClient), Arc::default());
    let mut parts = agent.call(Call { session, content, client, environment });
    let part = std::future::poll_fn(|context| parts.as_mut().poll_next(context)).await;
    let Some(CallPart::Ended { result, content, .. }) = part else { panic!("{part:?}") };
    assert_eq!(result, CallResult::Failed);
    assert!(format!("{content:?}").contains("could not be asked about"), "{content:?}");
    assert!(ran.names().is_empty());
}

/// A source of tools, in whatever state a test wants it.
enum Source {
    Has(Arc<Toolbox>),
    Hangs,
    /// It has them after some seconds.
    Late(u64, Arc<Toolbox>),
    /// It takes no credentials.
    Refuses,
    /// It takes none either when it is looked at for this time, from the first on, and those after.
    RefusesFrom(usize, AtomicUsize),
}

impl ToolSource for Source {
    fn tools(
        &self,
        _: Arc<Session>,
        _: Arc<Environment>,
    ) -> BoxFuture<'static, Result<Arc<Toolbox>, ToolError>> {
        match self {
            Self::Has(toolbox) => Box::pin(std::future::ready(Ok(Arc::clone(toolbox)))),
            Self::Hangs => Box::pin(std::future::pending()),
            Self::Late(seconds, toolbox) => {
                let (wait, toolbox) = (Duration::from_secs(*seconds), Arc::clone(toolbox));
                Box::pin(async move {
                    tokio::time::sleep(wait).await;
                    Ok(toolbox)
                })
            }
            Self::RefusesFrom(time, looks) if looks.fetch_add(1, Ordering::AcqRel) + 1 < *time => {
                Box::pin(std::future::ready(Ok(Arc::default())))
            }
            Self::Refuses | Self::RefusesFrom(..) => {
                let refused = ToolError::of(FailureKind::AuthRequired, "wiki: log in first");
                Box::pin(std::future::ready(Err(refused)))
            }
        }
    }
}

/// Tools of a source.
fn toolbox(tools: impl IntoIterator<Item = FunctionTool>) -> Arc<Toolbox> {
    let mut toolbox = Toolbox::new();
    tools.into_iter().for_each(|tool| toolbox.add(Arc::new(tool)).unwrap());
    Arc::new(toolbox)
}

#[tokio::test(start_paused = true)]
async fn a_source_that_hangs_holds_up_no_run() {
    let calls = json!([{ "tool": "look" }, { "tool": "gone" }]);
    let model = model(json!([{ "calls": calls }, { "text": "Done." }]));
    let ran = Ran::default();
    let guardrails = AgentGuardrails { tool_timeout_s: 20.0, ..AgentGuardrails::default() };
    let built = agent(&model).guardrails(guardrails).tool_source(Arc::new(Source::Hangs));
    let agent = built.tool_source(Arc::new(Source::Has(toolbox([ran.tool("look")]))));
    let agent = agent.build().unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(text(&events(agent.run("Look.")).await), "Done.");
    assert_eq!(ran.names(), ["look"]);
    // It is waited for before each answer, and by the call of a tool that it may have.
    assert_eq!(begun.elapsed().as_secs(), 60 + 20 + 60);
    let told = format!("{:?}", model.requests()[0]);
    assert!(told.contains("did not come in 60 s"), "the model is told: {told}");
}

/// The model is told of the first of two tools with one name, and a person allows that one.
#[tokio::test(start_paused = true)]
async fn of_two_tools_with_one_name_the_one_runs_that_the_model_was_told_of() {
    let model = model(json!([{ "calls": [{ "tool": "look" }] }, { "text": "Done." }]));
    let (first, second) = (Ran::default(), Ran::default());
    let late = Source::Late(5, toolbox([first.tool("look")]));
    let built = agent(&model).tool_source(Arc::new(late));
    let built = built.tool_source(Arc::new(Source::Has(toolbox([second.tool("look")]))));
    let mut agent = built.build().unwrap();
    assert_eq!(text(&events(agent.run("Look.")).await), "Done.");
    assert_eq!((first.names().len(), second.names().len()), (1, 0));

    // So it is for a call that was deferred, of which no model of this process was told.
    let record = crate::fixture::suspended(
        crate::fixture::agent(&crate::fixture::model(crate::fixture::asks()))
            .build()
            .unwrap()
            .run("Go."),
    )
    .await;
    let session = Arc::new(agent.read(&record).unwrap().session);
    let content = CallContent::new(CallId::from("c"), "look");
    let (client, environment) = (Arc::new(NoClient), Arc::default());
    let mut parts = agent.call(Call { session, content, client, environment });
    while std::future::poll_fn(|context| parts.as_mut().poll_next(context)).await.is_some() {}
    assert_eq!((first.names().len(), second.names().len()), (2, 0));
}

/// The agent's own questions and waits hold up their whole message, also if they are malformed.
#[tokio::test(start_paused = true)]
async fn nothing_of_a_message_runs_beside_a_question_that_cannot_be_asked() {
    let delete = || json!({ "tool": "delete" });
    let ask = |arguments: Value| json!({ "tool": "ask_user", "arguments": arguments });
    let wait = json!({ "tool": "await_resumption",
                       "arguments": { "reason": "ci", "conditions": { "trigger": { "cron": "x" } } } });
    for calls in [
        json!([ask(json!({ "question": "May I delete it?", "choices": "yes/no" })), delete()]),
        json!([delete(), ask(json!({ "question": " " }))]),
        json!([ask(json!({ "question": "Sure?", "urgent": true })), delete()]),
        json!([wait, delete()]),
    ] {
        let model = model(json!([{ "text": "Well.", "calls": calls }, { "text": "Done." }]));
        let ran = Ran::default();
        let agent = agent(&model).await_resumption().tool(ran.tool("delete")).build().unwrap();
        assert_eq!(text(&events(agent.run("Go.")).await), "Well.Done.", "{calls}");
        assert!(ran.names().is_empty(), "{calls}");
        let told = &model.requests()[1].messages;
        adjourn_conformance::given::providers_take(told).unwrap();
        let told = format!("{told:?}");
        assert!(told.contains("no call of the message was run"), "the model is told: {told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_the_host_may_have_the_name_of_one_that_the_agent_does_not_have() {
    let model = model(json!([{ "calls": [crate::fixture::ask("Which?")] }, { "text": "Done." }]));
    let ran = Ran::default();
    let config = AgentConfig { ask_user: false, ..AgentConfig::default() };
    let agent = agent(&model).config(config).tool(ran.tool("ask_user")).build().unwrap();
    assert_eq!(text(&events(agent.run("Go.")).await), "Done.");
    assert_eq!(ran.names(), ["ask_user"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_describe_a_call_is_shown_by_its_name() {
    let model = model(json!([{ "calls": [{ "tool": "look" }] }, { "text": "Done." }]));
    let ran = Ran::default();
    let look = ran.tool("look").describing(|arguments| CallDescription {
        title: Some(arguments["path"].as_str().unwrap().to_owned()),
        ..CallDescription::default()
    });
    let agent = agent(&model).tool(look).build().unwrap();
    assert_eq!(text(&events(agent.run("Look.")).await), "Done.");
    assert_eq!(ran.names(), ["look"]);
}

#[tokio::test(start_paused = true)]
async fn a_person_is_asked_once_about_a_source_that_stays_as_it_is() {
    let call = |tool: &str| json!({ "calls": [{ "tool": tool }] });
    let model =
        model(json!([call("look"), call("wiki__search"), call("look"), { "text": "Done." }]));
    let ran = Ran::default();
    let built = agent(&model).tool(ran.tool("look"));
    let agent = built.tool_source(Arc::new(Source::Refuses)).build().unwrap();
    let asked = question(&events(agent.run("Look.")).await);
    assert_eq!(asked.originating_failure_kind, Some(FailureKind::AuthRequired));
    assert!(model.requests().is_empty(), "the model was not asked yet");
    // The person leaves it as it is, and the run goes on without it.
    let run = agent.resume(&asked.suspension_record, "go on without it").await.unwrap();
    assert_eq!(text(&events(run).await), "Done.");
    assert_eq!(ran.names(), ["look", "look"]);
    let seen = format!("{:?}", model.requests()[0]);
    assert!(seen.contains("log in first"), "the model is told what it has to do without: {seen}");
}

/// A source of this name that takes no credentials.
struct Named(&'static str);

impl ToolSource for Named {
    fn name(&self) -> Option<String> {
        Some(self.0.to_owned())
    }

    fn tools(
        &self,
        _: Arc<Session>,
        _: Arc<Environment>,
    ) -> BoxFuture<'static, Result<Arc<Toolbox>, ToolError>> {
        let refused = ToolError::of(FailureKind::AuthRequired, format!("{}: log in first", self.0));
        Box::pin(std::future::ready(Err(refused)))
    }
}

/// A client may come back with other servers while the question about one of them is open.
#[tokio::test(start_paused = true)]
async fn a_person_is_asked_about_a_source_that_has_come_in_the_place_of_another() {
    let model = model(json!([{ "text": "Done." }]));
    let with = |sources: &[&'static str]| {
        let add =
            |built: AgentBuilder, name: &&'static str| built.tool_source(Arc::new(Named(name)));
        sources.iter().fold(agent(&model), add).build().unwrap()
    };
    let first = question(&events(with(&["wiki"]).run("Look.")).await);
    assert!(first.question.contains("wiki: log in first"), "{}", first.question);
    let others = with(&["docs", "wiki"]);
    let run = others.resume(&first.suspension_record, "go on without it").await.unwrap();
    let second = question(&events(run).await);
    assert!(second.question.contains("docs: log in first"), "{}", second.question);
    let others = with(&["wiki", "docs"]);
    let run = others.resume(&second.suspension_record, "go on without it, too").await.unwrap();
    assert_eq!(text(&events(run).await), "Done.", "each was asked about once, wherever it stands");
}

/// What a person is asked about comes back behind what the person was asked about meanwhile.
#[tokio::test(start_paused = true)]
async fn a_permission_outlives_a_question_that_comes_between() {
    for answer in ["Allow once", "no"] {
        let model = model(json!([{ "calls": [{ "tool": "delete" }] }, { "text": "Done." }]));
        let ran = Ran::default();
        let refuses = Source::RefusesFrom(2, AtomicUsize::new(0));
        let built = agent(&model).tool(ran.tool("delete").asks_permission());
        let agent = built.tool_source(Arc::new(refuses)).build().unwrap();
        let first = question(&events(agent.run("Delete it.")).await);
        assert_eq!(first.question, "May the agent call delete?");
        // The server refuses in the step that would run the call.
        let run = agent.resume(&first.suspension_record, "Allow once").await.unwrap();
        let second = question(&events(run).await);
        assert_eq!(second.originating_failure_kind, Some(FailureKind::AuthRequired));
        assert!(ran.names().is_empty());
        let run = agent.resume(&second.suspension_record, "go on without it").await.unwrap();
        let third = question(&events(run).await);
        assert_eq!(third.question, "May the agent call delete?", "it is asked again");
        assert_eq!(model.requests().len(), 1, "without another word of the model");
        let run = agent.resume(&third.suspension_record, answer).await.unwrap();
        assert_eq!(text(&events(run).await), "Done.");
        assert_eq!(ran.names().len(), usize::from(answer == "Allow once"));
        let told = &model.requests()[1].messages;
        adjourn_conformance::given::providers_take(told).unwrap();
    }
}

/// More calls than a host takes are told to the model before any of them is asked for.
#[tokio::test(start_paused = true)]
async fn more_calls_than_a_host_takes_are_told_to_the_model_and_none_runs() {
    let many = |number| -> Vec<_> {
        (0..number).map(|n| json!({ "tool": "look", "arguments": { "n": n } })).collect()
    };
    let most = limits::OPEN_CALLS;
    for (number, runs) in [(most, most), (most + 1, 0)] {
        let model = model(json!([{ "calls": many(number) }, { "text": "Fewer then." }]));
        let ran = Ran::default();
        let agent = agent(&model).tool(ran.tool("look").idempotent()).build().unwrap();
        assert_eq!(text(&events(agent.run("Look.")).await), "Fewer then.");
        assert_eq!(ran.names().len(), runs);
        let seen = format!("{:?}", model.requests()[1]);
        assert_eq!(seen.contains("may ask for 64"), runs == 0, "{seen}");
    }
    // A model that does so again is not asked for ever.
    let again = || json!({ "calls": many(most + 1) });
    let model = model(json!([again(), again(), again()]));
    let agent = agent(&model).tool(Ran::default().tool("look").idempotent()).build().unwrap();
    let outcome = agent.run("Look.").result().await.outcome;
    assert!(matches!(outcome, RunOutcome::HandedOff(_)), "{outcome:?}");
    assert_eq!(model.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn several_failures_of_one_message_are_all_dealt_with() {
    let fails = |name: &'static str, kind| {
        FunctionTool::new(name, "Fails.", move |_: Value| async move {
            Err::<String, _>(ToolError::of(kind, name))
        })
    };
    let calls = json!([{ "tool": "which" }, { "tool": "forbidden" }]);
    let model = model(json!([{ "calls": calls }, { "text": "Done." }]));
    let agent = agent(&model).tool(fails("which", FailureKind::AmbiguousInput));
    let agent = agent.tool(fails("forbidden", FailureKind::PolicyViolation)).build().unwrap();
    let record = crate::fixture::suspended(agent.run("Do both.")).await;
    let run = agent.resume(&record, "the first").await.unwrap();
    let outcome = run.result().await.outcome;
    assert!(matches!(outcome, RunOutcome::HandedOff(_)), "{outcome:?}");
    assert_eq!(model.requests().len(), 1, "the policy holds before the model is asked again");
}

#[tokio::test(start_paused = true)]
async fn a_question_without_words_is_told_to_the_model_and_not_asked() {
    let model = model(json!([
        { "calls": [{ "tool": "ask_user", "arguments": { "question": "  " } }] },
        { "text": "Never mind." },
    ]));
    let run = events(agent(&model).build().unwrap().run("Ask.")).await;
    assert_eq!(text(&run), "Never mind.");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_fails_and_no_more() {
    let panics = FunctionTool::new("panic", "Panics.", |_: Value| async {
        match std::hint::black_box(true) {
            true => panic!("as it was told"),
            false => Ok::<_, ToolError>("never"),
        }
    });
    let model = model(json!([{ "calls": [{ "tool": "panic" }] }, { "text": "It panicked." }]));
    let run = events(agent(&model).tool(panics).build().unwrap().run("Panic.")).await;
    assert_eq!(text(&run), "It panicked.");
}

/// A client that gives one answer to all requests.
struct Says(PermissionAnswer);

impl Client for Says {
    fn permission(&self, _: PermissionRequest) -> BoxFuture<'static, PermissionAnswer> {
        Box::pin(std::future::ready(self.0.clone()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_needs_permission_runs_only_with_it() {
    let refused = PermissionAnswer::Refused("not today".to_owned());
    let granted = PermissionAnswer::Granted { always: false };
    for (answer, runs) in [(refused, 0), (granted, 1), (PermissionAnswer::Gone, 0)] {
        // A client that goes leaves the question open, and the run parks with it.
        let is_gone = answer == PermissionAnswer::Gone;
        let model = model(json!([{ "calls": [{ "tool": "delete" }] }, { "text": "Done." }]));
        let ran = Ran::default();
        let agent = agent(&model).tool(ran.tool("delete").asks_permission());
        let agent = agent.client(Arc::new(Says(answer))).build().unwrap();
        let run = events(agent.run("Delete it.")).await;
        assert_eq!(ran.names().len(), runs);
        assert_eq!(run.last().unwrap().tag() == "user_input_requested", is_gone, "{run:?}");
    }
}

/// A model that asks for several calls at once, and is done.
fn wants(calls: Value) -> Arc<adjourn_agent::ScriptedModel> {
    model(json!([{ "text": "Two things.", "calls": calls }, { "text": "Done." }]))
}

#[tokio::test(start_paused = true)]
async fn where_no_person_can_be_asked_the_run_parks_with_the_question() {
    for (reply, runs) in [("Allow once", 1), ("yes", 1), ("Do not allow", 0), ("why?", 0)] {
        let model = wants(json!([{ "tool": "delete", "arguments": { "table": "sales" } }]));
        let ran = Ran::default();
        let build = || agent(&model).tool(ran.tool("delete").asks_permission()).build().unwrap();
        let first = events(build().run("Delete it.")).await;
        let asked = question(&first);
        assert_eq!(asked.question, "May the agent call delete?");
        assert_eq!(asked.context.as_deref(), Some("table: sales"));
        assert_eq!(asked.choices.unwrap(), ["Allow once", "Allow always", "Do not allow"]);
        assert_eq!(asked.originating_failure_kind, None);
        assert!(ran.names().is_empty(), "nothing has run");
        // Another agent with the same keys goes on, as another process would.
        let record = crate::fixture::stored(&asked.suspension_record);
        let run = events(build().resume(&record, reply).await.unwrap()).await;
        assert_eq!(ran.names().len(), runs, "{reply}");
        assert_eq!(text(&run), "Done.", "{reply}");
        assert_eq!(model.requests().len(), 2, "an answer is not asked of the model");
        let seen = model.requests().pop().unwrap().messages;
        adjourn_conformance::given::providers_take(&seen).unwrap();
        let seen = format!("{seen:?}");
        assert!(seen.contains(reply), "the model reads the reply: {seen}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_message_runs_before_all_of_it_is_allowed_and_then_each_call_once() {
    let calls = json!([
        { "tool": "look" }, { "tool": "delete", "arguments": { "n": 1 } },
        { "tool": "delete", "arguments": { "n": 2 } },
    ]);
    for (replies, expected) in [
        (["Allow once", "Allow once"].as_slice(), ["look", "delete", "delete"].as_slice()),
        (&["Allow always"], &["look", "delete", "delete"]),
        (&["Allow once", "no"], &[]),
    ] {
        let (model, ran) = (wants(calls.clone()), Ran::default());
        let agent = agent(&model).tool(ran.tool("look").idempotent());
        let agent = agent.tool(ran.tool("delete").asks_permission()).build().unwrap();
        let mut run = events(agent.run("Go.")).await;
        for (number, reply) in replies.iter().enumerate() {
            assert!(ran.names().is_empty(), "{replies:?}");
            let asked = question(&run);
            let context = format!("n: {}", number + 1);
            assert_eq!(asked.context, Some(context), "{replies:?}");
            run = events(agent.resume(&asked.suspension_record, *reply).await.unwrap()).await;
        }
        assert_eq!(ran.names(), expected, "{replies:?}");
        assert_eq!(text(&run), "Done.", "{replies:?}");
    }
}

/// What failed beside a call that a person has to allow waits with it: a person is asked once about
/// all that failed in the same way.
#[tokio::test(start_paused = true)]
async fn failures_behind_a_permission_are_met_with_those_before_it() {
    let fails = |name: &'static str, why: &'static str| {
        FunctionTool::new(name, "Fails.", move |_: Value| async move {
            Err::<String, _>(ToolError::of(FailureKind::AmbiguousInput, why))
        })
    };
    let model = wants(json!([{ "tool": "look" }, { "tool": "delete" }]));
    let agent = agent(&model).tool(fails("look", "two tables fit").idempotent());
    let agent = agent.tool(fails("delete", "two rows fit").asks_permission());
    let agent = agent.client(Arc::new(Says(PermissionAnswer::Gone))).build().unwrap();
    let asked = question(&events(agent.run("Go.")).await);
    assert_eq!(asked.question, "May the agent call delete?");
    let run = agent.resume(&asked.suspension_record, "Allow once").await.unwrap();
    let asked = question(&events(run).await);
    assert!(asked.question.contains("two tables fit; two rows fit"), "{}", asked.question);
    let run = agent.resume(&asked.suspension_record, "the first ones").await.unwrap();
    assert_eq!(text(&events(run).await), "Done.");
}

/// A person is asked again about a tool that there is no room to remember; the run suspends all the
/// same.
#[tokio::test(start_paused = true)]
async fn more_tools_than_can_be_remembered_are_allowed_for_good() {
    const TOOLS: usize = 140;
    let name = |number: usize| format!("{number:03}{}", "\"".repeat(limits::NAME_BYTES - 3));
    let call = |number: usize| json!({ "calls": [{ "tool": name(number) }] });
    let script = (0..TOOLS).chain([0, TOOLS - 1]).map(call).chain([json!({ "text": "Done." })]);
    let (model, ran) = (model(script.collect()), Ran::default());
    let guardrails = AgentGuardrails { max_iterations: 1000, ..AgentGuardrails::default() };
    let add = |built: AgentBuilder, number| {
        let ran = ran.clone();
        let tool = FunctionTool::new(name(number), "Takes note.", move |_: Value| {
            ran.push(&number.to_string());
            async { Ok::<_, ToolError>("ran") }
        });
        built.tool(tool.asks_permission())
    };
    let built = (0..TOOLS).fold(agent(&model).guardrails(guardrails), add);
    let agent = built.build().unwrap();
    let (mut run, mut asked) = (events(agent.run("Go.")).await, Vec::new());
    while run.last().unwrap().tag() == "user_input_requested" {
        let question = question(&run);
        let tool = question.question.strip_prefix("May the agent call ").unwrap();
        asked.push(tool.get(..3).unwrap().parse::<usize>().unwrap());
        let record = crate::fixture::stored(&question.suspension_record);
        run = events(agent.resume(&record, "Allow always").await.unwrap()).await;
    }
    assert_eq!(text(&run), "Done.");
    assert_eq!(ran.names().len(), TOOLS + 2);
    let expected: Vec<_> = (0..TOOLS).chain([TOOLS - 1]).collect();
    assert_eq!(asked, expected, "the first one was remembered, and the last one was not");
}

#[tokio::test(start_paused = true)]
async fn a_question_beside_a_call_that_asks_comes_first() {
    let calls = json!([{ "tool": "delete" }, crate::fixture::ask("Which table?")]);
    let (model, ran) = (wants(calls), Ran::default());
    let agent = agent(&model).tool(ran.tool("delete").asks_permission()).build().unwrap();
    let asked = question(&events(agent.run("Go.")).await);
    assert_eq!(asked.question, "Which table?");
    let run = agent.resume(&asked.suspension_record, "Allow once").await.unwrap();
    assert_eq!(text(&events(run).await), "Done.");
    assert!(ran.names().is_empty(), "that was no answer to a question for permission");
}

#[tokio::test(start_paused = true)]
async fn an_agent_may_park_itself_and_the_reply_is_its_input() {
    let wait = json!({ "tool": "await_resumption", "arguments": {
        "reason": "the tests run", "conditions": { "onEvent": "ci.passed" }, "summary": "PR 12",
    } });
    let model = model(json!([{ "calls": [wait] }, { "text": "Merged." }]));
    let agent = agent(&model).await_resumption().build().unwrap();
    let first = events(agent.run("Merge it.")).await;
    let parked = question(&first);
    assert_eq!(
        (parked.question.as_str(), parked.context.as_deref()),
        ("the tests run", Some("PR 12"))
    );
    assert!(parked.conditions.is_some());
    let blank = agent.resume(&parked.suspension_record, " ").await.unwrap_err();
    assert!(matches!(blank, ResumeError::EmptyReply));
    let run = agent.resume(&parked.suspension_record, "they passed").await.unwrap();
    assert_eq!(run.result().await.outcome, RunOutcome::Completed);
    assert_eq!(tags(&first), ["llm_call_completed", "user_input_requested"]);
}
