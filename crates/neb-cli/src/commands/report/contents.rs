//! What the page says: checks, figures with captions, tables.

mod pictures;
mod posterior;
mod tables;

use anyhow::Result;
use neb::check::{CompareOptions, Estimate, Sample, compare};
use neb::source::Width;
use neb::{Likelihood, Matrix, Noise, Purpose};
use neb_report::{Column, Facts, Histogram, Report, verdict};

pub(in crate::commands) use self::pictures::calibration_caption;
pub(super) use self::pictures::ranks_caption;
pub(super) use self::tables::row;

use super::material::{Found, Material};

/// The figures a report may have.
pub(super) const FIGURES: [&str; 8] = [
    "push-forward",
    "source",
    "calibration",
    "ranks",
    "posterior",
    "training-surrogate",
    "training-source",
    "effective-samples",
];
/// Address of the noise of these draws, apart from that of fitting, sampling and simulating with the same seed.
const STEP: u64 = 1 << 34;
/// Draws of the source behind the figures.
const DRAWS: usize = 100_000;
/// Most rows of a sample that a classifier is given.
const COMPARED: usize = 20_000;

/// Results that are more than words.
pub(super) struct Judged {
    pub(super) y_auc: Option<Estimate>,
    pub(super) x_auc: Option<Estimate>,
}

/// Draws of the source and their push-forward, in the user's units.
struct Draws {
    x: Matrix,
    y: Matrix,
}

impl Draws {
    fn new(material: &Material) -> Self {
        let seed = material.seed;
        let noise = Noise::new(seed, Purpose::SourceSample, STEP);
        let x = material.source.source().sample(DRAWS, noise);
        let y = material
            .surrogate
            .sample(x.view(), Noise::new(seed, Purpose::DrawY, STEP));
        Self {
            x: material.surrogate.x_transforms().inverse(x),
            y: material.surrogate.y_transforms().inverse(y),
        }
    }
}

/// Judges the run and draws its figures.
pub(super) fn report(material: &Material) -> Result<(Report, Judged)> {
    let draws = Draws::new(material);
    let (mut report, judged) = judge(material, &draws, COMPARED)?;
    report.sections = pictures::sections(material, &draws);
    Ok((report, judged))
}

/// The same without its figures, judged from at most `compared` rows.
pub(super) fn without_pictures(material: &Material, compared: usize) -> Result<(Report, Judged)> {
    judge(material, &Draws::new(material), compared)
}

fn judge(material: &Material, draws: &Draws, compared: usize) -> Result<(Report, Judged)> {
    let auc = |draws: &Matrix, sample: Sample| auc(draws, sample, compared, material.seed);
    let y_auc = match &material.observations {
        Found::Here(seen) => Some(auc(&draws.y, seen.values.view().into())?),
        Found::Absent(_) => None,
    };
    let x_auc = match &material.truth {
        Some(truth) => {
            let sample = Sample {
                rows: truth.x.values.view(),
                weights: truth.weights.as_deref(),
            };
            Some(auc(&draws.x, sample)?)
        }
        None => None,
    };
    let verdict = verdict(&facts(material, draws, y_auc, x_auc));
    let report = Report {
        title: format!("Report on the run {}", material.name),
        verdict,
        sections: Vec::new(),
        tables: tables::tables(material, y_auc, x_auc),
        config: material.config.clone(),
    };
    Ok((report, Judged { y_auc, x_auc }))
}

/// How well a classifier tells as many draws from a sample.
fn auc(draws: &Matrix, sample: Sample, compared: usize, seed: u64) -> Result<Estimate> {
    let rows = sample.rows.rows().min(compared);
    let sample = Sample {
        rows: sample.rows.slice(0..rows),
        weights: sample.weights.map(|weights| &weights[..rows]),
    };
    let options = CompareOptions {
        seed,
        ..CompareOptions::default()
    };
    let draws = draws.view().slice(0..rows.min(draws.rows()));
    Ok(compare(draws, sample, &options)?.auc)
}

fn facts<'a>(
    material: &'a Material,
    draws: &Draws,
    y_auc: Option<Estimate>,
    x_auc: Option<Estimate>,
) -> Facts<'a> {
    let summary = &material.summary;
    let winner = &summary.source.winner;
    let rung = summary
        .source
        .rungs
        .iter()
        .find(|rung| rung.name == *winner);
    let outside = match &material.observations {
        Found::Here(seen) => {
            let (ranges, of_y) = (
                material.surrogate.y_range(),
                material.surrogate.y_transforms(),
            );
            let ranges = of_y.user_ranges(ranges);
            let shares = (0..seen.names.len())
                .map(|column| share_outside(&seen.values, column, ranges[column]));
            seen.names.iter().cloned().zip(shares).collect()
        }
        Found::Absent(_) => Vec::new(),
    };
    let last_gains = material
        .trainings
        .iter()
        .filter(|t| t.stage == "surrogate" && t.name == summary.surrogate.winner)
        .filter_map(|t| Some((t.name.clone(), t.last_gain()?)))
        .collect();
    Facts {
        surrogate: summary.surrogate.winner.clone(),
        source: winner.clone(),
        pairs: summary.rows.pairs,
        observations: summary.rows.observations,
        y_auc,
        chi_squares: chi_squares(material, draws),
        x_auc,
        outside,
        extrapolated: material.particles.as_ref().map(|particles| {
            let ranges = crate::commands::climbing::ranges(particles.values.view());
            let beyond = |row: &usize| {
                let mut values = draws.x.row(*row).iter().zip(&ranges);
                values.any(|(value, [low, high])| !(*low..=*high).contains(value))
            };
            (0..DRAWS).filter(beyond).count() as f64 / DRAWS as f64
        }),
        effective_samples: rung.and_then(|rung| rung.effective_samples),
        last_gains,
        widening: match summary.source.width {
            Some(Width::Noise(scale)) => Some(f64::from(scale)),
            _ => None,
        },
        calibration: material
            .calibration
            .as_ref()
            .map(|calibration| (calibration, &material.x_names[..])),
        warnings: other_warnings(material),
    }
}

/// χ² of each column, as in the figure of the push-forward.
fn chi_squares(material: &Material, draws: &Draws) -> Vec<(String, f64, usize)> {
    let Found::Here(seen) = &material.observations else {
        return Vec::new();
    };
    let each = seen.names.iter().enumerate().map(|(number, name)| {
        let observed = Column::of(seen.values.view().into(), number);
        let model = Column::of(draws.y.view().into(), number);
        let edges = Histogram::edges_for(&observed);
        let observed = Histogram::new(&observed, edges.clone());
        let (square, bins) = observed.chi_square(&Histogram::new(&model, edges));
        (name.clone(), square, bins)
    });
    each.collect()
}

/// Warnings of the fit about what the verdict does not measure itself.
fn other_warnings(material: &Material) -> Vec<String> {
    let measured = |warning: &&String| {
        let seen = matches!(material.observations, Found::Here(_));
        warning.contains("effective samples") || seen && warning.contains("outside the range")
    };
    let warnings = material.summary.warnings.iter();
    warnings.filter(|w| !measured(w)).cloned().collect()
}

/// Share of a column's values outside a range.
fn share_outside(values: &Matrix, column: usize, [low, high]: [f32; 2]) -> f64 {
    let outside = |row: &usize| !(low..=high).contains(&values.row(*row)[column]);
    (0..values.rows()).filter(outside).count() as f64 / values.rows() as f64
}
