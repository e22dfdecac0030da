//! What the tests of several likelihoods share.

use crate::{Likelihood, Matrix, Noise, PairWeights, Purpose};

/// Weights of the pairs with (i + k) divisible by three, of both signs; some x have no entry if there are few y.
pub(crate) fn weights_of_every_third_pair(rows_y: usize, rows_x: usize) -> PairWeights {
    let mut weights = PairWeights::default();
    weights.starts.push(0);
    for k in 0..rows_x {
        for i in (0..rows_y).filter(|i| (i + k).is_multiple_of(3)) {
            weights.y_row.push(i as u32);
            weights.weight.push((1.0 + i as f32 + 0.5 * k as f32).sin());
        }
        weights.starts.push(weights.y_row.len());
    }
    weights
}

/// Every method gives the same bits on one thread and on two.
pub(crate) fn assert_thread_independent(likelihood: &dyn Likelihood, y: &Matrix, x: &Matrix) {
    let weights = weights_of_every_third_pair(y.rows(), x.rows());
    let run = || {
        let mut pairs = Matrix::zeros(y.rows(), x.rows());
        likelihood.log_prob_pairs(y.view(), x.view(), pairs.view_mut());
        let mut dx = Matrix::zeros(x.rows(), x.cols());
        likelihood.grad_x_pairs(y.view(), x.view(), &weights, dx.view_mut());
        let drawn = likelihood.sample(x.view(), Noise::new(3, Purpose::Test, 0));
        let mut rows = vec![0.0; x.rows()];
        likelihood.log_prob(drawn.view(), x.view(), &mut rows);
        (pairs, dx, drawn, rows)
    };
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("a small thread pool").install(run)
    };
    assert_eq!(on(1), on(2));
}
