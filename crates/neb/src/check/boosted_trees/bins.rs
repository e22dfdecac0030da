//! Columns cut into at most 256 bins at their quantiles, so that a split is found by counting.

use rayon::prelude::*;

use crate::Rows;

/// Where each column is cut: bin b of a column holds the values in (cut[b − 1], cut[b]].
#[derive(Debug)]
pub(super) struct Cuts {
    columns: Vec<Vec<f32>>,
}

impl Cuts {
    /// Cuts each column midway between neighbouring values: between all of them where no more than `bins`
    /// differ, else at the quantiles k / `bins`.
    pub(super) fn at_quantiles(x: Rows, bins: usize) -> Self {
        let columns = (0..x.cols())
            .into_par_iter()
            .map(|col| {
                let mut values: Vec<f32> = (0..x.rows()).map(|row| x.row(row)[col]).collect();
                values.sort_unstable_by(f32::total_cmp);
                cut_sorted(&values, bins)
            })
            .collect();
        Self { columns }
    }

    /// The greatest value of this bin of this column.
    pub(super) fn upper(&self, col: usize, bin: usize) -> f32 {
        self.columns[col][bin]
    }

    /// Number of bins of this column.
    pub(super) fn bins(&self, col: usize) -> usize {
        self.columns[col].len() + 1
    }

    /// The bin of every value, column by column.
    pub(super) fn bin_columns(&self, x: Rows) -> Vec<Vec<u8>> {
        self.columns
            .par_iter()
            .enumerate()
            .map(|(col, cuts)| {
                (0..x.rows())
                    .map(|row| cuts.partition_point(|&cut| cut < x.row(row)[col]) as u8)
                    .collect()
            })
            .collect()
    }
}

fn cut_sorted(values: &[f32], bins: usize) -> Vec<f32> {
    let mut distinct = values.to_vec();
    distinct.dedup();
    if distinct.len() <= bins {
        return distinct
            .windows(2)
            .map(|pair| midpoint(pair[0], pair[1]))
            .collect();
    }
    let last = values.len() - 1;
    let mut cuts: Vec<f32> = (1..bins)
        .map(|k| {
            let below = k * last / bins;
            let above = (k * last).div_ceil(bins);
            midpoint(values[below], values[above])
        })
        .collect();
    cuts.dedup();
    cuts
}

/// Midway between two values; the lower one where rounding would reach the upper one.
fn midpoint(low: f32, high: f32) -> f32 {
    let middle = (0.5 * (f64::from(low) + f64::from(high))) as f32;
    if middle < high { middle } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Matrix, Noise, Purpose};

    #[test]
    fn few_distinct_values_get_a_bin_each() {
        let x = Matrix::from_vec(vec![3.0, 1.0, 1.0, 2.0, 3.0, 2.0], 1);
        let cuts = Cuts::at_quantiles(x.view(), 255);
        assert_eq!(cuts.bins(0), 3);
        assert_eq!(cuts.bin_columns(x.view()), [vec![2, 0, 0, 1, 2, 1]]);
        assert_eq!(cuts.upper(0, 0), 1.5);
    }

    #[test]
    fn many_values_fill_the_bins_evenly() {
        let x = Noise::new(1, Purpose::Test, 0).normal(10_200, 1);
        let cuts = Cuts::at_quantiles(x.view(), 255);
        assert_eq!(cuts.bins(0), 255);
        let mut counts = [0; 255];
        for &bin in &cuts.bin_columns(x.view())[0] {
            counts[usize::from(bin)] += 1;
        }
        assert!(
            counts.iter().all(|count| (39..=41).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn neighbouring_floats_stay_apart() {
        let low = 1.0f32;
        let x = Matrix::from_vec(vec![low, low.next_up()], 1);
        let cuts = Cuts::at_quantiles(x.view(), 255);
        assert_eq!(cuts.bin_columns(x.view()), [vec![0, 1]]);
    }
}
