//! Many fits at once: the same particles and observations with other event weights, in a fixed number of iterations.
//!
//! What costs time is q(y_i|x_j), and it is the same for all: each block of the table is evaluated once an iteration and
//! serves every replica. So a hundred bootstrap replicas of the data cost little more than one.

use rayon::prelude::*;

use super::table::{LikelihoodTable, Observations};
use super::{
    Observed, acceptance_of, accepted, check_shapes, log_background, normalise, positive_rows,
    scale_to, shares,
};
use crate::{Error, Likelihood, Result, Rows};

/// Weights of the particles for one choice of event weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Replica {
    /// w_j, shares of what was produced; they sum to 1.
    pub weights: Vec<f64>,
    /// Share of the observations that the signal accounts for: 1 without a background.
    pub signal: f64,
}

/// What every replica shares.
#[derive(Clone, Copy)]
pub struct ReplicaSettings<'a> {
    /// Weights of the particles to start from; equal if absent.
    pub initial: Option<&'a [f32]>,
    /// Iterations, those of the nominal fit.
    pub iterations: usize,
    /// Bytes for the table of likelihoods, as in [`super::ParticleSettings`].
    pub memory_limit: usize,
}

/// Fits the weights once for each of the given event weights, which multiply those of the observations.
///
/// The known background keeps its absolute size: its share of a replica's observations is as much smaller as these are more.
///
/// # Errors
/// As [`super::fit_particles_to`].
pub fn fit_replicas(
    likelihood: &dyn Likelihood,
    observed: Observed,
    multiplicities: &[Vec<f32>],
    x: Rows,
    settings: ReplicaSettings,
) -> Result<Vec<Replica>> {
    check_shapes(likelihood, observed.y, x)?;
    let rows = observed.y.rows();
    let start = shares("particle", x.rows(), settings.initial)?;
    let nominal = shares("observation", rows, observed.weights)?;
    let event_weights = multiplicities
        .iter()
        .map(|factors| {
            let each = nominal.iter().zip(factors);
            let weights: Vec<f64> = each.map(|(weight, &f)| weight * f64::from(f)).collect();
            match weights.len() == rows && weights.iter().sum::<f64>() > 0.0 {
                true => Ok(weights),
                false => Err(Error::input(
                    format!("a replica has {} event weights for {rows} observations, or none above zero", factors.len()),
                    "give one factor for each observation",
                )),
            }
        })
        .collect::<Result<Vec<Vec<f64>>>>()?;
    let alive = positive_rows(&start);
    let particles = x.gather(&alive);
    let acceptance = acceptance_of(likelihood, particles.view())?;
    let set = Observations {
        y: observed.y.to_matrix(),
        row_numbers: (0..rows as u32).collect(),
        event_weights: nominal,
        background: log_background(&observed)?,
    };
    let limit = settings.memory_limit;
    let keep = super::table::bytes(rows, alive.len()) <= limit;
    let table = LikelihoodTable::new(likelihood, &set, particles.view(), keep, limit)?;
    let share = observed.background.map_or(0.0, |known| known.share);
    let first: Vec<f64> = alive.iter().map(|&j| start[j as usize]).collect();
    // Weights in units of the nominal number of observations.
    let mut weights: Vec<Vec<f64>> = event_weights
        .iter()
        .map(|events| {
            let mut weights = first.clone();
            let signal = (events.iter().sum::<f64>() - share).max(f64::MIN_POSITIVE);
            scale_to(&mut weights, &acceptance, signal);
            weights
        })
        .collect();
    for _ in 0..settings.iterations {
        let sums = table.expectations(&weights, &event_weights)?;
        weights
            .par_iter_mut()
            .zip(sums)
            .for_each(|(weights, sums)| {
                for (weight, (sum, acceptance)) in
                    weights.iter_mut().zip(sums.iter().zip(&acceptance))
                {
                    *weight *= sum / acceptance;
                }
            });
    }
    let finished = weights
        .into_iter()
        .zip(&event_weights)
        .map(|(fitted, events)| {
            let signal = accepted(&fitted, &acceptance) / events.iter().sum::<f64>();
            let mut weights = vec![0.0; x.rows()];
            for (&j, weight) in alive.iter().zip(fitted) {
                weights[j as usize] = weight;
            }
            normalise(&mut weights);
            Replica { weights, signal }
        });
    Ok(finished.collect())
}
