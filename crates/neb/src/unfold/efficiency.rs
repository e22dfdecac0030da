//! ε(x): which of the produced events are reconstructed, learned by a classifier.
//!
//! Of simulated events with their x, some were reconstructed and some were not. A small network that tells the two apart by x
//! alone, trained on the logistic loss without event weights, has as its score the log-odds ln ε/(1 − ε): so ε is its logistic
//! function. ε is conditional on x, like q(y|x): weights that depend on x alone change neither, and negative ones are no harm.

use std::path::Path;

use crate::check::{Committee, Network};
use crate::{
    Acceptance, Dims, Error, Likelihood, Matrix, MatrixMut, Noise, PairWeights, Result, Rows,
    Widening,
};

/// What its files say they are.
const KIND: &str = "efficiency";

/// Fewest events of either kind that an efficiency can be learned from.
const FEWEST: usize = 20;

/// Smallest log ε: where nothing was reconstructed in the simulation, nothing can be said, and the source keeps its start.
const SMALLEST_LOG: f32 = -7.0;

/// ε(x), learned.
pub struct Efficiency {
    network: Committee,
}

impl Efficiency {
    /// Learns from the x of all produced events and whether each was reconstructed.
    ///
    /// # Errors
    /// One flag per row is missing, or hardly any event was (or was not) reconstructed.
    pub fn fit(x: Rows, reconstructed: &[bool], seed: u64) -> Result<Self> {
        let seen = reconstructed.iter().filter(|&&seen| seen).count();
        let missed = reconstructed.len() - seen;
        if reconstructed.len() != x.rows() || seen < FEWEST || missed < FEWEST {
            return Err(Error::input(
                format!(
                    "{seen} events that were reconstructed and {missed} that were not, for {} rows of x",
                    x.rows()
                ),
                format!(
                    "an efficiency is learned from at least {FEWEST} of each; without events that were missed it is 1"
                ),
            ));
        }
        let weights = vec![1.0; x.rows()];
        let network = Network {
            // Smooth rather than sharp: an efficiency divides.
            weight_decay: 1e-3,
            members: 4,
            ..Network::smooth()
        };
        let network = network.fit_committee(x, reconstructed, &weights, seed)?;
        Ok(Self { network })
    }

    /// Writes it to a file.
    ///
    /// # Errors
    /// Whatever the operating system refuses.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.network.save(KIND, path)
    }

    /// Reads what [`Self::save`] wrote.
    ///
    /// # Errors
    /// A file that is missing, damaged, or no efficiency.
    pub fn load(path: &Path) -> Result<Self> {
        let network = Committee::load(KIND, path)?;
        Ok(Self { network })
    }

    /// ε(x), row by row.
    pub fn of(&self, x: Rows) -> Vec<f32> {
        let mut values = vec![0.0; x.rows()];
        self.log_acceptance(x, &mut values);
        values.into_iter().map(f32::exp).collect()
    }
}

/// log 1/(1 + e^(−s)).
fn log_logistic(score: f32) -> f32 {
    score.min(0.0) - (-score.abs()).exp().ln_1p()
}

impl Acceptance for Efficiency {
    fn log_acceptance(&self, x: Rows, out: &mut [f32]) {
        for (out, score) in out.iter_mut().zip(self.network.log_odds(x)) {
            *out = log_logistic(score).max(SMALLEST_LOG);
        }
    }

    fn add_gradient(&self, x: Rows, weight: &[f32], dx: MatrixMut) {
        let scores = self.network.log_odds(x).into_iter();
        let slopes: Vec<f32> = scores
            .zip(weight)
            .map(|(score, weight)| match log_logistic(score) > SMALLEST_LOG {
                true => weight / (1.0 + score.exp()),
                false => 0.0,
            })
            .collect();
        self.network.add_gradient(x, &slopes, dx);
    }
}

/// q(y|x) ε(x): the law of what is reconstructed of x.
pub struct Detected<'a> {
    likelihood: Inner<'a>,
    efficiency: &'a Efficiency,
}

enum Inner<'a> {
    Given(&'a dyn Likelihood),
    Widened(Box<dyn Likelihood + 'a>),
}

impl<'a> Detected<'a> {
    /// A likelihood of reconstructed events with the probability to be one.
    pub fn new(likelihood: &'a dyn Likelihood, efficiency: &'a Efficiency) -> Self {
        Self {
            likelihood: Inner::Given(likelihood),
            efficiency,
        }
    }

    fn inner(&self) -> &dyn Likelihood {
        match &self.likelihood {
            Inner::Given(likelihood) => *likelihood,
            Inner::Widened(likelihood) => &**likelihood,
        }
    }

    fn log_efficiency(&self, x: Rows) -> Vec<f32> {
        let mut log = vec![0.0; x.rows()];
        self.efficiency.log_acceptance(x, &mut log);
        log
    }
}

impl Likelihood for Detected<'_> {
    fn dims(&self) -> Dims {
        self.inner().dims()
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        self.inner().log_prob(y, x, out);
        for (out, log) in out.iter_mut().zip(self.log_efficiency(x)) {
            *out += log;
        }
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, out: MatrixMut) {
        let cols = out.cols();
        let out = out.into_values();
        self.inner().log_prob_pairs(y, x, MatrixMut::new(out, cols));
        let log = self.log_efficiency(x);
        for row in out.chunks_exact_mut(cols) {
            for (out, log) in row.iter_mut().zip(&log) {
                *out += log;
            }
        }
    }

    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &PairWeights, dx: MatrixMut) {
        let cols = dx.cols();
        let dx = dx.into_values();
        let inner = MatrixMut::new(dx, cols);
        self.inner().grad_x_pairs(y, x, weights, inner);
        let sums: Vec<f32> = weights
            .starts
            .windows(2)
            .map(|ends| weights.weight[ends[0]..ends[1]].iter().sum())
            .collect();
        let dx = MatrixMut::new(dx, cols);
        self.efficiency.add_gradient(x, &sums, dx);
    }

    fn sample(&self, x: Rows, noise: Noise) -> Matrix {
        self.inner().sample(x, noise)
    }

    fn widening(&self) -> Option<&dyn Widening> {
        self.inner().widening().map(|_| self as &dyn Widening)
    }

    fn acceptance(&self) -> Option<&dyn Acceptance> {
        Some(self.efficiency)
    }
}

impl Widening for Detected<'_> {
    fn largest_scale(&self) -> f32 {
        self.inner().widening().map_or(0.0, Widening::largest_scale)
    }

    fn widened(&self, tau: f32) -> Box<dyn Likelihood + '_> {
        Box::new(Detected {
            likelihood: match self.inner().widening() {
                Some(widening) => Inner::Widened(widening.widened(tau)),
                None => Inner::Given(self.inner()),
            },
            efficiency: self.efficiency,
        })
    }

    fn deviations(&self) -> &[f32] {
        self.inner().widening().map_or(&[], Widening::deviations)
    }
}
