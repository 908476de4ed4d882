//! Reading a file: through an editor, or from where it is.

use std::path::Path;
use std::sync::Arc;

use adjourn_driver::{Block, ClientError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::blocking;
use super::output::as_text;
use super::root::Root;
use crate::tool::{ToolCall, ToolError, ToolOutput};

/// How long a file may be that is read or edited.
pub(super) const FILE_BYTES: u64 = 8 * 1024 * 1024;
/// How many lines are read at once, unless fewer are asked for.
const LINES: u32 = 2000;
/// How much is read at once.
const SHOWN_BYTES: usize = 128 * 1024;

/// What reading takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    /// The file.
    path: String,
    /// The first line that is wanted, from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    line: Option<u32>,
    /// How many lines are wanted.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u32>,
}

/// Reads a file.
pub(super) async fn read(
    root: Arc<Root>,
    Read { path, line, limit }: Read,
    call: ToolCall,
) -> Result<ToolOutput, ToolError> {
    let place = root.within(&path)?;
    let first = line.unwrap_or(1).max(1);
    let limit = limit.unwrap_or(LINES).clamp(1, LINES);
    if call.client.abilities().read_files {
        let (absolute, checked) = (root.absolute(&place), place.clone());
        let within = Arc::clone(&root);
        blocking(move || within.check(&checked)).await?;
        match call.client.read_text_file(absolute, Some(first), Some(limit)).await {
            Ok(text) => return Ok(shown(&text, first, limit, None)),
            Err(ClientError::Failed(why)) => return Err(client_failed(&path, &why)),
            // What is saved is there all the same.
            Err(_) => {}
        }
    }
    let text = blocking(move || text(&root, &place)).await?;
    let all = text.lines().count();
    let skip = usize::try_from(first - 1).unwrap_or(usize::MAX);
    if skip > 0 && skip >= all {
        return Err(ToolError::new(format!("{path} has {all} lines")));
    }
    let wanted: String = text.split_inclusive('\n').skip(skip).collect();
    Ok(shown(&wanted, first, limit, Some(all)))
}

pub(super) fn client_failed(path: &str, why: &str) -> ToolError {
    ToolError::new(format!("{path}: the editor could not do it: {why}"))
}

/// Reads the whole text of a file.
pub(super) fn text(root: &Root, place: &Path) -> Result<String, ToolError> {
    let (bytes, length) = root.read(place, FILE_BYTES + 1)?;
    let name = place.display();
    if bytes.len() as u64 > FILE_BYTES {
        let most = FILE_BYTES;
        let why = format!("{name} has {length} bytes, and no more than {most} are read");
        return Err(ToolError::new(why));
    }
    as_text(bytes)
        .ok_or_else(|| ToolError::new(format!("{name} is a binary file of {length} bytes")))
}

/// Shows lines of a file, as far as they fit; `all` is how many it has, if that is known.
fn shown(text: &str, first: u32, limit: u32, all: Option<usize>) -> ToolOutput {
    let mut said = String::new();
    let mut lines = 0_u32;
    for line in text.split_inclusive('\n').take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        if said.len() + line.len() > SHOWN_BYTES {
            break;
        }
        said.push_str(line);
        lines += 1;
    }
    // Not even one line fits: the beginning of it is shown.
    let cut = lines == 0 && !text.is_empty();
    if cut {
        let end = (0..=SHOWN_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        said.push_str(text.get(..end).unwrap_or_default());
        lines = 1;
    }
    let next = first.saturating_add(lines);
    let is_all = match all {
        Some(all) => usize::try_from(next - 1).unwrap_or(usize::MAX) >= all,
        None => said.len() == text.len() && lines < limit,
    };
    let mut blocks = vec![Block::text(said)];
    if cut {
        blocks.push(Block::text(format!("[line {first} is cut: it is too long]")));
    }
    if !is_all {
        let of = all.map(|all| format!(" of {all}")).unwrap_or_default();
        let note = format!("[lines {first} to {}{of}; go on with line {next}]", next - 1);
        blocks.push(Block::text(note));
    }
    ToolOutput { blocks, structured: Some(json!({ "firstLine": first, "lines": lines })) }
}
