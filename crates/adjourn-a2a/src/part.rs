//! Parts of messages and artifacts, and the blocks of a transcript that they become.

use std::borrow::Cow;

use adjourn::driver::Block;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::version::Version;

/// The resource under which a value is kept.
const VALUE_URI: &str = "urn:a2a:data";
const JSON: &str = "application/json";
/// What our own marks in `_meta` begin with; a peer that set one could hide what it says, so that
/// none is taken from peers.
const OURS: &str = "adjourn/";
/// Where the block of words or of a value has the media type and the file name of its part: blocks of
/// files have fields for them.
const FILE: &str = "adjourn/a2a-file";

/// Reads a part of any version.
///
/// # Errors
/// It is none.
pub(crate) fn read(path: &str, part: &Value, version: Version) -> Result<Block, Error> {
    let wrong = |field: &str, problem: &str| Error::invalid(format!("{path}{field}"), problem);
    let Some(fields) = part.as_object() else { return Err(wrong("", "expected a part")) };
    // 0.3 has files in an object of their own.
    let file = fields.get("file").and_then(Value::as_object).unwrap_or(fields);
    let text = |names: &[&str]| {
        let value = names.iter().find_map(|name| file.get(*name).filter(|value| !value.is_null()));
        value.map(|value| value.as_str().map(str::to_owned)).map(|text| {
            text.ok_or_else(|| {
                wrong(&format!(".{}", names.first().unwrap_or(&"")), "expected a text")
            })
        })
    };
    let media_type = text(&["mediaType", "mimeType"]).transpose()?;
    let name = text(&["filename", "name"]).transpose()?;
    let media = media_type.as_deref();
    let (mut block, is_file) =
        if let Some(words) = fields.get("text").filter(|words| !words.is_null()) {
            let words = words.as_str().ok_or_else(|| wrong(".text", "expected a text"))?;
            (json!({ "type": "text", "text": words }), false)
        } else if let Some(data) = text(&["raw", "bytes", "fileWithBytes"]).transpose()? {
            // A provider refuses each request with what is none, and with it all of the conversation.
            let data = base64(&data).ok_or_else(|| wrong(".raw", "expected Base64"))?;
            let kind = media.and_then(|media| media.split('/').next());
            let block = match kind {
                Some("image" | "audio") => {
                    json!({ "type": kind, "data": data, "mimeType": media, "name": name })
                }
                _ => {
                    let uri = format!("attachment:{}", name.as_deref().unwrap_or_default());
                    let resource = json!({ "uri": uri, "mimeType": media, "blob": data });
                    json!({ "type": "resource", "resource": without_nulls(resource) })
                }
            };
            (block, true)
        } else if let Some(uri) = text(&["url", "uri", "fileWithUri"]).transpose()? {
            let name = name.clone().unwrap_or_else(|| last_step(&uri).to_owned());
            (json!({ "type": "resource_link", "uri": uri, "name": name, "mimeType": media }), true)
        } else if let Some(value) = fields.get("data").filter(|value| !value.is_null()) {
            // The proto file of 0.3 has them in an object of their own, too.
            let inner = value.get("data").filter(|_| version == Version::V03Proto);
            let value = inner.unwrap_or(value);
            let resource = json!({ "uri": VALUE_URI, "mimeType": JSON, "text": value.to_string() });
            (json!({ "type": "resource", "resource": resource }), false)
        } else {
            return Err(wrong("", "expected text, a file or data"));
        };
    let mut meta = Map::new();
    if let Some(Value::Object(metadata)) = fields.get("metadata") {
        let theirs = metadata.iter().filter(|(key, _)| !key.starts_with(OURS));
        meta.extend(theirs.map(|(key, value)| (key.clone(), value.clone())));
    }
    if !is_file && (media_type.is_some() || name.is_some()) {
        let kept = without_nulls(json!({ "mediaType": media_type, "filename": name }));
        meta.insert(FILE.to_owned(), kept);
    }
    if let Some(block) = block.as_object_mut().filter(|_| !meta.is_empty()) {
        block.insert("_meta".to_owned(), meta.into());
    }
    let Value::Object(block) = without_nulls(block) else {
        return Err(wrong("", "expected a part"));
    };
    Block::from_fields(block).ok_or_else(|| wrong("", "expected a part"))
}

/// A part, as either version writes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    content: Content,
    media_type: Option<String>,
    name: Option<String>,
    metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Text(String),
    /// Bytes, in base64.
    Raw(String),
    Url(String),
    Data(Value),
}

/// Returns Base64 as RFC 4648 has it, with its padding; nothing if it is none. ProtoJSON takes the
/// alphabet of URLs, too, and no padding; others break it into lines.
fn base64(text: &str) -> Option<String> {
    let mut data: String = text.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    data.truncate(data.trim_end_matches('=').len());
    data = data.replace('-', "+").replace('_', "/");
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    if !data.bytes().all(is_digit) || data.len() % 4 == 1 {
        return None;
    }
    data.push_str(["", "", "==", "="].get(data.len() % 4)?);
    Some(data)
}

impl Part {
    const fn of(content: Content) -> Self {
        Self { content, media_type: None, name: None, metadata: None }
    }

    /// Makes a part of words.
    pub fn text(words: impl Into<String>) -> Self {
        Self::of(Content::Text(words.into()))
    }

    /// Makes a part of a value.
    pub const fn data(value: Value) -> Self {
        Self::of(Content::Data(value))
    }

    /// Makes the part of a block; nothing of a thought, which is not said to peers.
    pub fn of_block(block: &Block) -> Option<Self> {
        let fields = &*block.fields();
        let text = |fields: &Map<String, Value>, name: &str| {
            fields.get(name).and_then(Value::as_str).map(str::to_owned)
        };
        let media_type = text(fields, "mimeType");
        let mut metadata = fields.get("_meta").and_then(Value::as_object).cloned();
        let kept = metadata.as_mut().and_then(|metadata| metadata.shift_remove(FILE));
        metadata.take_if(|metadata| metadata.is_empty());
        let part = match block.kind() {
            "thought" => return None,
            "text" => Self::text(block.words().unwrap_or_default()),
            "image" | "audio" => Self {
                media_type,
                name: text(fields, "name"),
                ..Self::of(Content::Raw(text(fields, "data")?))
            },
            "resource_link" => Self {
                media_type,
                name: text(fields, "name"),
                ..Self::of(Content::Url(text(fields, "uri")?))
            },
            "resource" => of_resource(fields.get("resource")?.as_object()?)?,
            // A block of another protocol is told as it is.
            _ => Self::data(block.to_value()),
        };
        let kept = |name: &str| text(kept.as_ref()?.as_object()?, name);
        let media_type = part.media_type.or_else(|| kept("mediaType"));
        let name = part.name.or_else(|| kept("filename"));
        Some(Self { metadata, media_type, name, ..part })
    }

    /// Takes a mark of our own off it; returns whether it was there.
    pub(crate) fn take_mark(&mut self, mark: &str) -> bool {
        let Some(metadata) = &mut self.metadata else { return false };
        let is_marked = metadata.shift_remove(mark).is_some();
        self.metadata.take_if(|metadata| metadata.is_empty());
        is_marked
    }

    /// Returns the part as a version writes it.
    pub fn written(&self, version: Version) -> WrittenPart<'_> {
        let (media_type, name) = (self.media_type.as_deref(), self.name.as_deref());
        let mut part = WrittenPart { metadata: self.metadata.as_ref(), ..WrittenPart::default() };
        if version == Version::V10 {
            match &self.content {
                Content::Text(words) => part.text = Some(words),
                Content::Raw(bytes) => part.raw = Some(bytes),
                Content::Url(url) => part.url = Some(url),
                Content::Data(value) => part.data = shown(value).map(Cow::Borrowed),
            }
            (part.media_type, part.filename) = (media_type, name);
            return part;
        }
        let is_proto = version == Version::V03Proto;
        let file = WrittenFile { mime_type: media_type, name, ..WrittenFile::default() };
        let kind = match &self.content {
            Content::Text(words) => {
                part.text = Some(words);
                "text"
            }
            Content::Raw(bytes) => {
                part.file = Some(match is_proto {
                    true => WrittenFile { file_with_bytes: Some(bytes), ..file },
                    false => WrittenFile { bytes: Some(bytes), ..file },
                });
                "file"
            }
            Content::Url(url) => {
                part.file = Some(match is_proto {
                    true => WrittenFile { file_with_uri: Some(url), ..file },
                    false => WrittenFile { uri: Some(url), ..file },
                });
                "file"
            }
            Content::Data(value) => {
                part.data = Some(match is_proto {
                    true => Cow::Owned(json!({ "data": object(value) })),
                    false => object(value),
                });
                "data"
            }
        };
        part.kind = (!is_proto).then_some(kind);
        part
    }
}

/// A part as a version writes it. Its fields are in the order in which they are written.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenPart<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<WrittenFile<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a Map<String, Value>>,
}

/// A file as 0.3 writes it, over JSON-RPC or in the words of its proto file.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct WrittenFile<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_with_bytes: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_with_uri: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
}

/// Returns a value as the data of 0.3 is: an object.
fn object(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Object(_) => Cow::Borrowed(value),
        other => Cow::Owned(json!({ "value": other })),
    }
}

/// Returns a value, unless it is null, which is not written.
pub(crate) fn shown(value: &Value) -> Option<&Value> {
    Some(value).filter(|value| !value.is_null())
}

/// Makes the part of a resource that came with its content.
fn of_resource(resource: &Map<String, Value>) -> Option<Part> {
    let text = |name: &str| resource.get(name).and_then(Value::as_str).map(str::to_owned);
    let (media_type, uri) = (text("mimeType"), text("uri").unwrap_or_default());
    let named = uri.strip_prefix("attachment:").unwrap_or(&uri).to_owned();
    let name = Some(named).filter(|name| !name.is_empty());
    if let Some(bytes) = text("blob") {
        return Some(Part { media_type, name, ..Part::of(Content::Raw(bytes)) });
    }
    let words = text("text")?;
    let value = (uri == VALUE_URI).then(|| adjourn::core::json::stored(words.as_bytes()).ok());
    Some(match value.flatten() {
        Some(value) => Part::data(value),
        None => Part { media_type, name, ..Part::text(words) },
    })
}

/// Leaves out what is null, one level deep.
pub(crate) fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            fields.into_iter().filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}

fn last_step(uri: &str) -> &str {
    uri.trim_end_matches('/').rsplit('/').next().unwrap_or(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_both_versions_come_back_as_they_were_given() {
        for (given, v10, v03) in [
            (
                json!({ "text": "hi" }),
                json!({ "text": "hi" }),
                json!({ "kind": "text", "text": "hi" }),
            ),
            (
                json!({ "kind": "text", "text": "hi", "metadata": { "a": 1 } }),
                json!({ "text": "hi", "metadata": { "a": 1 } }),
                json!({ "kind": "text", "text": "hi", "metadata": { "a": 1 } }),
            ),
            (
                json!({ "text": "hi", "metadata": { "a": 1, "adjourn/digest": true } }),
                json!({ "text": "hi", "metadata": { "a": 1 } }),
                json!({ "kind": "text", "text": "hi", "metadata": { "a": 1 } }),
            ),
            (
                json!({ "text": "hi", "metadata": { "adjourn/digest": true } }),
                json!({ "text": "hi" }),
                json!({ "kind": "text", "text": "hi" }),
            ),
            (
                json!({ "raw": "AAAA", "mediaType": "image/png", "filename": "a.png" }),
                json!({ "raw": "AAAA", "mediaType": "image/png", "filename": "a.png" }),
                json!({ "kind": "file", "file": { "bytes": "AAAA", "mimeType": "image/png", "name": "a.png" } }),
            ),
            (
                json!({ "kind": "file", "file": { "bytes": "AAAA", "mimeType": "application/pdf", "name": "a.pdf" } }),
                json!({ "raw": "AAAA", "mediaType": "application/pdf", "filename": "a.pdf" }),
                json!({ "kind": "file", "file": { "bytes": "AAAA", "mimeType": "application/pdf", "name": "a.pdf" } }),
            ),
            (
                json!({ "url": "https://x.example/b.txt", "mediaType": "text/plain" }),
                json!({ "url": "https://x.example/b.txt", "mediaType": "text/plain", "filename": "b.txt" }),
                json!({ "kind": "file", "file": { "uri": "https://x.example/b.txt", "mimeType": "text/plain", "name": "b.txt" } }),
            ),
            (
                json!({ "kind": "data", "data": { "a": [1] } }),
                json!({ "data": { "a": [1] } }),
                json!({ "kind": "data", "data": { "a": [1] } }),
            ),
            (
                json!({ "text": "# hi", "mediaType": "text/markdown", "filename": "hi.md",
                        "metadata": { "a": 1 } }),
                json!({ "text": "# hi", "mediaType": "text/markdown", "filename": "hi.md",
                        "metadata": { "a": 1 } }),
                json!({ "kind": "text", "text": "# hi", "metadata": { "a": 1 } }),
            ),
            (
                json!({ "data": { "a": 1 }, "mediaType": "application/ld+json" }),
                json!({ "data": { "a": 1 }, "mediaType": "application/ld+json" }),
                json!({ "kind": "data", "data": { "a": 1 } }),
            ),
            (
                json!({ "data": [1, 2] }),
                json!({ "data": [1, 2] }),
                json!({ "kind": "data", "data": { "value": [1, 2] } }),
            ),
        ] {
            let block = read("parts[0]", &given, Version::V10).unwrap();
            let part = Part::of_block(&block).unwrap();
            assert_eq!(json!(part.written(Version::V10)), v10, "{given}");
            assert_eq!(json!(part.written(Version::V03)), v03, "{given}");
        }
    }

    #[test]
    fn what_is_no_part_is_named() {
        for (given, path) in [
            (json!(1), "parts[0]"),
            (json!({}), "parts[0]"),
            (json!({ "text": 1 }), "parts[0].text"),
            (json!({ "raw": 1 }), "parts[0].raw"),
            (json!({ "raw": "!!! no Base64" }), "parts[0].raw"),
            (json!({ "raw": "AAAAA" }), "parts[0].raw"),
            (json!({ "kind": "file", "file": {} }), "parts[0]"),
        ] {
            assert_eq!(
                read("parts[0]", &given, Version::V10).unwrap_err().details["path"],
                path,
                "{given}"
            );
        }
    }

    #[test]
    fn a_thought_is_not_told() {
        assert_eq!(Part::of_block(&Block::thought("hm")), None);
    }

    #[test]
    fn base64_is_taken_as_protojson_and_mail_spell_it() {
        for (given, kept) in [
            ("", ""),
            ("AAAA", "AAAA"),
            ("AAA", "AAA="),
            ("AA", "AA=="),
            ("AA==", "AA=="),
            ("-_-_", "+/+/"),
            ("AA\r\nAA\n", "AAAA"),
        ] {
            assert_eq!(base64(given).as_deref(), Some(kept), "{given}");
        }
        for wrong in ["A", "AAAAA", "A=AA", "A*AA", "\u{e9}AAA"] {
            assert_eq!(base64(wrong), None, "{wrong}");
        }
    }
}
