//! Any source made exactly even in chosen dimensions: x = s ⊙ u, u of the inner source, s random signs.
//!
//! log q(x) = log mean over the 2^m sign patterns s of q_u(s ⊙ |x|). The patterns come in a fixed order and see |x| only, so
//! sign flips of x change no bit of it.

use super::{Density, Quadrature, Source};
use crate::{Matrix, MatrixMut, Noise, Purpose, Rows};

/// Most symmetric dimensions a density is summed over: 64 evaluations of the inner density for each of its own.
pub(super) const MOST_SUMMED: usize = 6;
/// Rows evaluated at a time, every one in all patterns.
const ROWS_AT_A_TIME: usize = 1024;

/// A source that is even in some dimensions.
#[derive(Clone, Debug)]
pub struct Symmetric<S> {
    pub(super) inner: S,
    pub(super) symmetric: Vec<bool>,
    /// The symmetric dimensions.
    places: Vec<usize>,
}

impl<S: Source> Symmetric<S> {
    /// Makes a source even in the dimensions marked.
    ///
    /// # Panics
    /// If not every dimension is marked true or false, none is true, or a source with a density is to be even in more than six.
    pub fn new(inner: S, symmetric: &[bool]) -> Self {
        assert_eq!(inner.dim(), symmetric.len(), "one mark per dimension");
        let places: Vec<usize> = (0..symmetric.len()).filter(|&d| symmetric[d]).collect();
        assert!(!places.is_empty(), "no dimension is marked");
        assert!(
            inner.density().is_none() || places.len() <= MOST_SUMMED,
            "a density is summed over 2^m sign patterns, m at most {MOST_SUMMED}"
        );
        Self {
            inner,
            symmetric: symmetric.to_vec(),
            places,
        }
    }

    /// The source whose signs are drawn anew.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Which dimensions are even.
    pub fn symmetric(&self) -> &[bool] {
        &self.symmetric
    }

    fn patterns(&self) -> usize {
        1 << self.places.len()
    }

    /// Whether a pattern flips the n-th symmetric dimension.
    fn flips(pattern: usize, n: usize) -> bool {
        pattern >> n & 1 == 1
    }

    /// s ⊙ |x| for all patterns s of all rows, the patterns of a row together.
    fn unfold(&self, x: Rows) -> Matrix {
        let mut values = Vec::with_capacity(x.rows() * self.patterns() * x.cols());
        for row in 0..x.rows() {
            for pattern in 0..self.patterns() {
                let first = values.len();
                values.extend_from_slice(x.row(row));
                for (n, &d) in self.places.iter().enumerate() {
                    let size = values[first + d].abs();
                    values[first + d] = if Self::flips(pattern, n) { -size } else { size };
                }
            }
        }
        Matrix::from_vec(values, x.cols())
    }

    /// z without the signs, and the signs.
    fn split(&self, z: Rows) -> (Matrix, Matrix) {
        let signs = self.places.len();
        let inner = z.cols() - signs;
        (
            Matrix::from_fn(z.rows(), inner, |row, d| z.row(row)[d]),
            Matrix::from_fn(z.rows(), signs, |row, n| z.row(row)[inner + n]),
        )
    }

    /// Multiplies the symmetric dimensions by the signs.
    fn flip(&self, rows: &mut Matrix, signs: &Matrix) {
        for row in 0..rows.rows() {
            for (n, &d) in self.places.iter().enumerate() {
                rows.row_mut(row)[d] *= signs.row(row)[n];
            }
        }
    }

    /// The rows with random signs in the symmetric dimensions.
    pub(super) fn scatter(&self, rows: Rows, seed: u64) -> Matrix {
        let noise = Noise::new(seed, Purpose::Augment, u64::MAX - 1);
        let coins = noise.uniform(rows.rows(), self.places.len());
        let signs = Matrix::from_fn(rows.rows(), self.places.len(), |row, n| {
            if coins.row(row)[n] < 0.5 { -1.0 } else { 1.0 }
        });
        let mut scattered = rows.to_matrix();
        self.flip(&mut scattered, &signs);
        scattered
    }

    fn inner_density(&self) -> &dyn Density {
        self.inner
            .density()
            .expect("the inner source has a density")
    }
}

/// log mean exp.
fn log_mean_exp(logs: &[f32]) -> f64 {
    let largest = logs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if largest == f32::NEG_INFINITY {
        return f64::NEG_INFINITY;
    }
    let terms = logs.iter().map(|&l| f64::from(l - largest).exp());
    f64::from(largest) + (terms.sum::<f64>() / logs.len() as f64).ln()
}

impl<S: Source> Source for Symmetric<S> {
    fn dim(&self) -> usize {
        self.inner.dim()
    }

    fn parameters(&self) -> &[f32] {
        self.inner.parameters()
    }

    fn update(&mut self, change: &mut dyn FnMut(&mut [f32])) {
        self.inner.update(change);
    }

    /// The inner source's noise, then a sign for every symmetric dimension.
    fn set_quadrature(&mut self, rule: Option<Quadrature>) {
        self.inner.set_quadrature(rule);
    }

    fn base(&self, rows: usize, noise: Noise) -> Matrix {
        let inner = self.inner.base(rows, noise);
        let step = noise.step ^ (noise.purpose as u64) << 56;
        let signs = Noise::new(noise.seed, Purpose::Sign, step).uniform(rows, self.places.len());
        Matrix::from_fn(rows, inner.cols() + signs.cols(), |row, d| {
            match d.checked_sub(inner.cols()) {
                None => inner.row(row)[d],
                Some(n) if signs.row(row)[n] < 0.5 => -1.0,
                Some(_) => 1.0,
            }
        })
    }

    fn normal_columns(&self) -> Option<usize> {
        self.inner.normal_columns()
    }

    fn push(&self, z: Rows) -> Matrix {
        let (z, signs) = self.split(z);
        let mut x = self.inner.push(z.view());
        self.flip(&mut x, &signs);
        x
    }

    fn backward(&self, z: Rows, x: Rows, dx: Rows, gradient: &mut [f32]) {
        let (z, signs) = self.split(z);
        let (mut x, mut dx) = (x.to_matrix(), dx.to_matrix());
        self.flip(&mut x, &signs);
        self.flip(&mut dx, &signs);
        self.inner.backward(z.view(), x.view(), dx.view(), gradient);
    }

    fn density(&self) -> Option<&dyn Density> {
        self.inner.density().is_some().then_some(self)
    }
}

/// Reached through [`Source::density`], hence only where the inner source has a density.
impl<S: Source> Density for Symmetric<S> {
    fn evaluations(&self) -> usize {
        self.patterns() * self.inner_density().evaluations()
    }

    fn log_prob(&self, x: Rows, out: &mut [f32]) {
        let patterns = self.patterns();
        for (block, out) in out.chunks_mut(ROWS_AT_A_TIME).enumerate() {
            let first = block * ROWS_AT_A_TIME;
            let unfolded = self.unfold(x.slice(first..first + out.len()));
            let mut logs = vec![0.0; unfolded.rows()];
            self.inner_density().log_prob(unfolded.view(), &mut logs);
            for (out, logs) in out.iter_mut().zip(logs.chunks(patterns)) {
                *out = log_mean_exp(logs) as f32;
            }
        }
    }

    /// Every pattern has its share q_u(s ⊙ |x|) / Σ_s of the weight; ∂(s|x|)/∂x is ±1, and 0 at x = 0 by symmetry.
    fn backward_log_prob(
        &self,
        x: Rows,
        weight: &[f32],
        mut dx: MatrixMut,
        mut gradient: Option<&mut [f32]>,
    ) {
        let patterns = self.patterns();
        for (block, weight) in weight.chunks(ROWS_AT_A_TIME).enumerate() {
            let first = block * ROWS_AT_A_TIME;
            let unfolded = self.unfold(x.slice(first..first + weight.len()));
            let mut shares = vec![0.0; unfolded.rows()];
            self.inner_density().log_prob(unfolded.view(), &mut shares);
            for (shares, &weight) in shares.chunks_mut(patterns).zip(weight) {
                let total = log_mean_exp(shares) + (patterns as f64).ln();
                for share in shares {
                    *share = if total == f64::NEG_INFINITY {
                        0.0
                    } else {
                        weight * (f64::from(*share) - total).exp() as f32
                    };
                }
            }
            let mut d_unfolded = Matrix::zeros(unfolded.rows(), unfolded.cols());
            self.inner_density().backward_log_prob(
                unfolded.view(),
                &shares,
                d_unfolded.view_mut(),
                gradient.as_deref_mut(),
            );
            for row in 0..weight.len() {
                let at = x.row(first + row);
                let out = dx.row_mut(first + row);
                for pattern in 0..patterns {
                    let d_row = d_unfolded.row(row * patterns + pattern);
                    for (d, &g) in d_row.iter().enumerate() {
                        if !self.symmetric[d] {
                            out[d] += g;
                        }
                    }
                    for (n, &d) in self.places.iter().enumerate() {
                        if at[d] != 0.0 {
                            let negative = Self::flips(pattern, n) != (at[d] < 0.0);
                            out[d] += if negative { -d_row[d] } else { d_row[d] };
                        }
                    }
                }
            }
        }
    }
}
