//! An MCP server over stdio, written by hand: what the tests of this crate connect, and something to
//! try an agent with.
//!
//! It keeps its notes in the directory that it runs in.

#![expect(clippy::indexing_slicing, reason = "a JSON value is null where it has nothing")]

use std::fs::OpenOptions;
use std::io::{BufRead as _, Write as _};
use std::process::Command;

use adjourn_core::json;
use serde_json::{Value, json};

/// How long a message may be.
const MESSAGE_BYTES: usize = 1024 * 1024;

fn main() -> std::io::Result<()> {
    note("started", &std::process::id().to_string())?;
    let mut has_more = false;
    for line in std::io::stdin().lock().lines() {
        let Ok(message) = json::read::<Value>(line?.as_bytes(), MESSAGE_BYTES) else { continue };
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => Ok(json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": { "listChanged": true } },
                "serverInfo": { "name": "demo", "version": "1" },
            })),
            "tools/list" => Ok(json!({ "tools": tools(has_more) })),
            "tools/call" if params["name"] == "more" => {
                has_more = true;
                say(&json!({ "method": "notifications/tools/list_changed" }))?;
                Ok(text("there are more tools"))
            }
            // It is never answered, and takes note when it is cancelled.
            "tools/call" if params["name"] == "wait" => {
                note("waiting", &std::process::id().to_string())?;
                continue;
            }
            "tools/call" => call(params),
            "notifications/cancelled" => {
                note("cancelled", &params["requestId"].to_string())?;
                continue;
            }
            _ if id.is_null() => continue,
            method => Err(json!({ "code": -32601, "message": format!("no method {method}") })),
        };
        say(&match result {
            Ok(result) => json!({ "id": id, "result": result }),
            Err(error) => json!({ "id": id, "error": error }),
        })?;
    }
    note("ended", &std::process::id().to_string())
}

/// Sends a message.
fn say(message: &Value) -> std::io::Result<()> {
    let mut message = message.clone();
    message["jsonrpc"] = json!("2.0");
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}")?;
    stdout.flush()
}

/// Adds a line to a file of this name.
fn note(name: &str, line: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(name)?;
    writeln!(file, "{line}")
}

fn text(words: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": words }] })
}

/// Describes the tools.
fn tools(has_more: bool) -> Vec<Value> {
    let tool = |name: &str, annotations: Value| {
        json!({
            "name": name, "description": format!("The tool {name}."), "annotations": annotations,
            "inputSchema": {
                "type": "object", "properties": { "text": { "type": "string" } },
            },
        })
    };
    let mut echo = tool("echo", json!({ "readOnlyHint": true }));
    echo["title"] = json!("Say it again");
    echo["inputSchema"]["required"] = json!(["text"]);
    let mut all = vec![
        echo,
        tool("note", json!({ "destructiveHint": false })),
        tool("put", json!({ "idempotentHint": true })),
        tool("variable", json!({ "readOnlyHint": true, "openWorldHint": true })),
        tool("reveal", json!({ "readOnlyHint": true })),
        tool("refuse", json!({ "readOnlyHint": true })),
        tool("wait", json!({ "readOnlyHint": true })),
        tool("more", json!({ "readOnlyHint": true })),
        tool("start", json!({})),
        tool("die", json!({})),
        tool("flood", json!({ "readOnlyHint": true })),
    ];
    if has_more {
        all.push(tool("one/more", json!({ "readOnlyHint": true })));
    }
    // A schema that says what it should not.
    if let (Ok(token), Some(reveal)) = (std::env::var("DEMO_TOKEN"), all.get_mut(4)) {
        reveal["inputSchema"]["properties"]["by"] = json!({ "enum": [token] });
    }
    // A type that no schema has: the tool cannot be used.
    if let Ok(kind) = std::env::var("DEMO_BROKEN") {
        let mut broken = tool("broken", json!({}));
        broken["inputSchema"]["type"] = json!(kind);
        all.push(broken);
    }
    all
}

/// Runs a call.
fn call(params: &Value) -> Result<Value, Value> {
    let words = params["arguments"]["text"].as_str().unwrap_or_default();
    let failed = |error: std::io::Error| json!({ "code": -32603, "message": error.to_string() });
    match params["name"].as_str().unwrap_or_default() {
        "echo" | "one/more" => Ok(json!({
            "content": [
                { "type": "text", "text": words, "annotations": { "audience": ["user"] } },
                { "type": "resource_link", "uri": "file:///notes", "name": "notes" },
            ],
            "structuredContent": { "echoed": words },
        })),
        "note" | "put" => {
            note("notes", words).map_err(failed)?;
            Ok(text("noted"))
        }
        // How long it is, and not what: values are taken out of results.
        "variable" => Ok(text(&match std::env::var(words) {
            Ok(value) => format!("{} bytes", value.len()),
            Err(_) => "none".to_owned(),
        })),
        // A server that says what it should not, in every way there is.
        "reveal" => {
            let token = std::env::var("DEMO_TOKEN").unwrap_or_default();
            let said = format!("the token is {token}.");
            Ok(json!({
                "content": [
                    { "type": "text", "text": said },
                    { "type": "resource", "resource": { "uri": format!("file:///{token}"), "text": said } },
                ],
                "structuredContent": { "token": token, "list": [said] }, "isError": words == "fail",
            }))
        }
        "refuse" => Ok(json!({
            "content": [{ "type": "text", "text": "not on a Sunday" }],
            "structuredContent": { "day": "Sunday" }, "isError": true,
        })),
        // Something that a server leaves behind if only the server itself is ended.
        "start" => {
            let child = Command::new("sleep").arg("600").spawn().map_err(failed)?;
            Ok(text(&child.id().to_string()))
        }
        "die" => {
            let token = std::env::var("DEMO_TOKEN").unwrap_or_default();
            eprintln!("the token {token} is of no use");
            std::process::exit(3)
        }
        // As many megabytes as it is asked for.
        "flood" => Ok(text(&"0123456789abcdef".repeat(words.parse().unwrap_or(0) * 64 * 1024))),
        name => Err(json!({ "code": -32602, "message": format!("no tool {name}") })),
    }
}
