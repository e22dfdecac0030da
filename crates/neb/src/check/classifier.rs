//! The boundary between the two-sample check and whatever learns to tell two samples apart.

use crate::{Result, Rows};

/// A fitted classifier: one score per row, the log-odds that the row is of the second sample.
///
/// Zero means undecided; scores of different folds are pooled, so their scale must be comparable.
pub type Scorer = Box<dyn Fn(Rows) -> Vec<f32> + Send + Sync>;

/// Learns to tell the rows of two samples apart.
pub trait Classifier: Sync {
    /// How results of this classifier are labelled.
    fn name(&self) -> &'static str;

    /// Learns from `x`, whose row i is of the second sample if `second[i]`, and counts `weight[i]` times.
    ///
    /// The weights are not negative, and [`compare`](crate::check::compare) scales them so that both
    /// samples weigh the same and the mean weight is one. The same arguments must give the same scorer,
    /// whatever the number of threads.
    fn fit(&self, x: Rows, second: &[bool], weight: &[f32], seed: u64) -> Result<Scorer>;
}
