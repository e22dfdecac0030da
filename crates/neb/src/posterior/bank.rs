//! The bank: source samples in chunks, drawn once for all observations and never kept.

use crate::source::Source;
use crate::{Matrix, Noise, Purpose};

/// Samples in a chunk.
pub(super) const CHUNK: usize = 4096;
/// Observations that are evaluated with a chunk at once: so many that what the surrogate computes from x alone costs little.
pub(super) const BLOCK: usize = 512;
/// Address of the bank's noise, apart from that of other draws of the source with the same seed.
const STEP: u64 = 2 << 32;

/// An endless table of source samples.
#[derive(Clone, Copy)]
pub(super) struct Bank<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) seed: u64,
}

impl Bank<'_> {
    /// The first `rows` samples of a chunk.
    pub(super) fn chunk(&self, chunk: u64, rows: usize) -> Matrix {
        let noise = Noise::new(self.seed, Purpose::SourceSample, STEP + chunk);
        self.source.sample(rows, noise)
    }

    /// The first samples of the bank.
    pub(super) fn first(&self, rows: usize) -> Matrix {
        let mut values = Vec::with_capacity(rows * self.source.dim());
        for chunk in 0..rows.div_ceil(CHUNK) {
            let rows = CHUNK.min(rows - chunk * CHUNK);
            values.extend_from_slice(self.chunk(chunk as u64, rows).values());
        }
        Matrix::from_vec(values, self.source.dim())
    }
}

/// Least, greatest, mean and deviation of every column of some samples.
pub(super) struct Extent {
    pub(super) low: Vec<f32>,
    pub(super) high: Vec<f32>,
    pub(super) mean: Vec<f32>,
    pub(super) deviation: Vec<f32>,
}

impl Extent {
    pub(super) fn of(x: &Matrix) -> Self {
        let (rows, cols) = (x.rows() as f64, x.cols());
        let column = |col: usize| (0..x.rows()).map(move |row| x.row(row)[col]);
        let mut extent = Self {
            low: Vec::new(),
            high: Vec::new(),
            mean: Vec::new(),
            deviation: Vec::new(),
        };
        for col in 0..cols {
            let mean = column(col).map(f64::from).sum::<f64>() / rows;
            let variance = column(col)
                .map(|v| (f64::from(v) - mean).powi(2))
                .sum::<f64>()
                / rows;
            extent.low.push(column(col).fold(f32::INFINITY, f32::min));
            extent
                .high
                .push(column(col).fold(f32::NEG_INFINITY, f32::max));
            extent.mean.push(mean as f32);
            extent
                .deviation
                .push((variance.sqrt() as f32).max(f32::MIN_POSITIVE));
        }
        extent
    }

    pub(super) fn contains(&self, x: &[f32]) -> bool {
        let bounds = self.low.iter().zip(&self.high);
        x.iter()
            .zip(bounds)
            .all(|(x, (low, high))| x >= low && x <= high)
    }
}
