//! A Gaussian model whose marginal, posterior and estimator statistics are known in closed form.

use crate::{Dims, Likelihood, Matrix, MatrixMut, Noise, PairWeights, Rows};

/// log N(value; mean, deviation²).
pub(crate) fn log_normal(value: f64, mean: f64, deviation: f64) -> f64 {
    let standardised = (value - mean) / deviation;
    -0.5 * standardised * standardised - deviation.ln() - 0.5 * std::f64::consts::TAU.ln()
}

/// x ~ N(mean, deviation²), y = x + noise·N(0, 1), in one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GaussianModel {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
    pub(crate) noise: f64,
}

impl GaussianModel {
    /// N(0, 1) seen with noise 0.5.
    pub(crate) const STANDARD: Self = Self {
        mean: 0.0,
        deviation: 1.0,
        noise: 0.5,
    };

    pub(crate) fn likelihood(&self) -> AdditiveNoise {
        AdditiveNoise {
            dim: 1,
            deviation: self.noise,
        }
    }

    pub(crate) fn samples(&self, noise: Noise, n: usize) -> Matrix {
        let z = noise.normal(n, 1);
        Matrix::from_fn(n, 1, |row, _| {
            (self.mean + self.deviation * f64::from(z.row(row)[0])) as f32
        })
    }

    /// log q(y).
    pub(crate) fn log_marginal(&self, y: f64) -> f64 {
        log_normal(y, self.mean, self.deviation.hypot(self.noise))
    }

    /// Mean and deviation of x given y.
    pub(crate) fn posterior(&self, y: f64) -> (f64, f64) {
        let (t2, s2) = (self.deviation.powi(2), self.noise.powi(2));
        let gain = t2 / (t2 + s2);
        (self.mean + gain * (y - self.mean), (gain * s2).sqrt())
    }
}

/// y = x + `deviation`·N(0, I).
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdditiveNoise {
    pub(crate) dim: usize,
    pub(crate) deviation: f64,
}

impl AdditiveNoise {
    fn pair(&self, y: &[f32], x: &[f32]) -> f32 {
        let constant = -(self.deviation.ln() + 0.5 * std::f64::consts::TAU.ln());
        let scale = (-0.5 / self.deviation.powi(2)) as f32;
        y.iter()
            .zip(x)
            .map(|(y, x)| scale * (y - x) * (y - x) + constant as f32)
            .sum()
    }
}

impl Likelihood for AdditiveNoise {
    fn dims(&self) -> Dims {
        Dims {
            dx: self.dim,
            dy: self.dim,
        }
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        for (row, out) in out.iter_mut().enumerate() {
            *out = self.pair(y.row(row), x.row(row));
        }
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, mut out: MatrixMut) {
        for row in 0..y.rows() {
            for (k, out) in out.row_mut(row).iter_mut().enumerate() {
                *out = self.pair(y.row(row), x.row(k));
            }
        }
    }

    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &PairWeights, mut dx: MatrixMut) {
        let precision = self.deviation.powi(-2) as f32;
        for k in 0..x.rows() {
            let dx = dx.row_mut(k);
            dx.fill(0.0);
            for entry in weights.starts[k]..weights.starts[k + 1] {
                let y = y.row(weights.y_row[entry] as usize);
                for (d, dx) in dx.iter_mut().enumerate() {
                    *dx += weights.weight[entry] * precision * (y[d] - x.row(k)[d]);
                }
            }
        }
    }

    fn sample(&self, x: Rows, noise: Noise) -> Matrix {
        let z = noise.normal(x.rows(), self.dim);
        Matrix::from_fn(x.rows(), self.dim, |row, d| {
            x.row(row)[d] + self.deviation as f32 * z.row(row)[d]
        })
    }
}

/// q(y|x) = 1 where y = x and 0 elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointMass;

impl Likelihood for PointMass {
    fn dims(&self) -> Dims {
        Dims { dx: 1, dy: 1 }
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        for (row, out) in out.iter_mut().enumerate() {
            *out = if y.row(row) == x.row(row) {
                0.0
            } else {
                f32::NEG_INFINITY
            };
        }
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, mut out: MatrixMut) {
        for row in 0..y.rows() {
            for (k, out) in out.row_mut(row).iter_mut().enumerate() {
                *out = if y.row(row) == x.row(k) {
                    0.0
                } else {
                    f32::NEG_INFINITY
                };
            }
        }
    }

    fn grad_x_pairs(&self, _y: Rows, _x: Rows, _weights: &PairWeights, mut dx: MatrixMut) {
        dx.values_mut().fill(0.0);
    }

    fn sample(&self, x: Rows, _noise: Noise) -> Matrix {
        x.to_matrix()
    }
}

/// The result of `work` with 1, 2 and 8 threads.
pub(crate) fn with_threads<T: Send>(work: impl Fn() -> T + Sync) -> Vec<T> {
    [1, 2, 8]
        .map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(&work)
        })
        .into()
}

/// log (1/K) Σ_k N(y; x_k, deviation²) in plain `f64`.
pub(crate) fn log_mean_exp(y: &[f32], x: &[f64], deviation: f64) -> f64 {
    let density = |x: &[f64]| -> f64 {
        let logs = y.iter().zip(x);
        logs.map(|(&y, &x)| log_normal(f64::from(y), x, deviation))
            .sum::<f64>()
            .exp()
    };
    let samples = x.chunks(y.len());
    let k = samples.len() as f64;
    (samples.map(density).sum::<f64>() / k).ln()
}

/// Asserts that `found` is the gradient of `value`, by central differences at up to 40 coordinates.
pub(crate) fn finite_differences(
    value: impl Fn(&[f64]) -> f64,
    at: &[f64],
    found: &[f32],
    tolerance: f64,
) {
    assert_eq!(at.len(), found.len());
    let largest = found.iter().fold(0f32, |a, b| a.max(b.abs()));
    for coordinate in (0..at.len()).step_by(at.len().div_ceil(40)) {
        let moved = |step: f64| {
            let mut at = at.to_vec();
            at[coordinate] += step;
            value(&at)
        };
        let slope = (moved(1e-4) - moved(-1e-4)) / 2e-4;
        let difference = (f64::from(found[coordinate]) - slope).abs();
        assert!(
            difference < tolerance * f64::from(largest).max(1.0),
            "coordinate {coordinate}: {} is not {slope}",
            found[coordinate]
        );
    }
}
