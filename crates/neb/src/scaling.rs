//! Standardisation: every model sees its columns with mean 0 and deviation 1 over the *training rows*.

use crate::kernel::Lane;
use crate::{Error, Result, Rows};

/// Mean and deviation of each column.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Scaling {
    /// Means.
    pub mean: Vec<f32>,
    /// Standard deviations, all positive.
    pub deviation: Vec<f32>,
    /// 1 / deviation.
    pub inverse: Vec<f32>,
}

impl Scaling {
    /// Measures the columns over the rows with these numbers; constant columns are refused by name.
    pub(crate) fn measure(rows: Rows, numbers: &[u32], names: &[String]) -> Result<Self> {
        let n = numbers.len() as f64;
        let mut mean = vec![0.0f64; rows.cols()];
        for &row in numbers {
            for (sum, &value) in mean.iter_mut().zip(rows.row(row as usize)) {
                *sum += f64::from(value) / n;
            }
        }
        let mut variance = vec![0.0f64; rows.cols()];
        for &row in numbers {
            let row = rows.row(row as usize);
            for ((sum, &value), mean) in variance.iter_mut().zip(row).zip(&mean) {
                *sum += (f64::from(value) - mean).powi(2) / n;
            }
        }
        let constant: Vec<String> = names
            .iter()
            .zip(mean.iter().zip(&variance))
            .filter(|&(_, (mean, variance))| variance.sqrt() <= 1e-6 * mean.abs())
            .map(|(name, (&mean, _))| format!("`{name}` (every row holds about {})", mean as f32))
            .collect();
        if !constant.is_empty() {
            let (columns, are) = match constant.len() {
                1 => ("column", "is"),
                _ => ("columns", "are"),
            };
            return Err(Error::input(
                format!("{columns} {} {are} constant", constant.join(", ")),
                "leave out what is constant: it carries no information",
            ));
        }
        Ok(Self::new(
            mean.into_iter().map(|m| m as f32).collect(),
            variance.into_iter().map(|v| v.sqrt() as f32).collect(),
        ))
    }

    /// From means and deviations.
    pub(crate) fn new(mean: Vec<f32>, deviation: Vec<f32>) -> Self {
        let inverse = deviation.iter().map(|d| 1.0 / d).collect();
        Self {
            mean,
            deviation,
            inverse,
        }
    }

    /// Writes a tile's rows in the user's units.
    pub(crate) fn store(&self, tile: &[Lane], rows: &mut [f32]) {
        for (lane, row) in rows.chunks_exact_mut(tile.len()).enumerate() {
            for (d, out) in row.iter_mut().enumerate() {
                *out = tile[d].0[lane] * self.deviation[d] + self.mean[d];
            }
        }
    }

    /// Σ log deviation: what a log-density loses when it returns to the user's units.
    pub(crate) fn log_volume(&self) -> f64 {
        self.deviation.iter().map(|&d| f64::from(d).ln()).sum()
    }
}
