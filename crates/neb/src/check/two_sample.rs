//! Two samples side by side: do they follow the same law?
//!
//! A classifier that learns to tell them apart is scored on rows it has not seen (k-fold cross-validation, the scores
//! of all folds pooled): ROC AUC and accuracy are 0.5 if the laws agree, and may fall below by noise. Where
//! several classifiers are given, the sharpest counts. Two distances that need no training go with it.

use std::collections::HashSet;

use rayon::prelude::*;

use super::auc::{Scored, accuracy, as_best_of, auc, cross_validated};
use super::mmd::{Mmd, mmd};
use super::null::Pooled;
use super::wasserstein::{SlicedWasserstein, sliced_wasserstein};
use super::{BoostedTrees, Classifier, Draw, Estimate, Network, Sample};
use crate::{Error, Matrix, Result};

/// Settings of a comparison.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompareOptions {
    /// Seed of the folds, the classifiers, and the null's repetitions.
    pub seed: u64,
    /// Parts that are scored in turn by a classifier trained on the others.
    pub folds: usize,
    /// Repetitions of the null behind the distances' bands and p-values.
    pub null_repetitions: usize,
    /// Random directions of the sliced Wasserstein distance.
    pub directions: usize,
    /// Random frequencies of the kernel in the MMD.
    pub frequencies: usize,
    /// Most rows of each sample, chosen at random, that enter the two distances; the classifiers see all.
    pub distance_rows: usize,
}

impl Default for CompareOptions {
    fn default() -> Self {
        Self {
            seed: 0,
            folds: 5,
            null_repetitions: 199,
            directions: 64,
            frequencies: 128,
            distance_rows: 20_000,
        }
    }
}

/// How well one classifier tells the samples apart.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Separation {
    /// The classifier.
    pub classifier: String,
    /// ROC AUC of the pooled out-of-fold scores: chance that a row of the second sample scores above one of the first.
    pub auc: Estimate,
    /// Balanced accuracy (C2ST) of the same scores.
    pub accuracy: Estimate,
}

/// The outcome of [`compare`].
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Comparison {
    /// Rows of each sample.
    pub rows: [usize; 2],
    /// Effective sample sizes (Σ w)² / Σ w².
    pub effective_rows: [f64; 2],
    /// Rows of the second sample that also occur in the first: far from zero for continuous values, the files overlap,
    /// and the AUC falls below its true value.
    pub shared_rows: usize,
    /// Greatest AUC of all classifiers; its null band allows for the choice.
    pub auc: Estimate,
    /// Greatest accuracy (C2ST) of all classifiers; its null band allows for the choice.
    pub accuracy: Estimate,
    /// Each classifier by itself, in the order given.
    pub classifiers: Vec<Separation>,
    /// How far apart the samples lie.
    pub sliced_wasserstein: SlicedWasserstein,
    /// A kernel test that the laws agree.
    pub mmd: Mmd,
    /// Whether the AUC lies above its null band.
    pub differs: bool,
}

/// Compares two samples with the default classifiers, a [`Network`] and, as a second opinion, [`BoostedTrees`].
///
/// ```
/// use neb::check::{CompareOptions, Sample, compare};
/// use neb::{Noise, Purpose};
///
/// let a = Noise::new(1, Purpose::DrawX, 0).normal(1000, 2);
/// let b = Noise::new(2, Purpose::DrawX, 0).normal(1000, 2);
/// let same = compare(a.view(), b.view(), &CompareOptions::default())?;
/// assert!(!same.differs);
///
/// let weights: Vec<f32> = (0..1000).map(|row| b.row(row)[0].exp()).collect();
/// let tilted = Sample::weighted(b.view(), &weights);
/// assert!(compare(a.view(), tilted, &CompareOptions::default())?.differs);
/// # Ok::<(), neb::Error>(())
/// ```
///
/// # Errors
/// Values that are not finite; weights that are negative, not finite, or all zero; samples of different columns, or too
/// few rows for the folds.
pub fn compare<'a>(
    a: impl Into<Sample<'a>>,
    b: impl Into<Sample<'a>>,
    options: &CompareOptions,
) -> Result<Comparison> {
    let classifiers: [&dyn Classifier; 2] = [&Network::default(), &BoostedTrees::default()];
    compare_with(&classifiers, a, b, options)
}

/// Compares two samples with the given classifiers, of which the sharpest counts.
///
/// # Errors
/// Those of [`compare`]; no classifier; a classifier that fails or gives scores that are not finite.
pub fn compare_with<'a>(
    classifiers: &[&dyn Classifier],
    a: impl Into<Sample<'a>>,
    b: impl Into<Sample<'a>>,
    options: &CompareOptions,
) -> Result<Comparison> {
    let (a, b) = (a.into(), b.into());
    check(classifiers, a, b, options)?;
    let classifiers = classifiers
        .iter()
        .map(|&classifier| cross_validate(classifier, a, b, options))
        .collect::<Result<Vec<Separation>>>()?;
    let best = |part: fn(&Separation) -> Estimate| {
        let estimates = classifiers.iter().map(part);
        let best = estimates.reduce(|best, next| if next.value > best.value { next } else { best });
        as_best_of(best.expect("checked above"), classifiers.len())
    };
    let (best_auc, best_accuracy) = (best(|s| s.auc), best(|s| s.accuracy));
    let pooled = Pooled::new(
        a,
        b,
        options.distance_rows,
        options.null_repetitions,
        options.seed,
    );
    Ok(Comparison {
        rows: [a.rows.rows(), b.rows.rows()],
        effective_rows: [a.effective_size(), b.effective_size()],
        shared_rows: shared_rows(a, b),
        auc: best_auc,
        accuracy: best_accuracy,
        sliced_wasserstein: sliced_wasserstein(&pooled, options.directions, options.seed),
        mmd: mmd(&pooled, options.frequencies, options.seed),
        differs: best_auc.value > best_auc.null.high,
        classifiers,
    })
}

/// How well one classifier tells two samples apart, and nothing else of a comparison: no distances and their null.
///
/// # Errors
/// Those of [`compare_with`].
pub fn separate<'a>(
    classifier: &dyn Classifier,
    a: impl Into<Sample<'a>>,
    b: impl Into<Sample<'a>>,
    options: &CompareOptions,
) -> Result<Separation> {
    let (a, b) = (a.into(), b.into());
    check(&[classifier], a, b, options)?;
    cross_validate(classifier, a, b, options)
}

fn check(
    classifiers: &[&dyn Classifier],
    a: Sample,
    b: Sample,
    options: &CompareOptions,
) -> Result<()> {
    if a.rows.cols() != b.rows.cols() {
        return Err(Error::input(
            format!(
                "the first sample has {} columns, the second {}",
                a.rows.cols(),
                b.rows.cols()
            ),
            "compare samples of the same columns",
        ));
    }
    a.check("first sample")?;
    b.check("second sample")?;
    if options.folds < 2 || options.null_repetitions < 1 || options.distance_rows < 2 {
        return Err(Error::input(
            format!(
                "a comparison with {} folds, {} repetitions of the null and {} rows for the distances",
                options.folds, options.null_repetitions, options.distance_rows
            ),
            "use at least 2 folds, 1 repetition and 2 rows",
        ));
    }
    for (sample, name) in [(a, "first"), (b, "second")] {
        let used = (0..sample.rows.rows()).filter(|&row| sample.weight(row) > 0.0);
        let (used, needed) = (used.count(), 2 * options.folds);
        if used < needed {
            return Err(Error::input(
                format!("the {name} sample has {used} rows of positive weight"),
                format!("{} folds need at least {needed} of them", options.folds),
            ));
        }
    }
    if classifiers.is_empty() {
        return Err(Error::input(
            "a comparison without a classifier",
            "give at least one classifier, such as `BoostedTrees::default()`",
        ));
    }
    Ok(())
}

/// Both samples below each other, with a fold for each row.
struct Labelled {
    rows: Matrix,
    second: Vec<bool>,
    /// Weights, scaled so that each sample sums to one.
    shares: Vec<f32>,
    fold: Vec<usize>,
}

impl Labelled {
    fn new(a: Sample, b: Sample, options: &CompareOptions) -> Self {
        let count = a.rows.rows() + b.rows.rows();
        let mut values = Vec::with_capacity(count * a.rows.cols());
        let (mut second, mut shares, mut fold) = (Vec::new(), Vec::new(), vec![0; count]);
        for (side, sample) in [a, b].iter().enumerate() {
            let first = second.len();
            let rows = sample.rows.rows();
            values.extend_from_slice(sample.rows.values());
            second.extend(std::iter::repeat_n(side == 1, rows));
            let total = sample.total();
            shares.extend((0..rows).map(|row| (f64::from(sample.weight(row)) / total) as f32));
            let order = Draw::Folds
                .noise(options.seed, side as u64)
                .permutation(rows);
            for (at, &row) in order.iter().enumerate() {
                fold[first + row as usize] = at % options.folds;
            }
        }
        Self {
            rows: Matrix::from_vec(values, a.rows.cols()),
            second,
            shares,
            fold,
        }
    }

    /// Scores of the rows of one fold by a classifier that learned from the others.
    fn score_fold(
        &self,
        classifier: &dyn Classifier,
        fold: usize,
        seed: u64,
    ) -> Result<(Vec<u32>, Vec<f32>)> {
        let count = self.fold.len() as u32;
        let (out, learn): (Vec<u32>, Vec<u32>) =
            (0..count).partition(|&row| self.fold[row as usize] == fold);
        let second: Vec<bool> = learn.iter().map(|&row| self.second[row as usize]).collect();
        let mut weights: Vec<f32> = learn.iter().map(|&row| self.shares[row as usize]).collect();
        balance(&mut weights, &second);
        let seed = Draw::ClassifierSeed
            .noise(seed, fold as u64)
            .stream(0)
            .below(usize::MAX);
        let learn = self.rows.view().gather(&learn);
        let scorer = classifier.fit(learn.view(), &second, &weights, seed as u64)?;
        let scores = scorer(self.rows.view().gather(&out).view());
        match scores.iter().find(|score| !score.is_finite()) {
            Some(score) => Err(Error::non_finite(
                format!("{}: a score of fold {fold} is {score}", classifier.name()),
                "look for columns of enormous values; a transformation such as a logarithm may help",
            )),
            None => Ok((out, scores)),
        }
    }
}

/// Scales the weights so that both samples weigh the same and the mean weight is one.
fn balance(weights: &mut [f32], second: &[bool]) {
    let mut sums = [0.0; 2];
    for (&weight, &second) in weights.iter().zip(second) {
        sums[usize::from(second)] += f64::from(weight);
    }
    let half = 0.5 * weights.len() as f64;
    for (weight, &second) in weights.iter_mut().zip(second) {
        *weight = (f64::from(*weight) * half / sums[usize::from(second)]) as f32;
    }
}

/// Scores one classifier on rows it has not seen.
fn cross_validate(
    classifier: &dyn Classifier,
    a: Sample,
    b: Sample,
    options: &CompareOptions,
) -> Result<Separation> {
    let labelled = Labelled::new(a, b, options);
    let folds = (0..options.folds)
        .into_par_iter()
        .map(|fold| labelled.score_fold(classifier, fold, options.seed))
        .collect::<Result<Vec<_>>>()?;
    let mut scores = vec![0.0; labelled.fold.len()];
    for (rows, fold_scores) in folds {
        for (row, score) in rows.into_iter().zip(fold_scores) {
            scores[row as usize] = score;
        }
    }
    let (scores_a, scores_b) = scores.split_at(a.rows.rows());
    let (shares_a, shares_b) = labelled.shares.split_at(a.rows.rows());
    let scored_a = Scored {
        scores: scores_a,
        weights: shares_a,
    };
    let scored_b = Scored {
        scores: scores_b,
        weights: shares_b,
    };
    Ok(Separation {
        classifier: classifier.name().to_owned(),
        auc: cross_validated(auc(scored_a, scored_b)),
        accuracy: cross_validated(accuracy(scored_a, scored_b)),
    })
}

/// Rows of b whose exact values occur in a.
fn shared_rows(a: Sample, b: Sample) -> usize {
    let bits = |row: &[f32]| -> Vec<u32> { row.iter().map(|v| (v + 0.0).to_bits()).collect() };
    let known: HashSet<Vec<u32>> = (0..a.rows.rows())
        .map(|row| bits(a.rows.row(row)))
        .collect();
    (0..b.rows.rows())
        .filter(|&row| known.contains(&bits(b.rows.row(row))))
        .count()
}

#[cfg(test)]
mod tests;
