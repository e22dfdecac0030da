//! The bottom-line test: the weighted simulation, as reconstructed, with fakes and background, against the data.

use anyhow::Result;
use neb::Matrix;
use neb::check::{BoostedTrees, CompareOptions, Estimate, Sample, separate};
use neb_report::{Column, Histogram};
use serde::{Deserialize, Serialize};

use super::input::Input;

/// Most rows of a sample that a classifier is given.
const COMPARED: usize = 40_000;

/// How the folded result compares with the data.
#[derive(Serialize, Deserialize)]
pub(crate) struct BottomLine {
    /// AUC of a classifier between folded result and data; 0.5 is perfect.
    pub(crate) auc: Estimate,
    /// The same before unfolding.
    pub(crate) auc_before: Estimate,
    /// Each column of y.
    pub(crate) columns: Vec<FoldedColumn>,
}

/// A column of y: densities in the same bins, with their errors.
#[derive(Serialize, Deserialize)]
pub(crate) struct FoldedColumn {
    pub(crate) name: String,
    /// χ² between data and folded result, and the bins that count.
    pub(crate) chi_square: f64,
    pub(crate) bins: usize,
    /// Edges of all bins.
    pub(crate) edges: Vec<f64>,
    pub(crate) data: Densities,
    pub(crate) folded: Densities,
    /// The simulation before unfolding.
    pub(crate) before: Densities,
}

/// A value and a standard error for each bin.
#[derive(Serialize, Deserialize)]
pub(crate) struct Densities {
    pub(crate) values: Vec<f64>,
    pub(crate) errors: Vec<f64>,
}

impl Densities {
    fn of(histogram: &Histogram) -> Self {
        let bins = 0..histogram.bins();
        let (values, errors) = bins.map(|bin| histogram.density(bin)).unzip();
        Self { values, errors }
    }
}

pub(super) fn test(input: &Input, weights: &[f32], seed: u64) -> Result<BottomLine> {
    let (after, before) = (
        folded(input, weights),
        folded(input, &input.events.produced_weights),
    );
    let data = Sample::weighted(input.data.view(), &input.events.data_weights);
    let auc = |(rows, weights): &(Matrix, Vec<f32>)| {
        separation(Sample::weighted(rows.view(), weights), data, seed)
    };
    let columns = input.y_names.iter().enumerate().map(|(number, name)| {
        let observed = Column::of(data, number);
        let edges = Histogram::edges_for(&observed);
        let model = |(rows, weights): &(Matrix, Vec<f32>)| {
            let column = Column::of(Sample::weighted(rows.view(), weights), number);
            Histogram::new(&column, edges.clone())
        };
        let (folded, before) = (model(&after), model(&before));
        let observed = Histogram::new(&observed, edges.clone());
        let (chi_square, bins) = observed.chi_square(&folded);
        FoldedColumn {
            name: name.clone(),
            chi_square,
            bins,
            data: Densities::of(&observed),
            folded: Densities::of(&folded),
            before: Densities::of(&before),
            edges,
        }
    });
    Ok(BottomLine {
        columns: columns.collect(),
        auc: auc(&after)?,
        auc_before: auc(&before)?,
    })
}

/// y of the reconstructed simulation with these weights of the produced events, beside fakes and background as in the data.
/// Negative weights count as zero here: a classifier cannot learn from them.
fn folded(input: &Input, weights: &[f32]) -> (Matrix, Vec<f32>) {
    let events = &input.events;
    let matched = events.matched_rows().into_iter();
    let mut all: Vec<f32> = matched.map(|row| weights[row as usize]).collect();
    let sum = |weights: &[f32]| weights.iter().map(|&w| f64::from(w)).sum::<f64>();
    let signal = sum(&all);
    let background = sum(&events.background_weights);
    let wanted = sum(&events.data_weights) - background;
    let fakes = events.fake_share() * wanted;
    let mut rows = input.matched.values().to_vec();
    for weight in &mut all {
        *weight = (f64::from(weight.max(0.0)) * (wanted - fakes) / signal) as f32;
    }
    rows.extend_from_slice(input.fakes.values());
    let fake_total = sum(&events.fake_weights);
    let scaled = events.fake_weights.iter();
    all.extend(scaled.map(|&w| (f64::from(w.max(0.0)) * fakes / fake_total) as f32));
    rows.extend_from_slice(input.background.values());
    all.extend(events.background_weights.iter().map(|w| w.max(0.0)));
    (Matrix::from_vec(rows, input.y_names.len()), all)
}

/// How well boosted trees tell two samples apart.
pub(super) fn separation(a: Sample, b: Sample, seed: u64) -> Result<Estimate> {
    fn first(sample: Sample<'_>) -> Sample<'_> {
        let rows = sample.rows.rows().min(COMPARED);
        Sample {
            rows: sample.rows.slice(0..rows),
            weights: sample.weights.map(|weights| &weights[..rows]),
        }
    }
    let options = CompareOptions {
        seed,
        ..CompareOptions::default()
    };
    let trees = BoostedTrees::default();
    Ok(separate(&trees, first(a), first(b), &options)?.auc)
}
