//! What a client is asked for while a step runs, besides permissions: files, terminals, a form.
//!
//! A client is asked only for what it has said that it can do. A request is taken back as soon as no
//! driver waits for it, so never after the client has been told that the session is suspended. A
//! terminal that the client makes all the same is released: no driver knows its name.

use std::borrow::Cow;

use adjourn::core::id::SessionId;
use adjourn::driver::{
    ClientAbilities, ClientError, ClientReply, ClientRequest, FormAnswer, TerminalCommand,
    TerminalExit, TerminalId, TerminalOutput,
};
use adjourn::store::Store;
use serde_json::{Map, Value, json};

use crate::permissions::{Viewer, ViewerName};
use crate::session::{Attachment, Ours};
use crate::update::with;

/// What a driver gets for a request.
pub(crate) type ClientAnswer = Result<ClientReply, ClientError>;

impl<S: Store> Attachment<S> {
    /// Asks the client for what drivers want of it, and takes back what none wants any more.
    pub(crate) fn ask_client(&mut self) {
        self.take_back_client_requests();
        let (Some(viewer), Some(_)) = (&self.viewer, &self.view) else { return };
        for (number, request) in viewer.asked() {
            let makes_terminal = matches!(request, ClientRequest::CreateTerminal(_));
            let ours = Ours::Request { number, makes_terminal };
            if self.ours.values().any(|known| *known == ours) {
                continue;
            }
            let (method, params) = wire(self.id, &request);
            let id = self.number();
            self.ours.insert(id.clone(), ours);
            self.lines.request(&id, method, &params);
        }
    }

    /// Takes back what was asked and no driver waits for any more.
    pub(crate) fn take_back_client_requests(&mut self) {
        let asked = self.ours.iter().filter_map(|(id, ours)| match ours {
            Ours::Request { number, .. } => Some((*number, id.clone())),
            Ours::Question(_) | Ours::Await(_) | Ours::Permission(_) | Ours::UnwantedTerminal => {
                None
            }
        });
        let mut asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            return;
        }
        let open = self.viewer.as_ref().map(Viewer::asked).unwrap_or_default();
        asked.retain(|(number, _)| !open.iter().any(|(open, _)| open == number));
        asked.sort_unstable_by_key(|(number, _)| *number);
        for (_, id) in &asked {
            self.call_off(id);
        }
    }

    /// Hands what the client said to the driver that waits for it.
    pub(crate) fn client_replied(&self, number: u64, result: Result<Value, Value>) {
        if let Some(viewer) = &self.viewer {
            viewer.reply(number, |request| read(request, result));
        }
    }

    /// Tells the client to let go of a terminal that it made after the request was taken back.
    pub(crate) fn release_unwanted(&mut self, made: &Value) {
        if let Some(terminal) = made.get("terminalId").and_then(Value::as_str) {
            let release = ClientRequest::ReleaseTerminal(TerminalId(terminal.to_owned()));
            let (method, params) = wire(self.id, &release);
            // Nothing waits for the answer.
            let id = self.number();
            self.lines.request(&id, method, &params);
        }
    }
}

/// Returns whether a client can be asked for something.
pub(crate) const fn can(abilities: &ClientAbilities, request: &ClientRequest) -> bool {
    match request {
        ClientRequest::ReadTextFile { .. } => abilities.read_files,
        ClientRequest::WriteTextFile { .. } => abilities.write_files,
        ClientRequest::Form { .. } => abilities.forms,
        ClientRequest::CreateTerminal(_) => abilities.terminals,
        // Those that name a terminal go to the client that made it; see `owner`.
        _ => false,
    }
}

/// Returns which client a request is for, with the request as that client knows it; nothing if it
/// is for any client that can do it.
pub(crate) fn owner(
    request: &ClientRequest,
) -> Result<Option<(ViewerName, ClientRequest)>, ClientError> {
    let (id, named): (_, fn(TerminalId) -> ClientRequest) = match request {
        ClientRequest::TerminalOutput(id) => (id, ClientRequest::TerminalOutput),
        ClientRequest::WaitForExit(id) => (id, ClientRequest::WaitForExit),
        ClientRequest::KillTerminal(id) => (id, ClientRequest::KillTerminal),
        ClientRequest::ReleaseTerminal(id) => (id, ClientRequest::ReleaseTerminal),
        _ => return Ok(None),
    };
    let Some((owner, id)) = maker(&id.0) else {
        return Err(ClientError::Failed("there is no such terminal".to_owned()));
    };
    Ok(Some((owner, named(TerminalId(id.to_owned())))))
}

/// Takes the name of a terminal apart: which client made it, and what that client calls it.
fn maker(terminal: &str) -> Option<(ViewerName, &str)> {
    let (owner, id) = terminal.split_once('/')?;
    Some((ViewerName(owner.to_owned()), id))
}

/// Returns an update of a call as a client knows it: with its own terminals, by the names that it
/// gave them, and without all others; nothing if nothing is left to say.
pub(crate) fn with_own_terminals<'a>(
    client: Option<&ViewerName>,
    update: &'a Value,
) -> Option<Cow<'a, Value>> {
    let is_terminal = |block: &Value| block.get("type").is_some_and(|kind| kind == "terminal");
    let is_call = |kind: &Value| kind == "tool_call" || kind == "tool_call_update";
    let content = update.get("content").and_then(Value::as_array);
    let content = content.filter(|_| update.get("sessionUpdate").is_some_and(is_call));
    let Some(content) = content.filter(|content| content.iter().any(is_terminal)) else {
        return Some(Cow::Borrowed(update));
    };
    let own = content.iter().filter_map(|block| {
        if !is_terminal(block) {
            return Some(block.clone());
        }
        let (maker, id) = maker(block.get("terminalId")?.as_str()?)?;
        (Some(&maker) == client).then(|| with(block.clone(), "terminalId", id))
    });
    let own: Vec<_> = own.collect();
    let mut fields = update.as_object()?.clone();
    match own.is_empty() {
        true => fields.shift_remove("content"),
        false => fields.insert("content".to_owned(), own.into()),
    };
    let says = fields.keys().any(|name| name != "sessionUpdate" && name != "toolCallId");
    says.then(|| Cow::Owned(Value::Object(fields)))
}

/// Returns a client's reply as the driver knows it: a terminal is named with its client.
pub(crate) fn owned(ViewerName(owner): &ViewerName, reply: ClientAnswer) -> ClientAnswer {
    Ok(match reply? {
        ClientReply::Terminal(TerminalId(id)) => {
            ClientReply::Terminal(TerminalId(format!("{owner}/{id}")))
        }
        other => other,
    })
}

/// Returns the method and the parameters of a request.
fn wire(session: SessionId, request: &ClientRequest) -> (&'static str, Value) {
    let mut params = Map::new();
    let mut put = |name: &str, value: Value| {
        // What is not said is left out.
        if !value.is_null() {
            params.insert(name.to_owned(), value);
        }
    };
    put("sessionId", json!(session));
    let method = match request {
        ClientRequest::ReadTextFile { path, line, limit } => {
            put("path", json!(path));
            put("line", json!(line));
            put("limit", json!(limit));
            "fs/read_text_file"
        }
        ClientRequest::WriteTextFile { path, content } => {
            put("path", json!(path));
            put("content", json!(content));
            "fs/write_text_file"
        }
        ClientRequest::CreateTerminal(TerminalCommand {
            command,
            arguments,
            environment,
            directory,
            keeps_bytes,
        }) => {
            let variable =
                |(name, value): &(String, String)| json!({ "name": name, "value": value });
            put("command", json!(command));
            put("args", json!(arguments));
            put("env", environment.iter().map(variable).collect());
            put("cwd", json!(directory));
            put("outputByteLimit", json!(keeps_bytes));
            "terminal/create"
        }
        ClientRequest::Form { message, schema } => {
            put("mode", json!("form"));
            put("message", json!(message));
            put("requestedSchema", schema.clone());
            "elicitation/create"
        }
        ClientRequest::TerminalOutput(TerminalId(id)) => {
            put("terminalId", json!(id));
            "terminal/output"
        }
        ClientRequest::WaitForExit(TerminalId(id)) => {
            put("terminalId", json!(id));
            "terminal/wait_for_exit"
        }
        ClientRequest::KillTerminal(TerminalId(id)) => {
            put("terminalId", json!(id));
            "terminal/kill"
        }
        ClientRequest::ReleaseTerminal(TerminalId(id)) => {
            put("terminalId", json!(id));
            "terminal/release"
        }
    };
    (method, Value::Object(params))
}

/// Reads what a client said to a request.
fn read(request: &ClientRequest, result: Result<Value, Value>) -> ClientAnswer {
    let said = match result {
        Ok(said) => said,
        Err(error) => {
            let why = error.get("message").and_then(Value::as_str);
            let why = why.unwrap_or("its answer could not be read");
            return Err(ClientError::Failed(why.to_owned()));
        }
    };
    let text = |field: &str| match said.get(field).and_then(Value::as_str) {
        Some(text) => Ok(text.to_owned()),
        None => Err(ClientError::Failed(format!("its answer has no text {field:?}"))),
    };
    Ok(match request {
        ClientRequest::ReadTextFile { .. } => ClientReply::Text(text("content")?),
        ClientRequest::CreateTerminal(_) => ClientReply::Terminal(TerminalId(text("terminalId")?)),
        ClientRequest::TerminalOutput(_) => ClientReply::Output(TerminalOutput {
            text: text("output")?,
            truncated: said.get("truncated").and_then(Value::as_bool).unwrap_or(false),
            exit: said.get("exitStatus").filter(|status| status.is_object()).map(exit),
        }),
        ClientRequest::WaitForExit(_) => ClientReply::Exited(exit(&said)),
        ClientRequest::Form { .. } => ClientReply::Form(match text("action")?.as_str() {
            "accept" => {
                let content = said.get("content").and_then(Value::as_object);
                FormAnswer::Accepted(content.cloned().unwrap_or_default())
            }
            "decline" => FormAnswer::Declined,
            _ => FormAnswer::Dismissed,
        }),
        // All that there is to know is that it was no error.
        _ => ClientReply::Done,
    })
}

fn exit(status: &Value) -> TerminalExit {
    let code = status.get("exitCode").and_then(Value::as_u64);
    let signal = status.get("signal").and_then(Value::as_str);
    TerminalExit {
        code: code.and_then(|code| u32::try_from(code).ok()),
        signal: signal.map(str::to_owned),
    }
}
