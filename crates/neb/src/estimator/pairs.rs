//! The walk over all pairs (y_i, x_k) that `mc` and `roulette` share.
//!
//! Both estimators are, for one observation, a sum of logarithms of sums over blocks of samples, so
//! the slope with respect to ℓ_ik = log q(y_i|x_k) is `factor`·exp(ℓ_ik − `log_sum`) with two numbers
//! for each block of k ([`Block`]). The walk is therefore: ℓ for all pairs, tile by tile; one
//! [`RowTerm`] for each observation; the slopes as sparse weights back through the likelihood.
//! Observations are taken in groups of at most 2²⁴ pairs, so that memory does not grow with the batch.
//! Tiles have fixed sizes and results are put together in order: the number of threads changes nothing.

use rayon::prelude::*;

use super::accepted;
use super::log_sum::exp_or_zero;
use super::{Batch, EffectiveSamples, Estimate, Gradient, Samples};
use crate::{Error, Likelihood, Matrix, MatrixMut, PairWeights, Result, Rows};

/// Slopes below this are left out of a sparse gradient.
const SMALLEST_SHARE: f64 = 1e-7;

/// Pairs held at once: 64 MB of log-probabilities.
const PAIRS_AT_ONCE: usize = 1 << 24;

/// Shared samples in a tile: few enough to feed many threads at K = 1024.
const SAMPLES_PER_TILE: usize = 128;

/// Pairs in a tile of independent samples.
const PAIRS_PER_TILE: usize = 1 << 14;

/// Samples whose slopes share one log-sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    /// log Σ exp ℓ the slope is relative to.
    pub(super) log_sum: f64,
    /// What multiplies the share exp(ℓ − `log_sum`).
    pub(super) factor: f64,
    /// What multiplies the square of the share.
    pub(super) square: f64,
}

/// What an estimator makes of the log-probabilities of one observation.
#[derive(Clone, Debug)]
pub(super) struct RowTerm {
    /// The estimate of log q(y).
    pub(super) value: f64,
    /// 1 / Σ w² of the softmax shares.
    pub(super) effective_samples: f64,
    /// Slopes, block by block.
    pub(super) blocks: Vec<Block>,
}

/// Value and gradient of an estimator given by its rule for one row, and by the block each sample is in.
pub(super) fn estimate(
    likelihood: &dyn Likelihood,
    batch: Batch,
    samples: Samples,
    gradient: Gradient,
    row_rule: impl Fn(&[f32]) -> RowTerm + Sync,
    block_of: impl Fn(usize) -> usize + Sync,
) -> Result<Estimate> {
    let event_weights = batch.normalised_weights()?;
    let k = check_shapes(likelihood, batch.y, samples)?;
    let rows = batch.y.rows();
    let dx = likelihood.dims().dx;
    let mut grad_x = Matrix::zeros(samples.x().rows(), dx);
    let mut values = Vec::with_capacity(rows);
    let mut effective_samples = Vec::with_capacity(rows);

    let rows_at_once = (PAIRS_AT_ONCE / k).max(1);
    for first in (0..rows).step_by(rows_at_once) {
        let range = first..rows.min(first + rows_at_once);
        let (x, grad_x) = match samples {
            Samples::Shared(_) | Samples::Weighted(..) => (samples, grad_x.values_mut()),
            Samples::Independent(x) => (
                Samples::Independent(x.slice(range.start * k..range.end * k)),
                &mut grad_x.values_mut()[range.start * k * dx..range.end * k * dx],
            ),
        };
        let table = PairTable::evaluate(likelihood, batch.y.slice(range.clone()), x, k);
        let terms = table.row_terms(&row_rule);
        for (row, term) in range.clone().zip(&terms) {
            if !term.value.is_finite() {
                return Err(batch.not_finite(row, term.value, k));
            }
            values.push(term.value);
            effective_samples.push(term.effective_samples);
        }
        let slopes = Slopes::new(&terms, &event_weights[range], gradient, &block_of);
        table.backward(&slopes, grad_x);
    }
    let mut estimate = Estimate {
        value: values.iter().zip(&event_weights).map(|(l, v)| l * v).sum(),
        values,
        grad_x,
        effective_samples: EffectiveSamples::of(effective_samples),
    };
    if let Some(acceptance) = likelihood.acceptance() {
        accepted::normalise(&mut estimate, acceptance, samples, &event_weights);
    }
    Ok(estimate)
}

/// The number of samples for each observation.
fn check_shapes(likelihood: &dyn Likelihood, y: Rows, samples: Samples) -> Result<usize> {
    let x = samples.x();
    check_dims(likelihood, y, x)?;
    let rows = y.rows();
    match samples {
        Samples::Shared(_) | Samples::Weighted(..) if x.rows() > 0 => Ok(x.rows()),
        Samples::Independent(_) if x.rows() > 0 && x.rows().is_multiple_of(rows) => {
            Ok(x.rows() / rows)
        }
        Samples::Shared(_) | Samples::Weighted(..) => Err(Error::input(
            "there is no source sample",
            "give at least one row of x",
        )),
        Samples::Independent(_) => Err(Error::input(
            format!(
                "{} independent samples cannot serve {rows} observations equally",
                x.rows()
            ),
            "give K rows of x for each observation",
        )),
    }
}

/// Whether y and x have the columns the likelihood was made for.
pub(super) fn check_dims(likelihood: &dyn Likelihood, y: Rows, x: Rows) -> Result<()> {
    let dims = likelihood.dims();
    for (name, found, expected) in [("x", x.cols(), dims.dx), ("y", y.cols(), dims.dy)] {
        if found != expected {
            return Err(Error::input(
                format!("{name} has {found} columns, the likelihood expects {expected}"),
                "use the columns the likelihood was fitted with, in the same order",
            ));
        }
    }
    Ok(())
}

/// ℓ_ik of a group of observations, in tiles.
///
/// Shared samples: a tile holds all observations and a range of samples. Independent samples: a
/// range of observations and all samples of each.
struct PairTable<'a> {
    likelihood: &'a dyn Likelihood,
    y: Rows<'a>,
    samples: Samples<'a>,
    k: usize,
    tiles: Vec<Matrix>,
}

impl<'a> PairTable<'a> {
    fn evaluate(
        likelihood: &'a dyn Likelihood,
        y: Rows<'a>,
        samples: Samples<'a>,
        k: usize,
    ) -> Self {
        let tiles = match samples {
            Samples::Shared(x) | Samples::Weighted(x, _) => ranges(k, SAMPLES_PER_TILE)
                .map(|range| {
                    let mut tile = Matrix::zeros(y.rows(), range.len());
                    likelihood.log_prob_pairs(y, x.slice(range.clone()), tile.view_mut());
                    if let Some(log_weights) = samples.log_weights() {
                        add_to_rows(&mut tile, &log_weights[range]);
                    }
                    tile
                })
                .collect(),
            Samples::Independent(x) => ranges(y.rows(), rows_per_tile(k))
                .map(|range| {
                    let mut tile = Matrix::zeros(range.len(), k);
                    let each: Vec<u32> = range
                        .clone()
                        .flat_map(|row| std::iter::repeat_n(row as u32, k))
                        .collect();
                    let x = x.slice(range.start * k..range.end * k);
                    likelihood.log_prob(y.gather(&each).view(), x, tile.values_mut());
                    tile
                })
                .collect(),
        };
        Self {
            likelihood,
            y,
            samples,
            k,
            tiles,
        }
    }

    fn row_terms(&self, rule: &(impl Fn(&[f32]) -> RowTerm + Sync)) -> Vec<RowTerm> {
        let row_term = |scratch: &mut Vec<f32>, row| match self.samples {
            Samples::Shared(_) | Samples::Weighted(..) => {
                scratch.clear();
                for tile in &self.tiles {
                    scratch.extend_from_slice(tile.row(row));
                }
                rule(scratch)
            }
            Samples::Independent(_) => {
                let height = rows_per_tile(self.k);
                rule(self.tiles[row / height].row(row % height))
            }
        };
        (0..self.y.rows())
            .into_par_iter()
            .map_init(Vec::new, row_term)
            .collect()
    }

    /// Adds the gradient of Σ_i v_i `value`_i to `grad_x`.
    fn backward(&self, slopes: &Slopes<impl Fn(usize) -> usize + Sync>, grad_x: &mut [f32]) {
        let dx = self.likelihood.dims().dx;
        let samples_per_tile = match self.samples {
            Samples::Shared(_) | Samples::Weighted(..) => SAMPLES_PER_TILE,
            Samples::Independent(_) => rows_per_tile(self.k) * self.k,
        };
        let x = self.samples.x();
        self.tiles
            .par_iter()
            .zip(grad_x.par_chunks_mut(samples_per_tile * dx))
            .enumerate()
            .for_each(|(index, (tile, grad_x))| {
                let first = index * samples_per_tile;
                let x = x.slice(first..first + grad_x.len() / dx);
                let weights = match self.samples {
                    Samples::Shared(_) | Samples::Weighted(..) => slopes.of_shared(tile, first),
                    Samples::Independent(_) => {
                        slopes.of_independent(tile, index * rows_per_tile(self.k))
                    }
                };
                let mut part = vec![0.0; grad_x.len()];
                let out = MatrixMut::new(&mut part, dx);
                self.likelihood.grad_x_pairs(self.y, x, &weights, out);
                for (total, part) in grad_x.iter_mut().zip(part) {
                    *total += part;
                }
            });
    }
}

/// Adds the same values to every row.
pub(super) fn add_to_rows(table: &mut Matrix, values: &[f32]) {
    for row in table.values_mut().chunks_exact_mut(values.len()) {
        for (entry, value) in row.iter_mut().zip(values) {
            *entry += value;
        }
    }
}

/// Observations in a tile of independent samples.
fn rows_per_tile(k: usize) -> usize {
    (PAIRS_PER_TILE / k).max(1)
}

/// 0 .. n in ranges of `size`, for as many threads as there are.
fn ranges(n: usize, size: usize) -> impl IndexedParallelIterator<Item = std::ops::Range<usize>> {
    (0..n.div_ceil(size))
        .into_par_iter()
        .map(move |index| index * size..n.min((index + 1) * size))
}

/// ∂ value / ∂ℓ_ik as sparse weights.
struct Slopes<F> {
    blocks: Vec<Vec<ScaledBlock>>,
    block_of: F,
}

/// A block with the event weight in its factor, and the ℓ below which a pair is left out.
struct ScaledBlock {
    log_sum: f64,
    factor: f64,
    square: f64,
    lowest: f32,
}

impl<F: Fn(usize) -> usize> Slopes<F> {
    fn new(terms: &[RowTerm], event_weights: &[f64], gradient: Gradient, block_of: F) -> Self {
        let scaled = |block: &Block, event_weight: f64| ScaledBlock {
            log_sum: block.log_sum,
            factor: event_weight * block.factor,
            square: event_weight * block.square,
            lowest: match gradient {
                Gradient::Sparse => {
                    (block.log_sum + (SMALLEST_SHARE / block.factor.abs()).ln()) as f32
                }
                Gradient::Dense => f32::NEG_INFINITY,
            },
        };
        let blocks = terms
            .iter()
            .zip(event_weights)
            .map(|(term, &v)| term.blocks.iter().map(|block| scaled(block, v)).collect())
            .collect();
        Self { blocks, block_of }
    }

    /// Samples of one row with slopes large enough to keep; the first log-probability is that of sample `first`.
    #[inline]
    fn kept(
        &self,
        row: usize,
        first: usize,
        log_probs: &[f32],
    ) -> impl Iterator<Item = (usize, f32)> {
        let blocks = &self.blocks[row][..];
        log_probs
            .iter()
            .enumerate()
            .filter_map(move |(column, &log_prob)| {
                let block = &blocks[(self.block_of)(first + column)];
                (log_prob > block.lowest).then(|| {
                    let share = exp_or_zero((f64::from(log_prob) - block.log_sum) as f32);
                    let share = f64::from(share);
                    let slope = (block.factor + block.square * share) * share;
                    (column, slope as f32)
                })
            })
    }

    /// Weights of a tile of shared samples that starts at sample `first`: for each sample its observations.
    fn of_shared(&self, tile: &Matrix, first: usize) -> PairWeights {
        let mut entries = Vec::new();
        let mut starts = vec![0; tile.cols() + 1];
        for row in 0..tile.rows() {
            for (column, slope) in self.kept(row, first, tile.row(row)) {
                starts[column + 1] += 1;
                entries.push((column as u32, row as u32, slope));
            }
        }
        for column in 0..tile.cols() {
            starts[column + 1] += starts[column];
        }
        let mut weights = PairWeights {
            y_row: vec![0; entries.len()],
            weight: vec![0.0; entries.len()],
            starts,
        };
        let mut next = weights.starts.clone();
        for (column, row, slope) in entries {
            let at = &mut next[column as usize];
            weights.y_row[*at] = row;
            weights.weight[*at] = slope;
            *at += 1;
        }
        weights
    }

    /// Weights of a tile of independent samples that starts at observation `first`: each sample has one.
    fn of_independent(&self, tile: &Matrix, first: usize) -> PairWeights {
        let mut weights = PairWeights::default();
        for row in 0..tile.rows() {
            for (column, slope) in self.kept(first + row, 0, tile.row(row)) {
                let sample = row * tile.cols() + column;
                weights.starts.resize(sample + 1, weights.y_row.len());
                weights.y_row.push((first + row) as u32);
                weights.weight.push(slope);
            }
        }
        let samples = tile.rows() * tile.cols();
        weights.starts.resize(samples + 1, weights.y_row.len());
        weights
    }
}
