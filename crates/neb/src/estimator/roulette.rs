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
        Samples::Weighted(x, _) => x.rows(),
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
            square: 0.0,
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
        .map(|(&log_sum, factor)| Block {
            log_sum,
            factor,
            square: 0.0,
        })
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

#[cfg(test)]
mod tests {
    use super::super::testing::{
        AdditiveNoise, GaussianModel, PointMass, finite_differences, log_mean_exp, with_threads,
    };
    use super::*;
    use crate::{Matrix, Purpose};

    const SINGLE: Increments = Increments::Single {
        continue_probability: 0.8,
    };
    const DOUBLING: Increments = Increments::Doubling { max_level: 11 };

    fn noise(step: u64) -> Noise {
        Noise::new(21, Purpose::Test, step)
    }

    /// Mean of L̂ and its estimated standard error over `repeats` steps with fresh lengths and samples.
    fn repeated(settings: Roulette, y: f64, repeats: u64) -> (f64, f64) {
        let model = GaussianModel::STANDARD;
        let y = Matrix::from_vec(vec![y as f32], 1);
        let values: Vec<f64> = (0..repeats)
            .map(|step| {
                let needed = settings.samples_needed(noise(step)).unwrap();
                let x = model.samples(noise(step), needed);
                let found = roulette(
                    &model.likelihood(),
                    Batch::from(y.view()),
                    Samples::Shared(x.view()),
                    &settings,
                    noise(step),
                    Gradient::Sparse,
                );
                found.unwrap().value
            })
            .collect();
        let n = repeats as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        (mean, (variance / n).sqrt())
    }

    /// L_4 alone would be off by about r/8. Bound: 4 standard errors (false-alarm rate 6e-5 each).
    #[test]
    fn doubling_is_unbiased() {
        let settings = Roulette {
            k: 4,
            increments: DOUBLING,
        };
        for (y, log_q, r) in [(0.0, -1.030510, 0.666667), (1.0, -1.430510, 1.378289)] {
            let (mean, error) = repeated(settings, y, 20_000);
            assert!(r / 8.0 > 10.0 * error, "the error {error} hides the bias");
            assert!((mean - log_q).abs() < 4.0 * error, "{mean} ± {error}");
        }
    }

    /// The variance is infinite, so the bound of 4 estimated standard errors has no exact false-alarm
    /// rate. A small K makes the bias to be removed large (r/8 = 0.083), and c close to 1 keeps the
    /// weights of the increments moderate: cʲ falls to 1/20 000 only where they have variance r/3300².
    #[test]
    fn single_is_unbiased() {
        let settings = Roulette {
            k: 4,
            increments: Increments::Single {
                continue_probability: 0.997,
            },
        };
        let (mean, error) = repeated(settings, 0.0, 20_000);
        assert!(0.083 > 6.0 * error, "the error {error} hides the bias");
        assert!((mean + 1.030510).abs() < 4.0 * error, "{mean} ± {error}");
    }

    /// Averaged over J, with J cut at m, the estimate of one set of samples is L_{K+m+1} exactly.
    #[test]
    fn single_telescopes_over_the_law_of_j() {
        let (k, c, m) = (3, 0.6f64, 30);
        let x = noise(5).normal(k + m + 1, 1);
        let log_probs: Vec<f32> = x.values().iter().map(|x| -2.0 * x * x).collect();
        let survival = |j: usize| c.powi(j as i32);
        let mean: f64 = (0..=m)
            .map(|j| {
                let probability = survival(j) - if j < m { survival(j + 1) } else { 0.0 };
                probability * single(&log_probs[..k + j + 1], k, c).value
            })
            .sum();
        let terms = log_probs.iter().map(|&l| f64::from(l).exp());
        let exact = (terms.sum::<f64>() / (k + m + 1) as f64).ln();
        assert!((mean - exact).abs() < 1e-6, "{mean} is not {exact}");
    }

    /// Frequencies of J ≥ j and Λ ≥ l in 50 000 draws. Bound: 4.5 standard errors (7e-6 each).
    #[test]
    fn lengths_follow_their_laws() {
        let n = 50_000;
        for (increments, survival) in [
            (SINGLE, (|j| 0.8f64.powi(j)) as fn(i32) -> f64),
            (DOUBLING, |l| 2f64.powf(-1.5 * f64::from(l))),
        ] {
            let settings = Roulette { k: 8, increments };
            let lengths: Vec<i32> = (0..n)
                .map(|step| {
                    let needed = settings.samples_needed(noise(step)).unwrap();
                    match increments {
                        Increments::Single { .. } => (needed - 9) as i32,
                        Increments::Doubling { .. } => (needed / 8).ilog2() as i32,
                    }
                })
                .collect();
            for length in 0..6 {
                let p = survival(length);
                let found = lengths.iter().filter(|&&l| l >= length).count() as f64 / n as f64;
                let error = (p * (1.0 - p) / n as f64).sqrt();
                assert!((found - p).abs() <= 4.5 * error, "{found} is not {p}");
            }
        }
    }

    /// L̂ in plain `f64`, term by term as in the module's formulas.
    fn definition(increments: Increments, k: usize, y: &[f32], x: &[f64]) -> f64 {
        let dim = y.len();
        let n = x.len() / dim;
        let l = |range: std::ops::Range<usize>| {
            log_mean_exp(y, &x[range.start * dim..range.end * dim], 0.5)
        };
        match increments {
            Increments::Single {
                continue_probability: c,
            } => {
                let increment = |j: usize| (l(0..k + j + 1) - l(0..k + j)) / c.powi(j as i32);
                l(0..k) + (0..n - k).map(increment).sum::<f64>()
            }
            Increments::Doubling { .. } => {
                let level_mean = |level: usize| {
                    let size = k << level;
                    let blocks = n / size;
                    (0..blocks)
                        .map(|block| l(block * size..(block + 1) * size))
                        .sum::<f64>()
                        / blocks as f64
                };
                let levels = (n / k).ilog2() as usize;
                level_mean(0)
                    + (1..=levels)
                        .map(|l| (level_mean(l) - level_mean(l - 1)) * 2f64.powf(1.5 * l as f64))
                        .sum::<f64>()
            }
        }
    }

    /// A step whose length gives at least `least` samples.
    fn long_step(settings: &Roulette, least: usize) -> (Noise, usize) {
        (0..)
            .map(|step| (noise(step), settings.samples_needed(noise(step)).unwrap()))
            .find(|(_, needed)| *needed >= least)
            .unwrap()
    }

    const PLANE: AdditiveNoise = AdditiveNoise {
        dim: 2,
        deviation: 0.5,
    };

    #[test]
    fn value_and_gradient_are_those_of_the_definition() {
        let y = noise(100).normal(3, 2);
        for increments in [SINGLE, DOUBLING] {
            let settings = Roulette { k: 5, increments };
            let (at_step, n) = long_step(&settings, 18);
            for independent in [false, true] {
                let x = noise(101).normal(if independent { 3 * n } else { n }, 2);
                let samples = if independent {
                    Samples::Independent(x.view())
                } else {
                    Samples::Shared(x.view())
                };
                let run = |gradient| {
                    let batch = Batch::from(y.view());
                    roulette(&PLANE, batch, samples, &settings, at_step, gradient).unwrap()
                };
                let value = |x: &[f64]| -> f64 {
                    (0..3)
                        .map(|row| {
                            let own = if independent {
                                &x[row * 2 * n..(row + 1) * 2 * n]
                            } else {
                                x
                            };
                            definition(increments, 5, y.row(row), own) / 3.0
                        })
                        .sum()
                };
                let at: Vec<f64> = x.values().iter().map(|&v| f64::from(v)).collect();
                let dense = run(Gradient::Dense);
                assert!((dense.value - value(&at)).abs() < 2e-5);
                finite_differences(value, &at, dense.grad_x.values(), 2e-5);
                finite_differences(value, &at, run(Gradient::Sparse).grad_x.values(), 2e-5);
            }
        }
    }

    #[test]
    fn a_block_that_sees_nothing_is_an_error() {
        let y = Matrix::from_vec(vec![1.0], 1);
        for increments in [SINGLE, DOUBLING] {
            let settings = Roulette { k: 2, increments };
            let (at_step, n) = long_step(&settings, 4);
            let x = Matrix::from_fn(n, 1, |row, _| if row < 2 { 0.0 } else { 1.0 });
            let error = roulette(
                &PointMass,
                Batch::from(y.view()),
                Samples::Shared(x.view()),
                &settings,
                at_step,
                Gradient::Sparse,
            )
            .unwrap_err();
            assert!(error.to_string().contains("row 0"), "{error}");
            assert!(error.to_string().contains("-inf"), "{error}");
        }
    }

    #[test]
    fn settings_and_sample_numbers_are_checked() {
        let bad = [
            (0, DOUBLING),
            (4, Increments::Doubling { max_level: 60 }),
            (
                4,
                Increments::Single {
                    continue_probability: 1.0,
                },
            ),
        ];
        for (k, increments) in bad {
            let settings = Roulette { k, increments };
            assert!(settings.samples_needed(noise(0)).is_err());
        }
        let settings = Roulette::new(4);
        let n = settings.samples_needed(noise(0)).unwrap();
        let x = Matrix::zeros(n + 1, 2);
        let y = Matrix::zeros(1, 2);
        let batch = Batch::from(y.view());
        let samples = Samples::Shared(x.view());
        let mode = Gradient::Sparse;
        assert!(roulette(&PLANE, batch, samples, &settings, noise(0), mode).is_err());
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let y = noise(200).normal(50, 2);
        for increments in [SINGLE, DOUBLING] {
            let settings = Roulette { k: 150, increments };
            let (at_step, n) = long_step(&settings, 153);
            let x = noise(201).normal(n, 2);
            let results = with_threads(|| {
                let batch = Batch::from(y.view());
                let samples = Samples::Shared(x.view());
                let mode = Gradient::Sparse;
                let found = roulette(&PLANE, batch, samples, &settings, at_step, mode).unwrap();
                (found.values, found.grad_x)
            });
            assert!(results.iter().all(|result| *result == results[0]));
        }
    }
}
