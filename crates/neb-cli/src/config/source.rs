//! The settings of stage 2: preset, then the table `[source]` of a configuration file, then flags.
//!
//! `source = "auto"` is the ladder, any other name one source fitted by one estimator (`particles`: by
//! expectation-maximisation). Each has keys of its own; a key of the other is refused.

mod columns;

use anyhow::Result;
use neb::source::ladder::LadderConfig;
use neb::source::{
    EstimatorKind, FEW_OBSERVATIONS, Model, RecognitionConfig, SingleConfig, SourceConfig,
    SourceKind,
};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::{Config, get, given, place, quoted, schedule};
use crate::args::{
    BaseName, EstimatorName, LevelsName, Preset, RecognitionName, SamplesName, ScheduleName,
    SourceChoice, SourceFlags,
};
use crate::failure::Failure;
use crate::files::Group;

/// Keys of the ladder and of particles and where their values are in the library's settings, in the order they are printed.
const LADDER_KEYS: [(&str, &[&str]); 18] = [
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

/// Of these, the keys that particles have no use for.
const NOT_OF_PARTICLES: [&str; 6] = [
    "affine-k",
    "refine-k",
    "batch",
    "entropy",
    "pull",
    "refine-epochs",
];

/// Keys of a single source, likewise.
const SINGLE_KEYS: [(&str, &[&str]); 26] = [
    ("k", &["fit", "k"]),
    ("samples", &["fit", "samples"]),
    ("levels", &["fit", "levels"]),
    ("judge-k", &["fit", "judge_k"]),
    ("effective-samples", &["fit", "effective_samples"]),
    ("entropy", &["fit", "entropy"]),
    ("pull", &["fit", "pull"]),
    ("last-share", &["fit", "last_share"]),
    ("rounds", &["fit", "rounds"]),
    ("training-nodes", &["fit", "training_nodes"]),
    ("least-steps", &["fit", "least_steps"]),
    ("epochs", &["fit", "train", "epochs"]),
    ("batch", &["fit", "train", "batch"]),
    ("rate", &["fit", "train", "rate"]),
    ("schedule", &["fit", "train", "schedule"]),
    ("clip-norm", &["fit", "train", "adam", "clip_norm"]),
    ("held-out", &["fit", "train", "held_out"]),
    ("patience", &["fit", "train", "patience"]),
    ("base", &["model", "base"]),
    ("layers", &["model", "layers"]),
    ("hidden", &["model", "hidden"]),
    ("bins", &["model", "bins"]),
    ("bound", &["model", "bound"]),
    ("embedding", &["model", "embedding"]),
    ("integrand-hidden", &["model", "integrand-hidden"]),
    ("steps", &["model", "steps"]),
];

/// The table `[source]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct SourceKeys {
    source: Option<SourceChoice>,
    estimator: Option<EstimatorName>,
    recognition: Option<RecognitionName>,
    domain: Option<String>,
    symmetric: Option<String>,
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
    k: Option<usize>,
    samples: Option<SamplesName>,
    levels: Option<LevelsName>,
    last_share: Option<f64>,
    rounds: Option<usize>,
    training_nodes: Option<usize>,
    least_steps: Option<usize>,
    epochs: Option<usize>,
    rate: Option<f64>,
    schedule: Option<ScheduleName>,
    clip_norm: Option<f64>,
    patience: Option<usize>,
    base: Option<BaseName>,
    layers: Option<usize>,
    hidden: Option<Vec<usize>>,
    bins: Option<usize>,
    bound: Option<f64>,
    embedding: Option<usize>,
    integrand_hidden: Option<Vec<usize>>,
    steps: Option<usize>,
}

impl SourceKeys {
    /// The same with flags over them.
    pub(super) fn with(self, flags: &SourceFlags) -> Self {
        let flags = flags.clone();
        Self {
            source: flags.source.or(self.source),
            estimator: flags.estimator.or(self.estimator),
            domain: flags.domain.or(self.domain),
            symmetric: flags.symmetric.or(self.symmetric),
            k: flags.k.or(self.k),
            samples: flags.samples.or(self.samples),
            levels: flags.levels.or(self.levels),
            base: flags.base.or(self.base),
            ..self
        }
    }
}

/// The keys of `[source]`.
pub(super) fn keys() -> Vec<String> {
    let named = ["source", "estimator", "recognition", "domain", "symmetric"];
    let listed = LADDER_KEYS.iter().chain(&SINGLE_KEYS).map(|(key, _)| *key);
    let mut keys: Vec<String> = named.into_iter().chain(listed).map(str::to_owned).collect();
    keys.sort();
    keys.dedup();
    keys
}

/// One source and how it is fitted, as the library takes them.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
struct Single {
    model: SourceConfig,
    fit: SingleConfig,
}

/// The form of stage 2.
#[derive(Clone, Debug, PartialEq)]
enum Form {
    /// The ladder's settings, also those of particles.
    Ladder(Box<LadderConfig>),
    Single(Box<Single>),
}

/// Settings of stage 2 before the names of the columns are known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SourceSettings {
    choice: SourceChoice,
    form: Form,
    domain: Option<String>,
    symmetric: Option<String>,
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            choice: SourceChoice::Auto,
            form: Form::Ladder(Box::default()),
            domain: None,
            symmetric: None,
        }
    }
}

/// Stage 2, checked against the data.
pub(crate) enum Stage2 {
    /// The ladder.
    Ladder(Box<LadderConfig>),
    /// Particles and a flow fitted to them, with the ladder's settings for both.
    Particles(Box<(LadderConfig, Model)>),
    /// One source.
    Single(Box<SingleStage>),
    /// The set behind a few observations.
    Few(Box<FewStage>),
}

/// A flow for the x that may have produced a few observations.
pub(crate) struct FewStage {
    pub(crate) model: Model,
    /// The law of the pairs' x, as far as means and deviations tell.
    pub(crate) prior: Model,
    /// Its training, and the samples behind its log p(y).
    pub(crate) ladder: LadderConfig,
    /// What was chosen for the user.
    pub(crate) note: String,
}

/// One source, where it starts, and how it is fitted.
pub(crate) struct SingleStage {
    pub(crate) name: String,
    pub(crate) model: Model,
    pub(crate) config: SourceConfig,
    pub(crate) fit: SingleConfig,
    /// What was chosen for the user, if anything was.
    pub(crate) note: Option<String>,
}

impl SourceSettings {
    /// The preset's settings with these keys over them.
    pub(super) fn resolve(preset: Preset, keys: SourceKeys) -> Result<Self> {
        let choice = keys.source.unwrap_or(match preset {
            Preset::Fast => SourceChoice::Auto,
            Preset::Paper => SourceChoice::Umnn,
        });
        let mut table = given(&keys)?;
        for named in ["source", "domain", "symmetric"] {
            table.remove(named);
        }
        let form = match kind(choice) {
            None => {
                let keys = ladder_keys(choice);
                let ladder = set_all(LadderConfig::default(), &keys, &table, choice)?;
                Form::Ladder(Box::new(ladder))
            }
            Some(kind) => {
                let estimator = estimator(keys.estimator.unwrap_or(EstimatorName::Mc));
                let mut start = single(preset, kind, estimator);
                match keys.recognition {
                    Some(RecognitionName::Spline) => {
                        start.fit.recognition = RecognitionConfig::default()
                    }
                    Some(RecognitionName::Umnn) => {
                        start.fit.recognition = RecognitionConfig::paper()
                    }
                    None => {}
                }
                table.remove("estimator");
                table.remove("recognition");
                let single = set_all(start, &SINGLE_KEYS, &table, choice)?;
                single.fit.check()?;
                Form::Single(Box::new(single))
            }
        };
        let given = |value: Option<String>| value.filter(|value| value != "none");
        Ok(Self {
            choice,
            form,
            domain: given(keys.domain),
            symmetric: given(keys.symmetric),
        })
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        let mut settings = match &self.form {
            Form::Ladder(ladder) => serde_json::json!(ladder),
            Form::Single(single) => serde_json::json!(single),
        };
        settings["source"] = serde_json::json!(self.choice);
        settings["domain"] = serde_json::json!(self.domain);
        settings["symmetric"] = serde_json::json!(self.symmetric);
        settings
    }
}

fn ladder_keys(choice: SourceChoice) -> Vec<(&'static str, &'static [&'static str])> {
    let particles = choice == SourceChoice::Particles;
    let unused = |key: &str| particles && NOT_OF_PARTICLES.contains(&key);
    let keys = LADDER_KEYS.into_iter();
    keys.filter(|(key, _)| !unused(key)).collect()
}

/// The library's name of a single source.
fn kind(choice: SourceChoice) -> Option<SourceKind> {
    Some(match choice {
        SourceChoice::Auto | SourceChoice::Particles => return None,
        SourceChoice::Affine => SourceKind::Affine,
        SourceChoice::AffineFull => SourceKind::AffineFull,
        SourceChoice::Coupling => SourceKind::Coupling,
        SourceChoice::Spline => SourceKind::Spline,
        SourceChoice::Umnn => SourceKind::Umnn,
        SourceChoice::Mlp => SourceKind::Mlp,
    })
}

fn estimator(name: EstimatorName) -> EstimatorKind {
    match name {
        EstimatorName::Mc => EstimatorKind::Mc,
        EstimatorName::Roulette => EstimatorKind::Roulette,
        EstimatorName::Elbo => EstimatorKind::Elbo,
        EstimatorName::Iw => EstimatorKind::Iw,
    }
}

fn estimator_name(kind: EstimatorKind) -> EstimatorName {
    match kind {
        EstimatorKind::Mc => EstimatorName::Mc,
        EstimatorKind::Roulette => EstimatorName::Roulette,
        EstimatorKind::Elbo => EstimatorName::Elbo,
        EstimatorKind::Iw => EstimatorName::Iw,
    }
}

fn single(preset: Preset, kind: SourceKind, estimator: EstimatorKind) -> Single {
    match preset {
        Preset::Fast => Single {
            model: SingleConfig::source(estimator, kind),
            fit: SingleConfig::fast(estimator),
        },
        Preset::Paper => {
            let mut fit = SingleConfig::paper(estimator);
            if kind == SourceKind::Coupling {
                // The paper's collider study.
                (fit.train.batch, fit.train.epochs) = (256, 10);
            }
            Single {
                model: SingleConfig::paper_source(estimator, kind),
                fit,
            }
        }
    }
}

/// Sets every given key; one that is not among `keys` is refused.
fn set_all<T: Serialize + for<'a> Deserialize<'a>>(
    start: T,
    keys: &[(&str, &[&str])],
    given: &Table,
    choice: SourceChoice,
) -> Result<T> {
    let mut table = Table::try_from(start)?;
    for (key, value) in given {
        let path = keys.iter().find(|(known, _)| known == key);
        let Some(place) = path.and_then(|(_, path)| place(&mut table, path)) else {
            return Err(Failure::input(
                format!("`{key}` is no setting of source = {}", quoted(choice)),
                "leave it out, or choose another source; `neb config source --source KIND` lists the settings of each",
            ));
        };
        *place = match (key.as_str(), value.as_str()) {
            ("schedule", Some(name)) => schedule(name),
            _ => value.clone(),
        };
    }
    Ok(table.try_into()?)
}

impl Config {
    /// Stage 2 for pairs' x and so many observations, checked.
    pub(crate) fn stage2(&self, x: &Group, observations: usize) -> Result<Stage2> {
        let settings = &self.source;
        let symmetric = columns::symmetric(settings.symmetric.as_deref(), x)?;
        let domain = columns::domain(settings.domain.as_deref(), x)?;
        let build = |config: &SourceConfig| -> neb::Result<Model> {
            config.build_from_points(x.values.view(), &x.names, self.seed)
        };
        let spline = |ladder: &LadderConfig| SourceConfig {
            layers: ladder.flow.layers,
            hidden: ladder.flow.hidden.clone(),
            bins: ladder.flow.bins,
            bound: ladder.flow.bound,
            symmetric: symmetric.clone(),
            domain: domain.clone(),
            ..SourceConfig::new(SourceKind::Spline)
        };
        match &settings.form {
            Form::Ladder(ladder)
                if settings.choice == SourceChoice::Auto && observations < FEW_OBSERVATIONS =>
            {
                ladder.flow.train.check()?;
                let prior = SourceConfig {
                    domain: domain.clone(),
                    ..SourceConfig::new(SourceKind::Affine)
                };
                Ok(Stage2::Few(Box::new(FewStage {
                    prior: build(&prior)?,
                    model: build(&spline(ladder))?,
                    ladder: (**ladder).clone(),
                    note: format!(
                        "{observations} observation{} too few to choose between sources: the source is the x that may have produced \
                         them, given the pairs' x; `--source KIND` chooses another",
                        if observations == 1 { " is" } else { "s are" }
                    ),
                })))
            }
            Form::Ladder(ladder) if settings.choice == SourceChoice::Auto => {
                let ladder = LadderConfig {
                    symmetric,
                    domain,
                    ..(**ladder).clone()
                };
                ladder.check(observations, x.values.rows())?;
                Ok(Stage2::Ladder(Box::new(ladder)))
            }
            Form::Ladder(ladder) => {
                ladder.flow.train.check()?;
                let config = spline(ladder);
                let ladder = LadderConfig {
                    symmetric: config.symmetric.clone(),
                    domain: config.domain.clone(),
                    ..(**ladder).clone()
                };
                Ok(Stage2::Particles(Box::new((ladder, build(&config)?))))
            }
            Form::Single(single) => {
                let config = SourceConfig {
                    symmetric,
                    domain,
                    ..single.model.clone()
                };
                let model = build(&config)?;
                single.fit.check_source(&model)?;
                let bounded = config.base == neb::source::Base::Uniform;
                if bounded && single.fit.estimator.bound().is_some() {
                    return Err(Failure::input(
                        "elbo and iw need a source whose density is nowhere zero, and a uniform law's is",
                        "use --base normal, or --estimator mc",
                    ));
                }
                Ok(Stage2::Single(Box::new(SingleStage {
                    name: quoted(settings.choice).trim_matches('"').to_owned(),
                    model,
                    config,
                    fit: single.fit.clone(),
                    note: None,
                })))
            }
        }
    }

    pub(super) fn push_source(&self, lines: &mut Vec<String>) {
        lines.extend([String::new(), "[source]".to_owned()]);
        let settings = &self.source;
        let mut push = |key: &str, value: &str, otherwise: &str| {
            let origin = self.origins.get(&format!("source.{key}"));
            let origin = origin.map_or(otherwise, String::as_str);
            lines.push(format!("{:<32} # {origin}", format!("{key} = {value}")));
        };
        push("source", &quoted(settings.choice), "preset");
        let (table, keys) = match &settings.form {
            Form::Ladder(ladder) => (Table::try_from(&**ladder), ladder_keys(settings.choice)),
            Form::Single(single) => {
                let name = estimator_name(single.fit.estimator);
                push("estimator", &quoted(name), "default");
                if single.fit.estimator.bound().is_some() {
                    let recognition = match single.fit.recognition {
                        RecognitionConfig::Spline { .. } => RecognitionName::Spline,
                        RecognitionConfig::Umnn { .. } => RecognitionName::Umnn,
                    };
                    push("recognition", &quoted(recognition), "preset");
                }
                (Table::try_from(single), SINGLE_KEYS.to_vec())
            }
        };
        let table = table.unwrap_or_default();
        for (key, path) in keys {
            if let Some(value) = get(&table, path) {
                push(key, &value, "default");
            }
        }
        let text =
            |given: &Option<String>| Value::from(given.as_deref().unwrap_or("none")).to_string();
        push("domain", &text(&settings.domain), "default");
        push("symmetric", &text(&settings.symmetric), "default");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str) -> Result<SourceSettings> {
        SourceSettings::resolve(Preset::Fast, toml::from_str(text)?)
    }

    #[test]
    fn keys_reach_the_library_s_settings() {
        assert_eq!(resolve("").unwrap(), SourceSettings::default());
        let text =
            "affine-k = 11\npull = 1.5\nflow-epochs = 2\nflow-hidden = [3]\nflow-bound = 2.5";
        let mut expected = LadderConfig {
            affine_k: 11,
            pull: 1.5,
            ..LadderConfig::default()
        };
        expected.flow.train.epochs = 2;
        expected.flow.hidden = vec![3];
        expected.flow.bound = 2.5;
        assert_eq!(
            resolve(text).unwrap().form,
            Form::Ladder(Box::new(expected))
        );

        let text = "source = \"umnn\"\nestimator = \"iw\"\nk = 9\nhidden = [5]\nrate = 1e-3\nschedule = \"constant\"";
        let mut expected = Single {
            model: SingleConfig::source(EstimatorKind::Iw, SourceKind::Umnn),
            fit: SingleConfig::fast(EstimatorKind::Iw),
        };
        expected.model.hidden = vec![5];
        expected.fit.k = 9;
        expected.fit.train.rate = 1e-3;
        expected.fit.train.schedule = neb::nn::schedule::Schedule::Constant;
        assert_eq!(
            resolve(text).unwrap().form,
            Form::Single(Box::new(expected))
        );
    }

    /// The paper's: UMNN by mc, K = 1024, batch 128, Adam at 1e-4, 100 epochs or 300, patience 10 but for roulette.
    #[test]
    fn the_paper_s_preset() {
        let paper = |text: &str| {
            let keys = toml::from_str(text).unwrap();
            match SourceSettings::resolve(Preset::Paper, keys).unwrap().form {
                Form::Single(single) => *single,
                Form::Ladder(_) => panic!("the paper has no ladder"),
            }
        };
        let numbers = |single: &Single| {
            let train = &single.fit.train;
            (
                single.fit.k,
                train.batch,
                train.rate,
                train.epochs,
                train.patience,
            )
        };
        let mc = paper("");
        assert_eq!(numbers(&mc), (1024, 128, 1e-4, 100, 10));
        assert_eq!((mc.model.kind, mc.model.layers), (SourceKind::Umnn, 6));
        assert_eq!(mc.model.hidden, [75; 3]);
        assert_eq!(numbers(&paper("estimator = \"roulette\"")).4, 0);
        assert_eq!(
            numbers(&paper("estimator = \"iw\"")),
            (128, 128, 1e-4, 300, 10)
        );
        let collider = paper("source = \"coupling\"");
        assert_eq!(numbers(&collider), (1024, 256, 1e-4, 10, 10));
        assert_eq!(
            (collider.model.layers, &collider.model.hidden[..]),
            (6, &[32, 32][..])
        );
        assert_eq!(paper("source = \"mlp\"").model.hidden, [100; 3]);
    }

    #[test]
    fn keys_of_another_source_are_refused() {
        for (text, words) in [
            ("k = 5", "`k` is no setting of source = \"auto\""),
            ("estimator = \"iw\"", "`estimator` is no setting"),
            (
                "source = \"umnn\"\naffine-k = 5",
                "`affine-k` is no setting",
            ),
            ("source = \"particles\"\npull = 1.0", "`pull` is no setting"),
            ("source = \"umnn\"\nk = 0", "k is 0"),
        ] {
            let message = resolve(text).unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
