//! The simplest sources: x = shift + scale · z per dimension, z of a normal or uniform law with deviation 1.
//!
//! Parameters: log scale of every dimension, then shift of every dimension.

use serde::{Deserialize, Serialize};

use super::{Density, Source};
use crate::{Matrix, MatrixMut, Noise, Rows};

/// The law of z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// N(0, 1).
    Normal,
    /// Uniform on ±√3, whose deviation is 1.
    Uniform,
}

const SQRT_3: f32 = 1.732_050_8;
const HALF_LOG_TWO_PI: f32 = 0.918_938_5;

/// Scale and shift of a base law, dimension by dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    base: Base,
    dim: usize,
    parameters: Vec<f32>,
    symmetric: Vec<bool>,
    /// Whether shifts stay where they are while training.
    scales_only: bool,
}

impl Affine {
    /// The source with these means and deviations; a symmetric dimension keeps its mean at zero.
    pub fn new(base: Base, mean: &[f32], deviation: &[f32], symmetric: &[bool]) -> Self {
        let scales = deviation.iter().map(|d| d.ln());
        let shifts = mean.iter().zip(symmetric);
        let shifts = shifts.map(|(&mean, &even)| if even { 0.0 } else { mean });
        Self {
            base,
            dim: mean.len(),
            parameters: scales.chain(shifts).collect(),
            symmetric: symmetric.to_vec(),
            scales_only: false,
        }
    }

    /// The same source, with shifts that stay where they are while training, or not.
    pub fn scales_only(self, only: bool) -> Self {
        Self {
            scales_only: only,
            ..self
        }
    }

    fn shifts(&self, d: usize) -> bool {
        !self.symmetric[d] && !self.scales_only
    }

    /// The law of z.
    pub fn base_law(&self) -> Base {
        self.base
    }

    /// Which dimensions keep their mean at zero.
    pub fn symmetric(&self) -> &[bool] {
        &self.symmetric
    }

    /// Deviation of dimension d.
    pub fn deviation(&self, d: usize) -> f32 {
        self.parameters[d].exp()
    }

    /// Mean of dimension d.
    pub fn mean(&self, d: usize) -> f32 {
        self.parameters[self.dim + d]
    }
}

impl Source for Affine {
    fn dim(&self) -> usize {
        self.dim
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(&mut self.parameters);
    }

    fn base(&self, rows: usize, noise: Noise) -> Matrix {
        match self.base {
            Base::Normal => noise.normal(rows, self.dim),
            Base::Uniform => {
                let mut z = noise.uniform(rows, self.dim);
                for value in z.values_mut() {
                    *value = SQRT_3 * (2.0 * *value - 1.0);
                }
                z
            }
        }
    }

    fn push(&self, z: Rows) -> Matrix {
        let scales: Vec<f32> = (0..self.dim).map(|d| self.deviation(d)).collect();
        Matrix::from_fn(z.rows(), self.dim, |row, d| {
            scales[d] * z.row(row)[d] + self.mean(d)
        })
    }

    fn backward(&self, z: Rows, _x: Rows, dx: Rows, gradient: &mut [f32]) {
        for d in 0..self.dim {
            let scale = f64::from(self.deviation(d));
            let (mut d_scale, mut d_shift) = (0.0, 0.0);
            for row in 0..z.rows() {
                let g = f64::from(dx.row(row)[d]);
                d_scale += g * scale * f64::from(z.row(row)[d]);
                d_shift += g;
            }
            gradient[d] += d_scale as f32;
            if self.shifts(d) {
                gradient[self.dim + d] += d_shift as f32;
            }
        }
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }
}

impl Density for Affine {
    fn log_prob(&self, x: Rows, out: &mut [f32]) {
        for (row, out) in out.iter_mut().enumerate() {
            *out = 0.0;
            for (d, &x) in x.row(row).iter().enumerate() {
                let z = (x - self.mean(d)) / self.deviation(d);
                *out -= self.parameters[d]
                    + match self.base {
                        Base::Normal => 0.5 * z * z + HALF_LOG_TWO_PI,
                        // The edge itself may be rounded out by a few units in the last place.
                        Base::Uniform if z.abs() <= SQRT_3 * (1.0 + 1e-5) => (2.0 * SQRT_3).ln(),
                        Base::Uniform => f32::INFINITY,
                    };
            }
        }
    }

    fn backward_log_prob(
        &self,
        x: Rows,
        weight: &[f32],
        mut dx: MatrixMut,
        gradient: Option<&mut [f32]>,
    ) {
        let mut sums = vec![0.0f64; 2 * self.dim];
        for (row, &weight) in weight.iter().enumerate() {
            for (d, &x) in x.row(row).iter().enumerate() {
                let scale = self.deviation(d);
                let z = (x - self.mean(d)) / scale;
                let (pull, d_scale) = match self.base {
                    Base::Normal => (-z / scale, z * z - 1.0),
                    Base::Uniform => (0.0, -1.0),
                };
                dx.row_mut(row)[d] += weight * pull;
                sums[d] += f64::from(weight * d_scale);
                sums[self.dim + d] -= f64::from(weight * pull);
            }
        }
        if let Some(gradient) = gradient {
            for (d, (gradient, sum)) in gradient.iter_mut().zip(sums).enumerate() {
                if d < self.dim || self.shifts(d - self.dim) {
                    *gradient += sum as f32;
                }
            }
        }
    }
}
