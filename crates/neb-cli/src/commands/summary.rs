//! What a run leaves: `summary.json`, `history.csv`, and the same in words.

use std::path::{Path, PathBuf};

use anyhow::Result;
use neb::source::{Width, save_source};
use neb::surrogate::{Report, Surrogate};
use neb::train::Epoch;
use neb_data::Array;
use serde::{Deserialize, Serialize};

use super::stage2::Learned;
use super::{Session, climbing, training};
use crate::args::Columns;
use crate::files::Group;
use crate::run_folder::{HISTORY, PARTICLES, PartialRun, RECOGNITION, SOURCE, SUMMARY};

/// `summary.json`.
#[derive(Serialize)]
pub(crate) struct Summary {
    versions: Versions,
    seed: u64,
    data: Option<DataFiles>,
    rows: Counts,
    surrogate: SurrogateSummary,
    source: SourceSummary,
    warnings: Vec<String>,
    seconds: f64,
    output: PathBuf,
}

/// The files a run was fitted to, and which of their arrays or columns.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct DataFiles {
    pub(crate) pairs: PathBuf,
    pub(crate) observations: PathBuf,
    /// What was given as x, if anything.
    pub(crate) x: Option<String>,
    /// What was given as y, if anything.
    pub(crate) y: Option<String>,
}

impl DataFiles {
    /// Files that are found again from another folder.
    pub(crate) fn new(pairs: &Path, observations: &Path, columns: &Columns) -> Self {
        let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self {
            pairs: whole(pairs),
            observations: whole(observations),
            x: columns.x.clone(),
            y: columns.y.clone(),
        }
    }
}

#[derive(Serialize)]
struct Versions {
    neb: &'static str,
}

#[derive(Serialize)]
struct Counts {
    pairs: usize,
    observations: usize,
    particles: usize,
}

#[derive(Serialize)]
struct SurrogateSummary {
    winner: String,
    /// Where it was read from; none where it was learned in this run.
    from: Option<PathBuf>,
    reason: Option<String>,
    tried: Vec<Tried>,
}

#[derive(Serialize)]
struct Tried {
    name: String,
    parameters: usize,
    held_out: f64,
    best_epoch: usize,
    seconds: f64,
}

#[derive(Serialize)]
struct SourceSummary {
    winner: String,
    reason: String,
    width: Width,
    effective_particles: Option<f64>,
    particle_iterations: Option<usize>,
    rungs: Vec<RungSummary>,
}

#[derive(Serialize)]
struct RungSummary {
    name: String,
    held_out: f64,
    gain: Option<f64>,
    standard_error: Option<f64>,
    kept: bool,
    effective_samples: Option<f64>,
    seconds: f64,
}

/// What is known when both stages are over.
pub(crate) struct Finished<'a> {
    pub(crate) surrogate: &'a Surrogate,
    /// How it was learned; none where it was read from a file.
    pub(crate) stage1: Option<&'a Report>,
    pub(crate) from: Option<&'a Path>,
    pub(crate) outcome: &'a Learned,
    /// x of the pairs.
    pub(crate) x: &'a Group,
    pub(crate) observations: usize,
    /// The files it was fitted to, if there were any.
    pub(crate) data: Option<DataFiles>,
    pub(crate) seed: u64,
    pub(crate) warnings: Vec<String>,
    pub(crate) seconds: f64,
    pub(crate) output: &'a Path,
}

impl Finished<'_> {
    /// Writes everything but settings and surrogate, moves the run to its place, and says what was found.
    pub(crate) fn write(self, run: PartialRun, session: Session) -> Result<()> {
        let summary = self.save(run, session)?;
        session.output.result(&summary, |summary| {
            let tried = self.stage1.map(|report| training::table(report) + "\n");
            format!(
                "{}{}\n\n{}: {} and {}, from {} pairs and {} observations, seed {}, {:.1} s",
                tried.unwrap_or_default(),
                climbing::table(&self.outcome.report, &self.outcome.reason),
                summary.output.display(),
                summary.surrogate.winner,
                summary.source.winner,
                summary.rows.pairs,
                summary.rows.observations,
                summary.seed,
                summary.seconds
            )
        })
    }

    /// The same without a word but warnings.
    pub(crate) fn save(&self, run: PartialRun, session: Session) -> Result<Summary> {
        let outcome = self.outcome;
        save_source(
            &outcome.source,
            &self.x.names,
            &self.x.transforms,
            &run.path(SOURCE),
        )?;
        if let Some(recognition) = &outcome.recognition {
            let names = self.surrogate.y_names();
            recognition.save(&self.x.names, names, &run.path(RECOGNITION))?;
        }
        let particles = outcome.particles.as_ref();
        let weights = particles.map_or(&[][..], |particles| &particles.weights[..]);
        if particles.is_some() {
            let particles = self.x.values.view().slice(0..weights.len()).to_matrix();
            let particles = self.x.transforms.inverse(particles);
            let arrays = [
                Array::new(
                    "x",
                    &[particles.rows(), particles.cols()],
                    particles.values(),
                )
                .with_names(&self.x.names),
                Array::new("weight", &[weights.len()], weights),
            ];
            neb_data::write(run.path(PARTICLES), true, &arrays)?;
        }
        run.write(HISTORY, history(self.stage1, outcome))?;

        let stage1 = self.stage1;
        let mut warnings = self.warnings.clone();
        climbing::warn(&outcome.warnings, session);
        warnings.extend(outcome.warnings.iter().cloned());
        let summary = Summary {
            versions: Versions {
                neb: env!("CARGO_PKG_VERSION"),
            },
            seed: self.seed,
            data: self.data.clone(),
            rows: Counts {
                pairs: self.x.values.rows(),
                observations: self.observations,
                particles: weights.len(),
            },
            surrogate: SurrogateSummary {
                winner: self.surrogate.model().name(),
                from: self.from.map(Path::to_owned),
                reason: stage1.map(reason),
                tried: stage1.map(tried).unwrap_or_default(),
            },
            source: SourceSummary::new(outcome),
            warnings,
            seconds: self.seconds,
            output: self.output.to_owned(),
        };
        let text = serde_json::to_string_pretty(&summary)?;
        run.write(SUMMARY, format!("{text}\n"))?;
        run.finish()?;
        Ok(summary)
    }
}

impl SourceSummary {
    fn new(outcome: &Learned) -> Self {
        let report = &outcome.report;
        let number = |value: f64| value.is_finite().then_some(value);
        Self {
            winner: report.rungs[report.winner].name.clone(),
            reason: outcome.reason.clone(),
            width: report.width,
            effective_particles: outcome.particles.as_ref().map(|_| report.particles.0),
            particle_iterations: outcome.particles.as_ref().map(|_| report.particles.1),
            rungs: report
                .rungs
                .iter()
                .map(|rung| RungSummary {
                    name: rung.name.clone(),
                    held_out: rung.held_out,
                    gain: number(rung.gain),
                    standard_error: number(rung.standard_error),
                    kept: rung.kept,
                    effective_samples: number(rung.effective_samples),
                    seconds: rung.seconds,
                })
                .collect(),
        }
    }
}

fn reason(report: &Report) -> String {
    let best = report.best();
    match report.margin() {
        Some(margin) => format!(
            "{} has the highest mean log q(y|x) on held-out pairs, by {margin:.4}",
            best.name
        ),
        None => format!("{} was the only candidate", best.name),
    }
}

fn tried(report: &Report) -> Vec<Tried> {
    let each = report.tried.iter().map(|tried| Tried {
        name: tried.name.clone(),
        parameters: tried.parameters,
        held_out: tried.held_out,
        best_epoch: tried.best_epoch,
        seconds: tried.seconds,
    });
    each.collect()
}

/// Every epoch of both stages, with losses: the mean of -log q(y|x) or -log p(y), in the units they were trained in.
fn history(stage1: Option<&Report>, outcome: &Learned) -> String {
    let mut text =
        "stage,rung,epoch,train,held_out,rate,gradient_norm,effective_samples,seconds\n".to_owned();
    let mut epochs = |stage: &str, rung: &str, history: &[Epoch]| {
        for epoch in history {
            text.push_str(&format!(
                "{stage},\"{rung}\",{},{},{},{},{},{},{}\n",
                epoch.epoch,
                epoch.train,
                cell(epoch.held_out),
                epoch.rate,
                epoch.gradient_norm,
                cell(epoch.effective_samples.unwrap_or(f64::NAN)),
                epoch.seconds
            ));
        }
    };
    for tried in stage1.iter().flat_map(|report| &report.tried) {
        epochs("surrogate", &tried.name, &tried.history);
    }
    for rung in &outcome.report.rungs {
        epochs("source", &rung.name, &rung.history);
    }
    let steps = outcome
        .particles
        .iter()
        .flat_map(|particles| &particles.history);
    for (iteration, step) in steps.enumerate() {
        let held_out = step.held_out.map_or(f64::NAN, |value| -value);
        text.push_str(&format!(
            "source,\"particles\",{iteration},{},{},,,,\n",
            -step.train,
            cell(held_out)
        ));
    }
    text
}

/// A number, or nothing where there is none.
fn cell(value: f64) -> String {
    if value.is_nan() {
        String::new()
    } else {
        value.to_string()
    }
}
