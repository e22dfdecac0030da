//! Sliced Wasserstein distance: how far, on average over directions, the mass of one sample must be moved.
//!
//! Along a direction u the distance of order one is ∫ |F_a(t) − F_b(t)| dt, with F the distribution functions of u·x;
//! F_a − F_b is the running sum of the signed masses in the order of u·x. Lengths are in pooled deviations of each
//! column, so that columns of different units count alike.

use rayon::prelude::*;

use super::null::{AgainstNull, Pooled};
use super::{Band, Draw};

/// A distance between two samples, in pooled standard deviations.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SlicedWasserstein {
    /// Mean over random directions of the distance of order one.
    pub distance: f64,
    /// Interval that holds the distance with probability 0.95 if nothing differs.
    pub null: Band,
    /// Chance of at least this distance if nothing differs.
    pub p_value: f64,
}

/// The distance along `directions` random directions, and its null.
pub(super) fn sliced_wasserstein(
    pooled: &Pooled,
    directions: usize,
    seed: u64,
) -> SlicedWasserstein {
    let cols = pooled.rows.cols();
    let directions = if cols == 1 { 1 } else { directions.max(1) };
    let repetitions = pooled.masses.rows();
    let directions = Draw::Directions.noise(seed, 0).normal(directions, cols);
    let along: Vec<Vec<f64>> = (0..directions.rows())
        .into_par_iter()
        .map(|row| distances_along(pooled, directions.row(row)))
        .collect();
    let mut mean = vec![0.0; repetitions];
    for distances in &along {
        for (mean, distance) in mean.iter_mut().zip(distances) {
            *mean += distance / along.len() as f64;
        }
    }
    let distance = mean[0];
    let null = AgainstNull::new(distance, mean.split_off(1));
    SlicedWasserstein {
        distance,
        null: null.band,
        p_value: null.p_value,
    }
}

/// Distances along one direction, for the observed masses and each repetition of the null.
fn distances_along(pooled: &Pooled, direction: &[f32]) -> Vec<f64> {
    let length = direction.iter().map(|u| u * u).sum::<f32>().sqrt();
    let mut projected: Vec<(f32, u32)> = (0..pooled.rows.rows())
        .map(|row| {
            let values = pooled.rows.row(row).iter();
            let dot: f32 = values.zip(direction).map(|(v, u)| v * u).sum();
            (dot / length, row as u32)
        })
        .collect();
    projected.sort_unstable_by(|left, right| left.0.total_cmp(&right.0).then(left.1.cmp(&right.1)));
    let steps: Vec<(f32, u32)> = projected
        .windows(2)
        .map(|pair| (pair[1].0 - pair[0].0, pair[0].1))
        .collect();
    (0..pooled.masses.rows())
        .map(|repetition| {
            let masses = pooled.masses.row(repetition);
            let (mut difference, mut distance) = (0.0f64, 0.0f64);
            for &(gap, row) in &steps {
                difference += f64::from(masses[row as usize]);
                distance += difference.abs() * f64::from(gap);
            }
            distance
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Matrix, Noise, Purpose};

    /// In one dimension, sizes equal: the mean distance of the sorted values, here in units of the pooled deviation.
    #[test]
    fn one_dimension_is_the_mean_gap_of_sorted_values() {
        let draws = Noise::new(1, Purpose::Test, 0).normal(400, 1);
        let mut a = draws.values()[..200].to_vec();
        let mut b: Vec<f32> = draws.values()[200..]
            .iter()
            .map(|v| 0.3 + 2.0 * v)
            .collect();
        let (first, second) = (
            Matrix::from_vec(a.clone(), 1),
            Matrix::from_vec(b.clone(), 1),
        );
        let pooled = Pooled::new(first.view().into(), second.view().into(), 1000, 19, 3);
        let found = sliced_wasserstein(&pooled, 50, 3).distance;

        let all: Vec<f64> = a.iter().chain(&b).map(|&v| f64::from(v)).collect();
        let mean = all.iter().sum::<f64>() / 400.0;
        let deviation = (all.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 400.0).sqrt();
        a.sort_unstable_by(f32::total_cmp);
        b.sort_unstable_by(f32::total_cmp);
        let gaps: f64 = a
            .iter()
            .zip(&b)
            .map(|(a, b)| f64::from((a - b).abs()))
            .sum();
        assert!((found - gaps / 200.0 / deviation).abs() < 1e-5);
    }

    /// A shift by m moves all mass by |u·m| along u. In two dimensions the mean of |cos| is 2/π; 400 directions,
    /// deviation 0.31 / 20 of the length: four of them are 0.062.
    #[test]
    fn a_shift_costs_its_mean_projection() {
        let draws = Noise::new(1, Purpose::Test, 1).normal(2000, 2);
        let shifted = Matrix::from_fn(2000, 2, |row, col| draws.row(row)[col] + 6.0);
        let pooled = Pooled::new(draws.view().into(), shifted.view().into(), 4000, 19, 3);
        let found = sliced_wasserstein(&pooled, 400, 3);
        let length = 2f64.sqrt() * 6.0 / (1.0f64 + 9.0).sqrt();
        let ratio = found.distance / length;
        assert!(
            (ratio - 2.0 / std::f64::consts::PI).abs() < 0.062,
            "{ratio}"
        );
        assert_eq!(found.p_value, 0.05);
        assert!(!found.null.contains(found.distance));
    }
}
