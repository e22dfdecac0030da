//! The draws that a gradient is sent back through.
//!
//! Of K draws for an observation the importance-weighted bound gives each its share w_k of the slope. Few shares are large, and
//! the many small ones cost as much on the way back. So only so many are kept, at random and without bias: a share of 1/m
//! and more for certain, a smaller one with probability m·w_k, and then with the slope 1/m. The sum of all slopes stays
//! what it was, the expectation of every gradient too, and at most m draws an observation go back, up to one. Chance is taken once
//! for each observation (systematic sampling): small shares add up along the draws, and where the sum passes a multiple of
//! 1/m the draw is kept. m is an eighth of the draws, whose way back then costs little beside the way forth of all.
//!
//! Up to m draws all are kept, but for shares that change nothing and, being near the smallest numbers there are, would slow
//! every product they are in.

use crate::{Matrix, Noise, PairWeights, Purpose};

/// Of so many draws one is kept.
const OF_SO_MANY: usize = 8;
/// Draws kept however few there are.
const FEWEST: usize = 4;
/// Shares below this are nothing.
const SMALLEST_SHARE: f32 = 1e-7;

/// The draws that are kept, in order.
pub(super) struct Kept {
    /// Their numbers among all draws.
    pub(super) draws: Vec<u32>,
    /// The batch's row each belongs to.
    pub(super) rows: Vec<u32>,
    /// Their slopes.
    pub(super) slopes: Vec<f32>,
}

/// Draws kept for an observation, of k.
fn most(k: usize) -> usize {
    FEWEST.max(k / OF_SO_MANY)
}

impl Kept {
    /// Of the slopes of a batch: a row for each observation, a column for each draw.
    pub(super) fn of(slopes: &Matrix, seed: u64, step: u64) -> Self {
        let mut kept = Self {
            draws: Vec::new(),
            rows: Vec::new(),
            slopes: Vec::new(),
        };
        let most = most(slopes.cols());
        let large = 1.0 / most as f32;
        let starts = Noise::new(seed, Purpose::Thinning, step).uniform(slopes.rows(), 1);
        for row in 0..slopes.rows() {
            let all = slopes.row(row);
            let total: f32 = all.iter().sum();
            if total == 0.0 {
                continue;
            }
            let mut keep = |k: usize, share: f32| {
                kept.draws.push((row * slopes.cols() + k) as u32);
                kept.rows.push(row as u32);
                kept.slopes.push(share * total);
            };
            let mut passed = large * starts.row(row)[0];
            for (k, slope) in all.iter().enumerate() {
                let share = slope / total;
                if slopes.cols() <= most {
                    if share > SMALLEST_SHARE {
                        keep(k, share);
                    }
                } else if share >= large {
                    keep(k, share);
                } else {
                    passed += share;
                    if passed >= large {
                        passed -= large;
                        keep(k, large);
                    }
                }
            }
        }
        kept
    }

    /// Every kept draw with its own observation and this weight.
    pub(super) fn pairs(&self, weights: &[f32]) -> PairWeights {
        PairWeights {
            starts: (0..=self.rows.len()).collect(),
            y_row: self.rows.clone(),
            weight: weights.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64 draws of uneven shares, one of them a third: over 2000 steps every draw has its own slope on average, within 4.5 standard
    /// errors of a choice (false alarm 4e-4 over the draws), and no more than 9 are kept.
    #[test]
    fn slopes_are_kept_on_average() {
        let share = |k: usize| match k {
            5 => 1.0 / 3.0,
            k => 2.0 / 3.0 * (1 + k % 7) as f32 / 253.0,
        };
        let slopes = Matrix::from_fn(1, 64, |_, k| 0.2 * share(k));
        let total: f32 = slopes.values().iter().sum();
        let steps = 2000;
        let mut sums = vec![0.0f64; 64];
        for step in 0..steps {
            let kept = Kept::of(&slopes, 3, step);
            assert!(kept.draws.len() <= most(64) + 1, "{}", kept.draws.len());
            for (&draw, &slope) in kept.draws.iter().zip(&kept.slopes) {
                sums[draw as usize] += f64::from(slope);
            }
        }
        let large = f64::from(total) / most(64) as f64;
        for (k, sum) in sums.into_iter().enumerate() {
            let (mean, exact) = (sum / steps as f64, f64::from(slopes.values()[k]));
            let chance = (exact / large).min(1.0);
            let error = large * (chance * (1.0 - chance) / steps as f64).sqrt();
            assert!(
                (mean - exact).abs() < 4.5 * error + 1e-6,
                "{k}: {mean} {exact}"
            );
        }
    }

    /// Few draws are all kept but for those of no share, and a row of no weight has none.
    #[test]
    fn of_few_draws_all_that_count_are_kept() {
        let slopes = Matrix::from_vec(vec![0.3, 1e-12, 0.2, 0.0, 0.0, 0.0], 3);
        let kept = Kept::of(&slopes, 3, 0);
        assert_eq!((kept.draws, kept.rows), (vec![0, 2], vec![0, 0]));
        assert!((kept.slopes[0] - 0.3).abs() < 1e-6 && (kept.slopes[1] - 0.2).abs() < 1e-6);
    }
}
