//! Blocks of content, and the transcript entries that they become.

use std::collections::BTreeMap;

use adjourn::core::transcript::Content;
use adjourn::driver::{Block, McpValues, Message, Role, mcp_address};
use serde_json::{Map, Value, json};

use crate::rpc::Error;

/// Turns a prompt into a transcript entry.
///
/// # Errors
/// A block is none.
pub fn said(blocks: Vec<Map<String, Value>>) -> Result<Message, Error> {
    if blocks.is_empty() {
        return Err(Error::invalid("prompt", "must not be empty"));
    }
    let read = |(index, fields): (usize, Map<String, Value>)| {
        let wrong = |field: &str, problem: &str| {
            Error::invalid(format!("prompt[{index}].{field}"), problem)
        };
        let typed = fields.get("type").is_some_and(Value::is_string);
        let missing = if typed { "text" } else { "type" };
        let block = Block::from_fields(fields).ok_or_else(|| wrong(missing, "expected a text"))?;
        match block.is_thought() {
            true => Err(wrong("type", "a prompt has no thoughts")),
            false => Ok(block),
        }
    };
    let blocks = blocks.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
    Ok(Message::new(Role::User, blocks))
}

/// Describes a prompt to the core. One without words is called by what it shows, so that it has a
/// title and a place in lists and digests.
pub fn described(prompt: &Message) -> Content {
    let content = prompt.content();
    if !content.excerpt.trim().is_empty() {
        return content;
    }
    let shown: Vec<_> = prompt.blocks.iter().filter_map(|block| shows(&block.to_value())).collect();
    match shown.is_empty() {
        true => content,
        false => {
            let Content { excerpt, .. } = Content::text(&format!("[{}]", shown.join(", ")));
            Content { excerpt, ..content }
        }
    }
}

/// Says what a block shows: a file by its name, anything else by its kind.
fn shows(block: &Value) -> Option<String> {
    let text = |path: &str| block.pointer(path).and_then(Value::as_str);
    let named = |path: &str| {
        let uri = text(path).filter(|uri| !uri.starts_with("data:"))?.trim_end_matches('/');
        uri.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
    };
    match text("/type")? {
        "text" => None,
        "resource" => named("/resource/uri").or_else(|| Some("a file".to_owned())),
        "resource_link" => text("/name").map(str::to_owned).or_else(|| named("/uri")),
        kind => Some(named("/uri").unwrap_or_else(|| kind.to_owned())),
    }
}

/// A block of text.
pub fn text(words: &str) -> Value {
    json!({ "type": "text", "text": words })
}

/// Returns the values of variables and headers, and the secrets of addresses, in the descriptions of
/// servers, by server.
pub fn secrets(servers: &[Map<String, Value>]) -> BTreeMap<String, McpValues> {
    let text = |entry: &Value, field| entry.get(field).and_then(Value::as_str).map(str::to_owned);
    let values = |list: Option<&Value>| {
        let entries = list.and_then(Value::as_array).into_iter().flatten();
        entries.filter_map(|entry| Some((text(entry, "name")?, text(entry, "value")?))).collect()
    };
    let server = |server: &Map<String, Value>| {
        let name = server.get("name").and_then(Value::as_str)?.to_owned();
        let (variables, headers) = (values(server.get("env")), values(server.get("headers")));
        let mut values = McpValues { variables, headers };
        if let Some(url) = server.get("url").and_then(Value::as_str) {
            values.headers.extend(mcp_address::without_secrets(url).1);
        }
        Some((name, values))
    };
    servers.iter().filter_map(server).collect()
}

/// Leaves of a server's description what may be stored: names of variables and headers, and never their
/// values, which are secrets more often than not; nor the secrets in its address.
pub fn without_secrets(server: Map<String, Value>) -> Value {
    let names = |list: &Value| -> Value {
        let entries = list.as_array().into_iter().flatten();
        entries.filter_map(|entry| entry.get("name")).map(|name| json!({ "name": name })).collect()
    };
    let kept = server.into_iter().map(|(field, value)| match field.as_str() {
        "env" | "headers" => (field, names(&value)),
        "url" => (
            field,
            value.as_str().map_or(Value::Null, |url| mcp_address::without_secrets(url).0.into()),
        ),
        _ => (field, value),
    });
    Value::Object(kept.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(blocks: &Value) -> String {
        let blocks = blocks.as_array().unwrap().iter().map(|block| block.as_object().unwrap());
        described(&said(blocks.cloned().collect()).unwrap()).excerpt
    }

    #[test]
    fn a_prompt_without_words_is_called_by_what_it_shows() {
        let image = json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" });
        let named = with(&image, "uri", "file:///tmp/crash.png");
        let inline = with(&image, "uri", "data:image/png;base64,AA/AA");
        let link = json!({ "type": "resource_link", "name": "notes.md", "uri": "file:///x/y" });
        let file =
            json!({ "type": "resource", "resource": { "uri": "file:///a/b.rs", "text": "" } });
        for (blocks, called) in [
            (json!([image]), "[image]"),
            (json!([image, image, link]), "[image, image, notes.md]"),
            (json!([named, text(" ")]), "[crash.png]"),
            (json!([inline]), "[image]"),
            (json!([file]), "[b.rs]"),
            (json!([image, text("what is this?")]), "what is this?"),
            (json!([text(" ")]), " "),
        ] {
            assert_eq!(excerpt(&blocks), called, "{blocks}");
        }
    }

    #[test]
    fn the_secrets_of_an_address_are_left_out_of_it() {
        let url = "https://web/?key=hush&project=web";
        let server = json!({ "type": "http", "name": "web", "url": url, "headers": [] });
        let server = server.as_object().unwrap().clone();
        let secrets = secrets(std::slice::from_ref(&server));
        assert_eq!(json!(secrets["web"].headers), json!({ "?key": "hush" }));
        assert_eq!(without_secrets(server)["url"], "https://web/?key=…&project=web");
    }

    fn with(block: &Value, field: &str, value: &str) -> Value {
        let mut block = block.clone();
        block[field] = value.into();
        block
    }
}
