//! A normal law in two dimensions, through the triangular factor W of its precision, Wᵀ W = C⁻¹.

use std::f64::consts::TAU;

/// N(mean, C) in two dimensions.
#[derive(Clone, Debug)]
pub(super) struct Normal2 {
    mean: [f64; 2],
    /// The rows of W are (`first`, 0) and (−`slope` · `second`, `second`).
    first: f64,
    slope: f64,
    second: f64,
    log_peak: f64,
}

impl Normal2 {
    /// From the entries of C. The determinant is the caller's, who can form it without cancellation.
    pub(super) fn new(
        mean: [f64; 2],
        variance: [f64; 2],
        covariance: f64,
        determinant: f64,
    ) -> Self {
        Self {
            mean,
            first: variance[0].sqrt().recip(),
            slope: covariance / variance[0],
            second: (variance[0] / determinant).sqrt(),
            log_peak: -TAU.ln() - 0.5 * determinant.ln(),
        }
    }

    fn whiten(&self, v: [f64; 2]) -> [f64; 2] {
        [self.first * v[0], self.second * (v[1] - self.slope * v[0])]
    }

    fn residual(&self, y: &[f64]) -> [f64; 2] {
        [y[0] - self.mean[0], y[1] - self.mean[1]]
    }

    /// log N(y; mean, C).
    pub(super) fn log_density(&self, y: &[f64]) -> f64 {
        let z = self.whiten(self.residual(y));
        self.log_peak - 0.5 * (z[0] * z[0] + z[1] * z[1])
    }

    /// C⁻¹ v.
    pub(super) fn solve(&self, v: [f64; 2]) -> [f64; 2] {
        let z = self.whiten(v);
        let last = self.second * z[1];
        [self.first * z[0] - self.slope * last, last]
    }

    /// C⁻¹ (y − mean): the gradient of log N(y; mean, C) with respect to the mean.
    pub(super) fn score(&self, y: &[f64]) -> [f64; 2] {
        self.solve(self.residual(y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against C⁻¹ by the adjugate and the density written out.
    #[test]
    fn value_and_score_against_the_adjugate() {
        let (v, c) = ([2.0, 0.5], -0.7);
        let det = v[0] * v[1] - c * c;
        let law = Normal2::new([1.0, -2.0], v, c, det);
        let (y, d) = ([0.3, -1.1], [-0.7, 0.9]);
        let score = [
            (v[1] * d[0] - c * d[1]) / det,
            (v[0] * d[1] - c * d[0]) / det,
        ];
        for (got, expected) in law.score(&y).iter().zip(score) {
            assert!((got - expected).abs() < 1e-12);
        }
        let quadratic = d[0] * score[0] + d[1] * score[1];
        let expected = ((-0.5 * quadratic).exp() / (TAU * det.sqrt())).ln();
        assert!((law.log_density(&y) - expected).abs() < 1e-12);
    }
}
