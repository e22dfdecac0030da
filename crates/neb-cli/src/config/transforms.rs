//! Transforms of columns: `[column.NAME]` with the key `transform` in a configuration file, `--transform NAME=KIND` as a flag.
//!
//! A name stands for the column of x and of y that is called so; `x.NAME` and `y.NAME` for one of them, `all` for every column
//! without a word of its own. What is not declared is looked for in the data: whole numbers, atoms.

use std::collections::BTreeMap;

use anyhow::Result;
use neb::column::{Declared, Found, Transform, Transforms};
use serde::Deserialize;

use super::Config;
use crate::failure::{self, Failure};
use crate::files::{Group, PairsFile};

/// The table of one column.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnKeys {
    transform: String,
}

/// Keys of the table of one column.
pub(super) const KEYS: [&str; 1] = ["transform"];

/// What was declared, or is used: name of the column, words for its transform, where they come from.
#[derive(Clone, Debug)]
struct Entry {
    name: String,
    declared: Declared,
    words: String,
    origin: String,
}

/// What is declared about columns; later entries win.
#[derive(Clone, Debug, Default)]
pub(super) struct TransformSettings {
    entries: Vec<Entry>,
}

/// The transforms of pairs and observations.
pub(crate) struct Chosen {
    /// Of x.
    pub(crate) x: Transforms,
    /// Of y.
    pub(crate) y: Transforms,
    /// What was found without being asked for, a sentence each.
    pub(crate) notes: Vec<String>,
}

impl TransformSettings {
    /// Puts file and flag together.
    pub(super) fn resolve(
        file: &BTreeMap<String, ColumnKeys>,
        in_file: &str,
        flag: Option<&str>,
    ) -> Result<Self> {
        let mut settings = Self::default();
        for (name, keys) in file {
            settings.push(name, &keys.transform, in_file)?;
        }
        for part in flag
            .unwrap_or_default()
            .split(',')
            .filter(|part| !part.trim().is_empty())
        {
            let (name, words) = part.split_once('=').ok_or_else(|| {
                Failure::input(
                    format!("--transform: `{part}` is not of the form NAME=KIND"),
                    "for example M=dequantise,w=log,zg=atom:0 or all=none",
                )
            })?;
            settings.push(name.trim(), words.trim(), "--transform")?;
        }
        Ok(settings)
    }

    fn push(&mut self, name: &str, words: &str, origin: &str) -> Result<()> {
        self.entries.push(Entry {
            name: name.to_owned(),
            declared: Declared::parse(words)?,
            words: words.to_owned(),
            origin: origin.to_owned(),
        });
        Ok(())
    }

    /// Whether a flag declared anything.
    fn is_typed(&self) -> bool {
        self.entries
            .iter()
            .any(|entry| entry.origin == "--transform")
    }

    /// What is declared for each column of a role.
    fn declared(&self, role: &str, names: &[String]) -> Vec<Option<Declared>> {
        let of = |name: &String| {
            let own =
                |entry: &&Entry| entry.name == *name || entry.name == format!("{role}.{name}");
            let all = |entry: &&Entry| entry.name == "all";
            let entries = || self.entries.iter().rev();
            let entry = entries().find(own).or_else(|| entries().find(all));
            entry.map(|entry| entry.declared)
        };
        names.iter().map(of).collect()
    }

    fn check_names(&self, x_names: &[String], y_names: &[String]) -> Result<()> {
        let mut known = vec!["all".to_owned()];
        for (role, names) in [("x", x_names), ("y", y_names)] {
            for name in names {
                known.extend([name.clone(), format!("{role}.{name}")]);
            }
        }
        match self
            .entries
            .iter()
            .find(|entry| !known.contains(&entry.name))
        {
            None => Ok(()),
            Some(Entry { name, origin, .. }) => {
                let hint = match neb_data::nearest(name, &known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("choose from `{}`", known.join("`, `")),
                };
                Err(Failure::input(
                    format!("{origin}: a transform of `{name}`, which is no column of x or y"),
                    hint,
                ))
            }
        }
    }

    /// The tables of a configuration file.
    pub(super) fn push_lines(&self, lines: &mut Vec<String>) {
        for entry in &self.entries {
            let value = format!("transform = \"{}\"", entry.words);
            lines.extend([
                String::new(),
                format!("[column.{}]", key(&entry.name)),
                format!("{value:<32} # {}", entry.origin),
            ]);
        }
    }

    /// What is used instead of what was declared.
    fn used(&self, x: &[Used], y: &[Used]) -> Self {
        let in_both = |used: &Used, others: &[Used]| {
            let other = others.iter().find(|other| other.name == used.name);
            other.is_none_or(|other| other.words == used.words)
        };
        let mut entries: Vec<Entry> = Vec::new();
        for (role, own, others) in [("x", x, y), ("y", y, x)] {
            for used in own {
                let name = match in_both(used, others) {
                    true => used.name.clone(),
                    false => format!("{role}.{}", used.name),
                };
                let shown = used.words != "none" || used.declared.is_some();
                if !shown || entries.iter().any(|entry| entry.name == name) {
                    continue;
                }
                let found = used.found.as_ref();
                let origin = match self
                    .entries
                    .iter()
                    .rev()
                    .find(|entry| used.declared == Some(entry.declared))
                {
                    Some(entry) => entry.origin.clone(),
                    None => found.map_or_else(String::new, |found| format!("found: {}", found.why)),
                };
                entries.push(Entry {
                    name,
                    declared: used.declared.unwrap_or(Declared::None),
                    words: used.words.clone(),
                    origin,
                });
            }
        }
        Self { entries }
    }
}

/// What is used for a column.
struct Used {
    name: String,
    words: String,
    declared: Option<Declared>,
    found: Option<Found>,
}

impl Config {
    /// Chooses the transforms of pairs, and of observations if there are any, all in the user's units; they become part of the
    /// settings.
    pub(crate) fn choose_transforms(
        &mut self,
        pairs: &PairsFile,
        observations: Option<&Group>,
    ) -> Result<Chosen> {
        self.choose_transforms_of(&pairs.x, &pairs.y, observations)
            .map_err(|error| match error.downcast() {
                Ok(error) => failure::in_file(pairs.path(), error),
                Err(error) => error,
            })
    }

    /// The same for pairs that are in no file.
    pub(crate) fn choose_transforms_of(
        &mut self,
        x: &Group,
        y: &Group,
        observations: Option<&Group>,
    ) -> Result<Chosen> {
        let settings = &self.transforms;
        let (x_names, y_names) = (&x.names, &y.names);
        settings.check_names(x_names, y_names)?;
        let mut notes = Vec::new();
        let mut choose = |role: &str, names: &[String], tables: &[&Group]| {
            let declared = settings.declared(role, names);
            let tables: Vec<_> = tables.iter().map(|table| table.values.view()).collect();
            let (transforms, found) = Transforms::choose(names, &declared, &tables)?;
            notes.extend(
                found
                    .iter()
                    .map(|found| note(role, &names[found.column], found)),
            );
            let used: Vec<Used> = names
                .iter()
                .enumerate()
                .map(|(column, name)| Used {
                    name: name.clone(),
                    words: transforms.of(column).words(),
                    declared: declared[column],
                    found: found.iter().find(|found| found.column == column).cloned(),
                })
                .collect();
            anyhow::Ok((transforms, used))
        };
        let (x, used_x) = choose("x", x_names, &[x])?;
        let tables: Vec<&Group> = [y].into_iter().chain(observations).collect();
        let (y, used_y) = choose("y", y_names, &tables)?;
        self.transforms = settings.used(&used_x, &used_y);
        Ok(Chosen { x, y, notes })
    }

    /// Refuses transforms that were typed where the surrogate has its own.
    pub(crate) fn leave_transforms(&mut self) -> Result<()> {
        if self.transforms.is_typed() {
            return Err(Failure::input(
                "--transform: the surrogate was learned with transforms of its own, which stay",
                "give --transform to `neb surrogate` or `neb fit`",
            ));
        }
        self.transforms = TransformSettings::default();
        Ok(())
    }
}

fn note(role: &str, name: &str, found: &Found) -> String {
    let done = match &found.transform {
        Transform::Atom(atom) => format!(
            "the atom is spread over {} to {} for the models and put back on output",
            atom.interval[0], atom.interval[1]
        ),
        _ => "U(-1/2, 1/2) is added for the models, and output is rounded".to_owned(),
    };
    format!(
        "note: column `{name}` of {role} {}: {done} (--transform {role}.{name}=none leaves it as it is)",
        found.why
    )
}

/// A key of TOML, in quotes where it needs them.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.chars().all(bare) {
        true => name.to_owned(),
        false => toml::Value::from(name).to_string(),
    }
}
