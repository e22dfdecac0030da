//! The log-marginal likelihood for a user's own generator, and of large held-out sets.

use rayon::prelude::*;

use super::accepted::log_mean_acceptance;
use super::corrected::corrected_value;
use super::log_sum::LogSum;
use super::pairs::{add_to_rows, check_dims};
use super::{Batch, Gradient, Samples, mc};
use crate::{Error, Likelihood, Matrix, Result, Rows};

/// Observations and samples of a tile.
const ROWS_PER_TILE: usize = 256;
const SAMPLES_PER_TILE: usize = 1024;

/// Mean of log (1/K) Σ_k q(y_i|x_k) over the rows of y, and its gradient with respect to x.
///
/// All a generator written elsewhere needs to learn the source: draw x, call this, and carry the
/// gradient back through the generator.
///
/// # Errors
/// As [`mc()`]: if shapes do not match or no sample can have produced some observation.
pub fn log_marginal(likelihood: &dyn Likelihood, y: Rows, x: Rows) -> Result<(f64, Matrix)> {
    let estimate = mc(
        likelihood,
        Batch::from(y),
        Samples::Shared(x),
        Gradient::Sparse,
    )?;
    Ok((estimate.value, estimate.grad_x))
}

/// log (1/K) Σ_k q(y_i|x_k) for each row of y, without gradient, in memory that grows with neither table.
///
/// Minus infinity for an observation that no sample can have produced. With a likelihood that has an acceptance ε(x), the
/// values are those of the law of what is observed: less log (1/K) Σ_k ε(x_k).
///
/// # Errors
/// If the columns of y or x are not those of the likelihood, or x has no rows.
pub fn log_marginal_values(likelihood: &dyn Likelihood, y: Rows, x: Rows) -> Result<Vec<f64>> {
    let log_k = (x.rows() as f64).ln() + log_mean_acceptance(likelihood, Samples::Shared(x));
    let sums = log_sums(likelihood, y, Samples::Shared(x))?;
    Ok(sums.iter().map(|sum| sum.value() - log_k).collect())
}

/// As [`log_marginal_values`] of shared samples, weighted or not, each value corrected for its bias as by
/// [`super::corrected()`].
///
/// # Errors
/// As [`log_marginal_values`].
///
/// # Panics
/// If every observation has samples of its own.
pub fn corrected_log_marginal_values(
    likelihood: &dyn Likelihood,
    y: Rows,
    samples: Samples,
) -> Result<Vec<f64>> {
    assert!(
        !matches!(samples, Samples::Independent(_)),
        "samples must be shared"
    );
    let sums = log_sums(likelihood, y, samples)?;
    let accepted = log_mean_acceptance(likelihood, samples);
    let k = samples.x().rows();
    Ok(sums
        .iter()
        .map(|sum| corrected_value(sum, k) - accepted)
        .collect())
}

/// Σ_k w_k q(y_i|x_k) for each row of y.
fn log_sums(likelihood: &dyn Likelihood, y: Rows, samples: Samples) -> Result<Vec<LogSum>> {
    let x = samples.x();
    check_dims(likelihood, y, x)?;
    if x.rows() == 0 {
        return Err(Error::input(
            "there is no source sample",
            "give at least one row of x",
        ));
    }
    let starts = |n: usize, size: usize| (0..n.div_ceil(size)).into_par_iter();
    let groups: Vec<Vec<LogSum>> = starts(y.rows(), ROWS_PER_TILE)
        .map(|group| {
            let first = group * ROWS_PER_TILE;
            let y = y.slice(first..y.rows().min(first + ROWS_PER_TILE));
            let parts: Vec<Vec<LogSum>> = starts(x.rows(), SAMPLES_PER_TILE)
                .map(|part| {
                    let first = part * SAMPLES_PER_TILE;
                    let range = first..x.rows().min(first + SAMPLES_PER_TILE);
                    let log_weights = samples.log_weights().map(|all| &all[range.clone()]);
                    tile_sums(likelihood, y, x.slice(range), log_weights)
                })
                .collect();
            (0..y.rows())
                .map(|row| {
                    let all = parts.iter();
                    all.fold(LogSum::EMPTY, |sum, part| sum.merge(part[row]))
                })
                .collect()
        })
        .collect();
    Ok(groups.concat())
}

fn tile_sums(
    likelihood: &dyn Likelihood,
    y: Rows,
    x: Rows,
    log_weights: Option<&[f32]>,
) -> Vec<LogSum> {
    let mut tile = Matrix::zeros(y.rows(), x.rows());
    likelihood.log_prob_pairs(y, x, tile.view_mut());
    if let Some(log_weights) = log_weights {
        add_to_rows(&mut tile, log_weights);
    }
    (0..y.rows()).map(|row| LogSum::of(tile.row(row))).collect()
}
