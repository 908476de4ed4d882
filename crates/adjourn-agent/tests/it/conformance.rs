//! The scenarios of `conformance/`, played with the agent as the driver and a scripted model.
//!
//! What a scenario's script says is told as answers of a model; those that no model can play are
//! listed, with the reason.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjourn::core::command::RunEnd;
use adjourn::core::conditions::{Conditions, Spelling};
use adjourn::core::driver::DriverSpec;
use adjourn::core::id::{RunId, SessionId};
use adjourn::core::session::Phase;
use adjourn::core::{Rejected, Session, json as core_json};
use adjourn::{Adjourn, Error, Event as Occurrence, Moments, RunningHost};
use adjourn_agent::Effect;
use adjourn_agent::{
    Agent, AgentGuardrails, Model, ModelError, ModelPart, ModelRequest, ScriptedModel, Tool,
    ToolCall, ToolError, ToolOutput, ToolSpec,
};
use adjourn_conformance::given::Recording;
use adjourn_conformance::native::{self, Part as Role, Untold};
use adjourn_conformance::scenario::{Event, How, Restart, Resume, Scenario, Suspend, Why};
use adjourn_conformance::{Ending, Face, Refusal, Reply, logs, play, scenarios};
use adjourn_driver::{BoxFuture, BoxStream, Call, CallPart, Driver, Drivers, Message, Part, Step};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How many scenarios are played at once: they mostly wait.
const AT_ONCE: usize = 12;
/// A cancel has time at any pace: scenarios have no calls that hang in one.
const CANCEL_GRACE: Duration = Duration::from_secs(600);

/// Scenarios whose run is over with its last call. A model has the last word: a suspend that waits for
/// the call finds a run that is not over, and keeps no outcome.
const OVER_WITH_A_CALL: &[&str] =
    &["suspend-as-the-run-ends.json", "suspend-kept-outcome-and-input.json"];

#[test]
fn every_scenario_that_a_model_can_play_holds() {
    let mut left_out = Vec::new();
    let mut why = BTreeMap::<_, Vec<_>>::new();
    let all = scenarios().unwrap();
    for (file, text) in &all {
        let scenario: Value = core_json::stored(text.as_bytes()).unwrap();
        if let Err(untold) = native::part(&scenario["script"]) {
            left_out.push(file.as_str());
            why.entry(untold).or_default().push(file.as_str());
        }
    }
    let expected = [
        (Untold::EndsTheSession, vec!["end-by-the-agent.json", "end-kept-by-a-suspend.json"]),
        (Untold::FailsInItsWords, vec!["prompt-next-run.json", "suspend-kept-failure.json"]),
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
    let open = |scenario: &Scenario| Played::open(scenario, &runtime);
    let failures = play::scenarios_but(&left_out, AT_ONCE, &open);
    assert!(failures.is_empty(), "{}\n", failures.join("\n"));
    assert!(all.len() - left_out.len() > 90, "few are played");
}

/// A store with one session, and a host in this process.
struct Played {
    runtime: Arc<Runtime>,
    adjourn: Adjourn,
    id: SessionId,
    drivers: Recording,
    host: Arc<Mutex<Option<RunningHost>>>,
    /// How long each host that is still to come waits for calls when it is drained.
    graces: std::vec::IntoIter<Option<Duration>>,
    /// Held, so that it is there as long as the store.
    _directory: TempDir,
}

impl Played {
    fn open(scenario: &Scenario, runtime: &Arc<Runtime>) -> Result<Self, String> {
        let role = native::part(&scenario.script).map_err(|untold| format!("{untold:?}"))?;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agents.db");
        let drivers = Recording::of(Arc::new(Players::new(role)));
        let mut graces = scenario.graces().into_iter();
        let opened: Result<_, Error> = runtime.block_on(async {
            let adjourn = Adjourn::open(path).await?;
            let host = start(&adjourn, &drivers, graces.next().flatten()).await?;
            let session = adjourn.create_with(DriverSpec::named("native", Value::Null)).await?;
            Ok((adjourn, host, session.id()))
        });
        let (adjourn, host, id) = opened.map_err(|error| error.to_string())?;
        Ok(Self {
            runtime: Arc::clone(runtime),
            adjourn,
            id,
            drivers,
            host: Arc::new(Mutex::new(Some(host))),
            graces,
            _directory: directory,
        })
    }

    /// Does something with the session, and answers when that is done.
    fn give<F>(&self, work: impl FnOnce(Adjourn, SessionId) -> F) -> Reply
    where
        F: Future<Output = Result<Value, Error>> + Send + 'static,
    {
        let (sender, reply) = Reply::pair();
        let work = work(self.adjourn.clone(), self.id);
        self.runtime.spawn(async move {
            let done = work.await.map_err(|error| match error {
                Error::Refused(rejected) => refusal(rejected),
                other => Refusal::broken(other.to_string()),
            });
            let _ = sender.send(done);
        });
        reply
    }
}

async fn start(
    adjourn: &Adjourn,
    drivers: &Recording,
    grace: Option<Duration>,
) -> Result<RunningHost, Error> {
    let host = adjourn.host().others(Arc::new(drivers.clone()));
    match grace {
        Some(grace) => host.drain(grace).start().await,
        None => host.start().await,
    }
}

impl Face for Played {
    fn prompt(&mut self, text: &str) -> Reply {
        let text = text.to_owned();
        self.give(|adjourn, id| async move {
            let session = adjourn.session(id).load().await?;
            let shown = session.suspended().filter(|_| session.phase() == Phase::Asking);
            let handle = shown.map(|suspended| suspended.shown().pause.handle);
            adjourn.session(id).prompt(text).answering(handle).await?;
            Ok(Value::Null)
        })
    }

    fn suspend(&mut self, suspend: &Suspend) -> Reply {
        let conditions = match Conditions::parse(&suspend.resume_when, Spelling::Camel) {
            Ok(conditions) => conditions,
            Err(invalid) => {
                return Reply::now(Err(refusal(invalid.within("resumeWhen").into())));
            }
        };
        let suspend = suspend.clone();
        self.give(|adjourn, id| async move {
            let mut asked = adjourn.session(id).suspend().mode(suspend.mode).conditions(conditions);
            if let Some(reason) = suspend.reason {
                asked = asked.reason(reason);
            }
            if let Some(grace) = suspend.grace_ms {
                asked = asked.grace(Duration::from_millis(grace));
            }
            asked.accepted().await?;
            Ok(Value::Null)
        })
    }

    fn resume(&mut self, resume: &Resume) -> Reply {
        let resume = resume.clone();
        self.give(|adjourn, id| async move {
            let session = adjourn.session(id).load().await?;
            // Without a handle, the question is meant that is shown; a key says by itself what is.
            let by_sight = resume.idempotency_key.is_none() && session.phase() == Phase::Asking;
            let shown = session.suspended().filter(|_| by_sight);
            let given = resume.handle.map(|handle| handle.parse().unwrap());
            let handle = given.or(shown.map(|suspended| suspended.shown().pause.handle));
            let mut wake = adjourn.session(id).resume().handle(handle);
            if let Some(input) = resume.input {
                wake = wake.input(Message::user_value(input));
            }
            if resume.continue_transcript == Some(false) {
                wake = wake.fresh();
            }
            if let Some(key) = resume.idempotency_key {
                wake = wake.key(key);
            }
            let woken = wake.await?;
            Ok(woken.resumption().map(logs::resumption).unwrap_or_default())
        })
    }

    fn event(&mut self, event: &Event) -> Reply {
        let event = event.clone();
        self.give(|adjourn, id| async move {
            let mut occurrence = Occurrence::new(event.name);
            if let Some(subject) = event.subject {
                occurrence = occurrence.subject(subject);
            }
            occurrence = occurrence.source(event.source.unwrap_or("conformance".to_owned()));
            if let Some(event_id) = event.id {
                occurrence = occurrence.id(event_id);
            }
            if let Some(data) = event.data {
                occurrence = occurrence.data(&data);
            }
            adjourn.publish(occurrence.to(event.session.then_some(id))).await?;
            Ok(Value::Null)
        })
    }

    fn cancel(&mut self, why: &Why) -> Reply {
        let reason = why.reason.clone();
        self.give(|adjourn, id| async move {
            adjourn.session(id).cancel().reason(reason).grace(CANCEL_GRACE).await?;
            Ok(Value::Null)
        })
    }

    fn close(&mut self, why: &Why) -> Reply {
        let reason = why.reason.clone();
        self.give(|adjourn, id| async move {
            adjourn.session(id).close().reason(reason).await?;
            Ok(Value::Null)
        })
    }

    fn restart(&mut self, restart: &Restart) -> Reply {
        let grace = self.graces.next().flatten();
        let (runtime, host) = (Arc::clone(&self.runtime), Arc::clone(&self.host));
        let (adjourn, drivers) = (self.adjourn.clone(), self.drivers.clone());
        let Restart { how, away, .. } = restart.clone();
        Reply::later(move || {
            let mut host = host.lock().unwrap();
            let old = host.take().unwrap();
            match how {
                How::Kill => runtime.block_on(old.kill()),
                How::Drain => runtime.block_on(old.stop()).unwrap(),
            }
            std::thread::sleep(away.map(|away| away.0).unwrap_or_default());
            *host = Some(runtime.block_on(start(&adjourn, &drivers, grace)).unwrap());
            Ok(Value::Null)
        })
    }

    fn status(&mut self) -> Result<Value, String> {
        let session = self.runtime.block_on(self.adjourn.session(self.id).load());
        let session = session.map_err(|error| error.to_string())?;
        Ok(serde_json::to_value(session.status()).unwrap())
    }

    fn ending(&mut self) -> Result<Ending, String> {
        let mut moments = Moments::from_start(&self.adjourn.session(self.id));
        let (mut journal, mut transcript) = (Vec::new(), Vec::new());
        for moment in self.runtime.block_on(moments.rest()).map_err(|error| error.to_string())? {
            for (_, said) in &moment.said {
                let mut object = serde_json::to_value(said).unwrap();
                object["revision"] = moment.revision.into();
                object["text"] = said.text().into();
                transcript.push(object);
            }
            journal.push((moment.revision, moment.event));
        }
        // What each step was given has calls that no script has; providers take it all the same.
        self.drivers.given()?;
        Ok(native::without_traces(logs::look_back(journal, transcript)?))
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        if let Some(host) = self.host.lock().unwrap().take() {
            self.runtime.block_on(host.kill());
        }
    }
}

fn refusal(rejected: Rejected) -> Refusal {
    let (reason, message) = (rejected.reason().to_owned(), rejected.to_string());
    let path = match rejected {
        Rejected::Invalid { path, .. } => Some(path),
        _ => None,
    };
    Refusal { reason, path, message }
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
