//! A sample as the checks take it: rows, perhaps with weights, verified before anything is computed.

use crate::{Error, Matrix, Result, Rows};

/// Rows of a sample, and how often each counts.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// One row per event.
    pub rows: Rows<'a>,
    /// One weight per row, none of them negative; without weights each row counts once.
    pub weights: Option<&'a [f32]>,
}

impl<'a> Sample<'a> {
    /// Rows with a weight each.
    pub fn weighted(rows: Rows<'a>, weights: &'a [f32]) -> Self {
        Self {
            rows,
            weights: Some(weights),
        }
    }

    /// At most `most` of its rows with their weights, spread evenly ([`spread_rows`]).
    pub fn thinned(&self, most: usize) -> (Matrix, Option<Vec<f32>>) {
        let rows = spread_rows(self.rows.rows(), most);
        let weights = self.weights.map(|weights| {
            let weights = rows.iter().map(|&row| weights[row as usize]);
            weights.collect()
        });
        (self.rows.gather(&rows), weights)
    }

    /// The weight of a row.
    pub(super) fn weight(&self, row: usize) -> f32 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// Sum of the weights.
    pub(super) fn total(&self) -> f64 {
        match self.weights {
            Some(weights) => weights.iter().map(|&w| f64::from(w)).sum(),
            None => self.rows.rows() as f64,
        }
    }

    /// Effective sample size (Σ w)² / Σ w²: the rows of equal weight that would fluctuate as much.
    pub(super) fn effective_size(&self) -> f64 {
        match self.weights {
            Some(weights) => effective_size(weights),
            None => self.rows.rows() as f64,
        }
    }

    /// Refuses values and weights that cannot be used; `name` says whose they are.
    pub(super) fn check(&self, name: &str) -> Result<()> {
        check_finite(self.rows, name)?;
        match self.weights {
            Some(weights) => check_weights(weights, self.rows.rows(), name),
            None => Ok(()),
        }
    }
}

impl<'a> From<Rows<'a>> for Sample<'a> {
    fn from(rows: Rows<'a>) -> Self {
        Self {
            rows,
            weights: None,
        }
    }
}

/// Numbers of at most `most` of so many rows, spread evenly: rows in the order of their files stand for all of them.
pub fn spread_rows(rows: usize, most: usize) -> Vec<u32> {
    let chosen = rows.min(most);
    (0..chosen).map(|at| (at * rows / chosen) as u32).collect()
}

/// (Σ w)² / Σ w².
pub(super) fn effective_size(weights: &[f32]) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for &weight in weights {
        sum += f64::from(weight);
        squares += f64::from(weight).powi(2);
    }
    sum * sum / squares
}

/// Refuses values that are not finite, naming the first.
pub(crate) fn check_finite(rows: Rows, name: &str) -> Result<()> {
    let bad = |value: &&f32| !value.is_finite();
    let Some(first) = rows.values().iter().position(|value| !value.is_finite()) else {
        return Ok(());
    };
    let count = rows.values().iter().filter(bad).count();
    Err(Error::input(
        format!(
            "{name}: {count} values are not finite; the first is {} at row {}, column {}",
            rows.values()[first],
            first / rows.cols(),
            first % rows.cols()
        ),
        "remove or repair these rows; neb never drops data by itself",
    ))
}

/// Refuses weights that are not one per row, not finite, negative, or all zero.
pub(super) fn check_weights(weights: &[f32], rows: usize, name: &str) -> Result<()> {
    if weights.len() != rows {
        return Err(Error::input(
            format!("{name}: {} weights for {rows} rows", weights.len()),
            "give one weight per row",
        ));
    }
    if let Some(row) = weights.iter().position(|w| !w.is_finite() || *w < 0.0) {
        return Err(Error::input(
            format!(
                "{name}: the weight of row {row} is {}; this check needs weights that are finite and not negative",
                weights[row]
            ),
            "compare samples without negative weights: a classifier cannot learn from them, and an AUC would have no meaning",
        ));
    }
    if weights.iter().all(|&w| w == 0.0) {
        return Err(Error::input(
            format!("{name}: every weight is zero"),
            "check that the weight column is the right one",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_samples_keep_the_last_rows() {
        assert_eq!(spread_rows(3, 5), [0, 1, 2]);
        assert_eq!(spread_rows(10, 4), [0, 2, 5, 7]);
        assert_eq!(spread_rows(0, 4), [0u32; 0]);
        let rows = Matrix::from_fn(10, 1, |row, _| row as f32);
        let weights: Vec<f32> = (0..10).map(|row| 2.0 * row as f32).collect();
        let (rows, weights) = Sample::weighted(rows.view(), &weights).thinned(4);
        assert_eq!(rows.values(), [0.0, 2.0, 5.0, 7.0]);
        assert_eq!(weights.unwrap(), [0.0, 4.0, 10.0, 14.0]);
    }
}
