//! Rejection, the paper's method: samples of the source, each accepted with probability q(y|x) / max_x q(y|x).
//!
//! The bank of samples is drawn chunk by chunk, once for all observations. The maximum is the greatest value over the
//! first samples, moved uphill until it is stable, within the region the samples cover. Every accepted sample keeps its score
//! log q(y|x) − log u, u the uniform number it was accepted with: if a later sample turns out to be higher than the
//! maximum, the maximum rises and draws whose score is below it are dropped, as if it had been known from the start.

use rayon::prelude::*;

use super::ascent::{Hill, PILOT, best_samples, widths_from};
use super::bank::{BLOCK, Bank, CHUNK, Extent};
use super::clock::Clock;
use super::{Draws, Method, Posterior, PosteriorOptions, Stopped, not_finite};
use crate::{Error, Matrix, Noise, Purpose, Result, Rows, Stream};

/// log of the smallest uniform number that can be drawn.
const LOWEST_LOG: f32 = -37.5;

impl Posterior<'_> {
    /// Draws from every observation's posterior by rejection.
    ///
    /// The draws of one observation are independent; those of different observations come from the same bank.
    ///
    /// # Errors
    /// Observations that cannot be used; a likelihood that is NaN or infinite.
    pub fn rejection(&self, y: Rows, options: &PosteriorOptions) -> Result<Draws> {
        self.check(y)?;
        if options.draws == 0 {
            return Err(Error::input(
                "0 draws per observation",
                "ask for at least 1",
            ));
        }
        let clock = self.clock(&options.budget);
        let maxima = self.likelihood_maxima(y, options, clock)?;
        let dim = self.prior.dim();
        let mut rows: Vec<Accepted> = maxima
            .into_iter()
            .enumerate()
            .map(|(observation, log_max)| Accepted::new(observation, log_max))
            .collect();
        let bank = Bank {
            source: self.prior,
            seed: options.seed,
        };
        let mut samples = 0;
        let stopped = loop {
            let done = rows.iter().filter(|row| row.done).count();
            clock.tell(done, rows.len());
            if done == rows.len() {
                break None;
            }
            let left = options.budget.max_samples - samples;
            if left == 0 {
                break Some(Stopped::Samples);
            }
            let chunk = samples / CHUNK as u64;
            let x = bank.chunk(chunk, CHUNK.min(left as usize));
            if !self.visit(y, &x, chunk, &mut rows, options, clock)? {
                break Some(Stopped::Seconds);
            }
            samples += x.rows() as u64;
        };
        let mut draws = Draws::empty(Method::Rejection, y.rows(), dim, options.draws);
        draws.samples = samples;
        draws.stopped = stopped;
        for (observation, row) in rows.iter().enumerate() {
            draws.put(observation, &row.x);
            let found = draws.found[observation] as f64;
            draws.ess[observation] = found;
            draws.acceptance.push(found / row.tried.max(1) as f64);
            draws.max_log_likelihood.push(row.log_max);
        }
        Ok(draws)
    }

    /// max_x log q(y|x) over the region of the bank.
    pub(super) fn likelihood_maxima(
        &self,
        y: Rows,
        options: &PosteriorOptions,
        clock: Clock,
    ) -> Result<Vec<f32>> {
        let bank = Bank {
            source: self.prior,
            seed: options.seed,
        };
        let rows = PILOT.min(options.budget.max_samples.max(1) as usize);
        let x = bank.first(rows);
        let widths = widths_from(self.likelihood, y, x.view(), options.seed);
        let wide = widths[0].likelihood(self.likelihood);
        let starts = best_samples(&*wide, y, &x, None)?;
        let hill = Hill {
            likelihood: self.likelihood,
            density: self.prior.density(),
            prior_counts: false,
            y,
            extent: &Extent::of(&x),
        };
        Ok(hill.climb(starts, &widths, clock).log_prob)
    }

    /// Shows a chunk of the bank to every observation that is not done; false if the seconds were over before.
    fn visit(
        &self,
        y: Rows,
        x: &Matrix,
        chunk: u64,
        rows: &mut [Accepted],
        options: &PosteriorOptions,
        clock: Clock,
    ) -> Result<bool> {
        let noise = Noise::new(options.seed, Purpose::Posterior, chunk);
        let mut active: Vec<&mut Accepted> = rows.iter_mut().filter(|row| !row.done).collect();
        let mut logs = Matrix::zeros(BLOCK.min(active.len()), x.rows());
        for block in active.chunks_mut(BLOCK) {
            if clock.is_over() {
                return Ok(false);
            }
            let owners: Vec<u32> = block.iter().map(|row| row.observation as u32).collect();
            let y = y.gather(&owners);
            let logs = &mut logs.values_mut()[..block.len() * x.rows()];
            let view = crate::MatrixMut::new(logs, x.rows());
            self.likelihood.log_prob_pairs(y.view(), x.view(), view);
            let outcomes: Vec<Result<()>> = block
                .par_iter_mut()
                .zip(logs.par_chunks(x.rows()))
                .map(|(row, logs)| {
                    let stream = noise.stream(row.observation as u64);
                    row.take(logs, x, stream, options.draws)
                })
                .collect();
            outcomes.into_iter().collect::<Result<()>>()?;
        }
        Ok(true)
    }
}

/// What one observation has accepted so far.
struct Accepted {
    observation: usize,
    log_max: f32,
    /// The accepted samples, one after the other.
    x: Vec<f32>,
    /// log q(y|x) − log u of each of them.
    scores: Vec<f32>,
    /// Samples of the bank that were tried.
    tried: u64,
    done: bool,
}

impl Accepted {
    fn new(observation: usize, log_max: f32) -> Self {
        Self {
            observation,
            log_max,
            x: Vec::new(),
            scores: Vec::new(),
            tried: 0,
            done: false,
        }
    }

    /// Accepts from a chunk of samples with these log-likelihoods, until there are `wanted`.
    fn take(
        &mut self,
        logs: &[f32],
        samples: &Matrix,
        mut stream: Stream,
        wanted: usize,
    ) -> Result<()> {
        let greatest = crate::estimator::largest(logs);
        if greatest == f32::INFINITY {
            return Err(not_finite(self.observation, greatest));
        }
        if greatest > self.log_max {
            self.raise(greatest, samples.cols());
        }
        if self.log_max == f32::NEG_INFINITY {
            self.tried += logs.len() as u64;
            return Ok(());
        }
        let floor = self.log_max + LOWEST_LOG;
        for (k, &log) in logs.iter().enumerate() {
            if log <= floor {
                continue;
            }
            if log.is_nan() {
                return Err(not_finite(self.observation, log));
            }
            let score = log - log_uniform(&mut stream);
            if score > self.log_max {
                self.x.extend_from_slice(samples.row(k));
                self.scores.push(score);
                if self.scores.len() == wanted {
                    self.tried += k as u64 + 1;
                    self.done = true;
                    return Ok(());
                }
            }
        }
        self.tried += logs.len() as u64;
        Ok(())
    }

    /// A greater maximum: keeps the draws that would have been accepted with it.
    fn raise(&mut self, log_max: f32, dim: usize) {
        self.log_max = log_max;
        let mut kept = 0;
        for draw in 0..self.scores.len() {
            if self.scores[draw] > log_max {
                self.scores[kept] = self.scores[draw];
                self.x.copy_within(draw * dim..(draw + 1) * dim, kept * dim);
                kept += 1;
            }
        }
        self.scores.truncate(kept);
        self.x.truncate(kept * dim);
    }
}

/// log of a uniform number with 53 random bits: samples far below the maximum must be accepted as often as they should.
fn log_uniform(stream: &mut Stream) -> f32 {
    let bits = stream.below(1 << 53) as f64;
    ((bits + 0.5) / (1u64 << 53) as f64).ln() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws kept when the maximum rises are those that the risen maximum accepts from the start.
    #[test]
    fn a_late_maximum_leaves_what_an_early_one_accepts() {
        let noise = Noise::new(3, Purpose::Test, 0);
        let samples = noise.normal(2000, 1);
        let logs: Vec<f32> = samples.values().iter().map(|x| -x * x).collect();
        let run = |log_max: f32| {
            let mut row = Accepted::new(0, log_max);
            row.take(&logs, &samples, noise.stream(9), usize::MAX)
                .unwrap();
            row
        };
        let mut late = run(0.0);
        let early = run(1.5);
        assert!(late.scores.len() > early.scores.len() && early.scores.len() > 50);
        late.raise(1.5, 1);
        assert_eq!((late.x, late.scores), (early.x, early.scores));
    }
}
