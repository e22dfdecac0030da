//! How narrow a likelihood the samples can bear: as much widening as keeps the Monte Carlo weights from collapsing.
//!
//! Where the likelihood knows the density of y + τ·noise, noise of that scale is added to the observations too, so the fitted
//! source is not biased; where it does not, it is raised to a power β < 1, which favours x whose likelihood is wide.

use serde::{Deserialize, Serialize};

use crate::{Likelihood, Matrix, Noise, Purpose, Rows, Tempered};

/// Observations the width is chosen by.
const PROBES: usize = 256;
/// Smallest noise scale worth adding, in deviations of y.
const SMALLEST_SCALE: f32 = 1e-3;
/// Smallest power worth trying.
const SMALLEST_POWER: f32 = 1e-6;

/// By how much a likelihood is widened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Width {
    /// Not at all.
    None,
    /// Noise of this scale τ, in deviations of y, added to the observations and known to the likelihood.
    Noise(f32),
    /// The likelihood raised to this power.
    Power(f32),
}

impl Width {
    /// The likelihood at this width.
    pub fn likelihood<'a>(self, likelihood: &'a dyn Likelihood) -> Box<dyn Likelihood + 'a> {
        match (self, likelihood.widening()) {
            (Self::Noise(tau), Some(widening)) => widening.widened(tau),
            (Self::Power(power), _) => Box::new(Tempered {
                inner: likelihood,
                power,
            }),
            _ => Box::new(Tempered {
                inner: likelihood,
                power: 1.0,
            }),
        }
    }

    /// The observations at this width.
    pub fn observations(self, likelihood: &dyn Likelihood, y: Rows, seed: u64) -> Matrix {
        let mut noised = y.to_matrix();
        if let (Self::Noise(tau), Some(widening)) = (self, likelihood.widening()) {
            let noise = Noise::new(seed, Purpose::Augment, u64::MAX).normal(y.rows(), y.cols());
            for row in 0..y.rows() {
                let scales = widening.deviations();
                for (d, value) in noised.row_mut(row).iter_mut().enumerate() {
                    *value += tau * scales[d] * noise.row(row)[d];
                }
            }
        }
        noised
    }

    /// Whether this is narrower than another width of the same kind.
    pub fn narrower_than(self, other: Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => false,
            (Self::None, _) => true,
            (Self::Noise(a), Self::Noise(b)) => a < b,
            (Self::Power(a), Self::Power(b)) => a > b,
            _ => false,
        }
    }
}

/// The narrowest width at which half of the observations have at least `wanted` effective samples among these x.
pub fn narrowest_width(
    likelihood: &dyn Likelihood,
    y: Rows,
    x: Rows,
    wanted: f64,
    seed: u64,
) -> Width {
    let few: Vec<u32> = (0..y.rows().min(PROBES) as u32).collect();
    let y = y.gather(&few);
    let enough = |width: Width| {
        let observations = width.observations(likelihood, y.view(), seed);
        median_effective_samples(&*width.likelihood(likelihood), observations.view(), x) >= wanted
    };
    // Downwards from the widest, and no further than the first failure: where no sample is near any more, the far tails of
    // many weigh alike, and the effective number rises again without meaning anything.
    let (widest, narrowest, step, make): (f32, f32, f32, fn(f32) -> Width) =
        match likelihood.widening() {
            Some(widening) => (widening.largest_scale(), SMALLEST_SCALE, 0.8, Width::Noise),
            None => (SMALLEST_POWER, 1.0, 2.0, Width::Power),
        };
    let reached = |size: f32| (size > narrowest) == (narrowest > widest);
    let mut size = widest;
    while !reached(size * step) && enough(make(size * step)) {
        size *= step;
    }
    if reached(size * step) && enough(Width::None) {
        Width::None
    } else {
        make(size)
    }
}

/// Median over the observations of (Σ w)²/Σ w² with w_k = q(y|x_k).
fn median_effective_samples(likelihood: &dyn Likelihood, y: Rows, x: Rows) -> f64 {
    let mut logs = Matrix::zeros(y.rows(), x.rows());
    likelihood.log_prob_pairs(y, x, logs.view_mut());
    let mut sizes: Vec<f64> = (0..y.rows())
        .map(|i| effective_samples(logs.row(i)))
        .collect();
    sizes.sort_by(f64::total_cmp);
    sizes[sizes.len() / 2]
}

/// (Σ w)²/Σ w² of weights w = e^log; 0 where all are zero.
pub(crate) fn effective_samples(logs: &[f32]) -> f64 {
    let largest = logs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !largest.is_finite() {
        return 0.0;
    }
    let (mut sum, mut square) = (0.0f64, 0.0f64);
    for &log in logs {
        let weight = f64::from((log - largest).max(-80.0)).exp();
        sum += weight;
        square += weight * weight;
    }
    sum * sum / square
}
