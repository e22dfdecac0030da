//! Annealing: a population of points per observation that follows the likelihood from wide to narrow.
//!
//! Where the likelihood is so narrow that no bank of source samples meets it (a noise of 10⁻⁴, say), rejection and
//! importance fail. The laws p_β(x) ∝ q(y|x)^β q(x) lead from the source (β = 0) to the posterior (β = 1). The first β is the
//! greatest one that the bank can bear; from there β rises so far that half of the population keeps its weight, the
//! population is resampled by the weights q(y|x)^(β' − β), and every point makes a few Hamiltonian moves that leave p_β'
//! as it is (a sequential Monte Carlo sampler: Del Moral, Doucet and Jasra 2006). Modes keep their weight on the way, which chains
//! cannot promise.
//!
//! The effective number of draws is that of the bank's samples they descend from: a lower bound, for the moves make new points.

use std::time::Instant;

use rayon::prelude::*;

use super::bank::{Bank, Extent};
use super::importance::systematic;
use super::{Draws, Method, Posterior, PosteriorOptions, Stopped, is_over, not_finite};
use crate::source::Density;
use crate::{Error, Matrix, Noise, PairWeights, Purpose, Result, Rows};

/// Samples of the bank.
const BANK: u64 = 1 << 17;
/// Pairs of observations and bank samples in memory at once.
const PAIRS_AT_ONCE: usize = 1 << 23;
/// Points of all observations that move at once.
const POINTS_AT_ONCE: usize = 1 << 16;
/// Effective samples of the bank behind each point of the first population.
const FIRST_EFFECTIVE: f64 = 4.0;
/// Fewest points of a population.
const FEWEST_POINTS: usize = 200;
/// Share of the population that keeps its weight when β rises.
const KEPT: f64 = 0.5;
/// Hamiltonian moves of each point: at the first β, at every other, and at the end.
const FIRST_MOVES: usize = 6;
const MOVES: usize = 3;
const LAST_MOVES: usize = 6;
/// Leapfrog steps of a move.
const STEPS: usize = 6;
/// First step size, in deviations of the source.
const FIRST_STEP: f64 = 0.05;
/// Share of accepted moves that the step size is led to.
const WANTED_ACCEPTANCE: f64 = 0.75;
/// Most values of β.
const MOST_LEVELS: usize = 100;

impl Posterior<'_> {
    /// Draws from every observation's posterior by annealing.
    ///
    /// # Errors
    /// A source without a density; observations that cannot be used; a likelihood that is NaN or infinite.
    pub fn annealed(&self, y: Rows, options: &PosteriorOptions) -> Result<Draws> {
        self.check(y)?;
        let density = self.density()?;
        if options.draws == 0 {
            return Err(Error::input(
                "0 draws per observation",
                "ask for at least 1",
            ));
        }
        let points = options.draws.max(FEWEST_POINTS);
        let bank = Bank {
            source: self.prior,
            seed: options.seed,
        };
        let bank = bank.first(BANK.min(options.budget.max_samples.max(1)) as usize);
        let flight = Flight {
            posterior: *self,
            density,
            extent: Extent::of(&bank),
            bank,
            points,
            seed: options.seed,
            deadline: options.budget.deadline(),
        };
        let mut draws = Draws::empty(Method::Annealed, y.rows(), self.prior.dim(), options.draws);
        draws.samples = flight.bank.rows() as u64;
        draws.acceptance = vec![0.0; y.rows()];
        let block = (POINTS_AT_ONCE / points).max(1);
        for first in (0..y.rows()).step_by(block) {
            let rows = first..y.rows().min(first + block);
            let Some(populations) = flight.run(y.slice(rows), first)? else {
                draws.stopped = Some(Stopped::Seconds);
                break;
            };
            for population in populations {
                draws.take_population(&population);
            }
        }
        Ok(draws)
    }
}

impl Draws {
    fn take_population(&mut self, population: &Population) {
        let row = population.observation;
        if population.ancestors.is_empty() {
            return;
        }
        let wanted = self.per_observation;
        let dim = self.x.cols();
        // Neighbours in the population share ancestors: every so many rather than the first ones.
        let count = population.ancestors.len();
        let chosen = (0..wanted).map(|draw| draw * count / wanted);
        let x = chosen.flat_map(|k| &population.x[k * dim..(k + 1) * dim]);
        let x: Vec<f32> = x.copied().collect();
        self.put(row, &x);
        self.ess[row] = distinct(&population.ancestors).min(wanted as f64);
        self.acceptance[row] = population.acceptance;
    }
}

/// (Σ c)²/Σ c² of the number of points that descend from each sample.
fn distinct(ancestors: &[u32]) -> f64 {
    let mut sorted = ancestors.to_vec();
    sorted.sort_unstable();
    let squares = sorted
        .chunk_by(|a, b| a == b)
        .map(|run| (run.len() as f64).powi(2));
    (ancestors.len() as f64).powi(2) / squares.sum::<f64>()
}

/// The points of one observation.
struct Population {
    observation: usize,
    beta: f64,
    step: f64,
    acceptance: f64,
    x: Vec<f32>,
    log_likelihood: Vec<f32>,
    log_prior: Vec<f32>,
    /// The bank's sample each point descends from.
    ancestors: Vec<u32>,
}

/// What every population needs to know.
struct Flight<'a> {
    posterior: Posterior<'a>,
    density: &'a dyn Density,
    bank: Matrix,
    extent: Extent,
    points: usize,
    seed: u64,
    deadline: Option<Instant>,
}

impl Flight<'_> {
    /// The populations of some observations, the first of which is number `first`; none if the time was over.
    fn run(&self, y: Rows, first: usize) -> Result<Option<Vec<Population>>> {
        let Some(mut populations) = self.start(y, first)? else {
            return Ok(None);
        };
        let mut round = 0;
        if !self.moves(y, first, &mut populations, FIRST_MOVES, &mut round) {
            return Ok(None);
        }
        for _ in 0..MOST_LEVELS {
            let mut rising: Vec<Population> = Vec::new();
            let mut there = Vec::new();
            for population in populations {
                if population.beta < 1.0 && !population.ancestors.is_empty() {
                    rising.push(population);
                } else {
                    there.push(population);
                }
            }
            if rising.is_empty() {
                populations = there;
                break;
            }
            let noise = self.noise(round);
            rising.par_iter_mut().for_each(|population| {
                population.narrow(&mut noise.stream(population.observation as u64));
            });
            if !self.moves(y, first, &mut rising, MOVES, &mut round) {
                return Ok(None);
            }
            there.append(&mut rising);
            populations = there;
        }
        if !self.moves(y, first, &mut populations, LAST_MOVES, &mut round) {
            return Ok(None);
        }
        Ok(Some(populations))
    }

    fn noise(&self, round: u64) -> Noise {
        // Beside the steps of the other methods.
        Noise::new(self.seed, Purpose::Posterior, (5 << 40) + round)
    }

    /// Populations resampled from the bank at the greatest β it can bear.
    fn start(&self, y: Rows, first: usize) -> Result<Option<Vec<Population>>> {
        let noise = self.noise(u64::from(u32::MAX));
        let samples = self.bank.rows();
        let mut populations = Vec::new();
        let at_once = (PAIRS_AT_ONCE / samples).max(1);
        for begin in (0..y.rows()).step_by(at_once) {
            if is_over(self.deadline) {
                return Ok(None);
            }
            let rows = y.slice(begin..y.rows().min(begin + at_once));
            let mut logs = Matrix::zeros(rows.rows(), samples);
            let likelihood = self.posterior.likelihood;
            likelihood.log_prob_pairs(rows, self.bank.view(), logs.view_mut());
            let found: Vec<Result<Population>> = logs
                .values()
                .par_chunks(samples)
                .enumerate()
                .map(|(row, logs)| self.start_one(logs, first + begin + row, noise))
                .collect();
            for population in found {
                populations.push(population?);
            }
        }
        let dim = self.bank.cols();
        let x: Vec<f32> = populations
            .iter()
            .flat_map(|p| p.x.iter().copied())
            .collect();
        let owners = owners(&populations, first);
        if !owners.is_empty() {
            let (likelihood, prior) = self.values(y, &owners, Matrix::from_vec(x, dim).view());
            let mut at = 0;
            for population in &mut populations {
                let count = population.ancestors.len();
                population.log_likelihood = likelihood[at..at + count].to_vec();
                population.log_prior = prior[at..at + count].to_vec();
                at += count;
            }
        }
        Ok(Some(populations))
    }

    fn start_one(&self, logs: &[f32], observation: usize, noise: Noise) -> Result<Population> {
        if let Some(&bad) = logs
            .iter()
            .find(|log| log.is_nan() || **log == f32::INFINITY)
        {
            return Err(not_finite(observation, bad));
        }
        let wanted = (FIRST_EFFECTIVE * self.points as f64).min(0.5 * logs.len() as f64);
        let beta = greatest_power(logs, wanted, 1.0);
        let scaled: Vec<f32> = logs
            .iter()
            .map(|log| (beta * f64::from(*log)) as f32)
            .collect();
        let mut stream = noise.stream(observation as u64);
        let (places, _) = systematic(&scaled, self.points, &mut stream);
        let x = places.iter().flat_map(|&place| self.bank.row(place));
        Ok(Population {
            observation,
            beta,
            step: FIRST_STEP,
            acceptance: 0.0,
            x: x.copied().collect(),
            log_likelihood: Vec::new(),
            log_prior: Vec::new(),
            ancestors: places.iter().map(|&place| place as u32).collect(),
        })
    }

    /// log q(y|x) and log q(x) of points.
    fn values(&self, y: Rows, owners: &[u32], x: Rows) -> (Vec<f32>, Vec<f32>) {
        let (mut likelihood, mut prior) = (vec![0.0; x.rows()], vec![0.0; x.rows()]);
        let y = y.gather(owners);
        self.posterior
            .likelihood
            .log_prob(y.view(), x, &mut likelihood);
        self.density.log_prob(x, &mut prior);
        (likelihood, prior)
    }

    /// Moves every point; false if the time was over.
    fn moves(
        &self,
        y: Rows,
        first: usize,
        populations: &mut [Population],
        moves: usize,
        round: &mut u64,
    ) -> bool {
        for _ in 0..moves {
            if is_over(self.deadline) {
                return false;
            }
            *round += 1;
            self.one_move(y, first, populations, self.noise(*round));
        }
        *round += 1;
        true
    }

    /// One Hamiltonian move of every point, in units of the source's deviations.
    fn one_move(&self, y: Rows, first: usize, populations: &mut [Population], noise: Noise) {
        let dim = self.bank.cols();
        let owners = owners(populations, first);
        if owners.is_empty() {
            return;
        }
        let x: Vec<f32> = populations
            .iter()
            .flat_map(|p| p.x.iter().copied())
            .collect();
        let mut x = Matrix::from_vec(x, dim);
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
        let betas = spread(&|at| populations[at].beta);
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
            let slopes = self.slopes(y, &owners, &betas, x.view());
            let half = if leap == 0 || leap == STEPS { 0.5 } else { 1.0 };
            for row in 0..owners.len() {
                for d in 0..dim {
                    let unit = f64::from(self.extent.deviation[d]);
                    let p = &mut momenta[row * dim + d];
                    *p += half * steps[row] * unit * f64::from(slopes.row(row)[d]);
                    if leap < STEPS {
                        x.row_mut(row)[d] += (steps[row] * unit * *p) as f32;
                    }
                }
            }
        }
        let (likelihood, prior) = self.values(y, &owners, x.view());
        let mut at = 0;
        for population in populations {
            let mut accepted = 0;
            for k in 0..population.ancestors.len() {
                let row = at + k;
                let energy = |l: f32, p: f32| population.beta * f64::from(l) + f64::from(p);
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

    /// ∂/∂x of β log q(y|x) + log q(x).
    fn slopes(&self, y: Rows, owners: &[u32], betas: &[f64], x: Rows) -> Matrix {
        let mut slopes = Matrix::zeros(x.rows(), x.cols());
        let weights = PairWeights {
            starts: (0..=owners.len()).collect(),
            y_row: owners.to_vec(),
            weight: betas.iter().map(|&beta| beta as f32).collect(),
        };
        self.posterior
            .likelihood
            .grad_x_pairs(y, x, &weights, slopes.view_mut());
        self.density
            .backward_log_prob(x, &vec![1.0; x.rows()], slopes.view_mut(), None);
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

impl Population {
    /// Raises β so far that the wanted share of the points keeps its weight, and resamples.
    fn narrow(&mut self, stream: &mut crate::Stream) {
        let count = self.ancestors.len();
        let rise = greatest_power(&self.log_likelihood, KEPT * count as f64, 1.0 - self.beta);
        // Rounding must not stop the rise.
        let rise = rise.max(1e-3 * self.beta).min(1.0 - self.beta);
        let scaled: Vec<f32> = self
            .log_likelihood
            .iter()
            .map(|log| (rise * f64::from(*log)) as f32)
            .collect();
        let (places, _) = systematic(&scaled, count, stream);
        if places.is_empty() {
            return;
        }
        let dim = self.x.len() / count;
        let x = places.iter().flat_map(|&k| &self.x[k * dim..(k + 1) * dim]);
        self.x = x.copied().collect();
        self.ancestors = places.iter().map(|&k| self.ancestors[k]).collect();
        self.log_likelihood = places.iter().map(|&k| self.log_likelihood[k]).collect();
        self.log_prior = places.iter().map(|&k| self.log_prior[k]).collect();
        let beta = if rise >= 1.0 - self.beta {
            1.0
        } else {
            self.beta + rise
        };
        // The narrow directions shrink with the root of β.
        self.step *= (self.beta / beta).sqrt();
        self.beta = beta;
    }
}

/// The greatest power up to `most` at which weights e^(power · log) have at least `wanted` effective entries.
fn greatest_power(logs: &[f32], wanted: f64, most: f64) -> f64 {
    let greatest = crate::estimator::largest(logs);
    if greatest == f32::NEG_INFINITY {
        return most;
    }
    let enough = |power: f64| {
        let (mut sum, mut squares) = (0.0, 0.0);
        for &log in logs {
            let scaled = (power * f64::from(log - greatest)) as f32;
            let weight = f64::from(crate::estimator::exp_or_zero(scaled));
            sum += weight;
            squares += weight * weight;
        }
        sum * sum / squares >= wanted
    };
    if enough(most) {
        return most;
    }
    // In factors: the answer may be 10⁻⁶ of the whole.
    let (mut low, mut high) = (-60.0f64, 0.0f64);
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        if enough(most * middle.exp2()) {
            low = middle;
        } else {
            high = middle;
        }
    }
    most * low.exp2()
}
