//! A source held inside a domain: x = D(u), u of any source, D the domain's map.
//!
//! log q(x) = log q_u(u(x)) + Σ_d log ∂u_d/∂x_d inside, −∞ outside; no draw is ever outside, even by rounding.

use super::domain::{Coordinate, Domain};
use super::{Density, Quadrature, Source};
use crate::{Matrix, MatrixMut, Noise, Rows};

/// A source inside a domain.
#[derive(Clone, Debug)]
pub struct Bounded<S> {
    pub(super) inner: S,
    pub(super) domain: Domain,
}

impl<S: Source> Bounded<S> {
    /// Holds a source of the domain's free coordinates inside the domain.
    ///
    /// # Panics
    /// If their dimensions differ.
    pub fn new(inner: S, domain: Domain) -> Self {
        assert_eq!(inner.dim(), domain.dim(), "one pair of edges per dimension");
        Self { inner, domain }
    }

    /// The source of the free coordinates.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Where x can be.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    fn coordinates(&self, x: &[f32]) -> impl Iterator<Item = Coordinate> {
        let domain = &self.domain;
        x.iter().enumerate().map(|(d, &x)| domain.coordinate(d, x))
    }

    fn inner_density(&self) -> &dyn Density {
        self.inner
            .density()
            .expect("the inner source has a density")
    }
}

impl<S: Source> Source for Bounded<S> {
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn parameters(&self) -> &[f32] {
        self.inner.parameters()
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        self.inner.update(change);
    }

    fn set_quadrature(&mut self, rule: Option<Quadrature>) {
        self.inner.set_quadrature(rule);
    }

    fn base(&self, rows: usize, noise: Noise) -> Matrix {
        self.inner.base(rows, noise)
    }

    fn normal_columns(&self) -> Option<usize> {
        self.inner.normal_columns()
    }

    fn push(&self, z: Rows) -> Matrix {
        self.domain.from_free(self.inner.push(z).view())
    }

    fn backward(&self, z: Rows, x: Rows, dx: Rows, gradient: &mut [f32]) {
        let mut free = x.to_matrix();
        let mut d_free = dx.to_matrix();
        for row in 0..x.rows() {
            for (d, at) in self.coordinates(x.row(row)).enumerate() {
                free.row_mut(row)[d] = at.free as f32;
                d_free.row_mut(row)[d] *= (-at.log_slope).exp() as f32;
            }
        }
        self.inner.backward(z, free.view(), d_free.view(), gradient);
    }

    fn density(&self) -> Option<&dyn Density> {
        self.inner.density().is_some().then_some(self)
    }
}

/// Reached through [`Source::density`], hence only where the inner source has a density.
impl<S: Source> Density for Bounded<S> {
    fn evaluations(&self) -> usize {
        self.inner_density().evaluations()
    }

    fn log_prob(&self, x: Rows, out: &mut [f32]) {
        let free = self.domain.to_free(x);
        self.inner_density().log_prob(free.view(), out);
        for (row, out) in out.iter_mut().enumerate() {
            *out = if self.domain.contains(x.row(row)) {
                let slopes = self.coordinates(x.row(row)).map(|at| at.log_slope);
                (f64::from(*out) + slopes.sum::<f64>()) as f32
            } else {
                f32::NEG_INFINITY
            };
        }
    }

    fn support(&self) -> Option<Domain> {
        Some(self.domain.clone())
    }

    fn backward_log_prob(
        &self,
        x: Rows,
        weight: &[f32],
        mut dx: MatrixMut,
        gradient: Option<&mut [f32]>,
    ) {
        let free = self.domain.to_free(x);
        let weight: Vec<f32> = (0..x.rows())
            .map(|row| {
                if self.domain.contains(x.row(row)) {
                    weight[row]
                } else {
                    0.0
                }
            })
            .collect();
        let mut d_free = Matrix::zeros(x.rows(), x.cols());
        self.inner_density()
            .backward_log_prob(free.view(), &weight, d_free.view_mut(), gradient);
        for (row, &weight) in weight.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            for (d, at) in self.coordinates(x.row(row)).enumerate() {
                let through = f64::from(d_free.row(row)[d]) * at.log_slope.exp();
                dx.row_mut(row)[d] += (through + f64::from(weight) * at.bend) as f32;
            }
        }
    }
}
