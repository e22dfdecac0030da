//! A likelihood in closed form: y = A x + b + e, e ~ N(0, Σ).
//!
//! With the triangular factor Σ = L Lᵀ and the whitened vectors v = L⁻¹ (y − b), u = L⁻¹ A x,
//!
//! ```text
//! log q(y|x) = −½ |v − u|² − Σ_d log L_dd − ½ dy log 2π,     ∂ log q/∂x = (L⁻¹ A)ᵀ (v − u)
//! ```
//!
//! so that a pair costs `dy` differences and squares. Computed in `f64`: where Σ is small, whitened values are large and their
//! difference cancels.

use rayon::prelude::*;

use crate::simulator::draw_rows;
use crate::{Dims, Error, Likelihood, Matrix, MatrixMut, Noise, PairWeights, Result, Rows};

/// Values of x per unit of work, and per pass over the dimensions: small enough for the first cache.
const CHUNK: usize = 1024;

/// y = A x + b + N(0, Σ).
#[derive(Clone, Debug)]
pub struct GaussianNoise {
    dims: Dims,
    /// A, `dy` × `dx`.
    map: Vec<f64>,
    /// b.
    offset: Vec<f64>,
    /// L, lower triangular, `dy` × `dy`.
    factor: Vec<f64>,
    log_peak: f64,
}

impl GaussianNoise {
    /// y = x + N(0, Σ).
    ///
    /// # Errors
    /// If the covariance Σ is not square, finite, symmetric and positive definite.
    pub fn new(covariance: Rows) -> Result<Self> {
        let dim = covariance.cols();
        let factor = cholesky(covariance)?;
        let log_diagonal: f64 = (0..dim).map(|d| factor[d * dim + d].ln()).sum();
        let mut map = vec![0.0; dim * dim];
        map.iter_mut().step_by(dim + 1).for_each(|one| *one = 1.0);
        Ok(Self {
            dims: Dims { dx: dim, dy: dim },
            map,
            offset: vec![0.0; dim],
            factor,
            log_peak: -log_diagonal - 0.5 * dim as f64 * std::f64::consts::TAU.ln(),
        })
    }

    /// The same noise about A x + b, with A of `dy` rows and `dx` columns.
    ///
    /// # Errors
    /// If A has not one row for each row of the covariance.
    pub fn with_map(mut self, map: Rows) -> Result<Self> {
        if map.rows() != self.dims.dy {
            return Err(Error::input(
                format!(
                    "the map has {} rows, the covariance {}",
                    map.rows(),
                    self.dims.dy
                ),
                "give the map one row for each component of y",
            ));
        }
        self.dims.dx = map.cols();
        self.map = map.values().iter().map(|&v| f64::from(v)).collect();
        Ok(self)
    }

    /// The same noise about A x + b, with this b.
    ///
    /// # Errors
    /// If b has not one value for each row of the covariance.
    pub fn with_offset(mut self, offset: &[f32]) -> Result<Self> {
        if offset.len() != self.dims.dy {
            return Err(Error::input(
                format!(
                    "the offset has {} values, the covariance {} rows",
                    offset.len(),
                    self.dims.dy
                ),
                "give the offset one value for each component of y",
            ));
        }
        self.offset = offset.iter().map(|&v| f64::from(v)).collect();
        Ok(self)
    }

    /// A x, without the offset.
    fn mapped(&self, x: &[f32], out: &mut [f64]) {
        for (out, row) in out.iter_mut().zip(self.map.chunks_exact(self.dims.dx)) {
            *out = row.iter().zip(x).map(|(a, &x)| a * f64::from(x)).sum();
        }
    }

    /// Solves L v = v in place.
    fn whiten(&self, v: &mut [f64]) {
        let dim = self.dims.dy;
        for i in 0..dim {
            let row = &self.factor[i * dim..=i * dim + i];
            let known: f64 = row[..i].iter().zip(&v[..i]).map(|(l, v)| l * v).sum();
            v[i] = (v[i] - known) / row[i];
        }
    }

    /// Solves Lᵀ v = v in place.
    fn solve_transposed(&self, v: &mut [f64]) {
        let dim = self.dims.dy;
        for i in (0..dim).rev() {
            let known: f64 = (i + 1..dim).map(|j| self.factor[j * dim + i] * v[j]).sum();
            v[i] = (v[i] - known) / self.factor[i * dim + i];
        }
    }

    /// v = L⁻¹ (y − b).
    fn whitened_y(&self, y: &[f32]) -> Vec<f64> {
        let mut v: Vec<f64> = y
            .iter()
            .zip(&self.offset)
            .map(|(&y, b)| f64::from(y) - b)
            .collect();
        self.whiten(&mut v);
        v
    }

    /// u = L⁻¹ A x.
    fn whitened_x(&self, x: &[f32]) -> Vec<f64> {
        let mut u = vec![0.0; self.dims.dy];
        self.mapped(x, &mut u);
        self.whiten(&mut u);
        u
    }

    fn check(&self, y: Rows, x: Rows) {
        let found = Dims {
            dx: x.cols(),
            dy: y.cols(),
        };
        assert_eq!(found, self.dims, "columns of the Gaussian noise model");
    }
}

/// The lower triangular L with L Lᵀ = `covariance`.
fn cholesky(covariance: Rows) -> Result<Vec<f64>> {
    let dim = covariance.cols();
    if covariance.rows() != dim {
        return Err(Error::input(
            format!(
                "the covariance has {} rows, {dim} columns",
                covariance.rows()
            ),
            "give a square matrix, one row for each component of y",
        ));
    }
    let entry = |i: usize, j: usize| f64::from(covariance.row(i)[j]);
    for i in 0..dim {
        for j in 0..=i {
            let (here, there) = (entry(i, j), entry(j, i));
            if !here.is_finite() || !there.is_finite() {
                return Err(Error::input(
                    format!(
                        "the covariance is not finite at row {i}, column {j}: {here}, transposed {there}"
                    ),
                    "repair this entry",
                ));
            }
            if (here - there).abs() > 1e-6 * here.abs().max(there.abs()) {
                return Err(Error::input(
                    format!(
                        "the covariance is not symmetric: {here} at row {i}, column {j}, {there} at row {j}, column {i}"
                    ),
                    "make both entries equal",
                ));
            }
        }
    }
    let mut factor = vec![0.0; dim * dim];
    for i in 0..dim {
        for j in 0..=i {
            let known: f64 = (0..j)
                .map(|k| factor[i * dim + k] * factor[j * dim + k])
                .sum();
            let rest = entry(i, j) - known;
            if i > j {
                factor[i * dim + j] = rest / factor[j * dim + j];
            } else if rest > 1e-12 * entry(i, i) {
                factor[i * dim + i] = rest.sqrt();
            } else {
                return Err(Error::input(
                    format!("the covariance is not positive definite: pivot {i} is {rest:e}"),
                    format!(
                        "component {i} has no noise of its own; remove it or add a variance to its diagonal"
                    ),
                ));
            }
        }
    }
    Ok(factor)
}

impl Likelihood for GaussianNoise {
    fn dims(&self) -> Dims {
        self.dims
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        self.check(y, x);
        assert_eq!((y.rows(), out.len()), (x.rows(), x.rows()), "rows");
        out.par_iter_mut()
            .with_min_len(CHUNK)
            .enumerate()
            .for_each(|(row, out)| {
                let (v, u) = (self.whitened_y(y.row(row)), self.whitened_x(x.row(row)));
                let square: f64 = v.iter().zip(&u).map(|(v, u)| (v - u) * (v - u)).sum();
                *out = (self.log_peak - 0.5 * square) as f32;
            });
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, out: MatrixMut) {
        self.check(y, x);
        assert_eq!((out.rows(), out.cols()), (y.rows(), x.rows()), "shape");
        let rows: Vec<Vec<f64>> = (0..x.rows()).map(|k| self.whitened_x(x.row(k))).collect();
        let columns: Vec<Vec<f64>> = (0..self.dims.dy)
            .map(|d| rows.iter().map(|u| u[d]).collect())
            .collect();
        out.into_values()
            .par_chunks_mut(x.rows())
            .enumerate()
            .for_each(|(i, out)| {
                let v = self.whitened_y(y.row(i));
                out.par_chunks_mut(CHUNK)
                    .enumerate()
                    .for_each(|(chunk, out)| {
                        let first = chunk * CHUNK;
                        let mut squares = [0.0; CHUNK];
                        let squares = &mut squares[..out.len()];
                        for (column, v) in columns.iter().zip(&v) {
                            let column = &column[first..first + squares.len()];
                            for (square, u) in squares.iter_mut().zip(column) {
                                *square += (v - u) * (v - u);
                            }
                        }
                        for (out, square) in out.iter_mut().zip(squares) {
                            *out = (self.log_peak - 0.5 * *square) as f32;
                        }
                    });
            });
    }

    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &PairWeights, dx: MatrixMut) {
        self.check(y, x);
        assert_eq!((dx.rows(), dx.cols()), (x.rows(), x.cols()), "shape");
        let whitened: Vec<Vec<f64>> = (0..y.rows()).map(|i| self.whitened_y(y.row(i))).collect();
        let Dims { dx: cols, dy } = self.dims;
        dx.into_values()
            .par_chunks_mut(cols)
            .with_min_len(64)
            .enumerate()
            .for_each(|(k, out)| {
                let u = self.whitened_x(x.row(k));
                let mut sum = vec![0.0; dy];
                for entry in weights.starts[k]..weights.starts[k + 1] {
                    let v = &whitened[weights.y_row[entry] as usize];
                    for ((sum, v), u) in sum.iter_mut().zip(v).zip(&u) {
                        *sum += f64::from(weights.weight[entry]) * (v - u);
                    }
                }
                self.solve_transposed(&mut sum);
                for (col, out) in out.iter_mut().enumerate() {
                    let column = self.map[col..].iter().step_by(cols);
                    *out = column.zip(&sum).map(|(a, s)| a * s).sum::<f64>() as f32;
                }
            });
    }

    fn sample(&self, x: Rows, noise: Noise) -> Matrix {
        assert_eq!(x.cols(), self.dims.dx, "columns of x");
        let dim = self.dims.dy;
        draw_rows(x.rows(), dim, noise, |row, stream, y| {
            self.mapped(x.row(row), y);
            let z: Vec<f64> = (0..dim).map(|_| stream.normal()).collect();
            for (i, y) in y.iter_mut().enumerate() {
                let factor = &self.factor[i * dim..=i * dim + i];
                *y += self.offset[i] + factor.iter().zip(&z).map(|(l, z)| l * z).sum::<f64>();
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Purpose;
    use crate::surrogate::testing::{assert_thread_independent, weights_of_every_third_pair};

    const COVARIANCE: [f32; 4] = [0.5, -0.25, -0.25, 0.375];
    const MAP: [f32; 6] = [1.0, 0.5, -2.0, 0.0, 1.5, 1.0];
    const OFFSET: [f32; 2] = [0.5, -3.0];

    fn model() -> GaussianNoise {
        GaussianNoise::new(Rows::new(&COVARIANCE, 2))
            .and_then(|model| model.with_map(Rows::new(&MAP, 3)))
            .and_then(|model| model.with_offset(&OFFSET))
            .unwrap()
    }

    fn tables(rows_y: usize, rows_x: usize) -> (Matrix, Matrix) {
        let noise = |step| Noise::new(1, Purpose::Test, step);
        (noise(0).normal(rows_y, 2), noise(1).normal(rows_x, 3))
    }

    /// Residual y − A x − b and Σ⁻¹ times it, by the adjugate of the 2 × 2 covariance.
    fn by_hand(y: &[f32], x: &[f32]) -> ([f64; 2], [f64; 2], f64) {
        let d = [0, 1].map(|i| {
            let mean: f64 = (0..3)
                .map(|j| f64::from(MAP[3 * i + j]) * f64::from(x[j]))
                .sum();
            f64::from(y[i]) - mean - f64::from(OFFSET[i])
        });
        let det = 0.5 * 0.375 - 0.25 * 0.25;
        let solved = [
            (0.375 * d[0] + 0.25 * d[1]) / det,
            (0.25 * d[0] + 0.5 * d[1]) / det,
        ];
        (d, solved, det)
    }

    #[test]
    fn values_against_the_adjugate() {
        let (y, x) = tables(5, 2100);
        let model = model();
        let mut pairs = Matrix::zeros(5, 2100);
        model.log_prob_pairs(y.view(), x.view(), pairs.view_mut());
        for i in 0..5 {
            for k in 0..2100 {
                let (d, solved, det) = by_hand(y.row(i), x.row(k));
                let quadratic = d[0] * solved[0] + d[1] * solved[1];
                let expected = -0.5 * quadratic - std::f64::consts::TAU.ln() - 0.5 * det.ln();
                let got = f64::from(pairs.row(i)[k]);
                assert!((got - expected).abs() < 1e-6 * (1.0 + expected.abs()));
            }
            let mut row = [0.0];
            model.log_prob(y.view().slice(i..i + 1), x.view().slice(7..8), &mut row);
            assert_eq!(row[0], pairs.row(i)[7]);
        }
    }

    #[test]
    fn weighted_gradient_against_the_adjugate() {
        let (y, x) = tables(9, 30);
        let weights = weights_of_every_third_pair(9, 30);
        let mut dx = Matrix::zeros(30, 3);
        model().grad_x_pairs(y.view(), x.view(), &weights, dx.view_mut());
        for k in 0..30 {
            let mut expected = [0.0; 3];
            for entry in weights.starts[k]..weights.starts[k + 1] {
                let (_, solved, _) = by_hand(y.row(weights.y_row[entry] as usize), x.row(k));
                for (col, sum) in expected.iter_mut().enumerate() {
                    let along =
                        f64::from(MAP[col]) * solved[0] + f64::from(MAP[3 + col]) * solved[1];
                    *sum += f64::from(weights.weight[entry]) * along;
                }
            }
            for (got, expected) in dx.row(k).iter().zip(expected) {
                assert!((f64::from(*got) - expected).abs() < 1e-5 * (1.0 + expected.abs()));
            }
        }
    }

    /// Five bounds of 5 standard errors: false alarm below 1e-5, seed fixed. The fourth moments of a normal
    /// law give the error of a covariance: (Σ_ii Σ_jj + Σ_ij²) / n.
    #[test]
    fn moments_of_draws() {
        let n = 40_000;
        let x = Matrix::from_fn(n, 3, |_, col| [0.5, -1.0, 2.0][col]);
        let y = model().sample(x.view(), Noise::new(4, Purpose::Test, 0));
        let residual = |row: usize| by_hand(y.row(row), x.row(row)).0;
        let mean = |f: &dyn Fn([f64; 2]) -> f64| {
            (0..n).map(|row| f(residual(row))).sum::<f64>() / n as f64
        };
        let sigma = |i: usize, j: usize| f64::from(COVARIANCE[2 * i + j]);
        for i in 0..2 {
            assert!(mean(&|d| d[i]).abs() < 5.0 * (sigma(i, i) / n as f64).sqrt());
            for j in 0..=i {
                let spread = sigma(i, i) * sigma(j, j) + sigma(i, j).powi(2);
                let off = (mean(&|d| d[i] * d[j]) - sigma(i, j)).abs();
                assert!(off < 5.0 * (spread / n as f64).sqrt(), "({i}, {j}): {off}");
            }
        }
    }

    #[test]
    fn one_and_two_threads_give_the_same_bits() {
        let (y, x) = tables(20, 3000);
        assert_thread_independent(&model(), &y, &x);
    }

    #[test]
    fn unusable_covariances_are_named() {
        let message = |values: &[f32], cols: usize| {
            let error = GaussianNoise::new(Rows::new(values, cols)).unwrap_err();
            assert!(error.hint().is_some());
            error.to_string()
        };
        assert_eq!(
            message(&[1.0, 0.0, 2.0, 0.0, 4.0, 0.0, 2.0, 0.0, 4.0], 3),
            "the covariance is not positive definite: pivot 2 is 0e0"
        );
        assert_eq!(
            message(&[1.0, 0.5, 0.25, 1.0], 2),
            "the covariance is not symmetric: 0.25 at row 1, column 0, 0.5 at row 0, column 1"
        );
        assert!(message(&[f32::NAN, 0.0, 0.0, 1.0], 2).contains("not finite at row 0, column 0"));
        assert_eq!(
            message(&[1.0, 0.0], 2),
            "the covariance has 1 rows, 2 columns"
        );
        assert!(model().with_offset(&[1.0]).is_err());
        assert!(model().with_map(Rows::new(&[1.0], 1)).is_err());
    }
}
