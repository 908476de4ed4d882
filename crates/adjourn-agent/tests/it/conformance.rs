//! The scenarios of `conformance/`, played with the agent as the driver and a scripted model.
//!
//! What a scenario's script says is told as answers of a model; those that no model can play are
//! listed, with the reason.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn::core::command::RunEnd;
use adjourn::core::driver::DriverSpec;
use adjourn::core::id::RunId;
use adjourn::core::time::Timestamp;
use adjourn::core::{Session, json as core_json};
use adjourn_agent::Effect;
use adjourn_agent::{
    Agent, AgentGuardrails, Model, ModelError, ModelPart, ModelRequest, ScriptedModel, Tool,
    ToolCall, ToolError, ToolOutput, ToolSpec,
};
use adjourn_conformance::given::Recording;
use adjourn_conformance::native::{self, Part as Role, Untold};
use adjourn_conformance::{Ending, Scenario, play, scenarios};
use adjourn_driver::{BoxFuture, BoxStream, Call, CallPart, Driver, Drivers, Part, Step};
use adjourn_testkit::scenarios::Played;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// How many scenarios are played at once: they mostly wait.
const AT_ONCE: usize = 12;

/// Scenarios whose run is over with its last call. A model has the last word: a suspend that waits for
/// the call finds a run that is not over, and keeps no outcome. Tests of `engine` show both behaviours
/// behind the last words of a model.
const OVER_WITH_A_CALL: &[&str] =
    &["suspend-as-the-run-ends.json", "suspend-kept-outcome-and-input.json"];

#[test]
fn every_scenario_that_a_model_can_play_holds() {
    let mut left_out = Vec::new();
    let mut why = BTreeMap::<_, Vec<_>>::new();
    let all = scenarios().unwrap();
    for (file, text) in &all {
        let scenario = Scenario::read(text, Timestamp::from_millis(0), 1).unwrap();
        if let Err(untold) = native::part(&scenario.script) {
            left_out.push(file.as_str());
            why.entry(untold).or_default().push(file.as_str());
        }
    }
    let expected = [
        (Untold::EndsTheSession, vec!["end-by-the-agent.json", "end-kept-by-a-suspend.json"]),
        (
            Untold::RunsBesideOthers,
            vec![
                "restart-drain-grace-mixed-calls.json",
                "restart-mixed-calls.json",
                "suspend-parallel-calls.json",
            ],
        ),
    ];
    assert_eq!(why, expected.into());
    left_out.extend(OVER_WITH_A_CALL);
    let runtime = Arc::new(Runtime::new().unwrap());
    let open = |scenario: &Scenario| open(scenario, &runtime);
    let failures = play::scenarios_but(&left_out, AT_ONCE, &open);
    assert!(failures.is_empty(), "{}\n", failures.join("\n"));
    assert!(all.len() - left_out.len() > 90, "few are played");
}

/// Makes the session of a scenario, with an agent that plays its part.
fn open(scenario: &Scenario, runtime: &Arc<Runtime>) -> Result<Played, String> {
    let role = native::part(&scenario.script).map_err(|untold| format!("{untold:?}"))?;
    let drivers = Recording::of(Arc::new(Players::new(role)));
    let played =
        Played::open(scenario, runtime, drivers, DriverSpec::named("native", Value::Null))?;
    // What each step was given has calls that no script has; providers take it all the same.
    let played = played.standing_as(native::in_its_words);
    Ok(played.looking_back(|ending| Ok(native::without_traces(Ending { given: None, ..ending }))))
}

/// Makes agents that play their part of a scenario.
struct Players {
    role: Role,
    /// The runs there were, in order: any host knows which it drives.
    runs: Arc<Mutex<Vec<RunId>>>,
}

impl Players {
    fn new(role: Role) -> Self {
        Self { role, runs: Arc::default() }
    }
}

impl Drivers for Players {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        let model = Arc::new(Answers(Mutex::new(None)));
        let guardrails = AgentGuardrails {
            max_execution_time_s: 1e6,
            llm_timeout_s: 1e6,
            stream_heartbeat_s: 1e6,
            tool_timeout_s: 1e6,
            ..AgentGuardrails::default()
        };
        let shared = Arc::<Answers>::clone(&model);
        let mut agent =
            Agent::builder_with(shared).guardrails(guardrails).await_resumption().ephemeral_keys();
        for tool in &self.role.tools {
            agent = agent.tool(Takes::new(tool));
        }
        let agent = agent.build().map_err(|error| error.to_string())?;
        let (runs, role) = (Arc::clone(&self.runs), self.role.clone());
        Ok(Box::new(Player { agent, model, runs, role }))
    }
}

/// An agent whose model answers what comes next in its part.
struct Player {
    agent: Agent,
    model: Arc<Answers>,
    runs: Arc<Mutex<Vec<RunId>>>,
    role: Role,
}

impl Player {
    /// Returns what comes next in the run that a session is in.
    fn next(&self, session: &Session) -> ScriptedModel {
        let run = session.run().unwrap().id;
        let mut runs = self.runs.lock().unwrap();
        let number = runs.iter().position(|known| *known == run).unwrap_or_else(|| {
            runs.push(run);
            runs.len() - 1
        });
        // The agent's own state says how many answers of this run it has had.
        let state = session.driver_state.as_deref().unwrap_or("{}");
        let state: Value = core_json::stored(state.as_bytes()).unwrap();
        let begun = state["run"] == json!(run);
        let answered = state["iterations"].as_u64().filter(|_| begun).unwrap_or(0);
        let answers = self.role.runs.get(number).or(self.role.runs.last()).unwrap();
        let model = ScriptedModel::parse(&json!(answers).to_string()).unwrap();
        model.starting_at(usize::try_from(answered).unwrap())
    }
}

impl Driver for Player {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        *self.model.0.lock().unwrap() = Some(self.next(&step.session));
        self.agent.step(step)
    }

    fn call(&mut self, call: Call) -> BoxStream<'static, CallPart> {
        self.agent.call(call)
    }

    fn finish(&mut self, session: &Session) -> Option<RunEnd> {
        self.agent.finish(session)
    }

    fn kill(&mut self) -> BoxFuture<'static, ()> {
        self.agent.kill()
    }
}

/// A model that answers what it was given last.
struct Answers(Mutex<Option<ScriptedModel>>);

impl Model for Answers {
    fn id(&self) -> &str {
        "scripted"
    }

    fn respond(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelPart, ModelError>> {
        self.0.lock().unwrap().as_ref().unwrap().respond(request)
    }
}

/// A tool that takes as long as it is told.
struct Takes(ToolSpec);

impl Takes {
    fn new(tool: &native::Tool) -> Self {
        let spec = ToolSpec::new(&tool.name, "takes a while", json!({ "type": "object" }));
        let effect = if tool.idempotent { Effect::Idempotent } else { Effect::SideEffecting };
        Self(ToolSpec { effect, ..spec })
    }
}

impl Tool for Takes {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let ms = call.arguments["ms"].as_u64().unwrap_or(0);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Ok(ToolOutput::from("done"))
        })
    }
}
