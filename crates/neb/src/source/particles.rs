//! Weighted particles: a source that sits on given points x_j with weights w_j, fitted by
//! expectation-maximisation.
//!
//! w_j ← w_j · Σ_i v_i [ q(y_i|x_j) / Σ_k w_k q(y_i|x_k) ] / Σ_i v_i
//!
//! never lowers the marginal likelihood Σ_i v_i log Σ_j w_j q(y_i|x_j), which is concave in w: no step
//! sizes, no local optima. It is the unbinned form of iterative Bayesian unfolding. Run to the end it
//! over-fits the observations, so some of them are held out and the weights where the held-out value
//! peaks are returned; or, with a tolerance, the last ones that explain the held-out observations as well within so many standard
//! errors of the difference, since each iteration takes away some of the bias towards the initial weights. Where the observations say nothing, the initial weights stay.
//!
//! **Not everything is seen, and not everything seen is signal.** With a likelihood that has an acceptance ε(x) and a known
//! background of density b(y) that makes up the share β of the observations, the observed law is
//! λ(y) = Σ_j w_j ε_j q(y|x_j) + β b(y), in units of the number of observations. Event i came from x_j with probability
//! w_j ε_j q(y_i|x_j) / λ(y_i); so many of the observed events belong to x_j, of whose events ε_j are observed:
//!
//! w_j ← (1/ε_j) Σ_i v_i w_j ε_j q(y_i|x_j) / [ Σ_k w_k ε_k q(y_i|x_k) + β b(y_i) ],
//!
//! D'Agostini's rule without bins. It never lowers the extended likelihood Σ_i v_i log λ(y_i) − Σ_j w_j ε_j; the w_j start
//! with Σ_j w_j ε_j = 1 − β, the share of the observations left for the signal, and are returned as shares of what was produced.

mod replicas;
mod table;

pub use replicas::{Replica, ReplicaSettings, fit_replicas};
use table::{LikelihoodTable, Observations};

use crate::train::{Progress, Watch};
use crate::{Error, Likelihood, Noise, Purpose, Result, Rows};

/// How to fit the weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParticleSettings {
    /// Most iterations to make.
    pub max_iterations: usize,
    /// Share of the observations held out to decide when to stop; with 0 all iterations are made.
    pub held_out: f64,
    /// Iterations without a new best held-out value before stopping.
    pub patience: usize,
    /// Standard errors by which the returned weights may explain the held-out observations worse than the best ones do, the
    /// errors those of the difference; 0 returns the best.
    pub tolerance: f64,
    /// Bytes for the table of likelihoods: it is kept if it fits, else computed anew in each
    /// iteration, in parts of at most this size (but never less than one row).
    pub memory_limit: usize,
    /// Seed of the choice of held-out observations.
    pub seed: u64,
}

impl Default for ParticleSettings {
    fn default() -> Self {
        Self {
            max_iterations: 100,
            held_out: 0.1,
            patience: 3,
            tolerance: 0.0,
            memory_limit: 2 << 30,
            seed: 0,
        }
    }
}

/// Mean log-marginal likelihoods after some number of iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParticleStep {
    /// Over the observations the weights are fitted to.
    pub train: f64,
    /// Over the held-out observations, if there are any.
    pub held_out: Option<f64>,
}

/// What the observations hold besides the signal.
#[derive(Clone, Copy, Debug)]
pub struct KnownBackground<'a> {
    /// Its share β of the observations, from 0 to below 1.
    pub share: f64,
    /// log b(y_i) of its density, one for each observation.
    pub log_density: &'a [f32],
}

/// What the weights are fitted to.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The observations.
    pub y: Rows<'a>,
    /// Their event weights v_i, none of them negative; equal if absent.
    pub weights: Option<&'a [f32]>,
    /// What is not signal, if anything.
    pub background: Option<KnownBackground<'a>>,
}

/// Fitted weights of the particles.
#[derive(Clone, Debug, PartialEq)]
pub struct ParticleWeights {
    /// w_j; they sum to 1.
    pub weights: Vec<f64>,
    /// Share of the observations that the signal accounts for: 1 without a background.
    pub signal: f64,
    /// log λ(y_i) under these weights, one for each observation; NaN where the event weight is zero.
    pub log_marginals: Vec<f64>,
    /// One entry before the first iteration and one after each.
    pub history: Vec<ParticleStep>,
    /// The entry of `history` that belongs to `weights`.
    pub iteration: usize,
}

/// Fits the weights of the particles `x` to the observations `y`, all of them signal.
///
/// `initial`: weights to start from (those of the simulation, say); equal if absent. A particle of
/// weight zero stays at zero. `event_weights`: v_i of the observations; equal if absent. `watch` is asked after every
/// iteration and may stop the fit.
///
/// # Errors
/// If shapes do not match, a weight is negative or not finite, no particle can have produced some
/// observation, or on a stop on request.
pub fn fit_particles(
    likelihood: &dyn Likelihood,
    y: Rows,
    event_weights: Option<&[f32]>,
    x: Rows,
    initial: Option<&[f32]>,
    settings: &ParticleSettings,
    watch: &mut Watch,
) -> Result<ParticleWeights> {
    let observed = Observed {
        y,
        weights: event_weights,
        background: None,
    };
    fit_particles_to(likelihood, observed, x, initial, settings, watch)
}

/// As [`fit_particles`], with what the observations hold besides the signal.
///
/// # Errors
/// As [`fit_particles`]; also a background without a density for each observation, or of a share that leaves no signal.
pub fn fit_particles_to(
    likelihood: &dyn Likelihood,
    observed: Observed,
    x: Rows,
    initial: Option<&[f32]>,
    settings: &ParticleSettings,
    watch: &mut Watch,
) -> Result<ParticleWeights> {
    check_shapes(likelihood, observed.y, x)?;
    let start = shares("particle", x.rows(), initial)?;
    let event_weights = shares("observation", observed.y.rows(), observed.weights)?;
    let background = log_background(&observed)?;
    let alive = positive_rows(&start);
    let particles = x.gather(&alive);
    let acceptance = acceptance_of(likelihood, particles.view())?;
    let (train, held_out) = split(observed.y, &event_weights, &background, settings)?;

    let observations = train.row_numbers.len() + held_out.row_numbers.len();
    let limit = settings.memory_limit;
    let keep = table::bytes(observations, alive.len()) <= limit;
    let table = |set| LikelihoodTable::new(likelihood, set, particles.view(), keep, limit);
    let (train_table, held_out_table) = (table(&train)?, table(&held_out)?);

    let share = observed.background.map_or(0.0, |known| known.share);
    let mut weights: Vec<f64> = alive.iter().map(|&j| start[j as usize]).collect();
    scale_to(&mut weights, &acceptance, 1.0 - share);
    let mut best = (weights.clone(), Vec::new());
    let (mut best_value, mut peak, mut at_peak) = (f64::NEG_INFINITY, 0, Vec::new());
    let mut iteration = 0;
    let mut history = Vec::new();
    for step in 0..=settings.max_iterations {
        let (log_marginals, responsibilities) = train_table.expectation(&weights)?;
        let held_out_marginals = held_out_table.log_marginals(&weights)?;
        // The extended likelihood: zero where there is no background.
        let excess = match observed.background {
            Some(_) => accepted(&weights, &acceptance) + share - 1.0,
            None => 0.0,
        };
        let value = match held_out.row_numbers.len() {
            0 => None,
            _ => Some(held_out.mean(&held_out_marginals) - excess),
        };
        history.push(ParticleStep {
            train: train.mean(&log_marginals) - excess,
            held_out: value,
        });
        let is_best = value.is_none_or(|value| value > best_value);
        if is_best {
            best_value = value.unwrap_or(best_value);
            (peak, at_peak) = (step, held_out_marginals.clone());
        }
        let as_good = settings.tolerance > 0.0 && {
            let error = held_out.error_of_difference(&held_out_marginals, &at_peak);
            value.is_some_and(|value| best_value - value <= settings.tolerance * error)
        };
        if is_best || as_good {
            let mut each = vec![f64::NAN; observed.y.rows()];
            for (set, logs) in [(&train, log_marginals), (&held_out, held_out_marginals)] {
                for (&row, log) in set.row_numbers.iter().zip(logs) {
                    each[row as usize] = log;
                }
            }
            best = (weights.clone(), each);
            iteration = step;
        }
        if !is_best && step - peak >= settings.patience {
            break;
        }
        let factors = responsibilities.iter().zip(&acceptance);
        for (weight, (responsibility, acceptance)) in weights.iter_mut().zip(factors) {
            *weight *= responsibility / acceptance;
        }
        if observed.background.is_none() {
            scale_to(&mut weights, &acceptance, 1.0);
        }
        let progress = Progress {
            step: step as u64 + 1,
            steps: settings.max_iterations as u64 + 1,
            history: &[],
        };
        if watch(&progress).is_break() {
            return Err(Error::Cancelled {
                steps: progress.step,
            });
        }
    }

    let (best, log_marginals) = best;
    let signal = accepted(&best, &acceptance);
    let mut weights = vec![0.0; x.rows()];
    for (&j, weight) in alive.iter().zip(best) {
        weights[j as usize] = weight;
    }
    if likelihood.acceptance().is_some() || observed.background.is_some() {
        normalise(&mut weights);
    }
    Ok(ParticleWeights {
        weights,
        signal,
        log_marginals,
        history,
        iteration,
    })
}

/// log β b(y_i) for each observation; empty without a background.
fn log_background(observed: &Observed) -> Result<Vec<f32>> {
    let Some(known) = observed.background else {
        return Ok(Vec::new());
    };
    let rows = observed.y.rows();
    let usable = |log: &f32| !log.is_nan() && *log < f32::INFINITY;
    if known.log_density.len() != rows || !known.log_density.iter().all(usable) {
        return Err(Error::input(
            format!(
                "{} densities of the background for {rows} observations, or some that are no numbers",
                known.log_density.len()
            ),
            "give one finite log-density for each observation",
        ));
    }
    if !(known.share >= 0.0 && known.share < 1.0) {
        return Err(Error::input(
            format!("the background is {} of the observations", known.share),
            "a share from 0 to below 1 leaves something to unfold: check the background's weights",
        ));
    }
    let log_share = known.share.ln() as f32;
    Ok(known
        .log_density
        .iter()
        .map(|log| log + log_share)
        .collect())
}

/// ε(x_j) of every particle; 1 where the likelihood has no acceptance.
fn acceptance_of(likelihood: &dyn Likelihood, x: Rows) -> Result<Vec<f64>> {
    let Some(acceptance) = likelihood.acceptance() else {
        return Ok(vec![1.0; x.rows()]);
    };
    let mut log = vec![0.0; x.rows()];
    acceptance.log_acceptance(x, &mut log);
    if let Some(row) = log.iter().position(|log| !log.is_finite()) {
        return Err(Error::non_finite(
            format!(
                "particle row {row}: the logarithm of its acceptance is {}",
                log[row]
            ),
            "give an acceptance above zero everywhere, however small",
        ));
    }
    Ok(log.into_iter().map(|log| f64::from(log).exp()).collect())
}

/// Σ_j w_j ε_j.
fn accepted(weights: &[f64], acceptance: &[f64]) -> f64 {
    weights.iter().zip(acceptance).map(|(w, a)| w * a).sum()
}

/// Scales the weights so that Σ_j w_j ε_j is this.
fn scale_to(weights: &mut [f64], acceptance: &[f64], total: f64) {
    let factor = accepted(weights, acceptance);
    for weight in weights {
        *weight *= total / factor;
    }
}

impl ParticleWeights {
    /// 1 / Σ w²: how many equally weighted particles would be as informative.
    pub fn effective_particles(&self) -> f64 {
        1.0 / self.weights.iter().map(|w| w * w).sum::<f64>()
    }

    /// Numbers of `n` particles drawn with probability w_j, in random order.
    ///
    /// Systematic resampling: particle j is drawn n·w_j times, rounded up or down, so that the draws
    /// add as little noise as possible. They are not independent of each other.
    pub fn resample(&self, n: usize, noise: Noise) -> Vec<u32> {
        let offset = noise.stream(1).uniform();
        let mut drawn = Vec::with_capacity(n);
        let mut reached = 0.0;
        let mut last = 0;
        for (particle, &weight) in self.weights.iter().enumerate() {
            if weight == 0.0 {
                continue;
            }
            reached += weight;
            last = particle as u32;
            while drawn.len() < n && drawn.len() as f64 + offset < reached * n as f64 {
                drawn.push(last);
            }
        }
        // The weights sum to 1 up to rounding only.
        drawn.resize(n, last);
        let order = noise.permutation(n);
        order.iter().map(|&at| drawn[at as usize]).collect()
    }
}

impl Observations {
    fn select(y: Rows, event_weights: &[f64], background: &[f32], mut rows: Vec<u32>) -> Self {
        rows.sort_unstable();
        let mut selected: Vec<f64> = rows
            .iter()
            .map(|&row| event_weights[row as usize])
            .collect();
        normalise(&mut selected);
        let background = match background {
            [] => Vec::new(),
            each => rows.iter().map(|&row| each[row as usize]).collect(),
        };
        Self {
            y: y.gather(&rows),
            row_numbers: rows,
            event_weights: selected,
            background,
        }
    }

    /// Σ_i v_i `values[i]`.
    fn mean(&self, values: &[f64]) -> f64 {
        values
            .iter()
            .zip(&self.event_weights)
            .map(|(l, v)| l * v)
            .sum()
    }

    /// Standard error of the mean difference of these values.
    fn error_of_difference(&self, values: &[f64], others: &[f64]) -> f64 {
        let differences: Vec<f64> = others.iter().zip(values).map(|(o, v)| o - v).collect();
        let mean = self.mean(&differences);
        let each = differences.iter().zip(&self.event_weights);
        let variance: f64 = each.map(|(d, v)| (v * (d - mean)).powi(2)).sum();
        variance.sqrt()
    }
}

fn normalise(weights: &mut [f64]) {
    let total: f64 = weights.iter().sum();
    for weight in weights {
        *weight /= total;
    }
}

/// Rows with a weight above zero.
fn positive_rows(weights: &[f64]) -> Vec<u32> {
    (0..weights.len() as u32)
        .filter(|&row| weights[row as usize] > 0.0)
        .collect()
}

/// Observations to fit to and to hold out, among those of positive weight.
fn split(
    y: Rows,
    event_weights: &[f64],
    background: &[f32],
    settings: &ParticleSettings,
) -> Result<(Observations, Observations)> {
    let rows = positive_rows(event_weights);
    let n = rows.len();
    if !(0.0..1.0).contains(&settings.held_out) {
        return Err(Error::input(
            format!("the held-out share is {}", settings.held_out),
            "choose a share from 0 to below 1; 0.1 is usual",
        ));
    }
    let held_out = (settings.held_out * n as f64).ceil() as usize;
    if held_out >= n {
        return Err(Error::input(
            format!("{held_out} of {n} observations are held out, none is left to fit to"),
            "give more observations or set the held-out share to 0",
        ));
    }
    let order = Noise::new(settings.seed, Purpose::HoldOut, 0).permutation(n);
    let select = |places: &[u32]| {
        let rows = places.iter().map(|&place| rows[place as usize]).collect();
        Observations::select(y, event_weights, background, rows)
    };
    Ok((select(&order[held_out..]), select(&order[..held_out])))
}

fn check_shapes(likelihood: &dyn Likelihood, y: Rows, x: Rows) -> Result<()> {
    let dims = likelihood.dims();
    for (name, table, expected) in [("x", x, dims.dx), ("y", y, dims.dy)] {
        if table.cols() != expected || table.rows() == 0 {
            return Err(Error::input(
                format!(
                    "{name} has {} rows and {} columns; the likelihood expects {expected} columns",
                    table.rows(),
                    table.cols()
                ),
                "give at least one row, with the columns the likelihood was fitted with",
            ));
        }
    }
    Ok(())
}

/// Weights as shares of their sum; equal shares if there are none.
fn shares(name: &str, rows: usize, weights: Option<&[f32]>) -> Result<Vec<f64>> {
    let Some(weights) = weights else {
        return Ok(vec![1.0 / rows as f64; rows]);
    };
    if weights.len() != rows {
        return Err(Error::input(
            format!("{} {name} weights for {rows} rows", weights.len()),
            "give one weight for each row",
        ));
    }
    let usable = |weight: f32| weight.is_finite() && weight >= 0.0;
    if let Some(row) = weights.iter().position(|&weight| !usable(weight)) {
        return Err(Error::input(
            format!("{name} row {row} has weight {}", weights[row]),
            "expectation-maximisation needs weights that are finite and not negative",
        ));
    }
    let mut shares: Vec<f64> = weights.iter().map(|&weight| f64::from(weight)).collect();
    if shares.iter().all(|&share| share == 0.0) {
        return Err(Error::input(
            format!("all {rows} {name} weights are zero"),
            "at least one must be positive",
        ));
    }
    normalise(&mut shares);
    Ok(shares)
}

#[cfg(test)]
mod tests;
