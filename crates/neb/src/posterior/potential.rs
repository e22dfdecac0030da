//! The log-density a chain sees: that of the posterior in coordinates without edges.
//!
//! A chain moves through all of ℝ^d, so a bounded source is seen through a map x = T(u) from ℝ^d onto its domain:
//! log p(u) = log q(y|T(u)) + log q(T(u)) + log |∂T/∂u|. No point of the chain can leave the domain.

use crate::source::{Density, Domain};
use crate::{Likelihood, Matrix, PairWeights, Rows};

/// A map from ℝ^d onto the domain of x.
pub trait Unconstrained: Send + Sync {
    /// x = T(u); returns log |∂T/∂u|.
    fn to_x(&self, u: &[f64], x: &mut [f32]) -> f64;

    /// u = T⁻¹(x), for x inside the domain.
    fn to_u(&self, x: &[f32]) -> Vec<f64>;

    /// Turns the gradient with respect to x into that with respect to u, and adds that of log |∂T/∂u|.
    fn pull_back(&self, u: &[f64], gradient: &mut [f64]);
}

/// All of ℝ^d in deviations of the source: x = mean + deviation · u.
#[derive(Clone, Debug)]
pub struct Scaled {
    /// The centre.
    pub mean: Vec<f32>,
    /// The unit of each dimension.
    pub deviation: Vec<f32>,
}

impl Unconstrained for Scaled {
    fn to_x(&self, u: &[f64], x: &mut [f32]) -> f64 {
        let mut volume = 0.0;
        for (d, x) in x.iter_mut().enumerate() {
            *x = (f64::from(self.mean[d]) + f64::from(self.deviation[d]) * u[d]) as f32;
            volume += f64::from(self.deviation[d]).ln();
        }
        volume
    }

    fn to_u(&self, x: &[f32]) -> Vec<f64> {
        let centred = x.iter().zip(&self.mean).zip(&self.deviation);
        centred
            .map(|((x, mean), deviation)| f64::from(x - mean) / f64::from(*deviation))
            .collect()
    }

    fn pull_back(&self, _u: &[f64], gradient: &mut [f64]) {
        for (g, deviation) in gradient.iter_mut().zip(&self.deviation) {
            *g *= f64::from(*deviation);
        }
    }
}

/// A domain by its free coordinates.
impl Unconstrained for Domain {
    fn to_x(&self, u: &[f64], x: &mut [f32]) -> f64 {
        let mut volume = 0.0;
        for (d, x) in x.iter_mut().enumerate() {
            *x = self.place(d, u[d] as f32);
            volume -= self.coordinate(d, *x).log_slope;
        }
        volume
    }

    fn to_u(&self, x: &[f32]) -> Vec<f64> {
        let each = x.iter().enumerate();
        each.map(|(d, &x)| self.coordinate(d, x).free).collect()
    }

    fn pull_back(&self, u: &[f64], gradient: &mut [f64]) {
        for (d, g) in gradient.iter_mut().enumerate() {
            let at = self.coordinate(d, self.place(d, u[d] as f32));
            *g = (*g - at.bend) * (-at.log_slope).exp();
        }
    }
}

/// The posterior of one observation, up to a constant, in coordinates without edges.
pub(super) struct Potential<'a> {
    pub(super) likelihood: &'a dyn Likelihood,
    pub(super) density: &'a dyn Density,
    pub(super) coordinates: &'a dyn Unconstrained,
    /// One row.
    pub(super) y: Rows<'a>,
    weights: PairWeights,
    x: Matrix,
}

impl<'a> Potential<'a> {
    pub(super) fn new(
        likelihood: &'a dyn Likelihood,
        density: &'a dyn Density,
        coordinates: &'a dyn Unconstrained,
        y: Rows<'a>,
    ) -> Self {
        Self {
            likelihood,
            density,
            coordinates,
            y,
            weights: PairWeights {
                starts: vec![0, 1],
                y_row: vec![0],
                weight: vec![1.0],
            },
            x: Matrix::zeros(1, density.dim()),
        }
    }

    /// The value at u, and its gradient; −∞ or NaN where there is no density.
    pub(super) fn evaluate(&mut self, u: &[f64], gradient: &mut [f64]) -> f64 {
        let volume = self.coordinates.to_x(u, self.x.row_mut(0));
        let x = self.x.view();
        let (mut prior, mut log) = ([0.0], [0.0]);
        self.density.log_prob(x, &mut prior);
        if prior[0] == f32::NEG_INFINITY {
            return f64::NEG_INFINITY;
        }
        self.likelihood.log_prob(self.y, x, &mut log);
        let mut slope = Matrix::zeros(1, x.cols());
        self.likelihood
            .grad_x_pairs(self.y, x, &self.weights, slope.view_mut());
        self.density
            .backward_log_prob(x, &[1.0], slope.view_mut(), None);
        for (g, slope) in gradient.iter_mut().zip(slope.row(0)) {
            *g = f64::from(*slope);
        }
        self.coordinates.pull_back(u, gradient);
        f64::from(prior[0]) + f64::from(log[0]) + volume
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// log |∂T/∂u| and its pull-back against differences, and T⁻¹ against T.
    #[test]
    fn maps_keep_their_laws() {
        let scaled = Scaled {
            mean: vec![1.0, -2.0],
            deviation: vec![0.5, 3.0],
        };
        let boxed = Domain::new(&[-1.0, 0.0], &[1.0, 5.0]).unwrap();
        let half = Domain::new(&[-1.0, f32::NEG_INFINITY], &[f32::INFINITY, 2.0]).unwrap();
        let maps: [&dyn Unconstrained; 3] = [&scaled, &boxed, &half];
        for map in maps {
            let u = [0.3, -1.2];
            let mut x = [0.0; 2];
            let volume = map.to_x(&u, &mut x);
            for (back, u) in map.to_u(&x).iter().zip(u) {
                assert!((back - u).abs() < 1e-5);
            }
            // f(x) = x1 + 2 x2.
            let mut gradient = [1.0, 2.0];
            map.pull_back(&u, &mut gradient);
            let mut product = 1.0;
            for d in 0..2 {
                let h = 1e-2;
                let at = |sign: f64| {
                    let mut u = u;
                    u[d] += sign * h;
                    let mut x = [0.0; 2];
                    let volume = map.to_x(&u, &mut x);
                    (x, f64::from(x[0]) + 2.0 * f64::from(x[1]) + volume)
                };
                let (up, down) = (at(1.0), at(-1.0));
                assert!((gradient[d] - (up.1 - down.1) / (2.0 * h)).abs() < 1e-3);
                product *= f64::from(up.0[d] - down.0[d]) / (2.0 * h);
            }
            assert!((volume - product.ln()).abs() < 1e-3);
        }
    }
}
