//! Posteriors: what each single observation says about its own x.
//!
//! With the source as prior and the surrogate as likelihood, p(x|y) ∝ q(y|x) q(x). The ways to draw from it:
//!
//! | method | needs of the source | draws are | fails when |
//! |---|---|---|---|
//! | [`Posterior::rejection`] | samples | independent and exact | the likelihood is so narrow that hardly a sample is accepted |
//! | [`Posterior::importance`] | samples | resampled from a finite bank | few samples carry all the weight (ESS, Pareto k) |
//! | [`Posterior::annealed`] | a density | a population moved while the likelihood narrows | a mode is so narrow that no sample of the bank is near |
//! | [`Posterior::nuts`] | a density | chains | modes are far apart: a chain stays in the one it began in (R-hat) |
//! | [`direct`] | a recognition network | independent, as good as the network | the network is |
//!
//! [`Posterior::suggested_method`] chooses for whoever does not want to. All of them return [`Draws`], and none of them hangs: each has a [`Budget`] and says when it was hit.

mod annealed;
mod ascent;
mod bank;
mod choice;
mod clock;
mod diagnostics;
mod direct;
mod importance;
mod narrowing;
mod nuts;
mod pareto;
mod potential;
mod rejection;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use clock::Tracker;
pub use diagnostics::{effective_size, split_r_hat};
pub use direct::{Recognise, direct};
pub use nuts::NutsOptions;
pub use potential::{Scaled, Unconstrained};

use clock::Clock;

use crate::source::{Density, Source};
use crate::{Error, Likelihood, Matrix, Result, Rows};

/// How a posterior is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Source samples, accepted with probability q(y|x)/max.
    Rejection,
    /// Source samples (or those of a recognition network), resampled by their weights.
    Importance,
    /// A population that follows the likelihood from wide to narrow.
    Annealed,
    /// Hamiltonian chains.
    Nuts,
    /// A recognition network.
    Direct,
}

impl std::fmt::Display for Method {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Rejection => "rejection",
            Self::Importance => "importance",
            Self::Annealed => "annealed",
            Self::Nuts => "nuts",
            Self::Direct => "direct",
        })
    }
}

/// When a sampler stops at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Seconds of wall time.
    pub max_seconds: f64,
    /// Samples of the source that are drawn for the bank.
    pub max_samples: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_seconds: f64::INFINITY,
            max_samples: 10_000_000,
        }
    }
}

/// Which budget ended a run early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// The seconds were over, or it was asked to stop.
    Seconds,
    /// All samples were drawn.
    Samples,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PosteriorOptions {
    /// Draws for each observation.
    pub draws: usize,
    /// Seed of the bank and of every decision.
    pub seed: u64,
    /// When to stop at the latest.
    pub budget: Budget,
}

impl Default for PosteriorOptions {
    fn default() -> Self {
        Self {
            draws: 1000,
            seed: 1,
            budget: Budget::default(),
        }
    }
}

/// Posterior draws of many observations, and how far each can be trusted.
///
/// Everything but `x` has one entry per observation; what a method does not know is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Draws {
    /// How they were drawn.
    pub method: Method,
    /// Rows i·n .. (i + 1)·n belong to observation i; NaN beyond the draws that were found.
    pub x: Matrix,
    /// Draws asked for per observation (n).
    pub per_observation: usize,
    /// Draws found.
    pub found: Vec<usize>,
    /// Effective number of independent draws behind them.
    pub ess: Vec<f64>,
    /// Share of the bank that was accepted (rejection), or of the proposed moves (annealed).
    pub acceptance: Vec<f64>,
    /// Greatest log q(y|x) over the source's region (rejection).
    pub max_log_likelihood: Vec<f32>,
    /// Shape of the weights' tail (importance); above 0.7 the weights cannot be trusted.
    pub pareto_k: Vec<f64>,
    /// Greatest split R-hat of all dimensions (nuts); above 1.01 the chains disagree.
    pub r_hat: Vec<f64>,
    /// Diverging transitions after warm-up (nuts).
    pub divergences: Vec<usize>,
    /// Samples of the source that were drawn.
    pub samples: u64,
    /// The budget that ended it early, if one did.
    pub stopped: Option<Stopped>,
}

impl Draws {
    /// As many places as are asked for, all of them NaN.
    fn empty(method: Method, observations: usize, dim: usize, per_observation: usize) -> Self {
        Self {
            method,
            x: Matrix::from_vec(vec![f32::NAN; observations * per_observation * dim], dim),
            per_observation,
            found: vec![0; observations],
            ess: vec![0.0; observations],
            acceptance: Vec::new(),
            max_log_likelihood: Vec::new(),
            pareto_k: Vec::new(),
            r_hat: Vec::new(),
            divergences: Vec::new(),
            samples: 0,
            stopped: None,
        }
    }

    /// Number of observations.
    pub fn observations(&self) -> usize {
        self.found.len()
    }

    /// The draws of one observation that were found.
    pub fn of(&self, observation: usize) -> Rows<'_> {
        let first = observation * self.per_observation;
        self.x.view().slice(first..first + self.found[observation])
    }

    /// One weight per row of `x`: 1 for a draw, 0 where none was found.
    pub fn weights(&self) -> Vec<f32> {
        let rows = self.found.iter().flat_map(|&found| {
            (0..self.per_observation).map(move |draw| if draw < found { 1.0 } else { 0.0 })
        });
        rows.collect()
    }

    /// Whether every observation has all draws.
    pub fn complete(&self) -> bool {
        self.found
            .iter()
            .all(|&found| found == self.per_observation)
    }

    fn put(&mut self, observation: usize, draws: &[f32]) {
        let dim = self.x.cols();
        let first = observation * self.per_observation * dim;
        self.x.values_mut()[first..first + draws.len()].copy_from_slice(draws);
        self.found[observation] = draws.len() / dim;
    }
}

/// The best point of every observation's posterior.
#[derive(Clone, Debug, PartialEq)]
pub struct Maximum {
    /// The x of greatest q(y|x) q(x), one row per observation.
    pub x: Matrix,
    /// log q(y|x) + log q(x) there.
    pub log_prob: Vec<f32>,
}

/// p(x|y) ∝ q(y|x) q(x), for any y.
#[derive(Clone, Copy)]
pub struct Posterior<'a> {
    prior: &'a dyn Source,
    likelihood: &'a dyn Likelihood,
    tracker: Option<&'a Tracker>,
}

impl<'a> Posterior<'a> {
    /// The posteriors of this prior and this likelihood.
    ///
    /// # Errors
    /// If they disagree on the dimension of x.
    pub fn new(prior: &'a dyn Source, likelihood: &'a dyn Likelihood) -> Result<Self> {
        let dims = likelihood.dims();
        if prior.dim() != dims.dx {
            return Err(Error::input(
                format!(
                    "the source has {} columns of x, the likelihood {}",
                    prior.dim(),
                    dims.dx
                ),
                "take both from the same run",
            ));
        }
        Ok(Self {
            prior,
            likelihood,
            tracker: None,
        })
    }

    /// The same, whose samplers are watched and can be stopped by `tracker`.
    pub fn tracked(self, tracker: &'a Tracker) -> Self {
        Self {
            tracker: Some(tracker),
            ..self
        }
    }

    fn clock(&self, budget: &Budget) -> Clock<'a> {
        Clock::start(budget, self.tracker)
    }

    /// log q(y_i|x_i) + log q(x_i) row by row: the log-density of the posterior up to a constant that depends on y_i alone.
    ///
    /// It is −∞ outside the source's support.
    ///
    /// # Errors
    /// A source without a density; tables that do not fit.
    pub fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) -> Result<()> {
        self.check(y)?;
        let density = self.density()?;
        if x.cols() != self.prior.dim() || x.rows() != y.rows() || out.len() != y.rows() {
            return Err(Error::input(
                format!("{} observations for {} points", y.rows(), x.rows()),
                "give one observation for each point",
            ));
        }
        let mut prior = vec![0.0; x.rows()];
        density.log_prob(x, &mut prior);
        self.likelihood.log_prob(y, x, out);
        for (out, prior) in out.iter_mut().zip(prior) {
            // A likelihood may be anything where the prior is zero.
            *out = if prior == f32::NEG_INFINITY {
                prior
            } else {
                *out + prior
            };
        }
        Ok(())
    }

    /// The x of greatest posterior density for each observation: the best of a bank of source samples, moved uphill.
    ///
    /// # Errors
    /// A source without a density; observations that cannot be used.
    pub fn maximum(&self, y: Rows, seed: u64) -> Result<Maximum> {
        self.check(y)?;
        ascent::posterior_maximum(*self, y, seed)
    }

    fn density(&self) -> Result<&'a dyn Density> {
        self.prior.density().ok_or_else(|| {
            Error::input(
                "this source can be sampled but has no density",
                "draw posteriors by rejection or importance",
            )
        })
    }

    fn check(&self, y: Rows) -> Result<()> {
        let dy = self.likelihood.dims().dy;
        if y.cols() != dy || y.rows() == 0 {
            return Err(Error::input(
                format!(
                    "{} observations of {} columns; the likelihood knows {dy}",
                    y.rows(),
                    y.cols()
                ),
                "give at least one observation with the columns of the pairs' y",
            ));
        }
        crate::check::check_finite(y, "observations")
    }
}

fn not_finite(observation: usize, value: f32) -> Error {
    Error::non_finite(
        format!("observation row {observation}: log q(y|x) is {value} for a sample of the source"),
        "check the row; if it looks like the others, train the surrogate again with a smaller rate",
    )
}
