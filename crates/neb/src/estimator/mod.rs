//! Estimators of the log-marginal likelihood log q(y) = log ∫ q(y|x) q(x) dx and their gradients.
//!
//! | estimator | needs | bias |
//! |---|---|---|
//! | [`mc()`] | K samples of the source | −r/2K, r the relative variance of q(y\|x) over the source |
//! | [`corrected()`] | the same | of order 1/K² |
//! | [`roulette()`] | a random number of samples of the source | none |
//! | [`elbo()`] | samples of a recognition model q(x\|y), three log-densities | −KL(q(x\|y) ‖ posterior) |
//! | [`iw()`] | the same, K for each y | of order 1/K |
//!
//! The first three return the gradient with respect to every sample x; the caller carries it on into
//! whatever produced x (its own generator, if it likes: [`log_marginal`]). The last two return the
//! gradient with respect to the log-densities. None of them knows about networks, files or epochs.

mod accepted;
mod corrected;
mod elbo;
mod evaluate;
mod iw;
mod log_sum;
mod mc;
mod pairs;
mod roulette;
#[cfg(test)]
pub(crate) mod testing;

pub(crate) use log_sum::{exp_or_zero, largest};

pub use corrected::corrected;
pub use elbo::elbo;
pub use evaluate::{corrected_log_marginal_values, log_marginal, log_marginal_values};
pub use iw::{LogDensities, VariationalEstimate, iw};
pub use mc::mc;
pub use roulette::{Increments, Roulette, roulette};

use crate::{Error, Matrix, Result, Rows};

/// The observations of one step.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The observations, one per row.
    pub y: Rows<'a>,
    /// Event weights v_i: the value becomes Σ v_i L(y_i) / Σ v_i. All 1 if absent.
    pub weights: Option<&'a [f32]>,
    /// Where these rows stand in the user's table, for error messages. 0, 1, 2 … if absent.
    pub row_numbers: Option<&'a [u32]>,
}

impl<'a> From<Rows<'a>> for Batch<'a> {
    fn from(y: Rows<'a>) -> Self {
        Self {
            y,
            weights: None,
            row_numbers: None,
        }
    }
}

impl Batch<'_> {
    /// v_i / Σ v, after a check that they make sense.
    fn normalised_weights(&self) -> Result<Vec<f64>> {
        let rows = self.y.rows();
        if rows == 0 {
            return Err(Error::input(
                "the batch holds no observation",
                "give at least one row of y",
            ));
        }
        let Some(weights) = self.weights else {
            return Ok(vec![1.0 / rows as f64; rows]);
        };
        if weights.len() != rows {
            return Err(Error::input(
                format!("{} event weights for {rows} observations", weights.len()),
                "give one weight for each observation",
            ));
        }
        let total: f64 = weights.iter().map(|&v| f64::from(v)).sum();
        if !(total.is_finite() && total > 0.0) {
            return Err(Error::input(
                format!("the event weights of a batch of {rows} rows sum to {total}"),
                "the sum must be positive: use larger batches if some weights are negative",
            ));
        }
        Ok(weights.iter().map(|&v| f64::from(v) / total).collect())
    }

    /// The row of the user's table that stands in row `row` of the batch.
    fn row_number(&self, row: usize) -> usize {
        self.row_numbers
            .map_or(row, |numbers| numbers[row] as usize)
    }

    /// Why the value of observation `row` is no number.
    fn not_finite(&self, row: usize, value: f64, samples: usize) -> Error {
        let number = self.row_number(row);
        if value == f64::NEG_INFINITY {
            Error::non_finite(
                format!(
                    "observation row {number}: log q(y|x) is -inf for all source samples \
                     (or for a whole block of roulette's), {samples} in all"
                ),
                "raise k or start from a wider source, or remove the row if no x can produce it",
            )
        } else {
            Error::non_finite(
                format!(
                    "observation row {number}: log q(y|x) is NaN or +inf for some source sample"
                ),
                "lower the learning rate; if this is the first step, check the likelihood at this row",
            )
        }
    }
}

/// Samples of the source, and which observation each of them serves.
#[derive(Clone, Copy, Debug)]
pub enum Samples<'a> {
    /// K rows; each serves every observation.
    Shared(Rows<'a>),
    /// K rows for each of B observations: rows i·K .. (i + 1)·K serve observation i alone.
    Independent(Rows<'a>),
    /// As `Shared`, of another law than the source's, each row with the logarithm of its importance weight.
    Weighted(Rows<'a>, &'a [f32]),
}

impl<'a> Samples<'a> {
    /// The samples themselves.
    pub fn x(self) -> Rows<'a> {
        match self {
            Self::Shared(x) | Self::Independent(x) | Self::Weighted(x, _) => x,
        }
    }

    /// Their log importance weights, where they have any.
    pub fn log_weights(self) -> Option<&'a [f32]> {
        match self {
            Self::Weighted(_, log_weights) => Some(log_weights),
            _ => None,
        }
    }
}

/// Which pairs (y_i, x_k) the gradient goes through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gradient {
    /// Those with a share above 1e-7; relative error about 1e-5, most of the work saved.
    #[default]
    Sparse,
    /// All of them.
    Dense,
}

/// Value and gradient of an estimate of the mean log-marginal likelihood of a batch.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// (Weighted) mean over the batch.
    pub value: f64,
    /// The estimate for each observation.
    pub values: Vec<f64>,
    /// ∂ `value` / ∂x, one row for each sample.
    pub grad_x: Matrix,
    /// Effective number of samples behind each observation.
    pub effective_samples: EffectiveSamples,
}

/// How many of the samples matter to an observation: 1 / Σ_k w_k² of the softmax shares w_k, over a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EffectiveSamples {
    /// Mean over the observations.
    pub mean: f64,
    /// Median over the observations (the upper one of an even number).
    pub median: f64,
}

impl EffectiveSamples {
    fn of(mut counts: Vec<f64>) -> Self {
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        counts.sort_unstable_by(f64::total_cmp);
        Self {
            mean,
            median: counts[counts.len() / 2],
        }
    }
}
