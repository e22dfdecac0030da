//! The settings of stage 2: the library's, then those of the table `[source]` of a configuration file.

use anyhow::Result;
use neb::source::ladder::LadderConfig;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{Config, get, place};
use crate::failure::Failure;

/// Keys of `[source]` and where their values are in the library's settings, in the order they are printed.
const KEYS: [(&str, &[&str]); 18] = [
    ("affine-k", &["affine_k"]),
    ("refine-k", &["refine_k"]),
    ("judge-k", &["judge_k"]),
    ("batch", &["batch"]),
    ("held-out", &["held_out"]),
    ("particles", &["particles"]),
    ("effective-samples", &["effective_samples"]),
    ("refine-effective-samples", &["refine_effective_samples"]),
    ("entropy", &["entropy"]),
    ("pull", &["pull"]),
    ("refine-epochs", &["refine_epochs"]),
    ("flow-layers", &["flow", "layers"]),
    ("flow-hidden", &["flow", "hidden"]),
    ("flow-bins", &["flow", "bins"]),
    ("flow-bound", &["flow", "bound"]),
    ("flow-epochs", &["flow", "train", "epochs"]),
    ("flow-batch", &["flow", "train", "batch"]),
    ("flow-rate", &["flow", "train", "rate"]),
];

/// The table `[source]`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SourceKeys {
    affine_k: Option<usize>,
    refine_k: Option<usize>,
    judge_k: Option<usize>,
    batch: Option<usize>,
    held_out: Option<f64>,
    particles: Option<usize>,
    effective_samples: Option<f64>,
    refine_effective_samples: Option<f64>,
    entropy: Option<f64>,
    pull: Option<f64>,
    refine_epochs: Option<usize>,
    flow_layers: Option<usize>,
    flow_hidden: Option<Vec<usize>>,
    flow_bins: Option<usize>,
    flow_bound: Option<f64>,
    flow_epochs: Option<usize>,
    flow_batch: Option<usize>,
    flow_rate: Option<f64>,
    #[serde(skip_serializing)]
    pub(super) symmetric: Option<String>,
}

impl SourceKeys {
    /// The keys that have a value, but for `symmetric`.
    pub(super) fn given(&self) -> Result<Table> {
        Ok(Table::try_from(self)?)
    }

    /// The library's settings with these over them.
    pub(super) fn ladder(&self) -> Result<LadderConfig> {
        let given = self.given()?;
        let mut table = Table::try_from(LadderConfig::default())?;
        for (key, path) in KEYS {
            if let (Some(place), Some(value)) = (place(&mut table, path), given.get(key)) {
                *place = value.clone();
            }
        }
        Ok(table.try_into()?)
    }
}

/// The keys of `[source]`.
pub(super) fn keys() -> Vec<String> {
    let names = KEYS.iter().map(|(key, _)| (*key).to_owned());
    names.chain(["symmetric".to_owned()]).collect()
}

impl Config {
    /// The settings of stage 2 for x of these columns, y and pairs of so many rows, checked.
    pub(crate) fn ladder(
        &self,
        x_names: &[String],
        observations: usize,
        pairs: usize,
    ) -> Result<LadderConfig> {
        let ladder = LadderConfig {
            symmetric: symmetric(self.symmetric.as_deref(), x_names)?,
            ..self.ladder.clone()
        };
        ladder.check(observations, pairs)?;
        Ok(ladder)
    }

    pub(super) fn push_source(&self, lines: &mut Vec<String>) {
        lines.extend([String::new(), "[source]".to_owned()]);
        let table = Table::try_from(&self.ladder).unwrap_or_default();
        for (key, path) in KEYS {
            if let Some(value) = get(&table, path) {
                let origin = self.origins.get(&format!("source.{key}"));
                let origin = origin.map_or("default", String::as_str);
                lines.push(format!("{:<32} # {origin}", format!("{key} = {value}")));
            }
        }
        let even = Value::from(self.symmetric.as_deref().unwrap_or("none"));
        lines.push(self.line("symmetric", &even.to_string(), "default"));
    }
}

/// Which columns are even: `all`, `none`, or names with commas.
fn symmetric(given: Option<&str>, x_names: &[String]) -> Result<Vec<bool>> {
    let names: Vec<&str> = match given {
        None | Some("none") => return Ok(Vec::new()),
        Some("all") => return Ok(vec![true; x_names.len()]),
        Some(list) => list.split(',').map(str::trim).collect(),
    };
    if let Some(unknown) = names
        .iter()
        .find(|name| !x_names.iter().any(|known| known == *name))
    {
        let hint = match neb_data::nearest(unknown, x_names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("choose from `{}`, or all", x_names.join("`, `")),
        };
        let message = format!("--symmetric: x has no column `{unknown}`");
        return Err(Failure::input(message, hint));
    }
    Ok(x_names
        .iter()
        .map(|name| names.contains(&name.as_str()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_reach_the_library_s_settings() {
        assert_eq!(
            SourceKeys::default().ladder().unwrap(),
            LadderConfig::default()
        );
        let text =
            "affine-k = 11\npull = 1.5\nflow-epochs = 2\nflow-hidden = [3]\nflow-bound = 2.5";
        let ladder = toml::from_str::<SourceKeys>(text)
            .unwrap()
            .ladder()
            .unwrap();
        let mut expected = LadderConfig {
            affine_k: 11,
            pull: 1.5,
            ..LadderConfig::default()
        };
        expected.flow.train.epochs = 2;
        expected.flow.hidden = vec![3];
        expected.flow.bound = 2.5;
        assert_eq!(ladder, expected);
    }

    #[test]
    fn even_columns_are_named() {
        let names = ["pt", "mass"].map(str::to_owned);
        let even = |given| symmetric(given, &names);
        assert!(even(None).unwrap().is_empty());
        assert_eq!(even(Some("all")).unwrap(), [true, true]);
        assert_eq!(even(Some("mass")).unwrap(), [false, true]);
        assert!(even(Some("mas")).is_err());
    }
}
