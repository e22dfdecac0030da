//! What happens to populations of points at one width of the likelihood: weights, resampling, Hamiltonian moves.

use rayon::prelude::*;

use super::super::importance::systematic;
use super::Flight;
use crate::source::effective_samples;
use crate::{Likelihood, Matrix, Noise, PairWeights, Rows};

/// Points are resampled when no more than this share of them is effective.
const RESAMPLED: f64 = 0.5;
/// Points do not move where a narrower likelihood leaves this share of them effective: it says the same.
const SAME: f64 = 0.98;
/// Leapfrog steps of a move.
const STEPS: usize = 6;
/// First step size, in deviations of the source.
const FIRST_STEP: f64 = 0.05;
/// Share of accepted moves that the step size is led to.
const WANTED_ACCEPTANCE: f64 = 0.75;

/// The points of one observation.
pub(super) struct Population {
    pub(super) observation: usize,
    /// Number of the width it begins at.
    pub(super) begins: usize,
    pub(super) step: f64,
    pub(super) acceptance: f64,
    pub(super) x: Vec<f32>,
    /// At the present width.
    pub(super) log_likelihood: Vec<f32>,
    pub(super) log_prior: Vec<f32>,
    pub(super) log_weight: Vec<f32>,
    /// The bank's sample each point descends from.
    pub(super) ancestors: Vec<u32>,
}

/// Some observations and the likelihood at the present width.
pub(super) struct Scene<'a> {
    pub(super) flight: &'a Flight<'a>,
    pub(super) likelihood: &'a dyn Likelihood,
    pub(super) y: Rows<'a>,
    /// Number of the first observation.
    pub(super) first: usize,
}

impl Scene<'_> {
    /// Evaluates every point at the present width.
    pub(super) fn look(&self, populations: &mut [Population]) {
        let owners = owners(populations, self.first);
        if owners.is_empty() {
            return;
        }
        let (likelihood, prior) = self.values(&owners, all_points(populations, self.dim()).view());
        let mut at = 0;
        for population in populations {
            let count = population.ancestors.len();
            population.log_likelihood = likelihood[at..at + count].to_vec();
            population.log_prior = prior[at..at + count].to_vec();
            at += count;
        }
    }

    /// Weights every point for the present width, which is narrower by `ratio` than the last one, and resamples where needed.
    /// Tells which populations it makes a difference to.
    pub(super) fn narrow(
        &self,
        populations: &mut [Population],
        ratio: f64,
        noise: Noise,
    ) -> Vec<bool> {
        let before: Vec<Vec<f32>> = populations
            .iter()
            .map(|population| population.log_likelihood.clone())
            .collect();
        self.look(populations);
        let narrowed = populations.par_iter_mut().zip(before);
        let narrowed = narrowed.map(|(population, before)| {
            let count = population.ancestors.len() as f64;
            let now = population.log_likelihood.iter();
            let rise = now.zip(before).map(|(&now, before)| {
                // Impossible now, and perhaps before: no difference of infinities.
                if now == f32::NEG_INFINITY {
                    now
                } else {
                    now - before
                }
            });
            let rise: Vec<f32> = rise.collect();
            for (weight, rise) in population.log_weight.iter_mut().zip(&rise) {
                *weight += rise;
            }
            if effective_samples(&population.log_weight) <= RESAMPLED * count {
                population.resample(&mut noise.stream(population.observation as u64));
            }
            let changed = effective_samples(&rise) < SAME * count;
            if changed {
                population.step *= ratio;
            }
            changed
        });
        narrowed.collect()
    }

    fn dim(&self) -> usize {
        self.flight.bank.cols()
    }

    /// log q(y|x) and log q(x) of points.
    fn values(&self, owners: &[u32], x: Rows) -> (Vec<f32>, Vec<f32>) {
        let (mut likelihood, mut prior) = (vec![0.0; x.rows()], vec![0.0; x.rows()]);
        let y = self.y.gather(owners);
        self.likelihood.log_prob(y.view(), x, &mut likelihood);
        self.flight.density.log_prob(x, &mut prior);
        (likelihood, prior)
    }

    /// Moves every point; false if the time was over.
    pub(super) fn moves(
        &self,
        populations: &mut [Population],
        moves: usize,
        round: &mut u64,
    ) -> bool {
        for _ in 0..moves {
            if self.flight.clock.is_over() {
                return false;
            }
            *round += 1;
            self.one_move(populations, self.flight.noise(*round));
        }
        *round += 1;
        true
    }

    /// One Hamiltonian move of every point, in units of the source's deviations.
    fn one_move(&self, populations: &mut [Population], noise: Noise) {
        let dim = self.dim();
        let owners = owners(populations, self.first);
        if owners.is_empty() {
            return;
        }
        let mut x = all_points(populations, dim);
        // Step size of this move, momenta and the uniform number of each point's decision.
        let drawn: Vec<(f64, Vec<f64>, Vec<f64>)> = populations
            .par_iter()
            .map(|population| {
                let mut stream = noise.stream(population.observation as u64);
                let count = population.ancestors.len();
                let step = population.step * (0.7 + 0.6 * stream.uniform());
                let momenta = (0..count * dim).map(|_| stream.normal()).collect();
                let decisions = (0..count).map(|_| stream.uniform().ln()).collect();
                (step, momenta, decisions)
            })
            .collect();
        let counts = populations.iter().map(|p| p.ancestors.len());
        let spread = |value: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let each = counts.clone().enumerate();
            each.flat_map(|(at, count)| std::iter::repeat_n(value(at), count))
                .collect()
        };
        let steps = spread(&|at| drawn[at].0);
        let mut momenta: Vec<f64> = drawn.iter().flat_map(|d| d.1.iter().copied()).collect();
        let decisions: Vec<f64> = drawn.iter().flat_map(|d| d.2.iter().copied()).collect();
        let kinetic = |momenta: &[f64], row: usize| -> f64 {
            let own = &momenta[row * dim..(row + 1) * dim];
            0.5 * own.iter().map(|p| p * p).sum::<f64>()
        };
        let before: Vec<f64> = (0..owners.len())
            .map(|row| kinetic(&momenta, row))
            .collect();
        for leap in 0..=STEPS {
            let slopes = self.slopes(&owners, x.view());
            let half = if leap == 0 || leap == STEPS { 0.5 } else { 1.0 };
            for row in 0..owners.len() {
                for d in 0..dim {
                    let unit = f64::from(self.flight.extent.deviation[d]);
                    let p = &mut momenta[row * dim + d];
                    *p += half * steps[row] * unit * f64::from(slopes.row(row)[d]);
                    if leap < STEPS {
                        x.row_mut(row)[d] += (steps[row] * unit * *p) as f32;
                    }
                }
            }
        }
        let (likelihood, prior) = self.values(&owners, x.view());
        let mut at = 0;
        for population in populations {
            let mut accepted = 0;
            for k in 0..population.ancestors.len() {
                let row = at + k;
                let energy = |l: f32, p: f32| f64::from(l) + f64::from(p);
                let gain = energy(likelihood[row], prior[row])
                    - energy(population.log_likelihood[k], population.log_prior[k])
                    + before[row]
                    - kinetic(&momenta, row);
                if gain > decisions[row] {
                    accepted += 1;
                    population.x[k * dim..(k + 1) * dim].copy_from_slice(x.row(row));
                    population.log_likelihood[k] = likelihood[row];
                    population.log_prior[k] = prior[row];
                }
            }
            let count = population.ancestors.len();
            at += count;
            population.acceptance = f64::from(accepted) / count.max(1) as f64;
            let surplus = population.acceptance - WANTED_ACCEPTANCE;
            population.step = (population.step * surplus.exp()).clamp(1e-7, 1.0);
        }
    }

    /// ∂/∂x of log q(y|x) + log q(x).
    fn slopes(&self, owners: &[u32], x: Rows) -> Matrix {
        let mut slopes = Matrix::zeros(x.rows(), x.cols());
        let weights = PairWeights::one_each(owners);
        self.likelihood
            .grad_x_pairs(self.y, x, &weights, slopes.view_mut());
        let density = self.flight.density;
        density.backward_log_prob(x, &vec![1.0; x.rows()], slopes.view_mut(), None);
        slopes
    }
}

/// The row of y that each point of all populations belongs to.
fn owners(populations: &[Population], first: usize) -> Vec<u32> {
    let each = populations.iter().flat_map(|population| {
        let row = (population.observation - first) as u32;
        std::iter::repeat_n(row, population.ancestors.len())
    });
    each.collect()
}

/// The points of all populations.
fn all_points(populations: &[Population], dim: usize) -> Matrix {
    let x = populations.iter().flat_map(|p| p.x.iter().copied());
    Matrix::from_vec(x.collect(), dim)
}

impl Population {
    pub(super) fn empty(observation: usize) -> Self {
        Self {
            observation,
            begins: 0,
            step: FIRST_STEP,
            acceptance: 0.0,
            x: Vec::new(),
            log_likelihood: Vec::new(),
            log_prior: Vec::new(),
            log_weight: Vec::new(),
            ancestors: Vec::new(),
        }
    }

    /// Resamples the points by their weights, which are equal afterwards.
    pub(super) fn resample(&mut self, stream: &mut crate::Stream) {
        let count = self.ancestors.len();
        let (places, _) = systematic(&self.log_weight, count, stream);
        if places.is_empty() {
            return;
        }
        let dim = self.x.len() / count;
        let x = places.iter().flat_map(|&k| &self.x[k * dim..(k + 1) * dim]);
        self.x = x.copied().collect();
        self.ancestors = places.iter().map(|&k| self.ancestors[k]).collect();
        self.log_likelihood = places.iter().map(|&k| self.log_likelihood[k]).collect();
        self.log_prior = places.iter().map(|&k| self.log_prior[k]).collect();
        self.log_weight.fill(0.0);
    }
}
