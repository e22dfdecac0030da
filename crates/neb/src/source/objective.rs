//! Stage 2's objective: minus the mean log-marginal likelihood of the observations, with regularisation.
//!
//! loss = −mean_i L_K(y_i) − λ·H(q_θ) + κ·KL(q_θ ‖ p_0), the regularisation ([`Pull`]) taken over the same samples
//! x_k = G_θ(z_k).

use super::{Draws, Pull, Quadrature, Source};
use crate::estimator::{self, Batch, Gradient, Roulette, Samples};
use crate::train::Objective;
use crate::{Error, Likelihood, Noise, Purpose, Result, Rows};

/// Which estimate of log q_θ(y) is maximised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimator {
    /// L_K with one set of K samples for the whole minibatch.
    Shared {
        /// Number of samples K.
        k: usize,
    },
    /// The same with its leading bias taken off.
    Corrected {
        /// Number of samples K.
        k: usize,
    },
    /// The same over samples of which half come from a wider law ([`Draws`]). Not with a [`Pull`], which asks for draws of the
    /// source itself.
    Tailed {
        /// Number of samples K.
        k: usize,
    },
    /// L_K with K samples of its own for every observation.
    Independent {
        /// Number of samples K.
        k: usize,
    },
    /// The de-biased estimator.
    Roulette(Roulette),
}

/// Fits a source to observations through a likelihood.
pub struct MarginalObjective<'a> {
    /// The source to fit.
    pub source: &'a mut dyn Source,
    /// q(y|x).
    pub likelihood: &'a dyn Likelihood,
    /// The observations.
    pub y: Rows<'a>,
    /// Their event weights v_i; all 1 if absent.
    pub weights: Option<&'a [f32]>,
    /// The estimator.
    pub estimator: Estimator,
    /// The regularisation.
    pub pull: Pull<'a>,
    /// Samples in the held-out estimate.
    pub held_out_k: usize,
    /// Seed of the samples.
    pub seed: u64,
    /// Median effective sample size of the weights in the last step.
    pub effective_samples: Option<f64>,
}

impl Objective for MarginalObjective<'_> {
    fn rows(&self) -> usize {
        self.y.rows()
    }

    fn parameters(&self) -> &[f32] {
        self.source.parameters()
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        self.source.update(change);
    }

    fn loss(&mut self, rows: &[u32], step: u64, gradient: &mut [f32]) -> Result<f64> {
        if matches!(self.estimator, Estimator::Tailed { .. }) && !self.pull.is_none() {
            return Err(Error::input(
                "a source is pulled over samples that are not all its own",
                "use Estimator::Corrected where something pulls",
            ));
        }
        let y = self.y.gather(rows);
        let weights = gather_weights(self.weights, rows);
        let batch = Batch {
            y: y.view(),
            weights: weights.as_deref(),
            row_numbers: Some(rows),
        };
        let noise = Noise::new(self.seed, Purpose::SourceNoise, step);
        let needed = match &self.estimator {
            Estimator::Shared { k } | Estimator::Corrected { k } | Estimator::Tailed { k } => *k,
            Estimator::Independent { k } => *k * rows.len(),
            Estimator::Roulette(roulette) => roulette.samples_needed(noise)?,
        };
        let draws = match &self.estimator {
            Estimator::Tailed { .. } => Draws::tailed(&*self.source, needed, noise),
            _ => Draws::plain(&*self.source, needed, noise),
        };
        let (z, x) = (&draws.z, &draws.x);
        let likelihood = self.likelihood;
        let shared = draws.samples();
        let estimate = match &self.estimator {
            Estimator::Shared { .. } => estimator::mc(likelihood, batch, shared, Gradient::Sparse)?,
            Estimator::Corrected { .. } | Estimator::Tailed { .. } => {
                estimator::corrected(likelihood, batch, shared, Gradient::Sparse)?
            }
            Estimator::Independent { .. } => {
                let own = Samples::Independent(x.view());
                estimator::mc(likelihood, batch, own, Gradient::Sparse)?
            }
            Estimator::Roulette(roulette) => {
                estimator::roulette(likelihood, batch, shared, roulette, noise, Gradient::Sparse)?
            }
        };
        let mut dx = estimate.grad_x;
        for value in dx.values_mut() {
            *value = -*value;
        }
        gradient.fill(0.0);
        let penalty = self
            .pull
            .apply(&*self.source, x.view(), step, &mut dx, gradient);
        self.source
            .backward(z.view(), x.view(), dx.view(), gradient);
        self.effective_samples = Some(estimate.effective_samples.median);
        Ok(penalty - estimate.value)
    }

    fn held_out_loss(&mut self, rows: &[u32]) -> Result<f64> {
        let y = self.y.gather(rows);
        let noise = Noise::new(self.seed, Purpose::SourceSample, u64::MAX);
        let (source, k) = (&*self.source, self.held_out_k);
        let (likelihood, y) = (self.likelihood, y.view());
        let corrected =
            |draws: Draws| estimator::corrected_log_marginal_values(likelihood, y, draws.samples());
        let values = match self.estimator {
            Estimator::Tailed { .. } => corrected(Draws::tailed(source, k, noise))?,
            Estimator::Corrected { .. } => corrected(Draws::plain(source, k, noise))?,
            _ => {
                let x = source.sample(k, noise);
                estimator::log_marginal_values(likelihood, y, x.view())?
            }
        };
        Ok(-weighted_mean(
            &values,
            gather_weights(self.weights, rows).as_deref(),
        ))
    }

    fn set_quadrature(&mut self, rule: Option<Quadrature>) {
        self.source.set_quadrature(rule);
    }

    fn effective_samples(&self) -> Option<f64> {
        self.effective_samples
    }
}

/// The event weights of these rows.
pub(super) fn gather_weights(weights: Option<&[f32]>, rows: &[u32]) -> Option<Vec<f32>> {
    weights.map(|weights| rows.iter().map(|&row| weights[row as usize]).collect())
}

/// Mean with event weights of log-marginals, floored as in [`mean_with_floor`].
pub(super) fn weighted_mean(values: &[f64], weights: Option<&[f32]>) -> f64 {
    let Some(weights) = weights else {
        return mean_with_floor(values);
    };
    let (mut sum, mut total) = (0.0, 0.0);
    for (value, &weight) in values.iter().zip(weights) {
        sum += f64::from(weight) * value.max(-1000.0);
        total += f64::from(weight);
    }
    sum / total
}

/// Mean of log-marginals; an observation no sample sees counts as −1000, far below any it can compete with.
pub(super) fn mean_with_floor(values: &[f64]) -> f64 {
    values.iter().map(|v| v.max(-1000.0)).sum::<f64>() / values.len() as f64
}
