//! The norm of what is observed, where not every x is: log A = log ∫ ε(x) q(x) dx.
//!
//! A likelihood with an acceptance gives q(y|x) ε(x), so log Σ_k of it estimates log of a law that integrates to A, not to 1.
//! Each estimate loses log (1/K) Σ_k ε(x_k), over the same samples; its slope with respect to log ε(x_k) is
//! −ε(x_k) / Σ_l ε(x_l). Bias and variance of that norm are those of L_K with r = Var ε / (E ε)², far below those of any y.

use super::log_sum::LogSum;
use super::{Estimate, Samples};
use crate::{Acceptance, Likelihood, MatrixMut};

/// log (1/K) Σ_k ε(x_k); zero where every x is observed.
pub(super) fn log_mean_acceptance(likelihood: &dyn Likelihood, samples: Samples) -> f64 {
    likelihood.acceptance().map_or(0.0, |acceptance| {
        log_mean(&log_acceptance(acceptance, samples))
    })
}

/// Turns an estimate made with q(y|x) ε(x) into one of the law of what is observed.
pub(super) fn normalise(
    estimate: &mut Estimate,
    acceptance: &dyn Acceptance,
    samples: Samples,
    event_weights: &[f64],
) {
    let x = samples.x();
    let log = log_acceptance(acceptance, samples);
    let of_each = match samples {
        Samples::Shared(_) | Samples::Weighted(..) => log.len(),
        Samples::Independent(_) => log.len() / estimate.values.len(),
    };
    let norms: Vec<f64> = log.chunks(of_each).map(log_mean).collect();
    let norm_of = |row: usize| norms[row.min(norms.len() - 1)];
    for (row, value) in estimate.values.iter_mut().enumerate() {
        *value -= norm_of(row);
    }
    let rows = estimate.values.iter().zip(event_weights);
    estimate.value = rows.map(|(value, weight)| value * weight).sum();
    let slope = |(k, &log): (usize, &f32)| {
        let group = k / of_each;
        let weight = match samples {
            Samples::Shared(_) | Samples::Weighted(..) => 1.0,
            Samples::Independent(_) => event_weights[group],
        };
        (-weight * (f64::from(log) - norms[group]).exp() / of_each as f64) as f32
    };
    let slopes: Vec<f32> = log.iter().enumerate().map(slope).collect();
    let cols = estimate.grad_x.cols();
    let grad_x = MatrixMut::new(estimate.grad_x.values_mut(), cols);
    acceptance.add_gradient(x, &slopes, grad_x);
}

/// log w_k ε(x_k).
fn log_acceptance(acceptance: &dyn Acceptance, samples: Samples) -> Vec<f32> {
    let mut log = vec![0.0; samples.x().rows()];
    acceptance.log_acceptance(samples.x(), &mut log);
    for (log, weight) in log.iter_mut().zip(samples.log_weights().unwrap_or(&[])) {
        *log += weight;
    }
    log
}

fn log_mean(log: &[f32]) -> f64 {
    LogSum::of(log).value() - (log.len() as f64).ln()
}
