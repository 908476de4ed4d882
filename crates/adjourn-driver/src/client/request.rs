//! What a client can be asked for besides permissions: files, terminals, a form.

use serde_json::{Map, Value};

use super::Client;

/// What the clients that see a session can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientAbilities {
    /// Whether text files can be read through one of them, with changes that are not saved yet.
    pub read_files: bool,
    /// Whether text files can be written through one of them.
    pub write_files: bool,
    /// Whether one of them runs commands in terminals.
    pub terminals: bool,
    /// Whether one of them shows forms.
    pub forms: bool,
}

/// Something that a client is asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientRequest {
    /// The text of a file.
    ReadTextFile {
        /// Where it is; an absolute path.
        path: String,
        /// The first line that is wanted, from 1.
        line: Option<u32>,
        /// How many lines are wanted.
        limit: Option<u32>,
    },
    /// A file is to have this text.
    WriteTextFile {
        /// Where it is; an absolute path.
        path: String,
        /// Its text.
        content: String,
    },
    /// A command is to run in a terminal.
    CreateTerminal(TerminalCommand),
    /// What a terminal shows.
    TerminalOutput(TerminalId),
    /// The end of a terminal's command.
    WaitForExit(TerminalId),
    /// A terminal's command is to be ended. What it shows can still be read.
    KillTerminal(TerminalId),
    /// A terminal is of no use any more, and its command is to be ended.
    ReleaseTerminal(TerminalId),
    /// A form that a person fills in.
    Form {
        /// What it is about.
        message: String,
        /// Its fields: a JSON schema of an object with plain values.
        schema: Value,
    },
}

/// A command for a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalCommand {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment variables, beside those that the client has.
    pub environment: Vec<(String, String)>,
    /// Where it runs; an absolute path.
    pub directory: Option<String>,
    /// How many bytes of what it says are kept; the last ones.
    pub keeps_bytes: Option<u64>,
}

/// A terminal of one client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TerminalId(pub String);

/// What a client replies.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ClientReply {
    /// It is done.
    Done,
    /// The text of a file.
    Text(String),
    /// The terminal in which a command runs.
    Terminal(TerminalId),
    /// What a terminal shows.
    Output(TerminalOutput),
    /// How a terminal's command ended.
    Exited(TerminalExit),
    /// What became of a form.
    Form(FormAnswer),
}

/// What a terminal shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalOutput {
    /// What was said so far, or the last of it.
    pub text: String,
    /// Whether something before it was dropped.
    pub truncated: bool,
    /// How the command ended, if it has.
    pub exit: Option<TerminalExit>,
}

/// How the command of a terminal ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TerminalExit {
    /// Its code, unless a signal ended it.
    pub code: Option<u32>,
    /// The signal that ended it.
    pub signal: Option<String>,
}

/// What became of a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAnswer {
    /// A person has filled it in.
    Accepted(Map<String, Value>),
    /// A person would not fill it in.
    Declined,
    /// It was dismissed.
    Dismissed,
}

/// Why a client did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError {
    /// No client that sees the session can do it.
    NotSupported,
    /// The client that was asked is gone. Whether it has done it is not known.
    Gone,
    /// It could not, and what it said about that.
    Failed(String),
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotSupported => f.write_str("no client that sees the session can do it"),
            Self::Gone => f.write_str("the client that was asked is gone"),
            Self::Failed(why) => write!(f, "the client could not do it: {why}"),
        }
    }
}

impl std::error::Error for ClientError {}

/// A reply that does not fit what was asked for.
fn unfit<T>(_: ClientReply) -> Result<T, ClientError> {
    Err(ClientError::Failed("it replied to something else".to_owned()))
}

impl dyn Client + '_ {
    /// Reads lines of a text file, from `line` on, or all of it.
    ///
    /// # Errors
    /// No client can do it, the client is gone, or could not read it.
    pub async fn read_text_file(
        &self,
        path: impl Into<String>,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, ClientError> {
        let request = ClientRequest::ReadTextFile { path: path.into(), line, limit };
        match self.request(request).await? {
            ClientReply::Text(text) => Ok(text),
            other => unfit(other),
        }
    }

    /// Writes a text file.
    ///
    /// # Errors
    /// No client can do it, the client is gone, or could not write it.
    pub async fn write_text_file(
        &self,
        path: impl Into<String>,
        content: impl Into<String>,
    ) -> Result<(), ClientError> {
        let (path, content) = (path.into(), content.into());
        self.done(ClientRequest::WriteTextFile { path, content }).await
    }

    /// Runs a command in a terminal.
    ///
    /// # Errors
    /// No client can do it, the client is gone, or could not start it.
    pub async fn create_terminal(
        &self,
        command: TerminalCommand,
    ) -> Result<TerminalId, ClientError> {
        match self.request(ClientRequest::CreateTerminal(command)).await? {
            ClientReply::Terminal(id) => Ok(id),
            other => unfit(other),
        }
    }

    /// Reads what a terminal shows.
    ///
    /// # Errors
    /// The client is gone, or has no such terminal.
    pub async fn terminal_output(&self, id: &TerminalId) -> Result<TerminalOutput, ClientError> {
        match self.request(ClientRequest::TerminalOutput(id.clone())).await? {
            ClientReply::Output(output) => Ok(output),
            other => unfit(other),
        }
    }

    /// Waits for the end of a terminal's command.
    ///
    /// # Errors
    /// The client is gone, or has no such terminal.
    pub async fn wait_for_exit(&self, id: &TerminalId) -> Result<TerminalExit, ClientError> {
        match self.request(ClientRequest::WaitForExit(id.clone())).await? {
            ClientReply::Exited(exit) => Ok(exit),
            other => unfit(other),
        }
    }

    /// Ends a terminal's command; what it shows can still be read.
    ///
    /// # Errors
    /// The client is gone, or has no such terminal.
    pub async fn kill_terminal(&self, id: &TerminalId) -> Result<(), ClientError> {
        self.done(ClientRequest::KillTerminal(id.clone())).await
    }

    /// Gives a terminal back, and ends its command.
    ///
    /// # Errors
    /// The client is gone, or has no such terminal.
    pub async fn release_terminal(&self, id: &TerminalId) -> Result<(), ClientError> {
        self.done(ClientRequest::ReleaseTerminal(id.clone())).await
    }

    /// Lets a person fill in a form.
    ///
    /// # Errors
    /// No client can show it, or the client is gone.
    pub async fn form(
        &self,
        message: impl Into<String>,
        schema: Value,
    ) -> Result<FormAnswer, ClientError> {
        match self.request(ClientRequest::Form { message: message.into(), schema }).await? {
            ClientReply::Form(answer) => Ok(answer),
            other => unfit(other),
        }
    }

    async fn done(&self, request: ClientRequest) -> Result<(), ClientError> {
        match self.request(request).await? {
            ClientReply::Done => Ok(()),
            other => unfit(other),
        }
    }
}
