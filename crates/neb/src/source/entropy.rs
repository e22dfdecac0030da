//! Entropy of samples by nearest neighbours (Kozachenko and Leonenko): for sources without a density.
//!
//! H ≈ ψ(n) − ψ(k) + log V_d + (d/n) Σ_i log ε_i, ε_i the distance from x_i to its k-th neighbour, V_d the volume of the unit
//! ball. Distances are taken in deviations of the samples, which adds Σ log deviation and makes the columns' units alike.

use rayon::prelude::*;
use statrs::function::gamma::{digamma, ln_gamma};

use crate::{MatrixMut, Rows};

/// k: the third neighbour halves the variance of the first and blurs little.
const NEIGHBOUR: usize = 3;
/// Samples used; the cost grows with their square.
const MOST_SAMPLES: usize = 2048;

/// The entropy of the law the samples come from; adds `weight` times its gradient to `dx`, with the deviations held fixed.
///
/// Zero, without gradient, for fewer samples than neighbours.
pub(super) fn nearest_neighbours(x: Rows, weight: f64, mut dx: MatrixMut) -> f64 {
    let n = x.rows().min(MOST_SAMPLES);
    let dim = x.cols();
    if n <= NEIGHBOUR {
        return 0.0;
    }
    let x = x.slice(0..n);
    let inverse: Vec<f64> = deviations(x).iter().map(|d| 1.0 / d).collect();
    let square = |a: usize, b: usize| -> f64 {
        let columns = x.row(a).iter().zip(x.row(b)).zip(&inverse);
        columns
            .map(|((&a, &b), inverse)| ((f64::from(a) - f64::from(b)) * inverse).powi(2))
            .sum()
    };
    let neighbours: Vec<(usize, f64)> = (0..n)
        .into_par_iter()
        .map(|i| {
            let mut nearest = [(f64::INFINITY, i); NEIGHBOUR];
            for j in (0..n).filter(|&j| j != i) {
                let distance = square(i, j);
                if distance < nearest[NEIGHBOUR - 1].0 {
                    nearest[NEIGHBOUR - 1] = (distance, j);
                    nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
                }
            }
            let (distance, j) = nearest[NEIGHBOUR - 1];
            (j, distance)
        })
        .collect();
    let scale = weight * dim as f64 / n as f64;
    let mut sum = 0.0;
    for (i, &(j, distance)) in neighbours.iter().enumerate() {
        sum += 0.5 * distance.max(f64::MIN_POSITIVE).ln();
        if distance < 1e-12 {
            continue;
        }
        for (d, inverse) in inverse.iter().enumerate() {
            let difference = f64::from(x.row(i)[d]) - f64::from(x.row(j)[d]);
            let slope = (scale * difference * inverse * inverse / distance) as f32;
            dx.row_mut(i)[d] += slope;
            dx.row_mut(j)[d] -= slope;
        }
    }
    let half = dim as f64 / 2.0;
    let log_ball = half * std::f64::consts::PI.ln() - ln_gamma(half + 1.0);
    let log_units: f64 = inverse.iter().map(|inverse| -inverse.ln()).sum();
    digamma(n as f64) - digamma(NEIGHBOUR as f64)
        + log_ball
        + log_units
        + dim as f64 * sum / n as f64
}

/// Deviation of each column; 1 where it is constant.
fn deviations(x: Rows) -> Vec<f64> {
    let n = x.rows() as f64;
    (0..x.cols())
        .map(|d| {
            let values = || (0..x.rows()).map(|row| f64::from(x.row(row)[d]));
            let mean = values().sum::<f64>() / n;
            let variance = values().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
            if variance > 0.0 { variance.sqrt() } else { 1.0 }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Matrix, Noise, Purpose};

    fn normal(n: usize, scales: [f32; 2]) -> Matrix {
        let z = Noise::new(8, Purpose::Test, 0).normal(n, 2);
        Matrix::from_fn(n, 2, |row, d| z.row(row)[d] * scales[d])
    }

    /// Entropy of N(0, diag(0.1, 5)²): log 2πe + log 0.5 = 2.144730. The estimate's deviation at n = 2000 is about
    /// sqrt(2 + ψ'(3)) / sqrt(n) = 0.035 and its bias below 0.03: bounds of 0.17 are four deviations and the bias.
    #[test]
    fn of_a_normal_law() {
        let x = normal(2000, [0.1, 5.0]);
        let mut dx = Matrix::zeros(2000, 2);
        let found = nearest_neighbours(x.view(), 1.0, dx.view_mut());
        assert!((found - 2.144730).abs() < 0.17, "{found}");
    }

    /// Against differences, which also see the deviations that the gradient holds fixed: of little weight, since the estimate
    /// hardly depends on the metric; a tenth of the norm covers it.
    #[test]
    fn gradient() {
        let mut x = normal(60, [0.5, 2.0]);
        let mut dx = Matrix::zeros(60, 2);
        nearest_neighbours(x.view(), -0.7, dx.view_mut());
        let value = |x: &Matrix| {
            let mut unused = Matrix::zeros(60, 2);
            -0.7 * nearest_neighbours(x.view(), 0.0, unused.view_mut())
        };
        let (mut error, mut size) = (0.0, 0.0);
        for row in 0..60 {
            for d in 0..2 {
                let kept = x.row(row)[d];
                let h = 1e-4;
                x.row_mut(row)[d] = kept + h;
                let up = value(&x);
                x.row_mut(row)[d] = kept - h;
                let down = value(&x);
                x.row_mut(row)[d] = kept;
                let slope = (up - down) / (2.0 * f64::from(h));
                error += (slope - f64::from(dx.row(row)[d])).powi(2);
                size += slope * slope;
            }
        }
        let error = (error / size).sqrt();
        assert!(error < 0.1, "off by {error}");
    }
}
