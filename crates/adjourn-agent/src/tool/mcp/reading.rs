//! Servers as settings and clients write them down.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use adjourn_core::json;
use serde_json::Value;

use super::address::has_credentials;
use super::config::{McpServer, McpServers, McpTransport};
use super::values::McpValue;

/// How long a file of servers may be.
const FILE_BYTES: usize = 1024 * 1024;

/// Why a description of servers cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpConfigError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Where it is.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is no JSON.
    #[error("{}: {problem}", path.display())]
    Json {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Something is not as it has to be.
    #[error("{at}: {problem}")]
    Invalid {
        /// Where.
        at: String,
        /// What is wrong there.
        problem: String,
    },
}

fn invalid<T>(at: impl Into<String>, problem: impl Into<String>) -> Result<T, McpConfigError> {
    Err(McpConfigError::Invalid { at: at.into(), problem: problem.into() })
}

impl McpServers {
    /// Reads servers in either of two spellings.
    ///
    /// - ACP's: a list of `{"name", "command", "args", "env": [{"name", "value"}]}` and
    ///   `{"type": "http", "name", "url", "headers": [{"name", "value"}]}`. All is taken as it is
    ///   written; a name without a value is looked up where the server is connected, and so is a value
    ///   of an address's query that is `…`.
    /// - The customary one: `{"mcpServers": {name: {"command", "args", "env": {name: value}}}}`, or
    ///   with `url` and `headers`. `${NAME}` and `${NAME:-default}` stand for variables. A server
    ///   that is `disabled` is left out; `cwd` and `alwaysAllow` are read, too.
    ///
    /// # Errors
    /// What is not as it has to be, and where.
    pub fn read(value: &Value) -> Result<Self, McpConfigError> {
        let mut servers: Vec<McpServer> = Vec::new();
        let mut add = |server: Option<McpServer>, at: &str| {
            let Some(mut server) = server else { return Ok(()) };
            if servers.iter().any(|other| other.name == server.name) {
                return invalid(at, format!("another server is called {:?}", server.name));
            }
            server.keep_query_apart();
            servers.push(server);
            Ok(())
        };
        let listed = match value {
            Value::Object(fields) => match fields.get("mcpServers") {
                Some(servers) => servers,
                None => return invalid("mcpServers", "it is missing"),
            },
            value => value,
        };
        match listed {
            Value::Array(list) => {
                for (index, server) in list.iter().enumerate() {
                    let at = format!("mcpServers[{index}]");
                    let name = text(server, &at, "name")?;
                    add(McpServer::read(name, server, &at)?, &at)?;
                }
            }
            Value::Object(named) => {
                for (name, server) in named {
                    let at = format!("mcpServers.{name}");
                    let server = McpServer::read(name.clone(), server, &at)?;
                    add(server.map(|server| McpServer { expands: true, ..server }), &at)?;
                }
            }
            _ => return invalid("mcpServers", "expected servers by name, or a list of them"),
        }
        Ok(Self::of(servers))
    }

    /// Reads servers from a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not as [`McpServers::read`] takes it.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, McpConfigError> {
        let path = path.as_ref();
        let bytes = std::fs::read(path)
            .map_err(|source| McpConfigError::File { path: path.to_owned(), source })?;
        let value: Value = json::read(&bytes, FILE_BYTES).map_err(|error| {
            McpConfigError::Json { path: path.to_owned(), problem: error.to_string() }
        })?;
        Self::read(&value)
    }
}

impl McpServer {
    /// Reads a server; nothing if it is turned off.
    fn read(name: String, value: &Value, at: &str) -> Result<Option<Self>, McpConfigError> {
        if name.trim().is_empty() {
            return invalid(format!("{at}.name"), "must not be blank");
        }
        if value.get("disabled") == Some(&Value::Bool(true)) {
            return Ok(None);
        }
        let kind = value.get("type").and_then(Value::as_str);
        let (transport, listed) = match kind {
            Some("stdio") | None if value.get("command").is_some() => {
                let args = texts(value, at, "args")?;
                let (env, listed) = values(value, at, "env")?;
                let cwd = value.get("cwd").map(|_| text(value, at, "cwd")).transpose()?;
                let command = text(value, at, "command")?;
                (McpTransport::Stdio { command, args, env, cwd }, listed)
            }
            Some("http" | "streamable-http" | "streamableHttp") | None
                if value.get("url").is_some() =>
            {
                let url = text(value, at, "url")?;
                if !url.starts_with("http://")
                    && !url.starts_with("https://")
                    && !url.contains("${")
                {
                    return invalid(format!("{at}.url"), "expected an address of HTTP");
                }
                if has_credentials(&url) {
                    // The address is not repeated.
                    let problem = "a user or a password in it would be stored; use a header";
                    return invalid(format!("{at}.url"), problem);
                }
                let (headers, listed) = values(value, at, "headers")?;
                (McpTransport::Http { url, headers }, listed)
            }
            Some("sse") => {
                return invalid(
                    format!("{at}.type"),
                    "servers with HTTP and SSE are not spoken with; streamable HTTP is",
                );
            }
            _ => return invalid(at, "expected a command, or an url"),
        };
        let always_allow = texts(value, at, "alwaysAllow")?.into_iter().collect();
        Ok(Some(Self { name, transport, always_allow, expands: !listed }))
    }
}

fn text(value: &Value, at: &str, field: &str) -> Result<String, McpConfigError> {
    match value.get(field).and_then(Value::as_str) {
        Some(text) => Ok(text.to_owned()),
        None => invalid(format!("{at}.{field}"), "expected a text"),
    }
}

fn texts(value: &Value, at: &str, field: &str) -> Result<Vec<String>, McpConfigError> {
    let Some(value) = value.get(field).filter(|value| !value.is_null()) else {
        return Ok(Vec::new());
    };
    let texts = value.as_array().and_then(|list| {
        list.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
    });
    texts.map_or_else(|| invalid(format!("{at}.{field}"), "expected a list of texts"), Ok)
}

/// Reads values by name, and says whether they were listed, as ACP has them.
fn values(
    value: &Value,
    at: &str,
    field: &str,
) -> Result<(BTreeMap<String, McpValue>, bool), McpConfigError> {
    let at = format!("{at}.{field}");
    match value.get(field) {
        // A server without values is as plain in either spelling.
        None | Some(Value::Null) => Ok((BTreeMap::new(), true)),
        Some(Value::Array(list)) => {
            let mut values = BTreeMap::new();
            for (index, entry) in list.iter().enumerate() {
                let name = text(entry, &format!("{at}[{index}]"), "name")?;
                let value = entry.get("value").and_then(Value::as_str);
                let value = value.map_or(McpValue::Named, |text| McpValue::Text(text.to_owned()));
                values.insert(name, value);
            }
            Ok((values, true))
        }
        Some(Value::Object(named)) => {
            let mut values = BTreeMap::new();
            for (name, value) in named {
                let value = match value {
                    Value::Null => McpValue::Named,
                    Value::String(text) => McpValue::Template(text.clone()),
                    Value::Number(number) => McpValue::Template(number.to_string()),
                    Value::Bool(word) => McpValue::Template(word.to_string()),
                    // The value is not said: it may be a secret.
                    _ => return invalid(format!("{at}.{name}"), "expected a text"),
                };
                values.insert(name.clone(), value);
            }
            Ok((values, false))
        }
        Some(_) => invalid(at, "expected values by name, or a list of them"),
    }
}
