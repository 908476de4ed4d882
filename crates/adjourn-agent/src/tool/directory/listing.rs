//! Listing a directory.

use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, statat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking;
use super::root::Root;
use crate::tool::{ToolError, ToolOutput};

/// How many entries are listed.
const ENTRIES: usize = 1000;

/// What listing takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    /// The directory; without it, the one that all paths begin at.
    #[serde(default)]
    path: Option<String>,
}

/// Lists a directory.
pub(super) async fn list(root: Arc<Root>, List { path }: List) -> Result<ToolOutput, ToolError> {
    blocking(move || {
        let place = root.within(path.as_deref().unwrap_or_default())?;
        let directory = root.directory(&place)?;
        let mut lines = Vec::new();
        for entry in Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "." || name == ".." {
                continue;
            }
            let stat = statat(&directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            let kind = stat.as_ref().map(|stat| FileType::from_raw_mode(stat.st_mode));
            lines.push(match (kind, stat) {
                (Ok(FileType::Directory), _) => format!("{name}/"),
                (Ok(FileType::Symlink), _) => format!("{name} (link)"),
                (Ok(FileType::RegularFile), Ok(stat)) => format!("{name} ({} bytes)", stat.st_size),
                _ => format!("{name} (no file)"),
            });
        }
        lines.sort_unstable();
        let all = lines.len();
        lines.truncate(ENTRIES);
        if all > ENTRIES {
            lines.push(format!("[{} more are left out]", all - ENTRIES));
        }
        Ok(match all {
            0 => "[it is empty]".into(),
            _ => lines.join("\n").into(),
        })
    })
    .await
}
