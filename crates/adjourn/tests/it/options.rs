//! Options that clients set: what reaches the driver, and when.

use std::sync::{Arc, Mutex};

use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::option::{OptionValue, SessionOption};
use adjourn_driver::{
    BoxFuture, BoxStream, Control, Driver, Drivers, Finish, Part, Reply, Shown, Step, Words,
    emitting,
};
use adjourn_testkit::until;
use tokio::sync::Semaphore;

use crate::fixture::Fixture;

/// Says in each step which mode it was given, and takes down what it is told while a step runs.
#[derive(Clone)]
struct Moody {
    given: Arc<Mutex<Vec<String>>>,
    told: Arc<Mutex<Vec<String>>>,
    /// Lets a step come to its end.
    goes_on: Arc<Semaphore>,
    /// The mode that it changes to by itself, in each step.
    becomes: Option<&'static str>,
    /// Whether it ever replies to what it is told.
    replies: bool,
}

impl Moody {
    fn new() -> Self {
        Self {
            given: Arc::default(),
            told: Arc::default(),
            goes_on: Arc::new(Semaphore::new(0)),
            becomes: None,
            replies: true,
        }
    }

    fn given(&self) -> Vec<String> {
        self.given.lock().unwrap().clone()
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

impl Drivers for Moody {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(self.clone()))
    }
}

impl Driver for Moody {
    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        self.given.lock().unwrap().push(step.session.options[0].value.clone());
        let (goes_on, becomes) = (Arc::clone(&self.goes_on), self.becomes);
        emitting(move |out| async move {
            if let Some(mode) = becomes {
                out.emit(Part::Shown(Shown::Mode(mode.to_owned()))).await;
                // It is durable before the stream is polled again, and so is the mode.
                out.emit(Part::State("moody".to_owned())).await;
            }
            goes_on.acquire().await.unwrap().forget();
            let text = "done".to_owned();
            out.emit(Part::Delta { message: 0, words: Words::Said, text }).await;
            out.emit(Part::Finished(Finish::completed())).await;
        })
    }

    fn control(&mut self, control: Control) -> BoxFuture<'static, Reply> {
        if let Control::SetOption { option, value } = control {
            self.told.lock().unwrap().push(format!("{option}={value}"));
        }
        match self.replies {
            true => Box::pin(std::future::ready(Reply::Done)),
            false => Box::pin(std::future::pending()),
        }
    }
}

fn spec() -> DriverSpec {
    let value = |id: &str| OptionValue { id: id.into(), name: id.into(), description: None };
    let modes = SessionOption::mode(vec![value("code"), value("ask")]);
    let mut spec = DriverSpec::named("moody", serde_json::Value::Null);
    spec.options = modes.into_iter().collect();
    spec
}

async fn set(fixture: &Fixture, id: SessionId, mode: &str) {
    fixture.adjourn().session(id).set_option("mode", mode).await.unwrap();
}

fn mode(fixture: &Fixture, id: SessionId) -> String {
    fixture.session(id).options[0].value.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_option_reaches_the_step_that_runs_and_every_one_after_it() {
    for replies in [true, false] {
        let fixture = Fixture::new();
        let moody = Moody { replies, ..Moody::new() };
        let host = fixture.host_with(Arc::new(moody.clone())).await;
        let id = fixture.create_with(spec());
        set(&fixture, id, "ask").await;
        fixture.prompt(id, "go");
        until("a step", || moody.given() == ["ask"]).await;
        assert!(moody.told().is_empty(), "it was given with the step");
        set(&fixture, id, "code").await;
        until("told", || moody.told() == ["mode=code"]).await;
        // What it is told twice over is told in order, whether or not it replies.
        set(&fixture, id, "ask").await;
        until("told again", || moody.told() == ["mode=code", "mode=ask"]).await;
        moody.goes_on.add_permits(1);
        fixture.until_state(id, "idle").await;
        set(&fixture, id, "code").await;
        fixture.prompt(id, "again");
        until("the next step", || moody.given() == ["ask", "code"]).await;
        assert_eq!(moody.told().len(), 2, "between steps there is nothing to tell");
        moody.goes_on.add_permits(1);
        fixture.until_state(id, "idle").await;
        host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_that_the_agent_changes_to_holds_and_is_not_told_to_it() {
    let fixture = Fixture::new();
    let moody = Moody { becomes: Some("ask"), ..Moody::new() };
    let host = fixture.host_with(Arc::new(moody.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    fixture.until(id, "another mode", |session| session.options[0].value == "ask").await;
    set(&fixture, id, "code").await;
    until("told", || !moody.told().is_empty()).await;
    moody.goes_on.add_permits(1);
    fixture.until_state(id, "idle").await;
    assert_eq!(moody.told(), ["mode=code"]);
    assert_eq!(mode(&fixture, id), "code");
    host.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_that_there_is_not_is_only_shown() {
    let fixture = Fixture::new();
    let moody = Moody { becomes: Some("fly"), ..Moody::new() };
    let host = fixture.host_with(Arc::new(moody.clone())).await;
    let id = fixture.create_with(spec());
    fixture.prompt(id, "go");
    moody.goes_on.add_permits(1);
    fixture.until_state(id, "idle").await;
    assert_eq!(mode(&fixture, id), "code");
    assert!(fixture.said(id).iter().any(|said| said.shown == Some(Shown::Mode("fly".to_owned()))));
    let refused = fixture.adjourn().session(id).set_option("mode", "fly").await.unwrap_err();
    assert_eq!(refused.to_string(), "value: expected one of code, ask");
    host.stop().await;
}

#[test]
fn a_script_says_which_modes_there_are() {
    use adjourn::script::Script;

    let options = |modes: &str| {
        let script = format!(r#"{{"modes": {modes}, "steps": []}}"#);
        Script::parse(&script).map(|script| script.options()).map_err(|error| error.to_string())
    };
    let modes =
        options(r#"[{"id": "code", "name": "Code", "description": "Writes"}, {"id": "ask"}]"#);
    let [mode] = &modes.unwrap()[..] else { unreachable!("one option") };
    assert_eq!((mode.id.as_str(), mode.value.as_str()), ("mode", "code"));
    assert_eq!(mode.values[1].name, "ask");
    assert_eq!(options("[]"), Ok(Vec::new()));
    for (modes, wrong) in [
        (r#"["a"]"#, "modes[0]: expected an object, found a text"),
        (r#"[{"name": "a"}]"#, r#"modes[0]: "id" is missing: expected a text"#),
        (r#"[{"id": "a\n"}]"#, "modes[0].id: must not hold control characters"),
        (r#"[{"id": "a"}, {"id": "a"}]"#, r#"modes[1].id: there is a mode "a" already"#),
        (
            r#"[{"id": "a", "x": 1}]"#,
            r#"modes[0]: there is no "x" here; expected id, name, description"#,
        ),
    ] {
        assert_eq!(options(modes), Err(wrong.to_owned()));
    }
}
