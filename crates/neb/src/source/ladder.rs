//! The default way to a source: a ladder of models, from the simplest up; a more flexible one must earn its place.
//!
//! 1. affine maps of a normal and of a uniform law, fitted with the bias-corrected L_K; the better one is polished with more
//!    samples, half of them from a wider law ([`super::Draws`]), without and with shifts of the mean: shifts, too, must earn their place;
//! 2. a spline flow fitted to draws of the best of them, then refined with L_K under a Kullback-Leibler pull towards where
//!    it started;
//! 3. particles: weights on the pairs' own x_j by expectation-maximisation, then a spline flow fitted to them and refined alike;
//! 4. where a flow is best so far, the same with particles drawn from it.
//!
//! Each is judged by the log-marginal likelihood of the same held-out observations. A more flexible source replaces a simpler
//! one only if it is better by more than two standard errors, paired over the observations; a flow replaces another if it is
//! better at all.
//!
//! With checkpoints every training has a file of its own, and a ladder that was stopped is climbed again: finished trainings
//! are read back, the one under way goes on, everything between them is computed anew, to the same bits.

mod affine;
mod climber;
mod flow;
mod report;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::domain::Domain;
use super::flow::FlowFit;
use super::model::Model;
use super::particles::ParticleWeights;
use super::single::{Observations, check_observations};
use crate::nn::adam::AdamConfig;
use crate::nn::schedule::Schedule;
use crate::train::{self, CheckpointPolicy, TrainConfig};
use crate::{Error, Likelihood, Result, Rows};

use climber::Climber;
pub use report::{LadderReport, Rung};

/// Settings of the ladder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LadderConfig {
    /// Samples K while fitting the affine rungs; the better of them is polished with four times as many.
    pub affine_k: usize,
    /// Samples K while refining flows.
    pub refine_k: usize,
    /// Samples K when rungs are judged.
    pub judge_k: usize,
    /// Observations in a minibatch.
    pub batch: usize,
    /// Share of the observations held out.
    pub held_out: f64,
    /// Most particles.
    pub particles: usize,
    /// Effective samples half of the observations must have while the affine rungs are fitted; the likelihood is widened until
    /// they do.
    pub effective_samples: f64,
    /// The same while rungs are judged, the best affine one is polished, and flows are refined.
    pub refine_effective_samples: f64,
    /// Weight of the entropy while fitting the affine rungs; falls to zero.
    pub entropy: f64,
    /// Weight of the pull while refining; falls to half.
    pub pull: f64,
    /// Epochs of refinement.
    pub refine_epochs: usize,
    /// The flows, and how they are fitted to points.
    pub flow: FlowFit,
    /// Dimensions whose law is even; empty for none.
    pub symmetric: Vec<bool>,
    /// Where x can be.
    pub domain: Option<Domain>,
}

impl Default for LadderConfig {
    fn default() -> Self {
        Self {
            affine_k: 4096,
            refine_k: 2048,
            judge_k: 8192,
            batch: 256,
            held_out: 0.1,
            particles: 15_000,
            effective_samples: 100.0,
            refine_effective_samples: 60.0,
            entropy: 0.0,
            pull: 0.1,
            refine_epochs: 6,
            flow: FlowFit {
                layers: 4,
                hidden: vec![64, 64],
                bins: 8,
                bound: 4.0,
                train: training(80, 256, 3e-3, 0.1),
            },
            symmetric: Vec::new(),
            domain: None,
        }
    }
}

/// Training as every rung has it.
fn training(epochs: usize, batch: usize, rate: f64, held_out: f64) -> TrainConfig {
    TrainConfig {
        epochs,
        batch,
        rate,
        schedule: Schedule::Cosine { warm_up: 0.02 },
        adam: AdamConfig {
            clip_norm: 5.0,
            ..AdamConfig::default()
        },
        held_out,
        patience: 0,
    }
}

/// Told of the rung under way; may stop the fit.
pub type LadderWatch<'a> = dyn FnMut(&str, &train::Progress) -> ControlFlow<()> + 'a;

/// How the ladder is climbed.
pub struct LadderOptions<'a, 'w> {
    /// Makes the run repeatable.
    pub seed: u64,
    /// Where and how often to save the state, if at all; each training has its own file ([`CheckpointPolicy::numbered`]).
    /// Files that exist are resumed; their owner removes them when the result is safe.
    pub checkpoints: Option<CheckpointPolicy>,
    /// Told of every step with the rung's name; may stop the fit.
    pub watch: &'a mut LadderWatch<'w>,
}

/// What the ladder gives back.
#[derive(Debug)]
pub struct LadderOutcome {
    /// The winner.
    pub source: Model,
    /// Weights of the particles (rows of the given x), a result in their own right.
    pub particles: ParticleWeights,
    /// How it was climbed.
    pub report: LadderReport,
}

/// Climbs the ladder: `points` are the pairs' x, on which particles sit and from which everything starts.
///
/// # Errors
/// Dimensions that do not match, too few observations, values or losses that are not finite, or a stop on request (with
/// checkpoints, the same call goes on from there).
pub fn climb(
    likelihood: &dyn Likelihood,
    observations: Observations,
    points: Rows,
    config: &LadderConfig,
    options: LadderOptions,
) -> Result<LadderOutcome> {
    let dims = likelihood.dims();
    if points.cols() != dims.dx {
        return Err(Error::input(
            format!(
                "the likelihood is for x of {} columns, the points have {}",
                dims.dx,
                points.cols()
            ),
            "fit a surrogate on pairs with the same columns",
        ));
    }
    check_observations(likelihood, observations)?;
    config.check(observations.y.rows(), points.rows())?;
    let mut climber = Climber::new(likelihood, observations, points, config, options)?;
    climber.affine_rungs()?;
    climber.flow_on_best("spline on affine")?;
    let particles = climber.particles()?;
    if climber.best_is_flow() {
        climber.particles_of_flow()?;
    }
    climber.finish(particles)
}
