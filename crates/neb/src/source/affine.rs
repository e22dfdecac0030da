//! The simplest sources: an affine map of a normal or uniform law z with deviation 1.
//!
//! x_i = m_i + s_i (z_i + Σ_{j<i} c_ij z_j): scale and shift of every dimension, and, in a *full* map, the correlations c (the
//! lower-triangular factor of the covariance, in units of s_i). Parameters: log s_i and m_i relative to where the source started,
//! in its deviations, then c row by row; so a fit does not depend on the units of x.
//!
//! A symmetric dimension keeps m_i = 0 and no correlations: the density is even in it. A map of the uniform law can be given a
//! domain: its box is cut back to the domain after every update, so the uniform law on the domain itself is within reach.

use serde::{Deserialize, Serialize};

use super::domain::Domain;
use super::{Density, Source};
use crate::nn::parameters::Layout;
use crate::scaling::Scaling;
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
const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;
/// Share of a box by which its edges may stick out of the domain by rounding; draws are cut back.
const ROUNDING: f64 = 1e-6;

/// An affine map of a base law.
#[derive(Clone, Debug, PartialEq)]
pub struct Affine {
    base: Base,
    full: bool,
    /// Where the source started.
    start: Scaling,
    parameters: Vec<f32>,
    symmetric: Vec<bool>,
    domain: Option<Domain>,
    /// Whether shifts and correlations stay where they are while training.
    scales_only: bool,
}

impl Affine {
    /// The source with these means and deviations, dimension by dimension; a symmetric one keeps its mean at zero.
    pub fn new(base: Base, mean: &[f32], deviation: &[f32], symmetric: &[bool]) -> Self {
        let means = mean.iter().zip(symmetric);
        let means = means.map(|(&mean, &even)| if even { 0.0 } else { mean });
        let start = Scaling::new(means.collect(), deviation.to_vec());
        Self::unfitted(base, false, start, symmetric, None)
    }

    /// The same source with correlations, zero to start with, between the dimensions that are not symmetric.
    pub fn full(self) -> Self {
        Self::unfitted(self.base, true, self.start, &self.symmetric, self.domain)
    }

    /// The same source, of the uniform law, whose box stays inside a domain.
    ///
    /// # Panics
    /// If the law is not uniform or the map is full: such sources are bounded by [`super::Bounded`].
    pub fn within(self, domain: Domain) -> Self {
        assert!(
            self.base == Base::Uniform && !self.full,
            "only a box can stay inside a domain"
        );
        let mut source = Self {
            domain: Some(domain),
            ..self
        };
        source.project();
        source
    }

    /// The source as it starts, with everything that is fixed.
    pub(super) fn unfitted(
        base: Base,
        full: bool,
        start: Scaling,
        symmetric: &[bool],
        domain: Option<Domain>,
    ) -> Self {
        let dim = start.mean.len();
        let correlations = if full { dim * (dim - 1) / 2 } else { 0 };
        Self {
            base,
            full,
            start,
            parameters: vec![0.0; 2 * dim + correlations],
            symmetric: symmetric.to_vec(),
            domain,
            scales_only: false,
        }
    }

    /// The same source, with shifts and correlations that stay where they are while training, or not.
    pub fn scales_only(self, only: bool) -> Self {
        Self {
            scales_only: only,
            ..self
        }
    }

    /// The same source with its mean back where it started; none where it is there.
    pub(super) fn unshifted(&self) -> Option<Self> {
        let shifts = self.dim()..2 * self.dim();
        if self.parameters[shifts.clone()].iter().all(|&s| s == 0.0) {
            return None;
        }
        let mut source = self.clone();
        source.update(&mut |parameters| parameters[shifts.clone()].fill(0.0));
        Some(source)
    }

    /// The law of z.
    pub fn base_law(&self) -> Base {
        self.base
    }

    /// Whether the map has correlations.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Which dimensions keep their mean at zero.
    pub fn symmetric(&self) -> &[bool] {
        &self.symmetric
    }

    /// The domain its box stays inside, if it has one.
    pub fn domain(&self) -> Option<&Domain> {
        self.domain.as_ref()
    }

    /// Scale s_d: the deviation of dimension d where it has no correlations.
    pub fn deviation(&self, d: usize) -> f32 {
        self.start.deviation[d] * self.parameters[d].exp()
    }

    /// Mean of dimension d.
    pub fn mean(&self, d: usize) -> f32 {
        self.start.mean[d] + self.start.deviation[d] * self.parameters[self.dim() + d]
    }

    pub(super) fn start(&self) -> &Scaling {
        &self.start
    }

    pub(super) fn layout(&self) -> Layout {
        let dim = self.dim();
        let mut layout = Layout::default();
        layout.add("log_scale".to_owned(), &[dim]);
        layout.add("shift".to_owned(), &[dim]);
        if self.full {
            layout.add("correlation".to_owned(), &[dim * (dim - 1) / 2]);
        }
        layout
    }

    /// Place of c_i0 among the parameters.
    fn correlations_of(&self, i: usize) -> usize {
        2 * self.dim() + i * i.saturating_sub(1) / 2
    }

    /// c_i, for j < i; empty where there are no correlations.
    fn row(&self, i: usize) -> &[f32] {
        let first = self.correlations_of(i);
        if self.full {
            &self.parameters[first..first + i]
        } else {
            &[]
        }
    }

    /// Sets to zero the entries of a gradient whose parameters stay where they are.
    fn hold(&self, gradient: &mut [f64]) {
        let dim = self.dim();
        for i in 0..dim {
            if self.scales_only || self.symmetric[i] {
                gradient[dim + i] = 0.0;
            }
            let first = self.correlations_of(i);
            for j in 0..self.row(i).len() {
                if self.scales_only || self.symmetric[i] || self.symmetric[j] {
                    gradient[first + j] = 0.0;
                }
            }
        }
    }

    /// y = (x − m)/s and z = C⁻¹ y of one row.
    fn invert(&self, x: &[f32], y: &mut [f64], z: &mut [f64]) {
        for i in 0..x.len() {
            y[i] = f64::from((x[i] - self.mean(i)) / self.deviation(i));
            let products = self.row(i).iter().zip(&*z);
            let mixed: f64 = products.map(|(&c, z)| f64::from(c) * z).sum();
            z[i] = y[i] - mixed;
        }
    }

    /// log of the density of z_i; −∞ outside.
    fn log_base(&self, z: f64) -> f64 {
        match self.base {
            Base::Normal => -0.5 * z * z - HALF_LOG_TWO_PI,
            // The edge itself may be rounded out by a few units in the last place.
            Base::Uniform if z.abs() <= f64::from(SQRT_3) * (1.0 + 1e-5) => {
                -(2.0 * f64::from(SQRT_3)).ln()
            }
            Base::Uniform => f64::NEG_INFINITY,
        }
    }

    /// Cuts the box back to the domain.
    fn project(&mut self) {
        let Some(domain) = &self.domain else {
            return;
        };
        for d in 0..self.dim() {
            let (low, high) = domain.edges(d);
            let half = f64::from(SQRT_3) * f64::from(self.deviation(d));
            let middle = f64::from(self.mean(d));
            let slack = ROUNDING * half;
            if middle - half >= low - slack && middle + half <= high + slack {
                continue;
            }
            let width = (2.0 * half).min(high - low);
            let (left, right) = if middle >= high {
                ((high - width).max(low), high)
            } else if middle <= low {
                (low, (low + width).min(high))
            } else {
                ((middle - half).max(low), (middle + half).min(high))
            };
            let deviation = f64::from(self.start.deviation[d]);
            let scale = (right - left) / (2.0 * f64::from(SQRT_3));
            let shift = 0.5 * (left + right) - f64::from(self.start.mean[d]);
            let dim = self.start.mean.len();
            self.parameters[d] = (scale / deviation).ln() as f32;
            self.parameters[dim + d] = (shift / deviation) as f32;
        }
    }
}

fn add(gradient: &mut [f32], sums: &[f64]) {
    for (gradient, sum) in gradient.iter_mut().zip(sums) {
        *gradient += *sum as f32;
    }
}

impl Source for Affine {
    fn dim(&self) -> usize {
        self.start.mean.len()
    }

    fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        change(&mut self.parameters);
        self.project();
    }

    fn base(&self, rows: usize, noise: Noise) -> Matrix {
        match self.base {
            Base::Normal => noise.normal(rows, self.dim()),
            Base::Uniform => {
                let mut z = noise.uniform(rows, self.dim());
                for value in z.values_mut() {
                    *value = SQRT_3 * (2.0 * *value - 1.0);
                }
                z
            }
        }
    }

    fn normal_columns(&self) -> Option<usize> {
        (self.base == Base::Normal).then_some(self.dim())
    }

    fn push(&self, z: Rows) -> Matrix {
        let dim = self.dim();
        let scales: Vec<f32> = (0..dim).map(|d| self.deviation(d)).collect();
        Matrix::from_fn(z.rows(), dim, |row, i| {
            let z = z.row(row);
            let products = self.row(i).iter().zip(z);
            let mixed: f32 = products.map(|(c, z)| c * z).sum();
            let x = scales[i] * (z[i] + mixed) + self.mean(i);
            match &self.domain {
                Some(domain) => domain.cut(i, x),
                None => x,
            }
        })
    }

    fn backward(&self, z: Rows, _x: Rows, dx: Rows, gradient: &mut [f32]) {
        let dim = self.dim();
        let mut sums = vec![0.0; self.parameters.len()];
        for i in 0..dim {
            let scale = f64::from(self.deviation(i));
            let unit = f64::from(self.start.deviation[i]);
            let first = self.correlations_of(i);
            for row in 0..z.rows() {
                let (z, g) = (z.row(row), f64::from(dx.row(row)[i]));
                let mut y = f64::from(z[i]);
                for (j, &c) in self.row(i).iter().enumerate() {
                    y += f64::from(c) * f64::from(z[j]);
                    sums[first + j] += g * scale * f64::from(z[j]);
                }
                sums[i] += g * scale * y;
                sums[dim + i] += g * unit;
            }
        }
        self.hold(&mut sums);
        add(gradient, &sums);
    }

    fn density(&self) -> Option<&dyn Density> {
        Some(self)
    }
}

impl Density for Affine {
    fn log_prob(&self, x: Rows, out: &mut [f32]) {
        let dim = self.dim();
        let logs = (0..dim).map(|d| f64::from(self.parameters[d]));
        let volume = self.start.log_volume() + logs.sum::<f64>();
        let (mut y, mut z) = (vec![0.0; dim], vec![0.0; dim]);
        for (row, out) in out.iter_mut().enumerate() {
            let x = x.row(row);
            self.invert(x, &mut y, &mut z);
            let outside = self.domain.as_ref().is_some_and(|d| !d.contains(x));
            *out = if outside {
                f32::NEG_INFINITY
            } else {
                (z.iter().map(|&z| self.log_base(z)).sum::<f64>() - volume) as f32
            };
        }
    }

    fn support(&self) -> Option<Domain> {
        if self.base == Base::Normal || self.full {
            return None;
        }
        let edge = |sign: f32| -> Vec<f32> {
            let reach = |d| self.mean(d) + sign * SQRT_3 * self.deviation(d);
            (0..self.dim()).map(reach).collect()
        };
        Domain::new(&edge(-1.0), &edge(1.0)).ok()
    }

    /// With λ = C⁻ᵀ ∂ log base/∂z: ∂/∂x = λ/s, ∂/∂ log s = −λ y − 1, ∂/∂m = −λ/s, ∂/∂c_ij = −λ_i z_j.
    fn backward_log_prob(
        &self,
        x: Rows,
        weight: &[f32],
        mut dx: MatrixMut,
        gradient: Option<&mut [f32]>,
    ) {
        let dim = self.dim();
        let mut sums = vec![0.0; self.parameters.len()];
        let (mut y, mut z, mut lambda) = (vec![0.0; dim], vec![0.0; dim], vec![0.0; dim]);
        for (row, &weight) in weight.iter().enumerate() {
            let weight = f64::from(weight);
            self.invert(x.row(row), &mut y, &mut z);
            for (lambda, z) in lambda.iter_mut().zip(&z) {
                *lambda = match self.base {
                    Base::Normal => -z,
                    Base::Uniform => 0.0,
                };
            }
            for i in (0..dim).rev() {
                let own = lambda[i];
                for (lambda, &c) in lambda.iter_mut().zip(self.row(i)) {
                    *lambda -= f64::from(c) * own;
                }
            }
            for i in 0..dim {
                let pull = weight * lambda[i] / f64::from(self.deviation(i));
                dx.row_mut(row)[i] += pull as f32;
                sums[i] -= weight * (lambda[i] * y[i] + 1.0);
                sums[dim + i] -= pull * f64::from(self.start.deviation[i]);
                let first = self.correlations_of(i);
                for j in 0..self.row(i).len() {
                    sums[first + j] -= weight * lambda[i] * z[j];
                }
            }
        }
        if let Some(gradient) = gradient {
            self.hold(&mut sums);
            add(gradient, &sums);
        }
    }
}
