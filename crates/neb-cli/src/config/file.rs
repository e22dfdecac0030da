//! A configuration file; a key that does not exist is refused, with the one that was probably meant.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use clap::Args;
use serde::Deserialize;
use toml::de::{DeTable, DeValue};

use super::source::{self, SourceKeys};
use super::transforms::{self, ColumnKeys};
use crate::args::{Preset, SurrogateKeys};
use crate::failure::Failure;

/// What a configuration file can hold.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ConfigFile {
    pub(super) seed: Option<u64>,
    pub(super) preset: Option<Preset>,
    pub(super) surrogate: SurrogateKeys,
    pub(super) source: SourceKeys,
    pub(super) column: BTreeMap<String, ColumnKeys>,
}

impl ConfigFile {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|refused| {
            Failure::input(
                format!("{}: cannot be read: {refused}", path.display()),
                "check the name; `neb config` prints a file to start from",
            )
        })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Reads the text of a file; `name` says whose it is.
    pub(super) fn parse(text: &str, name: &str) -> Result<Self> {
        let at = |span: Option<std::ops::Range<usize>>| {
            let before = &text[..span.map_or(0, |span| span.start)];
            format!("{name}: line {}", before.matches('\n').count() + 1)
        };
        let malformed = |error: toml::de::Error| {
            let start = error.span().map_or(0, |span| span.start);
            let begin = text[..start].rfind('\n').map_or(0, |end| end + 1);
            let line = text[begin..].lines().next().unwrap_or_default().trim();
            Failure::input(
                format!(
                    "{}, `{line}`: {}",
                    at(error.span()),
                    in_words(error.message())
                ),
                "`neb config` prints a file with every key",
            )
        };
        let table = DeTable::parse(text).map_err(malformed)?;
        if let Some(unknown) = Unknown::find(table.get_ref()) {
            return Err(Failure::input(
                format!("{}: {}", at(Some(unknown.span.clone())), unknown.message()),
                unknown.hint(),
            ));
        }
        toml::from_str(text).map_err(malformed)
    }
}

/// A message of the parser with its types in words.
fn in_words(message: &str) -> String {
    message
        .replace("expected usize", "expected a whole number, not below 0")
        .replace("expected u64", "expected a whole number, not below 0")
        .replace("expected f64", "expected a number")
        .replace("expected f32", "expected a number")
}

/// The keys of `[surrogate]`.
pub(super) fn surrogate_keys() -> Vec<String> {
    SurrogateKeys::augment_args(clap::Command::new("keys"))
        .get_arguments()
        .filter_map(|argument| argument.get_long())
        .map(str::to_owned)
        .collect()
}

/// A key that does not exist.
struct Unknown {
    key: String,
    span: std::ops::Range<usize>,
    place: &'static str,
    known: Vec<String>,
}

impl Unknown {
    fn find(table: &DeTable) -> Option<Self> {
        let top = ["seed", "preset", "surrogate", "source", "column"];
        let inside = |name: &str, place, known| match table.get(name)?.get_ref() {
            DeValue::Table(inner) => Self::among(inner, place, known),
            _ => None,
        };
        Self::among(table, "at the top", top.map(str::to_owned).to_vec())
            .or_else(|| inside("surrogate", "in [surrogate]", surrogate_keys()))
            .or_else(|| inside("source", "in [source]", source::keys()))
            .or_else(|| match table.get("column")?.get_ref() {
                DeValue::Table(columns) => {
                    columns.values().find_map(|column| match column.get_ref() {
                        DeValue::Table(inner) => {
                            let known = transforms::KEYS.map(str::to_owned).to_vec();
                            Self::among(inner, "in the table of a column", known)
                        }
                        _ => None,
                    })
                }
                _ => None,
            })
    }

    fn among(table: &DeTable, place: &'static str, known: Vec<String>) -> Option<Self> {
        let (key, _) = table
            .iter()
            .find(|(key, _)| !known.iter().any(|known| known == key.get_ref().as_ref()))?;
        Some(Self {
            key: key.get_ref().to_string(),
            span: key.span(),
            place,
            known,
        })
    }

    fn message(&self) -> String {
        format!("there is no key `{}` {}", self.key, self.place)
    }

    fn hint(&self) -> String {
        if let Some(near) = neb_data::nearest(&self.key, &self.known) {
            return format!("did you mean `{near}`?");
        }
        match neb_data::nearest(&self.key, &surrogate_keys()) {
            Some(near) => format!("did you mean `{near}`? It belongs under [surrogate]"),
            None => format!("the keys are `{}`", self.known.join("`, `")),
        }
    }
}
