//! The report on an unfolding, from the files of its folder alone; where the files of simulation and truth are still there,
//! they are drawn too.

mod pictures;
mod tables;

use std::fs;
use std::path::Path;

use anyhow::Result;
use neb::check::Calibration;
use neb_data::Spectrum;
use neb_report::{Report, UnfoldingFacts, unfolding_verdict};

use super::contents::Judged;
use super::material::{calibration, name_of};
use super::unusable;
use crate::args;
use crate::commands::unfold::{COMMAND, DENSITY, SAMPLES, SCORE, SPECTRA, Score, Summary};
use crate::failure::Failure;
use crate::files::{self, Group, PairsFile};
use crate::run_folder::{CALIBRATION, CONFIG, SUMMARY};

/// Whether such a report may have a figure of this name.
pub(super) fn draws(figure: &str) -> bool {
    let names = ["spectra", "correlations", "folded", "trust"];
    names.contains(&figure) || figure.starts_with(JOINT)
}

/// What the figures of spectra in two columns begin with.
const JOINT: &str = "joint-";

/// Everything there is.
struct Material {
    name: String,
    summary: Summary,
    config: String,
    /// Densities: of every column, then of pairs.
    spectra: Vec<Spectrum>,
    score: Option<Score>,
    /// Draws of the smooth source.
    draws: Group,
    /// x of the simulation and of the truth with their weights, where the files are at hand.
    simulated: Option<(Group, Option<Vec<f32>>)>,
    truth: Option<(Group, Option<Vec<f32>>)>,
    calibration: Option<Calibration>,
}

/// Whether a folder is that of an unfolding.
pub(super) fn is_one(run: &Path) -> bool {
    let text = fs::read_to_string(run.join(SUMMARY)).unwrap_or_default();
    let summary: Option<serde_json::Value> = serde_json::from_str(&text).ok();
    summary.is_some_and(|summary| summary["command"] == COMMAND)
}

/// Judges an unfolding and draws its figures.
pub(super) fn report(args: &args::Report) -> Result<(Report, Judged)> {
    if args.truth.is_some() {
        return Err(Failure::input(
            format!(
                "{}: an unfolding is scored against a truth when it is made",
                args.run.display()
            ),
            "pass --truth to `neb unfold`",
        ));
    }
    let material = Material::read(args)?;
    let bottom_line = &material.summary.found.bottom_line;
    let judged = Judged {
        y_auc: Some(bottom_line.auc),
        x_auc: material.score.as_ref().map(|score| score.weighted),
    };
    let report = Report {
        title: format!("Report on the unfolding {}", material.name),
        verdict: unfolding_verdict(&material.facts()),
        sections: pictures::sections(&material),
        tables: tables::made(&material),
        config: material.config.clone(),
    };
    Ok((report, judged))
}

impl Material {
    fn read(args: &args::Report) -> Result<Self> {
        let folder = &args.run;
        let text = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).map_err(|error| unusable(&path, error))
        };
        let damaged = |name: &str, error| unusable(&folder.join(name), error);
        let summary: Summary =
            serde_json::from_str(&text(SUMMARY)?).map_err(|error| damaged(SUMMARY, error))?;
        let score: Option<Score> = match folder.join(SCORE).exists() {
            true => {
                Some(serde_json::from_str(&text(SCORE)?).map_err(|error| damaged(SCORE, error))?)
            }
            false => None,
        };
        let spectra = summary.spectra.iter().map(|written| {
            let name = format!("{}{DENSITY}.npz", written.name);
            Ok(neb_data::read_spectrum(
                folder.join(SPECTRA).join(name),
                &written.columns,
            )?)
        });
        let spectra = spectra.collect::<Result<_>>()?;
        let recorded = &summary.files;
        let columns = args::Columns {
            x: args.columns.x.clone().or(recorded.x.clone()),
            y: args.columns.y.clone().or(recorded.y.clone()),
        };
        let read = |path: &Path| {
            let pairs = PairsFile::read(path, &columns)?;
            let weights = pairs.weights(None).unwrap_or_default();
            Ok((pairs.x, weights))
        };
        // A file that was typed must be there.
        let simulated = match &args.pairs {
            Some(path) => Some(read(path)?),
            None => at_hand(&recorded.pairs, read),
        };
        let truth = score.as_ref().and_then(|score| {
            at_hand(&score.truth, |path| {
                files::read_weighted(path, score.x.as_deref(), None)
            })
        });
        let has_columns = |read: &(Group, _)| read.0.names.len() == summary.x_names.len();
        Ok(Self {
            name: name_of(folder),
            config: text(CONFIG)?,
            draws: files::read_points(&folder.join(SAMPLES), None)?,
            calibration: calibration(&folder.join(CALIBRATION))?,
            spectra,
            score,
            simulated: simulated.filter(has_columns),
            truth: truth.filter(has_columns),
            summary,
        })
    }

    fn facts(&self) -> UnfoldingFacts<'_> {
        let (summary, found) = (&self.summary, &self.summary.found);
        let columns = found.bottom_line.columns.iter();
        let discriminators = self.score.iter().flat_map(|score| &score.columns);
        UnfoldingFacts {
            events: [summary.simulated, summary.reconstructed, summary.data],
            produced: summary.produced,
            columns: summary.x_names.len(),
            y_auc: Some(found.bottom_line.auc),
            y_auc_before: Some(found.bottom_line.auc_before),
            chi_squares: columns
                .map(|column| (column.name.clone(), column.chi_square, column.bins))
                .collect(),
            trust: Some(&found.trust),
            outside: found.outside_shares.clone(),
            effective: [summary.effective_weighted, summary.effective_data],
            negative: summary.negative_weights as f64 / summary.simulated as f64,
            replicas: summary.replicas,
            x_auc: self.score.as_ref().map(|score| score.weighted),
            discriminators: discriminators
                .map(|column| (column.name.clone(), column.weighted, column.ibu))
                .collect(),
            calibration: self
                .calibration
                .as_ref()
                .map(|calibration| (calibration, &summary.x_names[..])),
        }
    }
}

/// What is read of a file that may have moved since; whatever is wrong with it now, the report does without.
fn at_hand<T>(path: &Path, read: impl Fn(&Path) -> Result<T>) -> Option<T> {
    path.exists().then(|| read(path).ok()).flatten()
}
