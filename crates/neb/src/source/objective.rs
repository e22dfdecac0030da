//! Stage 2's objective: minus the mean log-marginal likelihood of the observations, with regularisation.
//!
//! loss = −mean_i L_K(y_i) − λ·H(q_θ) + κ·KL(q_θ ‖ p_0), the entropy and the Kullback-Leibler pull towards a simpler source
//! p_0 taken over the same samples x_k = G_θ(z_k): both need only log q_θ(x_k), log p_0(x_k) and their gradients.

use super::{Density, Source};
use crate::estimator::{self, Batch, Gradient, Roulette, Samples};
use crate::train::Objective;
use crate::{Error, Likelihood, Matrix, Noise, Purpose, Result, Rows};

/// Which estimate of log q_θ(y) is maximised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimator {
    /// L_K with one set of K samples for the whole minibatch.
    Shared {
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

/// Regularisation against sources the observations cannot tell apart.
#[derive(Clone, Copy)]
pub struct Pull<'a> {
    /// Weight λ of the entropy.
    pub entropy: f64,
    /// Weight κ of the pull, and where to.
    pub towards: Option<(f64, &'a dyn Density)>,
    /// Both weights fall linearly to this share of themselves over `steps`.
    pub last_share: f64,
    /// Steps over which they fall.
    pub steps: u64,
}

impl Pull<'_> {
    /// No regularisation.
    pub const NONE: Pull<'static> = Pull {
        entropy: 0.0,
        towards: None,
        last_share: 1.0,
        steps: 1,
    };

    fn share(&self, step: u64) -> f64 {
        let progress = (step as f64 / self.steps as f64).min(1.0);
        1.0 + (self.last_share - 1.0) * progress
    }
}

/// Fits a source to observations through a likelihood.
pub struct MarginalObjective<'a> {
    /// The source to fit.
    pub source: &'a mut dyn Source,
    /// q(y|x).
    pub likelihood: &'a dyn Likelihood,
    /// The observations.
    pub y: Rows<'a>,
    /// The estimator.
    pub estimator: Estimator,
    /// The regularisation.
    pub pull: Pull<'a>,
    /// Samples in the held-out estimate.
    pub held_out_k: usize,
    /// Seed of the samples.
    pub seed: u64,
    /// Median effective sample size of the weights, step by step.
    pub effective_samples: Vec<f64>,
}

impl MarginalObjective<'_> {
    /// Adds the regularisation's gradient to `dx` and the parameters' gradient; returns its value.
    fn regularise(&self, x: Rows, step: u64, dx: &mut Matrix, gradient: &mut [f32]) -> Result<f64> {
        let share = self.pull.share(step);
        let kappa = self.pull.towards.map_or(0.0, |(kappa, _)| kappa);
        let own = (self.pull.entropy + kappa) * share;
        if own == 0.0 {
            return Ok(0.0);
        }
        let Some(density) = self.source.density() else {
            return Err(Error::input(
                "entropy and pull need a source with a density",
                "use an affine, spline, coupling or umnn source, or set their weights to 0",
            ));
        };
        let mean = |values: &[f32]| {
            values.iter().map(|&v| f64::from(v)).sum::<f64>() / values.len() as f64
        };
        let rows = x.rows();
        let mut log = vec![0.0; rows];
        density.log_prob(x, &mut log);
        let mut value = own * mean(&log);
        let weight = vec![(own / rows as f64) as f32; rows];
        density.backward_log_prob(x, &weight, dx.view_mut(), Some(gradient));
        if let Some((kappa, reference)) = self.pull.towards {
            let kappa = kappa * share;
            reference.log_prob(x, &mut log);
            // Where the reference has no density its pull has no direction; a floor keeps the value finite.
            log.iter_mut().for_each(|l| *l = l.max(-100.0));
            value -= kappa * mean(&log);
            let weight = vec![(-kappa / rows as f64) as f32; rows];
            reference.backward_log_prob(x, &weight, dx.view_mut(), None);
        }
        Ok(value)
    }
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
        let y = self.y.gather(rows);
        let batch = Batch {
            row_numbers: Some(rows),
            ..Batch::from(y.view())
        };
        let noise = Noise::new(self.seed, Purpose::SourceNoise, step);
        let needed = match &self.estimator {
            Estimator::Shared { k } => *k,
            Estimator::Independent { k } => *k * rows.len(),
            Estimator::Roulette(roulette) => roulette.samples_needed(noise)?,
        };
        let z = self.source.base(needed, noise);
        let x = self.source.push(z.view());
        let likelihood = self.likelihood;
        let shared = Samples::Shared(x.view());
        let estimate = match &self.estimator {
            Estimator::Shared { .. } => estimator::mc(likelihood, batch, shared, Gradient::Sparse)?,
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
        let penalty = self.regularise(x.view(), step, &mut dx, gradient)?;
        self.source
            .backward(z.view(), x.view(), dx.view(), gradient);
        self.effective_samples
            .push(estimate.effective_samples.median);
        Ok(penalty - estimate.value)
    }

    fn held_out_loss(&mut self, rows: &[u32]) -> Result<f64> {
        let y = self.y.gather(rows);
        let noise = Noise::new(self.seed, Purpose::SourceSample, u64::MAX);
        let x = self.source.sample(self.held_out_k, noise);
        let values = estimator::log_marginal_values(self.likelihood, y.view(), x.view())?;
        Ok(-mean_with_floor(&values))
    }
}

/// Mean of log-marginals; an observation no sample sees counts as −1000, far below any it can compete with.
pub(super) fn mean_with_floor(values: &[f64]) -> f64 {
    values.iter().map(|v| v.max(-1000.0)).sum::<f64>() / values.len() as f64
}
