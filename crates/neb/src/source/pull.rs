//! Regularisation against sources the observations cannot tell apart: −λ·H(q_θ) + κ·KL(q_θ ‖ p_0), over samples of q_θ.
//!
//! With KL(q_θ ‖ p_0) = −H(q_θ) − E[log p_0] both come down to the entropy and to log p_0 at the samples. The entropy is minus
//! the mean of the source's own log-density, where it has one; else it is estimated by the distances between the samples.
//! A density that takes many evaluations (a symmetric one) is averaged over fewer of the samples, which are independent.

use super::{Density, Source, entropy};
use crate::{Matrix, MatrixMut, Rows};

/// Floor of log p_0: where the reference has no density its pull has no direction, and the value must stay finite.
const SMALLEST_LOG: f32 = -100.0;
/// Samples that an expensive density is averaged over, at least.
const FEWEST_ROWS: usize = 256;

/// Weights of the entropy and of a pull towards a simpler source.
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

    /// Whether it does anything at all.
    pub fn is_none(&self) -> bool {
        self.entropy == 0.0 && self.towards.is_none_or(|(kappa, _)| kappa == 0.0)
    }

    fn share(&self, step: u64) -> f64 {
        let progress = (step as f64 / self.steps as f64).min(1.0);
        1.0 + (self.last_share - 1.0) * progress
    }

    /// Its value at samples x of the source; adds its gradient to `dx` and, where θ moves it other than through x, to
    /// `gradient`.
    pub(super) fn apply(
        &self,
        source: &dyn Source,
        x: Rows,
        step: u64,
        dx: &mut Matrix,
        gradient: &mut [f32],
    ) -> f64 {
        let share = self.share(step);
        let kappa = self.towards.map_or(0.0, |(kappa, _)| kappa);
        let own = (self.entropy + kappa) * share;
        if own == 0.0 {
            return 0.0;
        }
        let all = x.rows();
        let rows = match source.density() {
            Some(density) => (all / density.evaluations()).max(FEWEST_ROWS.min(all)),
            None => all,
        };
        let (x, cols) = (x.slice(0..rows), x.cols());
        let used = &mut dx.values_mut()[..rows * cols];
        let mut value = match source.density() {
            Some(density) => {
                let weight = vec![(own / rows as f64) as f32; rows];
                density.backward_log_prob(x, &weight, MatrixMut::new(used, cols), Some(gradient));
                own * mean_log_prob(density, x, f32::NEG_INFINITY)
            }
            None => -own * entropy::nearest_neighbours(x, -own, MatrixMut::new(used, cols)),
        };
        if let Some((kappa, reference)) = self.towards {
            let kappa = kappa * share;
            value -= kappa * mean_log_prob(reference, x, SMALLEST_LOG);
            let weight = vec![(-kappa / rows as f64) as f32; rows];
            reference.backward_log_prob(x, &weight, MatrixMut::new(used, cols), None);
        }
        value
    }
}

fn mean_log_prob(density: &dyn Density, x: Rows, floor: f32) -> f64 {
    let mut log = vec![0.0; x.rows()];
    density.log_prob(x, &mut log);
    let sum: f64 = log.iter().map(|&l| f64::from(l.max(floor))).sum();
    sum / x.rows() as f64
}

#[cfg(test)]
mod tests {
    use super::super::{Affine, Base, Symmetric};
    use super::*;
    use crate::{Noise, Purpose};

    /// KL(N(0, s²) ‖ N(0, 1)) = Σ (s² − 1)/2 − log s. Over n samples its error is √(d/2n)·(s² − 1): 0.025 here, so that
    /// the bound of 4 errors gives one false alarm in 16 000; the seed is fixed.
    #[test]
    fn an_expensive_density_is_averaged_over_some_of_the_samples() {
        let (dim, scale, all) = (5, 1.2f32, 16_384);
        let normal = |scale| Affine::new(Base::Normal, &[0.0; 5], &[scale; 5], &[false; 5]);
        let source = Symmetric::new(normal(scale), &[true; 5]);
        let reference = normal(1.0);
        let pull = Pull {
            entropy: 0.0,
            towards: Some((1.0, &reference)),
            last_share: 1.0,
            steps: 1,
        };
        let x = source.sample(all, Noise::new(8, Purpose::Test, 0));
        let mut dx = Matrix::zeros(all, dim);
        let mut gradient = vec![0.0; source.parameters().len()];
        let value = pull.apply(&source, x.view(), 0, &mut dx, &mut gradient);
        let square = f64::from(scale).powi(2);
        let exact = dim as f64 * (0.5 * (square - 1.0) - f64::from(scale).ln());
        let used = all / 32;
        let error = (dim as f64 / (2 * used) as f64).sqrt() * (square - 1.0);
        assert!(
            (value - exact).abs() < 4.0 * error,
            "{value} {exact} {error}"
        );
        let moved = (0..all).filter(|&row| dx.row(row).iter().any(|&d| d != 0.0));
        assert_eq!(moved.count(), used);
    }
}
