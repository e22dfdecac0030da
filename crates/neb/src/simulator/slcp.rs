//! SLCP, "simple likelihood, complex posterior": four draws of a normal law in two dimensions.
//!
//! ```text
//! μ = (x1, x2),  s1 = x3²,  s2 = x4²,  ρ = tanh x5
//! Σ = [[s1², ρ s1 s2], [ρ s1 s2, s2²]],   y = (y_1, …, y_4),  y_j ~ N(μ, Σ)
//! ```
//!
//! **Density.** log p(y|x) = Σ_j log N(y_j; μ, Σ + δ² I), with δ² the variance of rounding y to `f32` (see the
//! [parent module](super)), which matters only where |x3| or |x4| is below about 1e-3. Its determinant is formed
//! as a sum of positive terms, s1² s2² / cosh² x5 + δ² (s1² + s2²) + δ⁴, since 1 − tanh² x5 cancels for large |x5|.

use super::normal2::Normal2;
use super::{Conditional, Problem, ProductLaw, ROUNDING_VARIANCE};
use crate::{Dims, Stream};

/// Draws of the normal law in one observation.
const DRAWS: f64 = 4.0;

/// SLCP; source U(−3, 3)⁵, covering proposal U(−4, 4)⁵. See the [formulas](self).
#[derive(Clone, Copy, Debug)]
pub struct Slcp;

impl Problem for Slcp {
    fn name(&self) -> &'static str {
        "slcp"
    }

    fn dims(&self) -> Dims {
        Dims { dx: 5, dy: 8 }
    }

    fn source(&self) -> ProductLaw {
        ProductLaw::uniform(3.0, 5)
    }

    fn covering_proposal(&self) -> ProductLaw {
        ProductLaw::uniform(4.0, 5)
    }

    fn simulate(&self, x: &[f64], stream: &mut Stream, y: &mut [f64]) {
        let (s1, s2) = (x[2] * x[2], x[3] * x[3]);
        let (rho, rest) = (x[4].tanh(), x[4].cosh().recip());
        for draw in y.chunks_exact_mut(2) {
            let (shared, own) = (stream.normal(), stream.normal());
            draw[0] = x[0] + s1 * shared;
            draw[1] = x[1] + s2 * (rho * shared + rest * own);
        }
    }

    fn at(&self, x: &[f64]) -> Box<dyn Conditional> {
        let [s1, s2] = [x[2] * x[2], x[3] * x[3]];
        let [v1, v2] = [s1 * s1, s2 * s2];
        let rho = x[4].tanh();
        let one_minus_rho2 = x[4].cosh().powi(-2);
        let d2 = ROUNDING_VARIANCE;
        let variance = [v1 + d2, v2 + d2];
        let covariance = rho * s1 * s2;
        let determinant = v1 * v2 * one_minus_rho2 + d2 * (v1 + v2) + d2 * d2;
        Box::new(FourDraws {
            each: Normal2::new([x[0], x[1]], variance, covariance, determinant),
            d_variance: [4.0 * s1 * x[2], 4.0 * s2 * x[3]],
            d_covariance: [
                2.0 * rho * s2 * x[2],
                2.0 * rho * s1 * x[3],
                one_minus_rho2 * s1 * s2,
            ],
        })
    }
}

/// The law of y at one x.
struct FourDraws {
    each: Normal2,
    /// ∂Σ11/∂x3 and ∂Σ22/∂x4.
    d_variance: [f64; 2],
    /// ∂Σ12/∂(x3, x4, x5).
    d_covariance: [f64; 3],
}

impl Conditional for FourDraws {
    fn log_density(&self, y: &[f64]) -> f64 {
        y.chunks_exact(2).map(|y| self.each.log_density(y)).sum()
    }

    /// With u_j = C⁻¹ (y_j − μ): ∂/∂μ = Σ_j u_j and ∂/∂C = ½ (Σ_j u_j u_jᵀ − 4 C⁻¹), then the chain rule.
    fn gradient(&self, y: &[f64], dx: &mut [f64]) {
        let (e1, e2) = (self.each.solve([1.0, 0.0]), self.each.solve([0.0, 1.0]));
        let mut d_mean = [0.0; 2];
        let (mut g11, mut g12, mut g22) = (-DRAWS * e1[0], -DRAWS * e1[1], -DRAWS * e2[1]);
        for y in y.chunks_exact(2) {
            let u = self.each.score(y);
            d_mean[0] += u[0];
            d_mean[1] += u[1];
            g11 += u[0] * u[0];
            g12 += u[0] * u[1];
            g22 += u[1] * u[1];
        }
        dx[0] = d_mean[0];
        dx[1] = d_mean[1];
        dx[2] = 0.5 * g11 * self.d_variance[0] + g12 * self.d_covariance[0];
        dx[3] = 0.5 * g22 * self.d_variance[1] + g12 * self.d_covariance[1];
        dx[4] = g12 * self.d_covariance[2];
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::super::{testing, to_f64};
    use super::*;
    use crate::{Matrix, Noise, Purpose};

    const POINT: [f32; 5] = [0.7, -2.9, -1.0, -0.9, 0.6];

    /// The textbook form of the bivariate normal density, with its own variables, without rounding.
    fn textbook(y: &[f64], x: &[f64]) -> f64 {
        let (s1, s2, rho) = (x[2].powi(2), x[3].powi(2), x[4].tanh());
        let rest = 1.0 - rho * rho;
        let one = |y: &[f64]| {
            let (a, b) = ((y[0] - x[0]) / s1, (y[1] - x[1]) / s2);
            let quadratic = (a * a - 2.0 * rho * a * b + b * b) / rest;
            -0.5 * quadratic - (TAU * s1 * s2 * rest.sqrt()).ln()
        };
        y.chunks(2).map(one).sum()
    }

    /// Rows with |x3| and |x4| above 0.1, where the rounding's variance changes nothing (relative 1e-10).
    #[test]
    fn log_likelihood_against_the_textbook_form() {
        let (x, y) = Slcp.observations(2000, 4);
        let mut compared = 0;
        for row in 0..x.rows() {
            let (x, y) = (to_f64(x.row(row)), to_f64(y.row(row)));
            if x[2].abs() > 0.1 && x[3].abs() > 0.1 {
                let (got, expected) = (Slcp.log_likelihood(&y, &x), textbook(&y, &x));
                assert!(
                    (got - expected).abs() < 1e-6 * (1.0 + expected.abs()),
                    "{x:?}"
                );
                compared += 1;
            }
        }
        assert!(compared > 1800);
    }

    /// Importance sampling from independent normals 1.3 times as wide. The weights' variance is about 2, the
    /// standard error of the integral 0.006; bound of 4 standard errors, false alarm 6e-5, seed fixed.
    #[test]
    fn density_integrates_to_one() {
        let x = to_f64(&POINT);
        let law = Slcp.at(&x);
        let wide = [1.3 * x[2] * x[2], 1.3 * x[3] * x[3]];
        let mut stream = Noise::new(6, Purpose::Test, 0).stream(0);
        let weights: Vec<f64> = (0..60_000)
            .map(|_| {
                let (mut y, mut log_proposal) = ([0.0; 8], 0.0);
                for (i, y) in y.iter_mut().enumerate() {
                    let z = stream.normal();
                    *y = x[i % 2] + wide[i % 2] * z;
                    log_proposal -= 0.5 * z * z + (wide[i % 2] * TAU.sqrt()).ln();
                }
                (law.log_density(&y) - log_proposal).exp()
            })
            .collect();
        let (integral, error) = testing::mean_and_error(weights.into_iter());
        assert!(error < 0.008, "{error}");
        assert!((integral - 1.0).abs() < 4.0 * error, "{integral} ± {error}");
    }

    /// Mean and covariance of all eight components, the four draws independent of each other.
    /// 44 bounds of 5 standard errors: false alarm below 3e-5, seed fixed.
    #[test]
    fn moments_of_simulated_y() {
        let n = 40_000;
        let x = to_f64(&POINT);
        let table = Matrix::from_fn(n, 5, |_, col| POINT[col]);
        let y = Slcp.corrupt(table.view(), Noise::new(8, Purpose::Test, 0));
        let (s1, s2, rho) = (x[2].powi(2), x[3].powi(2), x[4].tanh());
        let sigma = [[s1 * s1, rho * s1 * s2], [rho * s1 * s2, s2 * s2]];
        let residual = |row: usize, i: usize| f64::from(y.row(row)[i]) - x[i % 2];
        for i in 0..8 {
            let (mean, error) = testing::mean_and_error((0..n).map(|row| residual(row, i)));
            assert!(mean.abs() < 5.0 * error, "component {i}: {mean} ± {error}");
            for j in 0..=i {
                let products = (0..n).map(|row| residual(row, i) * residual(row, j));
                let (covariance, error) = testing::mean_and_error(products);
                let expected = if i / 2 == j / 2 {
                    sigma[i % 2][j % 2]
                } else {
                    0.0
                };
                let off = (covariance - expected).abs();
                assert!(
                    off < 5.0 * error,
                    "({i}, {j}): {covariance} against {expected}"
                );
            }
        }
    }

    #[test]
    fn gradient_against_differences() {
        testing::assert_gradient(&Slcp, 1e-6, 2e-5);
    }

    /// The law collapses onto a line or a point; the value stays finite, and is largest on it.
    #[test]
    fn finite_where_the_noise_vanishes() {
        let on = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0];
        let off = [1.5, 2.5, 0.5, 1.5, 1.0, 2.0, 1.0, 2.0];
        for x in [
            [1.0, 2.0, 0.0, 1.0, 0.5],
            [1.0, 2.0, 1.0, 0.0, -40.0],
            [1.0, 2.0, 0.0, 0.0, 800.0],
            [1.0, 2.0, 1.0, 1.0, 800.0],
        ] {
            let law = Slcp.at(&x);
            let mut dx = [0.0; 5];
            for y in [on, off] {
                law.gradient(&y, &mut dx);
                assert!((law.log_density(&y) as f32).is_finite(), "{x:?}");
                assert!(dx.iter().all(|d| (*d as f32).is_finite()), "{x:?}: {dx:?}");
            }
            assert!(law.log_density(&on) > law.log_density(&off));
        }
    }
}
