//! How well scores tell two samples apart: weighted ROC AUC and accuracy, with their errors.
//!
//! AUC = P(score of b > score of a) + ½ P(equal), rows drawn by weight: 0.5 if the scores cannot tell the samples
//! apart. Its error is DeLong's: with the placement V_i of each row (the part of the other sample that it is ranked
//! rightly against), Var = Var_a(V) / n_a + Var_b(V) / n_b, where Var / n of a weighted sample is
//! Σ w² (V − AUC)² / (Σ w)² · n / (n − 1), n the effective size.
//! If nothing differs, scores that were fixed beforehand have an AUC of mean ½ and variance (n_a + n_b + 1) / (12 n_a n_b)
//! (Mann-Whitney).

use statrs::distribution::{ContinuousCDF, Normal};

use super::sample::effective_size;
use super::{Band, Estimate};

/// Scores of the rows of one sample, and their weights.
#[derive(Clone, Copy, Debug)]
pub struct Scored<'a> {
    /// One score per row.
    pub scores: &'a [f32],
    /// One weight per row, not negative.
    pub weights: &'a [f32],
}

impl Scored<'_> {
    fn total(&self) -> f64 {
        self.weights.iter().map(|&w| f64::from(w)).sum()
    }
}

/// Weighted ROC AUC of scores that should be higher for `b`, with DeLong's standard error.
pub fn auc(a: Scored, b: Scored) -> Estimate {
    let (below, above) = placements(a, b);
    let value = below
        .iter()
        .zip(b.weights)
        .map(|(v, &w)| v * f64::from(w))
        .sum::<f64>()
        / b.total();
    let variance = variance_of_mean(&above, a, value) + variance_of_mean(&below, b, value);
    let (n_a, n_b) = (effective_size(a.weights), effective_size(b.weights));
    let null_deviation = ((1.0 / n_a + 1.0 / n_b + 1.0 / (n_a * n_b)) / 12.0).sqrt();
    Estimate {
        value,
        standard_error: variance.sqrt(),
        null: null_band(null_deviation, 1),
    }
}

/// Balanced accuracy, the mean over both samples of the weight that scores on its own side of zero (half of it at
/// zero), with its binomial error.
pub fn accuracy(a: Scored, b: Scored) -> Estimate {
    let right = |sample: Scored, sign: f32| {
        let mut sum = 0.0;
        for (&score, &weight) in sample.scores.iter().zip(sample.weights) {
            let hit = match (sign * score).partial_cmp(&0.0) {
                Some(std::cmp::Ordering::Greater) => 1.0,
                Some(std::cmp::Ordering::Equal) => 0.5,
                _ => 0.0,
            };
            sum += hit * f64::from(weight);
        }
        sum / sample.total()
    };
    let (right_a, right_b) = (right(a, -1.0), right(b, 1.0));
    let (n_a, n_b) = (effective_size(a.weights), effective_size(b.weights));
    let variance = right_a * (1.0 - right_a) / n_a + right_b * (1.0 - right_b) / n_b;
    Estimate {
        value: 0.5 * (right_a + right_b),
        standard_error: 0.5 * variance.sqrt(),
        null: null_band(0.25 * (1.0 / n_a + 1.0 / n_b).sqrt(), 1),
    }
}

/// Where the greatest of `trials` values around ½ lies with probability 0.95.
///
/// The ends hold whether the values move together (low end of one) or independently (high end of all).
fn null_band(deviation: f64, trials: usize) -> Band {
    let normal = Normal::standard();
    let upper = 0.975f64.powf(1.0 / trials as f64);
    Band {
        low: 0.5 + deviation * normal.inverse_cdf(0.025),
        high: 0.5 + deviation * normal.inverse_cdf(upper),
    }
}

/// The same estimate, from scores of cross-validation, with a null band that allows for it.
///
/// Fold j is scored by what was learned from fold k, and k by what was learned from j: both see the same chance
/// resemblance. For a score that responds linearly to the training rows, AUC − ½ is a sum over ordered pairs of folds whose
/// two orders are equal, so its variance is twice that of scores that had nothing to do with the rows. Trees that
/// stop early stay below (1.3 to 1.5 times, measured), so the doubled variance is the cautious choice.
pub(super) fn cross_validated(estimate: Estimate) -> Estimate {
    let deviation = std::f64::consts::SQRT_2 * null_deviation(estimate);
    Estimate {
        null: null_band(deviation, 1),
        ..estimate
    }
}

/// The same estimate as the greatest of `trials`: its null band rises, for the best of many looks better by luck.
pub(super) fn as_best_of(estimate: Estimate, trials: usize) -> Estimate {
    Estimate {
        null: null_band(null_deviation(estimate), trials),
        ..estimate
    }
}

/// The deviation behind the null band of a single value.
fn null_deviation(estimate: Estimate) -> f64 {
    (estimate.null.high - 0.5) / Normal::standard().inverse_cdf(0.975)
}

/// For each row of b the part of a that scores below, for each row of a the part of b that scores above; equals
/// count half.
fn placements(a: Scored, b: Scored) -> (Vec<f64>, Vec<f64>) {
    let mut rows: Vec<(f32, bool, u32)> = Vec::with_capacity(a.scores.len() + b.scores.len());
    for (sample, is_b) in [(a, false), (b, true)] {
        let scored = sample.scores.iter().enumerate();
        rows.extend(scored.map(|(row, &score)| (score + 0.0, is_b, row as u32)));
    }
    rows.sort_unstable_by(|left, right| {
        left.0
            .total_cmp(&right.0)
            .then(left.1.cmp(&right.1))
            .then(left.2.cmp(&right.2))
    });
    let (total_a, total_b) = (a.total(), b.total());
    let mut below = vec![0.0; b.scores.len()];
    let mut above = vec![0.0; a.scores.len()];
    let (mut passed_a, mut passed_b) = (0.0, 0.0);
    for equals in rows.chunk_by(|left, right| left.0 == right.0) {
        let (mut here_a, mut here_b) = (0.0, 0.0);
        for &(_, is_b, row) in equals {
            if is_b {
                here_b += f64::from(b.weights[row as usize]);
            } else {
                here_a += f64::from(a.weights[row as usize]);
            }
        }
        for &(_, is_b, row) in equals {
            if is_b {
                below[row as usize] = (passed_a + 0.5 * here_a) / total_a;
            } else {
                above[row as usize] = 1.0 - (passed_b + 0.5 * here_b) / total_b;
            }
        }
        passed_a += here_a;
        passed_b += here_b;
    }
    (below, above)
}

/// Variance of the weighted mean of `values`, whose mean is `mean`.
fn variance_of_mean(values: &[f64], sample: Scored, mean: f64) -> f64 {
    let mut sum = 0.0;
    for (value, &weight) in values.iter().zip(sample.weights) {
        sum += (f64::from(weight) * (value - mean)).powi(2);
    }
    let size = effective_size(sample.weights);
    let correction = if size > 1.0 { size / (size - 1.0) } else { 1.0 };
    sum / sample.total().powi(2) * correction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Noise, Purpose};

    fn scored<'a>(scores: &'a [f32], weights: &'a [f32]) -> Scored<'a> {
        Scored { scores, weights }
    }

    /// By hand: pairs (1,2) right, (1,3) right, (2,2) half, (2,3) right: 3.5 / 4. Placements of b: 0.75, 1; of a: 1,
    /// 0.75; each variance 1/32, halved: 1/64; the error is √(2/64).
    #[test]
    fn four_scores_by_hand() {
        let auc = auc(
            scored(&[1.0, 2.0], &[1.0; 2]),
            scored(&[2.0, 3.0], &[1.0; 2]),
        );
        assert!((auc.value - 0.875).abs() < 1e-12);
        assert!((auc.standard_error - (2.0f64 / 64.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn whole_weights_count_as_repetitions() {
        let a = [0.1, 0.4, 0.3, 0.2];
        let b = [0.3, 0.35, 0.8];
        let weighted = auc(
            scored(&a, &[1.0, 2.0, 0.0, 1.0]),
            scored(&b, &[3.0, 1.0, 1.0]),
        );
        let repeated = auc(
            scored(&[0.1, 0.4, 0.4, 0.2], &[1.0; 4]),
            scored(&[0.3, 0.3, 0.3, 0.35, 0.8], &[1.0; 5]),
        );
        assert!((weighted.value - repeated.value).abs() < 1e-12);
    }

    #[test]
    fn signed_zeros_are_equal() {
        let auc = auc(scored(&[-0.0], &[1.0]), scored(&[0.0], &[1.0]));
        assert_eq!(auc.value, 0.5);
    }

    /// AUC of N(1,1) against N(0,1) is Φ(1/√2) = 0.76025. Over 400 repetitions the spread must match the stated
    /// error within 15 % (its own relative error is 3.5 %: four deviations) and the mean the value within 4 errors.
    #[test]
    fn error_is_the_spread_of_repetitions() {
        let (mut values, mut errors) = (Vec::new(), Vec::new());
        for repetition in 0..400 {
            let draws = Noise::new(2, Purpose::Test, repetition).normal(300, 1);
            let shifted: Vec<f32> = draws.values()[..100].iter().map(|v| v + 1.0).collect();
            let estimate = auc(
                scored(&draws.values()[100..], &[1.0; 200]),
                scored(&shifted, &[1.0; 100]),
            );
            values.push(estimate.value);
            errors.push(estimate.standard_error);
        }
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let centre = mean(&values);
        let squares: Vec<f64> = values.iter().map(|v| (v - centre).powi(2)).collect();
        let spread = mean(&squares).sqrt();
        assert!((centre - 0.760_25).abs() < 4.0 * spread / 20.0, "{centre}");
        assert!((mean(&errors) / spread - 1.0).abs() < 0.15, "{spread}");
    }

    /// The band must hold 95 % of the AUCs of meaningless scores, weighted ones included; 1000 repetitions, four
    /// deviations of the count are 2.8 %.
    #[test]
    fn null_band_holds_meaningless_scores() {
        for weighted in [false, true] {
            let mut inside = 0;
            for repetition in 0..1000 {
                let draws = Noise::new(3, Purpose::Test, repetition).uniform(300, 2);
                let column = |col, rows: std::ops::Range<usize>| -> Vec<f32> {
                    rows.map(|row| draws.row(row)[col]).collect()
                };
                let weigh = |weights: Vec<f32>| match weighted {
                    true => weights,
                    false => vec![1.0; weights.len()],
                };
                let (weights_a, weights_b) = (weigh(column(1, 0..200)), weigh(column(1, 200..300)));
                let estimate = auc(
                    scored(&column(0, 0..200), &weights_a),
                    scored(&column(0, 200..300), &weights_b),
                );
                inside += usize::from(estimate.null.contains(estimate.value));
            }
            assert!((922..=978).contains(&inside), "{inside}");
        }
    }

    /// Two right of three on one side, all of two on the other: (2/3 + 1) / 2; a score of zero counts half.
    #[test]
    fn accuracy_by_hand() {
        let found = accuracy(
            scored(&[-1.0, -2.0, 1.0], &[1.0; 3]),
            scored(&[3.0, 4.0], &[1.0; 2]),
        );
        assert!((found.value - 5.0 / 6.0).abs() < 1e-12);
        let undecided = accuracy(scored(&[0.0], &[1.0]), scored(&[0.0], &[1.0]));
        assert_eq!(undecided.value, 0.5);
    }

    /// For the greatest of two independent normals the band must be [.., Φ⁻¹(√0.975) = 2.2390].
    #[test]
    fn best_of_two_is_judged_more_strictly() {
        let one = accuracy(
            scored(&[0.0; 50], &[1.0; 50]),
            scored(&[0.0; 50], &[1.0; 50]),
        );
        let two = as_best_of(one, 2);
        assert!((one.null.high - (0.5 + 1.959_964 * 0.05)).abs() < 1e-6);
        assert!((two.null.high - (0.5 + 2.238_964 * 0.05)).abs() < 1e-5);
        assert_eq!(one.null.low, two.null.low);
    }
}
