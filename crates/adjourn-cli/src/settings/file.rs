//! The configuration file: TOML, flattened to dotted names that remember their lines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::tree::Entry;
use super::tree::Node;
use super::{KEYS, TOKEN};
use crate::failure::Failure;
use crate::input_file::{self, SETTINGS_BYTES};
use crate::place::directory;

/// Sections with sections in them whose names the user gives.
const NAMED: &[&str] = &["agent", "prices"];
/// The environment variable that names the file.
const VARIABLE: &str = "ADJOURN_CONFIG";

/// A file that was read, or the lack of one.
#[derive(Debug)]
pub struct File {
    /// Where it is, or would be; nowhere if there is no home.
    pub path: Option<PathBuf>,
    values: BTreeMap<String, Written>,
    /// Sections whose names the user gives, by the name of the section that they are in.
    named: BTreeMap<String, Entry>,
}

/// A value as it is written.
#[derive(Debug)]
pub struct Written {
    pub text: String,
    /// What it is, in TOML's words.
    kind: &'static str,
    pub line: usize,
}

impl Written {
    /// Refuses a value of another type.
    pub fn expect(&self, whole: bool) -> Result<(), String> {
        let (kind, words) =
            if whole { ("integer", "a whole number") } else { ("string", "a string") };
        match self.kind == kind {
            true => Ok(()),
            false => Err(format!("expected {words}, found {}", article(self.kind))),
        }
    }
}

impl File {
    /// Reads the file that is named, or the one at the usual place if there is one.
    pub fn find(named: Option<&Path>) -> Result<(Self, bool), Failure> {
        let variable = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
        let named = named.map(Path::to_owned).or(variable.map(PathBuf::from));
        let must_be_there = named.is_some();
        let usual = || directory("XDG_CONFIG_HOME", ".config").ok();
        let path = named.or_else(|| usual().map(|directory| directory.join("config.toml")));
        let Some(path) = path else {
            return Ok((Self::empty(None), false));
        };
        match input_file::read(&path, SETTINGS_BYTES) {
            Ok(text) => Ok((Self::read(path, &text)?, true)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_be_there => {
                Ok((Self::empty(Some(path)), false))
            }
            Err(error) => Err(Failure::usage(format!("cannot read {}: {error}", path.display()))
                .hint("`adjourn config --defaults` prints a file to begin with")),
        }
    }

    const fn empty(path: Option<PathBuf>) -> Self {
        Self { path, values: BTreeMap::new(), named: BTreeMap::new() }
    }

    fn read(path: PathBuf, text: &str) -> Result<Self, Failure> {
        let mut file = Self::empty(Some(path));
        let table = DeTable::parse(text).map_err(|error| {
            let number = line(text, error.span().map_or(0, |span| span.start));
            let written = text.lines().nth(number - 1).unwrap_or_default().trim();
            let problem = format!("{written:?} cannot be read");
            let hint = "expected a section, as [host], or a setting: max_running = 16 or \
                        drain = \"30s\", each once";
            file.wrong(number, problem).hint(hint)
        })?;
        file.flatten("", table.get_ref(), text)?;
        Ok(file)
    }

    fn flatten(&mut self, section: &str, table: &DeTable<'_>, text: &str) -> Result<(), Failure> {
        for (key, value) in table {
            let name = match section {
                "" => key.get_ref().to_string(),
                section => format!("{section}.{}", key.get_ref()),
            };
            let line = line(text, key.span().start);
            let known = KEYS.iter().any(|key| key.name == name);
            let inside = format!("{name}.");
            let section_is_known = KEYS.iter().any(|key| key.name.starts_with(&inside));
            match value.get_ref() {
                value @ DeValue::Table(_) if NAMED.contains(&name.as_str()) => {
                    self.named.insert(name, Entry::of(value, line, text));
                }
                DeValue::Table(table) if section_is_known => self.flatten(&name, table, text)?,
                other if section_is_known || NAMED.contains(&name.as_str()) => {
                    let found = article(other.type_str());
                    return Err(
                        self.wrong(line, format!("{name}: expected a section, found {found}"))
                    );
                }
                value if known => {
                    let written = match value {
                        DeValue::String(text) => text.to_string(),
                        // However it is written; one that fits nowhere stays as it is.
                        DeValue::Integer(number) => {
                            let value = i128::from_str_radix(number.as_str(), number.radix());
                            value.map_or_else(|_| number.to_string(), |value| value.to_string())
                        }
                        _ => String::new(),
                    };
                    let written = Written { text: written, kind: value.type_str(), line };
                    self.values.insert(name, written);
                }
                _ if name == TOKEN.name => {
                    let problem = format!("{name}: a token does not belong in this file");
                    let hint = "put it into a file of its own and name that: \
                                token_file = \"token\"; or set ADJOURN_TOKEN";
                    return Err(self.wrong(line, problem).hint(hint));
                }
                _ => {
                    let failure = self.wrong(line, format!("there is no setting {name:?}"));
                    return Err(failure.hint("`adjourn config --defaults` lists them"));
                }
            }
        }
        Ok(())
    }

    /// Returns the sections in a section, by the names that the user gave them.
    pub fn sections(&self, name: &str) -> impl Iterator<Item = (&String, &Entry)> {
        let named = self.named.get(name).into_iter();
        named.flat_map(|entry| match &entry.value {
            Node::Section(entries) => entries.iter().collect(),
            _ => Vec::new(),
        })
    }

    pub fn get(&self, name: &str) -> Option<&Written> {
        self.values.get(name)
    }

    /// Says what is wrong, and where.
    pub fn wrong(&self, line: usize, problem: String) -> Failure {
        let path = self.path.as_deref().unwrap_or(Path::new(""));
        Failure::usage(format!("{}:{line}: {problem}", path.display()))
    }
}

/// Returns the number of the line that a byte is in.
pub(super) fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

pub(super) fn article(kind: &str) -> String {
    let article = if kind.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {kind}")
}
