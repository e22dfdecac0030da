//! The boundary every stage meets: a likelihood q(y|x), evaluated row by row or for all pairs.

use crate::{Matrix, MatrixMut, Noise, Rows};

/// Dimensions of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Dims {
    /// Dimension of the source value x.
    pub dx: usize,
    /// Dimension of the observation y.
    pub dy: usize,
}

/// Weights w_ik of few of the pairs (y_i, x_k): for each x_k the observations that matter to it.
#[derive(Clone, Debug, Default)]
pub struct PairWeights {
    /// Entries of x_k are `starts[k] .. starts[k + 1]`; one more entry than there are x rows.
    pub starts: Vec<usize>,
    /// Row i of the observation, ascending for each k.
    pub y_row: Vec<u32>,
    /// The weight w_ik.
    pub weight: Vec<f32>,
}

impl PairWeights {
    /// One pair of weight 1 for each x_k, with the observation of row `y_row[k]`.
    pub fn one_each(y_row: &[u32]) -> Self {
        Self {
            starts: (0..=y_row.len()).collect(),
            y_row: y_row.to_vec(),
            weight: vec![1.0; y_row.len()],
        }
    }
}

/// q(y|x): its logarithm row by row and for all pairs, its gradient with respect to x, and draws.
///
/// All values are in the user's units.
pub trait Likelihood: Send + Sync {
    /// Dimensions of x and y.
    fn dims(&self) -> Dims;

    /// `out[i]` = log q(y_i|x_i).
    fn log_prob(&self, y: Rows, x: Rows, out: &mut [f32]);

    /// `out[i][k]` = log q(y_i|x_k) for every pair.
    fn log_prob_pairs(&self, y: Rows, x: Rows, out: MatrixMut);

    /// `dx[k]` = Σ_i w_ik ∂ log q(y_i|x_k) / ∂x_k; overwrites `dx`.
    fn grad_x_pairs(&self, y: Rows, x: Rows, weights: &PairWeights, dx: MatrixMut);

    /// One draw of y for each row of x.
    fn sample(&self, x: Rows, noise: Noise) -> Matrix;

    /// The same likelihood with noise added to y, if it knows how.
    fn widening(&self) -> Option<&dyn Widening> {
        None
    }

    /// ε(x), where not every x is observed: then the likelihood is q(y|x) ε(x), whose integral over y is ε(x), and the law of
    /// what is observed is ∫ q(y|x) ε(x) q(x) dx / ∫ ε(x) q(x) dx. Without, every x is observed.
    fn acceptance(&self) -> Option<&dyn Acceptance> {
        None
    }
}

/// ε(x): the probability that x is observed at all.
pub trait Acceptance: Send + Sync {
    /// `out[k]` = log ε(x_k).
    fn log_acceptance(&self, x: Rows, out: &mut [f32]);

    /// Adds weight_k ∂ log ε(x_k)/∂x_k to row k of `dx`.
    fn add_gradient(&self, x: Rows, weight: &[f32], dx: MatrixMut);
}

/// A likelihood that also knows the density of y + τ·noise: what a fit through a very narrow one begins with.
pub trait Widening: Send + Sync {
    /// Largest scale τ it knows.
    fn largest_scale(&self) -> f32;

    /// q_τ(y|x), the density of y_d + τ·deviation_d·N(0, 1).
    fn widened(&self, tau: f32) -> Box<dyn Likelihood + '_>;

    /// The deviation of each column of y in which τ is counted.
    fn deviations(&self) -> &[f32];
}
