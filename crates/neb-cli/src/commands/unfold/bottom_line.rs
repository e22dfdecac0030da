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

/// Weights of the produced events, after unfolding and before.
pub(super) struct Weights<'a> {
    pub(super) after: &'a [f32],
    pub(super) before: &'a [f32],
}

/// `signed` are the weights as they are, for histograms; `positive` those without negative ones that stand for them where a
/// classifier has to learn from them.
pub(super) fn test(
    input: &Input,
    signed: &Weights,
    positive: &Weights,
    seed: u64,
) -> Result<BottomLine> {
    let data = Sample::weighted(input.data.view(), &input.events.data_weights);
    let auc = |weights: &[f32]| {
        let (rows, weights) = folded(input, weights, |weight| weight.max(0.0));
        separation(Sample::weighted(rows.view(), &weights), data, seed)
    };
    let [after, before] =
        [signed.after, signed.before].map(|weights| folded(input, weights, |weight| weight));
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
        auc: auc(positive.after)?,
        auc_before: auc(positive.before)?,
    })
}

/// y of the reconstructed simulation with these weights of the produced events, beside fakes and background as in the data,
/// their own weights as `kept` says.
fn folded(input: &Input, weights: &[f32], kept: fn(f32) -> f32) -> (Matrix, Vec<f32>) {
    let events = &input.events;
    let keep = |weights: &[f32]| weights.iter().map(|&w| kept(w)).collect::<Vec<f32>>();
    let sum = |weights: &[f32]| weights.iter().map(|&w| f64::from(w)).sum::<f64>();
    let matched = events.matched_rows().into_iter();
    let matched: Vec<f32> = matched.map(|row| weights[row as usize]).collect();
    let fake = keep(&events.fake_weights);
    let background = sum(&events.background_weights);
    let wanted = sum(&events.data_weights) - background;
    let fakes = events.fake_share() * wanted;
    let mut all = Vec::new();
    let known = keep(&events.background_weights);
    for (weights, total) in [
        (matched, wanted - fakes),
        (fake, fakes),
        (known, background),
    ] {
        let factor = total / sum(&weights);
        all.extend(weights.iter().map(|&w| (f64::from(w) * factor) as f32));
    }
    let parts = [&input.matched, &input.fakes, &input.background];
    let rows: Vec<&[f32]> = parts.iter().map(|part| part.values()).collect();
    (Matrix::from_vec(rows.concat(), input.y_names.len()), all)
}

/// How well boosted trees tell two samples apart.
pub(super) fn separation(a: Sample, b: Sample, seed: u64) -> Result<Estimate> {
    let options = CompareOptions {
        seed,
        ..CompareOptions::default()
    };
    let [a, b] = [a, b].map(|sample| sample.thinned(COMPARED));
    let [a, b] = [&a, &b].map(|(rows, weights)| Sample {
        rows: rows.view(),
        weights: weights.as_deref(),
    });
    Ok(separate(&BoostedTrees::default(), a, b, &options)?.auc)
}
