//! What a report is made of: the files of a run, and the data they came from where these are at hand.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use neb::Matrix;
use neb::check::{Calibration, Sample};
use neb::source::{Model, Width};

use neb::surrogate::Surrogate;
use neb_data::{Dataset, Selection};
use serde::Deserialize;

use super::history::{self, Training};
use super::unusable;
use crate::args;
use crate::commands::summary::DataFiles;
use crate::failure::Failure;
use crate::files::{self, Group, PairsFile};
use crate::run_folder::{CALIBRATION, CONFIG, HISTORY, PARTICLES, SUMMARY};

/// Everything there is.
pub(super) struct Material {
    pub(super) name: String,
    pub(super) summary: Summary,
    pub(super) trainings: Vec<Training>,
    pub(super) config: String,
    pub(super) surrogate: Surrogate,
    pub(super) source: Model,
    /// Names of the columns of x.
    pub(super) x_names: Vec<String>,
    /// x of the pairs.
    pub(super) particles: Option<Group>,
    pub(super) calibration: Option<Calibration>,
    pub(super) observations: Found<Observed>,
    pub(super) pairs: Found<PairsFile>,
    pub(super) truth: Option<Truth>,
    /// Seed of the draws behind figures and checks.
    pub(super) seed: u64,
}

/// Data that may have been moved or removed since the fit.
pub(super) enum Found<T> {
    Here(T),
    /// Why not, as a sentence.
    Absent(String),
}

/// Rows of the true source.
pub(super) struct Truth {
    pub(super) x: Group,
    pub(super) weights: Option<Vec<f32>>,
    /// y of the same rows.
    pub(super) y: Option<Matrix>,
}

/// What a report reads of `summary.json`; older runs lack some of it.
#[derive(Deserialize)]
pub(super) struct Summary {
    pub(super) versions: Versions,
    pub(super) seed: u64,
    pub(super) rows: Counts,
    pub(super) surrogate: SurrogateSummary,
    pub(super) source: SourceSummary,
    #[serde(default)]
    pub(super) warnings: Vec<String>,
    pub(super) seconds: f64,
    pub(super) data: Option<DataFiles>,
}

#[derive(Deserialize)]
pub(super) struct Versions {
    pub(super) neb: String,
}

#[derive(Deserialize)]
pub(super) struct Counts {
    pub(super) pairs: usize,
    pub(super) observations: usize,
}

#[derive(Deserialize)]
pub(super) struct SurrogateSummary {
    pub(super) winner: String,
    pub(super) from: Option<PathBuf>,
    #[serde(default)]
    pub(super) tried: Vec<Tried>,
}

#[derive(Deserialize)]
pub(super) struct Tried {
    pub(super) name: String,
    pub(super) parameters: usize,
    pub(super) held_out: f64,
    pub(super) best_epoch: usize,
    pub(super) seconds: f64,
}

#[derive(Deserialize)]
pub(super) struct SourceSummary {
    pub(super) winner: String,
    #[serde(default)]
    pub(super) reason: String,
    pub(super) width: Option<Width>,
    #[serde(default)]
    pub(super) rungs: Vec<Rung>,
}

#[derive(Deserialize)]
pub(super) struct Rung {
    pub(super) name: String,
    pub(super) held_out: Option<f64>,
    pub(super) gain: Option<f64>,
    pub(super) standard_error: Option<f64>,
    pub(super) kept: bool,
    pub(super) effective_samples: Option<f64>,
    pub(super) seconds: f64,
}

impl Material {
    /// Reads a run, and the data named in the arguments or else in the run.
    pub(super) fn read(args: &args::Report, seed: Option<u64>) -> Result<Self> {
        let folder = &args.run;
        let surrogate = files::load_surrogate(folder)?;
        let (source, x_names, _) = files::load_source(folder)?;
        let text = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|error| unusable(&path, error))
        };
        let summary: Summary = serde_json::from_str(&text(SUMMARY)?)
            .map_err(|error| unusable(&folder.join(SUMMARY), error))?;
        let particles = folder.join(PARTICLES);
        let particles = match particles.exists() {
            true => Some(files::read_points(&particles, None)?),
            false => None,
        };
        let data = Data {
            args,
            recorded: summary.data.as_ref(),
        };
        Ok(Self {
            name: name_of(folder),
            trainings: history::read(&folder.join(HISTORY))?,
            config: text(CONFIG)?,
            calibration: calibration(&folder.join(CALIBRATION))?,
            particles,
            observations: data.observations(&surrogate)?,
            pairs: data.pairs(&surrogate)?,
            truth: truth(args, &surrogate)?,
            seed: seed.unwrap_or(summary.seed),
            summary,
            surrogate,
            source,
            x_names,
        })
    }
}

/// The last part of a folder's path, also of `.`.
pub(super) fn name_of(folder: &Path) -> String {
    let whole = folder.canonicalize();
    let name = whole.as_deref().unwrap_or(folder).file_name();
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// Calibration of the posteriors, where it was checked.
pub(in crate::commands) fn calibration(path: &Path) -> Result<Option<Calibration>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let calibration = serde_json::from_str(&text).map_err(|error| unusable(path, error))?;
    Ok(Some(calibration))
}

/// The observations.
pub(super) struct Observed {
    pub(super) y: Group,
    /// Their event weights, if the file has any.
    pub(super) weights: Option<Vec<f32>>,
}

impl Observed {
    /// With their weights.
    pub(super) fn sample(&self) -> Sample<'_> {
        Sample {
            rows: self.y.values.view(),
            weights: self.weights.as_deref(),
        }
    }

    /// The weight of each row: 1 where there are none.
    pub(super) fn each_weight(&self) -> Cow<'_, [f32]> {
        match &self.weights {
            Some(weights) => Cow::Borrowed(weights),
            None => Cow::Owned(vec![1.0; self.y.values.rows()]),
        }
    }
}

/// Where the data are: as typed, else as the run remembers.
struct Data<'a> {
    args: &'a args::Report,
    recorded: Option<&'a DataFiles>,
}

impl Data<'_> {
    /// A file that is there, or why there is none. A file that was typed must be there.
    fn file(
        &self,
        typed: Option<&PathBuf>,
        recorded: Option<&PathBuf>,
        flag: &str,
    ) -> Found<PathBuf> {
        if let Some(typed) = typed {
            return Found::Here(typed.clone());
        }
        match recorded {
            Some(path) if path.exists() => Found::Here(path.clone()),
            Some(path) => Found::Absent(format!(
                "{} is no longer there; {flag} FILE names another.",
                path.display()
            )),
            None => Found::Absent(format!(
                "The run does not say where they are; {flag} FILE does."
            )),
        }
    }

    fn columns(&self) -> args::Columns {
        let recorded = |of: fn(&DataFiles) -> &Option<String>| {
            self.recorded.and_then(|recorded| of(recorded).clone())
        };
        let typed = &self.args.columns;
        args::Columns {
            x: typed.x.clone().or_else(|| recorded(|data| &data.x)),
            y: typed.y.clone().or_else(|| recorded(|data| &data.y)),
        }
    }

    fn observations(&self, surrogate: &Surrogate) -> Result<Found<Observed>> {
        let recorded = self.recorded.map(|data| &data.observations);
        let typed = self.args.observations.as_ref();
        Ok(match self.file(typed, recorded, "--observations") {
            Found::Here(path) => {
                let columns = self.columns();
                let (y, weights) = files::read_observations(&path, columns.y.as_deref())?;
                files::check_columns("y", &path, &y, surrogate)?;
                Found::Here(Observed { y, weights })
            }
            Found::Absent(why) => Found::Absent(why),
        })
    }

    fn pairs(&self, surrogate: &Surrogate) -> Result<Found<PairsFile>> {
        let recorded = self.recorded.map(|data| &data.pairs);
        let typed = self.args.pairs.as_ref();
        Ok(match self.file(typed, recorded, "--pairs") {
            Found::Here(path) => {
                let pairs = PairsFile::read(&path, &self.columns())?;
                files::check_columns("x", &path, &pairs.x, surrogate)?;
                files::check_columns("y", &path, &pairs.y, surrogate)?;
                Found::Here(pairs)
            }
            Found::Absent(why) => Found::Absent(why),
        })
    }
}

fn truth(args: &args::Report, surrogate: &Surrogate) -> Result<Option<Truth>> {
    let Some(path) = &args.truth else {
        return Ok(None);
    };
    let (x, weights) = files::read_weighted(path, args.columns.x.as_deref(), None)?;
    files::check_columns("x", path, &x, surrogate)?;
    let selection = match &args.columns.y {
        Some(names) => Selection::named("y", names),
        None => Selection::new("y"),
    };
    let y = match Dataset::open(path)?.optional_group(&selection)? {
        Some(table) => {
            let y = Group::new(table);
            files::check_columns("y", path, &y, surrogate)?;
            if y.values.rows() != x.values.rows() {
                return Err(Failure::input(
                    format!(
                        "{}: x has {} rows, y has {}",
                        path.display(),
                        x.values.rows(),
                        y.values.rows()
                    ),
                    "give x and y of the same events, row by row, or x alone",
                ));
            }
            Some(y.values)
        }
        None => None,
    };
    Ok(Some(Truth { x, weights, y }))
}
