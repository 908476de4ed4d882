//! Changing files: through an editor, or where they are.

use std::path::PathBuf;
use std::sync::Arc;

use adjourn_driver::{ClientAbilities, ClientError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, json};

use super::blocking;
use super::reading::{self, client_failed};
use super::root::Root;
use crate::tool::{ToolCall, ToolError, ToolOutput};

/// How long texts may be that people are shown as what was changed.
const DIFF_BYTES: usize = 128 * 1024;

/// What writing takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    /// The file.
    path: String,
    /// Its whole text.
    content: String,
}

/// What editing takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    /// The file.
    path: String,
    /// The text that is replaced, exactly as it is in the file.
    #[schemars(length(min = 1))]
    old_text: String,
    /// The text that takes its place.
    new_text: String,
    /// Whether all places are changed; else the text must be in the file once.
    #[serde(default)]
    replace_all: bool,
}

/// A file that is changed.
struct Change {
    root: Arc<Root>,
    path: String,
    place: PathBuf,
    call: ToolCall,
}

/// Writes a file.
pub(super) async fn write(
    root: Arc<Root>,
    Write { path, content }: Write,
    call: ToolCall,
) -> Result<ToolOutput, ToolError> {
    let change = Change::of(root, path, call).await?;
    let bytes = content.len();
    let before = change.text().await.ok();
    change.save(before, content).await?;
    Ok(format!("{} has {bytes} bytes", change.path).into())
}

/// Edits a file.
pub(super) async fn edit(
    root: Arc<Root>,
    Edit { path, old_text, new_text, replace_all }: Edit,
    call: ToolCall,
) -> Result<ToolOutput, ToolError> {
    let change = Change::of(root, path, call).await?;
    let before = change.text().await?;
    let path = &change.path;
    let places = match old_text.is_empty() {
        true => return Err(ToolError::new("old_text: must not be empty")),
        false => before.matches(&old_text).count(),
    };
    match places {
        0 => return Err(ToolError::new(format!("the text is not in {path}"))),
        1 => {}
        _ if replace_all => {}
        _ => return Err(ToolError::new(format!("the text is in {path} {places} times"))),
    }
    let after = before.replace(&old_text, &new_text);
    if after == before {
        return Err(ToolError::new("the texts are the same: nothing would change"));
    }
    change.save(Some(before), after).await?;
    Ok(format!("{} was changed in {places} places", change.path).into())
}

impl Change {
    async fn of(root: Arc<Root>, path: String, call: ToolCall) -> Result<Self, ToolError> {
        let place = root.within(&path)?;
        let (checked, within) = (place.clone(), Arc::clone(&root));
        blocking(move || within.check(&checked)).await?;
        Ok(Self { root, path, place, call })
    }

    fn abilities(&self) -> ClientAbilities {
        self.call.client.abilities()
    }

    /// Returns what the file says: in the editor, if it can be written there, too.
    async fn text(&self) -> Result<String, ToolError> {
        let ClientAbilities { read_files, write_files, .. } = self.abilities();
        if read_files && write_files {
            let absolute = self.root.absolute(&self.place);
            match self.call.client.read_text_file(absolute, None, None).await {
                Ok(text) => return Ok(text),
                Err(ClientError::Failed(why)) => return Err(client_failed(&self.path, &why)),
                Err(_) => {}
            }
        }
        let (root, place) = (Arc::clone(&self.root), self.place.clone());
        blocking(move || reading::text(&root, &place)).await
    }

    /// Gives the file another text, and shows people what changes.
    async fn save(&self, before: Option<String>, after: String) -> Result<(), ToolError> {
        self.show(before.as_deref(), &after).await;
        if self.abilities().write_files {
            let absolute = self.root.absolute(&self.place);
            match self.call.client.write_text_file(absolute, after.clone()).await {
                Ok(()) => return Ok(()),
                Err(ClientError::Failed(why)) => return Err(client_failed(&self.path, &why)),
                // Whether it has saved the text or not: the file has it afterwards.
                Err(_) => {}
            }
        }
        let (root, place) = (Arc::clone(&self.root), self.place.clone());
        blocking(move || root.write(&place, after.as_bytes())).await
    }

    async fn show(&self, before: Option<&str>, after: &str) {
        if before.map_or(0, str::len) + after.len() > DIFF_BYTES {
            return;
        }
        let path = self.root.absolute(&self.place);
        let diff = json!({ "type": "diff", "path": path, "oldText": before, "newText": after });
        self.call.tell(Map::from_iter([("content".to_owned(), json!([diff]))])).await;
    }
}
