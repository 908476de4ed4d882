//! A terminal of an editor, in which a command runs where people see it.

use std::sync::Arc;
use std::time::Duration;

use adjourn_driver::{Client, ClientError, TerminalCommand, TerminalExit, TerminalId};
use serde_json::{Map, json};

use super::output::Cut;
use super::root::Root;
use super::running::{End, Ended};
use crate::tool::{ToolCall, ToolError};

/// How long an editor may take to end a command, and to say what it said.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// A terminal. Dropping it gives it back, which ends its command.
struct Terminal {
    client: Arc<dyn Client>,
    id: Option<TerminalId>,
}

impl Terminal {
    async fn release(mut self) {
        if let Some(id) = self.id.take() {
            // The command is over. An editor that is gone has nothing to give back.
            let _ = tokio::time::timeout(ANSWERS_WITHIN, self.client.release_terminal(&id)).await;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let client = Arc::clone(&self.client);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = tokio::time::timeout(ANSWERS_WITHIN, client.release_terminal(&id)).await;
            });
        }
    }
}

/// Runs a command in a terminal; returns nothing if there is no editor that has some.
pub(super) async fn run(
    root: &Root,
    command: &str,
    within: Duration,
    call: &ToolCall,
) -> Result<Option<Ended>, ToolError> {
    let client = &call.client;
    let asked = TerminalCommand {
        command: "sh".to_owned(),
        arguments: vec!["-c".to_owned(), command.to_owned()],
        environment: Vec::new(),
        directory: Some(root.path().to_string_lossy().into_owned()),
        keeps_bytes: Some(Cut::BYTES as u64),
    };
    let id = match client.create_terminal(asked).await {
        Ok(id) => id,
        Err(ClientError::NotSupported) => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let terminal = Terminal { client: Arc::clone(client), id: Some(id.clone()) };
    let shown = json!([{ "type": "terminal", "terminalId": id.0 }]);
    call.tell(Map::from_iter([("content".to_owned(), shown)])).await;
    let how = match tokio::time::timeout(within, client.wait_for_exit(&id)).await {
        Ok(Ok(TerminalExit { code, signal })) => End::Exited { code, signal },
        Ok(Err(error)) => return Err(failed(&error)),
        Err(_) => {
            // It is ended in any case when the terminal is given back.
            let _ = tokio::time::timeout(ANSWERS_WITHIN, client.kill_terminal(&id)).await;
            End::TookTooLong(within)
        }
    };
    let said = tokio::time::timeout(ANSWERS_WITHIN, client.terminal_output(&id)).await;
    let (text, is_cut) = match said {
        Ok(Ok(said)) => (said.text, said.truncated),
        Ok(Err(_)) | Err(_) => ("[the editor does not say what it said]".to_owned(), false),
    };
    let mut output = Cut::default();
    output.push(text.as_bytes());
    terminal.release().await;
    let note = if is_cut { "[the beginning is left out]\n" } else { "" };
    let is_cut = is_cut || output.is_cut();
    Ok(Some(Ended { output: format!("{note}{}", output.text()), is_cut, how }))
}

fn failed(error: &ClientError) -> ToolError {
    match error {
        ClientError::Gone => ToolError::new(
            "the editor in whose terminal the command ran is gone; what came of it is not known",
        ),
        error => ToolError::new(error),
    }
}
