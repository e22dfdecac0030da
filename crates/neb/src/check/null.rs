//! What a distance between two samples would be if nothing differed.
//!
//! The distances of this module depend on the samples only through the signed masses δ_i of the pooled rows:
//! positive shares that sum to one for the first sample, negative ones that sum to minus one for the second. A
//! repetition of the null gives the pooled rows new masses: without weights by permuting them, which is exact for any
//! sizes; with weights by drawing both samples, at their effective sizes, from the pooled weighted rows.

use rayon::prelude::*;

use super::{Band, Draw, Sample};
use crate::{Matrix, Noise};

/// The pooled rows of two samples with the masses that were observed and those of the null's repetitions.
pub(super) struct Pooled {
    /// The rows of both samples, each column in units of its pooled deviation.
    pub(super) rows: Matrix,
    /// Row 0: the observed masses; the others: one repetition of the null each.
    pub(super) masses: Matrix,
}

impl Pooled {
    /// Pools two samples, at most `most` random rows of each.
    pub(super) fn new(a: Sample, b: Sample, most: usize, repetitions: usize, seed: u64) -> Self {
        let kept = [(a, 0), (b, 1)].map(|(sample, side)| {
            let mut rows = Draw::Subsample
                .noise(seed, side)
                .permutation(sample.rows.rows());
            rows.truncate(most);
            rows.sort_unstable();
            rows
        });
        let mut values = Vec::new();
        let mut weights = Vec::new();
        for (sample, kept) in [a, b].iter().zip(&kept) {
            values.extend(sample.rows.gather(kept).into_values());
            weights.push(
                kept.iter()
                    .map(|&row| sample.weight(row as usize))
                    .collect::<Vec<f32>>(),
            );
        }
        let rows = standardise(Matrix::from_vec(values, a.rows.cols()));
        let null = Null {
            shares: [shares(&weights[0]), shares(&weights[1])],
            permute: a.weights.is_none() && b.weights.is_none(),
        };
        let count = rows.rows();
        let mut masses = Matrix::zeros(repetitions + 1, count);
        masses
            .values_mut()
            .par_chunks_mut(count)
            .enumerate()
            .for_each(|(repetition, masses)| match repetition {
                0 => null.observed(masses),
                _ => null.repeat(Draw::Null.noise(seed, repetition as u64), masses),
            });
        Self { rows, masses }
    }
}

struct Null {
    /// Weights of the rows of each sample, scaled to the sum one.
    shares: [Vec<f64>; 2],
    permute: bool,
}

impl Null {
    fn observed(&self, masses: &mut [f32]) {
        let [a, b] = &self.shares;
        for (mass, share) in masses.iter_mut().zip(a) {
            *mass = *share as f32;
        }
        for (mass, share) in masses[a.len()..].iter_mut().zip(b) {
            *mass = -*share as f32;
        }
    }

    fn repeat(&self, noise: Noise, masses: &mut [f32]) {
        if self.permute {
            let mut observed = vec![0.0; masses.len()];
            self.observed(&mut observed);
            for (mass, &from) in masses.iter_mut().zip(&noise.permutation(observed.len())) {
                *mass = observed[from as usize];
            }
        } else {
            self.draw(noise, masses);
        }
    }

    /// Draws each sample's effective number of rows, with replacement, from the pooled weighted rows.
    fn draw(&self, noise: Noise, masses: &mut [f32]) {
        let sizes = [0, 1].map(|side| 1.0 / self.shares[side].iter().map(|s| s * s).sum::<f64>());
        let mut cumulative = Vec::with_capacity(masses.len());
        let mut sum = 0.0;
        for (shares, size) in self.shares.iter().zip(sizes) {
            for share in shares {
                sum += share * size;
                cumulative.push(sum);
            }
        }
        for (side, sign) in [(0, 1.0), (1, -1.0)] {
            let draws = (sizes[side].round() as usize).max(1);
            let mut stream = noise.stream(side as u64);
            for _ in 0..draws {
                let at = sum * stream.uniform();
                let row = cumulative.partition_point(|&c| c <= at);
                masses[row.min(masses.len() - 1)] += sign / draws as f32;
            }
        }
    }
}

fn shares(weights: &[f32]) -> Vec<f64> {
    let sum: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    weights.iter().map(|&w| f64::from(w) / sum).collect()
}

/// Each column minus its mean, in units of its deviation (unless that is zero).
fn standardise(mut rows: Matrix) -> Matrix {
    let count = rows.rows() as f64;
    for col in 0..rows.cols() {
        let column = |rows: &Matrix| -> Vec<f64> {
            (0..rows.rows())
                .map(|row| f64::from(rows.row(row)[col]))
                .collect()
        };
        let values = column(&rows);
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        let scale = if variance > 0.0 {
            variance.sqrt().recip()
        } else {
            1.0
        };
        for (row, value) in values.iter().enumerate() {
            rows.row_mut(row)[col] = ((value - mean) * scale) as f32;
        }
    }
    rows
}

/// A distance beside those of the null's repetitions.
pub(super) struct AgainstNull {
    pub(super) band: Band,
    pub(super) p_value: f64,
}

impl AgainstNull {
    /// Central 95 % of the null's distances, and the chance that the null gives at least `observed`.
    pub(super) fn new(observed: f64, mut null: Vec<f64>) -> Self {
        null.sort_unstable_by(f64::total_cmp);
        let at = |level: f64| null[(level * (null.len() - 1) as f64).round() as usize];
        let reached = null
            .iter()
            .filter(|&&distance| distance >= observed)
            .count();
        Self {
            band: Band {
                low: at(0.025),
                high: at(0.975),
            },
            p_value: (1 + reached) as f64 / (1 + null.len()) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Purpose;

    #[test]
    fn permuted_masses_are_the_observed_ones_in_another_order() {
        let x = Noise::new(1, Purpose::Test, 0).normal(30, 2);
        let (a, b) = (x.view().slice(0..10), x.view().slice(10..30));
        let pooled = Pooled::new(a.into(), b.into(), 100, 3, 5);
        let sorted = |row| {
            let mut masses = pooled.masses.row(row).to_vec();
            masses.sort_unstable_by(f32::total_cmp);
            masses
        };
        assert_eq!(pooled.masses.row(0)[..10], [0.1; 10]);
        assert_eq!(pooled.masses.row(0)[10..], [-0.05; 20]);
        assert_ne!(pooled.masses.row(0), pooled.masses.row(1));
        assert_eq!(sorted(0), sorted(1));
    }

    /// Means of one column under the null masses must scatter as those of the weighted samples do:
    /// variance 1/n_a + 1/n_b with effective sizes, for unit variance. 400 repetitions, 7 % error of the variance.
    #[test]
    fn drawn_masses_fluctuate_like_the_weighted_samples() {
        let x = Noise::new(1, Purpose::Test, 1).normal(3000, 1);
        let weights: Vec<f32> = Noise::new(1, Purpose::Test, 2)
            .uniform(1000, 1)
            .values()
            .iter()
            .map(|u| u.powi(3))
            .collect();
        let a = Sample::weighted(x.view().slice(0..1000), &weights);
        let pooled = Pooled::new(a, x.view().slice(1000..3000).into(), 5000, 400, 5);
        let squares: f64 = (1..=400)
            .map(|repetition| {
                let masses = pooled.masses.row(repetition).iter();
                let mean: f64 = masses
                    .zip(pooled.rows.values())
                    .map(|(&m, &v)| f64::from(m * v))
                    .sum();
                mean * mean
            })
            .sum();
        let expected = 1.0 / a.effective_size() + 1.0 / 2000.0;
        let ratio = squares / 400.0 / expected;
        assert!((ratio - 1.0).abs() < 0.28, "{ratio}");
    }

    #[test]
    fn p_value_counts_the_null_distances_reached() {
        let null: Vec<f64> = (1..=99).map(f64::from).collect();
        assert_eq!(AgainstNull::new(1000.0, null.clone()).p_value, 0.01);
        assert_eq!(AgainstNull::new(50.0, null).p_value, 0.51);
    }
}
