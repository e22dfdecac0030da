//! The tail of importance weights: Pareto k̂ (Vehtari, Simpson, Gelman, Yao and Gabry, *Pareto smoothed importance sampling*).
//!
//! A generalised Pareto law is fitted to the greatest min(0.2 S, 3 √S) of S weights by Zhang and Stephens' (2009) quasi-Bayesian
//! estimate, with the weak prior k ~ ½ of ten observations. Below ½ the weights have a finite variance, up to 0.7 they
//! are still of use, above they are not.

/// Fewest tail values a fit makes sense with.
const FEWEST: usize = 5;

/// k̂ of weights given as logarithms (any order, −∞ for zero); ∞ where the tail holds too few different values.
pub(super) fn pareto_k(log_weights: &[f32]) -> f64 {
    let count = log_weights.len();
    let size = (0.2 * count as f64).min(3.0 * (count as f64).sqrt()).ceil() as usize;
    if size < FEWEST || size >= count {
        return f64::INFINITY;
    }
    let mut logs = log_weights.to_vec();
    let (_, cutoff, tail) = logs.select_nth_unstable_by(count - size - 1, f32::total_cmp);
    tail.sort_unstable_by(f32::total_cmp);
    let top = tail[size - 1];
    if !top.is_finite() {
        return f64::INFINITY;
    }
    let weight = |log: f32| f64::from(log - top).exp();
    let base = weight(*cutoff);
    let excess: Vec<f64> = tail.iter().map(|&log| weight(log) - base).collect();
    generalised_pareto_shape(&excess)
}

/// Shape of a generalised Pareto law on (0, ∞) from ascending values.
fn generalised_pareto_shape(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let quartile = values[((count / 4.0 + 0.5) as usize).max(1) - 1];
    if quartile <= 0.0 {
        return f64::INFINITY;
    }
    let greatest = values[values.len() - 1];
    let points = 30 + count.sqrt() as usize;
    let theta: Vec<f64> = (1..=points)
        .map(|j| {
            let spread = 1.0 - (points as f64 / (j as f64 - 0.5)).sqrt();
            1.0 / greatest + spread / (3.0 * quartile)
        })
        .collect();
    let shape_at = |theta: f64| values.iter().map(|x| (-theta * x).ln_1p()).sum::<f64>() / count;
    let log_likelihood: Vec<f64> = theta
        .iter()
        .map(|&theta| {
            let shape = shape_at(theta);
            count * ((-theta / shape).ln() - shape - 1.0)
        })
        .collect();
    let top = log_likelihood
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut mean) = (0.0, 0.0);
    for (theta, log) in theta.iter().zip(&log_likelihood) {
        let weight = (log - top).exp();
        if weight.is_finite() {
            sum += weight;
            mean += weight * theta;
        }
    }
    let shape = shape_at(mean / sum);
    (shape * count + 5.0) / (count + 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Noise, Purpose};

    /// w = u^−k, u uniform, has a tail of shape k. With 40 000 weights 600 are in the tail, and the estimate's deviation is
    /// (1 + k)/√600 (0.08 at k = 1), to which the prior adds a pull of 10/610 towards ½: 0.25 is three deviations or more.
    #[test]
    fn the_shape_of_a_power_law_is_found() {
        let u = Noise::new(4, Purpose::Test, 0).uniform(40_000, 1);
        for k in [0.2f32, 0.5, 0.9] {
            let logs: Vec<f32> = u.values().iter().map(|u| -k * u.ln()).collect();
            let found = pareto_k(&logs);
            assert!((found - f64::from(k)).abs() < 0.25, "{k}: {found}");
        }
    }

    #[test]
    fn weights_that_are_nearly_all_zero_have_no_shape() {
        let mut logs = vec![f32::NEG_INFINITY; 1000];
        logs[3] = 0.0;
        logs[500] = -1.0;
        assert_eq!(pareto_k(&logs), f64::INFINITY);
        assert_eq!(pareto_k(&[0.0; 4]), f64::INFINITY);
    }
}
