//! The evidence lower bound: E[log q_φ(y|x) + log q_θ(x) − log q_ψ(x|y)] over x ~ q_ψ(x|y).
//!
//! Below log q_θ(y) by the divergence KL(q_ψ(x|y) ‖ q_θ(x|y)), whatever the number of samples.

use super::Batch;
use super::iw::{LogDensities, VariationalEstimate, bound};
use crate::Result;

/// The evidence lower bound of every observation, their mean, and its slopes: 1/K each.
///
/// # Errors
/// If the tables differ in shape, or the bound of an observation is not finite.
pub fn elbo(batch: Batch, densities: LogDensities) -> Result<VariationalEstimate> {
    bound(batch, densities, |log_ratios, slopes| {
        let k = log_ratios.len() as f64;
        slopes.fill((1.0 / k) as f32);
        log_ratios
            .iter()
            .map(|&ratio| f64::from(ratio))
            .sum::<f64>()
            / k
    })
}
