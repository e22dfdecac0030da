//! Independent computations the problems are tested against.

use super::{Problem, to_f64};
use crate::{Matrix, Noise, Purpose};

/// Mean of the values and its standard error.
pub(super) fn mean_and_error(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Mean of log p(y|x) over simulated pairs of the true source, and its standard error.
pub(super) fn mean_log_likelihood(problem: &dyn Problem, n: usize) -> (f64, f64) {
    let (x, y) = problem.observations(n, 1);
    mean_and_error(
        (0..n).map(|row| problem.log_likelihood(&to_f64(y.row(row)), &to_f64(x.row(row)))),
    )
}

/// Analytic gradients of 300 pairs against central differences of step `step`, relative to the
/// largest component. Pairs whose difference quotients at `step` and 2 `step` disagree are not compared
/// (curvature where the noise nearly vanishes); nine in ten must be.
pub(super) fn assert_gradient(problem: &dyn Problem, step: f64, tolerance: f64) {
    let dx = problem.dims().dx;
    let (x, y) = problem.observations(300, 9);
    let mut compared = 0;
    for row in 0..x.rows() {
        let (x, y) = (to_f64(x.row(row)), to_f64(y.row(row)));
        let quotient = |col: usize, step: f64| {
            let (mut up, mut down) = (x.clone(), x.clone());
            up[col] += step;
            down[col] -= step;
            (problem.log_likelihood(&y, &up) - problem.log_likelihood(&y, &down))
                / (up[col] - down[col])
        };
        let expected: Vec<f64> = (0..dx).map(|col| quotient(col, step)).collect();
        let scale = expected.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        let settled = (0..dx)
            .all(|col| (expected[col] - quotient(col, 2.0 * step)).abs() < tolerance * scale);
        if settled {
            let mut gradient = vec![0.0; dx];
            problem.at(&x).gradient(&y, &mut gradient);
            for (got, expected) in gradient.iter().zip(&expected) {
                assert!(
                    (got - expected).abs() < tolerance * scale,
                    "{got} against {expected} at x = {x:?}, y = {y:?}"
                );
            }
            compared += 1;
        }
    }
    assert!(compared >= 270, "only {compared} pairs compared");
}

/// A parallelogram of y cut into cells: y = origin + α · axes[0] + β · axes[1], α and β in (0, 1).
pub(super) struct Cells {
    pub(super) origin: [f64; 2],
    /// The second axis must be vertical (its first component zero).
    pub(super) axes: [[f64; 2]; 2],
    pub(super) bins: [usize; 2],
}

impl Cells {
    fn index(&self, y: &[f64]) -> Option<usize> {
        let alpha = (y[0] - self.origin[0]) / self.axes[0][0];
        let beta = (y[1] - self.origin[1] - alpha * self.axes[0][1]) / self.axes[1][1];
        let inside = |v: f64| (0.0..1.0).contains(&v);
        (inside(alpha) && inside(beta)).then(|| {
            let i = (alpha * self.bins[0] as f64) as usize;
            i * self.bins[1] + (beta * self.bins[1] as f64) as usize
        })
    }

    fn point(&self, alpha: f64, beta: f64) -> [f64; 2] {
        [0, 1].map(|i| self.origin[i] + alpha * self.axes[0][i] + beta * self.axes[1][i])
    }
}

/// Chi-square of n simulated y at one x against the integral of the density over each cell (midpoint rule,
/// 20 × 20 points). Cells that expect fewer than 8 counts, and everything outside, form one cell.
/// False-alarm rate 1e-4.
pub(super) fn assert_histogram(problem: &dyn Problem, x: &[f64], cells: &Cells, n: usize) {
    let table = Matrix::from_fn(n, x.len(), |_, col| x[col] as f32);
    let x = to_f64(table.row(0));
    let y = problem.corrupt(table.view(), Noise::new(17, Purpose::Test, 0));
    let [rows, cols] = cells.bins;
    let mut counts = vec![0.0; rows * cols];
    for row in 0..n {
        if let Some(cell) = cells.index(&to_f64(y.row(row))) {
            counts[cell] += 1.0;
        }
    }
    let law = problem.at(&x);
    let fine = 20;
    let area = cells.axes[0][0] * cells.axes[1][1] / (rows * cols * fine * fine) as f64;
    let (mut chi2, mut degrees) = (0.0, 0.0);
    let (mut rest_count, mut rest_expected) = (n as f64, n as f64);
    for (cell, count) in counts.iter().enumerate() {
        let mut expected = 0.0;
        for sub in 0..fine * fine {
            let along = |bin: usize, sub: usize, bins: usize| {
                (bin as f64 + (sub as f64 + 0.5) / fine as f64) / bins as f64
            };
            let alpha = along(cell / cols, sub / fine, rows);
            let beta = along(cell % cols, sub % fine, cols);
            expected += n as f64 * area * law.log_density(&cells.point(alpha, beta)).exp();
        }
        if expected >= 8.0 {
            chi2 += (count - expected).powi(2) / expected;
            degrees += 1.0;
            rest_count -= count;
            rest_expected -= expected;
        }
    }
    if rest_expected >= 8.0 {
        chi2 += (rest_count - rest_expected).powi(2) / rest_expected;
    } else {
        degrees -= 1.0;
    }
    assert!(degrees > 50.0, "only {degrees} cells to compare");
    let bound = chi_square_bound(degrees);
    assert!(
        chi2 < bound,
        "chi-square {chi2}, {degrees} degrees, bound {bound}"
    );
}

/// Wilson and Hilferty's approximation of the chi-square quantile at 1 − 1e-4.
fn chi_square_bound(degrees: f64) -> f64 {
    let spread = 2.0 / (9.0 * degrees);
    degrees * (1.0 - spread + 3.719 * spread.sqrt()).powi(3)
}

/// Runs on this many threads.
pub(super) fn with_threads<T: Send>(threads: usize, run: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.expect("a small thread pool").install(run)
}
