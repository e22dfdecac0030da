//! Annealing: a population of points per observation that follows the likelihood from wide to narrow.
//!
//! Where the likelihood is so narrow that no bank of source samples meets it (a noise of 10⁻⁴, say), rejection and
//! importance fail. A series of wider likelihoods q_0, q_1, … leads from one that the bank can bear to q itself: with noise
//! added to y where the likelihood knows how, else raised to a power. From each law p_l(x) ∝ q_l(y|x) q(x) to the next the
//! points are weighted by q_{l+1}/q_l, resampled when fewer than half of them are effective, and make a few Hamiltonian moves
//! that leave p_{l+1} as it is (a sequential Monte Carlo sampler: Del Moral, Doucet and Jasra 2006). Modes keep their weight on the
//! way, which chains cannot promise.
//!
//! The effective number of draws is that of the bank's samples they descend from: a lower bound, for the moves make new points.

mod scene;

use rayon::prelude::*;

use super::bank::{Bank, Extent};
use super::clock::Clock;
use super::importance::systematic;
use super::narrowing::narrowing;
use super::{Draws, Method, Posterior, PosteriorOptions, Stopped, not_finite};
use crate::source::{Density, Width, effective_samples};
use crate::{Error, Matrix, Noise, Purpose, Result, Rows};

use scene::{Population, Scene};

/// Samples of the bank.
const BANK: u64 = 1 << 17;
/// Pairs of observations and bank samples in memory at once.
const PAIRS_AT_ONCE: usize = 1 << 23;
/// Points of all observations that move at once.
const POINTS_AT_ONCE: usize = 1 << 16;
/// Effective samples of the bank behind each point of the first population.
const FIRST_EFFECTIVE: f64 = 4.0;
/// Fewest points of a population: more than draws are asked for, since lines of descent die out.
const FEWEST_POINTS: usize = 500;
/// Volume of a Gaussian likelihood at one width, as a share of that at the one before: leaves 60 % of the points effective.
const NARROWING: f32 = 0.36;
/// Hamiltonian moves of each point: at the first width, at every other, and at the end.
const FIRST_MOVES: usize = 6;
const MOVES: usize = 2;
const LAST_MOVES: usize = 6;

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
        let dims = self.likelihood.dims();
        let ratio = NARROWING.powf(1.0 / dims.dx.min(dims.dy) as f32);
        let flight = Flight {
            posterior: *self,
            density,
            widths: narrowing(self.likelihood, ratio),
            ratio: f64::from(ratio),
            extent: Extent::of(&bank),
            bank,
            points,
            seed: options.seed,
            clock: self.clock(&options.budget),
        };
        let mut draws = Draws::empty(Method::Annealed, y.rows(), self.prior.dim(), options.draws);
        draws.samples = flight.bank.rows() as u64;
        draws.acceptance = vec![0.0; y.rows()];
        let block = (POINTS_AT_ONCE / points).max(1);
        for first in (0..y.rows()).step_by(block) {
            flight.clock.tell(first, y.rows());
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

/// What every population needs to know.
struct Flight<'a> {
    posterior: Posterior<'a>,
    density: &'a dyn Density,
    /// From wide to narrow.
    widths: Vec<Width>,
    /// The spread of a narrow likelihood at one width, as a share of that at the one before.
    ratio: f64,
    bank: Matrix,
    extent: Extent,
    points: usize,
    seed: u64,
    clock: Clock<'a>,
}

impl Flight<'_> {
    /// The populations of some observations, the first of which is number `first`; none if the time was over.
    fn run(&self, y: Rows, first: usize) -> Result<Option<Vec<Population>>> {
        let Some(mut populations) = self.start(y, first)? else {
            return Ok(None);
        };
        let mut round = 0;
        for (number, width) in self.widths.iter().enumerate() {
            let likelihood = width.likelihood(self.posterior.likelihood);
            let scene = Scene {
                flight: self,
                likelihood: &*likelihood,
                y,
                first,
            };
            let begin = |p: &Population| p.begins == number && !p.ancestors.is_empty();
            let (mut beginning, others): (Vec<_>, Vec<_>) =
                populations.into_iter().partition(begin);
            scene.look(&mut beginning);
            if !scene.moves(&mut beginning, FIRST_MOVES, &mut round) {
                return Ok(None);
            }
            let follow = |p: &Population| p.begins < number && !p.ancestors.is_empty();
            let (mut following, others): (Vec<_>, Vec<_>) = others.into_iter().partition(follow);
            let noise = self.noise(round);
            let changed = scene.narrow(&mut following, self.ratio, noise);
            let mut changed = changed.into_iter();
            let (mut moving, resting): (Vec<_>, Vec<_>) = following
                .into_iter()
                .partition(|_| changed.next() == Some(true));
            if !scene.moves(&mut moving, MOVES, &mut round) {
                return Ok(None);
            }
            populations = beginning;
            for part in [moving, resting, others] {
                populations.extend(part);
            }
            if number + 1 == self.widths.len() {
                let noise = self.noise(round);
                populations.par_iter_mut().for_each(|population| {
                    population.resample(&mut noise.stream(population.observation as u64));
                });
                if !scene.moves(&mut populations, LAST_MOVES, &mut round) {
                    return Ok(None);
                }
            }
        }
        Ok(Some(populations))
    }

    fn noise(&self, round: u64) -> Noise {
        // Beside the steps of the other methods.
        Noise::new(self.seed, Purpose::Posterior, (5 << 40) + round)
    }

    /// Populations resampled from the bank at the narrowest width it can bear; the widest if it can bear none.
    fn start(&self, y: Rows, first: usize) -> Result<Option<Vec<Population>>> {
        let mut populations: Vec<Population> = (0..y.rows())
            .map(|row| Population::empty(first + row))
            .collect();
        let at_once = (PAIRS_AT_ONCE / self.bank.rows()).max(1);
        for part in populations.chunks_mut(at_once) {
            let mut narrowing: Vec<&mut Population> = part.iter_mut().collect();
            for number in 0..self.widths.len() {
                if self.clock.is_over() {
                    return Ok(None);
                }
                narrowing = self.start_at(number, y, first, narrowing)?;
            }
        }
        Ok(Some(populations))
    }

    /// Resamples the populations from the bank at this width; gives back those it can bear.
    fn start_at<'p>(
        &self,
        number: usize,
        y: Rows,
        first: usize,
        populations: Vec<&'p mut Population>,
    ) -> Result<Vec<&'p mut Population>> {
        let samples = self.bank.rows();
        let rows: Vec<u32> = populations
            .iter()
            .map(|population| (population.observation - first) as u32)
            .collect();
        let mut logs = Matrix::zeros(rows.len(), samples);
        let likelihood = self.widths[number].likelihood(self.posterior.likelihood);
        likelihood.log_prob_pairs(y.gather(&rows).view(), self.bank.view(), logs.view_mut());
        let noise = self.noise(u64::from(u32::MAX));
        let wanted = (FIRST_EFFECTIVE * self.points as f64).min(0.5 * samples as f64);
        let borne: Vec<Result<Option<&mut Population>>> = populations
            .into_par_iter()
            .zip(logs.values().par_chunks(samples))
            .map(|(population, logs)| {
                let bad = |log: &&f32| log.is_nan() || **log == f32::INFINITY;
                if let Some(&bad) = logs.iter().find(bad) {
                    return Err(not_finite(population.observation, bad));
                }
                if number > 0 && effective_samples(logs) < wanted {
                    return Ok(None);
                }
                let mut stream = noise.stream(population.observation as u64);
                let (places, _) = systematic(logs, self.points, &mut stream);
                population.begins = number;
                population.x = places
                    .iter()
                    .flat_map(|&place| self.bank.row(place).iter().copied())
                    .collect();
                population.log_weight = vec![0.0; places.len()];
                population.ancestors = places.iter().map(|&place| place as u32).collect();
                Ok(Some(population))
            })
            .collect();
        let borne: Result<Vec<Option<&mut Population>>> = borne.into_iter().collect();
        Ok(borne?.into_iter().flatten().collect())
    }
}
