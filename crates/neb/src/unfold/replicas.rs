//! Uncertainties by repetition: Poisson-bootstrap replicas of the data and of the simulation, and other seeds.
//!
//! In a replica every event counts k times, k ~ Poisson(1), as if the experiment (or the simulation) had been run again.
//! - **Data** replicas keep everything that was learned from simulation and only fit the weights again, all of them in the same
//!   passes over the pairs, with the nominal number of iterations.
//! - **Simulation** replicas learn everything again from the events that are left, the surrogate starting from the nominal one.
//! - **Training** replicas learn it again from the same events with another seed and other held-out rows.
//!
//! A simulation replica is trained with its own seed, so it holds the training's randomness too: the variances are
//! data, training, and simulation less training.

use super::events::Events;
use super::fit::{Folding, UnfoldOptions, known};
use super::weights::total;
use crate::source::particles::{Observed, ReplicaSettings, fit_replicas};
use crate::train::TrainConfig;
use crate::{Noise, Purpose, Result};

/// What is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeated {
    /// The experiment.
    Data,
    /// The simulation, and with it the training.
    Simulation,
    /// The training alone.
    Training,
}

impl Repeated {
    /// Address of its random numbers.
    fn step(self, number: u64) -> u64 {
        (self as u64 + 1) << 32 | number
    }

    /// The seed of its trainings.
    fn seed(self, seed: u64, number: u64) -> u64 {
        let mut stream = Noise::new(seed, Purpose::Unfold, self.step(number)).stream(u64::MAX);
        stream.below(usize::MAX) as u64
    }
}

/// How the weights are fitted again.
#[derive(Clone, Copy, Debug)]
pub struct Refit<'a> {
    /// Iterations of the nominal fit.
    pub iterations: usize,
    /// Bytes for the table of likelihoods.
    pub memory_limit: usize,
    /// How a surrogate that starts from the nominal one is trained.
    pub warm: &'a TrainConfig,
}

/// How often each row counts in a replica: Poisson(1).
pub fn multiplicities(what: Repeated, rows: usize, seed: u64, number: u64) -> Vec<f32> {
    let noise = Noise::new(seed, Purpose::Unfold, what.step(number));
    let uniform = noise.uniform(rows, 1);
    uniform
        .values()
        .iter()
        .map(|&u| poisson(f64::from(u)))
        .collect()
}

/// Poisson(1) from a uniform number, by inversion.
fn poisson(uniform: f64) -> f32 {
    let (mut count, mut term) = (0.0, (-1f64).exp());
    let mut reached = term;
    while reached < uniform && count < 12.0 {
        count += 1.0;
        term /= count;
        reached += term;
    }
    count as f32
}

/// Weights of the simulated events in replicas of the data with these numbers.
///
/// # Errors
/// As the fit of the weights.
pub fn data_replicas(
    events: &Events,
    folding: &Folding,
    numbers: std::ops::Range<u64>,
    seed: u64,
    refit: &Refit,
) -> Result<Vec<Vec<f32>>> {
    let rows = events.data.rows();
    let factors: Vec<Vec<f32>> = numbers
        .map(|number| multiplicities(Repeated::Data, rows, seed, number))
        .collect();
    fit_weights(events, folding, &factors, refit)
}

/// Weights of the simulated events in one replica of the simulation.
///
/// # Errors
/// As the nominal fit.
pub fn simulation_replica(
    events: &Events,
    nominal: &Folding,
    number: u64,
    refit: &Refit,
    options: &mut UnfoldOptions,
) -> Result<Vec<f32>> {
    let draw = |offset: u64, rows: usize| {
        let number = number << 2 | offset;
        multiplicities(Repeated::Simulation, rows, options.seed, number)
    };
    let counts = draw(0, events.produced.rows());
    let repeat = |counts: &[f32]| -> Vec<u32> {
        let rows = (0..).zip(counts);
        rows.flat_map(|(row, &count)| std::iter::repeat_n(row, count as usize))
            .collect()
    };
    let produced = repeat(&counts);
    let mut place = vec![0; events.produced.rows()];
    for (at, row) in events.matched_rows().into_iter().enumerate() {
        place[row as usize] = at as u32;
    }
    let seen = produced
        .iter()
        .filter(|&&row| events.reconstructed[row as usize]);
    let matched: Vec<u32> = seen.map(|&row| place[row as usize]).collect();
    let fakes = repeat(&draw(1, events.fakes.rows()));
    let background = repeat(&draw(2, events.background.rows()));
    let pick = |weights: &[f32], rows: &[u32]| -> Vec<f32> {
        rows.iter().map(|&row| weights[row as usize]).collect()
    };
    let replica = Events {
        produced: events.produced.view().gather(&produced),
        produced_weights: pick(&events.produced_weights, &produced),
        reconstructed: produced
            .iter()
            .map(|&row| events.reconstructed[row as usize])
            .collect(),
        matched: events.matched.view().gather(&matched),
        fake_weights: pick(&events.fake_weights, &fakes),
        fakes: events.fakes.view().gather(&fakes),
        background_weights: pick(&events.background_weights, &background),
        background: events.background.view().gather(&background),
        data: events.data.clone(),
        data_weights: events.data_weights.clone(),
    };
    let seed = Repeated::Simulation.seed(options.seed, number);
    let folding = nominal.learn_again(&replica, refit.warm, seed, options)?;
    let nominal_data = vec![vec![1.0; events.data.rows()]];
    let fitted = fit_weights(&replica, &folding, &nominal_data, refit)?;
    let mut weights = vec![0.0; events.produced.rows()];
    for (&row, weight) in produced.iter().zip(&fitted[0]) {
        weights[row as usize] += weight;
    }
    Ok(weights)
}

/// Weights of the simulated events with another seed of everything that is trained; nothing starts from the nominal fit.
///
/// # Errors
/// As the nominal fit.
pub fn training_replica(
    events: &Events,
    surrogate: &crate::surrogate::SurrogateConfig,
    number: u64,
    refit: &Refit,
    options: &mut UnfoldOptions,
) -> Result<Vec<f32>> {
    let mut own = UnfoldOptions {
        seed: Repeated::Training.seed(options.seed, number),
        checkpoints: None,
        x_names: options.x_names,
        y_names: options.y_names,
        watch: &mut *options.watch,
    };
    let folding = Folding::learn(events, surrogate, &mut own)?;
    let nominal_data = vec![vec![1.0; events.data.rows()]];
    let mut fitted = fit_weights(events, &folding, &nominal_data, refit)?;
    Ok(fitted.remove(0))
}

fn fit_weights(
    events: &Events,
    folding: &Folding,
    factors: &[Vec<f32>],
    refit: &Refit,
) -> Result<Vec<Vec<f32>>> {
    let y = events.data.view();
    let log_background = folding.log_background(y)?;
    let observed = Observed {
        y,
        weights: Some(&events.data_weights),
        background: known(folding, log_background.as_deref()),
    };
    let settings = ReplicaSettings {
        initial: Some(&folding.start),
        iterations: refit.iterations,
        memory_limit: refit.memory_limit,
    };
    let x = events.produced.view();
    let fitted = fit_replicas(&*folding.likelihood(), observed, factors, x, settings)?;
    let each = fitted.into_iter().zip(factors);
    let weights = each.map(|(replica, factors)| {
        let weights = events.data_weights.iter().zip(factors);
        let data: Vec<f32> = weights.map(|(weight, factor)| weight * factor).collect();
        let shares = &replica.weights;
        folding
            .absolute(events, shares, replica.signal, total(&data))
            .0
    });
    Ok(weights.collect())
}
