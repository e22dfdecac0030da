//! What the page says: checks, figures with captions, tables.

mod pictures;
mod posterior;
mod tables;

use anyhow::Result;
use neb::check::{CompareOptions, Estimate, Sample, compare};
use neb::source::Width;
use neb::unfold::positive_weights;
use neb::{Likelihood, Matrix, Noise, Purpose};
use neb_report::{Column, Extrapolated, Facts, Histogram, Report, verdict};

pub(in crate::commands) use self::pictures::calibration_caption;
pub(super) use self::pictures::ranks_caption;
pub(super) use self::tables::row;

use super::super::climbing;
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
        Found::Here(seen) => {
            let rows = seen.y.values.view();
            let weights = seen.weights.as_deref();
            let weights = weights.map(|own| positive_weights(rows, own, material.seed));
            let weights = weights.transpose()?;
            let weights = weights.as_deref();
            Some(auc(&draws.y, Sample { rows, weights })?)
        }
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
    let (rows, weights) = sample.thinned(compared);
    let sample = Sample {
        rows: rows.view(),
        weights: weights.as_deref(),
    };
    let options = CompareOptions {
        seed,
        ..CompareOptions::default()
    };
    let draws = draws.view().slice(0..rows.rows().min(draws.rows()));
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
            climbing::shares_outside(&seen.y, &seen.each_weight(), &ranges)
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
        extrapolated: extrapolated(material, draws),
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

/// Draws outside the range of the pairs' x, or of the particles, which are some of them.
fn extrapolated(material: &Material, draws: &Draws) -> Option<Extrapolated> {
    let particles = material.particles.as_ref();
    let simulated = match &material.pairs {
        Found::Here(pairs) => &pairs.x.values,
        Found::Absent(_) => &particles?.values,
    };
    let ranges = climbing::ranges(simulated.view());
    let beyond = |row: &usize| {
        let mut values = draws.x.row(*row).iter().zip(&ranges);
        values.any(|(value, [low, high])| !(*low..=*high).contains(value))
    };
    Some(Extrapolated {
        share: (0..DRAWS).filter(beyond).count() as f64 / DRAWS as f64,
        rows: simulated.rows(),
        columns: ranges.len(),
    })
}

/// χ² of each column, as in the figure of the push-forward.
fn chi_squares(material: &Material, draws: &Draws) -> Vec<(String, f64, usize)> {
    let Found::Here(seen) = &material.observations else {
        return Vec::new();
    };
    let each = seen.y.names.iter().enumerate().map(|(number, name)| {
        let observed = Column::of(seen.sample(), number);
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
