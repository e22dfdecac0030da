//! De-biased estimates of log q(y): a random number of samples, with the corrections weighted so
//! that the expectation is that of infinitely many.
//!
//! E L_n rises to log q(y) as n grows (see [`super::mc()`]). Each increment of it is included with a
//! known probability and divided by it, so that the sum telescopes in expectation.
//!
//! [`Increments::Single`], the paper's: L̂ = L_K + Σ_{j=0..J} (L_{K+j+1} − L_{K+j}) / P(J ≥ j) with
//! P(J ≥ j) = cʲ, each L_n over the first n of K + J + 1 samples. An increment has variance r/(K+j)²
//! against weights that grow geometrically: the variance of L̂ is infinite for every c < 1.
//!
//! [`Increments::Doubling`]: with level Λ, P(Λ ≥ l) = 2^(−3l/2), K·2^Λ samples, and A_l the mean of
//! L over their blocks of K·2ˡ, L̂ = A_0 + Σ_{l=1..Λ} (A_l − A_{l−1}) / P(Λ ≥ l). The two halves of a
//! block cancel the first-order noise of the whole (antithetic multilevel Monte Carlo, Rhee and
//! Glynn): increments have variance ~ 4⁻ˡ, so both variance, Σ 4⁻ˡ 2^(3l/2), and expected number of
//! samples, K Σ 2ˡ P(Λ = l) ≈ 2.2 K, are finite.

use super::log_sum::LogSum;
use super::pairs::{Block, RowTerm, estimate};
use super::{Batch, Estimate, Gradient, Samples};
use crate::{Error, Likelihood, Noise, Result};

/// Stream of the random number of samples: never that of a row, so that the address may be shared with the source's noise.
const LENGTH_STREAM: u64 = u64::MAX;

/// P(Λ ≥ l) = 2^(−`LEVEL_DECAY`·l); between 1 (finite cost) and 2 (finite variance).
const LEVEL_DECAY: f64 = 1.5;

/// Which differences of L_n correct the bias.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Increments {
    /// From n to n + 1 samples.
    Single {
        /// c in P(J ≥ j) = cʲ, between 0 and 1.
        continue_probability: f64,
    },
    /// From n to 2n samples.
    Doubling {
        /// Levels beyond this one are cut off, which bounds the samples by K·2^`max_level` and leaves
        /// the bias r / (2K·2^`max_level`).
        max_level: u32,
    },
}

/// A de-biased estimator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roulette {
    /// Samples that are always drawn.
    pub k: usize,
    /// The corrections.
    pub increments: Increments,
}

impl Roulette {
    /// Doubling levels, up to 2048·k samples (reached once in 90 000 steps).
    pub fn new(k: usize) -> Self {
        Self {
            k,
            increments: Increments::Doubling { max_level: 11 },
        }
    }

    /// Samples (for each observation, if they are independent) that [`roulette()`] uses with this `noise`.
    ///
    /// # Errors
    /// If the settings make no sense.
    pub fn samples_needed(&self, noise: Noise) -> Result<usize> {
        self.check()?;
        let length = self.length(noise);
        Ok(match self.increments {
            Increments::Single { .. } => self.k + length + 1,
            Increments::Doubling { .. } => self.k << length,
        })
    }

    /// J, or the level Λ.
    fn length(&self, noise: Noise) -> usize {
        let uniform = noise.stream(LENGTH_STREAM).uniform();
        match self.increments {
            Increments::Single {
                continue_probability: c,
            } => (uniform.ln() / c.ln()) as usize,
            Increments::Doubling { max_level } => {
                ((-uniform.log2() / LEVEL_DECAY) as usize).min(max_level as usize)
            }
        }
    }

    fn check(&self) -> Result<()> {
        if self.k == 0 {
            return Err(Error::input(
                "roulette with k = 0 samples",
                "set k to 1 or more",
            ));
        }
        match self.increments {
            Increments::Single {
                continue_probability: c,
            } if !(c > 0.0 && c < 1.0) => Err(Error::input(
                format!("roulette continues with probability {c}"),
                "choose a probability above 0 and below 1, for example 0.9",
            )),
            Increments::Doubling { max_level } if max_level > 24 => Err(Error::input(
                format!("roulette with up to {max_level} levels"),
                "choose at most 24: no table holds more samples",
            )),
            _ => Ok(()),
        }
    }
}

/// L̂ of every observation, their mean, and its gradient with respect to every sample.
///
/// The random length is one number for the whole batch, drawn at `noise`; the samples must be as
/// many as [`Roulette::samples_needed`] says, drawn independently of it. As for [`super::mc()`], an
/// observation that no sample of a block can have produced is an error that names its row.
///
/// # Errors
/// If shapes or the number of samples do not match, or the value of an observation is not finite.
pub fn roulette(
    likelihood: &dyn Likelihood,
    batch: Batch,
    samples: Samples,
    settings: &Roulette,
    noise: Noise,
    gradient: Gradient,
) -> Result<Estimate> {
    let needed = settings.samples_needed(noise)?;
    let found = match samples {
        Samples::Shared(x) => x.rows(),
        Samples::Independent(x) => x.rows() / batch.y.rows().max(1),
    };
    if found != needed {
        return Err(Error::input(
            format!("roulette got {found} samples and needs {needed}"),
            "draw as many samples as Roulette::samples_needed says for this noise",
        ));
    }
    let k = settings.k;
    match settings.increments {
        Increments::Single {
            continue_probability: c,
        } => {
            let row = |log_probs: &[f32]| single(log_probs, k, c);
            let block = |sample: usize| (sample + 1).saturating_sub(k);
            estimate(likelihood, batch, samples, gradient, row, block)
        }
        Increments::Doubling { .. } => {
            let row = |log_probs: &[f32]| doubling(log_probs, k);
            estimate(likelihood, batch, samples, gradient, row, |sample| {
                sample / k
            })
        }
    }
}

/// Coefficient of the l-th of the values a telescoping sum runs over: `weight(l)` is 1 / P of the step
/// that leads to it (1 for the first value, which is always there), none beyond the last.
fn coefficient(l: usize, last: usize, weight: impl Fn(usize) -> f64) -> f64 {
    weight(l) - if l < last { weight(l + 1) } else { 0.0 }
}

/// L̂ = Σ_n c_n L_n over prefixes of n = K .. K + J + 1 samples.
///
/// Sample k has slope Σ_{n > k} c_n exp(ℓ_k − S_n), S_n the log-sum of the first n. Relative to the
/// first prefix that holds k this is exp(ℓ_k − S_n) R_n with R_n = c_n + R_{n+1} exp(S_n − S_{n+1}):
/// no exponent is ever positive.
fn single(log_probs: &[f32], k: usize, continue_probability: f64) -> RowTerm {
    let last = log_probs.len() - k;
    let weight = |l: usize| continue_probability.powi(1 - l.max(1) as i32);
    let mut sum = LogSum::of(&log_probs[..k]);
    let mut log_sums = vec![sum.value()];
    for log_prob in log_probs[k..].chunks(1) {
        sum = sum.merge(LogSum::of(log_prob));
        log_sums.push(sum.value());
    }
    let mut value = 0.0;
    let mut factor = 0.0;
    let mut blocks = Vec::with_capacity(last + 1);
    for l in (0..=last).rev() {
        let c = coefficient(l, last, weight);
        let to_next = if l < last {
            (log_sums[l] - log_sums[l + 1]).exp()
        } else {
            0.0
        };
        factor = c + factor * to_next;
        value += c * (log_sums[l] - ((k + l) as f64).ln());
        blocks.push(Block {
            log_sum: log_sums[l],
            factor,
        });
    }
    blocks.reverse();
    RowTerm {
        value: finite_or_cause(value, &log_sums),
        effective_samples: sum.effective_terms(),
        blocks,
    }
}

/// L̂ = Σ_l c_l A_l over the levels, A_l the mean of L over the blocks of K·2ˡ samples.
fn doubling(log_probs: &[f32], k: usize) -> RowTerm {
    let last = (log_probs.len() / k).ilog2() as usize;
    let weight = |l: usize| (LEVEL_DECAY * l as f64).exp2();
    let mut sums: Vec<LogSum> = log_probs.chunks(k).map(LogSum::of).collect();
    let leaves: Vec<f64> = sums.iter().map(LogSum::value).collect();
    let mut factors = vec![0.0; leaves.len()];
    let mut value = 0.0;
    for l in 0..=last {
        let share = coefficient(l, last, weight) / sums.len() as f64;
        let leaves_in_block = 1 << l;
        for (leaf, factor) in factors.iter_mut().enumerate() {
            *factor += share * (leaves[leaf] - sums[leaf / leaves_in_block].value()).exp();
        }
        let log_size = ((k << l) as f64).ln();
        value += share * sums.iter().map(|sum| sum.value() - log_size).sum::<f64>();
        if l < last {
            sums = sums
                .chunks(2)
                .map(|halves| halves[0].merge(halves[1]))
                .collect();
        }
    }
    let blocks = leaves
        .iter()
        .zip(factors)
        .map(|(&log_sum, factor)| Block { log_sum, factor })
        .collect();
    RowTerm {
        value: finite_or_cause(value, &leaves),
        effective_samples: sums[0].effective_terms(),
        blocks,
    }
}

/// `value`, or the log-sum that spoiled it: differences of infinities are NaN and would hide the cause.
fn finite_or_cause(value: f64, log_sums: &[f64]) -> f64 {
    let spoiled = log_sums.iter().find(|sum| !sum.is_finite());
    spoiled.copied().unwrap_or(value)
}
