//! Blocks: what of them a provider is sent, and what it is told in words instead.

use adjourn_core::MARK;
use adjourn_driver::Block;
use genai::chat::Binary;
use serde_json::{Map, Value};

use super::provider::Provider;

/// A block, as a model is shown it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Words(String),
    File(File),
}

/// A file that a provider takes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) media_type: String,
    /// What is in it, in base 64.
    pub(super) data: String,
    name: Option<String>,
}

impl File {
    pub(super) fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }
}

impl From<File> for Binary {
    fn from(file: File) -> Self {
        Self::from_base64(file.media_type, file.data, file.name)
    }
}

impl Shown {
    /// Returns it in words, for places where no file is taken.
    pub(super) fn into_words(self) -> String {
        match self {
            Self::Words(words) => words,
            Self::File(file) => left_out(&file.media_type, file.name.as_deref()),
        }
    }
}

/// Returns how a provider's model is shown a block.
pub(super) fn shown(provider: &Provider, block: &Block) -> Shown {
    if let Some(words) = block.words() {
        return Shown::Words(words.to_owned());
    }
    let fields = &*block.fields();
    match block.kind() {
        kind @ ("image" | "audio") => {
            let media_type = text(fields, "mimeType").unwrap_or(kind);
            let name = text(fields, "uri");
            file(provider, media_type, text(fields, "data"), name)
        }
        "resource" => resource(provider, fields),
        "resource_link" => {
            let name = text(fields, "name").unwrap_or("a resource");
            let uri = text(fields, "uri").unwrap_or_default();
            let about = text(fields, "description").map(|about| format!(": {about}"));
            Shown::Words(format!("[{name}]({uri}){}", about.unwrap_or_default()))
        }
        kind => Shown::Words(left_out(kind, None)),
    }
}

/// Returns how a resource is shown that came with its content.
fn resource(provider: &Provider, fields: &Map<String, Value>) -> Shown {
    let Some(resource) = fields.get("resource").and_then(Value::as_object) else {
        return Shown::Words(left_out("resource", None));
    };
    let uri = text(resource, "uri");
    if let Some(words) = text(resource, "text") {
        return Shown::Words(match uri {
            Some(uri) => format!("<resource uri={uri:?}>\n{words}\n</resource>"),
            None => words.to_owned(),
        });
    }
    let media_type = text(resource, "mimeType").unwrap_or("resource");
    file(provider, media_type, text(resource, "blob"), uri)
}

/// Returns how a file is shown: as it is if the provider takes it and it is there.
fn file(provider: &Provider, media_type: &str, data: Option<&str>, name: Option<&str>) -> Shown {
    let taken = data.filter(|data| !data.is_empty() && provider.takes(media_type));
    let Some(data) = taken else { return Shown::Words(left_out(media_type, name)) };
    let (size, most) = (data.len(), provider.most_of(media_type));
    if size > most {
        let left_out = left_out(media_type, name);
        let too_long = format!("{size} bytes in base 64, where it takes {most} at most");
        return Shown::Words(format!("{left_out}, {too_long}"));
    }
    Shown::File(File {
        media_type: media_type.to_owned(),
        data: data.to_owned(),
        name: name.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned()),
    })
}

/// Says what a model is not shown.
fn left_out(what: &str, name: Option<&str>) -> String {
    let name = name.map(|name| format!(", {name}")).unwrap_or_default();
    format!("{MARK} Left out, because this model cannot be shown it: {what}{name}")
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    fields.get(name).and_then(Value::as_str)
}
