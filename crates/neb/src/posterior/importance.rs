//! Importance resampling: a bank of samples weighted by w_k = q(y|x_k), draws taken from it in proportion to the weights.
//!
//! The samples are those of the source, shared by all observations, or those of a recognition network, different for each,
//! with w_k = q(y|x_k) q(x_k) / q_ψ(x_k|y). The effective number (Σ w)²/Σ w² says how many different samples the draws stand
//! for; Pareto k̂ says whether the weights can be believed at all.

use rayon::prelude::*;

use super::ascent::Hill;
use super::bank::{Bank, Extent};
use super::pareto::pareto_k;
use super::{Draws, Method, Posterior, PosteriorOptions, Recognise, Stopped, not_finite};
use crate::{Error, Matrix, Noise, Purpose, Result, Rows, Stream};

/// Samples of the first bank; of the second, for observations whose effective number is below the draws asked for.
const BANKS: [u64; 2] = [1 << 17, 1 << 20];
/// Pairs of observations and samples that are in memory at once.
const PAIRS_AT_ONCE: usize = 1 << 23;
/// Fewest proposals of a recognition network per observation.
const FEWEST_PROPOSALS: usize = 4096;

/// Draws of one observation and what is known about them.
struct Resampled {
    places: Vec<usize>,
    ess: f64,
    pareto_k: f64,
}

impl Posterior<'_> {
    /// Draws from every observation's posterior by resampling source samples.
    ///
    /// # Errors
    /// Observations that cannot be used; a likelihood that is NaN or infinite.
    pub fn importance(&self, y: Rows, options: &PosteriorOptions) -> Result<Draws> {
        let mut draws = self.begin(y, options)?;
        let clock = self.clock(&options.budget);
        let bank = Bank {
            source: self.prior,
            seed: options.seed,
        };
        let mut wanting: Vec<u32> = (0..y.rows() as u32).collect();
        for size in BANKS {
            let size = size.min(options.budget.max_samples);
            if wanting.is_empty() || size <= draws.samples {
                break;
            }
            let x = bank.first(size as usize);
            draws.samples = size;
            clock.tell(0, wanting.len());
            for rows in wanting.chunks((PAIRS_AT_ONCE / x.rows()).max(1)) {
                if clock.is_over() {
                    draws.stopped = Some(Stopped::Seconds);
                    return Ok(draws);
                }
                let mut logs = Matrix::zeros(rows.len(), x.rows());
                let y = y.gather(rows);
                self.likelihood
                    .log_prob_pairs(y.view(), x.view(), logs.view_mut());
                let found: Vec<Result<Resampled>> = rows
                    .par_iter()
                    .zip(logs.values().par_chunks(x.rows()))
                    .map(|(&row, logs)| resample(logs, row as usize, options))
                    .collect();
                for (&row, found) in rows.iter().zip(found) {
                    clock.tell_one();
                    draws.take(row as usize, x.view(), &found?);
                }
            }
            wanting.retain(|&row| draws.ess[row as usize] < options.draws as f64);
        }
        Ok(draws)
    }

    /// Draws from every observation's posterior by resampling those of a recognition network.
    ///
    /// # Errors
    /// A source without a density; observations that cannot be used; a likelihood that is NaN or infinite.
    pub fn importance_from(
        &self,
        recognition: &dyn Recognise,
        y: Rows,
        options: &PosteriorOptions,
    ) -> Result<Draws> {
        let mut draws = self.begin(y, options)?;
        let density = self.density()?;
        let clock = self.clock(&options.budget);
        let most = usize::try_from(options.budget.max_samples).unwrap_or(usize::MAX);
        let proposals = FEWEST_PROPOSALS.max(4 * options.draws).min(most).max(1);
        let block = (PAIRS_AT_ONCE / 16 / proposals).max(1);
        for first in (0..y.rows()).step_by(block) {
            if clock.is_over() {
                draws.stopped = Some(Stopped::Seconds);
                break;
            }
            clock.tell(first, y.rows());
            let rows = first..y.rows().min(first + block);
            let block_y = y.slice(rows.clone());
            let noise = Noise::new(options.seed, Purpose::Posterior, (3 << 40) + first as u64);
            let (x, log_proposal) = recognition.draw(block_y, proposals, noise);
            let owners: Vec<u32> = (0..x.rows()).map(|row| (row / proposals) as u32).collect();
            let hill = Hill {
                likelihood: self.likelihood,
                density: Some(density),
                prior_counts: true,
                y: block_y,
                extent: &Extent::of(&x),
            };
            let mut logs = hill.values(&owners, x.view());
            for (log, proposal) in logs.iter_mut().zip(&log_proposal) {
                *log -= proposal;
            }
            for (at, row) in rows.enumerate() {
                let own = at * proposals..(at + 1) * proposals;
                let found = resample(&logs[own.clone()], row, options)?;
                draws.take(row, x.view().slice(own), &found);
            }
            draws.samples += (block_y.rows() * proposals) as u64;
        }
        Ok(draws)
    }

    fn begin(&self, y: Rows, options: &PosteriorOptions) -> Result<Draws> {
        self.check(y)?;
        if options.draws == 0 || options.budget.max_samples == 0 {
            return Err(Error::input(
                format!(
                    "{} draws per observation from {} samples",
                    options.draws, options.budget.max_samples
                ),
                "ask for at least 1 of each",
            ));
        }
        let mut draws = Draws::empty(
            Method::Importance,
            y.rows(),
            self.prior.dim(),
            options.draws,
        );
        draws.pareto_k = vec![f64::INFINITY; y.rows()];
        Ok(draws)
    }
}

impl Draws {
    fn take(&mut self, observation: usize, samples: Rows, resampled: &Resampled) {
        let rows = resampled.places.iter().flat_map(|&k| samples.row(k));
        let rows: Vec<f32> = rows.copied().collect();
        self.put(observation, &rows);
        self.ess[observation] = resampled.ess;
        self.pareto_k[observation] = resampled.pareto_k;
    }
}

/// Resamples in proportion to the weights; nothing where all of them are zero.
fn resample(logs: &[f32], observation: usize, options: &PosteriorOptions) -> Result<Resampled> {
    if let Some(&bad) = logs
        .iter()
        .find(|log| log.is_nan() || **log == f32::INFINITY)
    {
        return Err(not_finite(observation, bad));
    }
    // Beside the steps of rejection, which count chunks of the bank.
    let noise = Noise::new(options.seed, Purpose::Posterior, 1 << 40);
    let mut stream = noise.stream(observation as u64);
    let (places, ess) = systematic(logs, options.draws, &mut stream);
    Ok(Resampled {
        places,
        ess,
        pareto_k: pareto_k(logs),
    })
}

/// Systematic resampling of `wanted` places in proportion to e^log, and the effective number of the weights.
pub(super) fn systematic(logs: &[f32], wanted: usize, stream: &mut Stream) -> (Vec<usize>, f64) {
    let greatest = crate::estimator::largest(logs);
    if greatest == f32::NEG_INFINITY {
        return (Vec::new(), 0.0);
    }
    let weight = |log: f32| f64::from(crate::estimator::exp_or_zero(log - greatest));
    let (mut total, mut squares) = (0.0, 0.0);
    for &log in logs {
        let weight = weight(log);
        total += weight;
        squares += weight * weight;
    }
    let stride = total / wanted as f64;
    let mut next = stride * stream.uniform();
    let mut places = Vec::with_capacity(wanted);
    let mut sum = 0.0;
    let mut last = 0;
    for (place, &log) in logs.iter().enumerate() {
        let weight = weight(log);
        if weight > 0.0 {
            last = place;
        }
        sum += weight;
        while next < sum && places.len() < wanted {
            places.push(place);
            next += stride;
        }
    }
    // Rounding may leave the last draw beyond the sum.
    places.resize(wanted, last);
    (places, total * total / squares)
}
