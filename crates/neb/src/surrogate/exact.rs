//! The true likelihood of a built-in problem, in place of a learned one.
//!
//! With it, stage 2 and the posteriors can be tested apart from the errors of stage 1.

use rayon::prelude::*;

use crate::simulator::{Conditional, Problem, to_f64};
use crate::{Dims, Likelihood, Matrix, MatrixMut, Noise, PairWeights, Rows};

/// Values of x per unit of work.
const CHUNK: usize = 1024;

/// p(y|x) of a built-in problem.
///
/// Computed in `f64` and rounded to `f32` at the end. The values are the true ones, with no floor: far from the
/// data they are very negative (two moons: −20 000 at a distance of 2) but finite unless they leave the range of
/// `f32`, so that a logsumexp over x needs no special case.
#[derive(Clone, Copy)]
pub struct Exact {
    problem: &'static dyn Problem,
}

impl Exact {
    /// The likelihood of this problem.
    ///
    /// ```
    /// use neb::{Likelihood, simulator, surrogate::Exact};
    ///
    /// let problem = simulator::by_name("two-moons")?;
    /// let likelihood = Exact::new(problem);
    /// let (x, y) = problem.observations(100, 7);
    /// let mut log_prob = vec![0.0; 100];
    /// likelihood.log_prob(y.view(), x.view(), &mut log_prob);
    /// # assert!(log_prob.iter().all(|value| value.is_finite()));
    /// # Ok::<(), neb::Error>(())
    /// ```
    pub fn new(problem: &'static dyn Problem) -> Self {
        Self { problem }
    }

    fn check(&self, y: Rows, x: Rows) {
        let found = Dims {
            dx: x.cols(),
            dy: y.cols(),
        };
        assert_eq!(found, self.dims(), "columns of {}", self.problem.name());
    }

    fn laws(&self, x: Rows) -> Vec<Box<dyn Conditional>> {
        (0..x.rows())
            .into_par_iter()
            .with_min_len(CHUNK)
            .map(|row| self.problem.at(&to_f64(x.row(row))))
            .collect()
    }
}

impl Likelihood for Exact {
    fn dims(&self) -> Dims {
        self.problem.dims()
    }

    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]) {
        self.check(y, x);
        assert_eq!((y.rows(), out.len()), (x.rows(), x.rows()), "rows");
        out.par_iter_mut()
            .with_min_len(CHUNK)
            .enumerate()
            .for_each(|(row, out)| {
                let law = self.problem.at(&to_f64(x.row(row)));
                *out = law.log_density(&to_f64(y.row(row))) as f32;
            });
    }

    fn log_prob_pairs(&self, y: Rows, x: Rows, out: MatrixMut) {
        self.check(y, x);
        assert_eq!((out.rows(), out.cols()), (y.rows(), x.rows()), "shape");
        let laws = self.laws(x);
        out.into_values()
            .par_chunks_mut(x.rows())
            .enumerate()
            .for_each(|(i, out)| {
                let y = to_f64(y.row(i));
                out.par_chunks_mut(CHUNK)
                    .zip(laws.par_chunks(CHUNK))
                    .for_each(|(out, laws)| {
                        for (out, law) in out.iter_mut().zip(laws) {
                            *out = law.log_density(&y) as f32;
                        }
                    });
            });
    }

    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &PairWeights, dx: MatrixMut) {
        self.check(y, x);
        assert_eq!((dx.rows(), dx.cols()), (x.rows(), x.cols()), "shape");
        let cols = x.cols();
        dx.into_values()
            .par_chunks_mut(cols)
            .with_min_len(16)
            .enumerate()
            .for_each(|(k, out)| {
                let law = self.problem.at(&to_f64(x.row(k)));
                let (mut sum, mut gradient) = (vec![0.0; cols], vec![0.0; cols]);
                for entry in weights.starts[k]..weights.starts[k + 1] {
                    let y = to_f64(y.row(weights.y_row[entry] as usize));
                    law.gradient(&y, &mut gradient);
                    for (sum, g) in sum.iter_mut().zip(&gradient) {
                        *sum += f64::from(weights.weight[entry]) * g;
                    }
                }
                for (out, sum) in out.iter_mut().zip(&sum) {
                    *out = *sum as f32;
                }
            });
    }

    fn sample(&self, x: Rows, noise: Noise) -> Matrix {
        self.problem.corrupt(x, noise)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulator::{self, Proposal};
    use crate::surrogate::testing::{assert_thread_independent, weights_of_every_third_pair};

    #[test]
    fn pairs_and_rows_hold_the_problem_s_own_values() {
        for &problem in simulator::all() {
            let exact = Exact::new(problem);
            let (x, _) = problem.pairs(Proposal::Covering, 2500, 5);
            let (_, y) = problem.observations(7, 5);
            let mut pairs = Matrix::zeros(7, 2500);
            exact.log_prob_pairs(y.view(), x.view(), pairs.view_mut());
            for i in 0..7 {
                let same = Matrix::from_fn(2500, y.cols(), |_, col| y.row(i)[col]);
                let mut rows = vec![0.0; 2500];
                exact.log_prob(same.view(), x.view(), &mut rows);
                assert_eq!(pairs.row(i), rows);
                for k in [0, 1023, 1024, 2499] {
                    let value = problem.log_likelihood(&to_f64(y.row(i)), &to_f64(x.row(k)));
                    assert_eq!(rows[k], value as f32);
                    assert!(rows[k].is_finite());
                }
            }
        }
    }

    /// Against differences of Σ_i w_ik log p(y_i|x_k) in `f64`. Single terms are as large as 2e4, so the sum in `f32`
    /// and the differences are good to about 0.01. Pair by pair, every problem's gradient is tested in `simulator`.
    #[test]
    fn weighted_gradient_against_differences() {
        let problem = simulator::by_name("two-moons").unwrap();
        let (x, y) = problem.observations(40, 2);
        let weights = weights_of_every_third_pair(40, 40);
        let mut dx = Matrix::zeros(40, 2);
        Exact::new(problem).grad_x_pairs(y.view(), x.view(), &weights, dx.view_mut());
        for k in 0..40 {
            let entries = weights.starts[k]..weights.starts[k + 1];
            let objective = |x: &[f64]| -> f64 {
                let terms = entries.clone().map(|entry| {
                    let y = to_f64(y.row(weights.y_row[entry] as usize));
                    f64::from(weights.weight[entry]) * problem.log_likelihood(&y, x)
                });
                terms.sum()
            };
            for col in 0..2 {
                let (mut up, mut down) = (to_f64(x.row(k)), to_f64(x.row(k)));
                up[col] += 1e-6;
                down[col] -= 1e-6;
                let expected = (objective(&up) - objective(&down)) / 2e-6;
                let got = f64::from(dx.row(k)[col]);
                assert!(
                    (got - expected).abs() < 1e-5 * (1.0 + expected.abs()) + 0.01,
                    "{got} against {expected}"
                );
            }
        }
    }

    #[test]
    fn one_and_two_threads_give_the_same_bits() {
        for &problem in simulator::all() {
            let (x, _) = problem.pairs(Proposal::Covering, 3000, 5);
            let (_, y) = problem.observations(20, 5);
            assert_thread_independent(&Exact::new(problem), &y, &x);
        }
    }
}
