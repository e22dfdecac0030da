//! The settings of a training: preset, then configuration file, then flags, each over the one before; with the origin of
//! every value.
//!
//! A setting is one key, the same word as a flag (`--held-out`) and in the file (`held-out` in `[surrogate]`). It applies to
//! every candidate that has such a part; a key that no candidate has is refused.

mod file;
mod source;
mod transforms;

use std::collections::BTreeMap;

use anyhow::Result;
use neb::surrogate::{CandidateConfig, ModelConfig, SurrogateConfig};
use toml::{Table, Value};

use crate::args::{ConfigSource, Kind, Preset, SourceFlags, Stages, SurrogateKeys};
use crate::failure::Failure;
use file::ConfigFile;
use source::SourceSettings;
pub(crate) use source::{FewStage, SingleStage, Stage2};
use transforms::TransformSettings;

/// The seed where none is given.
pub(crate) const DEFAULT_SEED: u64 = 1;

/// Keys of `[surrogate]` and where their values are in a candidate, in the order they are printed.
const KEYS: [(&str, &[&str]); 15] = [
    ("epochs", &["train", "epochs"]),
    ("batch", &["train", "batch"]),
    ("rate", &["train", "rate"]),
    ("schedule", &["train", "schedule"]),
    ("weight-decay", &["train", "adam", "weight_decay"]),
    ("clip-norm", &["train", "adam", "clip_norm"]),
    ("held-out", &["train", "held_out"]),
    ("patience", &["train", "patience"]),
    ("layers", &["model", "layers"]),
    ("hidden", &["model", "hidden"]),
    ("head", &["model", "head"]),
    ("activation", &["model", "activation"]),
    ("bins", &["model", "bins"]),
    ("bound", &["model", "bound"]),
    ("components", &["model", "components"]),
];

/// Share of the steps in which a cosine schedule rises.
const WARM_UP: f64 = 0.02;

/// Every setting resolved.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) seed: u64,
    pub(crate) surrogate: SurrogateConfig,
    source: SourceSettings,
    transforms: TransformSettings,
    stages: Stages,
    preset: Preset,
    kind: Kind,
    /// Where each key's value comes from; keys that are not here have the preset's value.
    origins: BTreeMap<String, String>,
}

impl Config {
    /// Puts preset, file and flags together and checks the result.
    pub(crate) fn resolve(
        seed: Option<u64>,
        stages: Stages,
        config_source: &ConfigSource,
        flags: &SurrogateKeys,
        source_flags: &SourceFlags,
    ) -> Result<Self> {
        let file = match &config_source.config {
            Some(path) => ConfigFile::read(path)?,
            None => ConfigFile::default(),
        };
        let in_file = config_source
            .config
            .as_ref()
            .map(|path| path.display().to_string());
        Self::put_together(
            file,
            &in_file.unwrap_or_default(),
            seed,
            stages,
            (config_source.preset, config_source.transform.as_deref()),
            flags,
            source_flags,
        )
    }

    /// The settings that the text of a configuration file gives; `name` is where every value in it is said to come from.
    pub(crate) fn parse(text: &str, name: &str, stages: Stages) -> Result<Self> {
        Self::put_together(
            ConfigFile::parse(text, name)?,
            name,
            None,
            stages,
            (None, None),
            &SurrogateKeys::default(),
            &SourceFlags::default(),
        )
    }

    /// These settings of stage 2 with those of stage 1 that another has.
    pub(crate) fn with_stage1(mut self, other: &Self) -> Self {
        self.surrogate = other.surrogate.clone();
        self.kind = other.kind;
        self.transforms = other.transforms.clone();
        self.stages = Stages::Fit;
        let of_stage1 = |key: &str| !key.contains("source.") && key != "seed";
        self.origins.extend(
            other
                .origins
                .iter()
                .filter(|(key, _)| of_stage1(key))
                .map(|(key, origin)| (key.clone(), origin.clone())),
        );
        self
    }

    fn put_together(
        file: ConfigFile,
        in_file: &str,
        seed: Option<u64>,
        stages: Stages,
        (preset, transform): (Option<Preset>, Option<&str>),
        flags: &SurrogateKeys,
        source_flags: &SourceFlags,
    ) -> Result<Self> {
        let mut origins = BTreeMap::new();
        let mut note = |key: &str, flag: bool, file: bool| {
            if flag {
                origins.insert(key.to_owned(), format!("--{key}"));
            } else if file {
                origins.insert(key.to_owned(), in_file.to_owned());
            }
        };
        note("seed", seed.is_some(), file.seed.is_some());
        note("preset", preset.is_some(), file.preset.is_some());
        note("kind", flags.kind.is_some(), file.surrogate.kind.is_some());
        let preset = preset.or(file.preset).unwrap_or(Preset::Fast);
        let kind = flags.kind.or(file.surrogate.kind);
        let kind = kind.unwrap_or(match (preset, stages) {
            (Preset::Paper, _) => Kind::Paper,
            (Preset::Fast, Stages::Surrogate) => Kind::Auto,
            (Preset::Fast, _) => Kind::NoisyMixture,
        });
        let mut candidates = starting_point(preset, kind);
        let (from_flags, from_file) = (given(flags)?, given(&file.surrogate)?);
        for (key, path) in KEYS {
            let (flag, file) = (from_flags.get(key), from_file.get(key));
            note(key, flag.is_some(), file.is_some());
            if let Some(value) = flag.or(file) {
                set(&mut candidates, kind, key, path, value)?;
            }
        }
        candidates.dedup();
        let surrogate = SurrogateConfig { candidates };
        surrogate.check()?;
        let typed = given(source_flags)?;
        for key in given(&file.source)?.keys().chain(typed.keys()) {
            let origin = match typed.contains_key(key) {
                true => format!("--{key}"),
                false => in_file.to_owned(),
            };
            origins.insert(format!("source.{key}"), origin);
        }
        let source = match stages {
            Stages::Surrogate => SourceSettings::default(),
            _ => SourceSettings::resolve(preset, file.source.with(source_flags))?,
        };
        let transforms = TransformSettings::resolve(&file.column, in_file, transform)?;
        Ok(Self {
            seed: seed.or(file.seed).unwrap_or(DEFAULT_SEED),
            surrogate,
            source,
            transforms,
            stages,
            preset,
            kind,
            origins,
        })
    }

    /// A configuration file that resolves to the same settings, with the origin of every value.
    pub(crate) fn to_toml(&self) -> String {
        let mut lines = vec![self.line("seed", &self.seed.to_string(), "default")];
        lines.push(self.line("preset", &quoted(self.preset), "default"));
        if self.stages != Stages::Source {
            self.push_surrogate(&mut lines);
        }
        if self.stages != Stages::Surrogate {
            self.push_source(&mut lines);
        }
        self.transforms.push_lines(&mut lines);
        lines.join("\n")
    }

    /// The settings as the library takes them, of the stages they are for.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        let mut settings = serde_json::json!({ "seed": self.seed });
        if self.stages != Stages::Source {
            settings["surrogate"] = serde_json::json!(self.surrogate);
        }
        if self.stages != Stages::Surrogate {
            settings["source"] = self.source.to_json();
        }
        settings
    }

    fn push_surrogate(&self, lines: &mut Vec<String>) {
        lines.extend([
            String::new(),
            "[surrogate]".to_owned(),
            self.line("kind", &quoted(self.kind), "preset"),
        ]);
        for (key, path) in KEYS {
            let values: Vec<(String, String)> = self
                .surrogate
                .candidates
                .iter()
                .filter_map(|candidate| {
                    let value = get(&as_table(candidate).ok()?, path)?;
                    Some((candidate.model.name(), value))
                })
                .collect();
            let Some((_, first)) = values.first() else {
                continue;
            };
            if values.iter().all(|(_, value)| value == first) {
                lines.push(self.line(key, first, "preset"));
            } else {
                let each: Vec<String> = values
                    .iter()
                    .map(|(name, value)| format!("{value} ({name})"))
                    .collect();
                lines.push(format!("# {key}: {}", each.join(", ")));
            }
        }
    }

    fn line(&self, key: &str, value: &str, otherwise: &str) -> String {
        let origin = self.origins.get(key).map_or(otherwise, String::as_str);
        format!("{:<32} # {origin}", format!("{key} = {value}"))
    }
}

/// The candidates before any key is set.
fn starting_point(preset: Preset, kind: Kind) -> Vec<CandidateConfig> {
    let mut start = match kind {
        Kind::Auto => SurrogateConfig::auto(),
        Kind::Coupling => SurrogateConfig::single(ModelConfig::coupling()),
        Kind::Spline => SurrogateConfig::single(ModelConfig::spline()),
        Kind::Mixture => SurrogateConfig::single(ModelConfig::mixture(8)),
        Kind::NoisyMixture => SurrogateConfig::fast(),
        Kind::Paper => SurrogateConfig::paper(),
    };
    if preset == Preset::Paper {
        let paper = SurrogateConfig::paper();
        for candidate in &mut start.candidates {
            candidate.train = paper.candidates[0].train.clone();
        }
    }
    start.candidates
}

/// The keys that have a value.
fn given(keys: &impl serde::Serialize) -> Result<Table> {
    Ok(Table::try_from(keys)?)
}

fn as_table(candidate: &CandidateConfig) -> Result<Table> {
    Ok(Table::try_from(candidate)?)
}

/// Sets a key in every candidate that has it.
fn set(
    candidates: &mut [CandidateConfig],
    kind: Kind,
    key: &str,
    path: &[&str],
    value: &Value,
) -> Result<()> {
    let mut known = false;
    for candidate in candidates {
        let mut table = as_table(candidate)?;
        if let Some(place) = place(&mut table, path) {
            known = true;
            *place = match (key, value.as_str()) {
                ("schedule", Some(name)) => schedule(name),
                _ => value.clone(),
            };
            *candidate = table.try_into()?;
        }
    }
    if known {
        Ok(())
    } else {
        Err(Failure::input(
            format!(
                "`{key}` is no setting of a surrogate of kind {}",
                quoted(kind)
            ),
            "leave it out, or choose another kind; `neb config --kind KIND` lists the settings of each",
        ))
    }
}

fn place<'a>(table: &'a mut Table, path: &[&str]) -> Option<&'a mut Value> {
    let (last, folders) = path.split_last()?;
    let mut inner = table;
    for folder in folders {
        inner = inner.get_mut(*folder)?.as_table_mut()?;
    }
    inner.get_mut(*last)
}

fn schedule(name: &str) -> Value {
    let mut table = Table::from_iter([("kind".to_owned(), Value::from(name))]);
    if name == "cosine" {
        table.insert("warm_up".to_owned(), Value::from(WARM_UP));
    }
    Value::Table(table)
}

/// The value at a path, as it is written in a file.
fn get(table: &Table, path: &[&str]) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let value = rest
        .iter()
        .try_fold(table.get(*first)?, |value, key| value.get(key))?;
    Some(match value {
        Value::Float(number) => shortest(*number),
        Value::Table(schedule) => schedule.get("kind")?.to_string(),
        other => other.to_string(),
    })
}

/// A float with no more digits than it was given with: some settings are `f32`.
fn shortest(number: f64) -> String {
    let single = number as f32;
    if f64::from(single) == number {
        format!("{single:?}")
    } else {
        format!("{number:?}")
    }
}

/// The name of a choice, in quotes.
fn quoted(choice: impl clap::ValueEnum) -> String {
    let value = choice.to_possible_value();
    format!(
        "\"{}\"",
        value.as_ref().map_or("", |value| value.get_name())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str, flags: &SurrogateKeys) -> Result<Config> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("neb.toml");
        std::fs::write(&path, text)?;
        let source = ConfigSource {
            config: Some(path),
            preset: None,
            transform: None,
        };
        let even = SourceFlags::default();
        Config::resolve(None, Stages::Surrogate, &source, flags, &even)
    }

    #[test]
    fn the_presets_are_the_library_s_settings() {
        let fast = resolve("", &SurrogateKeys::default()).unwrap();
        assert_eq!(fast.surrogate, SurrogateConfig::auto());
        let paper = resolve("preset = \"paper\"", &SurrogateKeys::default()).unwrap();
        assert_eq!(paper.surrogate, SurrogateConfig::paper());
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_preset() {
        let flags = SurrogateKeys {
            kind: Some(Kind::Mixture),
            ..SurrogateKeys::default()
        };
        let text = "seed = 7\n[surrogate]\nkind = \"spline\"\ncomponents = 3\nrate = 1\nschedule = \"constant\"";
        let config = resolve(text, &flags).unwrap();
        let candidate = &config.surrogate.candidates[0];
        assert_eq!(candidate.model.name(), "mixture-3");
        assert_eq!(candidate.train.rate, 1.0);
        assert_eq!(
            candidate.train.schedule,
            neb::nn::schedule::Schedule::Constant
        );
        assert_eq!(config.seed, 7);
        assert_eq!(config.origins["kind"], "--kind");
        assert!(config.origins["rate"].ends_with("neb.toml"));
        assert!(!config.origins.contains_key("epochs"));
    }

    #[test]
    fn what_is_printed_resolves_to_the_same_settings() {
        for start in [
            "auto",
            "coupling",
            "spline",
            "mixture",
            "noisy-mixture",
            "paper",
        ] {
            let text = format!("[surrogate]\nkind = \"{start}\"\nepochs = 3\nweight-decay = 5e-5");
            let config = resolve(&text, &SurrogateKeys::default()).unwrap();
            let again = resolve(&config.to_toml(), &SurrogateKeys::default()).unwrap();
            assert_eq!(config.surrogate, again.surrogate, "{start}");
        }
    }

    #[test]
    fn both_stages_start_from_the_surrogate_that_stage_2_can_widen() {
        let resolve = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("neb.toml");
            std::fs::write(&path, text).unwrap();
            let source = ConfigSource {
                config: Some(path),
                preset: None,
                transform: None,
            };
            let (keys, even) = (SurrogateKeys::default(), SourceFlags::default());
            Config::resolve(None, Stages::Fit, &source, &keys, &even).unwrap()
        };
        let plain = resolve("");
        assert_eq!(plain.surrogate, SurrogateConfig::fast());
        assert_eq!(plain.source, SourceSettings::default());
        let changed =
            resolve("[source]\njudge-k = 77\npull = 0.3\nflow-bound = 2.5\nsymmetric = \"all\"");
        let again = resolve(&changed.to_toml());
        assert_eq!(again.source, changed.source);
        assert_ne!(again.source, plain.source);
        for text in [
            "preset = \"paper\"",
            "preset = \"paper\"\n[source]\nestimator = \"elbo\"",
            "[source]\nsource = \"umnn\"\nestimator = \"iw\"\nk = 7\nsteps = 10\nrecognition = \"umnn\"",
            "[source]\nsource = \"affine\"\nbase = \"uniform\"\ndomain = \"all=-3:3\"\nrate = 0.1",
            "[source]\nsource = \"particles\"\nparticles = 50",
        ] {
            let config = resolve(text);
            assert_eq!(resolve(&config.to_toml()).source, config.source, "{text}");
            assert_ne!(config.source, plain.source, "{text}");
        }
    }

    #[test]
    fn candidates_that_become_equal_are_trained_once() {
        let config = resolve("[surrogate]\ncomponents = 4", &SurrogateKeys::default()).unwrap();
        let names: Vec<_> = config
            .surrogate
            .candidates
            .iter()
            .map(|c| c.model.name())
            .collect();
        assert_eq!(
            names,
            ["mixture-4", "gaussian+coupling-4", "gaussian+spline-4"]
        );
    }

    /// Every key is a flag, and every flag but `--kind` a key.
    #[test]
    fn keys_and_flags_are_the_same() {
        let mut flags = file::surrogate_keys();
        flags.retain(|flag| flag != "kind");
        flags.sort();
        let mut keys: Vec<_> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
        keys.sort();
        assert_eq!(keys, flags);
    }
}
