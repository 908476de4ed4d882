//! What an agent asks its client for while it works: files, terminals, a form, a choice.

use std::sync::Arc;

use adjourn::permission::SessionClient;
use adjourn_acp::PendingPermissions;
use adjourn_core::command::{CallResult, Mode};
use adjourn_core::driver::DriverSpec;
use adjourn_core::id::SessionId;
use adjourn_core::ledger::CallId;
use adjourn_driver::{
    Block, BoxStream, CallContent, Client as Asked, ClientError, Driver, Drivers, Emitter, Finish,
    FormAnswer, Message, Part, PermissionAnswer, PermissionOption, PermissionRequest, Reported,
    Role, Shown, Step, TerminalCommand, emitting,
};
use serde_json::{Value, json};

use crate::process::{Client, Process};

/// What the agent does in its one step.
#[derive(Clone, Copy)]
enum Task {
    Files,
    Terminal,
    /// It shows people the terminal that a call of its own runs in.
    ShowsTerminal,
    Form,
    Choice,
    /// It reads a file, and gives up as soon as it is told to stop.
    Waits,
    /// It makes a terminal, and gives up as soon as it is told to stop.
    WaitsForTerminal,
}

/// An agent with a loop of its own that asks its client.
#[derive(Clone)]
struct Agent {
    permissions: PendingPermissions,
    task: Task,
}

impl Drivers for Agent {
    fn make(&self, _: &DriverSpec) -> Result<Box<dyn Driver>, String> {
        Ok(Box::new(self.clone()))
    }

    fn client(&self, session: SessionId) -> Arc<dyn Asked> {
        Arc::new(SessionClient { clients: Arc::new(self.permissions.clone()), session })
    }
}

impl Driver for Agent {
    fn ends_steps_itself(&self) -> bool {
        true
    }

    fn step(&mut self, step: Step) -> BoxStream<'static, Part> {
        let task = self.task;
        emitting(move |out| async move {
            if matches!(task, Task::Choice) {
                out.emit(Part::Reported(Reported::Asked(deploy()))).await;
            }
            if matches!(task, Task::ShowsTerminal) {
                shows_terminal(&out, step.client.as_ref()).await.unwrap();
            }
            let told = tokio::select! {
                told = told(task, &step) => told,
                () = stopped(&step) => return out.emit(Part::Broken).await,
            };
            out.emit(Part::Message(Message::agent(told))).await;
            out.emit(Part::Finished(Finish::completed())).await;
        })
    }
}

fn deploy() -> CallContent {
    CallContent::new(CallId("deploy-1".to_owned()), "deploy")
}

async fn stopped(step: &Step) {
    let mut stop = step.stop.clone();
    stop.at_least(Mode::FinishStep).await;
}

/// Does the task, and says what came of it.
async fn told(task: Task, step: &Step) -> String {
    let client = step.client.as_ref();
    let done = match task {
        Task::Files => files(client).await,
        Task::Terminal => terminal(client).await,
        Task::ShowsTerminal => Ok("shown".to_owned()),
        Task::Form => form(client).await,
        Task::Waits => client.read_text_file("/tmp/a", None, None).await,
        Task::WaitsForTerminal => client.create_terminal(make()).await.map(|id| id.0),
        Task::Choice => {
            let option = |id: &str, kind: &str| PermissionOption {
                id: id.to_owned(),
                name: id.to_uppercase(),
                kind: kind.to_owned(),
            };
            let options = vec![option("canary", "allow_once"), option("never", "reject_always")];
            let session = step.session.id;
            let asks = PermissionRequest { session, call: deploy(), options };
            Ok(match client.permission(asks).await {
                PermissionAnswer::Chosen(id) => format!("chosen: {id}"),
                other => format!("{other:?}"),
            })
        }
    };
    done.unwrap_or_else(|error| match error {
        ClientError::Gone => "gone".to_owned(),
        other => other.to_string(),
    })
}

async fn files(client: &dyn Asked) -> Result<String, ClientError> {
    let text = client.read_text_file("/tmp/a", Some(2), Some(3)).await?;
    client.write_text_file("/tmp/b", format!("{text}!")).await?;
    Ok(format!("read {text}"))
}

fn make() -> TerminalCommand {
    TerminalCommand {
        command: "make".to_owned(),
        arguments: vec!["test".to_owned()],
        environment: vec![("CI".to_owned(), "1".to_owned())],
        directory: Some("/tmp".to_owned()),
        keeps_bytes: Some(1000),
    }
}

async fn terminal(client: &dyn Asked) -> Result<String, ClientError> {
    let id = client.create_terminal(make()).await?;
    let exit = client.wait_for_exit(&id).await?;
    let output = client.terminal_output(&id).await?;
    client.kill_terminal(&id).await?;
    client.release_terminal(&id).await?;
    assert_eq!(output.exit.as_ref(), Some(&exit));
    let (code, cut) = (exit.code.unwrap(), output.truncated);
    Ok(format!("{} with {code}, truncated: {cut}", output.text))
}

/// Runs a call in a terminal, and shows it with a few words beside it; then the terminal alone.
async fn shows_terminal(out: &Emitter<Part>, client: &dyn Asked) -> Result<(), ClientError> {
    let id = CallId("make-1".to_owned());
    let call = CallContent::new(id.clone(), "make");
    out.emit(Part::Reported(Reported::Started(call))).await;
    let terminal = client.create_terminal(make()).await?;
    let shown = json!({ "type": "terminal", "terminalId": terminal.0 });
    let words = json!({ "type": "content", "content": { "type": "text", "text": "it runs" } });
    for content in [json!([shown, words]), json!([shown])] {
        let update = [("content".to_owned(), content)].into_iter().collect();
        let shown = Shown::Call { id: id.clone(), update };
        out.emit(Part::Reported(Reported::Updated(shown))).await;
    }
    client.wait_for_exit(&terminal).await?;
    client.release_terminal(&terminal).await?;
    let (result, content, structured) = (CallResult::Done, vec![Block::text("made")], None);
    out.emit(Part::Reported(Reported::Ended { id, result, content, structured })).await;
    Ok(())
}

async fn form(client: &dyn Asked) -> Result<String, ClientError> {
    let schema = json!({ "type": "object", "properties": { "table": { "type": "string" } } });
    Ok(match client.form("Which table?", schema).await? {
        FormAnswer::Accepted(content) => format!("accepted {}", Value::Object(content)),
        other => format!("{other:?}"),
    })
}

async fn start(task: Task) -> Process {
    Process::start_asking(|permissions| Arc::new(Agent { permissions, task })).await
}

/// What a client of version 1 says that can do everything.
fn able() -> Value {
    json!({
        "fs": { "readTextFile": true, "writeTextFile": true },
        "terminal": true,
        "elicitation": { "form": {} },
    })
}

/// Makes a session and gives it work; returns it, and the id of the prompt.
async fn prompted(client: &mut Client) -> (String, u64) {
    let session = client.new_session().await;
    let prompt = json!([{ "type": "text", "text": "go" }]);
    let params = json!({ "sessionId": session, "prompt": prompt });
    let id = client.request("session/prompt", params).await;
    (session, id)
}

/// Waits for a request of the agent's, checks what it says, and answers it.
async fn serve(client: &mut Client, method: &str, params: Value, result: Value) {
    let asked = client.told(method).await;
    let mut said = asked["params"].clone();
    said.as_object_mut().unwrap().remove("sessionId");
    assert_eq!(said, params, "{method}");
    client.reply(&asked["id"], result).await;
}

/// Waits until the agent has said something.
async fn until_said(client: &mut Client, words: &str) {
    client.until(words, |message| message["params"]["update"].to_string().contains(words)).await;
}

fn said(process: &Process, session: &str) -> Vec<String> {
    let said = process.transcript(session).into_iter().filter(|said| said.role == Role::Agent);
    said.map(|said| said.text()).filter(|text| !text.is_empty()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_read_and_written_through_the_client() {
    let process = start(Task::Files).await;
    let mut client = process.connect_able(1, able()).await;
    let (session, prompt) = prompted(&mut client).await;
    let read = json!({ "path": "/tmp/a", "line": 2, "limit": 3 });
    serve(&mut client, "fs/read_text_file", read, json!({ "content": "two" })).await;
    let write = json!({ "path": "/tmp/b", "content": "two!" });
    serve(&mut client, "fs/write_text_file", write, json!({})).await;
    client.answer(prompt).await;
    assert_eq!(said(&process, &session), ["read two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_client_cannot_do_is_told_to_the_agent() {
    let process = start(Task::Files).await;
    let mut client = process.connect_able(1, able()).await;
    let (session, prompt) = prompted(&mut client).await;
    let asked = client.told("fs/read_text_file").await;
    client.refuse(&asked["id"], "no such file").await;
    client.answer(prompt).await;
    assert_eq!(said(&process, &session), ["the client could not do it: no such file"]);
    // One that says nothing of files, and one of a version without them, is not asked for any.
    for (version, capabilities) in [(1, json!({})), (2, able())] {
        let process = start(Task::Files).await;
        let mut client = process.connect_able(version, capabilities).await;
        let (session, _) = prompted(&mut client).await;
        until_said(&mut client, "no client that sees the session can do it").await;
        assert!(!client.heard().iter().any(|message| message["method"] == "fs/read_text_file"));
        drop(session);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_runs_in_a_terminal_of_the_client() {
    let process = start(Task::Terminal).await;
    let mut client = process.connect_able(1, able()).await;
    let (session, prompt) = prompted(&mut client).await;
    let create = json!({
        "command": "make", "args": ["test"], "env": [{ "name": "CI", "value": "1" }],
        "cwd": "/tmp", "outputByteLimit": 1000,
    });
    serve(&mut client, "terminal/create", create, json!({ "terminalId": "t/1" })).await;
    let named = || json!({ "terminalId": "t/1" });
    let exit = json!({ "exitCode": 3, "signal": null });
    serve(&mut client, "terminal/wait_for_exit", named(), exit.clone()).await;
    let output = json!({ "output": "red", "truncated": true, "exitStatus": exit });
    serve(&mut client, "terminal/output", named(), output).await;
    serve(&mut client, "terminal/kill", named(), json!({})).await;
    serve(&mut client, "terminal/release", named(), Value::Null).await;
    client.answer(prompt).await;
    assert_eq!(said(&process, &session), ["red with 3, truncated: true"]);
}

/// Returns what a client was told that a call has come to, update by update.
fn contents(heard: &[Value]) -> Vec<Value> {
    let update = |message: &Value| message["params"]["update"].clone();
    let updates = heard.iter().map(update);
    let updates = updates.filter(|update| update["sessionUpdate"] == "tool_call_update");
    updates.map(|update| update["content"].clone()).filter(|content| !content.is_null()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_is_shown_to_the_client_that_made_it_by_the_name_that_it_gave() {
    let process = start(Task::ShowsTerminal).await;
    let mut client = process.connect_able(1, able()).await;
    let (session, prompt) = prompted(&mut client).await;
    let create = client.told("terminal/create").await;
    let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
    let mut second = process.connect_able(1, able()).await;
    second.call("session/load", load.clone()).await;
    // It sees the session from another process, whose clients are counted from the same number.
    let beside = process.beside(r#"{"steps": []}"#).await;
    let mut third = beside.connect_able(1, able()).await;
    third.call("session/load", load.clone()).await;
    client.reply(&create["id"], json!({ "terminalId": "term-1" })).await;
    let exit = json!({ "exitCode": 0, "signal": null });
    let named = || json!({ "terminalId": "term-1" });
    serve(&mut client, "terminal/wait_for_exit", named(), exit).await;
    serve(&mut client, "terminal/release", named(), Value::Null).await;
    client.answer(prompt).await;
    let words =
        |text: &str| json!({ "type": "content", "content": { "type": "text", "text": text } });
    let (runs, made) = (json!([words("it runs")]), json!([words("made")]));
    let shown = json!({ "type": "terminal", "terminalId": "term-1" });
    let own = [json!([shown, words("it runs")]), json!([shown]), made.clone()];
    assert_eq!(contents(client.heard()), own);
    for other in [&mut second, &mut third] {
        until_said(other, "shown").await;
        assert_eq!(
            contents(other.heard()),
            [runs.clone(), made.clone()],
            "it has no such terminal"
        );
    }
    // A client that is shown the session again has no such terminal any more.
    let heard = client.heard().len();
    client.call("session/load", load.clone()).await;
    assert_eq!(contents(&client.heard()[heard..]), [runs.clone(), made.clone()]);
    let mut last = process.connect_able(1, able()).await;
    last.call("session/load", load).await;
    assert_eq!(contents(last.heard()), [runs, made]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_is_filled_in_declined_and_dismissed() {
    for version in [1, 2] {
        for (answer, told) in [
            (
                json!({ "action": "accept", "content": { "table": "raw" } }),
                r#"accepted {"table":"raw"}"#,
            ),
            (json!({ "action": "decline" }), "Declined"),
            (json!({ "action": "cancel" }), "Dismissed"),
        ] {
            let process = start(Task::Form).await;
            let capabilities = json!({ "elicitation": { "form": {} } });
            let mut client = process.connect_able(version, capabilities).await;
            let (session, _) = prompted(&mut client).await;
            let schema =
                json!({ "type": "object", "properties": { "table": { "type": "string" } } });
            let form =
                json!({ "mode": "form", "message": "Which table?", "requestedSchema": schema });
            serve(&mut client, "elicitation/create", form, answer).await;
            until_said(&mut client, "agent_message").await;
            assert_eq!(said(&process, &session), [told]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_is_answered_with_one_of_the_options_that_the_agent_gives() {
    for version in [1, 2] {
        let process = start(Task::Choice).await;
        let mut client = process.connect_able(version, json!({})).await;
        let (session, _) = prompted(&mut client).await;
        let asked = client.told("session/request_permission").await;
        let options = json!([
            { "optionId": "canary", "name": "CANARY", "kind": "allow_once" },
            { "optionId": "never", "name": "NEVER", "kind": "reject_always" },
        ]);
        assert_eq!(asked["params"]["options"], options);
        let chosen = json!({ "outcome": { "outcome": "selected", "optionId": "canary" } });
        client.reply(&asked["id"], chosen).await;
        until_said(&mut client, "agent_message").await;
        assert_eq!(said(&process, &session), ["chosen: canary"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_goes_in_the_middle_is_gone_for_the_agent_which_goes_on() {
    for task in [Task::Files, Task::Terminal, Task::Form] {
        let process = start(task).await;
        let mut client = process.connect_able(1, able()).await;
        // It was there first, so that it is asked; the second one sees what comes of it.
        let (session, _) = prompted(&mut client).await;
        let method = match task {
            Task::Files => "fs/read_text_file",
            Task::Terminal => {
                let asked = client.told("terminal/create").await;
                client.reply(&asked["id"], json!({ "terminalId": "t1" })).await;
                "terminal/wait_for_exit"
            }
            _ => "elicitation/create",
        };
        client.told(method).await;
        let mut second = process.connect_able(1, able()).await;
        let load = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
        second.call("session/load", load).await;
        client.leave().await;
        until_said(&mut second, "gone").await;
        assert_eq!(said(&process, &session), ["gone"]);
        let asks = |message: &&Value| message["method"] == method;
        assert_eq!(second.heard().iter().filter(asks).count(), 0, "another one is not asked");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_taken_back_before_the_client_is_told_that_the_session_is_suspended() {
    let process = start(Task::Waits).await;
    let mut client = process.connect_able(1, able()).await;
    let (session, _) = prompted(&mut client).await;
    let asked = client.told("fs/read_text_file").await;
    let suspend = json!({ "sessionId": session, "mode": "interrupt_immediate" });
    let suspended = client.request("session/suspend", suspend).await;
    client.answer(suspended).await;
    let heard = client.heard();
    let place = |wanted: &dyn Fn(&Value) -> bool| heard.iter().position(wanted);
    let taken_back = place(&|message| message["params"]["requestId"] == asked["id"]);
    let told = place(&|message| message["params"]["update"]["sessionUpdate"] == "suspended");
    assert!(taken_back.is_some() && taken_back < told, "{heard:#?}");
    // An answer that comes now does nothing.
    client.reply(&asked["id"], json!({ "content": "late" })).await;
    assert_eq!(process.phase(&session), "suspended");
    assert!(said(&process, &session).is_empty());
}

/// A client that does not know of requests that are taken back makes the terminal all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_that_is_made_when_no_driver_wants_it_any_more_is_released() {
    for closes in [false, true] {
        let process = start(Task::WaitsForTerminal).await;
        let mut client = process.connect_able(1, able()).await;
        let (session, _) = prompted(&mut client).await;
        let asked = client.told("terminal/create").await;
        let suspend = json!({ "sessionId": session, "mode": "interrupt_immediate" });
        client.call("session/suspend", suspend).await;
        if closes {
            client.call("session/close", json!({ "sessionId": session })).await;
        }
        client.reply(&asked["id"], json!({ "terminalId": "t/1" })).await;
        serve(&mut client, "terminal/release", json!({ "terminalId": "t/1" }), Value::Null).await;
        let taken_back = |message: &&Value| message["params"]["requestId"] == asked["id"];
        assert_eq!(client.heard().iter().filter(taken_back).count(), 1, "it is taken back once");
        // A client that made none has nothing to let go of.
        let resume = json!({ "sessionId": session, "cwd": "/tmp", "mcpServers": [] });
        if !closes {
            let heard = client.heard().len();
            client.call("session/resume", resume).await;
            let asked = client.told("terminal/create").await;
            let suspend = json!({ "sessionId": session, "mode": "interrupt_immediate" });
            client.call("session/suspend", suspend).await;
            client.refuse(&asked["id"], "taken back").await;
            client.call("session/status", json!({ "sessionId": session })).await;
            let releases = |message: &&Value| message["method"] == "terminal/release";
            assert_eq!(client.heard()[heard..].iter().filter(releases).count(), 0);
        }
    }
}

/// The reply comes, and the driver that waits for it is dropped before it reads it.
#[tokio::test]
async fn a_terminal_whose_name_is_not_read_is_released() {
    let process = start(Task::Waits).await;
    let mut client = process.connect_able(1, able()).await;
    let (session, _) = prompted(&mut client).await;
    let reads = client.told("fs/read_text_file").await;
    let clients = process.permissions();
    let waits = SessionClient { clients: Arc::new(clients), session: session.parse().unwrap() };
    let mut waiting = Box::pin((&waits as &dyn Asked).create_terminal(make()));
    std::future::poll_fn(|context| {
        assert!(waiting.as_mut().poll(context).is_pending());
        std::task::Poll::Ready(())
    })
    .await;
    let create = client.told("terminal/create").await;
    client.reply(&create["id"], json!({ "terminalId": "t/2" })).await;
    // Behind the name of the terminal, which is then there to be read.
    client.reply(&reads["id"], json!({ "content": "read" })).await;
    until_said(&mut client, "agent_message").await;
    drop(waiting);
    serve(&mut client, "terminal/release", json!({ "terminalId": "t/2" }), Value::Null).await;
}
