//! Searching files for a pattern.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use adjourn_core::limits;
use regex::{Regex, RegexBuilder};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use schemars::JsonSchema;
use serde::Deserialize;

use super::blocking;
use super::output::as_text;
use super::root::Root;
use crate::tool::{ToolError, ToolOutput};

/// How many lines are shown.
const LINES: usize = 200;
/// How much is shown of a line.
const LINE_BYTES: usize = 300;
/// Files that are longer are not searched.
const FILE_BYTES: u64 = 4 * 1024 * 1024;
/// How many directories may lie in one another.
const DEPTH: usize = 64;
/// How much memory a pattern may take.
const PATTERN_BYTES: usize = 1024 * 1024;
/// A directory that holds no one's text.
const SKIPPED: &str = ".git";

/// What searching takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    /// The regular expression.
    #[schemars(length(min = 1))]
    pattern: String,
    /// The file or directory that is searched; without it, all.
    #[serde(default)]
    path: Option<String>,
    /// Which files are searched, by their paths: `*.rs`, `src/**/*.ts`.
    #[serde(default)]
    include: Option<String>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    ignore_case: bool,
}

/// A search under way.
struct Searching {
    pattern: Regex,
    include: Option<Regex>,
    given_up: Arc<AtomicBool>,
    found: String,
    lines: usize,
    /// How many files could not be searched.
    skipped: usize,
}

/// Tells a search when no one waits for it any more.
struct GivesUp(Arc<AtomicBool>);

impl Drop for GivesUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Searches files.
pub(super) async fn search(root: Arc<Root>, search: Search) -> Result<ToolOutput, ToolError> {
    let Search { pattern, path, include, ignore_case } = search;
    let built =
        RegexBuilder::new(&pattern).case_insensitive(ignore_case).size_limit(PATTERN_BYTES).build();
    let pattern = built.map_err(|error| ToolError::new(format!("pattern: {error}")))?;
    let include = include.as_deref().map(glob).transpose()?;
    let given_up = Arc::new(AtomicBool::new(false));
    let _gives_up = GivesUp(Arc::clone(&given_up));
    blocking(move || {
        let place = root.within(path.as_deref().unwrap_or_default())?;
        let mut searching =
            Searching { pattern, include, given_up, found: String::new(), lines: 0, skipped: 0 };
        match root.file(&place) {
            Ok(file) => searching.file(file, &place),
            Err(_) => searching.directory(&root.directory(&place)?, &place, 0)?,
        }
        Ok(searching.output())
    })
    .await
}

impl Searching {
    fn is_over(&self) -> bool {
        self.lines > LINES || self.given_up.load(Ordering::Relaxed)
    }

    /// Searches what is in a directory. Links are not followed.
    fn directory(
        &mut self,
        directory: &OwnedFd,
        place: &Path,
        depth: usize,
    ) -> Result<(), ToolError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(directory)? {
            let name = entry?.file_name().to_owned();
            if !matches!(name.to_bytes(), b"." | b"..") {
                names.push(name);
            }
        }
        names.sort_unstable();
        for name in names {
            if self.is_over() {
                return Ok(());
            }
            let Ok(stat) = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let inside: PathBuf = place.join(name.to_string_lossy().as_ref());
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let open = |flags| openat(directory, &name, flags, Mode::empty());
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if name.to_bytes() == SKIPPED.as_bytes() => {}
                FileType::Directory if depth < DEPTH => match open(flags | OFlags::DIRECTORY) {
                    Ok(directory) => self.directory(&directory, &inside, depth + 1)?,
                    Err(_) => self.skipped += 1,
                },
                FileType::RegularFile if self.includes(&inside) => match open(flags) {
                    Ok(file) => self.file(File::from(file), &inside),
                    Err(_) => self.skipped += 1,
                },
                _ => {}
            }
        }
        Ok(())
    }

    fn includes(&self, place: &Path) -> bool {
        let Some(include) = &self.include else { return true };
        include.is_match(&place.to_string_lossy())
    }

    /// Searches a file. One that is binary or too long is left out.
    fn file(&mut self, file: File, place: &Path) {
        let mut bytes = Vec::new();
        let read = file.take(FILE_BYTES + 1).read_to_end(&mut bytes);
        if read.is_err() || bytes.len() as u64 > FILE_BYTES {
            self.skipped += 1;
            return;
        }
        let Some(text) = as_text(bytes) else { return };
        for (number, line) in text.lines().enumerate().filter(|(_, l)| self.pattern.is_match(l)) {
            self.lines += 1;
            if self.lines > LINES {
                return;
            }
            let (place, line) = (place.display(), limits::excerpt(line, LINE_BYTES));
            // Writing to a text does not fail.
            let _ = writeln!(self.found, "{place}:{}: {line}", number + 1);
        }
    }

    fn output(mut self) -> ToolOutput {
        if self.lines == 0 {
            self.found.push_str("[nothing was found]\n");
        }
        if self.lines > LINES {
            self.found.push_str("[there is more; search for something narrower]\n");
        }
        if self.skipped > 0 {
            let _ = writeln!(self.found, "[{} files could not be searched]", self.skipped);
        }
        self.found.trim_end().into()
    }
}

/// Reads a pattern of paths: `*` and `?` stand for letters of a name, `**` for directories. One
/// without a slash is about names in any directory.
fn glob(pattern: &str) -> Result<Regex, ToolError> {
    let mut regex = String::from(if pattern.contains('/') { "^" } else { "(^|/)" });
    let mut rest = pattern.trim_start_matches("./");
    while let Some(letter) = rest.chars().next() {
        let (taken, meaning) = match rest {
            _ if rest.starts_with("**/") => (3, "(.*/)?".to_owned()),
            _ if rest.starts_with("**") => (2, ".*".to_owned()),
            _ if letter == '*' => (1, "[^/]*".to_owned()),
            _ if letter == '?' => (1, "[^/]".to_owned()),
            _ => (letter.len_utf8(), regex::escape(&letter.to_string())),
        };
        regex.push_str(&meaning);
        rest = rest.get(taken..).unwrap_or_default();
    }
    regex.push('$');
    let built = RegexBuilder::new(&regex).size_limit(PATTERN_BYTES).build();
    built.map_err(|error| ToolError::new(format!("include: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_paths_mean_what_they_do_elsewhere() {
        for (pattern, matches, others) in [
            ("*.rs", vec!["a.rs", "src/a.rs"], vec!["a.rsx", "rs"]),
            ("src/*.rs", vec!["src/a.rs"], vec!["src/b/a.rs", "a.rs", "x/src/a.rs"]),
            ("src/**/*.rs", vec!["src/a.rs", "src/b/c/a.rs"], vec!["a.rs"]),
            ("a?.txt", vec!["ab.txt", "x/ab.txt"], vec!["a.txt", "abc.txt"]),
            ("./docs/**", vec!["docs/a", "docs/b/c"], vec!["doc/a"]),
            ("a+(b).c", vec!["a+(b).c"], vec!["aab.c"]),
        ] {
            let glob = glob(pattern).unwrap();
            assert!(matches.iter().all(|path| glob.is_match(path)), "{pattern}");
            assert!(!others.iter().any(|path| glob.is_match(path)), "{pattern}");
        }
    }
}
