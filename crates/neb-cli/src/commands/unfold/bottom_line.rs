//! The bottom-line test: the weighted simulation, as reconstructed, with fakes and background, against the data.

use anyhow::Result;
use neb::Matrix;
use neb::check::{BoostedTrees, CompareOptions, Estimate, Sample, compare_with};
use neb_report::{Column, Histogram};
use serde::Serialize;

use super::input::Input;

/// Most rows of a sample that a classifier is given.
const COMPARED: usize = 40_000;

/// How the folded result compares with the data.
#[derive(Serialize)]
pub(super) struct BottomLine {
    /// AUC of a classifier between folded result and data; 0.5 is perfect.
    pub(super) auc: Estimate,
    /// The same before unfolding.
    pub(super) auc_before: Estimate,
    /// χ² and bins of each column of y.
    pub(super) chi_squares: Vec<(String, f64, usize)>,
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
    let chi_squares = input.y_names.iter().enumerate().map(|(number, name)| {
        let observed = Column::of(data, number);
        let edges = Histogram::edges_for(&observed);
        let model = Column::of(Sample::weighted(after.0.view(), &after.1), number);
        let observed = Histogram::new(&observed, edges.clone());
        let (square, bins) = observed.chi_square(&Histogram::new(&model, edges));
        (name.clone(), square, bins)
    });
    Ok(BottomLine {
        chi_squares: chi_squares.collect(),
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
    Ok(compare_with(&[&trees], first(a), first(b), &options)?.auc)
}
